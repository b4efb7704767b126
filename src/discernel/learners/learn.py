"""`learn_kernel`: weights for one λ, along a path of λ, or for the best of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discernel.backend import FloatArray, blas_threads
from discernel.bank import Bank, DenseBank
from discernel.criteria import KernelLeastSquares, Program, offers
from discernel.exceptions import ConvergenceWarning, InvalidInputError, NumericalError
from discernel.learners.loo import FLAT, find_limit
from discernel.learners.margin import maximize
from discernel.learners.part import draw_part
from discernel.learners.request import Request, check_solver, faster_solver, make_request
from discernel.learners.solution import (
    Callback,
    LearnedKernel,
    Progress,
    Solution,
    Solver,
    Status,
    Task,
)
from discernel.sample_weights import SampleWeights, check_sample_weight
from discernel.targets import ClassTarget, Target, check_classes_present

__all__ = ["DEFAULT_REGULARIZATIONS", "learn", "learn_kernel", "learn_path"]

#: λ considered by ``regularization="loo"``, in units of the (trace-normalised) kernels.
DEFAULT_REGULARIZATIONS: tuple[float, ...] = tuple(np.logspace(0.0, -6.0, 13).tolist())
#: From here on samples are many.
_MANY = 1000


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
    grams : array-like of shape (n_kernels, n_samples, n_samples)
        Raw Gram matrices; they are centred and normalised here.
    y : array-like of shape (n_samples,)
        Class labels.
    criterion : str or object, default="auto"
        ``"rkda"`` is that of [Ye08]_, for any number of classes; ``"fdr"`` that of [Kim06]_, for
        two; ``"loo"`` is the leave-one-out error itself, pulled towards equal weights;
        ``"akfd"`` are the weights of [Fung04]_, by `AKFD` with another ν; ``"alignment"`` the
        kernel alignment of [Pothin06]_, by `Alignment` greedily or exactly; ``"margin"`` the soft
        margin of [Lanckriet04]_, for two classes, by `Margin` with another C or kind;
        ``"separability"`` the scatter between and within classes of [Yeung06]_, by
        `Separability` with another α or as a ratio; ``"uniform"`` is the plain average.
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
        λ > 0, in units of the normalised kernels. ``"loo"``, which is ``"auto"``, takes the λ
        with the least leave-one-out error of a path, the largest of those within 1 % of it;
        ``"joint"`` learns λ in the same program as the weights ([Ye08]_ section 4, ``"rkda"``
        only).
    tol : float, default=1e-6
        The relative duality gap to certify.
    max_iter : int, optional
        The limit of the solver's iterations for one λ; by default its own. Those of ``"newton"``
        are its steps, however many kernels there are.
    random_state : int or RandomState, optional
        Draws the samples ``"auto"`` searches on where there are more than 500; None is 0.
    callback : callable, optional
        Called with a `Progress` once an iteration.
    sample_weight : array-like of shape (n_samples,), optional
        How much each sample counts, as in `MultipleKernelDiscriminant`: whole numbers are counts,
        others are relative to each other, and a sample of weight 0 is absent.

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
    sample_weights = None
    if sample_weight is not None:
        grams, y, sample_weights = _weighted(grams, y, sample_weight)
    target = ClassTarget.from_labels(y, sample_weights)
    request.check_target(target)
    _check_n_labels(target.n_samples, grams)
    with blas_threads(target.n_samples):
        bank = DenseBank(
            grams, normalization=request.criterion.normalization, sample_weights=sample_weights
        )
        return learn(bank, target, request)


def _check_n_labels(n_labels: int, grams: Any) -> None:
    shape = np.shape(grams)
    if len(shape) == 3 and shape[1] != n_labels:
        raise InvalidInputError(
            "There must be one label per row of the Gram matrices. "
            f"Got {n_labels} labels and matrices of shape {shape[1:]}."
        )


def _weighted(grams: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, SampleWeights | None]:
    """Return matrices and labels without absent samples, and the weights of the others."""
    y = np.atleast_1d(np.asarray(y))
    _check_n_labels(len(y), grams)
    weights = check_sample_weight(sample_weight, len(y))
    present = np.flatnonzero(weights)
    if len(present) < len(weights):
        check_classes_present(y, present)
        y, grams = y[present], [np.asarray(gram)[np.ix_(present, present)] for gram in grams]
    return grams, y, SampleWeights.of(weights[present])


def learn(bank: Bank, target: Target, request: Request) -> LearnedKernel:
    """Learn on a bank; the estimators' way in. Warns if the gap could not be certified."""
    lam = request.regularization
    try:
        if lam == "loo" and request.criterion.regularization_is != "learned":
            learned = _learn_by_leave_one_out(bank, target, request)
        else:
            learned = _solve_one(bank, target, request, lam if isinstance(lam, float) else None)
    except NumericalError:
        bank.check_definite()  # if that is the reason, its error says so better
        raise
    if not learned.status.is_success:
        gap = "without a certificate"
        if learned.gap is not None:
            gap = f"certified relative gap {learned.gap:.1e}, asked for {request.tol:.1e}"
        warnings.warn(
            f"The kernel weights may not be optimal: {learned.status} after {learned.n_iter} "
            f"iterations of '{learned.solver}', {gap}. {learned.status.advice}",
            ConvergenceWarning,
            stacklevel=3,
        )
    return learned


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
    program = _program(bank, target, request, regularization)
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

    task = Task(request.tol, request.max_iter, init, monitor, request.random_state)
    solution = solver.solve(program, task)
    _check_solution(solution, program, solver)
    return _learned(bank, request, program, solver, solution, regularization, history)


