"""Chunks of rows with their origin; checks of their labels and weights; reductions over chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from discernel.arrays import FloatArray, convert_rows, is_frame, is_sparse, library_of, n_rows
from discernel.exceptions import InvalidInputError
from discernel.kernels.columns import is_missing
from discernel.rows.groups import group_hashes, group_labels

State = TypeVar("State")

#: The smallest and the largest positive weight of a row: sums of 1e18 weights stay finite.
_WEIGHTS = 1e-290, 1e290
_INFINITE = (float("inf"), float("-inf"))


@dataclass(frozen=True)
class Place:
    """The origin of a chunk: a file, partition or array, and the position of its first row.

    Attributes
    ----------
    name : str
        The name of the file, partition or array.
    part : int
        The number of the file or partition, from 0.
    first : int
        The position of the chunk's first row in the file, partition or array, from 0.
    """

    name: str
    part: int = 0
    first: int = 0

    def of_row(self, row: int) -> str:
        """Return "row N of NAME" for a row of the chunk, for error messages."""
        return f"row {self.first + row} of {self.name}"


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some of the rows of a source.

    Attributes
    ----------
    X : array, sparse matrix or dataframe of shape (n_rows, n_features)
        The rows.
    y : ndarray of shape (n_rows,) or (n_rows, n_targets), or None
        The labels, or numbers to predict; None for rows to predict.
    weights : ndarray of shape (n_rows,) or None
        The sample weights; None for equal weights.
    place : Place
        The origin of the rows.
    groups : ndarray of int of shape (n_rows,) or None
        Numbers of the groups of the rows, the same in all chunks; None without groups.
    """

    X: Any
    y: NDArray[Any] | None
    weights: FloatArray | None
    place: Place
    groups: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, X: Any, y: Any, weights: Any, place: Place, groups: Any = None) -> Chunk:
        """Return a chunk with checked labels and weights, or raise an error that names the row.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n_rows, n_features)
            The rows.
        y, weights : array-like of shape (n_rows,), or None
            The labels and sample weights. None of them may be missing. For several numbers to
            predict, y has the shape (n_rows, n_targets).
        place : Place
            The origin of the rows.
        groups : array-like of shape (n_rows,), optional
            The labels of the groups.
        """
        labels = None if y is None else as_labels(y)
        numbers = None if weights is None else as_weights(weights, place.name)
        check_lengths(X, labels, numbers, place.name)
        if labels is not None:
            _refuse_missing_labels(labels, place)
        if numbers is not None:
            _refuse_bad_weights(numbers, place)
        return cls(X, labels, numbers, place, None if groups is None else _hashed(X, groups, place))

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return n_rows(self.X)

    def part(self, rows: NDArray[np.intp]) -> Chunk:
        """Return a chunk with some of the rows."""
        return Chunk(
            take_rows(self.X, rows),
            None if self.y is None else self.y[rows],
            None if self.weights is None else self.weights[rows],
            self.place,
            None if self.groups is None else self.groups[rows],
        )


def _hashed(X: Any, groups: Any, place: Place) -> NDArray[np.int64]:
    """Return the numbers of groups, or raise an error that names the origin of the rows."""
    try:
        return group_hashes(group_labels(groups, n_rows(X)))
    except InvalidInputError as error:
        raise InvalidInputError(f"{error} Rows are counted from {place.of_row(0)}.") from error


