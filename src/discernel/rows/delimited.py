"""CSV and TSV files to tables: delimiter, decimal sign and line of names are found, then shown.

What cannot be read, or would not fit into memory, is refused before it is read.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from discernel.exceptions import InvalidInputError
from discernel.rows.cells import MISSING_VALUES
from discernel.rows.formats import (
    check_size,
    import_pandas,
    listed,
    open_bytes,
    open_text,
    refuse_duplicates,
    uncompressed_size,
)

__all__ = ["read_delimited"]

#: What is raised for text, or compressed text, that cannot be read.
_DAMAGED = (csv.Error, EOFError, gzip.BadGzipFile, zlib.error)
_DELIMITERS = ("\t", ";", "|", ",")
_WORDS = {"\t": "tab", ";": "';'", "|": "'|'", ",": "','"}
#: So many rows say what delimiter, names and codes there are.
_LOOKED_AT = 1000
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?\d+,\d+|[+-]?(inf|nan)", re.I)
_COMMA = re.compile(r"\s*[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d*)?([eE][+-]?\d+)?\s*")
_THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+(\.\d*)?\s*|\s*[+-]?\d{1,3}(\.\d*)?\s*")
#: A code, such as 007, which as a number would lose its zeros.
_CODE = re.compile(r"0\d+")


@dataclass(frozen=True)
class _Look:
    """What the first rows of a file say of it."""

    delimiter: str
    names: tuple[str, ...]
    has_header: bool
    codes: frozenset[str] = frozenset()


def read_delimited(
    path: Path, as_written: Callable[[str], bool], known: Sequence[Sequence[str]] = ()
) -> tuple[Any, str]:
    """Return all columns of a file, and a line that says how it was read.

    Parameters
    ----------
    path : Path
        The file, in UTF-8.
    as_written : callable
        Whether the column of a name is to be read as text.
    known : sequence of sequence of str
        Names of columns that a file without a line of names may have, all at once.
    """
    pd = import_pandas()
    try:
        look = _look(path, known)
        _check_rows(path, look.delimiter, len(look.names))
        frame = pd.read_csv(
            path,
            sep=look.delimiter,
            header=0 if look.has_header else None,
            names=list(look.names),
            index_col=False,
            encoding="utf-8-sig",
            keep_default_na=False,
            na_values=list(MISSING_VALUES),
            low_memory=False,
            dtype={name: str for name in look.names if as_written(name) or name in look.codes},
        )
    except UnicodeDecodeError:
        raise InvalidInputError(_not_utf8(path)) from None
    except (*_DAMAGED, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InvalidInputError(_no_csv(path, error)) from error
    text = {name for name in look.names if as_written(name)} | look.codes
    found = _convert_commas(frame, text, look.delimiter)
    words = [f"delimiter {_WORDS[look.delimiter]}", *found]
    if not look.has_header:
        words.append(f"no line of names: columns are called {listed(look.names, 2)}")
    return frame, ", ".join(words)


# ---- delimiter and names -----------------------------------------------------------------------


def _look(path: Path, known: Sequence[Sequence[str]]) -> _Look:
    """Return delimiter and column names, from the first rows alone."""
    found = {}
    for delimiter in _DELIMITERS:
        # A wrong one makes one cell of a line, which may be longer than the reader takes.
        with suppress(csv.Error):
            found[delimiter] = _first_rows(path, delimiter)
    if not found:
        raise InvalidInputError(_no_csv(path, "a name of a column that does not end"))
    delimiter = _delimiter(found)
    rows, length = found[delimiter]
    if not rows:
        raise InvalidInputError(
            f"{path.name} must name its columns in line 1. It holds blank lines only."
        )
    # A row as long as the first ones; a digit and a delimiter per cell at least.
    check_size(path, uncompressed_size(path) // max(2 * len(rows[0]), length), len(rows[0]))
    has_header = _has_header(rows, known)
    names = _names(rows[0]) if has_header else _given_names(path, len(rows[0]), known)
    refuse_duplicates(names, path)
    body = rows[has_header:]
    codes = (
        name
        for name, cells in zip(names, zip(*body, strict=False), strict=False)
        if any(_CODE.fullmatch(cell.strip()) for cell in cells)
    )
    return _Look(delimiter, tuple(names), has_header, frozenset(codes))


def _first_rows(path: Path, delimiter: str) -> tuple[list[list[str]], int]:
    """Return the first rows that are not blank, and the length of a line."""
    with open_text(path) as file:  # any end of a line ends one
        reader = csv.reader(file, delimiter=delimiter)
        first = list(islice(filter(None, reader), 1))
        length = len(next(file, ""))
    if first and len(first[0]) > 1:
        with open_text(path) as file:
            reader = csv.reader(file, delimiter=delimiter)
            n_rows = max(2, min(_LOOKED_AT, 100_000 // len(first[0])))
            return list(islice(filter(None, reader), n_rows)), length
    return first, length


def _delimiter(found: dict[str, tuple[list[list[str]], int]]) -> str:
    """Return the one that divides all rows alike; else that of most cells in the first row."""
    for delimiter, (rows, _) in found.items():  # the comma last: it may be a decimal sign
        if rows and len(rows[0]) > 1 and {len(row) for row in rows} == {len(rows[0])}:
            return delimiter
    return max(reversed(found), key=lambda each: len((found[each][0] or [[]])[0]))


def _has_header(rows: list[list[str]], known: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: it is text where the others are numbers."""
    first, rest = rows[0], rows[1:]
    if known and set(known[0]) & set(_names(first)):
        return True
    against = all(_NUMBER.fullmatch(cell.strip()) for cell in first)
    for cell, *below in zip(first, *rest, strict=False):
        cells = [each.strip() for each in below if each.strip() not in MISSING_VALUES]
        if cell.strip() in MISSING_VALUES or not cells:
            continue
        if all(_NUMBER.fullmatch(each) for each in cells):
            if not _NUMBER.fullmatch(cell.strip()):
                return True
            against = True
    return not against


