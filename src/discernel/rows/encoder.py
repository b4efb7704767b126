"""`TableEncoder`: encode a table of numbers, categories, dates and missing cells as numbers."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from discernel.arrays import FloatArray, is_frame
from discernel.exceptions import InvalidInputError, LeftOutColumnWarning, caller_stacklevel
from discernel.kernels.columns import column_spreads
from discernel.rows.cells import (
    KINDS,
    Column,
    ColumnFacts,
    as_table,
    check_labels,
    column_labels,
    column_names,
    number_out_of_range,
    out_of_range,
    read_column,
)
from discernel.rows.dates import (
    FORMATS,
    ISO,
    as_times,
    date_parts,
    matching_formats,
    odd_date,
    read_times,
)
from discernel.rows.formats import import_pandas, view_slices

#: The minimum number of rows for a category, or the indicator of missing cells, to be encoded.
_MIN_ROWS = 2
#: A column of text with more distinct values than this, in more than half of its rows, is not
#: categorical; a column of more distinct integers that fill half of their range numbers the rows.
_MANY_VALUES = 50
#: The end of the reason for leaving such integers out.
_NUMBERS_ROWS = "which number the rows"
#: The maximum number of categories of a column; less frequent values share one encoded column.
_MAX_CATEGORIES = 200


# ---- encodings of one column -------------------------------------------------------------------


@dataclass(frozen=True)
class EncodedColumn:
    """The encoding of one column of a table.

    Attributes
    ----------
    position : int
        The position of the column in the table.
    """

    position: int

    @property
    def outputs(self) -> list[tuple[str, bool, float]]:
        """The encoded columns: suffix of the name, whether it is a 0/1 code, and spread."""
        raise NotImplementedError

    def inputs(self, column: str) -> dict[str, Any]:
        """Return the encodings of the columns that an exported model takes, by name."""
        return {column: self}

    def input_cells(self, column: Column) -> dict[str, NDArray[Any]]:
        """Return the cells of the columns that an exported model takes, by name."""
        return {column.name: column.cells}

    def others(self, column: Column, *, new: bool) -> list[str]:
        """Return the values that are encoded as "is other", or only new ones, sorted."""
        return []

    def notes(self, column: str) -> list[str]:
        """Return notes for users on the encoding."""
        return []


@dataclass(frozen=True)
class EncodedNumbers(EncodedColumn):
    """The encoding of numbers, which are kept unchanged.

    Attributes
    ----------
    median : float
        The median of the known numbers, which replaces missing cells.
    spread : float
        The spread of the known numbers.
    tells_missing : bool
        Whether a second encoded column indicates missing cells.
    """

    kind: ClassVar[str] = "number"
    words: ClassVar[str] = "number"
    median: float
    spread: float = 1.0
    tells_missing: bool = False

    @property
    def outputs(self) -> list[tuple[str, bool, float]]:
        return [("", False, self.spread), (" is missing", True, 1.0)][: 1 + self.tells_missing]

    def encode(self, column: Column, out: FloatArray) -> None:
        """Write the encoded columns to ``out``."""
        if column.kinds - {"number"}:
            raise InvalidInputError(
                f"The column {column.name!r} must hold numbers, as in training. Got "
                f"{column.example(column.kinds - {'number'})!r}."
            )
        numbers = _finite_numbers(column)
        out[:, 0] = np.where(np.isnan(numbers), self.median, numbers)
        if self.tells_missing:
            out[:, 1] = np.isnan(numbers)

    def typical(self, encoded: FloatArray) -> FloatArray:
        """Return the encoded columns of a typical row: medians."""
        row = np.median(encoded, axis=0)
        row[0] = self.median
        return np.asarray(row)


@dataclass(frozen=True)
class EncodedValues(EncodedColumn):
    """The encoding of categories or text: 0/1 columns for values, other values and missing cells.

    Attributes
    ----------
    values : tuple of str
        The values that have an encoded column, sorted.
    is_text : bool
        Whether all values were text in training, so that numbers are refused.
    tells_missing : bool
        Whether cells were missing in training, so that an encoded column indicates them.
    rare : tuple of str
        The other values in training, which share one encoded column, sorted.
    """

    kind: ClassVar[str] = "category"
    values: tuple[str, ...]
    is_text: bool = True
    tells_missing: bool = False
    rare: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The content of the column, in words for users."""
        return f"category of {len(self.values) + len(self.rare)} values"

    @property
    def outputs(self) -> list[tuple[str, bool, float]]:
        rest = [" is other", " is missing"][: 1 + self.tells_missing]
        return [(end, True, 1.0) for end in (*(f"={value}" for value in self.values), *rest)]

    def encode(self, column: Column, out: FloatArray) -> None:
        """Write the encoded columns to ``out``."""
        self._check(column)
        places = {value: place for place, value in enumerate(self.values)}
        other = len(self.values)
        found = np.array([places.get(word, other) for word in column.words], dtype=np.intp)
        found[column.missing] = other + self.tells_missing
        out[:] = 0.0
        out[np.arange(len(out)), found] = 1.0

    def typical(self, encoded: FloatArray) -> FloatArray:
        """Return the encoded columns of the most frequent value."""
        return np.asarray(np.arange(encoded.shape[1]) == encoded.sum(axis=0).argmax(), dtype=float)

    def others(self, column: Column, *, new: bool) -> list[str]:
        self._check(column)
        return sorted(column.counts.keys() - {*self.values, *(self.rare if new else ())})

    def _check(self, column: Column) -> None:
        strange = column.kinds - {"text"} if self.is_text else column.kinds & {"date"}
        if strange:
            raise InvalidInputError(
                f"The column {column.name!r} must hold {'text' if self.is_text else 'categories'}, "
                f"as in training. Got {column.example(strange)!r}."
            )


