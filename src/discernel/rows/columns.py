"""Kinds of the columns of a file: detected once, then applied to new rows.

Nothing here depends on the split into training and test rows: categories, fill values and scales
are learned by the `discernel.tables.TableEncoder` of the fitted model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.exceptions import InvalidInputError, listed
from discernel.rows.cells import LARGEST, Column, out_of_range, read_column
from discernel.rows.chunks import Place
from discernel.rows.dates import FORMATS, matching_formats, odd_date, read_times
from discernel.rows.encoder import (
    LeftOut,
    TableEncoder,
    column_kind,
    column_uses,
    learn_columns,
)
from discernel.rows.formats import import_pandas

_MOST_LISTED, _MOST_FLAGS = 4, 3
#: A decimal number. Texts with leading zeros, such as 007, are codes, not numbers.
NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d{1,3})?")


# ---- kinds of columns --------------------------------------------------------------------------


@dataclass(frozen=True)
class TableSchema:
    """The columns of a file that a model uses, and the kind of each.

    Attributes
    ----------
    kinds : dict of str to str
        The columns used, in order, with their kinds: ``"number"``; ``"numeric"``, numbers, with
        other text as missing cells; ``"category"``; ``"code"``, categories in which 1 and 1.0 are
        the same value; or a format of dates, such as ``"31.01.2024"``.
    """

    kinds: Mapping[str, str]

    @classmethod
    def from_encoder(cls, columns: Sequence[str], encoder: TableEncoder | None) -> TableSchema:
        """Return the kinds of columns that an encoder has learned.

        Parameters
        ----------
        columns : sequence of str
            All columns of the table. Columns that the encoder leaves out are categories.
        encoder : TableEncoder or None
            Fitted to the table; None if all columns hold numbers.
        """
        if encoder is None:
            return cls(dict.fromkeys(columns, "number"))
        kinds = dict.fromkeys(columns, "category")
        return cls(kinds | {columns[each.position]: each.kind for each in encoder.columns_})

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns used, in order."""
        return tuple(self.kinds)

    @property
    def categories(self) -> tuple[str, ...]:
        """The columns of categories, including codes."""
        return tuple(name for name, kind in self.kinds.items() if kind in ("category", "code"))

    @property
    def dates(self) -> tuple[str, ...]:
        """The columns of dates."""
        return tuple(name for name, kind in self.kinds.items() if kind in FORMATS)

    def convert(self, table: Any, place: Place) -> Any:
        """Return the used columns of a table, converted to numbers, dates and categories.

        Parameters
        ----------
        table : DataFrame
            The rows, with the used columns in any order; other columns are ignored.
        place : Place
            The origin of the rows, for error messages.
        """
        absent = [column for column in self.kinds if column not in table.columns]
        if absent:
            raise InvalidInputError(
                f"{place.name} must have the columns that the model was fitted to. Missing: "
                f"{listed(absent)}."
            )
        pd = import_pandas()
        if set(self.kinds.values()) == {"number"}:
            plain = table[list(self.kinds)]
            if all(map(pd.api.types.is_numeric_dtype, plain.dtypes)):
                # All at once, because there may be thousands of columns.
                _refuse_large(plain, place)
                return plain.reset_index(drop=True)
        return pd.DataFrame(
            {name: _as_kind(table[name], kind, place) for name, kind in self.kinds.items()}
        )


def _as_kind(values: Any, kind: str, place: Place) -> Any:
    """Convert the cells of a column to a kind, or raise an error that names the cell."""
    pd = import_pandas()
    if kind in FORMATS:
        return read_times(read_column(values.to_frame(), 0, values.name), kind, place)
    if kind == "code":
        return pd.Categorical(canonical_text(values))
    if kind == "category":
        return pd.Series(canonical_text(values, numbers_only=True), dtype=object)
    if kind == "numeric":
        values = pd.to_numeric(values, errors="coerce").astype(float)
    if not pd.api.types.is_numeric_dtype(values):
        _refuse_text(values, place)
        values = pd.to_numeric(values)  # numbers as objects, or only missing cells
    _refuse_large(values.to_frame(), place)
    return values.to_numpy()


def one_spelling(value: object) -> str:
    """Return a label or category as text, the same for different notations of a number.

    Parameters
    ----------
    value : object
        The cell.

    Examples
    --------
    >>> from discernel.rows.columns import one_spelling
    >>> [one_spelling(value) for value in ("1", "1.0", 1.0, "2.50", "007", "red")]
    ['1', '1', '1', '2.5', '007', 'red']
    """
    text = str(value)
    if not NUMBER.fullmatch(text.strip()):
        return text
    text = f"{Decimal(text.strip()):f}"  # exact for any number of digits
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text.removeprefix("+")


def canonical_text(values: Any, *, numbers_only: bool = False) -> NDArray[Any]:
    """Return the cells of a column as text, each in `one_spelling`; None for missing cells.

    Parameters
    ----------
    values : Series
        The cells.
    numbers_only : bool, default=False
        Whether cells that are text already are kept unchanged.
    """
    places, found = import_pandas().factorize(values.astype(object))
    different = [c.decode(errors="replace") if isinstance(c, bytes) else c for c in found]
    spelling = np.array(
        [c if numbers_only and isinstance(c, str) else one_spelling(c) for c in different] + [None],
        dtype=object,
    )
    return np.asarray(spelling[places])  # pandas gives missing cells the code -1, the last entry


def _refuse_text(values: Any, place: Place) -> None:
    """Raise an error if a column of numbers holds text."""
    numbers = import_pandas().to_numeric(values, errors="coerce")
    odd = (numbers.isna() & values.notna()).to_numpy()
    if odd.any():
        row = int(odd.argmax())
        raise InvalidInputError(
            f"The column {values.name!r} must hold numbers. Got {str(values.iloc[row])!r} in "
            f"{place.of_row(row)}. Correct the cell, or leave it empty."
        )


def _refuse_large(table: Any, place: Place) -> None:
    """Raise an error that names the first number of a table that is infinite or too large."""
    numbers = table.to_numpy(dtype=np.float64, na_value=np.nan)
    large = out_of_range(numbers)
    if large.any():
        row, column = np.argwhere(large)[0]
        raise InvalidInputError(
            f"Numbers must be missing, or lie between -{LARGEST:g} and {LARGEST:g}. The column "
            f"{table.columns[column]!r} has {numbers[row, column]} in {place.of_row(row)}. Correct "
            "the cell, or leave it empty."
        )


# ---- detection of kinds ------------------------------------------------------------------------


def detect_columns(
    table: Any, categorical: Sequence[str], numeric: Sequence[str], place: Place
) -> tuple[Any, TableSchema, dict[str, str], list[str], tuple[str, ...]]:
    """Detect the kinds of the columns of a table, and leave out columns without information.

    Only columns that `TableEncoder` would leave out for all rows are left out here.

    Parameters
    ----------
    table : DataFrame
        All columns except the target.
    categorical, numeric : sequence of str
        Columns that the user declared as categories or as numbers.
    place : Place
        The origin of the rows, for error messages.

    Returns
    -------
    features : DataFrame
        Numbers, dates and categories, with missing cells.
    schema : TableSchema
        The kinds of the columns of ``features``, to convert new rows.
    uses : dict of str to str
        The use of each column of the table, for users.
    notes : list of str
        The numbers of columns of each kind, and further notes for users.
    identifiers : tuple of str
        Columns left out because they identify rows.
    """
    if not table.shape[1]:
        raise InvalidInputError(
            f"{place.name} must have at least one column besides the target. No column is left."
        )
    # Floats that vary need no detection, which takes time for thousands of columns.
    floats = table.select_dtypes("float").drop(columns=[*categorical, *numeric], errors="ignore")
    unclear = table.drop(columns=floats.columns[floats.min() < floats.max()])
    columns = [read_column(unclear, i, name) for i, name in enumerate(unclear.columns)]
    kinds = dict.fromkeys(table.columns, "number")
    kinds |= {each.name: _kind(each, categorical, numeric, place) for each in columns}
    others = [name for name, kind in kinds.items() if kind == "other"]
    usable = {name: kind for name, kind in kinds.items() if kind != "other"}
    features = TableSchema(usable).convert(table, place)
    asked = [name for name in usable if name in unclear.columns]
    encoded, refused = learn_columns(features[asked])
    left_out = [*(LeftOut(name, "neither numbers nor text") for name in others), *refused]
    without = {each.name for each in left_out}
    schema = TableSchema({n: kind for n, kind in usable.items() if n not in without})
    if not schema.kinds:
        listing = "; ".join(f"{each.name!r}: {each.reason}" for each in left_out)
        raise InvalidInputError(
            "At least one column must hold numbers or categories that differ between rows. Nothing "
            f"can be learned from {len(left_out)} column(s): {listing}."
        )
    features = features[list(schema.columns)]
    n_missing = features.isna().sum()
    uses = dict.fromkeys(table.columns, "number") | column_uses(asked, encoded, left_out)
    uses |= {name: f"{uses[name]}, {n} missing" for name, n in n_missing[n_missing > 0].items()}
    notes = [
        _summary(schema, left_out, int(n_missing.sum())),
        *(note for each in encoded for note in each.notes(asked[each.position])),
        *_ambiguous_dates(columns, kinds),
        *_row_counts(features),
    ]
    return features, schema, uses, notes, tuple(each.name for each in left_out if each.identifies)


