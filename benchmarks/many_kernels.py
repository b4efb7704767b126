"""One kernel a feature, a thousand features: the cost of a fit in passes over all kernels.

1,000 rows, two classes, 1,000 Gaussian kernels of one feature each, of which four have to do with
the classes; gap ≤ 1e-6, everything from X on. The unit is one pass over all kernels: the products
of their matrices with one vector, tile by tile (``TiledBank.products``). Each ratio is within one
run, the median of five, by the clock and by processor time, which others on the machine disturb
less. What was learned is then judged by the kernels themselves, computed in
tiles: the gap of their program over all kernels. For 200 of the kernels the same optimum is also
found by Newton's method on all of them in tiles, as without screening.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import write_record

from discernel import MultipleKernelDiscriminant
from discernel.arrays import blas_threads
from discernel.bank import TiledBank
from discernel.kernels import feature_kernels
from discernel.programs.rkda import RKDAProgram
from discernel.programs.solution import Task
from discernel.solvers import Newton
from discernel.targets import ClassTarget

REPEATS = 5
N_SAMPLES, N_KERNELS, FEW = 1000, 1000, 200
REGULARIZATIONS = (1e-1, 1e-2, 1e-3)


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_SAMPLES, N_KERNELS))
    score = X[:, 0] + X[:, 1] ** 2 - 1.0 + np.sin(2.0 * X[:, 2]) + 0.5 * X[:, 3]
    return X, (score + rng.standard_normal(N_SAMPLES) > 0.0).astype(int)


def seconds(work: Callable[[], Any]) -> tuple[np.ndarray, Any]:
    """Return the seconds by the clock and of the processors, and the result."""
    start = np.array([time.perf_counter(), time.process_time()])
    result = work()
    return np.array([time.perf_counter(), time.process_time()]) - start, result


def fit(X: np.ndarray, y: np.ndarray, lam: float) -> MultipleKernelDiscriminant:
    kernels = feature_kernels(X.shape[1])
    return MultipleKernelDiscriminant(kernels, criterion="rkda", regularization=lam).fit(X, y)


def against_a_pass(X: np.ndarray, y: np.ndarray, bank: TiledBank, lam: float) -> dict[str, Any]:
    scores = ClassTarget.from_labels(y).scores
    ratios, fits, passes = [], [], [seconds(lambda: bank.products(scores))[0]]
    for _ in range(REPEATS):
        spent, clf = seconds(lambda: fit(X, y, lam))
        fits.append(spent)
        passes.append(seconds(lambda: bank.products(scores))[0])
        ratios.append(spent / np.mean(passes[-2:], axis=0))
    exact = RKDAProgram(bank, ClassTarget.from_labels(y), lam).at(clf.kernel_weights_)
    learned = clf.learned_kernel_
    clock, processor = np.transpose(ratios)
    return {
        "what": f"{N_KERNELS} kernels, λ = {lam:g}: fit ÷ pass",
        "median": float(np.median(clock)),
        "least": float(clock.min()),
        "most": float(clock.max()),
        "processor_median": float(np.median(processor)),
        "processor_least": float(processor.min()),
        "processor_most": float(processor.max()),
        "fit_seconds": np.median(fits, axis=0).tolist(),
        "pass_seconds": np.median(passes, axis=0).tolist(),
        "bank": clf.bank_,
        "kernels_with_weight": int(np.count_nonzero(clf.kernel_weights_)),
        "screened": learned.screened,
        "steps": learned.n_iter,
        "gap": learned.gap,
        "gap_by_tiles": exact.gap,
        "objective_off_that_by_tiles": abs(learned.objective / exact.value - 1.0),
    }


def without_screening(X: np.ndarray, y: np.ndarray, lam: float) -> dict[str, Any]:
    """Return the times and values of both ways for fewer kernels."""
    X = X[:, :FEW]
    spent, clf = seconds(lambda: fit(X, y, lam))
    kernels, target = clf.kernels_, ClassTarget.from_labels(y)
    task = Task(1e-6, None, None, lambda *_: None)
    with blas_threads(N_SAMPLES):
        plain, found = seconds(
            lambda: Newton().solve(RKDAProgram(TiledBank(kernels, X), target, lam), task)
        )
    return {
        "what": f"{FEW} kernels, λ = {lam:g}: Newton on all, in tiles ÷ fit",
        "ratios": (plain / spent).tolist(),
        "newton_seconds": plain.tolist(),
        "newton_steps": found.n_iter,
        "fit_seconds": spent.tolist(),
        "objectives_apart": abs(clf.learned_kernel_.objective / found.value - 1.0),
    }


def main() -> None:
    X, y = rows()
    bank = TiledBank([k.resolve(X) for k in feature_kernels(N_KERNELS).values()], X)
    results = []
    for lam in REGULARIZATIONS:
        results.append(against_a_pass(X, y, bank, lam))
        print(results[-1], flush=True)
    for lam in REGULARIZATIONS:
        results.append(without_screening(X, y, lam))
        print(results[-1], flush=True)
    write_record("many_kernels", results, repeats=REPEATS, n_samples=N_SAMPLES)


if __name__ == "__main__":
    main()
