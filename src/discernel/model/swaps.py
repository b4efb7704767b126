"""Rows with cells of other rows, and how kernels change with them.

Squared and city-block distances and inner products are sums over columns. If one column is
replaced, only one term of the sum changes, so the cost does not depend on the number of columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import csc_median_axis_0

from discernel.arrays import Buffers, FloatArray, as_dense, is_sparse
from discernel.arrays.loops import Factors, Steps, SumOfKernels, compiled_loops
from discernel.kernels.columns import Table
from discernel.kernels.composites import Combination
from discernel.kernels.evaluate import KernelSet
from discernel.kernels.terms import Key, Seen, Term
from discernel.kernels.weighted import WeightedKernels
from discernel.rows.encoder import TableEncoder


def dense(X: Any) -> FloatArray:
    """Return rows as an array of numbers; columns with other values are 0."""
    if isinstance(X, Table):
        whole = np.zeros(X.shape)
        whole[:, np.array(X.is_number)] = X.numbers
        return whole
    return np.asarray(as_dense(X), dtype=np.float64)


def typical_rows(X: Any, encoder: TableEncoder | None = None) -> Any:
    """Return a typical row, with medians of numbers and the most frequent other values.

    Parameters
    ----------
    X : array, CSR or Table of shape (n_rows, n_columns)
        Encoded training rows.
    encoder : TableEncoder, optional
        The encoder of the rows, if any. The indicator column of the most frequent category is then
        1, and those of the other categories are 0.
    """
    if is_sparse(X):
        return scipy.sparse.csr_matrix(csc_median_axis_0(X.tocsc())[None])
    if isinstance(X, Table):
        others = np.empty((1, X.others.shape[1]), dtype=object)
        for place, values in enumerate(X.others.T):
            texts = [repr(value) for value in values]
            others[0, place] = values[texts.index(Counter(texts).most_common(1)[0][0])]
        return Table(np.median(X.numbers, axis=0)[None], others, X.is_number, X.names)
    row = np.median(X, axis=0)
    first = 0
    for column in encoder.columns_ if encoder is not None else ():
        n = len(column.outputs)
        row[first : first + n] = column.typical(X[:, first : first + n])
        first += n
    return row[None]


def moved_columns(x: Any, reference: Any) -> NDArray[np.bool_]:
    """Return which columns of two rows differ, of shape (n_columns,)."""
    if isinstance(x, Table):
        left, right = x.values[0], reference.values[0]
        return np.array([repr(a) != repr(b) for a, b in zip(left, right, strict=True)])
    return np.asarray(dense(x)[0] != dense(reference)[0])


def mixed_rows(X: Any, others: Any, taken: NDArray[np.bool_]) -> Any:
    """Return rows with cells of X where ``taken`` is True, and of ``others`` elsewhere.

    Parameters
    ----------
    X, others : array, CSR or Table of shape (n_rows, n_columns) or (1, n_columns)
        The rows.
    taken : ndarray of shape (n_rows, n_columns) or (1, n_columns)
        A mask of the cells of X.
    """
    if isinstance(X, Table):
        is_number = np.array(X.is_number)
        return Table(
            np.where(taken[:, is_number], X.numbers, others.numbers),
            np.where(taken[:, ~is_number], X.others, others.others),
            X.is_number,
            X.names,
        )
    mixed = np.where(taken, dense(X), dense(others))
    return scipy.sparse.csr_matrix(mixed) if is_sparse(X) else mixed


# ---- kernels -----------------------------------------------------------------------------------

#: A function of some columns and a sequence of other rows. For each of these, it yields the changes
#: of the terms when the columns come from these rows, of shape (n_rows, n_terms).
Swap = Callable[[NDArray[np.intp], Sequence[Any]], Iterator[FloatArray]]


class _Pairs:
    """A pairwise matrix between rows and kept rows, and the contributions of some columns."""

    def __init__(self, key: Key, Z: Any, n_columns: int) -> None:
        self._pair, self._view = key
        self._seen = self._view.seen(n_columns)
        self.is_sum = self._pair.is_sum
        self._kept = np.asarray(self._seen.of(dense(Z))) if self.is_sum else None
        self._prepared = self._pair.rows(self._view.of(Z))
        self._some: dict[bytes, tuple[Seen, FloatArray]] = {}

    def sees(self, columns: NDArray[np.intp]) -> bool:
        """Return whether the matrix depends on any of some columns."""
        return bool(np.isin(columns, self._seen.columns[self._seen.factors != 0]).any())

    def entries(self, X: Any) -> FloatArray:
        """Return the matrix."""
        rows = self._pair.rows(self._view.of(X), self._prepared)
        return self._pair.tile(rows, self._prepared, None)

    def moved(self, rows: _Rows, columns: NDArray[np.intp], matrix: FloatArray) -> FloatArray:
        """Return the matrix of the new rows, which differ in some columns, from that of the old."""
        if not self.is_sum:
            return self.entries(rows.mixed(columns))
        seen, kept = self._columns(columns)
        found = self._pair.entries(np.asarray(seen.of(rows.new)), kept)
        found -= self._pair.entries(np.asarray(seen.of(rows.old)), kept)
        found += matrix
        return np.maximum(found, 0.0, out=found) if self._pair.is_distance else found

    def factors(self, rows: _Rows, columns: NDArray[np.intp], matrix: FloatArray) -> Factors | None:
        """Return what compiled loops make the matrix `moved` of; None if they do not."""
        if not self.is_sum:
            return Factors.stored(self.moved(rows, columns, matrix))
        (seen, kept), kind = self._columns(columns), self._pair.operation
        old, new = np.asarray(seen.of(rows.old)), np.asarray(seen.of(rows.new))
        return None if kind is None else Factors.changed(kind, old, new, kept, matrix)

    def _columns(self, columns: NDArray[np.intp]) -> tuple[Seen, FloatArray]:
        """Return the view of some columns, and their cells in the kept rows."""
        known = self._some.get(columns.tobytes())
        if known is None:
            assert self._kept is not None
            places = np.flatnonzero(np.isin(self._seen.columns, columns))
            known = self._seen.take(places), np.ascontiguousarray(self._kept[:, places])
            self._some[columns.tobytes()] = known
        return known


class _Rows(NamedTuple):
    """Rows, as they were given and as numbers, and the rows that cells come from."""

    given: Any
    old: FloatArray
    other: Any
    new: FloatArray

    def mixed(self, columns: NDArray[np.intp]) -> Any:
        """Return the rows with some columns of the others."""
        taken = np.isin(np.arange(self.old.shape[1]), columns)[None]
        return mixed_rows(self.other, self.given, taken)


#: What some columns change: pairwise matrices, and positions of parts of a kernel.
_Affected = tuple[dict[Key, _Pairs], list[int]]


class SwappedKernels:
    """A sum of kernels, decomposed for rows with some replaced columns."""

    def __init__(self, kernel: WeightedKernels, Z: Any, n_columns: int) -> None:
        parts: dict[frozenset[Key], list[Term]] = {}
        for one, coefficient in zip(kernel.kernels, kernel.coefficients, strict=True):
            for factor, atoms in one.terms():
                if atoms:  # constants never change
                    keys = frozenset(atom.key for atom in atoms)
                    parts.setdefault(keys, []).append(Term(float(coefficient) * factor, atoms))
        self._pairs = {key: _Pairs(key, Z, n_columns) for key in frozenset().union(*parts)}
        #: Pairwise matrices that parts of the kernel are made of, and these parts.
        self._parts = [(keys, *_part(terms)) for keys, terms in parts.items()]
        self._affected: dict[bytes, _Affected] = {}

    def _affected_by(self, columns: NDArray[np.intp]) -> _Affected:
        """Return what some columns change, found once for all blocks of rows."""
        known = self._affected.get(columns.tobytes())
        if known is None:
            seen = {key: pairs for key, pairs in self._pairs.items() if pairs.sees(columns)}
            places = [i for i, (keys, *_) in enumerate(self._parts) if not keys.isdisjoint(seen)]
            known = self._affected[columns.tobytes()] = seen, places
        return known

    def swap(self, X: Any, buffers: Buffers) -> Swap:
        """Return the function that computes changes of the kernel, in a buffer."""
        here, old = dense(X), {key: pairs.entries(X) for key, pairs in self._pairs.items()}
        before = [part.sum_of(weights, old) for _, part, weights in self._parts]

        def changes(columns: NDArray[np.intp], others: Sequence[Any]) -> Iterator[FloatArray]:
            affected = self._affected_by(columns)
            for each in others:
                rows = _Rows(X, here, each, dense(each))
                change = buffers("change", next(iter(old.values())).shape)
                self._write(affected, rows, columns, old, change)
                for place in affected[1]:
                    change -= before[place]
                yield change

        return changes

    def _write(
        self,
        affected: _Affected,
        rows: _Rows,
        columns: NDArray[np.intp],
        old: dict[Key, FloatArray],
        out: FloatArray,
    ) -> None:
        """Write the affected parts between new and kept rows, by compiled loops if they can."""
        seen, parts = affected[0], [self._parts[place][1:] for place in affected[1]]

        @cache
        def factors(key: Key) -> Factors | None:
            known = seen.get(key)
            return known.factors(rows, columns, old[key]) if known else Factors.stored(old[key])

        total = _compiled_sum(parts, factors)
        if total is not None:
            total.write_between(slice(0, len(out)), slice(0, out.shape[1]), out)
            return
        moved = {key: pairs.moved(rows, columns, old[key]) for key, pairs in seen.items()}
        out[:] = 0.0
        for part, weights in parts:
            out += part.sum_of(weights, old | moved)


def _compiled_sum(
    parts: list[tuple[KernelSet, FloatArray]], factors: Callable[[Key], Factors | None]
) -> SumOfKernels | None:
    """Return the sum of parts of a kernel for compiled loops; None if there are none for it."""
    loops, groups = compiled_loops(), list[tuple[Steps, list[Factors]]]()
    if loops is None:
        return None
    for part, weights in parts:
        for keys in part.groups:
            steps, own = part.sum_steps(keys, weights), [factors(key) for key in keys]
            known = [each for each in own if each is not None]
            if steps is None or len(known) < len(own):
                return None
            groups.append((steps, known))
    return SumOfKernels(loops, groups)


def _part(terms: list[Term]) -> tuple[KernelSet, FloatArray]:
    """Return terms made of the same pairwise matrices as kernels and their factors."""
    kernels = KernelSet([Combination((Term(1.0, atoms),)) for _, atoms in terms])
    return kernels, np.array([factor for factor, _ in terms])
