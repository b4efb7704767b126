"""A file to a table: CSV, Parquet, or an NPZ of views.

What cannot be read, or would not fit into memory, is refused before it is read.
"""

from __future__ import annotations

import csv
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from discernel.exceptions import InvalidInputError, missing_extra
from discernel.machine import memory_limit

__all__ = ["ENDINGS", "check_file", "import_pandas", "listed", "printable", "read_table"]

#: Endings of the files that can be read.
ENDINGS = (".csv", ".parquet", ".npz")
#: What stands for a missing value in a CSV file.
MISSING_VALUES = ("", "NA", "N/A", "NaN", "nan", "null", "?")
MAX_COLUMNS = 100_000


def check_file(path: Path) -> tuple[int, int]:
    """Return what changes when the file does, or raise where it is no file we can read."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InvalidInputError(
            f"A data file must end with {', '.join(ENDINGS)}. Got {str(path)!r}. Save the table "
            "as CSV, with a line of column names."
        )
    if not path.is_file():
        found = "is a folder" if path.is_dir() else "does not exist"
        raise InvalidInputError(f"The data must be a file. {str(path)!r} {found}.")
    facts = path.stat()
    if facts.st_size == 0:
        raise InvalidInputError(f"{path.name} must hold data. It is empty: 0 bytes.")
    return facts.st_mtime_ns, facts.st_size


def read_table(
    path: Path, as_written: Callable[[str], bool] = lambda name: False
) -> tuple[Any, dict[str, tuple[str, ...]]]:
    """Return all columns of a file as a DataFrame, and the columns of each view, if any.

    Parameters
    ----------
    path : Path
        The file.
    as_written : callable, optional
        Whether the column of a name holds labels or categories. They are read as text where a
        number with a fraction could not hold them: whole numbers in a column with gaps would lose
        digits.
    """
    check_file(path)
    if path.suffix.lower() == ".npz":
        return _read_npz(path)
    read = _read_csv if path.suffix.lower() == ".csv" else _read_parquet
    return read(path, as_written), {}


def import_pandas() -> Any:
    """Return the module pandas, or raise an error that names the extra."""
    try:
        import pandas as pd
    except ImportError as error:
        raise missing_extra("Reading files needs pandas", "app") from error
    return pd


# ---- CSV ---------------------------------------------------------------------------------------


def _read_csv(path: Path, as_written: Callable[[str], bool]) -> Any:
    pd = import_pandas()
    header, delimiter = _csv_header(path)
    try:
        _check_csv_rows(path, delimiter, len(header))
        return pd.read_csv(
            path,
            sep=delimiter,
            header=0,
            names=header,
            index_col=False,
            encoding="utf-8-sig",
            keep_default_na=False,
            na_values=list(MISSING_VALUES),
            low_memory=False,
            dtype={name: str for name in header if as_written(name)},
        )
    except UnicodeDecodeError:
        raise InvalidInputError(_not_utf8(path)) from None
    except (csv.Error, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InvalidInputError(_no_csv(path, error)) from error


def _csv_header(path: Path) -> tuple[list[str], str]:
    """Return column names and delimiter, from the first lines alone."""
    found = {}
    try:
        for delimiter in ",;\t":
            # A wrong one makes one cell of a line, which may be longer than the reader takes.
            with suppress(csv.Error):
                found[delimiter] = _first_rows(path, delimiter)
    except UnicodeDecodeError:
        raise InvalidInputError(_not_utf8(path)) from None
    if not found:
        raise InvalidInputError(_no_csv(path, "a name of a column that does not end"))
    delimiter = max(found, key=lambda each: len(found[each][0]))
    cells, second = found[delimiter]
    if not cells:
        raise InvalidInputError(
            f"{path.name} must name its columns in line 1. It holds blank lines only."
        )
    header = [re.sub(r"\s*[\r\n]+\s*", " ", cell).strip() for cell in cells]
    # A row as long as the first one; a digit and a delimiter a cell at least.
    n_rows = path.stat().st_size // max(2 * len(header), second)
    _check_size(path, n_rows, len(header))
    if header and all(_is_number(cell) for cell in header):
        raise InvalidInputError(
            f"{path.name}: line 1 must name the columns. Got numbers: {listed(header, 3)}. Put a "
            "line of names, one of them 'target', on top."
        )
    header = [cell or f"column {index}" for index, cell in enumerate(header, start=1)]
    _refuse_duplicates(header, path)
    return header, delimiter


def _first_rows(path: Path, delimiter: str) -> tuple[list[str], int]:
    """Return the cells of the first row that is not blank, and the length of the next line."""
    with path.open(newline="", encoding="utf-8-sig") as file:  # any end of a line ends one
        cells = next(filter(None, csv.reader(file, delimiter=delimiter)), [])
        return cells, len(next(file, ""))


def _check_csv_rows(path: Path, delimiter: str, n_columns: int) -> None:
    """Refuse rows of another length: pandas would fill the short ones up without a word."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter=delimiter)
        for row in reader:
            if row and len(row) != n_columns:
                raise InvalidInputError(
                    f"{path.name}: line {reader.line_num} must have {n_columns} cells, as line 1 "
                    f"has. Got {len(row)}. Correct the line; text with a {delimiter!r} in it needs "
                    "quotes."
                )


