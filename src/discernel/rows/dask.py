"""A `Source` of Dask arrays and dataframes; workers summarize and predict their own partitions."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import is_frame
from discernel.arrays.cluster import (
    FAN_IN,
    SMALLER,
    active_client,
    explain_lost_workers,
    large_graphs,
    scheduler,
)
from discernel.exceptions import InvalidInputError
from discernel.rows.chunks import Chunk, Place, Reduction, Report, State, stack_rows
from discernel.rows.sources import Layout, Result, Source

#: The memory of a worker thread must hold a partition, its encoded numbers and some features.
_COPIES = 3


class DaskSource(Source):
    """Rows of a Dask array or dataframe; each partition is a chunk.

    Tasks run on the active ``distributed.Client``, or else on Dask's configured scheduler, by
    default threads. Summaries are merged in a tree that depends only on the partition numbers, so
    that the result does not depend on the assignment of tasks to workers.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        The rows. Their number may be unknown.
    labels : sequence of three str, one-dimensional Dask collections or None
        y, weights and groups: columns, or collections with the partitions of X. If X is an array
        with known chunk sizes, they may also be arrays in memory.
    drop : sequence of str
        Columns to leave out.
    """

    def __init__(self, X: Any, labels: Sequence[Any], drop: Sequence[str]) -> None:
        is_table = is_frame(X)
        self._layout, self._rows_of_first = _layout(X, labels, drop), None
        self.columns = self._layout.columns
        if not is_table:
            X = X.rechunk({1: -1})
            self.n_rows = None if np.isnan(X.shape[0]) else int(X.shape[0])
        self._largest = None if is_table else _largest_bytes(X)
        given = [
            None if each is None or name is not None else _aligned(each, X, what)
            for each, name, what in zip(
                labels, self._layout.labels, ("y", "weights", "groups"), strict=True
            )
        ]
        self._graph, self._keys = _partitions([X, *given])

    @property
    def n_partitions(self) -> int:
        """The number of partitions, including empty ones."""
        return len(self._keys)

    @property
    def estimated_n_rows(self) -> int | None:
        """The number of rows; if unknown, estimated from the first partition with rows."""
        if self.n_rows is not None or self._rows_of_first is None:
            return self.n_rows
        return int(self._rows_of_first * self.n_partitions)

    def chunks(self) -> Iterator[Chunk]:
        self._check_memory(active_client())
        for part in range(self.n_partitions):
            (chunk,) = self._mapped(_chunk, None, range(part, part + 1))
            self._rows_of_first = self._rows_of_first or chunk.n_rows or None
            yield chunk

    def map(self, work: Callable[[Chunk], Result]) -> Iterator[Result]:
        for first in range(0, self.n_partitions, FAN_IN):
            some = range(first, min(first + FAN_IN, self.n_partitions))
            yield from (found[0] for found in self._mapped(_worked, work, some) if found)

    def reduce(self, reduction: Reduction[State], report: Report | None = None) -> State:
        client = active_client()
        self._check_memory(client)
        graph, keys = self._tasks(_summed, reduction, range(self.n_partitions))
        sent, count, merge = graph[keys[0]][1], _new_name("count"), _new_name("merge")
        # Progress uses separate tasks for the row counts, so that workers can release a summary
        # as soon as it is merged.
        counts = [(count, i) for i in range(len(keys))]
        graph |= {each: (_n_rows, key) for each, key in zip(counts, keys, strict=True)}
        level = 0
        while len(keys) > 1:
            groups = [keys[i : i + FAN_IN] for i in range(0, len(keys), FAN_IN)]
            keys = [(merge, level, i) for i in range(len(groups))]
            graph |= {key: (_merged, sent, some) for key, some in zip(keys, groups, strict=True)}
            level += 1
        found: _Summary[State] | None = _compute_root(client, graph, keys[0], counts, report)
        if found is None:
            raise self.no_rows()
        return found.state

    def _mapped(self, work: Callable[..., Any], value: Any, parts: range) -> list[Any]:
        """Return the results of a function for some partitions."""
        from dask.optimization import cull

        graph, keys = self._tasks(work, value, parts)
        needed, _ = cull(graph, keys)
        with explain_lost_workers(), large_graphs():
            return list(scheduler()(needed, keys))

    def _tasks(
        self, work: Callable[..., Any], value: Any, parts: range
    ) -> tuple[dict[Any, Any], list[Any]]:
        """Return a task graph that calls a function for some partitions, and its result keys."""
        name, sent = _new_name(work.__name__.strip("_")), _new_name("sent")
        tasks: dict[Any, Any] = {(name, i): (work, sent, i, *self._keys[i]) for i in parts}
        return {**self._graph, sent: Sent(self._layout, value), **tasks}, list(tasks)

    def _check_memory(self, client: Any) -> None:
        """Raise an error if a partition of known size does not fit into a worker's memory."""
        info = {} if client is None else client.scheduler_info(n_workers=-1)["workers"]
        limits = [
            each["memory_limit"] / max(1, each["nthreads"])
            for each in info.values()
            if each["memory_limit"]
        ]
        if limits and self._largest is not None and _COPIES * self._largest > min(limits):
            raise InvalidInputError(
                f"A partition must fit {_COPIES} times into the memory of a worker's thread "
                f"({min(limits) / 2**20:,.0f} MiB). Got partitions of up to "
                f"{self._largest / 2**20:,.0f} MiB. {SMALLER}"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_partitions} partitions)"


