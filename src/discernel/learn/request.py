"""The parameters of a learning problem as a `Request`, checked before any work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from discernel.arrays import Device
from discernel.bank import Bank
from discernel.criteria import as_criterion
from discernel.exceptions import (
    InvalidInputError,
    check_count,
    check_number,
    is_number,
    is_word,
    unknown_choice,
)
from discernel.programs.base import Criterion, Program, offers
from discernel.programs.by_target import LeaveOneOutByTarget
from discernel.programs.columns import MANY_KERNELS, Columns
from discernel.programs.galerkin import Galerkin
from discernel.programs.loo import Auto, LeaveOneOut
from discernel.programs.newton import Newton
from discernel.programs.rkda import RKDA
from discernel.programs.search import LBFGS
from discernel.programs.solution import FEW_SAMPLES, Callback, Solver
from discernel.solvers import as_solver
from discernel.targets import Target

#: `Galerkin` is faster than `Newton` from this many samples, and this many per column of
#: derivatives, which are n_kernels · (n_classes − 1) columns.
_GALERKIN_SAMPLES, _GALERKIN_COLUMNS = 500, 25


@dataclass(frozen=True)
class Request:
    """Criterion, solver and λ, and the options of the search.

    Attributes
    ----------
    criterion : Criterion
        The criterion of the weights.
    solver : Solver
        The solver of the criterion.
    automatic : bool
        Whether the solver was chosen automatically, by ``solver="auto"``.
    regularization : float, "loo" or "joint"
        ``"loo"`` chooses λ by leave-one-out, ``"joint"`` learns it with the weights.
    tol, max_iter, random_state, callback
        As in `learn_kernel`.
    few : int
        Up to this many samples, the search for λ and candidates uses all of them; with more
        samples, it starts on a part.
    weights_per_target : bool
        Whether each of several targets gets weights and λ of its own.
    """

    criterion: Criterion
    solver: Solver
    automatic: bool
    regularization: float | Literal["loo", "joint"]
    tol: float = 1e-6
    max_iter: int | None = None
    random_state: Any = None
    callback: Callback | None = None
    few: int = FEW_SAMPLES
    weights_per_target: bool = False

    def with_weights_per_target(self, wanted: bool) -> Request:
        """Return the request with or without weights of each target, or raise a clear error."""
        if wanted and type(self.criterion) not in (Auto, LeaveOneOut):
            raise InvalidInputError(
                "With weights_per_target=True, the criterion must be 'auto', 'loo' or a "
                f"LeaveOneOut. Got '{self.criterion.name}'. Use "
                "sklearn.multioutput.MultiOutputRegressor to fit each target separately with other "
                "criteria."
            )
        if wanted and self.regularization == 0.0:
            raise InvalidInputError(
                "With weights_per_target=True, the regularization must be positive or 'auto'. Got "
                "0."
            )
        return replace(self, weights_per_target=wanted)

    def for_target(self, target: Target, device: Device | None = None) -> Request:
        """Return the request for a target: with weights of its own for each of several columns.

        Parameters
        ----------
        target : Target
            The target.
        device : Device, optional
            Where many columns are learned at once.
        """
        if not self.weights_per_target or target.scores.shape[1] < 2:
            return self
        known = self.criterion
        by_target = LeaveOneOutByTarget(known.pull, known.name == Auto.name, device)
        return replace(self, criterion=by_target, solver=LBFGS())

    @property
    def given_regularization(self) -> float | None:
        """λ if it is given as a number, else None."""
        return None if self.regularization in ("loo", "joint") else float(self.regularization)

    @property
    def leaves_choice(self) -> bool:
        """Whether criterion and solver are both ``"auto"``."""
        return self.automatic and self.criterion.name == Auto.name


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
    """Return the request for parameters of `learn_kernel`, or raise a clear error."""
    automatic, made = is_word(solver, "auto"), as_criterion(criterion)
    if is_word(criterion, Auto.name) and (
        is_word(regularization, "joint")
        or not (automatic or getattr(solver, "name", solver) in made.solvers)
    ):
        made = RKDA()  # a solver of a convex program, or "joint", implies the convex criterion
    ridge = _check_regularization(regularization, made)
    check_number("tol", tol, positive=True)
    if max_iter is not None:
        check_count("max_iter", max_iter)
    if not (callback is None or callable(callback)):
        raise InvalidInputError(f"callback must be a function of a Progress. Got {callback!r}.")
    try:
        check_random_state(random_state)
    except ValueError:
        raise InvalidInputError(
            "random_state must be an integer of at least 0, a numpy.random.RandomState or None. "
            f"Got {random_state!r}."
        ) from None
    chosen = as_solver(made.solvers[0] if automatic else solver, made)
    made.check(chosen.name, ridge)
    return Request(
        criterion=made,
        solver=chosen,
        automatic=automatic,
        regularization=ridge,
        tol=float(tol),
        max_iter=max_iter,
        random_state=random_state,
        callback=callback,
    )


def faster_solver(request: Request, program: Program, bank: Bank, target: Target) -> Solver:
    """Return the solver of a request or, if it was chosen automatically, the fastest one.

    A round of `Galerkin` saves about two factorizations and costs up to n_kernels products with
    up to n_kernels · (n_classes − 1) columns. The sizes from which it is faster were measured.
    """
    if not request.automatic or request.solver.name != Newton.name:
        return request.solver
    columns = bank.n_kernels * target.scores.shape[1]
    many = bank.n_samples >= max(_GALERKIN_SAMPLES, _GALERKIN_COLUMNS * columns)
    if many and offers(program, *Galerkin.needs):
        return Galerkin()
    if bank.n_kernels >= MANY_KERNELS and offers(program, *Columns.needs):
        return Columns()
    return request.solver


def _check_regularization(
    regularization: Any, criterion: Criterion
) -> float | Literal["loo", "joint"]:
    words = criterion.regularizations
    if isinstance(regularization, str):
        if regularization in ("auto", "loo"):
            return "loo"
        if regularization == "joint" and "joint" in words:
            return "joint"
        raise unknown_choice(
            f"regularization of criterion='{criterion.name}', where it is not a number,",
            regularization,
            ["auto", *words],
        )
    if not (is_number(regularization) and 0 <= regularization < np.inf):
        raise InvalidInputError(
            "The regularization must be a finite number of at least 0 or one of "
            f"{['auto', *words]}. Got {regularization!r}."
        )
    return float(regularization)
