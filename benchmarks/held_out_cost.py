"""What held-out scores cost: the time of a fit with them over that of one without.

Without them class statistics are those of the fit itself (``statistics="training"``). Claims: up to
2,000 rows they take no more than five further fits, and from 5,000 rows on half of one. Times are
those of the processor, the least of some fits, on one thread.

``python held_out_cost.py`` is the whole; ``python held_out_cost.py --rows 600`` a part of it.
``--record`` writes what was run.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from common import write_record
from forecasts import draw

from discernel import MultipleKernelDiscriminant
from discernel.arrays import one_blas_thread
from discernel.kernels import rbf_ladder

ROWS = (300, 600, 1000, 2000, 5000)
#: What differs from the default: candidates that are given, and how they are weighted.
KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "rkda": {"kernels": rbf_ladder(10), "criterion": "rkda"},
    "auto": {"kernels": rbf_ladder(10), "criterion": "auto"},
}
N_COLUMNS, N_CLASSES = 20, 3
#: Up to so many rows a fit is repeated.
FEW_ROWS, REPEATS = 2000, 3


def seconds(X: np.ndarray, y: np.ndarray, options: dict[str, Any]) -> float:
    """Return the least processor time of some fits."""
    found = []
    for _ in range(REPEATS if len(X) <= FEW_ROWS else 1):
        start = time.process_time()
        MultipleKernelDiscriminant(**options).fit(X, y)
        found.append(time.process_time() - start)
    return min(found)


def measure(n_rows: int, kind: str) -> dict[str, Any]:
    """Return the times with and without held-out scores, and how many fits these are more."""
    X, y = draw(n_rows, N_COLUMNS, N_CLASSES)
    without = seconds(X, y, KINDS[kind] | {"statistics": "training"})
    with_scores = seconds(X, y, KINDS[kind])
    return {
        "rows": n_rows,
        "kind": kind,
        "seconds_without": without,
        "seconds": with_scores,
        "further_fits": with_scores / without - 1.0,
    }


def summary(results: list[dict[str, Any]]) -> dict[str, float | None]:
    """Return the most that held-out scores cost, in fits; None for sizes that were not run."""
    few = [each["further_fits"] for each in results if each["rows"] <= FEW_ROWS]
    many = [each["further_fits"] for each in results if each["rows"] > FEW_ROWS]
    return {
        "further_fits_of_few_rows": max(few, default=None),
        "further_fits_of_many_rows": max(many, default=None),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    results = []
    with one_blas_thread():
        MultipleKernelDiscriminant().fit(*draw(300, N_COLUMNS, N_CLASSES))  # what is set up once
        for n_rows in asked.rows:
            for kind in KINDS:
                results.append(measure(n_rows, kind))
                print(results[-1], flush=True)
    print(summary(results))
    if asked.record:
        write_record("held_out_cost", {"summary": summary(results), "fits": results})


if __name__ == "__main__":
    main()
