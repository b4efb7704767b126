"""`learn_kernel`: which program, which solver, which λ."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from discernel.backend import FloatArray, blas_threads
from discernel.bank import Bank, DenseBank, Normalization
from discernel.criteria import RKDA, Criterion, FisherRatio, JointRKDA, KernelLeastSquares
from discernel.exceptions import (
    ConvergenceWarning,
    InvalidInputError,
    NumericalError,
    unknown_choice,
)
from discernel.learners.conic import QCQP, SDP
from discernel.learners.newton import Newton
from discernel.learners.silp import SILP
from discernel.learners.simplex import uniform
from discernel.learners.solution import (
    Callback,
    LearnedKernel,
    Progress,
    Solver,
    Status,
)
from discernel.targets import ClassTarget

__all__ = [
    "CRITERIA",
    "DEFAULT_REGULARIZATIONS",
    "SOLVERS",
    "CriterionSpec",
    "Request",
    "learn",
    "learn_kernel",
    "sample_ridge",
]

#: λ considered by ``regularization="loo"``, in units of the (trace-normalised) kernels.
DEFAULT_REGULARIZATIONS: tuple[float, ...] = tuple(np.logspace(0.0, -6.0, 13).tolist())

#: Leave-one-out errors that differ by less than this share count as equal.
_FLAT = 0.01

SOLVERS: dict[str, Callable[[], Solver]] = {
    "newton": Newton,
    "sdp": SDP,
    "sdp_approximate": lambda: SDP(approximate=True),
    "qcqp": QCQP,
    "silp": SILP,
}


@dataclass(frozen=True)
class CriterionSpec:
    """What `learn_kernel` has to know about a criterion.

    Attributes
    ----------
    normalization : str
        How the bank normalises the kernels for it.
    solvers : tuple of str
        The solvers that can be asked for; the first is the default.
    regularizations : tuple of str
        The words that may stand for λ.
    build : callable or None
        From bank, target and λ (None: learn it) to the criterion; None where there is no program.
    balanced : bool
        Whether the discriminant that goes with it weighs classes, not samples, equally.
    two_classes : bool
        Whether it is defined for two classes only.
    """

    normalization: Normalization
    solvers: tuple[str, ...]
    regularizations: tuple[str, ...]
    build: Callable[[Bank, ClassTarget, float | None], Criterion] | None = None
    balanced: bool = False
    two_classes: bool = False


def _build_rkda(bank: Bank, target: ClassTarget, regularization: float | None) -> Criterion:
    if regularization is None:
        return JointRKDA(bank, target)
    return RKDA(bank, target, regularization)


def _build_fdr(bank: Bank, target: ClassTarget, regularization: float | None) -> Criterion:
    assert regularization is not None, "'joint' is not among the regularizations of fdr"
    return FisherRatio(bank, target, regularization)


CRITERIA: dict[str, CriterionSpec] = {
    "rkda": CriterionSpec(
        normalization="centered_trace",
        solvers=("newton", "sdp", "sdp_approximate", "qcqp", "silp"),
        regularizations=("loo", "joint"),
        build=_build_rkda,
    ),
    "fdr": CriterionSpec(
        normalization="trace",
        solvers=("newton", "sdp"),
        regularizations=("loo",),
        build=_build_fdr,
        balanced=True,
        two_classes=True,
    ),
    "uniform": CriterionSpec("centered_trace", solvers=(), regularizations=("loo",)),
}


def sample_ridge(criterion: str, target: ClassTarget, regularization: float) -> FloatArray:
    """Return λ times the inverse sample weights of the discriminant that goes with a criterion.

    1 for [Ye08]_, whose scatter counts samples; the class size for [Kim06]_, whose scatter is the
    sum of the class covariances.
    """
    if CRITERIA[criterion].balanced:
        return regularization * target.counts[target.codes].astype(np.float64)
    return np.full(target.n_samples, regularization)


@dataclass(frozen=True)
class Request:
    """What to learn and how, checked; the words a user gives to `learn_kernel`.

    Attributes
    ----------
    criterion : str
        A key of `CRITERIA`.
    solver : Solver or None
        None where the criterion has no program.
    regularization : float, "loo" or "joint"
    tol, max_iter, callback
        As in `learn_kernel`.
    """

    criterion: str
    solver: Solver | None
    regularization: float | Literal["loo", "joint"]
    tol: float = 1e-6
    max_iter: int | None = None
    callback: Callback | None = None

    @classmethod
    def make(
        cls,
        *,
        criterion: str = "auto",
        solver: str | Solver = "auto",
        regularization: float | str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        callback: Callback | None = None,
    ) -> Request:
        """Return the request these words stand for, or raise a clear error."""
        criterion = "rkda" if criterion == "auto" else criterion
        if criterion not in CRITERIA:
            raise unknown_choice("criterion", criterion, ["auto", *CRITERIA])
        if not (isinstance(tol, (int, float)) and tol > 0):
            raise InvalidInputError(f"tol must be a positive number. Got {tol!r}.")
        if max_iter is not None and not (isinstance(max_iter, (int, np.integer)) and max_iter > 0):
            raise InvalidInputError(
                f"max_iter must be a positive integer or None. Got {max_iter!r}."
            )
        return cls(
            criterion,
            _check_solver(solver, criterion),
            _check_regularization(regularization, criterion),
            float(tol),
            max_iter,
            callback,
        )

    @property
    def spec(self) -> CriterionSpec:
        """The entry of the criterion in `CRITERIA`."""
        return CRITERIA[self.criterion]

    def check_target(self, target: ClassTarget) -> None:
        """Raise a clear error if the classes cannot be learnt as asked."""
        if self.spec.two_classes and target.n_classes != 2:
            raise InvalidInputError(
                f"criterion='{self.criterion}' is defined for two classes. Got "
                f"{target.n_classes}: {target.classes.tolist()}. Use criterion='rkda', which "
                "takes any number of classes."
            )
        if self.regularization == "loo":
            check_leave_one_out(target, "regularization='loo'", "a number as regularization")


def check_leave_one_out(target: ClassTarget, what: str, instead: str) -> None:
    """Raise a clear error if a class would vanish when one sample is left out."""
    single = target.classes[target.counts == 1]
    if len(single):
        raise InvalidInputError(
            f"{what} leaves one sample out at a time, so every class must have at least two "
            f"samples. Got 1 sample of {single.tolist()}. Merge or remove the class, or give "
            f"{instead}."
        )


def _check_solver(solver: str | Solver, criterion: str) -> Solver | None:
    known = CRITERIA[criterion].solvers
    name = solver if isinstance(solver, str) else getattr(solver, "name", repr(solver))
    if name == "auto":
        return SOLVERS[known[0]]() if known else None
    if name not in known:
        raise unknown_choice(f"solver of criterion='{criterion}'", name, ["auto", *known])
    return SOLVERS[name]() if isinstance(solver, str) else solver


def _check_regularization(
    regularization: float | str, criterion: str
) -> float | Literal["loo", "joint"]:
    words = CRITERIA[criterion].regularizations
    if isinstance(regularization, str):
        if regularization in ("auto", "loo"):
            return "loo"
        if regularization == "joint" and "joint" in words:
            return "joint"
        raise unknown_choice(
            f"regularization of criterion='{criterion}', where it is not a number,",
            regularization,
            ["auto", *words],
        )
    if not (isinstance(regularization, (int, float, np.number)) and 0 < regularization < np.inf):
        raise InvalidInputError(
            "The regularization must be a positive, finite number or one of "
            f"{['auto', *words]}. Got {regularization!r}."
        )
    return float(regularization)


def learn_kernel(
    grams: Any,
    y: Any,
    *,
    criterion: str = "auto",
    solver: str | Solver = "auto",
    regularization: float | str = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
) -> LearnedKernel:
    """Learn the combination of kernels that separates the classes best.

    Parameters
    ----------
    grams : array-like of shape (n_kernels, n_samples, n_samples)
        Raw Gram matrices; they are centred and normalised here.
    y : array-like of shape (n_samples,)
        Class labels.
    criterion : {"auto", "rkda", "fdr", "uniform"}, default="auto"
        ``"rkda"`` is that of [Ye08]_, for any number of classes; ``"fdr"`` that of [Kim06]_, for
        two; ``"uniform"`` is the plain average. ``"auto"`` is ``"rkda"``.
    solver : {"auto", "newton", "sdp", "sdp_approximate", "qcqp", "silp"} or object
        ``"auto"`` is ``"newton"``. Objects, such as ``SILP(stopping="paper")`` or
        ``SDP(backend="SCS")``, set more than a name can.
    regularization : float, "auto", "loo" or "joint", default="auto"
        λ > 0, in units of the normalised kernels. ``"loo"``, which is ``"auto"``, takes the λ
        with the least leave-one-out error of a path, the largest of those within 1 % of it;
        ``"joint"`` learns λ in the same program as the weights ([Ye08]_ section 4, ``"rkda"``
        only).
    tol : float, default=1e-6
        The relative duality gap to certify.
    max_iter : int, optional
        The limit of the solver's iterations; by default its own.
    random_state : int or RandomState, optional
        No criterion of this version draws random numbers; accepted for those that will.
    callback : callable, optional
        Called with a `Progress` once an iteration.

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
    With ``newton``: one Cholesky factorisation of size n_samples a step, some 5 to 9 steps, and
    two matrices of that size beside ``grams``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discernel.kernels import RBF
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> learned = learn_kernel([RBF(width=s)(X) for s in (1, 4, 16)], y, regularization=1e-3)
    >>> learned.weights.round(2).tolist()
    [0.0, 0.69, 0.31]
    >>> learned.gap <= 1e-6
    True
    """
    request = Request.make(
        criterion=criterion,
        solver=solver,
        regularization=regularization,
        tol=tol,
        max_iter=max_iter,
        callback=callback,
    )
    target = ClassTarget.from_labels(y)
    request.check_target(target)
    shape = np.shape(grams)
    if len(shape) == 3 and shape[1] != target.n_samples:
        raise InvalidInputError(
            "There must be one label a row of the Gram matrices. "
            f"Got {target.n_samples} labels and matrices of shape {shape[1:]}."
        )
    with blas_threads(target.n_samples):
        bank = DenseBank(grams, normalization=request.spec.normalization)
        return learn(bank, target, request)


def learn(bank: Bank, target: ClassTarget, request: Request) -> LearnedKernel:
    """Learn on a bank; the estimators' way in. Warns if the gap could not be certified."""
    try:
        if request.regularization == "loo":
            learned = _learn_by_leave_one_out(bank, target, request)
        else:
            regularization = None if request.regularization == "joint" else request.regularization
            learned = _solve_one(bank, target, request, regularization).learned
    except NumericalError:
        bank.check_definite()  # if that is the reason, its error says so better
        raise
    if not learned.status.is_success:
        warnings.warn(
            f"The kernel weights may not be optimal: {learned.status} after {learned.n_iter} "
            f"iterations of '{learned.solver}', certified relative gap {learned.gap:.1e}, asked "
            f"for {request.tol:.1e}. {learned.status.advice}",
            ConvergenceWarning,
            stacklevel=3,
        )
    return learned


