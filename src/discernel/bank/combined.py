"""The combined kernel between new rows and the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discernel.backend import FloatArray, n_rows
from discernel.bank.base import Centering
from discernel.kernels import Kernel
from discernel.kernels.evaluate import kernel_matrices

__all__ = ["CombinedKernel", "gram_stack"]

#: Bytes of one matrix between new and training rows; more rows are taken in turns.
_BLOCK_BYTES = 64 * 2**20


def gram_stack(kernels: Sequence[Kernel], X: Any) -> FloatArray:
    """Return the raw Gram matrices, of shape (n_kernels, n_samples, n_samples)."""
    stack = np.empty((len(kernels), n_rows(X), n_rows(X)))
    for position, matrix in kernel_matrices(kernels, X):
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
        cross: FloatArray | None = None
        for position, matrix in kernel_matrices(self.kernels, X, self.rows):
            term = matrix * self.coefficients[position]
            cross = term if cross is None else np.add(cross, term, out=cross)
        assert cross is not None, "a combined kernel has at least one kernel"
        return self.centering.apply(cross)

    def product(self, X: Any, vectors: FloatArray) -> FloatArray:
        """Return the centred kernel times ``vectors``, a bounded number of rows at a time."""
        step = max(1, _BLOCK_BYTES // (8 * len(vectors)))
        out = np.empty((n_rows(X), vectors.shape[1]))
        for start in range(0, len(out), step):
            out[start : start + step] = self(X[start : start + step]) @ vectors
        return out
