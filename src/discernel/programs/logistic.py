"""Multinomial logistic regression in a space of functions.

One minimiser serves two models: kernel logistic regression, with a kernel between all training
rows, and the logistic link from scores to probabilities, whose kernel has few features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from discernel.arrays import Cholesky, FloatArray

#: From q to (vK + ρI)⁻¹q.
Solve = Callable[[FloatArray], FloatArray]

#: Steps that the approximate Hessian is made of.
_MEMORY = 10
#: Steps at most; 10 to 40 are usual.
_MOST_STEPS = 200
#: The least mean variance of class indicators that is assumed.
_LEAST_VARIANCE = 0.05
#: The share of the decrease that the slope promises that a step must reach.
_SUFFICIENT = 1e-4
#: No step is shorter.
_LEAST_STEP = 1e-8


@dataclass(frozen=True)
class LogisticFit:
    """A function f̂ + b that minimises Σ_i ω_i ℓ_i + ½ λ‖f̂‖², ℓ the multinomial log-loss.

    Attributes
    ----------
    coef : ndarray of shape (n_rows, n_classes)
        The expansion of f̂ in the rows, divided by √ω.
    mapped : ndarray of shape (n_rows, n_classes)
        f̂ at the rows, times √ω: the kernel, times √ω on both sides, times ``coef``.
    intercept : ndarray of shape (n_classes,)
        b, which is not penalised.
    converged : bool
        Whether a further step would decrease the objective by less than the tolerance.
    """

    coef: FloatArray
    mapped: FloatArray
    intercept: FloatArray
    converged: bool = True


class Preconditioner(NamedTuple):
    """(vK + ρI)⁻¹ of a kernel K between rows, times √ω on both sides."""

    solve: Solve
    variance: float
    ridge: float


def kernel_preconditioner(kernel: FloatArray, variance: float, ridge: float) -> Preconditioner:
    """Return the preconditioner of a kernel matrix, factored."""
    system = variance * kernel
    system[np.diag_indices(len(system))] += ridge
    return Preconditioner(Cholesky(system).solve, variance, ridge)


def feature_preconditioner(features: FloatArray, variance: float, ridge: float) -> Preconditioner:
    """Return the preconditioner of the kernel ΦΦᵀ of features Φ, by Woodbury's identity."""
    small = features.T @ features
    small[np.diag_indices(len(small))] += ridge / variance
    factor = Cholesky(small)

    def solve(right: FloatArray) -> FloatArray:
        return (right - features @ factor.solve(features.T @ right)) / ridge

    return Preconditioner(solve, variance, ridge)


@dataclass(frozen=True)
class LogisticProblem:
    """Rows with classes, to be fitted by `LogisticFit` for one or several λ.

    Attributes
    ----------
    codes : ndarray of shape (n_rows,)
        The class of each row.
    n_classes : int
        The number of classes.
    weights : ndarray of shape (n_rows,)
        ω, how much each row counts.
    offset : ndarray of shape (n_rows, n_classes) or None
        Logits that f̂ is added to in place of b; None: b is fitted.
    """

    codes: NDArray[np.intp]
    n_classes: int
    weights: FloatArray
    offset: FloatArray | None = None

    @property
    def shares(self) -> FloatArray:
        """The weight of each class, as a share of all."""
        sizes = np.bincount(self.codes, self.weights, self.n_classes)
        return np.asarray(sizes / sizes.sum())

    @property
    def variance(self) -> float:
        """The mean variance of the class indicators, before anything is fitted."""
        spread = 1.0 - float(np.sum(self.shares**2))
        return max(_LEAST_VARIANCE, spread / (self.n_classes - 1))

    def start(self) -> LogisticFit:
        """Return f̂ = 0, with the b that fits it best."""
        zeros = np.zeros((len(self.codes), self.n_classes))
        if self.offset is not None:
            return LogisticFit(zeros, zeros, np.zeros(self.n_classes))
        logits = np.log(np.maximum(self.shares, 1.0 / (2.0 * self.weights.sum())))
        return LogisticFit(zeros, zeros, logits - logits.mean())

    def minimize(
        self,
        preconditioner: Preconditioner,
        regularization: float,
        *,
        tol: float = 1e-10,
    ) -> LogisticFit:
        """Return the fit for one λ.

        Parameters
        ----------
        preconditioner : Preconditioner
            That of the kernel, with a ridge near λ.
        regularization : float
            λ.
        tol : float, default=1e-10
            The least decrease, relative to the weight of all rows, that a step is taken for.

        Notes
        -----
        With K the kernel times √ω on both sides, a the coefficients and P the probabilities, the
        gradient in the inner product ⟨a, c⟩ = aᵀKc is √ω(P − Y) + λa: it takes no product with K.
        L-BFGS in this inner product starts from (vK + ρI)⁻¹. For r = (vK + ρI)⁻¹q the product
        Kr = (q − ρr)/v is known too, so that a step takes one solve and the objective along it
        none.
        """
        point = _Point.of(self, regularization, self.start())
        pairs: list[_Pair] = []
        least = tol * float(self.weights.sum())
        for _ in range(_MOST_STEPS):
            step = _direction(point, pairs, preconditioner, float(self.weights.sum()))
            slope = point.slope(step)
            if -slope < 2.0 * least:
                return point.fit
            after = _line_search(point, step, slope)
            if after is None:
                return point.fit
            pairs = [*pairs[1 - _MEMORY :], *_Pair.between(point, after)]
            point = after
        return LogisticFit(point.fit.coef, point.fit.mapped, point.fit.intercept, converged=False)