@dataclass(frozen=True)
class EncodedDates(EncodedColumn):
    """The encoding of dates by numbers: the parts of the dates that vary in training.

    Attributes
    ----------
    format : str
        The format of dates in texts, one of `discernel.rows.dates.FORMATS`. Date objects are
        accepted too.
    parts : tuple of str
        The parts that vary, from `discernel.rows.dates.PARTS`.
    numbers : tuple of EncodedNumbers
        The encoding of each part.
    """

    format: str
    parts: tuple[str, ...]
    numbers: tuple[EncodedNumbers, ...]

    @property
    def kind(self) -> str:
        """The format of the dates."""
        return self.format

    @property
    def words(self) -> str:
        """The content of the column, in words for users."""
        return f"date, as {', '.join(self.parts)}"

    def notes(self, column: str) -> list[str]:
        return [f"{column!r} is treated as dates: {', '.join(self.parts)}"]

    @property
    def outputs(self) -> list[tuple[str, bool, float]]:
        return [
            (part + ending, is_code, spread)
            for part, each in self.inputs("").items()
            for ending, is_code, spread in each.outputs
        ]

    def inputs(self, column: str) -> dict[str, Any]:
        names = (f"{column} ({part})" for part in self.parts)
        return dict(zip(names, self.numbers, strict=True))

    def input_cells(self, column: Column) -> dict[str, NDArray[Any]]:
        found = date_parts(read_times(column, self.format))
        cells = (found[part] for part in self.parts)
        return dict(zip(self.inputs(column.name), cells, strict=True))

    def encode(self, column: Column, out: FloatArray) -> None:
        """Write the encoded columns to ``out``."""
        cells, kinds = self.input_cells(column).values(), frozenset(("number",))
        for each, numbers, place in zip(self.numbers, cells, self._places, strict=True):
            each.encode(Column(column.name, numbers, np.isnan(numbers), kinds), out[:, place])

    def typical(self, encoded: FloatArray) -> FloatArray:
        """Return the encoded columns of a typical row: medians."""
        pairs = zip(self.numbers, self._places, strict=True)
        return np.concatenate([each.typical(encoded[:, place]) for each, place in pairs])

    @property
    def _places(self) -> list[slice]:
        """The encoded columns of each part."""
        pairs = zip(self.parts, self.numbers, strict=True)
        return list(view_slices({part: len(each.outputs) for part, each in pairs}).values())


@dataclass(frozen=True)
class LeftOut:
    """A column that is left out.

    Attributes
    ----------
    name : str
        The name of the column.
    reason : str
        Why the column is left out.
    advice : str
        Advice to the user; may be empty.
    identifies : bool
        Whether the column identifies rows, like a name or a row number.
    """

    name: str
    reason: str
    advice: str = ""
    identifies: bool = False

    @property
    def short_reason(self) -> str:
        """The reason; for integers that number the rows, without their range."""
        return "numbers the rows" if self.reason.endswith(_NUMBERS_ROWS) else self.reason

    @property
    def words(self) -> str:
        """The use of the column, in words for users."""
        return f"left out: {self.short_reason}"


