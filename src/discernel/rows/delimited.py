"""CSV and TSV files: delimiter, decimal sign, line of names and types are found, then shown.

What cannot be read, or would not fit into memory, is refused before it is read.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from discernel.exceptions import InvalidInputError
from discernel.rows.cells import MISSING_VALUES
from discernel.rows.formats import (
    DAMAGED,
    check_size,
    import_arrow,
    is_gzipped,
    listed,
    open_bytes,
    open_text,
    refuse_duplicates,
    uncompressed_size,
)

_DELIMITERS = ("\t", ";", "|", ",")
_WORDS = {"\t": "tab", ";": "';'", "|": "'|'", ",": "','"}
#: So many rows say what delimiter, names and codes there are.
_LOOKED_AT = 1000
#: Bytes that are read at a time, of which the first say what is in a column.
_BLOCK_BYTES = 2**22
#: Bytes of which lines are counted.
_COUNTED_BYTES = 2**20
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?\d+,\d+|[+-]?(inf|nan)", re.I)
#: Numbers that pyarrow takes for text, each with what is deleted from them and what is a point.
_SPELLINGS = {
    "+": (re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*"), "+", "."),
    # In a file of commas, 1,234 in quotes is a number of four digits.
    "thousands": (re.compile(r"\s*[+-]?\d{1,3}((,\d{3})+)?(\.\d*)?\s*"), ",+", "."),
    ",": (re.compile(r"\s*[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d*)?([eE][+-]?\d+)?\s*"), ".+", ","),
}
#: A code, such as 007, which as a number would lose its zeros.
_CODE = re.compile(r"0\d+")


class DelimitedFile:
    """A CSV or TSV file: its columns, and its rows, all at once or a part at a time.

    Parameters
    ----------
    path : Path
        The file, in UTF-8.
    as_text : collection of str
        Columns to read as text, if they are there.
    known : sequence of sequence of str
        Names of columns that a file without a line of names may have, all at once.

    Attributes
    ----------
    names : tuple of str
        The columns.
    n_rows : None
        The rows are not counted.
    """

    n_rows: int | None = None

    def __init__(
        self,
        path: Path,
        as_text: Collection[str] = (),
        known: Sequence[Sequence[str]] = (),
    ) -> None:
        self.path, self._pa = path, import_arrow()
        with self._reading():
            self._look = _look(path, known)
        self.names = self._look.names
        self._text = (set(self.names) & set(as_text)) | self._look.codes
        self._how = ""

    # ---- columns -----------------------------------------------------------------------------

    @property
    def types(self) -> dict[str, Any]:
        """The type of every column, by the first rows; of numbers in any spelling, float64."""
        types, spelling = self._found
        return types | dict.fromkeys(spelling, self._pa.float64())

    @cached_property
    def _found(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Types of the columns, and how they write numbers, by the first rows."""
        if not self._look.has_rows:
            return dict.fromkeys(self.names, self._pa.null()), {}
        with self._reading(), self._open(self._text_types(), self.names) as reader:
            first = self._pa.Table.from_batches([reader.read_next_batch()])
        types = {field.name: _without_times(field.type) for field in first.schema}
        return types, self._spelling(first)

    def _text_types(self) -> dict[str, Any]:
        return dict.fromkeys(self._text, self._pa.string())

    def _spelling(self, table: Any) -> dict[str, str]:
        """Return how numbers are written in columns that pyarrow takes for text."""
        found = {}
        for name in table.column_names:
            column = table[name]
            if name in self._text or not self._pa.types.is_string(column.type):
                continue
            texts = [text for text in column.unique().to_pylist() if text is not None]
            for spelling, (pattern, _, _) in _SPELLINGS.items():
                allowed = spelling != "thousands" or self._look.delimiter == ","
                if allowed and texts and all(map(pattern.fullmatch, texts)):
                    found[name] = spelling
                    break
        return found

    # ---- rows --------------------------------------------------------------------------------

    @property
    def estimated_n_rows(self) -> int:
        """About as many rows as the size of the file says."""
        with open_bytes(self.path) as file:
            start = file.read(_COUNTED_BYTES)
        lines = max(1, start.count(b"\n") - 1)
        return int(uncompressed_size(self.path) * lines / max(1, len(start)))

    def parts(self, types: Mapping[str, Any], n_rows: int) -> Iterator[Any]:
        """Yield tables of some rows at a time.

        Parameters
        ----------
        types : mapping of str to pyarrow.DataType
            The columns that are wanted, and what they are to hold.
        n_rows : int
            The most rows of a table.
        """
        if not self._look.has_rows:
            return
        pa, (own, spelling) = self._pa, self._found
        given = dict(types) | dict.fromkeys([*spelling, *self._text], pa.string())
        whole = [name for name in types if pa.types.is_integer(own[name])]
        wanted = {name: spelt for name, spelt in spelling.items() if name in types}
        with self._reading(), self._open(given, list(types)) as reader:
            for batch in reader:
                table = _as_numbers(pa.Table.from_batches([batch]), wanted)
                for first in range(0, table.num_rows, n_rows):
                    yield _as_integers(table.slice(first, n_rows), whole)

    def read(self) -> Any:
        """Return the table of all rows; their types are those of all of them."""
        look, pa = self._look, self._pa
        # A row as long as the first ones; a digit and a delimiter per cell at least.
        most = uncompressed_size(self.path) // max(2 * len(self.names), look.line_length)
        check_size(self.path, most, len(self.names))
        with self._reading():
            _check_rows(self.path, look.delimiter, len(self.names))
            if not look.has_rows:
                return pa.table({name: pa.nulls(0) for name in self.names})
            types = self._text_types()
            with self._open(types, self.names, whole=True) as table:
                found = table
            times = {f.name for f in found.schema if _without_times(f.type) != f.type}
            if times:
                types |= dict.fromkeys(times, pa.string())
                with self._open(types, self.names, whole=True) as table:
                    found = table
        spelling = self._spelling(found)
        self._how = ", ".join(_signs(found, spelling))
        return _as_numbers(found, spelling)

    @property
    def how(self) -> str:
        """How the file was read, in words."""
        words = [f"delimiter {_WORDS[self._look.delimiter]}", *filter(None, [self._how])]
        if not self._look.has_header:
            words.append(f"no line of names: columns are called {listed(self.names, 2)}")
        return ", ".join(words)

    @contextmanager
    def _open(
        self, types: Mapping[str, Any], names: Sequence[str], *, whole: bool = False
    ) -> Iterator[Any]:
        """Yield a reader of some columns, or the table of all rows."""
        source = self._pa.csv
        stream = self._pa.input_stream(
            str(self.path), compression="gzip" if is_gzipped(self.path) else None
        )
        with stream:
            yield (source.read_csv if whole else source.open_csv)(
                stream,
                source.ReadOptions(
                    block_size=_BLOCK_BYTES,
                    skip_rows=self._look.lines_of_header,
                    column_names=list(self.names),
                ),
                source.ParseOptions(delimiter=self._look.delimiter, newlines_in_values=True),
                source.ConvertOptions(
                    column_types=dict(types),
                    include_columns=list(names),
                    strings_can_be_null=True,
                    null_values=list(MISSING_VALUES),
                    true_values=["True", "TRUE", "true"],
                    false_values=["False", "FALSE", "false"],
                ),
            )

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise errors that name the place in the file."""
        try:
            yield
        except UnicodeDecodeError:
            raise InvalidInputError(_not_utf8(self.path)) from None
        except (csv.Error, *DAMAGED, self._pa.ArrowException) as error:
            said = str(error).strip().splitlines()[0].rstrip(".")
            if "invalid UTF8" in said:
                raise InvalidInputError(_not_utf8(self.path)) from None
            if cell := re.search(r"column #(\d+): .*invalid value '(.*)'", said):
                raise self._strange_cell(int(cell[1]), cell[2]) from None
            raise InvalidInputError(_no_csv(self.path, said)) from error

    def _strange_cell(self, position: int, text: str) -> InvalidInputError:
        """Return the error for a cell of another kind than those of the first rows."""
        with open_text(self.path) as file:
            reader = csv.reader(file, delimiter=self._look.delimiter)
            lines = (reader.line_num for row in reader if row[position : position + 1] == [text])
            place = f"line {next(lines, '?')}"
        return InvalidInputError(
            f"{self.path}: the column {self.names[position]!r} must hold the same kind of cells "
            f"in all rows. Got {text!r} in {place}, unlike the first rows. Correct the cell, or "
            "leave it empty."
        )


# ---- delimiter and names -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Look:
    """Delimiter, names and header of a file, by its first rows."""

    delimiter: str
    names: tuple[str, ...]
    has_header: bool
    has_rows: bool
    lines_of_header: int
    line_length: int
    codes: frozenset[str] = frozenset()


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
    rows = found[delimiter]
    if not rows:
        raise InvalidInputError(
            f"{path.name} must name its columns in line 1. It holds blank lines only."
        )
    has_header = _has_header(rows, known)
    names = _names(rows[0]) if has_header else _given_names(path, len(rows[0]), known)
    refuse_duplicates(names, path)
    lines_of_header, line_length = _measure_header(path, delimiter)
    body = rows[has_header:]
    codes = (
        name
        for name, cells in zip(names, zip(*body, strict=False), strict=False)
        if any(_CODE.fullmatch(cell.strip()) for cell in cells)
    )
    return _Look(
        delimiter,
        tuple(names),
        has_header,
        len(body) > 0,
        lines_of_header if has_header else 0,
        line_length,
        frozenset(codes),
    )


def _first_rows(path: Path, delimiter: str) -> list[list[str]]:
    """Return the first rows of a file that are not blank, as a delimiter divides them."""
    with open_text(path) as file:  # any end of a line ends one
        rows = filter(None, csv.reader(file, delimiter=delimiter))
        first = list(islice(rows, 1))
        n_rows = max(2, min(_LOOKED_AT, 100_000 // len(first[0]))) if first else 1
        return first + list(islice(rows, n_rows - 1))


def _measure_header(path: Path, delimiter: str) -> tuple[int, int]:
    """Return the lines that the first row takes, and the length of the line below."""
    with open_text(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        next(filter(None, reader))
        return reader.line_num, len(next(file, ""))


def _delimiter(found: dict[str, list[list[str]]]) -> str:
    """Return the one that divides all rows alike; else that of most cells in the first row."""
    for delimiter, rows in found.items():  # the comma last: it may be a decimal sign
        if rows and len(rows[0]) > 1 and {len(row) for row in rows} == {len(rows[0])}:
            return delimiter
    return max(reversed(found), key=lambda each: len((found[each] or [[]])[0]))


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
    """Refuse rows of another length, before any is read, with the line."""
    with open_text(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        for row in reader:
            if row and len(row) != n_columns:
                raise InvalidInputError(
                    f"{path.name}: line {reader.line_num} must have {n_columns} cells, as line 1 "
                    f"has. Got {len(row)}. Correct the line; text with a {delimiter!r} in it needs "
                    "quotes."
                )


# ---- numbers -----------------------------------------------------------------------------------


def _without_times(kind: Any) -> Any:
    """Return a type; text for times of a day, which are no dates."""
    import pyarrow as pa

    return pa.string() if pa.types.is_time(kind) else kind


def _as_numbers(table: Any, spelling: Mapping[str, str]) -> Any:
    """Return a table with numbers in place of what spells them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, spelt in spelling.items():
        _, deleted, point = _SPELLINGS[spelt]
        cells = pc.utf8_trim_whitespace(table[name])
        for sign in deleted:
            cells = pc.replace_substring(cells, sign, "")
        numbers = pc.replace_substring(cells, point, ".").cast(pa.float64())
        table = table.set_column(table.column_names.index(name), name, numbers)
    return table


def _as_integers(table: Any, names: Iterable[str]) -> Any:
    """Return a table with integers in columns that hold nothing else."""
    import pyarrow as pa

    for name in names:
        column = table[name]
        if pa.types.is_floating(column.type) and column.null_count == 0:
            with suppress(pa.ArrowInvalid):  # a fraction
                table = table.set_column(
                    table.column_names.index(name), name, column.cast(pa.int64())
                )
    return table


def _signs(table: Any, spelling: Mapping[str, str]) -> list[str]:
    """Return words on the decimal signs, and on those between thousands."""
    import pyarrow as pa

    floats = [column for column in table.columns if pa.types.is_floating(column.type)]
    with np.errstate(invalid="ignore"):  # infinite ones are refused later
        signs = {"."} if any((np.asarray(column) % 1 > 0).any() for column in floats) else set()
    signs |= {","} if "," in spelling.values() else set()
    words = [f"decimal {' and '.join(map(repr, sorted(signs)))}"] if signs else []
    return words + ["',' between thousands"] * ("thousands" in spelling.values())


# ---- errors ------------------------------------------------------------------------------------


def _no_csv(path: Path, said: str) -> str:
    return f"{path.name} must be a CSV file. Got: {said}."


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
