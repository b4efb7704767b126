"""The default against eight other methods on 26 tasks: accuracy and log-loss.

20 splits per task, the same for all methods. Differences are tested with the correction for
overlapping training sets of Nadeau and Bengio (2003). Which method has the best mean rank, and on
which tasks is the default worse than another by more than two corrected standard errors?

Needs ``pip install pandas MKLpy xrfm`` and the data sets' folder in ``DISCERNEL_DATA``. Results are
stored for each task, method and split, and only missing ones are computed; ``--redo auto`` computes
those of the default again, and ``--restore`` takes others from the record. If none is missing, the
record and its page are written:

    python benchmarks/default_against_baselines.py --redo auto "auto balanced"
    python benchmarks/default_against_baselines.py --restore --redo auto average single
    python benchmarks/default_against_baselines.py --splits 2 --tasks wine sonar
    python benchmarks/default_against_baselines.py --methods forest boosting --jobs 2
    python benchmarks/default_against_baselines.py --render
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from baselines import BALANCED, METHODS, PEERS, Prediction
from common import RECORDS, write_record
from joblib import Parallel, delayed
from rich.progress import track
from scipy.stats import rankdata
from sklearn.metrics import balanced_accuracy_score
from tasks import BESIDE, DEFAULT_TAKES_TABLES, TASKS, divide

#: From cheap to dear, what comes first is there first: 0.1 to 114 s of one core per split of all
#: tasks, seven minutes together.
ORDER = [
    "logistic",
    "logistic balanced",
    "xrfm",
    "average",
    "forest",
    "forest balanced",
    "boosting",
    "boosting balanced",
    "auto",
    "auto balanced",
    "easymkl",
    "single",
    "svc grid",
]
#: The methods that run on tasks reported beside the others.
#: The packages whose versions are recorded.
PACKAGES = ("MKLpy", "torch", "xrfm")
BESIDE_METHODS = ["auto", "forest", "boosting"]
#: No probability counts as less: one row that was sure and wrong is not all of the mean.
LEAST_PROBABILITY = 1e-6
#: Whether a larger number is better.
METRICS = {"accuracy": True, "log_loss": False}
#: What the record has of each split.
MEASURED = [*METRICS, "balanced_accuracy"]
#: A difference is clear from this many standard errors on.
CLEAR = 2.0


# ---- one run, and where results are kept ---------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """What one method did on one split of one task."""

    task: str
    method: str
    seed: int

    def path(self, cache: Path) -> Path:
        return cache / self.method / self.task / f"{self.seed}.json"


@dataclass(frozen=True)
class Result:
    """Accuracies in %, the log-loss in nats per row, and the CPU time to learn and predict.

    `claimed` has the accuracy and log-loss that the default expects before it sees new rows, and
    the ends of the interval of the accuracy.
    """

    accuracy: float
    log_loss: float
    balanced_accuracy: float
    seconds: float
    train: int
    test: int
    claimed: dict[str, float] | None = None


def measure(run: Run) -> Result | None:
    """Return the result of a run, None where the method failed; why is printed."""
    division = divide(run.task, run.seed)
    # Time of the processor, not of the clock: other work on the machine does not count.
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = (METHODS | BALANCED | PEERS)[run.method](division)
        except Exception:
            print(f"FAILED: {run}\n{traceback.format_exc()}", flush=True)
            return None
        seconds = time.process_time() - start
        balanced = balanced_accuracy_score(division.y_test, found.classes)
    return Result(
        accuracy=100.0 * float(np.mean(found.classes == division.y_test)),
        log_loss=log_loss(found, division.y_test),
        balanced_accuracy=100.0 * float(balanced),
        seconds=seconds,
        train=len(division.y_train),
        test=len(division.y_test),
        claimed=claims(found),
    )


def claims(found: Prediction) -> dict[str, float] | None:
    """Return what a prediction claims, with accuracies in %; None if it claims nothing."""
    expected = found.expected
    if expected is None:
        return None
    parts = {"accuracy": 100.0, "low": 100.0, "high": 100.0, "log_loss": 1.0}
    return {name: unit * float(getattr(expected, name)) for name, unit in parts.items()}


def log_loss(found: Prediction, y: np.ndarray) -> float:
    clipped = np.maximum(found.probabilities, LEAST_PROBABILITY)
    clipped /= clipped.sum(axis=1, keepdims=True)
    return float(-np.log(clipped[np.arange(len(y)), y]).mean())


def keep(run: Run, result: Result, cache: Path) -> None:
    """Write a result, whole or not at all: another process may read it now."""
    path = run.path(cache)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(asdict(result)) + "\n")
    unfinished.replace(path)


def read(run: Run, cache: Path) -> Result | None:
    path = run.path(cache)
    return Result(**json.loads(path.read_text())) if path.exists() else None


# ---- all runs ------------------------------------------------------------------------------------


def plan(methods: Iterable[str], tasks: Iterable[str], n_splits: int) -> list[Run]:
    """Return the runs, ordered so that stopped early, all tasks have as many splits."""
    ordered, tasks = sorted(methods, key=ORDER.index), list(tasks)
    return [
        Run(task, method, seed)
        for method in ordered
        for seed in range(n_splits)
        for task in tasks
        if task not in BESIDE or method in BESIDE_METHODS
    ]


def run_missing(runs: list[Run], cache: Path, n_jobs: int) -> None:
    """Run what has no result, and keep what it gives; say when a split is done."""
    missing = [run for run in runs if not run.path(cache).exists()]
    left = Counter((run.method, run.seed) for run in missing)
    started = time.perf_counter()
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(
        delayed(measure_named)(run) for run in missing
    )
    for run, result in track(results, description="runs", total=len(missing)):
        if result is not None:
            keep(run, result, cache)
        left[run.method, run.seed] -= 1
        if left[run.method, run.seed] == 0:
            minutes = (time.perf_counter() - started) / 60.0
            print(f"{minutes:7.1f} min  {run.method}: split {run.seed} done", flush=True)


def measure_named(run: Run) -> tuple[Run, Result | None]:
    """Return the run with its result: they come in any order."""
    return run, measure(run)


def restore(record: dict[str, Any], cache: Path, but: Sequence[str] = ()) -> None:
    """Keep the results of a record that the cache lacks, but for those of some methods.

    The mean time of a method stands for that of each split.
    """
    found, restored = record["results"], dict[Run, Result]()
    for entry in [*found["tasks"], *found["beside"]]:
        for method, seconds in entry["seconds"].items():
            values = [entry["partitions"][metric][method] for metric in MEASURED]
            for seed, numbers in enumerate(zip(*values, strict=True)):
                known = dict(zip(MEASURED, numbers, strict=True))
                known |= {"seconds": seconds, "train": entry["train"], "test": entry["test"]}
                restored[Run(entry["task"], method, seed)] = Result(**known)
    for entry in found["balanced"]["tasks"]:
        for method, values in entry["partitions"].items():
            for seed, value in enumerate(values):
                known = dict.fromkeys(("accuracy", "log_loss", "seconds"), np.nan)
                known |= {"balanced_accuracy": value, "train": 0, "test": 0}
                restored[Run(entry["task"], method, seed)] = Result(**known)
    for run, result in restored.items():
        if run.method not in but and not run.path(cache).exists():
            keep(run, result, cache)


def forget(runs: list[Run], cache: Path) -> None:
    for run in runs:
        run.path(cache).unlink(missing_ok=True)


# ---- what they say together ----------------------------------------------------------------------


class Table:
    """All results that are there: tasks × methods, each with its splits."""

    def __init__(self, runs: list[Run], cache: Path) -> None:
        self._results: dict[tuple[str, str], dict[int, Result]] = {}
        for run in runs:
            if (result := read(run, cache)) is not None:
                self._results.setdefault((run.task, run.method), {})[run.seed] = result

    def splits(self, task: str, method: str) -> dict[int, Result]:
        return self._results.get((task, method), {})

    def values(self, task: str, method: str, metric: str) -> list[float]:
        """Return one number per split, in their order."""
        found = self.splits(task, method)
        return [getattr(found[seed], metric) for seed in sorted(found)]

    def mean(self, task: str, method: str, metric: str) -> float:
        """Return the mean over the splits; NaN where there is none."""
        return float(np.mean(self.values(task, method, metric) or [np.nan]))

    def common_means(self, task: str, methods: Sequence[str], metric: str) -> list[float]:
        """Return the methods' means over the splits that all of them have."""
        found = [self.splits(task, method) for method in methods]
        common = set.intersection(*(set(results) for results in found))
        return [
            float(np.mean([getattr(results[seed], metric) for seed in common] or [np.nan]))
            for results in found
        ]

    def difference(self, task: str, method: str, metric: str) -> dict[str, float]:
        """Return auto − method over the splits that both have, and its corrected error."""
        # Here, because other versions that `default_against_version` measures lack it.
        from discernel.compare.statistics import corrected_error

        ours, theirs = self.splits(task, "auto"), self.splits(task, method)
        both = sorted(ours.keys() & theirs.keys())
        differences = [getattr(ours[i], metric) - getattr(theirs[i], metric) for i in both]
        # Held-out rows that were not predicted do not count as tested.
        ratio = ours[both[0]].test / ours[both[0]].train
        return {
            "difference": float(np.mean(differences)),
            "corrected_error": corrected_error(differences, ratio),
        }

    def mean_ranks(
        self, tasks: Sequence[str], methods: Sequence[str], metric: str, larger_is_better: bool
    ) -> dict[str, float]:
        """Return mean ranks, 1 the best, over the tasks on which all methods have run."""
        means = np.array([self.common_means(task, methods, metric) for task in tasks])
        means = means[~np.isnan(means).any(axis=1)]
        ranks = rankdata(-means if larger_is_better else means, axis=1).mean(axis=0)
        return dict(zip(methods, ranks.tolist(), strict=True))


