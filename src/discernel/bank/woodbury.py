"""Systems of low rank: diag(ρ) + ΦᵀΦ, solved in the space of the features.

With Ψ = Φ diag(ρ)^(−1/2), (diag(ρ) + ΦᵀΦ)⁻¹ = diag(ρ)^(−1/2) (I − Ψᵀ(I + ΨΨᵀ)⁻¹Ψ) diag(ρ)^(−1/2).
Nothing has n_samples² entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from discernel.arrays import Cholesky, FloatArray, matmul, self_product
from discernel.bank.system import Inverse, System
from discernel.kernels.weighted import slices

#: Samples that are taken at a time.
_BLOCK = 1024


def feature_gram(factor: FloatArray, by: FloatArray | None = None) -> FloatArray:
    """Return Φ diag(d) Φᵀ, of shape (rank, rank), some samples at a time; d is 1 by default."""
    total = np.zeros((len(factor), len(factor)))
    for block in slices(slice(0, factor.shape[1]), max(_BLOCK, len(factor))):
        part = factor[:, block] if by is None else factor[:, block] * np.sqrt(by[block])
        total += self_product(np.asfortranarray(part))
    return total


class WoodburySystem(System):
    """N = diag(ρ) + ΦᵀSΦ, with one factorisation of the size of the rank.

    Parameters
    ----------
    factor : ndarray of shape (rank, n_samples)
        Φ. It is kept as it is: no copy is made.
    ridge : float or ndarray of shape (n_samples,)
        ρ, above 0.
    weights : ndarray of shape (rank,), optional
        The diagonal of S, at least 0; 1 by default.
    gram : ndarray of shape (rank, rank), optional
        ΦΦᵀ, where it is known: it serves all weights and all ridges of one number.
    """

    def __init__(
        self,
        factor: FloatArray,
        ridge: float | FloatArray,
        weights: FloatArray | None = None,
        gram: FloatArray | None = None,
    ) -> None:
        n = factor.shape[1]
        if not len(factor):  # one feature that is 0: not every LAPACK solves systems of no rows
            factor = np.zeros((1, n))
        self._factor, self._ridge = factor, np.broadcast_to(np.asarray(ridge, float), (n,))
        self._roots = np.ones(len(factor)) if weights is None else np.sqrt(weights)
        if (self._ridge == self._ridge[0]).all():
            gram = feature_gram(factor) if gram is None else gram
            small = gram * (self._roots * self._roots[:, None] / self._ridge[0])
        else:
            small = feature_gram(factor, 1.0 / self._ridge)
            small *= self._roots * self._roots[:, None]
        small[np.diag_indices_from(small)] += 1.0
        self._small = Cholesky(small)

    @property
    def rank(self) -> int:
        """The number of features."""
        return len(self._factor)

    def solve(self, right: FloatArray) -> FloatArray:
        if right.ndim == 1:
            return self.solve(right[:, None])[:, 0]
        right = np.ascontiguousarray(right)
        found = self.solve_once(right)
        # Once more with what is left: a small ridge costs digits, which this brings back.
        left = right - self._ridge[:, None] * found
        left -= self._times(self._features(found))
        return found + self.solve_once(left)

    def solve_once(self, right: FloatArray) -> FloatArray:
        """Return `solve` of a matrix without refinement, as a preconditioner asks for."""
        scaled = right / self._ridge[:, None]
        inner = self._solve_small(self._features(scaled))
        return np.asarray(scaled - self._times(inner) / self._ridge[:, None])

    def _solve_small(self, features: FloatArray) -> FloatArray:
        """Return (I + ΨΨᵀ)⁻¹ times features."""
        return self._small.solve(features)

    def _features(self, vectors: FloatArray) -> FloatArray:
        """Return S^(1/2)ΦV."""
        return np.asarray(self._roots[:, None] * matmul(self._factor, vectors))

    def _times(self, vectors: FloatArray) -> FloatArray:
        """Return ΦᵀS^(1/2)V."""
        return matmul(self._factor.T, np.ascontiguousarray(self._roots[:, None] * vectors))

    def halves(self, block: slice) -> FloatArray:
        """Return Q = L⁻¹Ψ of some samples, with which N⁻¹ = ρ^(−1/2) (I − QᵀQ) ρ^(−1/2)."""
        part = self._factor[:, block] * self._roots[:, None]
        part /= np.sqrt(self._ridge[block])
        return self._small.half_solve(np.asfortranarray(part))

    @cached_property
    def _diagonal(self) -> FloatArray:
        out = np.empty(len(self._ridge))
        for block in slices(slice(0, len(out)), _BLOCK):
            size, taken = self._lengths(block)
            least = 1.0 / (1.0 + size / self._ridge[block])  # N⁻¹_ii ≥ 1/N_ii
            out[block] = np.maximum(1.0 - taken, least)
        out /= self._ridge
        return out

    def _lengths(self, block: slice) -> tuple[FloatArray, FloatArray]:
        """Return the squared lengths of S^(1/2)Φ and of Q of some samples."""
        part, half = self._factor[:, block] * self._roots[:, None], self.halves(block)
        return np.einsum("ij,ij->j", part, part), np.einsum("ij,ij->j", half, half)

    def inverse_diagonal(self) -> FloatArray:
        return self._diagonal


class SpectralSystem(WoodburySystem):
    """N = ρI + VVᵀ with orthogonal columns V: a new ρ costs no factorisation at all.

    ``rows`` is V, which is kept without a copy, ``eigenvalues`` the squared lengths of its columns.
    """

    def __init__(self, rows: FloatArray, eigenvalues: FloatArray, ridge: float) -> None:
        self._factor, self._ridge = rows.T, np.broadcast_to(float(ridge), (len(rows),))
        self._roots = np.ones(rows.shape[1])
        self._larger = 1.0 + eigenvalues / ridge  # the eigenvalues of I + ΨΨᵀ

    def _solve_small(self, features: FloatArray) -> FloatArray:
        return np.asarray(features / self._larger[:, None])

    def _lengths(self, block: slice) -> tuple[FloatArray, FloatArray]:
        squares = np.square(self._factor.T[block])
        return squares.sum(axis=1), squares @ (1.0 / (self._ridge[0] * self._larger))


class WoodburyInverse(Inverse):
    """What `Inverse` answers, from a system of low rank and the Φ_i of K_i = Φ_iᵀΦ_i."""

    def __init__(
        self, system: WoodburySystem, ridge: FloatArray, factors: Sequence[FloatArray]
    ) -> None:
        self._system, self._ridge, self._kernels = system, ridge, factors
        self.diagonal = system.inverse_diagonal()

    def solve(self, right: FloatArray) -> FloatArray:
        return self._system.solve(right)

    def inner(
        self, diagonal: FloatArray, left: FloatArray, right: FloatArray, scale: float
    ) -> tuple[FloatArray, float]:
        by_kernel = np.empty(len(self._kernels))
        for position, factor in enumerate(self._kernels):
            # ⟨Φᵀ Φ, N⁻¹ diag(d) N⁻¹⟩ = ‖diag(d)^(1/2) N⁻¹ Φᵀ‖²
            solved = self._system.solve(factor.T)
            crossed = np.sum(matmul(factor, left) * matmul(factor, right))
            by_kernel[position] = diagonal @ np.einsum("ij,ij->i", solved, solved) - crossed
        trace = diagonal @ self._squared_diagonal() - np.sum(left * right)
        return scale * by_kernel, float(scale * trace)

    def _squared_diagonal(self) -> FloatArray:
        """Return the diagonal of N⁻², from that of (I − QᵀQ) diag(1/ρ) (I − QᵀQ)."""
        n, out = len(self._ridge), np.empty(len(self._ridge))
        middle = np.zeros((self._system.rank, self._system.rank))
        blocks = slices(slice(0, n), _BLOCK)
        for block in blocks:
            middle += feature_gram(self._system.halves(block), 1.0 / self._ridge[block])
        for block in blocks:
            half, ridge = self._system.halves(block), self._ridge[block]
            own = np.einsum("ij,ij->j", half, half)
            crossed = np.einsum("ij,ij->j", half, matmul(middle, half))
            out[block] = ((1.0 - 2.0 * own) / ridge + crossed) / ridge
        return out
