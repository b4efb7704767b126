"""The semi-infinite linear program of Ye, Ji and Chen (2008), by column generation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.optimize import linprog

from discernel.arrays import FloatArray
from discernel.exceptions import unknown_choice
from discernel.programs.base import Point
from discernel.programs.simplex import normalize, uniform
from discernel.programs.solution import Solution, Status, Task


@dataclass(frozen=True)
class SILP:
    """Alternate a linear program over all cuts so far with the most violated new cut.

    The constraint Σ θ_i S_i(β) ≥ γ of [Ye08]_ Eq. (17), (37), (44) and (47), at the β that violates
    it most, is minus the tangent of the criterion at θ. With γ = −t, the master problem is to
    minimize t over the simplex subject to t ≥ f(w_s) + ∇f(w_s)ᵀ(w − w_s) for all earlier w_s.
    HiGHS solves it, through SciPy.

    Parameters
    ----------
    stopping : {"gap", "paper"}, default="gap"
        ``"gap"`` stops at a certified relative gap of ``tol``; ``"paper"`` stops at
        ``|1 − f(w)/t| ≤ 5e-4``, Eq. (22), and ignores ``tol``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.solvers import SILP
    >>> learned = learn_kernel(grams, y[::3], criterion="rkda", solver=SILP(), regularization=0.01)
    >>> learned.solver, learned.status.value
    ('silp', 'converged')
    """

    stopping: Literal["gap", "paper"] = "gap"
    name: ClassVar[str] = "silp"
    needs: ClassVar[tuple[str, ...]] = ("at",)

    def __post_init__(self) -> None:
        if self.stopping not in ("gap", "paper"):
            raise unknown_choice("stopping rule of SILP", self.stopping, ["gap", "paper"])

    def solve(self, program: Any, task: Task) -> Solution:
        max_iter = 1000 if task.max_iter is None else task.max_iter
        weights = uniform(program.n_weights) if task.init is None else task.init
        bound, level = -np.inf, None
        best: Point = program.at(weights)
        point, slopes, offsets = best, [], []
        for iteration in range(max_iter + 1):
            if point.value < best.value:
                best = point
            bound = max(bound, point.bound)
            solution = Solution.at(best, bound, Status.CONVERGED, iteration)
            task.monitor(iteration, best.value, solution.gap, best.weights)
            done = solution.gap <= task.tol
            if self.stopping == "paper":  # Eq. (22)
                done = level is not None and abs(level - point.value) <= 5e-4 * abs(level)
            if done:
                return solution
            slopes.append(point.gradient)
            offsets.append(point.intercept)
            weights, level, master_bound = _solve_master(np.array(slopes), np.array(offsets))
            bound = max(bound, master_bound)
            if iteration < max_iter:
                point = program.at(weights)
        return Solution.at(best, bound, Status.MAX_ITERATIONS, max_iter)


def _solve_master(slopes: FloatArray, offsets: FloatArray) -> tuple[FloatArray, float, float]:
    """Return the weights and t of min t s.t. t ≥ slopes·w + offsets, and a rigorous lower bound.

    The bound does not depend on the accuracy of the linear program: for any multipliers μ ≥ 0 with
    Σμ = 1, the minimum is at least min_i Σ_s μ_s (slope_si + offset_s).
    """
    n_cuts, n_kernels = slopes.shape
    scale = max(float(np.abs(offsets).max()), 1e-300)
    result = linprog(
        c=np.append(np.zeros(n_kernels), 1.0),
        A_ub=np.column_stack([slopes / scale, -np.ones(n_cuts)]),
        b_ub=-offsets / scale,
        A_eq=np.append(np.ones(n_kernels), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * n_kernels + [(None, None)],
        method="highs",
    )
    if result.x is None:  # HiGHS failed because the last cuts are almost parallel
        return uniform(n_kernels), -np.inf, -np.inf
    multipliers = normalize(-result.ineqlin.marginals)
    bound = float((multipliers @ slopes).min() + multipliers @ offsets)
    return normalize(result.x[:n_kernels]), float(result.x[-1]) * scale, bound