def summarize_task(table: Table, task: str, methods: Sequence[str]) -> dict[str, Any]:
    """Return the means of one task, its splits, and what the default is clearly worse than."""
    first = next(iter(table.splits(task, methods[0]).values()))
    others = [method for method in methods if method != "auto"]
    versus = {
        metric: {method: table.difference(task, method, metric) for method in others}
        for metric in METRICS
    }
    return {
        "task": task,
        "train": first.train,
        "test": first.test,
        **{metric: {m: table.mean(task, m, metric) for m in methods} for metric in MEASURED},
        "seconds": {m: table.mean(task, m, "seconds") for m in methods},
        "partitions": {
            metric: {m: np.round(table.values(task, m, metric), 4).tolist() for m in methods}
            for metric in MEASURED
        },
        "auto_minus": versus,
        "worse_than": {
            metric: [m for m in others if is_worse(versus[metric][m], larger_is_better)]
            for metric, larger_is_better in METRICS.items()
        },
    }


def is_worse(versus: dict[str, float], larger_is_better: bool) -> bool:
    """Return whether the default is clearly worse, by its difference from a method."""
    gain = versus["difference"] if larger_is_better else -versus["difference"]
    return gain < -CLEAR * versus["corrected_error"]


def summarize(table: Table) -> dict[str, Any]:
    """Return all that the record holds."""
    methods = list(METHODS)
    tasks = [summarize_task(table, task, methods) for task in TASKS]
    return {
        "mean_rank": table.mean_ranks(TASKS, methods, "accuracy", True),
        "mean_rank_log_loss": table.mean_ranks(TASKS, methods, "log_loss", False),
        "tasks_where_auto_is_clearly_worse": count_worse(tasks, "accuracy"),
        "tasks_where_auto_is_clearly_worse_log_loss": count_worse(tasks, "log_loss"),
        "tasks": tasks,
        "balanced": summarize_balanced(table),
        "beside": [summarize_task(table, task, BESIDE_METHODS) for task in BESIDE],
    }


