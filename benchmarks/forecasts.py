"""Forecasts of the time of a fit against the time it took: 20 fits of different sizes and ways.

Claim: at least 18 of 20 within a factor of two. ``python forecasts.py 0 5 7`` runs some of them;
only the whole is recorded.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from common import write_record

from discernel import MultipleKernelDiscriminant, MultipleKernelRidge
from discernel.bank import LowRank
from discernel.kernels import rbf_ladder

RKDA = {"criterion": "rkda", "regularization": 1e-3}
#: Rows, columns, classes (1: numbers), and what differs from the default.
RUNS: list[tuple[int, int, int, dict[str, Any]]] = [
    (2500, 20, 3, {}),
    (2500, 5, 10, {}),
    (4000, 60, 2, {}),
    (6000, 20, 3, {}),
    (8000, 5, 2, {}),
    (12_000, 20, 3, {}),
    (5000, 20, 1, {}),
    (5000, 20, 3, {"bank": "tiled"}),
    (6000, 20, 3, {"bank": "iterative"}),
    (12_000, 10, 2, {"bank": "iterative"}),
    (4000, 20, 3, {"bank": "lowrank"}),
    (15_000, 20, 3, {"bank": "lowrank"}),
    (60_000, 20, 3, {"bank": "lowrank"}),
    (200_000, 20, 2, {"bank": LowRank(1000)}),
    (100_000, 50, 5, {"max_time": "2m"}),
    (3000, 20, 3, RKDA),
    (6000, 20, 3, RKDA),
    (8000, 20, 3, RKDA | {"bank": "iterative"}),
    (10_000, 20, 3, RKDA | {"bank": "lowrank"}),
    (40_000, 20, 3, RKDA | {"bank": "lowrank"}),
]


def draw(n_rows: int, n_columns: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] ** 2 + 0.3 * rng.normal(size=n_rows)
    if n_classes == 1:
        return X, score
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def measure(run: tuple[int, int, int, dict[str, Any]]) -> dict[str, Any]:
    n_rows, n_columns, n_classes, options = run
    X, y = draw(n_rows, n_columns, n_classes)
    kind = MultipleKernelRidge if n_classes == 1 else MultipleKernelDiscriminant
    kernels = {"kernels": rbf_ladder(10)} if "criterion" in options else {}
    model = kind(**kernels, **options)
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    return {
        "rows": n_rows,
        "columns": n_columns,
        "classes": n_classes,
        "options": ", ".join(f"{name}={value}" for name, value in options.items()),
        "bank": model.bank_,
        "ratio": seconds / model.forecast_.seconds,
    }


def main() -> None:
    warnings.simplefilter("ignore")
    chosen = [int(number) for number in sys.argv[1:]] or range(len(RUNS))
    measure((2500, 5, 2, {}))  # what is set up once
    results = []
    for number in chosen:
        results.append(measure(RUNS[number]))
        print(number, results[-1], flush=True)
    within = sum(0.5 <= result["ratio"] <= 2.0 for result in results)
    print(f"{within} of {len(results)} within a factor of two")
    if not sys.argv[1:]:
        write_record("forecasts", {"within_a_factor_of_two": within, "runs": results})


if __name__ == "__main__":
    main()
