"""Rows with cells of other rows, and how kernels change with them.

Squared and city-block distances and inner products are sums over columns. If one column is
replaced, only one term of the sum changes, so the cost does not depend on the number of columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import csc_median_axis_0

from discernel.arrays import Buffers, FloatArray, as_dense, is_sparse
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

#: A function that computes a part of the kernel from pairwise matrices.
Evaluate = Callable[[dict[Key, FloatArray], Buffers], FloatArray]


class _Pairs:
    """A pairwise matrix between rows and kept rows, and the contributions of some columns."""

    def __init__(self, key: Key, Z: Any, n_columns: int) -> None:
        self._pair, self._view = key
        self._seen = self._view.seen(n_columns)
        self.is_sum, self.is_distance = self._pair.is_sum, self._pair.is_distance
        self._kept = np.asarray(self._seen.of(dense(Z))) if self.is_sum else None
        self._prepared = self._pair.rows(self._view.of(Z))
        self._some: dict[bytes, tuple[Seen, Any]] = {}

    def sees(self, columns: NDArray[np.intp]) -> bool:
        """Return whether the matrix depends on any of some columns."""
        return bool(np.isin(columns, self._seen.columns[self._seen.factors != 0]).any())

    def entries(self, X: Any) -> FloatArray:
        """Return the matrix."""
        rows = self._pair.rows(self._view.of(X), self._prepared)
        return self._pair.tile(rows, self._prepared, None)

    def part(self, X: FloatArray, columns: NDArray[np.intp], out: FloatArray) -> FloatArray:
        """Return the contribution of some columns to a matrix that is a sum over columns."""
        seen, kept = self._some.get(columns.tobytes()) or self._columns(columns)
        return self._pair.tile(self._pair.rows(np.asarray(seen.of(X)), kept), kept, out)

    def _columns(self, columns: NDArray[np.intp]) -> tuple[Seen, Any]:
        """Return the view of some columns, and their cells in the kept rows."""
        assert self._kept is not None
        places = np.flatnonzero(np.isin(self._seen.columns, columns))
        found = self._seen.take(places), self._pair.rows(self._kept[:, places])
        self._some[columns.tobytes()] = found
        return found


class _Affected(NamedTuple):
    """What some columns change: pairwise matrices, and parts of a kernel by their positions."""

    pairs: dict[Key, _Pairs]
    functions: list[int]
    taken: NDArray[np.bool_]


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
        #: Parts of the kernel, and the pairwise matrices that each is made of.
        self._functions = [(keys, _function(terms)) for keys, terms in parts.items()]
        self._n_columns, self._affected = n_columns, dict[bytes, _Affected]()

    def _affected_by(self, columns: NDArray[np.intp]) -> _Affected:
        """Return what some columns change, found once for all blocks of rows."""
        known = self._affected.get(columns.tobytes())
        if known is None:
            seen = {key: pairs for key, pairs in self._pairs.items() if pairs.sees(columns)}
            places = [i for i, (keys, _) in enumerate(self._functions) if not keys.isdisjoint(seen)]
            known = _Affected(seen, places, np.isin(np.arange(self._n_columns), columns)[None])
            self._affected[columns.tobytes()] = known
        return known

    def swap(self, X: Any, buffers: Buffers) -> Swap:
        """Return the function that computes changes of the kernel, in a buffer."""
        here, old = dense(X), {key: pairs.entries(X) for key, pairs in self._pairs.items()}
        before = [values(old, buffers).copy() for _, values in self._functions]

        def changes(columns: NDArray[np.intp], others: Sequence[Any]) -> Iterator[FloatArray]:
            affected = self._affected_by(columns)
            sums = {
                key: pairs.part(here, columns, buffers(f"old {i}", old[key].shape))
                for i, (key, pairs) in enumerate(affected.pairs.items())
                if pairs.is_sum
            }
            for each in others:
                there, bases = dense(each), dict(old)
                for i, (key, pairs) in enumerate(affected.pairs.items()):
                    if not pairs.is_sum:
                        bases[key] = pairs.entries(mixed_rows(each, X, affected.taken))
                        continue
                    moved = pairs.part(there, columns, buffers(f"moved {i}", old[key].shape))
                    moved -= sums[key]
                    moved += old[key]
                    if pairs.is_distance:
                        np.maximum(moved, 0.0, out=moved)
                    bases[key] = moved
                change = buffers("change", next(iter(old.values())).shape)
                change[:] = 0.0
                for place in affected.functions:
                    change += self._functions[place][1](bases, buffers)
                    change -= before[place]
                yield change

        return changes


def _function(terms: list[Term]) -> Evaluate:
    """Return the function that adds up terms made of the same pairwise matrices."""
    kernels = KernelSet([Combination((Term(1.0, atoms),)) for _, atoms in terms])
    weights = np.array([factor for factor, _ in terms])
    return lambda bases, buffers: kernels.sum_of(weights, bases, buffers)