@dataclass(frozen=True)
class _Solved:
    """A learnt kernel and the solver's own weights, to start the next one from."""

    learned: LearnedKernel
    weights: FloatArray = field(repr=False)


def _solve_one(
    bank: Bank,
    target: ClassTarget,
    request: Request,
    regularization: float | None,
    *,
    init: FloatArray | None = None,
    stage: int = 0,
    n_stages: int = 1,
) -> _Solved:
    """Learn the weights for one λ, or the weights and λ where it is None."""
    spec, solver = request.spec, request.solver
    if spec.build is None or solver is None:
        assert regularization is not None, "no criterion without a program can learn λ"
        weights = uniform(bank.n_kernels)
        learned = LearnedKernel(
            weights=bank.expand(weights),
            coefficients=bank.coefficients(weights),
            regularization=regularization,
            objective=None,
            gap=None,
            status=Status.NO_PROGRAM,
            n_iter=0,
            criterion=request.criterion,
            solver="none",
        )
        return _Solved(learned, weights)
    criterion = spec.build(bank, target, regularization)
    history: list[Progress] = []

    def monitor(iteration: int, value: float, gap: float, weights: FloatArray) -> None:
        progress = Progress(
            iteration,
            criterion.objective(value),
            gap,
            int(np.count_nonzero(weights)),
            regularization,
            stage,
            n_stages,
        )
        history.append(progress)
        if request.callback is not None:
            request.callback(progress)

    solution = solver.solve(
        criterion, tol=request.tol, max_iter=request.max_iter, init=init, monitor=monitor
    )
    weights, status = solution.weights, solution.status
    if isinstance(criterion, JointRKDA):
        weights, regularization = criterion.split(weights)
        if status is Status.CONVERGED and regularization <= 2 * criterion.ridge:
            status = Status.FLOOR
    assert regularization is not None
    learned = LearnedKernel(
        weights=bank.expand(weights),
        coefficients=bank.coefficients(weights),
        regularization=regularization,
        objective=criterion.objective(solution.value),
        gap=solution.gap,
        status=status,
        n_iter=solution.n_iter,
        criterion=request.criterion,
        solver=solver.name,
        history=history,
    )
    return _Solved(learned, solution.weights)


