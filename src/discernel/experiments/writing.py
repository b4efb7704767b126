"""Files as the commands write them: whole or not at all, and CSV that is safe to open."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from discernel.writing import check_place, drafted, make_folder_of, refuse_same_file, write_file

__all__ = ["check_place", "csv_text", "drafted", "make_folder_of", "refuse_same_file", "write_file"]

#: What a spreadsheet takes for the beginning of a formula, behind apostrophes or not.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


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
    >>> from discernel.experiments.writing import csv_text
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
