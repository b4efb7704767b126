"""What is done to the columns of a user's file: found once, then the same for new rows.

Nothing is learned here that depends on which rows train: categories, missing cells and scales are
left to the `discernel.tables.TableEncoder` of those who fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.exceptions import InvalidInputError
from discernel.rows.cells import read_column
from discernel.rows.dates import read_times
from discernel.rows.encoder import EncodedDates, TableEncoder
from discernel.rows.formats import import_pandas, listed


@dataclass(frozen=True)
class Preparation:
    """Which columns of a file are used, and what each of them is taken for.

    Attributes
    ----------
    columns : tuple of str
        The columns used, in their order.
    categories : tuple of str
        Those that hold categories; all others hold numbers or dates.
    codes : tuple of str
        Categories that are numbers, each of which is one, however it is written.
    numeric : tuple of str
        Those in which what is no number is missing.
    dates : dict of str to str
        The columns of dates, and how texts write these.
    views : dict of str to tuple of str
        The columns of each view; empty where there is one only.
    """

    columns: tuple[str, ...]
    categories: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    dates: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Sequence[str], encoder: TableEncoder | None) -> Preparation:
        """Return what an encoder takes columns for; those that it leaves out are read as text.

        Parameters
        ----------
        columns : sequence of str
            All columns of the table.
        encoder : TableEncoder or None
            What was fitted to the table; None where it holds numbers only.
        """
        if encoder is None:
            return cls(tuple(columns))
        kinds = {columns[each.position]: each.kind for each in encoder.columns_}
        found = (each for each in encoder.columns_ if isinstance(each, EncodedDates))
        dates = {columns[each.position]: each.written for each in found}
        text = (name for name in columns if kinds.get(name) not in ("number", "date"))
        return cls(tuple(columns), tuple(text), dates=dates)

    def apply(self, table: Any, where: str) -> Any:
        """Return the rows of a table as numbers, dates and categories, in a table.

        Parameters
        ----------
        table : DataFrame
            The rows; columns that are not used may be missing, and their order is free.
        where : str
            What the table is called in messages.
        """
        absent = [column for column in self.columns if column not in table.columns]
        if absent:
            raise InvalidInputError(
                f"{where} must have the columns the model was fitted to. Got none named "
                f"{listed(absent)}."
            )
        pd = import_pandas()
        if not (self.categories or self.numeric or self.dates):
            plain = table[list(self.columns)]
            if all(map(pd.api.types.is_numeric_dtype, plain.dtypes)):
                # In one go: there may be thousands of columns.
                _refuse_infinite(plain, where)
                return plain.reset_index(drop=True)
        return pd.DataFrame(
            {column: self._cells(table[column], column, where) for column in self.columns}
        )

    def _cells(self, values: Any, column: str, where: str) -> Any:
        pd = import_pandas()
        if column in self.dates:
            return _times(values, column, self.dates[column], where)
        if column in self.codes:
            return pd.Categorical(canonical_text(values))
        if column in self.categories:
            return pd.Series(_texts(values), dtype=object)
        if column in self.numeric:
            values = pd.to_numeric(values, errors="coerce").astype(float)
        refuse_text(values, column, where)
        if not pd.api.types.is_numeric_dtype(values):
            values = pd.to_numeric(values)  # numbers of a type of their own, or none at all
        _refuse_infinite(values.to_frame(column), where)
        return values.to_numpy()

    def as_plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Preparation:
        """Return what `as_plain` was called on."""
        return cls(
            _names(plain["columns"]),
            _names(plain["categories"]),
            _names(plain["codes"]),
            _names(plain["numeric"]),
            dict(zip(_names([*plain["dates"]]), _names([*plain["dates"].values()]), strict=True)),
            {str(key): _names(columns) for key, columns in plain["views"].items()},
        )


def _names(values: Any) -> tuple[str, ...]:
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, str) for v in values):
        raise TypeError(f"{values!r} is no list of names")
    return tuple(values)


#: A number in decimal digits. Zeros in front make a code of it, which is text.
NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d{1,3})?")


def one_spelling(value: object) -> str:
    """Return a label or a category as text, the same for a number however a file writes it.

    Parameters
    ----------
    value : object
        What is in a cell.

    Examples
    --------
    >>> from discernel.rows.preparation import one_spelling
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


def canonical_text(values: Any) -> NDArray[Any]:
    """Return the cells of a column in one spelling each; None where one is missing."""
    return _mapped(values, one_spelling)


def _texts(values: Any) -> NDArray[Any]:
    """Return the cells of a column of text as they are; a number there has one spelling."""
    return _mapped(values, lambda cell: cell if isinstance(cell, str) else one_spelling(cell))


def _mapped(values: Any, spell: Callable[[Any], str]) -> NDArray[Any]:
    """Return what each different cell is canonical_text like; None where one is missing."""
    places, different = import_pandas().factorize(values.astype(object))
    spelling = np.array([*map(spell, different), None], dtype=object)
    return np.asarray(spelling[places])  # a missing cell has the place -1, the last


# ---- the checks --------------------------------------------------------------------------------


def refuse_text(values: Any, column: str, where: str) -> None:
    """Raise where a column that is to hold numbers holds text.

    Parameters
    ----------
    values : Series
        The cells.
    column : str
        Its name.
    where : str
        What the table is called in messages.
    """
    pd = import_pandas()
    if pd.api.types.is_numeric_dtype(values):
        return
    odd = (pd.to_numeric(values, errors="coerce").isna() & values.notna()).to_numpy()
    if not odd.any():
        return
    row = int(odd.argmax())
    raise InvalidInputError(
        f"{where}: column {column!r} must hold numbers. Got {str(values.iloc[row])!r} in row "
        f"{row + 1}. Correct the cell, or leave it empty."
    )


def _times(values: Any, column: str, written: str, where: str) -> NDArray[np.datetime64]:
    """Return the cells of a column of dates as times, or raise where one is no date."""
    found = read_column(values.to_frame(), 0, column)
    times, odd = read_times(found, written)
    if odd is not None:
        raise InvalidInputError(
            f"{where}: column {column!r} must hold dates written as in training. Got "
            f"{str(found.cells[odd])!r} in row {odd + 1}, and none such as {written}. Correct the "
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


def flags(option: str, names: Sequence[str], limit: int = 3) -> str:
    """Return the words for a command line, quoted where a shell needs it."""
    quoted = [f'"{name}"' if " " in name else name for name in names[:limit]]
    return " ".join(f"--{option} {name}" for name in quoted) + (" ..." * (len(names) > limit))
