"""Sources: rows in chunks, for data larger than memory, which can be read repeatedly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from discernel.arrays import convert_rows, is_dask, is_frame, is_sparse, memory_limit, n_rows
from discernel.exceptions import InvalidInputError, check_count, listed
from discernel.progress.deadline import is_late
from discernel.rows.chunks import Chunk, Place, Reduction, Report, State
from discernel.rows.formats import refuse_duplicates

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

    def first(self) -> Chunk:
        """Return the first chunk that has rows, or raise an error if there is none."""
        for chunk in self.chunks():
            if chunk.n_rows:
                return chunk
        raise self.no_rows()

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
    y : str or array-like of shape (n_samples,), optional
        The labels, or the column of a dataframe that holds them.
    weights : str or array-like of shape (n_samples,), optional
        The sample weights, in the same forms.
    groups : str or array-like of shape (n_samples,), optional
        The labels of groups of rows, in the same forms.
    drop : sequence of str, optional
        Columns of a dataframe to leave out.
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
        drop: Sequence[str] = (),
        chunk_rows: int | None = None,
        name: str = "X",
    ) -> None:
        layout = Layout.of(X, (y, weights, groups), drop, name)
        X = X.tocsr() if is_sparse(X) else X
        self.rows = layout.chunk(X, (y, weights, groups), Place(name))
        self.columns, self.n_rows = layout.columns, self.rows.n_rows
        self.chunk_rows = chunk_size(_numbers_per_row(self.rows.X), chunk_rows)

    def chunks(self) -> Iterator[Chunk]:
        for first in range(0, self.rows.n_rows, self.chunk_rows):
            chunk = self.rows.part(slice(first, first + self.chunk_rows))
            X = np.array(chunk.X) if isinstance(chunk.X, np.memmap) else chunk.X
            yield replace(chunk, X=X, place=replace(chunk.place, first=first))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rows.place.name}, {self.n_rows} rows)"


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
        self._given, self._names = chunks, ((target, weights, groups), drop)

    def chunks(self) -> Iterator[Chunk]:
        layout = None
        for number, one in enumerate(self._given() if callable(self._given) else self._given):
            X, *given = one if isinstance(one, tuple) else (one,)
            X = convert_rows(X)
            X = X if is_frame(X) or is_sparse(X) else np.asarray(X)
            place = Place(f"chunk {number}", number)
            if n_rows(X) == 0:
                continue
            if layout is None:
                layout = Layout.of(X, *self._names, place.name)
                self.columns = layout.columns
            yield layout.chunk(X, (*given, None, None, None)[:3], place)

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
    labels : tuple of str or None
        The columns with y, the sample weights and the labels of groups; None where these are
        arrays beside X, or absent.
    drop : tuple of str
        Columns to leave out.
    """

    columns: list[str] | None
    n_columns: int
    labels: tuple[str | None, ...] = (None, None, None)
    drop: tuple[str, ...] = ()

    @classmethod
    def of(cls, X: Any, given: Sequence[Any], drop: Sequence[str] = (), where: str = "X") -> Layout:
        """Return the layout of a chunk, or raise an error if the named columns do not exist.

        Parameters
        ----------
        X : array, sparse matrix or dataframe
            The first chunk; for a Dask dataframe, its ``_meta``.
        given : sequence of three objects
            y, weights and groups. Text is the name of a column of X.
        drop : sequence of str
            Columns to leave out.
        where : str
            The name of the rows, for error messages.
        """
        if is_frame(X):
            return cls.of_names(list(X.columns), given, drop, where)
        if len(X.shape) != 2:
            raise InvalidInputError(f"Rows must be a two-dimensional table. Got shape {X.shape}.")
        layout = cls(None, int(X.shape[1]), _named(given), tuple(drop))
        if layout._taken:
            raise InvalidInputError(
                f"Arrays have no column names. Got the column {layout._taken[0]!r}. Pass "
                "dataframes, or pass y, the weights and the groups as arrays."
            )
        return layout

    @classmethod
    def of_names(
        cls, names: Sequence[Any], given: Sequence[Any], drop: Sequence[str], where: str
    ) -> Layout:
        """Return the layout of dataframes with these columns; other parameters as for `of`."""
        refuse_duplicates([str(name) for name in names], where)
        layout = cls([], 0, _named(given), tuple(drop))
        columns = [str(name) for name in layout._features(names, where)]
        if not columns:
            raise InvalidInputError(
                f"{where} must have at least one column besides labels, weights and groups. No "
                "column is left."
            )
        return replace(layout, columns=columns, n_columns=len(columns))

    @property
    def _taken(self) -> list[str]:
        """The named columns that are no features."""
        return [name for name in (*self.labels, *self.drop) if name is not None]

    def _features(self, names: Sequence[Any], where: str) -> list[Any]:
        """Return the names of the features, or raise an error if a named column does not exist."""
        for name in self._taken:
            if name not in names:
                raise InvalidInputError(
                    f"The column {name!r} must be in every chunk. {where} has {listed(names, 8)}."
                )
        return [name for name in names if name not in self._taken]

    def chunk(self, X: Any, given: Sequence[Any], place: Place) -> Chunk:
        """Return a chunk with the columns in this order, or raise an error that names its origin.

        Parameters
        ----------
        X : array, sparse matrix or dataframe
            The rows, including the columns with labels and weights if these are columns.
        given : sequence of three objects
            y, weights and groups: arrays, None, or the names of columns of X.
        place : Place
            The origin of the rows.
        """
        given = [None if isinstance(each, str) else each for each in given]
        if self.columns is not None:
            X, given = self._split(X, given, place.name)
        elif X.shape[1:] != (self.n_columns,):
            raise InvalidInputError(
                f"All chunks must have the same number of columns. Got {self.n_columns} in the "
                f"first, and shape {X.shape} in {place.name}."
            )
        y, weights, groups = given
        return Chunk.of(X, y, weights, place, groups)

    def _split(self, X: Any, given: Sequence[Any], where: str) -> tuple[Any, list[Any]]:
        """Return the features of a dataframe, and its columns of y, weights and groups."""
        if not is_frame(X):
            raise InvalidInputError(
                "Chunks must be dataframes if columns are selected by name. Got "
                f"{type(X).__name__} in {where}."
            )
        names, expected = list(X.columns), self.columns or []
        features = self._features(names, where)
        given = [
            np.asarray(X[name]) if each is None and name is not None else each
            for each, name in zip(given, self.labels, strict=True)
        ]
        found = {str(name): name for name in features}
        missing = [name for name in expected if name not in found]
        strange = [name for name in found if name not in expected]
        if missing or strange:
            wrong = f"no {missing[0]!r}" if missing else f"{strange[0]!r}, unlike the first chunk"
            raise InvalidInputError(
                f"All chunks must have the same columns. {where} has {wrong}. Add or drop the "
                "column, or leave the chunk out."
            )
        if list(map(str, names)) != expected:
            X = X[[found[name] for name in expected]]
        return X, given


def _named(given: Sequence[Any]) -> tuple[str | None, ...]:
    """Return the names of columns; None in place of arrays."""
    return tuple(each if isinstance(each, str) else None for each in given)
