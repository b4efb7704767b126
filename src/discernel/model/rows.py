"""Operations on rows of any type: the typical row, and rows with cells of other rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import csc_median_axis_0

from discernel.arrays import FloatArray, as_dense, is_sparse
from discernel.kernels import Kernel
from discernel.kernels.columns import Table
from discernel.rows.encoder import TableEncoder


def has_columns(X: Any, kernels: list[Kernel]) -> bool:
    """Return whether encoded rows have columns."""
    is_table = isinstance(X, Table) or (np.ndim(X) == 2 and X.dtype != object)
    return is_table and not kernels[0].precomputed


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
        for place in range(others.shape[1]):
            others[0, place] = _most_frequent(X.others[:, place])
        return Table(np.median(X.numbers, axis=0)[None], others, X.is_number, X.names)
    row = np.median(X, axis=0)
    first = 0
    for column in encoder.columns_ if encoder is not None else ():
        n = len(column.is_code)
        row[first : first + n] = column.typical(X[:, first : first + n])
        first += n
    return row[None]


def _most_frequent(values: NDArray[np.object_]) -> Any:
    """Return the first of the most frequent values, compared by their text."""
    texts = [repr(value) for value in values]
    return values[texts.index(Counter(texts).most_common(1)[0][0])]


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
