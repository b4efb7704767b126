"""Systems of low rank: diag(ρ) + ΦᵀΦ, solved in the space of the features.

With Ψ = Φ diag(ρ)^(−1/2), (diag(ρ) + ΦᵀΦ)⁻¹ = diag(ρ)^(−1/2) (I − Ψᵀ(I + ΨΨᵀ)⁻¹Ψ) diag(ρ)^(−1/2).
Nothing has n_samples² entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from discernel.arrays import Cholesky, FloatArray, matmul, self_product
from discernel.bank.system import System
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
    gram : ndarray of shape (rank, rank) or (rank,), optional
        ΦΦᵀ, where it is known: it serves all weights and all ridges of one number. Its diagonal
        where the rows of Φ are orthogonal: a new ρ then costs no factorisation at all.
    kernels : sequence of ndarray of shape (rank_i, n_samples), optional
        The Φ_i of K_i = Φ_iᵀΦ_i, which `inner` is of.
    """

    def __init__(
        self,
        factor: FloatArray,
        ridge: float | FloatArray,
        weights: FloatArray | None = None,
        gram: FloatArray | None = None,
        kernels: Sequence[FloatArray] = (),
    ) -> None:
        n, self._kernels = factor.shape[1], kernels
        if not len(factor):  # one feature that is 0: not every LAPACK solves systems of no rows
            factor, weights, gram = np.zeros((1, n)), None, None
        self._factor, self._ridge = factor, np.broadcast_to(np.asarray(ridge, float), (n,))
        self._roots = np.ones(len(factor)) if weights is None else np.sqrt(weights)
        is_constant = bool((self._ridge == self._ridge[0]).all())
        self._small: Cholesky | _Diagonal
        if is_constant and gram is not None and gram.ndim == 1:
            self._small = _Diagonal(1.0 + self._roots**2 * gram / self._ridge[0])
            return
        if is_constant:
            gram = feature_gram(factor) if gram is None else gram
            small = gram * (self._roots * self._roots[:, None] / self._ridge[0])
        else:
            small = feature_gram(factor, 1.0 / self._ridge)
            small *= self._roots * self._roots[:, None]
        small[np.diag_indices_from(small)] += 1.0
        self._small = Cholesky(small)

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
        inner = self._small.solve(self._features(scaled))
        return np.asarray(scaled - self._times(inner) / self._ridge[:, None])

    def _features(self, vectors: FloatArray) -> FloatArray:
        """Return S^(1/2)ΦV."""
        return np.asarray(self._roots[:, None] * matmul(self._factor, vectors))

    def _times(self, vectors: FloatArray) -> FloatArray:
        """Return ΦᵀS^(1/2)V."""
        return matmul(self._factor.T, np.ascontiguousarray(self._roots[:, None] * vectors))

    def _halves(self, block: slice) -> tuple[FloatArray, FloatArray]:
        """Return Ψ and Q = L⁻¹Ψ of some samples: N⁻¹ = ρ^(−1/2) (I − QᵀQ) ρ^(−1/2)."""
        part = self._factor[:, block] * self._roots[:, None]
        part /= np.sqrt(self._ridge[block])
        return part, self._small.half_solve(np.asfortranarray(part))

    @cached_property
    def _diagonal(self) -> FloatArray:
        out = np.empty(len(self._ridge))
        for block in slices(slice(0, len(out)), _BLOCK):
            part, half = self._halves(block)
            least = 1.0 / (1.0 + np.einsum("ij,ij->j", part, part))  # N⁻¹_ii ≥ 1/N_ii
            out[block] = np.maximum(1.0 - np.einsum("ij,ij->j", half, half), least)
        out /= self._ridge
        return out

    def inverse_diagonal(self) -> FloatArray:
        return self._diagonal

    def inner(
        self, diagonal: FloatArray, left: FloatArray, right: FloatArray, scale: float
    ) -> tuple[FloatArray, float]:
        by_kernel = np.empty(len(self._kernels))
        for position, factor in enumerate(self._kernels):
            # ⟨Φᵀ Φ, N⁻¹ diag(d) N⁻¹⟩ = ‖diag(d)^(1/2) N⁻¹ Φᵀ‖²
            solved = self.solve(factor.T)
            crossed = np.sum(matmul(factor, left) * matmul(factor, right))
            by_kernel[position] = diagonal @ np.einsum("ij,ij->i", solved, solved) - crossed
        trace = diagonal @ self._squared_diagonal() - np.sum(left * right)
        return scale * by_kernel, float(scale * trace)

    def _squared_diagonal(self) -> FloatArray:
        """Return the diagonal of N⁻², from that of (I − QᵀQ) diag(1/ρ) (I − QᵀQ)."""
        rank, out = len(self._factor), np.empty(len(self._ridge))
        middle, blocks = np.zeros((rank, rank)), slices(slice(0, len(out)), _BLOCK)
        for block in blocks:
            middle += feature_gram(self._halves(block)[1], 1.0 / self._ridge[block])
        for block in blocks:
            (_, half), ridge = self._halves(block), self._ridge[block]
            own = np.einsum("ij,ij->j", half, half)
            crossed = np.einsum("ij,ij->j", half, matmul(middle, half))
            out[block] = ((1.0 - 2.0 * own) / ridge + crossed) / ridge
        return out


class _Diagonal:
    """A positive diagonal matrix with the methods of `Cholesky` that `WoodburySystem` calls."""

    def __init__(self, values: FloatArray) -> None:
        self._values = values

    def solve(self, right: FloatArray) -> FloatArray:
        return np.asarray(right / self._values[:, None])

    def half_solve(self, right: FloatArray) -> FloatArray:
        return np.asarray(right / np.sqrt(self._values)[:, None])
