"""Chunks of rows with their origin; checks of their labels and weights; reductions over chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from discernel.arrays import FloatArray, convert_rows, is_frame, is_sparse, library_of, n_rows
from discernel.exceptions import InvalidInputError
from discernel.kernels.columns import missing_cells
from discernel.rows.groups import group_hashes, group_labels

State = TypeVar("State")

#: The smallest and the largest positive weight of a row: sums of 1e18 weights stay finite.
_WEIGHTS = 1e-290, 1e290
_INFINITE = (float("inf"), float("-inf"))


@dataclass(frozen=True)
class Place:
    """The origin of rows: a file, partition or array, and the position of the first row.

    Attributes
    ----------
    name : str
        The name of the file, partition or array.
    part : int
        The number of the file or partition, from 0.
    first : int
        The position of the first row in the file, partition or array, from 0.
    start : int
        The number of the row at position 0, for error messages: 1 in files, as in predictions; 0
        elsewhere, as in Python.
    rows : ndarray of int, or None
        The positions of the rows after the first, if some are left out; None if none are.
    """

    name: str
    part: int = 0
    first: int = 0
    start: int = 0
    rows: NDArray[np.intp] | None = field(default=None, compare=False)

    @classmethod
    def of_file(cls, name: str | Path, part: int = 0, first: int = 0) -> Place:
        """Return the place of rows of a file."""
        return cls(str(name), part, first, start=1)

    def of_row(self, row: int) -> str:
        """Return "row N of NAME, counted from 1" for one of the rows, for error messages."""
        position = self.first + (row if self.rows is None else int(self.rows[row]))
        return f"row {self.start + position} of {self.name}, counted from {self.start}"


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
        n, numbers = n_rows(X), None
        if groups is not None:
            with errors_with_origin(place):
                numbers = group_hashes(group_labels(groups, n))
        return cls(
            X,
            None if y is None else _checked_labels(y, n, place),
            None if weights is None else _checked_weights(weights, n, place),
            place,
            numbers,
        )

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return n_rows(self.X)

    @property
    def row_weights(self) -> FloatArray:
        """The sample weights; all 1 if none are given."""
        return np.ones(self.n_rows) if self.weights is None else self.weights

    def part(self, rows: NDArray[np.intp] | slice) -> Chunk:
        """Return a chunk with some of the rows."""
        arrays = {"y": self.y, "weights": self.weights, "groups": self.groups}
        parts: dict[str, Any] = {
            name: None if each is None else each[rows] for name, each in arrays.items()
        }
        return replace(self, X=_safe_indexing(self.X, rows), **parts)


def _checked_labels(y: Any, n: int, place: Place) -> NDArray[Any]:
    """Return labels as an array, or raise an error if one is missing or the shape is wrong."""
    labels = np.asarray(convert_rows(y))
    if labels.ndim not in (1, 2):
        raise InvalidInputError(
            "y should be a 1d array of labels, one per row, or of shape (n_rows, n_targets). Got "
            f"shape {labels.shape}."
        )
    _refuse_other_length("label", labels, n, place)
    missing = ~np.isfinite(labels) if labels.dtype.kind == "f" else missing_cells(labels)
    if labels.dtype.kind == "O":
        missing[~missing] = [label in _INFINITE for label in labels[~missing]]
    if missing.any():
        first = int(missing.argmax())
        raise InvalidInputError(
            f"Every row must have a label. Got {labels.ravel().tolist()[first]!r} in "
            f"{place.of_row(first // (labels.size // n))}. "
            "Remove rows without labels before fitting; `predict` accepts them."
        )
    return labels


def _checked_weights(given: Any, n: int, place: Place) -> FloatArray:
    """Return weights as floats, or raise an error if one is negative, not finite or too large."""
    try:
        weights = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"Weights must be numbers. In {place.name}: {error}.") from error
    if weights.ndim != 1:
        raise InvalidInputError(
            f"There must be one weight per row. Got shape {weights.shape} in {place.name}."
        )
    _refuse_other_length("weight", weights, n, place)
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
    return weights


def _refuse_other_length(what: str, given: NDArray[Any], n: int, place: Place) -> None:
    """Raise an error unless there is one label or weight per row."""
    if len(given) != n:
        raise InvalidInputError(
            f"There must be one {what} per row. Got {n} rows and {len(given)} {what}s "
            f"in {place.name}."
        )


@contextmanager
def errors_with_origin(place: Place) -> Iterator[None]:
    """Add the origin of the rows to error messages."""
    try:
        yield
    except ValueError as error:
        raise InvalidInputError(f"{error} Row 0 here is {place.of_row(0)}.") from error


# ---- rows of arrays, sparse matrices and dataframes --------------------------------------------


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
