"""Detect the format of dates, and convert dates to numbers: days, year, month, weekday, hour."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, date, datetime
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.exceptions import InvalidInputError
from discernel.rows.cells import Column
from discernel.rows.chunks import Place

#: The numbers that a model uses in place of a date: days since 1970 and periodic parts.
PARTS = ("days", "year", "month", "weekday", "hour")
#: The name of the ISO 8601 format: the last day of January 2024 in this format.
ISO = "2024-01-31"

_IN_MEMORY = Place("X")
_TIME = (
    r"(?:[ T](?P<hour>\d{1,2})(?P<rest>:\d{2}(?::\d{2}(?:[.,]\d+)?)?) ?"
    r"(?P<zone>Z|[+-]\d{2}:?\d{2})?)?"
)

#: The formats, each named by the last day of January 2024: the order of year, month and day, and
#: the sign between them. A time of day may follow.
FORMATS = {
    ISO: ("ymd", "-"),
    "2024/01/31": ("ymd", "/"),
    "31.01.2024": ("dmy", "."),
    "31/01/2024": ("dmy", "/"),
    "01/31/2024": ("mdy", "/"),
}


@cache
def _pattern(format: str) -> re.Pattern[str]:
    """Return the pattern of a format, compiled when a column is first read in it."""
    order, sign = FORMATS[format]
    digits = {"year": r"\d{4}", "month": r"\d{1,2}", "day": r"\d{1,2}"}
    names = {"y": "year", "m": "month", "d": "day"}
    parts = (f"(?P<{names[each]}>{digits[names[each]]})" for each in order)
    return re.compile(rf"\s*{re.escape(sign).join(parts)}{_TIME}\s*")


_LIKE_A_DATE = re.compile(r"\s*\d{1,4}[-./]\d{1,2}[-./]\d{1,4}")


def matching_formats(texts: Collection[str]) -> list[str]:
    """Return the formats in which all texts are dates.

    Several formats match if day and month cannot be distinguished.

    Parameters
    ----------
    texts : collection of str
        The distinct cells of a column.
    """
    found = list(FORMATS) if texts else []
    for text in texts:
        found = [format for format in found if _parse(text, format) is not None]
        if not found:
            break
    return found


def odd_date(texts: Collection[str]) -> str | None:
    """Return a text that is not a date, if most texts are dates in one format; otherwise None.

    Parameters
    ----------
    texts : collection of str
        The distinct cells of a column.
    """
    if 2 * sum(map(bool, map(_LIKE_A_DATE.match, texts))) <= len(texts) or matching_formats(texts):
        return None
    others = [[text for text in texts if _parse(text, each) is None] for each in FORMATS]
    fewest = min(others, key=len)
    return min(fewest) if 2 * len(fewest) < len(texts) else None


def _parse(text: str, format: str) -> datetime | None:
    """Return a text as a naive time in UTC; None if it is not a date in the format."""
    match = _pattern(format).fullmatch(text)
    if match is None:
        return None
    cell = match.groupdict(default="")
    iso = f"{cell['year']}-{cell['month']:0>2}-{cell['day']:0>2}"
    if cell["hour"]:
        iso += f"T{cell['hour']:0>2}{cell['rest']}{cell['zone']}"
    try:
        return _without_zone(datetime.fromisoformat(iso))
    except (ValueError, OverflowError):  # such as 30 February
        return None


def _without_zone(time: datetime) -> datetime:
    """Return a time in UTC, without a time zone."""
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)


def as_times(cells: NDArray[Any], format: str) -> NDArray[np.datetime64]:
    """Return cells as times in UTC; NaT for cells that are missing or not dates.

    Parameters
    ----------
    cells : ndarray of shape (n_rows,)
        Dates of any type, or texts.
    format : str
        The format of texts, one of `FORMATS`.
    """
    if cells.dtype.kind == "M":
        return cells.astype("datetime64[us]")
    parse = cache(partial(_parse, format=format))  # a text is parsed once
    found = [parse(cell) if isinstance(cell, str) else _time(cell) for cell in cells]
    return np.array(found, dtype="datetime64[us]")


def read_times(column: Column, format: str, place: Place = _IN_MEMORY) -> NDArray[np.datetime64]:
    """Return the cells of a column as times, or raise an error if one is not a date.

    Parameters
    ----------
    column : Column
        The dates.
    format : str
        The format of texts, one of `FORMATS`.
    place : Place
        The origin of the rows, for the error message.
    """
    times = as_times(column.cells, format)
    odd = np.flatnonzero(np.isnat(times) & ~column.missing)
    if not len(odd):
        return times
    raise InvalidInputError(
        f"The column {column.name!r} must hold dates in the format of the training rows, such as "
        f"{format}. Got {str(column.cells[odd[0]])!r} in {place.of_row(odd[0])}. Correct the cell, "
        "leave it empty, or drop the column."
    )


def _time(cell: Any) -> Any:
    """Return a date object as a naive time or date; None for a missing or other cell."""
    # NaT differs from itself; NA, to which nothing can be compared, is no date.
    if not isinstance(cell, (date, np.datetime64)) or cell != cell:
        return None
    return _without_zone(cell) if isinstance(cell, datetime) else cell


def date_parts(times: NDArray[np.datetime64]) -> dict[str, FloatArray]:
    """Return the `PARTS` of times as numbers, NaN for NaT.

    Parameters
    ----------
    times : ndarray of datetime64, of shape (n_rows,)
        Returned by `as_times`.
    """
    missing = np.isnat(times)
    times = np.where(missing, np.datetime64(0, "us"), times)
    day = times.astype("datetime64[D]")
    minutes = (times - day) // np.timedelta64(1, "m")
    numbers = (
        times.astype(np.int64) / 86_400e6,
        times.astype("datetime64[Y]").astype(np.int64) + 1970,
        times.astype("datetime64[M]").astype(np.int64) % 12 + 1,
        (day.astype(np.int64) + 3) % 7,  # 1 January 1970 was a Thursday
        minutes // 60 + minutes % 60 / 60.0,
    )
    return {
        part: np.where(missing, np.nan, cells) for part, cells in zip(PARTS, numbers, strict=True)
    }
