"""Conjugate gradients for several right-hand sides, with a preconditioner and a true residual.

Every column has its own iteration, and all of them share one product a step: columns that depend
on each other, or end at different times, break nothing down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discernel.arrays import FloatArray
from discernel.progress.deadline import check_deadline

__all__ = ["Solved", "conjugate_gradients", "solve_refined"]

Linear = Callable[[FloatArray], FloatArray]

#: What products of single precision are good for before the residual is computed anew.
_SINGLE_SHARE = 1e-4
#: A run that leaves more than this share of the residual is not worth another of its kind.
_GAIN = 0.1
#: Steps of one run at most, and steps without a smaller residual after which a column gives up.
_MOST_STEPS, _PATIENCE = 500, 50
#: What a residual has grown by where a column is given up.
_DIVERGED = 1e6


@dataclass(frozen=True)
class Solved:
    """What came of some right-hand sides.

    Attributes
    ----------
    solution : ndarray of shape (n_samples, n)
        X.
    residual : ndarray of shape (n_samples, n)
        B − NX, computed in double precision from X itself, not by the iteration.
    lengths : ndarray of shape (n,)
        The lengths of the residuals.
    """

    solution: FloatArray
    residual: FloatArray
    lengths: FloatArray


def conjugate_gradients(
    product: Linear, precondition: Linear, right: FloatArray, tol: FloatArray
) -> FloatArray:
    """Return about N⁻¹B, each column by conjugate gradients from 0.

    The preconditioner, and products of single precision, are not exactly symmetric, so directions
    are conjugated by the formula of Polak and Ribière, which forgives it.

    Parameters
    ----------
    product : callable
        From V to NV.
    precondition : callable
        From V to about N⁻¹V.
    right : ndarray of shape (n_samples, n)
        B.
    tol : ndarray of shape (n,)
        The length of the residual at which each column is done. A column also ends where its
        residual no longer falls.
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
) -> Solved:
    """Return N⁻¹B with residuals as short as asked for, or as far as arithmetic goes.

    Runs of conjugate gradients with products of single precision, each for the residual of double
    precision that the ones before have left. Where that gains too little, products are of double
    precision from then on.

    Parameters
    ----------
    product : callable
        From V to NV.
    single : callable or None
        The same in single precision; None where that is not faster.
    precondition : callable
        From V to about N⁻¹V.
    right : ndarray of shape (n_samples, n)
        B.
    enough : ndarray of shape (n,)
        The length of the residual at which each column is done.
    guess : ndarray of shape (n_samples, n), optional
        Where to start; 0 by default, which costs no product.
    """
    lengths = _lengths(right)
    solution = np.zeros_like(right) if guess is None else guess.copy()
    residual = right.copy() if guess is None else right - product(solution)
    left = _lengths(residual)
    worse = left > lengths  # than no guess at all
    solution[:, worse], residual[:, worse], left[worse] = 0.0, right[:, worse], lengths[worse]
    open_ = np.flatnonzero(left > enough)
    while len(open_):
        share = _SINGLE_SHARE if single is not None else 0.0
        # A little below what is asked for: the iteration's own residual is not quite the true one.
        goal = np.maximum(0.5 * enough[open_], share * left[open_])
        here = residual[:, open_]
        found = conjugate_gradients(single or product, precondition, here, goal)
        found += solution[:, open_]
        new = right[:, open_] - product(found)
        reached = _lengths(new)
        better = reached < left[open_]
        slow = ~(reached <= np.maximum(enough[open_], _GAIN * left[open_]))  # or not a number
        taken = open_[better]
        solution[:, taken], residual[:, taken] = found[:, better], new[:, better]
        left[taken] = reached[better]
        if slow.any() and single is not None:
            single = None
        elif slow.any():
            open_ = open_[~slow]
        open_ = open_[left[open_] > enough[open_]]
    return Solved(solution, residual, left)


def _lengths(columns: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(columns, axis=0))


def _inner(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->j", left, right))
