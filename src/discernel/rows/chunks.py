"""Chunks of rows, where they stand, and errors for labels and weights that cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from discernel.arrays import FloatArray, convert_rows, is_frame, is_sparse, n_rows
from discernel.exceptions import InvalidInputError
from discernel.kernels.columns import is_missing

State = TypeVar("State")

#: The least and the largest weight of a row but 0: sums of 1e18 of them are doubles.
_WEIGHTS = 1e-290, 1e290
_INFINITE = (float("inf"), float("-inf"))


@dataclass(frozen=True)
class Place:
    """The place of a chunk among all rows.

    Attributes
    ----------
    name : str
        The file, the partition or the array.
    part : int
        Its number, from 0.
    first : int
        The number of the first row of the chunk in it, from 0.
    """

    name: str
    part: int = 0
    first: int = 0

    def of_row(self, row: int) -> str:
        """Return the words for a row of the chunk."""
        return f"row {self.first + row} of {self.name}"


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows.

    Attributes
    ----------
    X : array, sparse matrix or dataframe of shape (n_rows, n_features)
        The rows.
    y : ndarray of shape (n_rows,) or None
        The labels; None where they are not known.
    weights : ndarray of shape (n_rows,) or None
        How much each row counts; None: all the same.
    place : Place
        Where they stand.
    """

    X: Any
    y: NDArray[Any] | None
    weights: FloatArray | None
    place: Place

    @classmethod
    def of(cls, X: Any, y: Any, weights: Any, place: Place) -> Chunk:
        """Return rows, labels and weights as arrays, or raise an error that names the row.

        Every row has a label, and a weight that is a number; rows of weight 0 are absent.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n_rows, n_features)
            The rows.
        y, weights : array-like of shape (n_rows,), or None
            Their labels and weights.
        place : Place
            Where they stand.
        """
        labels = None if y is None else as_labels(y)
        numbers = None if weights is None else as_weights(weights, place.name)
        check_lengths(X, labels, numbers, place.name)
        if labels is not None:
            _refuse_missing_labels(labels, place)
        if numbers is not None:
            _refuse_bad_weights(numbers, place)
        return cls(X, labels, numbers, place)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return n_rows(self.X)

    def part(self, rows: NDArray[np.intp]) -> Chunk:
        """Return some of the rows."""
        return Chunk(
            take_rows(self.X, rows),
            None if self.y is None else self.y[rows],
            None if self.weights is None else self.weights[rows],
            self.place,
        )


def check_lengths(X: Any, y: Any, weights: Any, name: str) -> None:
    """Raise an error where there is not one label, or one weight, per row.

    Parameters
    ----------
    X : array, sparse matrix or dataframe of shape (n_rows, n_features)
        The rows.
    y, weights : ndarray or None
        Their labels and weights.
    name : str
        Where they stand.
    """
    for what, given in (("label", y), ("weight", weights)):
        if given is not None and len(given) != n_rows(X):
            raise InvalidInputError(
                f"There must be one {what} per row. Got {n_rows(X)} rows and {len(given)} {what}s "
                f"in {name}."
            )


def _refuse_missing_labels(y: NDArray[Any], place: Place) -> None:
    """Raise an error that names the first row without a label."""
    if y.dtype.kind == "O":
        missing = np.array([is_missing(label) or label in _INFINITE for label in y.tolist()])
    else:
        missing = ~np.isfinite(y) if y.dtype.kind == "f" else np.zeros(len(y), dtype=bool)
    if missing.any():
        row = int(missing.argmax())
        raise InvalidInputError(
            f"Every row must have a label. Got {y[row]!r} in {place.of_row(row)}. Leave such rows "
            "out; `predict` takes rows without labels."
        )


