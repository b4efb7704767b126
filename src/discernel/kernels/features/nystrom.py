"""Nyström features: what a kernel is on the span of some rows, the landmarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import FloatArray, n_rows
from discernel.exceptions import InvalidInputError
from discernel.kernels.base import Kernel
from discernel.kernels.features.base import FeatureMap
from discernel.kernels.weighted import WeightedKernels

__all__ = ["NystromMap"]

#: Landmarks that all others represent up to this share of the largest k(z, z) are left out. What
#: they add is below it, and the rounding of k(x, z), 1e-16, is divided by its root.
_LEAST = 1e-12


class NystromMap(FeatureMap):
    """φ(x) = L⁻¹k(Z, x) of k = Σ c_i k_i and landmarks Z, with k(Z, Z) = LLᵀ.

    φ(x)·φ(z) is k where x or z is a landmark. Elsewhere k(x, z) − φ(x)·φ(z) is positive
    semidefinite, and its diagonal is what `remainder` returns.

    Parameters
    ----------
    kernels : sequence of Kernel
        Resolved and positive semidefinite.
    coefficients : array-like of shape (n_kernels,)
        Their factors, at least 0.
    landmarks : array-like or CSR of shape (n_landmarks, n_features)
        Rows. Those that the others represent, equal rows among them, are left out.

    Attributes
    ----------
    landmarks : array or CSR of shape (rank, n_features)
        Z, in the order of the pivots.
    pivots : ndarray of shape (rank,)
        Their positions among those that were given.
    lower : ndarray of shape (rank, rank)
        L.
    """

    def __init__(self, kernels: Sequence[Kernel], coefficients: Any, landmarks: Any) -> None:
        factors = np.array(coefficients, dtype=np.float64)
        if factors.shape != (len(kernels),) or not (np.isfinite(factors) & (factors >= 0)).all():
            raise InvalidInputError(
                f"There must be one finite coefficient of at least 0 per kernel, here "
                f"{len(kernels)}. Got {coefficients!r}."
            )
        active = np.flatnonzero(factors)
        self.kernel = WeightedKernels([kernels[int(i)] for i in active], factors[active])
        gram = self.kernel(landmarks, landmarks)
        gram += gram.T
        gram *= 0.5
        least = _LEAST * max(float(gram.diagonal().max()), 0.0)
        lower, order, rank, _ = scipy.linalg.lapack.dpstrf(gram, lower=1, tol=least)
        if rank == 0 or not gram.any():
            raise InvalidInputError(
                "The kernel must be above 0 between a landmark and itself, but it is 0 for all "
                f"{n_rows(landmarks)} landmarks. Draw others, or another kernel."
            )
        self.pivots: NDArray[np.intp] = np.asarray(order[:rank] - 1, dtype=np.intp)
        self.landmarks = landmarks[self.pivots]
        self.lower: FloatArray = np.asfortranarray(np.tril(lower[:rank, :rank]))

    @property
    def rank(self) -> int:
        return len(self.lower)

    def write(self, X: Any, out: FloatArray) -> None:
        self.kernel.write(X, self.landmarks, out)
        solved = scipy.linalg.blas.dtrsm(1.0, self.lower, out.T, lower=1, overwrite_b=1)
        if not np.shares_memory(solved, out):  # the memory of ``out`` was in another order
            out[:] = solved.T

    def product(self, X: Any, vectors: FloatArray) -> FloatArray:
        return self.kernel.product(X, self.landmarks, self.expansion(vectors))

    def remainder(self, X: Any, features: FloatArray) -> FloatArray:
        """Return k(x, x) − ‖φ(x)‖² of rows, at least 0: what the features leave.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)
            Rows.
        features : ndarray of shape (n_rows, rank)
            Their features.
        """
        left = self.kernel.diagonal(X) - np.einsum("ij,ij->i", features, features)
        return np.asarray(np.maximum(left, 0.0))

    def expansion(self, beta: FloatArray) -> FloatArray:
        """Return what a linear function of features is as a sum of kernels at landmarks.

        φ(x)·β = Σ_j k(x, z_j) γ_j with γ = L⁻ᵀβ.

        Parameters
        ----------
        beta : ndarray of shape (rank, n)
            β.

        Returns
        -------
        ndarray of shape (rank, n)
            γ, one row per landmark.
        """
        return np.asarray(scipy.linalg.solve_triangular(self.lower, beta, lower=True, trans="T"))
