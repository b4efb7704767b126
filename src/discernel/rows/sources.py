"""Sources: rows in chunks, for data larger than memory, which can be read repeatedly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import convert_rows, is_dask, is_frame, is_sparse, memory_limit, n_rows
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
    take_rows,
)
from discernel.rows.formats import listed
from discernel.rows.groups import group_labels

State = TypeVar("State")
Result = TypeVar("Result")

#: Limits of the size of a chunk, in bytes and as a fraction of the machine's memory.
_CHUNK_BYTES, _CHUNK_SHARE = 2**25, 1 / 64
_MOST_ROWS = 2**14


def is_in_chunks(X: Any) -> bool:
    """Whether rows come in chunks: from a `Source`, or from a Dask collection."""
    return isinstance(X, Source) or is_dask(X)


class Source(ABC):
    """Rows in chunks. Each call of `chunks` starts again at the first row.

    Attributes
    ----------
    n_rows : int or None
        The number of rows; None if unknown.
    columns : list of str or None
        The names of the columns of X; None for arrays.
    """

    n_rows: int | None = None
    columns: list[str] | None = None

    @property
    def estimated_n_rows(self) -> int | None:
        """An estimate of the number of rows, for progress bars; None if unknown."""
        return self.n_rows

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows in chunks, in order."""

    def map(self, work: Callable[[Chunk], Result]) -> Iterator[Result]:
        """Yield the result of a function for each chunk with rows, in order.

        Parameters
        ----------
        work : callable
            Takes a `Chunk`.
        """
        return (work(chunk) for chunk in self.chunks() if chunk.n_rows)

    def reduce(self, reduction: Reduction[State], report: Report | None = None) -> State:
        """Return the state of a reduction over all chunks.

        Parameters
        ----------
        reduction : Reduction
            The summary to compute. Chunks are added one by one until the last chunk or the
            deadline. Sources on several machines merge one state per machine.
        report : callable, optional
            Called with the number of rows done, after each chunk.
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
            f"There must be rows in every pass. Got none from {self!r}. Check the files; a "
            "function that returns chunks must return a new iterator in each call."
        )


def chunk_size(n_columns: int, asked: int | None) -> int:
    """Return the number of rows per chunk, reduced if the chunk would not fit into memory.

    Parameters
    ----------
    n_columns : int
        The number of columns.
    asked : int or None
        The number of rows that the user chose; None for the default.
    """
    if asked is not None:
        check_count("chunk_rows", asked)
    memory, row = memory_limit() or np.inf, 8 * max(1, n_columns)
    most = int(min(memory * _CHUNK_SHARE, 2**40) // row)
    if most < 1:
        raise InvalidInputError(
            f"A row must fit into {_CHUNK_SHARE:.0%} of the memory ({memory / 2**20:,.0f} MiB). "
            f"Got rows of {n_columns:,} columns. Select fewer columns."
        )
    wanted = min(_MOST_ROWS, max(1, _CHUNK_BYTES // row)) if asked is None else int(asked)
    return min(wanted, most)


# ---- rows in memory or in memory-mapped files --------------------------------------------------


class ArraySource(Source):
    """Rows of an array (in memory or memory-mapped), a sparse matrix or a dataframe.

    Parameters
    ----------
    X : array, sparse matrix or dataframe of shape (n_samples, n_features)
        The rows. Rows of a memory-mapped array are read when needed.
    y : array-like of shape (n_samples,), optional
        The labels.
    weights : array-like of shape (n_samples,), optional
        The sample weights.
    groups : array-like of shape (n_samples,), optional
        The labels of groups of rows.
    chunk_rows : int, optional
        The number of rows per chunk.
    name : str
        The name of the rows, for error messages.
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        weights: Any = None,
        groups: Any = None,
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
        self.groups = None if groups is None else group_labels(groups, self.n_rows)
        self.chunk_rows = chunk_size(_numbers_per_row(self.X), chunk_rows)

    def chunks(self) -> Iterator[Chunk]:
        for first in range(0, n_rows(self.X), self.chunk_rows):
            part = slice(first, first + self.chunk_rows)
            rows = take_rows(self.X, part)
            yield Chunk.of(
                np.array(rows) if isinstance(rows, np.memmap) else rows,
                None if self.y is None else self.y[part],
                None if self.weights is None else self.weights[part],
                Place(self.name, 0, first),
                None if self.groups is None else self.groups[part],
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {self.n_rows} rows)"


