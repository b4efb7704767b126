"""Whether what a fitted estimator claims about itself is found on new rows.

Four parts, each with targets that are met or missed:

- ``noise``: labels that have nothing to do with the rows, every criterion, kernels per column, per
  source and proposed ones. Claimed accuracy within 2 points and log-loss within 0.05 of found.
- ``tables``: the default on every table of the folder. Claimed accuracy within 1.5 points of found
  on every table; log-loss within 5 % in the mean over tables, 10 % up to 200 training rows; the
  95 % interval covers 93 to 98 % of divisions and is at most 1.2 times as wide as Wilson's.
- ``few``: 10, 20 and 40 rows. Log-loss at most 1.3 times that of logistic regression; claimed
  log-loss within 0.05 of found.
- ``weights``: a change of a weight by a part in 10⁹ changes no probability by more than 1e-6, and
  20.5 instead of 20 none by 0.015, where candidate and λ stay the same.

An interval covers a division if |found − claimed| ≤ √(h² + (1.96 s)²). h is the distance from the
claimed accuracy to the end of the interval on the side of the found one; s is the standard error
of the found accuracy, of two more right and two more wrong rows, which is not 0 if all are right.

Results are kept per seed with a digest of the package's source, so that a run that was stopped
goes on where it was, and a changed package starts afresh. Needs the data sets' folder in
``DISCERNEL_DATA`` for ``tables``.

    python benchmarks/promises.py --workers 16
    python benchmarks/promises.py --part noise few --seeds 2 --out promises.json
    python benchmarks/promises.py --part tables --rows 500 --tables sonar adult
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import json
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import RECORDS, write_record
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import discernel
from discernel import MultipleKernelDiscriminant
from discernel.datasets import load
from discernel.kernels import RBF
from discernel.rows.catalog import CATALOG
from discernel.rows.datasets import data_folder

#: Seeds per cell.
SEEDS = {"noise": 80, "tables": 20, "few": 20, "weights": 20}
#: Seeds that one process takes at a time.
CHUNK = 5
#: Rows that what was claimed is compared with, where they are drawn; at most so many of a table.
FRESH_ROWS = 2000
#: No probability counts as less.
LEAST_PROBABILITY = 1e-15

CRITERIA = [
    *("auto", "rkda", "fdr", "akfd", "alignment", "margin", "loo", "uniform", "separability")
]
TWO_CLASSES = ("fdr", "margin")
NOISE_SHAPES = [(100, 50), (200, 10)]
FEW_ROWS = [10, 20, 40]
FEW = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
#: Training rows up to which a table counts as small.
SMALL = 200
#: These would be downloaded.
NOT_HERE = ("olivetti",)

Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """What is fitted once per seed; `options` say what differs between the cells of a part."""

    part: str
    name: str
    options: dict[str, Any]


# ---- one fit -------------------------------------------------------------------------------------


def log_loss(probabilities: np.ndarray, codes: np.ndarray) -> float:
    own = probabilities[np.arange(len(codes)), codes]
    return float(-np.log(np.maximum(own, LEAST_PROBABILITY)).mean())


def compare(clf: MultipleKernelDiscriminant, X: Any, y: np.ndarray) -> Row:
    """Return what is claimed and what is found on other rows."""
    found = np.asarray(clf.predict_proba(X))
    row: Row = {
        "found_accuracy": float(np.mean(clf.predict(X) == y)),
        "found_log_loss": log_loss(found, np.searchsorted(clf.classes_, y)),
        "n_test": len(y),
    }
    claimed = clf.expected_
    if claimed is not None:
        row |= {
            "claimed_accuracy": float(claimed.accuracy),
            "claimed_log_loss": float(claimed.log_loss),
            "low": float(claimed.low),
            "high": float(claimed.high),
            "n_claimed": int(claimed.n_rows),
        }
    return row


# ---- noise ---------------------------------------------------------------------------------------


def noise_cells(_: argparse.Namespace) -> Iterator[Cell]:
    for (n, d), n_classes, kernels, criterion in product(
        NOISE_SHAPES, (2, 3), ("column", "source", "auto"), CRITERIA
    ):
        if n_classes > 2 and criterion in TWO_CLASSES:
            continue
        name = f"{n} × {d}, {n_classes} classes, kernels {kernels}, {criterion}"
        options = {"n": n, "d": d, "n_classes": n_classes, "kernels": kernels}
        yield Cell("noise", name, options | {"criterion": criterion})


def make_kernels(kind: str, n_columns: int) -> Any:
    """Return a kernel per column, or for each of three groups of columns, or ``"auto"``."""
    if kind == "column":
        return [RBF(width=1.5).on([j]) for j in range(n_columns)]
    if kind == "source":
        return [RBF().on(part.tolist()) for part in np.array_split(np.arange(n_columns), 3)]
    return kind


def measure_noise(
    seed: int, n: int, d: int, n_classes: int, kernels: str, criterion: str, **_: Any
) -> Row:
    rng = np.random.default_rng([seed, n, d, n_classes])
    X, y = rng.normal(size=(n, d)), np.arange(n) % n_classes
    fresh = rng.normal(size=(FRESH_ROWS, d))
    labels = rng.permutation(np.arange(FRESH_ROWS) % n_classes)
    clf = MultipleKernelDiscriminant(make_kernels(kernels, d), criterion=criterion)
    return compare(clf.fit(X, y), fresh, labels)


# ---- tables --------------------------------------------------------------------------------------


def table_names(wanted: list[str] | None) -> list[str]:
    """Return the data sets that need no download, and the tables of the folder."""
    folder = data_folder() or Path(os.devnull)
    known = [
        name
        for name, entry in CATALOG.items()
        if entry.classes is not None and name not in NOT_HERE
        if (folder / entry.file).is_file() or not entry.file
    ]
    stored = (folder / "tables").glob("*.csv.gz")
    known += sorted(path.name.removesuffix(".csv.gz") for path in stored)
    unknown = set(wanted or []) - set(known)
    if unknown:
        raise SystemExit(f"No such table: {', '.join(sorted(unknown))}. Known: {', '.join(known)}.")
    return [name for name in known if wanted is None or name in wanted]


def read_table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows, objects where a column is text, and classes 0, 1, …."""
    if name in CATALOG:
        data = load(name)
        return data.X, np.unique(data.y, return_inverse=True)[1]
    path = Path(os.environ["DISCERNEL_DATA"]) / "tables" / f"{name}.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        _, *cells = csv.reader(lines)
    *columns, labels = zip(*cells, strict=True)
    read = [read_column(column) for column in columns]
    is_plain = all(column.dtype != object for column in read)
    table = np.empty((len(labels), len(read)), dtype=np.float64 if is_plain else object)
    for position, column in enumerate(read):
        table[:, position] = column
    return table, np.unique(labels, return_inverse=True)[1]


