"""The matrices of several kernels at once: what they have in common is computed once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from discernel.arrays import Buffers, Device, FloatArray, n_rows
from discernel.arrays.loops import (
    ADD,
    ADD_CONSTANT,
    EXP,
    KEEP,
    MOST_BASES,
    POWER,
    PREVIOUS,
    ROOT_EXP,
    SQUARE,
    TIMES,
    Factors,
    Loops,
    Steps,
    SumOfKernels,
    compiled_loops,
)
from discernel.kernels.base import Kernel
from discernel.kernels.columns import Table
from discernel.kernels.pairs import check_shape
from discernel.kernels.terms import (
    LEAST_EXPONENT,
    LEAST_SINGLE_EXPONENT,
    Atom,
    Bases,
    Decay,
    Key,
    Monomial,
    PairFunction,
    PreparedRows,
    RootDecay,
    Term,
    Terms,
    combine,
    keys_of,
    single_atom,
)

#: From this many squarings on, an exponential is as cheap.
_MOST_SQUARINGS = 6

#: Entries from which on compiled loops are called.
_COMPILED_ENTRIES = 2**13

#: The square of this is the least value of an exponential; see there for why it is not 0.
_TINY, _SINGLE_TINY = math.exp(0.5 * LEAST_EXPONENT), math.exp(0.5 * LEAST_SINGLE_EXPONENT)

#: Which pairwise matrices a kernel is made of.
Keys: TypeAlias = tuple[Key, ...]
#: A kernel's position and how often the matrix before it is to be squared; None: it is made of
#: pairwise matrices.
Step: TypeAlias = tuple[int, int | None]


def is_dense(X: Any) -> bool:
    """Whether rows are an array or a table, of numbers or of anything."""
    return isinstance(X, (np.ndarray, Table))


class KernelSet:
    """Kernels that are computed together, many times: what to share is found out once.

    Attributes
    ----------
    kernels : list of Kernel
        The kernels, resolved.
    terms : list of tuple of Term
        Their `Kernel.terms`.
    keys : list of tuple of (PairKind, View)
        The pairwise matrices that each kernel is made of.
    direct : list of int
        The positions of kernels that are only called, or have such a kernel in them.
    groups : dict of tuple of (PairKind, View) to list of (int, int or None)
        The kernels that are made of the same pairwise matrices, in the order in which each follows
        from the one before.
    """

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels = list(kernels)
        self.terms = [kernel.terms() for kernel in kernels]
        self.keys = [keys_of(terms) for terms in self.terms]
        self.direct = [
            position
            for position, keys in enumerate(self.keys)
            if not all(pair.is_prepared for pair, _ in keys)
        ]
        #: Factor and atom of the kernels that are a number times one atom, and their exponentials.
        self._atoms = [single_atom(terms) for terms in self.terms]
        self._decays = [_decay(*found) if found else None for found in self._atoms]
        positions: dict[Keys, list[int]] = {}
        for position, keys in enumerate(self.keys):
            positions.setdefault(keys, []).append(position)
        self.groups = {keys: self._steps(found) for keys, found in positions.items()}
        #: Steps of compiled loops: of the kernels, and of the last weighted sum by its factors.
        self._compiled: dict[int, Steps | None] = {}
        self._last_sum: tuple[bytes, dict[Keys, Steps | None]] = b"", {}

    def of(self, positions: Iterable[int]) -> KernelSet:
        """Return some of the kernels."""
        return KernelSet([self.kernels[i] for i in positions])

    def prepare(self, X: Any, like: PreparedRows | None = None) -> PreparedRows:
        """Return rows as `matrices` takes them.

        ``like`` are the other rows that these ones will meet. Rows meet only such as were
        prepared together, by slicing, or like one another.
        """
        return PreparedRows.of((key for keys in self.groups for key in keys), X, like)

    def matrices(
        self,
        X: PreparedRows,
        Z: PreparedRows | None = None,
        buffers: Buffers | None = None,
        *,
        aligned: bool = False,
    ) -> Iterator[tuple[int, Any]]:
        """Yield every kernel's position and matrix, which is to be read, not changed.

        Kernels on the same columns share distances or inner products, and come one after another,
        so that only their shared matrices are alive at a time. By NumPy, of exponentials whose
        factors differ by a power of two, such as a ladder of widths, only the widest is an
        exponential; the others are squares. Of rows on a device, matrices are made there; what
        only NumPy can compute, such as a user's callable, is sent there.

        Parameters
        ----------
        X : PreparedRows
            Rows, from `prepare`.
        Z : PreparedRows, optional
            Other rows; by default X. On a device, they are always given.
        buffers : Buffers, optional
            Where matrices are made: each is then lost when the next one is asked for. By default
            each is a new array.
        aligned : bool, default=False
            On a device, whether Z begins with the rows of X, or X with those of Z: distances there
            are then exactly 0.
        """
        for keys, steps in self.groups.items():
            bases = self._bases(keys, X, Z, buffers=buffers, aligned=aligned)
            yield from self._made_of(steps, bases, buffers, X.device)

    def weighted_sum(
        self,
        factors: FloatArray,
        X: PreparedRows,
        Z: PreparedRows | None = None,
        buffers: Buffers | None = None,
        *,
        aligned: bool = False,
    ) -> Any:
        """Return Σ f_i k_i, with one factor per kernel; it may be changed.

        The other parameters are those of `matrices`.
        """
        total: Any = None
        buffers = buffers if X.device is None else None
        for keys in self.groups:
            bases = self._bases(keys, X, Z, buffers=buffers, aligned=aligned)
            total = self._add(keys, bases, factors, total, buffers, X.device)
        if total is None:  # no kernels
            shape = n_rows(X.rows), n_rows(X.rows if Z is None else Z.rows)
            return (
                np.zeros(shape) if X.device is None else X.device.zeros(shape, single=X.is_single)
            )
        return total

    def sum_of(self, factors: FloatArray, bases: Bases) -> Any:
        """Return `weighted_sum` by NumPy, of one kernel or more, from known pairwise matrices."""
        total: Any = None
        for keys in self.groups:
            own = {key: bases[key] for key in keys}
            total = self._add(keys, own, factors, total, None)
        return total

    def _add(
        self,
        keys: Keys,
        bases: Bases,
        factors: FloatArray,
        total: Any,
        buffers: Buffers | None,
        device: Device | None = None,
    ) -> Any:
        """Return a total, which is None at first, plus Σ f_i k_i of a group.

        In one pass over its pairwise matrices, by compiled loops or those of a device, if they can.
        """
        first, group = next(iter(bases.values()), None), self.groups[keys]
        if device is not None:
            positions = [position for position, _ in group]
            rates = [self._rate(position) for position in positions]
            if device.fused is not None and all(rates):
                total = device.xp.zeros_like(first) if total is None else total
                device.fused.add_exponentials(total, first, np.array(rates), factors[positions])
                return total
        else:
            loops = _loops_for(*bases.values())
            steps = None if loops is None else self.sum_steps(keys, factors)
            if loops is not None and steps is not None:
                out = _empty_like(first, "total", buffers) if total is None else total
                loops.evaluate(steps, list(bases.values()), out, add=total is not None)
                return out
        return add_up(self._made_of(group, bases, buffers, device), factors, buffers, total)

    def compiled(
        self,
        rows: PreparedRows,
        factors: FloatArray | None = None,
        other: PreparedRows | None = None,
    ) -> tuple[SumOfKernels | None, list[int]]:
        """Return Σ f_i k_i between rows for compiled loops, or every kernel without factors.

        Between these rows and others if there are any. Also return the order of the kernels. The
        first is None if there are no loops for it.
        """
        found: list[tuple[Steps | None, list[Factors] | None]] = []
        for keys, group in self.groups.items():
            bases = _factors(keys, rows, other)
            if factors is not None:
                found.append((self.sum_steps(keys, factors), bases))
                continue
            for position, n in group:
                own = self._own_steps(position) if n is None else squaring(n, PREVIOUS)
                found.append((own, bases))
                bases = None if bases is None else []
        order = [position for group in self.groups.values() for position, _ in group]
        loops = compiled_loops()
        groups = [(steps, each) for steps, each in found if steps is not None and each is not None]
        if loops is None or not groups or len(groups) < len(found):
            return None, order
        return SumOfKernels(loops, groups), order

    def sum_steps(self, keys: Keys, factors: FloatArray) -> Steps | None:
        """Return the steps of Σ f_i k_i of a group, for all tiles of a sum; None: it has none."""
        known, found = self._last_sum
        if known != factors.tobytes():
            found = {
                each: _sum_steps(group, self.terms, each, factors)
                for each, group in self.groups.items()
            }
            self._last_sum = factors.tobytes(), found
        return found[keys]

    def _own_steps(self, position: int) -> Steps | None:
        """Return the steps of one kernel."""
        if position not in self._compiled:
            found = _steps_of(self.terms[position], self.keys[position])
            self._compiled[position] = None if found is None else _as_steps(found)
        return self._compiled[position]

    def _bases(self, keys: Keys, X: PreparedRows, Z: PreparedRows | None, **options: Any) -> Bases:
        """Return the pairwise matrices of a group of kernels, or raise an error with its name."""
        bases = X.pairwise(keys, Z, **options)
        shape = n_rows(X.rows), n_rows(X.rows if Z is None else Z.rows)
        for (pair, _), base in bases.items():
            if pair.is_prepared and base.shape != shape:
                check_shape(self.kernels[self.groups[keys][0][0]], base, shape)
        return bases

    def _made_of(
        self, steps: list[Step], bases: Bases, buffers: Buffers | None, device: Device | None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the kernels that are made of the same pairwise matrices, with their positions."""
        matrix: Any = None
        least: float | None = None
        for position, squarings in steps:
            if device is not None:
                yield position, self._on_device(position, bases, device)
                continue
            if squarings is None:
                matrix, least = self._values(position, bases, buffers), None
            for already in range(squarings or 0):
                tiny = _SINGLE_TINY if matrix.dtype == np.float32 else _TINY
                fresh = buffers is None and already == 0
                least = float(matrix.min()) if least is None else least * least
                if least < tiny:
                    matrix = np.maximum(matrix, tiny, out=None if fresh else matrix)
                    fresh, least = False, tiny
                matrix = np.square(matrix, out=None if fresh else matrix)
            yield position, matrix

    def _values(self, position: int, bases: Bases, buffers: Buffers | None) -> FloatArray:
        """Return a kernel of pairwise matrices, by compiled loops in a buffer if there are some."""
        terms, matrices = self.terms[position], [bases[key] for key in self.keys[position]]
        loops, (factor, atom) = _loops_for(*matrices), self._atoms[position] or (0.0, None)
        steps = None if loops is None else self._own_steps(position)
        if loops is None or steps is None or (factor == 1 and atom is not None and atom.is_base):
            return np.asarray(combine(terms, bases))
        out = _empty_like(matrices[0], "kernel", buffers)
        loops.evaluate(steps, matrices, out)
        return np.asarray(out)

    def _on_device(self, position: int, bases: Bases, device: Device) -> Any:
        """Return a kernel of pairwise matrices that are on a device."""
        rate = self._rate(position)
        if device.fused is not None and rate is not None:
            return device.fused.exponential(bases[self.keys[position][0]], rate)
        return combine(self.terms[position], bases, device.xp)

    def _rate(self, position: int) -> float | None:
        """Return the rate c of a kernel exp(−c·p) of its pairwise matrix; None for others."""
        kind, rate = self._decays[position] or ("", 0.0)
        return rate if kind == "exp" else None

    def _steps(self, positions: list[int]) -> list[Step]:
        """Return how to go through kernels that are made of the same pairwise matrices."""
        steps: list[Step] = []
        chains: dict[str, list[tuple[float, int]]] = {}
        for position in positions:
            decay = self._decays[position]
            if decay is None:
                steps.append((position, None))
            else:
                chains.setdefault(decay[0], []).append((decay[1], position))
        for chain in chains.values():
            before = 0.0
            for rate, position in sorted(chain):  # the widest first: the others are its powers
                # exp(−rate·d) is exp(−before·d), squared so many times.
                ratio = rate / before if before else math.inf
                n = round(math.log2(ratio)) if ratio < math.inf else _MOST_SQUARINGS
                exact = n < _MOST_SQUARINGS and math.isclose(rate, before * 2.0**n, rel_tol=1e-14)
                steps.append((position, n if exact else None))
                before = rate
        return steps