def _refuse_bad_weights(weights: FloatArray, place: Place) -> None:
    """Raise an error that names the first weight that is negative, or no finite number."""
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise InvalidInputError(
            f"Weights must be finite and at least 0. Got {weights[bad[0]]} in "
            f"{place.of_row(int(bad[0]))}. Leave such rows out, or give them the weight 0."
        )
    least, most = _WEIGHTS
    bad = np.flatnonzero((weights > most) | (weights < least) & (weights > 0))
    if len(bad):
        raise InvalidInputError(
            f"Weights of rows in chunks must be 0, or from {least:g} to {most:g}, so that sums of "
            f"them are doubles. Got {weights[bad[0]]:g} in {place.of_row(int(bad[0]))}. Multiply "
            "all weights by the same number, which changes nothing, or give small ones the weight "
            "0."
        )


def as_labels(y: Any) -> NDArray[Any]:
    """Return labels as an array, or raise a clear error.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels.
    """
    labels = np.asarray(convert_rows(y))
    if labels.ndim != 1:
        raise InvalidInputError(
            f"y should be a 1d array of labels, one per row. Got shape {labels.shape}."
        )
    return labels


def as_weights(weights: Any, name: str) -> FloatArray:
    """Return weights as numbers, or raise a clear error.

    Parameters
    ----------
    weights : array-like of shape (n_rows,)
        The weights.
    name : str
        Where they stand.
    """
    try:
        return np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"Weights must be numbers. In {name}: {error}.") from error


# ---- rows of any kind --------------------------------------------------------------------------


def is_dask(X: Any) -> bool:
    """Whether rows are a Dask array or dataframe; Dask is not loaded to find out."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "to_delayed")


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows of an array, a sparse matrix or a dataframe."""
    if isinstance(X, np.ndarray) or is_sparse(X):
        return X[rows]
    return _safe_indexing(X, rows)


def stack_rows(parts: Sequence[Any]) -> Any:
    """Return the rows of several parts of one kind, one after another."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    if is_sparse(first):
        from scipy import sparse

        return sparse.vstack(parts, format="csr")
    if not is_frame(first):
        return np.concatenate([np.asarray(part) for part in parts])
    if type(first).__module__.partition(".")[0] == "polars":
        import polars

        return polars.concat(parts, how="vertical_relaxed")
    return _stacked_frames(parts)


def _stacked_frames(parts: Sequence[Any]) -> Any:
    """Return dataframes of pandas as one; a column of categories stays one, of all values."""
    import pandas as pd

    parts = [part.reset_index(drop=True) for part in parts]
    for name in parts[0].columns:
        declared = [isinstance(part[name].dtype, pd.CategoricalDtype) for part in parts]
        if any(declared):
            known: dict[Any, None] = {}
            for part in parts:
                known |= dict.fromkeys(part[name].astype("category").cat.categories)
            both = pd.CategoricalDtype(list(known))
            parts = [part.assign(**{name: part[name].astype(both)}) for part in parts]
    return pd.concat(parts, ignore_index=True)


# ---- what is done with chunks ------------------------------------------------------------------


class Reduction(Protocol, Generic[State]):
    """Something that is summed up over chunks: in any order, on any number of machines.

    `add` may change the state that it is given, and `merge` its first, so that a large sum has
    one place in memory. A method ``can_end(state)`` may say whether the rows so far can stand for
    all, where there is no time to read more; without it all rows are read.
    """

    def start(self) -> State:
        """Return the state of no rows."""

    def add(self, state: State, chunk: Chunk) -> State:
        """Return the state with the rows of a chunk."""

    def merge(self, state: State, other: State) -> State:
        """Return the state of the rows of both."""


@dataclass(frozen=True)
class RowProgress:
    """The progress of a pass over rows, for callbacks, once per chunk.

    Attributes
    ----------
    stage, n_stages : int
        Which pass over the rows it is, from 0, and how many there are.
    rows : int
        The rows that this pass has done.
    n_rows : int or None
        How many there are, or about as many; None where nobody knows.
    """

    stage: int
    n_stages: int
    rows: int
    n_rows: int | None

    @property
    def fraction(self) -> float | None:
        """The share that is done of this pass, at most 1; None where it is not known."""
        if self.n_rows is None:
            return None
        return min(1.0, self.rows / max(1, self.n_rows))


#: What is told how many rows are done.
Report = Callable[[int], Any]
