"""Preconditioned conjugate gradients for several right-hand sides, and iterative refinement.

Each column has its own iteration, and all columns share one product per step. Linearly dependent
columns, or columns that converge at different steps, are no problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays import FloatArray, matmul, pivoted_cholesky
from discernel.progress.deadline import check_deadline

Linear = Callable[[FloatArray], FloatArray]

#: Reduction of the residual by products of single precision, before it is recomputed.
_SINGLE_SHARE = 1e-4
#: A correction that leaves more than this share of the residual is not repeated.
_GAIN = 0.1
#: Maximum number of steps, and of steps without a smaller residual before a column stops.
_MOST_STEPS, _PATIENCE = 500, 50
#: Growth of the residual at which a column stops.
_DIVERGED = 1e6
#: Number of pivots drawn at a time.
_BLOCK = 128
#: Pivots below this share of the largest in their block would amplify rounding errors.
_FALL = 1e-3
#: Share of the trace that counts as 0.
_NOTHING = 1e-13


@dataclass(frozen=True, eq=False)
class Solved:
    """Solutions of a linear system and their residuals.

    Attributes
    ----------
    solution : ndarray of shape (n_samples, n)
        X.
    residual : ndarray of shape (n_samples, n)
        B − NX, computed from X in double precision, not by the iteration.
    lengths : ndarray of shape (n,)
        The lengths of the residuals.
    """

    solution: FloatArray
    residual: FloatArray
    lengths: FloatArray


def conjugate_gradients(
    product: Linear, precondition: Linear, right: FloatArray, tol: FloatArray
) -> FloatArray:
    """Solve NX = B approximately, each column by conjugate gradients from 0.

    A column stops when its residual is below ``tol`` or no longer decreases. The preconditioner and
    products of single precision are not exactly symmetric, so directions are conjugated by the
    formula of Polak and Ribière, which tolerates that.
    """
    solution, residual = np.zeros_like(right), right.copy()
    open_, best = np.arange(right.shape[1]), _lengths(right)
    since = np.zeros(right.shape[1], dtype=np.intp)
    open_ = open_[best > tol]
    z = precondition(residual[:, open_])
    direction, slope = z, _inner(residual[:, open_], z)
    for _ in range(_MOST_STEPS):
        check_deadline()
        if not len(open_):
            break
        image = product(direction)
        curvature = _inner(direction, image)
        good = (curvature > 0) & (slope > 0) & np.isfinite(curvature)
        step = np.divide(slope, curvature, out=np.zeros_like(slope), where=good)
        solution[:, open_] += step * direction
        before = residual[:, open_]
        now = before - step * image
        residual[:, open_] = now
        lengths = _lengths(now)
        falls = lengths < best[open_]
        since[open_] = np.where(falls, 0, since[open_] + 1)
        best[open_] = np.where(falls, lengths, best[open_])
        stay = good & (lengths > tol[open_]) & (lengths < _DIVERGED * best[open_])
        stay &= since[open_] < _PATIENCE
        if not stay.all():
            open_, now, before = open_[stay], now[:, stay], before[:, stay]
            direction, slope = direction[:, stay], slope[stay]
        if len(open_):
            z = precondition(now)
            direction = z + np.maximum(_inner(z, now - before) / slope, 0.0) * direction
            slope = _inner(z, now)
    return solution


def solve_refined(
    product: Linear,
    single: Linear | None,
    precondition: Linear,
    right: FloatArray,
    enough: FloatArray,
    guess: FloatArray | None = None,
    *,
    direct: bool = False,
) -> Solved:
    """Solve NX = B to the given residuals, or as accurately as arithmetic allows.

    Each correction solves for the current residual, computed in double precision: by the
    preconditioner alone, by conjugate gradients with products of single precision, or with
    products of double precision. If one kind reduces the residual too little, the next is used.

    Parameters
    ----------
    product : callable
        From V to NV.
    single : callable or None
        The same in single precision; None if that is not faster.
    precondition : callable
        From V to approximately N⁻¹V.
    right : ndarray of shape (n_samples, n)
        B.
    enough : ndarray of shape (n,)
        Norm of the residual at which each column stops.
    guess : ndarray of shape (n_samples, n), optional
        Starting point; 0 by default, which needs no product.
    direct : bool, default=False
        Whether the preconditioner alone gains at least a digit.
    """
    lengths = _lengths(right)
    solution = np.zeros_like(right) if guess is None else guess.copy()
    residual = right.copy() if guess is None else right - product(solution)
    left = _lengths(residual)
    worse = left > lengths  # the guess is worse than 0
    solution[:, worse], residual[:, worse], left[worse] = 0.0, right[:, worse], lengths[worse]
    open_ = np.flatnonzero(left > enough)
    while len(open_):
        share = _SINGLE_SHARE if single is not None else 0.0
        # Half of the goal, because the residual of the iteration is not exactly the true one.
        goal = np.maximum(0.5 * enough[open_], share * left[open_])
        here = residual[:, open_]
        if direct:
            found = precondition(here)
        else:
            found = conjugate_gradients(single or product, precondition, here, goal)
        found += solution[:, open_]
        new = right[:, open_] - product(found)
        reached = _lengths(new)
        better = reached < left[open_]
        slow = ~(reached <= np.maximum(enough[open_], _GAIN * left[open_]))  # also if NaN
        taken = open_[better]
        solution[:, taken], residual[:, taken] = found[:, better], new[:, better]
        left[taken] = reached[better]
        if slow.any() and direct:
            direct = False
        elif slow.any() and single is not None:
            single = None
        elif slow.any():
            open_ = open_[~slow]
        open_ = open_[left[open_] > enough[open_]]
    return Solved(solution, residual, left)


def _lengths(columns: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(columns, axis=0))


def _inner(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->j", left, right))


# ---- the preconditioner --------------------------------------------------------------------------


class PartialFactor:
    """Partial Cholesky factor F with K ≈ FᵀF, extended on demand.

    Pivots are drawn at random in proportion to the remaining diagonal ([Chen25]_, as a
    preconditioner of kernel systems [Diaz23]_). Rank r needs r columns of the kernel and
    r · n_samples numbers. The remainder K − FᵀF is positive semidefinite with a known diagonal.

    Parameters
    ----------
    diagonal : ndarray of shape (n_samples,)
        The diagonal of K.
    columns : callable
        From positions to columns of K, of shape (n_positions, n_samples).
    most : int
        Maximum rank.

    Attributes
    ----------
    rank : int
        The current rank.
    left : ndarray of shape (n_samples,)
        The diagonal of K − FᵀF.
    """

    def __init__(
        self,
        diagonal: FloatArray,
        columns: Callable[[NDArray[np.intp]], FloatArray],
        most: int,
    ) -> None:
        self.rank, self.left = 0, np.maximum(diagonal, 0.0)
        self._columns, self._trace = columns, float(self.left.sum())
        # Pages that are never written need no memory.
        self._memory = np.empty((min(most, len(diagonal)), len(diagonal)))
        self._rng = np.random.default_rng(0)

    @property
    def factor(self) -> FloatArray:
        """F, of shape (rank, n_samples)."""
        return self._memory[: self.rank]

    def extend(self, enough: float) -> None:
        """Extend the factor until the trace of K − FᵀF is at most ``enough`` or memory is full."""
        enough = max(enough, _NOTHING * self._trace)
        while self.rank < len(self._memory) and float(self.left.sum()) > enough:
            if self._add_block() == 0:
                break

    def _add_block(self) -> int:
        """Draw pivots, append their rows to the factor, and return their number."""
        open_ = np.flatnonzero(self.left > 0)
        size = min(_BLOCK, len(open_), len(self._memory) - self.rank)
        shares = self.left[open_] / self.left[open_].sum()
        pool = self._rng.choice(open_, size, replace=False, p=shares)
        rows, known = self._columns(pool), self.factor
        if self.rank:
            rows -= matmul(known[:, pool].T, known)
        block = np.asfortranarray(rows[:, pool])
        least = _FALL * float(block.diagonal().max())
        chosen, triangle = pivoted_cholesky(block, least)
        if len(chosen):
            new = scipy.linalg.blas.dtrsm(1.0, triangle, rows[chosen], lower=1)
            self._memory[self.rank : self.rank + len(chosen)] = new
            self.rank += len(chosen)
            self.left = np.maximum(self.left - np.einsum("ij,ij->j", new, new), 0.0)
            self.left[pool[chosen]] = 0.0
        return len(chosen)
