"""From a table of anything to a matrix of numbers, learned on the training rows."""

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
from discernel.rows.dates import ISO, as_times, date_format, date_parts, odd_date, read_times
from discernel.rows.formats import view_slices

#: A value, and a state of being missing, is told apart from others if it is in so many rows.
_ENOUGH = 2
#: More different values than this, of more than half of the rows, are text and no categories; so
#: many different integers, if they fill half of their range, number the rows.
_MANY = 50
#: How the reason ends for which such integers are left out.
_NUMBERS_ROWS = "which number the rows"
#: No column of categories becomes more columns than this: its rarest values are put together.
_MOST = 200


# ---- how one column is encoded -----------------------------------------------------------------


@dataclass(frozen=True)
class EncodedColumn:
    """How one column is encoded.

    Attributes
    ----------
    position : int
        Which column of the table.
    """

    position: int

    @property
    def made(self) -> list[tuple[str, bool, float]]:
        """The encoded columns: how their names end, whether they are codes, and their spread."""
        raise NotImplementedError

    def names(self, column: str) -> list[str]:
        """Return the names of the encoded columns."""
        return [column + ending for ending, _, _ in self.made]

    @property
    def is_code(self) -> list[bool]:
        """Which encoded columns are codes of 0 and 1."""
        return [is_code for _, is_code, _ in self.made]

    @property
    def spreads(self) -> list[float]:
        """The spread of each encoded column; 1 for codes."""
        return [spread for _, _, spread in self.made]

    def input_names(self, column: str) -> list[str]:
        """Return the names of the columns that encoding starts from outside discernel."""
        return [column]

    @property
    def inputs(self) -> tuple[Any, ...]:
        """How each of these columns is encoded."""
        return (self,)


@dataclass(frozen=True)
class EncodedNumbers(EncodedColumn):
    """Numbers, as they are.

    Attributes
    ----------
    median : float
        The fill value of a missing cell.
    spread : float
        How far the known numbers spread.
    tells_missing : bool
        Whether a second column says which cells are missing.
    """

    kind: ClassVar[str] = "number"
    words: ClassVar[str] = "number"
    median: float
    spread: float = 1.0
    tells_missing: bool = False

    @property
    def made(self) -> list[tuple[str, bool, float]]:
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
        """Return the encoded columns of a row in the middle of others."""
        row = np.median(encoded, axis=0)
        row[0] = self.median
        return np.asarray(row)


