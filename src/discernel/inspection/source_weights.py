"""Weights of sources in a learned kernel, and their variation over fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import cross_validate

from discernel.arrays import FloatArray
from discernel.inspection.explained import fitted_learner
from discernel.kernels import Kernel
from discernel.kernels.composites import Named, Restricted


def kernel_sources(kernels: Sequence[Kernel]) -> list[str]:
    """Return the name of the source of each kernel.

    The source of a kernel on columns is named by ``.on``, by the kernel if it is the only kernel on
    these columns, or by the columns. A precomputed matrix is named by its kernel, by default
    "matrix 0", "matrix 1" and so on.

    Parameters
    ----------
    kernels : sequence of Kernel
        The kernels.
    """
    found = [kernel.source for kernel in kernels]
    shared = Counter(each.where for each in found if each is not None)
    return [_source(*pair, shared) for pair in zip(kernels, found, strict=True)]


def _source(kernel: Kernel, found: Restricted | None, shared: Counter[str]) -> str:
    if kernel.precomputed:
        return kernel.name
    if found is None:
        return "all columns"
    if found.label is None and isinstance(kernel, Named) and shared[found.where] == 1:
        return kernel.label
    return found.where


def sum_by(groups: Sequence[str], values: FloatArray) -> tuple[list[str], FloatArray]:
    """Return the groups in order of appearance, and the sums of their values.

    Parameters
    ----------
    groups : sequence of str
        Group of each value.
    values : ndarray of shape (..., n_values)
        The values.
    """
    names = list(dict.fromkeys(groups))
    place = {name: position for position, name in enumerate(names)}
    sums = np.zeros((len(names), *values.shape[:-1]))
    np.add.at(sums, [place[group] for group in groups], np.moveaxis(values, -1, 0))
    return names, np.moveaxis(sums, 0, -1)


def source_weights(estimator: Any) -> dict[str, float]:
    """Return the weight of each source: the sum of the weights of its kernels.

    Weights refer to normalized kernels. They say how much of a source is used, not how important it
    is; see `source_importances`.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted estimator of discernel, or a pipeline with one.

    Returns
    -------
    dict of str to float
        Weight by source, in the order of the kernels.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import MultipleKernelDiscriminant
    >>> from discernel.views import source_kernels
    >>> X, y = load_wine(return_X_y=True)
    >>> kernels = source_kernels({"acids": [1, 2, 3], "phenols": [5, 6, 7, 8]}, table=X)
    >>> clf = MultipleKernelDiscriminant(kernels).fit(X, y)
    >>> weights = source_weights(clf)
    >>> list(weights), round(sum(weights.values()), 6)
    (['acids', 'phenols'], 1.0)
    """
    learner = fitted_learner(estimator)
    weights = np.atleast_2d(learner.kernel_weights_).mean(axis=0)  # over targets with their own
    names, sums = sum_by(kernel_sources(learner.kernels_), weights)
    return dict(zip(names, sums.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class SourceWeights:
    """The weights of sources over several fits.

    Attributes
    ----------
    names : list of str
        Names of the sources.
    weights : ndarray of shape (n_fits, n_sources)
        Weight of each source in each fit.
    estimators : list of estimators
        Fits, for `SourcesDisplay.from_estimators` and `KernelWeightsDisplay.from_estimators`.
    """

    names: list[str]
    weights: FloatArray
    estimators: list[Any]

    @property
    def mean(self) -> dict[str, float]:
        """Mean weight of each source."""
        return dict(zip(self.names, self.weights.mean(axis=0).tolist(), strict=True))

    @property
    def std(self) -> dict[str, float]:
        """Standard deviation of the weight of each source over the fits."""
        return dict(zip(self.names, self.weights.std(axis=0).tolist(), strict=True))

    def __str__(self) -> str:
        width = max(map(len, self.names))
        return "\n".join(
            f"{name:<{width}}  {self.mean[name]:z.2f} ± {self.std[name]:.2f}" for name in self.names
        )


def weights_spread(estimator: Any, X: Any, y: Any, cv: Any = 5) -> SourceWeights:
    """Return the variation of source weights over the fits of a cross-validation.

    The estimator is fitted once per split.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Estimator of discernel; it is cloned and need not be fitted.
    X : array-like, sparse matrix or dataframe of shape (n_rows, n_columns)
        The rows.
    y : array-like of shape (n_rows,)
        The labels.
    cv : int, splitter or iterable, default=5
        Cross-validation splits, as in scikit-learn's ``cross_validate``.

    Returns
    -------
    SourceWeights
        Weights per fit and source; ``print`` shows mean and standard deviation.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import MultipleKernelDiscriminant
    >>> from discernel.views import source_kernels
    >>> X, y = load_wine(return_X_y=True)
    >>> kernels = source_kernels({"acids": [1, 2, 3], "phenols": [5, 6, 7, 8]}, table=X)
    >>> spread = weights_spread(MultipleKernelDiscriminant(kernels), X, y, cv=3)
    >>> spread.names, spread.weights.shape
    (['acids', 'phenols'], (3, 2))
    """
    found = cross_validate(
        estimator, X, y, cv=cv, scoring=_weights, return_estimator=True, error_score="raise"
    )
    names = list(source_weights(found["estimator"][0]))
    weights = np.stack([found[f"test_{name}"] for name in names], axis=1)
    return SourceWeights(names, weights, list(found["estimator"]))


def _weights(estimator: Any, X: Any, y: Any) -> dict[str, float]:
    """Return the weights of sources in place of a score."""
    return source_weights(estimator)
