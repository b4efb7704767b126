"""Solvers of the semidefinite and quadratically constrained programs, through CVXPY.

They serve for comparison: `newton` finds the same weights about a thousand times faster. The
programs themselves are methods of `RKDAProgram`, `FisherRatioProgram` and `SoftMargin`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from discernel.exceptions import needs_extra, unknown_choice
from discernel.programs.base import ConicModel, Point
from discernel.programs.simplex import normalize, uniform
from discernel.programs.solution import Solution, Status, Task
from discernel.progress.deadline import active_deadline, must_stop_learning

#: Names of the time limit, in seconds, in conic solvers.
_TIME_LIMITS = {"CLARABEL": "time_limit", "SCS": "time_limit_secs"}


def _import_cvxpy() -> Any:
    need = "The solvers 'sdp', 'sdp_approximate' and 'qcqp' need CVXPY"
    with needs_extra(need, "conic", "use solver='newton'"):
        import cvxpy
    return cvxpy


@dataclass(frozen=True)
class _Conic:
    """Base class of the conic solvers."""

    backend: str = "CLARABEL"

    def check_installed(self) -> None:
        """Raise a clear error if CVXPY or the conic solver is missing, before any work."""
        installed = _import_cvxpy().installed_solvers()
        if self.backend not in installed:
            raise unknown_choice("conic solver", self.backend, sorted(installed))

    def _solve(self, problem: Any) -> bool:
        """Solve a problem and return whether the conic solver reports an optimal solution."""
        cp, limit, seconds = _import_cvxpy(), {}, active_deadline().to_learn
        if self.backend in _TIME_LIMITS and seconds < float("inf"):
            limit = {_TIME_LIMITS[self.backend]: max(seconds, 0.01)}
        with warnings.catch_warnings():
            # CVXPY warns of inaccurate solutions; the status and the certified gap say more.
            warnings.simplefilter("ignore")
            try:
                problem.solve(solver=self.backend, **limit)
            except cp.SolverError:
                return False
        return bool(problem.status == cp.OPTIMAL)

    def _solution(
        self, program: Any, model: ConicModel, task: Task, *, approximate: bool = False
    ) -> Solution:
        """Solve the conic model, then evaluate and certify its weights with the program itself."""
        satisfied, weights = False, None
        if not must_stop_learning():
            satisfied, weights = self._solve(model.problem), model.weights()
        point: Point = program.at(
            uniform(program.n_weights) if weights is None else normalize(weights)
        )
        bound = max(model.bound(), point.bound)
        solution = Solution.at(point, bound, Status.CONVERGED, 1)
        task.monitor(1, point.value, solution.gap, point.weights)
        # The gap of the program is rigorous. If it is small, the status of the conic solver, which
        # refers to other tolerances, does not matter.
        if solution.gap <= task.tol:
            return solution
        if must_stop_learning():
            return replace(solution, status=Status.OUT_OF_TIME)
        by_design = approximate and satisfied
        return replace(solution, status=Status.APPROXIMATE if by_design else Status.INACCURATE)


@dataclass(frozen=True)
class SDP(_Conic):
    """Solve the semidefinite programs (8), (29), (32), (41) and (45) of [Ye08]_, (9) of [Kim06]_.

    Parameters
    ----------
    backend : str, default="CLARABEL"
        The name of a conic solver that CVXPY has installed.
    approximate : bool, default=False
        Whether one matrix inequality for all classes, Eq. (32) and (45), replaces one for each
        class. It is stricter, so its weights are not optimal in general.

    Examples
    --------
    >>> SDP().name, SDP(approximate=True).name
    ('sdp', 'sdp_approximate')
    """

    approximate: bool = False
    needs: ClassVar[tuple[str, ...]] = ("at", "sdp")

    @property
    def name(self) -> str:
        """The name of the solver."""
        return "sdp_approximate" if self.approximate else "sdp"

    def solve(self, program: Any, task: Task) -> Solution:
        model = program.sdp(_import_cvxpy(), approximate=self.approximate)
        return self._solution(program, model, task, approximate=self.approximate)


@dataclass(frozen=True)
class QCQP(_Conic):
    """Solve the quadratically constrained programs (13), (34), (43) and (46) of [Ye08]_.

    It also solves those of [Lanckriet04]_ for soft margins.

    Parameters
    ----------
    backend : str, default="CLARABEL"
        The name of a conic solver that CVXPY has installed.

    Examples
    --------
    >>> QCQP().name
    'qcqp'
    """

    name: ClassVar[str] = "qcqp"
    needs: ClassVar[tuple[str, ...]] = ("at", "qcqp")

    def solve(self, program: Any, task: Task) -> Solution:
        return self._solution(program, program.qcqp(_import_cvxpy()), task)
