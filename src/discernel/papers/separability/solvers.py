"""Solvers of class separability: the closed form of Yeung, Chang and Dai (2006), and the ratio.

The ratio is maximized by fractional programming, which the paper names as future work.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discernel.arrays import FloatArray
from discernel.exceptions import ConvergenceWarning
from discernel.papers.separability.criterion import (
    Scatter,
    closed_form,
    critical_alpha,
    is_maximum,
    ratio,
    resolve_alpha,
)
from discernel.programs.simplex import normalize
from discernel.programs.solution import Solution, Status, Task


@dataclass(frozen=True)
class ClosedForm:
    """Maximize tr S_b − α tr S_w with weights μ² in closed form, (16) of [Yeung06]_.

    Warns
    -----
    ConvergenceWarning
        If the closed form is not a maximum.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.solvers import ClosedForm
    >>> learned = learn_kernel(
    ...     grams, y[::3], criterion="separability", solver=ClosedForm(), regularization=0.01
    ... )
    >>> learned.solver, learned.status.value
    ('closed_form', 'converged')
    """

    name: ClassVar[str] = "closed_form"
    needs: ClassVar[tuple[str, ...]] = ("scatter", "alpha")

    def solve(self, program: Any, task: Task) -> Solution:
        scatter, alpha = program.scatter, float(resolve_alpha(program.alpha, program.scatter))
        weights = normalize(closed_form(scatter, alpha) ** 2)
        value = float(weights @ (scatter.between - alpha * scatter.within))
        maximal = is_maximum(scatter, alpha)
        if not maximal:
            warnings.warn(
                f"The closed form of class separability is not a maximum for alpha={alpha:g}: "
                "some kernels separate the classes too well for this alpha. Raise it above the "
                f"largest ratio, {float(critical_alpha(scatter)):g}, or use solver='dinkelbach'.",
                ConvergenceWarning,
                stacklevel=2,
            )
        task.monitor(0, value, None, weights)
        status = Status.CONVERGED if maximal else Status.NO_CERTIFICATE
        return Solution(weights, value, -np.inf, status, 1)


@dataclass(frozen=True)
class Dinkelbach:
    """Maximize tr S_b / tr S_w over weights with an upper limit, exactly ([Dinkelbach67]_).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.solvers import Dinkelbach
    >>> learned = learn_kernel(
    ...     grams, y[::3], criterion="separability", solver=Dinkelbach(), regularization=0.01
    ... )
    >>> learned.solver, learned.status.value
    ('dinkelbach', 'converged')
    """

    name: ClassVar[str] = "dinkelbach"
    needs: ClassVar[tuple[str, ...]] = ("scatter", "cap")

    def solve(self, program: Any, task: Task) -> Solution:
        p = program.n_weights
        weights, found = dinkelbach(program.scatter, np.full(p, program.cap / p), 1.0)
        ratios = [float(value) for value in found]
        for iteration, value in enumerate(ratios):
            task.monitor(iteration, value, None, weights)
        return Solution(weights, ratios[-1], -np.inf, Status.CONVERGED, len(ratios))


# ---- fractional programming ------------------------------------------------------------------


def dinkelbach(
    scatter: Scatter, caps: FloatArray, total: float | FloatArray
) -> tuple[FloatArray, list[FloatArray]]:
    """Maximize Σ w_r f_r / Σ w_r g_r over 0 ≤ w ≤ caps, Σ w = total, exactly ([Dinkelbach67]_).

    Each step computes the weights with the largest Σ w_r (f_r − q g_r), where q is the current
    ratio. If this maximum is not positive, no weights have a ratio above q.

    Parameters
    ----------
    scatter : Scatter
        f and g; axes before the last are independent problems.
    caps : ndarray that broadcasts to f
        The upper limits of w, whose sum is at least ``total``.
    total : float or ndarray of shape (..., 1)
        The sum of w.

    Returns
    -------
    weights : ndarray of shape (..., n_kernels)
        w.
    ratios : list of ndarray of shape (...)
        tr S_b / tr S_w at the start and after each step, never decreasing.

    Notes
    -----
    A step is a fractional knapsack problem, filled in decreasing order of f_r − q g_r. Ratios
    increase strictly and there are finitely many orders, so the iteration ends. It took 3 to 8
    steps in practice.
    """
    caps = np.broadcast_to(caps, scatter.between.shape)
    weights = caps * quotient(total, caps.sum(axis=-1, keepdims=True))
    value = ratio(scatter, weights)
    ratios = [value]
    while True:
        q = np.where(np.isinf(value), 0.0, value)[..., None]
        trial = _knapsack(scatter.between - q * scatter.within, caps, total)
        reached = ratio(scatter, trial)
        better = reached > value
        if not better.any():
            return weights, ratios
        weights = np.where(better[..., None], trial, weights)
        value = np.where(better, reached, value)
        ratios.append(value)


def _knapsack(values: FloatArray, caps: FloatArray, total: float | FloatArray) -> FloatArray:
    """Return argmax of Σ w_r values_r over 0 ≤ w ≤ caps, Σ w = total."""
    order = np.argsort(-values, axis=-1, kind="stable")
    limits = np.take_along_axis(caps, order, axis=-1)
    room = total - (np.cumsum(limits, axis=-1) - limits)
    weights = np.empty_like(values)
    np.put_along_axis(weights, order, np.clip(room, 0.0, limits), axis=-1)
    return weights


def quotient(total: float | FloatArray, sums: FloatArray) -> FloatArray:
    """Return total/sums, with 0 for sums that are 0."""
    return np.divide(total, sums, out=np.zeros_like(sums), where=sums > 0)