def count_worse(tasks: list[dict[str, Any]], metric: str) -> int:
    return sum(bool(entry["worse_than"][metric]) for entry in tasks)


def summarize_balanced(table: Table) -> dict[str, Any]:
    """Return the runs with balanced classes, ranked in balanced accuracy."""
    methods, metric = list(BALANCED), "balanced_accuracy"
    return {
        "methods": methods,
        "mean_rank": table.mean_ranks(TASKS, methods, metric, True),
        "tasks": [
            {
                "task": task,
                metric: {m: table.mean(task, m, metric) for m in methods},
                "partitions": {
                    m: np.round(table.values(task, m, metric), 4).tolist() for m in methods
                },
            }
            for task in TASKS
        ],
    }


def print_summary(table: Table, methods: Sequence[str], tasks: Sequence[str]) -> None:
    """Show means and ranks of what is there, the default's losses at the ends of the lines."""
    ranked = [task for task in tasks if task in TASKS]
    for metric, group in (
        ("accuracy", METHODS),
        ("log_loss", METHODS),
        ("balanced_accuracy", BALANCED),
    ):
        show = [m for m in group if m in methods and any(table.splits(t, m) for t in tasks)]
        if not show:
            continue
        print(f"\n{metric:18}" + "".join(f"{m.removesuffix(' balanced'):>10}" for m in show))
        for task in tasks:
            means = "".join(f"{table.mean(task, m, metric):10.3f}" for m in show)
            print(f"{task:18}{means}{losses(table, task, show, metric)}")
        ranks = table.mean_ranks(ranked, show, metric, METRICS.get(metric, True))
        print(f"{'mean rank':18}" + "".join(f"{ranks[m]:10.2f}" for m in show))


