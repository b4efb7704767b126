"""Rows that need not be in memory together, a chunk at a time, as often as wanted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import convert_rows, is_frame, is_sparse, memory_limit, n_rows
from discernel.exceptions import InvalidInputError, check_count
from discernel.progress.deadline import is_late
from discernel.rows.chunks import (
    Chunk,
    Place,
    Reduction,
    Report,
    as_labels,
    as_weights,
    check_lengths,
)
from discernel.rows.formats import listed

State = TypeVar("State")
Result = TypeVar("Result")

#: A chunk is no larger than this, nor than this share of the memory of the machine.
_CHUNK_BYTES, _CHUNK_SHARE = 2**25, 1 / 64
_MOST_ROWS = 2**14


class Source(ABC):
    """Rows, a chunk at a time; `chunks` may be called again and begins anew.

    Attributes
    ----------
    n_rows : int or None
        How many rows there are; None where nobody has counted.
    columns : list of str or None
        The names of the columns of X; None where they have none.
    """

    n_rows: int | None = None
    columns: list[str] | None = None

    @property
    def estimated_n_rows(self) -> int | None:
        """About how many rows there are, for showing progress."""
        return self.n_rows

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows, from the first on."""

    def map(self, work: Callable[[Chunk], Result]) -> Iterator[Result]:
        """Yield what work makes of every chunk that has rows, in their order.

        Parameters
        ----------
        work : callable
            Takes a `Chunk`.
        """
        return (work(chunk) for chunk in self.chunks() if chunk.n_rows)

    def reduce(self, reduction: Reduction[State], report: Report | None = None) -> State:
        """Return what is summed up over all chunks.

        Parameters
        ----------
        reduction : Reduction
            The summary. Here one chunk after another is added, as long as there is time;
            where chunks lie on several machines, sums of each are merged.
        report : callable, optional
            Told how many rows are done, after every chunk.
        """
        state, done = reduction.start(), 0
        can_end = getattr(reduction, "can_end", None)
        for chunk in self.chunks():
            if chunk.n_rows == 0:
                continue
            state = reduction.add(state, chunk)
            done += chunk.n_rows
            if report is not None:
                report(done)
            if can_end is not None and is_late() and can_end(state):
                break
        if done == 0:
            raise self.no_rows()
        return state

    def no_rows(self) -> InvalidInputError:
        """Return the error for a source without rows."""
        return InvalidInputError(
            f"There must be rows, in every pass. Got none in {self!r}. Look at the files; a "
            "function that returns chunks must return a new iterator in every call."
        )