def read_column(cells: Iterable[str]) -> np.ndarray:
    """Return numbers, NaN where a cell is empty; where that cannot be, text and None."""
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        return np.array([cell or None for cell in cells], dtype=object)


def table_cells(options: argparse.Namespace) -> Iterator[Cell]:
    """Yield a cell for each table and number of training rows, each number once."""
    for table in table_names(options.tables):
        n_rows = len(read_table(table)[1])
        for n_train in sorted({min(rows, int(0.8 * n_rows)) for rows in options.rows}):
            cell = {"table": table, "n_train": n_train}
            yield Cell("tables", f"{table}, {n_train} rows", cell)


def measure_table(seed: int, table: str, n_train: int, data: Any) -> Row:
    X, y = data
    train, test = train_test_split(
        np.arange(len(y)), train_size=n_train, random_state=seed, stratify=y
    )
    test = test[:FRESH_ROWS]
    clf = MultipleKernelDiscriminant().fit(X[train], y[train])
    return compare(clf, X[test], y[test])


# ---- few rows ------------------------------------------------------------------------------------


def few_cells(_: argparse.Namespace) -> Iterator[Cell]:
    for name, n_train in product([*FEW, "two Gaussians"], FEW_ROWS):
        yield Cell("few", f"{name}, {n_train} rows", {"name": name, "n_train": n_train})


def two_gaussians(rng: np.random.Generator, y: np.ndarray) -> np.ndarray:
    """Return two columns, both shifted by 2.5 between the classes."""
    return rng.normal(size=(len(y), 2)) + 2.5 * y[:, None]


def measure_few(seed: int, name: str, n_train: int, **_: Any) -> Row:
    if name in FEW:
        X, y = FEW[name](return_X_y=True)
        train, test, y_train, y_test = train_test_split(
            X, y, train_size=n_train, random_state=seed, stratify=y
        )
    else:
        rng = np.random.default_rng([seed, n_train])
        y_train, y_test = np.arange(n_train) % 2, np.arange(FRESH_ROWS) % 2
        train, test = two_gaussians(rng, y_train), two_gaussians(rng, y_test)
    row = compare(MultipleKernelDiscriminant().fit(train, y_train), test, y_test)
    logistic = make_pipeline(StandardScaler(), LogisticRegression(C=1)).fit(train, y_train)
    codes = np.searchsorted(logistic.classes_, y_test)
    return row | {"logistic_log_loss": log_loss(logistic.predict_proba(test), codes)}