def learn_path(
    bank: Bank, target: ClassTarget, request: Request, regularizations: Sequence[float]
) -> list[tuple[LearnedKernel, float]]:
    """Learn for every λ, each from the weights of the one before, with its leave-one-out error."""
    path, init = [], None
    for stage, regularization in enumerate(regularizations):
        solved = _solve_one(
            bank,
            target,
            request,
            regularization,
            init=init,
            stage=stage,
            n_stages=len(regularizations),
        )
        init = solved.weights
        ridge = sample_ridge(request.criterion, target, regularization)
        fit = KernelLeastSquares(bank.system(init, ridge), ridge, target.scores)
        path.append((solved.learned, fit.leave_one_out_error()))
    return path


def _learn_by_leave_one_out(bank: Bank, target: ClassTarget, request: Request) -> LearnedKernel:
    path = learn_path(bank, target, request, DEFAULT_REGULARIZATIONS)
    # Towards 0 the error often becomes flat: of λ that are as good, the largest is the simplest.
    limit = (1.0 + _FLAT) * min(error for _, error in path)
    best = next(learned for learned, error in path if error <= limit)
    return replace(
        best,
        n_iter=sum(learned.n_iter for learned, _ in path),
        history=[progress for learned, _ in path for progress in learned.history],
        leave_one_out={learned.regularization: error for learned, error in path},
    )
