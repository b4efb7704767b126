"""What all readers of files share: endings, compressed text, missing values, stamps."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import BinaryIO, TextIO

from discernel.exceptions import InvalidInputError

__all__ = [
    "MISSING_VALUES",
    "file_ending",
    "file_stamp",
    "file_stem",
    "is_gzipped",
    "open_bytes",
    "open_text",
    "uncompressed_size",
]

#: What stands for a missing value in text.
MISSING_VALUES = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "?")
#: Endings of text, which may be compressed.
_TEXT = (".csv", ".tsv")


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
        What it is called in the error; its path by default.
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