Encoded: TypeAlias = EncodedNumbers | EncodedValues | EncodedDates


# ---- learning the encoding ---------------------------------------------------------------------


def column_kind(column: Column) -> str:
    """Return the kind of a column: "number", "category", "other" or a format of dates.

    Parameters
    ----------
    column : Column
        The cells. A column without values is of the kind "number".
    """
    if column.kinds == {"date"}:
        return ISO
    if column.declared:
        return "category"
    if column.kinds == {"text"}:
        formats = matching_formats(column.texts)
        return formats[0] if len(formats) == 1 else "category"
    return "number" if column.kinds <= {"number"} else "other"


def learn_columns(
    X: Any, facts: Sequence[ColumnFacts] | None = None, *, keep_constant: bool = False
) -> tuple[tuple[Encoded, ...], tuple[LeftOut, ...]]:
    """Return the encodings of the columns of the training rows, and the columns left out.

    Parameters
    ----------
    X : dataframe or array of shape (n_samples, n_features)
        The training rows.
    facts : sequence of ColumnFacts, optional
        Counts of each column over all training rows, if X is a random sample of them.
    keep_constant : bool, default=False
        Whether constant columns are kept.
    """
    columns = [read_column(X, i, name) for i, name in enumerate(column_names(X))]
    known = [ColumnFacts.of(column, "X") for column in columns] if facts is None else facts
    found = [_learn(column, i, known[i], keep_constant) for i, column in enumerate(columns)]
    encoded, left_out = list[Encoded](), list[LeftOut]()
    for each in found:
        if isinstance(each, LeftOut):
            left_out.append(each)
        else:
            encoded.append(each)
    return tuple(encoded), tuple(left_out)


def column_uses(
    names: Sequence[str], encoded: Sequence[Encoded], left_out: Sequence[LeftOut]
) -> dict[str, str]:
    """Return the use of columns, in words for users, by name.

    Parameters
    ----------
    names : sequence of str
        The names of all columns of the table.
    encoded : sequence of EncodedColumn
        The encodings.
    left_out : sequence of LeftOut
        The columns left out.
    """
    uses = {names[each.position]: each.words for each in encoded}
    return uses | {each.name: each.words for each in left_out}


def _learn(
    column: Column, position: int, facts: ColumnFacts, keep_constant: bool
) -> Encoded | LeftOut:
    """Return the encoding of a column, or the reason to leave it out."""
    if not column.kinds:
        return LeftOut(column.name, "no value at all", "Drop it.")
    _refuse_mixed(column)
    kind = column_kind(column)
    if kind in FORMATS:
        return _learn_dates(column, position, kind, keep_constant)
    if kind == "category":
        return _learn_values(column, position, facts, keep_constant)
    if kind == "number":
        return _learn_numbers(column, position, facts, keep_constant)
    thing = column.example(["other"])
    return LeftOut(
        column.name,
        f"neither numbers nor text, but {type(thing).__name__}",
        f"Drop it, encode it, or compute a kernel of it with Function(f).on([{column.name!r}]).",
    )


def _refuse_mixed(column: Column) -> None:
    """Raise an error if a column holds values of two kinds: numbers, text or dates."""
    found = [kind for kind in KINDS if kind in column.kinds]
    if len(found) < 2 or (column.declared and "date" not in found):
        return
    cells = [column.example([kind]) for kind in found[:2]]
    raise InvalidInputError(
        f"The column {column.name!r} must hold {' or '.join(KINDS[kind] for kind in found)}, not "
        f"both. Got {cells[0]!r} and {cells[1]!r}. Convert it to numbers with pd.to_numeric, to "
        "dates with pd.to_datetime, or to text with astype(str)."
    )


def _learn_dates(
    column: Column, position: int, format: str, keep_constant: bool
) -> Encoded | LeftOut:
    """Return the encoding of a column of dates, or the reason to leave it out."""
    found: dict[str, EncodedNumbers] = {}
    for part, numbers in date_parts(as_times(column.cells, format)).items():
        known = numbers[~np.isnan(numbers)]
        if np.ptp(known) == 0 and not (keep_constant and part == "days"):
            continue
        found[part] = _encode_numbers(np.sort(known), len(numbers) - len(known), position)
    if not found:
        return LeftOut(column.name, "one date")
    return EncodedDates(position, format, tuple(found), tuple(found.values()))


