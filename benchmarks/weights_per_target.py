"""Weights per target: time and R² of `MultipleKernelRidge(weights_per_target=True)`.

Made-up targets, each a function of one of three sources of three columns and noise; six Gaussian
kernels, two widths per source. Beside it: one fit with shared weights, separate fits with
``criterion="loo"`` (20 targets are timed, and the time scaled up), and the two solvers of himalaya,
if it is installed. Ours includes the folds of ``expected_``, which himalaya has not; ``learning``
is the time until weights and λ of all targets are learned. Processor time of one thread; on a
device wall time, without shared weights and separate fits.

    python benchmarks/weights_per_target.py
    python benchmarks/weights_per_target.py --sizes 200x200 100x10000
    python benchmarks/weights_per_target.py --device cuda --sizes 300x10000
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import write_record
from cores import Phases
from sklearn.base import clone
from sklearn.metrics import r2_score
from threadpoolctl import threadpool_limits

from discernel import MultipleKernelRidge
from discernel.kernels import RBF
from discernel.progress import reporter

#: Rows and targets.
SIZES = ("200x200", "200x1000")
#: Separate fits that are timed, rows that predictions are compared on, and widths of kernels.
SEPARATE, N_TEST, WIDTHS = 20, 300, (1.0, 3.0)

#: Phases of a fit before held-out rows are scored.
LEARNING = ("starting", "looking at all rows", "learning weights and λ")


def make(n_rows: int, n_targets: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows + N_TEST, 9))
    signals = [
        np.sin(2 * X[:, 0]) + X[:, 1],
        X[:, 3] * X[:, 4],
        np.cos(2 * X[:, 6]) + 0.5 * X[:, 7],
    ]
    noise = rng.standard_normal((n_targets, len(X)))
    Y = [signals[t % 3] + (0.3 + 0.1 * (t % 7)) * noise[t] for t in range(n_targets)]
    return X, np.stack(Y, axis=1)


def kernels() -> dict[str, Any]:
    return {
        f"source {source}, width {width:g}": RBF(width=width).on(
            list(range(3 * source, 3 * source + 3))
        )
        for source in range(3)
        for width in WIDTHS
    }


def measure(
    fit: Callable[[], np.ndarray],
    truth: np.ndarray,
    scale: float = 1.0,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, Any]:
    """Return the time and the mean R² of what a fit predicts for held-out rows."""
    start = clock()
    predicted = fit()
    seconds = (clock() - start) * scale
    return {"seconds": round(seconds, 2), "r2": round(float(r2_score(truth, predicted)), 4)}


def himalaya(
    X: np.ndarray, Y: np.ndarray, n: int, clock: Callable[[], float], on_device: bool
) -> dict[str, Any]:
    """Return what the solvers of himalaya do; empty if it is not installed."""
    try:
        from himalaya.backend import set_backend
        from himalaya.kernel_ridge import MultipleKernelRidgeCV
    except ImportError:
        return {}
    backend = set_backend("torch_cuda" if on_device else "numpy")
    grams, found = np.stack([kernel(X) for kernel in kernels().values()]), {}
    if on_device:  # single precision, as himalaya recommends there
        grams, Y = grams.astype(np.float32), Y.astype(np.float32)
    mean = Y[:n].mean(axis=0)
    options = {
        "hyper_gradient": {},
        "random_search": {"n_iter": 100, "alphas": np.logspace(-6, 2, 9)},
    }
    for solver, more in options.items():
        known = {"progress_bar": False, **more}
        model = MultipleKernelRidgeCV(
            kernels="precomputed", solver=solver, cv=5, solver_params=known
        )

        def fit(model: Any = model) -> np.ndarray:
            model.fit(
                backend.asarray(grams[:, :n, :n]),
                backend.asarray(Y[:n] - mean),
            )
            return np.asarray(
                backend.to_numpy(model.predict(backend.asarray(grams[:, n:, :n]))) + mean
            )

        found[f"himalaya {solver}"] = measure(fit, Y[n:], clock=clock)
    return found


def one_size(n: int, n_targets: int, device: str | None) -> dict[str, Any]:
    X, Y = make(n, n_targets)
    clock = time.process_time if device is None else time.perf_counter
    own = MultipleKernelRidge(kernels(), weights_per_target=True, device=device)
    if device is not None:  # the first call of a device is slower
        clone(own).fit(X[:50], Y[:50, :3])
    phases = Phases()  # its clock starts here
    token = reporter._ACTIVE.set(phases)  # type: ignore[arg-type]
    found = {
        "per target": measure(lambda: own.fit(X[:n], Y[:n]).predict(X[n:]), Y[n:], clock=clock)
    }
    phases.enter("end")
    reporter._ACTIVE.reset(token)
    kind = "processor" if device is None else "wall"
    learning = sum(spent[kind] for name, spent in phases.found.items() if name in LEARNING)
    found["per target"] |= {
        "learning": round(learning, 2),
        "expected_r2": round(float(own.expected_.r2), 4),
    }
    if device is not None:
        methods = found | himalaya(X, Y, n, clock, True)
        return {"rows": n, "targets": n_targets, "device": device, "methods": methods}
    shared = MultipleKernelRidge(kernels())
    found["shared"] = measure(lambda: shared.fit(X[:n], Y[:n]).predict(X[n:]), Y[n:], clock=clock)
    some = range(min(SEPARATE, n_targets))

    def separate() -> np.ndarray:
        single = MultipleKernelRidge(kernels(), criterion="loo")
        return np.stack([single.fit(X[:n], Y[:n, t]).predict(X[n:]) for t in some], axis=1)

    found["separate"] = measure(separate, Y[n:, : len(some)], n_targets / len(some))
    return {"rows": n, "targets": n_targets, "methods": found | himalaya(X, Y, n, clock, False)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), help="rows x targets")
    parser.add_argument("--device", help="a device for ours and for himalaya's, such as cuda")
    given = parser.parse_args()
    limit = None if given.device else 1
    if limit is not None:
        os.environ["LOKY_MAX_CPU_COUNT"] = "1"
    results = []
    with threadpool_limits(limits=limit):
        for size in given.sizes:
            n, n_targets = map(int, size.split("x"))
            results.append(one_size(n, n_targets, given.device))
            for name, one in results[-1]["methods"].items():
                print(f"{n} rows, {n_targets} targets, {name}: {one}", flush=True)
    name = "weights_per_target_on_device" if given.device else "weights_per_target"
    write_record(name, {"sizes": results})


if __name__ == "__main__":
    main()
