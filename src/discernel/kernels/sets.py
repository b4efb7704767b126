"""Kernels of sets, counts and categories: what two rows have in common, as a share."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from discernel.arrays import FloatArray, as_rows, inner_products, is_sparse, n_rows, squared_norms
from discernel.exceptions import InvalidInputError
from discernel.kernels.columns import Table, is_missing
from discernel.kernels.pairs import non_negative
from discernel.kernels.similarity import SimilarityKernel, one_column

__all__ = ["Jaccard", "Matching", "Tanimoto"]


@dataclass(frozen=True, eq=False)
class _SizedRows:
    """Rows of numbers, and the square of the length of each before anything was left out."""

    rows: Any
    sizes: FloatArray
    items: dict[Hashable, int] | None = None

    def __getitem__(self, rows: Any) -> _SizedRows:
        return _SizedRows(self.rows[rows], self.sizes[rows], self.items)


class _SharedPart(SimilarityKernel):
    """⟨x, z⟩ / (‖x‖² + ‖z‖² − ⟨x, z⟩), and 1 for two rows of nothing."""

    def rows(self, X: Any, like: Any | None = None) -> Any:
        X = self._checked(as_rows(X))
        return _SizedRows(X, squared_norms(X))

    def _checked(self, X: Any) -> Any:
        """Return rows of numbers, or raise an error that says which number may not be there."""
        raise NotImplementedError

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        other = X if Z is None else Z
        shared = inner_products(X.rows, other.rows)
        whole = np.add.outer(X.sizes, other.sizes) - shared
        # A difference of sizes that cancel is 0 or far from it: entries are counts.
        return np.asarray(np.divide(shared, whole, out=np.ones_like(shared), where=whole > 0))

    def diagonal(self, X: Any) -> FloatArray:
        return np.ones(n_rows(X))


@dataclass(frozen=True, repr=False)
class Jaccard(_SharedPart):
    """The share that two sets have in common, ``|A ∩ B| / |A ∪ B|``.

    Two empty sets are the same: 1. A set is a cell that holds a set, list or tuple of anything
    that a dictionary takes for a key, or a row of columns of 0 and 1.

    Parameters
    ----------
    separator : str, optional
        What stands between the items of a set that is written as text, such as ``";"``. Blanks
        around items do not count, and an empty text is an empty set.

    Examples
    --------
    >>> Jaccard()([{"fever", "cough"}, {"cough"}, set()])
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    >>> Jaccard()([[1, 1, 0]], [[0, 1, 1]])
    array([[0.33333333]])
    >>> Jaccard(separator=";")(["fever; cough"], ["cough"])
    array([[0.5]])
    """

    separator: str | None = None
    takes_any_rows = True

    def __post_init__(self) -> None:
        if self.separator is not None and not (isinstance(self.separator, str) and self.separator):
            raise InvalidInputError(
                f"The separator of Jaccard must be a text such as ';'. Got {self.separator!r}."
            )

    def rows(self, X: Any, like: Any | None = None) -> Any:
        if _is_numbers(X):
            return super().rows(X, like)
        sets = [self._set(row, cell) for row, cell in enumerate(one_column(X, repr(self), "sets"))]
        items: dict[Hashable, int] = {} if like is None else like.items or {}
        if like is None:
            for one in sets:
                for item in one:
                    items.setdefault(item, len(items))
        # Items that no training row has are in no intersection, only in the size of their set.
        found = [[items[item] for item in one if item in items] for one in sets]
        ends = np.cumsum([0, *map(len, found)])
        columns = np.fromiter((i for one in found for i in one), dtype=np.intp, count=ends[-1])
        shape = len(sets), max(1, len(items))
        rows = sp.csr_array((np.ones(len(columns)), columns, ends), shape=shape)
        return _SizedRows(rows, np.array([float(len(one)) for one in sets]), items)

    def _set(self, row: int, cell: Any) -> set[Hashable]:
        if isinstance(cell, str) and self.separator is not None:
            return {item.strip() for item in cell.split(self.separator) if item.strip()}
        try:
            if isinstance(cell, (str, bytes)) or not isinstance(cell, Iterable):
                raise TypeError("not a set")
            return set(cell)
        except TypeError as error:
            raise InvalidInputError(
                f"{self!r} needs a set, list or tuple per row, or columns of 0 and 1. Row {row} "
                f"holds {cell!r}."
                + (" Say how it is divided: Jaccard(separator=';')." if type(cell) is str else "")
            ) from error

    def _checked(self, X: Any) -> Any:
        values = X.data if is_sparse(X) else X
        strange = values[(values != 0) & (values != 1)]
        if len(strange):
            raise InvalidInputError(
                f"{self!r} of columns of numbers needs 0 and 1, for what is in a set. Got "
                f"{strange[0]:g}. Tanimoto() takes counts."
            )
        return X


def _is_numbers(X: Any) -> bool:
    """Whether rows are columns of numbers, and not a sequence of sets."""
    if isinstance(X, (np.ndarray, Table)) or is_sparse(X):
        return not isinstance(X, Table) and X.dtype != object and X.ndim == 2
    first = next(iter(X), ())
    return (
        isinstance(first, (list, tuple, np.ndarray))
        and np.ndim(first) == 1
        and all(isinstance(value, (int, float, np.number, np.bool_)) for value in first)
    )


@dataclass(frozen=True, repr=False)
class Matching(SimilarityKernel):
    """The share of columns in which two rows have the same value, for columns of categories.

    Values may be anything that a dictionary takes for a key. Missing cells (NaN, None, ``pd.NA``)
    are a value of their own.

    Examples
    --------
    >>> Matching()([["east", "smoker"], ["east", "never"]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    takes_any_rows = True
    takes_missing = True
    takes_sparse = False

    def check_rows(self, X: Any) -> None:
        """Take whatever there is."""

    def rows(self, X: Any, like: Any | None = None) -> Any:
        cells = X.values if isinstance(X, Table) else np.asarray(X)
        cells = cells if cells.ndim == 2 else cells[:, None]
        items: dict[Hashable, int] = {} if like is None else like.items or {}
        n, n_columns = cells.shape
        codes = np.full((n, n_columns), -1)
        for column in range(n_columns):
            for row, cell in enumerate(cells[:, column].tolist()):
                item = column, None if is_missing(cell) else cell
                codes[row, column] = (
                    items.setdefault(item, len(items)) if like is None else items.get(item, -1)
                )
        rows, columns = np.nonzero(codes >= 0)
        shape = n, max(1, len(items))
        ones = np.full(len(rows), n_columns**-0.5)
        counts = sp.coo_array((ones, (rows, codes[rows, columns])), shape=shape).tocsr()
        return _SizedRows(counts, np.ones(n), items)

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        return inner_products(X.rows, (X if Z is None else Z).rows)

    def diagonal(self, X: Any) -> FloatArray:
        return np.ones(n_rows(X))


@dataclass(frozen=True, repr=False)
class Tanimoto(_SharedPart):
    """The share that two rows of counts have in common, ``⟨x, z⟩ / (‖x‖² + ‖z‖² − ⟨x, z⟩)``.

    Of rows of 0 and 1, such as the fingerprints of molecules [Ralaivola05]_, it is `Jaccard`. Two
    rows of zeros are the same: 1.

    Examples
    --------
    >>> Tanimoto()([[2, 0, 1]], [[1, 0, 1], [0, 3, 0]])
    array([[0.75, 0.  ]])
    """

    def _checked(self, X: Any) -> Any:
        return non_negative(X, repr(self))
