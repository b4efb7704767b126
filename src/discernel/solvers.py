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

__all__ = [
    "QCQP",
    "SDP",
    "SILP",
    "Columns",
    "Galerkin",
    "InteriorPoint",
    "Newton",
    "Solution",
    "Solver",
    "Status",
    "Task",
]
