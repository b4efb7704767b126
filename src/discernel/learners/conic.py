"""The semidefinite and quadratically constrained programs of both papers, through CVXPY.

They exist to be compared with: `newton` finds the same weights some thousand times faster. The
programs need the matrices themselves, so here, and only here, centred copies are made.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from discernel.backend import FloatArray
from discernel.criteria import RKDA, Criterion, FisherRatio, JointRKDA
from discernel.criteria.margin import SoftMargin
from discernel.exceptions import InvalidInputError, missing_extra, unknown_choice
from discernel.learners.simplex import normalize, uniform
from discernel.learners.solution import Solution, Status, Task

__all__ = ["QCQP", "SDP"]


def _import_cvxpy() -> Any:
    try:
        import cvxpy
    except ImportError as error:
        raise missing_extra(
            "The solvers 'sdp', 'sdp_approximate' and 'qcqp' need CVXPY",
            "conic",
            "use solver='newton'",
        ) from error
    return cvxpy


def _orthogonal_to_ones(n_samples: int) -> FloatArray:
    """Return an orthonormal basis of the vectors that sum to 0: what centred kernels act on."""
    return np.asarray(scipy.linalg.helmert(n_samples)).T


def _unit(criterion: RKDA) -> float:
    """Return λ, or where it is learnt, the share of it in a trace of 1."""
    if isinstance(criterion, JointRKDA):
        return 1.0 / criterion.bank.n_samples
    return criterion.ridge


@dataclass(frozen=True)
class _Conic:
    backend: str = "CLARABEL"

    def check_installed(self) -> None:
        """Raise a clear error if CVXPY or the conic solver is missing, before any work."""
        installed = _import_cvxpy().installed_solvers()
        if self.backend not in installed:
            raise unknown_choice("conic solver", self.backend, sorted(installed))

    def _solve(self, problem: Any) -> bool:
        """Solve and return whether the conic solver is satisfied with its answer."""
        cp = _import_cvxpy()
        with warnings.catch_warnings():
            # CVXPY says 'inaccurate' by a warning; the status and the certified gap say more.
            warnings.simplefilter("ignore")
            try:
                problem.solve(solver=self.backend)
            except cp.SolverError:
                return False
        return bool(problem.status == cp.OPTIMAL)

    @staticmethod
    def _solution(
        criterion: Criterion,
        task: Task,
        weights: FloatArray | None,
        *,
        satisfied: bool,
        bound: float = -np.inf,
        approximate: bool = False,
    ) -> Solution:
        """Evaluate and certify the weights a program gave with the criterion itself."""
        n_kernels = criterion.bank.n_kernels
        point = criterion.at(uniform(n_kernels) if weights is None else normalize(weights))
        solution = Solution.at(point, max(bound, point.bound), Status.CONVERGED, 1)
        task.monitor(1, point.value, solution.gap, point.weights)
        # The certificate is ours and rigorous: where it holds, the solver's own doubts, about
        # tolerances of other quantities, do not matter.
        if solution.gap <= task.tol:
            status = Status.CONVERGED
        elif approximate and satisfied:
            status = Status.APPROXIMATE
        else:
            status = Status.INACCURATE
        return replace(solution, status=status)


@dataclass(frozen=True)
class SDP(_Conic):
    """The semidefinite programs: [Ye08]_ Eq. (8), (29), (32), (41), (45) and [Kim06]_ Eq. (9).

    Parameters
    ----------
    backend : str, default="CLARABEL"
        The name of a conic solver CVXPY has installed.
    approximate : bool, default=False
        One matrix inequality for all classes together, Eq. (32) and (45), instead of one a class:
        stricter, so its weights are in general not optimal.
    """

    approximate: bool = False

    @property
    def name(self) -> str:
        """The name of the solver."""
        return "sdp_approximate" if self.approximate else "sdp"

    def solve(self, criterion: Criterion, task: Task) -> Solution:
        if isinstance(criterion, FisherRatio):
            return self._solve_fisher_ratio(criterion, task)
        assert isinstance(criterion, RKDA), "learn_kernel admits no other criterion"
        return self._solve_rkda(criterion, task)

    def _solve_rkda(self, criterion: RKDA, task: Task) -> Solution:
        cp = _import_cvxpy()
        basis = _orthogonal_to_ones(criterion.bank.n_samples)
        kernels = criterion.bank.compressed(basis)
        indicator = basis.T @ criterion.target.indicator / np.sqrt(criterion.bank.n_samples)
        n, n_classes = indicator.shape
        weights = cp.Variable(len(kernels), nonneg=True)
        bounds = cp.Variable(n_classes)
        # Everything over λ (fixed) or 1/m (joint), as printed in the paper: entries of order 1.
        matrix = sum(w * (K / _unit(criterion)) for w, K in zip(weights, kernels, strict=True))
        if not isinstance(criterion, JointRKDA):
            matrix = np.eye(n) + matrix
        inequalities = []
        if self.approximate:
            inequalities = [cp.bmat([[matrix, indicator], [indicator.T, cp.diag(bounds)]]) >> 0]
        else:
            for j in range(n_classes):
                column = indicator[:, [j]]
                corner = cp.reshape(bounds[j], (1, 1), order="C")
                inequalities.append(cp.bmat([[matrix, column], [column.T, corner]]) >> 0)
        problem = cp.Problem(cp.Minimize(cp.sum(bounds)), [cp.sum(weights) == 1, *inequalities])
        satisfied = self._solve(problem)
        bound = -np.inf
        if not self.approximate and inequalities[0].dual_value is not None:
            # Complementarity: the last column of each multiplier is −N⁻¹h_j.
            columns = [-lmi.dual_value[:n, n] / lmi.dual_value[n, n] for lmi in inequalities]
            bound = criterion.lower_bound(
                basis @ np.column_stack(columns), columns=criterion.target.indicator
            )
        return self._solution(
            criterion,
            task,
            weights.value,
            satisfied=satisfied,
            bound=bound,
            approximate=self.approximate,
        )

    def _solve_fisher_ratio(self, criterion: FisherRatio, task: Task) -> Solution:
        if self.approximate:
            raise InvalidInputError(
                "solver='sdp_approximate' must go with criterion='rkda': it relaxes a program "
                "with several classes. Got criterion='fdr'; use 'newton' or 'sdp'."
            )
        cp = _import_cvxpy()
        target, bank = criterion.target, criterion.bank
        kernels = bank.compressed(np.eye(bank.n_samples))
        within = target.membership @ np.diag(1.0 / target.counts) @ target.membership.T
        J = (np.eye(bank.n_samples) - within) / np.sqrt(target.counts[target.codes])
        a = target.mean_difference
        weights, t = cp.Variable(bank.n_kernels, nonneg=True), cp.Variable()
        matrix = criterion.regularization * np.eye(bank.n_samples) + sum(
            w * (J @ K @ J) for w, K in zip(weights, kernels, strict=True)
        )
        column = sum(w * (J @ K @ a) for w, K in zip(weights, kernels, strict=True))
        column = cp.reshape(column, (bank.n_samples, 1), order="C")
        inequality = cp.bmat([[matrix, column], [column.T, cp.reshape(t, (1, 1), order="C")]]) >> 0
        # Eq. (9) without its factor 1/λ, which does not move the optimum but spoils the scaling.
        linear = np.array([a @ K @ a for K in kernels])
        problem = cp.Problem(
            cp.Minimize(t - linear @ weights),
            [cp.sum(weights) == 1, inequality],
        )
        satisfied, bound = self._solve(problem), -np.inf
        if inequality.dual_value is not None:
            # Complementarity: the last column of the multiplier is −u, and β = a − Ju.
            u = -inequality.dual_value[:-1, -1] / inequality.dual_value[-1, -1]
            bound = criterion.lower_bound(a - J @ u)
        return self._solution(criterion, task, weights.value, satisfied=satisfied, bound=bound)


@dataclass(frozen=True)
class QCQP(_Conic):
    """The quadratically constrained programs of [Ye08]_, Eq. (13), (34), (43) and (46).

    And those of [Lanckriet04]_ for the soft margins.

    Parameters
    ----------
    backend : str, default="CLARABEL"
        The name of a conic solver CVXPY has installed.
    """

    @property
    def name(self) -> str:
        """The name of the solver."""
        return "qcqp"

    def solve(self, criterion: Criterion, task: Task) -> Solution:
        if isinstance(criterion, SoftMargin):
            return self._solve_margin(criterion, task)
        assert isinstance(criterion, RKDA), "learn_kernel admits no other criterion"
        return self._solve_rkda(criterion, task)

    def _solve_rkda(self, criterion: RKDA, task: Task) -> Solution:
        cp = _import_cvxpy()
        basis = _orthogonal_to_ones(criterion.bank.n_samples)
        scores = basis.T @ criterion.scores / np.sqrt(criterion.bank.n_samples)
        # In half the papers' β, and in units in which all entries are of order 1.
        dual, t = cp.Variable(scores.shape), cp.Variable()
        constraints = [
            cp.sum_squares(_square_root(K / _unit(criterion)) @ dual) <= t
            for K in criterion.bank.compressed(basis)
        ]
        objective = 2.0 * cp.sum(cp.multiply(scores, dual)) - t
        if not isinstance(criterion, JointRKDA):
            objective -= cp.sum_squares(dual)
        satisfied = self._solve(cp.Problem(cp.Maximize(objective), constraints))
        weights, bound = None, -np.inf
        if dual.value is not None:
            weights = np.array([np.ravel(limit.dual_value)[0] for limit in constraints])
            bound = criterion.lower_bound(basis @ dual.value)
        return self._solution(criterion, task, weights, satisfied=satisfied, bound=bound)

    def _solve_margin(self, criterion: SoftMargin, task: Task) -> Solution:
        cp = _import_cvxpy()
        alpha, t = cp.Variable(len(criterion.signs), nonneg=True), cp.Variable()
        beta = cp.multiply(criterion.signs, alpha)
        limits = [
            cp.sum_squares(_square_root(criterion.matrix(unit)) @ beta) <= t
            for unit in np.eye(criterion.n_weights)
        ]
        others = [cp.sum(beta) == 0]
        if np.isfinite(criterion.limit):
            others.append(alpha <= criterion.limit)
        value = 2.0 * cp.sum(alpha) - t - criterion.ridge * cp.sum_squares(alpha)
        satisfied = self._solve(cp.Problem(cp.Maximize(value), limits + others))
        weights, bound = uniform(criterion.n_weights), -np.inf
        if alpha.value is not None:
            weights = np.array([np.ravel(limit.dual_value)[0] for limit in limits])
            bound = criterion.lower_bound(criterion.signs * alpha.value)
        return self._solution(criterion, task, weights, satisfied=satisfied, bound=bound)


def _square_root(kernel: FloatArray) -> FloatArray:
    """Return R with RᵀR = K, without the rows that rounding alone would fill."""
    values, vectors = scipy.linalg.eigh(kernel)
    keep = values > 1e-14 * values[-1]
    return np.asarray(np.sqrt(values[keep])[:, None] * vectors[:, keep].T)
