"""What learning costs, in Cholesky factorisations of the same size in the same run.

Ten Gaussian kernels as given matrices, satimage, first class against the rest. Claims: `akfd`,
`alignment` and `separability` (λ given) cost at most 10 at 2,000 and 4,000 rows; `auto` at most 100
at 1,000 rows and 60 at 4,000, and at 1,000 rows of six classes a grid-searched SVC (10 widths ×
4 C, fivefold) takes at least 4 times as long. At 1,000 rows the passes over ten matrices that are
cheap later weigh as much as their arithmetic.

And from rows, a ladder of ten kernels, 20 columns, three classes: what `rkda` costs with λ given
and with λ chosen on its path, in units of one `rbf_kernel` of the rows and one factorisation.
Claim: the path costs at most 20 at 4,000 rows.

``python cost_in_factorisations.py --sizes 1000 --cases "rkda path" --repeats 3`` runs some of it,
at any size; only the whole is recorded.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from bench import work as bench
from common import load, write_record
from scipy.linalg import lapack
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from discernel import MultipleKernelDiscriminant, learn_kernel
from discernel.arrays import blas_threads
from discernel.bank import gram_stack
from discernel.kernels import RBF, rbf_ladder

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
#: From rows: λ of `rkda`, and the most units it may cost by number of rows.
ROW_CASES: dict[str, tuple[float | str, dict[int, float]]] = {
    "rkda given": (1e-3, {}),
    "rkda path": ("loo", {4000: 20}),
}
GRID = "SVC grid"


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


def measure(n_rows: int, cases: list[str], repeats: int) -> list[dict[str, Any]]:
    """Return the cost of criteria on given matrices, in factorisations."""
    cases = [name for name in CASES if name in cases]
    if not cases:
        return []
    grams, y = problem(n_rows)
    factorization(grams[5])  # the first one of a size is slower
    results = []
    for criterion in cases:
        regularization, limits = CASES[criterion]

        def work(criterion: str = criterion, lam: float | str = regularization) -> None:
            learn_kernel(grams, y, criterion=criterion, regularization=lam)

        ratios = in_units(work, lambda: factorization(grams[5]), repeats)
        results.append(entry(n_rows, criterion, ratios, limits.get(n_rows), "factorisations"))
    return results


def measure_from_rows(n_rows: int, cases: list[str], repeats: int) -> list[dict[str, Any]]:
    """Return the cost of whole fits of `rkda` from rows: one kernel and factorisation is 1."""
    cases = [name for name in ROW_CASES if name in cases]
    if not cases:
        return []
    X, y = bench.rows(n_rows, n_classes=3)

    def unit() -> float:
        with blas_threads(n_rows):
            return seconds(lambda: bench.unit(X))

    unit()  # the first one of a size is slower
    results = []
    for name in cases:
        regularization, limits = ROW_CASES[name]

        def work(lam: float | str = regularization) -> None:
            bench.fit(X, y, rbf_ladder(10), lam)

        ratios = in_units(work, unit, repeats)
        results.append(
            entry(n_rows, name, ratios, limits.get(n_rows), "kernels and factorisations")
        )
    return results


def in_units(work: Callable[[], Any], unit: Callable[[], float], repeats: int) -> list[float]:
    """Return seconds over those of the unit before and after: neighbours come and go."""
    ratios = []
    for _ in range(repeats):
        before = unit()
        spent = seconds(work)
        ratios.append(spent / float(np.mean([before, unit()])))
    return ratios


def entry(
    n_rows: int, criterion: str, ratios: list[float], limit: float | None, units: str
) -> dict[str, Any]:
    """Return what is recorded of a case, and print it."""
    median, least, most = float(np.median(ratios)), min(ratios), max(ratios)
    holds = None if limit is None else bool(median <= limit)
    verdict = {None: "", True: "holds", False: "MISSED"}[holds]
    print(
        f"{n_rows:6} {criterion:13} {median:7.1f} {units} ({least:.1f} to {most:.1f})  {verdict}",
        flush=True,
    )
    return {
        "rows": n_rows,
        "criterion": criterion,
        "median": median,
        "least": least,
        "most": most,
        "limit": limit,
        "holds": holds,
    }


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
    names = [*CASES, *ROW_CASES, GRID]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="rows")
    parser.add_argument("--cases", nargs="+", choices=names, default=names)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    asked = parser.parse_args()
    results = []
    for size in asked.sizes:
        results += measure(size, asked.cases, asked.repeats)
        results += measure_from_rows(size, asked.cases, asked.repeats)
    if 1000 in asked.sizes and GRID in asked.cases:
        results.append(against_grid())
    whole = parser.parse_args([])
    if asked == whole:
        write_record("cost_in_factorisations", results, repeats=REPEATS, kernels=10)


if __name__ == "__main__":
    main()
