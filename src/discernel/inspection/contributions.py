"""Contributions of columns and sources that add up to the score of a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, n_rows
from discernel.exceptions import InvalidInputError, NumericalError
from discernel.inspection.explained import Explained, Scoring, column_groups
from discernel.inspection.games import games_of
from discernel.inspection.source_weights import kernel_sources, sum_by
from discernel.model.importances import has_columns
from discernel.model.parts import ScorePart
from discernel.model.swaps import typical_rows
from discernel.rows.reader import RowReader
from discernel.rows.sources import is_in_chunks

#: Largest rounding error of a sum of contributions, relative to them and in units of the last digit
#: of the scores; more is reported as an error.
_ROUNDING, _LAST_DIGITS = 1e-6, 8.0


@dataclass(frozen=True)
class Contributions:
    """Contributions that add up to the scores of rows.

    ``baseline + columns.sum(-1)`` and ``baseline + sources.sum(-1)`` are the scores.

    Attributes
    ----------
    scores : ndarray of shape (n_rows, n_outputs)
        Two classes: one output, ``decision_function``, the log-odds of the second class. More
        classes: one output per class, ``decision_function`` minus its mean over the classes, which
        does not affect the decision. Regression: the predictions.
    baseline : ndarray of shape (n_outputs,)
        Score of the typical row, or mean score of the background.
    columns : ndarray of shape (n_rows, n_outputs, n_columns) or None
        Contribution of each input column. None if rows have no columns, as with precomputed
        kernels.
    sources : ndarray of shape (n_rows, n_outputs, n_sources)
        Contribution of each source.
    column_names, source_names : list of str
        Names of columns and sources.
    classes : ndarray of shape (n_classes,) or None
        Class labels, without classes whose rows all have weight 0; None for a regression.
    cells : ndarray of shape (n_rows, n_columns), of objects, or None
        The input cells, for texts and figures. If earlier steps of a pipeline create new columns,
        the cells of these.
    exact : bool
        Whether the contributions of columns are exact Shapley values. False if a kernel is neither
        a product nor a sum over its columns and there are more than eight: values are then
        averages over 32 orders of the columns, which still add up.
    compared_with : str
        Description of the baseline.
    """

    scores: FloatArray
    baseline: FloatArray
    columns: FloatArray | None
    sources: FloatArray
    column_names: list[str]
    source_names: list[str]
    classes: NDArray[Any] | None
    cells: NDArray[np.object_] | None
    exact: bool = True
    compared_with: str = "typical row"


def contributions(
    clf: Any, X: Any, *, background: Any = None, groups: Mapping[str, Any] | None = None
) -> Contributions:
    """Explain the scores of rows by contributions of columns and sources.

    The contribution of a column is its Shapley value: the change of the score when the cell of the
    typical row is replaced by that of the explained row, averaged over all orders of replacing
    columns. The features of a categorical column are replaced together.

    Parameters
    ----------
    clf : estimator or Pipeline
        Fitted `KernelDiscriminant`, `MultipleKernelDiscriminant`, `MultipleKernelRidge` or
        `AKFDClassifier`. The last step of a pipeline is explained, with the columns that the
        earlier steps return.
    X : array-like of shape (n_rows, n_features)
        Rows to explain. Time grows with their number, the training rows and the columns.
    background : array-like of shape (n_background, n_features), optional
        Rows to compare with; contributions are averaged over them, and time grows with their
        number. By default one typical row, with the medians and most frequent categories of the
        training rows. With precomputed kernels and no background, the baseline is the score of a
        row with the same similarity to all training rows.
    groups : dict of str to columns, optional
        Sources as groups of columns, whose contributions are summed. By default, kernels on the
        same columns (``.on``) are a source, each precomputed kernel is a source, and all kernels
        on all columns are one source.

    Returns
    -------
    Contributions
        The contributions.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from discernel import MultipleKernelDiscriminant
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> clf = MultipleKernelDiscriminant().fit(X[::3], y[::3])
    >>> found = contributions(clf, X[1:3])
    >>> found.columns.shape
    (2, 1, 30)
    >>> total = found.baseline + found.columns.sum(axis=-1)
    >>> bool(abs(total[:, 0] - clf.decision_function(X[1:3])).max() < 1e-9)
    True
    """
    if is_in_chunks(X):
        raise InvalidInputError(
            "Rows to explain must be in memory. Got rows in chunks. Pass some of them as an "
            "array or a DataFrame."
        )
    explained = Explained.of(clf)
    model, rows = explained.model, explained.read(X)
    scoring, is_table = Scoring.of(model), has_columns(rows, model.reader.kernels)
    typical = _typical(model.reader, scoring) if is_table and background is None else None
    references = typical if background is None else explained.read(background)
    scores, parts = scoring(rows), [one for part in scoring.parts for one in part.by_kernel()]
    each = np.stack([part(rows) for part in parts], axis=-1)
    compared_with = "typical row" if background is None else "mean of the background"
    if references is None:
        compared_with, baseline = "baseline", (scores - each.sum(axis=-1)).mean(axis=0)
    else:
        each -= np.stack([part(references).mean(axis=0) for part in parts], axis=-1)
        baseline = scoring(references).mean(axis=0)
    columns, exact, listed = None, True, explained.column_names if is_table else []
    if listed:
        player = model.reader.given_columns
        columns, exact = column_values(parts, rows, references, player, len(listed))
        columns = _adjusted_to_total(columns, scores, baseline)
    if groups is None:
        names = kernel_sources(model.reader.kernels)
        of = kernel_sources([kernel for part in parts for kernel in part.kernels])
    else:
        names, group = column_groups(groups, listed)
        assert columns is not None
        each, of = columns, [names[i] for i in group]
    absent = np.zeros((*each.shape[:-1], len(names)))  # contributions of sources without kernels
    names, sources = sum_by([*names, *of], np.concatenate([absent, each], axis=-1))
    return Contributions(
        scores=scores,
        baseline=baseline,
        columns=columns,
        sources=_adjusted_to_total(sources, scores, baseline),
        column_names=listed,
        source_names=names,
        classes=scoring.classes,
        cells=explained.cells(X) if listed else None,
        exact=exact,
        compared_with=compared_with,
    )


def _typical(reader: RowReader, scoring: Scoring) -> Any:
    """Return a typical training row, or raise an error if the model keeps no rows.

    If several feature maps keep landmarks, the largest set of landmarks is used.
    """
    if reader.medians is not None:
        return reader.medians[None]
    kept = [part.rows for part in scoring.parts if part.rows is not None]
    if not kept:
        raise InvalidInputError(
            "A model with exact features keeps no training rows to compare with. Pass some rows "
            "as background."
        )
    return typical_rows(max(kept, key=n_rows), reader.encoder)


def column_values(
    parts: list[ScorePart], X: Any, references: Any, player: NDArray[np.intp], n_players: int
) -> tuple[FloatArray, bool]:
    """Return the contribution of each player to the scores of rows, and whether they are exact.

    The shape is (n_rows, n_outputs, n_players); contributions add up to the score of a row minus
    the mean score of the references. A player is an input column with all its features.
    """
    n, n_references, n_outputs = n_rows(X), n_rows(references), parts[0].coef.shape[1]
    values, exact = np.zeros((n, n_players, n_outputs)), True
    for add in (game for part in parts for game in games_of(part, player)):
        for i in range(n):
            for k in range(n_references):
                exact &= add(values[i], X[i : i + 1], references[k : k + 1])
    values /= n_references
    return np.ascontiguousarray(values.transpose(0, 2, 1)), exact


def _adjusted_to_total(parts: FloatArray, scores: FloatArray, baseline: FloatArray) -> FloatArray:
    """Return parts (last axis) that sum exactly to scores above a baseline.

    Rounding errors are distributed, also those of the difference of scores far from 0.
    """
    total = scores - baseline
    left, sizes = total - parts.sum(axis=-1), np.abs(parts)
    whole = sizes.sum(axis=-1)
    rounded = _LAST_DIGITS * np.spacing(np.abs(scores) + np.abs(baseline))
    if (np.abs(left) > rounded + _ROUNDING * (1.0 + whole + np.abs(total))).any():
        raise NumericalError(
            f"Contributions must add up to the scores, but differ by {np.abs(left).max():.2g}. "
            "Rounding errors are that large for rows far from the origin or for a tiny λ: scale "
            "the columns, or fit with a larger regularization."
        )
    shares = np.full_like(parts, 1.0 / parts.shape[-1])
    np.divide(sizes, whole[..., None], out=shares, where=whole[..., None] > 0)
    return np.asarray(parts + shares * left[..., None])
