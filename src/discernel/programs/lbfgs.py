"""Weights and λ with the least leave-one-out error, pulled towards equal weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from discernel.arrays import FloatArray
from discernel.bank import Bank
from discernel.programs.lambdas import NEAR_LEAST, search_lambda
from discernel.programs.least_squares import KernelLeastSquares
from discernel.programs.loo import LeaveOneOutError
from discernel.programs.simplex import normalize
from discernel.targets import Target

__all__ = [
    "LooSolution",
    "choose_regularization",
    "leave_one_out_error",
    "minimize_leave_one_out",
    "pull_to_equal",
]

#: λ that the descent may reach.
_LAMBDA_BOUNDS = (1e-7, 10.0)
#: Softmax weights never vanish: what is below this share is rounded to 0.
_NEGLIGIBLE = 1e-3
#: Relative decrease below which a step is not worth its eight factorisations.
_WORTHWHILE = 1e-5


@dataclass(frozen=True)
class LooSolution:
    """What was found: weights, λ, the leave-one-out error there, and how."""

    weights: FloatArray
    regularization: float
    error: float
    n_evaluations: int
    converged: bool


def leave_one_out_error(
    bank: Bank, target: Target, weights: FloatArray, regularization: float
) -> float:
    """Return the mean squared leave-one-out error; about two factorisations."""
    ridge = np.full(bank.n_samples, regularization)
    system = bank.system(weights, ridge)
    fit = KernelLeastSquares(system, ridge, target.scores, target.sample_weights)
    return fit.leave_one_out_error()


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
    system = bank.systems(weights)

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


def minimize_leave_one_out(
    bank: Bank,
    target: Target,
    *,
    pull: float,
    weights: FloatArray,
    regularization: float,
    fixed_regularization: bool = False,
    max_evaluations: int = 60,
    monitor: Callable[[float, FloatArray], None] | None = None,
) -> LooSolution:
    """Minimise the leave-one-out error plus the pull over the simplex and log λ, by L-BFGS.

    Parameters
    ----------
    bank, target
        The kernels, normalised to centred trace 1, and the classes.
    pull : float
        See `discernel.criteria.LeaveOneOut`.
    weights, regularization
        Where to start. The error is not convex: the start matters.
    fixed_regularization : bool, default=False
        Whether λ stays as it is.
    max_evaluations : int, default=60
        The limit of evaluations, of about eight factorisations each.
    monitor : callable, optional
        Called with the value and the weights of every evaluation.
    """
    criterion, p = LeaveOneOutError(bank, target), bank.n_kernels
    units: dict[str, float] = {}

    def value_and_gradient(z: FloatArray) -> tuple[float, FloatArray]:
        w, lam = np.maximum(softmax(z[:p]), 1e-300), float(np.exp(z[p]))
        point = criterion.at(w, lam)
        value = point.value + pull_to_equal(w, pull, bank.effective)
        by_w = point.by_weights + pull / bank.effective * (np.log(w * p) + 1.0)
        if monitor is not None:
            monitor(value, w)
        by_log_lambda = 0.0 if fixed_regularization else point.by_regularization * lam
        # In units of the first value: the tolerance of L-BFGS-B is absolute for values below 1.
        unit = units.setdefault("value", value)
        return value / unit, np.append(w * (by_w - w @ by_w), by_log_lambda) / unit

    low, high = (regularization, regularization) if fixed_regularization else _LAMBDA_BOUNDS
    start = np.append(np.log(np.maximum(weights, _NEGLIGIBLE / p)), np.log(regularization))
    result = minimize(
        value_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        # No bounds on the weights: where all variables have bounds, the first step of L-BFGS-B is
        # the gradient itself, so short that the descent takes it for its end.
        bounds=[(None, None)] * p + [(np.log(low), np.log(high))],
        options={"maxfun": max_evaluations, "ftol": _WORTHWHILE},
    )
    found = softmax(result.x[:p])
    found = normalize(np.where(found < _NEGLIGIBLE, 0.0, found))
    lam = regularization if fixed_regularization else float(np.exp(result.x[p]))
    error = leave_one_out_error(bank, target, found, lam)
    return LooSolution(found, lam, error, int(result.nfev), bool(result.success))
