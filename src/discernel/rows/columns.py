"""What the columns of a user's table hold: numbers, categories, dates, or nothing to learn from."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discernel.exceptions import InvalidInputError, LeftOutColumnWarning
from discernel.rows.cells import Column, read_column
from discernel.rows.dates import ISO, ambiguous_dates, date_format, odd_date
from discernel.rows.encoder import TableEncoder
from discernel.rows.formats import import_pandas, listed
from discernel.rows.preparation import NUMBER, Preparation, flags

_MOST_LISTED = 4
#: A column of ours, called as no other is.
_KEPT = "\0 kept"


@dataclass(frozen=True, eq=False)
class Described:
    """A table, and what its columns are taken for.

    Attributes
    ----------
    features : DataFrame
        Numbers and categories, with missing cells.
    preparation : Preparation
        What does the same to new rows.
    columns : dict of str to str
        What became of each column, in words.
    summary : str
        The same in a line.
    notes : tuple of str
        What else a user should know.
    identifiers : tuple of str
        Columns left out that tell rows apart.
    """

    features: Any
    preparation: Preparation
    columns: Mapping[str, str]
    summary: str
    notes: tuple[str, ...]
    identifiers: tuple[str, ...]


def describe_columns(
    table: Any,
    categorical: Sequence[str],
    numeric: Sequence[str],
    views: Mapping[str, Sequence[str]],
    where: str,
) -> Described:
    """Return what the columns of a table hold, and the table without those that say nothing.

    Only columns of which the library would learn nothing on any part of the rows are left out.

    Parameters
    ----------
    table : DataFrame
        The columns beside the target.
    categorical, numeric : sequence of str
        Columns that are said to hold categories, or numbers.
    views : dict of str to sequence of str
        The columns of each view.
    where : str
        What the table is called in messages.
    """
    if not table.shape[1]:
        raise InvalidInputError(f"{where} must have a column beside the target. None is left.")
    numbers = _numbers(table, categorical)
    kinds = dict.fromkeys(numbers, "number")
    dates: dict[str, str] = {}
    for name in table.columns.difference(numbers, sort=False):
        kinds[name], written = _kind(table[name], name, categorical, numeric, where)
        dates |= {name: written} if kinds[name] == "date" else {}
    left_out = {name: "neither numbers nor text" for name, kind in kinds.items() if kind == "other"}
    whole = Preparation(
        tuple(name for name in table.columns if name not in left_out),
        tuple(name for name, kind in kinds.items() if kind in ("category", "code")),
        tuple(name for name, kind in kinds.items() if kind == "code"),
        tuple(numeric),
        dates,
    )
    features = whole.apply(table, where)
    encoder = _learn_columns(features)
    left_out |= encoder.left_out
    kept = tuple(name for name in whole.columns if name not in left_out)
    _refuse_nothing(kept, left_out)
    preparation = Preparation(
        kept,
        tuple(name for name in whole.categories if name in kept),
        tuple(name for name in whole.codes if name in kept),
        tuple(name for name in whole.numeric if name in kept),
        {name: written for name, written in dates.items() if name in kept},
        _kept_views(views, kept),
    )
    features = features[list(kept)]
    missing = features.isna().sum().to_dict()
    parts = {name: each.parts for name, each in encoder.dates.items()}
    words = {name: _words(features, preparation, name, missing[name], parts) for name in kept}
    words |= {name: f"left out: {_short(reason)}" for name, reason in left_out.items()}
    return Described(
        features,
        preparation,
        {name: words[name] for name in table.columns},
        _summary(preparation, left_out, sum(missing.values())),
        tuple(_notes(table, preparation, parts)),
        encoder.identifiers,
    )


# ---- what a column holds -----------------------------------------------------------------------


def _numbers(table: Any, categorical: Sequence[str]) -> list[str]:
    """Return the columns of a type of numbers that are not said to be categories."""
    types = import_pandas().api.types
    return [
        name
        for name, dtype in table.dtypes.items()
        if types.is_numeric_dtype(dtype) and name not in categorical
    ]


def _kind(
    values: Any, name: str, categorical: Sequence[str], numeric: Sequence[str], where: str
) -> tuple[str, str]:
    """Return what a column holds, and of dates how they are written."""
    column = read_column(values.to_frame(), 0, name)
    if name in categorical or column.declared:
        return "code", ""
    if name in numeric or column.kinds <= {"number"}:
        return "number", ""
    written = ISO if column.kinds == {"date"} else date_format(column.texts)
    if written is not None and len(column.kinds) == 1:
        return "date", written
    if column.kinds <= {"text", "number"}:
        _refuse_mixed(values, column, where)
        return "category", ""
    return "other", ""


def _refuse_mixed(values: Any, column: Column, where: str) -> None:
    """Raise where most of the values of a column of text are numbers, or dates."""
    if (odd := odd_date(column.texts)) is not None:
        raise _mixed_error(values, column, where, "dates", [odd])
    known = values.dropna().astype(str).str.strip()
    words = [word for word in known.unique() if not NUMBER.fullmatch(word)]
    if len(words) > 0.5 * known.nunique() or all(word.isdecimal() for word in words):
        return  # text, or codes such as 007
    raise _mixed_error(values, column, where, "numbers", words)


def _mixed_error(
    values: Any, column: Column, where: str, most: str, words: Sequence[str]
) -> InvalidInputError:
    """Return the error for a column whose values are numbers or dates, but for some words."""
    spelt = values.astype(str).str.strip().isin([word.strip() for word in words])
    row, name = int((spelt.to_numpy() & ~column.missing).argmax()), [column.name]
    return InvalidInputError(
        f"{where}: column {column.name!r} must hold {most} or categories, not both. Most values "
        f"are {most}; row {row + 1} has {str(values.iloc[row])!r}. Correct the cell, take what is "
        f"no number as missing ({flags('numeric', name)}), take all as categories "
        f"({flags('categorical', name)}), or leave the column out ({flags('drop', name)})."
    )


def _learn_columns(features: Any) -> TableEncoder:
    """Return what the library makes of the columns that it may leave out, or that are dates."""
    clear = _clear(features)
    told = features[[name for name in features.columns if name not in clear]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutColumnWarning)  # they are listed, not warned of
        # Beside one that is kept: where none is, the encoder would refuse the table.
        return TableEncoder().fit(told.assign(**{_KEPT: np.arange(len(told)) % 2}))


def _clear(features: Any) -> set[str]:
    """Return columns of fractions that differ, which is all that is asked of them.

    There may be thousands of these, which an encoder takes one at a time.
    """
    fractions = features.select_dtypes("float")
    cells = fractions.to_numpy()
    lows = np.where(np.isnan(cells), np.inf, cells).min(axis=0, initial=np.inf)
    highs = np.where(np.isnan(cells), -np.inf, cells).max(axis=0, initial=-np.inf)
    return set(fractions.columns[lows < highs])


def _refuse_nothing(kept: Sequence[str], left_out: Mapping[str, str]) -> None:
    if not kept:
        listing = "; ".join(f"{name!r}: {why}" for name, why in left_out.items())
        raise InvalidInputError(
            "At least one column must hold numbers or categories that differ between rows. Nothing "
            f"can be learned from any of {len(left_out)}: {listing}."
        )


def _kept_views(
    views: Mapping[str, Sequence[str]], kept: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    there = set(kept)
    found = {
        view: tuple(column for column in columns if column in there)
        for view, columns in views.items()
    }
    found = {view: columns for view, columns in found.items() if columns}
    return found if len(found) > 1 else {}


# ---- in words ----------------------------------------------------------------------------------


def _words(
    features: Any,
    preparation: Preparation,
    name: str,
    n_missing: int,
    parts: Mapping[str, Sequence[str]],
) -> str:
    missing = f", {n_missing} missing" if n_missing else ""
    if name in preparation.dates:
        return f"date, as {', '.join(parts[name])}{missing}"
    if name in preparation.categories:
        return f"category of {features[name].nunique()} values{missing}"
    return f"number{missing}"


def _short(reason: str) -> str:
    return "numbers the rows" if reason.endswith("which number the rows") else reason


def _summary(preparation: Preparation, left_out: Mapping[str, str], n_missing: int) -> str:
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
        named = [f"{name}: {_short(why)}" for name, why in list(left_out.items())[:_MOST_LISTED]]
        more = ", ..." * (len(left_out) > _MOST_LISTED)
        counts.append(f"{len(left_out):,} left out ({'; '.join(named)}{more})")
    cells = "cell" if n_missing == 1 else "cells"
    return ", ".join(counts) + (f"; {n_missing:,} {cells} missing" if n_missing else "")


def _notes(table: Any, preparation: Preparation, parts: Mapping[str, Sequence[str]]) -> list[str]:
    notes = [f"{name!r} is taken as dates: {', '.join(parts[name])}" for name in preparation.dates]
    rest = table.columns.difference([*_numbers(table, ()), *preparation.dates], sort=False)
    unclear = [name for name in rest if ambiguous_dates(read_column(table[[name]], 0, name).texts)]
    if unclear:
        notes.append(
            f"{listed(unclear)} may hold dates, of which day and month cannot be told apart: write "
            "them as 2024-01-31"
        )
    return notes
