"""The combined kernel between new rows and the training rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from discernel.backend import Buffers, FloatArray, in_threads, n_rows
from discernel.bank.base import Centering
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel
from discernel.kernels.evaluate import KernelSet

__all__ = ["CombinedKernel", "gram_stack"]

#: Rows and entries of a tile of dense rows: 512 KiB, of which a core holds four in its cache.
_TILE_ROWS, _TILE_ENTRIES = 256, 2**16
#: Bytes of one matrix between some new rows and all training rows, of kernels that are not
#: computed in tiles; more rows are taken in turns.
_BLOCK_BYTES = 16 * 2**20
#: Entries of all kernels together, some milliseconds of work, from which on threads pay.
_THREADED_ENTRIES = 2**20

#: What is done with Σ c_i k_i between some new rows and some training rows, which may be changed;
#: a thread goes through all training rows, from the first on, with the same buffers.
Use = Callable[[slice, slice, FloatArray, Buffers], None]


def gram_stack(kernels: Sequence[Kernel], X: Any) -> FloatArray:
    """Return the raw Gram matrices, of shape (n_kernels, n_samples, n_samples)."""
    stack, evaluated = np.empty((len(kernels), n_rows(X), n_rows(X))), KernelSet(kernels)
    rows = evaluated.prepare(X) if isinstance(X, np.ndarray) and evaluated.groups else X
    for position, matrix in evaluated.matrices(rows, buffers=Buffers()):
        stack[position] = matrix
    return stack


@dataclass(frozen=True)
class CombinedKernel:
    """Σ c_i k_i between new rows and the training rows, centred as on the training set.

    Attributes
    ----------
    kernels : list of Kernel
        Those that carry weight.
    coefficients : ndarray of shape (n_kernels,)
        Their factors, normalisation included.
    rows : array of shape (n_samples, n_features) or None
        The training rows; None for precomputed kernels.
    centering : Centering
        The statistics of the training set.
    """

    kernels: list[Kernel]
    coefficients: FloatArray
    rows: Any
    centering: Centering

    def __call__(self, X: Any) -> FloatArray:
        """Return the centred kernel between the rows of X and the training rows."""
        n_samples = X.shape[1] if self.rows is None else n_rows(self.rows)
        cross = np.zeros((n_rows(X), n_samples))

        def use(rows: slice, columns: slice, matrix: FloatArray, _: Buffers) -> None:
            cross[rows, columns] += matrix

        self._each_tile(X, n_samples, use)
        self._check_finite(X, cross)
        return self.centering.apply(cross)

    def product(self, X: Any, vectors: FloatArray) -> FloatArray:
        """Return the centred kernel times ``vectors``, in memory that grows by the result only."""
        vectors, offset = self.centering.of_product(vectors)
        out = np.zeros((n_rows(X), vectors.shape[1]))

        def use(rows: slice, columns: slice, matrix: FloatArray, buffers: Buffers) -> None:
            # Without what all entries of a row share, products do not lose its digits.
            if self.centering.ignores_constants:
                first = buffers("first", (len(matrix), 1))
                if columns.start == 0:
                    first[:] = matrix[:, :1]
                matrix -= first
            out[rows] += np.matmul(matrix, vectors[columns])

        self._each_tile(X, len(vectors), use)
        self._check_finite(X, out)
        out -= offset
        return out

    # ---- tiles -------------------------------------------------------------------------------

    def _each_tile(self, X: Any, n_samples: int, use: Use) -> None:
        """Call ``use`` with Σ c_i k_i, a part of it at a time; the parts add up.

        A block of new rows is the work of one thread. Kernels made of distances or inner products
        of dense rows are computed tile by tile, others on all training rows at once.
        """
        kernels, m = KernelSet(self.kernels), n_samples
        tiled = isinstance(X, np.ndarray) and isinstance(self.rows, np.ndarray)
        training = kernels.prepare(self.rows) if tiled else self.rows
        block = max(1, _BLOCK_BYTES // (8 * m))
        height = min(_TILE_ROWS, n_rows(X)) if tiled else block
        width = max(1, _TILE_ENTRIES // height) if tiled else m

        def work(rows: slice, buffers: Buffers) -> None:
            for position in kernels.direct:
                matrix = self.kernels[position](X[rows], self.rows)
                self._check_shape(position, matrix, (rows.stop - rows.start, m))
                with _not_finite_is_found_later():
                    use(rows, slice(0, m), matrix * self.coefficients[position], buffers)
            for tile in _slices(rows, height) if kernels.groups else ():
                new = kernels.prepare(X[tile], training) if tiled else X[tile]
                for columns in _slices(slice(0, m), width):
                    found = kernels.shared_matrices(new, training[columns], buffers)
                    shape = tile.stop - tile.start, columns.stop - columns.start
                    with _not_finite_is_found_later():
                        use(tile, columns, self._total(found, shape, buffers), buffers)

        blocks = _slices(slice(0, n_rows(X)), block if kernels.direct else height)
        n_threads = self._n_threads(n_rows(X) * m * len(self.kernels))
        in_threads(work, blocks, [Buffers() for _ in range(min(n_threads, len(blocks)))])

    def _n_threads(self, entries: int) -> int:
        if entries < _THREADED_ENTRIES or not all(kernel.thread_safe for kernel in self.kernels):
            return 1
        return int(joblib.cpu_count())

    def _total(
        self, found: Iterator[tuple[int, FloatArray]], shape: tuple[int, int], buffers: Buffers
    ) -> FloatArray:
        """Return Σ c_i k_i of one tile, in a buffer."""
        total, term = buffers("total", shape), buffers("term", shape)
        out = total
        for position, matrix in found:
            self._check_shape(position, matrix, shape)
            np.multiply(matrix, self.coefficients[position], out=out)
            if out is term:
                total += term
            out = term
        return total

    # ---- checks ------------------------------------------------------------------------------

    def _check_shape(self, position: int, matrix: FloatArray, shape: tuple[int, int]) -> None:
        if matrix.shape != shape:
            raise InvalidInputError(
                f"{self.kernels[position].name} must return a matrix with one row per new row and "
                f"one column per training row, here {shape}. Got shape {matrix.shape}."
            )

    def _check_finite(self, X: Any, results: FloatArray) -> None:
        """Raise an error that names the kernel because of which results are not finite."""
        with _not_finite_is_found_later():
            if np.isfinite(results.sum()):
                return
        row = int(np.argmin(np.isfinite(results).all(axis=1)))
        for kernel in self.kernels:
            values = kernel(X[row : row + 1], self.rows)[0]
            if not np.isfinite(values).all():
                column = int(np.argmax(~np.isfinite(values)))
                raise InvalidInputError(
                    f"Kernels must not be NaN or infinite. {kernel.name} is {values[column]} "
                    f"between new row {row} and training row {column}. Clean or impute the new "
                    "rows, or correct the kernel."
                )


def _not_finite_is_found_later() -> np.errstate:
    return np.errstate(invalid="ignore", over="ignore")


def _slices(rows: slice, step: int) -> list[slice]:
    """Return the parts of a slice, ``step`` rows each but the last."""
    starts = range(rows.start, rows.stop, step)
    return [slice(start, min(start + step, rows.stop)) for start in starts]
