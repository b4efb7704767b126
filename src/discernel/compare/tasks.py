"""The rows of a cell: a data set, split into training and held-out rows, encoded and scaled."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from discernel.compare.plan import Cell, Data
from discernel.compare.toys import TOYS
from discernel.exceptions import InvalidInputError, LeftOutColumnWarning, unknown_choice
from discernel.rows.cells import is_plain
from discernel.rows.datasets import Dataset, load
from discernel.rows.encoder import TableEncoder
from discernel.rows.formats import import_pandas
from discernel.rows.labelled import holds_numbers, open_file

_SCALERS = {
    "standard": StandardScaler(),
    "minmax": MinMaxScaler(),
    "symmetric": MinMaxScaler((-1, 1)),
}


@dataclass(frozen=True, eq=False)
class TrainTestSplit:
    """Training and held-out rows of one split of a data set.

    Attributes
    ----------
    X_train, X_test : ndarray of shape (n_rows, n_features)
        Encoded and scaled rows; encoding and scaling are learned on the training rows.
    y_train, y_test : ndarray of shape (n_rows,)
        Labels.
    views : dict of str to slice
        Columns of each view; empty if there is only one.
    columns : tuple of str
        The column of the data set that each feature comes from; empty if unknown.
    seed : int
        Seed for anything else that is random in the cell.
    is_first : bool
        Whether this is the first split; large results are stored for the first split only.
    table_train, table_test : DataFrame or None
        The rows before encoding, if they are not all numbers.
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
    def as_read(self) -> TrainTestSplit:
        """The split with rows before encoding, for methods that take tables."""
        if self.table_train is None:
            return self
        columns = tuple(self.table_train.columns)
        return replace(self, X_train=self.table_train, X_test=self.table_test, columns=columns)


def read(data: Data) -> Dataset:
    """Return the data set of a plan, or raise an error."""
    if not data.file:
        return _load(data.name)
    return open_file(name=data.name, **data.file).dataset


@lru_cache(maxsize=8)
def _load(name: str) -> Dataset:
    """Return a data set by name, from a cache if it was loaded before."""
    return TOYS[name]() if name in TOYS else load(name)


def load_split(cell: Cell) -> TrainTestSplit:
    """Return the split of a cell; it is the same for all methods."""
    for option in cell.data.options.keys() - {"rows"}:
        raise unknown_choice("option of data", option, ["rows"])
    data = read(cell.data)
    y = np.asarray(data.y)
    rows = draw_rows(np.arange(len(y)), y, cell.data)
    train, test = split_rows(rows, y, cell, data.train)
    # Encoding and scaling are learned from the training rows.
    return make_split(cell, data, y, train, train, test)


def draw_rows(rows: NDArray[np.intp], y: NDArray[Any], data: Data) -> NDArray[np.intp]:
    """Return ``data.options["rows"]`` random rows; all rows by default."""
    n = data.options.get("rows", len(rows))
    if n >= len(rows):
        return rows
    strata = None if holds_numbers(y) else y[rows]
    drawn, _ = train_test_split(rows, train_size=int(n), random_state=0, stratify=strata)
    return np.asarray(drawn)


def make_split(
    cell: Cell, data: Dataset, y: NDArray[Any], known: Any, train: Any, test: Any
) -> TrainTestSplit:
    """Return training and held-out rows as numbers; encoder and scaler are fitted to known rows."""
    parts, tables = (known, train, test), (None, None)
    if is_plain(data.X):
        rows, views, columns = np.asarray(data.X), data.views, data.feature_names
        numbers = [rows[part] for part in parts]
    else:
        frame = data.X
        if not hasattr(frame, "iloc"):
            frame = import_pandas().DataFrame(np.asarray(frame), columns=list(data.feature_names))
        with warnings.catch_warnings():
            # A column may have a single value among the training rows.
            warnings.simplefilter("ignore", LeftOutColumnWarning)
            encoder = TableEncoder().fit(frame.iloc[known])
        views = encoded_views(encoder, data.views)
        columns = tuple(data.feature_names[position] for position in encoder.source)
        numbers = [encoder.transform(frame.iloc[part]) for part in parts]
        tables = frame.iloc[train], frame.iloc[test]
    if cell.data.scaling != "none":
        scaler = clone(_SCALERS[cell.data.scaling]).fit(numbers[0])
        numbers = [scaler.transform(part) for part in numbers]
    return TrainTestSplit(
        numbers[1],
        numbers[2],
        y[train],
        y[test],
        views,
        columns,
        seed=cell.splits.seed + cell.repetition,
        is_first=cell.repetition == 0,
        table_train=tables[0],
        table_test=tables[1],
    )


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


def split_rows(
    rows: NDArray[np.intp], y: NDArray[Any], cell: Cell, donor: NDArray[np.bool_] | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return training and held-out rows; ``donor`` marks the training rows chosen by the donor."""
    splits, repetition = cell.splits, cell.repetition
    if splits.donor:
        if donor is None:
            raise InvalidInputError(
                "donor=True needs a data set with training rows chosen by its donor, and this one "
                "has none. Read it from the folder in DISCERNEL_DATA, or give a train_size."
            )
        return rows[donor[rows]], rows[~donor[rows]]
    if splits.folds is not None:
        turn, fold = divmod(repetition, splits.folds)
        make = KFold if holds_numbers(y) else StratifiedKFold
        folds = make(splits.folds, shuffle=True, random_state=splits.seed + turn)
        train, test = list(folds.split(rows, y[rows]))[fold]
        return rows[train], rows[test]
    size = splits.train_size
    train, test = train_test_split(
        rows,
        train_size=int(size) if size >= 1 else size,
        random_state=splits.seed + repetition,
        stratify=y[rows] if splits.stratify and not holds_numbers(y) else None,
    )
    return train, test
