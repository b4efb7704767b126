"""Kernel logistic regression: multinomial, with an intercept and weights of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from discernel.arrays import Cholesky, FloatArray, inner, matmul

#: Steps of Newton's method at most, 5 to 15 are usual, and of conjugate gradients in each.
_MOST_STEPS, _MOST_INNER = 100, 200
#: The share of the residual that is left of a Newton system: far from the optimum, and near it.
_ROUGH, _FINE = 0.3, 1e-2
#: The relative decrease of the objective after which probabilities are so much like before that the
#: preconditioner stays.
_SAME = 1e-2
#: The least variance of class indicators of a row that the preconditioner assumes.
_LEAST_VARIANCE = 1e-5
#: The share of the decrease that the slope promises that a step must reach.
_SUFFICIENT = 1e-4
#: What is added to the diagonal of the kernel, relative to its mean: coefficients along which a
#: singular kernel is 0 would not be seen by conjugate gradients, and grow without bound.
_NUGGET = 1e-9
#: No step is shorter.
_LEAST_LENGTH = 1e-8


class LogisticFit(NamedTuple):
    """A function f + b that minimises Σ_i ω_i ℓ_i + ½ λ‖f‖², ℓ the multinomial log-loss.

    Attributes
    ----------
    coef : ndarray of shape (n_rows, n_classes)
        The expansion of f in the rows, divided by √ω.
    mapped : ndarray of shape (n_rows, n_classes)
        f at the rows, times √ω: the kernel, times √ω on both sides, times ``coef``.
    intercept : ndarray of shape (n_classes,)
        b, which is not penalised.
    """

    coef: FloatArray
    mapped: FloatArray
    intercept: FloatArray

    def plus(self, other: LogisticFit, factor: float) -> LogisticFit:
        """Return the sum with a multiple of another function."""
        pairs = zip(self, other, strict=True)
        return LogisticFit(*(mine + factor * theirs for mine, theirs in pairs))

    def along(self, gradient: _Gradient) -> float:
        """Return the inner product with a gradient."""
        return inner(self.mapped, gradient.rows) + inner(self.intercept, gradient.intercept)


class _Gradient(NamedTuple):
    """A gradient: that in the inner product αᵀKβ of coefficients, and that of the intercept."""

    rows: FloatArray
    intercept: FloatArray

    def plus(self, other: _Gradient, factor: float) -> _Gradient:
        """Return the sum with a multiple of another gradient."""
        return _Gradient(*(a + factor * b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True, eq=False)
class LogisticProblem:
    """Rows with classes and a kernel, to be fitted by `LogisticFit` for one or several λ.

    Attributes
    ----------
    kernel : ndarray of shape (n_rows, n_rows)
        K, times √ω on both sides; C-contiguous.
    codes : ndarray of shape (n_rows,)
        The class of each row.
    n_classes : int
        The number of classes.
    weights : ndarray of shape (n_rows,)
        ω, how much each row counts.

    Notes
    -----
    With K the kernel times √ω on both sides, a the coefficients and P the probabilities, the
    gradient in the inner product aᵀKc is √ω(P − Y) + λa, and the Hessian maps a change d of a, and
    e of b, to √ω W(Kd/√ω + 1eᵀ) + λd, where W multiplies row i by diag(p_i) − p_i p_iᵀ. Newton's
    method solves such systems by conjugate gradients. The preconditioner has w_i I in place of
    diag(p_i) − p_i p_iᵀ, with w_i = (1 − ‖p_i‖²)/(n_classes − 1): for two classes that is the
    Hessian itself. It takes one Cholesky factorization.
    """

    kernel: FloatArray
    codes: NDArray[np.intp]
    n_classes: int
    weights: FloatArray

    @cached_property
    def nugget(self) -> float:
        """The number that is added to the diagonal of the kernel."""
        return _NUGGET * float(np.trace(self.kernel)) / len(self.kernel)

    def times_kernel(self, coef: FloatArray) -> FloatArray:
        """Return the kernel times coefficients."""
        return np.asarray(matmul(self.kernel, coef) + self.nugget * coef)

    def start(self) -> LogisticFit:
        """Return f = 0, with the b that fits it best."""
        zeros, total = np.zeros((len(self.codes), self.n_classes)), float(self.weights.sum())
        shares = np.bincount(self.codes, self.weights, self.n_classes) / total
        logits = np.log(np.maximum(shares, 0.5 / total))
        return LogisticFit(zeros, zeros, logits - logits.mean())

    def minimize(
        self, regularization: float, *, tol: float, start: LogisticFit | None = None
    ) -> LogisticFit:
        """Return the fit for one λ.

        Parameters
        ----------
        regularization : float
            λ.
        tol : float
            Steps end with one that decreases the objective by a smaller share.
        start : LogisticFit, optional
            The fit for another λ; by default f = 0.
        """
        first = self.start() if start is None else start
        point, slope = _Point.of(self, regularization, first), -np.inf
        for _ in range(_MOST_STEPS):
            if -slope > _SAME * point.value:
                preconditioner = _Preconditioner(point)
            step = point.newton_step(preconditioner)
            slope = step.along(point.gradient)
            after = point.search_line(step, slope)
            if after is None:
                break  # rounding errors are larger than what is left to gain
            point = after
            if -slope < 2.0 * tol * point.value:
                break
        return point.fit


@dataclass(frozen=True, eq=False)
class _Point:
    """A fit with its probabilities, objective and gradient."""

    problem: LogisticProblem
    regularization: float
    fit: LogisticFit
    told: FloatArray
    value: float
    gradient: _Gradient

    @classmethod
    def of(cls, problem: LogisticProblem, regularization: float, fit: LogisticFit) -> _Point:
        """Return the point of a fit."""
        roots, rows = np.sqrt(problem.weights)[:, None], np.arange(len(problem.codes))
        logs = log_softmax(fit.mapped / roots + fit.intercept, axis=1)
        value = -float(problem.weights @ logs[rows, problem.codes])
        value += 0.5 * regularization * inner(fit.coef, fit.mapped)
        told = np.exp(logs)
        residuals = told.copy()
        residuals[rows, problem.codes] -= 1.0
        residuals *= roots
        gradient = _Gradient(residuals + regularization * fit.coef, (roots.T @ residuals)[0])
        return cls(problem, regularization, fit, told, value, gradient)

    def hessian(self, step: LogisticFit) -> _Gradient:
        """Return the change of the gradient along a step, to first order."""
        roots = np.sqrt(self.problem.weights)[:, None]
        along = self.told * (step.mapped / roots + step.intercept)
        along -= self.told * along.sum(axis=1, keepdims=True)
        along *= roots
        return _Gradient(along + self.regularization * step.coef, (roots.T @ along)[0])

    def newton_step(self, preconditioner: _Preconditioner) -> LogisticFit:
        """Return Newton's step, by conjugate gradients."""
        left = _Gradient(-self.gradient.rows, -self.gradient.intercept)
        toward = preconditioner.solve(left)
        size = first = toward.along(left)
        step = LogisticFit(*map(np.zeros_like, toward))
        least = first * np.clip(np.sqrt(max(first, 0.0) / self.value), _FINE, _ROUGH) ** 2
        for _ in range(_MOST_INNER):
            if size <= least:
                break
            curved = self.hessian(toward)
            length = size / toward.along(curved)
            step, left = step.plus(toward, length), left.plus(curved, -length)
            solved = preconditioner.solve(left)
            before, size = size, solved.along(left)
            toward = solved.plus(toward, size / before)
        # By the kernel itself: those of the preconditioner have gathered rounding errors.
        return step._replace(mapped=self.problem.times_kernel(step.coef))

    def search_line(self, step: LogisticFit, slope: float) -> _Point | None:
        """Return the point after a step that decreases the objective enough; None without one."""
        length = 1.0
        while length > _LEAST_LENGTH and slope < 0:
            with np.errstate(over="ignore", invalid="ignore"):  # too long a step is halved
                after = _Point.of(self.problem, self.regularization, self.fit.plus(step, length))
            if after.value <= self.value + _SUFFICIENT * length * slope:
                return after
            length /= 2.0
        return None


