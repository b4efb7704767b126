"""Cells of a table, read column by column: missing cells, kinds of values, numbers, texts."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from discernel.arrays import FloatArray, convert_rows, is_frame, is_sparse
from discernel.exceptions import InvalidInputError, listed
from discernel.kernels.columns import column_cells, frame_column, is_missing

#: The largest absolute value of a number; sums of squares of such numbers are finite.
LARGEST = 1e150
#: Names of the categorical types of polars and pyarrow begin with these.
_CATEGORIES = ("Categorical", "dictionary")
#: Distinct values of a column are counted up to this number.
_MOST_VALUES = 10_000
_DATES = (datetime.date, np.datetime64)
#: Kinds of cells that cannot be mixed in a column, with their plurals for messages.
KINDS = {"number": "numbers", "text": "text", "date": "dates"}
#: Texts that mean a missing value.
MISSING_VALUES = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "?")
_NO_VALUES = frozenset(MISSING_VALUES)


# ---- tables ------------------------------------------------------------------------------------


def is_plain(X: Any) -> bool:
    """Whether X needs no encoding: it holds only numbers in range, or cannot be a table."""
    if is_sparse(X):
        return True
    if is_frame(X):
        if all(_is_number(dtype) for dtype in X.dtypes):
            return are_in_range(X.to_numpy())
        return all(_is_plain_column(X, i) for i in range(X.shape[1]))
    try:
        cells = np.asarray(X)
    except ValueError:  # rows of different lengths
        return True
    if cells.dtype.kind == "O" and cells.ndim == 2:
        return all(_is_plain_column(cells, i) for i in range(cells.shape[1]))
    return cells.dtype.kind not in "OUSMm" and are_in_range(cells)


def _is_number(dtype: Any) -> bool:
    """Whether a column type of a dataframe is an integer or float type."""
    if isinstance(dtype, np.dtype):
        return dtype.kind in "fiu"
    return hasattr(dtype, "is_float") and bool(dtype.is_float() or dtype.is_integer())


def _is_plain_column(X: Any, position: int) -> bool:
    """Whether a column holds only numbers in range, none missing."""
    column = read_column(X, position, "")
    if column.declared or column.kinds - {"number"} or column.missing.any():
        return False
    return are_in_range(column.numbers)


def are_in_range(numbers: NDArray[Any]) -> bool:
    """Whether all numbers are known, and at most `LARGEST` in absolute value."""
    if numbers.dtype.kind == "c":
        return bool(np.isfinite(numbers).all())
    if not numbers.size:
        return True
    return bool(float(numbers.min()) >= -LARGEST and float(numbers.max()) <= LARGEST)


def as_table(X: Any) -> Any:
    """Return a dataframe unchanged, and other input as a checked two-dimensional array."""
    X = convert_rows(X)
    if not is_frame(X):
        cells = X if is_sparse(X) else np.asarray(X)
        if isinstance(X, (list, tuple)) and cells.dtype.kind in "US":
            cells = np.array(X, dtype=object)  # NumPy converts numbers next to text to text
        return check_array(cells, dtype=None, ensure_all_finite=False)
    if min(X.shape) == 0:
        what, which = ("sample", "n_samples") if X.shape[0] == 0 else ("feature", "n_features")
        raise InvalidInputError(
            f"Found a table with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required: "
            f"{which} must not be 0."
        )
    column_names(X)  # refuses duplicate names, before the checks of scikit-learn
    return X


def column_names(X: Any) -> list[str]:
    """Return the names of the columns; ``x0``, ``x1``, ... unless all names are text."""
    names = list(X.columns) if is_frame(X) else []
    if not names or not all(isinstance(name, str) for name in names):
        return [f"x{i}" for i in range(X.shape[1])]
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise InvalidInputError(
            f"Column names must be unique. Got {name!r} {times} times. Rename the columns, or "
            "drop all but one."
        )
    return names


def out_of_range(numbers: FloatArray) -> NDArray[np.bool_]:
    """Return which numbers exceed `LARGEST` in absolute value; False for NaN."""
    return np.asarray(np.abs(np.asarray(numbers, dtype=np.float64)) > LARGEST)


def number_out_of_range(cell: Any, column: str, row: int) -> InvalidInputError:
    """Return the error for a number that is infinite or too large."""
    shown = str(cell) if isinstance(cell, (float, np.floating)) else f"{Decimal(int(cell)):.3g}"
    return InvalidInputError(
        "Input X contains infinity or a number that is too large. Numbers must be missing or lie "
        f"between -{LARGEST:g} and {LARGEST:g}, so that sums of their squares are finite; the "
        f"column {column!r} has {shown} in row {row}. Correct the cell, divide the column by a "
        "power of ten, or set the cell to NaN."
    )


def column_labels(X: Any) -> tuple[Any, ...]:
    """Return column names that are not all text, such as integers; an empty tuple otherwise."""
    labels = tuple(X.columns) if is_frame(X) else ()
    return () if all(isinstance(label, str) for label in labels) else labels


def check_labels(given: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    """Raise if column names that are not text differ from those in training.

    scikit-learn compares column names only if they are text.

    Parameters
    ----------
    given, expected : tuple
        Returned by `column_labels` for new rows and for training rows.
    """
    if given and expected and given != expected:
        raise InvalidInputError(
            "The columns must have the same names in the same order as in training: "
            f"{listed(expected, 10)}. Got {listed(given, 10)}. Select them with X[names], or pass "
            "an array with the columns in that order."
        )


# ---- columns -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Column:
    """One column of the user's table.

    Attributes
    ----------
    name : str
        The name of the column.
    cells : ndarray of shape (n_rows,)
        Numbers, dates, or objects of any kind.
    missing : ndarray of bool, of shape (n_rows,)
        Which cells have no value, or one of `MISSING_VALUES`.
    kinds : frozenset of {"number", "text", "date", "other"}
        The kinds of the cells that are not missing.
    declared : bool
        Whether the column has a categorical type.
    is_integer : bool
        Whether the column of a dataframe has an integer type; False for arrays, whose columns
        share one type.
    """

    name: str
    cells: NDArray[Any]
    missing: NDArray[np.bool_]
    kinds: frozenset[str]
    declared: bool = False
    is_integer: bool = False

    @property
    def numbers(self) -> FloatArray:
        """The cells as floats, NaN for missing cells."""
        if self.cells.dtype.kind != "O":
            return np.asarray(self.cells, dtype=np.float64)
        numbers = np.full(len(self.cells), np.nan)
        numbers[~self.missing] = [_as_float(cell) for cell in self.cells[~self.missing]]
        return numbers

    @property
    def words(self) -> list[str]:
        """The cells as text; equal values have equal texts, missing cells the empty text."""
        return [
            "" if missing else _word(cell)
            for cell, missing in zip(self.cells, self.missing, strict=True)
        ]

    @property
    def counts(self) -> Counter[str]:
        """The number of cells of each value; the keys are texts, as in `words`."""
        words = zip(self.words, self.missing, strict=True)
        return Counter(word for word, missing in words if not missing)

    @property
    def texts(self) -> set[str]:
        """The distinct cells that are text."""
        return {cell for cell in self.cells[~self.missing] if isinstance(cell, str)}

    def example(self, kinds: Iterable[str]) -> Any:
        """Return the first cell of one of some kinds."""
        wanted = set(kinds)
        known = self.cells[~self.missing]
        cell = next(cell for cell in known if _kind(type(cell)) in wanted)
        return cell.item() if isinstance(cell, (np.number, np.bool_, np.str_)) else cell


def read_column(X: Any, position: int, name: str) -> Column:
    """Return one column of an array or dataframe."""
    cells = column_cells(X, position)
    declared, is_integer = False, False
    if is_frame(X):
        dtype = frame_column(X, position).dtype
        declared = hasattr(dtype, "categories") or str(dtype).startswith(_CATEGORIES)
        is_integer = dtype.kind in "iu" if hasattr(dtype, "kind") else bool(dtype.is_integer())
    if cells.dtype.kind in "fiub" and cells.ndim == 1:  # polars returns structs as a matrix
        missing = np.isnan(cells) if cells.dtype.kind == "f" else np.zeros(len(cells), dtype=bool)
        kinds = frozenset() if missing.all() else frozenset(("number",))
        return Column(name, cells, missing, kinds, declared, is_integer)
    if cells.dtype.kind == "M" and cells.ndim == 1:
        missing = np.isnat(cells)
        kinds = frozenset() if missing.all() else frozenset(("date",))
        return Column(name, cells, missing, kinds, declared)
    if cells.dtype.kind != "O" or cells.ndim > 1:
        # ``astype(object)`` would turn dates to integers
        cells = np.fromiter(cells, dtype=object, count=len(cells))
    missing = np.array(
        [cell in _NO_VALUES if isinstance(cell, str) else is_missing(cell) for cell in cells],
        dtype=bool,
    )
    types = {type(cell) for cell in cells[~missing]}
    is_integer = bool(types) and all(issubclass(kind, (int, np.integer)) for kind in types)
    is_integer &= is_frame(X) and not types & {bool, np.bool_}
    return Column(name, cells, missing, frozenset(map(_kind, types)), declared, is_integer)


def find_number(
    X: Any, which: Callable[[FloatArray], NDArray[np.bool_]]
) -> tuple[Any, str, int] | None:
    """Return the first number that meets a condition, with its column and row; None if none does.

    Parameters
    ----------
    X : array, sparse matrix or dataframe of shape (n_rows, n_columns)
        The table; only columns of numbers are searched.
    which : callable
        The condition. Takes an array of numbers, NaN for missing cells, and returns booleans.
    """
    if is_sparse(X):
        cells = X.tocoo()
        for place in np.flatnonzero(which(cells.data))[:1]:
            return cells.data[place], f"x{cells.col[place]}", int(cells.row[place])
        return None
    X = X if is_frame(X) else np.asarray(X)
    for position, name in enumerate(column_names(X) if len(X.shape) == 2 else []):
        column = read_column(X, position, name)
        found = which(column.numbers) if column.kinds <= {"number"} else np.zeros(0, dtype=bool)
        if found.any():
            return column.cells[found.argmax()], name, int(found.argmax())
    return None


def _kind(kind: type) -> str:
    """Return the kind of cells of a type: "number", "text", "date" or "other"."""
    if issubclass(kind, _DATES):
        return "date"
    if issubclass(kind, (str, bytes)):
        return "text"
    is_number = issubclass(kind, (Number, np.bool_))
    # NumPy registers durations as numbers.
    if is_number and not issubclass(kind, (complex, np.complexfloating, np.timedelta64)):
        return "number"
    return "other"


def _as_float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:  # a Python integer that no float can hold
        return float("inf") if cell > 0 else float("-inf")


def _word(cell: Any) -> str:
    """Return a value as text: the same text for equal numbers of any type, "0.1" for float32 0.1.

    `discernel.export._scorer.as_word` is a copy that needs only NumPy.
    """
    if isinstance(cell, bytes):
        return cell.decode(errors="replace")
    if not isinstance(cell, (float, np.floating, Decimal)):
        return str(cell)
    number = float(cell)
    if np.isfinite(number) and cell == int(cell):
        return str(int(cell))
    with np.errstate(over="ignore"):
        single = np.float32(number)
    return repr(float(str(single)) if single == number else number)


# ---- counts over all chunks --------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnFacts:
    """Counts of the cells of a column; the sum of two describes both parts together.

    Attributes
    ----------
    n_known, n_missing : int
        The numbers of cells with and without a value.
    counts : mapping of str to int, or None
        The number of cells of each value, for categories and text; None if there are too many
        distinct values.
    kinds : mapping of str to str
        From each kind of cell to the name of the part where it first occurs.
    """

    n_known: int
    n_missing: int
    counts: Mapping[str, int] | None
    kinds: Mapping[str, str]

    @classmethod
    def of(cls, column: Column, where: str) -> ColumnFacts:
        """Count the cells of one part of a column.

        Parameters
        ----------
        column : Column
            The cells.
        where : str
            The name of the part, for error messages.
        """
        n_missing = int(column.missing.sum())
        has_values = column.declared or "text" in column.kinds
        counts = column.counts if has_values else Counter[str]()
        return cls(
            len(column.cells) - n_missing,
            n_missing,
            counts if len(counts) <= _MOST_VALUES else None,
            dict.fromkeys(sorted(column.kinds), where),
        )

    def __add__(self, other: ColumnFacts) -> ColumnFacts:
        counts = None
        if self.counts is not None and other.counts is not None:
            counts = Counter(self.counts) + Counter(other.counts)
            counts = counts if len(counts) <= _MOST_VALUES else None
        return ColumnFacts(
            self.n_known + other.n_known,
            self.n_missing + other.n_missing,
            counts,
            {**other.kinds, **self.kinds},
        )
