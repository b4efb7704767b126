"""The training rows behind a prediction: those like the row that speak for it, or against it."""

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

#: Entries of the kernel between some rows and all training rows that are made at a time.
_BLOCK_ENTRIES = 2**22
_SIDES = ("for", "against")


@dataclass(frozen=True)
class SimilarRows:
    """Similar training rows, with their support for or against a prediction.

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
        How much each pushes the score: its coefficient times the kernel, less the mean of the
        kernel over the training rows. Over all training rows that sums to the score but for a
        constant. Of two classes, above 0 is towards the second.
    support : ndarray of shape (n_rows, n)
        How much each speaks for the prediction: its influence on the score of the predicted
        class, or on the predicted number in the direction in which it differs from the average.
        Below 0 it speaks against it.
    """

    indices: NDArray[np.intp]
    similarity: FloatArray
    labels: NDArray[Any] | None
    influence: FloatArray
    support: FloatArray


def similar_rows(clf: Any, X: Any, n: int = 5, *, side: str = "for") -> SimilarRows:
    """Return the similar training rows with the most support for a prediction.

    They answer "because of which rows?": a score is a sum over training rows, each of which pushes
    it by how much more the row is like it than rows are on average.

    Parameters
    ----------
    clf : estimator or Pipeline
        Fitted, as for `contributions`. A model of low rank keeps landmarks: these are then
        searched.
    X : array-like of shape (n_rows, n_features)
        Rows.
    n : int, default=5
        How many for each.
    side : {"for", "against"}, default="for"
        Whether rows that speak for the prediction come first, or those that speak against it. Where
        there are fewer than n, others follow: ``support`` says how much each speaks for it.

    Returns
    -------
    SimilarRows
        Their positions, similarities, labels, influence and support.

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
    if part.rows is not None:  # the roots of what rows have with themselves
        kernel = part.kernel
        here, there = (np.sqrt(np.maximum(kernel.diagonal(X), 0.0)) for X in (rows, part.rows))
    for block in slices(slice(0, n_rows(rows)), max(1, _BLOCK_ENTRIES // m)):
        values = part.values(rows[block])
        more = values - means
        towards = more * (_directions(scoring, more @ coef, rows[block]) @ coef.T)
        # First those that a row is like; that it is unlike others is no row to show.
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
    """Return the kernel at the rows that a model keeps, and its means over the training rows."""
    part: Any
    part, *others = scoring.parts
    if others or part.features is not None:
        raise InvalidInputError(
            "Similar rows need a model that keeps training rows. This one, of bank='lowrank' "
            "with kernels that were given, keeps other landmarks for each kernel. Fit with "
            "bank='auto' or another bank, or with kernels='auto'."
        )
    if part.centered:
        combined: Any = scoring.combined  # features have no centred parts
        return part, combined.centering.row_means
    if part.rows is None:
        return part, np.zeros(len(part.coef))
    ones = np.full((n_rows(part.rows), 1), 1.0 / n_rows(part.rows))
    return part, part.kernel.product(part.rows, part.rows, ones)[:, 0]


def _directions(scoring: Scoring, above: FloatArray, X: Any) -> FloatArray:
    """Return factors, per row, that turn scores into the score of its prediction.

    Of numbers, by how far scores are ``above`` the average.
    """
    if scoring.classes is None:
        return np.sign(above)
    scores = scoring(X)
    if scores.shape[1] == 1:
        return np.where(scores > 0, 1.0, -1.0)
    out = np.zeros_like(scores)
    out[np.arange(len(scores)), scores.argmax(axis=1)] = 1.0
    return out
