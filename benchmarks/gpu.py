"""A GPU against the cores beside it: time, memory and certificates of the same fits.

Needs ``pip install '.[torch]'`` and an NVIDIA device; ``pip install himalaya`` for the last part.
Rows are made up: 50 columns of noise, of which ten decide on ten classes. Every fit is timed from
the rows to the fitted estimator, after one small fit that compiles what is compiled once. Of the
default, and of given matrices, the least of two times is taken, on the device as on the cores.

    python benchmarks/gpu.py                 # all parts, writes the record
    python benchmarks/gpu.py --parts exact default
    python benchmarks/gpu.py --cores 2       # the parts that need no GPU, with so many cores
"""

from __future__ import annotations

import argparse
import json
import os
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from common import RECORDS, machine
from streams import draw as draw_rows
from threadpoolctl import threadpool_limits

from discernel import MultipleKernelDiscriminant, learn_kernel
from discernel.kernels import RBF, Laplace, rbf_ladder

N_COLUMNS, N_CLASSES, N_KERNELS = 50, 10, 10
LAMBDA = 1e-3
KERNELS = {
    "ladder": rbf_ladder(N_KERNELS),
    "free widths": [RBF(width=s) for s in np.linspace(3.0, 30.0, N_KERNELS)],
    "1-norm": [Laplace(width=s) for s in np.linspace(15.0, 150.0, N_KERNELS)],
}
PARTS = ("agreement", "exact", "kernels", "default", "matrices", "many", "figure", "himalaya")
FIGURE_ROWS = (1_000, 2_500, 5_000, 10_000, 25_000)
#: Rows up to which so many cores are tried: more take too long.
MOST_ON_CORES = {2: 10_000, 16: 25_000}
#: Draws of himalaya's random search, which takes 100 by default.
DRAWS = 10


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, N_COLUMNS))
    by, mixed = rng.normal(size=(8, N_CLASSES)), rng.normal(size=(1, N_CLASSES))
    scores = np.sin(X[:, :8]) @ by + 0.5 * (X[:, 8:9] * X[:, 9:10]) * mixed
    return X, scores.argmax(axis=1)


def fit(n: int, *, device: str | None = "cuda", **options: Any) -> tuple[Any, dict[str, Any]]:
    """Return a fitted estimator, and what it took."""
    X, y = rows(n)
    found: dict[str, Any] = {"rows": n}
    if device is not None:
        import torch

        X, y = torch.as_tensor(X, device=device), torch.as_tensor(y, device=device)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()
    start = time.perf_counter()
    clf = MultipleKernelDiscriminant(**options).fit(X, y)
    if device is not None:
        torch.cuda.synchronize()
    found["seconds"] = time.perf_counter() - start
    if device is not None:
        found["peak_gigabytes"] = torch.cuda.max_memory_allocated() / 1e9
    found |= {
        "gap": clf.gap_,
        "regularization": clf.regularization_,
        "expected_accuracy": clf.expected_.accuracy,
        "bank": clf.bank_,
    }
    print(
        {name: value if name != "gap" else f"{value}" for name, value in found.items()}, flush=True
    )
    return clf, found


def exact(kernels: str = "ladder", **options: Any) -> dict[str, Any]:
    return {
        "kernels": KERNELS[kernels],
        "criterion": "rkda",
        "regularization": LAMBDA,
        **options,
    }


# ---- the parts ---------------------------------------------------------------------------------


def agreement() -> dict[str, Any]:
    """Weights and objective beside those of NumPy, and predictions of a model taken home."""
    options = exact(solver="newton", tol=1e-10)
    there, _ = fit(4_000, **options)
    here, _ = fit(4_000, device=None, **options)
    X, _ = rows(5_000)
    home = there.to_cpu()
    return {
        "weights": float(np.abs(there.kernel_weights_ - here.kernel_weights_).max()),
        "objective": abs(there.learned_kernel_.objective / here.learned_kernel_.objective - 1.0),
        "probabilities_taken_home": float(
            np.abs(there.predict_proba(X) - home.predict_proba(X)).max()
        ),
    }


