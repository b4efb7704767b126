"""The one way in which files are written: beside the old one first, then in its place.

A file that a user has is never half of a new one: what cannot be written whole, for want of room
or of rights, leaves it as it was.
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

#: What a spreadsheet takes for the beginning of a formula, behind apostrophes or not.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def write_file(path: str | Path, content: bytes) -> Path:
    """Write a file whole or not at all, and return its path.

    Parameters
    ----------
    path : str or Path
        The file.
    content : bytes
        All that it is to hold.

    Raises
    ------
    FileWriteError
        If it cannot be written. The old file, if any, is as it was.
    """
    with drafted(path) as file:
        file.write(content)
    return Path(path)


@contextmanager
def drafted(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file to be written whole or not at all, be it a part at a time.

    What is written goes to a new file in the same folder, to the disk, and then takes the place of
    the old file, whose rights it keeps. A link stays a link. What is no file, such as a pipe, is
    written to as it is.

    Parameters
    ----------
    path : str or Path
        The file.

    Yields
    ------
    file
        Open for bytes. If what is done with it fails, the old file is as it was.

    Raises
    ------
    FileWriteError
        If it cannot be written. The old file, if any, is as it was.
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
        raise FileWriteError(
            f"{path} could not be written: {error.strerror or error}. What was there before is as "
            "it was. See that there is room and that you may write there, or name another file."
        ) from error


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    if path.exists() and not os.access(path, os.W_OK):  # replacing would not ask
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
    """Bring the new name to the disk, where the system lets folders be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def check_place(what: str, path: str | Path) -> None:
    """Raise, before any work, where a file could not be written for want of a folder."""
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInputError(
            f"The {what} must be a file in a folder that is there. Got {str(path)!r}. Make its "
            "folder first, or name a file in it."
        )


def make_folder_of(path: str | Path) -> None:
    """Make the folder that a file is to lie in."""
    folder = Path(path).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileWriteError(
            f"The folder {folder} could not be made: {error.strerror or error}. Name a file in "
            "another folder."
        ) from error


def refuse_same_file(**files: str | Path | None) -> None:
    """Raise, before any work, where two of the files that a command is given are one.

    Parameters
    ----------
    **files : str, Path or None
        What each is, with ``_`` for a space, and where.
    """
    given = [(what.replace("_", " "), Path(path)) for what, path in files.items() if path]
    for (first, one), (second, other) in combinations(given, 2):
        if _same(one, other):
            raise InvalidInputError(
                f"The {first} and the {second} must be different files. Both are "
                f"{str(other)!r}, and one would overwrite the other. Name another {second}."
            )


def _same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)  # knows links of both kinds
    return one.resolve() == other.resolve()


# ---- CSV ---------------------------------------------------------------------------------------


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    r"""Return a table as CSV that is safe to open in a spreadsheet.

    A spreadsheet runs a cell of text that begins with ``=``, ``+``, ``-``, ``@``, a tab or the
    end of a line as a formula. Such a cell gets an apostrophe in front, and so does one that has
    apostrophes before such a beginning, so that taking one away gives every text back. Numbers,
    negative ones too, are written as they are, whether they are numbers or text.

    Parameters
    ----------
    header : sequence of str
        The names of the columns.
    rows : iterable of sequence
        The cells.

    Examples
    --------
    >>> from discernel.show.writing import csv_text
    >>> print(csv_text(["row", "predicted"], [[1, "=1+1"], [2, "-1"], [3, "a"]]), end="")
    row,predicted
    1,'=1+1
    2,-1
    3,a
    """
    lines: list[str] = []
    # Only what ends a line for the writer is quoted by it, and both of these end one for readers.
    writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator="\r\n")
    writer.writerow(map(_harmless, header))
    writer.writerows(map(_harmless, row) for row in rows)
    return "".join(line.removesuffix("\r\n") + "\n" for line in lines)


def _harmless(cell: Any) -> Any:
    if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell
