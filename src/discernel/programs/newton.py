"""Newton's method on the simplex: the default solver of `rkda` and `fdr`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discernel.arrays import FloatArray
from discernel.programs.base import Point, offers
from discernel.programs.norms import LogPath
from discernel.programs.simplex import minimize_quadratic, uniform
from discernel.programs.solution import Solution, Status, Task

#: Proximal weight, relative to the mean curvature. It makes the step unique if kernels are
#: duplicates, and is too small to slow the quadratic convergence down.
_PROXIMAL = 1e-9
#: Lower limit of the mean curvature, relative to the range of the gradient.
_LEAST_CURVATURE = 1e-6
_SUFFICIENT_DECREASE = 1e-4
_SMALLEST_STEP = 1e-8
#: Relative rounding error of a value: smaller differences are meaningless.
_NOISE = 1e-13


@dataclass(frozen=True)
class Newton:
    """Minimize a smooth convex criterion over the simplex by exact Newton steps.

    Each step minimizes the second-order model over the simplex (a quadratic program in
    n_kernels variables) and is shortened until the criterion decreases sufficiently. For weights
    with another norm, ``RKDA(norm=2)``, steps are those of the logarithms of the weights.

    Notes
    -----
    A step takes one factorization of size n_samples and n_kernels · (n_classes − 1) triangular
    solves. About 5 to 9 steps reach a relative gap of 1e-8; with a norm of at least 1.1, about 1 to
    5 reach 1e-6.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.solvers import Newton
    >>> learned = learn_kernel(
    ...     grams, y[::3], criterion="rkda", solver=Newton(), regularization=0.01
    ... )
    >>> learned.solver, learned.status.value
    ('newton', 'converged')
    """

    name: ClassVar[str] = "newton"
    needs: ClassVar[tuple[str, ...]] = ("at",)

    def solve(self, program: Any, task: Task) -> Solution:
        max_iter = 100 if task.max_iter is None else task.max_iter
        start = uniform(program.n_weights) if task.init is None else task.init
        point: Point = program.at(start)
        bound = -np.inf
        for iteration in range(max_iter + 1):
            bound = max(bound, point.bound)
            solution = Solution.at(point, bound, Status.CONVERGED, iteration)
            task.monitor(iteration, point.value, solution.gap, point.weights)
            if solution.gap <= task.tol:
                return solution
            if iteration == max_iter:
                break
            following = self._step(program, point)
            if following is None:
                return Solution.at(point, bound, Status.STALLED, iteration)
            # The gap is of first order in the distance to the optimum, the value of second order.
            # Steps reduce the gap long after the value stopped decreasing in floating point.
            decreases = following.value < point.value - _NOISE * abs(point.value)
            if not (decreases or following.gap < point.gap):
                return Solution.at(point, bound, Status.STALLED, iteration)
            point = following
        return Solution.at(point, bound, Status.MAX_ITERATIONS, max_iter)

    @staticmethod
    def _step(program: Any, point: Point) -> Point | None:
        """Return the next point, or None if no step along the direction is good enough."""
        noise = _NOISE * abs(point.value)
        for path in newton_paths(program, point):
            slope, step = path.slope, 1.0
            while slope < noise and step >= path.least:
                trial: Point = program.at(path.at(step))
                enough = _SUFFICIENT_DECREASE * step * min(slope, 0.0) + noise
                if trial.value <= point.value + enough:
                    return trial
                step /= 2.0
        return None


@dataclass(frozen=True, eq=False)
class Segment:
    """The line to the weights that minimize the second-order model over the simplex.

    Attributes
    ----------
    least : float
        The smallest step that is tried.
    weights, target : ndarray of shape (n_weights,)
        The weights at step 0 and at step 1.
    slope : float
        The derivative of the value by the step, at step 0.
    """

    least: ClassVar[float] = _SMALLEST_STEP
    weights: FloatArray
    target: FloatArray
    slope: float

    def at(self, step: float) -> FloatArray:
        """Return the weights after a step of at most 1."""
        if step == 1.0:
            return self.target
        return self.weights + step * (self.target - self.weights)


def newton_paths(program: Any, point: Point) -> Iterator[Segment | LogPath]:
    """Yield the paths of a step, best first: those of the program, or a line in the simplex."""
    if offers(program, "paths"):
        yield from program.paths(point)
        return
    weights, target = point.weights, newton_target(point)
    yield Segment(weights, target, float(point.gradient @ (target - weights)))


def newton_target(point: Point) -> FloatArray:
    """Return the weights that minimize the second-order model of the criterion at a point."""
    weights, gradient, hessian = point.weights, point.gradient, point.hessian
    # A tiny curvature is a rounding error: the model is then almost linear.
    least, digits = _LEAST_CURVATURE * float(np.ptp(gradient)), np.finfo(np.float64)
    rounding = max(float(digits.eps * np.abs(hessian).max()), float(digits.tiny))
    curvature = max(float(np.trace(hessian)) / len(weights), least, rounding)
    model = _definite(hessian / curvature)
    return minimize_quadratic(gradient / curvature - model @ weights, model, weights)


def _definite(model: FloatArray) -> FloatArray:
    """Return a positive definite matrix: the model plus a multiple of the identity."""
    shifted = model + _PROXIMAL * np.eye(len(model))
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        shifted += max(0.0, -2.0 * float(np.linalg.eigvalsh(model)[0])) * np.eye(len(model))
    return shifted
