"""Quadratic programs on the probability simplex."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray

#: Lower limit of the total weight of all kernels beside the identity.
_SMALLEST_SHARE = 1e-9
#: Largest deviation of the sum of the weights from 1 after a linear solve.
_OFF_SIMPLEX = 1e-6


def uniform(n_kernels: int) -> FloatArray:
    """Return equal weights."""
    return np.full(n_kernels, 1.0 / n_kernels)


def normalize(weights: FloatArray) -> FloatArray:
    """Return weights clipped at 0 and scaled to sum to 1; equal weights if all are 0."""
    positive = np.maximum(weights, 0.0)
    total = float(positive.sum())
    return positive / total if np.isfinite(total) and total > 0 else uniform(len(weights))


def beside_identity(kernels: FloatArray) -> tuple[FloatArray, float]:
    """Return kernel weights scaled to sum to 1, and their sum; the rest is the identity's weight.

    The weights are equal if no kernel separates the classes better than the identity.
    """
    share = float(kernels.sum())
    if share < _SMALLEST_SHARE:
        return uniform(len(kernels)), _SMALLEST_SHARE
    return kernels / share, share


def minimize_quadratic(linear: FloatArray, quadratic: FloatArray, start: FloatArray) -> FloatArray:
    """Return argmin of cᵀx + ½xᵀQx over x ≥ 0, Σx = 1, by a primal active-set method.

    Parameters
    ----------
    linear : ndarray of shape (n,)
        c.
    quadratic : ndarray of shape (n, n)
        Q, positive definite.
    start : ndarray of shape (n,)
        A point of the simplex; its zeros are the first active set.

    Returns
    -------
    ndarray of shape (n,)
        Exact zeros on the active set.

    Notes
    -----
    The value decreases in every step and no active set occurs twice, so the loop ends; its limit
    only guards against rounding errors. If they spoil a step, the result is the last good point or,
    for a Q that is singular in floating point, the best vertex. Both are on the simplex. A step
    solves a linear system of the size of the support.
    """
    x = normalize(start)
    free = x > 0
    for _ in range(20 * len(x) + 20):
        support = np.flatnonzero(free)
        target, multiplier = _minimize_on_support(linear, quadratic, support)
        if not abs(target.sum() - 1.0) <= _OFF_SIMPLEX:
            return np.asarray(np.eye(len(x))[(linear + quadratic @ x).argmin()])
        if (target > 0).all():
            x = np.zeros_like(x)
            x[support] = target / target.sum()
            slope = linear + quadratic @ x + multiplier
            slope[support] = 0.0
            entering = int(slope.argmin())
            if slope[entering] >= -1e-13 * max(1.0, abs(multiplier)):
                return x
            free[entering] = True
        else:
            # Move towards the target until the first weight reaches zero.
            here = x[support]
            blocking = target <= 0
            drop = here[blocking] - target[blocking]
            ratios = np.divide(here[blocking], drop, out=np.zeros_like(drop), where=drop > 0)
            leaving = support[blocking][ratios.argmin()]
            x[support] = np.maximum(here + ratios.min() * (target - here), 0.0)
            x[leaving] = 0.0
            free[leaving] = False
    return normalize(x)


def _minimize_on_support(
    linear: FloatArray, quadratic: FloatArray, support: NDArray[np.intp]
) -> tuple[FloatArray, float]:
    """Return the minimizer with Σx = 1 on a support, without bounds, and the multiplier of Σx."""
    n = len(support)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = quadratic[np.ix_(support, support)]
    system[n, n] = 0.0
    try:
        solution = np.linalg.solve(system, np.append(-linear[support], 1.0))
    except np.linalg.LinAlgError:
        solution = np.full(n + 1, np.nan)
    return solution[:n], float(solution[n])
