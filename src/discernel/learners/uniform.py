"""The plain average needs no solver; this is it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from discernel.criteria import Program
from discernel.learners.simplex import uniform
from discernel.learners.solution import Solution, Status, Task

__all__ = ["NoSolver"]


@dataclass(frozen=True)
class NoSolver:
    """Equal weights: there is nothing to be solved."""

    name: ClassVar[str] = "none"

    def solve(self, program: Program, task: Task) -> Solution:
        return Solution(uniform(program.n_weights), np.nan, -np.inf, Status.NO_PROGRAM, 0)
