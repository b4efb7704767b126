"""Kernel logistic regression: multinomial, with an intercept and weights of rows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import ALMOST_ZERO, Cholesky, FloatArray, inner, matmul
from discernel.exceptions import NumericalError

#: Steps of Newton's method at most, 5 to 15 are usual, and of conjugate gradients in each.
_MOST_STEPS, _MOST_INNER = 100, 200
#: The share of the residual that is left of a Newton system: far from the optimum, and near it; no
#: less than the root of so many times the tolerance.
_ROUGH, _FINE, _TOLERANCES = 0.3, 1e-2, 10.0
#: Steps of conjugate gradients in one of Newton's, after which the next has a new preconditioner:
#: with up to 2,000 rows, its factorization takes the time of about ten of them.
_MANY_INNER = 6
#: The least variance of class indicators of a row that the preconditioner assumes.
_LEAST_VARIANCE = 1e-5
#: The share of the decrease that the slope promises that a step must reach.
_SUFFICIENT = 1e-4
#: What is added to the diagonal of the kernel, relative to its mean: coefficients along which a
#: singular kernel is 0 would not be seen by conjugate gradients, and grow without bound.
_NUGGET = 1e-9
#: Preconditioners of single precision have two digits left for a λ above this share of the trace of
#: their matrix; and are enough for this tolerance.
_SINGLE, _SINGLE_TOL = 1e-5, 1e-6
#: Fewer rows are factored in double precision, which costs little there: results then depend less
#: on rounding errors of the kernel.
_SINGLE_ROWS = 1000
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
    Hessian itself. It takes one Cholesky factorization, of single precision unless λ is too small,
    and serves all steps until conjugate gradients are slow: these solve the systems of the Hessian
    whatever the preconditioner is.
    """

    kernel: FloatArray
    codes: NDArray[np.intp]
    n_classes: int
    weights: FloatArray

    @cached_property
    def nugget(self) -> float:
        """The number that is added to the diagonal of the kernel."""
        return _NUGGET * float(np.trace(self.kernel)) / len(self.kernel)

    @cached_property
    def roots(self) -> FloatArray:
        """√ω, of shape (n_rows, 1)."""
        return np.sqrt(self.weights)[:, None]

    @cached_property
    def single(self) -> NDArray[np.float32]:
        """The kernel in single precision."""
        return self.kernel.astype(np.float32)

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
            The fit for another λ; by default, and where it is worse, f = 0.
        """
        starts = [self.start()] if start is None else [start, self.start()]
        points = [_Point.of(self, regularization, fit) for fit in starts]
        point, preconditioner = min(points, key=lambda one: one.value), None
        is_single = tol >= _SINGLE_TOL and len(self.codes) >= _SINGLE_ROWS
        fine = min(max(_FINE, float(np.sqrt(_TOLERANCES * tol))), _ROUGH)
        for _ in range(_MOST_STEPS):
            if preconditioner is None:
                preconditioner = _Preconditioner(point, is_single)
            step, n_inner = point.newton_step(preconditioner, fine)
            slope = step.along(point.gradient)
            after = point.search_line(step, slope)
            if after is None and not is_single:
                break  # rounding errors are larger than what is left to gain
            if after is None or n_inner > _MANY_INNER:
                preconditioner, is_single = None, is_single and after is not None
            if after is not None:
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
        roots, rows = problem.roots, np.arange(len(problem.codes))
        logits = fit.mapped / roots + fit.intercept
        logits -= logits.max(axis=1, keepdims=True)
        told = np.exp(logits)
        totals = told.sum(axis=1)
        told /= totals[:, None]
        value = float(problem.weights @ (np.log(totals) - logits[rows, problem.codes]))
        value += 0.5 * regularization * inner(fit.coef, fit.mapped)
        residuals = told.copy()
        residuals[rows, problem.codes] -= 1.0
        residuals *= roots
        gradient = _Gradient(residuals + regularization * fit.coef, (roots.T @ residuals)[0])
        return cls(problem, regularization, fit, told, value, gradient)

    def hessian(self, step: FloatArray) -> FloatArray:
        """Return the change of the gradient along a step, to first order.

        Both are stacked: the rows of coefficients, those at the rows and the intercept of a step;
        the rows and the intercept of a gradient.
        """
        roots, n = self.problem.roots, len(self.told)
        change = np.empty((n + 1, step.shape[1]))
        along = np.divide(step[n:-1], roots, out=change[:n])
        along += step[-1]
        along *= self.told
        along -= self.told * along.sum(axis=1, keepdims=True)
        along *= roots
        np.matmul(roots[:, 0], along, out=change[n])
        along += self.regularization * step[:n]
        return change

    def newton_step(self, preconditioner: _Preconditioner, fine: float) -> tuple[LogisticFit, int]:
        """Return Newton's step, by conjugate gradients, and the number of these.

        Near the optimum, a ``fine`` share of the residual is left.
        """
        n, left = len(self.told), -np.vstack(self.gradient)
        toward = preconditioner.solve(left)
        size = first = inner(toward[n:], left)
        step = np.zeros_like(toward)
        # Rounding errors of a kernel of single precision can make a value near 0 negative.
        share = max(first, 0.0) / max(self.value, ALMOST_ZERO)
        least = first * min(max(share**0.5, fine), _ROUGH) ** 2
        n_inner = 0
        while size > least and n_inner < _MOST_INNER:
            n_inner += 1
            curved = self.hessian(toward)
            curvature = inner(toward[n:], curved)
            if curvature <= 0.0:
                break  # rounding errors are larger than what is left to gain
            length = size / curvature
            step += length * toward
            left -= length * curved
            solved = preconditioner.solve(left)
            before, size = size, inner(solved[n:], left)
            toward *= size / before
            toward += solved
        # By the kernel itself: those of the preconditioner have gathered rounding errors.
        coef = step[:n]
        return LogisticFit(coef, self.problem.times_kernel(coef), step[-1]), n_inner

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

    def __init__(self, point: _Point, is_single: bool) -> None:
        problem, self._lam = point.problem, point.regularization
        spread = (1.0 - np.sum(point.told**2, axis=1)) / (problem.n_classes - 1)
        self._spread = np.maximum(spread, _LEAST_VARIANCE)[:, None]
        self._halves = np.sqrt(self._spread)
        self._roots = problem.roots[:, 0]
        self._factor = self._factored(problem, is_single)
        self._ones = self._solve_rows(self._spread * self._roots[:, None])
        self._total = self._lam * float(self._roots @ self._ones[:, 0])

    def _factored(self, problem: LogisticProblem, is_single: bool) -> Cholesky:
        """Return the factor of B, of single precision if wanted and λ is not too small."""
        size = float(self._spread[:, 0] @ np.diagonal(problem.kernel))
        if is_single and self._lam > _SINGLE * size:
            with suppress(NumericalError):  # its digits were too few
                return self._factor_of(problem.single, problem.nugget)
        return self._factor_of(problem.kernel, problem.nugget)

    def _factor_of(self, kernel: NDArray[Any], nugget: float) -> Cholesky:
        """Return the factor of B, of the precision of a kernel."""
        halves = self._halves.astype(kernel.dtype)
        system = kernel * halves
        system *= halves.T
        system.flat[:: len(system) + 1] += self._lam + nugget * self._spread[:, 0]
        return Cholesky(system)

    def _solve_rows(self, right: FloatArray) -> FloatArray:
        return np.asarray(self._halves * self._factor.solve(right / self._halves))

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the inverse times a gradient, both stacked as in `_Point.hessian`."""
        rows, n = right[:-1], len(right) - 1
        found = np.empty((2 * n + 1, right.shape[1]))
        coef, mapped, intercept = found[:n], found[n:-1], found[-1]
        coef[:] = self._solve_rows(rows)
        np.subtract(rows, self._lam * coef, out=mapped)
        intercept[:] = (right[-1] - self._roots @ mapped) / self._total
        coef -= self._ones * intercept
        np.subtract(rows, self._lam * coef, out=mapped)
        mapped /= self._spread
        mapped -= self._roots[:, None] * intercept
        return found
