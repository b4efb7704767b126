"""How weights are found, for ``solver=``: each takes its own options.

One of your own has a ``name`` and ``solve(program, task) -> Solution``; `Task`, `Solution` and
`Status` are what it is given and what it returns.
"""

from discernel.learners import (
    QCQP,
    SDP,
    SILP,
    Columns,
    Galerkin,
    InteriorPoint,
    Newton,
    Solution,
    Solver,
    Status,
    Task,
)
from discernel.learners.alignment import Greedy, QuadraticProgram
from discernel.learners.alternating import Alternating
from discernel.learners.auto import LBFGS, Search
from discernel.learners.separability import ClosedForm, Dinkelbach
from discernel.learners.uniform import NoSolver

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
