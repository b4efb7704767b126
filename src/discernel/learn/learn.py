"""Learn kernel weights from a bank: for a given λ, for the best λ of a path, or jointly with λ."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np

from discernel.arrays import FloatArray
from discernel.bank import Bank, System
from discernel.criteria import KernelLeastSquares, Program, Uniform, offers
from discernel.exceptions import (
    ConvergenceWarning,
    InvalidInputError,
    NumericalError,
    caller_stacklevel,
)
from discernel.learn.request import Request, faster_solver
from discernel.programs.base import draw_part
from discernel.programs.lambdas import WALK, LambdaSearch, lambda_grid, search_lambda
from discernel.programs.solution import (
    LearnedKernel,
    Progress,
    Solution,
    Solver,
    Status,
    StoppedError,
    Task,
)
from discernel.progress.deadline import is_late, must_stop_learning
from discernel.solvers import SOLVERS, NoSolver, check_solver
from discernel.targets import Target

#: λ considered by ``regularization="loo"``, relative to the trace-normalized kernels.
DEFAULT_REGULARIZATIONS = lambda_grid(0.0, -6.0)
#: From this many samples on, a solver starts from the optimum of a part of them.
_MANY = 1000
#: The search for λ starts on a quarter of the samples, with these lower and upper limits. Over 45
#: problems of 569 to 4,000 samples, 3.3 λ on average were then tried on all samples, and the chosen
#: λ was the same as for the whole path.
_PART_SAMPLES = 300, 1500
#: The tolerances for weights of a part of the samples, and for the comparison of λ on all samples.
#: From the weights of a part, one round of `Galerkin` mostly reaches a gap of 1e-5.
_ROUGH_TOL, _SCORED_TOL = 1e-3, 1e-4


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
    return _learn(bank, target, replace(request, callback=None))


def _learn(bank: Bank, target: Target, request: Request) -> LearnedKernel:
    """Learn kernel weights with λ as the request says: 0, chosen by leave-one-out, or other."""
    request = replace(request, criterion=request.criterion.on_bank(bank))
    try:
        if request.regularization == 0.0:
            return _learn_without_ridge(bank, target, request)
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

    With many samples, the search starts from the best λ of a part of them, and only the weights of
    the best λ are learned to full accuracy.
    """
    part, n, grid = None, target.n_samples, DEFAULT_REGULARIZATIONS
    if n > request.few:
        least, most = _PART_SAMPLES
        part = draw_part(bank, target, min(max(n // 4, least), most) / n, request.random_state)
    learner, first = WeightLearner(bank, target, request, len(grid)), None
    if part is not None:
        small = WeightLearner(*part, _rough(request), len(grid))
        first = search_lambda(grid, small.error, WALK).position
        if _is_smooth(request):
            # Twice the λ for a quarter of the samples, as in `_coarse_start`. As measured, a start
            # from the weights of a part leaves a smaller gap after one round than a start from the
            # weights of a neighbouring λ on all samples.
            factor = float(np.sqrt(n / part.bank.n_samples))

            def start(lam: float) -> FloatArray:
                return small.solve(factor * lam, small.nearest(factor * lam)).weights

            scored = replace(request, tol=max(request.tol, _SCORED_TOL))
            learner = WeightLearner(bank, target, scored, len(grid), start)
    search = search_lambda(grid, learner.error, WALK, first)
    best = next(one for one, _ in learner.found if one.regularization == search.regularization)
    more = []
    if best.gap is not None and best.gap > request.tol and learner.request.tol > request.tol:
        if is_late():
            best = replace(best, status=Status.OUT_OF_TIME)
        else:
            best = learner.solve(best.regularization, best.weights[bank.kept], request.tol)
            more = [best]
    return _chosen(learner, search, best, more)


def _chosen(
    learner: WeightLearner, search: LambdaSearch, best: LearnedKernel, more: list[LearnedKernel]
) -> LearnedKernel:
    """Return the best learned kernel, with iterations and errors of the whole search."""
    solved = [*(learned for learned, _ in learner.found), *more]
    falling = sorted(learner.found, key=lambda found: -found[0].regularization)
    return replace(
        best,
        n_iter=sum(learned.n_iter for learned in solved),
        history=[progress for learned in solved for progress in learned.history],
        leave_one_out={learned.regularization: error for learned, error in falling},
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
        Returns initial weights for a λ. By default `error` starts from the weights of the nearest
        λ so far.

    Attributes
    ----------
    found : list of tuple of LearnedKernel and float
        The learned kernels and errors of all calls of `error`, in order.
    """

    def __init__(
        self,
        bank: Bank,
        target: Target,
        request: Request,
        n_stages: int = 1,
        start: Callable[[float], FloatArray] | None = None,
    ) -> None:
        self.bank, self.target, self.request = bank, target, request
        self._n_stages, self._start = n_stages, start
        self._systems: Callable[[FloatArray], System] | None = None
        self.found: list[tuple[LearnedKernel, float]] = []

    def solve(
        self, lam: float | None, init: FloatArray | None = None, tol: float | None = None
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
        check_solver(solver, program, request.criterion)
        history: list[Progress] = []

        def monitor(
            iteration: int, value: float, gap: float | None, weights: FloatArray, /, **where: int
        ) -> None:
            n_active, objective = int(np.count_nonzero(weights)), program.objective(value)
            where = {"stage": len(self.found), "n_stages": self._n_stages, **where}
            progress = Progress(iteration, objective, gap, n_active, lam, **where)
            history.append(progress)
            if request.callback is not None:
                request.callback(progress)
            _stop_in_time(program, tol, progress, value, weights)

        task = Task(tol, request.max_iter, init, monitor, request.random_state, request.few)
        try:
            solution = solver.solve(program, task)
        except StoppedError as stopped:
            solution = cast(Solution, stopped.solution)  # set by `_stop_in_time`
        _check_solution(solution, program, solver)
        return self._learned(program, solver, solution, lam, history)

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
        if self.found and is_late():
            return np.inf
        criterion, target = self.request.criterion, self.target
        is_apart = criterion.regularization_is == "apart"
        if self.found and is_apart:  # the weights are the same for all λ
            learned = replace(self.found[0][0], regularization=lam, n_iter=0, history=[])
        else:
            start = self.nearest if self._start is None else self._start
            learned = self.solve(lam, start(lam))
        weights, ridge = learned.weights[self.bank.kept], criterion.sample_ridge(target, lam)
        if is_apart:
            self._systems = self._systems or self.bank.systems(weights)
            system = self._systems(ridge)
        else:  # mostly the last system of the solver, which is cached
            system = self.bank.system(weights, ridge)
        fit = KernelLeastSquares(system, ridge, target.scores, target.sample_weights)
        error = fit.leave_one_out_error()
        self.found.append((learned, error))
        return error

    def nearest(self, lam: float) -> FloatArray | None:
        """Return the weights of the nearest λ so far; None if there is none."""
        if not self.found:
            return None
        distances = [abs(np.log(learned.regularization / lam)) for learned, _ in self.found]
        return self.found[int(np.argmin(distances))][0].weights[self.bank.kept]


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