class _Step(NamedTuple):
    """Changes of the coefficients, of the kernel times these, and of the intercept."""

    coef: FloatArray
    mapped: FloatArray
    intercept: FloatArray


class _Point(NamedTuple):
    """A fit with its objective and gradient."""

    problem: LogisticProblem
    regularization: float
    fit: LogisticFit
    value: float
    gradient: FloatArray
    intercept_gradient: FloatArray

    @classmethod
    def of(cls, problem: LogisticProblem, regularization: float, fit: LogisticFit) -> _Point:
        """Return the point of a fit."""
        roots, rows = np.sqrt(problem.weights)[:, None], np.arange(len(problem.codes))
        logits = fit.mapped / roots + fit.intercept
        if problem.offset is not None:
            logits += problem.offset
        told = log_softmax(logits, axis=1)
        value = -float(problem.weights @ told[rows, problem.codes])
        value += 0.5 * regularization * float(np.sum(fit.coef * fit.mapped))
        residuals = np.exp(told)
        residuals[rows, problem.codes] -= 1.0
        residuals *= roots
        shift = (roots.T @ residuals)[0] if problem.offset is None else np.zeros(told.shape[1])
        gradient = residuals + regularization * fit.coef
        return cls(problem, regularization, fit, value, gradient, shift)

    def slope(self, step: _Step) -> float:
        """Return the derivative of the objective along a step."""
        along = float(np.sum(step.mapped * self.gradient))
        return along + float(step.intercept @ self.intercept_gradient)

    def after(self, step: _Step, length: float) -> _Point:
        """Return the point after a share of a step."""
        fit = LogisticFit(
            self.fit.coef + length * step.coef,
            self.fit.mapped + length * step.mapped,
            self.fit.intercept + length * step.intercept,
        )
        return _Point.of(self.problem, self.regularization, fit)


class _Pair(NamedTuple):
    """A step and the change of the gradient along it, divided by their inner product."""

    step: _Step
    change: FloatArray
    intercept_change: FloatArray
    inverse: float

    @classmethod
    def between(cls, before: _Point, after: _Point) -> list[_Pair]:
        """Return the pair of two points; none where the objective is not seen to be convex."""
        step = _Step(
            after.fit.coef - before.fit.coef,
            after.fit.mapped - before.fit.mapped,
            after.fit.intercept - before.fit.intercept,
        )
        change = after.gradient - before.gradient
        shift = after.intercept_gradient - before.intercept_gradient
        curvature = float(np.sum(step.mapped * change)) + float(step.intercept @ shift)
        return [cls(step, change, shift, 1.0 / curvature)] if curvature > 0 else []


def _direction(
    point: _Point, pairs: list[_Pair], preconditioner: Preconditioner, total: float
) -> _Step:
    """Return the step of L-BFGS, in the inner product of the kernel."""
    right, shift = point.gradient.copy(), point.intercept_gradient.copy()
    factors = []
    for step, change, shift_change, inverse in reversed(pairs):
        factor = inverse * (float(np.sum(step.mapped * right)) + float(step.intercept @ shift))
        right -= factor * change
        shift -= factor * shift_change
        factors.append(factor)
    solve, variance, ridge = preconditioner
    coef = solve(right)
    mapped, shift = (right - ridge * coef) / variance, shift / (variance * total)
    for (step, change, shift_change, inverse), factor in zip(pairs, reversed(factors), strict=True):
        factor -= inverse * (float(np.sum(mapped * change)) + float(shift @ shift_change))
        coef += factor * step.coef
        mapped += factor * step.mapped
        shift += factor * step.intercept
    return _Step(-coef, -mapped, -shift)


def _line_search(point: _Point, step: _Step, slope: float) -> _Point | None:
    """Return the point after a step that decreases the objective enough; None where none does."""
    length = 1.0
    while length > _LEAST_STEP:
        with np.errstate(over="ignore", invalid="ignore"):  # too long a step is halved
            after = point.after(step, length)
        if after.value <= point.value + _SUFFICIENT * length * slope:
            return after
        length /= 2.0
    return None  # rounding errors are larger than what is left to gain
