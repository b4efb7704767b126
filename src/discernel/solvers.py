"""Solvers, for the parameter ``solver``: each takes its own options.

One of your own has a ``name`` and ``solve(program, task) -> Solution``; `Task`, `Solution` and
`Status` are what it is given and what it returns.
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

#: What the names stand for.
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
    """Return the solver that is meant, or raise a clear error.

    One of ours must be among those of the criterion. One of the user's need only be one: what it
    needs of the program is checked when there is a program.

    Parameters
    ----------
    solver : str or Solver
        A name is that of a solver with its defaults.
    criterion : Criterion
        What it is to solve.
    """
    what, known = f"solver of criterion='{criterion.name}'", ["auto", *criterion.solvers]
    if isinstance(solver, str):
        if solver not in criterion.solvers:
            raise unknown_choice(what, solver, known)
        if solver not in SOLVERS:
            raise InvalidInputError(
                f"The {what} must be one of ours to be known by its name. Got '{solver}'. Give "
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
    """Whether an object can be asked to solve; a class cannot."""
    has_solve = callable(getattr(solver, "solve", None)) and not isinstance(solver, type)
    return has_solve and isinstance(getattr(solver, "name", None), str)


def check_solver(solver: Solver, program: Program, criterion: Criterion) -> None:
    """Raise a clear error if a program does not offer what a solver needs.

    Parameters
    ----------
    solver : Solver
        One of ours or of the user's.
    program : Program
        What it is to solve.
    criterion : Criterion
        What the program is of.
    """
    needs = tuple(getattr(solver, "needs", ()))
    missing = [name for name in needs if not offers(program, name)]
    if missing:
        raise InvalidInputError(
            f"solver='{solver.name}' needs a program that offers {', '.join(needs)}. That of "
            f"criterion='{criterion.name}' does not offer {', '.join(missing)}. Use one of "
            f"{', '.join(map(repr, criterion.solvers))}."
        )
