"""`learn_kernel`: weights for one λ, along a path of λ, or for the best of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from discernel.arrays import FloatArray, blas_threads, device_errors, device_of, on_host
from discernel.arrays.sample_weights import SampleWeights, check_sample_weight
from discernel.bank import Bank, System, bank_of_matrices, device_of_matrices
from discernel.criteria import KernelLeastSquares, Program, Uniform, offers
from discernel.exceptions import (
    ConvergenceWarning,
    InvalidInputError,
    NumericalError,
    caller_stacklevel,
)
from discernel.learn.request import (
    SOLVERS,
    Request,
    check_solver,
    faster_solver,
    make_request,
)
from discernel.programs.lambdas import WALK, LambdaSearch, lambda_grid, search_lambda
from discernel.programs.no_solver import NoSolver
from discernel.programs.part import Part, draw_part
from discernel.programs.simplex import normalize
from discernel.programs.solution import (
    Callback,
    LearnedKernel,
    Progress,
    Solution,
    Solver,
    Status,
    StoppedError,
    Task,
)
from discernel.progress.deadline import is_late, must_stop_learning
from discernel.targets import ClassTarget, Target

__all__ = [
    "DEFAULT_REGULARIZATIONS",
    "learn",
    "learn_kernel",
    "learn_part",
    "learn_path",
]

#: λ considered by ``regularization="loo"``, in units of the (trace-normalised) kernels.
DEFAULT_REGULARIZATIONS = lambda_grid(0.0, -6.0)
#: From here on samples are many.
_MANY = 1000
#: λ of more than a few samples is first looked for on a quarter of them, of at least and at most so
#: many. Over 45 problems of 569 to 4,000 samples, 3.3 λ were then tried on all, and the one chosen
#: was that of the whole path.
_PART_SAMPLES = 300, 1500
#: The gap that is good enough for weights of a part of the samples, and for scoring a λ on all:
#: from weights of a part, one round of `Galerkin` mostly leaves 1e-5.
_ROUGH_TOL, _SCORED_TOL = 1e-3, 1e-4


def learn_kernel(
    grams: Any,
    y: Any,
    *,
    criterion: Any = "auto",
    solver: str | Solver = "auto",
    regularization: float | str = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
    sample_weight: Any = None,
) -> LearnedKernel:
    """Learn the combination of kernels that separates the classes best.

    Parameters
    ----------
    grams : array-like of shape (n_kernels, n_samples, n_samples), or dict of str to array-like
        Raw Gram matrices, with their names perhaps; they are centred and normalised here. On a
        GPU, as arrays of PyTorch or CuPy, they are computed with there.
    y : array-like of shape (n_samples,)
        Class labels.
    criterion : str or object, default="auto"
        ``"rkda"`` is that of [Ye08]_, for any number of classes; ``"fdr"`` that of [Kim06]_, for
        two; ``"loo"`` is the leave-one-out error itself, pulled towards equal weights;
        ``"akfd"`` are the weights of [Fung04]_, by `AKFD` with another ν; ``"alignment"`` the
        kernel alignment of [Pothin06]_, by `Alignment` greedily or exactly; ``"margin"`` the soft
        margin of [Lanckriet04]_, for two classes, by `Margin` with another C or kind;
        ``"separability"`` the scatter between and within classes of [Yeung06]_, by
        `Separability` with another α or as a ratio; ``"uniform"`` is the plain average,
        and `GivenWeights` has weights of your own.
        ``"auto"`` takes what predicts left-out samples best:
        plain average, best single kernel, ``"rkda"`` with shrinkage, or ``"loo"``; with a solver
        of the convex program or ``regularization="joint"`` it is ``"rkda"``. The names stand for
        the objects of `discernel.criteria` with their defaults; one of your own goes here too.
    solver : {"auto", "newton", "galerkin", "sdp", "sdp_approximate", "qcqp", "silp"} or object
        ``"auto"`` is ``"newton"``, for ``"rkda"`` on many samples ``"galerkin"``, which takes
        fewer factorisations, and ``"interior_point"`` for
        ``"margin"``, which takes ``"silp"`` and ``"qcqp"`` too. Objects, such as
        ``SILP(stopping="paper")`` or ``SDP(backend="SCS")``, set more than a name can.
    regularization : float, "auto", "loo" or "joint", default="auto"
        λ, in units of the normalised kernels. 0 is for a matrix of full rank, and weights that do
        not depend on λ. ``"loo"``, which is ``"auto"``, takes the λ
        with the least leave-one-out error of a path, the largest of those within 1 % of it; not
        all of them are tried, see the notes. ``"joint"`` learns λ in the same program as the
        weights ([Ye08]_ section 4, ``"rkda"`` only).
    tol : float, default=1e-6
        The relative duality gap to certify.
    max_iter : int, optional
        The limit of the solver's iterations for one λ; by default its own. Those of ``"newton"``
        are its steps, however many kernels there are.
    random_state : int or RandomState, optional
        Where there are more than 500, draws the samples that ``"auto"`` searches on and those
        that λ is first looked for on; None is 0.
    callback : callable, optional
        Called with a `Progress` once per iteration.
    sample_weight : array-like of shape (n_samples,), optional
        How much each sample counts, as in `MultipleKernelDiscriminant`: relative to the others,
        and a sample of weight 0 is absent.

    Returns
    -------
    LearnedKernel
        Weights, λ, objective, certified gap, status.

    Raises
    ------
    InvalidInputError
        If the matrices, labels or parameters cannot work.
    NumericalError
        If a factorisation breaks down.

    Warns
    -----
    ConvergenceWarning
        If the gap could not be certified.
    DroppedKernelWarning
        If a kernel is constant on the training set.

    Notes
    -----
    One Cholesky factorisation of size n_samples a step, with ``newton`` some 5 to 9 steps, with
    ``galerkin`` 2 to 4, and two matrices of that size beside ``grams``.

    ``regularization="loo"`` knows 13 λ from 1 to 1e-6. The error has one valley, mostly with a
    flat floor: every fourth λ is tried, then those around the edge of the floor, some 7 in all. Of
    more than 500 samples this is done on a quarter, 300 to 1,500 of them, and on all of them for
    that λ and its neighbours only, some 3, as far as the error falls. These are in
    ``leave_one_out``, with weights of a relative gap of at most 1e-4 where the solver is
    ``"newton"`` or ``"galerkin"``. For the λ chosen the gap is then closed to ``tol``.
    `regularization_path` tries all λ on all samples.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discernel.kernels import RBF
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> grams = [RBF(width=s)(X) for s in (1, 4, 16)]
    >>> learned = learn_kernel(grams, y, criterion="rkda", regularization=1e-3)
    >>> learned.weights.round(2).tolist()
    [0.4, 0.54, 0.07]
    >>> learned.gap <= 1e-6
    True
    """
    request = make_request(
        criterion=criterion,
        solver=solver,
        regularization=regularization,
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        callback=callback,
    )
    y, sample_weight = on_host(y), on_host(sample_weight)
    names, sample_weights, present = None, None, None
    if isinstance(grams, Mapping):
        names, grams = [str(name) for name in grams], list(grams.values())
    _check_n_labels(len(np.atleast_1d(np.asarray(y))), grams)
    if sample_weight is not None:
        y, sample_weights, present = _weighted(y, sample_weight)
    target = ClassTarget.from_labels(y, sample_weights)
    request.check_target(target)
    device = device_of_matrices(grams)
    with device_errors(device), blas_threads(target.n_samples):
        bank = bank_of_matrices(
            grams,
            names,
            normalization=request.criterion.normalization,
            sample_weights=sample_weights,
            present=present,
            device=device,
        )
        return learn(bank, target, request)


def _check_n_labels(n_labels: int, grams: Any) -> None:
    one = grams[0] if isinstance(grams, (list, tuple)) and grams else grams
    shape = np.shape(one) if device_of(one) is None else tuple(one.shape)
    if len(shape) >= 2 and shape[-1] != n_labels:
        raise InvalidInputError(
            "There must be one label per row of the Gram matrices. "
            f"Got {n_labels} labels and matrices of shape {shape[-2:]}."
        )


def _weighted(
    y: Any, sample_weight: Any
) -> tuple[Any, SampleWeights | None, NDArray[np.intp] | None]:
    """Return the labels of samples that are not absent, their weights, and which they are."""
    y = np.atleast_1d(np.asarray(y))
    weights = check_sample_weight(sample_weight, len(y))
    present = np.flatnonzero(weights)
    if len(present) == len(weights):
        return y, SampleWeights.of(weights), None
    return y[present], SampleWeights.of(weights[present]), present


def learn(bank: Bank, target: Target, request: Request) -> LearnedKernel:
    """Learn on a bank; the estimators' way in. Warns if the gap could not be certified."""
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
    """Learn on some of the rows, without progress, and without a warning about the gap."""
    return _learn(bank, target, replace(request, callback=None))


