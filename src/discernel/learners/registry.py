"""Which criteria and solvers there are; from the words of `learn_kernel` to a request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from discernel.bank import Bank
from discernel.criteria import Criterion, FisherRatio
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.learners.alignment import Alignment, weigh_by_alignment
from discernel.learners.alternating import AKFD, weigh_by_alternation
from discernel.learners.auto import learn_auto, learn_loo
from discernel.learners.conic import QCQP, SDP
from discernel.learners.galerkin import Galerkin
from discernel.learners.loo import LOO
from discernel.learners.margin import InteriorPoint, Margin, weigh_by_margin
from discernel.learners.newton import Newton
from discernel.learners.request import CriterionSpec, Request
from discernel.learners.separability import Separability, weigh_by_separability
from discernel.learners.shrinkage import Shrinkage, build_rkda
from discernel.learners.silp import SILP
from discernel.learners.simplex import uniform
from discernel.learners.solution import Callback, Solver, Weighting
from discernel.targets import ClassTarget, Target

__all__ = ["CRITERIA", "SOLVERS", "make_request"]

SOLVERS: dict[str, Callable[[], Solver]] = {
    "newton": Newton,
    "galerkin": Galerkin,
    "sdp": SDP,
    "sdp_approximate": lambda: SDP(approximate=True),
    "qcqp": QCQP,
    "silp": SILP,
    "interior_point": InteriorPoint,
}


def _build_fdr(
    bank: Bank, target: Target, regularization: float | None, request: Request
) -> Criterion:
    assert regularization is not None, "'joint' is not among the regularizations of fdr"
    assert isinstance(target, ClassTarget), "fdr is for two classes"
    return FisherRatio(bank, target, regularization)


def _plain_average(bank: Bank, target: Target, request: Request) -> Weighting:
    return Weighting(uniform(bank.n_kernels))


CRITERIA: dict[str, CriterionSpec] = {
    "auto": CriterionSpec(("lbfgs",), ("loo",), learn=learn_auto, options=LOO),
    "rkda": CriterionSpec(
        ("newton", "galerkin", "sdp", "sdp_approximate", "qcqp", "silp"),
        ("loo", "joint"),
        build=build_rkda,
        options=lambda: Shrinkage(0.0),
    ),
    "fdr": CriterionSpec(
        ("newton", "sdp"),
        ("loo",),
        build=_build_fdr,
        normalization="trace",
        balanced=True,
        two_classes=True,
        classes_only=True,
    ),
    "akfd": CriterionSpec(
        ("alternating",), ("loo",), weigh=weigh_by_alternation, classes_only=True, options=AKFD
    ),
    "alignment": CriterionSpec(
        ("greedy", "qp"), ("loo",), weigh=weigh_by_alignment, options=Alignment
    ),
    "margin": CriterionSpec(
        ("interior_point", "silp", "qcqp"),
        ("loo",),
        weigh=weigh_by_margin,
        normalization="trace",
        balanced=True,  # as for fdr: λ times class sizes suits kernels of trace n_samples
        two_classes=True,
        classes_only=True,
        options=Margin,
    ),
    "separability": CriterionSpec(
        ("closed_form", "dinkelbach"),
        ("loo",),
        weigh=weigh_by_separability,
        classes_only=True,
        options=Separability,
    ),
    "loo": CriterionSpec(("lbfgs",), ("loo",), learn=learn_loo, options=LOO),
    "uniform": CriterionSpec((), ("loo",), weigh=_plain_average),
}


def make_request(
    *,
    criterion: Any = "auto",
    solver: str | Solver = "auto",
    regularization: float | str = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
) -> Request:
    """Return the request these words stand for, or raise a clear error."""
    name = criterion if isinstance(criterion, str) else getattr(criterion, "name", None)
    automatic = isinstance(solver, str) and solver == "auto"
    joint = isinstance(regularization, str) and regularization == "joint"
    if name == "auto" and (not automatic or joint):
        name = "rkda"  # who names a solver of the convex program means that program
    if name not in CRITERIA:
        raise unknown_choice("criterion", criterion, list(CRITERIA))
    spec, ridge = CRITERIA[name], _check_regularization(regularization, name)
    options: Any = criterion if not isinstance(criterion, str) else None
    if options is None and spec.options is not None:
        options = spec.options()
    if not (isinstance(tol, (int, float)) and tol > 0):
        raise InvalidInputError(f"tol must be a positive number. Got {tol!r}.")
    if max_iter is not None and not (isinstance(max_iter, (int, np.integer)) and max_iter > 0):
        raise InvalidInputError(f"max_iter must be a positive integer or None. Got {max_iter!r}.")
    if hasattr(options, "method"):  # the name of a method may be given as that of a solver
        if automatic:
            solver = options.method
        elif solver in spec.solvers:
            options = replace(options, method=solver)
    chosen, solver_name = _check_solver(solver, name)
    if isinstance(options, Shrinkage):
        options.check(solver_name, ridge)
    return Request(
        criterion=name,
        spec=spec,
        solver=chosen,
        solver_name=solver_name,
        automatic=isinstance(solver, str) and solver == "auto",
        regularization=ridge,
        tol=float(tol),
        max_iter=max_iter,
        random_state=random_state,
        callback=callback,
        options=options,
    )


def _check_solver(solver: str | Solver, criterion: str) -> tuple[Solver | None, str]:
    """Return the solver, None where the criterion has an algorithm of its own, and its name."""
    known = CRITERIA[criterion].solvers
    name = solver if isinstance(solver, str) else getattr(solver, "name", repr(solver))
    if name == "auto":
        name = known[0] if known else "none"
    elif name not in known:
        raise unknown_choice(f"solver of criterion='{criterion}'", name, ["auto", *known])
    if not isinstance(solver, str):
        chosen: Solver | None = solver
    else:
        chosen = SOLVERS[name]() if name in SOLVERS else None
    if isinstance(chosen, (SDP, QCQP)):
        chosen.check_installed()
    return chosen, name


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
