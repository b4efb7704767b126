"""What learning costs, in Cholesky factorisations of the same size in the same run.

Ten Gaussian kernels as given matrices, satimage, first class against the rest. Claims: `akfd`,
`alignment` and `separability` (λ given) cost at most 10 at 2,000 and 4,000 rows; `auto` at most 100
at 1,000 rows and 60 at 4,000, and at 1,000 rows of six classes a grid-searched SVC (10 widths ×
4 C, fivefold) takes at least 4 times as long. At 1,000 rows the passes over ten matrices that are
cheap later weigh as much as their arithmetic. ``python cost_in_factorisations.py 1000`` runs one
size.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import load, write_record
from scipy.linalg import lapack
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from discernel import MultipleKernelDiscriminant, learn_kernel
from discernel.backend import blas_threads
from discernel.bank import gram_stack
from discernel.kernels import RBF

SIZES = (1000, 2000, 4000)
REPEATS = 5
#: Criterion, its λ, and the most factorisations it may cost by number of rows.
CASES: dict[str, tuple[float | str, dict[int, float]]] = {
    "alignment": (1e-2, {2000: 10, 4000: 10}),
    "separability": (1e-2, {2000: 10, 4000: 10}),
    "akfd": (1e-2, {2000: 10, 4000: 10}),
    "rkda": (1e-2, {}),
    "auto": ("auto", {1000: 100, 4000: 60}),
}


def problem(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = load("satimage")
    rows = np.random.default_rng(0).permutation(len(y))[:n_rows]
    X, y = scale(X[rows]), (y[rows] == np.unique(y)[0]).astype(int)
    kernels = [RBF(width=f"{factor}*median").resolve(X) for factor in 2.0 ** np.arange(-5, 5)]
    return gram_stack(kernels, X), y


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def factorization(gram: np.ndarray) -> float:
    """Return the seconds of one factorisation in place, with as many threads as learning uses."""
    matrix = gram.copy(order="F")
    matrix[np.diag_indices_from(matrix)] += 1.0
    with blas_threads(len(gram)):
        return seconds(lambda: lapack.dpotrf(matrix, lower=1, overwrite_a=1))


def measure(n_rows: int) -> list[dict[str, Any]]:
    grams, y = problem(n_rows)
    factorization(grams[5])  # the first one of a size is slower
    results = []
    for criterion, (regularization, limits) in CASES.items():

        def work(criterion: str = criterion, lam: float | str = regularization) -> None:
            learn_kernel(grams, y, criterion=criterion, regularization=lam)

        ratios = []
        for _ in range(REPEATS):
            # The unit before and after: on a shared machine neighbours come and go.
            before = factorization(grams[5])
            spent = seconds(work)
            ratios.append(spent / np.mean([before, factorization(grams[5])]))
        limit = limits.get(n_rows)
        results.append(
            {
                "rows": n_rows,
                "criterion": criterion,
                "median": float(np.median(ratios)),
                "least": float(min(ratios)),
                "most": float(max(ratios)),
                "limit": limit,
                "holds": None if limit is None else bool(np.median(ratios) <= limit),
            }
        )
        entry = results[-1]
        verdict = {None: "", True: "holds", False: "MISSED"}[entry["holds"]]
        print(
            f"{n_rows:6} {criterion:13} {entry['median']:7.1f} factorisations "
            f"({entry['least']:.1f} to {entry['most']:.1f})  {verdict}",
            flush=True,
        )
    return results


def against_grid() -> dict[str, Any]:
    """Return how much longer the search of an SVC takes than `auto`, all six classes."""
    X, y = load("satimage")
    rows = np.random.default_rng(0).permutation(len(y))[:1000]
    X, y = scale(X[rows]), y[rows]
    median = RBF().resolve(X).parameters["width"]
    gammas = (1.0 / (median * 2.0 ** np.linspace(-4, 4, 10)) ** 2).tolist()
    grid = GridSearchCV(SVC(), {"gamma": gammas, "C": [0.1, 1.0, 10.0, 100.0]}, cv=5)
    ratios = [
        seconds(lambda: grid.fit(X, y)) / seconds(lambda: MultipleKernelDiscriminant().fit(X, y))
        for _ in range(3)
    ]
    median_ratio = float(np.median(ratios))
    print(f"  1000 SVC grid ÷ auto, six classes {median_ratio:.1f}", flush=True)
    return {
        "rows": 1000,
        "criterion": "SVC grid over auto",
        "median": median_ratio,
        "least": float(min(ratios)),
        "most": float(max(ratios)),
        "limit": -4,
        "holds": median_ratio >= 4,
    }


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:]] or SIZES
    results = [entry for size in sizes for entry in measure(size)]
    if 1000 in sizes:
        results.append(against_grid())
    if list(sizes) == list(SIZES):
        write_record("cost_in_factorisations", results, repeats=REPEATS, kernels=10)


if __name__ == "__main__":
    main()
