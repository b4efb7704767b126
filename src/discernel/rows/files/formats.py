"""What can be read: endings of files, their sizes, and words for what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from discernel.arrays import memory_limit
from discernel.exceptions import InvalidInputError, missing_extra
from discernel.rows.streams.formats import file_ending, file_stamp
from discernel.show.words import printable

__all__ = [
    "ENDINGS",
    "ENDINGS_IN_WORDS",
    "check_bytes",
    "check_file",
    "check_size",
    "import_pandas",
    "listed",
    "printable",
    "refuse_duplicates",
]

#: Endings of the files that can be read.
ENDINGS = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".npz")
#: The same in words.
ENDINGS_IN_WORDS = f"{', '.join(ENDINGS)}, .csv.gz or .tsv.gz"
MAX_COLUMNS = 100_000


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


def import_pandas() -> Any:
    """Return the module pandas, or raise an error that names the extra."""
    try:
        import pandas as pd
    except ImportError as error:
        raise missing_extra("Reading files needs pandas", "app") from error
    return pd


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


def _memory(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.3g} TB"


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