def add_up(
    matrices: Iterable[tuple[int, Any]],
    factors: Sequence[float] | FloatArray,
    buffers: Buffers | None = None,
    total: Any = None,
) -> Any:
    """Return Σ f_i K_i of positions and matrices, by NumPy in a buffer if there are some.

    It is added to a total, if there is one.
    """
    for position, matrix in matrices:
        factor, name = float(factors[position]), "total" if total is None else "term"
        out = None if buffers is None else buffers(name, matrix.shape)
        term = matrix * factor if out is None else np.multiply(matrix, factor, out=out)
        if total is None:
            total = term
        else:
            total += term
    return total


def _decay(factor: float, atom: Atom) -> tuple[str, float] | None:
    """Return the kind and rate of a kernel that is one exponential; None for others.

    Those of one pairwise matrix and one kind are powers of each other.
    """
    if factor != 1 or type(atom.function) not in _EXPONENTIALS:
        return None
    return atom.function.kind, atom.function.numbers[0]


def _factors(keys: Keys, rows: PreparedRows, other: PreparedRows | None) -> list[Factors] | None:
    """Return what compiled loops make pairwise matrices of; None where they do not make one."""
    found = [pair.factors(rows.bases[pair, view]) for pair, view in keys]
    if other is not None:
        there = [pair.factors(other.bases[pair, view]) for pair, view in keys]
        pairs = zip(found, there, strict=True)
        found = [None if one is None or its is None else one.to(its) for one, its in pairs]
    bases = [base for base in found if base is not None]
    return bases if bases and len(bases) == len(found) else None


