"""The default of this version against that of another: log-loss, accuracy and cost on 34 tasks.

``git worktree add /tmp/other 926add8`` and ``python default_against_version.py /tmp/other/src``
compare with another version, on the tasks and splits of `default_against_peers`. Needs pandas and
the data sets' folder in ``DISCERNEL_DATA``. Every fit is stored in ``.cache``, where the other
comparisons of the default find those of this version, and only missing ones are computed;
``--redo`` computes those of this version again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from common import write_record
from default_against_baselines import Result, Run, forget, read, run_missing
from tasks import ARRAYS, TABLES

TASKS = [*ARRAYS, *TABLES]
SPLITS = 20
#: Ratios of log-losses are those of the loss and this: very small losses should not decide.
OFFSET = 0.02
#: Tasks with at most this many training rows are reported by themselves too.
FEW_ROWS = 200
CACHE = Path(__file__).parent / ".cache"


def runs(n_splits: int) -> list[Run]:
    """Return the fits, in the order in which they are made."""
    return [Run(task, "auto", seed) for seed in range(n_splits) for task in TASKS]


def read_all(cache: Path, n_splits: int) -> dict[tuple[str, int], Result]:
    """Return all stored results by task and split."""
    found = {(run.task, run.seed): read(run, cache) for run in runs(n_splits)}
    return {key: result for key, result in found.items() if result is not None}


def summarize(
    other: dict[tuple[str, int], Result], own: dict[tuple[str, int], Result]
) -> dict[str, Any]:
    """Return the means of each task over the splits that both have, and their ratios."""
    tasks = []
    for task in TASKS:
        common = sorted(key for key in other.keys() & own.keys() if key[0] == task)
        pairs = [[version[key] for key in common] for version in (other, own)]
        means = {
            name: [float(np.mean([getattr(one, name) for one in results])) for results in pairs]
            for name in ("log_loss", "accuracy", "seconds")
        }
        before, after = means["log_loss"]
        ratio = (after + OFFSET) / (before + OFFSET)
        entry = {"task": task, "n": pairs[1][0].train, "splits": len(common), "ratio": ratio}
        entry |= {name: np.round(both, 5).tolist() for name, both in means.items()}
        tasks.append(entry | {"claimed": claimed_means(pairs[1])})
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


def claimed_means(results: list[Result]) -> dict[str, float]:
    """Return the means of what is claimed before new rows are seen, with accuracies in %.

    ``coverage`` is the share of the splits whose accuracy the interval covers.
    """
    from promises import is_covered  # here, because other versions lack what it imports

    names, rows = ("accuracy", "log_loss", "low", "high"), []
    for result in results:
        row = dict(result.claimed or {}, found_accuracy=result.accuracy / 100.0)
        row |= {name: row[name] / 100.0 for name in ("low", "high")}
        row |= {"claimed_accuracy": row["accuracy"] / 100.0, "n_test": result.test}
        rows.append(row)
    claimed = [result.claimed or {} for result in results]
    means = {name: round(float(np.mean([one[name] for one in claimed])), 5) for name in names}
    return means | {"coverage": float(np.mean([is_covered(row) for row in rows]))}


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
        run_missing(runs(given.splits), given.measure, given.jobs)
        return
    stored = {CACHE / "versions" / given.name: given.other, CACHE: None}
    if given.redo:
        forget(runs(given.splits), CACHE)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    for path, source in stored.items():
        known = {"PYTHONPATH": source or str(Path(__file__).parents[1] / "src")}
        command = [sys.executable, __file__, given.other, "--measure", str(path)]
        command += ["--splits", str(given.splits), "--jobs", str(given.jobs)]
        subprocess.run(command, env=os.environ | threads | known, check=True)
    results = summarize(*(read_all(path, given.splits) for path in stored))
    for name, value in results.items():
        if name != "tasks":
            print(name, value)
    write_record("default_against_version", results, other=given.name, splits=given.splits)


if __name__ == "__main__":
    main()
