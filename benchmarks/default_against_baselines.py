"""The default against plain average, best single kernel, SVC grid and EasyMKL, on 16 tasks.

20 partitions a task, the same for all methods. Differences are tested with the correction for
overlapping training sets of Nadeau and Bengio (2003). Claims: the default has the best mean rank,
and on no task is it worse than any other method by more than two corrected standard errors.

EasyMKL needs ``pip install MKLpy`` (and its torch); without it, the rest is measured and the record
says so. ``python default_against_baselines.py 2 wine sonar`` runs 2 partitions of two tasks.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common import RECORDS, load, write_record
from joblib import Parallel, delayed
from rich.progress import track
from scipy.stats import rankdata
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from discernel import MultipleKernelDiscriminant
from discernel.bank import DenseBank, gram_stack
from discernel.experiments.statistics import corrected_error
from discernel.kernels import RBF, Kernel, Linear, rbf_ladder

#: Data set and training rows (a share or a number).
TASKS: dict[str, tuple[str, float | int]] = {
    "sonar": ("sonar", 0.8),
    "ionosphere": ("ionosphere", 0.8),
    "heart statlog": ("heart_statlog", 0.8),
    "heart cleveland": ("heart_cleveland", 0.8),
    "pima": ("pima", 0.8),
    "bupa": ("bupa", 0.8),
    "wisconsin": ("breast_cancer_wisconsin", 0.8),
    "wdbc": ("wdbc", 0.8),
    "wine": ("wine", 0.8),
    "segment 20%": ("segment", 0.2),
    "satimage 1000": ("satimage", 1000),
    "waveform 500": ("waveform", 500),
    "usps 500": ("usps", 500),
    "digits 20%": ("digits", 0.2),
    "mfeat 10%": ("mfeat", 0.1),
    "protein fold": ("protein_fold_rank27", 0.5),
}
VIEWS = {
    "mfeat": ["fou", "fac", "kar", "pix", "zer", "mor"],
    "protein_fold_rank27": [f"view{i}" for i in range(12)],
}
#: At most this many held-out rows are predicted, for time.
MOST_TEST_ROWS = 2000
METHODS = ["auto", "average", "single", "svc grid", "easymkl"]


def load_views(name: str) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the views of a data set, one where it has no others, and its labels."""
    if name not in VIEWS:
        X, y = load(name)
        return [X], y
    stored = np.load(Path(os.environ["DISCERNEL_DATA"]) / f"{name}.npz")
    return [stored[view].astype(float) for view in VIEWS[name]], stored["target"]


def make_kernels(name: str, views: list[np.ndarray]) -> list[Kernel]:
    """Return the candidates: ten for one view; three widths, or linear and one, per view.

    Plain ones, as rows are standardised first: what is compared are ways to combine them.
    """
    if len(views) == 1:
        return [*rbf_ladder(), Linear()]
    # The protein views are factors of kernels already: their inner products are those kernels.
    each = (
        [Linear(), RBF()]
        if name.startswith("protein")
        else [RBF(width="0.5*median"), RBF(), RBF(width="2*median")]
    )
    ends = np.cumsum([0, *(view.shape[1] for view in views)]).tolist()
    return [
        kernel.on(slice(start, stop))
        for start, stop in zip(ends[:-1], ends[1:], strict=True)
        for kernel in each
    ]


class Partition:
    """One division of a task into training and held-out rows, with all kernel matrices."""

    def __init__(self, task: str, seed: int) -> None:
        name, train_size = TASKS[task]
        views, y = load_views(name)
        self.labels = np.unique(y, return_inverse=True)[1]
        train, test = train_test_split(
            np.arange(len(y)), train_size=train_size, random_state=seed, stratify=self.labels
        )
        test = test[:MOST_TEST_ROWS]
        scaled = [self._scale(view, train, name) for view in views]
        X = np.hstack(scaled)
        self.X_train, self.X_test = X[train], X[test]
        self.y_train, self.y_test = self.labels[train], self.labels[test]
        self.kernels = make_kernels(name, views)
        self.is_fusion = len(views) > 1

    @staticmethod
    def _scale(view: np.ndarray, train: np.ndarray, name: str) -> np.ndarray:
        if name.startswith("protein"):
            return view
        return StandardScaler().fit(view[train]).transform(view)

    def resolved(self) -> list[Kernel]:
        return [kernel.resolve(self.X_train) for kernel in self.kernels]

    def normalized(self) -> tuple[np.ndarray, np.ndarray]:
        """Return training and held-out matrices, centred traces 1; for methods on matrices."""
        kernels = self.resolved()
        grams = gram_stack(kernels, self.X_train)
        bank = DenseBank(grams, trusted=[True] * len(kernels))
        scales = bank.expand(bank.scales)[:, None, None] * len(self.y_train)
        cross = np.array([kernel(self.X_test, self.X_train) for kernel in kernels])
        return grams * scales, cross * scales