def _learn(bank: Bank, target: Target, request: Request) -> LearnedKernel:
    given, request = request.given_regularization, request.on_bank(bank)
    try:
        if given == 0.0:
            return _learn_without_ridge(bank, target, request)
        if request.regularization == "loo" and request.criterion.regularization_is != "learned":
            return _learn_by_leave_one_out(bank, target, request)
        return _solve_one(bank, target, request, given)
    except NumericalError:
        bank.check_definite()  # if that is the reason, its error says so better
        raise


def _learn_without_ridge(bank: Bank, target: Target, request: Request) -> LearnedKernel:
    """Learn with λ = 0: weights that do not depend on it, in a system that can be factored."""
    bank.check_factored()
    if bank.n_kernels == 1:  # its weight is 1, by any criterion
        alone = replace(request, criterion=Uniform(), solver=NoSolver())
        return replace(_solve_one(bank, target, alone, 0.0), criterion=request.criterion.name)
    if request.criterion.regularization_is != "apart" and request.solver.name in SOLVERS:
        raise InvalidInputError(
            f"The weights of criterion='{request.criterion.name}' depend on λ, which must then be "
            "positive. Got regularization=0. Give a positive one, a single kernel, or a criterion "
            "whose weights do not depend on λ, such as 'uniform', 'alignment' or GivenWeights."
        )
    return _solve_one(bank, target, request, 0.0)


