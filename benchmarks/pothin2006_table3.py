"""Pothin 2006, Table 3: the error of SVMs with the best of six kernels and with their alignment.

Wisconsin breast cancer, six kernels, C from {1, 10, 100}, fivefold cross-validation, here repeated
with ten shuffles. The kernel is learnt within each fold, from its training rows alone. Of single
kernels the best is taken, as in the paper, with the C that is best for it in the same
cross-validation; of a learnt kernel only C.

The paper names neither the scaling of the features nor the parameters its kernels start from, so
three settings are measured: features as they are, from 1 to 10, with γ = σ = 1; features in [0, 1]
with γ = σ = 1; and features in [0, 1] with γ = 1 and σ = 1/2, from which greedy alignment takes the
two kernels it took in the paper, the Gaussian and the cubic, and comes nearest to its alignment.
The paper has 699 rows, 16 of which lack a value; here are the 683 complete ones. Its alignments
cannot all be right: since ⟨K, L⟩ ≥ 0 for kernel matrices, two kernels of alignment at most 0.22
have no combination above 0.31, and Table 2 says 0.64.

Claims, in each setting and for both losses, of greedy alignment with kernel parameters tuned, as
in the paper's last rows: an error at most the published one plus 1.0; and below that of the best
single kernel by more than two standard errors of the paired difference. Standard errors are over
the shuffles of one set of rows.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from common import load, write_record
from rich.progress import track
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import MinMaxScaler

from discernel import LearnedKernelSVC, align_kernels
from discernel.criteria.alignment import alignment, class_signs, stack_products
from discernel.exceptions import ConvergenceWarning
from discernel.kernels import RBF, Exponential, Kernel, Polynomial
from discernel.learners.alignment import greedy, qp
from discernel.targets import ClassTarget

N_SHUFFLES = 10
CS = (1.0, 10.0, 100.0)
#: Whether features are scaled to [0, 1], and σ.
SETTINGS = {
    "as they are, σ = 1": (False, 1.0),
    "[0, 1], σ = 1": (True, 1.0),
    "[0, 1], σ = 1/2": (True, 0.5),
}
LEARNT = ("qp", "greedy", "greedy, tuned")
Errors: TypeAlias = dict[tuple[str, str, float], np.ndarray]
#: Error in %, Table 3 of the paper. Its greedy row is after the gradient steps.
PUBLISHED = {
    ("l1", "single"): 5.14,
    ("l1", "qp"): 3.58,
    ("l1", "greedy, tuned"): 3.37,
    ("l2", "single"): 3.58,
    ("l2", "qp"): 2.93,
    ("l2", "greedy, tuned"): 2.79,
}


def single_kernels(sigma: float) -> dict[str, Kernel]:
    """Return the six kernels of the paper, γ being 1."""
    return {
        **{f"polynomial {q}": Polynomial(q) for q in (1, 2, 3, 4)},
        "gaussian": RBF(length_scale=sigma),
        "exponential": Exponential(width=2.0 * sigma**2),
    }


def learnt_kernels(kernels: list[Kernel], X: np.ndarray, y: np.ndarray) -> dict[str, Kernel]:
    """Return the combinations that alignment makes of the kernels."""
    signs = class_signs(ClassTarget.from_labels(y))
    grams = np.array([kernel(X) for kernel in kernels])
    M, f, norm = stack_products(grams, signs, centered=False)
    tuned = align_kernels(kernels, X, y, centered=False, step=0.5, epsilon=1e-3, tol=1e-5)
    return {
        "qp": combination(kernels, qp(M, f)),
        "greedy": combination(kernels, greedy(M, f, 1e-3, norm=norm).weights),
        "greedy, tuned": combination(tuned.kernels, tuned.coefficients),
    }


def combination(kernels: list[Kernel], weights: np.ndarray) -> Kernel:
    """Return Σ μ_i k_i of the kernels that carry weight, the largest μ_i being 1."""
    scaled = weights / weights.max()
    return sum(float(w) * kernel for w, kernel in zip(scaled, kernels, strict=True) if w > 0)


def aligned(kernel: Kernel, X: np.ndarray, y: np.ndarray) -> float:
    """Return the alignment of a kernel with the labels on some rows."""
    signs = class_signs(ClassTarget.from_labels(y))
    M, f, norm = stack_products(kernel(X)[None], signs, centered=False)
    return float(alignment(M, f, np.ones(1), norm))


def scale(train: np.ndarray, test: np.ndarray, scaled: bool) -> tuple[np.ndarray, np.ndarray]:
    scaler = MinMaxScaler().fit(train)
    return (scaler.transform(train), scaler.transform(test)) if scaled else (train, test)


def measure(setting: str) -> tuple[Errors, dict[str, Any]]:
    """Return errors in % by loss, kernel and C, one a shuffle; and the mean alignments."""
    X, y = load("breast_cancer_wisconsin")
    scaled, sigma = SETTINGS[setting]
    single = single_kernels(sigma)
    errors: Errors = defaultdict(lambda: np.zeros(N_SHUFFLES))
    alignments: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for shuffle in track(range(N_SHUFFLES), description=setting):
        folds = StratifiedKFold(5, shuffle=True, random_state=shuffle)
        for train, test in folds.split(X, y):
            Z, Z_test = scale(X[train], X[test], scaled)
            learnt = learnt_kernels(list(single.values()), Z, y[train])
            for name, kernel in (single | learnt).items():
                both = aligned(kernel, Z, y[train]), aligned(kernel, Z_test, y[test])
                alignments[name].append(both)
                for loss, C in product(("l1", "l2"), CS):
                    svm = LearnedKernelSVC(
                        [kernel], criterion="uniform", regularization=1.0, loss=loss, C=C
                    ).fit(Z, y[train])
                    wrong = np.sum(svm.predict(Z_test) != y[test])
                    errors[loss, name, C][shuffle] += 100.0 * wrong / len(y)
    means = {name: np.mean(pairs, axis=0).tolist() for name, pairs in alignments.items()}
    return dict(errors), means


def best(errors: Errors, loss: str, names: Any) -> tuple[str, float, np.ndarray]:
    """Return the kernel and C with the least mean error, and its errors."""
    _, name, C = min((errors[loss, name, C].mean(), name, C) for name in names for C in CS)
    return name, C, errors[loss, name, C]


def standard_error(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def table(setting: str) -> dict[str, Any]:
    """Return the rows of Table 3 in one setting, and all errors they were taken from."""
    errors, alignments = measure(setting)
    rows = []
    for loss in ("l1", "l2"):
        chosen = best(errors, loss, single_kernels(1.0))
        for row in ("single", *LEARNT):
            name, C, found = chosen if row == "single" else best(errors, loss, [row])
            published, gain = PUBLISHED.get((loss, row)), chosen[2] - found
            rows.append(
                {
                    "loss": loss,
                    "row": row,
                    "kernel": name,
                    "C": C,
                    "error": float(found.mean()),
                    "standard_error": standard_error(found),
                    "published": published,
                    "near_published": None
                    if published is None
                    else bool(found.mean() <= published + 1.0),
                    "less_than_single": float(gain.mean()),
                    "standard_error_of_difference": standard_error(gain),
                    "better_than_single": bool(gain.mean() > 2.0 * standard_error(gain)),
                    "alignment_training": alignments[name][0],
                    "alignment_test": alignments[name][1],
                }
            )
    cells = [
        {"loss": loss, "kernel": name, "C": C, "error": float(found.mean())}
        for (loss, name, C), found in errors.items()
    ]
    tuned = [row for row in rows if row["row"] == "greedy, tuned"]
    return {
        "setting": setting,
        "error_holds": all(row["near_published"] for row in tuned),
        "order_holds": all(row["better_than_single"] for row in tuned),
        "rows": rows,
        "cells": cells,
    }


def show(result: dict[str, Any]) -> None:
    error, order = ("holds" if result[k] else "MISSED" for k in ("error_holds", "order_holds"))
    print(f"\nfeatures {result['setting']}: published error {error}, order {order}")
    for row in result["rows"]:
        published = "    " if row["published"] is None else f"{row['published']:.2f}"
        print(
            f"  {row['loss']}  {row['row']:14} {row['kernel']:14} C = {row['C']:<4g} "
            f"error {row['error']:.2f} ± {row['standard_error']:.2f}  published {published}  "
            f"below single by {row['less_than_single']:5.2f} ± "
            f"{row['standard_error_of_difference']:.2f}  alignment {row['alignment_training']:.3f}",
            flush=True,
        )


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)  # tuning may end at its 100 iterations
    results = []
    for setting in SETTINGS:
        results.append(table(setting))
        show(results[-1])
    write_record(
        "pothin2006_table3",
        results,
        data="breast_cancer_wisconsin, 683 complete rows",
        kernels="(1 + <x, z>)^q, q = 1, ..., 4; exp(-d^2 / 2 sigma^2); exp(-d / 2 sigma^2)",
        folds=5,
        shuffles=N_SHUFFLES,
        C=list(CS),
        svm_kernel="centred, diagonal of mean 1",
    )


if __name__ == "__main__":
    main()