@dataclass(frozen=True)
class EncodedValues(EncodedColumn):
    """Categories or text: one column per value, one for all other values, one for none.

    Attributes
    ----------
    values : tuple of str
        The values with a column of their own, sorted.
    is_text : bool
        Whether the values were text, so that a number is none of them.
    tells_missing : bool
        Whether cells were missing in training, which is then a value too.
    rare : tuple of str
        The values of training without a column of their own, sorted.
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
    def made(self) -> list[tuple[str, bool, float]]:
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
        """Return the values without a column of their own, or those that are new, sorted."""
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
    """Dates, as the numbers of their parts that vary.

    Attributes
    ----------
    written : str
        How texts write dates: a format of `discernel.rows.dates`. Dates that have a type of their
        own are taken too.
    parts : tuple of str
        Some of `discernel.rows.dates.PARTS`.
    numbers : tuple of EncodedNumbers
        How each part is encoded.
    """

    kind: ClassVar[str] = "date"
    written: str
    parts: tuple[str, ...]
    numbers: tuple[EncodedNumbers, ...]

    @property
    def words(self) -> str:
        """The content of the column, in words for users."""
        return f"date, as {', '.join(self.parts)}"

    @property
    def made(self) -> list[tuple[str, bool, float]]:
        pairs = zip(self.input_names(""), self.numbers, strict=True)
        return [
            (part + ending, is_code, spread)
            for part, each in pairs
            for ending, is_code, spread in each.made
        ]

    def input_names(self, column: str) -> list[str]:
        """Return the names of the columns that encoding starts from outside discernel: parts."""
        return [f"{column} ({part})" for part in self.parts]

    @property
    def inputs(self) -> tuple[EncodedNumbers, ...]:
        """How each of these columns is encoded."""
        return self.numbers

    def encode(self, column: Column, out: FloatArray) -> None:
        """Write the encoded columns to ``out``."""
        found = date_parts(self.times(column))
        for each, (part, place) in zip(self.numbers, self._places.items(), strict=True):
            each.encode(_as_column(found[part], column.name), out[:, place])

    def times(self, column: Column) -> NDArray[np.datetime64]:
        """Return the cells of a column as times, or raise where one is no date."""
        times, odd = read_times(column, self.written)
        if odd is not None:
            raise InvalidInputError(
                f"The column {column.name!r} must hold dates written as in training. Got "
                f"{str(column.cells[odd])!r} in row {odd}, and none such as {self.written}."
            )
        return times

    def typical(self, encoded: FloatArray) -> FloatArray:
        """Return the encoded columns of a row in the middle of others."""
        pairs = zip(self.numbers, self._places.values(), strict=True)
        return np.concatenate([each.typical(encoded[:, place]) for each, place in pairs])

    @property
    def _places(self) -> dict[str, slice]:
        """The encoded columns of each part."""
        pairs = zip(self.parts, self.numbers, strict=True)
        return view_slices({part: len(each.made) for part, each in pairs})


def _as_column(numbers: FloatArray, name: str) -> Column:
    return Column(name, numbers, np.isnan(numbers), frozenset(("number",)))


@dataclass(frozen=True)
class LeftOut:
    """A column that is not encoded.

    Attributes
    ----------
    name, reason : str
        Which one, and why.
    advice : str
        Advice to the user; may be empty.
    identifies : bool
        Whether it tells rows apart, and no classes.
    """

    name: str
    reason: str
    advice: str = ""
    identifies: bool = False

    @property
    def short_reason(self) -> str:
        """The reason, without the numbers of a column that numbers the rows."""
        return "numbers the rows" if self.reason.endswith(_NUMBERS_ROWS) else self.reason

    @property
    def words(self) -> str:
        """The use of the column, in words for users."""
        return f"left out: {self.short_reason}"


Encoded: TypeAlias = EncodedNumbers | EncodedValues | EncodedDates


# ---- learning it -------------------------------------------------------------------------------


def column_kind(column: Column) -> tuple[str, str]:
    """Return what a column holds, and of dates how they are written.

    Parameters
    ----------
    column : Column
        The cells.

    Returns
    -------
    kind : {"number", "category", "date", "other"}
        Numbers where no cell has a value.
    written : str
        A format of `discernel.rows.dates`; empty where they are no dates.
    """
    if column.kinds == {"date"}:
        return "date", ISO
    if column.declared:
        return "category", ""
    if column.kinds == {"text"}:
        written = date_format(column.texts)
        return ("category", "") if written is None else ("date", written)
    return ("number" if column.kinds <= {"number"} else "other"), ""


def learn_columns(
    X: Any, facts: Sequence[ColumnFacts] | None = None, *, keep_constant: bool = False
) -> list[Encoded | LeftOut]:
    """Return how each column of the training rows is encoded, or why it is left out.

    Parameters
    ----------
    X : dataframe or array of shape (n_samples, n_features)
        The training rows.
    facts : sequence of ColumnFacts, optional
        Counts of each column over all training rows, where X is a random part of them.
    keep_constant : bool, default=False
        Whether a column of one value is kept.
    """
    columns = [read_column(X, i, name) for i, name in enumerate(column_names(X))]
    known = [ColumnFacts.of(column, "X") for column in columns] if facts is None else facts
    return [_learn(column, i, known[i], keep_constant) for i, column in enumerate(columns)]


def _learn(
    column: Column, position: int, facts: ColumnFacts, keep_constant: bool
) -> Encoded | LeftOut:
    """Return how a column is encoded, or why it is left out."""
    if not column.kinds:
        return LeftOut(column.name, "no value at all", "Drop it.")
    _refuse_mixed(column)
    kind, written = column_kind(column)
    if kind == "date":
        return _learn_dates(column, position, written, facts, keep_constant)
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
    """Raise where a column holds two of numbers, text and dates."""
    found = [kind for kind in ("number", "text", "date") if kind in column.kinds]
    if len(found) < 2 or (column.declared and "date" not in found):
        return
    words = {"number": "numbers", "text": "text", "date": "dates"}
    cells = [column.example([kind]) for kind in found[:2]]
    raise InvalidInputError(
        f"The column {column.name!r} must hold {' or '.join(words[kind] for kind in found)}, not "
        f"both. Got {cells[0]!r} and {cells[1]!r}. Make it numbers with pd.to_numeric, dates with "
        "pd.to_datetime, or text with astype(str)."
    )


def _learn_dates(
    column: Column, position: int, written: str, facts: ColumnFacts, keep_constant: bool
) -> Encoded | LeftOut:
    found: dict[str, EncodedNumbers] = {}
    for part, numbers in date_parts(as_times(column.cells, written)).items():
        known = numbers[~np.isnan(numbers)]
        if np.ptp(known) == 0 and not (keep_constant and part == "days"):
            continue
        each = _learn_numbers(_as_column(numbers, column.name), position, facts, True)
        if isinstance(each, EncodedNumbers):
            found[part] = each
    if not found:
        return LeftOut(column.name, "one date")
    return EncodedDates(position, written, tuple(found), tuple(found.values()))


def _learn_numbers(
    column: Column, position: int, facts: ColumnFacts, keep_constant: bool
) -> Encoded | LeftOut:
    numbers = _finite_numbers(column)
    known = np.sort(numbers[~np.isnan(numbers)])  # sorted, the order of rows does not matter
    if len(known) == 0:
        return LeftOut(column.name, "no value at all", "Drop it.")
    n_missing = len(numbers) - len(known)
    tells_missing = n_missing >= _ENOUGH and len(known) >= _ENOUGH
    if known[0] == known[-1] and not tells_missing and not keep_constant:
        return LeftOut(column.name, "one value")
    if column.is_integer and _number_the_rows(known, facts.n_known):
        return LeftOut(
            column.name,
            f"{len(known)} different integers from {known[0]:.0f} to {known[-1]:.0f}, "
            f"{_NUMBERS_ROWS}",
            "Drop it, or keep it as a number with astype(float).",
            identifies=True,
        )
    spread = float(column_spreads(known[:, None])[0])
    return EncodedNumbers(position, float(np.median(known)), spread, tells_missing)


def has_row_numbers(X: Any, facts: Sequence[ColumnFacts] | None = None) -> bool:
    """Whether a column of a dataframe of numbers holds integers that number the rows.

    Parameters
    ----------
    X : dataframe or array of shape (n_samples, n_features)
        The training rows.
    facts : sequence of ColumnFacts, optional
        Counts of each column over all training rows, where X is a random part of them.
    """
    if not is_frame(X) or X.shape[0] <= _MANY:
        return False
    for position in range(X.shape[1]):
        column = read_column(X, position, "")
        # Integers of a smaller range are not all different, and need not be sorted.
        if not column.is_integer or np.ptp(column.numbers) < X.shape[0] - 1:
            continue
        n_known = X.shape[0] if facts is None else facts[position].n_known
        if _number_the_rows(np.sort(column.numbers), n_known):
            return True
    return False


def _number_the_rows(known: FloatArray, n_known: int) -> bool:
    """Whether sorted integers are all different and close together, as numbers of rows are.

    Some of them may be absent: the training rows are often a part of all rows. Of ``n_known``
    numbers, some may be at hand.
    """
    return bool(
        len(known) > _MANY
        and (np.diff(known) > 0).all()
        and known[-1] - known[0] + 1 <= 2 * n_known
    )


def _finite_numbers(column: Column) -> FloatArray:
    """Return the numbers of a column, NaN where missing, or raise where one is too large."""
    numbers = column.numbers
    bad = out_of_range(numbers)
    if bad.any():
        row = int(bad.argmax())
        raise number_out_of_range(column.cells[row], column.name, row)
    return numbers


def _learn_values(
    column: Column, position: int, facts: ColumnFacts, keep_constant: bool
) -> Encoded | LeftOut:
    if not column.declared and (odd := odd_date(column.texts)) is not None:
        raise InvalidInputError(
            f"The column {column.name!r} must hold dates or text, not both. Most values are "
            f"dates, and {odd!r} is none. Correct the cell, leave it empty, or make the column "
            "one of categories with astype('category')."
        )
    # Where there are too many to be counted over all rows, those at hand decide.
    counts = column.counts if facts.counts is None else Counter(facts.counts)
    n_known = sum(counts.values())
    if len(counts) > _MANY and 2 * len(counts) > n_known:
        return LeftOut(
            column.name,
            f"text with {len(counts)} different values in {n_known} rows",
            "Drop it, encode it, or compute a kernel of it with "
            f"Function(f).on([{column.name!r}]).",
            identifies=True,
        )
    kept = _frequent(counts)
    has_missing = facts.n_missing > 0
    if not kept and not has_missing and len(counts) > 1:
        reason, advice = "every value in one row only", "Drop it, or put values together."
        return LeftOut(column.name, reason, advice, identifies=True)
    n_states = len(kept) + (len(counts) > len(kept)) + has_missing
    if n_states == 1 and not keep_constant:
        return LeftOut(column.name, "one value")
    is_text = column.kinds == {"text"} and not column.declared
    rare = tuple(sorted(counts.keys() - set(kept)))
    return EncodedValues(position, tuple(sorted(kept)), is_text, has_missing, rare)


def _frequent(counts: Counter[str]) -> list[str]:
    """Return the values with a column of their own; of equally frequent ones the first by name."""
    ranked = sorted(counts, key=lambda value: (-counts[value], value))
    return [value for value in ranked[:_MOST] if counts[value] >= _ENOUGH]


# ---- the encoder -------------------------------------------------------------------------------


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table of numbers, categories and missing cells into a matrix of numbers.

    This is what estimators with ``kernels="auto"`` do to a table; theirs is ``encoder_``. All of
    it is learned on the training rows, and their order does not matter.

    - Numbers and booleans stay. A missing one becomes the median; where at least two are missing
      in training and two are not, a column ``age is missing`` is added.
    - Categories and text become one column of 0 and 1 per value, ``colour=red``, also where
      there are two values only: any two values then differ by the same, 2, in squared distance
      and in the 1-norm. That is the mean squared difference of two numbers divided by their
      standard deviation. ``colour is other`` stands for values that are in one row only, and for
      all that are new in prediction, so these are as far from each known value as known ones are
      from each other. If cells are missing in training, ``colour is missing`` is one more value.
    - Dates, of a type of their own or as text such as 2024-01-31, 31.01.2024 or 01/31/2024, become
      numbers: days since 1970, year, month, weekday and hour, as far as they vary. Text of which
      day and month cannot be told apart stays text.
    - A text such as ``n/a``, ``NA`` or ``?`` is a missing cell, as in files.
    - Left out are columns with one value, unless there are no others, and, with a warning,
      columns without any, text (more than 50 different values, in more than half of the rows),
      integers of a dataframe that number the rows, and things that are neither numbers, text nor
      dates.
    - Infinite numbers, and two of numbers, text and dates in one column are errors.

    Attributes
    ----------
    columns_ : tuple of EncodedNumbers, EncodedValues or EncodedDates
        How each column is encoded that is not left out, in their order.
    left_out_ : tuple of LeftOut
        The others.
    n_features_in_ : int
        The number of columns of the table.
    feature_names_in_ : ndarray of str
        Their names, where it has names.

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

    #: The names of columns in training, where these are no text.
    _column_labels: tuple[Any, ...] = ()

    @classmethod
    def filling(cls, medians: FloatArray) -> TableEncoder:
        """Return an encoder of numbers that only fills missing cells in.

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
        """Learn how to encode a table.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_samples, n_features)
            The training rows.
        y : object
            Not used.
        facts : sequence of ColumnFacts, optional
            Counts of each column over all training rows, where X is a random part of them:
            values that are not in X have columns too.

        Returns
        -------
        self
            Fitted.
        """
        X = as_table(X)
        validate_data(self, X, skip_check_array=True)
        self._column_labels = column_labels(X)
        if X.shape[0] < 2:
            raise InvalidInputError(
                f"Found a table with 1 sample (shape={X.shape}) while a minimum of 2 is required."
            )
        found = learn_columns(X, facts)
        if all(isinstance(column, LeftOut) for column in found):
            found = learn_columns(X, facts, keep_constant=True)
        self.columns_ = tuple(column for column in found if not isinstance(column, LeftOut))
        self.left_out_ = tuple(column for column in found if isinstance(column, LeftOut))
        self._report()
        return self

    def _report(self) -> None:
        """Warn of columns left out, and raise if there are no others."""
        if not self.columns_:
            listed = "; ".join(f"{column.name!r}: {column.reason}" for column in self.left_out_)
            raise InvalidInputError(
                "At least one column must hold numbers or categories. "
                f"Nothing can be learned from any of {len(self.left_out_)}: {listed}."
            )
        told = [column for column in self.left_out_ if column.advice]
        if told:
            listed = " ".join(f"{c.name!r}: {c.reason}. {c.advice}" for c in told)
            warnings.warn(
                f"{len(told)} column{'s were' if len(told) > 1 else ' was'} left out. {listed}",
                LeftOutColumnWarning,
                stacklevel=caller_stacklevel(),
            )

    def transform(self, X: Any) -> FloatArray:
        """Return rows as numbers.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_features)
            Rows with the columns of training.

        Returns
        -------
        ndarray of shape (n_rows, n_encoded)
            No cell is missing or infinite.
        """
        return self.encode(self._checked(X))

    def _checked(self, X: Any) -> Any:
        """Return rows whose columns are those of training: their number, names and order."""
        check_is_fitted(self, "columns_")
        X = as_table(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        check_labels(column_labels(X), self._column_labels)
        return X

    def encode(self, X: Any) -> FloatArray:
        """Return `transform` of rows whose columns are known to be those of training.

        Parameters
        ----------
        X : dataframe or array of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_encoded)
            No cell is missing or infinite.
        """
        X = as_table(X)
        names = column_names(X)
        encoded = np.empty((X.shape[0], len(self.is_code)))
        start = 0
        for column in self.columns_:
            end = start + len(column.is_code)
            given = read_column(X, column.position, names[column.position])
            column.encode(given, encoded[:, start:end])
            start = end
        return encoded

    def other_values(self, X: Any) -> dict[str, list[str]]:
        """Return the values that have no column of their own, by column of the table.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_features)
            Rows with the columns of training.

        Returns
        -------
        dict of str to list of str
            Values that were rare in training, or not there; only columns that have some.
        """
        return self._others(X, new=False)

    def new_values(self, X: Any) -> dict[str, list[str]]:
        """Return the values that no training row had, by column of the table.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_features)
            Rows with the columns of training.

        Returns
        -------
        dict of str to list of str
            Those of `other_values` that are new; only columns that have some.
        """
        return self._others(X, new=True)

    def _others(self, X: Any, *, new: bool) -> dict[str, list[str]]:
        X = self._checked(X)
        names, found = column_names(X), {}
        for column in self.columns_:
            if isinstance(column, EncodedValues):
                name = names[column.position]
                found[name] = column.others(read_column(X, column.position, name), new=new)
        return {name: values for name, values in found.items() if values}

    def split_dates(self, X: Any) -> dict[str, NDArray[Any]]:
        """Return the columns of a table, with parts in place of dates: what exported models take.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_features)
            Rows with the columns of training.

        Returns
        -------
        dict of str to ndarray of shape (n_rows,)
            The cells of ``age``, ``when (days)``, ``when (month)`` and so on.
        """
        X = self._checked(X)
        cells: dict[str, NDArray[Any]] = {}
        for position, name in enumerate(column_names(X)):
            column = read_column(X, position, name)
            if name in self.dates:
                each = self.dates[name]
                parts = date_parts(each.times(column))
                named = zip(each.input_names(name), each.parts, strict=True)
                cells |= {title: parts[part] for title, part in named}
            else:
                cells[name] = column.cells
        return cells

    @property
    def left_out(self) -> dict[str, str]:
        """Why columns of the table are not encoded, by name."""
        return {column.name: column.reason for column in self.left_out_}

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The columns of the table that are left out because they tell rows apart."""
        return tuple(column.name for column in self.left_out_ if column.identifies)

    @property
    def dates(self) -> dict[str, EncodedDates]:
        """How the columns of dates are encoded, by name."""
        names = _check_feature_names_in(self)
        dates = (each for each in self.columns_ if isinstance(each, EncodedDates))
        return {str(names[each.position]): each for each in dates}

    @property
    def source(self) -> NDArray[np.intp]:
        """The position in the table of the column that each encoded column comes from."""
        pairs = [(column.position, len(column.is_code)) for column in self.columns_]
        return np.repeat(*np.array(pairs, dtype=np.intp).T)

    @property
    def is_code(self) -> NDArray[np.bool_]:
        """Which encoded columns are codes of 0 and 1 for a value, or for a missing number."""
        return np.array([code for column in self.columns_ for code in column.is_code])

    @property
    def scale_groups(self) -> NDArray[np.intp]:
        """A number per encoded column, the same for the codes of one column of the table."""
        own = self.n_features_in_ + np.arange(len(self.is_code))
        return np.where(self.is_code, self.source, own)

    @property
    def spreads(self) -> tuple[float, ...]:
        """The divisor of each encoded column in kernels: the spread of known numbers; 1 for codes.

        Two present numbers, and a present and a missing one, are then 2 apart on average in
        squared distance; two values of a category are exactly 2 apart.
        """
        return tuple(spread for column in self.columns_ for spread in column.spreads)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the encoded columns.

        Parameters
        ----------
        input_features : array-like of str, optional
            The names of the columns of the table, where it had none.

        Returns
        -------
        ndarray of shape (n_encoded,)
            Such as ``age``, ``age is missing``, ``colour=red``.
        """
        check_is_fitted(self, "columns_")
        given = _check_feature_names_in(self, input_features)
        names = [name for column in self.columns_ for name in column.names(given[column.position])]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
