"""The default against the strongest methods for tables, on 34 tasks: accuracy and log-loss.

Tuned LightGBM, and RealMLP and TabM as pytabkit recommends them, five bagged models each; beside
them an SVC grid, a random forest, boosting, logistic regression and xRFM. The 26 tasks of
`default_against_baselines` and eight tables on which an earlier default lost clearly to a peer.
Ranks compare the splits that all methods have. Differences from a peer are tested over the splits
that both have, with the correction for overlapping training sets of Nadeau and Bengio (2003) and
Holm's correction over all tasks and peers.

Needs ``pip install pandas xrfm lightgbm 'pytabkit[models]'`` and the data sets' folder in
``DISCERNEL_DATA``; a GPU helps. Results are stored for each task, method and split, and only
missing ones are computed:

    python benchmarks/default_against_peers.py --jobs 2
    python benchmarks/default_against_peers.py --redo auto

``--default-only`` measures the default again, and compares it with the means of the record. The
tests of differences need all runs, and stay those of the record.
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from baselines import PEERS
from common import RECORDS, write_record
from default_against_baselines import METRICS, Run, Table, forget, run_missing
from scipy.stats import rankdata
from tasks import TABLES, TASKS

from discernel.compare.statistics import ALPHA, corrected_t_test, holm

#: Tables on which an earlier default lost clearly to a peer.
HARD_TABLES = [table for table in TABLES if table not in TASKS]
PEER_TASKS = [*TASKS, *HARD_TABLES]
#: Splits per task; few where they take long.
SPLITS = {
    "auto": 20,
    "lightgbm tuned": 5,
    "realmlp": 5,
    "tabm": 3,
    "svc grid": 3,
    "forest": 3,
    "boosting": 3,
    "logistic": 3,
    "xrfm": 3,
}


def p_worse(table: Table, task: str, method: str, metric: str) -> float:
    """Return the probability of the corrected test if the method is better than the default, or 1.

    A small number says that the default is worse.
    """
    ours, theirs = table.splits(task, "auto"), table.splits(task, method)
    both = sorted(ours.keys() & theirs.keys())
    sign = 1.0 if METRICS[metric] else -1.0
    values = [[sign * getattr(found[i], metric) for i in both] for found in (ours, theirs)]
    found = corrected_t_test(*values, ours[both[0]].test / ours[both[0]].train)
    return found.p_value if found.mean < 0 else 1.0


def clearly_worse(tasks: list[dict[str, Any]], metric: str) -> dict[str, list[str]]:
    """Return the peers that are clearly better, by task, with Holm's correction over all."""
    pairs = [(entry["task"], m, p) for entry in tasks for m, p in entry[f"p_{metric}"].items()]
    found: dict[str, list[str]] = {}
    for (task, method, _), p in zip(pairs, holm([p for *_, p in pairs]), strict=True):
        if p <= ALPHA:
            found.setdefault(task, []).append(method)
    return found


def summarize(table: Table) -> dict[str, Any]:
    """Return the ranks of all methods, and every task where the default is clearly worse."""
    methods, tasks = list(SPLITS), []
    for task in PEER_TASKS:
        entry: dict[str, Any] = {"task": task}
        for metric in METRICS:
            means = table.common_means(task, methods, metric)
            entry[metric] = dict(zip(methods, means, strict=True))
            entry[f"p_{metric}"] = {m: p_worse(table, task, m, metric) for m in PEERS}
        tasks.append(entry)
    return {
        "mean_rank": table.mean_ranks(PEER_TASKS, methods, "accuracy", True),
        "mean_rank_log_loss": table.mean_ranks(PEER_TASKS, methods, "log_loss", False),
        "clearly_worse": {metric: clearly_worse(tasks, metric) for metric in METRICS},
        "auto_all_splits": {
            task: {metric: table.mean(task, "auto", metric) for metric in METRICS}
            for task in PEER_TASKS
        },
        "tasks": tasks,
    }


def renew(results: dict[str, Any], table: Table) -> None:
    """Put the default's means into the results of a record, and rank its means again."""
    n_common = min(SPLITS.values())
    for metric, largest_first in METRICS.items():
        for entry in results["tasks"]:
            values = table.values(entry["task"], "auto", metric)
            entry[metric]["auto"] = float(np.mean(values[:n_common]))
            results["auto_all_splits"][entry["task"]][metric] = float(np.mean(values))
        means = np.array([list(entry[metric].values()) for entry in results["tasks"]])
        ranks = rankdata(-means if largest_first else means, axis=1).mean(axis=0)
        name = "mean_rank" if metric == "accuracy" else "mean_rank_log_loss"
        results[name] = dict(zip(results["tasks"][0][metric], ranks.tolist(), strict=True))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--redo", nargs="+", default=[], choices=list(SPLITS), help="run again")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--default-only", action="store_true", help="peers are of the record")
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / ".cache")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    splits = {"auto": SPLITS["auto"]} if options.default_only else SPLITS
    runs = [
        Run(task, method, seed)
        for method, n_splits in splits.items()
        for seed in range(n_splits)
        for task in PEER_TASKS
    ]
    forget([run for run in runs if run.method in options.redo], options.cache)
    run_missing(runs, options.cache, options.jobs)
    table = Table(runs, options.cache)
    if options.default_only:
        known = json.loads((RECORDS / "default_against_peers.json").read_text())
        results, settings = known["results"], known["settings"]
        renew(results, table)
    else:
        packages = {name: version(name) for name in ("lightgbm", "pytabkit", "torch", "xrfm")}
        results, settings = summarize(table), {"splits": SPLITS, "packages": packages}
    for key in ("mean_rank", "mean_rank_log_loss", "clearly_worse"):
        print(key, results[key])
    write_record("default_against_peers", results, **settings)


if __name__ == "__main__":
    main()