def check_lengths(X: Any, y: Any, weights: Any, name: str) -> None:
    """Raise an error unless there is one label and one weight per row.

    Parameters
    ----------
    X : array, sparse matrix or dataframe of shape (n_rows, n_features)
        The rows.
    y, weights : ndarray or None
        The labels and sample weights.
    name : str
        The name of the rows, for error messages.
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
        missing = np.array([is_missing(label) or label in _INFINITE for label in y.flat])
    else:
        missing = ~np.isfinite(y) if y.dtype.kind == "f" else np.zeros(y.shape, dtype=bool)
    if missing.any():
        first = int(missing.argmax())
        row = first // (y.size // len(y))
        raise InvalidInputError(
            f"Every row must have a label. Got {y.ravel().tolist()[first]!r} in "
            f"{place.of_row(row)}. "
            "Remove rows without labels before fitting; `predict` accepts them."
        )


def _refuse_bad_weights(weights: FloatArray, place: Place) -> None:
    """Raise an error that names the first weight that is negative, not finite or out of range."""
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise InvalidInputError(
            f"Weights must be finite and at least 0. Got {weights[bad[0]]} in "
            f"{place.of_row(int(bad[0]))}. Remove such rows, or set their weights to 0."
        )
    least, most = _WEIGHTS
    bad = np.flatnonzero((weights > most) | (weights < least) & (weights > 0))
    if len(bad):
        raise InvalidInputError(
            f"Weights of rows in chunks must be 0, or from {least:g} to {most:g}, so that their "
            f"sums are finite. Got {weights[bad[0]]:g} in {place.of_row(int(bad[0]))}. Multiply "
            "all weights by the same number, which does not change the model, or set small "
            "weights to 0."
        )


def as_labels(y: Any) -> NDArray[Any]:
    """Return labels as an array, or raise an error unless they have one or two dimensions.

    Parameters
    ----------
    y : array-like of shape (n_rows,) or (n_rows, n_targets)
        The labels; several columns for several numbers to predict.
    """
    labels = np.asarray(convert_rows(y))
    if labels.ndim not in (1, 2):
        raise InvalidInputError(
            "y should be a 1d array of labels, one per row, or of shape (n_rows, n_targets). Got "
            f"shape {labels.shape}."
        )
    return labels


def as_weights(weights: Any, name: str) -> FloatArray:
    """Return weights as floats, or raise an error if they are not numbers.

    Parameters
    ----------
    weights : array-like of shape (n_rows,)
        The sample weights.
    name : str
        The name of the rows, for error messages.
    """
    try:
        return np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"Weights must be numbers. In {name}: {error}.") from error


@contextmanager
def errors_with_origin(place: Place) -> Iterator[None]:
    """Add the origin of the rows to error messages."""
    try:
        yield
    except ValueError as error:
        raise InvalidInputError(
            f"{error} These are rows of {place.name}, from row {place.first} on."
        ) from error


# ---- rows of arrays, sparse matrices and dataframes --------------------------------------------


def column_name(given: Any) -> str | None:
    """Return the name of a column of labels or weights; None where these are given themselves."""
    return given if isinstance(given, str) else None


def take_rows(X: Any, rows: NDArray[np.intp] | slice) -> Any:
    """Return some rows of an array, a sparse matrix or a dataframe."""
    return _safe_indexing(X, rows)


def stack_rows(parts: Sequence[Any]) -> Any:
    """Concatenate the rows of several arrays, sparse matrices or dataframes of one type."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    if is_sparse(first):
        from scipy import sparse

        return sparse.vstack(parts, format="csr")
    if not is_frame(first):
        return np.concatenate([np.asarray(part) for part in parts])
    if library_of(first) == "polars":
        import polars

        return polars.concat(parts, how="vertical_relaxed")
    return _stacked_frames(parts)


def _stacked_frames(parts: Sequence[Any]) -> Any:
    """Concatenate pandas DataFrames; categorical columns get the categories of all parts."""
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


# ---- reductions over chunks --------------------------------------------------------------------


class Reduction(Protocol, Generic[State]):
    """A summary computed over chunks in any order, on one or several machines.

    `add` may modify its state, and `merge` its first state, so that a large sum is stored only
    once. If a method ``can_end(state)`` exists and returns True, reading may stop at the deadline
    before all rows are read.
    """

    def start(self) -> State:
        """Return the state before any rows."""

    def add(self, state: State, chunk: Chunk) -> State:
        """Return the state after adding a chunk."""

    def merge(self, state: State, other: State) -> State:
        """Return the state for the rows of both states."""


@dataclass(frozen=True)
class RowProgress:
    """The progress of a pass over rows; callbacks receive one after each chunk.

    Attributes
    ----------
    stage, n_stages : int
        The number of the pass, from 0, and the number of passes.
    rows : int
        The number of rows done in this pass.
    n_rows : int or None
        The number of all rows, which may be an estimate; None if unknown.
    """

    stage: int
    n_stages: int
    rows: int
    n_rows: int | None

    @property
    def fraction(self) -> float | None:
        """The fraction of this pass that is done; None if the number of rows is unknown."""
        if self.n_rows is None:
            return None
        return min(1.0, self.rows / max(1, self.n_rows))


#: A function called with the number of rows done.
Report = Callable[[int], Any]
