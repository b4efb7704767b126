"""Linear systems diag(ridge) + Σ w_i K_i, and the memory that they share."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np

from discernel.arrays import Cholesky, FloatArray, matmul, self_product, self_product_less
from discernel.bank.conjugate import PartialFactor
from discernel.exceptions import NumericalError
from discernel.kernels.weighted import slices

Made = TypeVar("Made")

#: Pivots below this share of the largest entry, times the number of rows, are rounding.
_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


class System(ABC):
    """N = diag(ridge) + Σ w_i K_i.

    Asking it for one thing never spoils another: it may be asked in any order, any number of times.

    Attributes
    ----------
    diagonal_error : float or None
        The standard error of `inverse_diagonal`, as a share of the entries and in the mean over
        them, once it was asked for; None where it is exact.
    tol : float
        The length of a residual over that of its right-hand side, at which it is solved; 0 where
        there is nothing but rounding.
    by_iteration : bool
        Whether every column that is solved costs passes over the kernels.
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

    def solve_roughly(self, right: FloatArray) -> FloatArray:
        """Return `solve`, to some digits where fewer are faster."""
        return self.solve(right)

    def solve_residual(self, right: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Return `solve` and its residual, right − N·solution; None: unknown, of rounding size."""
        return self.solve(right), None

    def inner(
        self, diagonal: FloatArray, left: FloatArray, right: FloatArray, scale: float
    ) -> tuple[FloatArray, float]:
        """Return ⟨K_i, S⟩ and tr S of S = scale·(N⁻¹ diag(d) N⁻¹ − ½(LRᵀ + RLᵀ)).

        Only systems of `Bank.inverse` know it, and it is the last that may be asked of them.

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
    """A system that is factored once.

    Parameters
    ----------
    make : callable
        Returns Σ w_i K_i, which is then overwritten.
    ridge : float or ndarray of shape (n_samples,)
        What is added to its diagonal.
    null : ndarray of shape (n_samples,), optional
        r, without a ridge: the vector along which centred matrices are singular, ones or the roots
        of the weights of samples. N is then Σ w_i K_i + c rrᵀ. Its inverse is that of Σ w_i K_i
        across r, which is all that fits with an intercept take from it: that they are the limit
        of λ → 0.
    tol : float, default=0
        What the precision of the matrix leaves of a right-hand side.

    Notes
    -----
    The diagonal of the inverse takes the memory of the factor, because another matrix of this size
    would cost more in page faults than the arithmetic. It is mostly the last thing that is asked
    for; where it is not, the matrix is made and factored again.
    """

    def __init__(
        self,
        make: Callable[[], FloatArray],
        ridge: float | FloatArray,
        null: FloatArray | None = None,
        tol: float = 0.0,
    ) -> None:
        self._make, self._ridge, self._null, self.tol = make, ridge, null, tol
        self._factor: Cholesky | None = self._factored()
        self._inverse_diagonal: FloatArray | None = None

    def _factored(self) -> Cholesky:
        matrix = self._make()
        if self._null is not None:
            return _factor_across(matrix, self._null)
        matrix[np.diag_indices_from(matrix)] += self._ridge
        return Cholesky(matrix)

    def solve(self, right: FloatArray) -> FloatArray:
        if self._factor is None:
            self._factor = self._factored()
        # Of a rough system too: what is certified of a solution is summed in double precision.
        return np.asarray(self._factor.solve(right), dtype=np.float64)

    def inverse_diagonal(self) -> FloatArray:
        if self._inverse_diagonal is None:
            factor = self._factored() if self._factor is None else self._factor
            self._factor = None  # its memory is taken
            self._inverse_diagonal = factor.inverse_diagonal()
        return self._inverse_diagonal


def _factor_across(matrix: FloatArray, null: FloatArray) -> Cholesky:
    """Return the factor of a singular matrix + c rrᵀ, or raise an error if more is singular."""
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
            "With regularization=0 the kernel matrix must have full rank, but that of these "
            f"{n} rows has not, up to rounding: rows are repeated, or the kernel has fewer "
            "features than there are rows. Give a positive regularization."
        )
    return factor