# ---- weights -------------------------------------------------------------------------------------


def weight_cells(_: argparse.Namespace) -> Iterator[Cell]:
    for way in ("class_weight", "sample_weight"):
        yield Cell("weights", way, {"way": way})


def measure_weights(seed: int, way: str, **_: Any) -> Row:
    """Compare weights of a rare class, 15 of 300 rows, that are all but the same."""
    rng = np.random.default_rng(seed)
    y = (np.arange(300) < 15).astype(int)
    X = rng.normal(size=(300, 5)) + np.outer(y, [1.5, 1.5, 0.0, 0.0, 0.0])
    fresh = rng.normal(size=(FRESH_ROWS, 5))

    def fit(weight: float) -> tuple[np.ndarray, Any, float]:
        if way == "class_weight":
            clf = MultipleKernelDiscriminant(class_weight={1: weight}).fit(X, y)
        else:
            clf = MultipleKernelDiscriminant().fit(X, y, sample_weight=np.where(y == 1, weight, 1))
        learned = clf.learned_kernel_
        first = learned.considered[0]
        chosen = first.name, *first.kernel_options
        return np.asarray(clf.predict_proba(fresh)), chosen, float(learned.regularization)

    (plain, chosen, lam), (nearly, *_), (more, other, other_lam) = (
        fit(weight) for weight in (20.0, 20.0 * (1.0 + 1e-9), 20.5)
    )
    return {
        "same_weight": float(np.abs(plain - nearly).max()),
        "half_more": float(np.abs(plain - more).max()),
        "same_choice": bool(chosen == other and abs(np.log(lam / other_lam)) < 1e-3),
    }


# ---- all fits ------------------------------------------------------------------------------------

CELLS: dict[str, Callable[[argparse.Namespace], Iterator[Cell]]] = {
    "noise": noise_cells,
    "tables": table_cells,
    "few": few_cells,
    "weights": weight_cells,
}
MEASURES: dict[str, Callable[..., Row]] = {
    "noise": measure_noise,
    "tables": measure_table,
    "few": measure_few,
    "weights": measure_weights,
}


def measure(cell: Cell, seeds: list[int]) -> list[Row]:
    """Return one row per seed; of a fit that raises, the error."""
    data = read_table(cell.options["table"]) if cell.part == "tables" else None
    rows = []
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                row = MEASURES[cell.part](seed, **cell.options, data=data)
            except Exception as error:
                row = {"error": f"{type(error).__name__}: {error}"[:300]}
        rows.append({"cell": cell.name, "part": cell.part, "seed": seed} | row)
    return rows


def use_one_thread() -> None:
    """Leave the other cores to the other processes."""
    os.environ["LOKY_MAX_CPU_COUNT"] = "1"
    threadpool_limits(limits=1)