class _Preconditioner:
    """The Hessian of a point with w_i I in place of diag(p_i) − p_i p_iᵀ, factored.

    Notes
    -----
    With D = diag(w), r = √ω and B = D^½KD^½ + λI, (DK + λI)⁻¹ = D^½B⁻¹D^−½. The intercept e
    follows from D(Kd + reᵀ) + λd = q and rᵀD(Kd + reᵀ) = s, where the second is rᵀ(q − λd) = s,
    and Kd from the first, without a product.
    """

    def __init__(self, point: _Point) -> None:
        problem, self._lam = point.problem, point.regularization
        spread = (1.0 - np.sum(point.told**2, axis=1)) / (problem.n_classes - 1)
        self._halves = np.sqrt(np.maximum(spread, _LEAST_VARIANCE))[:, None]
        self._roots = np.sqrt(problem.weights)
        system = problem.kernel * self._halves
        system *= self._halves.T
        system[np.diag_indices_from(system)] += self._lam + problem.nugget * self._halves[:, 0] ** 2
        self._factor = Cholesky(system)
        self._ones = self._solve_rows(self._halves**2 * self._roots[:, None])
        self._total = self._lam * float(self._roots @ self._ones[:, 0])

    def _solve_rows(self, right: FloatArray) -> FloatArray:
        return np.asarray(self._halves * self._factor.solve(right / self._halves))

    def solve(self, right: _Gradient) -> LogisticFit:
        """Return the inverse times a gradient."""
        coef = self._solve_rows(right.rows)
        along = self._roots @ (self._lam * coef - right.rows)
        intercept = (right.intercept + along) / self._total
        coef -= self._ones * intercept
        mapped = (right.rows - self._lam * coef) / self._halves**2
        mapped -= self._roots[:, None] * intercept
        return LogisticFit(coef, mapped, intercept)
