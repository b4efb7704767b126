"""Minimise the criterion of a subspace that grows: the default for `rkda` on many samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from discernel.arrays import FloatArray, orthonormal, weighted_sum
from discernel.programs.base import relative_gap
from discernel.programs.newton import Newton, newton_target
from discernel.programs.simplex import uniform
from discernel.programs.solution import Solution, Status, Task

#: The share of a column that must be new for it to count.
_NEW = 1e-10
#: Rounds that may pass without a smaller gap.
_PATIENCE = 3


@dataclass(frozen=True)
class Galerkin:
    """Minimize `rkda` over the simplex by restricting it to growing subspaces.

    The criterion is the largest value of a quadratic form over dual points B. Over the B of a
    subspace it is the same criterion with small matrices, nowhere above, and Newton's method
    minimises it for next to nothing. The subspace is spanned by the optimal B of all weights so
    far and its derivatives there: the restricted criterion then agrees with the criterion in the
    value and the first three derivatives, where Newton's quadratic model agrees in two. And as it
    is a bound, so is its minimum: the weights found by one round are mostly certified by their
    value alone.

    Notes
    -----
    A round costs one factorisation of size n_samples and two passes over the kernels, the last
    one mostly no pass. Two or three rounds reach a relative gap of 1e-6, where Newton's method
    takes 4 to 9 steps. The restricted criterion is above every tangent so far, so this converges
    wherever `SILP` does.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.solvers import Galerkin
    >>> learned = learn_kernel(
    ...     grams, y[::3], criterion="rkda", solver=Galerkin(), regularization=0.01
    ... )
    >>> learned.solver, learned.status.value
    ('galerkin', 'converged')
    """

    name: ClassVar[str] = "galerkin"
    needs: ClassVar[tuple[str, ...]] = ("at", "near", "estimate", "restricted")

    def solve(self, program: Any, task: Task) -> Solution:
        max_iter = 100 if task.max_iter is None else task.max_iter
        weights = uniform(program.n_weights) if task.init is None else task.init
        best = Solution(weights, np.inf, -np.inf, Status.CONVERGED, 0)
        bound, least_gap, idle = -np.inf, np.inf, 0
        basis = np.empty((program.bank.n_samples, 0))
        for iteration in range(max_iter + 1):
            if iteration > 0:
                value, error = program.estimate(weights)
            if iteration == 0 or relative_gap(value, bound, error) > task.tol:
                # The first subspace need not be exact: what it bounds, it bounds.
                point = program.near(weights) if iteration == 0 else program.at(weights)
                value, error, bound = point.value, point.error, max(bound, point.bound)
            found = Solution(weights, value, bound, Status.CONVERGED, iteration, error=error)
            known = replace(best, bound=bound, n_iter=iteration)
            best = min(found, known, key=lambda solution: solution.gap)
            task.monitor(iteration, best.value, best.gap, best.weights)
            if best.gap <= task.tol:
                return best
            idle = 0 if best.gap < 0.9 * least_gap else idle + 1
            least_gap = min(least_gap, best.gap)
            if idle == _PATIENCE:
                return replace(best, status=Status.STALLED)
            if iteration < max_iter:
                basis = _extended(basis, point)
                del point  # and with it the memory of its factor
                inner = Task(1e-3 * task.tol, init=weights)
                model = Newton().solve(program.restricted(basis), inner)
                weights, bound = model.weights, max(bound, model.bound)
        return replace(best, status=Status.MAX_ITERATIONS)


def _extended(basis: FloatArray, point: Any) -> FloatArray:
    """Return the basis with B and its derivatives by the weights that matter, orthonormal.

    Those are the weights that a Newton step leaves positive; the others vanish together, along
    one direction.
    """
    staying = newton_target(point) > 0
    leaving = weighted_sum(np.where(staying, 0.0, point.weights), point.directions)
    columns = np.hstack([basis, point.dual, *point.directions[staying], leaving])
    return orthonormal(columns, _NEW)
