"""Importances of columns against permutations of held-out rows, and what added noise gets.

    python benchmarks/importances.py [NAME ...]

Every table trains on at most 500 rows. ``feature_importances_``, which a fit takes from its
training rows, is compared with scikit-learn's ``permutation_importance`` of the log-loss of
held-out rows: rank correlations of all columns. Beside it, what two halves of the permutations
agree to, and two halves of the held-out rows: how sure the reference itself is. Then five columns
of noise are added and the fit is repeated.

The first ten tables have at least 300 held-out rows. Of the others fewer are left, so that the
ranks of columns that matter little are largely chance. How much is shrunk, and how many rows are
left out, was settled on these tables and six others, on the same divisions. Needs
``DISCERNEL_DATA``.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import write_record
from scipy.stats import spearmanr
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

from discernel import MultipleKernelDiscriminant
from discernel.datasets import load

TABLES = (
    "abalone_sex",
    "adult",
    "car",
    "german",
    "maternal",
    "page_blocks",
    "phoneme",
    "wine_red",
    "pima",
    "segment",
)
FEW_HELD_OUT = ("bupa", "ecoli", "glass", "heart_cleveland", "ionosphere")
MOST_TRAINING_ROWS, MOST_HELD_OUT, N_NOISE, N_REPEATS = 500, 1000, 5, 10
#: Rows of a class below which it is left out.
LEAST_OF_A_CLASS = 8


def read(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the columns and labels of a table, without classes of very few rows."""
    path = Path(os.environ["DISCERNEL_DATA"]) / "tables" / f"{name}.csv.gz"
    if path.exists():
        table = pd.read_csv(path)
        X, y = table.iloc[:, :-1], table.iloc[:, -1].astype(str).to_numpy()
    else:
        found = load(name, as_frame=True)
        X, y = found.X, np.asarray(found.y).astype(str)
    counts = pd.Series(y).value_counts()
    kept = np.isin(y, counts.index[counts >= LEAST_OF_A_CLASS])
    return X[kept].reset_index(drop=True), y[kept]


def with_noise(X: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Return a table with columns of noise at its end."""
    noise = np.random.default_rng(seed).normal(size=(len(X), N_NOISE))
    return X.assign(**{f"noise {i}": noise[:, i] for i in range(N_NOISE)})


def agree(first: np.ndarray, second: np.ndarray) -> float:
    """Return the rank correlation of two sets of importances."""
    return float(spearmanr(first, second).statistic)


def permuted(clf: Any, X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """Return what the log-loss of rows loses by each permutation of each column."""
    found = permutation_importance(
        clf, X, y, scoring="neg_log_loss", n_repeats=N_REPEATS, random_state=0
    )
    return np.asarray(found.importances)


def measure(name: str) -> dict[str, Any]:
    """Return what one table says."""
    X, y = read(name)
    n = min(MOST_TRAINING_ROWS, int(0.6 * len(y)))
    X, new, y, labels = train_test_split(X, y, train_size=n, stratify=y, random_state=0)
    new, labels = new[:MOST_HELD_OUT], labels[:MOST_HELD_OUT]
    start = time.process_time()
    clf = MultipleKernelDiscriminant().fit(X, y)
    fitted = time.process_time()
    importances = clf.feature_importances_
    seconds = time.process_time() - fitted
    parts = [permuted(clf, new[i::2], labels[i::2]) for i in (0, 1)]
    found, half = np.mean(parts, axis=0), N_REPEATS // 2
    noisy = MultipleKernelDiscriminant().fit(with_noise(X), y)
    return {
        "rows": n,
        "held_out": len(labels),
        "columns": X.shape[1],
        "strength": clf.learned_kernel_.considered[0].strength,
        "rank_correlation": agree(importances, found.mean(axis=1)),
        "metric_rank_correlation": agree(_of_metric(clf), found.mean(axis=1)),
        "halves_of_permutations": agree(found[:, :half].mean(axis=1), found[:, half:].mean(axis=1)),
        "halves_of_rows": agree(*(part.mean(axis=1) for part in parts)),
        "noise_share": float(noisy.feature_importances_[-N_NOISE:].sum()),
        "share_of_fit_time": seconds / (fitted - start),
    }


def _of_metric(clf: Any) -> np.ndarray:
    """Return the shares of columns in the metric, whether the model uses it or not."""
    metric, encoder = clf.metric_.importances, clf.encoder_
    shares = np.zeros(clf.n_features_in_)
    np.add.at(shares, np.arange(len(metric)) if encoder is None else encoder.source, metric)
    return shares


def mean(results: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Return the means over tables, and the largest share of noise and of time."""
    names = ("rank_correlation", "metric_rank_correlation", "halves_of_permutations")
    columns = (*names, "halves_of_rows", "noise_share", "share_of_fit_time")
    found = {name: float(np.mean([r[name] for r in results.values()])) for name in columns}
    largest = {f"largest_{n}": max(r[n] for r in results.values()) for n in columns[-2:]}
    return found | largest


def main() -> None:
    asked = sys.argv[1:]
    groups: dict[str, Any] = {}
    for group, names in (("tables", TABLES), ("few_held_out", FEW_HELD_OUT)):
        groups[group] = {}
        for name in (name for name in names if not asked or name in asked):
            groups[group][name] = found = measure(name)
            print(name, {key: round(value, 3) for key, value in found.items()}, flush=True)
    if asked:
        return
    means = {group: mean(results) for group, results in groups.items()}
    for group, found in means.items():
        print(group, {key: round(value, 3) for key, value in found.items()})
    write_record(
        "importances",
        {**groups, "means": means},
        training_rows=MOST_TRAINING_ROWS,
        held_out_rows=MOST_HELD_OUT,
        noise_columns=N_NOISE,
        permutations=N_REPEATS,
    )


if __name__ == "__main__":
    main()
