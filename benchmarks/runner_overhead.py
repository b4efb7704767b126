"""What the runner and the store cost: a run against the sum of its cells, and one cell's share.

The goal is less than 2 % of a realistic run. Start-up, which is the import of the package here or
in each worker, happens once however long the run is; it is measured on its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from common import write_record

from discernel.compare.machine import machine
from discernel.compare.plan import Cell, Data, Method, Plan, Splits
from discernel.compare.runner import run, run_cell
from discernel.compare.store import Store
from discernel.compare.tasks import load_split

N_SPLITS = 5
N_CELLS_OF_STORE = 10_000
PLAN = Plan(
    "overhead",
    (Data("wine"), Data("wdbc")),
    (
        Method("automatic", "discriminant"),
        Method("rkda", "discriminant", {"criterion": "rkda"}),
        Method("SVM, grid", "svc_grid"),
        Method("LDA", "lda"),
    ),
    Splits(n=N_SPLITS),
)


def seconds_of(function: Any, *arguments: Any) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def whole_run(folder: Path) -> dict[str, float]:
    """Compare the wall time of a run in this process with what its cells took."""
    cells = PLAN.cells()
    run_cell(cells[0])  # what is loaded late
    with Store(folder / "run.sqlite") as store:
        wall = seconds_of(run, PLAN, store)
        records = store.records(cells)
    if any(record.result.error for record in records):
        sys.exit("A cell failed.")
    fitted = sum(r.result.seconds_fit + r.result.seconds_predict for r in records)
    split = sum(seconds_of(load_split, cell) for cell in cells)
    return {
        "cells": len(cells),
        "wall_seconds": wall,
        "fit_and_predict_seconds": fitted,
        "divide_seconds": split,
        "overhead_percent": 100.0 * (1.0 - (fitted + split) / wall),
    }


def one_cell(folder: Path) -> dict[str, float]:
    """Time claim and add of real results, cell by cell."""
    cells = PLAN.cells()
    results = [run_cell(cell)[1] for cell in cells[: len(PLAN.datasets) * len(PLAN.methods)]]
    claims, additions = [], []
    with Store(folder / "cell.sqlite") as store:
        for index, cell in enumerate(cells):
            claims.append(1e3 * seconds_of(store.claim, cell))
            result = results[index % len(results)]
            additions.append(1e3 * seconds_of(store.add, cell, result, machine()))
    return {"claim_ms": median(claims), "add_ms": median(additions)}


def large_store(folder: Path) -> dict[str, float]:
    """Time what is done with many cells: made, written, found, read."""
    plan = Plan("large", PLAN.datasets[:1], PLAN.methods[-1:], Splits(n=N_CELLS_OF_STORE))
    cells = plan.cells()
    _, result = run_cell(cells[0])
    keys = seconds_of(lambda: [cell.key for cell in cells])

    def fill(store: Store, cells: list[Cell]) -> None:
        for cell in cells:
            store.claim(cell)
            store.add(cell, result, machine())

    path = folder / "large.sqlite"
    with Store(path) as store:
        filled = seconds_of(fill, store, cells)
    megabytes = path.stat().st_size / 2**20
    opened = seconds_of(lambda: Store(path).close())
    with Store(path) as store:
        return {
            "cells": len(cells),
            "megabytes": megabytes,
            "keys_seconds": keys,
            "claim_and_add_all_seconds": filled,
            "open_seconds": opened,
            "finished_seconds": seconds_of(store.finished),
            "records_seconds": seconds_of(store.records, cells),
            "run_with_nothing_to_do_seconds": seconds_of(run, plan, store),
        }


def main() -> None:
    command = [sys.executable, "-c", "import discernel.compare.runner"]
    start_up = min(seconds_of(subprocess.run, command) for _ in range(3))
    with tempfile.TemporaryDirectory() as folder:
        results = {
            "run": whole_run(Path(folder)),
            "one_cell": one_cell(Path(folder)),
            "large_store": large_store(Path(folder)),
            "start_up_seconds": start_up,
        }
    for name, found in results.items():
        print(name, found)
    write_record(
        "runner_overhead",
        results,
        datasets=[data.name for data in PLAN.datasets],
        methods=[method.name for method in PLAN.methods],
        splits=N_SPLITS,
        n_jobs=1,
    )


if __name__ == "__main__":
    main()
