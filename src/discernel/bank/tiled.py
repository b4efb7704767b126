"""A bank that stores no matrix: tiles are computed in threads for every result.

Tiles and their intermediate results fit into the cache, and symmetric tiles are computed once.
Memory does not grow with the number of kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import (
    Buffers,
    FloatArray,
    as_host,
    blas_threads,
    draw_rows,
    in_threads,
    larger_tiles,
    n_cores,
    n_rows,
)
from discernel.bank.base import Bank
from discernel.bank.exact import DenseBank, ExactBank
from discernel.bank.grams import CHECKED_ROWS, check_grams, gram_stack
from discernel.bank.system import System
from discernel.bank.tiles import Centered, Engine, Found, Tile, TilePass, around_one
from discernel.exceptions import InvalidInputError, NumericalError
from discernel.kernels import Kernel, kernel_names
from discernel.kernels.evaluate import KernelSet, add_up
from discernel.kernels.terms import PreparedRows
from discernel.kernels.weighted import slices

#: Rows and columns of a tile: 1 MiB, of which a core holds two or three in its cache.
_ROWS, _COLUMNS = 256, 512
#: Tiles of a thread in memory at a time, and the rows of the smallest tile.
_TILES, _LEAST_ROWS = 5, 16
#: Batches of tiles per thread, for an even load; and numbers of results added at a time.
_BATCHES, _ADDED = 12, 2**16
#: Bytes of all matrices up to which they are stored instead.
CACHE_BYTES = 256 * 2**20
#: Smallest ridge, for kernels of trace 1, at which single precision has three digits.
_SINGLE_RIDGE = 1e-4


class Threads(Engine):
    """Engine that computes tiles in threads, in double or single precision."""

    #: Array to which results of tiles are added.
    _zeros: Callable[..., Any] = staticmethod(np.zeros)
    #: Entries of columns that are computed at a time.
    entries = 2**16

    def __init__(
        self, kernels: Sequence[Kernel], X: Any, n_threads: int, cache_bytes: float
    ) -> None:
        self.kernels, self.n_samples, self.n_kernels = KernelSet(kernels), n_rows(X), len(kernels)
        self.rows = self.kernels.prepare(X)
        self._n_threads, self._tile_shape = n_threads, _tile_shape(cache_bytes, n_threads)
        self.removed_means: dict[int, Centered] = {}
        self._is_single = False

    def of(self, positions: NDArray[np.intp]) -> Self:
        made = copy(self)
        old, taken = positions.tolist(), self.removed_means
        made.kernels, made.n_kernels = self.kernels.of(old), len(old)
        made.removed_means = {new: taken[i] for new, i in enumerate(old) if i in taken}
        return made

    def single(self, active: Sequence[int]) -> Self | None:
        """Return the engine of single precision; None if it is slower or not accurate.

        It is faster for kernels of squared distances. Nearly constant kernels need all digits.
        """
        if any(i in self.removed_means for i in active):
            return None
        rows = self.rows.single({key for i in active for key in self.kernels.keys[i]})
        if rows is None:
            return None
        made = copy(self)
        made.rows, made._is_single = rows, True
        made.put = partial(np.ascontiguousarray, dtype=np.float32)
        return made

    def tiles(self, n_alive: int = 1) -> Iterator[Tile]:
        """Yield the tiles on and above the diagonal, those on it square.

        ``n_alive`` is the number of matrices of a tile in memory at a time.
        """
        height, width = self._tile_shape
        for top in range(0, self.n_samples, height):
            rows = slice(top, min(top + height, self.n_samples))
            yield rows, rows
            for left in range(rows.stop, self.n_samples, width):
                yield rows, slice(left, min(left + width, self.n_samples))

    def run(self, task: TilePass) -> FloatArray:
        return self._run(task, self.tiles(task.n_alive))

    def _run(
        self, task: TilePass, tiles: Iterable[Any], other: PreparedRows | None = None
    ) -> FloatArray:
        """Do the work on some tiles and return the sum. Each thread adds to its own array.

        ``other`` are the rows of the columns of all tiles; by default, a tile has their positions.
        """
        kernels, positions = self._wanted(task.active, task.factors)
        placed = self._placed_rows()
        compiled = None if placed.device else self._compiled(task, kernels, positions)
        if compiled is not None:
            return self._in_threads(compiled, _in_batches(tiles, self._n_threads), task.shape)
        factors = None if task.factors is None else task.factors[positions]
        removed_means = any(i in self.removed_means for i in positions)

        def find(tile: Any, X: PreparedRows, Z: PreparedRows | None, buffers: Buffers) -> Found:
            options: dict[str, Any] = {"buffers": buffers, "aligned": other is None}
            if factors is not None and not removed_means:
                total = kernels.weighted_sum(factors, X, Z, **options)
            else:
                parts = kernels.matrices(X, Z, **options)
                found: Found = ((positions[i], each) for i, each in parts)
                found = self._without_means(tile, found) if removed_means else found
                if task.factors is None:
                    yield from found
                    return
                # Subtract means first: nearly constant kernels have large factors.
                total = add_up(found, task.factors)
            if task.centered is not None:
                task.centered.subtract(tile, total, self.put)
            yield 0, total

        def run(tile: Any, place: tuple[Any, Buffers]) -> None:
            (rows, columns), (part, buffers) = tile, place
            Z = None if rows is columns else placed[columns] if other is None else other
            task.work(tile, find(tile, placed[rows], Z, buffers), part)

        return self._in_threads(run, tiles, task.shape)

    def _without_means(self, tile: Tile, found: Found) -> Found:
        """Yield the matrices of a tile, without the means of nearly constant kernels."""
        for position, matrix in found:
            off = self.removed_means.get(position)
            # A copy, because the next kernel may be the square of this matrix.
            yield position, matrix if off is None else off.subtract(tile, 1.0 * matrix, self.put)

    def _place(self, rows: PreparedRows) -> PreparedRows:
        """Return rows where tiles are computed."""
        return rows

    def _placed_rows(self) -> PreparedRows:
        return self.rows

    def _in_threads(
        self, run: Callable[[Any, Any], None], jobs: Iterable[Any], shape: tuple[int, ...]
    ) -> FloatArray:
        """Do jobs in threads, each with its own array and buffers, and return the sum of arrays.

        The sum is computed in threads, too: 16 arrays of 10,000 × 64 numbers are 80 MB.
        """
        parts = [self._zeros(shape) for _ in range(self._n_threads)]
        in_threads(run, jobs, [(part, Buffers(self._is_single)) for part in parts])
        if len(parts) == 1:
            return np.asarray(as_host(parts[0]))
        first, *others = (part.reshape(-1) for part in parts)

        def add(some: slice, _: object) -> None:
            for other in others:
                first[some] += other[some]

        if len(first):
            in_threads(add, slices(slice(0, len(first)), _ADDED), [None] * self._n_threads)
        return np.asarray(first.reshape(shape))

    # ---- compiled loops ----------------------------------------------------------------------

    def _compiled(
        self, task: TilePass, kernels: KernelSet, positions: list[int]
    ) -> Callable[[Any, Any], None] | None:
        """Return a function that does the work on batches of tiles by compiled loops, or None."""
        array: Any
        work, array = task.compiled or ("", None)
        is_slow = work == "compress" and self._is_single
        if not work or is_slow or not positions or any(i in self.removed_means for i in positions):
            return None
        factors = None if task.factors is None else task.factors[positions]
        total, order = kernels.compiled(self.rows, factors)
        if total is None or total.n_entries > _TILES * self._tile_shape[0] * self._tile_shape[1]:
            return None
        made, places = total, np.array([positions[i] for i in order], dtype=np.int64)
        if work == "compress":
            return lambda tiles, place: made.add_compressed(tiles, array, place[0], places)
        if work == "product":
            each = None if factors is not None else places
            return lambda tiles, place: made.add_products(tiles, array, place[0], each)
        assert task.centered is not None
        by = task.centered.means, task.centered.across, task.centered.roots
        return lambda tiles, _: made.write(tiles, *by, array)

    def _wanted(
        self, active: NDArray[np.intp] | None, factors: FloatArray | None
    ) -> tuple[KernelSet, list[int]]:
        """Return the active kernels, or those with a nonzero factor, and their positions."""
        active = active if factors is None else np.flatnonzero(factors)
        if active is None:
            return self.kernels, list(range(self.n_kernels))
        return self.kernels.of(active), active.tolist()

    def columns(self, at: NDArray[np.intp], factors: FloatArray, centered: Centered) -> FloatArray:
        """Return some columns of Σ f_i G_i, centred, of shape (n_columns, n_samples)."""
        out = np.empty((len(at), self.n_samples))

        def work(tile: Any, found: Found, _: Any) -> None:
            for _, total in found:
                out[:, tile[0]] = as_host(centered.weigh(tile, total, self.put)).T

        step = max(1, self.entries // len(at))
        strips = [(rows, at) for rows in slices(slice(0, self.n_samples), step)]
        task = TilePass(work, factors=factors, centered=centered)
        self._run(task, strips, self._place(self.rows[at]))
        return out


def _in_batches(tiles: Iterable[Tile], n_threads: int) -> list[NDArray[np.int64]]:
    """Return the bounds of tiles in batches, for compiled loops."""
    bounds = np.array(
        [(rows.start, rows.stop, columns.start, columns.stop) for rows, columns in tiles],
        dtype=np.int64,
    ).reshape(-1, 4)
    step = max(1, len(bounds) // (_BATCHES * n_threads))
    return [bounds[start : start + step] for start in range(0, len(bounds), step)]


class TiledBank(ExactBank):
    """Kernels on rows, without stored matrices.

    Parameters
    ----------
    kernels : sequence of Kernel
        The candidates, resolved.
    X : array-like of shape (n_samples, n_features)
        The training rows.
    n_threads : int, optional
        Number of threads; by default one per core, or one if a kernel is not ``thread_safe``.
    cache_bytes : float, default=256 MiB
        Memory limit of all tiles together, and of the stored matrices of a subset of the rows.
    **options
        ``normalization``, ``part`` and ``sample_weights``, as in `ExactBank`.

    Raises
    ------
    InvalidInputError
        If the smallest tile does not fit into memory, a kernel is not finite on some tile, or a
        kernel written by the user is not positive semidefinite.

    Notes
    -----
    ``combined`` and ``products`` cost one pass over the tiles each: for a ladder of Gaussian
    widths, one exponential and two multiplications per further kernel and entry. Memory is that of
    the result and of a few tiles per thread.
    """

    #: Rough systems are of single precision.
    tols: ClassVar[tuple[float, float]] = 0.0, 1e-3
    _engine: Threads

    def __init__(
        self,
        kernels: Sequence[Kernel],
        X: Any,
        *,
        n_threads: int | None = None,
        cache_bytes: float = CACHE_BYTES,
        **options: Any,
    ) -> None:
        self._X, self._all, self._cache_bytes = X, list(kernels), cache_bytes
        safe = all(kernel.thread_safe for kernel in kernels)
        self._n_threads = (n_threads or n_cores()) if safe else 1
        names = kernel_names(kernels)
        _tile_shape(cache_bytes, self._n_threads)  # before any work
        _check_kernels(self._all, names, draw_rows(X, CHECKED_ROWS))
        diagonals = np.array([kernel.diagonal(X) for kernel in kernels])
        super().__init__(self._make_engine(), names, diagonals, **options)

    def _make_engine(self) -> Threads:
        """Return the engine of all candidates."""
        return Threads(self._all, self._X, self._n_threads, self._cache_bytes)

    # ---- checks ------------------------------------------------------------------------------

    def _check_values(self, means: FloatArray) -> None:
        broken = np.flatnonzero(~np.isfinite(means).all(axis=1))
        if not len(broken):
            return
        kernel, where = self._all[broken[0]], "has a sum that is not finite"
        engine = Threads([kernel], self._X, 1, self._cache_bytes)
        for rows, columns in engine.tiles():  # as before: a kernel may err on some tiles only
            values = kernel(self._X[rows], None if rows == columns else self._X[columns])
            at = np.argwhere(~np.isfinite(values))
            if len(at):
                row, column = rows.start + at[0, 0], columns.start + at[0, 1]
                where = f"has {values[tuple(at[0])]} at row {row}, column {column}"
                break
        raise InvalidInputError(
            f"Kernel matrices must not contain NaN or infinity. {self.names[broken[0]]} {where}. "
            "Clean or impute the data."
        )

    def check_definite(self) -> None:
        _check_kernels(self._engine.kernels.kernels, self._kept_names, self._X)

    # ---- systems and parts -------------------------------------------------------------------

    def combined_product(
        self, weights: FloatArray, vectors: FloatArray, engine: Threads | None = None
    ) -> FloatArray:
        """Return Σ w_i K_i V in one pass, in double precision or by a `single_engine`."""
        engine = self._engine if engine is None else engine
        columns, lengths = around_one(self._centered_vectors(vectors))
        found = engine.product(columns, factors=weights * self.scales)[0]
        return self._centered_products(found.astype(np.float64) * lengths)

    def _new_system(self, weights: FloatArray, diagonal: FloatArray, tol: float) -> System:
        n, plain = self.n_samples, self._without_workspace()

        def fill(memory: FloatArray) -> FloatArray:
            half: Any = memory.view(np.float32).ravel()[: n * n].reshape(n, n)
            return plain.combined(weights, half)

        if tol > 0 and diagonal.min() >= _SINGLE_RIDGE:
            with suppress(NumericalError):  # its digits were too few
                return self._factored(fill, diagonal, tol, partial(plain.combined_product, weights))
        return super()._new_system(weights, diagonal, 0.0)

    def subset(self, rows: NDArray[np.intp]) -> Bank:
        """Return the same kernels on some of the samples, stored if that needs little memory.

        The limits are ``cache_bytes`` and the memory of two matrices of all samples.
        """
        kernels, kind = self._engine.kernels.kernels, self._kind_of_part(len(rows))
        options = self._part_options(rows)
        if kind is not None:
            options |= {"n_threads": self._n_threads, "cache_bytes": self._cache_bytes}
            return kind(kernels, self._X[rows], **options)
        with blas_threads(len(rows)):
            stack, trusted = gram_stack(kernels, self._X[rows]), [True] * len(kernels)
        return DenseBank(stack, kernel_names(kernels), trusted=trusted, **options)

    def _kind_of_part(self, n_rows: int) -> Callable[..., TiledBank] | None:
        """Return the class of the bank of a subset of the rows; None for a `DenseBank`."""
        entries = self.n_kernels * n_rows**2
        small = 8 * entries <= self._cache_bytes and entries <= 2 * self.n_samples**2
        return None if small else TiledBank


def _check_kernels(kernels: Sequence[Kernel], names: list[str], X: Any) -> None:
    """Raise an error if a kernel written by the user is not positive semidefinite on the rows."""
    mine = [i for i, kernel in enumerate(kernels) if not kernel.trusted]
    if mine:
        check_grams(gram_stack([kernels[i] for i in mine], X), [names[i] for i in mine], None)


def _tile_shape(cache_bytes: float, n_threads: int) -> tuple[int, int]:
    """Return rows and columns of the largest tiles that fit into the memory of every thread."""
    larger = larger_tiles(n_threads)
    height, width = min(larger, 2) * _ROWS, max(larger // 2, 1) * _COLUMNS
    entries = cache_bytes / (8 * _TILES * n_threads)
    while height * width > entries and max(height, width) > _LEAST_ROWS:
        if width > height:
            width = max(_LEAST_ROWS, width - width // 4)
        else:
            height = max(_LEAST_ROWS, height // 2)
    if height * width > entries:
        least = 8 * _TILES * n_threads * _LEAST_ROWS**2 / 2**20
        raise InvalidInputError(
            f"The memory of a bank must hold {_TILES} tiles of {_LEAST_ROWS} × {_LEAST_ROWS} "
            f"numbers in each of {n_threads} threads: at least {least:.2g} MiB. Got "
            f"{cache_bytes / 2**20:.2g} MiB. Give more, as in bank=Tiled(memory='256MiB')."
        )
    return height, width
