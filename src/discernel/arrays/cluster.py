"""Who does the tasks of Dask, what is said while they do, and what when they are gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from discernel.exceptions import ClusterError, InvalidInputError, missing_extra

__all__ = [
    "SMALLER",
    "active_client",
    "computed",
    "connected",
    "explain_lost_workers",
    "large_graphs",
    "memory_of_threads",
    "reduced",
    "spread_files",
]

#: Seconds until a scheduler that does not answer is not there.
_PATIENCE = 10

#: What to do where a partition is too large.
SMALLER = (
    "Make partitions smaller, by X.rechunk({0: n_rows}) of an array or X.repartition("
    "partition_size='32MB') of a dataframe, or give workers more memory or fewer threads."
)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Have tasks done by the workers of a scheduler, or raise a clear error.

    Parameters
    ----------
    address : str
        Where it is, such as ``tcp://host:8786``.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise missing_extra("A scheduler needs Dask", "dask", "do without one") from error
    try:
        client = Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"A Dask scheduler must be at the address. Got {address!r}, where none answers: "
            f"{error}. `dask scheduler` starts one, and `dask worker ADDRESS` its workers."
        ) from error
    with client:
        yield client


def spread_files(paths: Sequence[Path]) -> Any:
    """Return the rows of Parquet files as a Dask dataframe, or raise a clear error.

    Parameters
    ----------
    paths : sequence of Path
        The files, which workers see under the same names.
    """
    import dask.dataframe as dd

    if any(path.suffix.lower() not in (".parquet", ".pq") for path in paths):
        raise InvalidInputError(
            f"Workers read Parquet files. Got {paths[0]}. Write Parquet, or do without a scheduler."
        )
    return dd.read_parquet([str(path.absolute()) for path in paths])


def active_client() -> Any:
    """Return the client that Dask would use, or None where it would use this process."""
    found = getattr(_scheduler(), "__self__", None)
    return found if hasattr(found, "scheduler_info") else None


def _scheduler() -> Any:
    """Return what does the tasks of a graph, by Dask's own settings; else threads."""
    import dask.threaded
    from dask.base import get_scheduler

    return get_scheduler() or dask.threaded.get


def memory_of_threads(client: Any) -> list[float]:
    """Return how much memory each worker has for a thread, where it says so.

    Parameters
    ----------
    client : distributed.Client
        Who knows the workers.
    """
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return [
        each["memory_limit"] / max(1, each["nthreads"]) for each in workers if each["memory_limit"]
    ]


def computed(graph: dict[Any, Any], keys: list[Any]) -> list[Any]:
    """Return what tasks give, or raise a clear error.

    Parameters
    ----------
    graph : dict
        Tasks, of which those are done that are needed.
    keys : list
        The keys of those that are asked for.
    """
    from dask.optimization import cull

    needed, _ = cull(graph, keys)
    with explain_lost_workers(), large_graphs():
        return list(_scheduler()(needed, keys))


def reduced(
    client: Any,
    graph: dict[Any, Any],
    root: Any,
    counts: list[Any],
    report: Callable[[int], Any] | None,
) -> Any:
    """Return what the root of a tree is, and report as its leaves are done.

    Parameters
    ----------
    client : distributed.Client or None
        Who has the tasks done; None for this process.
    graph : dict
        Tasks.
    root : object
        The key of the root.
    counts : list
        The keys of the numbers of rows of each leaf.
    report : callable or None
        Told how many rows are done.
    """
    if client is None:
        with explain_lost_workers(), _reporting(set(counts), report):
            return _scheduler()(graph, [root, *counts])[0]
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


def large_graphs() -> Any:
    """Let what all tasks need travel with them, once, without a word of warning."""
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "512MiB"})


@contextmanager
def _reporting(counts: set[Any], report: Callable[[int], Any] | None) -> Iterator[None]:
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


@contextmanager
def explain_lost_workers() -> Iterator[None]:
    """Say what to do where workers, their memory or the scheduler are gone."""
    try:
        yield
    except MemoryError as error:
        raise InvalidInputError(f"A partition does not fit into memory. {SMALLER}") from error
    except Exception as error:
        name = type(error).__name__
        if name == "KilledWorker":
            raise ClusterError(
                "Workers must live through a partition, but several died of the same one, most "
                f"likely of too little memory. {SMALLER}"
            ) from error
        if name in ("CommClosedError", "CancelledError", "FutureCancelledError", "TimeoutError"):
            raise ClusterError(
                "The scheduler must be there until all is done, but it has gone, or has forgotten "
                f"the work: {error}. Nothing was changed; connect a new Client, and call again."
            ) from error
        raise