def _loops_for(*matrices: Any) -> Loops | None:
    """Return compiled loops if they take matrices of one shape; None if not.

    They take many entries of one type, stored row by row.
    """
    loops = compiled_loops()
    if loops is None or not matrices:
        return None
    first, *rest = matrices
    is_taken = (
        first.size >= _COMPILED_ENTRIES
        and first.dtype in (np.float64, np.float32)
        and all(each.dtype == first.dtype for each in rest)
        and all(each.strides[1] == each.itemsize for each in matrices)
    )
    return loops if is_taken else None


def _empty_like(base: Any, name: str, buffers: Buffers | None) -> Any:
    """Return memory for a matrix, that of a buffer if there are some."""
    found = None if buffers is None else buffers(name, base.shape)
    is_right = found is not None and found.dtype == base.dtype
    return found if is_right else np.empty_like(base, order="C")


# ---- steps of compiled loops -------------------------------------------------------------------

#: An operation, the place of its pairwise matrix, its n, a and b.
_Operation: TypeAlias = tuple[int, int, int, float, float]

#: The operations of exponentials.
_EXPONENTIALS: dict[type[PairFunction], int] = {Decay: EXP, RootDecay: ROOT_EXP}


def _as_steps(found: Sequence[_Operation]) -> Steps:
    """Return steps as compiled loops take them."""
    table = np.array(found, dtype=np.float64).reshape(-1, 5)
    return Steps(np.ascontiguousarray(table[:, :3], dtype=np.int64), table[:, 3:].copy())


