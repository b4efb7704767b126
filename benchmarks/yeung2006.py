"""Yeung 2006, Tables 1 to 5: nearest neighbours with a kernel learnt from few labels.

Standardised data, all rows given, 20 or 40 % of them, stratified, with labels; 20 random partitions
(the paper: 10). Accuracy is that on the rows without label. Four ways to get the kernel:

* plain: the Gaussian kernel. Nearest neighbours do not depend on its width, so nothing is chosen.
* alignment: spectral alignment, Cristianini 2002.
* separability: the closed form, with σ², share of the trace and α chosen by leave-one-out on the
  labelled rows; as by default, as the paper has it (its σ², α = 10⁴), and without falling back to
  the plain kernel.
* dinkelbach: the largest ratio of the traces, weights at most twice the plain ones.

The paper does not say how its data were scaled, nor which three classes of housing it means: ours
are the terciles of MEDV. Its wdbc has 31 features where the public set has 30.

The rule that keeps the plain kernel unless something is clearly better, the default σ² and the
two α were settled on random partitions of these five sets. Four more sets, not looked at before,
say whether they carry over; the paper has no cells for them.

Claims, k = 1: at 20 % labelled, separability is at least 5 points above plain on ionosphere, and
nowhere more than 1 point below it on wdbc, wine and monks3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import load, write_record
from rich.progress import track
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import scale

from discernel import KernelNeighborsClassifier, SeparabilityClassifier
from discernel.kernels import RBF

#: Accuracy in % of nearest neighbours, by (labelled share, k): RBF and "Ours" of the table named.
PUBLISHED: dict[str, dict[str, Any]] = {
    "ionosphere": {
        "table": "Table 2",
        "plain": {(0.2, 1): 78.82, (0.2, 3): 79.00, (0.4, 1): 82.26, (0.4, 3): 81.55},
        "alignment": {(0.2, 1): 78.89, (0.2, 3): 78.37, (0.4, 1): 82.00, (0.4, 3): 81.77},
        "separability": {(0.2, 1): 85.36, (0.2, 3): 84.68, (0.4, 1): 89.62, (0.4, 3): 88.76},
    },
    "wine": {
        "table": "Table 4",
        "plain": {(0.2, 1): 91.63, (0.2, 3): 94.07, (0.4, 1): 94.24, (0.4, 3): 94.81},
        "separability": {(0.2, 1): 95.70, (0.2, 3): 95.63, (0.4, 1): 95.38, (0.4, 3): 95.48},
    },
    "monks3": {
        "table": "Table 1",
        "plain": {(0.2, 1): 76.29, (0.2, 3): 78.14, (0.4, 1): 78.26, (0.4, 3): 82.17},
        "alignment": {(0.2, 1): 84.35, (0.2, 3): 83.86, (0.4, 1): 88.84, (0.4, 3): 88.77},
        "separability": {(0.2, 1): 88.36, (0.2, 3): 89.54, (0.4, 1): 90.70, (0.4, 3): 90.95},
    },
    "wdbc": {
        "table": "Table 3",
        "plain": {(0.2, 1): 92.42, (0.2, 3): 93.04, (0.4, 1): 93.61, (0.4, 3): 94.23},
        "alignment": {(0.2, 1): 87.97, (0.2, 3): 88.77, (0.4, 1): 85.63, (0.4, 3): 85.43},
        "separability": {(0.2, 1): 94.19, (0.2, 3): 94.48, (0.4, 1): 94.23, (0.4, 3): 94.94},
    },
    "boston_housing": {
        "table": "Table 5",
        "plain": {(0.2, 1): 76.53, (0.2, 3): 74.63, (0.4, 1): 80.10, (0.4, 3): 76.52},
        "separability": {(0.2, 1): 74.70, (0.2, 3): 73.87, (0.4, 1): 80.40, (0.4, 3): 77.14},
    },
}
#: Sets that no choice was made on.
FRESH = ("sonar", "heart_statlog", "bupa", "breast_cancer_wisconsin")
#: The σ² of the paper beside the mean squared distance.
SQUARED_WIDTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 5.0, 10.0, 1e2, 1e3)
N_PARTITIONS = 20


def load_scaled(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, y = load(name)
    if name == "boston_housing":
        values = y.astype(float)
        y = np.digitize(values, np.quantile(values, [1 / 3, 2 / 3]))
    return scale(X), np.unique(y, return_inverse=True)[1]


def paper_kernels(X: np.ndarray) -> list[RBF]:
    mean = 2.0 * float(np.mean(np.sum((X - X.mean(axis=0)) ** 2, axis=1)))
    return [RBF(width=float(np.sqrt(square))) for square in (mean, *SQUARED_WIDTHS)]


def learners(X: np.ndarray, k: int) -> dict[str, SeparabilityClassifier]:
    options: dict[str, dict[str, Any]] = {
        "separability": {},
        "separability, never plain": {"include_plain": False},
        "separability, the paper's grid": {"kernels": paper_kernels(X), "alpha": 1e4},
        "alignment": {"method": "alignment", "include_plain": False},
        "dinkelbach": {"method": "dinkelbach"},
        "dinkelbach, never plain": {"method": "dinkelbach", "include_plain": False},
    }
    if k > 1:  # variants are compared once
        options = {name: chosen for name, chosen in options.items() if "," not in name}
    return {
        name: SeparabilityClassifier(n_neighbors=k, **chosen) for name, chosen in options.items()
    }


def measure(name: str, share: float, k: int) -> dict[str, Any]:
    """Return mean accuracy in % and its standard error, of every way."""
    X, y = load_scaled(name)
    scores: dict[str, list[float]] = {}
    plain_kept, shares = 0, []
    splits = StratifiedShuffleSplit(N_PARTITIONS, train_size=share, random_state=0).split(X, y)
    for known, hidden in track(
        splits, total=N_PARTITIONS, description=f"{name} {share:.0%} k={k}", transient=True
    ):
        partial = np.full(len(y), -1)
        partial[known] = y[known]
        plain = KernelNeighborsClassifier(k, kernel=RBF(width="median")).fit(X[known], y[known])
        scores.setdefault("plain", []).append(100.0 * plain.score(X[hidden], y[hidden]))
        for way, clf in learners(X, k).items():
            found = clf.fit(X, partial).transduction_[hidden]
            scores.setdefault(way, []).append(100.0 * float(np.mean(found == y[hidden])))
            if way == "separability":
                plain_kept += clf.spectrum_.method == "plain"
                shares.append(clf.share_)
    return {
        "data": name,
        "labelled": share,
        "neighbors": k,
        "partitions": N_PARTITIONS,
        "plain_kept": plain_kept,
        "shares": shares,
        "ways": {way: summary(values, scores["plain"]) for way, values in scores.items()},
        "published": published(name, share, k, scores),
    }


def summary(values: list[float], plain: list[float]) -> dict[str, float]:
    gains = np.subtract(values, plain)
    return {
        "mean": float(np.mean(values)),
        "standard_error": float(np.std(values, ddof=1) / np.sqrt(len(values))),
        "gain": float(np.mean(gains)),
        "gain_standard_error": float(np.std(gains, ddof=1) / np.sqrt(len(gains))),
    }


def published(name: str, share: float, k: int, scores: dict[str, list[float]]) -> dict[str, Any]:
    """Return the cells of the paper, and which of them the same way reaches here."""
    if name in FRESH:
        return {}
    cells = PUBLISHED[name]
    there = {way: cells[way][share, k] for way in cells if way != "table"}
    reached = {way: bool(np.mean(scores[way]) >= cell) for way, cell in there.items()}
    return {"table": cells["table"], "cells": there, "reached": reached}


def holds(result: dict[str, Any]) -> bool | None:
    """Whether the claim about this cell holds; None where there is none."""
    gain = result["ways"]["separability"]["gain"]
    if (result["labelled"], result["neighbors"]) != (0.2, 1):
        return None
    if result["data"] == "ionosphere":
        return bool(gain >= 5.0)
    return bool(gain >= -1.0) if result["data"] in ("wdbc", "wine", "monks3") else None


def main() -> None:
    cells = [(name, share, k) for name in PUBLISHED for k in (1, 3) for share in (0.2, 0.4)]
    results = []
    for name, share, k in cells + [(name, 0.2, 1) for name in FRESH]:
        result = measure(name, share, k)
        result["holds"] = holds(result)
        results.append(result)
        verdict = {True: "holds", False: "MISSED", None: ""}[result["holds"]]
        print(
            f"{name} {share:.0%} labelled, k = {k}: published "
            f"{result['published'].get('cells', 'nothing')}, plain kept "
            f"{result['plain_kept']} times  {verdict}"
        )
        for way, at in result["ways"].items():
            print(f"    {way:32} {at['mean']:.1f} ± {at['standard_error']:.1f}", flush=True)
    write_record(
        "yeung2006",
        results,
        scaling="standardised",
        labelled="stratified, at random",
        housing="terciles of MEDV",
        plain="nearest neighbours of a Gaussian kernel do not depend on its width",
    )


if __name__ == "__main__":
    main()
