"""Systems solved by iteration: whether they say what factored ones say, and what they cost.

Agreement, at 4,000 rows of 20 columns and 3 classes: weights, objective and certified gap of
``rkda`` with ``bank="iterative"`` and ``bank="tiled"``, for λ from 1e-1 to 1e-4, a ladder of ten
Gaussian widths and three narrow ones.

Cost, at 12,500, 25,000 and 50,000 rows, ten Gaussian kernels, λ = 1e-3: seconds of a whole fit,
passes over the tiles, and the peak memory of its process less that of a process that only made the
rows. Each size runs in a process of its own. The exponent is that of the time from the smallest
size to the largest.

Give sizes as arguments to measure only these; a record is written for the whole.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
from common import write_record

from discernel import MultipleKernelDiscriminant
from discernel.bank import IterativeBank
from discernel.kernels import RBF, rbf_ladder

N_AGREEMENT, SIZES = 4000, (12_500, 25_000, 50_000)
REGULARIZATIONS = (1e-1, 1e-2, 1e-3, 1e-4)
KERNELS = {
    "ladder of 10 widths": lambda: rbf_ladder(10),
    "narrow": lambda: [RBF(width=f"{factor}*median") for factor in (0.5, 0.25, 0.125)],
}


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 20))
    score = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)
    return X, np.digitize(score, [-0.5, 0.5])


def fit(X: np.ndarray, y: np.ndarray, kernels: Any, lam: float, bank: str) -> Any:
    clf = MultipleKernelDiscriminant(kernels, criterion="rkda", regularization=lam, bank=bank)
    return clf.fit(X, y)


def agreement(name: str, lam: float) -> dict[str, Any]:
    X, y = rows(N_AGREEMENT)
    seconds, fits = {}, {}
    for bank in ("tiled", "iterative"):
        start = time.perf_counter()
        fits[bank] = fit(X, y, KERNELS[name](), lam, bank)
        seconds[bank] = time.perf_counter() - start
    exact, found = (fits[bank].learned_kernel_ for bank in ("tiled", "iterative"))
    scores = [clf.discriminant_.training_scores for clf in fits.values()]
    return {
        "kernels": name,
        "regularization": lam,
        "weights_apart": float(np.abs(exact.weights - found.weights).max()),
        "objectives_apart": abs(found.objective / exact.objective - 1.0),
        "gap": found.gap,
        "left_out_scores_apart": float(
            np.linalg.norm(scores[0] - scores[1]) / np.linalg.norm(scores[0])
        ),
        "left_out_accuracies": [clf.expected_.accuracy for clf in fits.values()],
        "seconds": seconds,
    }


def memory() -> float:
    """Return the peak memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def one_size(n: int) -> dict[str, Any]:
    """Return what a fit of so many rows takes; run in a process of its own."""
    banks: list[IterativeBank] = []
    made = IterativeBank.__init__

    def remember(self: IterativeBank, *arguments: Any, **options: Any) -> None:
        made(self, *arguments, **options)
        banks.append(self)

    IterativeBank.__init__ = remember  # type: ignore[method-assign]
    fit(*rows(1000), rbf_ladder(10), 1e-3, "tiled")  # libraries, and their memory
    X, y = rows(n)
    before = memory()
    start, processor = time.perf_counter(), time.process_time()
    clf = fit(X, y, rbf_ladder(10), 1e-3, "iterative")
    return {
        "n_samples": n,
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - processor,
        "gigabytes_above_data": memory() - before,
        "gap": clf.gap_,
        "left_out_accuracy": clf.expected_.accuracy,
        "passes": [[b.n_samples, b.passes["double"], b.passes["single"]] for b in banks],
    }


def in_a_process(n: int) -> dict[str, Any]:
    run = subprocess.run(
        [sys.executable, __file__, "--one", str(n)], check=True, capture_output=True, text=True
    )
    return json.loads(run.stdout.splitlines()[-1])


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one_size(int(sys.argv[2]))))
        return
    sizes = [int(size) for size in sys.argv[1:]]
    agreed = []
    for name in () if sizes else KERNELS:
        for lam in REGULARIZATIONS:
            agreed.append(agreement(name, lam))
            print(agreed[-1], flush=True)
    costs = []
    for n in sizes or SIZES:
        costs.append(in_a_process(n))
        print(costs[-1], flush=True)
    first, last = costs[0], costs[-1]
    if len(costs) > 1:
        growth = np.log(last["n_samples"] / first["n_samples"])
        exponents = {
            key: float(np.log(last[key] / first[key]) / growth)
            for key in ("seconds", "processor_seconds")
        }
        print(f"exponents of the time: {exponents}")
    if not sizes:
        results = {"agreement": agreed, "cost": costs, "exponents": exponents}
        write_record("iterative", results, n_agreement=N_AGREEMENT, sizes=list(SIZES))


if __name__ == "__main__":
    main()
