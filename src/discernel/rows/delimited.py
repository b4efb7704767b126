"""CSV and TSV files, with automatic detection of delimiter, decimal sign, header and types.

pyarrow parses the cells. Detection uses the first rows and the standard library's reader, which
also names the line of a row with too many or too few cells. Files that would not fit into memory
are refused before they are read.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from discernel.exceptions import InvalidInputError, listed
from discernel.rows.cells import MISSING_VALUES
from discernel.rows.formats import (
    DAMAGED,
    check_size,
    import_arrow,
    is_gzipped,
    open_bytes,
    open_text,
    refuse_duplicates,
    uncompressed_size,
)

_DELIMITERS = ("\t", ";", "|", ",")
_WORDS = {"\t": "tab", ";": "';'", "|": "'|'", ",": "','"}
#: The number of rows from which delimiter, header and codes are detected.
_DETECTION_ROWS = 1000
#: The block size of pyarrow, in bytes; types are inferred from the first block.
_BLOCK_BYTES = 2**22
#: The number of bytes in which lines are counted, to estimate the number of rows.
_COUNTED_BYTES = 2**20
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?\d+,\d+|[+-]?(inf|nan)", re.I)
#: Notations of numbers that pyarrow reads as text: pattern, characters to delete, decimal sign.
_NOTATIONS = {
    "+": (re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*"), "+", "."),
    # In a comma-separated file, the quoted cell "1,234" is the number 1234.
    "thousands": (re.compile(r"\s*[+-]?\d{1,3}((,\d{3})+)?(\.\d*)?\s*"), ",+", "."),
    ",": (re.compile(r"\s*[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d*)?([eE][+-]?\d+)?\s*"), ".+", ","),
}
#: A code such as 007, which would lose its leading zeros as a number.
_CODE = re.compile(r"0\d+")


class DelimitedFile:
    """A CSV or TSV file.

    Parameters
    ----------
    path : Path
        The file, in UTF-8.
    as_text : collection of str
        Columns to read as text; names that the file does not have are ignored.
    known : sequence of sequence of str
        Lists of column names for a file without a header. The first list with as many names as
        the file has columns is used.

    Attributes
    ----------
    delimiter : str
        The character between cells.
    names : tuple of str
        The names of the columns.
    n_rows : None
        The rows of text files are not counted.
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
            self.delimiter, rows, lines_of_header = _split_rows(path)
            has_header = _has_header(rows, known)
            self.names = tuple(
                _names(rows[0]) if has_header else _given_names(path, len(rows[0]), known)
            )
            refuse_duplicates(self.names, path.name)
        self._lines_of_header = lines_of_header if has_header else 0
        body = rows[has_header:]
        self._has_rows = len(body) > 0
        codes = {
            name
            for name, cells in zip(self.names, zip(*body, strict=False), strict=False)
            if any(_CODE.fullmatch(cell.strip()) for cell in cells)
        }
        #: The columns that are read as text.
        self._text = dict.fromkeys((set(self.names) & set(as_text)) | codes, self._pa.string())
        self._how = ""

    # ---- columns -----------------------------------------------------------------------------

    @property
    def types(self) -> dict[str, Any]:
        """The type of each column, inferred from the first rows; float64 for any notation."""
        types, notations = self._inferred
        return types | dict.fromkeys(notations, self._pa.float64())

    @cached_property
    def _inferred(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Types of the columns and notations of numbers, inferred from the first rows."""
        if not self._has_rows:
            return dict.fromkeys(self.names, self._pa.null()), {}
        with self._open(self._text) as reader:
            first = self._pa.Table.from_batches([reader.read_next_batch()])
        types = {field.name: self._without_times(field.type) for field in first.schema}
        return types, self._find_notations(first)

    def _without_times(self, kind: Any) -> Any:
        """Return a type, with text in place of times of day, which have no date."""
        return self._pa.string() if self._pa.types.is_time(kind) else kind

    def _find_notations(self, table: Any) -> dict[str, str]:
        """Return the notations of numbers in columns that pyarrow reads as text, by column."""
        found = {}
        for name in table.column_names:
            column = table[name]
            if name in self._text or not self._pa.types.is_string(column.type):
                continue
            texts = [text for text in column.unique().to_pylist() if text is not None]
            for notation, (pattern, _, _) in _NOTATIONS.items():
                allowed = notation != "thousands" or self.delimiter == ","
                if allowed and texts and all(map(pattern.fullmatch, texts)):
                    found[name] = notation
                    break
        return found

    # ---- rows --------------------------------------------------------------------------------

    @property
    def estimated_n_rows(self) -> int:
        """The number of rows, estimated from the length of the first lines and the file size."""
        with self._reading(), open_bytes(self.path) as file:
            start = file.read(_COUNTED_BYTES) + file.readline(_COUNTED_BYTES)
        lines = max(1, start.count(b"\n"), start.count(b"\r"))
        return int(uncompressed_size(self.path) * lines / max(1, len(start))) - 1

    def parts(self, types: Mapping[str, Any], n_rows: int) -> Iterator[Any]:
        """Yield tables of some rows at a time.

        Parameters
        ----------
        types : mapping of str to pyarrow.DataType
            The columns to read, and their types.
        n_rows : int
            The maximum number of rows per table.
        """
        if not self._has_rows:
            return
        pa, (own, notations) = self._pa, self._inferred
        given = dict(types) | self._text | dict.fromkeys(notations, pa.string())
        whole = [name for name in types if pa.types.is_integer(own[name])]
        wanted = {name: notation for name, notation in notations.items() if name in types}
        with self._open(given, list(types)) as reader:
            for batch in reader:
                table = _as_numbers(pa.Table.from_batches([batch]), wanted)
                for first in range(0, table.num_rows, n_rows):
                    yield _as_integers(table.slice(first, n_rows), whole)

    def read(self) -> Any:
        """Return all rows as a pyarrow Table, with types inferred from all rows."""
        check_size(self.path, self.estimated_n_rows, len(self.names))
        if not self._has_rows:
            return self._pa.table({name: self._pa.nulls(0) for name in self.names})
        table = self._read_all(self._text)
        types = {field.name: self._without_times(field.type) for field in table.schema}
        if types != dict(zip(table.schema.names, table.schema.types, strict=True)):
            texts = {name: kind for name, kind in types.items() if self._pa.types.is_string(kind)}
            table = self._read_all(texts)
        notations = self._find_notations(table)
        self._how = ", ".join(_describe_signs(table, notations))
        return _as_numbers(table, notations)

    @property
    def how(self) -> str:
        """The detected delimiter, decimal sign and header, for users."""
        words = [f"delimiter {_WORDS[self.delimiter]}", *filter(None, [self._how])]
        if not self._lines_of_header:
            words.append(f"no header: columns are called {listed(self.names, 2)}")
        return ", ".join(words)

    def _read_all(self, types: Mapping[str, Any]) -> Any:
        """Return all rows as a pyarrow Table; types that are not given are inferred."""
        with self._open(types, whole=True) as table:
            return table

    @contextmanager
    def _open(
        self, types: Mapping[str, Any], names: Sequence[str] = (), *, whole: bool = False
    ) -> Iterator[Any]:
        """Yield a pyarrow reader of some columns, by default all, or the whole table."""
        source = self._pa.csv
        compression = "gzip" if is_gzipped(self.path) else None
        with (
            self._reading(),
            self._pa.input_stream(str(self.path), compression=compression) as stream,
        ):
            yield (source.read_csv if whole else source.open_csv)(
                stream,
                source.ReadOptions(
                    block_size=_BLOCK_BYTES,
                    skip_rows=self._lines_of_header,
                    column_names=list(self.names),
                ),
                source.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                source.ConvertOptions(
                    column_types=dict(types),
                    include_columns=list(names or self.names),
                    strings_can_be_null=True,
                    null_values=list(MISSING_VALUES),
                    true_values=["True", "TRUE", "true"],
                    false_values=["False", "FALSE", "false"],
                ),
            )

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Convert errors of parsers to errors that name the file, and the line if known."""
        try:
            yield
        except UnicodeDecodeError:
            raise InvalidInputError(_not_utf8(self.path)) from None
        except (csv.Error, *DAMAGED, self._pa.ArrowException) as error:
            said = str(error).strip().splitlines()[0].rstrip(".")
            if "invalid UTF8" in said:
                raise InvalidInputError(_not_utf8(self.path)) from None
            if re.search(r"Expected \d+ columns", said):
                _refuse_odd_line(self.path, self.delimiter, len(self.names))
            if cell := re.search(r"column #(\d+): .*invalid value '(.*)'", said):
                raise self._type_error(int(cell[1]), cell[2]) from None
            raise InvalidInputError(_invalid_csv(self.path, said)) from error

    def _type_error(self, position: int, text: str) -> InvalidInputError:
        """Return the error for a cell that does not fit the type of the first rows."""
        with open_text(self.path) as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            lines = (reader.line_num for row in reader if row[position : position + 1] == [text])
            place = f"line {next(lines, '?')}"
        return InvalidInputError(
            f"{self.path}: the column {self.names[position]!r} must hold the same kind of values "
            f"in all rows. Got {text!r} in {place}, unlike the first rows. Correct the cell, or "
            "leave it empty."
        )


# ---- delimiter and header ----------------------------------------------------------------------


def _split_rows(path: Path) -> tuple[str, list[list[str]], int]:
    """Return the delimiter of a file, its first rows, and the last line of the first of them.

    If there are no rows, an error is raised.
    """
    found, lines = {}, {}
    for delimiter in _DELIMITERS:
        # With a wrong delimiter a cell may be longer than the csv module allows.
        with suppress(csv.Error):
            found[delimiter], lines[delimiter] = _first_rows(path, delimiter)
    if not found:
        raise InvalidInputError(
            _invalid_csv(path, "a column name is too long, or a closing quote is missing")
        )
    delimiter = _delimiter(found)
    if not found[delimiter]:
        raise InvalidInputError(
            f"{path.name} must have column names in line 1. All its lines are blank."
        )
    return delimiter, found[delimiter], lines[delimiter]


def _first_rows(path: Path, delimiter: str) -> tuple[list[list[str]], int]:
    """Return the first rows that are not blank, split at a delimiter, and the first one's line."""
    with open_text(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        rows = filter(None, reader)
        first, line = list(islice(rows, 1)), reader.line_num
        n_rows = max(2, min(_DETECTION_ROWS, 100_000 // len(first[0]))) if first else 1
        return first + list(islice(rows, n_rows - 1)), line


def _delimiter(found: dict[str, list[list[str]]]) -> str:
    """Return the delimiter that splits all rows into equally many cells.

    If there is none, return the delimiter that splits the first row into most cells.
    """
    for delimiter, rows in found.items():  # the comma is last: it may be a decimal sign
        if rows and len(rows[0]) > 1 and {len(row) for row in rows} == {len(rows[0])}:
            return delimiter
    return max(reversed(found), key=lambda each: len((found[each] or [[]])[0]))


def _has_header(rows: list[list[str]], known: Sequence[Sequence[str]]) -> bool:
    """Whether the first row is a header: text above numbers, or not only numbers."""
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
    """Return column names from the cells of a header; empty cells are numbered."""
    names = (re.sub(r"\s*[\r\n]+\s*", " ", cell).strip() for cell in cells)
    return [name or f"column {index}" for index, name in enumerate(names, start=1)]


def _given_names(path: Path, n_columns: int, known: Sequence[Sequence[str]]) -> list[str]:
    """Return column names for a file without a header."""
    for names in known:
        if len(names) == n_columns and all(name.startswith("column ") for name in names):
            return list(names)
    if known:
        raise InvalidInputError(
            f"{path.name}: line 1 must hold column names, as in the file the model was fitted to. "
            f"Add a header, such as {listed(known[0], 4)}."
        )
    return [f"column {index}" for index in range(1, n_columns + 1)]


def _refuse_odd_line(path: Path, delimiter: str, n_columns: int) -> None:
    """Raise an error that names the first line with too many or too few cells, if any."""
    with open_text(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        for row in reader:
            if row and len(row) != n_columns:
                raise InvalidInputError(
                    f"{path.name}: line {reader.line_num} must have {n_columns} cells, like line "
                    f"1. Got {len(row)}. Correct the line; text that contains {delimiter!r} needs "
                    "quotes."
                ) from None


# ---- numbers -----------------------------------------------------------------------------------


def _as_numbers(table: Any, notations: Mapping[str, str]) -> Any:
    """Convert columns of text in some notation to numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, notation in notations.items():
        _, deleted, point = _NOTATIONS[notation]
        cells = pc.utf8_trim_whitespace(table[name])
        for sign in deleted:
            cells = pc.replace_substring(cells, sign, "")
        numbers = pc.replace_substring(cells, point, ".").cast(pa.float64())
        table = table.set_column(table.column_names.index(name), name, numbers)
    return table


def _as_integers(table: Any, names: Iterable[str]) -> Any:
    """Convert columns of floats to integers where all cells are integers and none is missing."""
    import pyarrow as pa

    for name in names:
        column = table[name]
        if pa.types.is_floating(column.type) and column.null_count == 0:
            with suppress(pa.ArrowInvalid):  # a fraction
                table = table.set_column(
                    table.column_names.index(name), name, column.cast(pa.int64())
                )
    return table


def _describe_signs(table: Any, notations: Mapping[str, str]) -> list[str]:
    """Return the decimal signs and thousands separators of a table, for users."""
    import pyarrow as pa

    floats = [column for column in table.columns if pa.types.is_floating(column.type)]
    with np.errstate(invalid="ignore"):  # infinite numbers are refused later
        signs = {"."} if any((np.asarray(column) % 1 > 0).any() for column in floats) else set()
    signs |= {","} if "," in notations.values() else set()
    words = [f"decimal {' and '.join(map(repr, sorted(signs)))}"] if signs else []
    return words + ["',' between thousands"] * ("thousands" in notations.values())


# ---- errors ------------------------------------------------------------------------------------


def _invalid_csv(path: Path, said: str) -> str:
    """Return the message for a file that cannot be parsed."""
    return f"{path.name} must be a valid CSV file. Problem: {said}."


def _not_utf8(path: Path) -> str:
    """Return the message for a file that is not UTF-8, with the first invalid byte."""
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                place = f"line {number} has the byte 0x{line[error.start]:02x}"
                break
        else:
            place = "its last character is incomplete"
    return (
        f"{path.name} must be encoded in UTF-8, but {place}. Save the file again as UTF-8 "
        "('CSV UTF-8' in a spreadsheet)."
    )
