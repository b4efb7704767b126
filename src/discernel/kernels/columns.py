"""Columns chosen by index, name, slice, mask or selector, as integer positions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.exceptions import InvalidInputError

__all__ = ["column_indices", "describe_columns", "take_columns"]


def column_indices(columns: Any, frame: Any) -> NDArray[np.intp]:
    """Return the positions of the chosen columns of ``frame``.

    Parameters
    ----------
    columns : int, str, slice, mask, list of int or str, or callable
        The choice; a callable is given ``frame`` and returns one of the others.
    frame : array or dataframe of shape (n_samples, n_features)
        Where to look the names up.
    """
    if callable(columns):
        columns = columns(frame)
    n_columns = int(frame.shape[1])
    if isinstance(columns, slice):
        indices = _slice_indices(columns, frame, n_columns)
    else:
        indices = _list_indices(np.atleast_1d(np.asarray(columns)), frame, n_columns)
    if len(indices) == 0:
        raise InvalidInputError(
            f"A kernel must be restricted to at least one column. {columns!r} chooses none of "
            f"{n_columns}."
        )
    if indices.min() < -n_columns or indices.max() >= n_columns:
        raise InvalidInputError(
            f"The columns of a kernel must lie in the {n_columns} columns of the data. "
            f"Got {describe_columns(columns)}."
        )
    indices = np.where(indices < 0, indices + n_columns, indices)
    if len(np.unique(indices)) != len(indices):
        raise InvalidInputError(
            f"The columns of a kernel must be named once each. Got {describe_columns(columns)}."
        )
    return indices


def _slice_indices(columns: slice, frame: Any, n_columns: int) -> NDArray[np.intp]:
    if not any(isinstance(end, str) for end in (columns.start, columns.stop)):
        return np.arange(n_columns)[columns]
    # As in pandas and in scikit-learn's ColumnTransformer, a slice of names includes its end.
    start = 0 if columns.start is None else _position(columns.start, frame)
    stop = n_columns if columns.stop is None else _position(columns.stop, frame) + 1
    return np.arange(start, stop, columns.step)


def _list_indices(chosen: NDArray[Any], frame: Any, n_columns: int) -> NDArray[np.intp]:
    if chosen.size == 0:
        return np.empty(0, dtype=np.intp)
    if chosen.dtype.kind == "b":
        if len(chosen) != n_columns:
            raise InvalidInputError(
                f"A mask of columns must have one entry a column, that is {n_columns}. "
                f"Got {len(chosen)}."
            )
        return np.flatnonzero(chosen)
    if chosen.dtype.kind in "iu":
        return chosen.astype(np.intp)
    if chosen.dtype.kind in "UO" and all(isinstance(name, str) for name in chosen):
        return np.array([_position(str(name), frame) for name in chosen], dtype=np.intp)
    raise InvalidInputError(
        "Columns must be chosen by index, name, slice, mask or a selector that returns one of "
        f"these. Got {chosen.tolist()!r}."
    )


def _position(name: str, frame: Any) -> int:
    names = getattr(frame, "columns", None)
    if names is None:
        raise InvalidInputError(
            f"Columns can be chosen by name only in a dataframe. Got the name {name!r} and "
            f"{type(frame).__name__}. Pass a dataframe or choose the columns by index."
        )
    matches = [i for i, known in enumerate(names) if known == name]
    if len(matches) != 1:
        problem = "is not among" if not matches else f"stands {len(matches)} times among"
        raise InvalidInputError(f"The column {name!r} {problem} the columns {list(names)}.")
    return matches[0]


def take_columns(X: Any, indices: NDArray[np.intp]) -> Any:
    """Return the columns at ``indices`` of an array, sparse matrix or dataframe."""
    if hasattr(X, "iloc"):
        return X.iloc[:, indices].to_numpy(dtype=np.float64)
    if hasattr(X, "columns"):  # polars
        return X[:, indices.tolist()].to_numpy().astype(np.float64)
    return X[:, indices]


def describe_columns(columns: Any) -> str:
    """Return a short text for a choice of columns."""
    if callable(columns):
        return getattr(columns, "__name__", type(columns).__name__)
    if isinstance(columns, slice):
        ends = [columns.start, columns.stop] + ([columns.step] if columns.step else [])
        return ":".join("" if end is None else str(end) for end in ends)
    chosen = np.atleast_1d(np.asarray(columns))
    if chosen.dtype.kind == "b":
        chosen = np.flatnonzero(chosen)
    shown = [str(item) for item in chosen]
    if len(shown) > 3:
        return f"{shown[0]}..{shown[-1]}"
    return ", ".join(shown)