def _program(bank: Bank, target: Target, request: Request, regularization: float | None) -> Program:
    program = request.criterion.program(bank, target, regularization)
    if getattr(program, "maximize", True) is None:
        program.maximize = maximize  # type: ignore[attr-defined]  # its values take an algorithm
    return program


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
    )


def _coarse_start(
    bank: Bank, target: Target, request: Request, regularization: float | None
) -> FloatArray | None:
    """Return the optimum of a quarter of many samples: fewer factorisations of all are needed.

    Fewer samples are fitted with ease by narrower kernels. Twice the λ makes up for it: over
    three data sets, two sets of kernels and λ from 1e-5 to 0.1, it was better than λ and 4λ.
    """
    smooth = request.solver.name in ("galerkin", "newton")
    if bank.n_samples < _MANY or not smooth or regularization is None:
        return None
    part = draw_part(bank, target, 0.25, np.random.RandomState(0))
    if part is None:
        return None
    coarse = replace(request, callback=None, tol=max(request.tol, 1e-3))
    # Weights of the part's candidates, which are the kernels of the whole.
    return _solve_one(part.bank, part.target, coarse, 2.0 * regularization).weights


def learn_path(
    bank: Bank, target: Target, request: Request, regularizations: Sequence[float]
) -> list[tuple[LearnedKernel, float]]:
    """Learn for every λ, each from the weights of the one before, with its leave-one-out error."""
    path: list[tuple[LearnedKernel, float]] = []
    init, n_stages, system = None, len(regularizations), None
    apart = request.criterion.regularization_is == "apart"
    for stage, lam in enumerate(regularizations):
        if path and apart:  # weights that do not know λ are found once
            learned = replace(path[0][0], regularization=lam, n_iter=0, history=[])
        else:
            learned = _solve_one(
                bank, target, request, lam, init=init, stage=stage, n_stages=n_stages
            )
        init = None if apart else learned.weights[bank.kept]
        if system is None or not apart:
            system = bank.systems(learned.weights[bank.kept])
        ridge = request.criterion.sample_ridge(target, lam)
        fit = KernelLeastSquares(system(ridge), ridge, target.scores, target.sample_weights)
        path.append((learned, fit.leave_one_out_error()))
    return path


def _learn_by_leave_one_out(bank: Bank, target: Target, request: Request) -> LearnedKernel:
    path = learn_path(bank, target, request, DEFAULT_REGULARIZATIONS)
    limit = (1.0 + FLAT) * min(error for _, error in path)
    best = next(learned for learned, error in path if error <= limit)
    return replace(
        best,
        n_iter=sum(learned.n_iter for learned, _ in path),
        history=[progress for learned, _ in path for progress in learned.history],
        leave_one_out={learned.regularization: error for learned, error in path},
        regularization_at_limit=find_limit(best.regularization, DEFAULT_REGULARIZATIONS),
    )