def discriminant(part: Partition, **options: Any) -> float:
    clf = MultipleKernelDiscriminant(part.kernels, **options).fit(part.X_train, part.y_train)
    return float(clf.score(part.X_test, part.y_test))


def best_single(part: Partition) -> float:
    """Take the kernel with the least leave-one-out error on the training rows, and its λ."""
    best: tuple[float, Any] = (np.inf, None)
    for kernel in part.kernels:
        clf = MultipleKernelDiscriminant([kernel], criterion="uniform")
        clf.fit(part.X_train, part.y_train)
        error = min(clf.learned_kernel_.leave_one_out.values())
        if error < best[0]:
            best = (error, clf)
    return float(best[1].score(part.X_test, part.y_test))


def svc_grid(part: Partition) -> float:
    """Search ten widths × four C by 5-fold CV; on fused data also the average kernel."""
    median = RBF().resolve(part.X_train).parameters["width"]
    widths = median * 2.0 ** np.linspace(-4, 4, 10)
    C = [0.1, 1.0, 10.0, 100.0]
    grid = GridSearchCV(SVC(), {"gamma": 1 / widths**2, "C": C}, cv=5)
    grid.fit(part.X_train, part.y_train)
    if part.is_fusion:
        grams, cross = part.normalized()
        average = GridSearchCV(SVC(kernel="precomputed"), {"C": C}, cv=5)
        average.fit(grams.mean(axis=0), part.y_train)
        if average.best_score_ > grid.best_score_:
            return float(average.score(cross.mean(axis=0), part.y_test))
    return float(grid.score(part.X_test, part.y_test))


def easymkl(part: Partition) -> float:
    """Take MKLpy's EasyMKL and an SVM of C = 10 on its kernel, one class against the rest."""
    from MKLpy.algorithms import EasyMKL

    grams, cross = part.normalized()
    scores = []
    classes = np.unique(part.y_train)
    for label in classes if len(classes) > 2 else classes[1:]:
        y = np.where(part.y_train == label, 1, -1)
        mkl = EasyMKL(lam=0.1).fit(list(grams), y)
        weights = np.asarray(mkl.solution.weights, dtype=float)
        svm = SVC(kernel="precomputed", C=10.0).fit(np.tensordot(weights, grams, 1), y)
        scores.append(svm.decision_function(np.tensordot(weights, cross, 1)))
    predicted = (
        classes[(scores[0] > 0).astype(int)]
        if len(classes) == 2
        else classes[np.argmax(scores, axis=0)]
    )
    return float(np.mean(predicted == part.y_test))


RUN = {
    "auto": discriminant,
    "average": lambda part: discriminant(part, criterion="uniform"),
    "single": best_single,
    "svc grid": svc_grid,
    "easymkl": easymkl,
}


