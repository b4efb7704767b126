"""The training rows behind a prediction: those most like the row under the learned kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.backend import FloatArray, n_rows
from discernel.bank import CombinedKernel
from discernel.exceptions import InvalidInputError
from discernel.features import NystromMap
from discernel.inspection.explained import explained_learner
from discernel.inspection.learner import learner_rows
from discernel.inspection.scoring import Scoring
from discernel.kernels.weighted import WeightedKernels, slices

__all__ = ["SimilarRows", "similar_rows"]

#: Entries of the kernel between some rows and all training rows that are made at a time.
_BLOCK_ENTRIES = 2**22


@dataclass(frozen=True)
class SimilarRows:
    """Training rows that are most like some rows, the most similar first.

    Attributes
    ----------
    indices : ndarray of shape (n_rows, n)
        Their positions among the training rows; of rows that were learned from in chunks, among the
        landmarks.
    similarity : ndarray of shape (n_rows, n)
        The learned kernel, divided so that it is 1 between a row and itself. Precomputed kernels
        are as they are: what a new row has with itself is not known.
    labels : ndarray of shape (n_rows, n) or None
        Their classes, or numbers; None where the model does not know them.
    influence : ndarray of shape (n_rows, n, n_outputs)
        How much each pushes the score: its coefficient times the kernel. Over all training rows
        that sums to the score but for a constant. Of two classes, above 0 is towards the second.
    """

    indices: NDArray[np.intp]
    similarity: FloatArray
    labels: NDArray[Any] | None
    influence: FloatArray


@dataclass(frozen=True)
class _Kept:
    """The kernel of a model, the rows it is taken with, and their coefficients."""

    kernel: WeightedKernels
    rows: Any
    coef: FloatArray

    @classmethod
    def of(cls, scoring: Scoring) -> _Kept:
        combined = scoring.combined
        if isinstance(combined, CombinedKernel):
            coef, _ = combined.centering.of_product(scoring.coef)
            kernel = WeightedKernels(combined.kernels, combined.coefficients)
            return cls(kernel, combined.rows, coef)
        if len(combined.maps) == 1 and isinstance(one := combined.maps[0], NystromMap):
            dual = one.expansion(combined.factors[0] * scoring.coef)
            return cls(one.kernel, one.landmarks, dual)
        raise InvalidInputError(
            "Similar rows need a model that keeps training rows. This one, of bank='lowrank' with "
            "kernels that were given, keeps other landmarks for each kernel. Fit with bank='auto' "
            "or another bank, or with kernels='auto'."
        )

    def values(self, X: Any) -> FloatArray:
        """Return the kernel between rows and those that are kept."""
        if self.rows is not None:
            return self.kernel(X, self.rows)
        parts = zip(self.kernel.coefficients, self.kernel.kernels, strict=True)
        return np.asarray(sum(factor * kernel(X) for factor, kernel in parts))

    def sizes(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Return the roots of what rows, and those that are kept, have with themselves."""
        if self.rows is None:
            return np.ones(n_rows(X)), np.ones(len(self.coef))
        here, there = self.kernel.diagonal(X), self.kernel.diagonal(self.rows)
        return np.sqrt(np.maximum(here, 0.0)), np.sqrt(np.maximum(there, 0.0))


def similar_rows(clf: Any, X: Any, n: int = 5) -> SimilarRows:
    """Return the training rows that are most like some rows, as the learned kernel sees them.

    They answer "because of which rows?": a score is a sum over training rows, in which similar ones
    have most of the say.

    Parameters
    ----------
    clf : estimator or Pipeline
        Fitted, as for `contributions`. A model of low rank keeps landmarks: these are then
        searched.
    X : array-like of shape (n_rows, n_features)
        Rows.
    n : int, default=5
        How many for each.

    Returns
    -------
    SimilarRows
        Their positions, similarities, labels and influence.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discernel import MultipleKernelDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MultipleKernelDiscriminant().fit(X[::2], y[::2])
    >>> similar_rows(clf, X[1:2], n=3).labels
    array([[0, 0, 0]])
    """
    if not (isinstance(n, (int, np.integer)) and n >= 1):
        raise InvalidInputError(f"n must be an integer of at least 1. Got {n!r}.")
    learner = explained_learner(clf)
    kept = _Kept.of(Scoring.of(learner))
    rows = learner._validate(learner_rows(clf, X), learner.kernels_)
    n, m = min(int(n), len(kept.coef)), len(kept.coef)
    found = np.empty((n_rows(rows), n), dtype=np.intp)
    similarity, influence = np.empty(found.shape), np.empty((*found.shape, kept.coef.shape[1]))
    here, there = kept.sizes(rows)
    for block in slices(slice(0, n_rows(rows)), max(1, _BLOCK_ENTRIES // m)):
        values = kept.values(rows[block])
        size = here[block, None] * there
        alike = np.divide(values, size, out=np.zeros_like(values), where=size > 0)
        found[block] = np.argsort(-alike, axis=1, kind="stable")[:, :n]
        similarity[block] = np.take_along_axis(alike, found[block], axis=1)
        chosen = np.take_along_axis(values, found[block], axis=1)
        influence[block] = chosen[:, :, None] * kept.coef[found[block]]
    labels, places = learner._kept_labels, learner._kept_rows
    return SimilarRows(
        indices=found if places is None else places[found],
        similarity=similarity,
        labels=None if labels is None else labels[found],
        influence=influence,
    )
