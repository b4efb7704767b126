"""Prediction with a learned kernel of five widths, in units of scikit-learn's ``SVC.predict``.

2,000 training rows, 20 features, and an SVC with all of them for support vectors. Ours and theirs
take turns on the same new rows in one run; each ratio is that of two turns, the median of five.
Memory is what is allocated at most during a prediction, less its result.
``python prediction.py 50000`` takes that many new rows.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from common import write_record
from sklearn.svm import SVC

from discernel import MultipleKernelDiscriminant
from discernel.kernels import RBF, Kernel, rbf_ladder

REPEATS = 5
N_TRAINING, N_FEATURES = 2000, 20
#: At most this share of the time of SVC.predict.
LIMIT = 0.5
#: The rows at which memory is compared.
FEW, MANY = 20_000, 1_000_000

CASES: dict[str, tuple[str, list[Kernel]]] = {
    "ladder": ("a ladder of five widths", rbf_ladder(5)),
    "widths": (
        "five widths, no ladder",
        [RBF(width=f"{factor}*median") for factor in (0.4, 0.7, 1.0, 1.9, 3.0)],
    ),
}


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two classes that overlap, in 20 features."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, N_FEATURES))
    return X, (X[:, 0] + X[:, 1] ** 2 - 1.0 + rng.standard_normal(n) > 0).astype(int)


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def fit(kernels: list[Kernel]) -> MultipleKernelDiscriminant:
    """Return a discriminant of all the kernels."""
    X, y = rows(N_TRAINING, seed=0)
    clf = MultipleKernelDiscriminant(kernels, criterion="uniform", regularization=1e-3).fit(X, y)
    assert np.all(clf.kernel_weights_ > 0)
    return clf


def fit_svc() -> SVC:
    """Return an SVC so narrow that every row is a support vector."""
    X, y = rows(N_TRAINING, seed=0)
    svc = SVC(gamma=1.0, C=1.0).fit(X, y)
    assert svc.n_support_.sum() >= 0.99 * N_TRAINING
    return svc


def memory(clf: MultipleKernelDiscriminant, n: int) -> float:
    """Return the MiB that scores of n rows need, less the scores."""
    X, _ = rows(n, seed=2)
    clf.predict(X[:10])
    tracemalloc.start()
    scores = clf.combined_kernel_.product(X, clf.discriminant_.dual_coef)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - scores.nbytes) / 2**20


def measure(name: str, X: np.ndarray, svc: SVC) -> dict[str, Any]:
    what, kernels = CASES[name]
    clf = fit(kernels)
    ours, theirs = [], []
    for _ in range(REPEATS):
        ours.append(seconds(lambda: clf.predict(X)))
        theirs.append(seconds(lambda: svc.predict(X)))
    ratios = np.divide(ours, theirs)
    one = X[:1]
    single = [
        seconds(lambda: clf.predict(one)) / seconds(lambda: svc.predict(one)) for _ in range(200)
    ]
    result = {
        "case": name,
        "what": what,
        "median": float(np.median(ratios)),
        "least": float(ratios.min()),
        "most": float(ratios.max()),
        "limit": LIMIT,
        "holds": bool(np.median(ratios) <= LIMIT),
        "microseconds_a_row": 1e6 * float(np.median(ours)) / len(X),
        "microseconds_a_row_svc": 1e6 * float(np.median(theirs)) / len(X),
        "one_row": float(np.median(single)),
        "memory_mib": {str(n): memory(clf, n) for n in (FEW, MANY)},
    }
    print(
        f"{what:24} {result['median']:.3f} ({result['least']:.3f} to {result['most']:.3f}) of "
        f"SVC.predict, at most {LIMIT}: {'holds' if result['holds'] else 'MISSED'}\n"
        f"{'':24} {result['microseconds_a_row']:.1f} against "
        f"{result['microseconds_a_row_svc']:.1f} microseconds a row; "
        f"one row: {result['one_row']:.2f}\n"
        f"{'':24} memory at {FEW} and {MANY} rows: "
        f"{' and '.join(f'{mib:.1f} MiB' for mib in result['memory_mib'].values())}",
        flush=True,
    )
    return result


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
    X, _ = rows(n, seed=1)
    svc = fit_svc()
    results = [measure(name, X, svc) for name in CASES]
    write_record(
        "prediction",
        results,
        repeats=REPEATS,
        training_rows=N_TRAINING,
        support_vectors=int(svc.n_support_.sum()),
        features=N_FEATURES,
        new_rows=n,
    )


if __name__ == "__main__":
    main()
