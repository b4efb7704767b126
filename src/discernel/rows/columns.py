"""The columns of a user's file: what each of them holds, found once, then the same for new rows.

Nothing is learned here that depends on which rows train: categories, missing cells and scales are
left to the `discernel.tables.TableEncoder` of the model that is fitted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.exceptions import InvalidInputError
from discernel.rows.cells import Column, read_column
from discernel.rows.dates import FORMATS, ambiguous_dates, odd_date, read_times
from discernel.rows.encoder import (
    Encoded,
    EncodedDates,
    LeftOut,
    TableEncoder,
    column_kind,
    learn_columns,
)
from discernel.rows.formats import import_pandas, listed

_MOST_LISTED = 4
#: A number in decimal digits. Zeros in front make a code of it, which is text.
NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d{1,3})?")


# ---- the same for new rows ---------------------------------------------------------------------


@dataclass(frozen=True)
class Preparation:
    """The columns of a file that a model uses, and the kind of each.

    Attributes
    ----------
    kinds : dict of str to str
        The columns used, in their order, with their kind: ``"number"``; ``"numeric"``, a number
        where any other text is missing; ``"category"``; ``"code"``, a category of numbers, each of
        which is one value, however a file writes it; or how dates are written, such as
        ``"31.01.2024"``.
    """

    kinds: Mapping[str, str]

    @classmethod
    def of(cls, columns: Sequence[str], encoder: TableEncoder | None) -> Preparation:
        """Return the kinds of columns in an encoder; those that it leaves out are text.

        Parameters
        ----------
        columns : sequence of str
            All columns of the table.
        encoder : TableEncoder or None
            Fitted to the table; None where the table holds numbers only.
        """
        if encoder is None:
            return cls(dict.fromkeys(columns, "number"))
        kinds = dict.fromkeys(columns, "category")
        kinds |= {columns[each.position]: each.kind for each in encoder.columns_}
        return cls(kinds | {name: each.written for name, each in encoder.dates.items()})

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns used, in their order."""
        return tuple(self.kinds)

    @property
    def categories(self) -> tuple[str, ...]:
        """The columns that hold categories, codes among them."""
        return tuple(name for name, kind in self.kinds.items() if kind in ("category", "code"))

    @property
    def dates(self) -> tuple[str, ...]:
        """The columns that hold dates."""
        return tuple(name for name, kind in self.kinds.items() if kind in FORMATS)

    def apply(self, table: Any, where: str) -> Any:
        """Return the rows of a table as numbers, dates and categories, in a table.

        Parameters
        ----------
        table : DataFrame
            The rows; columns that are not used may be missing, and their order is free.
        where : str
            The name of the table, for messages.
        """
        absent = [column for column in self.kinds if column not in table.columns]
        if absent:
            raise InvalidInputError(
                f"{where} must have the columns the model was fitted to. Got none named "
                f"{listed(absent)}."
            )
        pd = import_pandas()
        if set(self.kinds.values()) == {"number"}:
            plain = table[list(self.kinds)]
            if all(map(pd.api.types.is_numeric_dtype, plain.dtypes)):
                # In one go: there may be thousands of columns.
                _refuse_infinite(plain, where)
                return plain.reset_index(drop=True)
        return pd.DataFrame(
            {name: _as_kind(table[name], kind, where) for name, kind in self.kinds.items()}
        )


def _as_kind(values: Any, kind: str, where: str) -> Any:
    """Return the cells of a column as what it is taken for, or raise a clear error."""
    pd = import_pandas()
    if kind in FORMATS:
        return _times(values, kind, where)
    if kind == "code":
        return pd.Categorical(canonical_text(values))
    if kind == "category":
        return pd.Series(canonical_text(values, numbers_only=True), dtype=object)
    if kind == "numeric":
        values = pd.to_numeric(values, errors="coerce").astype(float)
    if not pd.api.types.is_numeric_dtype(values):
        _refuse_text(values, where)
        values = pd.to_numeric(values)  # numbers of a type of their own, or none at all
    _refuse_infinite(values.to_frame(), where)
    return values.to_numpy()


def one_spelling(value: object) -> str:
    """Return a label or a category as text, the same for a number however a file writes it.

    Parameters
    ----------
    value : object
        The content of a cell.

    Examples
    --------
    >>> from discernel.rows.columns import one_spelling
    >>> [one_spelling(value) for value in ("1", "1.0", 1.0, "2.50", "007", "red")]
    ['1', '1', '1', '2.5', '007', 'red']
    """
    text = str(value)
    if not NUMBER.fullmatch(text.strip()):
        return text
    text = f"{Decimal(text.strip()):f}"  # exact, however many digits there are
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text.removeprefix("+")


