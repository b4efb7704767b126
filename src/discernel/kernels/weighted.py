"""Weighted sums of kernels, Σ c_i k_i, computed in tiles."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discernel.arrays import Buffers, Device, FloatArray, in_threads, larger_tiles, n_cores, n_rows
from discernel.exceptions import InvalidInputError
from discernel.kernels.base import Kernel
from discernel.kernels.composites import Combination
from discernel.kernels.evaluate import KernelSet, is_dense
from discernel.kernels.expansion import Expansion, squared_gradient
from discernel.kernels.pairs import check_shape
from discernel.kernels.terms import PreparedRows, Term, keys_of

#: Rows and entries of a tile of dense rows: 512 KiB, so that four fit into the cache of a core.
_TILE_ROWS, _TILE_ENTRIES = 256, 2**16
#: Bytes of a block of new rows and all training rows, for kernels that are not computed in tiles.
_BLOCK_BYTES = 16 * 2**20
#: Tiles of each thread whose new rows are prepared at a time.
_PREPARED_TILES = 4
#: Entries of all kernels together, some milliseconds of work, from which threads are used.
_THREADED_ENTRIES = 2**20
#: Entries of all kernels together from which compiled loops compute tiles of the sum at once.
_COMPILED_ENTRIES = 2**20

#: Function that processes a tile of Σ c_i k_i, given new rows and training rows, and may change it.
#: A thread visits all training rows in order, with the same buffers.
Use = Callable[[slice, slice, FloatArray, Buffers], None]


@dataclass(frozen=True, eq=False)
class WeightedKernels:
    """Weighted sum of kernels, Σ c_i k_i, computed in tiles.

    Attributes
    ----------
    kernels : list of Kernel
        The kernels, resolved.
    coefficients : ndarray of shape (n_kernels,)
        The factors c_i.
    """

    kernels: list[Kernel]
    coefficients: FloatArray

    def __call__(self, X: Any, Z: Any) -> FloatArray:
        """Return the matrix between the rows of X and of Z."""
        out = np.empty((n_rows(X), n_rows(Z)))
        self.write(X, Z, out)
        return out

    def write(self, X: Any, Z: Any, out: FloatArray) -> None:
        """Write the matrix between the rows of X and Z to ``out``; raise an error if not finite."""
        keys = [key for kernel in self.kernels for key in keys_of(kernel.terms())]
        is_once = bool(keys) and all(pair.is_prepared for pair, _ in keys)  # entries are of a tile
        suspects: list[slice] = []
        in_place = is_once and out.dtype == np.float64 and out.strides[1] == out.itemsize
        if not is_once:
            out[:] = 0.0

        def use(rows: slice, columns: slice, found: FloatArray, _: Buffers) -> None:
            if not is_once:
                out[rows, columns] += found
            elif not in_place:
                out[rows, columns] = found
            if not np.isfinite(found.sum()):
                suspects.append(rows)

        self.each_tile(X, Z, out.shape[1], use, out if in_place else None)
        if suspects:
            self.check_finite(X, Z, out)

    def product(
        self, X: Any, Z: Any, vectors: FloatArray, *, sum_to_zero: bool = False
    ) -> FloatArray:
        """Return the matrix between the rows of X and Z times ``vectors``, without storing it.

        With ``sum_to_zero``, the vectors sum to 0. A constant is then subtracted from each row of
        the matrix, which does not change the product and saves digits.
        """
        out = np.zeros((n_rows(X), vectors.shape[1]))

        def use(rows: slice, columns: slice, matrix: FloatArray, buffers: Buffers) -> None:
            if sum_to_zero:
                first = buffers("first", (len(matrix), 1))
                if columns.start == 0:
                    first[:] = matrix[:, :1]
                matrix -= first
            out[rows] += np.matmul(matrix, vectors[columns])

        self.each_tile(X, Z, len(vectors), use)
        self.check_finite(X, Z, out)
        return out

    def diagonal(self, X: Any) -> FloatArray:
        """Return Σ c_i k_i(x, x) for every row of X, of shape (n_rows_X,)."""
        total = np.zeros(n_rows(X))
        for factor, kernel in zip(self.coefficients, self.kernels, strict=True):
            total += factor * kernel.diagonal(X)
        return total

    def squared_gradient(
        self, X: Any, coef: FloatArray, Z: Any, device: Device | None = None
    ) -> FloatArray:
        """Return the mean over the rows x of X of Σ_c (∂f_c/∂x_l)², of shape (n_features,).

        As `Kernel.squared_gradient` for f_c(x) = Σ_j coef_jc Σ_i c_i k_i(x, z_j), optionally on a
        device. Several kernels that share distances cost little more than one.
        """
        terms = [
            Term(float(factor) * each, atoms)
            for factor, kernel in zip(self.coefficients, self.kernels, strict=True)
            for each, atoms in kernel.terms()
        ]
        return squared_gradient(Combination(tuple(terms)), Expansion.of(X, coef, Z, device))

    # ---- tiles -------------------------------------------------------------------------------

    def each_tile(
        self, X: Any, Z: Any, n_columns: int, use: Use, out: FloatArray | None = None
    ) -> None:
        """Call ``use`` with parts of Σ c_i k_i, which sum to the whole.

        With ``out``, of double precision and contiguous rows, for kernels that are all computed in
        tiles, the parts are written there; ``use`` gets the sum of the entries of each part.

        Each block of new rows is processed by one thread. Kernels of distances or inner products
        of dense rows are computed in tiles, other kernels for all training rows at once. For
        precomputed kernels, ``n_columns`` is the number of training rows, and Z is None.
        """
        kernels, m, factors = KernelSet(self.kernels), n_columns, self.coefficients
        shared = [i for i in range(len(self.kernels)) if i not in kernels.direct]
        together = kernels.of(shared) if kernels.direct else kernels
        tiled, training = is_dense(X) and is_dense(Z), together.prepare(Z)
        block, entries = max(1, _BLOCK_BYTES // (8 * m)), n_rows(X) * m * len(self.kernels)
        in_turn = entries < _THREADED_ENTRIES or not all(k.thread_safe for k in self.kernels)
        n_threads = 1 if in_turn else n_cores()
        height = min(_TILE_ROWS, n_rows(X)) if tiled else block
        width = max(1, larger_tiles(n_threads) * _TILE_ENTRIES // height) if tiled else m

        step = block if kernels.direct else height
        is_compiled = tiled and entries >= _COMPILED_ENTRIES

        def prepared(part: slice) -> _Sums:
            new = together.prepare(X[part], training)
            return _Sums(together, factors[shared], new, training, part.start, is_compiled)

        parts = _Parts(prepared, _PREPARED_TILES * n_threads * step, n_rows(X))

        def work(rows: slice, buffers: Buffers) -> None:
            for position in kernels.direct:
                kernel = self.kernels[position]
                matrix = check_shape(kernel, kernel(X[rows], Z), (rows.stop - rows.start, m))
                with _ignore_not_finite():
                    use(rows, slice(0, m), matrix * factors[position], buffers)
            for tile in slices(rows, height) if shared else ():
                sums = parts.of(tile.start)
                # Compiled loops have tiles of their own: threads wait less for the interpreter.
                is_whole = out is not None and sums.is_compiled
                for columns in slices(slice(0, m), m if is_whole else width):
                    with _ignore_not_finite():
                        use(tile, columns, sums(tile, columns, buffers, out), buffers)

        blocks = slices(slice(0, n_rows(X)), step)
        in_threads(work, blocks, [Buffers() for _ in range(min(n_threads, len(blocks)))])

    def check_finite(self, X: Any, Z: Any, results: FloatArray) -> None:
        """Raise an error that names a kernel with NaN or infinite values.

        ``results``, of shape (n_rows_X, n), are not finite in the rows of such values.
        """
        with _ignore_not_finite():
            if np.isfinite(results.sum()):
                return
        row = int(np.argmin(np.isfinite(results).all(axis=1)))
        for kernel in self.kernels:
            with _ignore_not_finite():
                values = kernel(X[row : row + 1], Z)[0]
            if not np.isfinite(values).all():
                column = int(np.argmax(~np.isfinite(values)))
                raise InvalidInputError(
                    f"Kernels must not be NaN or infinite. {kernel.name} is {values[column]} "
                    f"between new row {row} and training row {column}. Clean or impute the new "
                    "rows, or correct the kernel."
                )


class _Parts:
    """Parts of many rows, each prepared once, by the first thread that needs it.

    Were every tile prepared by itself, threads would wait for each other at each short operation.
    """

    def __init__(self, prepare: Callable[[slice], _Sums], step: int, n_rows: int) -> None:
        self._prepare, self._step, self._n_rows = prepare, step, n_rows
        self._lock, self._known = threading.Lock(), dict[int, _Sums]()

    def of(self, row: int) -> _Sums:
        """Return the part of a row. The last two are kept, as rows are asked for in their order."""
        number = row // self._step
        with self._lock:
            if number not in self._known:
                self._known = {key: self._known[key] for key in sorted(self._known)[-1:]}
                start = number * self._step
                part = slice(start, min(start + self._step, self._n_rows))
                self._known[number] = self._prepare(part)
            return self._known[number]


class _Sums:
    """Σ c_i k_i between some prepared rows, from a position on, and others: tile by tile."""

    def __init__(
        self,
        kernels: KernelSet,
        factors: FloatArray,
        rows: PreparedRows,
        others: PreparedRows,
        start: int,
        is_compiled: bool,
    ) -> None:
        self._known, self._kernels, self._factors = (rows, others), kernels, factors
        self._start = start
        self._compiled = kernels.compiled(rows, factors, others)[0] if is_compiled else None

    @property
    def is_compiled(self) -> bool:
        """Whether compiled loops make the tiles."""
        return self._compiled is not None

    def __call__(
        self, tile: slice, columns: slice, buffers: Buffers, out: FloatArray | None = None
    ) -> FloatArray:
        """Return a tile in a buffer; or write it to its place in ``out``, and return its sum."""
        own = slice(tile.start - self._start, tile.stop - self._start)
        place = None if out is None else out[tile, columns]
        if self._compiled is not None:
            if place is not None:
                return self._compiled.write_between(own, columns, place)
            place = buffers("total", (tile.stop - tile.start, columns.stop - columns.start))
            self._compiled.write_between(own, columns, place)
            return place
        rows, others = self._known
        found = self._kernels.weighted_sum(self._factors, rows[own], others[columns], buffers)
        if place is None:
            return np.asarray(found)
        place[:] = found
        return np.asarray(found.sum())


def _ignore_not_finite() -> np.errstate:
    """Ignore overflow and NaN in NumPy; `check_finite` reports them."""
    return np.errstate(invalid="ignore", over="ignore")


def slices(rows: slice, step: int) -> list[slice]:
    """Split a slice into parts of ``step`` rows; the last part may be shorter."""
    starts = range(rows.start, rows.stop, step)
    return [slice(start, min(start + step, rows.stop)) for start in starts]
