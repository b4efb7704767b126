"""Columns of dates to numbers: found once, then the same for new rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from discernel.arrays import FloatArray
from discernel.exceptions import InvalidInputError
from discernel.rows.files.formats import import_pandas

__all__ = [
    "PARTS",
    "ambiguous_dates",
    "date_format",
    "date_parts",
    "split_dates",
    "varying_parts",
]

#: What a date is for a model: days since 1970 and what repeats itself.
PARTS = ("days", "year", "month", "weekday", "hour")
_DATE = re.compile(r"\s*\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T]\d.*)?\s*")
#: The format of ISO 8601, of days with points, and of two customs with slashes.
_FORMATS = (
    "ISO8601",
    *("%Y/%m/%d", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S"),
    *("%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S"),
)
_SLASHES = tuple((f"%d/%m/%Y{time}", f"%m/%d/%Y{time}") for time in ("", " %H:%M", " %H:%M:%S"))


def date_format(column: Any) -> str | None:
    """Return how the dates of a column are written; None where it holds no dates.

    Parameters
    ----------
    column : Series
        Any cells. Dates of a type of their own have the format ``""``.
    """
    pd = import_pandas()
    if pd.api.types.is_datetime64_any_dtype(column):
        return ""
    if pd.api.types.infer_dtype(column, skipna=True) in ("date", "datetime", "datetime64"):
        return ""
    cells = _texts(column)
    if not _look_like_dates(cells):
        return None
    found = [each for each in _FORMATS if _parsed(cells, each).notna().all()]
    if found:
        return found[0]
    fitting = _slashed(cells)
    return fitting[0] if len(fitting) == 1 else None


def ambiguous_dates(column: Any) -> bool:
    """Whether a column may hold days before months, or months before days.

    Parameters
    ----------
    column : Series
        Any cells.
    """
    cells = _texts(column)
    return _look_like_dates(cells) and len(_slashed(cells)) > 1


def _texts(column: Any) -> list[str]:
    """Return the different cells of a column of text; of any other column, none."""
    is_text = import_pandas().api.types.infer_dtype(column, skipna=True) == "string"
    return [str(cell) for cell in column.dropna().unique()] if is_text else []


def _look_like_dates(cells: Any) -> bool:
    return len(cells) > 0 and all(map(_DATE.fullmatch, cells))


def _slashed(cells: Any) -> list[str]:
    return [each for pair in _SLASHES for each in pair if _parsed(cells, each).notna().all()]


def _parsed(cells: Any, written: str) -> Any:
    """Return cells as times, without a zone; what is no date is missing."""
    pd = import_pandas()
    options: dict[str, Any] = {"format": written} if written else {}
    found = pd.to_datetime(pd.Series(cells), errors="coerce", utc=True, **options)
    return found.dt.tz_localize(None)


def date_parts(column: Any, written: str, where: str) -> dict[str, FloatArray]:
    """Return the numbers of the dates of a column, NaN where one is missing.

    Parameters
    ----------
    column : Series
        The dates.
    written : str
        Their format, as `date_format` returns it.
    where : str
        What the table is called in messages.
    """
    pd = import_pandas()
    if pd.api.types.is_datetime64_any_dtype(column):
        written = ""
    times = _parsed(column.to_numpy(dtype=object), written)
    odd = np.flatnonzero(times.isna().to_numpy() & column.notna().to_numpy())
    if len(odd):
        raise InvalidInputError(
            f"{where}: column {column.name!r} must hold dates written as in training. Got "
            f"{str(column.iloc[odd[0]])!r} in row {odd[0] + 1}. Correct the cell, leave it empty, "
            "or drop the column."
        )
    days = (times - pd.Timestamp(0)) / pd.Timedelta(days=1)
    hours = times.dt.hour + times.dt.minute / 60.0
    found = (days, times.dt.year, times.dt.month, times.dt.day_of_week, hours)
    return {
        part: numbers.to_numpy(dtype=np.float64) for part, numbers in zip(PARTS, found, strict=True)
    }


def split_dates(table: Any, where: str, dates: Mapping[str, tuple[str, ...]]) -> Any:
    """Return a table with the parts of dates in place of its columns of dates.

    Parameters
    ----------
    table : DataFrame
        Rows.
    where : str
        What the table is called in messages.
    dates : dict of str to tuple of str
        The columns of dates: how they are written, then the parts that are wanted.
    """
    columns: dict[str, Any] = {}
    for name in table.columns:
        if name not in dates:
            columns[name] = table[name]
            continue
        written, *wanted = dates[name]
        parts = date_parts(table[name], written, where)
        columns |= {f"{name} ({part})": parts[part] for part in wanted}
    return import_pandas().DataFrame(columns, index=table.index)


def varying_parts(parts: Mapping[str, FloatArray]) -> Iterable[str]:
    """Return the parts that differ between rows.

    Parameters
    ----------
    parts : dict of str to ndarray
        What `date_parts` returned.
    """
    return [part for part, cells in parts.items() if len(set(cells[~np.isnan(cells)])) > 1]