def losses(table: Table, task: str, methods: Sequence[str], metric: str) -> str:
    """Return the methods the default is clearly worse than, as the end of a line."""
    ours = table.splits(task, "auto").keys()
    # One split has no standard error.
    others = [m for m in methods if len(ours & table.splits(task, m).keys()) > 1]
    worse = [
        method
        for method in others
        if metric in METRICS and method != "auto"
        if is_worse(table.difference(task, method, metric), METRICS[metric])
    ]
    return f"  worse than {', '.join(worse)}" if worse else ""


# ---- the page ------------------------------------------------------------------------------------

HEADER = """# Results task by task

The mean of {partitions} splits for each task, the same for all methods \
([benchmark](../benchmarks/default_against_baselines.py), \
[record](../benchmarks/records/default_against_baselines.json)). "Rows" are training rows; rank 1 \
is best.

| method | what it is |
|---|---|
| default | `MultipleKernelDiscriminant()` on {rows}; two or three kernels for each source of \
mfeat and protein fold |
| average, single | the plain average of ten kernels, and the one with the least \
leave-one-out error |
| svc grid | scikit-learn's `SVC`, ten widths × four C by cross-validation, with Platt scaling |
| easymkl | MKLpy, λ = 0.1 and C = 10 |
| forest | 500 trees |
| boosting, logistic | `HistGradientBoostingClassifier()`, `LogisticRegression()` |
| xrfm | its defaults, tuned on a fifth of the training rows |

All but the default get preprocessed columns: standardized numbers, medians for missing cells, one \
0/1 column for each category. After ± is the standard error of the difference from the default, \
corrected for overlapping training sets. **Bold**: a difference of more than two standard errors.
"""


def render() -> None:
    """Write the whole tables, also where the default loses, to ``docs/default.md``."""
    record = json.loads((RECORDS / "default_against_baselines.json").read_text())
    methods, summary = record["settings"]["methods"], record["results"]
    rows = "the unprocessed columns"
    if not record["settings"]["tables_as_read"]:
        rows += ", but for the ten tables from adult on preprocessed ones"
    parts = [
        HEADER.format(rows=rows, **record["settings"]),
        "## Accuracy\n\nIn %; larger is better.\n",
        *render_metric(summary["tasks"], methods, "accuracy", 1, summary["mean_rank"]),
        worse_line(summary["tasks"], "accuracy"),
        "## Log-loss\n\nIn nats per row, with probabilities of at least 10⁻⁶; smaller is better.\n",
        *render_metric(summary["tasks"], methods, "log_loss", 3, summary["mean_rank_log_loss"]),
        worse_line(summary["tasks"], "log_loss"),
        *render_balanced(summary["balanced"]),
        "## More rows\n\nNot ranked: accuracy in %.\n",
        *render_metric(summary["beside"], BESIDE_METHODS, "accuracy", 1, None),
    ]
    page = RECORDS.parent.parent / "docs" / "default.md"
    page.write_text("\n".join(parts) + "\n", encoding="utf-8")
    print("written: docs/default.md")


