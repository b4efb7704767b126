"""Solvers for the parameter ``solver``, as objects with options and by name.

A solver of your own needs a ``name`` and a method ``solve(program, task) -> Solution``. It gets a
`Task` with its options, and returns a `Solution` with a `Status`.
"""

from collections.abc import Callable
from typing import Any, cast

from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.papers.akfd.solver import Alternating
from discernel.papers.alignment.solvers import Greedy, QuadraticProgram
from discernel.papers.margin.solver import InteriorPoint
from discernel.papers.separability.solvers import ClosedForm, Dinkelbach
from discernel.programs.base import Criterion, Program, offers
from discernel.programs.columns import Columns
from discernel.programs.conic import QCQP, SDP
from discernel.programs.galerkin import Galerkin
from discernel.programs.newton import Newton
from discernel.programs.search import LBFGS, Search
from discernel.programs.silp import SILP
from discernel.programs.solution import Solution, Solver, Status, Task
from discernel.programs.uniform import NoSolver

__all__ = [
    "LBFGS",
    "QCQP",
    "SDP",
    "SILP",
    "Alternating",
    "ClosedForm",
    "Columns",
    "Dinkelbach",
    "Galerkin",
    "Greedy",
    "InteriorPoint",
    "Newton",
    "NoSolver",
    "QuadraticProgram",
    "Search",
    "Solution",
    "Solver",
    "Status",
    "Task",
]

#: Solvers by name.
SOLVERS: dict[str, Callable[[], Solver]] = {
    "newton": Newton,
    "galerkin": Galerkin,
    "columns": Columns,
    "sdp": SDP,
    "sdp_approximate": lambda: SDP(approximate=True),
    "qcqp": QCQP,
    "silp": SILP,
    "interior_point": InteriorPoint,
    "greedy": Greedy,
    "qp": QuadraticProgram,
    "closed_form": ClosedForm,
    "dinkelbach": Dinkelbach,
    "alternating": Alternating,
    "lbfgs": LBFGS,
    "search": Search,
    "none": NoSolver,
}


def as_solver(solver: Any, criterion: Criterion) -> Solver:
    """Return a solver given by name or as an object, or raise a clear error.

    A built-in solver must be listed by the criterion. For other solvers, `check_needs` compares
    the methods they need with those of the program, once the program exists.

    Parameters
    ----------
    solver : str or Solver
        A name stands for the solver with its default options.
    criterion : Criterion
        The criterion to optimize.
    """
    what, known = f"solver of criterion='{criterion.name}'", ["auto", *criterion.solvers]
    if isinstance(solver, str):
        if solver not in criterion.solvers:
            raise unknown_choice(what, solver, known)
        if solver not in SOLVERS:
            raise InvalidInputError(
                f"The {what} must be built in to be known by its name. Got '{solver}'. Give "
                "the solver itself, as an object."
            )
        chosen = SOLVERS[solver]()
    elif _is_solver(solver):
        chosen = cast(Solver, solver)
        if chosen.name in SOLVERS and chosen.name not in criterion.solvers:
            raise unknown_choice(what, chosen.name, known)
    else:
        raise InvalidInputError(
            f"The {what} must be one of {', '.join(map(repr, known))}, an object of "
            "discernel.solvers, or an object with a name and a method solve(program, task). "
            f"Got {solver!r}."
        )
    check = getattr(chosen, "check_installed", None)
    if check is not None:
        check()
    return chosen


def _is_solver(solver: Any) -> bool:
    """Return whether an object has the interface of a solver; a class has not."""
    has_solve = callable(getattr(solver, "solve", None)) and not isinstance(solver, type)
    return has_solve and isinstance(getattr(solver, "name", None), str)


def check_needs(solver: Solver, program: Program, criterion: Criterion) -> None:
    """Raise a clear error if a program lacks methods that a solver needs.

    Parameters
    ----------
    solver : Solver
        The solver.
    program : Program
        The program to solve.
    criterion : Criterion
        The criterion that made the program.
    """
    needs = tuple(getattr(solver, "needs", ()))
    missing = [name for name in needs if not offers(program, name)]
    if missing:
        raise InvalidInputError(
            f"solver='{solver.name}' needs a program with {', '.join(needs)}. The program of "
            f"criterion='{criterion.name}' has no {', '.join(missing)}. Use one of "
            f"{', '.join(map(repr, criterion.solvers))}."
        )
