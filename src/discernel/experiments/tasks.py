"""From plain data to rows: which data set, which rows of it train, how they are scaled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from discernel.datasets import Dataset, load
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.experiments.plan import Cell, Data, Splits
from discernel.experiments.toys import TOYS

if TYPE_CHECKING:
    from discernel.experiments.files import OpenedFile

__all__ = ["Division", "divide", "read"]


@dataclass(frozen=True, eq=False)
class Division:
    """One division of a data set.

    Attributes
    ----------
    X_train, X_test : ndarray of shape (n_rows, n_features)
        The rows, scaled.
    y_train, y_test : ndarray of shape (n_rows,)
        Their labels.
    views : dict of str to slice
        Columns of each source; empty where there is one only.
    columns : tuple of str
        The column of the data that each feature comes from; empty where that is not known.
    seed : int
        For whatever else is random in a cell.
    is_first : bool
        Whether it is the first of its kind: what is too large to be kept of all is kept of this.
    """

    X_train: NDArray[Any]
    X_test: NDArray[Any]
    y_train: NDArray[Any]
    y_test: NDArray[Any]
    views: Mapping[str, slice] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    seed: int = 0
    is_first: bool = False


def read(data: Data) -> Dataset:
    """Return the data set that is meant, or raise a clear error."""
    return _open(data).dataset if data.file else _load(data.name)


def _open(data: Data) -> OpenedFile:
    # Only `compare` makes such data; a user's file is read by its own rules.
    from discernel.experiments.files import open_file

    return open_file(name=data.name, **data.file)


def _columns(data: Data, dataset: Dataset) -> tuple[str, ...]:
    """Return the column that each feature comes from; a file is not read again."""
    return _open(data).preparation.feature_columns if data.file else dataset.feature_names


@lru_cache(maxsize=8)
def _load(name: str) -> Dataset:
    return TOYS[name]() if name in TOYS else load(name)


def divide(cell: Cell) -> Division:
    """Return the division that a cell is about; it is the same for all methods."""
    data = read(cell.data)
    X, y, rows = np.asarray(data.X), np.asarray(data.y), np.arange(len(data.y))
    options = cell.data.options
    if "cuts" in options:
        y = np.digitize(y, options["cuts"])
    if "classes" in options:
        rows = rows[_members(y, options["classes"])]
    if "per_class" in options:
        rows = _some_of_each_class(rows, y, cell)
    if "rows" in options and options["rows"] < len(rows):
        rows, _ = train_test_split(
            rows, train_size=int(options["rows"]), random_state=0, stratify=y[rows]
        )
    train, test = _parts(rows, y, cell.splits, cell.repetition, data.train)
    # Whatever is learned from the rows is learned from those that train, unless a paper did not.
    known = rows if options.get("scaled_together", False) else train
    X_train, X_test = _scale(cell.data.scaling, X[known], X[train], X[test])
    seed = cell.splits.seed + cell.repetition
    first = cell.repetition == 0
    columns = _columns(cell.data, data)
    return Division(X_train, X_test, y[train], y[test], data.views, columns, seed, is_first=first)


def _members(y: NDArray[Any], classes: Sequence[Any]) -> NDArray[np.bool_]:
    """Return which rows belong to some classes, or raise where there is no such class."""
    known = np.unique(y).tolist()
    unknown = [label for label in classes if label not in known]
    if unknown:
        raise InvalidInputError(
            f"The option 'classes' must name classes of the data: {known}. Got {unknown} too."
        )
    return np.isin(y, np.asarray(classes, dtype=y.dtype))


def _some_of_each_class(rows: NDArray[np.intp], y: NDArray[Any], cell: Cell) -> NDArray[np.intp]:
    """Return at most n rows of each class: drawn anew for every division, or from one end."""
    n, end = int(cell.data.options["per_class"]), cell.data.options.get("end")
    if end not in (None, "first", "last"):
        raise unknown_choice("end", end, ["first", "last"])
    generator = np.random.default_rng(cell.splits.seed + cell.repetition)
    of_classes = [rows[y[rows] == label] for label in np.unique(y[rows])]
    if end is None:
        of_classes = [generator.permutation(found) for found in of_classes]
    return np.concatenate([found[-n:] if end == "last" else found[:n] for found in of_classes])


def _parts(
    rows: NDArray[np.intp],
    y: NDArray[Any],
    splits: Splits,
    repetition: int,
    donor: NDArray[np.bool_] | None,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return training and held-out rows."""
    if splits.donor:
        if donor is None:
            raise InvalidInputError(
                "splits.donor asks for the training part the data came with, and these have none. "
                "Read them from the folder that DISCERNEL_DATA names, or give a train_size."
            )
        return rows[donor[rows]], rows[~donor[rows]]
    if splits.folds is not None:
        turn, fold = divmod(repetition, splits.folds)
        folds = StratifiedKFold(splits.folds, shuffle=True, random_state=splits.seed + turn)
        train, test = list(folds.split(rows, y[rows]))[fold]
        return rows[train], rows[test]
    size = splits.train_size
    train, test = train_test_split(
        rows,
        train_size=int(size) if size >= 1 else size,
        random_state=splits.seed + repetition,
        stratify=y[rows] if splits.stratify else None,
    )
    return train, test


def _scale(
    scaling: str, known: NDArray[Any], train: NDArray[Any], test: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both parts scaled as is learned on the known rows."""
    if scaling == "none":
        return train, test
    scaler = {
        "standard": StandardScaler(),
        "minmax": MinMaxScaler(),
        "symmetric": MinMaxScaler((-1, 1)),
    }[scaling].fit(known)
    return scaler.transform(train), scaler.transform(test)
