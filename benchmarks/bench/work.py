"""What is timed: our fit, its unit, and what others do with the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.linalg import lapack
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from discernel.arrays import FloatArray
from discernel.estimators import MultipleKernelDiscriminant
from discernel.exceptions import NumericalError
from discernel.kernels import RBF, Kernel

__all__ = [
    "REGULARIZATION",
    "cholesky",
    "easymkl",
    "fit",
    "fit_heuristic",
    "himalaya_multiple",
    "himalaya_single",
    "ladder_widths",
    "paper_kernels",
    "ridge_grid",
    "rows",
    "seconds",
    "spread_widths",
    "svc_grid",
    "unit",
]

#: The relative duality gap that every fit of ours must certify.
_GAP = 1e-6
#: The λ of every fit of ours that names no other.
REGULARIZATION = 1e-3
_FEATURES = 20
#: The median distance of two rows, near enough: that of two Gaussian points.
_MEDIAN = float(np.sqrt(2.0 * _FEATURES))
#: Draws of himalaya's random search; by default it takes 100.
_DRAWS = 10


def seconds(work: Callable[[], Any]) -> float:
    """Return how long some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def rows(n: int, n_classes: int = 2, n_features: int = _FEATURES) -> tuple[FloatArray, Any]:
    """Return rows of equally many, overlapping classes, told apart by two of the features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, n_features))
    score = X[:, 0] + X[:, 1] ** 2 - 1.0 + rng.standard_normal(n)
    edges = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(edges, score)


def paper_kernels() -> list[Kernel]:
    """Return the ten Gaussian kernels of Kim 2006 and Ye 2008, which form no ladder."""
    return [RBF(width=float(width)) for width in np.logspace(-1, 2, 10)]


def ladder_widths() -> FloatArray:
    """Return the widths of ``rbf_ladder(10)`` as numbers, for those who take no other."""
    return np.asarray(_MEDIAN * 2.0 ** (np.arange(10) - 4.5))


def spread_widths(n_kernels: int) -> FloatArray:
    """Return widths from 1/16 to 16 times the median distance."""
    return np.asarray(_MEDIAN * np.geomspace(1 / 16, 16, n_kernels))


# ---- ours, and its unit ------------------------------------------------------------------------


def fit(
    X: FloatArray, y: Any, kernels: Any, regularization: float | str = REGULARIZATION
) -> MultipleKernelDiscriminant:
    """Learn from rows, everything included, and insist on the certificate."""
    clf = MultipleKernelDiscriminant(kernels, criterion="rkda", regularization=regularization)
    clf.fit(X, y)
    if clf.gap_ is None or not clf.gap_ <= _GAP:
        raise NumericalError(
            f"A fit that counts must certify a gap of at most {_GAP:g}. Got {clf.gap_!r}."
        )
    return clf


def cholesky(K: FloatArray) -> None:
    """Factor a kernel matrix plus the identity, in place."""
    K[np.diag_indices_from(K)] += 1.0
    lapack.dpotrf(K.T, lower=1, overwrite_a=1)


def unit(X: FloatArray) -> None:
    """Compute one kernel matrix and factor it: scikit-learn and SciPy."""
    cholesky(rbf_kernel(X))


# ---- others ------------------------------------------------------------------------------------


def svc_grid(X: FloatArray, y: Any) -> None:
    """Search ten widths and four C of a support vector machine by 5-fold cross-validation."""
    grid = {"gamma": (spread_widths(10) ** -2.0).tolist(), "C": [0.1, 1.0, 10.0, 100.0]}
    GridSearchCV(SVC(), grid, cv=5).fit(X, y)


def ridge_grid(X: FloatArray, y: Any) -> None:
    """Search ten widths and four penalties of kernel ridge by 5-fold cross-validation."""
    grid = {"gamma": (spread_widths(10) ** -2.0).tolist(), "alpha": [1e-3, 1e-2, 1e-1, 1.0]}
    GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5).fit(X, _signs(y))


def easymkl(X: FloatArray, y: Any, widths: Sequence[float] | FloatArray) -> None:
    """Fit MKLpy's EasyMKL and a support vector machine on its kernel."""
    from MKLpy.algorithms import EasyMKL

    EasyMKL(learner=SVC(C=10.0), lam=0.1).fit(_matrices(X, widths), _signs(y))


def fit_heuristic(X: FloatArray, y: Any, widths: Sequence[float] | FloatArray) -> None:
    """Fit MKLpy's FHeuristic, alignments as weights, and a support vector machine."""
    from MKLpy.algorithms import FHeuristic

    FHeuristic(learner=SVC(C=10.0)).fit(_matrices(X, widths), _signs(y))


def himalaya_multiple(X: FloatArray, y: Any, widths: Sequence[float] | FloatArray) -> None:
    """Fit himalaya's multiple kernel ridge by random search: its defaults, but ten draws."""
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    MultipleKernelRidgeCV(
        kernels=["rbf"] * len(widths),
        kernels_params=[{"gamma": float(width) ** -2} for width in widths],
        solver="random_search",
        solver_params={"n_iter": _DRAWS, "progress_bar": False},
        random_state=0,
    ).fit(X, _signs(y))


def himalaya_single(X: FloatArray, y: Any) -> None:
    """Fit himalaya's kernel ridge of one width: thirteen penalties, 5-fold cross-validation."""
    from himalaya.kernel_ridge import KernelRidgeCV

    options = {"gamma": _MEDIAN**-2}
    KernelRidgeCV(alphas=np.logspace(-6, 6, 13), kernel="rbf", kernel_params=options).fit(
        X, _signs(y)
    )


def _matrices(X: FloatArray, widths: Sequence[float] | FloatArray) -> list[FloatArray]:
    return [rbf_kernel(X, gamma=float(width) ** -2) for width in widths]


def _signs(y: Any) -> FloatArray:
    return np.where(y == y[0], 1.0, -1.0)
