"""How many times faster `newton` is than the semidefinite program, in the same run.

Claim: at 80 samples and 10 kernels, at least 1000 times, at equal objectives (1e-6).
"""

from __future__ import annotations

import time

import numpy as np
from common import load, paper_kernels, write_record
from sklearn.preprocessing import scale

from discernel import learn_kernel

N_SAMPLES, REPEATS, LAMBDA = 80, 3, 5e-4


def seconds(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main() -> None:
    results = []
    for criterion, name in (("rkda", "wdbc"), ("fdr", "wdbc"), ("rkda", "wine")):
        X, y = load(name)
        rows = np.random.default_rng(0).choice(len(y), N_SAMPLES, replace=False)
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
            f"{name:6} {criterion:5} {len(np.unique(y))} classes: sdp {sdp:8.2f} s, newton "
            f"{1e3 * newton:6.2f} ms, ratio {sdp / newton:8.0f}, objectives differ by "
            f"{difference:.1e}",
            flush=True,
        )
    write_record(
        "newton_against_sdp", results, samples=N_SAMPLES, kernels=10, repeats=REPEATS, lam=LAMBDA
    )


if __name__ == "__main__":
    main()
