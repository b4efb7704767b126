"""What a fitted model is, as plain data: the same for the terminal and for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import numpy as np

from discernel.cli.models import SavedModel
from discernel.displays.common import are_by_folds, kernel_sources, sum_by
from discernel.exceptions import InvalidInputError
from discernel.inspection import source_importances
from discernel.learn import Candidate
from discernel.report.words import candidate_label

__all__ = ["summarize"]


def summarize(model: SavedModel) -> dict[str, Any]:
    """Return what a person or a program wants to know of a model, as plain data.

    Parameters
    ----------
    model : SavedModel
        Fitted.
    """
    clf = model.pipeline[-1]
    learned = clf.learned_kernel_
    expected = clf.expected_
    return {
        "name": model.dataset,
        "target": model.target,
        "n_rows": model.origin.n_rows,
        "n_columns": len(model.preparation.columns),
        "classes": dict(model.origin.class_counts),
        "expected": None if expected is None else asdict(expected),
        "majority": _majority(model),
        "importances": _importances(model),
        "sources": _sources(model),
        "kernels": dict(zip(clf.kernel_names_, clf.kernel_weights_.tolist(), strict=True)),
        "candidates": [_candidate(each) for each in learned.considered],
        "why_chosen": _why(learned.considered),
        "criterion": learned.criterion,
        "regularization": float(clf.regularization_),
        "regularization_note": learned.regularization_advice,
        "gap": None if clf.gap_ is None else float(clf.gap_),
        "certificate": learned.certificate,
        "origin": asdict(model.origin),
    }


def _majority(model: SavedModel) -> dict[str, Any]:
    """Return the largest class, its share, and the log-loss of knowing the shares only."""
    counts = model.origin.class_counts
    if not counts:
        return {}
    shares = np.array(list(counts.values())) / model.origin.n_rows
    entropy = float(-np.sum(shares[shares > 0] * np.log(shares[shares > 0])))
    largest = max(counts, key=counts.__getitem__)
    return {"class": largest, "share": float(shares.max()), "log_loss": entropy}


def _importances(model: SavedModel) -> list[dict[str, Any]]:
    """Return the columns, the most important first; empty where there are none."""
    clf = model.pipeline[-1]
    if not hasattr(clf, "feature_importances_"):
        return []
    both = np.stack([clf.feature_importances_, clf.feature_importances_std_])
    # Of a sum the spread is no larger than the sum of those of its parts.
    names, (shares, spreads) = sum_by(model.columns, both)
    return [
        {"column": names[i], "importance": float(shares[i]), "std": float(spreads[i])}
        for i in np.argsort(-shares, kind="stable")
    ]


def _sources(model: SavedModel) -> list[dict[str, Any]]:
    """Return weight, importance and its spread of each source, where there are several."""
    clf = model.pipeline[-1]
    given = kernel_sources(clf.kernels_)
    if len(set(given)) < 2:
        return []
    names, sums = sum_by(given, clf.kernel_weights_)
    sources: list[dict[str, Any]] = [
        {"source": name, "weight": weight}
        for name, weight in zip(names, sums.tolist(), strict=True)
    ]
    with suppress(InvalidInputError):  # of a model that keeps no training rows
        found = source_importances(model.pipeline)
        shares = dict(zip(found.names, zip(found.shares, found.spread, strict=True), strict=True))
        for each in sources:
            share, spread = shares[each["source"]]
            each |= {"importance": float(share), "std": float(spread)}
    return sources


# ---- the choice --------------------------------------------------------------------------------


def _candidate(candidate: Candidate) -> dict[str, Any]:
    by_folds = candidate.accuracy is not None
    return {
        "name": candidate_label(candidate),
        ("log_loss" if by_folds else "squared_error"): float(candidate.error),
        **({"accuracy": candidate.accuracy} if by_folds else {"pull": float(candidate.pull)}),
        "regularization": float(candidate.regularization),
    }


def _why(considered: Sequence[Candidate]) -> str:
    """Say why the first candidate was chosen."""
    if len(considered) < 2:
        return ""
    chosen = considered[0]
    if not are_by_folds(considered):
        return "chosen: the smallest sum of squared error and pull to equal weights"
    if chosen.error <= min(each.error for each in considered):
        return "chosen: the smallest log-loss"
    return (
        "chosen: simpler than what has the smallest log-loss, and within one standard error of it"
    )
