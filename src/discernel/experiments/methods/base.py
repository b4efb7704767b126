"""What all methods share: what they return, and how plain data become kernels and estimators."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel import kernels as kernel_families
from discernel.arrays import FloatArray
from discernel.displays.common import given_names, kernel_sources, sum_by
from discernel.exceptions import unknown_choice
from discernel.experiments.tasks import Division
from discernel.kernels import RBF, Kernel, as_kernels

__all__ = ["Outcome", "fit_and_predict", "learner_kernels", "make_kernels"]

#: At most so many training rows, and so many held-out ones, are kept for a picture.
_DRAWN = 150


@dataclass(frozen=True)
class Outcome:
    """What a method found on one division.

    Attributes
    ----------
    y_pred : ndarray of shape (n_rows,)
        The classes of the held-out rows.
    scores : ndarray or None
        Their decision values: (n_rows,) for two classes, else (n_rows, n_classes).
    probabilities : ndarray of shape (n_rows, n_classes) or None
        The probability of each class.
    seconds_fit, seconds_predict : float
        The time it took.
    weights : dict of str to float
        Kernel weights by name, if any were learned.
    regularization, gap : float or None
        λ and the certified gap.
    metrics : dict of str to float
        What it measured beside those of `discernel.experiments.metrics`.
    details : dict
        Anything else, as plain data.
    """

    y_pred: NDArray[Any]
    scores: NDArray[Any] | None = None
    probabilities: NDArray[Any] | None = None
    seconds_fit: float = 0.0
    seconds_predict: float = 0.0
    weights: dict[str, float] = field(default_factory=dict)
    regularization: float | None = None
    gap: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


def make_kernels(spec: Any, division: Division) -> list[Kernel]:
    """Return the candidate kernels that plain data stand for.

    Parameters
    ----------
    spec : "auto" or list
        ``"auto"`` as in the estimators, or three widths for each of several views; a list of
        ``[family, parameters]``.
    division : Division
        Whose views are meant.
    """
    if not isinstance(spec, str):
        return [_make_kernel(*entry) for entry in spec]
    if not division.views:
        return as_kernels(spec)
    return [
        kernel.on(columns, name).named(f"{name}: {kernel.name}")
        for name, columns in division.views.items()
        for kernel in (RBF(width=f"{factor}*median") for factor in (0.5, 1, 2))
    ]


def learner_kernels(spec: Any, division: Division, criterion: Any) -> Any:
    """Return what a `MultipleKernelDiscriminant` is given for its kernels.

    ``"auto"`` stays a word, for which the estimator learns a metric. Not for equal weights, the
    baseline in which nothing is learned, and not for several views, which have kernels of their
    own.

    Parameters
    ----------
    spec, division
        As in `make_kernels`.
    criterion : str or Criterion
        That of the estimator.
    """
    learns_metric = isinstance(spec, str) and not division.views and criterion != "uniform"
    return spec if learns_metric else make_kernels(spec, division)


def _make_kernel(family: str, parameters: Mapping[str, Any]) -> Kernel:
    if family not in kernel_families.__all__:
        raise unknown_choice("family of kernels", family, list(kernel_families.__all__))
    kernel: Kernel = getattr(kernel_families, family)(**parameters)
    return kernel


def fit_and_predict(estimator: Any, division: Division) -> Outcome:
    """Fit an estimator, predict, and take what it says about its kernel."""
    start = time.perf_counter()
    estimator.fit(division.X_train, division.y_train)
    fitted = time.perf_counter()
    y_pred = estimator.predict(division.X_test)
    predicted = time.perf_counter()
    scores, probabilities = _scores(estimator, division)
    names, weights = _weights(estimator)
    return Outcome(
        y_pred=y_pred,
        scores=scores,
        probabilities=probabilities,
        seconds_fit=fitted - start,
        seconds_predict=predicted - fitted,
        weights=dict(zip(names, weights, strict=True)),
        regularization=_number(getattr(estimator, "regularization_", None)),
        gap=_number(getattr(estimator, "gap_", None)),
        details=_details(getattr(estimator, "learned_kernel_", None))
        | _sources(estimator, names)
        | _importances(estimator, division)
        | _embedding(estimator, division),
    )


def _scores(estimator: Any, division: Division) -> tuple[FloatArray | None, FloatArray | None]:
    """Return decision values and probabilities of the held-out rows, where there are any.

    Probabilities of two classes serve as decision values where there are no others.
    """
    scores = probabilities = None
    if hasattr(estimator, "predict_proba"):
        probabilities = np.asarray(estimator.predict_proba(division.X_test), dtype=np.float64)
        scores = probabilities[:, 1] if probabilities.shape[1] == 2 else None
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(division.X_test), dtype=np.float64)
    return scores, probabilities


def _weights(estimator: Any) -> tuple[list[str], list[float]]:
    """Return kernel names and weights; an estimator with one kernel has nothing to weigh."""
    if not (hasattr(estimator, "kernel_weights_") and hasattr(estimator, "kernels")):
        return [], []
    # The names as given: resolved widths differ from one division to the next.
    return given_names(estimator), estimator.kernel_weights_.tolist()


def _sources(estimator: Any, names: list[str]) -> dict[str, Any]:
    """Return the source of each kernel by its name, where sources have several kernels."""
    sources = kernel_sources(estimator.kernels_) if names else []
    if not 1 < len(set(sources)) < len(sources):
        return {}
    return {"sources": dict(zip(names, sources, strict=True))}


def _importances(estimator: Any, division: Division) -> dict[str, Any]:
    """Return the importance of each column of the data to the default.

    Those of other fits are not asked for: they would take about as long as a fit with few kernels.
    The importances of a forest mean something else.
    """
    if not hasattr(estimator, "metric_"):
        return {}
    importances = estimator.feature_importances_
    columns = division.columns or tuple(f"column {i}" for i in range(len(importances)))
    names, sums = sum_by(columns, importances)
    return {"feature_importances": dict(zip(names, sums.tolist(), strict=True))}


def _embedding(estimator: Any, division: Division) -> dict[str, Any]:
    """Return the first two discriminant coordinates of some rows, for one division."""
    if not (division.is_first and hasattr(estimator, "discriminant_")):
        return {}
    parts = [
        (estimator.transform(X[:_DRAWN])[:, :2], y[:_DRAWN], np.full(len(y[:_DRAWN]), held_out))
        for X, y, held_out in (
            (division.X_train, division.y_train, False),
            (division.X_test, division.y_test, True),
        )
    ]
    coordinates, labels, held_out = (np.concatenate(part) for part in zip(*parts, strict=True))
    return {
        "embedding": {
            "coordinates": coordinates.round(3).tolist(),
            "labels": [str(label) for label in labels],
            "held_out": held_out.tolist(),
            "explained": estimator.explained_variance_ratio_[:2].tolist(),
        }
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _details(learned: Any) -> dict[str, Any]:
    """Return what a report shows of a learned kernel beside its weights."""
    if learned is None:
        return {}
    return {
        "status": str(learned.status),
        "n_iter": int(learned.n_iter),
        "objective": _number(learned.objective),
        "history": [
            [p.iteration, p.objective, p.gap, p.stage, p.regularization] for p in learned.history
        ],
        "leave_one_out": [[lam, error] for lam, error in learned.leave_one_out.items()],
        "considered": [
            [
                found.name,
                found.error,
                found.pull,
                found.regularization,
                found.strength,
                found.accuracy,
            ]
            for found in learned.considered
        ],
    }
