"""Functions that fit a method to one split and predict its held-out rows, one per method kind.

Each takes a split and the options of the method (plain data) and returns a `Result`. Its
predictions are ``y_pred`` and, if the method has them, ``scores`` and ``probabilities``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from discernel.arrays import FloatArray
from discernel.compare.store import Result
from discernel.compare.tasks import TrainTestSplit
from discernel.estimators import (
    KernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
)
from discernel.inspection.facts import given_names
from discernel.inspection.source_weights import kernel_sources, sum_by
from discernel.kernels import (
    RBF,
    Kernel,
    as_kernels,
    kernel_names,
    resolve_kernels,
)
from discernel.learn.learn import DEFAULT_REGULARIZATIONS
from discernel.rows.views import source_kernels

#: Most training rows, and most held-out rows, whose coordinates are stored for a figure.
_DRAWN = 150
#: Values of C that grids search.
_COSTS = (0.1, 1.0, 10.0, 100.0)
#: Kinds of scores, and the estimator methods that return them.
_SCORES = {"scores": "decision_function", "probabilities": "predict_proba"}


def view_kernels(views: Mapping[str, slice]) -> list[Kernel]:
    """Return candidate kernels without learned column scales: three per view, or defaults."""
    if not views:
        return as_kernels("auto")
    kernels = [RBF(width=f"{factor}*median") for factor in (0.5, 1, 2)]
    return list(source_kernels(views, kernels).values())


def learner_kernels(views: Mapping[str, slice], criterion: str) -> Any:
    """Return the ``kernels`` parameter of a `MultipleKernelDiscriminant`.

    With ``"auto"``, the estimator also learns column scales. Equal weights are the baseline that
    learns nothing, and several views have their own kernels: both get a list of kernels.

    Parameters
    ----------
    views : dict of str to slice
        The columns of each view; empty if there is only one.
    criterion : str
        The criterion of the estimator.
    """
    return view_kernels(views) if views or criterion == "uniform" else "auto"


def fit_and_predict(estimator: Any, split: TrainTestSplit) -> Result:
    """Fit a method and predict the held-out rows, with scores and probabilities if any."""
    start = time.perf_counter()
    estimator.fit(split.X_train, split.y_train)
    fitted = time.perf_counter()
    predictions = {"y_pred": estimator.predict(split.X_test)}
    predicted = time.perf_counter()
    for name, method in _SCORES.items():
        if hasattr(estimator, method):
            scores = getattr(estimator, method)(split.X_test)
            predictions[name] = np.asarray(scores, dtype=np.float64)
    probabilities = predictions.get("probabilities")
    if probabilities is not None and probabilities.shape[1] == 2:
        predictions.setdefault("scores", probabilities[:, 1])
    return Result(
        seconds_fit=fitted - start,
        seconds_predict=predicted - fitted,
        predictions=predictions,
    )


def fit_learner(
    estimator: MultipleKernelDiscriminant | MultipleKernelRidge, split: TrainTestSplit
) -> Result:
    """Fit a learned kernel and predict; the details are what a report shows of the kernel."""
    found = fit_and_predict(estimator, split)
    # Kernel names as given by the user: resolved widths differ from split to split.
    names, learned = given_names(estimator), estimator.learned_kernel_
    details = {
        "status": str(learned.status),
        "n_iter": learned.n_iter,
        "objective": learned.objective,
        "history": [
            [p.iteration, p.objective, p.gap, p.stage, p.regularization] for p in learned.history
        ],
        "leave_one_out": [[lam, error] for lam, error in learned.leave_one_out.items()],
        "considered": [
            [
                *(each.name, each.error, each.pull, each.regularization),
                *(each.strength, each.accuracy, each.quantiles),
            ]
            for each in learned.considered
        ],
    }
    sources = kernel_sources(estimator.kernels_)
    if 1 < len(set(sources)) < len(sources):  # sources with several kernels
        details["sources"] = dict(zip(names, sources, strict=True))
    if estimator.kernels == "auto":
        details["feature_importances"] = _importances(estimator, split)
    if split.is_first and is_classifier(estimator):
        details["embedding"] = _embedding(estimator, split)
    return replace(
        found,
        weights=dict(zip(names, estimator.kernel_weights_.tolist(), strict=True)),
        regularization=estimator.regularization_,
        gap=estimator.gap_,
        details=details,
    )


def _importances(
    estimator: MultipleKernelDiscriminant | MultipleKernelRidge, split: TrainTestSplit
) -> dict[str, float]:
    """Return the importance of each column of the data set to the default.

    Only the default has importances here: for other fits they take about as long as the fit.
    """
    importances = estimator.feature_importances_
    columns = split.columns or tuple(f"column {i}" for i in range(len(importances)))
    names, sums = sum_by(columns, importances)
    return dict(zip(names, sums.tolist(), strict=True))


def _embedding(estimator: MultipleKernelDiscriminant, split: TrainTestSplit) -> dict[str, Any]:
    """Return the first two discriminant coordinates of some training and held-out rows."""
    parts = [
        (estimator.transform(X[:_DRAWN])[:, :2], y[:_DRAWN], np.full(len(y[:_DRAWN]), held_out))
        for X, y, held_out in (
            (split.X_train, split.y_train, False),
            (split.X_test, split.y_test, True),
        )
    ]
    coordinates, labels, held_out = (np.concatenate(part) for part in zip(*parts, strict=True))
    return {
        "coordinates": coordinates.round(3).tolist(),
        "labels": [str(label) for label in labels],
        "held_out": held_out.tolist(),
        "explained": estimator.explained_variance_ratio_[:2].tolist(),
    }


# ---- the kinds ---------------------------------------------------------------------------------


def learner(make: Callable[..., Any], split: TrainTestSplit, options: dict[str, Any]) -> Result:
    """Fit an estimator that learns a kernel; `make` is its class."""
    kernels = learner_kernels(split.views, options.get("criterion", "auto"))
    return fit_learner(make(kernels, **options), split.as_read if kernels == "auto" else split)


discriminant = partial(learner, MultipleKernelDiscriminant)
kernel_ridge = partial(learner, MultipleKernelRidge)


def single(split: TrainTestSplit, options: dict[str, Any]) -> Result:
    """Fit the kernel and λ with the best accuracy in five-fold cross-validation."""
    y, given = split.y_train, view_kernels(split.views)
    grid = {
        "kernel": resolve_kernels(given, split.X_train),
        "regularization": DEFAULT_REGULARIZATIONS,
    }
    # Training statistics: leave-one-out was no better on any of five data sets tried.
    fisher = KernelDiscriminant(statistics="training")
    folds = StratifiedKFold(_n_folds(y), shuffle=True, random_state=split.seed)
    search = GridSearchCV(fisher, grid, cv=folds)
    found = fit_and_predict(search, split)
    best = search.best_index_ // len(DEFAULT_REGULARIZATIONS)
    return replace(
        found,
        weights={name: float(i == best) for i, name in enumerate(kernel_names(given))},
        regularization=search.best_params_["regularization"],
    )


def _n_folds(y: NDArray[Any]) -> int:
    """Return five, or as many folds as the smallest class has rows."""
    return min(5, int(np.unique(y, return_counts=True)[1].min()))


def svc_grid(split: TrainTestSplit, options: dict[str, Any]) -> Result:
    """Search widths and C of an RBF SVM by five-fold cross-validation.

    With ``probabilities``, Platt scaling on cross-validated scores adds probabilities, and its
    time counts as fit time. Predicted classes remain those of the SVM.
    """
    X, y = split.X_train, split.y_train
    search, found = _search_rbf(SVC(), "", 5, split, options)
    if not options.get("probabilities", False) or _n_folds(y) < 2:
        return found
    start = time.perf_counter()
    platt = CalibratedClassifierCV(clone(search.best_estimator_), cv=_n_folds(y), ensemble=False)
    platt.fit(X, y)
    seconds = found.seconds_fit + time.perf_counter() - start
    found.predictions.update(probabilities=platt.predict_proba(split.X_test))
    return replace(found, seconds_fit=seconds)


def svr_grid(split: TrainTestSplit, options: dict[str, Any]) -> Result:
    """Search widths and C of an RBF support vector regression by five-fold cross-validation.

    The numbers are standardized for the fit.
    """
    folds = KFold(5, shuffle=True, random_state=split.seed)
    standardized = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
    return _search_rbf(standardized, "regressor__", folds, split, options)[1]


def _search_rbf(
    estimator: Any, prefix: str, folds: Any, split: TrainTestSplit, options: Mapping[str, Any]
) -> tuple[GridSearchCV, Result]:
    """Search gamma = 1/width², for widths around the median distance, and C."""
    median = RBF().resolve(split.X_train).parameters["width"]
    widths = median * 2.0 ** np.linspace(-4, 4, int(options.get("n_widths", 10)))
    grid = {"gamma": (1.0 / widths**2).tolist(), "C": list(options.get("C", _COSTS))}
    search = GridSearchCV(estimator, {prefix + name: grid[name] for name in grid}, cv=folds)
    found = fit_and_predict(search, split)
    found.details.update(chosen={name: float(v) for name, v in search.best_params_.items()})
    return search, found


# ---- methods with nothing to search --------------------------------------------------------


def plain_fit(estimator: BaseEstimator, split: TrainTestSplit, options: dict[str, Any]) -> Result:
    """Fit a clone of an estimator with given options and, if it has one, the split's seed."""
    seed = {"random_state": split.seed} if "random_state" in estimator.get_params() else {}
    return fit_and_predict(clone(estimator).set_params(**seed | options), split)


