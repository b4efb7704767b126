"""Atomic writing of files: a new file is written first, then replaces the old one.

If writing fails, for example because the disk is full, the old file is unchanged.
"""

from __future__ import annotations

import csv
import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

from discernel.exceptions import FileWriteError, InvalidInputError

#: Beginnings of cells that a spreadsheet runs as formulas, with or without apostrophes before.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def write_file(path: str | Path, content: bytes) -> Path:
    """Write a file atomically and return its path.

    Parameters
    ----------
    path : str or Path
        The file.
    content : bytes
        Content.

    Raises
    ------
    FileWriteError
        If the file cannot be written; an existing file is unchanged.
    """
    with open_atomic(path) as file:
        file.write(content)
    return Path(path)


@contextmanager
def open_atomic(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for atomic writing.

    All data go to a new file in the same folder, which is synced and then replaces the old file and
    keeps its permissions. Symbolic links stay links. A path that is no regular file, such as a
    pipe, is written directly.

    Parameters
    ----------
    path : str or Path
        The file.

    Yields
    ------
    file
        Binary file. If the ``with`` block raises an error, an existing file is unchanged.

    Raises
    ------
    FileWriteError
        If the file cannot be written; an existing file is unchanged.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
        else:
            with _replacing(path.resolve()) as file:
                yield file
    except OSError as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> FileWriteError:
    """Return the error for a file that cannot be written."""
    return FileWriteError(
        f"{path} could not be written: {error.strerror or error}. An existing file is "
        "unchanged. Check disk space and permissions, or choose another file."
    )


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    if path.exists() and not os.access(path, os.W_OK):  # `replace` would not check
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    draft = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with draft.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, draft)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that the new name survives a crash; some systems cannot."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def check_writable_path(what: str, path: str | Path) -> None:
    """Raise an error if a path is a folder, or if it cannot be written, before a long fit."""
    path = Path(path)
    folder = path.resolve().parent
    if path.is_dir() or not folder.is_dir():
        raise InvalidInputError(
            f"The {what} must be a file in an existing folder. Got {str(path)!r}. Create the "
            "folder first, or choose another file."
        )
    # Regular files are replaced, in their folder; pipes are written directly.
    needed = [path] * path.exists() + [folder] * (path.is_file() or not path.exists())
    if not all(os.access(each, os.W_OK) for each in needed):
        raise _not_written(path, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


def make_parent_folder(path: str | Path) -> None:
    """Create the folder of a file, if it does not exist."""
    folder = Path(path).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileWriteError(
            f"The folder {folder} could not be created: {error.strerror or error}. Choose a file "
            "in another folder."
        ) from error


def refuse_same_file(**files: str | Path | None) -> None:
    """Raise an error if two files of a command are the same file.

    Parameters
    ----------
    **files : str, Path or None
        Path by description, with ``_`` for spaces.
    """
    given = [(what.replace("_", " "), Path(path)) for what, path in files.items() if path]
    for (first, one), (second, other) in combinations(given, 2):
        # `samefile` also follows hard and symbolic links
        exist = one.exists() and other.exists()
        if one.samefile(other) if exist else one.resolve() == other.resolve():
            raise InvalidInputError(
                f"The {first} and the {second} must be different files. Both are "
                f"{str(other)!r}, and one would overwrite the other. Choose another file for "
                f"the {second}."
            )


# ---- CSV ---------------------------------------------------------------------------------------


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    r"""Return a table as CSV that is safe to open in a spreadsheet.

    Spreadsheets run text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break as a
    formula. Such cells get an apostrophe in front, and so do cells that have apostrophes before
    such a beginning, so that removing one apostrophe restores every text. Numbers, also negative
    ones and numbers as text, are unchanged.

    Parameters
    ----------
    header : sequence of str
        The names of the columns.
    rows : iterable of sequence
        The cells.

    Examples
    --------
    >>> from discernel.rows.writing import csv_text
    >>> print(csv_text(["row", "predicted"], [[1, "=1+1"], [2, "-1"], [3, "a"]]), end="")
    row,predicted
    1,'=1+1
    2,-1
    3,a
    """
    lines: list[str] = []
    # csv quotes only characters of its line terminator, and readers may take \r or \n for one.
    writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator="\r\n")
    writer.writerow(map(_harmless, header))
    writer.writerows(map(_harmless, row) for row in rows)
    return "".join(line.removesuffix("\r\n") + "\n" for line in lines)


def _harmless(cell: Any) -> Any:
    if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell
