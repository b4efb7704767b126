"""A bank that stores no matrix: whatever is asked for is computed tile by tile, again each time.

A tile and what is made of it stay in the cache; symmetric tiles are computed once; tiles go to
threads. Memory does not grow with the number of kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Buffers, FloatArray, in_threads, larger_tiles, n_rows
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.base import Bank, Centering, Normalization
from discernel.bank.checks import check_grams
from discernel.bank.combined import gram_stack
from discernel.bank.dense import DenseBank
from discernel.bank.normalize import check_normalization, kernel_scales, varying_kernels
from discernel.bank.products import (
    CANCELLING,
    centering_of_inner,
    grand_means,
    rounding_errors,
    weighted_sums,
)
from discernel.bank.system import CholeskySystem, System
from discernel.exceptions import InvalidInputError, NumericalError
from discernel.kernels import Kernel, kernel_names
from discernel.kernels.evaluate import KernelSet, can_prepare

__all__ = ["TiledBank"]

#: Rows and columns of a tile: 1 MiB, of which a core holds two or three in its cache.
_ROWS, _COLUMNS = 256, 512
#: Tiles that a thread holds at a time, and the rows of the smallest.
_TILES, _LEAST_ROWS = 5, 16
#: Bytes of all matrices together up to which a stack of them is made instead.
CACHE_BYTES = 256 * 2**20
#: Rows on which kernels of the user's are checked to be kernels.
_CHECKED_ROWS = 400
#: The least ridge, in units of kernels of trace 1, at which single precision has three digits left.
_SINGLE_RIDGE = 1e-4

Tile = tuple[slice, slice]
Found = Iterator[tuple[int, FloatArray]]
Part = TypeVar("Part")
Make = Callable[[], Part]


class TiledBank(Bank):
    """Kernels on rows, never stored.

    Parameters
    ----------
    kernels : sequence of Kernel
        The candidates, resolved.
    X : array-like of shape (n_samples, n_features)
        The training rows.
    normalization : {"centered_trace", "trace"}, default="centered_trace"
        What is made equal for all kernels.
    n_threads : int, optional
        Threads that tiles go to; by default one per core, and one where a kernel is not
        ``thread_safe``.
    cache_bytes : float, default=256 MiB
        What all tiles together, or the matrices of a small part, may take.
    part : bool, default=False
        Whether the rows are a part of the training set, on which a kernel may be constant.
    sample_weights : SampleWeights, optional
        How much rows count; by default all the same.

    Raises
    ------
    InvalidInputError
        If there is no room for the smallest tile, a kernel is not finite on some tile, or a kernel
        of the user's is none.

    Warns
    -----
    DroppedKernelWarning
        If a kernel is constant on the training set; it is left out.

    Notes
    -----
    ``combined`` and ``products`` cost one pass over the tiles each: for a ladder of Gaussian
    widths one exponential and two multiplications per further kernel and entry. Memory is that of
    the result and of a few tiles a thread.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        X: Any,
        *,
        normalization: Normalization = "centered_trace",
        n_threads: int | None = None,
        cache_bytes: float = CACHE_BYTES,
        part: bool = False,
        sample_weights: SampleWeights | None = None,
    ) -> None:
        self.normalization = check_normalization(normalization)
        self.sample_weights = sample_weights
        self.names = kernel_names(kernels)
        self.n_samples, self.n_candidates = n_rows(X), len(kernels)
        self._X, self._all = X, list(kernels)
        safe = all(kernel.thread_safe for kernel in kernels)
        self._n_threads = (n_threads or int(joblib.cpu_count())) if safe else 1
        self._cache_bytes = cache_bytes
        self._tile_shape = _tile_shape(cache_bytes, self._n_threads)
        self._check_kernels()
        self._kernels = KernelSet(kernels)
        self._rows = self._kernels.prepare(X) if can_prepare(X) else X
        self._taken_off: dict[int, FloatArray] = {}
        means = self._means_of_rows()
        self._check_finite(means)
        diagonals = np.array([kernel.diagonal(X) for kernel in kernels])
        traces = weighted_sums(diagonals, sample_weights)
        centered_traces = traces - weighted_sums(means, sample_weights)
        self.kept = varying_kernels(traces, centered_traces, self.names, part=part)
        self._kernels = KernelSet([kernels[index] for index in self.kept])
        self._row_means = means[self.kept]
        self._centered_traces, traces = centered_traces[self.kept], traces[self.kept]
        self._center_cancelling(traces, diagonals[self.kept])
        self.scales = kernel_scales(normalization, self.total, traces, self._centered_traces)
        self.rounding = self.scales * rounding_errors(traces, self._centered_traces)

    def _center_cancelling(self, traces: FloatArray, diagonals: FloatArray) -> None:
        """Have the means of rows and columns taken off the tiles of nearly constant kernels.

        What is wrong with the computed means is found by another pass, and goes with the rest.
        """
        self._means = self._row_means.copy()  # of what tiles are then, not of the kernels
        cancelling = np.flatnonzero(traces > CANCELLING * self._centered_traces)
        self._taken_off = {int(i): self._row_means[i].copy() for i in cancelling}
        if not self._taken_off:
            return
        self._means[cancelling] = self._means_of_rows(cancelling)[cancelling]
        for i, means in self._taken_off.items():
            left = diagonals[i] - means - (means - self._mean(means))
            sums = weighted_sums(np.array([left, self._means[i]]), self.sample_weights)
            self._centered_traces[i] = float(sums[0] - sums[1])
            self._row_means[i] = means + self._means[i]

    def _means_of_rows(self, active: NDArray[np.intp] | None = None) -> FloatArray:
        if self.sample_weights is not None:
            return self._raw_products(self.sample_weights.shares[:, None], active)[:, :, 0]
        return self._raw_products(np.ones((self.n_samples, 1)), active)[:, :, 0] / self.n_samples

    def _mean(self, row_means: FloatArray) -> float:
        """Return the mean of numbers that belong to rows."""
        weights = self.sample_weights
        return float(row_means.mean() if weights is None else row_means @ weights.shares)

    def _weigh(self, tile: Tile, values: FloatArray) -> None:
        """Multiply a tile by the roots of the weights of its rows and columns."""
        if self.sample_weights is not None:
            rows, columns = tile
            values *= self.sample_weights.roots[rows, None]
            values *= self.sample_weights.roots[columns]

    # ---- checks ------------------------------------------------------------------------------

    def _check_kernels(self) -> None:
        """Check on some rows that kernels of the user's are kernels."""
        mine = [i for i, kernel in enumerate(self._all) if not kernel.trusted]
        if mine:
            n = min(self.n_samples, _CHECKED_ROWS)
            rows = np.sort(np.random.default_rng(0).choice(self.n_samples, n, replace=False))
            stack = gram_stack([self._all[i] for i in mine], self._X[rows])
            check_grams(stack, [self.names[i] for i in mine], None)

    def _check_finite(self, means: FloatArray) -> None:
        broken = np.flatnonzero(~np.isfinite(means).all(axis=1))
        if not len(broken):
            return
        kernel, where = self._all[broken[0]], "has a sum that is not finite"
        for rows, columns in self._tiles():  # as before: a kernel may err on some tiles only
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
        mine = [kernel for kernel in self._kernels.kernels if not kernel.trusted]
        if mine:
            check_grams(gram_stack(mine, self._X), kernel_names(mine), None)

    # ---- passes ------------------------------------------------------------------------------

    def _tiles(self) -> Iterator[Tile]:
        """Yield the tiles on and above the diagonal, those on it square."""
        height, width = self._tile_shape
        for top in range(0, self.n_samples, height):
            rows = slice(top, min(top + height, self.n_samples))
            yield rows, rows
            for left in range(rows.stop, self.n_samples, width):
                yield rows, slice(left, min(left + width, self.n_samples))

    def _pass(
        self,
        work: Callable[[Tile, Found, Part], None],
        make: Make[Part],
        active: NDArray[np.intp] | None = None,
        single: Any = None,
    ) -> list[Part]:
        """Call ``work`` with every tile's matrices, in threads, each with a part of its own.

        Matrices, of all kernels or the active ones, come one after another in the same memory;
        of single precision where such rows are given. Products within ``work`` are NumPy's, which
        let the other threads run; those of `backend.matmul` do not.
        """
        kernels, positions = self._kernels, np.arange(len(self._kernels.kernels))
        if active is not None:
            kernels, positions = kernels.of(active), active

        def run(tile: Tile, place: tuple[Part, Buffers]) -> None:
            (rows, columns), (part, buffers) = tile, place
            other = None if rows == columns else prepared[columns]
            found = kernels.matrices(prepared[rows], other, buffers)
            found = ((int(positions[i]), matrix) for i, matrix in found)
            if self._taken_off:
                found = self._less_means(tile, found, buffers)
            work(tile, found, part)

        prepared, parts = self._rows, [make() for _ in range(self._n_threads)]
        if single is not None:
            prepared = single
        places = [(part, Buffers(single is not None)) for part in parts]
        in_threads(run, self._tiles(), places)
        return parts

    def _less_means(self, tile: Tile, matrices: Found, buffers: Buffers) -> Found:
        """Yield the matrices of a tile, nearly constant ones less their means."""
        rows, columns = tile
        for position, matrix in matrices:
            means = self._taken_off.get(position)
            if means is not None:  # in other memory: the next kernel may be its square
                matrix = np.subtract(matrix, means[rows, None], out=buffers("less", matrix.shape))
                matrix -= means[columns] - self._mean(means)
            yield position, matrix

    def _raw_products(
        self, vectors: FloatArray, active: NDArray[np.intp] | None = None
    ) -> FloatArray:
        """Return every G_iV, neither centred nor normalised; 0 for kernels that are not active."""

        def work(tile: Tile, matrices: Found, out: FloatArray) -> None:
            rows, columns = tile
            for position, matrix in matrices:
                out[position, rows] += np.matmul(matrix, vectors[columns])
                if rows != columns:
                    out[position, columns] += np.matmul(matrix.T, vectors[rows])

        shape = len(self._kernels.kernels), *vectors.shape
        return _added(self._pass(work, lambda: np.zeros(shape), active))

    # ---- what criteria ask for ---------------------------------------------------------------

    def traces(self) -> FloatArray:
        return np.asarray(self.scales * self._centered_traces)

    def products(self, vectors: FloatArray) -> FloatArray:
        raw = self._raw_products(np.ascontiguousarray(self._centered_vectors(vectors)))
        return self._centered_products(raw)

    def compressed(self, basis: FloatArray) -> FloatArray:
        basis = np.ascontiguousarray(self._centered_vectors(basis))

        def work(tile: Tile, matrices: Found, out: FloatArray) -> None:
            rows, columns = tile
            # A tile on the diagonal is its own mirror image, every other stands for two.
            left = basis[rows].T if rows != columns else 0.5 * basis[rows].T
            for position, matrix in matrices:
                out[position] += np.matmul(left, np.matmul(matrix, basis[columns]))

        shape = self.n_kernels, basis.shape[1], basis.shape[1]
        half = _added(self._pass(work, lambda: np.zeros(shape)))
        return np.asarray((half + half.transpose(0, 2, 1)) * self.scales[:, None, None])

    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:
        factors = weights * self.scales
        out = np.empty((self.n_samples, self.n_samples)) if out is None else out
        means = factors @ self._means
        across = means - self._mean(means)

        def work(tile: Tile, matrices: Found, buffers: Buffers) -> None:
            rows, columns = tile
            shape = rows.stop - rows.start, columns.stop - columns.start
            total, term = buffers("total", shape), buffers("term", shape)
            np.add.outer(-means[rows], -across[columns], out=total)
            for position, matrix in matrices:
                total += np.multiply(matrix, factors[position], out=term)
            self._weigh(tile, total)
            out[rows, columns] = total
            if rows != columns:
                out[columns, rows] = total.T

        self._pass(work, Buffers, np.flatnonzero(weights))
        return out

    def rough_system(self, weights: FloatArray, ridge: float) -> System:
        if ridge < _SINGLE_RIDGE:
            return self.system(weights, ridge)
        n, memory = self.n_samples, self.workspace.take(self.n_samples)
        half = memory.view(np.float32).ravel()[: n * n].reshape(n, n)
        try:
            plain = self._without_workspace()
            rough = CholeskySystem(lambda: plain.combined(weights, half), ridge)  # type: ignore[arg-type]
        except NumericalError:
            self.workspace.spare.append(memory)
            return self.system(weights, ridge)
        self.workspace.give_back_with(rough, memory)
        return rough

    def inner(self, matrix: FloatArray) -> FloatArray:
        if self.sample_weights is not None:
            matrix = self.sample_weights.scale_both(matrix.copy())

        def work(tile: Tile, matrices: Found, out: FloatArray) -> None:
            rows, columns = tile
            there, factor = matrix[rows, columns], 1.0 if rows == columns else 2.0
            for position, values in matrices:
                out[position] += factor * np.einsum("ij,ij->", values, there)

        total = _added(self._pass(work, lambda: np.zeros(self.n_kernels)))
        centering = centering_of_inner(self._means, matrix.sum(axis=1), self.sample_weights)
        return np.asarray(self.scales * (total + centering))

    def inner_products(self) -> FloatArray:
        p = self.n_kernels
        across = self._means - grand_means(self._means, self.sample_weights)[:, None]

        def work(tile: Tile, matrices: Found, out: FloatArray) -> None:
            rows, columns = tile
            flat = np.empty((p, rows.stop - rows.start, columns.stop - columns.start))
            for position, values in matrices:
                np.subtract(values, self._means[position, rows, None], out=flat[position])
                flat[position] -= across[position, columns]
                self._weigh(tile, flat[position])
            flat = flat.reshape(p, -1)
            out += (1.0 if rows == columns else 2.0) * np.matmul(flat, flat.T)

        total = _added(self._pass(work, lambda: np.zeros((p, p))))
        return np.asarray(total * np.outer(self.scales, self.scales))

    def subset(self, rows: NDArray[np.intp]) -> Bank:
        """Return the same kernels on some of the samples, as a stack where that is small.

        Small beside the two matrices of all samples that are needed anyway, too.
        """
        kernels = self._kernels.kernels
        entries = len(kernels) * len(rows) ** 2
        if 8 * entries > self._cache_bytes or entries > 2 * self.n_samples**2:
            return self._kind_of_part(len(rows))(
                kernels,
                self._X[rows],
                normalization=self.normalization,
                n_threads=self._n_threads,
                cache_bytes=self._cache_bytes,
                part=True,
                sample_weights=self._weights_of(rows),
            )
        return DenseBank(
            gram_stack(kernels, self._X[rows]),
            kernel_names(kernels),
            normalization=self.normalization,
            trusted=[True] * len(kernels),
            part=True,
            sample_weights=self._weights_of(rows),
        )

    def _kind_of_part(self, n_rows: int) -> type[TiledBank]:
        """Return what the bank of some of the rows is, where it stores nothing."""
        return TiledBank

    def select(self, positions: NDArray[np.intp]) -> TiledBank:
        part = self._shallow_selection(positions)
        part._kernels = self._kernels.of(positions)
        part._centered_traces = self._centered_traces[positions]
        part._row_means, part._means = self._row_means[positions], self._means[positions]
        part._taken_off = {
            new: self._taken_off[old]
            for new, old in enumerate(positions.tolist())
            if old in self._taken_off
        }
        return part

    def centering(self, weights: FloatArray) -> Centering:
        return self._centering((weights * self.scales) @ self._row_means)


def _tile_shape(cache_bytes: float, n_threads: int) -> tuple[int, int]:
    """Return rows and columns of the largest tiles that there is room for, in every thread."""
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
            f"cache_size must have room for {_TILES} tiles of {_LEAST_ROWS} × {_LEAST_ROWS} "
            f"numbers in each of {n_threads} threads: at least {least:.2g} MiB. Got "
            f"{cache_bytes / 2**20:.2g} MiB."
        )
    return height, width


def _added(parts: list[FloatArray]) -> FloatArray:
    """Return the sum of what the threads found, in the memory of the first."""
    for part in parts[1:]:
        parts[0] += part
    return parts[0]
