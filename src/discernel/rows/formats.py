"""File formats: extensions, compressed text, size limits, column names."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from discernel.arrays import memory_limit
from discernel.exceptions import InvalidInputError, needs_extra

#: Extensions of text files, which may be compressed.
TEXT = (".csv", ".tsv")
#: The formats that can be read, by file extension.
FORMATS = {
    **{".csv": "CSV", ".tsv": "TSV", ".parquet": "Parquet"},
    **{".arrow": "Arrow", ".feather": "Feather", ".npz": "NPZ"},
}
ENDINGS = tuple(FORMATS)
ENDINGS_IN_WORDS = f"{', '.join(ENDINGS)}, .csv.gz or .tsv.gz"
MAX_COLUMNS = 100_000
#: Exceptions for files or compressed text that cannot be read.
DAMAGED = (EOFError, OSError, zlib.error)


def is_gzipped(path: Path) -> bool:
    """Whether the name of a file is that of a gzipped text file, such as ``rows.csv.gz``."""
    return path.suffix.lower() == ".gz" and Path(path.stem).suffix.lower() in TEXT


def file_ending(path: Path) -> str:
    """Return the extension that names the format: ``.csv`` for ``rows.csv.gz``.

    Parameters
    ----------
    path : Path
        A file, which need not exist. ``.pq`` is returned as ``.parquet``.
    """
    ending = Path(path.stem).suffix.lower() if is_gzipped(path) else path.suffix.lower()
    return ".parquet" if ending == ".pq" else ending


def file_stem(path: Path) -> str:
    """Return the name of a file without its extension: ``rows`` for ``rows.csv.gz``."""
    return Path(path.stem).stem if is_gzipped(path) else path.stem


def file_stamp(path: Path, name: str | None = None) -> tuple[int, int]:
    """Return the modification time and size of a file, or raise an error if it is empty.

    Parameters
    ----------
    path : Path
        The file.
    name : str, optional
        The name of the file for the error message; by default its path.
    """
    facts = path.stat()
    if facts.st_size == 0:
        raise InvalidInputError(
            f"{name or path} must not be empty. Got 0 bytes. Write the file again, or leave it out."
        )
    return facts.st_mtime_ns, facts.st_size


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading bytes, decompressed if its name ends with ``.gz``."""
    return gzip.open(path) if is_gzipped(path) else path.open("rb")  # type: ignore[return-value]


def open_text(path: Path) -> TextIO:
    """Open a UTF-8 text file for reading, decompressed, with its line endings unchanged."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="")


def uncompressed_size(path: Path) -> int:
    """Return the size of a file in bytes; for compressed text, the uncompressed size.

    The last four bytes of a gzip file store the uncompressed size, modulo 4 GiB.
    """
    size = path.stat().st_size
    if not is_gzipped(path) or size < 4:
        return size
    with path.open("rb") as file:
        file.seek(-4, io.SEEK_END)
        return max(size, int.from_bytes(file.read(), "little"))


def check_file(path: Path) -> tuple[int, int]:
    """Return `file_stamp` of a file, or raise an error if it is not a readable data file."""
    if file_ending(path) not in ENDINGS:
        raise InvalidInputError(
            f"A data file must end with {ENDINGS_IN_WORDS}. Got {str(path)!r}. Save the table "
            "as CSV, with the column names in the first line."
        )
    if not path.is_file():
        found = "is a folder" if path.is_dir() else "does not exist"
        raise InvalidInputError(f"The data must be a file. {str(path)!r} {found}.")
    return file_stamp(path, path.name)


def import_pandas(need: str = "Reading files needs pandas") -> Any:
    """Return the module pandas, or raise an error that names the extra to install."""
    with needs_extra(need, "app"):
        import pandas as pd
    return pd


def import_arrow() -> Any:
    """Return the module pyarrow with its readers, or raise an error that names the extra."""
    import_pandas()
    with needs_extra("Reading files needs pyarrow", "app"):
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    return pyarrow


def check_size(path: Path, n_rows: int, n_columns: int) -> None:
    """Raise an error if a table has too many columns or would not fit into memory."""
    if n_columns > MAX_COLUMNS:
        raise InvalidInputError(
            f"A file must have at most {MAX_COLUMNS:,} columns. {path.name} has {n_columns:,}, "
            f"which take {_memory(8 * n_rows * n_columns)} as numbers. Select or aggregate columns "
            "first, or compute kernel matrices and pass them as precomputed kernels."
        )
    check_bytes(path, 8 * n_rows * n_columns)


def check_bytes(path: Path, n_bytes: int) -> None:
    """Raise an error if a table of this size would not fit into memory three times."""
    memory = memory_limit()
    # The table, its features and one split of the features are in memory at the same time.
    if memory is not None and 3 * n_bytes > memory:
        raise InvalidInputError(
            f"{path.name} must fit into memory three times: about {_memory(3 * n_bytes)}. This "
            f"machine has {_memory(memory)}. Select fewer rows or columns."
        )


def _memory(n_bytes: float) -> str:
    """Return a number of bytes with a unit."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.3g} TB"


def view_slices(views: Mapping[str, int]) -> dict[str, slice]:
    """Return a slice of columns per view, for views side by side in one table.

    Parameters
    ----------
    views : mapping of str to int
        The number of columns of each view, in order.
    """
    ends = list(accumulate(views.values()))
    return {
        view: slice(end - size, end) for (view, size), end in zip(views.items(), ends, strict=True)
    }


def numbered_columns(sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Return numbered column names, such as ``x0`` and ``x1`` for a view called ``x``.

    Parameters
    ----------
    sizes : mapping of str to int
        The number of columns of each view, in order.
    """
    pairs = [(view, index) for view, size in sizes.items() for index in range(size)]
    names = tuple(f"{view}{index}" for view, index in pairs)
    if len(set(names)) < len(names):  # as for the views v1 and v11, which would share v110
        return tuple(f"{view}[{index}]" for view, index in pairs)
    return names


def refuse_duplicates(names: Sequence[str], where: str) -> None:
    """Raise an error if two columns of a table have the same name."""
    if len(set(names)) == len(names):
        return
    first: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if name in first:
            raise InvalidInputError(
                f"{where}: column names must be unique. Columns {first[name]} and {position} "
                f"are both called {name!r}. Rename one."
            )
        first[name] = position
