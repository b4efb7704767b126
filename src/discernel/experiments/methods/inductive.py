"""Methods that see the training rows only: discriminants, and what they are held to."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from discernel import AKFDClassifier, MultipleKernelDiscriminant
from discernel.arrays import FloatArray
from discernel.experiments.baselines import SingleKernelClassifier
from discernel.experiments.methods.base import (
    Outcome,
    fit_and_predict,
    learner_kernels,
    make_kernels,
)
from discernel.experiments.tasks import Division
from discernel.kernels import RBF, kernel_names
from discernel.papers.akfd.criterion import decide, one_against_rest
from discernel.papers.akfd.solver import NUS
from discernel.targets import ClassTarget

__all__ = [
    "akfd",
    "boosting",
    "discriminant",
    "forest",
    "kfd_grid",
    "lda",
    "logistic",
    "majority",
    "single",
    "svc_grid",
]


def discriminant(division: Division, options: dict[str, Any]) -> Outcome:
    """Fit a `MultipleKernelDiscriminant`."""
    criterion = options.get("criterion", "auto")
    kernels = learner_kernels(options.pop("kernels", "auto"), division, criterion)
    rows = division.as_read if kernels == "auto" else division
    return fit_and_predict(MultipleKernelDiscriminant(kernels, **options), rows)


def akfd(division: Division, options: dict[str, Any]) -> Outcome:
    """Fit an `AKFDClassifier`; by default ν is chosen by tenfold cross-validation."""
    kernels = make_kernels(options.pop("kernels", "auto"), division)
    clf = AKFDClassifier(kernels, **{"random_state": division.seed} | options)
    outcome = fit_and_predict(clf, division)
    outcome.details.update(nu=float(clf.nu_), n_iter=int(clf.n_iter_))
    return outcome


def single(division: Division, options: dict[str, Any]) -> Outcome:
    """Fit the best single kernel in cross-validation: a `SingleKernelClassifier`."""
    kernels = make_kernels(options.pop("kernels", "auto"), division)
    clf = SingleKernelClassifier(kernels, **{"random_state": division.seed} | options)
    outcome = fit_and_predict(clf, division)
    if hasattr(clf.estimator_, "predict_proba"):
        outcome = replace(outcome, probabilities=clf.estimator_.predict_proba(division.X_test))
    return replace(
        outcome,
        weights=_indicator(kernel_names(kernels), clf.best_index_),
        regularization=clf.best_regularization_,
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


def lda(division: Division, options: dict[str, Any]) -> Outcome:
    """Fit scikit-learn's linear discriminant analysis, shrunk where it would be singular."""
    return fit_and_predict(
        LinearDiscriminantAnalysis(**{"solver": "lsqr", "shrinkage": "auto"} | options), division
    )


def forest(division: Division, options: dict[str, Any]) -> Outcome:
    """Fit a random forest of 500 trees."""
    given = {"n_estimators": 500, "random_state": division.seed} | options
    return fit_and_predict(RandomForestClassifier(**given), division)


def boosting(division: Division, options: dict[str, Any]) -> Outcome:
    """Fit scikit-learn's gradient boosting on histograms, with its defaults."""
    given = {"random_state": division.seed} | options
    return fit_and_predict(HistGradientBoostingClassifier(**given), division)


def logistic(division: Division, options: dict[str, Any]) -> Outcome:
    """Fit logistic regression, with scikit-learn's penalty."""
    return fit_and_predict(LogisticRegression(**{"max_iter": 10_000} | options), division)


def majority(division: Division, options: dict[str, Any]) -> Outcome:
    """Predict the most frequent class, whatever the row, with the shares of the classes."""
    return fit_and_predict(DummyClassifier(**{"strategy": "prior"} | options), division)


# ---- the baseline of Fung 2004 -------------------------------------------------------------------


@dataclass(frozen=True)
class _FisherPath:
    """The discriminants of Fung 2004, Eq. (14), with one kernel and any ν.

    With H = [K, −e] = USVᵀ, the solution of (HᵀH + I/ν)[v; γ] = Hᵀd is VS(S² + I/ν)⁻¹Uᵀd: one
    factorisation for all ν.
    """

    values: FloatArray
    right: FloatArray
    projected: FloatArray

    @classmethod
    def of(cls, gram: FloatArray, codes: NDArray[np.intp], classes: NDArray[Any]) -> _FisherPath:
        d = one_against_rest(ClassTarget(classes, codes))
        left, values, right = np.linalg.svd(_extended(gram), full_matrices=False)
        return cls(values, right, left.T @ d)

    def scores(self, cross: FloatArray, nu: float) -> FloatArray:
        """Return K(x)v − γ for the kernel between new and training rows."""
        filtered = (self.values / (self.values**2 + 1.0 / nu))[:, None] * self.projected
        return np.asarray(_extended(cross) @ (self.right.T @ filtered))


def _extended(matrix: FloatArray) -> FloatArray:
    return np.column_stack([matrix, -np.ones(len(matrix))])


def kfd_grid(division: Division, options: dict[str, Any]) -> Outcome:
    """Fit the kernel Fisher discriminant of Fung 2004 with the kernel and ν that validate best.

    ``nus`` are the values of ν, by default 10^-3, ..., 10^12, and ``folds``, 10, the folds of the
    cross-validation. Of pairs that are equally good, the first kernel and the smallest ν are taken.
    """
    kernels = make_kernels(options.pop("kernels", "auto"), division)
    nus, folds = options.pop("nus", list(NUS)), int(options.pop("folds", 10))
    start = time.perf_counter()
    kernels = [kernel.resolve(division.X_train) for kernel in kernels]
    grams = [kernel(division.X_train) for kernel in kernels]
    classes, codes = np.unique(division.y_train, return_inverse=True)
    hits = np.zeros((len(grams), len(nus)))
    splitter = StratifiedKFold(folds, shuffle=True, random_state=division.seed)
    for train, test in splitter.split(codes, codes):
        for position, gram in enumerate(grams):
            path = _FisherPath.of(gram[np.ix_(train, train)], codes[train], classes)
            cross = gram[np.ix_(test, train)]
            found = [decide(path.scores(cross, nu)) for nu in nus]
            hits[position] += [np.count_nonzero(guess == codes[test]) for guess in found]
    best, at = (int(place) for place in np.unravel_index(int(hits.argmax()), hits.shape))
    path = _FisherPath.of(grams[best], codes, classes)
    fitted = time.perf_counter()
    scores = path.scores(kernels[best](division.X_test, division.X_train), nus[at])
    return Outcome(
        y_pred=classes[decide(scores)],
        scores=scores[:, 0] if len(classes) == 2 else scores,
        seconds_fit=fitted - start,
        seconds_predict=time.perf_counter() - fitted,
        weights=_indicator(kernel_names(kernels), best),
        details={"nu": float(nus[at])},
    )


def _indicator(names: list[str], chosen: int) -> dict[str, float]:
    return {name: float(position == chosen) for position, name in enumerate(names)}