def _solve_one(
    bank: Bank,
    target: Target,
    request: Request,
    regularization: float | None,
    *,
    init: FloatArray | None = None,
    stage: int = 0,
    n_stages: int = 1,
) -> LearnedKernel:
    """Learn the weights for one λ, or the weights and λ where it is None."""
    if init is None:
        init = _coarse_start(bank, target, request, regularization)
    program = request.criterion.program(bank, target, regularization)
    if init is not None and len(init) != program.n_weights:
        init = None  # weights of the kernels, and the program has others too
    solver = faster_solver(request, program, bank, target)
    check_solver(solver, program, request.criterion)
    history: list[Progress] = []

    def monitor(
        iteration: int, value: float, gap: float | None, weights: FloatArray, /, **where: int
    ) -> None:
        n_active, objective = int(np.count_nonzero(weights)), program.objective(value)
        where = {"stage": stage, "n_stages": n_stages, **where}
        progress = Progress(iteration, objective, gap, n_active, regularization, **where)
        history.append(progress)
        if request.callback is not None:
            request.callback(progress)
        _stop_in_time(program, request.tol, progress, value, weights)

    task = Task(request.tol, request.max_iter, init, monitor, request.random_state, request.few)
    try:
        solution = solver.solve(program, task)
    except StoppedError as stopped:
        solution = cast(Solution, stopped.solution)  # that of `_stop_in_time`
    _check_solution(solution, program, solver)
    return _learned(bank, request, program, solver, solution, regularization, history)


