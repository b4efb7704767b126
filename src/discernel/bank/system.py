"""Linear systems diag(ridge) + Σ w_i K_i, and their shared memory."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Cholesky, FloatArray, matmul, self_product, self_product_less
from discernel.arrays.groups import Groups
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.conjugate import PartialFactor
from discernel.exceptions import NumericalError
from discernel.kernels.weighted import slices

Made = TypeVar("Made")

#: Number of samples in a block.
_BLOCK = 1024
#: Pivots below this share of the largest entry, times the number of rows, are rounding errors.
_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


class System(ABC):
    """A linear system with the matrix N = diag(ridge) + Σ w_i K_i.

    Methods may be called in any order, any number of times.

    Attributes
    ----------
    diagonal_error : float or None
        Mean relative standard error of the last `inverse_diagonal`; None if it is exact.
    tol : float
        Relative residual of solutions; 0 if they are exact up to rounding.
    by_iteration : bool
        Whether every solved column costs passes over the kernels.
    """

    diagonal_error: float | None = None
    tol: float = 0.0
    by_iteration: ClassVar[bool] = False

    @abstractmethod
    def solve(self, right: FloatArray) -> FloatArray:
        """Return the inverse times ``right``, of shape (n_samples, n)."""

    @abstractmethod
    def inverse_diagonal(self) -> FloatArray:
        """Return the diagonal of the inverse, of shape (n_samples,)."""

    def inverse_blocks(self, groups: Groups) -> list[FloatArray]:
        """Return the blocks (N⁻¹)_SS of the rows S of each group.

        One array of shape (n_groups, size, size) for each of `Groups.batches`. They are those of
        the diagonal of the inverse if every row is a group of its own.
        """
        blocks = [np.empty((*rows.shape, rows.shape[1])) for rows in groups.batches]
        for rows, out in zip(groups.batches, blocks, strict=True):
            step = max(1, _BLOCK // rows.shape[1])
            for start in range(0, len(rows), step):
                some = rows[start : start + step]
                units = np.zeros((len(groups.codes), some.size))
                units[some.ravel(), np.arange(some.size)] = 1.0
                solved = self.solve(units).reshape(-1, *some.shape)
                for place, own in enumerate(some):
                    out[start + place] = solved[own, place]
        return blocks

    def solve_roughly(self, right: FloatArray) -> FloatArray:
        """Return `solve` with fewer digits, if that is faster."""
        return self.solve(right)

    def solve_residual(self, right: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Return the solution and its residual, or None if the residual is rounding error."""
        return self.solve(right), None

    def inner(
        self, diagonal: FloatArray, left: FloatArray, right: FloatArray, scale: float
    ) -> tuple[FloatArray, float]:
        """Return ⟨K_i, S⟩ and tr S of S = scale·(N⁻¹ diag(d) N⁻¹ − ½(LRᵀ + RLᵀ)).

        Only systems made by `Bank.inverse` have this method. It may overwrite the inverse, so it
        must be the last call.

        Parameters
        ----------
        diagonal : ndarray of shape (n_samples,)
            d, at least 0.
        left, right : ndarray of shape (n_samples, n)
            L and R.
        scale : float
            The factor.
        """
        raise NotImplementedError(f"A {type(self).__name__} is not made by `Bank.inverse`.")


