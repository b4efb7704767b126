"""Dask clients and schedulers, and errors of lost workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discernel.exceptions import ClusterError, InvalidInputError, needs_extra

#: Seconds to wait for the answer of a scheduler.
_TIMEOUT = 10
#: Advice for partitions that are too large.
SMALLER = (
    "Make partitions smaller, by X.rechunk({0: n_rows}) of an array or X.repartition("
    "partition_size='32MB') of a dataframe, or give workers more memory or fewer threads."
)

#: The number of partial results that one task merges.
FAN_IN = 8


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Run Dask tasks on the workers of a scheduler with an address such as ``tcp://host:8786``."""
    with needs_extra("A scheduler needs Dask", "dask", "leave it out"):
        from distributed import Client
    try:
        client = Client(address, timeout=_TIMEOUT)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"No Dask scheduler answers at {address!r}: "
            f"{error}. `dask scheduler` starts one, and `dask worker ADDRESS` its workers."
        ) from error
    with client:
        yield client


def spread_files(paths: list[Path]) -> Any:
    """Return the rows of Parquet files as a Dask dataframe. Workers read the same paths."""
    import dask.dataframe as dd

    if any(path.suffix.lower() not in (".parquet", ".pq") for path in paths):
        raise InvalidInputError(
            f"Workers read Parquet files. Got {paths[0]}. Write Parquet, or leave out the "
            "scheduler."
        )
    return dd.read_parquet([str(path.absolute()) for path in paths])


def scheduler() -> Any:
    """Return the scheduler function of Dask's settings, by default that of threads."""
    import dask.threaded
    from dask.base import get_scheduler

    return get_scheduler() or dask.threaded.get


def active_client() -> Any:
    """Return the distributed client that Dask would use, or None."""
    found = getattr(scheduler(), "__self__", None)
    return found if hasattr(found, "scheduler_info") else None


def large_graphs() -> Any:
    """Return a context without Dask's warning about large task graphs."""
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "512MiB"})


@contextmanager
def explain_lost_workers() -> Iterator[None]:
    """Translate errors about lost workers, memory or schedulers into advice."""
    try:
        yield
    except MemoryError as error:
        raise InvalidInputError(f"A partition does not fit into memory. {SMALLER}") from error
    except Exception as error:
        name = type(error).__name__
        if name == "KilledWorker":
            raise ClusterError(
                "Several workers died while they processed the same partition, most likely of too "
                f"little memory. {SMALLER}"
            ) from error
        if name in ("CommClosedError", "CancelledError", "FutureCancelledError", "TimeoutError"):
            raise ClusterError(
                "The connection to the scheduler was lost, or it has dropped the tasks: "
                f"{error}. Nothing was changed; connect a new Client and call again."
            ) from error
        raise
