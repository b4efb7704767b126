"""Columns of tables: selection, numbers and other cells, quantiles and spreads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import mean_variance_axis

from discernel.arrays import (
    ROUNDING,
    SQUARED_ROUNDING,
    FloatArray,
    free_threads,
    in_threads,
    is_frame,
    is_sparse,
)
from discernel.exceptions import InvalidInputError, did_you_mean

#: Type names of missing cells of pandas, which may not be installed.
_MISSING = ("NAType", "NaTType")
#: Floats represent integers below this exactly.
_EXACT = 2.0**53
#: Last sentence of errors about missing cells and text.
AUTO_TAKES_TABLES = (
    "With kernels='auto', the default of MultipleKernelDiscriminant, tables may have missing cells "
    "and columns of text."
)


def is_mixed(X: Any) -> bool:
    """Whether X is a table with a column that does not hold numbers."""
    if isinstance(X, Table):
        return True
    if is_frame(X):
        columns = range(X.shape[1])
        unsure = [i for i, dtype in zip(columns, X.dtypes, strict=True) if not _is_numeric(dtype)]
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUS":
        unsure = list(range(X.shape[1]))
    else:
        return False
    return not all(_holds_numbers(column_cells(X, i)) for i in unsure)


def _is_numeric(dtype: Any) -> bool:
    """Whether a column type of NumPy, pandas or polars is numeric."""
    if hasattr(dtype, "kind"):
        return dtype.kind in "fiubc"
    return bool(dtype.is_numeric()) or str(dtype) == "Boolean"


def _is_pandas(frame: Any) -> bool:
    """Whether a dataframe is one of pandas; others are those of polars."""
    return hasattr(frame, "iloc")


def _is_number(cell: Any) -> bool:
    """Whether a cell holds a number or a boolean."""
    return isinstance(cell, (Number, np.bool_))


def frame_column(X: Any, position: int) -> Any:
    """Return one column of a dataframe."""
    if _is_pandas(X):
        return X.iloc[:, position]
    # polars: indexing would visit all columns.
    return X.to_series(position) if hasattr(X, "to_series") else X[:, position]


def column_cells(X: Any, position: int) -> NDArray[Any]:
    """Return one column of an array or dataframe without loss of precision.

    Numbers keep their type. Missing cells become NaN if the column holds floats, or integers that
    floats represent exactly. Other columns with missing cells become arrays of objects.
    """
    if not is_frame(X):
        return np.asarray(X)[:, position]
    column = frame_column(X, position)
    if not _is_pandas(X):
        return _polars_cells(column)
    if hasattr(column.dtype, "categories"):
        values = column.cat.categories.astype(object).to_numpy()
        return np.asarray(np.append(values, [None])[column.cat.codes.to_numpy()])
    dtype = getattr(column.dtype, "numpy_dtype", None)
    if dtype is None or dtype.kind not in "fiub":
        return np.asarray(column.to_numpy())
    if not column.hasnans:
        return np.asarray(column.to_numpy(dtype=dtype))
    if dtype.kind != "b":
        floats = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if dtype.kind == "f" or np.nanmax(np.abs(floats), initial=0.0) < _EXACT:
            return np.asarray(floats)
    return np.asarray(column.to_numpy(dtype=object, na_value=None))


def _polars_cells(column: Any) -> NDArray[Any]:
    """Return `column_cells` of a polars series."""
    if column.dtype.is_integer() and "128" in str(column.dtype):
        return np.array(column.to_list(), dtype=object)
    cells = np.asarray(column.to_numpy())
    if not column.dtype.is_integer() or cells.dtype.kind != "f":
        return cells
    is_exact = np.nanmax(np.abs(cells), initial=0.0) < _EXACT  # floats where a cell is missing
    return cells if is_exact else np.array(column.to_list(), dtype=object)


def _holds_numbers(column: NDArray[Any]) -> bool:
    """Whether a column holds numbers only. Text is never a number."""
    if column.dtype.kind != "O":
        return _is_numeric(column.dtype)
    return all(value is None or _is_number(value) for value in column)


def as_cells(X: Any) -> NDArray[Any]:
    """Convert rows to an array. The items of a sequence become objects."""
    return np.asarray(X) if hasattr(X, "shape") else np.fromiter(X, dtype=object, count=len(X))


def is_missing(cell: Any) -> bool:
    """Whether a cell is missing: None, NaN, or a missing value of pandas."""
    if isinstance(cell, (float, np.floating, Decimal)):
        return bool(cell != cell)
    return cell is None or type(cell).__name__ in _MISSING


def missing_cells(cells: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which cells of an array are missing, of the shape of the array."""
    if cells.dtype.kind == "O":
        missing = np.fromiter(map(is_missing, cells.flat), dtype=bool, count=cells.size)
        return missing.reshape(cells.shape)
    return np.asarray(cells != cells)  # NaN and NaT differ from themselves


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of numbers and columns of other objects, in their original order.

    Numbers are float64, other objects are unchanged. ``table[rows]`` selects rows.

    Attributes
    ----------
    numbers : ndarray of shape (n_rows, n_numeric)
        The numeric columns.
    others : ndarray of shape (n_rows, n_columns - n_numeric), of objects
        The other columns.
    is_number : tuple of bool
        Whether each column is numeric.
    names : tuple of str
        Names of the columns, for messages.
    """

    numbers: FloatArray
    others: NDArray[np.object_]
    is_number: tuple[bool, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, X: Any, is_number: Sequence[bool] | None = None) -> Table:
        """Convert an array or dataframe to a table.

        Parameters
        ----------
        X : array, dataframe or Table of shape (n_rows, n_columns)
            The rows.
        is_number : sequence of bool, optional
            Whether each column was numeric in training; by default read from the cells.
        """
        if isinstance(X, Table):
            return X
        columns = [column_cells(X, i) for i in range(X.shape[1])]
        labels = getattr(X, "columns", range(len(columns)))
        names = tuple(repr(label) for label in labels)
        if is_number is None:
            is_number = [_holds_numbers(column) for column in columns]
        numbers = np.empty((X.shape[0], sum(is_number)))
        others = np.empty((X.shape[0], len(columns) - numbers.shape[1]), dtype=object)
        filled = [0, 0]
        for column, numeric, name in zip(columns, is_number, names, strict=True):
            block = numbers if numeric else others
            try:
                block[:, filled[numeric]] = column
            except (TypeError, ValueError) as error:
                raise InvalidInputError(
                    f"The column {name} must hold numbers, as in training. Got "
                    f"{_first_other(column)!r}."
                ) from error
            filled[numeric] += 1
        return cls(numbers, others, tuple(bool(numeric) for numeric in is_number), names)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        return len(self.numbers), len(self.is_number)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> Table:
        return Table(self.numbers[rows], self.others[rows], self.is_number, self.names)

    def take(self, indices: NDArray[np.intp]) -> Table | FloatArray:
        """Return some columns, as an array of floats if all of them are numeric."""
        is_number = np.array(self.is_number)
        places = np.where(is_number, np.cumsum(is_number), np.cumsum(~is_number)) - 1
        taken, kinds = places[indices], is_number[indices]
        numbers = self.numbers[:, taken[kinds]]
        if kinds.all():
            return numbers
        names = tuple(self.names[i] for i in indices)
        return Table(numbers, self.others[:, taken[~kinds]], tuple(kinds.tolist()), names)

    @property
    def values(self) -> NDArray[np.object_]:
        """All columns as one array of objects."""
        values, is_number = np.empty(self.shape, dtype=object), np.array(self.is_number)
        values[:, is_number], values[:, ~is_number] = self.numbers, self.others
        return values

    def no_numbers(self, who: str) -> InvalidInputError:
        """Return the error for a kernel of numbers and columns of other objects."""
        position = self.is_number.index(False)
        return InvalidInputError(
            f"{who} needs numbers, but the column {self.names[position]} holds "
            f"{_first_other(self.others[:, 0])!r}. Restrict the kernel to columns of numbers with "
            "kernel.on(columns), encode the column, or compute it with Function(f).on(columns). "
            + AUTO_TAKES_TABLES
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if dtype is not None and np.dtype(dtype).kind in "fiu":
            raise self.no_numbers("This kernel")
        return self.values


def _first_other(column: NDArray[Any]) -> Any:
    """Return the first cell that is not a number, or else the first cell."""
    found = (value for value in column if not _is_number(value))
    return next(found, column[0] if len(column) else None)


def column_indices(columns: Any, frame: Any) -> NDArray[np.intp]:
    """Return the positions of the chosen columns of ``frame``.

    Parameters
    ----------
    columns : int, str, slice, mask, list of int or str, or callable
        The columns. A callable is called with ``frame`` and returns one of the others.
    frame : array or dataframe of shape (n_samples, n_features)
        The rows, with the names of the columns.
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
                f"A mask of columns must have one entry per column, that is {n_columns}. "
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
        problem = "is not among" if not matches else f"occurs {len(matches)} times among"
        meant = "" if matches else did_you_mean(name, names)
        raise InvalidInputError(f"The column {name!r} {problem} the columns {list(names)}.{meant}")
    return matches[0]


