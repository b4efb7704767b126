"""Several sources: the default for sources beside the plain average, one source and `rkda`.

The default gets the columns of each source, ``MultipleKernelDiscriminant({"name": columns})``. The
plain average and `rkda` get three Gaussian kernels and a linear one for each source, on
standardised columns (`discernel.views.source_kernels`); the best single source is the default on
the columns of the source with the highest mean accuracy on the test rows. Sources of noise are
normal numbers, as many columns as a real source has.

Run: python benchmarks/sources.py [--splits 20] [--jobs 1] [--tasks NAME ...]; it writes
records/sources.json. With ``--methods NAME ...`` the results of other methods stay in it.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from common import RECORDS, write_record
from joblib import Parallel, delayed
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit

from discernel import MultipleKernelDiscriminant
from discernel.datasets import load
from discernel.views import join_views, source_kernels, source_weights


class Task(NamedTuple):
    """Rows, their classes, the columns of each source, and the number of training rows."""

    X: np.ndarray
    y: np.ndarray
    sources: dict[str, slice]
    n_training: int


def with_noise(views: dict[str, np.ndarray], y: np.ndarray, n_training: int, n_noise: int) -> Task:
    rng, n_columns = np.random.default_rng(0), next(iter(views.values())).shape[1]
    noise = {f"noise {i}": rng.normal(size=(len(y), n_columns)) for i in range(n_noise)}
    joined = join_views(views | noise)
    return Task(joined.table, y, joined.columns, n_training)


def mfeat(names: list[str], n_training: int = 200) -> Task:
    data = load("mfeat")
    return with_noise({name: data.view(name) for name in names}, data.y, n_training, 0)


def protein() -> Task:
    data = load("protein_fold")
    return with_noise({name: data.view(name) for name in data.views}, data.y, len(data.y) // 2, 0)


def cancer() -> Task:
    X, y = load_breast_cancer(return_X_y=True)
    parts = {name: X[:, 10 * i : 10 * i + 10] for i, name in enumerate(("mean", "error", "worst"))}
    return with_noise(parts, y, 400, 2)


def digits() -> Task:
    images, y = load_digits().images, load_digits().target
    halves = {"top": slice(0, 4), "bottom": slice(4, 8)}
    sides = {"left": slice(0, 4), "right": slice(4, 8)}
    parts = {
        f"{half} {side}": images[:, rows, columns].reshape(len(y), -1)
        for half, rows in halves.items()
        for side, columns in sides.items()
    }
    return with_noise(parts, y, 500, 2)


TASKS: dict[str, Callable[[], Task]] = {
    "mfeat, 2 views": lambda: mfeat(["fou", "zer"]),
    "mfeat, 3 views": lambda: mfeat(["fou", "kar", "mor"]),
    "mfeat, 6 views": lambda: mfeat(["fou", "fac", "kar", "pix", "zer", "mor"]),
    "mfeat, 6 views, 100 rows": lambda: mfeat(["fou", "fac", "kar", "pix", "zer", "mor"], 100),
    "protein fold": protein,
    "breast cancer and noise": cancer,
    "digits and noise": digits,
}


def methods(task: Task) -> dict[str, tuple[Any, str]]:
    given = source_kernels(task.sources, table=task.X)
    alone = {f"only {name}": ({name: where}, "auto") for name, where in task.sources.items()}
    return {
        "sources": (task.sources, "auto"),
        "one table": ("auto", "auto"),
        "average": (given, "uniform"),
        "rkda": (given, "rkda"),
        "given": (given, "auto"),
        **{name: each for name, each in alone.items() if "noise" not in name},
    }


def measure(task: Task, kernels: Any, criterion: str, train: Any, test: Any) -> dict[str, float]:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = MultipleKernelDiscriminant(kernels, criterion=criterion)
        clf.fit(task.X[train], task.y[train])
    seconds = time.process_time() - start
    probabilities = clf.predict_proba(task.X[test])
    known = np.isin(task.y[test], clf.classes_)
    found = {
        "accuracy": 100 * float(clf.score(task.X[test], task.y[test])),
        "log_loss": float(log_loss(task.y[test][known], probabilities[known], labels=clf.classes_)),
        "expected": 100 * float(clf.expected_.accuracy),
        "seconds": seconds,
    }
    if isinstance(kernels, dict):
        weights = source_weights(clf)
        found["noise"] = 100 * sum(w for name, w in weights.items() if name.startswith("noise"))
        found["n_sources"] = sum(w > 0 for w in weights.values())
    return found


def run_task(name: str, n_splits: int, only: list[str] | None, jobs: int) -> dict[str, Any]:
    task, found = TASKS[name](), {}
    splits = StratifiedShuffleSplit(n_splits, train_size=task.n_training, random_state=0)
    divided = list(splits.split(task.X, task.y))
    for method, given in methods(task).items():
        if only and method not in only:
            continue
        runs = Parallel(jobs)(delayed(measure)(task, *given, *division) for division in divided)
        found[method] = {key: [round(run[key], 4) for run in runs] for key in runs[0]}
        means = {key: round(float(np.mean(values)), 3) for key, values in found[method].items()}
        print(f"{name:26} {method:16} {means}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--no-record", action="store_true")
    options = parser.parse_args()
    given = options.splits, options.methods, options.jobs
    record = {name: run_task(name, *given) for name in options.tasks}
    if options.methods:  # the results of others stay
        known = json.loads((RECORDS / "sources.json").read_text())["results"]
        record = {name: known.get(name, {}) | found for name, found in record.items()}
        record = known | record
    if not options.no_record:
        write_record("sources", record, splits=options.splits)


if __name__ == "__main__":
    main()