@dataclass(eq=False, repr=False)
class PeerClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of another package, with labels of any kind encoded as integers.

    Parameters
    ----------
    package, maker : str
        The module to import, and the name of its class.
    options : dict
        Options for one thread and no output; all others keep the defaults of its authors.
    seed : str, default="random_state"
        The name of the parameter for the seed.
    tunes : bool, default=False
        Whether its ``fit`` needs validation rows, for which a fifth of the training rows is used.
    random_state : int, default=0
        The seed.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    fitted_ : object
        The classifier of the package.
    """

    package: str
    maker: str
    options: Mapping[str, Any]
    seed: str = "random_state"
    tunes: bool = False
    random_state: int = 0

    def fit(self, X: FloatArray, y: NDArray[Any]) -> Self:
        """Fit the classifier of the package."""
        make = getattr(import_module(self.package), self.maker)
        self.fitted_ = make(**{self.seed: self.random_state}, **self.options)
        self.classes_, codes = np.unique(y, return_inverse=True)
        given = [np.asarray(X, dtype=np.float32), codes]
        if self.tunes:
            X, X_tune, codes, tune = train_test_split(
                *given, test_size=0.2, random_state=self.random_state, stratify=codes
            )
            given = [X, codes, X_tune, tune]
        self.fitted_.fit(*given)
        return self

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Return the probability of each class."""
        rows = np.asarray(X, dtype=np.float32)
        return np.asarray(self.fitted_.predict_proba(rows), dtype=np.float64)

    def predict(self, X: FloatArray) -> NDArray[Any]:
        """Return the most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