def rows_of_a_chunk(n_columns: int, asked: int | None) -> int:
    """Return how many rows a chunk has: those asked for, or fewer where memory is small.

    Parameters
    ----------
    n_columns : int
        The numbers in a row.
    asked : int or None
        The number that the user gave; None for a default.
    """
    if asked is not None:
        check_count("chunk_rows", asked)
    memory, row = memory_limit() or np.inf, 8 * max(1, n_columns)
    most = int(min(memory * _CHUNK_SHARE, 2**40) // row)
    if most < 1:
        raise InvalidInputError(
            f"A row must fit into {_CHUNK_SHARE:.0%} of the memory, here of "
            f"{memory / 2**20:,.0f} MiB. Got rows of {n_columns:,} columns. Take fewer columns."
        )
    wanted = min(_MOST_ROWS, max(1, _CHUNK_BYTES // row)) if asked is None else int(asked)
    return min(wanted, most)


# ---- rows in memory, or mapped into it ---------------------------------------------------------


class ArraySource(Source):
    """Rows of an array, be it mapped from a file, of a sparse matrix or of a dataframe.

    Parameters
    ----------
    X : array, sparse matrix or dataframe of shape (n_samples, n_features)
        The rows. Those of a memory-mapped array are read when they are needed.
    y : array-like of shape (n_samples,), optional
        The labels.
    weights : array-like of shape (n_samples,), optional
        How much each row counts.
    chunk_rows : int, optional
        Rows of a chunk.
    name : str
        The name of the rows, for errors.
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        weights: Any = None,
        *,
        chunk_rows: int | None = None,
        name: str = "X",
    ) -> None:
        self.columns = Layout.of(X).columns
        self.X = X.tocsr() if is_sparse(X) else X
        self.y = None if y is None else as_labels(y)
        self.weights = None if weights is None else as_weights(weights, name)
        self.n_rows, self.name = n_rows(X), name
        check_lengths(X, self.y, self.weights, name)
        self.chunk_rows = rows_of_a_chunk(_numbers_a_row(self.X), chunk_rows)

    def chunks(self) -> Iterator[Chunk]:
        for first in range(0, n_rows(self.X), self.chunk_rows):
            part = slice(first, first + self.chunk_rows)
            rows = self.X.iloc[part] if hasattr(self.X, "iloc") else self.X[part]
            yield Chunk.of(
                np.array(rows) if isinstance(rows, np.memmap) else rows,
                None if self.y is None else self.y[part],
                None if self.weights is None else self.weights[part],
                Place(self.name, 0, first),
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {self.n_rows} rows)"


def _numbers_a_row(X: Any) -> int:
    """Return the numbers that a row has, of a sparse matrix those that are stored."""
    if is_sparse(X):
        return max(1, 2 * int(X.nnz) // max(1, n_rows(X)))
    return int(X.shape[1])


# ---- chunks that somebody else makes -----------------------------------------------------------


class ChunkSource(Source):
    """Chunks of a list, or of a function that begins anew whenever it is called.

    Parameters
    ----------
    chunks : sequence or callable
        Chunks, or what returns an iterator of them. A chunk is X, a pair (X, y), three things
        (X, y, weights), or, with ``target``, a dataframe that has y as a column.
    target, weights : str, optional
        Columns of dataframes that hold y and the weights.
    drop : sequence of str, optional
        Columns of dataframes to leave out.
    """

    def __init__(
        self,
        chunks: Any,
        target: str | None = None,
        weights: str | None = None,
        drop: Sequence[str] = (),
    ) -> None:
        if not callable(chunks) and iter(chunks) is chunks:
            raise InvalidInputError(
                "Chunks must be there for a second pass. Got an iterator, which is used up by the "
                "first. Give a list, or a function without arguments that returns an iterator; or "
                "call partial_fit with each chunk."
            )
        self._given, self._target, self._weights, self._drop = chunks, target, weights, drop

    def chunks(self) -> Iterator[Chunk]:
        given: Iterable[Any] = self._given() if callable(self._given) else self._given
        layout = None
        for number, one in enumerate(given):
            parts = one if isinstance(one, tuple) else (one,)
            X, y, weights = (*parts, None, None)[:3]
            X = convert_rows(X)
            X = X if is_frame(X) or is_sparse(X) else np.asarray(X)
            place = Place(f"chunk {number}", number)
            if n_rows(X) == 0:
                continue
            if layout is None:
                layout = Layout.of(X, self._target, self._weights, self._drop, place.name)
                self.columns = layout.columns
            yield layout.chunk(X, y, weights, place)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self._given).__name__})"


# ---- columns of parts --------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """The columns that every part of some rows has.

    Attributes
    ----------
    columns : list of str or None
        The names of the columns of X; None where they have none.
    n_columns : int
        Their number.
    target, weights : str or None
        Further columns, of labels and weights.
    drop : tuple of str
        Columns to leave out.
    """

    columns: list[str] | None
    n_columns: int
    target: str | None = None
    weights: str | None = None
    drop: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        X: Any,
        target: str | None = None,
        weights: str | None = None,
        drop: Sequence[str] = (),
        where: str = "X",
    ) -> Layout:
        """Return the layout of rows, or raise a clear error.

        Parameters
        ----------
        X : array, sparse matrix or dataframe
            A part of the rows; of a Dask dataframe, its ``_meta``.
        target, weights : str or None
            The columns with labels and weights.
        drop : sequence of str
            Columns to leave out.
        where : str
            The name of the rows, for messages.
        """
        if is_frame(X):
            rest, _, _ = split_frame(X, target, weights, drop, where)
            names = [str(name) for name in rest.columns]
            return cls(names, len(names), target, weights, tuple(drop))
        if len(X.shape) != 2:
            raise InvalidInputError(
                f"Rows must be given as a table of two dimensions. Got shape {X.shape}."
            )
        if named := [name for name in (target, weights, *drop) if name is not None]:
            raise InvalidInputError(
                f"An array has no columns with names. Got {named[0]!r}; give dataframes, or y and "
                "the weights as arrays."
            )
        return cls(None, int(X.shape[1]))

    def chunk(self, X: Any, y: Any, weights: Any, place: Place) -> Chunk:
        """Return a part of the rows, its columns in this order, or raise an error that names it.

        Parameters
        ----------
        X : array, sparse matrix or dataframe
            The part, with the columns of labels and weights, if these have names.
        y, weights : array-like of shape (n_rows,), or None
            Labels and weights that are no columns.
        place : Place
            Where the part stands.
        """
        if self.columns is not None:
            X, labels, numbers = split_frame(X, self.target, self.weights, self.drop, place.name)
            y, weights = (labels if y is None else y), (numbers if weights is None else weights)
            found = {str(name): name for name in X.columns}
            self._refuse_other_columns(list(found), place.name)
            if list(found) != self.columns:
                X = X[[found[name] for name in self.columns]]
        elif X.shape[1:] != (self.n_columns,):
            raise InvalidInputError(
                f"All parts must have the same columns. Got {self.n_columns} and {X.shape[-1]} in "
                f"{place.name}, of shape {X.shape}."
            )
        return Chunk.of(X, y, weights, place)

    def _refuse_other_columns(self, names: list[str], where: str) -> None:
        """Raise an error that names a column that a part lacks, or alone has."""
        expected = self.columns or []
        missing = [name for name in expected if name not in names]
        strange = [name for name in names if name not in expected]
        if missing or strange:
            wrong = f"no {missing[0]!r}" if missing else f"{strange[0]!r}, which the first has not"
            raise InvalidInputError(
                f"All parts must have the same columns. {where} has {wrong}. Add it, or leave the "
                "part out."
            )


def split_frame(
    frame: Any, target: str | None, weights: str | None, drop: Sequence[str], where: str
) -> tuple[Any, NDArray[Any] | None, Any]:
    """Return the columns of a dataframe without those of labels and weights, and these.

    Parameters
    ----------
    frame : dataframe
        Rows.
    target, weights : str or None
        The columns with labels and weights.
    drop : sequence of str
        Columns to leave out.
    where : str
        The name of the rows, for messages.
    """
    if not is_frame(frame):
        raise InvalidInputError(
            f"With names of columns, chunks must be dataframes. Got {type(frame).__name__} in "
            f"{where}."
        )
    names = list(frame.columns)
    taken = [name for name in (target, weights, *drop) if name is not None]
    refuse_absent(taken, names, where)
    y = None if target is None else np.asarray(frame[target])
    numbers = None if weights is None else np.asarray(frame[weights])
    return frame[[name for name in names if name not in taken]], y, numbers


def refuse_absent(wanted: Sequence[str], names: list[Any], where: str) -> None:
    """Raise a clear error for a column that is named but not there.

    Parameters
    ----------
    wanted : sequence of str
        Columns that a user named.
    names : list
        Those that there are.
    where : str
        Of which part.
    """
    for name in wanted:
        if name not in names:
            raise InvalidInputError(
                f"The column {name!r} must be in every part. {where} has {listed(names, 8)}."
            )
