"""Rows: conversion of containers, conversion to floats, and random subsets."""

from __future__ import annotations

from dataclasses import Field, fields
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from discernel.exceptions import InvalidInputError, needs_extra

FloatArray: TypeAlias = NDArray[np.float64]
Positions: TypeAlias = NDArray[np.intp]

#: Avoids 0/0, and logarithms of 0.
ALMOST_ZERO = 1e-300

#: Number of rows that determine an origin or scale, and the seed of random subsets.
DRAWN_ROWS, _SEED = 64, 0


class FieldState:
    """A dataclass whose pickles hold its fields, but no cached values."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: vars(self)[each.name] for each in fields(self)}


def n_rows(X: Any) -> int:
    """Return the number of rows of an array, a sparse matrix or a sequence."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix of SciPy."""
    return hasattr(X, "tocsr")


def is_dense(X: Any) -> bool:
    """Whether X is a NumPy array, and not one of objects."""
    return isinstance(X, np.ndarray) and X.dtype != object


def is_frame(X: Any) -> bool:
    """Whether X is a dataframe."""
    # Ask the class: for a polars dataframe, the attribute takes time that grows with its columns.
    return hasattr(type(X), "columns") and hasattr(type(X), "dtypes")


def library_of(X: Any) -> str:
    """Return the name of the package that the type of X is from, which is not imported for it."""
    return type(X).__module__.partition(".")[0]


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array or dataframe; Dask is not imported for this check."""
    return library_of(X) == "dask" and hasattr(X, "to_delayed")


def as_dense(X: Any) -> Any:
    """Convert a sparse matrix to an array; arrays are returned unchanged."""
    return X.toarray() if is_sparse(X) else X


def as_rows(X: Any) -> Any:
    """Convert rows to a float64 array or CSR matrix; raise an error for one dimension.

    Floats prevent overflow of integers. Indices of a sparse matrix have 32 bits if possible, as
    scikit-learn's distances require.
    """
    if is_sparse(X):
        X = X.tocsr()
        parts = X.data, X.indices, X.indptr
        return sp.csr_matrix(parts, shape=X.shape, dtype=np.float64, copy=True)
    rows = np.asarray(_fill_masked(X), dtype=np.float64)
    if rows.ndim < 2:
        raise InvalidInputError(
            f"Rows must be an array of shape (n_rows, n_features). Got shape {rows.shape}. Write "
            "X[None, :] for a single row, X[:, None] for rows of a single feature."
        )
    return rows


def convert_rows(X: Any) -> Any:
    """Convert containers whose cells cannot be read column by column.

    Masked cells of NumPy become NaN or None, pyarrow tables become pandas dataframes, and polars
    lazy frames are collected. Other containers are returned unchanged.
    """
    if getattr(getattr(X, "dtype", None), "names", None):
        fields = ", ".join(map(repr, X.dtype.names))
        raise InvalidInputError(
            "An array must have one type for all of its cells. Got a structured array with the "
            f"fields {fields}. Make it a dataframe: pd.DataFrame(array)."
        )
    library, name = library_of(X), type(X).__name__
    if library == "polars" and name == "LazyFrame":
        return X.collect()
    if library == "pyarrow" and name in ("Table", "RecordBatch"):
        return _arrow_frame(X)
    if isinstance(X, (list, tuple)):
        filled = [_fill_masked(row) for row in X]
        return filled if any(new is not row for new, row in zip(filled, X, strict=True)) else X
    return _fill_masked(X)


def _fill_masked(array: Any) -> Any:
    """Replace masked cells by NaN in arrays of floats, and by None in other arrays.

    Arrays without a mask are returned unchanged.
    """
    if not isinstance(array, np.ma.MaskedArray):
        return array
    is_float, cells = array.dtype.kind == "f", np.asarray(array.data)
    if not np.ma.is_masked(array):
        return cells
    filled = cells.astype(cells.dtype if is_float else object)
    filled[np.ma.getmaskarray(array)] = np.nan if is_float else None
    return filled


def _arrow_frame(table: Any) -> Any:
    """Convert a pyarrow table to a pandas dataframe without loss of precision."""
    instead = "give a dataframe: pl.from_arrow(table)"
    with needs_extra("Tables of pyarrow need pandas", "app", instead):
        import pandas as pd
    import pyarrow as pa

    def kept(kind: Any) -> Any:  # NumPy types would convert integers to floats if cells are missing
        return None if pa.types.is_dictionary(kind) else pd.ArrowDtype(kind)

    return table.to_pandas(types_mapper=kept)


def draw_rows(X: Any, most: int) -> Any:
    """Return a random subset of at most ``most`` rows of X, in order.

    The subset depends only on the number of rows. It is random because every n-th row can be
    biased if the data have a periodic order.
    """
    return X if n_rows(X) <= most else X[_drawn(n_rows(X), most)]


@lru_cache(maxsize=64)
def _drawn(n: int, most: int) -> NDArray[np.intp]:
    return np.sort(np.random.default_rng(_SEED).choice(n, most, replace=False, shuffle=False))


#: Digits, of the range of a column, that neither the order of rows nor the way of a sum changes.
_SAME_DIGITS = 9


def round_keys(keys: FloatArray) -> FloatArray:
    """Return the columns that rows are sorted by, rounded to nine digits of their ranges.

    Rows that are equal in a column are then sorted by the next one, not by rounding errors.
    """
    units = np.ptp(keys, axis=0) if len(keys) else np.ones(keys.shape[1])
    return np.asarray(np.round(keys / np.where(units > 0, units, 1.0), _SAME_DIGITS))


def typical_row(X: FloatArray) -> FloatArray:
    """Return the median of every column, computed from at most 64 rows.

    Outliers have no influence. The median is a value of the column, so integers minus the typical
    row are integers.
    """
    drawn = draw_rows(X, DRAWN_ROWS)
    return np.asarray(np.partition(drawn, len(drawn) // 2, axis=0)[len(drawn) // 2])
