"""Formats of files: endings, compressed text, sizes, names of columns."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import memory_limit
from discernel.exceptions import InvalidInputError, missing_extra

#: Endings of text, which may be compressed.
_TEXT = (".csv", ".tsv")
#: The formats of the files that can be read, by ending.
FORMATS = {
    **{".csv": "CSV", ".tsv": "TSV", ".parquet": "Parquet"},
    **{".arrow": "Arrow", ".feather": "Feather", ".npz": "NPZ"},
}
ENDINGS = tuple(FORMATS)
ENDINGS_IN_WORDS = f"{', '.join(ENDINGS)}, .csv.gz or .tsv.gz"
MAX_COLUMNS = 100_000
#: What is raised for files, or compressed text, that cannot be read.
DAMAGED = (EOFError, OSError, zlib.error)


def is_gzipped(path: Path) -> bool:
    """Whether a file is text that is compressed with gzip, by its name."""
    return path.suffix.lower() == ".gz" and Path(path.stem).suffix.lower() in _TEXT


def file_ending(path: Path) -> str:
    """Return the ending that says what a file holds: ``.csv`` for ``rows.csv.gz``.

    Parameters
    ----------
    path : Path
        A file, which need not be there. Both endings of Parquet files are ``.parquet``.
    """
    ending = Path(path.stem).suffix.lower() if is_gzipped(path) else path.suffix.lower()
    return ".parquet" if ending == ".pq" else ending


def file_stem(path: Path) -> str:
    """Return the name of a file without its ending: ``rows`` for ``rows.csv.gz``."""
    return Path(path.stem).stem if is_gzipped(path) else path.stem


def file_stamp(path: Path, name: str | None = None) -> tuple[int, int]:
    """Return what changes when a file does, or raise an error where it has no bytes.

    Parameters
    ----------
    path : Path
        The file.
    name : str, optional
        The name for the error; the path by default.
    """
    facts = path.stat()
    if facts.st_size == 0:
        raise InvalidInputError(
            f"{name or path} must hold data. It is empty: 0 bytes. Write it again, or leave it out."
        )
    return facts.st_mtime_ns, facts.st_size


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading, decompressed."""
    return gzip.open(path) if is_gzipped(path) else path.open("rb")  # type: ignore[return-value]


def open_text(path: Path) -> TextIO:
    """Open a file of text in UTF-8 for reading, decompressed, with the ends of its lines."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="")


def uncompressed_size(path: Path) -> int:
    """Return the bytes of a file; of compressed text, those that its end says it has."""
    size = path.stat().st_size
    if not is_gzipped(path) or size < 4:
        return size
    with path.open("rb") as file:
        file.seek(-4, io.SEEK_END)
        return max(size, int.from_bytes(file.read(), "little"))


def check_file(path: Path) -> tuple[int, int]:
    """Return what changes when the file does, or raise where it is no file we can read."""
    if file_ending(path) not in ENDINGS:
        raise InvalidInputError(
            f"A data file must end with {ENDINGS_IN_WORDS}. Got {str(path)!r}. Save the table "
            "as CSV, with a line of column names."
        )
    if not path.is_file():
        found = "is a folder" if path.is_dir() else "does not exist"
        raise InvalidInputError(f"The data must be a file. {str(path)!r} {found}.")
    return file_stamp(path, path.name)


def import_pandas(need: str = "Reading files needs pandas") -> Any:
    """Return the module pandas, or raise an error that says what needs it and names the extra."""
    try:
        import pandas as pd
    except ImportError as error:
        raise missing_extra(need, "app") from error
    return pd


def import_arrow() -> Any:
    """Return the module pyarrow with its readers, or raise an error that names the extra."""
    import_pandas()
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise missing_extra("Reading files needs pyarrow", "app") from error
    return pyarrow


def check_size(path: Path, n_rows: int, n_columns: int) -> None:
    """Refuse what would not fit, before it is read."""
    if n_columns > MAX_COLUMNS:
        raise InvalidInputError(
            f"A file must have at most {MAX_COLUMNS:,} columns. {path.name} has {n_columns:,}, "
            f"which as numbers take {_memory(8 * n_rows * n_columns)}. Select or sum up columns "
            "first, or compute kernels from them and give these as precomputed."
        )
    check_bytes(path, 8 * n_rows * n_columns)


def check_bytes(path: Path, n_bytes: int) -> None:
    """Refuse a table of so many bytes where it would not fit into memory."""
    memory = memory_limit()
    # The table, the features made of it and one division of them are held at the same time.
    if memory is not None and 3 * n_bytes > memory:
        raise InvalidInputError(
            f"{path.name} must fit into memory three times: about {_memory(3 * n_bytes)}. This "
            f"machine has {_memory(memory)}. Take some of the rows or columns."
        )


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of an NPZ file by name, or raise a clear error."""
    try:
        with zipfile.ZipFile(path) as archive:
            check_bytes(path, sum(member.file_size for member in archive.infolist()))
        with np.load(path, allow_pickle=False) as stored:
            return dict(stored)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidInputError(
            f"{path.name} must be an NPZ file of numbers and text, without objects. Got: {error}. "
            "Write it with numpy.savez(path, view_a=..., view_b=..., target=...)."
        ) from error


def _memory(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.3g} TB"


def view_slices(views: Mapping[str, int]) -> dict[str, slice]:
    """Return the columns of each view, of views side by side.

    Parameters
    ----------
    views : mapping of str to int
        How many columns each view has, in their order.
    """
    ends = list(accumulate(views.values()))
    return {
        view: slice(end - size, end) for (view, size), end in zip(views.items(), ends, strict=True)
    }


def numbered_columns(sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Return names for columns that have none: ``x0``, ``x1``; of views side by side, of each.

    Parameters
    ----------
    sizes : mapping of str to int
        How many columns each view has, in their order.
    """
    pairs = [(view, index) for view, size in sizes.items() for index in range(size)]
    names = tuple(f"{view}{index}" for view, index in pairs)
    if len(set(names)) < len(names):  # as of v1 and v11, which both have a v110
        return tuple(f"{view}[{index}]" for view, index in pairs)
    return names


def refuse_duplicates(names: Sequence[str], path: Path) -> None:
    """Refuse a file in which two columns have one name."""
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


def listed(names: Iterable[Any], limit: int = 5) -> str:
    """Return names for a message, the first ones where there are many."""
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")