def _kind(column: Column, categorical: Sequence[str], numeric: Sequence[str], place: Place) -> str:
    """Return the kind of a column, as in `TableSchema`, or "other"."""
    if column.name in categorical and column.name in numeric:
        raise InvalidInputError(
            f"{place.name}: column {column.name!r} must be categorical or numeric, not both. "
            "Remove it from one of them."
        )
    if column.name in categorical:
        return "code"
    if column.name in numeric:
        return "numeric"
    kind = column_kind(column)
    if kind == "category":
        if column.declared:
            return "code"
        _refuse_mixed(column, place)
    return kind


def _refuse_mixed(column: Column, place: Place) -> None:
    """Raise an error if most, but not all, texts of a column are numbers or dates."""
    texts = {text.strip() for text in column.texts}
    word = odd_date(column.texts)
    if word is None:
        odd, most = {text for text in texts if not NUMBER.fullmatch(text)}, "numbers"
        if 2 * len(odd) > len(texts) or all(text.isdecimal() for text in odd):
            return  # mostly text, or codes such as 007
    else:
        odd, most = {word.strip()}, "dates"
    known = np.flatnonzero(~column.missing)
    row, name = next(int(i) for i in known if column.cells[i].strip() in odd), [column.name]
    raise InvalidInputError(
        f"The column {column.name!r} must hold {most} or categories, not both. Most values are "
        f"{most}. Got {column.cells[row]!r} in {place.of_row(row)}. Correct the cell, treat text "
        f"as missing ({flags('numeric', name)}), treat all values as categories "
        f"({flags('categorical', name)}), or leave the column out ({flags('drop', name)})."
    )


# ---- notes for users ---------------------------------------------------------------------------


def _summary(schema: TableSchema, left_out: Sequence[LeftOut], n_missing: int) -> str:
    """Return "12 numbers, 3 categories, 1 left out (id: numbers the rows); 7 cells missing"."""
    n_dates, n_categories = len(schema.dates), len(schema.categories)
    n_numbers = len(schema.columns) - n_dates - n_categories
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


def _ambiguous_dates(columns: Sequence[Column], kinds: Mapping[str, str]) -> list[str]:
    """Return a note on columns of dates in which day and month cannot be distinguished."""
    texts = [column for column in columns if kinds[column.name] == "category"]
    unclear = [column.name for column in texts if len(matching_formats(column.texts)) > 1]
    if not unclear:
        return []
    return [
        f"{listed(unclear)} may hold dates, but day and month cannot be distinguished: write "
        "dates as 2024-01-31"
    ]


def _row_counts(features: Any) -> list[str]:
    """Return a note on columns that number the rows of a table too short for leaving them out."""
    integers = features.select_dtypes("integer")
    counting = (integers.diff().iloc[1:] == 1).all() & (len(features) > 2)
    numbered = integers.columns[counting].tolist()
    if not numbered:
        return []
    verb, it = ("number", "them") if len(numbered) > 1 else ("numbers", "it")
    how = flags("drop", numbered)
    return [f"{listed(numbered)} {verb} the rows: leave {it} out if the order is random ({how})"]


def flags(option: str, names: Sequence[str]) -> str:
    """Return command-line options for some columns, with names in quotes if necessary."""
    quoted = [f'"{name}"' if " " in name else name for name in names[:_MOST_FLAGS]]
    return " ".join(f"--{option} {name}" for name in quoted) + " ..." * (len(names) > _MOST_FLAGS)