def render_metric(
    tasks: list[dict[str, Any]],
    methods: Sequence[str],
    metric: str,
    digits: int,
    ranks: dict[str, float] | None,
) -> list[str]:
    """Return the lines of one table, with mean ranks where they are given."""
    lines = [
        "| task | rows | default | " + " | ".join(methods[1:]) + " |",
        "|---|---|" + "---|" * len(methods),
    ]
    for entry in tasks:
        cells = [f"{entry[metric]['auto']:.{digits}f}"]
        cells += [render_cell(entry, method, metric, digits) for method in methods[1:]]
        lines.append(f"| {entry['task']} | {entry['train']} | " + " | ".join(cells) + " |")
    if ranks is not None:
        lines.append("| mean rank | | " + " | ".join(f"{ranks[m]:.2f}" for m in methods) + " |")
    return [*lines, ""]


def render_cell(entry: dict[str, Any], method: str, metric: str, digits: int) -> str:
    versus = entry["auto_minus"][metric][method]
    text = f"{entry[metric][method]:.{digits}f} ± {versus['corrected_error']:.{digits}f}"
    clear = abs(versus["difference"]) > CLEAR * versus["corrected_error"]
    return f"**{text}**" if clear else text


def worse_line(tasks: list[dict[str, Any]], metric: str) -> str:
    """Return a sentence that says where the default loses clearly."""
    found = [
        f"{entry['task']} ({', '.join(entry['worse_than'][metric])})"
        for entry in tasks
        if entry["worse_than"][metric]
    ]
    if not found:
        return "The default is clearly worse on none of the tasks.\n"
    return f"The default is clearly worse on {len(found)} tasks: {'; '.join(found)}.\n"


def render_balanced(balanced: dict[str, Any]) -> list[str]:
    """Return the section of the runs with balanced classes."""
    methods = balanced["methods"]
    lines = [
        '## Balanced classes\n\nBalanced accuracy in %, all with `class_weight="balanced"`; larger '
        "is better.\n",
        "| task | default | " + " | ".join(m.removesuffix(" balanced") for m in methods[1:]) + " |",
        "|---|" + "---|" * len(methods),
    ]
    for entry in balanced["tasks"]:
        cells = " | ".join(f"{entry['balanced_accuracy'][m]:.1f}" for m in methods)
        lines.append(f"| {entry['task']} | {cells} |")
    ranks = " | ".join(f"{balanced['mean_rank'][m]:.2f}" for m in methods)
    return [*lines, f"| mean rank | {ranks} |", ""]


# ---- the command ---------------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    known, tasks = [*METHODS, *BALANCED], [*TASKS, *BESIDE]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--splits", type=int, default=20, help="per task")
    parser.add_argument("--tasks", nargs="+", default=tasks, choices=tasks)
    parser.add_argument("--methods", nargs="+", default=known, choices=known)
    parser.add_argument("--redo", nargs="+", default=[], choices=known, help="run again")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / ".cache")
    parser.add_argument("--restore", action="store_true", help="take other results from the record")
    parser.add_argument("--summary", action="store_true", help="run nothing")
    parser.add_argument("--render", action="store_true", help="write the page of the record")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.render:
        render()
        return
    runs = plan(options.methods, options.tasks, options.splits)
    record = json.loads((RECORDS / "default_against_baselines.json").read_text())
    if not options.summary:
        forget([run for run in runs if run.method in options.redo], options.cache)
        if options.restore:
            restore(record, options.cache, options.redo)
        run_missing(runs, options.cache, options.jobs)
    print_summary(Table(runs, options.cache), options.methods, options.tasks)
    everything = plan([*METHODS, *BALANCED], [*TASKS, *BESIDE], options.splits)
    missing = [run for run in everything if not run.path(options.cache).exists()]
    if missing:
        print(f"\nNo record is written: {len(missing)} of {len(everything)} runs are missing.")
        return
    write_record(
        "default_against_baselines",
        summarize(Table(everything, options.cache)),
        partitions=options.splits,
        methods=list(METHODS),
        tables_as_read=DEFAULT_TAKES_TABLES,
        baselines=record["settings"]["baselines"]
        if options.restore
        else {name: version(name) for name in PACKAGES},
    )
    render()


if __name__ == "__main__":
    main()
