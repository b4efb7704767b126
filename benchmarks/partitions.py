"""Test accuracy over random partitions, for the tables of both papers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from common import load, paper_kernels
from rich.progress import track
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from discernel import MultipleKernelDiscriminant


def accuracies(
    name: str, scaler: Any, test_size: float, n_partitions: int, **options: Any
) -> dict[str, Any]:
    """Return mean accuracy in %, its standard error, the worst gap, and how often a fit failed."""
    X, y = load(name)
    scores, gaps, lambdas, failures = [], [], [], 0
    for seed in track(range(n_partitions), description=f"{name} {options}"):
        train, test = train_test_split(np.arange(len(y)), test_size=test_size, random_state=seed)
        clf = make_pipeline(scaler, MultipleKernelDiscriminant(paper_kernels(), **options))
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a fit that does not certify its gap counts as failed
            try:
                clf.fit(X[train], y[train])
            except Warning:
                failures += 1
                continue
        scores.append(100.0 * clf.score(X[test], y[test]))
        gaps.append(clf[-1].gap_)
        lambdas.append(clf[-1].regularization_)
    return {
        "data": name,
        "mean": float(np.mean(scores)),
        "standard_error": float(np.std(scores, ddof=1) / np.sqrt(len(scores))),
        "standard_deviation": float(np.std(scores, ddof=1)),
        "partitions": n_partitions,
        "failures": failures,
        "worst_gap": float(max(gaps)),
        "median_lambda": float(np.median(lambdas)),
    }
