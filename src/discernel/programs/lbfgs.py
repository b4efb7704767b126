"""Weights and λ with the least leave-one-out error, pulled towards equal weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from discernel.arrays import FloatArray
from discernel.bank import Bank
from discernel.programs.lambdas import NEAR_LEAST, search_lambda
from discernel.programs.least_squares import KernelLeastSquares
from discernel.programs.loo import ErrorPoint
from discernel.programs.simplex import normalize
from discernel.targets import Target

#: λ that the descent may reach.
_LAMBDA_BOUNDS = (1e-7, 10.0)
#: Softmax weights never vanish: what is below this share is rounded to 0.
_NEGLIGIBLE = 1e-3
#: No logarithm of less is taken.
_TINY = 1e-30


def choose_regularization(
    bank: Bank,
    target: Target,
    weights: FloatArray,
    regularizations: Sequence[float],
    start: float | None = None,
) -> tuple[float, float]:
    """Return the λ with the least leave-one-out error of given weights, and the error.

    Parameters
    ----------
    bank, target, weights
        What is fitted.
    regularizations : sequence of float
        λ to choose from, falling. Of those that are as good as the best, the largest is taken.
    start : float, optional
        One of them that was good for other weights. The error mostly has one valley: from here
        it is followed downhill, and some λ are never tried. By default all are.
    """
    # That of a single λ is mostly known from before, or asked for again.
    is_one = len(regularizations) == 1
    system = partial(bank.system, weights) if is_one else bank.systems(weights)

    def error(regularization: float) -> float:
        ridge = np.full(bank.n_samples, regularization)
        fit = KernelLeastSquares(system(ridge), ridge, target.scores, target.sample_weights)
        return fit.leave_one_out_error()

    first = None if start is None else regularizations.index(start)
    found = search_lambda(regularizations, error, NEAR_LEAST, first)
    return found.regularization, found.loss


def pull_to_equal(weights: FloatArray, pull: float, n_samples: float) -> float:
    """Return (pull / n_samples) · KL(weights ‖ equal weights)."""
    positive = weights[weights > 0]
    return pull / n_samples * float(positive @ np.log(positive * len(weights)))


def minimize_error(
    at: Callable[[FloatArray, float], ErrorPoint],
    weights: FloatArray,
    regularization: float,
    *,
    pull: float,
    n_samples: float,
    learns_regularization: bool = False,
    max_evaluations: int = 60,
    worthwhile: float = 1e-5,
    monitor: Callable[[float, FloatArray], None] | None = None,
) -> tuple[FloatArray, float]:
    """Minimise an error plus the pull over the simplex, and over log λ, by L-BFGS.

    Parameters
    ----------
    at : callable
        From weights and λ to the error and its derivatives.
    weights, regularization
        Where to start. The error is not convex: the start matters.
    pull, n_samples : float
        See `pull_to_equal`.
    learns_regularization : bool, default=False
        Whether λ is learned too. Else it stays as it is.
    max_evaluations : int, default=60
        The limit of evaluations; those of the leave-one-out error cost about eight factorisations.
    worthwhile : float, default=1e-5
        The relative decrease below which a step is not worth its evaluations.
    monitor : callable, optional
        Called with the value and the weights of every evaluation.

    Returns
    -------
    weights, regularization
        Weights of less than a thousandth are 0.
    """
    p, units = len(weights), dict[str, float]()

    def value_and_gradient(z: FloatArray) -> tuple[float, FloatArray]:
        w = np.maximum(softmax(z[:p]), _TINY)
        lam = float(np.exp(z[p])) if learns_regularization else regularization
        point = at(w, lam)
        value = point.value + pull_to_equal(w, pull, n_samples)
        by_w = point.by_weights + pull / n_samples * (np.log(w * p) + 1.0)
        if monitor is not None:
            monitor(value, w)
        gradient = w * (by_w - w @ by_w)
        if learns_regularization:
            gradient = np.append(gradient, point.by_regularization * lam)
        # In units of the first value: the tolerance of L-BFGS-B is absolute for values below 1.
        unit = units.setdefault("value", value)
        return value / unit, gradient / unit

    start = np.log(np.maximum(weights, _NEGLIGIBLE / p))
    # No bounds on the weights: where all variables have bounds, the first step of L-BFGS-B is the
    # gradient itself, so short that the descent takes it for its end.
    bounds: list[Any] = [(None, None)] * p
    if learns_regularization:
        start, bounds = np.append(start, np.log(regularization)), [*bounds, np.log(_LAMBDA_BOUNDS)]
    result = minimize(
        value_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxfun": max_evaluations, "ftol": worthwhile},
    )
    found = softmax(result.x[:p])
    found = normalize(np.where(found < _NEGLIGIBLE, 0.0, found))
    return found, float(np.exp(result.x[p])) if learns_regularization else regularization
