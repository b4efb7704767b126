"""A system that is solved to a residual that is known, and remembers what it solved."""

from __future__ import annotations

import hashlib
from abc import abstractmethod

import numpy as np

from discernel.arrays import FloatArray
from discernel.bank.conjugate import Solved
from discernel.bank.system import System

__all__ = ["RememberingSystem"]

#: The relative residual of what only says where to go.
_ROUGH = 1e-4
#: Columns whose solutions are remembered.
_REMEMBERED = 64


class RememberingSystem(System):
    """A system whose solutions cost passes over the kernels.

    Columns that were solved are remembered: the discriminant asks for those that learning has
    ended with.

    Parameters
    ----------
    tol : float
        The length of a residual over that of its right-hand side, at which it is solved.
    """

    def __init__(self, tol: float) -> None:
        self.tol = tol
        self._known: dict[bytes, tuple[float, FloatArray, FloatArray]] = {}

    @abstractmethod
    def _solve_new(self, right: FloatArray, tol: float) -> Solved:
        """Return solutions of columns that are not known."""

    def solve(self, right: FloatArray) -> FloatArray:
        return self._solved(right, self.tol)[0]

    def solve_roughly(self, right: FloatArray) -> FloatArray:
        return self._solved(right, max(self.tol, _ROUGH))[0]

    def solve_residual(self, right: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        return self._solved(right, self.tol)

    def expect(self, right: FloatArray) -> None:
        self._solved(right, self.tol)

    def _solved(self, right: FloatArray, tol: float) -> tuple[FloatArray, FloatArray]:
        """Return solution and residual of every column, those that are known from memory."""
        if right.ndim == 1:
            one, left = self._solved(right[:, None], tol)
            return one[:, 0], left[:, 0]
        solution, residual = np.empty(right.shape), np.empty(right.shape)
        keys = [hashlib.blake2b(column.tobytes()).digest() for column in right.T]
        new = []
        for column, key in enumerate(keys):
            if key in self._known and self._known[key][0] <= tol:
                _, solution[:, column], residual[:, column] = self._known[key]
            else:
                new.append(column)
        if new:
            found = self._solve_new(right[:, new], tol)
            solution[:, new], residual[:, new] = found.solution, found.residual
            if len(new) <= _REMEMBERED:
                self._remember([keys[column] for column in new], tol, found)
        return solution, residual

    def _remember(self, keys: list[bytes], tol: float, found: Solved) -> None:
        for position, key in enumerate(keys):
            self._known.pop(key, None)
            self._known[key] = tol, found.solution[:, position], found.residual[:, position]
        while len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]
