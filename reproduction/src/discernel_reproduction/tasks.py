"""Rows as the papers chose and split them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.compare.plan import Cell
from discernel.compare.tasks import TrainTestSplit, draw_rows, make_split, read, split_rows
from discernel.datasets import Dataset
from discernel.exceptions import InvalidInputError, unknown_choice

#: The groups of Figure 1 of Yeung 2006: centre, points, class.
_GROUPS = (
    ((0.0, 2.0), 100, 0),
    ((0.0, -2.0), 100, 0),
    ((-2.0, 0.0), 100, 1),
    ((2.0, 0.0), 100, 1),
    ((0.0, 0.0), 100, 2),
)


def five_groups() -> Dataset:
    """Return 500 points of three classes in five round groups that form a cross.

    The groups above and below are one class, those left and right another, and the middle group is
    the third. The paper prints neither centres nor widths; here the centres are 2 apart and the
    standard deviation is 0.35, so that the groups nearly touch.
    """
    rng = np.random.default_rng(0)
    X = np.concatenate([0.35 * rng.standard_normal((n, 2)) + center for center, n, _ in _GROUPS])
    y = np.concatenate([np.full(n, label) for _, n, label in _GROUPS])
    return Dataset("five_groups", X, y, ("x", "y"), "Five groups of points, a cross", "made here")


def load_split(cell: Cell) -> TrainTestSplit:
    """Return the split of a cell; it is the same for all methods.

    Options of the data are ``rows``, a number of random rows; ``classes``, the classes to keep;
    ``per_class``, a number of rows of each class, drawn for every split, or with ``end`` the
    ``"first"`` or the ``"last"`` rows of each class; ``cuts``, limits that turn a numeric target
    into classes; and ``scaled_together``, whether scaling is learned on all rows before the split.
    """
    data = five_groups() if cell.data.name == "five_groups" else read(cell.data)
    y, rows, options = np.asarray(data.y), np.arange(len(data.y)), cell.data.options
    if "cuts" in options:
        y = np.digitize(y, options["cuts"])
    if "classes" in options:
        rows = rows[_members(y, options["classes"])]
    if "per_class" in options:
        rows = _some_of_each_class(rows, y, cell)
    rows = draw_rows(rows, y, cell.data)
    train, test = split_rows(rows, y, cell, data.train)
    known = rows if options.get("scaled_together", False) else train
    return make_split(cell, data, y, known, train, test)


def _members(y: NDArray[Any], classes: Sequence[Any]) -> NDArray[np.bool_]:
    """Return a mask of the rows of some classes, or raise an error for unknown classes."""
    known = np.unique(y).tolist()
    unknown = [label for label in classes if label not in known]
    if unknown:
        raise InvalidInputError(
            f"The option 'classes' must name classes of the data: {known}. Got {unknown} too."
        )
    return np.isin(y, np.asarray(classes, dtype=y.dtype))


def _some_of_each_class(rows: NDArray[np.intp], y: NDArray[Any], cell: Cell) -> NDArray[np.intp]:
    """Return at most n rows of each class: random in every split, or the first or last."""
    n, end = int(cell.data.options["per_class"]), cell.data.options.get("end")
    if end not in (None, "first", "last"):
        raise unknown_choice("end", end, ["first", "last"])
    generator = np.random.default_rng(cell.splits.seed + cell.repetition)
    of_classes = [rows[y[rows] == label] for label in np.unique(y[rows])]
    if end is None:
        of_classes = [generator.permutation(found) for found in of_classes]
    return np.concatenate([found[-n:] if end == "last" else found[:n] for found in of_classes])
