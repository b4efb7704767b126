"""How many times faster `newton` is than the semidefinite program, in the same run.

Claim: at 80 samples and 10 kernels, at least 1000 times, at equal objectives (1e-6).
"""

from __future__ import annotations

import time

import numpy as np
from common import load, paper_kernels, write_record
from sklearn.preprocessing import scale

from discernel import learn_kernel

REPEATS, LAMBDA = 3, 5e-4
#: Three classes are three matrix inequalities: at 80 samples the program takes many minutes.
CASES = [("rkda", "wdbc", 80), ("fdr", "wdbc", 80), ("rkda", "wine", 40)]


def seconds(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main() -> None:
    results = []
    for criterion, name, n_samples in CASES:
        X, y = load(name)
        rows = np.random.default_rng(0).choice(len(y), n_samples, replace=False)
        X, y = scale(X[rows]), y[rows]
        grams = np.array([kernel(X) for kernel in paper_kernels()])
        options = {"criterion": criterion, "regularization": LAMBDA, "tol": 1e-6}

        def learn(solver, grams=grams, y=y, options=options):
            return learn_kernel(grams, y, solver=solver, **options)

        fast, slow = learn("newton"), learn("sdp")  # also warms both up
        newton = float(np.median([seconds(lambda: learn("newton")) for _ in range(20 * REPEATS)]))
        sdp = float(np.median([seconds(lambda: learn("sdp")) for _ in range(REPEATS)]))
        difference = abs(fast.objective - slow.objective) / abs(slow.objective)
        results.append(
            {
                "data": name,
                "criterion": criterion,
                "samples": n_samples,
                "classes": len(np.unique(y)),
                "ratio": sdp / newton,
                "newton_seconds": newton,
                "sdp_seconds": sdp,
                "relative_difference_of_objectives": difference,
                "newton_gap": fast.gap,
                "sdp_gap": slow.gap,
            }
        )
        print(
            f"{name:6} {criterion:5} {n_samples} samples, {len(np.unique(y))} classes: "
            f"sdp {sdp:8.2f} s, newton {1e3 * newton:6.2f} ms, ratio {sdp / newton:8.0f}, "
            f"objectives differ by {difference:.1e}",
            flush=True,
        )
    write_record("newton_against_sdp", results, kernels=10, repeats=REPEATS, lam=LAMBDA)


if __name__ == "__main__":
    main()
