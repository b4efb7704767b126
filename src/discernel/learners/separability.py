"""Class separability maximised over given kernels: in closed form, or as a ratio.

The closed form of Yeung, Chang and Dai (2006), and fractional programming, which they name as
future work.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from discernel.backend import FloatArray
from discernel.bank import Bank
from discernel.criteria.separability import (
    Scatter,
    bank_scatter,
    closed_form,
    critical_alpha,
    is_maximum,
    ratio,
)
from discernel.exceptions import ConvergenceWarning, InvalidInputError, check_number, unknown_choice
from discernel.learners.request import Request
from discernel.learners.simplex import normalize
from discernel.learners.solution import Status, Weighting
from discernel.targets import Target

__all__ = [
    "ALPHA",
    "Fractional",
    "Separability",
    "check_cap",
    "critical_factor",
    "dinkelbach",
    "quotient",
    "resolve_alpha",
    "weigh_by_separability",
]

#: The α of the paper.
ALPHA = 1e4


@dataclass(frozen=True)
class Separability:
    """How the class separability of a combination of kernels is maximised, [Yeung06]_.

    Parameters
    ----------
    method : {"closed_form", "dinkelbach"}, default="closed_form"
        ``"closed_form"`` is Eq. (16), the maximum of tr S_b − α tr S_w with weights μ² and 1ᵀμ
        given. ``"dinkelbach"`` is the largest tr S_b / tr S_w of all weights with an upper limit.
    alpha : float or str, default=1e4
        The α of ``"closed_form"``, positive. ``"2*critical"`` is twice the α above which the
        closed form is a maximum for certain: the nearer to it, the fewer kernels matter.
    cap : float, default=2.0
        ``"dinkelbach"`` gives a kernel at most this many times the weight it has in the plain
        average; at least 1, which is the plain average. Without a limit the best is one kernel.
    """

    method: Literal["closed_form", "dinkelbach"] = "closed_form"
    alpha: float | str = 1e4
    cap: float = 2.0
    name: ClassVar[str] = "separability"

    def __post_init__(self) -> None:
        known = ["closed_form", "dinkelbach"]
        if self.method not in known:
            raise unknown_choice("method of Separability", self.method, known)
        critical_factor(self.alpha)
        check_cap(self.cap)


def weigh_by_separability(bank: Bank, target: Target, request: Request) -> Weighting:
    """Return the weights of the largest class separability, [Yeung06]_.

    Parameters
    ----------
    bank : Bank
        The kernels.
    target : Target
        The classes.
    request : Request
        Its ``options`` are a `Separability`.

    Returns
    -------
    Weighting
        ``"closed_form"``: the weights are μ², scaled to sum to 1, and the objective is
        tr S_b − α tr S_w there. ``"dinkelbach"``: the objective is tr S_b / tr S_w.

    Warns
    -----
    ConvergenceWarning
        If the closed form is not a maximum.

    Notes
    -----
    One pass over the bank; the rest is n_kernels numbers.
    """
    options: Separability = request.options
    scatter, p = bank_scatter(bank, target), bank.n_kernels
    if options.method == "dinkelbach":
        found = dinkelbach(scatter, np.full(p, options.cap / p), 1.0)
        ratios = tuple(float(value) for value in found.ratios)
        return Weighting(found.weights, ratios[-1], Status.CONVERGED, len(ratios), ratios)
    alpha = float(resolve_alpha(options.alpha, scatter))
    weights = normalize(closed_form(scatter, alpha) ** 2)
    value = float(weights @ (scatter.between - alpha * scatter.within))
    maximal = is_maximum(scatter, alpha)
    if not maximal:
        warnings.warn(
            f"The closed form of class separability is not a maximum for alpha={alpha:g}: some "
            "kernels separate the classes too well for it. Raise alpha above the largest ratio, "
            f"{float(critical_alpha(scatter)):g}, or use method='dinkelbach'.",
            ConvergenceWarning,
            stacklevel=2,
        )
    status = Status.CONVERGED if maximal else Status.NO_CERTIFICATE
    return Weighting(weights, value, status, 1, (value,))


# ---- fractional programming ------------------------------------------------------------------


class Fractional(NamedTuple):
    """What `dinkelbach` returns.

    Attributes
    ----------
    weights : ndarray of shape (..., n_kernels)
        w.
    ratios : tuple of float or of ndarray
        tr S_b / tr S_w at the start and after each step, never falling.
    """

    weights: FloatArray
    ratios: tuple[Any, ...]


def dinkelbach(scatter: Scatter, caps: FloatArray, total: float | FloatArray) -> Fractional:
    """Maximise Σ w_r f_r / Σ w_r g_r over 0 ≤ w ≤ caps, Σ w = total, exactly ([Dinkelbach67]_).

    From the ratio q of the present weights to the weights with the largest Σ w_r (f_r − q g_r),
    until that is no larger than 0, which proves that no weights have a ratio above q.

    Parameters
    ----------
    scatter : Scatter
        f and g; axes before the last are problems of their own.
    caps : ndarray that broadcasts to f
        The upper limits, whose sum is at least ``total``.
    total : float or ndarray of shape (..., 1)
        What w sums to.

    Returns
    -------
    Fractional
        Weights and the path of ratios.

    Notes
    -----
    A step is a fractional knapsack: fill up from the largest f_r − q g_r down. Ratios rise
    strictly and there are finitely many orders to fill up in, so it ends; 3 to 8 steps were seen.
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
            return Fractional(weights, tuple(ratios))
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


# ---- the spectrum of one matrix --------------------------------------------------------------


def resolve_alpha(alpha: float | str, scatter: Scatter) -> FloatArray:
    """Return α as numbers, one a problem."""
    factor = critical_factor(alpha)
    critical = critical_alpha(scatter)
    if factor is None:
        return np.full_like(critical, float(alpha))
    # Where no direction has any scatter within classes, any α says the same.
    return np.where(critical > 0, factor * critical, 1.0)


def critical_factor(alpha: Any) -> float | None:
    """Return the factor of an α written ``"2*critical"``, None for a number; or raise."""
    if not isinstance(alpha, str):
        check_number("alpha of class separability", alpha, positive=True)
        return None
    factor, _, word = alpha.rpartition("*")
    try:
        value = float(factor)
    except ValueError:
        value = np.nan
    if word.strip() != "critical" or not 1 < value < np.inf:
        raise InvalidInputError(
            "The alpha of class separability must be a positive number or a multiple above 1 of "
            f"the critical one, such as '2*critical'. Got {alpha!r}."
        )
    return value


def check_cap(cap: Any) -> None:
    """Raise a clear error if the largest multiple of an average weight is not one."""
    if not (isinstance(cap, Real) and 1 <= float(cap) < np.inf):
        raise InvalidInputError(
            "The cap of class separability must be a finite number of at least 1, how many times "
            f"its plain weight a kernel may have. Got {cap!r}."
        )


def quotient(total: float | FloatArray, sums: FloatArray) -> FloatArray:
    """Return total/sums, and 0 where there is nothing to be scaled."""
    return np.divide(total, sums, out=np.zeros_like(sums), where=sums > 0)