def _compute_root(
    client: Any, graph: dict[Any, Any], root: Any, counts: list[Any], report: Report | None
) -> Any:
    """Compute the root of a task graph, and report the rows of finished partitions."""
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
            with suppress(Exception):  # the scheduler may be gone
                client.cancel(futures)


@contextmanager
def _reporting(counts: set[Any], report: Report | None) -> Iterator[None]:
    """Report the number of rows done as a local scheduler finishes tasks."""
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


def _layout(X: Any, labels: Sequence[Any] = (None,) * 3, drop: Sequence[str] = ()) -> Layout:
    """Return the layout of a Dask collection."""
    return Layout.of(X._meta if is_frame(X) else X, labels, drop, "the dataframe")


def _partitions(given: list[Any]) -> tuple[dict[Any, Any], list[tuple[Any, ...]]]:
    """Return the task graph of X, y, weights and groups, and their keys for each partition."""
    from dask.core import flatten

    # Optimized one by one: optimized together, collections may get each other's keys.
    collections = [each.optimize() if hasattr(each, "optimize") else each for each in given]
    graph: dict[Any, Any] = {}
    columns: list[Iterable[Any]] = []
    for each in collections:
        if each is None:
            columns.append(itertools.repeat(None))
            continue
        keys = each.__dask_keys__()
        tasks = each.__dask_graph__()
        graph |= dict(each.__dask_optimize__(tasks, keys) if hasattr(each, "chunks") else tasks)
        columns.append(list(flatten(keys)))
    return graph, list(zip(*columns, strict=False))


def _new_name(what: str) -> str:
    """Return a unique task name.

    Parameters
    ----------
    what : str
        The prefix, which Dask's dashboard shows.
    """
    return f"{what}-{uuid.uuid4().hex}"


def _aligned(given: Any, X: Any, what: str) -> Any:
    """Return labels or weights with the partitions of X, or raise an error if they do not match."""
    import dask
    import dask.array as da

    known = not is_frame(X) and not np.isnan(X.shape[0])
    if not dask.is_dask_collection(given):
        if not known:
            raise InvalidInputError(
                f"If the number of rows is unknown, {what} must be a Dask collection with the "
                f"partitions of X. Got {type(given).__name__}. Pass the name of a column; or call "
                "X.compute_chunk_sizes() first, if X is an array."
            )
        given = da.from_array(np.asarray(given), chunks=-1)
    if getattr(given, "ndim", 1) != 1:
        raise InvalidInputError(
            f"{what} should be a 1d array with one entry per row. Got a {type(given).__name__} "
            f"with {given.ndim} dimensions; from a dataframe, select one column."
        )
    if known and not is_frame(given) and hasattr(given, "chunks") and not np.isnan(given.shape[0]):
        if given.shape[0] != X.shape[0]:
            raise InvalidInputError(
                f"{what} must have one entry per row. Got {X.shape[0]} rows and "
                f"{given.shape[0]} entries."
            )
        given = given.rechunk((X.chunks[0],))
    if given.npartitions != X.npartitions:
        raise InvalidInputError(
            f"{what} must have as many partitions as X. Got {given.npartitions} and "
            f"{X.npartitions}. Take both from one dataframe, or call {what}.repartition."
        )
    return given


