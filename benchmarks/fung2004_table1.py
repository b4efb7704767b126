"""Fung 2004, Table 1: A-KFD on the five public sets, with the paper's protocol.

A linear and four Gaussian kernels exp(−μd²), data scaled to [−1, 1]. 10 random partitions, 70 % for
training; on the training part ν is chosen from 10^-3, ..., 10^12 by tenfold cross-validation. The
paper does not say at which change of the objective it stops, only that it took 3 to 4 iterations:
all is measured at 1e-2, 1e-4 and 1e-6. Its housing task is not described; ours is MEDV > 21.
Claim: at 1e-2, at least the published accuracy minus 1.0 on each set.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from common import load, write_record
from rich.progress import track
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import minmax_scale

from discernel.estimators.akfd import AKFDClassifier
from discernel.exceptions import ConvergenceWarning
from discernel.kernels import RBF, Linear

#: Mean test-set accuracy in %, Table 1 of the paper, column A-KFD.
PUBLISHED = {
    "ionosphere": 94.7,
    "boston_housing": 89.9,
    "heart_cleveland": 79.7,
    "pima": 74.1,
    "bupa": 70.9,
}
MUS = (0.001, 0.01, 0.1, 1.0)
N_PARTITIONS = 10
TOLERANCES = (1e-2, 1e-4, 1e-6)
#: Where the slowest alternations at 1e-6 are cut off.
MAX_ITER = 300


def load_scaled(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, y = load(name)
    if name == "boston_housing":
        y = np.where(y.astype(float) > 21.0, "above 21", "up to 21")
    return minmax_scale(X, (-1, 1)), y


def kernels() -> list[Any]:
    return [Linear(), *(RBF(gamma=mu) for mu in MUS)]


def measure(name: str) -> dict[str, Any]:
    """Return accuracies and iterations at every tolerance, and the values of ν chosen."""
    X, y = load_scaled(name)
    scores: dict[float, list[float]] = {tol: [] for tol in TOLERANCES}
    iterations: dict[float, list[int]] = {tol: [] for tol in TOLERANCES}
    nus = []
    for seed in track(range(N_PARTITIONS), description=name):
        train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed)
        nu: float | str = "cv"
        for tol in TOLERANCES:
            clf = AKFDClassifier(kernels(), nu=nu, tol=tol, max_iter=MAX_ITER, random_state=seed)
            clf.fit(X[train], y[train])
            nu = clf.nu_  # chosen once a partition
            scores[tol].append(100.0 * clf.score(X[test], y[test]))
            iterations[tol].append(clf.n_iter_)
        nus.append(nu)
    found = [summary(tol, scores[tol], iterations[tol]) for tol in TOLERANCES]
    return {
        "data": name,
        "published": PUBLISHED[name],
        "partitions": N_PARTITIONS,
        "nus": nus,
        "at": found,
        "holds": found[0]["mean"] >= PUBLISHED[name] - 1.0,
    }


def summary(tol: float, scores: list[float], iterations: list[int]) -> dict[str, Any]:
    return {
        "tol": tol,
        "mean": float(np.mean(scores)),
        "standard_error": float(np.std(scores, ddof=1) / np.sqrt(len(scores))),
        "median_iterations": float(np.median(iterations)),
        "iterations": iterations,
        "cut_off": sum(n == MAX_ITER for n in iterations),
    }


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)  # counted instead
    results = []
    for name in PUBLISHED:
        result = measure(name)
        results.append(result)
        verdict = "holds" if result["holds"] else "MISSED"
        print(f"{name:16} published {result['published']}  {verdict}")
        for at in result["at"]:
            print(
                f"    to {at['tol']:.0e}: ours {at['mean']:.1f} ± {at['standard_error']:.1f}, "
                f"{at['median_iterations']:.0f} iterations "
                f"({min(at['iterations'])} to {max(at['iterations'])}, {at['cut_off']} cut off)",
                flush=True,
            )
    write_record(
        "fung2004_table1",
        results,
        kernels=["linear", *(f"exp(-{mu:g} d^2)" for mu in MUS)],
        scaling="each feature to [-1, 1]",
        nu="tenfold cross-validation of 10^-3, ..., 10^12",
        max_iter=MAX_ITER,
        housing="MEDV > 21",
    )


if __name__ == "__main__":
    main()