def _names(cells: Sequence[str]) -> list[str]:
    names = (re.sub(r"\s*[\r\n]+\s*", " ", cell).strip() for cell in cells)
    return [name or f"column {index}" for index, name in enumerate(names, start=1)]


def _given_names(path: Path, n_columns: int, known: Sequence[Sequence[str]]) -> list[str]:
    for names in known:
        if len(names) == n_columns and all(name.startswith("column ") for name in names):
            return list(names)
    if known:
        raise InvalidInputError(
            f"{path.name}: line 1 must name the columns, as in the file the model was fitted to. "
            f"Put a line of names on top, such as {listed(known[0], 4)}."
        )
    return [f"column {index}" for index in range(1, n_columns + 1)]


def _check_rows(path: Path, delimiter: str, n_columns: int) -> None:
    """Refuse rows of another length: pandas would fill the short ones up without a word."""
    with open_text(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        for row in reader:
            if row and len(row) != n_columns:
                raise InvalidInputError(
                    f"{path.name}: line {reader.line_num} must have {n_columns} cells, as line 1 "
                    f"has. Got {len(row)}. Correct the line; text with a {delimiter!r} in it needs "
                    "quotes."
                )


# ---- decimal signs -----------------------------------------------------------------------------


def _convert_commas(frame: Any, text: Set[str], delimiter: str) -> list[str]:
    """Make numbers of cells like 1,5, but in columns of text, and return words on the signs."""
    pd = import_pandas()
    numbers = frame.select_dtypes("float").to_numpy()
    with np.errstate(invalid="ignore"):  # infinite ones are refused later
        signs = {"."} if (numbers % 1 > 0).any() else set()
    for name, dtype in frame.dtypes.items():
        if name in text or pd.api.types.is_numeric_dtype(dtype):
            continue
        column = frame[name]
        texts = [text for text in column.dropna().unique() if isinstance(text, str)]
        if not any("," in text for text in texts):
            continue
        if delimiter == "," and all(map(_THOUSANDS.fullmatch, texts)):
            # In a file of commas, 1,234 in quotes is a number of four digits.
            frame[name] = column.str.replace(",", "").astype(float)
            signs.add("thousands")
        elif all(map(_COMMA.fullmatch, texts)):
            plain = column.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
            frame[name] = plain.astype(float)
            signs.add(",")
    words = [f"decimal {' and '.join(map(repr, sorted(signs - {'thousands'})))}"]
    thousands = ["',' between thousands"] if "thousands" in signs else []
    return (words if signs - {"thousands"} else []) + thousands


# ---- errors ------------------------------------------------------------------------------------


def _no_csv(path: Path, error: object) -> str:
    return f"{path.name} must be a CSV file. Got: {str(error).strip().rstrip('.')}."


def _not_utf8(path: Path) -> str:
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                place = f"line {number} has the byte 0x{line[error.start]:02x}"
                break
        else:
            place = "its last character is cut off"
    return (
        f"{path.name} must be text in UTF-8, and {place}. Save it again as UTF-8: in a "
        "spreadsheet, 'CSV UTF-8'."
    )
