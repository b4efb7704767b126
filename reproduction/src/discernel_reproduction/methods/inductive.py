"""Inductive discriminants, and the best single kernel."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from discernel import AKFDClassifier, MultipleKernelDiscriminant
from discernel.arrays import FloatArray
from discernel.compare.fitting import discriminant as automatic
from discernel.compare.fitting import fit_and_predict, fit_learner
from discernel.compare.store import Result
from discernel.compare.tasks import TrainTestSplit
from discernel.criteria import RKDA
from discernel.inspection.facts import given_names
from discernel.kernels import kernel_names
from discernel.papers.akfd.criterion import decide, one_against_rest
from discernel.papers.akfd.solver import NUS
from discernel.targets import ClassTarget
from discernel_reproduction.baselines import SingleKernelClassifier
from discernel_reproduction.kernels import make_kernels


def discriminant(split: TrainTestSplit, options: dict[str, Any]) -> Result:
    """Fit a `MultipleKernelDiscriminant`, with the default kernels if none are given.

    ``norm`` stands for ``criterion=RKDA(norm=...)``.
    """
    if "kernels" not in options:
        return automatic(split, options)
    kernels = make_kernels(options.pop("kernels"), split)
    if "norm" in options:
        options["criterion"] = RKDA(norm=options.pop("norm"))
    return fit_learner(MultipleKernelDiscriminant(kernels, **options), split)


def timed(split: TrainTestSplit, options: dict[str, Any]) -> Result:
    """Fit as `discriminant`, with the seconds of processor time and without the history."""
    start = time.process_time()
    found = discriminant(split, options)
    return replace(found, details={"processor_seconds": time.process_time() - start})


def akfd(split: TrainTestSplit, options: dict[str, Any]) -> Result:
    """Fit an `AKFDClassifier`; by default ν is chosen by tenfold cross-validation."""
    kernels = make_kernels(options.pop("kernels", "auto"), split)
    clf = AKFDClassifier(kernels, **{"random_state": split.seed} | options)
    found = fit_and_predict(clf, split)
    weights = dict(zip(given_names(clf), clf.kernel_weights_.tolist(), strict=True))
    return replace(
        found, weights=weights, details={"nu": float(clf.nu_), "n_iter": int(clf.n_iter_)}
    )


def single(split: TrainTestSplit, options: dict[str, Any]) -> Result:
    """Fit the best single kernel in cross-validation: a `SingleKernelClassifier`."""
    kernels = make_kernels(options.pop("kernels", "auto"), split)
    clf = SingleKernelClassifier(kernels, **{"random_state": split.seed} | options)
    found = fit_and_predict(clf, split)
    if hasattr(clf.estimator_, "predict_proba"):
        found.predictions.update(probabilities=clf.estimator_.predict_proba(split.X_test))
    return replace(
        found,
        weights=_indicator(kernel_names(kernels), clf.best_index_),
        regularization=clf.best_regularization_,
    )


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


def kfd_grid(split: TrainTestSplit, options: dict[str, Any]) -> Result:
    """Fit the kernel Fisher discriminant of Fung 2004, with kernel and ν by cross-validation.

    ``nus`` are the values of ν, by default 10^-3, ..., 10^12, and ``folds``, 10, the folds of the
    cross-validation. In case of ties, the first kernel and the smallest ν are chosen.
    """
    kernels = make_kernels(options.pop("kernels", "auto"), split)
    nus, folds = options.pop("nus", list(NUS)), int(options.pop("folds", 10))
    start = time.perf_counter()
    kernels = [kernel.resolve(split.X_train) for kernel in kernels]
    grams = [kernel(split.X_train) for kernel in kernels]
    classes, codes = np.unique(split.y_train, return_inverse=True)
    hits = np.zeros((len(grams), len(nus)))
    splitter = StratifiedKFold(folds, shuffle=True, random_state=split.seed)
    for train, test in splitter.split(codes, codes):
        for position, gram in enumerate(grams):
            path = _FisherPath.of(gram[np.ix_(train, train)], codes[train], classes)
            cross = gram[np.ix_(test, train)]
            found = [decide(path.scores(cross, nu)) for nu in nus]
            hits[position] += [np.count_nonzero(guess == codes[test]) for guess in found]
    best, at = (int(place) for place in np.unravel_index(int(hits.argmax()), hits.shape))
    path = _FisherPath.of(grams[best], codes, classes)
    fitted = time.perf_counter()
    scores = path.scores(kernels[best](split.X_test, split.X_train), nus[at])
    return Result(
        predictions={
            "y_pred": classes[decide(scores)],
            "scores": scores[:, 0] if len(classes) == 2 else scores,
        },
        seconds_fit=fitted - start,
        seconds_predict=time.perf_counter() - fitted,
        weights=_indicator(kernel_names(kernels), best),
        details={"nu": float(nus[at])},
    )


def _indicator(names: list[str], chosen: int) -> dict[str, float]:
    return {name: float(position == chosen) for position, name in enumerate(names)}
