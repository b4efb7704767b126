"""What a feature map is: from rows to φ(x) with k(x, z) ≈ φ(x)·φ(z)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, n_rows, rows_for_threads
from discernel.kernels.weighted import slices

__all__ = ["FeatureMap"]

#: Bytes of features that are made at a time, per thread.
_THREAD_BYTES = 8 * 2**20


class FeatureMap(ABC):
    """Rows to features: k(x, z) ≈ φ(x)·φ(z), or exactly.

    A map knows no rows but its landmarks, so that it can be sent to where the rows are.
    """

    @property
    @abstractmethod
    def rank(self) -> int:
        """The number of features."""

    def __call__(self, X: Any) -> FloatArray:
        """Return the features of rows, of shape (n_rows, rank).

        Some rows at a time: memory is that of the result.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)
            Rows.
        """
        out = np.empty((n_rows(X), self.rank))
        for rows in slices(slice(0, len(out)), rows_for_threads(8 * self.rank, _THREAD_BYTES)):
            self.write(X[rows], out[rows])
        return out

    def product(self, X: Any, vectors: FloatArray) -> FloatArray:
        """Return the features of rows times ``vectors``, in memory that grows by the result only.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)
            Rows.
        vectors : ndarray of shape (rank, n)
            What their features are multiplied by.
        """
        out = np.empty((n_rows(X), vectors.shape[1]))
        for rows in slices(slice(0, len(out)), rows_for_threads(8 * self.rank, _THREAD_BYTES)):
            out[rows] = np.matmul(self(X[rows]), vectors)
        return out

    @property
    def halved(self) -> NDArray[np.intp]:
        """The features of the same map at half of its rank; all of one that is exact."""
        return np.arange((self.rank + 1) // 2)

    @abstractmethod
    def write(self, X: Any, out: FloatArray) -> None:
        """Write the features of rows to ``out``, of shape (n_rows, rank)."""