def run_partition(task: str, seed: int, methods: list[str]) -> dict[str, Any]:
    part = Partition(task, seed)
    accuracy, seconds = {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in methods:
            start = time.perf_counter()
            accuracy[method] = 100.0 * RUN[method](part)
            seconds[method] = time.perf_counter() - start
    return {"accuracy": accuracy, "seconds": seconds, "n": (len(part.y_train), len(part.y_test))}


def summarize(task: str, runs: list[dict[str, Any]], methods: list[str]) -> dict[str, Any]:
    table = np.array([[run["accuracy"][method] for method in methods] for run in runs])
    n_train, n_test = runs[0]["n"]
    # Held-out rows that were not predicted do not count as tested.
    versus = {
        method: {
            "difference": float(np.mean(table[:, 0] - table[:, j])),
            "corrected_error": corrected_error(table[:, 0] - table[:, j], n_test / n_train),
        }
        for j, method in enumerate(methods)
        if j > 0
    }
    return {
        "task": task,
        "train": n_train,
        "test": n_test,
        "accuracy": dict(zip(methods, table.mean(axis=0).tolist(), strict=True)),
        "partitions": {m: [round(run["accuracy"][m], 3) for run in runs] for m in methods},
        "seconds": {m: float(np.mean([run["seconds"][m] for run in runs])) for m in methods},
        "auto_minus": versus,
        "worse_than": [
            method
            for method, entry in versus.items()
            if entry["difference"] < -2.0 * entry["corrected_error"]
        ],
    }


def render() -> None:
    """Write the whole table, also where the default loses, to ``docs/default.md``."""
    record = json.loads((RECORDS / "default_against_baselines.json").read_text())
    methods, summary = record["settings"]["methods"], record["results"]
    lines = [
        "# The default against its baselines",
        "",
        f"Test accuracy in %, mean of {record['settings']['partitions']} partitions, the same for "
        "all methods, written by [the benchmark](../benchmarks/default_against_baselines.py). "
        "`auto` is the default criterion; rows are standardised first, and all have the same "
        "plain kernels. In brackets: the baseline minus the default, and the standard "
        "error of this difference, corrected for training sets that overlap. **Bold**: a "
        "difference of more than two standard errors. Rank 1 is best.",
        "",
        "| task | training rows | " + " | ".join(methods) + " |",
        "|---|---|" + "---|" * len(methods),
    ]
    for entry in summary["tasks"]:
        cells = [f"{entry['accuracy']['auto']:.1f}"]
        for method in methods[1:]:
            versus = entry["auto_minus"][method]
            text = f"{-versus['difference']:+.1f} ± {versus['corrected_error']:.1f}"
            clear = abs(versus["difference"]) > 2.0 * versus["corrected_error"]
            text = f"**{text}**" if clear else text
            cells.append(f"{entry['accuracy'][method]:.1f} ({text})")
        lines.append(f"| {entry['task']} | {entry['train']} | " + " | ".join(cells) + " |")
    ranks = " | ".join(f"{summary['mean_rank'][method]:.2f}" for method in methods)
    lines += [f"| mean rank | | {ranks} |", ""]
    (RECORDS.parent.parent / "docs" / "default.md").write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    if sys.argv[1:] == ["render"]:
        render()
        return
    n_partitions = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    tasks = sys.argv[2:] or list(TASKS)
    methods = METHODS if importlib.util.find_spec("MKLpy") else METHODS[:-1]
    results = []
    print(f"{'task':18}" + "".join(f"{method:>11}" for method in methods))
    for task in track(tasks, description="tasks"):
        runs = Parallel(n_jobs=2)(
            delayed(run_partition)(task, seed, methods) for seed in range(n_partitions)
        )
        results.append(summarize(task, runs, methods))
        entry = results[-1]
        line = "".join(f"{entry['accuracy'][method]:11.1f}" for method in methods)
        worse = f"  worse than {', '.join(entry['worse_than'])}" if entry["worse_than"] else ""
        print(f"{task:18}{line}{worse}", flush=True)
    accuracies = np.array([[entry["accuracy"][method] for method in methods] for entry in results])
    ranks = rankdata(-accuracies, axis=1).mean(axis=0)
    print(f"{'mean rank':18}" + "".join(f"{rank:11.2f}" for rank in ranks))
    summary = {
        "tasks": results,
        "mean_rank": dict(zip(methods, ranks.tolist(), strict=True)),
        "tasks_where_auto_is_clearly_worse": sum(bool(entry["worse_than"]) for entry in results),
    }
    if len(tasks) == len(TASKS):
        write_record("default_against_baselines", summary, partitions=n_partitions, methods=methods)
        render()


if __name__ == "__main__":
    main()
