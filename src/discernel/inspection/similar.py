"""Similar training rows that support or oppose a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, n_rows
from discernel.exceptions import InvalidInputError, check_count, unknown_choice
from discernel.inspection.explained import Explained, Scoring
from discernel.kernels.weighted import slices
from discernel.model.parts import KernelPart

#: Entries of the kernel between new and training rows computed at a time.
_BLOCK_ENTRIES = 2**22
_SIDES = ("for", "against")


@dataclass(frozen=True)
class SimilarRows:
    """Similar training rows, with their support for a prediction.

    Attributes
    ----------
    indices : ndarray of shape (n_rows, n)
        Positions among the training rows; among the landmarks if rows were read in chunks.
    similarity : ndarray of shape (n_rows, n)
        The learned kernel, scaled to 1 between a row and itself. Precomputed kernels are not
        scaled, because the kernel of a new row with itself is unknown.
    labels : ndarray of shape (n_rows, n) or None
        Classes or numeric targets; None if the model does not keep them.
    influence : ndarray of shape (n_rows, n, n_outputs)
        Contribution of each row to the score: its coefficient times the difference between the
        kernel and its mean over the training rows. The sum over all training rows is the score up
        to a constant. With two classes, positive values favour the second class.
    support : ndarray of shape (n_rows, n)
        Support for the prediction: the influence on the score of the predicted class, or, for a
        regression, on the prediction in the direction of its difference from the average.
        Negative values oppose the prediction.
    """

    indices: NDArray[np.intp]
    similarity: FloatArray
    labels: NDArray[Any] | None
    influence: FloatArray
    support: FloatArray


def similar_rows(clf: Any, X: Any, n: int = 5, *, side: str = "for") -> SimilarRows:
    """Return the similar training rows with the most support for a prediction.

    A score is a sum over training rows. The contribution of a training row depends on how much more
    similar it is to the new row than to an average row.

    Parameters
    ----------
    clf : estimator or Pipeline
        Fitted, as for `contributions`. For a low-rank model, landmarks are searched instead of
        training rows.
    X : array-like of shape (n_rows, n_features)
        Rows to explain.
    n : int, default=5
        Number of training rows for each of them.
    side : {"for", "against"}, default="for"
        Whether rows that support the prediction come first, or rows that oppose it. If there are
        fewer than n of them, others follow; see ``support``.

    Returns
    -------
    SimilarRows
        Positions, similarities, labels, influence and support.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discernel import MultipleKernelDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MultipleKernelDiscriminant().fit(X[::2], y[::2])
    >>> similar_rows(clf, X[1:2], n=3).labels
    array([[0, 0, 0]])
    """
    check_count("n", n)
    if side not in _SIDES:
        raise unknown_choice("side", side, list(_SIDES))
    explained = Explained.of(clf)
    scoring = Scoring.of(explained.model)
    part, means = _kept_rows(scoring)
    rows = explained.read(X)
    coef, m = part.coef, len(means)
    n = min(int(n), m)
    found = np.empty((n_rows(rows), n), dtype=np.intp)
    similarity, support = np.empty((2, *found.shape))
    influence = np.empty((*found.shape, coef.shape[1]))
    here, there, sign = np.ones(n_rows(rows)), np.ones(m), 1.0 if side == "for" else -1.0
    if part.rows is not None:  # square roots of the kernel between a row and itself
        kernel = part.kernel
        here, there = (np.sqrt(np.maximum(kernel.diagonal(X), 0.0)) for X in (rows, part.rows))
    for block in slices(slice(0, n_rows(rows)), max(1, _BLOCK_ENTRIES // m)):
        values = part.values(rows[block])
        more = values - means
        towards = more * (_directions(scoring, more @ coef, rows[block]) @ coef.T)
        # Rows of above-average similarity; dissimilar rows contribute, but explain little.
        order = np.argsort(-sign * np.where(more > 0, towards, 0.0), axis=1, kind="stable")[:, :n]
        size = np.take_along_axis(here[block, None] * there, order, axis=1)
        chosen = np.take_along_axis(values, order, axis=1)
        similarity[block] = np.divide(chosen, size, out=np.zeros_like(chosen), where=size > 0)
        support[block] = np.take_along_axis(towards, order, axis=1)
        influence[block] = np.take_along_axis(more, order, axis=1)[:, :, None] * coef[order]
        found[block] = order
    kept = explained.model.kept
    return SimilarRows(
        indices=found if kept.places is None else kept.places[found],
        similarity=similarity,
        labels=None if kept.labels is None else kept.labels[found],
        influence=influence,
        support=support,
    )


def _kept_rows(scoring: Scoring) -> tuple[KernelPart, FloatArray]:
    """Return the part of the kept rows, and the means of its kernel over training rows."""
    part: Any
    part, *others = scoring.parts
    if others or part.features is not None:
        raise InvalidInputError(
            "Similar rows need a model with one kernel of kept training rows. With "
            "bank='lowrank' and given kernels, each kernel keeps landmarks of its own; with "
            "weights_per_target=True, each target has a kernel of its own. Fit with bank='auto' "
            "or kernels='auto', or fit a model for each target."
        )
    if part.centered:
        combined: Any = scoring.combined  # centred parts are kernels, not features
        return part, combined.centering.row_means
    if part.rows is None:
        return part, np.zeros(len(part.coef))
    ones = np.full((n_rows(part.rows), 1), 1.0 / n_rows(part.rows))
    return part, part.kernel.product(part.rows, part.rows, ones)[:, 0]


def _directions(scoring: Scoring, above: FloatArray, X: Any) -> FloatArray:
    """Return, per row, the factors of the outputs in the score of the prediction.

    For a regression, the sign of the difference of the prediction from the average, ``above``.
    """
    if scoring.classes is None:
        return np.sign(above)
    scores = scoring(X)
    if scores.shape[1] == 1:
        return np.where(scores > 0, 1.0, -1.0)
    out = np.zeros_like(scores)
    out[np.arange(len(scores)), scores.argmax(axis=1)] = 1.0
    return out
