"""Kernels between rows and training rows when some columns of the rows are those of other rows.

Squared and city-block distances and inner products are sums over columns. So with one column
replaced, one term of the sum is: the cost of a kernel matrix does not depend on the number of
columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Buffers, FloatArray
from discernel.inspection.rows import dense, mixed_rows
from discernel.kernels.base import Combination
from discernel.kernels.evaluate import KernelSet
from discernel.kernels.terms import IDENTITY, Key, Term, combine

if TYPE_CHECKING:
    from discernel.inspection.explained import FeaturePart, KernelPart

__all__ = ["Swap", "SwappedKernel", "swap_features", "swap_kernels"]

#: From some columns and other rows, in turn, to how the terms of rows change when they have the
#: columns of these, of shape (n_rows, n_terms).
Swap = Callable[[NDArray[np.intp], Sequence[Any]], Iterator[FloatArray]]

#: From pairwise matrices to a part of the kernel.
Evaluate = Callable[[dict[Key, FloatArray], Buffers], FloatArray]


def swap_features(part: FeaturePart, X: Any, _: Buffers) -> Swap:
    """Return how the features of rows change with their columns."""
    before = part.values(X)

    def changes(columns: NDArray[np.intp], others: Sequence[Any]) -> Iterator[FloatArray]:
        taken = np.isin(np.arange(X.shape[1]), columns)[None]
        for each in others:
            yield part.values(mixed_rows(each, X, taken)) - before

    return changes


class _Pairs:
    """A pairwise matrix between rows and training rows, and what some columns have of it."""

    def __init__(self, key: Key, Z: Any, n_columns: int) -> None:
        (self._pair, self._view), self._Z = key, Z
        self._columns, self._factors, self._origin = self._view.seen(n_columns)
        self.is_sum = self._pair.is_sum
        self._seen = self._of(dense(Z), np.arange(len(self._columns))) if self.is_sum else None

    def _of(self, X: FloatArray, places: NDArray[np.intp]) -> FloatArray:
        seen = X[:, self._columns[places]] * self._factors[places]
        return np.asarray(seen - self._origin[places])

    def sees(self, columns: NDArray[np.intp]) -> bool:
        """Whether the matrix depends on any of some columns."""
        return bool(np.isin(columns, self._columns[self._factors != 0]).any())

    def entries(self, X: Any) -> FloatArray:
        """Return the matrix."""
        return self._pair.entries(self._view.of(X), self._view.of(self._Z))

    def part(self, X: FloatArray, columns: NDArray[np.intp]) -> FloatArray:
        """Return what some columns add to a matrix that is a sum over columns."""
        assert self._seen is not None
        places = np.flatnonzero(np.isin(self._columns, columns))
        return self._pair.entries(self._of(X, places), self._seen[:, places])


class SwappedKernel:
    """A weighted sum of kernels, taken apart for rows of which columns are replaced.

    Parameters
    ----------
    part : KernelPart
        The kernels and their training rows.
    n_columns : int
        The columns of rows, as the kernels take them.
    """

    def __init__(self, part: KernelPart, n_columns: int) -> None:
        self.pairs: dict[Key, _Pairs] = {}
        #: What pairwise matrices are multiplied by that are kernels themselves.
        self.slopes: dict[Key, float] = {}
        #: Parts of the kernel, and the matrices that each is made of.
        self.functions: list[tuple[set[Key], Evaluate]] = []
        ladders: dict[Key, list[tuple[Combination, float]]] = {}
        for kernel, coefficient in zip(part.kernels, part.kernel.coefficients, strict=True):
            for factor, atoms in kernel.terms():
                weight, keys = float(coefficient) * factor, {atom.key for atom in atoms}
                for key in keys - self.pairs.keys():
                    self.pairs[key] = _Pairs(key, part.rows, n_columns)
                first = next(iter(keys), None)
                if first is None:
                    continue  # a constant
                single = Combination((Term(1.0, atoms),))
                if len(atoms) == 1 and atoms[0].function == IDENTITY and first[0].is_sum:
                    self.slopes[first] = self.slopes.get(first, 0.0) + weight
                elif len(keys) == 1 and first[0].is_prepared:
                    ladders.setdefault(first, []).append((single, weight))
                else:
                    self.functions.append((keys, _product(Term(weight, atoms))))
        for key, found in ladders.items():
            kernels, weights = zip(*found, strict=True)
            self.functions.append(({key}, _ladder(key, KernelSet(kernels), weights)))


def _product(term: Term) -> Evaluate:
    """Return the function of a term of several pairwise matrices, or of an opaque one."""
    return lambda bases, _: np.asarray(combine([term], lambda one: one.function(bases[one.key])))


def _ladder(key: Key, kernels: KernelSet, weights: Sequence[float]) -> Evaluate:
    """Return the function of kernels of one pairwise matrix, which share exponentials."""

    def values(bases: dict[Key, FloatArray], buffers: Buffers) -> FloatArray:
        total, term = (buffers(name, bases[key].shape) for name in ("total", "term"))
        total[:] = 0.0
        for position, matrix in kernels.matrices_of(bases[key], buffers):
            np.multiply(matrix, weights[position], out=term)
            total += term
        return total

    return values


def swap_kernels(kernel: SwappedKernel, X: Any, buffers: Buffers) -> Swap:
    """Return how the kernel of a `SwappedKernel` changes with the columns of rows, in a buffer."""
    here, old = dense(X), {key: pairs.entries(X) for key, pairs in kernel.pairs.items()}
    before = [values(old, buffers).copy() for _, values in kernel.functions]

    def changes(columns: NDArray[np.intp], others: Sequence[Any]) -> Iterator[FloatArray]:
        seen = {key: pairs for key, pairs in kernel.pairs.items() if pairs.sees(columns)}
        sums = {key: pairs.part(here, columns) for key, pairs in seen.items() if pairs.is_sum}
        taken = np.isin(np.arange(here.shape[1]), columns)[None]
        used = [i for i, (keys, _) in enumerate(kernel.functions) if not keys.isdisjoint(seen)]
        for each in others:
            there, bases = dense(each), dict(old)
            change = buffers("change", next(iter(bases.values())).shape)
            change[:] = 0.0
            for key, pairs in seen.items():
                if not pairs.is_sum:
                    bases[key] = pairs.entries(mixed_rows(each, X, taken))
                    continue
                moved = pairs.part(there, columns)
                moved -= sums[key]
                if key in kernel.slopes:
                    change += kernel.slopes[key] * moved
                moved += bases[key]
                if key[0].is_distance:
                    np.maximum(moved, 0.0, out=moved)
                bases[key] = moved
            for i in used:
                change += kernel.functions[i][1](bases, buffers)
                change -= before[i]
            yield change

    return changes
