"""What can be fitted to a division: one function per kind of method.

Each takes a division and the options of the method, which are plain data, and returns an
`Outcome`. Kernels are written as ``["RBF", {"width": 1.0}]``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from discernel import kernels as kernel_families
from discernel.arrays import FloatArray
from discernel.bank import gram_stack
from discernel.bank.checks import check_grams
from discernel.bank.products import is_constant
from discernel.compare.peers import PEERS, PeerClassifier
from discernel.compare.tasks import Division
from discernel.estimators import KernelDiscriminant, MultipleKernelDiscriminant
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.inspection.facts import given_names
from discernel.kernels import (
    RBF,
    Kernel,
    Precomputed,
    as_kernels,
    kernel_names,
    resolve_kernels,
)
from discernel.learn.learn import DEFAULT_REGULARIZATIONS
from discernel.rows.views import kernel_sources, sum_by

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
        What it measured beside those of `discernel.compare.metrics`.
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


# ---- the kinds ---------------------------------------------------------------------------------


def discriminant(division: Division, options: dict[str, Any]) -> Outcome:
    """Fit a `MultipleKernelDiscriminant`."""
    criterion = options.get("criterion", "auto")
    kernels = learner_kernels(options.pop("kernels", "auto"), division, criterion)
    rows = division.as_read if kernels == "auto" else division
    return fit_and_predict(MultipleKernelDiscriminant(kernels, **options), rows)


class _Checked(Precomputed):
    """A matrix known to be a kernel matrix, because it is part of one that was checked."""

    trusted = True


def search_kernels(
    kernels: Sequence[Kernel],
    X: NDArray[Any],
    y: NDArray[Any],
    machine: Callable[[Kernel], BaseEstimator],
    grid: Mapping[str, Sequence[float]],
    folds: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]],
    n_jobs: int | None = None,
) -> FloatArray:
    """Return the cross-validated accuracy of each kernel with each value of one parameter.

    NaN for a kernel that is constant on the rows of a fold. The search is on matrices, computed
    once and known to be kernels: on rows it takes 1.4 times as long.

    Parameters
    ----------
    kernels : sequence of Kernel
        Resolved.
    X, y : ndarray
        Training rows and labels.
    machine : callable
        From a kernel to the classifier that is fitted with it.
    grid : dict of str to sequence of float
        The name of the parameter, and its values.
    folds : sequence of (ndarray, ndarray)
        Training and held-out rows.
    n_jobs : int, optional
        The processes that share the fits with a kernel.
    """
    names, (values,) = kernel_names(list(kernels)), grid.values()
    near = [kernel.shifted(X) for kernel in kernels]  # the same once centred
    grams, _ = check_grams(gram_stack(near, X), names, [kernel.trusted for kernel in kernels])
    search = GridSearchCV(
        machine(_Checked()), grid, cv=folds, n_jobs=n_jobs, refit=False, error_score="raise"
    )
    accuracies = np.full((len(grams), len(values)), np.nan)
    for row, gram in zip(accuracies, grams, strict=True):
        if not any(is_constant(gram[np.ix_(train, train)]) for train, _ in folds):
            row[:] = search.fit(gram, y).cv_results_["mean_test_score"]
    if np.isnan(accuracies).all():
        raise InvalidInputError(
            "At least one kernel must vary over the rows of every fold. All are constant: "
            f"{', '.join(names)}. Check the data for identical rows and the kernels for far "
            "too large widths."
        )
    return accuracies


def _fisher(kernel: Kernel) -> KernelDiscriminant:
    # Statistics of the fit: leave-one-out was no better on any of five sets tried.
    return KernelDiscriminant(kernel, statistics="training")


def single(division: Division, options: dict[str, Any]) -> Outcome:
    """Fit the kernel and the λ of the best accuracy in fivefold cross-validation."""
    given = make_kernels(options.pop("kernels", "auto"), division)
    X, y, start = division.X_train, division.y_train, time.perf_counter()
    kernels, values = resolve_kernels(given, X), DEFAULT_REGULARIZATIONS
    n_folds = min(5, int(np.unique(y, return_counts=True)[1].min()))
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=division.seed)
    folds, grid = list(splitter.split(X, y)), {"regularization": values}
    accuracies = search_kernels(kernels, X, y, _fisher, grid, folds)
    best, at = np.unravel_index(int(np.nanargmax(accuracies)), accuracies.shape)
    searched = time.perf_counter()
    chosen = _fisher(kernels[best]).set_params(regularization=values[at])
    outcome = fit_and_predict(chosen, division)
    return replace(
        outcome,
        seconds_fit=searched - start + outcome.seconds_fit,
        weights={name: float(i == best) for i, name in enumerate(kernel_names(given))},
        regularization=values[at],
        gap=None,  # nothing was weighed
        details={},
    )


def svc_grid(division: Division, options: dict[str, Any]) -> Outcome:
    """Search widths and C of an RBF SVM by fivefold cross-validation, as most people would.

    With ``probabilities``, the scores of the best one become probabilities by Platt's sigmoid of
    cross-validated scores; the time of that is part of the fit.
    """
    calibrated = bool(options.pop("probabilities", False))
    median = RBF().resolve(division.X_train).parameters["width"]
    widths = median * 2.0 ** np.linspace(-4, 4, int(options.pop("n_widths", 10)))
    grid = {"gamma": (1.0 / widths**2).tolist(), "C": options.pop("C", [0.1, 1.0, 10.0, 100.0])}
    search = GridSearchCV(SVC(**options), grid, cv=5)
    outcome = fit_and_predict(search, division)
    outcome.details.update(chosen={key: float(value) for key, value in search.best_params_.items()})
    return _calibrated(search.best_estimator_, outcome, division) if calibrated else outcome


def _calibrated(svm: SVC, outcome: Outcome, division: Division) -> Outcome:
    """Add probabilities; its classes stay those of the margins."""
    folds = min(5, int(np.unique(division.y_train, return_counts=True)[1].min()))
    if folds < 2:
        return outcome
    start = time.perf_counter()
    platt = CalibratedClassifierCV(clone(svm), cv=folds, ensemble=False)
    platt.fit(division.X_train, division.y_train)
    seconds = outcome.seconds_fit + time.perf_counter() - start
    return replace(outcome, probabilities=platt.predict_proba(division.X_test), seconds_fit=seconds)


# ---- classifiers with nothing to search --------------------------------------------------------


def _classify(
    make: Callable[..., Any],
    defaults: Mapping[str, Any],
    division: Division,
    options: dict[str, Any],
) -> Outcome:
    """Fit a classifier with some defaults, which options replace; None is the seed of the cell."""
    given = {name: division.seed if value is None else value for name, value in defaults.items()}
    return fit_and_predict(make(**given | options), division)


def _peer(kind: str, division: Division, options: dict[str, Any]) -> Outcome:
    """Fit a classifier of another package."""
    return fit_and_predict(PeerClassifier(kind, division.seed, **options), division)


#: From the kind of a method to what runs it.
METHODS: dict[str, Callable[[Division, dict[str, Any]], Outcome]] = {
    "discriminant": discriminant,
    "single": single,
    "svc_grid": svc_grid,
    "boosting": partial(_classify, HistGradientBoostingClassifier, {"random_state": None}),
    "forest": partial(
        _classify, RandomForestClassifier, {"n_estimators": 500, "random_state": None}
    ),
    # Shrunk where it would be singular.
    "lda": partial(_classify, LinearDiscriminantAnalysis, {"solver": "lsqr", "shrinkage": "auto"}),
    "logistic": partial(_classify, LogisticRegression, {"max_iter": 10_000}),
    "majority": partial(_classify, DummyClassifier, {"strategy": "prior"}),
    **{kind: partial(_peer, kind) for kind in PEERS},
}