def _squared(n: int, factor: float) -> list[_Operation]:
    """Return the steps that square the value n times, and add it times a factor."""
    return [(SQUARE, 0, n, 0.0, 0.0), (ADD, 0, 0, factor, 0.0)]


@lru_cache(maxsize=32)
def squaring(n: int, place: int = 0) -> Steps:
    """Return the steps that square the entries of the matrix at a place n times."""
    return _as_steps([(POWER, place, 1, 1.0, 0.0), *_squared(n, 1.0)])


def _steps_of(terms: Sequence[Term], keys: Keys, by: float = 1.0) -> list[_Operation] | None:
    """Return the steps of a kernel times a factor; None where a function has none."""
    found: list[_Operation] = []
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


def _step_of(atom: Atom, keys: Keys) -> _Operation | None:
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


def _sum_steps(
    group: Sequence[tuple[int, int | None]],
    terms: Sequence[Terms],
    keys: Keys,
    factors: FloatArray,
) -> Steps | None:
    """Return the steps of Σ f_i k_i of the kernels of a `KernelSet.groups`; None: one has none."""
    found: list[_Operation] = []
    for position, squarings in group:
        factor = float(factors[position])
        own = (
            _steps_of(terms[position], keys, factor)
            if squarings is None
            else _squared(squarings, factor)
        )
        if own is None:
            return None
        found += own
    return _as_steps(found)