def canonical_text(values: Any, *, numbers_only: bool = False) -> NDArray[Any]:
    """Return the cells of a column in one spelling each; None where one is missing.

    Parameters
    ----------
    values : Series
        The cells.
    numbers_only : bool, default=False
        Whether texts stay as they are.
    """
    places, different = import_pandas().factorize(values.astype(object))
    spelling = np.array(
        [c if numbers_only and isinstance(c, str) else one_spelling(c) for c in different] + [None],
        dtype=object,
    )
    return np.asarray(spelling[places])  # a missing cell has the place -1, the last


def _refuse_text(values: Any, where: str) -> None:
    """Raise where a column that is to hold numbers holds text."""
    numbers = import_pandas().to_numeric(values, errors="coerce")
    odd = (numbers.isna() & values.notna()).to_numpy()
    if odd.any():
        row = int(odd.argmax())
        raise InvalidInputError(
            f"{where}: column {values.name!r} must hold numbers. Got {str(values.iloc[row])!r} in "
            f"row {row + 1}. Correct the cell, or leave it empty."
        )


def _times(values: Any, written: str, where: str) -> NDArray[np.datetime64]:
    """Return the cells of a column of dates as times, or raise where one is no date."""
    column = read_column(values.to_frame(), 0, values.name)
    times, odd = read_times(column, written)
    if odd is not None:
        raise InvalidInputError(
            f"{where}: column {column.name!r} must hold dates written as in training. Got "
            f"{str(column.cells[odd])!r} in row {odd + 1}, and none such as {written}. Correct the "
            "cell, leave it empty, or drop the column."
        )
    return times


def _refuse_infinite(table: Any, where: str) -> None:
    infinite = np.isinf(table.to_numpy(dtype=np.float64, na_value=np.nan))
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise InvalidInputError(
            f"{where}: numbers must be finite or missing. Column {table.columns[column]!r} is "
            f"infinite in row {row + 1}. Correct the cell, or leave it empty."
        )


