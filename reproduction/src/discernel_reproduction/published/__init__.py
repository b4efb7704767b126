"""The numbers that the papers printed, as data.

One JSON file per paper. It holds each table in blocks of rows and columns as printed; `published`
spreads them into cells.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from discernel.exceptions import unknown_choice

__all__ = ["Printed", "PrintedTable", "papers", "published"]


@dataclass(frozen=True)
class Printed:
    """One published number.

    Attributes
    ----------
    row, column : str
        Where it stands.
    value : float
        The number.
    unit : str
        ``"accuracy_percent"``, ``"seconds"``, ``"weight"``, ...
    dataset : str
        The name of the data set, as in `discernel.datasets`.
    error : float or None
        The standard deviation printed beside it.
    note : str
        What a reader must know to compare.
    uncertain : bool
        Whether the number may have been misread, or disagrees with others of the paper.
    """

    row: str
    column: str
    value: float
    unit: str
    dataset: str
    error: float | None = None
    note: str = ""
    uncertain: bool = False


@dataclass(frozen=True)
class PrintedTable:
    """A table, a figure or a section with numbers.

    Attributes
    ----------
    id : str
        Paper and place, such as ``"kim2006-table1"``.
    title : str
        What the numbers are.
    public : bool
        Whether the data are.
    protocol : dict
        What the paper says of splits, kernels, scaling and regularisation.
    cells : tuple of Printed
        The numbers.
    """

    id: str
    title: str
    public: bool
    protocol: Mapping[str, Any]
    cells: tuple[Printed, ...]

    def cell(self, row: str, column: str) -> Printed:
        """Return the cell at a row and a column."""
        here = {(cell.row, cell.column): cell for cell in self.cells}
        if (row, column) not in here:
            known = [f"{cell.row} | {cell.column}" for cell in self.cells]
            raise unknown_choice(f"cell of {self.id}", f"{row} | {column}", known)
        return here[row, column]


def papers() -> list[str]:
    """Return the papers whose numbers are here.

    Examples
    --------
    >>> from discernel_reproduction.published import papers
    >>> papers()
    ['fung2004', 'kim2006', 'pothin2006', 'ye2008', 'yeung2006']
    """
    here = files("discernel_reproduction.published").iterdir()
    return sorted(file.name.removesuffix(".json") for file in here if file.name.endswith(".json"))


@lru_cache
def published(paper: str) -> Mapping[str, PrintedTable]:
    """Return the tables of a paper, by their ids.

    Parameters
    ----------
    paper : str
        One of `papers`.

    Examples
    --------
    >>> from discernel_reproduction.published import published
    >>> table = published("kim2006")["kim2006-table1"]
    >>> table.cell("Sonar (208, 60)", "K*").value
    84.4
    """
    if paper not in papers():
        raise unknown_choice("paper", paper, papers())
    file = files("discernel_reproduction.published") / f"{paper}.json"
    stored = json.loads(file.read_text(encoding="utf-8"))
    tables = [
        PrintedTable(
            table["id"],
            table["title"],
            table["public"],
            table["protocol"],
            tuple(cell for block in table["blocks"] for cell in _cells(block)),
        )
        for table in stored["tables"]
    ]
    return {table.id: table for table in tables}


def _cells(block: Mapping[str, Any]) -> Iterator[Printed]:
    """Yield the cells of a block; the data set stands in its rows or in its columns."""
    for row in block["rows"]:
        marks = row.get("marks", {})
        for column, stored in zip(block["columns"], row["values"], strict=True):
            value, error = stored if isinstance(stored, list) else (stored, None)
            yield Printed(
                row["name"],
                column["name"],
                value,
                column["unit"],
                row.get("dataset") or column["dataset"],
                error,
                **marks.get(column["name"], {}),
            )