def _learn_numbers(
    column: Column, position: int, facts: ColumnFacts, keep_constant: bool
) -> Encoded | LeftOut:
    """Return the encoding of a column of numbers, or the reason to leave it out."""
    numbers = _finite_numbers(column)
    known = np.sort(numbers[~np.isnan(numbers)])  # sorted: results must not depend on row order
    if len(known) == 0:
        return LeftOut(column.name, "no value at all", "Drop it.")
    encoded = _encode_numbers(known, len(numbers) - len(known), position)
    if known[0] == known[-1] and not encoded.tells_missing and not keep_constant:
        return LeftOut(column.name, "one value")
    if column.is_integer and _number_the_rows(known, facts.n_known):
        return LeftOut(
            column.name,
            f"{len(known)} different integers from {known[0]:.0f} to {known[-1]:.0f}, "
            f"{_NUMBERS_ROWS}",
            "Drop it, or keep it as a number with astype(float).",
            identifies=True,
        )
    return encoded


def _encode_numbers(known: FloatArray, n_missing: int, position: int) -> EncodedNumbers:
    """Return the encoding of a column with these known numbers, sorted, and missing cells."""
    spread = float(column_spreads(known[:, None])[0])
    tells_missing = n_missing >= _MIN_ROWS and len(known) >= _MIN_ROWS
    return EncodedNumbers(position, float(np.median(known)), spread, tells_missing)


def has_row_numbers(X: Any, facts: Sequence[ColumnFacts] | None = None) -> bool:
    """Whether a column of a dataframe of numbers holds integers that number the rows.

    Parameters
    ----------
    X : dataframe or array of shape (n_samples, n_features)
        The training rows.
    facts : sequence of ColumnFacts, optional
        Counts of each column over all training rows, if X is a random sample of them.
    """
    if not is_frame(X) or X.shape[0] <= _MANY_VALUES:
        return False
    for position in range(X.shape[1]):
        column = read_column(X, position, "")
        # Integers in a smaller range cannot all be distinct; this check avoids sorting them.
        if not column.is_integer or np.ptp(column.numbers) < X.shape[0] - 1:
            continue
        n_known = X.shape[0] if facts is None else facts[position].n_known
        if _number_the_rows(np.sort(column.numbers), n_known):
            return True
    return False


def _number_the_rows(known: FloatArray, n_known: int) -> bool:
    """Whether sorted integers are distinct and dense, as row numbers are.

    Up to half of the row numbers may be absent, because training rows are often a subset.
    ``n_known`` is the number of integers in all rows, of which ``known`` may be a sample.
    """
    return bool(
        len(known) > _MANY_VALUES
        and (np.diff(known) > 0).all()
        and known[-1] - known[0] + 1 <= 2 * n_known
    )


def _finite_numbers(column: Column) -> FloatArray:
    """Return the numbers of a column, NaN for missing cells; raise an error if one is too large."""
    numbers = column.numbers
    bad = out_of_range(numbers)
    if bad.any():
        row = int(bad.argmax())
        raise number_out_of_range(column.cells[row], column.name, row)
    return numbers


def _learn_values(
    column: Column, position: int, facts: ColumnFacts, keep_constant: bool
) -> Encoded | LeftOut:
    """Return the encoding of a column of categories or text, or the reason to leave it out."""
    if not column.declared and (odd := odd_date(column.texts)) is not None:
        raise InvalidInputError(
            f"The column {column.name!r} must hold dates or text, not both. Most values are "
            f"dates, but {odd!r} is not. Correct the cell, leave it empty, or convert the column "
            "to categories with astype('category')."
        )
    # With too many distinct values to count over all rows, the sample decides.
    counts = column.counts if facts.counts is None else Counter(facts.counts)
    n_known = sum(counts.values())
    if len(counts) > _MANY_VALUES and 2 * len(counts) > n_known:
        return LeftOut(
            column.name,
            f"text with {len(counts)} different values in {n_known} rows",
            "Drop it, encode it, or use a kernel on text: "
            f"NGram().on({column.name!r}) of discernel.kernels.",
            identifies=True,
        )
    kept = _frequent(counts)
    has_missing = facts.n_missing > 0
    if not kept and not has_missing and len(counts) > 1:
        reason, advice = "every value occurs in one row only", "Drop it, or group its values."
        return LeftOut(column.name, reason, advice, identifies=True)
    n_states = len(kept) + (len(counts) > len(kept)) + has_missing
    if n_states == 1 and not keep_constant:
        return LeftOut(column.name, "one value")
    is_text = column.kinds == {"text"} and not column.declared
    rare = tuple(sorted(counts.keys() - set(kept)))
    return EncodedValues(position, tuple(sorted(kept)), is_text, has_missing, rare)