# ---- what columns hold -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """A table without the columns that nothing can be learned from.

    Attributes
    ----------
    features : DataFrame
        Numbers, dates and categories, with missing cells.
    preparation : Preparation
        How new rows are prepared in the same way.
    columns : dict of str to str
        The use of each column, in words.
    summary : str
        The same in a line.
    notes : tuple of str
        Further notes for the user.
    identifiers : tuple of str
        Columns left out that tell rows apart.
    """

    features: Any
    preparation: Preparation
    columns: Mapping[str, str]
    summary: str
    notes: tuple[str, ...]
    identifiers: tuple[str, ...]


def prepare_columns(
    table: Any, categorical: Sequence[str], numeric: Sequence[str], where: str
) -> PreparedTable:
    """Find out what the columns of a table hold, and leave out those that say nothing.

    Only columns of which the library would learn nothing on any part of the rows are left out.

    Parameters
    ----------
    table : DataFrame
        The columns beside the target.
    categorical, numeric : sequence of str
        Columns that are said to hold categories, or numbers.
    where : str
        The name of the table, for messages.
    """
    if not table.shape[1]:
        raise InvalidInputError(f"{where} must have a column beside the target. None is left.")
    unclear = table.drop(columns=_varying_floats(table, [*categorical, *numeric]))
    columns = [read_column(unclear, i, name) for i, name in enumerate(unclear.columns)]
    kinds = dict.fromkeys(table.columns, "number")
    kinds |= {each.name: _kind(each, categorical, numeric, where) for each in columns}
    learned: dict[str, Encoded | LeftOut] = {
        name: LeftOut(name, "neither numbers nor text")
        for name, kind in kinds.items()
        if kind == "other"
    }
    usable = {name: kind for name, kind in kinds.items() if name not in learned}
    features = Preparation(usable).apply(table, where)
    asked = [name for name in usable if name in unclear.columns]
    learned |= zip(asked, learn_columns(features[asked]), strict=True)
    left_out = [each for each in learned.values() if isinstance(each, LeftOut)]
    without = {each.name for each in left_out}
    preparation = Preparation({n: kind for n, kind in usable.items() if n not in without})
    if not preparation.kinds:
        listing = "; ".join(f"{each.name!r}: {each.reason}" for each in left_out)
        raise InvalidInputError(
            "At least one column must hold numbers or categories that differ between rows. Nothing "
            f"can be learned from any of {len(left_out)}: {listing}."
        )
    features = features[list(preparation.columns)]
    n_missing = features.isna().sum().to_dict()
    missing = {name: f", {n} missing" for name, n in n_missing.items() if n}
    return PreparedTable(
        features,
        preparation,
        {
            name: (learned[name].words if name in learned else "number") + missing.get(name, "")
            for name in table.columns
        },
        _summary(preparation, left_out, sum(n_missing.values())),
        (*date_notes(learned), *_ambiguous_dates(columns, kinds), *_row_counts(features)),
        tuple(each.name for each in left_out if each.identifies),
    )


def _varying_floats(table: Any, named: Sequence[str]) -> list[str]:
    """Return columns of floats that differ, but those that were named; there may be thousands."""
    floats = table.select_dtypes("float").drop(columns=list(named), errors="ignore")
    return list(floats.columns[floats.min() < floats.max()])


def _kind(column: Column, categorical: Sequence[str], numeric: Sequence[str], where: str) -> str:
    """Return the kind of a column, as in `Preparation`, or "other"."""
    if column.name in categorical:
        return "code"
    if column.name in numeric:
        return "numeric"
    kind, written = column_kind(column)
    if kind == "date":
        return written
    if kind == "category":
        if column.declared:
            return "code"
        _refuse_mixed(column, where)
    return kind


def _refuse_mixed(column: Column, where: str) -> None:
    """Raise where most of the values of a column of text are numbers, or dates."""
    texts = {text.strip() for text in column.texts}
    word = odd_date(column.texts)
    if word is None:
        odd, most = {text for text in texts if not NUMBER.fullmatch(text)}, "numbers"
        if 2 * len(odd) > len(texts) or all(text.isdecimal() for text in odd):
            return  # text, or codes such as 007
    else:
        odd, most = {word.strip()}, "dates"
    known = np.flatnonzero(~column.missing)
    row, name = next(i for i in known if column.cells[i].strip() in odd), [column.name]
    raise InvalidInputError(
        f"{where}: column {column.name!r} must hold {most} or categories, not both. Most values "
        f"are {most}; row {row + 1} has {column.cells[row]!r}. Correct the cell, take what is no "
        f"number as missing ({flags('numeric', name)}), take all as categories "
        f"({flags('categorical', name)}), or leave the column out ({flags('drop', name)})."
    )


# ---- in words ----------------------------------------------------------------------------------


def _summary(preparation: Preparation, left_out: Sequence[LeftOut], n_missing: int) -> str:
    """Return "12 numbers, 3 categories, 1 left out (id: numbers the rows); 7 cells missing"."""
    n_dates, n_categories = len(preparation.dates), len(preparation.categories)
    n_numbers = len(preparation.columns) - n_dates - n_categories
    counts = [
        f"{number:,} {one if number == 1 else many}"
        for number, one, many in (
            (n_numbers, "number", "numbers"),
            (n_categories, "category", "categories"),
            (n_dates, "date", "dates"),
        )
        if number
    ]
    if left_out:
        named = [f"{each.name}: {each.short_reason}" for each in left_out[:_MOST_LISTED]]
        more = ", ..." * (len(left_out) > _MOST_LISTED)
        counts.append(f"{len(left_out):,} left out ({'; '.join(named)}{more})")
    cells = "cell" if n_missing == 1 else "cells"
    return ", ".join(counts) + (f"; {n_missing:,} {cells} missing" if n_missing else "")


def date_notes(columns: Mapping[str, Any]) -> list[str]:
    """Return a note on each column that is encoded as dates.

    Parameters
    ----------
    columns : mapping of str to encoded column
        How columns are encoded, by name.
    """
    dates = {name: each for name, each in columns.items() if isinstance(each, EncodedDates)}
    return [f"{name!r} is taken as dates: {', '.join(e.parts)}" for name, e in dates.items()]


def _ambiguous_dates(columns: Sequence[Column], kinds: Mapping[str, str]) -> list[str]:
    """Return a note on columns of text whose days and months cannot be told apart."""
    texts = [column for column in columns if kinds[column.name] == "category"]
    unclear = [column.name for column in texts if ambiguous_dates(column.texts)]
    if not unclear:
        return []
    return [
        f"{listed(unclear)} may hold dates, of which day and month cannot be told apart: write "
        "them as 2024-01-31"
    ]


def _row_counts(features: Any) -> list[str]:
    """Return a note on columns that count the rows, and are too short to be left out for it."""
    integers = features.select_dtypes("integer")
    counting = (integers.diff().iloc[1:] == 1).all() & (len(features) > 2)
    numbered = integers.columns[counting].tolist()
    if not numbered:
        return []
    verb = "count" if len(numbered) > 1 else "counts"
    how = flags("drop", numbered)
    return [f"{listed(numbered)} {verb} the rows: if that says nothing, leave it out ({how})"]


def flags(option: str, names: Sequence[str], limit: int = 3) -> str:
    """Return the words for a command line, quoted where a shell needs it."""
    quoted = [f'"{name}"' if " " in name else name for name in names[:limit]]
    return " ".join(f"--{option} {name}" for name in quoted) + (" ..." * (len(names) > limit))