def _stop_in_time(
    program: Program, tol: float, progress: Progress, value: float, weights: FloatArray
) -> None:
    """End a solver that is out of time with its present weights and their gap.

    Nothing ends before it has a value, nor what has no certificate and may end by itself at once.
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
    raise StoppedError(Solution(normalize(weights), value, bound, status, progress.iteration))


def _check_solution(solution: Any, program: Program, solver: Solver) -> None:
    """Raise a clear error if a solver returned no solution, or left the simplex."""
    if not isinstance(solution, Solution):
        raise InvalidInputError(
            "The solve of a solver must return a Solution of discernel.solvers. "
            f"'{solver.name}' returned {solution!r}."
        )
    weights = np.asarray(solution.weights)
    on_simplex = weights.shape == (program.n_weights,) and bool((weights >= 0).all())
    if not (on_simplex and abs(float(weights.sum()) - 1.0) <= 1e-6):
        raise NumericalError(
            f"The solver must return {program.n_weights} weights that are at least 0 and sum to "
            f"1. '{solver.name}' returned {solution.weights!r}. Use another solver."
        )


def _learned(
    bank: Bank,
    request: Request,
    program: Program,
    solver: Solver,
    solution: Solution,
    regularization: float | None,
    history: list[Progress],
) -> LearnedKernel:
    """Return what a solution says of the kernels of the bank."""
    split, status = program.split(solution.weights), solution.status
    known = (regularization, split.regularization, solution.regularization)
    used = next((lam for lam in known if lam is not None), None)
    if used is None:
        raise InvalidInputError(
            "Where no λ is given, the solver or the program must say which it learned. "
            f"'{solver.name}' returned a Solution without a regularization; give a number."
        )
    if split.at_floor and status is Status.CONVERGED:
        status = Status.FLOOR
    if len(split.weights) == 1 and status is Status.STALLED:
        status = Status.NO_PROGRAM  # one kernel: the gap is what is not known of the value
    limit = "smallest" if status is Status.FLOOR else solution.regularization_at_limit
    has_value, is_convex = not np.isnan(solution.value), offers(program, "at")
    return LearnedKernel(
        weights=bank.expand(split.weights),
        coefficients=bank.coefficients(split.weights),
        regularization=used,
        objective=program.objective(solution.value) if has_value else None,
        gap=solution.gap if is_convex else None,
        status=status,
        n_iter=solution.n_iter,
        criterion=request.criterion.name,
        solver=solver.name,
        history=history,
        considered=solution.considered,
        parameters=split.parameters,
        screened=solution.screened,
        regularization_at_limit=limit,
        names=tuple(bank.names),
    )


def _is_smooth(request: Request) -> bool:
    """Whether a good start saves the solver steps."""
    return request.solver.name in ("galerkin", "newton")


def _coarse_start(
    bank: Bank, target: Target, request: Request, regularization: float | None
) -> FloatArray | None:
    """Return the optimum of a quarter of many samples: fewer factorisations of all are needed.

    Fewer samples are fitted with ease by narrower kernels. Twice the λ makes up for it: over
    three data sets, two sets of kernels and λ from 1e-5 to 0.1, it was better than λ and 4λ.
    """
    if bank.n_samples < _MANY or not _is_smooth(request) or regularization is None:
        return None
    part = draw_part(bank, target, 0.25, np.random.RandomState(0))
    if part is None:
        return None
    coarse = replace(request, callback=None, tol=max(request.tol, _ROUGH_TOL))
    # Weights of the part's candidates, which are the kernels of the whole.
    return _solve_one(part.bank, part.target, coarse, 2.0 * regularization).weights


class _Path:
    """The λ of a path on one set of samples: each is learned and scored when it is asked for.

    Parameters
    ----------
    bank, target, request
        What is learned, on which samples.
    regularizations : sequence of float
        The path, falling.
    start : callable, optional
        From λ to weights to start from. By default those of the nearest λ so far.
    """

    def __init__(
        self,
        bank: Bank,
        target: Target,
        request: Request,
        regularizations: Sequence[float],
        start: Callable[[float], FloatArray] | None = None,
    ) -> None:
        self._bank, self._target, self._request = bank, target, request
        self._regularizations, self._start = regularizations, start
        self._apart = request.criterion.regularization_is == "apart"
        self._systems: Callable[[FloatArray], System] | None = None
        self.tol = request.tol
        #: With their errors, in the order in which they were asked for.
        self.found: list[tuple[LearnedKernel, float]] = []

    def error(self, regularization: float) -> float:
        """Learn for a λ and return its leave-one-out error.

        Infinite for a λ that there is no time for, unless it is the first.
        """
        if self.found and is_late():
            return np.inf
        learned = self._learn(regularization)
        ridge = self._request.criterion.sample_ridge(self._target, learned.regularization)
        weights, scores = self._target.sample_weights, self._target.scores
        fit = KernelLeastSquares(self._system(learned, ridge), ridge, scores, weights)
        error = fit.leave_one_out_error()
        self.found.append((learned, error))
        return error

    def _learn(self, lam: float) -> LearnedKernel:
        if self.found and self._apart:  # weights that do not know λ are found once
            known = self.found[0][0]
            return replace(known, regularization=lam, n_iter=0, history=[])
        init = self.nearest(lam) if self._start is None else self._start(lam)
        return self.solve(self._request, lam, init)

    def nearest(self, regularization: float) -> FloatArray | None:
        """Return the weights of the nearest λ so far; None where there is none."""
        if not self.found:
            return None

        def distance(learned: LearnedKernel) -> float:
            return float(abs(np.log(learned.regularization / regularization)))

        learned = min((learned for learned, _ in self.found), key=distance)
        return self.weights(learned)

    def solve(
        self, request: Request, regularization: float, init: FloatArray | None
    ) -> LearnedKernel:
        """Learn for a λ, which is the next stage."""
        return _solve_one(
            self._bank,
            self._target,
            request,
            regularization,
            init=init,
            stage=len(self.found),
            n_stages=len(self._regularizations),
        )

    def weights(self, learned: LearnedKernel) -> FloatArray:
        """Return the weights of the kernels, without the candidates that were left out."""
        return learned.weights[self._bank.kept]

    def _system(self, learned: LearnedKernel, ridge: FloatArray) -> System:
        if not self._apart:  # mostly the one that the solver ended with
            return self._bank.system(self.weights(learned), ridge)
        if self._systems is None:
            self._systems = self._bank.systems(self.weights(learned))
        return self._systems(ridge)

    def falling(self) -> list[tuple[LearnedKernel, float]]:
        """Return what was learned, from the largest λ to the smallest, with the errors."""
        return sorted(self.found, key=lambda found: -found[0].regularization)


def learn_path(
    bank: Bank, target: Target, request: Request, regularizations: Sequence[float]
) -> list[tuple[LearnedKernel, float]]:
    """Learn for every λ, each from the weights of the one before, with its leave-one-out error."""
    path = _Path(bank, target, request.on_bank(bank), regularizations)
    for regularization in regularizations:
        path.error(regularization)
    return path.falling()


def _learn_by_leave_one_out(bank: Bank, target: Target, request: Request) -> LearnedKernel:
    """Learn for the λ of the default path that are worth it, and return the best.

    Of many samples a part tells where to start, and only for the best λ the gap is closed.
    """
    part = _part_to_look_at(bank, target, request)
    path, first = _Path(bank, target, request, DEFAULT_REGULARIZATIONS), None
    if part is not None:
        rough = replace(request, callback=None, tol=max(request.tol, _ROUGH_TOL))
        small = _Path(part.bank, part.target, rough, DEFAULT_REGULARIZATIONS)
        first = _walked(small).position
        if _is_smooth(request):
            scored = replace(request, tol=max(request.tol, _SCORED_TOL))
            start = _start_from(part, small, rough, bank.n_samples)
            path = _Path(bank, target, scored, DEFAULT_REGULARIZATIONS, start)
    search = _walked(path, first)
    best = next(one for one, _ in path.found if one.regularization == search.regularization)
    if best.gap is None or best.gap <= request.tol or path.tol <= request.tol:
        return _chosen(path, search, best, [])
    if is_late():
        return _chosen(path, search, replace(best, status=Status.OUT_OF_TIME), [])
    closer = path.solve(request, best.regularization, path.weights(best))
    return _chosen(path, search, closer, [closer])


def _start_from(
    part: Part, small: _Path, request: Request, n_samples: int
) -> Callable[[float], FloatArray]:
    """Return the function from λ to weights for all samples, from their path on a part of them.

    Measured, these leave a smaller gap after one round than weights of a neighbouring λ on all.
    """
    # As in `_coarse_start`: twice the λ for a quarter.
    factor = float(np.sqrt(n_samples / part.bank.n_samples))

    def start(lam: float) -> FloatArray:
        init = small.nearest(factor * lam)
        solved = _solve_one(part.bank, part.target, request, factor * lam, init=init)
        return part.on_all(small.weights(solved))

    return start


def _walked(path: _Path, start: int | None = None) -> LambdaSearch:
    """Search the λ of the default path."""
    return search_lambda(DEFAULT_REGULARIZATIONS, path.error, WALK, start)


def _chosen(
    path: _Path, search: LambdaSearch, best: LearnedKernel, more: list[LearnedKernel]
) -> LearnedKernel:
    """Return the best with what the whole path, and more after it, took."""
    solved = [*(learned for learned, _ in path.found), *more]
    return replace(
        best,
        n_iter=sum(learned.n_iter for learned in solved),
        history=[progress for learned in solved for progress in learned.history],
        leave_one_out={learned.regularization: error for learned, error in path.falling()},
        regularization_at_limit=search.at_limit,
    )


def _part_to_look_at(bank: Bank, target: Target, request: Request) -> Part | None:
    """Return a quarter of the samples to look for λ on; None where they are few."""
    n = target.n_samples
    if n <= request.few:
        return None
    # None is 0 here: the same data give the same kernel.
    rng = check_random_state(0 if request.random_state is None else request.random_state)
    least, most = _PART_SAMPLES
    return draw_part(bank, target, min(max(n // 4, least), most) / n, rng)