def _frequent(counts: Counter[str]) -> list[str]:
    """Return the most frequent values; ties are broken by alphabetical order."""
    ranked = sorted(counts, key=lambda value: (-counts[value], value))
    return [value for value in ranked[:_MAX_CATEGORIES] if counts[value] >= _MIN_ROWS]


# ---- dates of sources --------------------------------------------------------------------------


class DateEncoder(TransformerMixin, BaseEstimator):
    """Replace the dates of a dataframe by the numbers of `TableEncoder`, and keep other columns.

    Missing dates are missing numbers.

    Attributes
    ----------
    columns_ : tuple of EncodedDates
        The encodings of the columns of date types. A constant one has its days.
    feature_names_in_ : ndarray of str
        The names of the columns.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the columns of dates, and the parts of the dates that vary.

        Parameters
        ----------
        X : DataFrame
            The training rows.
        y : object
            Ignored.
        """
        validate_data(self, X, skip_check_array=True)
        found = []
        for position, name in enumerate(column_names(X)):
            column = read_column(X, position, name)
            if column.kinds == {"date"}:
                found.append(_learn_dates(column, position, ISO, keep_constant=True))
        self.columns_ = tuple(each for each in found if isinstance(each, EncodedDates))
        return self

    @property
    def parts(self) -> dict[str, list[str]]:
        """The names of the numbers in place of each column; its own name if it has no dates."""
        names = list(self.feature_names_in_)
        dates = {each.position: each for each in self.columns_}
        return {
            name: list(dates[place].inputs(name)) if place in dates else [name]
            for place, name in enumerate(names)
        }

    @property
    def source(self) -> NDArray[np.intp]:
        """The position in the table of the column that each returned column comes from."""
        counts = [len(parts) for parts in self.parts.values()]
        return np.repeat(np.arange(len(counts)), counts)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for users on the encoding of columns."""
        names = self.feature_names_in_
        return tuple(note for each in self.columns_ for note in each.notes(names[each.position]))

    def transform(self, X: Any) -> Any:
        """Return rows with numbers in place of dates.

        Parameters
        ----------
        X : DataFrame
            Rows with the columns of the training rows.
        """
        check_is_fitted(self, "columns_")
        validate_data(self, X, skip_check_array=True, reset=False)
        names = column_names(X)
        parts: list[Any] = [X.drop(columns=[names[each.position] for each in self.columns_])]
        for each in self.columns_:
            cells = each.input_cells(read_column(X, each.position, names[each.position]))
            parts.append(import_pandas().DataFrame(cells, index=X.index))
        return import_pandas().concat(parts, axis=1)[self.get_feature_names_out()]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the returned columns, such as ``age`` and ``when (days)``.

        Parameters
        ----------
        input_features : array-like of str, optional
            The names of the columns of the training rows.
        """
        check_is_fitted(self, "columns_")
        _check_feature_names_in(self, input_features)
        return np.array([name for names in self.parts.values() for name in names], dtype=object)


