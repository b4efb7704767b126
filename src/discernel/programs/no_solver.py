"""Weights that are known need no solver; this is it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from discernel.programs.base import Program
from discernel.programs.solution import Solution, Status, Task

__all__ = ["NoSolver"]


@dataclass(frozen=True)
class NoSolver:
    """Return the weights that a program has: there is nothing to be solved.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.solvers import NoSolver
    >>> learned = learn_kernel(
    ...     grams, y[::3], criterion="uniform", solver=NoSolver(), regularization=0.01
    ... )
    >>> learned.solver, learned.status.value
    ('none', 'nothing to optimise')
    """

    name: ClassVar[str] = "none"
    needs: ClassVar[tuple[str, ...]] = ("weights",)

    def solve(self, program: Program, task: Task) -> Solution:
        weights = program.weights  # type: ignore[attr-defined]  # which it needs
        return Solution(weights, np.nan, -np.inf, Status.NO_PROGRAM, 0)
