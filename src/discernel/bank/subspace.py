"""What a subspace sees of the kernels."""

from __future__ import annotations

import numpy as np

from discernel.arrays import FloatArray
from discernel.bank.base import Matrices

__all__ = ["Subspace"]


class Subspace(Matrices):
    """The matrices SᵀK_iS of an orthonormal basis S, small and stored.

    Parameters
    ----------
    matrices : ndarray of shape (n_kernels, n_columns, n_columns)
        From `Matrices.compressed`.
    rounding : ndarray of shape (n_kernels,)
        That of the matrices they were made of.
    """

    def __init__(self, matrices: FloatArray, rounding: FloatArray) -> None:
        self.rounding = rounding
        self._matrices = 0.5 * (matrices + matrices.transpose(0, 2, 1))
        self.n_samples = matrices.shape[1]

    @property
    def n_kernels(self) -> int:
        return len(self._matrices)

    def products(self, vectors: FloatArray) -> FloatArray:
        return np.asarray(self._matrices @ vectors)

    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:
        n = self.n_samples
        flat = None if out is None else out.ravel()
        return np.dot(weights, self._matrices.reshape(-1, n * n), out=flat).reshape(n, n)

    def compressed(self, basis: FloatArray) -> FloatArray:
        return np.asarray(basis.T @ self._matrices @ basis)
