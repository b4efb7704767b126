"""The matrices of several kernels at once: what they have in common is computed once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discernel.arrays import Buffers, FloatArray, n_rows
from discernel.kernels.base import Kernel
from discernel.kernels.columns import Table
from discernel.kernels.pairs import Called
from discernel.kernels.terms import (
    LEAST_EXPONENT,
    LEAST_SINGLE_EXPONENT,
    Key,
    Terms,
    combine,
    single_atom,
)

#: From this many squarings on, an exponential is as cheap.
_MOST_SQUARINGS = 6

#: The square of this is the least value of an exponential; see there for why it is not 0.
_TINY, _SINGLE_TINY = math.exp(0.5 * LEAST_EXPONENT), math.exp(0.5 * LEAST_SINGLE_EXPONENT)

#: A kernel's position and how often the matrix before it is to be squared; None: it is made of
#: the pairwise matrix.
Step = tuple[int, int | None]


def is_dense(X: Any) -> bool:
    """Whether rows are an array or a table, of numbers or of anything."""
    return isinstance(X, (np.ndarray, Table))


@dataclass(frozen=True)
class PreparedRows:
    """Rows, and what the pairwise matrices of some kernels need of them, computed once.

    A slice of them costs next to nothing. `KernelSet.prepare` makes them.
    """

    rows: Any
    bases: dict[Key, Any]

    def single(self, keys: Iterable[Key | None]) -> PreparedRows | None:
        """Return the same rows of single precision, for kernels of some `KernelSet.keys`.

        None where a kernel has none: those of squared distances of several columns have.
        """
        bases = {key: key and key[0].single(self.bases[key]) for key in keys}
        found = {key: base for key, base in bases.items() if key is not None and base is not None}
        return PreparedRows(self.rows, found) if len(found) == len(bases) else None

    def __getitem__(self, rows: Any) -> PreparedRows:
        bases = {key: base[rows] for key, base in self.bases.items()}
        return PreparedRows(self.rows[rows], bases)


class KernelSet:
    """Kernels that are computed together, many times: what to share is found out once.

    Attributes
    ----------
    kernels : list of Kernel
        The kernels, resolved.
    terms : list of tuple of Term
        Their `Kernel.terms`.
    keys : list of (PairKind, View) or None
        The pairwise matrix that each kernel is a function of; None for those of several, and for
        those that are only called.
    direct : list of int
        The positions of the latter.
    groups : dict of (PairKind, View) to list of (int, int or None)
        For every pairwise matrix that is shared, the kernels made of it, in the order in which
        each follows from the one before.
    """

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels = list(kernels)
        self.terms = [kernel.terms() for kernel in kernels]
        self.keys = [_common_key(terms) for terms in self.terms]
        self.direct = [position for position, key in enumerate(self.keys) if key is None]
        positions: dict[Key, list[int]] = {}
        for position, key in enumerate(self.keys):
            if key is not None:
                positions.setdefault(key, []).append(position)
        self.groups = {key: self._steps(found) for key, found in positions.items()}

    def of(self, positions: Iterable[int]) -> KernelSet:
        """Return some of the kernels."""
        return KernelSet([self.kernels[i] for i in positions])

    def prepare(self, X: Any, like: PreparedRows | None = None) -> PreparedRows:
        """Return rows as `matrices` takes them.

        ``like`` are the other rows that these ones will meet. Rows meet only such as were
        prepared together, by slicing, or like one another.
        """
        bases = {
            (pair, view): pair.rows(view.of(X), None if like is None else like.bases[pair, view])
            for pair, view in self.groups
        }
        return PreparedRows(X, bases)

    def matrices(
        self, X: PreparedRows, Z: PreparedRows | None = None, buffers: Buffers | None = None
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield every kernel's position and matrix, which is to be read, not changed.

        Kernels on the same columns share distances or inner products, and come one after another,
        so that only one shared matrix is alive at a time. Of exponentials whose factors differ by
        a power of two, such as a ladder of widths, only the widest is an exponential; the others
        are squares.

        Parameters
        ----------
        X : PreparedRows
            Rows, from `prepare`.
        Z : PreparedRows, optional
            Other rows; by default X.
        buffers : Buffers, optional
            Where matrices are made: each is then lost when the next one is asked for. By default
            each is a new array.
        """
        for position in self.direct:
            yield position, self.direct_matrix(position, X.rows, None if Z is None else Z.rows)
        yield from self.shared_matrices(X, Z, buffers)

    def direct_matrix(self, position: int, X: Any, Z: Any | None = None) -> FloatArray:
        """Return the matrix of one kernel that shares nothing, or raise an error with its name."""
        return Called(self.kernels[position]).entries(X, Z)

    def shared_matrices(
        self, X: PreparedRows, Z: PreparedRows | None = None, buffers: Buffers | None = None
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield what `matrices` does, without the kernels that share nothing."""
        shape = n_rows(X.rows), n_rows(X.rows if Z is None else Z.rows)
        for key, steps in self.groups.items():
            out = None if buffers is None else buffers("base", shape)
            base = key[0].tile(X.bases[key], None if Z is None else Z.bases[key], out)
            yield from self._from_base(steps, base, buffers)

    def matrices_of(
        self, base: FloatArray, buffers: Buffers | None = None
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield what `matrices` does, of kernels that all share one pairwise matrix."""
        (steps,) = self.groups.values()
        yield from self._from_base(steps, base, buffers)

    def _from_base(
        self, steps: list[Step], base: FloatArray, buffers: Buffers | None
    ) -> Iterator[tuple[int, FloatArray]]:
        matrix, least = base, None
        tiny = _SINGLE_TINY if base.dtype == np.float32 else _TINY
        for position, squarings in steps:
            if squarings is None:
                matrix, least = _made_of(self.terms[position], base, buffers), None
            for already in range(squarings or 0):
                fresh = buffers is None and already == 0
                least = float(matrix.min()) if least is None else least * least
                if least < tiny:
                    matrix = np.maximum(matrix, tiny, out=None if fresh else matrix)
                    fresh, least = False, tiny
                matrix = np.square(matrix, out=None if fresh else matrix)
            yield position, matrix

    def decay(self, position: int) -> tuple[str, float] | None:
        """Return the kind and rate of a kernel that is one exponential; None for others.

        Those of one pairwise matrix and one kind are powers of each other.
        """
        factor, atom = single_atom(self.terms[position]) or (0.0, None)
        if atom is None or factor != 1 or atom.function.decay is None:
            return None
        return atom.function.kind, atom.function.decay

    def _steps(self, positions: list[int]) -> list[Step]:
        """Return how to go through kernels of one pairwise matrix."""
        steps: list[Step] = []
        chains: dict[str, list[tuple[float, int]]] = {}
        for position in positions:
            decay = self.decay(position)
            if decay is None:
                steps.append((position, None))
            else:
                chains.setdefault(decay[0], []).append((decay[1], position))
        for chain in chains.values():
            before = math.inf
            for rate, position in sorted(chain):  # the widest first: the others are its powers
                # exp(−rate·d) is exp(−before·d), squared so many times.
                n = round(math.log2(rate / before)) if before < math.inf else _MOST_SQUARINGS
                exact = n < _MOST_SQUARINGS and math.isclose(rate, before * 2.0**n, rel_tol=1e-14)
                steps.append((position, n if exact else None))
                before = rate
        return steps


def _common_key(terms: Terms) -> Key | None:
    """Return the one pairwise matrix of prepared rows that a kernel is made of; None: another."""
    first, *others = dict.fromkeys(atom.key for term in terms for atom in term.atoms)
    return None if others or not first[0].is_prepared else first


def _made_of(terms: Terms, base: FloatArray, buffers: Buffers | None) -> FloatArray:
    """Return a kernel of one pairwise matrix, in a buffer if there is one."""
    found = single_atom(terms)
    if found is None:
        return np.asarray(combine(terms, lambda atom: atom.function(base)))
    factor, atom = found
    matrix = np.empty_like(base) if buffers is None else buffers("kernel", base.shape)
    atom.function.write(base, matrix)
    if factor != 1:
        matrix *= factor
    return matrix
