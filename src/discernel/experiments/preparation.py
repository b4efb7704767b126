"""How the columns of a user's file become features: made once, then the same for new rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.backend import FloatArray
from discernel.exceptions import InvalidInputError
from discernel.experiments.formats import import_pandas, listed

__all__ = ["NUMBER", "Preparation", "flags", "one_spelling", "refuse_text", "spelt"]


@dataclass(frozen=True)
class Preparation:
    """How the columns of a file become features; made once, then the same for new rows.

    Attributes
    ----------
    columns : tuple of str
        The columns used, in their order.
    categories : dict of str to tuple of str
        The values of each column that becomes one feature a value.
    fill : dict of str to float
        What stands in for a missing number; empty where missing values are refused.
    views : dict of str to tuple of str
        The columns of each view; empty where there is one only.
    """

    columns: tuple[str, ...]
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fill: Mapping[str, float] = field(default_factory=dict)
    views: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name per feature: the column's, or ``column=value``."""
        return tuple(name for column in self.columns for name in self._features(column))

    @property
    def feature_columns(self) -> tuple[str, ...]:
        """The column that each feature comes from."""
        return tuple(column for column in self.columns for _ in self._features(column))

    @property
    def slices(self) -> dict[str, slice]:
        """The features of each view."""
        sizes = [sum(len(self._features(c)) for c in columns) for columns in self.views.values()]
        ends = list(accumulate(sizes))
        return {
            view: slice(end - size, end)
            for view, end, size in zip(self.views, ends, sizes, strict=True)
        }

    def as_written(self, column: str) -> bool:
        """Return whether a column must be read as it is written, since it holds categories."""
        return column in self.categories

    def _features(self, column: str) -> list[str]:
        if column in self.categories:
            return [f"{column}={value}" for value in self.categories[column]]
        return [column]

    def apply(self, table: Any, where: str) -> FloatArray:
        """Return the features of the rows of a table.

        Parameters
        ----------
        table : DataFrame
            The rows; columns that are not used may be missing.
        where : str
            What the table is called in messages.
        """
        absent = [column for column in self.columns if column not in table.columns]
        if absent:
            raise InvalidInputError(
                f"{where} must have the columns the model was fitted to. Got none named "
                f"{listed(absent)}."
            )
        refuse_text(table, [c for c in self.columns if c not in self.categories], where)
        blocks = [self._feature_block(table[column], column, where) for column in self.columns]
        X = np.column_stack(blocks)
        _refuse_not_finite(X, self.feature_names, where)
        return X

    def _feature_block(self, values: Any, column: str, where: str) -> FloatArray:
        if column in self.categories:
            return _one_hot(values, column, self.categories[column], where)
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        if column in self.fill:
            return np.where(np.isnan(numbers), self.fill[column], numbers)
        return np.asarray(numbers)

    def as_plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Preparation:
        """Return what `as_plain` was called on."""
        return cls(
            _names(plain["columns"]),
            {str(key): _names(values) for key, values in plain["categories"].items()},
            {str(key): float(value) for key, value in plain["fill"].items()},
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
    >>> from discernel.experiments.preparation import one_spelling
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


def spelt(values: Any) -> NDArray[Any]:
    """Return the cells of a column in one spelling each; what is missing is no text."""
    return np.asarray(values.astype(object).map(one_spelling, na_action="ignore"), dtype=object)


def _one_hot(values: Any, column: str, known: Sequence[str], where: str) -> FloatArray:
    """Return one column a category; a row of zeros where the value is missing."""
    missing = values.isna().to_numpy()
    found = spelt(values)
    strange = np.flatnonzero(~missing & ~np.isin(found, np.asarray(known, dtype=object)))
    if len(strange):
        raise InvalidInputError(
            f"{where}: column {column!r} must hold the categories the model was fitted to: "
            f"{listed(known)}. Got {found[strange[0]]!r} in row {strange[0] + 1}."
        )
    return np.column_stack([(found == value) & ~missing for value in known]).astype(np.float64)


# ---- the checks --------------------------------------------------------------------------------


def refuse_text(table: Any, columns: Sequence[str], where: str) -> None:
    """Raise where columns that are to be numbers hold text."""
    pd = import_pandas()
    text = [column for column in columns if not pd.api.types.is_numeric_dtype(table[column])]
    if not text:
        return
    values = table[text[0]]
    odd = pd.to_numeric(values, errors="coerce").isna() & values.notna()
    row = int(odd.to_numpy().argmax())
    raise InvalidInputError(
        f"{where}: features must be numbers. Columns with text: {listed(text)}; column "
        f"{text[0]!r} has {str(values.iloc[row])!r} in row {row + 1}. Turn categories into "
        f"numbers with categorical ({flags('categorical', text)}), or leave the columns out with "
        f"drop ({flags('drop', text)})."
    )


def _refuse_not_finite(X: FloatArray, names: Sequence[str], where: str) -> None:
    rows, columns = np.nonzero(~np.isfinite(X))
    if len(rows):
        row, column = rows[0], columns[0]
        found = "is missing" if np.isnan(X[row, column]) else "is infinite"
        raise InvalidInputError(
            f"{where}: every feature must be a finite number. Column {names[column]!r} {found} in "
            f"row {row + 1}. Correct the cell, or leave the row out."
        )


def flags(option: str, names: Sequence[str], limit: int = 3) -> str:
    """Return the words for a command line, quoted where a shell needs it."""
    quoted = [f'"{name}"' if " " in name else name for name in names[:limit]]
    return " ".join(f"--{option} {name}" for name in quoted) + (" ..." * (len(names) > limit))
