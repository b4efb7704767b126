"""Containers of rows: what NumPy and dataframes of pandas and polars do not read as it is meant."""

from __future__ import annotations

from typing import Any

import numpy as np

from discernel.arrays.rows import fill_masked
from discernel.exceptions import InvalidInputError, missing_extra

__all__ = ["convert_rows"]


def convert_rows(X: Any) -> Any:
    """Return rows in a container whose cells can be read column by column.

    Masked cells of NumPy become NaN or None, tables of pyarrow dataframes of pandas, and lazy
    frames of polars are collected. Anything else is returned as it is.

    Parameters
    ----------
    X : object
        What a user gave.
    """
    if getattr(getattr(X, "dtype", None), "names", None):
        fields = ", ".join(map(repr, X.dtype.names))
        raise InvalidInputError(
            "An array must have one type for all of its cells. Got a structured array with the "
            f"fields {fields}. Make it a dataframe: pd.DataFrame(array)."
        )
    library, name = type(X).__module__.partition(".")[0], type(X).__name__
    if library == "polars" and name == "LazyFrame":
        return X.collect()
    if library == "pyarrow" and name in ("Table", "RecordBatch"):
        return _arrow_frame(X)
    if isinstance(X, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in X):
        return [fill_masked(row) for row in X]
    return fill_masked(X)


def _arrow_frame(table: Any) -> Any:
    """Return a table of pyarrow as a dataframe of pandas with the same values."""
    try:
        import pandas as pd
    except ImportError as error:
        need = "Tables of pyarrow need pandas"
        raise missing_extra(need, "app", "give a dataframe: pl.from_arrow(table)") from error
    import pyarrow as pa

    def kept(kind: Any) -> Any:  # types of NumPy would make floats of integers beside missing cells
        return None if pa.types.is_dictionary(kind) else pd.ArrowDtype(kind)

    return table.to_pandas(types_mapper=kept)