def _numbers_per_row(X: Any) -> int:
    """Return how many numbers a row has; for a sparse matrix, the mean number stored."""
    if is_sparse(X):
        return max(1, 2 * int(X.nnz) // max(1, n_rows(X)))
    return int(X.shape[1])


# ---- chunks that the user provides -------------------------------------------------------------


class ChunkSource(Source):
    """Chunks from a list, or from a function that returns a new iterator in each call.

    Parameters
    ----------
    chunks : sequence or callable
        Chunks, or a function that returns an iterator of chunks. A chunk is X, (X, y),
        (X, y, weights), (X, y, weights, groups), or, with ``target``, a dataframe that has y as a
        column.
    target, weights : str, optional
        The columns of dataframes with the labels and the sample weights.
    drop : sequence of str, optional
        Columns of dataframes to leave out.
    groups : str, optional
        The column of dataframes with the labels of groups.
    """

    def __init__(
        self,
        chunks: Any,
        target: str | None = None,
        weights: str | None = None,
        drop: Sequence[str] = (),
        groups: str | None = None,
    ) -> None:
        if not callable(chunks) and iter(chunks) is chunks:
            raise InvalidInputError(
                "Chunks must be available for a second pass. Got an iterator, which is exhausted "
                "after the first. Pass a list, or a function without arguments that returns an "
                "iterator; or call partial_fit with each chunk."
            )
        self._given, self._names = chunks, (target, weights, drop, groups)

    def chunks(self) -> Iterator[Chunk]:
        given: Iterable[Any] = self._given() if callable(self._given) else self._given
        layout = None
        for number, one in enumerate(given):
            parts = one if isinstance(one, tuple) else (one,)
            X, y, weights, groups = (*parts, None, None, None)[:4]
            X = convert_rows(X)
            X = X if is_frame(X) or is_sparse(X) else np.asarray(X)
            place = Place(f"chunk {number}", number)
            if n_rows(X) == 0:
                continue
            if layout is None:
                layout = Layout.of(X, *self._names, where=place.name)
                self.columns = layout.columns
            yield layout.chunk(X, y, weights, place, groups)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self._given).__name__})"


