"""What the default costs: in units of one kernel matrix and one factorisation, and forests.

A unit is one `rbf_kernel` of the rows and one Cholesky factorisation of that size, in the same run,
with the same number of threads. The forest has 500 trees and one job per core. Rows are drawn: 20
columns, of which five matter, three classes. Claims: at most 80 units at 1,000 rows, 20 at 4,000
and 8 at 10,000; no slower than the forest at 1,000 and 2,000 rows.

``python default_cost.py 1000 2000`` measures some sizes; only the whole is recorded.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import write_record
from scipy.linalg import cholesky
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics.pairwise import rbf_kernel

from discernel import MultipleKernelDiscriminant

#: Rows, and the most units they may cost.
LIMITS: dict[int, float | None] = {1000: 80, 2000: None, 4000: 20, 10_000: 8}


def draw(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 20))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] ** 2 + 0.5 * X[:, 4]
    score += 0.3 * rng.normal(size=n_rows)
    return X, np.digitize(score, np.quantile(score, [1 / 3, 2 / 3]))


def unit(X: np.ndarray) -> None:
    gram = rbf_kernel(X)
    gram.flat[:: len(gram) + 1] += 1.0
    cholesky(gram, lower=True, overwrite_a=True, check_finite=False)


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """Return the median time of some runs."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return float(np.median(found))


def measure(n_rows: int) -> dict[str, Any]:
    X, y = draw(n_rows)
    repeats = 5 if n_rows <= 2000 else 3 if n_rows <= 4000 else 1
    one = seconds(lambda: unit(X), repeats)
    ours = seconds(lambda: MultipleKernelDiscriminant().fit(X, y), repeats)
    forest = seconds(lambda: RandomForestClassifier(500, n_jobs=-1).fit(X, y), repeats)
    alone = seconds(lambda: RandomForestClassifier(500).fit(X, y), 1)
    return {
        "rows": n_rows,
        "units": ours / one,
        "over_forest": ours / forest,
        "over_forest_of_one_job": ours / alone,
        "limit": LIMITS.get(n_rows),
    }


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:]] or list(LIMITS)
    results = []
    for n_rows in sizes:
        results.append(measure(n_rows))
        print({name: round(value, 2) if value else value for name, value in results[-1].items()})
    if sizes == list(LIMITS):
        write_record("default_cost", results)


if __name__ == "__main__":
    main()