class CholeskySystem(System):
    """A system solved by Cholesky factorization.

    Parameters
    ----------
    make : callable
        Returns Σ w_i K_i, which is overwritten.
    ridge : float or ndarray of shape (n_samples,)
        Added to the diagonal.
    null : ndarray of shape (n_samples,), optional
        Null vector r of centred matrices, for a ridge of 0: ones, or the square roots of the sample
        weights. N is then Σ w_i K_i + c rrᵀ, which has the inverse of Σ w_i K_i on vectors
        orthogonal to r. A fit with an intercept uses no others, and is the limit of λ → 0.
    tol : float, default=0
        Relative residual due to the precision of the matrix.
    product : callable, optional
        From V to Σ w_i K_i V in double precision, for the residuals of a matrix of single
        precision.
    inner_products : callable, optional
        From a symmetric matrix S to all ⟨K_i, S⟩, for `inner`. The matrix is then inverted at once.

    Notes
    -----
    For the diagonal and blocks of the inverse, the inverse of the factor overwrites it, because
    page faults of another matrix of this size would cost more than the arithmetic.
    """

    def __init__(
        self,
        make: Callable[[], FloatArray],
        ridge: float | FloatArray,
        null: FloatArray | None = None,
        tol: float = 0.0,
        product: Callable[[FloatArray], FloatArray] | None = None,
        inner_products: Callable[[FloatArray], FloatArray] | None = None,
    ) -> None:
        self.tol, self._ridge, self._product, matrix = tol, ridge, product, make()
        self._inner_products = inner_products
        if null is not None:
            self._factor = _factor_across(matrix, null)
        else:
            matrix[np.diag_indices_from(matrix)] += ridge
            self._factor = Cholesky(matrix)
        self._inverse = None if inner_products is None else self._factor.inverse()
        self._is_lost = False

    def solve(self, right: FloatArray) -> FloatArray:
        if self._is_lost:
            raise RuntimeError("`inner` overwrites the inverse and must be the last call.")
        # Also for single precision, because certificates are summed in double precision.
        known = self._inverse
        found = self._factor.solve(right) if known is None else matmul(known, right)
        return np.asarray(found, dtype=np.float64)

    def solve_residual(self, right: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        found = self.solve(right)
        if self._product is None:
            return found, None
        ridge = np.broadcast_to(self._ridge, len(found))
        return found, right - ridge[:, None] * found - self._product(found)

    def inverse_diagonal(self) -> FloatArray:
        return self._inverse_diagonal

    @cached_property
    def _inverse_diagonal(self) -> FloatArray:
        if self._inverse is not None:
            return np.asarray(self._inverse.diagonal(), dtype=np.float64)
        return self._factor.inverse_diagonal()

    def inverse_blocks(self, groups: Groups) -> list[FloatArray]:
        if self._inverse is None:
            return [self._factor.inverse_blocks(rows) for rows in groups.batches]
        return matrix_blocks(self._inverse, groups)

    def inner(
        self, diagonal: FloatArray, left: FloatArray, right: FloatArray, scale: float
    ) -> tuple[FloatArray, float]:
        if self._inner_products is None or self._inverse is None:
            return super().inner(diagonal, left, right, scale)
        rows, self._inverse, self._is_lost = self._inverse, None, True
        rows *= np.sqrt(diagonal)[:, None]
        # N⁻¹ is symmetric, so the transpose of its scaled rows are its scaled columns.
        S = self_product_less(rows.T, left, right, scale)
        return self._inner_products(S), float(np.trace(S))


def centered_system(
    gram: FloatArray, ridge: float | FloatArray, rows: SampleWeights
) -> CholeskySystem:
    """Return the system of a kernel matrix, which is centred, weighted and overwritten."""
    for _ in range(2):  # rows, then columns
        gram = rows.center(gram).T
    gram = rows.scale_both(gram)
    null = None if np.any(ridge) else rows.roots
    return CholeskySystem(lambda: np.ascontiguousarray(gram), ridge, null)


def matrix_blocks(matrix: FloatArray, groups: Groups) -> list[FloatArray]:
    """Return the blocks of the rows and columns of each group, as `System.inverse_blocks` does."""
    return [
        np.asarray(matrix[rows[:, :, None], rows[:, None, :]], dtype=np.float64)
        for rows in groups.batches
    ]


def _factor_across(matrix: FloatArray, null: FloatArray) -> Cholesky:
    """Return the factor of a matrix + c rrᵀ; raise an error if it is singular."""
    size, n = float(np.trace(matrix)) / len(null), len(null)
    matrix += np.outer((size / float(null @ null)) * null, null)
    largest = float(matrix.diagonal().max())
    try:
        factor = Cholesky(matrix)
        singular = factor.least_pivot <= _ROUNDING * n * largest
    except NumericalError:
        singular = True
    if singular:
        raise NumericalError(
            "With regularization=0 the kernel matrix must have full rank. The matrix of these "
            f"{n} rows is singular up to rounding: rows are repeated, or the kernel has fewer "
            "features than there are rows. Use a positive regularization."
        )
    return factor


# ---- systems of low rank -----------------------------------------------------------------------


def feature_gram(factor: FloatArray, by: FloatArray | None = None) -> FloatArray:
    """Return Φ diag(d) Φᵀ, of shape (rank, rank), in blocks of samples; d is 1 by default."""
    total = np.zeros((len(factor), len(factor)))
    for block in slices(slice(0, factor.shape[1]), max(_BLOCK, len(factor))):
        part = factor[:, block] if by is None else factor[:, block] * np.sqrt(by[block])
        total += self_product(np.asfortranarray(part))
    return total


class WoodburySystem(System):
    """The system N = diag(ρ) + ΦᵀSΦ, solved in feature space by one factorization.

    Parameters
    ----------
    factor : ndarray of shape (rank, n_samples)
        Φ, not copied.
    ridge : float or ndarray of shape (n_samples,)
        ρ, above 0.
    weights : ndarray of shape (rank,), optional
        The diagonal of S, at least 0; 1 by default.
    gram : ndarray of shape (rank, rank) or (rank,), optional
        ΦΦᵀ, if known: it does not depend on weights and ridge. Its diagonal, if the rows of Φ are
        orthogonal: then no factorization is needed.
    kernels : sequence of ndarray of shape (rank_i, n_samples), optional
        The Φ_i of K_i = Φ_iᵀΦ_i, for `inner`.

    Notes
    -----
    With Ψ = S^(1/2)Φ diag(ρ)^(−1/2), N⁻¹ = diag(ρ)^(−1/2) (I − Ψᵀ(I + ΨΨᵀ)⁻¹Ψ) diag(ρ)^(−1/2).
    No array has n_samples² entries.
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
        if not len(factor):  # use one feature of zeros: some LAPACKs refuse empty systems
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
        # One refinement step restores the digits that a small ridge costs.
        left = right - self._ridge[:, None] * found
        left -= self._times(self._features(found))
        return found + self.solve_once(left)

    def solve_once(self, right: FloatArray) -> FloatArray:
        """Return `solve` without refinement, for a matrix; used as a preconditioner."""
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
        """Return Ψ and Q = L⁻¹Ψ of a block of samples: N⁻¹ = ρ^(−1/2) (I − QᵀQ) ρ^(−1/2)."""
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

    def inverse_blocks(self, groups: Groups) -> list[FloatArray]:
        return [np.stack([self._block(own) for own in rows]) for rows in groups.batches]

    def _block(self, rows: NDArray[np.intp]) -> FloatArray:
        """Return the inverse between some samples."""
        roots = np.sqrt(self._ridge[rows])
        part = self._factor[:, rows] * self._roots[:, None] / roots
        half = self._small.half_solve(np.asfortranarray(part))
        return np.asarray((np.eye(len(rows)) - half.T @ half) / (roots * roots[:, None]))

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
    """A positive diagonal matrix with the methods of `Cholesky` used by `WoodburySystem`."""

    def __init__(self, values: FloatArray) -> None:
        self._values = values

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the inverse times ``right``."""
        return np.asarray(right / self._values[:, None])

    def half_solve(self, right: FloatArray) -> FloatArray:
        """Return the square root of the inverse times ``right``."""
        return np.asarray(right / np.sqrt(self._values)[:, None])


# ---- shared memory -----------------------------------------------------------------------------


class Workspace:
    """Memory and caches shared by the systems of a bank.

    Page faults of a new large array cost more than a pass over it, so the memory of a deleted
    system is reused (`spare`). The last system is cached. Iterative systems share the factor of
    the preconditioner of the same weights, and the subspace in which a criterion searches.
    """

    def __init__(self) -> None:
        self.spare: list[FloatArray] = []
        self._last: tuple[FloatArray, FloatArray, System] | None = None
        self._factor: tuple[FloatArray, PartialFactor] | None = None
        self.subspace: tuple[FloatArray, FloatArray] | None = None

    def forget(self) -> None:
        """Drop the last system, so that its memory can be reused."""
        self._last = None

    def system(
        self, weights: FloatArray, diagonal: FloatArray, tol: float, make: Callable[..., System]
    ) -> System:
        """Return the last system if it is the same, or else make a new one."""
        if self._last is not None:
            known_weights, known_diagonal, system = self._last
            same = np.array_equal(weights, known_weights)
            if same and np.array_equal(diagonal, known_diagonal) and system.tol <= tol:
                return system
            del system  # frees its memory for the new system
        self._last, weights = None, weights.copy()
        system = make(weights, diagonal, tol)
        self._last = weights, diagonal, system
        return system

    def factor(self, weights: FloatArray, make: Callable[[], PartialFactor]) -> PartialFactor:
        """Return the factor of the preconditioner for these weights, cached."""
        if self._factor is None or not np.array_equal(self._factor[0], weights):
            self._factor = None  # frees its memory first
            self._factor = weights.copy(), make()
        return self._factor[1]

    def keep_subspace(self, basis: FloatArray, compressed: FloatArray) -> None:
        """Keep a basis S and the matrices SᵀK_iS of the subspace in which a criterion searches."""
        self.subspace = basis, compressed

    def lend(self, n: int, make: Callable[[FloatArray], Made]) -> Made:
        """Make an object in the memory of an n × n matrix, which is reused after its deletion."""
        spare = self.spare  # not `self`: it holds the last system, which would never be deleted
        memory = spare.pop() if spare else np.empty((n, n))
        made = make(memory)

        def keep() -> None:
            if not spare:  # one is enough
                spare.append(memory)

        weakref.finalize(made, keep)
        return made