def take_columns(X: Any, indices: NDArray[np.intp]) -> Any:
    """Return the columns at ``indices`` of an array, sparse matrix, dataframe or table."""
    if isinstance(X, Table):
        return X.take(indices)
    if is_frame(X):
        taken = X.iloc[:, indices] if _is_pandas(X) else X[:, indices.tolist()]
        if is_mixed(taken):
            return Table.of(taken)
        return np.asarray(taken.to_numpy(), dtype=np.float64)
    return X[:, indices]


def replace_rows(X: Any, chosen: NDArray[np.bool_], by: Any) -> Any:
    """Return an array or table with the chosen rows replaced by the first row of ``by``."""
    if isinstance(X, Table):
        numbers = replace_rows(X.numbers, chosen, by.numbers)
        return Table(numbers, replace_rows(X.others, chosen, by.others), X.is_number, X.names)
    filled = X.copy()
    for row in np.flatnonzero(chosen):  # one at a time: a cell may be a sequence
        filled[row] = by[0]
    return filled


def describe_columns(columns: Any) -> str:
    """Return a short description of a selection of columns."""
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


# ---- spread ----------------------------------------------------------------------------------

#: Values that are farther from the quartiles than 10 times their distance are ignored as outliers,
#: if they are at most 1 % of the rows, or two rows.
_OUTLYING, _OUTLIERS = 10.0, 0.01
#: Smaller deviations are divided by this before they are squared, to avoid underflow.
_SMALL = 2.0**-450


