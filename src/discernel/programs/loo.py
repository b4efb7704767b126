"""The leave-one-out error as a function of the weights and λ, its gradient and its minimization.

With N = λI + G̃(w), Q = N⁻¹ − N⁻¹11ᵀN⁻¹/(1ᵀN⁻¹1) and the class scores T, the leave-one-out error of
row i is e_i = (QT)_i/Q_ii. The mean of ‖e_i‖² is smooth in (w, λ), but not convex. Its gradient for
all kernels costs one additional product of size n_samples:

    ∂/∂w_i = ⟨K_i, S⟩,  ∂/∂λ = tr S,  S = Q diag(2‖e_i‖²/Q_ii) Q − sym(Q(2e_i/Q_ii) (QT)ᵀ),

up to the factor of the mean.

If rows have groups, the error of the rows S of a group is E_S = (Q_SS)⁻¹(QT)_S instead.

With sample weights, T is √ω times the scores, √ω replaces the ones, and e_i is √ω_i times the
error.

`minimize_error` minimizes this error plus a penalty on unequal weights, by L-BFGS over the
logarithms of the weights and of λ. `choose_regularization` chooses λ for given weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from discernel.arrays import FloatArray
from discernel.bank import Bank, System
from discernel.exceptions import check_number
from discernel.programs.base import Criterion, Program
from discernel.programs.lambdas import NEAR_LEAST, search_lambda
from discernel.programs.least_squares import KernelLeastSquares, solve_groups
from discernel.programs.simplex import normalize
from discernel.targets import Target


@dataclass(frozen=True, eq=False)
class ErrorPoint:
    """A prediction error and its derivatives at some weights and λ.

    Attributes
    ----------
    value : float
        The error.
    by_weights : ndarray of shape (n_kernels,)
        The derivatives by the kernel weights.
    by_regularization : float
        The derivative by λ; 0 if λ is given.
    """

    value: float
    by_weights: FloatArray
    by_regularization: float = 0.0


@dataclass(frozen=True, eq=False)
class LeaveOneOutProgram(Program):
    """The leave-one-out error as a function of the weights and λ.

    Attributes
    ----------
    bank, target
        The kernels, normalized to centred trace 1, and the target.
    pull : float
        As in `LeaveOneOut`.
    regularization : float or None
        λ; None if it is to be chosen.
    """

    bank: Bank
    target: Target
    pull: float = 0.0
    regularization: float | None = None

    def error(self, weights: FloatArray, regularization: float) -> ErrorPoint:
        """Return the mean squared leave-one-out error of the class scores, and its gradient.

        It takes the time of about eight factorizations of size n_samples.
        """
        T, roots = self.target.scores, self.bank.row_weights.roots
        inverse = self.bank.inverse(weights, regularization)
        # N⁻¹1 = 1/λ if G̃1 = 0, but this holds up to rounding only, and λ may be that small.
        s = inverse.solve(roots[:, None])
        total = float(roots @ s[:, 0])

        def project(right: FloatArray) -> FloatArray:  # Q times
            return np.asarray(inverse.solve(right) - s * ((s.T @ right) / total))

        QT = project(T)
        if self.target.groups is not None:
            return self._group_error(inverse, project, QT, s, total)
        diagonal = inverse.inverse_diagonal() - s[:, 0] ** 2 / total
        errors = QT / diagonal[:, None]
        influence = project(2.0 * errors / diagonal[:, None])
        leverage = 2.0 * np.einsum("ij,ij->i", errors, errors) / diagonal
        size = self.bank.total * errors.shape[1]
        # Q diag(v) Q = N⁻¹ diag(v) N⁻¹ − (usᵀ + suᵀ)/σ + (sᵀ diag(v) s/σ²) ssᵀ, u = N⁻¹(v∘s).
        u = inverse.solve(leverage[:, None] * s)
        twice = 2.0 * u / total - (float(leverage @ s[:, 0] ** 2) / total**2) * s
        by_weights, by_regularization = inverse.inner(
            leverage, np.hstack([influence, twice]), np.hstack([QT, s]), 1.0 / size
        )
        return ErrorPoint(float(np.sum(errors**2)) / size, by_weights, by_regularization)

    def _group_error(
        self,
        inverse: System,
        project: Callable[[FloatArray], FloatArray],
        QT: FloatArray,
        s: FloatArray,
        total: float,
    ) -> ErrorPoint:
        """Return the mean squared leave-one-group-out error, and its gradient.

        With F_S = (Q_SS)⁻¹E_S, S = 2Σ_S sym(Q_:S F_S (Q_:S E_S)ᵀ) − 2 sym(QF (QT)ᵀ), where columns
        of QF and QE with one group each replace the diagonal of single rows.
        """
        groups = self.target.groups
        assert groups is not None
        errors = solve_groups(inverse, groups, s[:, 0], total, QT)
        twice = 2.0 * solve_groups(inverse, groups, s[:, 0], total, errors)
        size = self.bank.total * errors.shape[1]

        def apart(columns: FloatArray) -> FloatArray:  # Q times, one column per group and target
            out = np.zeros((len(columns), len(groups), columns.shape[1]))
            out[np.arange(len(columns)), groups.numbers] = columns
            return project(out.reshape(len(columns), -1))

        by_weights, by_regularization = inverse.inner(
            np.zeros(len(errors)),
            np.hstack([project(twice), -apart(twice)]),
            np.hstack([QT, apart(errors)]),
            1.0 / size,
        )
        return ErrorPoint(float(np.sum(errors**2)) / size, by_weights, by_regularization)


@dataclass(frozen=True)
class LeaveOneOut(Criterion):
    """Mean squared leave-one-out error, with a penalty on unequal weights.

    Parameters
    ----------
    pull : float, default=5.0
        Factor of the penalty (pull / n_samples) · KL(weights ‖ equal weights). Many weights on few
        samples can overfit the leave-one-out error itself, which the penalty prevents. It decreases
        with the number of samples; with sample weights, with their effective number.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.criteria import LeaveOneOut
    >>> learned = learn_kernel(grams, y[::3], criterion=LeaveOneOut())
    >>> learned.criterion, learned.gap is None
    ('loo', True)
    """

    pull: float = 5.0
    name: ClassVar[str] = "loo"
    solvers: ClassVar[tuple[str, ...]] = ("lbfgs",)
    regularization_is: ClassVar[Literal["learned"]] = "learned"
    weighs_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(f"pull of {type(self).__name__}", self.pull)

    def program(
        self, bank: Bank, target: Target, regularization: float | None
    ) -> LeaveOneOutProgram:
        return LeaveOneOutProgram(bank, target, self.pull, regularization)


@dataclass(frozen=True)
class Auto(LeaveOneOut):
    """The candidate that predicts held-out samples best.

    The candidates are the plain average, the best single kernel, `RKDA` with several amounts of
    shrinkage, and `LeaveOneOut`. The one with the smallest leave-one-out error plus pull is chosen.

    Parameters
    ----------
    pull : float, default=5.0
        As in `LeaveOneOut`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.criteria import Auto
    >>> learned = learn_kernel(grams, y[::3], criterion=Auto())
    >>> learned.criterion, learned.gap is None
    ('auto', True)
    """

    name: ClassVar[str] = "auto"
    solvers: ClassVar[tuple[str, ...]] = ("search",)


# ---- minimization ------------------------------------------------------------------------------

#: Bounds of λ in the minimization.
LAMBDA_BOUNDS = (1e-7, 10.0)
#: Softmax weights are never 0: weights below this share are rounded to 0.
NEGLIGIBLE = 1e-3
#: Lower limit of weights before taking their logarithm.
TINY = 1e-30


def choose_regularization(
    bank: Bank,
    target: Target,
    weights: FloatArray,
    regularizations: Sequence[float],
    start: float | None = None,
) -> tuple[float, float]:
    """Return the λ with the smallest leave-one-out error for given weights, and the error.

    Parameters
    ----------
    bank, target, weights
        Kernels, target and kernel weights of the fits.
    regularizations : sequence of float
        Candidates for λ, in decreasing order. The largest λ within 1 % of the smallest error is
        chosen.
    start : float, optional
        One of these λ that was good for other weights. The error mostly has one minimum, and the
        search descends from this λ without trying all others. By default all λ are tried.
    """
    # The system of a single λ is mostly cached, or needed again.
    is_one = len(regularizations) == 1
    system = partial(bank.system, weights) if is_one else bank.systems(weights)

    def error(lam: float) -> float:
        return KernelLeastSquares.of(system(lam), lam, target).leave_one_out_error()

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
    """Minimize an error plus the pull over the simplex, and over log λ, by L-BFGS.

    Parameters
    ----------
    at : callable
        Returns the error and its derivatives at weights and λ.
    weights, regularization
        The initial point. The error is not convex, so the result depends on it.
    pull, n_samples : float
        See `pull_to_equal`.
    learns_regularization : bool, default=False
        Whether λ is learned too; otherwise it is fixed.
    max_evaluations : int, default=60
        Maximum number of evaluations. An evaluation of the leave-one-out error takes the time of
        about eight factorizations.
    worthwhile : float, default=1e-5
        The relative decrease below which the minimization stops.
    monitor : callable, optional
        Called with value and weights of every evaluation.

    Returns
    -------
    weights, regularization
        Weights below 0.001 are set to 0.
    """
    p, units = len(weights), dict[str, float]()

    def value_and_gradient(z: FloatArray) -> tuple[float, FloatArray]:
        w = np.maximum(softmax(z[:p]), TINY)
        lam = float(np.exp(z[p])) if learns_regularization else regularization
        point = at(w, lam)
        value = point.value + pull_to_equal(w, pull, n_samples)
        by_w = point.by_weights + pull / n_samples * (np.log(w * p) + 1.0)
        if monitor is not None:
            monitor(value, w)
        gradient = w * (by_w - w @ by_w)
        if learns_regularization:
            gradient = np.append(gradient, point.by_regularization * lam)
        # Relative to the first value: the tolerance of L-BFGS-B is absolute for values below 1.
        unit = units.setdefault("value", value)
        return value / unit, gradient / unit

    start = np.log(np.maximum(weights, NEGLIGIBLE / p))
    # No bounds on the weights: if all variables had bounds, the first step of L-BFGS-B would be the
    # gradient itself, which is so short that the minimization would stop.
    bounds: list[Any] = [(None, None)] * p
    if learns_regularization:
        start, bounds = np.append(start, np.log(regularization)), [*bounds, np.log(LAMBDA_BOUNDS)]
    result = minimize(
        value_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxfun": max_evaluations, "ftol": worthwhile},
    )
    found = softmax(result.x[:p])
    found = normalize(np.where(found < NEGLIGIBLE, 0.0, found))
    return found, float(np.exp(result.x[p])) if learns_regularization else regularization
