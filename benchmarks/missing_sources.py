"""Rows that lack a source: what the ways to live with that cost in accuracy.

Digits in four views (Fourier, Karhunen-Loève, Zernike and morphological features). Of 500 training
and 700 other rows, some lack some views, by chance: either three in ten rows lack one view, or
each view is lacking in three of ten rows. Kernels are those of `source_kernels`; ten divisions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import write_record
from sklearn.impute import SimpleImputer

from discernel import MultipleKernelDiscriminant
from discernel.datasets import load
from discernel.views import join_views, source_kernels

VIEWS = ("fou", "kar", "zer", "mor")
N_TRAINING, N_OTHERS, DIVISIONS, SHARE = 500, 700, 10, 0.3


def lacking(pattern: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return which rows lack which views; every row has at least one."""
    if pattern == "one view":
        lack = np.zeros((n, len(VIEWS)), dtype=bool)
        rows = np.flatnonzero(rng.random(n) < SHARE)
        lack[rows, rng.integers(len(VIEWS), size=len(rows))] = True
        return lack
    lack = rng.random((n, len(VIEWS))) < SHARE
    lack[lack.all(axis=1), rng.integers(len(VIEWS))] = False
    return lack


def accuracies(
    X: np.ndarray, columns: dict[str, slice], y: np.ndarray, pattern: str, seed: int
) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(y), N_TRAINING + N_OTHERS, replace=False)
    lack, full, labels = lacking(pattern, len(rows), rng), X[rows], y[rows]
    holes = full.copy()
    for view, part in enumerate(columns.values()):
        holes[np.ix_(lack[:, view], np.arange(part.start, part.stop))] = np.nan
    old, new = slice(0, N_TRAINING), slice(N_TRAINING, None)
    complete = ~lack[old].any(axis=1)
    impute = SimpleImputer(keep_empty_features=True).fit(holes[old])
    filled = impute.transform(holes)

    def score(table: np.ndarray, others: np.ndarray, labels_of: Any) -> float:
        clf = MultipleKernelDiscriminant(source_kernels(columns, table=table))
        return float(clf.fit(table, labels_of).score(others, labels[new]))

    return {
        "nothing missing": score(full[old], full[new], labels[old]),
        "WhereKnown": score(holes[old], holes[new], labels[old]),
        "mean of cells": score(filled[old], filled[new], labels[old]),
        "rows dropped, mean of cells": score(
            full[old][complete], filled[new], labels[old][complete]
        ),
    }


def main() -> None:
    data = load("mfeat")
    X, columns = join_views({view: data.X[:, data.views[view]] for view in VIEWS})
    results: list[dict[str, Any]] = []
    for pattern in ("one view", "every view"):
        found = [accuracies(X, columns, data.y, pattern, seed) for seed in range(DIVISIONS)]
        for method in found[0]:
            values = np.array([one[method] for one in found])
            apart = values - np.array([one["WhereKnown"] for one in found])
            results.append(
                {
                    "what": f"{pattern} lacking: {method}",
                    "accuracy": float(values.mean()),
                    "less_than_where_known": float(-apart.mean()),
                    "standard_error": float(apart.std(ddof=1) / np.sqrt(DIVISIONS)),
                }
            )
            print(results[-1], flush=True)
    write_record("missing_sources", results, divisions=DIVISIONS, n_training=N_TRAINING)


if __name__ == "__main__":
    main()
