"""What a row is compared with: the typical row, and rows that are partly one and partly another."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import csc_median_axis_0

from discernel.arrays import FloatArray
from discernel.kernels.columns import Table
from discernel.tables import TableEncoder
from discernel.tables.encoder import EncodedNumbers

__all__ = ["dense", "has_columns", "mixed_rows", "moved_columns", "swapped_columns", "typical_rows"]


def has_columns(X: Any) -> bool:
    """Whether rows, as kernels take them, are a table."""
    return isinstance(X, Table) or (getattr(X, "ndim", 0) == 2 and X.dtype != object)


def dense(X: Any) -> FloatArray:
    """Return rows of numbers as an array; columns of other things are 0."""
    if isinstance(X, Table):
        whole = np.zeros(X.shape)
        whole[:, np.array(X.is_number)] = X.numbers
        return whole
    return np.asarray(X.toarray() if hasattr(X, "tocsr") else X, dtype=np.float64)


# ---- the typical row -----------------------------------------------------------------------------


def typical_rows(X: Any, encoder: TableEncoder | None = None) -> Any:
    """Return one row: medians of numbers, the most frequent of other values.

    Parameters
    ----------
    X : array, CSR or Table of shape (n_rows, n_columns)
        Training rows as the kernels take them.
    encoder : TableEncoder, optional
        What they were encoded by, if they were: of the columns of one category, the most frequent
        is 1 and the others are 0.
    """
    if hasattr(X, "tocsr"):
        return scipy.sparse.csr_matrix(csc_median_axis_0(X.tocsc())[None])
    if isinstance(X, Table):
        others = np.empty((1, X.others.shape[1]), dtype=object)
        for place in range(others.shape[1]):
            others[0, place] = _most_frequent(X.others[:, place])
        return Table(np.median(X.numbers, axis=0)[None], others, X.is_number, X.names)
    row = np.median(X, axis=0)
    first = 0
    for column in encoder.columns_ if encoder is not None else ():
        n = len(column.is_code)
        if isinstance(column, EncodedNumbers):
            row[first] = column.median
        else:
            row[first : first + n] = np.arange(n) == X[:, first : first + n].sum(axis=0).argmax()
        first += n
    return row[None]


def _most_frequent(values: NDArray[np.object_]) -> Any:
    """Return the first of the most frequent values; what has no hash counts by its text."""
    texts = [repr(value) for value in values]
    return values[texts.index(Counter(texts).most_common(1)[0][0])]


# ---- between two rows ----------------------------------------------------------------------------


def moved_columns(x: Any, reference: Any) -> NDArray[np.bool_]:
    """Return which columns of one row differ from those of another one, of shape (n_columns,)."""
    if isinstance(x, Table):
        left, right = x.values[0], reference.values[0]
        return np.array([repr(a) != repr(b) for a, b in zip(left, right, strict=True)])
    return np.asarray(dense(x)[0] != dense(reference)[0])


def mixed_rows(x: Any, reference: Any, taken: NDArray[np.bool_]) -> Any:
    """Return rows whose columns are those of one row where taken, and those of another elsewhere.

    Parameters
    ----------
    x, reference : array, CSR or Table of shape (1, n_columns)
        The two rows.
    taken : ndarray of shape (n_rows, n_columns)
        Where to take x.
    """
    if isinstance(x, Table):
        is_number = np.array(x.is_number)
        return Table(
            np.where(taken[:, is_number], x.numbers, reference.numbers),
            np.where(taken[:, ~is_number], x.others, reference.others),
            x.is_number,
            x.names,
        )
    mixed = np.where(taken, dense(x), dense(reference))
    return scipy.sparse.csr_matrix(mixed) if hasattr(x, "tocsr") else mixed


def swapped_columns(X: Any, others: Any, columns: NDArray[np.intp]) -> Any:
    """Return rows whose cells in some columns are those of other rows.

    Parameters
    ----------
    X, others : array or Table of shape (n_rows, n_columns)
        The rows, and those to take cells from, row by row.
    columns : ndarray of int
        The columns.
    """
    if isinstance(X, Table):
        taken = np.isin(np.arange(X.shape[1]), columns)
        is_number = np.array(X.is_number)
        return Table(
            np.where(taken[is_number], others.numbers, X.numbers),
            np.where(taken[~is_number], others.others, X.others),
            X.is_number,
            X.names,
        )
    swapped = X.copy()
    swapped[:, columns] = others[:, columns]
    return swapped
