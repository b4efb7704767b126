"""How weights are found, for ``solver=``: each takes its own options.

One of your own has a ``name`` and ``solve(program, task) -> Solution``; `Task`, `Solution` and
`Status` are what it is given and what it returns.
"""

from discernel.papers.akfd.solver import Alternating
from discernel.papers.alignment.solvers import Greedy, QuadraticProgram
from discernel.papers.margin.solver import InteriorPoint
from discernel.papers.separability.solvers import ClosedForm, Dinkelbach
from discernel.programs.columns import Columns
from discernel.programs.conic import QCQP, SDP
from discernel.programs.galerkin import Galerkin
from discernel.programs.newton import Newton
from discernel.programs.no_solver import NoSolver
from discernel.programs.search import LBFGS, Search
from discernel.programs.silp import SILP
from discernel.programs.solution import Solution, Solver, Status, Task

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