# ---- columns of chunks -------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """The columns of every chunk of a source.

    Attributes
    ----------
    columns : list of str or None
        The names of the columns of X; None for arrays.
    n_columns : int
        The number of columns of X.
    target, weights : str or None
        The columns with the labels and the sample weights.
    drop : tuple of str
        Columns to leave out.
    groups : str or None
        The column with the labels of groups.
    """

    columns: list[str] | None
    n_columns: int
    target: str | None = None
    weights: str | None = None
    drop: tuple[str, ...] = ()
    groups: str | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        target: str | None = None,
        weights: str | None = None,
        drop: Sequence[str] = (),
        groups: str | None = None,
        where: str = "X",
    ) -> Layout:
        """Return the layout of a chunk, or raise an error if the named columns do not exist.

        Parameters
        ----------
        X : array, sparse matrix or dataframe
            The first chunk; for a Dask dataframe, its ``_meta``.
        target, weights : str or None
            The columns with the labels and the sample weights.
        drop : sequence of str
            Columns to leave out.
        groups : str or None
            The column with the labels of groups.
        where : str
            The name of the rows, for error messages.
        """
        if is_frame(X):
            rest = split_frame(X, target, weights, drop, where, groups)[0]
            names = [str(name) for name in rest.columns]
            return cls(names, len(names), target, weights, tuple(drop), groups)
        if len(X.shape) != 2:
            raise InvalidInputError(f"Rows must be a two-dimensional table. Got shape {X.shape}.")
        if named := [name for name in (target, weights, groups, *drop) if name is not None]:
            raise InvalidInputError(
                f"Arrays have no column names. Got the column {named[0]!r}. Pass dataframes, or "
                "pass y, the weights and the groups as arrays."
            )
        return cls(None, int(X.shape[1]))

    def chunk(self, X: Any, y: Any, weights: Any, place: Place, groups: Any = None) -> Chunk:
        """Return a chunk with the columns in this order, or raise an error that names its origin.

        Parameters
        ----------
        X : array, sparse matrix or dataframe
            The rows, including the columns with labels and weights if these are columns.
        y, weights : array-like of shape (n_rows,), or None
            Labels and sample weights that are not columns of X.
        place : Place
            The origin of the rows.
        groups : array-like of shape (n_rows,), optional
            Labels of groups that are not a column of X.
        """
        if self.columns is not None:
            X, *own = split_frame(X, self.target, self.weights, self.drop, place.name, self.groups)
            given = zip((y, weights, groups), own, strict=True)
            y, weights, groups = (column if each is None else each for each, column in given)
            found = {str(name): name for name in X.columns}
            self._refuse_other_columns(list(found), place.name)
            if list(found) != self.columns:
                X = X[[found[name] for name in self.columns]]
        elif X.shape[1:] != (self.n_columns,):
            raise InvalidInputError(
                f"All chunks must have the same number of columns. Got {self.n_columns} in the "
                f"first, and shape {X.shape} in {place.name}."
            )
        return Chunk.of(X, y, weights, place, groups)

    def _refuse_other_columns(self, names: list[str], where: str) -> None:
        """Raise an error if a chunk has other columns than the first chunk."""
        expected = self.columns or []
        missing = [name for name in expected if name not in names]
        strange = [name for name in names if name not in expected]
        if missing or strange:
            wrong = f"no {missing[0]!r}" if missing else f"{strange[0]!r}, unlike the first chunk"
            raise InvalidInputError(
                f"All chunks must have the same columns. {where} has {wrong}. Add or drop the "
                "column, or leave the chunk out."
            )


def split_frame(
    frame: Any,
    target: str | None,
    weights: str | None,
    drop: Sequence[str],
    where: str,
    groups: str | None = None,
) -> tuple[Any, NDArray[Any] | None, Any, Any]:
    """Split a dataframe into features, labels, sample weights and labels of groups.

    Parameters
    ----------
    frame : dataframe
        The rows.
    target, weights : str or None
        The columns with the labels and the sample weights.
    drop : sequence of str
        Columns to leave out.
    where : str
        The name of the rows, for error messages.
    groups : str or None
        The column with the labels of groups.
    """
    if not is_frame(frame):
        raise InvalidInputError(
            "Chunks must be dataframes if columns are selected by name. Got "
            f"{type(frame).__name__} in {where}."
        )
    names = list(frame.columns)
    taken = [name for name in (target, weights, groups, *drop) if name is not None]
    refuse_absent(taken, names, where)
    own = (None if name is None else np.asarray(frame[name]) for name in (target, weights, groups))
    return frame[[name for name in names if name not in taken]], *own


def refuse_absent(wanted: Sequence[str], names: list[Any], where: str) -> None:
    """Raise an error if a column that the user named does not exist.

    Parameters
    ----------
    wanted : sequence of str
        Columns that the user named.
    names : list
        The columns of the rows.
    where : str
        The name of the rows, for error messages.
    """
    for name in wanted:
        if name not in names:
            raise InvalidInputError(
                f"The column {name!r} must be in every chunk. {where} has {listed(names, 8)}."
            )