class Inverse(System):
    """A system whose inverse is stored: solving is a product.

    Parameters
    ----------
    matrix : ndarray of shape (n_samples, n_samples)
        N⁻¹, symmetric and C-ordered; overwritten by `inner`.
    inner_products : callable
        From a symmetric S to every ⟨K_i, S⟩.
    """

    def __init__(
        self, matrix: FloatArray, inner_products: Callable[[FloatArray], FloatArray]
    ) -> None:
        self._matrix: FloatArray | None = matrix
        self._inner_products = inner_products
        self._diagonal = matrix.diagonal().copy()

    def inverse_diagonal(self) -> FloatArray:
        return self._diagonal

    def solve(self, right: FloatArray) -> FloatArray:
        return matmul(self._known(), right)

    def inner(
        self, diagonal: FloatArray, left: FloatArray, right: FloatArray, scale: float
    ) -> tuple[FloatArray, float]:
        rows, self._matrix = self._known(), None
        rows *= np.sqrt(diagonal)[:, None]
        # N⁻¹ is symmetric and C-ordered, so the transpose of its scaled rows is its scaled columns.
        S = self_product_less(rows.T, left, right, scale)
        return self._inner_products(S), float(np.trace(S))

    def _known(self) -> FloatArray:
        if self._matrix is None:
            raise RuntimeError("`inner` is the last that can be asked of an Inverse. Make another.")
        return self._matrix


# ---- systems of low rank -----------------------------------------------------------------------

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
    """N = diag(ρ) + ΦᵀSΦ, solved in the space of the features by one factorisation.

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

    Notes
    -----
    With Ψ = S^(1/2)Φ diag(ρ)^(−1/2), N⁻¹ = diag(ρ)^(−1/2) (I − Ψᵀ(I + ΨΨᵀ)⁻¹Ψ) diag(ρ)^(−1/2).
    Nothing has n_samples² entries.
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
        """Return the inverse times ``right``."""
        return np.asarray(right / self._values[:, None])

    def half_solve(self, right: FloatArray) -> FloatArray:
        """Return the root of the inverse times ``right``."""
        return np.asarray(right / np.sqrt(self._values)[:, None])


# ---- shared memory -----------------------------------------------------------------------------


class Workspace:
    """The memory that systems of a bank share, the last system, and where iterations start.

    Fresh large arrays cost more in page faults than a pass over them. The memory of a system is
    `spare` when nobody holds it any longer. Systems that iterate share the factor of a
    preconditioner, by its weights, and the subspace that a criterion looks for its optimum in.
    """

    def __init__(self) -> None:
        self.spare: list[FloatArray] = []
        self._last: tuple[FloatArray, FloatArray, System] | None = None
        self._factor: tuple[FloatArray, PartialFactor] | None = None
        self.subspace: tuple[FloatArray, FloatArray] | None = None

    def forget(self) -> None:
        """Drop the last system, so that its memory is free for the next."""
        self._last = None

    def system(
        self, weights: FloatArray, diagonal: FloatArray, tol: float, make: Callable[..., System]
    ) -> System:
        """Return the system that was made last, if it is this one, or make it."""
        if self._last is not None:
            known_weights, known_diagonal, system = self._last
            same = np.array_equal(weights, known_weights)
            if same and np.array_equal(diagonal, known_diagonal) and system.tol <= tol:
                return system
            del system  # and with it its memory, which the next one takes
        self._last, weights = None, weights.copy()
        system = make(weights, diagonal, tol)
        self._last = weights, diagonal, system
        return system

    def factor(self, weights: FloatArray, make: Callable[[], PartialFactor]) -> PartialFactor:
        """Return the factor of the preconditioner, which systems of the same weights share."""
        if self._factor is None or not np.array_equal(self._factor[0], weights):
            self._factor = None  # its memory goes first
            self._factor = weights.copy(), make()
        return self._factor[1]

    def look_in(self, basis: FloatArray, found: FloatArray) -> None:
        """Keep the subspace that a criterion looks for its optimum in, and the matrices in it."""
        self.subspace = basis, found

    def lend(self, n: int, make: Callable[[FloatArray], Made]) -> Made:
        """Make an object in memory for a matrix of n rows, which is spare once that is gone."""
        spare = self.spare  # not `self`: it holds the last system, which would never be gone
        memory = spare.pop() if spare else np.empty((n, n))
        made = make(memory)

        def keep() -> None:
            if not spare:  # one is enough
                spare.append(memory)

        weakref.finalize(made, keep)
        return made