def one_cholesky(n: int) -> float:
    """Return the seconds of one factorisation of single precision by PyTorch."""
    import torch

    A = torch.eye(n, device="cuda") * 2.0
    A += 0.5 / n
    best = np.inf
    for _ in range(2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        torch.linalg.cholesky_ex(A)
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best


def exact_sizes() -> list[dict[str, Any]]:
    results = []
    for n in (50_000, 100_000, 250_000):
        clf, found = fit(n, **exact())
        found["factorisations"] = clf.n_iter_ + 1
        if n == 50_000:  # what was loaded and allotted for the first is there, as for a Cholesky
            again = found["seconds_again"] = fit(n, **exact())[1]["seconds"]
            alone = found["cholesky_seconds"] = one_cholesky(n)
            found["over_factorisations"] = again / (found["factorisations"] * alone)
        results.append(found)
    return results


def kernel_families() -> dict[str, float]:
    times = {name: fit(50_000, **exact(name))[1]["seconds"] for name in KERNELS}
    return {name: seconds / times["ladder"] for name, seconds in times.items()}


def default(device: str | None = "cuda") -> dict[str, Any]:
    return min((fit(20_000, device=device)[1] for _ in range(2)), key=lambda each: each["seconds"])


def matrices(device: str | None = "cuda", n: int = 10_000) -> dict[str, Any]:
    """Time of `learn_kernel` on matrices that lie there: ten of them, on as many rows."""
    X, y = rows(n)
    stack = np.stack([kernel.resolve(X)(X) for kernel in KERNELS["ladder"]])
    grams: Any = stack
    if device is not None:
        import torch

        grams = torch.as_tensor(stack, device=device)
    options: Any = {"criterion": "rkda", "regularization": LAMBDA}
    seconds, learned = np.inf, None
    for _ in range(2):
        start = time.perf_counter()
        learned = learn_kernel(grams, y, **options)  # ends when its weights are here
        seconds = min(seconds, time.perf_counter() - start)
    assert learned is not None
    found = {"rows": n, "seconds": seconds, "gap": learned.gap}
    print(found, flush=True)
    return found


def many(device: str | None = "cuda", n: int = 1_000_000) -> dict[str, Any]:
    """Time of the default on so many rows of `streams.py`, and its accuracy on new ones."""
    (X, y, _), (new, truth, _) = draw_rows(n, 0), draw_rows(50_000, 1)
    start = time.perf_counter()
    clf = MultipleKernelDiscriminant(device=device).fit(X, y)
    found = {"rows": n, "seconds": time.perf_counter() - start}
    forecast: Any = clf.forecast_
    found |= {"forecast": forecast.seconds, "bank": clf.bank_, "accuracy": clf.score(new, truth)}
    print(found, flush=True)
    return found


def figure(cores: int | None = None) -> list[dict[str, Any]]:
    """Return fits of fewer rows; those of more are in `exact_sizes`."""
    most = max(FIGURE_ROWS) if cores is None else MOST_ON_CORES.get(cores, 10_000)
    device = "cuda" if cores is None else None
    return [fit(n, device=device, **exact())[1] for n in FIGURE_ROWS if n <= most]


def himalaya(n: int = 10_000) -> dict[str, Any]:
    """Time of himalaya's random search on the device, on the same kernels: a tenth of its draws."""
    import torch
    from himalaya.backend import set_backend
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    X, y = rows(n)
    set_backend("torch_cuda")
    targets = np.eye(N_CLASSES)[y]
    resolved = [kernel.resolve(X) for kernel in KERNELS["ladder"]]
    stack = torch.as_tensor(np.stack([kernel(X) for kernel in resolved]), device="cuda").float()
    stack /= torch.stack([torch.trace(K) for K in stack])[:, None, None] / n
    Y = torch.as_tensor(targets - targets.mean(axis=0), device="cuda").float()
    options = {"n_iter": DRAWS, "progress_bar": False}
    torch.cuda.synchronize()
    start = time.perf_counter()
    MultipleKernelRidgeCV(kernels="precomputed", solver_params=options).fit(stack, Y)
    torch.cuda.synchronize()
    theirs = time.perf_counter() - start
    _, ours = fit(n, **exact())
    return {
        "rows": n,
        "draws": DRAWS,
        "seconds": theirs,
        "ours": ours,
        "ratio": theirs / ours["seconds"],
    }


def draw(record: dict[str, Any], target: Path) -> None:
    """Draw time against rows."""
    import matplotlib.pyplot as plt

    found = record["results"]
    lines = {
        "2 cores": found["2 cores"]["exact"],
        "16 cores": found["16 cores"]["exact"],
        found["device"]: [*found["figure"], *found["exact"]],
    }
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for (name, fits), style, color in zip(
        lines.items(), ("s--", "D-.", "o-"), ("#7a7a8c", "#2f6f9f", "#b5382a"), strict=True
    ):
        axes.loglog(
            [each["rows"] for each in fits],
            [each["seconds"] for each in fits],
            style,
            color=color,
            label=name,
        )
    axes.set(
        xlabel="rows",
        ylabel="seconds from rows to fitted estimator",
        title="rkda, ten kernels, ten classes, certified",
    )
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--cores", type=int, help="no GPU, and so many cores")
    parser.add_argument("--draw", action="store_true", help="only the figure of the record")
    parser.add_argument("--out", type=Path, default=RECORDS / "gpu.json")
    given = parser.parse_args()
    record = json.loads(given.out.read_text()) if given.out.exists() else {"results": {}}
    if given.draw:
        draw(record, RECORDS.parent.parent / "docs" / "images" / "gpu.png")
        return
    results: dict[str, Any] = record["results"]

    def save() -> None:
        """Write what there is so far: later parts may find too little memory or time."""
        settings = {"columns": N_COLUMNS, "classes": N_CLASSES, "kernels": N_KERNELS}
        made = {"benchmark": "gpu", "date": date.today().isoformat(), "settings": settings}
        made |= {"machine": machine(), "results": results}
        given.out.write_text(json.dumps(made, indent=1) + "\n")

    if given.cores is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.cores])
        with threadpool_limits(given.cores):
            found: dict[str, Any] = {}
            if given.cores > 2:
                found = {"default": default(None), "matrices": matrices(None), "many": many(None)}
            found["exact"] = figure(given.cores)
        results[f"{given.cores} cores"] = found
    else:
        import torch

        for options in ({}, {}, exact(), exact("1-norm")):  # compiled, and loaded, once
            fit(3_000, **options)
        results |= {"device": torch.cuda.get_device_name(0), "torch": torch.__version__}
        work = {
            "agreement": agreement,
            "exact": exact_sizes,
            "kernels": kernel_families,
            "default": default,
            "matrices": matrices,
            "many": many,
            "figure": figure,
            "himalaya": himalaya,
        }
        for part in given.parts:
            results[part] = work[part]()
            save()
    save()


if __name__ == "__main__":
    main()