def source_digest() -> str:
    """Return a digest of the package's code: results of other code are not used again."""
    digest = hashlib.sha256()
    root = Path(discernel.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def read_kept(path: Path, digest: str) -> dict[tuple[str, str, int], Row]:
    """Return the rows of an earlier run with the same code; a line cut short is left out."""
    kept = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if row.pop("digest", None) == digest:
            kept[row["part"], row["cell"], row["seed"]] = row
    return kept


def run(
    cells: list[Cell], seeds: dict[str, int], workers: int, cache: Path
) -> dict[tuple[str, str, int], Row]:
    """Return all rows; those that are missing are measured in processes and kept."""
    digest = source_digest()
    rows = read_kept(cache, digest)
    chunks = []
    for cell in cells:
        missing = [s for s in range(seeds[cell.part]) if (cell.part, cell.name, s) not in rows]
        chunks += [(cell, missing[i : i + CHUNK]) for i in range(0, len(missing), CHUNK)]
    chunks.sort(key=lambda chunk: -chunk[0].options.get("n_train", 0))  # long fits first
    cache.parent.mkdir(parents=True, exist_ok=True)
    started, shown = time.perf_counter(), 0.0
    with (
        cache.open("a", encoding="utf-8") as kept,
        ProcessPoolExecutor(workers, initializer=use_one_thread) as pool,
    ):
        running = [pool.submit(measure, cell, some) for cell, some in chunks]
        for done, future in enumerate(as_completed(running), start=1):
            for row in future.result():
                rows[row["part"], row["cell"], row["seed"]] = row
                kept.write(json.dumps(row | {"digest": digest}) + "\n")
            kept.flush()
            seconds = time.perf_counter() - started
            if seconds > shown + 10.0 or done == len(running):
                shown = seconds
                print(f"{seconds:6.0f} s  {done} of {len(running)} chunks", flush=True)
    return rows


# ---- what they say -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """A number that is to be between two others; None where nothing was claimed.

    `error` is its standard error, where it has one: a target can be missed by chance.
    """

    part: str
    cell: str
    what: str
    value: float | None
    least: float
    most: float
    error: float | None = None

    @property
    def is_met(self) -> bool | None:
        return None if self.value is None else bool(self.least <= self.value <= self.most)


def mean(numbers: Iterable[float]) -> float | None:
    found = list(numbers)
    return float(np.mean(found)) if found else None


def standard_error(numbers: Iterable[float]) -> float | None:
    found = list(numbers)
    return float(np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else None


def summarize(cell: Cell, rows: list[Row]) -> dict[str, Any]:
    """Return means and standard errors of one cell; claims are compared where there are any."""
    fits = [row for row in rows if "error" not in row]
    claims = [row for row in fits if "claimed_accuracy" in row]
    summary: dict[str, Any] = {"cell": cell.name, **cell.options, "fits": len(fits)}
    summary["no_claim"] = len(fits) - len(claims)
    summary["errors"] = dict(Counter(row["error"] for row in rows if "error" in row))
    for what in ("accuracy", "log_loss"):
        difference = [row[f"claimed_{what}"] - row[f"found_{what}"] for row in claims]
        summary[what] = {
            "claimed": mean(row[f"claimed_{what}"] for row in claims),
            "claimed_error": standard_error(row[f"claimed_{what}"] for row in claims),
            "found": mean(row[f"found_{what}"] for row in claims or fits),
            "found_error": standard_error(row[f"found_{what}"] for row in claims or fits),
            "difference": mean(difference),
            "difference_error": standard_error(difference),
            "absolute_difference": mean(map(abs, difference)),
        }
    return summary


def difference_targets(
    part: str, summary: dict[str, Any], accuracy: float | None, loss: float | None
) -> Iterator[Target]:
    """Yield the targets of a cell: claimed minus found, in parts of 1 and in nats."""
    for what, most in (("accuracy", accuracy), ("log_loss", loss)):
        if most is not None:
            name = f"claimed minus found {what.replace('_', '-')}"
            value, error = summary[what]["difference"], summary[what]["difference_error"]
            yield Target(part, summary["cell"], name, value, -most, most, error)


def judge_noise(cells: list[tuple[Cell, list[Row]]]) -> tuple[Any, list[Target]]:
    summaries = [summarize(cell, rows) for cell, rows in cells]
    targets = [t for s in summaries for t in difference_targets("noise", s, 0.02, 0.05)]
    return summaries, targets


def wilson_width(accuracy: float, n: float) -> float:
    z2 = 1.96**2
    spread = accuracy * (1.0 - accuracy) / n + z2 / (4.0 * n**2)
    return float(2.0 * np.sqrt(z2 * spread) / (1.0 + z2 / n))


def is_covered(row: Row) -> bool:
    """Return whether the interval covers what was found, itself known from some rows only."""
    claimed, found, n = row["claimed_accuracy"], row["found_accuracy"], row["n_test"]
    half = row["high"] - claimed if found > claimed else claimed - row["low"]
    share = (found * n + 2.0) / (n + 4.0)
    test = 1.96 * np.sqrt(share * (1.0 - share) / n)
    return bool(abs(found - claimed) <= np.hypot(half, test))


def judge_tables(cells: list[tuple[Cell, list[Row]]]) -> tuple[Any, list[Target]]:
    summaries, targets = [], []
    for cell, rows in cells:
        summary = summarize(cell, rows)
        claims = [row for row in rows if "claimed_accuracy" in row]
        widths = (wilson_width(row["claimed_accuracy"], row["n_claimed"]) for row in claims)
        summary["coverage"] = mean(map(is_covered, claims))
        summary["width"] = mean(
            (row["high"] - row["low"]) / width for row, width in zip(claims, widths, strict=True)
        )
        loss = summary["log_loss"]
        summary["log_loss_ratio"] = loss["claimed"] / loss["found"] if claims else None
        summaries.append(summary)
        targets += difference_targets("tables", summary, 0.015, None)
    for is_small, name, most in ((False, f"over {SMALL}", 0.05), (True, f"up to {SMALL}", 0.1)):
        group = [s for s in summaries if (s["n_train"] <= SMALL) == is_small]
        values = {
            what: mean(s[what] for s in group if s[what] is not None)
            for what in ("log_loss_ratio", "coverage", "width")
        }
        for what, least, largest in (
            ("log_loss_ratio", 1.0 - most, 1.0 + most),
            ("coverage", 0.93, 0.98),
            ("width", 0.0, 1.2),
        ):
            targets.append(
                Target("tables", f"tables of {name} rows", what, values[what], least, largest)
            )
    return summaries, targets


def judge_few(cells: list[tuple[Cell, list[Row]]]) -> tuple[Any, list[Target]]:
    summaries, targets = [], []
    for cell, rows in cells:
        summary = summarize(cell, rows)
        fits = [row for row in rows if "error" not in row]
        logistic = mean(row["logistic_log_loss"] for row in fits)
        ratio = summary["log_loss"]["found"] / logistic if logistic else None
        summary |= {"logistic_log_loss": logistic, "ratio": ratio}
        summaries.append(summary)
        targets.append(
            Target("few", cell.name, "log-loss relative to logistic regression", ratio, 0.0, 1.3)
        )
        targets += difference_targets("few", summary, None, 0.05)
    return summaries, targets


def judge_weights(cells: list[tuple[Cell, list[Row]]]) -> tuple[Any, list[Target]]:
    summaries, targets = [], []
    for cell, rows in cells:
        fits = [row for row in rows if "error" not in row]
        same = [row["half_more"] for row in fits if row["same_choice"]]
        tiny = max((row["same_weight"] for row in fits), default=None)
        half = max(same, default=None)
        summaries.append(
            {
                "cell": cell.name,
                "fits": len(fits),
                "errors": dict(Counter(row["error"] for row in rows if "error" in row)),
                "same_choice": len(same),
                "largest_difference_1e-9": tiny,
                "largest_difference_20.5_same_choice": half,
                "largest_difference_20.5": max((row["half_more"] for row in fits), default=None),
            }
        )
        targets += [
            Target("weights", cell.name, "20 against 20 (1 + 1e-9)", tiny, 0.0, 1e-6),
            Target("weights", cell.name, "20 against 20.5, same choice", half, 0.0, 0.015),
        ]
    return summaries, targets


JUDGES: dict[str, Callable[[list[tuple[Cell, list[Row]]]], tuple[Any, list[Target]]]] = {
    "noise": judge_noise,
    "tables": judge_tables,
    "few": judge_few,
    "weights": judge_weights,
}


def print_targets(targets: list[Target], results: dict[str, Any]) -> None:
    """Show the targets that were missed, and how many were met."""
    for target in targets:
        if target.is_met is False:
            error = "" if target.error is None else f" ± {target.error:.2g}"
            limits = f"({target.least:g} to {target.most:g})"
            print(
                f"MISSED  {target.part}: {target.cell}: {target.what} {target.value:.4g}{error} "
                f"{limits}"
            )
    for part, summaries in results.items():
        errors = sum((Counter(summary["errors"]) for summary in summaries), Counter())
        for error, times in errors.most_common():
            print(f"RAISED  {part}: {times} fits: {error}")
    counted: dict[tuple[str, str], Counter[bool | None]] = {}
    for target in targets:
        counted.setdefault((target.part, target.what), Counter())[target.is_met] += 1
    print()
    for (part, what), found in counted.items():
        unknown = f", {found[None]} without a claim" if found[None] else ""
        print(f"{part}: {what}: {found[True]} met, {found[False]} missed{unknown}")


# ---- the command ---------------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", nargs="+", default=list(CELLS), choices=list(CELLS))
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--seeds", type=int, help="per cell; by default 80 for noise, else 20")
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 500], help="to train on")
    parser.add_argument("--tables", nargs="+", help="by default all")
    parser.add_argument("--out", type=Path, default=RECORDS / "promises.json")
    parser.add_argument(
        "--cache", type=Path, default=Path(__file__).parent / ".cache/promises.jsonl"
    )
    return parser.parse_args()


def main() -> None:
    options = arguments()
    cells = [cell for part in options.part for cell in CELLS[part](options)]
    seeds = {part: options.seeds or SEEDS[part] for part in options.part}
    rows = run(cells, seeds, options.workers, options.cache)
    results, targets = {}, []
    for part in options.part:
        found = [
            (cell, [rows[part, cell.name, seed] for seed in range(seeds[part])])
            for cell in cells
            if cell.part == part
        ]
        results[part], judged = JUDGES[part](found)
        targets += judged
    print_targets(targets, results)
    write_record(
        "promises",
        {"targets": [asdict(t) | {"is_met": t.is_met} for t in targets], **results},
        path=options.out,
        seeds=seeds,
        rows=options.rows,
    )


if __name__ == "__main__":
    main()
