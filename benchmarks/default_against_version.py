"""The default of this version against that of another: log-loss, accuracy and cost on 34 tasks.

``git worktree add /tmp/other 926add8`` and ``python default_against_version.py /tmp/other/src``
compare with another version, on the tasks and splits of `default_against_peers`. Needs pandas and
the data sets' folder in ``DISCERNEL_DATA``. Every fit is stored in ``.cache``, and only missing
ones are computed; ``--redo`` computes those of this version again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from baselines import auto
from common import write_record
from default_against_baselines import log_loss
from joblib import Parallel, delayed
from tasks import ARRAYS, TABLES, divide

TASKS = [*ARRAYS, *TABLES]
SPLITS = 20
#: Ratios of log-losses are those of the loss and this: very small losses should not decide.
OFFSET = 0.02
#: Tasks with at most this many training rows are reported by themselves too.
FEW_ROWS = 200
CACHE = Path(__file__).parent / ".cache" / "versions"


def measure(task: str, seed: int) -> dict[str, Any]:
    """Return what the default of the imported version does on one split of a task."""
    division = divide(task, seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = auto(division)
    return {
        "task": task,
        "seed": seed,
        "n": len(division.y_train),
        "seconds": time.process_time() - start,
        "accuracy": 100.0 * float(np.mean(found.classes == division.y_test)),
        "log_loss": log_loss(found, division.y_test),
    }


def measure_missing(stored: Path, n_splits: int, jobs: int) -> None:
    """Append one line of JSON for every fit that is not stored yet."""
    known = {(line["task"], line["seed"]) for line in read(stored)}
    runs = [(task, seed) for seed in range(n_splits) for task in TASKS]
    missing = [run for run in runs if run not in known]
    found = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(
        delayed(measure)(*run) for run in missing
    )
    stored.parent.mkdir(parents=True, exist_ok=True)
    with stored.open("a") as file:
        for line in found:
            file.write(json.dumps(line) + "\n")
            file.flush()


def read(stored: Path) -> list[dict[str, Any]]:
    return list(map(json.loads, stored.read_text().splitlines())) if stored.exists() else []


def summarize(other: list[dict[str, Any]], own: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means of each task over the splits that both have, and their ratios."""
    by_run = [{(line["task"], line["seed"]): line for line in lines} for lines in (other, own)]
    common = sorted(by_run[0].keys() & by_run[1].keys())
    tasks = []
    for task in TASKS:
        runs = [run for run in common if run[0] == task]
        pairs = [[version[run] for run in runs] for version in by_run]
        means = {
            name: [float(np.mean([line[name] for line in lines])) for lines in pairs]
            for name in ("log_loss", "accuracy", "seconds")
        }
        before, after = means["log_loss"]
        ratio = (after + OFFSET) / (before + OFFSET)
        entry = {"task": task, "n": pairs[0][0]["n"], "splits": len(runs), "ratio": ratio}
        tasks.append(entry | {name: np.round(both, 5).tolist() for name, both in means.items()})
    few = [entry["ratio"] for entry in tasks if entry["n"] <= FEW_ROWS]
    cost = [entry["seconds"][1] / entry["seconds"][0] for entry in tasks]
    return {
        "log_loss_ratio": _geometric_mean([entry["ratio"] for entry in tasks]),
        "log_loss_ratio_few_rows": _geometric_mean(few),
        "worse_by_one_percent": [entry["task"] for entry in tasks if entry["ratio"] > 1.01],
        "accuracy_gain": float(np.mean([np.subtract(*e["accuracy"][::-1]) for e in tasks])),
        "cost_ratio": _geometric_mean(cost),
        "tasks": tasks,
    }


def _geometric_mean(numbers: list[float]) -> float:
    return float(np.exp(np.mean(np.log(numbers))))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("other", help="folder with another version of the package")
    parser.add_argument("--name", default="926add8", help="what the other version is called")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--redo", action="store_true", help="measure this version again")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure is not None:
        measure_missing(given.measure, given.splits, given.jobs)
        return
    stored = {CACHE / f"{given.name}.jsonl": given.other, CACHE / "this.jsonl": None}
    if given.redo:
        (CACHE / "this.jsonl").unlink(missing_ok=True)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    for path, source in stored.items():
        known = {"PYTHONPATH": source or str(Path(__file__).parents[1] / "src")}
        command = [sys.executable, __file__, given.other, "--measure", str(path)]
        command += ["--splits", str(given.splits), "--jobs", str(given.jobs)]
        subprocess.run(command, env=os.environ | threads | known, check=True)
    results = summarize(*map(read, stored))
    for name, value in results.items():
        if name != "tasks":
            print(name, value)
    write_record("default_against_version", results, other=given.name, splits=given.splits)


if __name__ == "__main__":
    main()