def _no_csv(path: Path, error: object) -> str:
    return f"{path.name} must be a CSV file. Got: {str(error).strip().rstrip('.')}."


def _not_utf8(path: Path) -> str:
    with path.open("rb") as file:
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


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


# ---- Parquet -----------------------------------------------------------------------------------


def _read_parquet(path: Path, as_written: Callable[[str], bool]) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise missing_extra("Reading Parquet needs pyarrow", "app") from error
    import_pandas()
    try:
        with pq.ParquetFile(path) as file:
            _check_size(path, file.metadata.num_rows, len(file.schema_arrow.names))
            _refuse_duplicates(file.schema_arrow.names, path)
            table = file.read()
            frame = table.to_pandas().reset_index(drop=True)
            for column in table.schema:
                exact = as_written(column.name) and pa.types.is_integer(column.type)
                if exact and column.name in frame:
                    frame[column.name] = table[column.name].cast(pa.string()).to_pandas()
            return frame
    except (pa.ArrowException, OSError) as error:
        raise InvalidInputError(f"{path.name} must be a Parquet file. Got: {error}.") from error


# ---- NPZ ---------------------------------------------------------------------------------------


def _read_npz(path: Path) -> tuple[Any, dict[str, tuple[str, ...]]]:
    pd = import_pandas()
    try:
        with zipfile.ZipFile(path) as archive:
            _check_bytes(path, sum(member.file_size for member in archive.infolist()))
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidInputError(
            f"{path.name} must be an NPZ file of numbers and text, without objects. Got: {error}. "
            "Write it with numpy.savez(path, view_a=..., view_b=..., target=...)."
        ) from error
    views = {name: array for name, array in arrays.items() if array.ndim == 2}
    _check_arrays(path, arrays, views)
    names = {
        view: tuple(f"{view}{index}" for index in range(array.shape[1]))
        for view, array in views.items()
    }
    columns = [column for of_view in names.values() for column in of_view]
    _refuse_duplicates([*columns, *(name for name in arrays if name not in views)], path)
    table = pd.DataFrame(np.hstack(list(views.values())), columns=columns)
    for name, array in arrays.items():
        if name not in views:
            table[name] = array
    return table, names if len(views) > 1 else {}


def _check_arrays(path: Path, arrays: Mapping[str, Any], views: Mapping[str, Any]) -> None:
    if not views:
        raise InvalidInputError(
            f"{path.name} must hold an array of rows and columns for each view, and a target. Got "
            f"{ {name: array.shape for name, array in arrays.items()} }."
        )
    _check_size(path, 1, sum(array.shape[1] for array in views.values()))
    deep = [name for name, array in arrays.items() if array.ndim not in (1, 2)]
    if deep:
        raise InvalidInputError(
            f"{path.name}: arrays must have one dimension (the target) or two (a view). Got "
            f"{deep[0]!r} of shape {arrays[deep[0]].shape}."
        )
    text = [name for name, array in views.items() if array.dtype.kind not in "buif"]
    if text:
        raise InvalidInputError(
            f"{path.name}: the view {text[0]!r} must hold numbers. Got {views[text[0]].dtype}."
        )
    n_rows = {name: len(array) for name, array in arrays.items()}
    if len(set(n_rows.values())) > 1:
        raise InvalidInputError(
            f"{path.name}: all arrays must have the same number of rows. Got {n_rows}."
        )


# ---- what they share ---------------------------------------------------------------------------


def _check_size(path: Path, n_rows: int, n_columns: int) -> None:
    """Refuse what would not fit, before it is read."""
    if n_columns > MAX_COLUMNS:
        raise InvalidInputError(
            f"A file must have at most {MAX_COLUMNS:,} columns. {path.name} has {n_columns:,}, "
            f"which as numbers take {_memory(8 * n_rows * n_columns)}. Select or sum up columns "
            "first, or compute kernels from them and give these as precomputed."
        )
    _check_bytes(path, 8 * n_rows * n_columns)


def _check_bytes(path: Path, n_bytes: int) -> None:
    memory = memory_limit()
    # The table, the features made of it and one division of them are held at the same time.
    if memory is not None and 3 * n_bytes > memory:
        raise InvalidInputError(
            f"{path.name} must fit into memory three times: about {_memory(3 * n_bytes)}. This "
            f"machine has {_memory(memory)}. Take some of the rows or columns."
        )


def _memory(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.3g} TB"


def _refuse_duplicates(names: Sequence[str], path: Path) -> None:
    if len(set(names)) == len(names):
        return
    first: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if name in first:
            raise InvalidInputError(
                f"{path.name}: column names must differ. Columns {first[name]} and {position} are "
                f"both called {name!r}. Rename one."
            )
        first[name] = position


#: What moves the cursor, rings, turns text round, or may not stand in XML; not the end of a line.
_CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def printable(text: str) -> str:
    r"""Return text with control characters written out, for a terminal or a page.

    Parameters
    ----------
    text : str
        Anybody's text.

    Examples
    --------
    >>> from discernel.experiments.formats import printable
    >>> print(printable("red \x1b[31m"))
    red \x1b[31m
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def listed(names: Iterable[Any], limit: int = 5) -> str:
    """Return names for a message, the first ones where there are many."""
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")