# ---- the encoder -------------------------------------------------------------------------------


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a table of numbers, categories, dates and missing cells as a matrix of numbers.

    Estimators with ``kernels="auto"`` encode tables in this way, with their ``encoder_``. The
    encoding is learned from the training rows and does not depend on their order.

    - Numbers and booleans are kept. Missing numbers are replaced by the median. If at least two
      numbers are missing in training and two are known, a column ``age is missing`` is added.
    - Categories and text are encoded by one 0/1 column per value, such as ``colour=red``, also if
      there are only two values. Any two values then have the same squared distance and the same
      distance in the 1-norm, 2, which is also the mean squared difference of two numbers divided
      by their standard deviation. Values in a single training row, and values that are new in
      prediction, share the column ``colour is other``. If cells are missing in training, there is
      a column ``colour is missing``.
    - Dates, as date objects or as text such as 2024-01-31, 31.01.2024 or 01/31/2024, are encoded
      by numbers: days since 1970, year, month, weekday and hour, as far as these vary. If day and
      month cannot be distinguished, the column is treated as text.
    - Texts such as ``n/a``, ``NA`` and ``?`` are missing cells.
    - Constant columns are left out, unless all columns are constant. With a warning, these are
      left out too: columns without values, text (more than 50 distinct values, in more than half
      of the rows), integers of a dataframe that number the rows, and columns of other objects.
    - Infinite numbers, and columns that mix numbers, text and dates, raise an error.

    Attributes
    ----------
    columns_ : tuple of EncodedNumbers, EncodedValues or EncodedDates
        The encodings of the columns that are not left out, in the order of the table.
    left_out_ : tuple of LeftOut
        The columns that are left out, with reasons.
    n_features_in_ : int
        The number of columns of the table.
    feature_names_in_ : ndarray of str
        The names of the columns, if the table has names.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.5, "a"], [None, "b"], [3.5, "a"], [None, "b"]], dtype=object)
    >>> encoder = TableEncoder().fit(X)
    >>> encoder.get_feature_names_out().tolist()
    ['x0', 'x0 is missing', 'x1=a', 'x1=b', 'x1 is other']
    >>> encoder.transform(X)[:2].tolist()
    [[1.5, 0.0, 1.0, 0.0, 0.0], [2.5, 1.0, 0.0, 1.0, 0.0]]
    >>> encoder.source.tolist()
    [0, 0, 1, 1, 1]
    """

    #: The column names in training, if they are not text.
    _column_labels: tuple[Any, ...] = ()

    @classmethod
    def filling(cls, medians: FloatArray) -> TableEncoder:
        """Return a fitted encoder of numbers that only replaces missing cells.

        Parameters
        ----------
        medians : ndarray of shape (n_columns,)
            The fill value of each column.
        """
        encoder = cls()
        encoder.columns_ = tuple(EncodedNumbers(i, m) for i, m in enumerate(medians.tolist()))
        encoder.left_out_, encoder.n_features_in_ = (), len(medians)
        return encoder

    def fit(self, X: Any, y: Any = None, *, facts: Sequence[ColumnFacts] | None = None) -> Self:
        """Learn the encoding of a table.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_samples, n_features)
            The training rows.
        y : object
            Ignored.
        facts : sequence of ColumnFacts, optional
            Counts of each column over all training rows, if X is a random sample of them. Values
            that are not in X are then encoded too.

        Returns
        -------
        self : TableEncoder
            The fitted encoder.
        """
        X = as_table(X)
        validate_data(self, X, skip_check_array=True)
        self._column_labels = column_labels(X)
        if X.shape[0] < 2:
            raise InvalidInputError(
                f"Found a table with 1 sample (shape={X.shape}) while a minimum of 2 is required."
            )
        self.columns_, self.left_out_ = learn_columns(X, facts)
        if not self.columns_:
            self.columns_, self.left_out_ = learn_columns(X, facts, keep_constant=True)
        self._report()
        return self

    def _report(self) -> None:
        """Warn about columns left out, and raise an error if no column is left."""
        if not self.columns_:
            listed = "; ".join(f"{column.name!r}: {column.reason}" for column in self.left_out_)
            raise InvalidInputError(
                "At least one column must hold numbers or categories. "
                f"Nothing can be learned from {len(self.left_out_)} column(s): {listed}."
            )
        warned = [column for column in self.left_out_ if column.advice]
        if warned:
            listed = " ".join(f"{c.name!r}: {c.reason}. {c.advice}" for c in warned)
            warnings.warn(
                f"{len(warned)} column{'s were' if len(warned) > 1 else ' was'} left out. {listed}",
                LeftOutColumnWarning,
                stacklevel=caller_stacklevel(),
            )

    def transform(self, X: Any) -> FloatArray:
        """Encode rows as numbers.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_features)
            Rows with the same columns as in training.

        Returns
        -------
        ndarray of shape (n_rows, n_encoded)
            The encoded columns, without missing or infinite numbers.
        """
        return self.encode(self._checked(X))

    def _checked(self, X: Any) -> Any:
        """Return rows as a table, or raise an error unless their columns are those in training."""
        check_is_fitted(self, "columns_")
        X = as_table(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        check_labels(column_labels(X), self._column_labels)
        return X

    def encode(self, X: Any) -> FloatArray:
        """Encode rows like `transform`, without any checks of the table.

        Parameters
        ----------
        X : dataframe or array of shape (n_rows, n_features)
            Rows with the same columns as in training, as `as_table` returns them.

        Returns
        -------
        ndarray of shape (n_rows, n_encoded)
            The encoded columns, without missing or infinite numbers.
        """
        names = column_names(X)
        ends = np.cumsum([len(column.outputs) for column in self.columns_])
        encoded = np.empty((X.shape[0], ends[-1]))
        for column, out in zip(self.columns_, np.split(encoded, ends[:-1], axis=1), strict=True):
            column.encode(read_column(X, column.position, names[column.position]), out)
        return encoded

    def other_values(self, X: Any) -> dict[str, list[str]]:
        """Return the values that are encoded as "is other", by column of the table.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_features)
            Rows with the same columns as in training.

        Returns
        -------
        dict of str to list of str
            Values that were rare or absent in training, for each column that has such values.
        """
        return self._others(X, new=False)

    def new_values(self, X: Any) -> dict[str, list[str]]:
        """Return the values that were absent in training, by column of the table.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_features)
            Rows with the same columns as in training.

        Returns
        -------
        dict of str to list of str
            New values, for each column that has such values.
        """
        return self._others(X, new=True)

    def _others(self, X: Any, *, new: bool) -> dict[str, list[str]]:
        X = self._checked(X)
        names, found = column_names(X), {}
        for column in self.columns_:
            name = names[column.position]
            found[name] = column.others(read_column(X, column.position, name), new=new)
        return {name: values for name, values in found.items() if values}

    def split_dates(self, X: Any) -> dict[str, NDArray[Any]]:
        """Return the input columns of an exported model: dates are replaced by their parts.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_features)
            Rows with the same columns as in training.

        Returns
        -------
        dict of str to ndarray of shape (n_rows,)
            The cells of ``age``, ``when (days)``, ``when (month)`` and so on.
        """
        X = self._checked(X)
        encoded = {each.position: each for each in self.columns_}
        cells: dict[str, NDArray[Any]] = {}
        for position, name in enumerate(column_names(X)):
            column = read_column(X, position, name)
            unchanged = {name: column.cells}
            cells |= encoded[position].input_cells(column) if position in encoded else unchanged
        return cells

    @property
    def left_out(self) -> dict[str, str]:
        """The reasons for leaving columns out, by column name."""
        return {column.name: column.reason for column in self.left_out_}

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The columns of the table that are left out because they identify rows."""
        return tuple(column.name for column in self.left_out_ if column.identifies)

    @property
    def dates(self) -> tuple[str, ...]:
        """The columns of the table that hold dates."""
        names = _check_feature_names_in(self)
        return tuple(names[each.position] for each in self.columns_ if each.kind in FORMATS)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for users on the encoding of columns."""
        names = _check_feature_names_in(self)
        return tuple(note for each in self.columns_ for note in each.notes(names[each.position]))

    @property
    def _outputs(self) -> list[tuple[int, str, bool, float]]:
        """The position in the table of each encoded column, and its `EncodedColumn.outputs`."""
        return [(column.position, *each) for column in self.columns_ for each in column.outputs]

    @property
    def source(self) -> NDArray[np.intp]:
        """The position in the table of the column that each encoded column comes from."""
        return np.array([position for position, *_ in self._outputs], dtype=np.intp)

    @property
    def is_code(self) -> NDArray[np.bool_]:
        """Which encoded columns are 0/1 codes of a value or a missing number."""
        return np.array([is_code for _, _, is_code, _ in self._outputs])

    @property
    def scale_groups(self) -> NDArray[np.intp]:
        """A number per encoded column, the same for the codes of one column of the table."""
        own = self.n_features_in_ + np.arange(len(self.is_code))
        return np.where(self.is_code, self.source, own)

    @property
    def spreads(self) -> tuple[float, ...]:
        """The divisor of each encoded column in kernels: the spread of known numbers; 1 for codes.

        The mean squared distance of two known numbers, and of a known and a missing number, is
        then 2. The squared distance of two values of a category is exactly 2.
        """
        return tuple(spread for *_, spread in self._outputs)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the encoded columns.

        Parameters
        ----------
        input_features : array-like of str, optional
            The names of the columns of the table, if it had none in training.

        Returns
        -------
        ndarray of shape (n_encoded,)
            Such as ``age``, ``age is missing``, ``colour=red``.
        """
        check_is_fitted(self, "columns_")
        given = _check_feature_names_in(self, input_features)
        return np.array([given[i] + ending for i, ending, *_ in self._outputs], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
