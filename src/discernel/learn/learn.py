"""Learn kernel weights from a bank: for a given λ, for the best λ of a path, or jointly with λ."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from discernel.arrays import FloatArray, blas_threads
from discernel.bank import Bank, System
from discernel.exceptions import (
    ConvergenceWarning,
    InvalidInputError,
    NumericalError,
    caller_stacklevel,
)
from discernel.learn.by_target import learn_by_target
from discernel.learn.request import Request, faster_solver
from discernel.programs.base import Program, draw_part, draw_start, offers
from discernel.programs.lambdas import (
    WALK,
    LambdaSearch,
    lambda_grid,
    search_lambda,
    undecided,
)
from discernel.programs.least_squares import KernelLeastSquares
from discernel.programs.solution import (
    LearnedKernel,
    Progress,
    Solution,
    Solver,
    Status,
    StoppedError,
    Subspace,
    Task,
)
from discernel.programs.uniform import NoSolver, Uniform
from discernel.progress.deadline import is_late, must_stop_learning
from discernel.solvers import SOLVERS, check_needs
from discernel.targets import RegressionTarget, Target

#: λ considered by ``regularization="loo"``, relative to the trace-normalized kernels.
DEFAULT_REGULARIZATIONS = lambda_grid(0.0, -6.0)
#: From this many samples on, a solver starts from the optimum of a part of them.
_MANY = 1000
#: The search for λ starts on a quarter of the samples, and at most so many. Over 45 problems of 569
#: to 4,000 samples, 3.3 λ on average were then tried on all samples, and the chosen λ was the same
#: as for the whole path.
_MOST_START = 1500
#: The tolerance for weights of a part of the samples, and for the comparison of λ.
_ROUGH_TOL, _SCORED_TOL = 1e-3, 1e-4
#: The relative error of a leave-one-out error is about at most this times the square root of the
#: gap of the weights, as measured on six data sets with five λ each.
_MARGIN = 0.1


def learn(bank: Bank, target: Target, request: Request) -> LearnedKernel:
    """Learn kernel weights from a bank, and warn if the gap could not be certified."""
    learned = _learn(bank, target, request)
    if not learned.status.is_success:
        gap = "without a certificate"
        if learned.gap is not None:
            gap = f"certified relative gap {learned.gap:.1e}, asked for {request.tol:.1e}"
        warnings.warn(
            f"The kernel weights may not be optimal: {learned.status} after {learned.n_iter} "
            f"iterations of '{learned.solver}', {gap}. {learned.status.advice}",
            ConvergenceWarning,
            stacklevel=caller_stacklevel(),
        )
    return learned


def learn_part(bank: Bank, target: Target, request: Request) -> LearnedKernel:
    """Learn kernel weights from some of the rows, without progress reports and warnings."""
    with blas_threads(bank.n_samples):
        return _learn(bank, target, replace(request, callback=None))


def _learn(bank: Bank, target: Target, request: Request) -> LearnedKernel:
    """Learn kernel weights with λ as the request says: 0, chosen by leave-one-out, or other."""
    request = replace(request, criterion=request.criterion.on_bank(bank))
    try:
        if request.regularization == 0.0:
            return _learn_without_ridge(bank, target, request)
        if request.criterion.by_target:
            return learn_by_target(bank, cast(RegressionTarget, target), request)
        if request.regularization == "loo" and request.criterion.regularization_is != "learned":
            return _learn_by_leave_one_out(bank, target, request)
        return WeightLearner(bank, target, request).solve(request.given_regularization)
    except NumericalError:
        bank.check_definite()  # raises a better error if a kernel is indefinite
        raise


def _learn_without_ridge(bank: Bank, target: Target, request: Request) -> LearnedKernel:
    """Learn with λ = 0, which requires weights that do not depend on λ and a regular system."""
    bank.check_factored()
    if bank.n_kernels == 1:  # its weight is 1 for all criteria
        alone = replace(request, criterion=Uniform(), solver=NoSolver())
        learned = WeightLearner(bank, target, alone).solve(0.0)
        return replace(learned, criterion=request.criterion.name)
    if request.criterion.regularization_is != "apart" and request.solver.name in SOLVERS:
        raise InvalidInputError(
            f"The weights of criterion='{request.criterion.name}' depend on λ, which must then be "
            "positive. Got regularization=0. Give a positive one, a single kernel, or a criterion "
            "whose weights do not depend on λ, such as 'uniform', 'alignment' or GivenWeights."
        )
    return WeightLearner(bank, target, request).solve(0.0)


def _learn_by_leave_one_out(bank: Bank, target: Target, request: Request) -> LearnedKernel:
    """Learn weights for some λ of the default path, and return those of the best λ.

    With many samples, the search starts from the best λ of a part of them. Weights are learned to
    full accuracy only for the best λ, and where the choice of λ may depend on it.
    """
    grid, known = DEFAULT_REGULARIZATIONS, (request.few, request.random_state)
    part = draw_start(bank, target, *known, one_in=4, most=_MOST_START)
    learner, first = WeightLearner(bank, target, request, len(grid)), None
    if part is not None:
        small = WeightLearner(*part, _rough(request), len(grid))
        first = search_lambda(grid, small.error, WALK).position
        if _is_smooth(request):
            # Twice the λ for a quarter of the samples, as in `_coarse_start`. As measured, a start
            # from the weights of a part leaves a smaller gap after one round than a start from the
            # weights of a neighbouring λ on all samples.
            factor = float(np.sqrt(target.n_samples / part.bank.n_samples))

            def start(lam: float) -> FloatArray:
                return small.follow(factor * lam).weights

            learner = WeightLearner(bank, target, request, len(grid), start, _SCORED_TOL)
    search = learner.search(grid, first)
    lam, (best, _) = search.regularization, learner.found[search.regularization]
    if learner.is_rough(lam):
        best = replace(best, status=Status.OUT_OF_TIME) if is_late() else learner.refine(lam)
    # With iterations and errors of the whole search.
    return replace(
        best,
        n_iter=sum(learned.n_iter for learned in learner.solved),
        history=[progress for learned in learner.solved for progress in learned.history],
        leave_one_out={lam: learner.found[lam][1] for lam in sorted(learner.found, reverse=True)},
        regularization_at_limit=search.at_limit,
    )


class WeightLearner:
    """Learn kernel weights for any λ on one set of samples, with leave-one-out errors.

    Parameters
    ----------
    bank, target, request
        Kernels, target and options.
    n_stages : int, default=1
        The number of λ of the path, for progress reports.
    start : callable, optional
        Returns initial weights for a λ. By default `follow` starts from the weights of the nearest
        λ so far.
    scored_tol : float, default=0
        Tolerance of the gap for the comparison of λ, if larger than that of the request.

    Attributes
    ----------
    found : dict of float to tuple of LearnedKernel and float
        The learned kernel and the error of every λ that `error` was called with.
    solved : list of LearnedKernel
        All learned kernels, in order.
    """

    def __init__(
        self,
        bank: Bank,
        target: Target,
        request: Request,
        n_stages: int = 1,
        start: Callable[[float], FloatArray] | None = None,
        scored_tol: float = 0.0,
    ) -> None:
        self.bank, self.target, self.request = bank, target, request
        self._n_stages, self._start = n_stages, start
        self._scored_tol = max(scored_tol, request.tol)
        self._systems: Callable[[FloatArray], System] | None = None
        self._subspaces: dict[float, Subspace] = {}
        self._refined: set[float] = set()
        self.found: dict[float, tuple[LearnedKernel, float]] = {}
        self.solved: list[LearnedKernel] = []

    def solve(
        self,
        lam: float | None,
        init: FloatArray | None = None,
        tol: float | None = None,
        subspace: Subspace | None = None,
    ) -> LearnedKernel:
        """Learn the weights for one λ, or jointly with λ.

        Parameters
        ----------
        lam : float or None
            λ; None if it is learned jointly.
        init : ndarray of shape (n_kernels,), optional
            Initial weights. By default, with many samples, the weights of a part of them.
        tol : float, optional
            Tolerance of the gap; by default that of the request.
        subspace : Subspace, optional
            Where the solver searched for another λ.
        """
        request, tol = self.request, self.request.tol if tol is None else tol
        if init is None:
            init = self._coarse_start(lam)
        program = request.criterion.program(self.bank, self.target, lam)
        if init is not None and len(init) != program.n_weights:
            init = None  # the program has weights besides those of the kernels
        if init is not None and not program.contains(init):
            init = program.normalize(init)  # a part of the rows may have fewer kernels
        solver = faster_solver(request, program, self.bank, self.target)
        check_needs(solver, program, request.criterion)
        history: list[Progress] = []

        def monitor(
            iteration: int, value: float, gap: float | None, weights: FloatArray, /, **where: int
        ) -> None:
            n_active, objective = int(np.count_nonzero(weights)), program.objective(value)
            where = {"stage": len(self.solved), "n_stages": self._n_stages, **where}
            progress = Progress(iteration, objective, gap, n_active, lam, **where)
            history.append(progress)
            if request.callback is not None:
                request.callback(progress)
            _stop_in_time(program, tol, progress, value, weights)

        options = (request.random_state, request.few, subspace)
        task = Task(tol, request.max_iter, init, monitor, *options)
        try:
            solution = solver.solve(program, task)
        except StoppedError as stopped:
            solution = cast(Solution, stopped.solution)  # set by `_stop_in_time`
        _check_solution(solution, program, solver)
        if lam is not None and solution.subspace is not None:
            self._subspaces[lam] = solution.subspace
        self.solved.append(self._learned(program, solver, solution, lam, history))
        return self.solved[-1]

    def _coarse_start(self, lam: float | None) -> FloatArray | None:
        """Return the optimum of a quarter of the samples as initial weights; None for few samples.

        It saves factorizations for all samples. Fewer samples favour narrower kernels, which twice
        the λ corrects: over three data sets, two sets of kernels and λ from 1e-5 to 0.1, 2λ was
        better than λ and 4λ.
        """
        if self.bank.n_samples < _MANY or not _is_smooth(self.request) or lam is None:
            return None
        part = draw_part(self.bank, self.target, 0.25, 0)
        if part is None:
            return None
        # The candidates of the part are the kernels of the whole bank.
        with blas_threads(part.bank.n_samples):
            return WeightLearner(*part, _rough(self.request)).solve(2.0 * lam).weights

    def _learned(
        self,
        program: Program,
        solver: Solver,
        solution: Solution,
        regularization: float | None,
        history: list[Progress],
    ) -> LearnedKernel:
        """Return the learned kernel of a solution."""
        split, status = program.split(solution.weights), solution.status
        known = (regularization, split.regularization, solution.regularization)
        used = next((lam for lam in known if lam is not None), None)
        if used is None:
            raise InvalidInputError(
                "If no λ is given, the solver or the program must return the learned λ. "
                f"'{solver.name}' returned a Solution without a regularization; give a number."
            )
        if split.at_floor and status is Status.CONVERGED:
            status = Status.FLOOR
        if len(split.weights) == 1 and status is Status.STALLED:
            status = Status.NO_PROGRAM  # one kernel: the gap is only the error of the value
        limit = "smallest" if status is Status.FLOOR else solution.regularization_at_limit
        has_value, is_convex = not np.isnan(solution.value), offers(program, "at")
        return LearnedKernel(
            weights=self.bank.expand(split.weights),
            coefficients=self.bank.coefficients(split.weights),
            regularization=used,
            objective=program.objective(solution.value) if has_value else None,
            gap=solution.gap if is_convex else None,
            status=status,
            n_iter=solution.n_iter,
            criterion=self.request.criterion.name,
            solver=solver.name,
            history=history,
            considered=solution.considered,
            parameters=split.parameters,
            screened=solution.screened,
            regularization_at_limit=limit,
            names=tuple(self.bank.names),
        )

    def error(self, lam: float) -> float:
        """Learn the weights for a λ, and return its leave-one-out error.

        The error is infinite after the deadline, except for the first λ.
        """
        if lam in self.found:
            return self.found[lam][1]
        if self.found and is_late():
            return np.inf
        if self.found and self.request.criterion.regularization_is == "apart":
            known, _ = next(iter(self.found.values()))  # the weights are the same for all λ
            return self._scored(replace(known, regularization=lam, n_iter=0, history=[]))
        return self._scored(self.follow(lam))

    def follow(self, lam: float) -> LearnedKernel:
        """Learn the weights for the comparison of a λ with others, from the nearest λ so far."""
        near = min(self._subspaces, key=lambda known: abs(np.log(known / lam)), default=None)
        if near is not None:
            return self.solve(lam, self._nearest(lam), self._scored_tol, self._subspaces[near])
        start = self._nearest if self._start is None else self._start
        return self.solve(lam, start(lam), self._scored_tol)

    def _scored(self, learned: LearnedKernel) -> float:
        """Return the leave-one-out error of a learned kernel, and keep both."""
        criterion, target, bank = self.request.criterion, self.target, self.bank
        lam, weights = learned.regularization, learned.weights[bank.kept]
        ridge = criterion.sample_ridge(target, lam)
        if criterion.regularization_is == "apart":
            self._systems = self._systems or bank.systems(weights)
            system = self._systems(ridge)
        elif self._scored_tol > self.request.tol and bank.tols[0] == 0:
            # Errors by a factor of single precision differed by 3e-7. Iterations would stop early.
            system = bank.system(weights, ridge, rough=True)
        else:  # mostly the last system of the solver, which is cached
            system = bank.system(weights, ridge)
        error = KernelLeastSquares.of(system, ridge, target).leave_one_out_error()
        self.found[lam] = learned, error
        return error

    def _nearest(self, lam: float) -> FloatArray | None:
        """Return the weights of the nearest λ so far; None if there is none."""
        if not self.found:
            return None
        near = min(self.found, key=lambda known: abs(np.log(known / lam)))
        return self.found[near][0].weights[self.bank.kept]

    # ---- the choice of λ ---------------------------------------------------------------------

    def search(self, grid: Sequence[float], start: int | None) -> LambdaSearch:
        """Return the λ that `WALK` chooses from a grid.

        Weights are learned to the tolerance for the comparison of λ; to that of the request where
        the choice may depend on it.
        """
        found = search_lambda(grid, self.error, WALK, start)
        while not is_late():
            margins = [self._margin(lam) for lam in grid]
            unsure = undecided(found, margins, WALK, start)
            if unsure is None:
                break
            self._scored(self.refine(grid[unsure]))
            found = search_lambda(grid, self.error, WALK, start)
        return found

    def is_rough(self, lam: float) -> bool:
        """Return whether weights were learned only to the tolerance for the comparison of λ."""
        if lam not in self.found or lam in self._refined or self._scored_tol <= self.request.tol:
            return False
        gap = self.found[lam][0].gap
        return gap is not None and gap > self.request.tol

    def refine(self, lam: float) -> LearnedKernel:
        """Learn the weights for a λ again, to the tolerance of the request."""
        self._refined.add(lam)
        return self.solve(lam, self.found[lam][0].weights[self.bank.kept])

    def _margin(self, lam: float) -> float:
        """Return how far the error of a λ may be off, relative to it."""
        gap = self.found[lam][0].gap if self.is_rough(lam) else 0.0
        return _MARGIN * min(float(np.sqrt(gap or 0.0)), 1.0)


def _is_smooth(request: Request) -> bool:
    """Return whether the solver needs fewer steps from a good start."""
    return request.solver.name in ("galerkin", "newton")


def _rough(request: Request) -> Request:
    """Return the request for a part of the samples, with a larger tolerance and no callback."""
    return replace(request, callback=None, tol=max(request.tol, _ROUGH_TOL))


def _stop_in_time(
    program: Program, tol: float, progress: Progress, value: float, weights: FloatArray
) -> None:
    """Stop a solver after the deadline, with its current weights and their gap.

    A solver is not stopped before it has a finite value. A solver without a certificate is not
    stopped in its first iteration, which may be its only one.
    """
    gap, lam = progress.gap, progress.regularization
    if not must_stop_learning() or not np.isfinite(value) or (gap is not None and gap <= tol):
        return
    if gap is None and progress.iteration == 0:
        return
    if lam is None and program.split(weights).regularization is None:
        return
    bound = -np.inf if gap is None else value - gap * abs(value)
    status = Status.OUT_OF_TIME
    weights = program.normalize(weights)
    raise StoppedError(Solution(weights, value, bound, status, progress.iteration))


def _check_solution(solution: Any, program: Program, solver: Solver) -> None:
    """Raise a clear error if a solver returned no `Solution`, or weights that are not allowed."""
    if not isinstance(solution, Solution):
        raise InvalidInputError(
            "The method solve of a solver must return a Solution of discernel.solvers. "
            f"'{solver.name}' returned {solution!r}."
        )
    weights = np.asarray(solution.weights)
    if not (weights.shape == (program.n_weights,) and program.contains(weights)):
        raise NumericalError(
            f"The solver must return {program.n_weights} weights that {program.allowed}. "
            f"'{solver.name}' returned {solution.weights!r}. Use another solver."
        )
