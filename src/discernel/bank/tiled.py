"""A bank that stores no matrix: whatever is asked for is computed tile by tile, again each time.

A tile and what is made of it stay in the cache; symmetric tiles are computed once; tiles go to
threads. Memory does not grow with the number of kernels.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from discernel.backend import FloatArray, matmul, n_rows, one_blas_thread
from discernel.bank.base import Bank, Centering, Normalization
from discernel.bank.checks import check_grams, varying_kernels
from discernel.bank.combined import gram_stack
from discernel.bank.dense import DenseBank
from discernel.bank.products import CONSTANT, centering_of_inner
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.kernels import Kernel, kernel_names
from discernel.kernels.evaluate import kernel_matrices

__all__ = ["TiledBank"]

#: Rows and columns of a tile: 1 MiB, of which a core holds two or three in its cache.
_ROWS, _COLUMNS = 256, 512
#: Bytes of all matrices together up to which a stack of them is made instead.
STACK_BYTES = 256 * 2**20
#: Rows on which kernels of the user's are checked to be kernels.
_CHECKED_ROWS = 400

Tile = tuple[slice, slice]
Part = TypeVar("Part")


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
        Threads that tiles go to; by default one a core, and one where a kernel is not
        ``thread_safe``.

    Warns
    -----
    DroppedKernelWarning
        If a kernel is constant on the training set; it is left out.

    Notes
    -----
    ``combined`` and ``products`` cost one pass over the tiles each: for a ladder of Gaussian
    widths one exponential and two multiplications a further kernel and entry. Memory is that of
    the result and of a few tiles a thread.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        X: Any,
        *,
        normalization: Normalization = "centered_trace",
        n_threads: int | None = None,
    ) -> None:
        if normalization not in get_args(Normalization):
            raise unknown_choice("normalization", normalization, list(get_args(Normalization)))
        self.normalization = normalization
        self.names = kernel_names(kernels)
        self.n_samples, self.n_candidates = n_rows(X), len(kernels)
        self._X, self._all = X, list(kernels)
        safe = all(kernel.thread_safe for kernel in kernels)
        self._n_threads = (n_threads or os.cpu_count() or 1) if safe else 1
        self._check_kernels()
        self.kept = np.arange(self.n_candidates)
        self.scales = np.ones(self.n_candidates)
        sums = self._raw_products(np.ones((self.n_samples, 1)))[:, :, 0]
        self._check_finite(sums)
        traces = np.array([kernel.diagonal(X).sum() for kernel in kernels])
        centered_traces = traces - sums.sum(axis=1) / self.n_samples
        constant = centered_traces <= CONSTANT * np.abs(traces)
        self.kept = varying_kernels(constant, self.names)
        self._centered_traces = centered_traces[self.kept]
        self._row_means = sums[self.kept] / self.n_samples
        self._grand_means = self._row_means.mean(axis=1)
        if normalization == "centered_trace":
            self.scales = 1.0 / self._centered_traces
        else:
            self.scales = self.n_samples / traces[self.kept]

    @property
    def _kernels(self) -> list[Kernel]:
        return [self._all[index] for index in self.kept]

    # ---- checks ------------------------------------------------------------------------------

    def _check_kernels(self) -> None:
        """Check on some rows that kernels of the user's are kernels."""
        mine = [i for i, kernel in enumerate(self._all) if not kernel.trusted]
        if mine:
            n = min(self.n_samples, _CHECKED_ROWS)
            rows = np.sort(np.random.default_rng(0).choice(self.n_samples, n, replace=False))
            stack = gram_stack([self._all[i] for i in mine], self._X[rows])
            check_grams(stack, [self.names[i] for i in mine], None)

    def _check_finite(self, sums: FloatArray) -> None:
        for name, kernel, sums_of_rows in zip(self.names, self._all, sums, strict=True):
            broken = np.flatnonzero(~np.isfinite(sums_of_rows))
            if len(broken):
                row = int(broken[0])
                values = kernel(self._X[row : row + 1], self._X)[0]
                column = int(np.argmax(~np.isfinite(values)))
                raise InvalidInputError(
                    f"Kernel matrices must not contain NaN or infinity. {name} has "
                    f"{values[column]} at row {row}, column {column}. Clean or impute the data."
                )

    def check_definite(self) -> None:
        mine = [kernel for kernel in self._kernels if not kernel.trusted]
        if mine:
            check_grams(gram_stack(mine, self._X), kernel_names(mine), None)

    # ---- passes ------------------------------------------------------------------------------

    def _tiles(self) -> Iterator[Tile]:
        """Yield the tiles on and above the diagonal, those on it square."""
        for top in range(0, self.n_samples, _ROWS):
            rows = slice(top, min(top + _ROWS, self.n_samples))
            yield rows, rows
            for left in range(rows.stop, self.n_samples, _COLUMNS):
                yield rows, slice(left, min(left + _COLUMNS, self.n_samples))

    def _matrices(self, tile: Tile, kernels: list[Kernel]) -> Iterator[tuple[int, FloatArray]]:
        rows, columns = tile
        other = None if rows == columns else self._X[columns]
        return kernel_matrices(kernels, self._X[rows], other)

    def _pass(self, work: Callable[[Tile, Part], None], make: Callable[[], Part]) -> list[Part]:
        """Call ``work`` for every tile, in threads, each with a part of its own; return these."""
        tiles = iter(list(self._tiles()))
        parts = [make() for _ in range(self._n_threads)]

        def run(part: Part) -> None:
            for tile in tiles:  # an iterator of a list gives each of them to one thread only
                work(tile, part)

        with one_blas_thread():
            if self._n_threads == 1:
                run(parts[0])
            else:
                with ThreadPoolExecutor(self._n_threads) as threads:
                    list(threads.map(run, parts))
        return parts

    def _raw_products(self, vectors: FloatArray) -> FloatArray:
        """Return every G_iV, neither centred nor normalised."""
        kernels = self._kernels

        def work(tile: Tile, out: FloatArray) -> None:
            rows, columns = tile
            for position, matrix in self._matrices(tile, kernels):
                out[position, rows] += matmul(matrix, vectors[columns])
                if rows != columns:
                    out[position, columns] += matmul(matrix.T, vectors[rows])

        parts = self._pass(work, lambda: np.zeros((len(kernels), *vectors.shape)))
        for part in parts[1:]:
            parts[0] += part
        return parts[0]

    # ---- what criteria ask for ---------------------------------------------------------------

    def traces(self) -> FloatArray:
        return np.asarray(self.scales * self._centered_traces)

    def products(self, vectors: FloatArray) -> FloatArray:
        out = self._raw_products(np.ascontiguousarray(vectors - vectors.mean(axis=0)))
        out -= out.mean(axis=1, keepdims=True)
        out *= self.scales[:, None, None]
        return out

    def compressed(self, basis: FloatArray) -> FloatArray:
        basis, kernels = np.ascontiguousarray(basis - basis.mean(axis=0)), self._kernels

        def work(tile: Tile, out: FloatArray) -> None:
            rows, columns = tile
            # A tile on the diagonal is its own mirror image, every other stands for two.
            left = basis[rows] if rows != columns else 0.5 * basis[rows]
            for position, matrix in self._matrices(tile, kernels):
                out[position] += matmul(left.T, matmul(matrix, basis[columns]))

        shape = len(kernels), basis.shape[1], basis.shape[1]
        half = np.sum(self._pass(work, lambda: np.zeros(shape)), axis=0)
        return np.asarray((half + half.transpose(0, 2, 1)) * self.scales[:, None, None])

    def combined(self, weights: FloatArray) -> FloatArray:
        active = np.flatnonzero(weights)
        kernels = [self._kernels[i] for i in active]
        factors = (weights * self.scales)[active]
        out = np.empty((self.n_samples, self.n_samples))
        centering = self.centering(weights)
        across = centering.row_means - centering.grand_mean

        def work(tile: Tile, _: None) -> None:
            rows, columns = tile
            total: FloatArray | None = None
            for position, matrix in self._matrices(tile, kernels):
                term = matrix * factors[position]
                total = term if total is None else np.add(total, term, out=total)
            if total is None:
                total = np.zeros((rows.stop - rows.start, columns.stop - columns.start))
            total -= centering.row_means[rows, None]
            total -= across[columns]
            out[rows, columns] = total
            if rows != columns:
                out[columns, rows] = total.T

        self._pass(work, lambda: None)
        return out

    def inner(self, matrix: FloatArray) -> FloatArray:
        kernels = self._kernels

        def work(tile: Tile, out: FloatArray) -> None:
            rows, columns = tile
            there, factor = matrix[rows, columns], 1.0 if rows == columns else 2.0
            for position, values in self._matrices(tile, kernels):
                out[position] += factor * np.einsum("ij,ij->", values, there)

        total = sum(self._pass(work, lambda: np.zeros(len(kernels))))
        centering = centering_of_inner(self._row_means, matrix)
        return np.asarray(self.scales * (total + centering))

    def inner_products(self) -> FloatArray:
        kernels = self._kernels
        across = self._row_means - self._grand_means[:, None]

        def work(tile: Tile, out: FloatArray) -> None:
            rows, columns = tile
            shape = rows.stop - rows.start, columns.stop - columns.start
            flat = np.empty((len(kernels), *shape))
            for position, values in self._matrices(tile, kernels):
                flat[position] = values - self._row_means[position, rows, None]
                flat[position] -= across[position, columns]
            flat = flat.reshape(len(kernels), -1)
            out += (1.0 if rows == columns else 2.0) * matmul(flat, flat.T)

        total = sum(self._pass(work, lambda: np.zeros((len(kernels), len(kernels)))))
        return np.asarray(total * np.outer(self.scales, self.scales))

    def subset(self, rows: NDArray[np.intp]) -> Bank:
        """Return the same kernels on some of the samples, as a stack where that is small."""
        kernels = self._kernels
        if 8 * len(kernels) * len(rows) ** 2 > STACK_BYTES:
            return TiledBank(kernels, self._X[rows], normalization=self.normalization)
        return DenseBank(
            gram_stack(kernels, self._X[rows]),
            kernel_names(kernels),
            normalization=self.normalization,
            trusted=[True] * len(kernels),
        )

    def centering(self, weights: FloatArray) -> Centering:
        coefficients = weights * self.scales
        return Centering(coefficients @ self._row_means, float(coefficients @ self._grand_means))
