"""Who does the tasks of Dask, and what is said when they are gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discernel.exceptions import ClusterError, InvalidInputError, missing_extra

#: Seconds until a scheduler that does not answer is not there.
_PATIENCE = 10
#: What to do where a partition is too large.
SMALLER = (
    "Make partitions smaller, by X.rechunk({0: n_rows}) of an array or X.repartition("
    "partition_size='32MB') of a dataframe, or give workers more memory or fewer threads."
)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Have tasks done by the workers of a scheduler, at an address such as ``tcp://host:8786``."""
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


def spread_files(paths: list[Path]) -> Any:
    """Return the rows of Parquet files as a Dask dataframe; workers see them by the same names."""
    import dask.dataframe as dd

    if any(path.suffix.lower() not in (".parquet", ".pq") for path in paths):
        raise InvalidInputError(
            f"Workers read Parquet files. Got {paths[0]}. Write Parquet, or do without a scheduler."
        )
    return dd.read_parquet([str(path.absolute()) for path in paths])


def scheduler() -> Any:
    """Return what does the tasks of a graph, by Dask's own settings; else threads."""
    import dask.threaded
    from dask.base import get_scheduler

    return get_scheduler() or dask.threaded.get


def active_client() -> Any:
    """Return the client that Dask would use, or None where it would use this process."""
    found = getattr(scheduler(), "__self__", None)
    return found if hasattr(found, "scheduler_info") else None


def large_graphs() -> Any:
    """Let what all tasks need travel with them, once, without a word of warning."""
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "512MiB"})


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
