"""The numbers that the papers printed, as data.

One JSON file a paper. It names the methods, in the paper's words and in ours, and holds each
table in blocks of rows and columns as printed; `published` spreads them into cells.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from discernel.exceptions import unknown_choice

__all__ = ["Cell", "Method", "Table", "papers", "published"]


@dataclass(frozen=True)
class Method:
    """A method of a paper, and what it is here.

    Attributes
    ----------
    name : str
        The paper's name for it.
    estimator : str or None
        Where to import it from; None where there is nothing of the kind.
    criterion, solver : str or None
        What to give it under these names.
    regularization : float, str or None
        The number used, ``"joint"`` where it is learnt, ``"cv"`` where cross-validation chose it;
        None where there is none or none is stated.
    note : str
        What else matters.
    """

    name: str
    estimator: str | None
    criterion: str | None
    solver: str | None
    regularization: float | str | None
    note: str = ""


@dataclass(frozen=True)
class Cell:
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
    method : Method or None
        What gave the number; None where it is of no single method.
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
    method: Method | None = None
    error: float | None = None
    note: str = ""
    uncertain: bool = False


@dataclass(frozen=True)
class Table:
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
    cells : tuple of Cell
        The numbers.
    """

    id: str
    title: str
    public: bool
    protocol: Mapping[str, Any]
    cells: tuple[Cell, ...]

    def cell(self, row: str, column: str) -> Cell:
        """Return the cell at a row and a column.

        Parameters
        ----------
        row, column : str
            Their names.
        """
        here = {(cell.row, cell.column): cell for cell in self.cells}
        if (row, column) not in here:
            known = [f"{cell.row} | {cell.column}" for cell in self.cells]
            raise unknown_choice(f"cell of {self.id}", f"{row} | {column}", known)
        return here[row, column]


def papers() -> list[str]:
    """Return the papers whose numbers are here.

    Examples
    --------
    >>> from discernel.experiments.published import papers
    >>> papers()
    ['fung2004', 'kim2006', 'pothin2006', 'ye2008', 'yeung2006']
    """
    here = files("discernel.experiments.published").iterdir()
    return sorted(file.name.removesuffix(".json") for file in here if file.name.endswith(".json"))


@lru_cache
def published(paper: str) -> Mapping[str, Table]:
    """Return the tables of a paper, by their ids.

    Parameters
    ----------
    paper : str
        One of `papers`.

    Examples
    --------
    >>> from discernel.experiments.published import published
    >>> table = published("kim2006")["kim2006-table1"]
    >>> table.cell("Sonar (208, 60)", "K*").value
    84.4
    """
    if paper not in papers():
        raise unknown_choice("paper", paper, papers())
    file = files("discernel.experiments.published") / f"{paper}.json"
    stored = json.loads(file.read_text(encoding="utf-8"))
    methods = {name: Method(name, **facts) for name, facts in stored["methods"].items()}
    tables = [
        Table(
            table["id"],
            table["title"],
            table["public"],
            table["protocol"],
            tuple(cell for block in table["blocks"] for cell in _cells(block, methods)),
        )
        for table in stored["tables"]
    ]
    return {table.id: table for table in tables}


def _cells(block: Mapping[str, Any], methods: Mapping[str, Method]) -> Iterator[Cell]:
    """Yield the cells of a block; data set and method stand in its rows or in its columns."""
    for row in block["rows"]:
        marks = row.get("marks", {})
        for column, stored in zip(block["columns"], row["values"], strict=True):
            value, error = stored if isinstance(stored, list) else (stored, None)
            method = row.get("method", column.get("method"))
            yield Cell(
                row["name"],
                column["name"],
                value,
                column["unit"],
                row.get("dataset") or column["dataset"],
                None if method is None else methods[method],
                error,
                **marks.get(column["name"], {}),
            )
