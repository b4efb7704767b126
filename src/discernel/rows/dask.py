"""Rows in Dask arrays and dataframes, summed up and predicted where they lie."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import is_frame
from discernel.arrays.cluster import (
    SMALLER,
    active_client,
    explain_lost_workers,
    large_graphs,
    scheduler,
)
from discernel.exceptions import InvalidInputError
from discernel.rows.chunks import Chunk, Place, Reduction, Report, stack_rows
from discernel.rows.sources import Layout, Source

State = TypeVar("State")
Result = TypeVar("Result")

#: Summaries that are merged at a time.
_FAN_IN = 8
#: A partition, its cells as numbers and some features must fit into the memory of a thread.
_COPIES = 3


class DaskSource(Source):
    """Rows of a Dask array or dataframe; a chunk is a partition.

    Work is done where the partitions lie: by the active ``distributed.Client``, if there is one,
    else by the scheduler that Dask is set to, threads by default. Summaries are merged along a
    tree that is fixed by the numbers of the partitions, so that the result does not depend on
    which worker does what, when, or how often.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        The rows. Their number need not be known.
    y : str or Dask collection of one dimension, optional
        The column that is to be predicted, or what is, in the same partitions. Of an array with
        known chunks also an array in memory.
    weights : str or Dask collection of one dimension, optional
        How much each row counts, likewise.
    drop : sequence of str, optional
        Columns to leave out.
    """

    def __init__(
        self, X: Any, y: Any = None, weights: Any = None, drop: Sequence[str] = ()
    ) -> None:
        is_table = is_frame(X)
        names = [each if isinstance(each, str) else None for each in (y, weights)]
        layout = _layout(X, names[0], names[1], drop)
        if not is_table:
            X = X.rechunk({1: -1})
            self.n_rows = None if np.isnan(X.shape[0]) else int(X.shape[0])
        self.columns = layout.columns
        self._layout, self._rows_of_first = layout, None
        self._largest = None if is_table else _largest_bytes(X)
        given = [
            None if each is None or name is not None else _aligned(each, X, what)
            for each, name, what in zip((y, weights), names, ("y", "weights"), strict=True)
        ]
        self._graph, self._keys = _partitions([X, *given])

    @property
    def n_partitions(self) -> int:
        """The number of partitions, those without rows too."""
        return len(self._keys)

    @property
    def estimated_n_rows(self) -> int | None:
        """The rows; where nobody has counted, as if all partitions were like the first."""
        if self.n_rows is not None or self._rows_of_first is None:
            return self.n_rows
        return int(self._rows_of_first * self.n_partitions)

    def chunks(self) -> Iterator[Chunk]:
        self._check_room(active_client())
        for part in range(self.n_partitions):
            (chunk,) = self._mapped(_chunk, None, range(part, part + 1))
            self._rows_of_first = self._rows_of_first or chunk.n_rows or None
            yield chunk

    def map(self, work: Callable[[Chunk], Result]) -> Iterator[Result]:
        for first in range(0, self.n_partitions, _FAN_IN):
            some = range(first, min(first + _FAN_IN, self.n_partitions))
            yield from (found[0] for found in self._mapped(_worked, work, some) if found)

    def reduce(self, reduction: Reduction[State], report: Report | None = None) -> State:
        client = active_client()
        self._check_room(client)
        graph, keys = self._tasks(_summed, reduction, range(self.n_partitions))
        sent, count, merge = graph[keys[0]][1], _new_name("count"), _new_name("merge")
        # The client asks for the numbers of rows, so that a summary is dropped once it is merged.
        counts = [(count, i) for i in range(len(keys))]
        graph |= {each: (_n_rows, key) for each, key in zip(counts, keys, strict=True)}
        level = 0
        while len(keys) > 1:
            groups = [keys[i : i + _FAN_IN] for i in range(0, len(keys), _FAN_IN)]
            keys = [(merge, level, i) for i in range(len(groups))]
            graph |= {key: (_merged, sent, some) for key, some in zip(keys, groups, strict=True)}
            level += 1
        found: _Summary[State] | None = _root(client, graph, keys[0], counts, report)
        if found is None:
            raise self.no_rows()
        return found.state

    def _mapped(self, work: Callable[..., Any], value: Any, parts: range) -> list[Any]:
        """Return what work makes of some partitions."""
        from dask.optimization import cull

        graph, keys = self._tasks(work, value, parts)
        needed, _ = cull(graph, keys)
        with explain_lost_workers(), large_graphs():
            return list(scheduler()(needed, keys))

    def _tasks(
        self, work: Callable[..., Any], value: Any, parts: range
    ) -> tuple[dict[Any, Any], list[Any]]:
        """Return tasks, and the keys of those that do work for each of some partitions."""
        name, sent = _new_name(work.__name__.strip("_")), _new_name("sent")
        tasks: dict[Any, Any] = {(name, i): (work, sent, i, *self._keys[i]) for i in parts}
        return {**self._graph, sent: Sent(self._layout, value), **tasks}, list(tasks)

    def _check_room(self, client: Any) -> None:
        """Raise a clear error where a partition is known not to fit into the memory of a worker."""
        info = {} if client is None else client.scheduler_info(n_workers=-1)["workers"]
        limits = [
            each["memory_limit"] / max(1, each["nthreads"])
            for each in info.values()
            if each["memory_limit"]
        ]
        if limits and self._largest is not None and _COPIES * self._largest > min(limits):
            raise InvalidInputError(
                f"A partition must fit {_COPIES} times into the memory of a worker's thread, here "
                f"of {min(limits) / 2**20:,.0f} MiB. Got partitions of up to "
                f"{self._largest / 2**20:,.0f} MiB. {SMALLER}"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_partitions} partitions)"


def _root(
    client: Any, graph: dict[Any, Any], root: Any, counts: list[Any], report: Report | None
) -> Any:
    """Return the root of a tree of tasks, and report as the numbers of rows of leaves are known."""
    if client is None:
        with explain_lost_workers(), _reporting(set(counts), report):
            return scheduler()(graph, [root, *counts])[0]
    from distributed import as_completed

    futures: list[Any] = []
    with explain_lost_workers():
        try:
            with large_graphs():
                futures = client.get(graph, [root, *counts], sync=False)
            done = 0
            for future in as_completed(futures[1:]):
                done += future.result()
                if report is not None and done:
                    report(done)
            return futures[0].result()
        finally:
            with suppress(Exception):  # where nobody is left to be told
                client.cancel(futures)


@contextmanager
def _reporting(counts: set[Any], report: Report | None) -> Iterator[None]:
    """Report the rows that are done, as a scheduler of this process finishes tasks."""
    from dask.callbacks import Callback

    done = 0

    def finished(key: Any, value: Any, *_: Any) -> None:
        nonlocal done
        if key in counts and report is not None and value:
            done += value
            report(done)

    with Callback(posttask=finished):
        yield


# ---- partitions --------------------------------------------------------------------------------


def _layout(
    X: Any, target: str | None = None, weights: str | None = None, drop: Sequence[str] = ()
) -> Layout:
    """Return the layout of a Dask collection."""
    return Layout.of(X._meta if is_frame(X) else X, target, weights, drop, "the dataframe")


def _partitions(given: list[Any]) -> tuple[dict[Any, Any], list[tuple[Any, ...]]]:
    """Return the tasks that make X, y and weights, and the keys of these, partition by partition.

    None stands for what there is not.
    """
    from dask.core import flatten

    # Each on its own: where several are optimized together, their keys may be taken for others.
    there = [each.optimize() if hasattr(each, "optimize") else each for each in given]
    graph: dict[Any, Any] = {}
    columns: list[Iterable[Any]] = []
    for each in there:
        if each is None:
            columns.append(itertools.repeat(None))
            continue
        keys = each.__dask_keys__()
        tasks = each.__dask_graph__()
        graph |= dict(each.__dask_optimize__(tasks, keys) if hasattr(each, "chunks") else tasks)
        columns.append(list(flatten(keys)))
    return graph, list(zip(*columns, strict=False))


def _new_name(what: str) -> str:
    """Return a name that no other task has.

    Parameters
    ----------
    what : str
        The work of the task, which Dask shows.
    """
    return f"{what}-{uuid.uuid4().hex}"


def _aligned(given: Any, X: Any, what: str) -> Any:
    """Return labels or weights in the partitions of the rows, or raise a clear error."""
    import dask
    import dask.array as da

    known = not is_frame(X) and not np.isnan(X.shape[0])
    if not dask.is_dask_collection(given):
        if not known:
            raise InvalidInputError(
                f"With rows of unknown number, {what} must be a Dask collection with the same "
                f"partitions. Got {type(given).__name__}. Give the name of a column; or call "
                "X.compute_chunk_sizes() first, if X is an array."
            )
        given = da.from_array(np.asarray(given), chunks=-1)
    if getattr(given, "ndim", 1) != 1:
        raise InvalidInputError(
            f"{what} should be a 1d array, one per row. Got a {type(given).__name__} of "
            f"{given.ndim} dimensions; of a dataframe, give one column."
        )
    if known and not is_frame(given) and hasattr(given, "chunks") and not np.isnan(given.shape[0]):
        if given.shape[0] != X.shape[0]:
            raise InvalidInputError(
                f"{what} must have one entry per row. Got {X.shape[0]} rows and {given.shape[0]}."
            )
        given = given.rechunk((X.chunks[0],))
    if given.npartitions != X.npartitions:
        raise InvalidInputError(
            f"{what} must have the partitions of X. Got {given.npartitions} and {X.npartitions}. "
            f"Take both from one dataframe, or call {what}.repartition."
        )
    return given


def _largest_bytes(X: Any) -> int | None:
    """Return the bytes of the largest partition of a dense array; None where they are not known."""
    if np.isnan(X.shape[0]) or not isinstance(X._meta, np.ndarray) or X.dtype == object:
        return None
    return int(max(X.chunks[0], default=0) * X.shape[1] * X.dtype.itemsize)


def gathered(source: Source) -> tuple[Any, Any, Any]:
    """Return all rows, labels and weights in memory, a partition after another.

    Parameters
    ----------
    source : Source
        Rows that are few enough.
    """
    chunks = [chunk for chunk in source.chunks() if chunk.n_rows]
    if not chunks:
        raise source.no_rows()
    columns: list[list[Any]] = [[chunk.y, chunk.weights] for chunk in chunks]
    y, weights = (
        None if parts[0] is None else np.concatenate(parts) for parts in zip(*columns, strict=True)
    )
    return stack_rows([chunk.X for chunk in chunks]), y, weights


# ---- tasks -------------------------------------------------------------------------------------


class Sent:
    """The inputs of all tasks, as one task: sent once, then passed on between workers.

    Not scattered, since what was scattered is gone with the last worker that has it. Not a
    dataclass, into which Dask would look for collections.
    """

    def __init__(self, layout: Layout, value: Any) -> None:
        self.layout, self.value = layout, value


@dataclass(frozen=True, eq=False)
class _Summary(Generic[State]):
    """The summary of some partitions with rows."""

    state: State
    n_rows: int


def _chunk(sent: Sent, part: int, X: Any, y: Any = None, weights: Any = None) -> Chunk:
    """Return a partition as a chunk."""
    return sent.layout.chunk(X, y, weights, Place(f"partition {part}", part))


def _summed(sent: Sent, part: int, X: Any, y: Any, weights: Any) -> _Summary[Any] | None:
    """Return the summary of a partition; None without rows."""
    chunk = _chunk(sent, part, X, y, weights)
    if chunk.n_rows == 0:
        return None
    reduction: Reduction[Any] = sent.value
    return _Summary(reduction.add(reduction.start(), chunk), chunk.n_rows)


def _merged(sent: Sent, parts: Sequence[_Summary[Any] | None]) -> _Summary[Any] | None:
    """Return the summary of several, in their order.

    They are merged into one of no rows: a task must not change what another made, since it may be
    done again.
    """
    reduction: Reduction[Any] = sent.value
    there = [part for part in parts if part is not None]
    if not there:
        return None
    state = reduction.start()
    for part in there:
        state = reduction.merge(state, part.state)
    return _Summary(state, sum(part.n_rows for part in there))


def _n_rows(summary: _Summary[Any] | None) -> int:
    return 0 if summary is None else summary.n_rows


def _worked(sent: Sent, part: int, X: Any, y: Any, weights: Any) -> tuple[Any] | None:
    """Return what work makes of a partition; None without rows."""
    chunk = _chunk(sent, part, X, y, weights)
    return (sent.value(chunk),) if chunk.n_rows else None


# ---- predictions, made when they are asked for -------------------------------------------------


def lazily(work: Callable[[Chunk], NDArray[Any]], X: Any, n_columns: int | None, dtype: Any) -> Any:
    """Return what work makes of the partitions of a Dask collection, as a Dask array of them.

    Parameters
    ----------
    work : callable
        Takes a `Chunk` with rows, and returns an array with as many. It is sent once.
    X : dask.array.Array or dask.dataframe.DataFrame
        Rows.
    n_columns : int or None
        The columns of what it returns; None where that has one dimension.
    dtype : dtype
        Of what it returns.
    """
    import dask.array as da
    from dask.core import flatten
    from dask.highlevelgraph import HighLevelGraph

    layout = _layout(X)
    is_array = layout.columns is None
    X = X.rechunk({1: -1}) if is_array else X.optimize()
    empty = np.empty((0,) if n_columns is None else (0, n_columns), dtype=dtype)
    sent, name = _new_name("model"), _new_name(getattr(work, "__name__", "predict"))
    tasks: dict[Any, Any] = {sent: Sent(layout, (work, empty))}
    rest = (0,) * (empty.ndim - 1)
    for part, key in enumerate(flatten(X.__dask_keys__())):
        tasks[(name, part, *rest)] = (_of_part, sent, part, key)
    rows = X.chunks[0] if is_array else (np.nan,) * X.npartitions
    return da.Array(
        HighLevelGraph.from_collections(name, tasks, dependencies=[X]),
        name,
        chunks=(rows, *((width,) for width in empty.shape[1:])),
        meta=empty,
    )


def _of_part(sent: Sent, part: int, X: Any) -> NDArray[Any]:
    """Return what work makes of a partition; without rows, an array without."""
    chunk = _chunk(sent, part, X)
    work, empty = sent.value
    return np.asarray(work(chunk), dtype=empty.dtype) if chunk.n_rows else empty
