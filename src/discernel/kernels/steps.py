"""Kernels, and weighted sums of them, as steps of compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from discernel.arrays import FloatArray
from discernel.arrays.loops import (
    ADD,
    ADD_CONSTANT,
    EXP,
    KEEP,
    MOST_BASES,
    POWER,
    ROOT_EXP,
    SQUARE,
    TIMES,
    Steps,
)
from discernel.kernels.terms import Atom, Decay, Key, Monomial, PairFunction, RootDecay, Term, Terms

#: Which pairwise matrices a kernel is made of.
Keys: TypeAlias = tuple[Key, ...]
#: An operation, the place of its pairwise matrix, its n, a and b.
_Step = tuple[int, int, int, float, float]

#: The operations of exponentials.
_EXPONENTIALS: dict[type[PairFunction], int] = {Decay: EXP, RootDecay: ROOT_EXP}


def as_steps(found: Sequence[_Step]) -> Steps:
    """Return steps as compiled loops take them."""
    table = np.array(found, dtype=np.float64).reshape(-1, 5)
    return Steps(np.ascontiguousarray(table[:, :3], dtype=np.int64), table[:, 3:].copy())


def _squared(n: int, factor: float) -> list[_Step]:
    """Return the steps that square the value n times, and add it times a factor."""
    return [(SQUARE, 0, n, 0.0, 0.0), (ADD, 0, 0, factor, 0.0)]


@lru_cache(maxsize=32)
def squaring(n: int, place: int = 0) -> Steps:
    """Return the steps that square the entries of the matrix at a place n times."""
    return as_steps([(POWER, place, 1, 1.0, 0.0), *_squared(n, 1.0)])


def steps_of(terms: Sequence[Term], keys: Keys, by: float = 1.0) -> list[_Step] | None:
    """Return the steps of a kernel times a factor; None where a function has none."""
    found: list[_Step] = []
    for factor, atoms in terms:
        for place, atom in enumerate(atoms):
            step = _step_of(atom, keys)
            if step is None:
                return None
            if place:
                found.append((KEEP, 0, 0, 0.0, 0.0))
            found.append(step)
            if place:
                found.append((TIMES, 0, 0, 0.0, 0.0))
        found.append((ADD if atoms else ADD_CONSTANT, 0, 0, by * factor, 0.0))
    return found if len(keys) <= MOST_BASES else None


def _step_of(atom: Atom, keys: Keys) -> _Step | None:
    """Return the step of a function of a pairwise matrix; None: it has none.

    Exponentials are compiled for exponents of at most 0.
    """
    function, place = atom.function, keys.index(atom.key)
    kind = _EXPONENTIALS.get(type(function))
    if kind is not None and atom.pair.is_distance and function.numbers[0] >= 0:
        return kind, place, 0, function.numbers[0], 0.0
    if type(function) is Monomial and function.degree >= 0:
        return POWER, place, int(function.degree), function.factor, function.constant
    return None


def sum_steps(
    group: Sequence[tuple[int, int | None]],
    terms: Sequence[Terms],
    keys: Keys,
    factors: FloatArray,
) -> Steps | None:
    """Return the steps of Σ f_i k_i of the kernels of a `KernelSet.groups`; None: one has none."""
    found: list[_Step] = []
    for position, squarings in group:
        factor = float(factors[position])
        own = (
            steps_of(terms[position], keys, factor)
            if squarings is None
            else _squared(squarings, factor)
        )
        if own is None:
            return None
        found += own
    return as_steps(found)
