"""Dates to numbers: how a column writes them, and the parts that a model learns from."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.rows.cells import Column

#: What a date is for a model: days since 1970 and what repeats itself.
PARTS = ("days", "year", "month", "weekday", "hour")
#: The last day of January 2024 as ISO 8601 writes it, which stands for this format.
ISO = "2024-01-31"

_TIME = (
    r"(?:[ T](?P<hour>\d{1,2})(?P<rest>:\d{2}(?::\d{2}(?:[.,]\d+)?)?) ?"
    r"(?P<zone>Z|[+-]\d{2}:?\d{2})?)?"
)


def _pattern(order: str, sign: str) -> re.Pattern[str]:
    digits = {"year": r"\d{4}", "month": r"\d{1,2}", "day": r"\d{1,2}"}
    names = {"y": "year", "m": "month", "d": "day"}
    parts = (f"(?P<{names[each]}>{digits[names[each]]})" for each in order)
    return re.compile(rf"\s*{re.escape(sign).join(parts)}{_TIME}\s*")


#: The formats, each called as it writes the last day of January 2024. A time may follow.
FORMATS = {
    ISO: _pattern("ymd", "-"),
    "2024/01/31": _pattern("ymd", "/"),
    "31.01.2024": _pattern("dmy", "."),
    "31/01/2024": _pattern("dmy", "/"),
    "01/31/2024": _pattern("mdy", "/"),
}

_LIKE_A_DATE = re.compile(r"\s*\d{1,4}[-./]\d{1,2}[-./]\d{1,4}")


def date_format(texts: Collection[str]) -> str | None:
    """Return how dates are written; None where not all texts are dates, or in two ways.

    Parameters
    ----------
    texts : collection of str
        Different cells of a column.
    """
    found = _fitting(texts)
    return found[0] if len(found) == 1 else None


def ambiguous_dates(texts: Collection[str]) -> bool:
    """Whether texts may be days before months, or months before days.

    Parameters
    ----------
    texts : collection of str
        Different cells of a column.
    """
    return len(_fitting(texts)) > 1


def odd_date(texts: Collection[str]) -> str | None:
    """Return a text that is no date where most are dates in one format; None where none is odd.

    Parameters
    ----------
    texts : collection of str
        Different cells of a column.
    """
    if 2 * sum(map(bool, map(_LIKE_A_DATE.match, texts))) <= len(texts) or _fitting(texts):
        return None
    others = [[text for text in texts if _parse(text, each) is None] for each in FORMATS]
    fewest = min(others, key=len)
    return min(fewest) if 2 * len(fewest) < len(texts) else None


def _fitting(texts: Collection[str]) -> list[str]:
    """Return the formats that all texts have; most columns are done with their first text."""
    found = list(FORMATS) if texts else []
    for text in texts:
        found = [written for written in found if _parse(text, written) is not None]
        if not found:
            break
    return found


def _parse(text: str, written: str) -> datetime | None:
    """Return a text as a time in UTC, without a zone; None where it is no date of the format."""
    match = FORMATS[written].fullmatch(text)
    if match is None:
        return None
    cell = match.groupdict(default="")
    iso = f"{cell['year']}-{cell['month']:0>2}-{cell['day']:0>2}"
    if cell["hour"]:
        iso += f"T{cell['hour']:0>2}{cell['rest']}{cell['zone']}"
    try:
        return _without_zone(datetime.fromisoformat(iso))
    except (ValueError, OverflowError):  # such as the 30th of February
        return None


def _without_zone(time: datetime) -> datetime:
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)


def as_times(cells: NDArray[Any], written: str) -> NDArray[np.datetime64]:
    """Return cells as times in UTC; NaT where one is missing or is no date.

    Parameters
    ----------
    cells : ndarray of shape (n_rows,)
        Dates of any type, or texts.
    written : str
        How texts write them, as `date_format` returns it.
    """
    if cells.dtype.kind == "M":
        return cells.astype("datetime64[us]")
    texts = {cell: _parse(cell, written) for cell in cells if isinstance(cell, str)}
    found = [texts[cell] if isinstance(cell, str) else _time(cell) for cell in cells]
    return np.array(found, dtype="datetime64[us]")


def read_times(column: Column, written: str) -> tuple[NDArray[np.datetime64], int | None]:
    """Return the cells of a column as times, and the first row that has no date but a value.

    Parameters
    ----------
    column : Column
        Dates.
    written : str
        How texts write them.
    """
    times = as_times(column.cells, written)
    odd = np.flatnonzero(np.isnat(times) & ~column.missing)
    return times, int(odd[0]) if len(odd) else None


def _time(cell: Any) -> Any:
    if cell != cell or not isinstance(cell, (date, np.datetime64)):  # NaT differs from itself
        return None
    return _without_zone(cell) if isinstance(cell, datetime) else cell


def date_parts(times: NDArray[np.datetime64]) -> dict[str, FloatArray]:
    """Return the parts of times as numbers, NaN for NaT.

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
        (day.astype(np.int64) + 3) % 7,  # the first day of 1970 was a Thursday
        minutes // 60 + minutes % 60 / 60.0,
    )
    return {
        part: np.where(missing, np.nan, cells) for part, cells in zip(PARTS, numbers, strict=True)
    }
