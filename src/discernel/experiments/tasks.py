"""From plain data to rows: which data set, which rows of it train, how they are scaled."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from discernel.datasets import Dataset, load
from discernel.exceptions import InvalidInputError, LeftOutColumnWarning, unknown_choice
from discernel.experiments.plan import Cell, Data, Splits
from discernel.experiments.toys import TOYS
from discernel.tables import TableEncoder
from discernel.tables.cells import is_plain

__all__ = ["Division", "divide", "encoded_views", "read"]


@dataclass(frozen=True, eq=False)
class Division:
    """One division of a data set.

    Attributes
    ----------
    X_train, X_test : ndarray of shape (n_rows, n_features)
        The rows as numbers, scaled; categories and missing cells encoded as the training rows say.
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
    table_train, table_test : DataFrame or None
        The rows as they were read, where they are not all numbers.
    """

    X_train: NDArray[Any]
    X_test: NDArray[Any]
    y_train: NDArray[Any]
    y_test: NDArray[Any]
    views: Mapping[str, slice] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    seed: int = 0
    is_first: bool = False
    table_train: Any = None
    table_test: Any = None

    @property
    def as_read(self) -> Division:
        """The same for a method that takes tables: categories and missing cells as they are."""
        if self.table_train is None:
            return self
        columns = tuple(self.table_train.columns)
        return replace(self, X_train=self.table_train, X_test=self.table_test, columns=columns)


def read(data: Data) -> Dataset:
    """Return the data set that is meant, or raise a clear error."""
    if not data.file:
        return _load(data.name)
    # Only `compare` makes such data; a user's file is read by its own rules.
    from discernel.experiments.files import open_file

    return open_file(name=data.name, **data.file).dataset


@lru_cache(maxsize=8)
def _load(name: str) -> Dataset:
    return TOYS[name]() if name in TOYS else load(name)


def divide(cell: Cell) -> Division:
    """Return the division that a cell is about; it is the same for all methods."""
    data = read(cell.data)
    y, rows = np.asarray(data.y), np.arange(len(data.y))
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
    numbers = _numbers(data, known, train, test)
    X_train, X_test = _scale(cell.data.scaling, *numbers.parts)
    return Division(
        X_train,
        X_test,
        y[train],
        y[test],
        numbers.views,
        numbers.columns,
        seed=cell.splits.seed + cell.repetition,
        is_first=cell.repetition == 0,
        **numbers.tables,
    )


class _Numbers(NamedTuple):
    """Rows as numbers: of some rows each, with the views and the columns that they come from."""

    parts: list[NDArray[Any]]
    views: Mapping[str, slice]
    columns: tuple[str, ...]
    tables: dict[str, Any]


def _numbers(data: Dataset, known: Any, train: Any, test: Any) -> _Numbers:
    """Return known, training and held-out rows as numbers, encoded as the known ones say."""
    parts = (known, train, test)
    if is_plain(data.X):
        X = np.asarray(data.X)
        return _Numbers([X[part] for part in parts], data.views, data.feature_names, {})
    frame = data.X if hasattr(data.X, "iloc") else _frame(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutColumnWarning)  # the rows that train have few values
        encoder = TableEncoder().fit(frame.iloc[known])
    views = encoded_views(encoder, data.views)
    columns = tuple(data.feature_names[position] for position in encoder.source)
    tables = {"table_train": frame.iloc[train], "table_test": frame.iloc[test]}
    return _Numbers([encoder.transform(frame.iloc[part]) for part in parts], views, columns, tables)


def encoded_views(encoder: TableEncoder, views: Mapping[str, slice]) -> dict[str, slice]:
    """Return the encoded columns of each view.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted.
    views : dict of str to slice
        The columns of each view in the table.
    """
    return {
        name: slice(*np.searchsorted(encoder.source, [columns.start, columns.stop]).tolist())
        for name, columns in views.items()
    }


def _frame(data: Dataset) -> Any:
    from discernel.experiments.formats import import_pandas

    return import_pandas().DataFrame(np.asarray(data.X), columns=list(data.feature_names))


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
