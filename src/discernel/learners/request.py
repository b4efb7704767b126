"""What can be asked for: criteria, solvers, values of λ; the words of `learn_kernel`, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from discernel.backend import FloatArray
from discernel.bank import Bank, Normalization
from discernel.criteria import RKDA, Criterion, FisherRatio, JointRKDA
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.learners.conic import QCQP, SDP
from discernel.learners.newton import Newton
from discernel.learners.silp import SILP
from discernel.learners.simplex import uniform
from discernel.learners.solution import Callback, Solver, Weighting
from discernel.targets import ClassTarget

__all__ = [
    "CRITERIA",
    "SOLVERS",
    "CriterionSpec",
    "Request",
    "check_leave_one_out",
    "sample_ridge",
]

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
        From bank, target and λ (None: learn it) to a convex criterion, which a solver minimises.
    weigh : callable or None
        From bank, target and request to weights that do not depend on λ. Either this or ``build``.
    balanced : bool
        Whether the discriminant that goes with it weighs classes, not samples, equally.
    two_classes : bool
        Whether it is defined for two classes only.
    options : callable or None
        Makes the default options, where the criterion has any; a user may pass others in place of
        its name.
    """

    normalization: Normalization
    solvers: tuple[str, ...]
    regularizations: tuple[str, ...]
    build: Callable[[Bank, ClassTarget, float | None], Criterion] | None = None
    weigh: Callable[[Bank, ClassTarget, Request], Weighting] | None = None
    balanced: bool = False
    two_classes: bool = False
    options: Callable[[], Any] | None = None


def _build_rkda(bank: Bank, target: ClassTarget, regularization: float | None) -> Criterion:
    if regularization is None:
        return JointRKDA(bank, target)
    return RKDA(bank, target, regularization)


def _build_fdr(bank: Bank, target: ClassTarget, regularization: float | None) -> Criterion:
    assert regularization is not None, "'joint' is not among the regularizations of fdr"
    return FisherRatio(bank, target, regularization)


def _plain_average(bank: Bank, target: ClassTarget, request: Request) -> Weighting:
    return Weighting(uniform(bank.n_kernels))


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
    "uniform": CriterionSpec(
        normalization="centered_trace", solvers=(), regularizations=("loo",), weigh=_plain_average
    ),
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
    options : object
        What else the criterion is told.
    """

    criterion: str
    solver: Solver | None
    regularization: float | Literal["loo", "joint"]
    tol: float = 1e-6
    max_iter: int | None = None
    callback: Callback | None = None
    options: Any = None

    @classmethod
    def make(
        cls,
        *,
        criterion: Any = "auto",
        solver: str | Solver = "auto",
        regularization: float | str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        callback: Callback | None = None,
    ) -> Request:
        """Return the request these words stand for, or raise a clear error."""
        options = None if isinstance(criterion, str) else criterion
        criterion = (
            criterion if isinstance(criterion, str) else getattr(criterion, "name", criterion)
        )
        criterion = "rkda" if criterion == "auto" else criterion
        if criterion not in CRITERIA:
            raise unknown_choice("criterion", criterion, ["auto", *CRITERIA])
        spec = CRITERIA[criterion]
        if options is None and spec.options is not None:
            options = spec.options()
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
            options,
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
    chosen = SOLVERS[name]() if isinstance(solver, str) else solver
    if isinstance(chosen, (SDP, QCQP)):
        chosen.check_installed()
    return chosen


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
