"""Rows on a Dask cluster: two workers of one thread and 3 GB, a quarter of a million and a million.

The rows are those of `streams.py`, in Parquet files of which a row group is a partition. A process
of its own starts the cluster, fits the default, and predicts test rows; the memory is the most that
any worker, and the process itself, has had. Histogram gradient boosting on the same rows, and the
default in memory on 5,000 of them, are run as in `streams.py`.

Claims, of the whole: the time grows by at most 4.4 from the first size to the second, the accuracy
is at least that of boosting, and above that of few rows. ``python cluster.py 250000`` measures
one size; only the whole is recorded.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import streams
from common import write_record

SIZES = (250_000, 1_000_000)
N_WORKERS, MEMORY = 2, "3GB"
#: Rows of a file, of which every group is a partition.
PART, GROUP = streams.PART, 25_000
#: What the time may grow by.
MOST_GROWTH = 4.4


def write_rows(folder: Path, n_rows: int) -> None:
    """Write rows to files of several groups."""
    import pandas as pd

    for number, first in enumerate(range(0, n_rows, PART)):
        X, y, _ = streams.draw(min(PART, n_rows - first), number)
        frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(streams.N_COLUMNS)]).assign(y=y)
        frame.to_parquet(folder / f"part-{number:04d}.parquet", row_group_size=GROUP)


def fit_cluster(folder: str) -> dict[str, Any]:
    """Fit the default to a folder on a cluster, and predict the test rows there."""
    import dask.array as da
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from discernel import MultipleKernelDiscriminant

    ends: dict[int, float] = {}
    with (
        LocalCluster(
            n_workers=N_WORKERS,
            threads_per_worker=1,
            memory_limit=MEMORY,
            processes=True,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        rows = dd.read_parquet(folder, split_row_groups=1)
        begun = time.perf_counter()

        def heard(progress: Any) -> None:
            if hasattr(progress, "rows"):
                ends[progress.stage] = time.perf_counter() - begun

        clf = MultipleKernelDiscriminant(callback=heard).fit(rows, "y")
        found = {
            "seconds": time.perf_counter() - begun,
            "seconds_survey": ends[0],
            "seconds_until_sums": ends[1],
            "partitions": rows.npartitions,
            "memory_of_workers_mib": list(client.run(streams.peak_memory).values()),
            "memory_of_client_mib": streams.peak_memory(),
            "rank": clf.streamed_.rank,
            "captured": clf.streamed_.captured,
        }
        X, y, _ = streams.draw(streams.N_TEST, 10**9)
        begun = time.perf_counter()
        columns = [f"x{i}" for i in range(streams.N_COLUMNS)]
        lazy = clf.predict_proba(dd.from_dask_array(da.from_array(X, (5_000, -1)), columns=columns))
        predicted = lazy.compute()
        found["seconds_predict"] = time.perf_counter() - begun
    found["accuracy"] = float(np.mean(predicted.argmax(axis=1) == y))
    found["log_loss"] = -float(np.log(predicted[np.arange(len(y)), y]).mean())
    return found


def alone(folder: Path) -> dict[str, Any]:
    """Return what a process of its own finds."""
    command = [sys.executable, __file__, "fit_cluster", str(folder)]
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(out.stdout.splitlines()[-1])


def measure(n_rows: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder, n_rows)
        return {
            "rows": n_rows,
            "cluster": alone(folder),
            "boosting": streams.alone("fit_boosting", folder),
            "few_rows": streams.alone("fit_few", folder),
        }


def claims(results: list[dict[str, Any]]) -> dict[str, bool]:
    """Return which claims hold; that of growth is for two sizes, one four times the other."""
    found = {
        f"{each['rows']} rows: {what}": bool(holds)
        for each in results
        for what, holds in [
            (
                "accuracy at least that of boosting",
                each["cluster"]["accuracy"] >= each["boosting"]["accuracy"],
            ),
            (
                "accuracy above that of few rows",
                each["cluster"]["accuracy"] > each["few_rows"]["accuracy"],
            ),
        ]
    }
    if len(results) == 2:
        first, second = (each["cluster"]["seconds"] for each in results)
        found[f"time grows by {second / first:.2f}, at most {MOST_GROWTH}"] = (
            second <= MOST_GROWTH * first
        )
    return found


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] == "fit_cluster":
        print(json.dumps(fit_cluster(sys.argv[2])))
        return
    sizes = tuple(int(size) for size in sys.argv[1:]) or SIZES
    results = []
    for n_rows in sizes:
        results.append(measure(n_rows))
        print(json.dumps(results[-1], indent=1))
    held = claims(results)
    for what, holds in held.items():
        print("holds:" if holds else "FAILS:", what)
    if sizes == SIZES:
        settings = {
            "workers": N_WORKERS,
            "memory_of_a_worker": MEMORY,
            "rows_of_a_partition": GROUP,
        }
        write_record("cluster", {"sizes": results, "claims": held}, **settings)


if __name__ == "__main__":
    main()