def _largest_bytes(X: Any) -> int | None:
    """Return the size in bytes of the largest partition of a dense array; None if unknown."""
    if np.isnan(X.shape[0]) or not isinstance(X._meta, np.ndarray) or X.dtype == object:
        return None
    return int(max(X.chunks[0], default=0) * X.shape[1] * X.dtype.itemsize)


def load_chunks(source: Source) -> tuple[Any, Any, Any, Any]:
    """Load all rows, labels, weights and groups of a source into memory.

    Parameters
    ----------
    source : Source
        Rows that fit into memory.
    """
    chunks = [chunk for chunk in source.chunks() if chunk.n_rows]
    if not chunks:
        raise source.no_rows()
    columns: list[list[Any]] = [[chunk.y, chunk.weights, chunk.groups] for chunk in chunks]
    y, weights, groups = (
        None if parts[0] is None else np.concatenate(parts) for parts in zip(*columns, strict=True)
    )
    return stack_rows([chunk.X for chunk in chunks]), y, weights, groups


# ---- tasks -------------------------------------------------------------------------------------


class Sent:
    """The shared input of all tasks, as one task: sent once, then passed between workers.

    It is not scattered, because scattered data are lost with the last worker that holds them. It
    is not a dataclass, because Dask searches dataclasses for collections.
    """

    def __init__(self, layout: Layout, value: Any) -> None:
        self.layout, self.value = layout, value


@dataclass(frozen=True, eq=False)
class _Summary(Generic[State]):
    """The state of a reduction over some partitions, and their number of rows."""

    state: State
    n_rows: int


def _chunk(sent: Sent, part: int, X: Any, *given: Any) -> Chunk:
    """Return a partition as a chunk."""
    return sent.layout.chunk(X, given, Place(f"partition {part}", part))


def _summed(sent: Sent, part: int, X: Any, *given: Any) -> _Summary[Any] | None:
    """Return the summary of a partition; None for an empty partition."""
    chunk = _chunk(sent, part, X, *given)
    if chunk.n_rows == 0:
        return None
    reduction: Reduction[Any] = sent.value
    return _Summary(reduction.add(reduction.start(), chunk), chunk.n_rows)


def _merged(sent: Sent, parts: Sequence[_Summary[Any] | None]) -> _Summary[Any] | None:
    """Merge several summaries, in order.

    They are merged into a new state, because a task must not modify its inputs: Dask may run it
    again.
    """
    reduction: Reduction[Any] = sent.value
    summaries = [part for part in parts if part is not None]
    if not summaries:
        return None
    state = reduction.start()
    for summary in summaries:
        state = reduction.merge(state, summary.state)
    return _Summary(state, sum(summary.n_rows for summary in summaries))


def _n_rows(summary: _Summary[Any] | None) -> int:
    return 0 if summary is None else summary.n_rows


def _worked(sent: Sent, part: int, X: Any, *given: Any) -> tuple[Any] | None:
    """Return the result of a function for a partition in a tuple; None for an empty partition."""
    chunk = _chunk(sent, part, X, *given)
    return (sent.value(chunk),) if chunk.n_rows else None


# ---- lazy predictions --------------------------------------------------------------------------


def map_lazily(
    work: Callable[[Chunk], NDArray[Any]], X: Any, shape: tuple[int, ...], dtype: Any
) -> Any:
    """Return a lazy Dask array of the results of a function for each partition.

    Parameters
    ----------
    work : callable
        Takes a `Chunk`, and returns an array with one entry per row. It is sent to workers once.
    X : dask.array.Array or dask.dataframe.DataFrame
        The rows.
    shape : tuple of int
        The shape of the result for one row.
    dtype : dtype
        The type of the results.
    """
    import dask.array as da
    from dask.core import flatten
    from dask.highlevelgraph import HighLevelGraph

    layout = _layout(X)
    is_array = layout.columns is None
    X = X.rechunk({1: -1}) if is_array else X.optimize()
    empty = np.empty((0, *shape), dtype=dtype)
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
    """Return the result of a function for a partition; an empty array for an empty partition."""
    chunk = _chunk(sent, part, X, None, None, None)
    work, empty = sent.value
    return np.asarray(work(chunk), dtype=empty.dtype) if chunk.n_rows else empty
