"""Learning a kernel from rows, in units of one kernel matrix and one Cholesky factorisation.

Two classes, gap ≤ 1e-6, everything from X on; each ratio is within one run, the median of five.
The unit is scikit-learn's ``rbf_kernel`` plus SciPy's Cholesky factorisation of the same size.
``python speed.py ladder papers`` runs some of the cases.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import PAPER_WIDTHS, write_record
from scipy.linalg import lapack
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from discernel import MultipleKernelDiscriminant
from discernel.kernels import RBF, Kernel, rbf_ladder

REPEATS = 5


def rows(n: int, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return overlapping classes in 20 features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 20))
    score = X[:, 0] + X[:, 1] ** 2 - 1.0 + rng.standard_normal(n)
    edges = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(edges, score)


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def unit(X: np.ndarray) -> float:
    """Return the seconds of one kernel matrix and one factorisation."""

    def work() -> None:
        K = rbf_kernel(X)
        K[np.diag_indices_from(K)] += 1.0
        lapack.dpotrf(K.T, lower=1, overwrite_a=1)

    return seconds(work)


def fit(X: np.ndarray, y: np.ndarray, kernels: list[Kernel]) -> MultipleKernelDiscriminant:
    clf = MultipleKernelDiscriminant(kernels, criterion="rkda", regularization=1e-3).fit(X, y)
    assert clf.gap_ <= 1e-6
    return clf


def papers_kernels() -> list[Kernel]:
    return [RBF(width=float(width)) for width in PAPER_WIDTHS]


def against_unit(n: int, kernels: Callable[[], list[Kernel]], n_classes: int = 2) -> list[float]:
    X, y = rows(n, n_classes)
    ratios = []
    for _ in range(REPEATS):
        before = unit(X)
        spent = seconds(lambda: fit(X, y, kernels()))
        ratios.append(spent / np.mean([before, unit(X)]))
    return ratios


def against_grid() -> list[float]:
    X, y = rows(1000)
    gammas = (1.0 / (np.sqrt(40.0) * 2.0 ** np.linspace(-4, 4, 10)) ** 2).tolist()
    grid = {"gamma": gammas, "C": [0.1, 1.0, 10.0, 100.0]}
    ratios = []
    for _ in range(3):
        ours = min(seconds(lambda: fit(X, y, rbf_ladder(10))) for _ in range(3))
        ratios.append(seconds(lambda: GridSearchCV(SVC(), grid, cv=5).fit(X, y)) / ours)
    return ratios


def ten_classes() -> list[float]:
    (X, two), (_, ten) = rows(4000), rows(4000, 10)
    return [
        seconds(lambda: fit(X, ten, rbf_ladder(10))) / seconds(lambda: fit(X, two, rbf_ladder(10)))
        for _ in range(REPEATS)
    ]


def growth() -> list[float]:
    times = {n: [] for n in (2000, 8000)}
    for _ in range(3):
        for n, found in times.items():
            X, y = rows(n)
            found.append(seconds(lambda X=X, y=y: fit(X, y, rbf_ladder(10))))
    return [float(np.log(b / a) / np.log(4.0)) for a, b in zip(*times.values(), strict=True)]


#: Name, what it is, how it is measured, and the limit: at most, or at least where negative.
CASES: dict[str, tuple[str, Callable[[], list[float]], float]] = {
    "ladder": (
        "4,000 rows, ladder of 10: fit ÷ unit",
        lambda: against_unit(4000, lambda: rbf_ladder(10)),
        8.0,
    ),
    "papers": (
        "4,000 rows, ten widths of the papers: fit ÷ unit",
        lambda: against_unit(4000, papers_kernels),
        12.0,
    ),
    "grid": ("1,000 rows: SVC grid (10 × 4 × 5) ÷ fit", against_grid, -20.0),
    "classes": ("4,000 rows: 10 classes ÷ 2 classes", ten_classes, 2.0),
    "growth": ("exponent of the time from 2,000 to 8,000 rows", growth, 3.0),
    "large": (
        "10,000 rows, ladder of 10: fit ÷ unit",
        lambda: against_unit(10_000, lambda: rbf_ladder(10)),
        12.0,
    ),
}


def main() -> None:
    chosen = sys.argv[1:] or list(CASES)
    results = []
    for name in chosen:
        what, measure, limit = CASES[name]
        ratios = measure()
        median = float(np.median(ratios))
        holds = median >= -limit if limit < 0 else median <= limit
        results.append(
            {
                "case": name,
                "what": what,
                "median": median,
                "least": float(min(ratios)),
                "most": float(max(ratios)),
                "limit": limit,
                "holds": holds,
            }
        )
        bound = f"at least {-limit:g}" if limit < 0 else f"at most {limit:g}"
        print(
            f"{what:50} {median:6.2f} ({min(ratios):.2f} to {max(ratios):.2f}), {bound}: "
            f"{'holds' if holds else 'MISSED'}",
            flush=True,
        )
    if chosen == list(CASES):
        write_record("speed", results, repeats=REPEATS)


if __name__ == "__main__":
    main()