#: Number of cells of a part of the columns, which one thread takes.
_CELLS = 2**20


def column_quantiles(X: FloatArray, shares: Sequence[float]) -> FloatArray:
    """Return quantiles of every column, as `np.quantile`, of shape (n_shares, n_columns).

    Columns are sorted as contiguous arrays, which takes less than half of the time.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Numbers.
    shares : sequence of float
        Probabilities of the quantiles, from 0 to 1.
    """
    found = np.empty((len(shares), X.shape[1]))

    def find(some: slice, _: None) -> None:
        found[:, some] = _quantiles(X[:, some], shares)

    _in_parts(find, X)
    return found


def _in_parts(find: Callable[[slice, None], None], X: FloatArray) -> None:
    """Call a function for parts of the columns, of many rows in threads."""
    step = max(1, _CELLS // len(X))
    parts = [slice(first, first + step) for first in range(0, X.shape[1], step)]
    in_threads(find, parts, [None] * min(free_threads(len(X)), max(1, len(parts))))


def _quantiles(X: FloatArray, shares: Sequence[float]) -> FloatArray:
    """Return `column_quantiles` of a part of the columns."""
    n, found = len(X), np.empty((len(shares), X.shape[1]))
    ordered = np.array(X.T, order="C", dtype=np.float64)
    ordered.sort(axis=1)
    for row, share in enumerate(shares):
        whole, rest = divmod(share * (n - 1), 1.0)
        below, above = ordered[:, int(whole)], ordered[:, min(int(whole) + 1, n - 1)]
        step_up = above - below
        # Interpolate from the nearer value, so that rounding cannot exceed it.
        found[row] = below + rest * step_up if rest < 0.5 else above - (1.0 - rest) * step_up
    return found


def column_spreads(X: Any) -> FloatArray:
    """Return the spread of every column of dense or CSR rows; 0 for a constant column.

    The spread is the standard deviation without outliers. If half of a column's values are equal,
    as for a rare category or a pixel at the edge, it is half the range: the standard deviation is
    then small, and dividing by it would make the rare values dominate.
    """
    if is_sparse(X):
        return _sparse_spreads(X.tocsc())
    found = np.empty(X.shape[1])

    def find(some: slice, _: None) -> None:
        found[some] = _spreads(X[:, some])

    _in_parts(find, X)
    return found


def _spreads(X: FloatArray) -> FloatArray:
    """Return `column_spreads` of a part of the columns."""
    low, middle, high = _quantiles(X, (0.25, 0.5, 0.75))
    reach = _OUTLYING * (high - low)
    inside = np.abs(X - 0.5 * (low + high)) <= 0.5 * (high - low) + reach
    inside |= (~inside).sum(axis=0) > max(2.0, _OUTLIERS * len(X))
    centered = np.where(inside, X - middle, 0.0)
    farthest = np.maximum(centered.max(axis=0), -centered.min(axis=0))
    unit = np.where(farthest < _SMALL, _SMALL, 1.0)
    if (unit < 1.0).any():  # squares would underflow; division by a power of two is exact
        centered /= unit
    count = inside.sum(axis=0)
    mean = centered.sum(axis=0) / count
    spreads = unit * np.sqrt((np.where(inside, centered - mean, 0.0) ** 2).sum(axis=0) / count)
    spreads = np.where(reach > 0, spreads, 0.5 * np.ptp(X, axis=0))
    return np.asarray(np.where(spreads <= ROUNDING * np.abs(middle), 0.0, spreads))


def _sparse_spreads(X: Any) -> FloatArray:
    """Return `column_spreads` of CSC columns, most of which are 0 in half of the rows."""
    mean, variance = mean_variance_axis(X, axis=0)
    half_range = 0.5 * (X.max(axis=0).toarray()[0] - X.min(axis=0).toarray()[0])
    is_rare = np.diff(X.indptr) < 0.5 * X.shape[0]
    spreads = np.where(is_rare, half_range, np.sqrt(variance))
    return np.asarray(np.where(variance <= SQUARED_ROUNDING * mean**2, 0.0, spreads))
