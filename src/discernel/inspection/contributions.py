"""Contributions of columns and sources, which add up to the score of a row."""

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
from discernel.model.parts import ScorePart
from discernel.model.rows import has_columns, typical_rows
from discernel.rows.chunks import is_dask
from discernel.rows.reader import RowReader
from discernel.rows.sources import Source

#: What rounding may leave of a score, over the largest of its terms, before something is wrong.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Contributions:
    """Contributions that add up to the scores of some rows.

    ``baseline + columns.sum(-1)`` and ``baseline + sources.sum(-1)`` are the scores.

    Attributes
    ----------
    scores : ndarray of shape (n_rows, n_outputs)
        Two classes: one output, ``decision_function``, the log-odds of the second class. More
        classes: one output per class, ``decision_function`` less its mean over the classes, since
        what all classes gain alike decides nothing. A regression: its predictions.
    baseline : ndarray of shape (n_outputs,)
        The score that rows are compared with: that of a typical row, or the mean over the
        background.
    columns : ndarray of shape (n_rows, n_outputs, n_columns) or None
        What each column that was given adds. None where rows have no columns, as with precomputed
        kernels.
    sources : ndarray of shape (n_rows, n_outputs, n_sources)
        What each source adds.
    column_names, source_names : list of str
        What they are called.
    classes : ndarray of shape (n_classes,) or None
        The labels, without those of which all rows have the weight 0; None for a regression.
    cells : ndarray of shape (n_rows, n_columns), of objects, or None
        The rows as they were given, for words and pictures. Behind steps of a pipeline that make
        other columns, the rows as these return them.
    exact : bool
        Whether the values of columns are exact. False where a kernel is neither a product nor a sum
        over its columns, and there are more than eight: values are then averages over 32 orders
        of the columns. They add up all the same.
    compared_with : str
        What the baseline is the score of, in words.
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

    The value of a column is its Shapley value: what the score changes when the column goes from the
    typical row to the row that is explained, averaged over all orders in which columns could go. A
    column of categories goes as a whole.

    Parameters
    ----------
    clf : estimator or Pipeline
        Fitted: `KernelDiscriminant`, `MultipleKernelDiscriminant`, `MultipleKernelRidge` or
        `AKFDClassifier`. Of a pipeline the last step is explained, so columns are those that the
        steps before it return.
    X : array-like of shape (n_rows, n_features)
        Rows to explain. Time grows with their number, the training rows and the columns.
    background : array-like of shape (n_background, n_features), optional
        Rows to compare with, of which the mean is taken: time grows with their number too. By
        default one typical row: medians of numbers, the most frequent categories, of the training
        rows that the model keeps. Precomputed kernels have no such row: without a background,
        the baseline is the score of a row that all training rows resemble alike.
    groups : dict of str to columns, optional
        Sources as groups of columns, which are then summed up. By default a source is what kernels
        were put on with ``.on``, and each precomputed kernel; kernels of all columns are one.

    Returns
    -------
    Contributions
        What adds up to the scores.

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
    if isinstance(X, Source) or is_dask(X):
        raise InvalidInputError(
            "Rows to explain must be in memory. Got rows in chunks; give some of them, as an "
            "array or a dataframe."
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
    rise = scores - baseline
    columns, exact, listed = None, True, explained.column_names if is_table else []
    if listed:
        player = model.reader.given_columns
        columns, exact = column_values(parts, rows, references, player, len(listed))
        columns = _closed(columns, rise)
    if groups is None:
        names = kernel_sources(model.reader.kernels)
        of = kernel_sources([kernel for part in parts for kernel in part.kernels])
    else:
        names, group = column_groups(groups, listed)
        assert columns is not None
        each, of = columns, [names[i] for i in group]
    absent = np.zeros((*each.shape[:-1], len(names)))  # what a source without kernels adds
    names, sources = sum_by([*names, *of], np.concatenate([absent, each], axis=-1))
    return Contributions(
        scores=scores,
        baseline=baseline,
        columns=columns,
        sources=_closed(sources, rise),
        column_names=listed,
        source_names=names,
        classes=scoring.classes,
        cells=explained.cells(X) if listed else None,
        exact=exact,
        compared_with=compared_with,
    )


def _typical(reader: RowReader, scoring: Scoring) -> Any:
    """Return a typical row of training, or raise a clear error where none is known.

    Of landmarks of several maps, those of the largest are taken.
    """
    if reader.medians is not None:
        return reader.medians[None]
    kept = [part.rows for part in scoring.parts if part.rows is not None]
    if not kept:
        raise InvalidInputError(
            "A model of exact features keeps no training row to compare with. Give some rows as "
            "background."
        )
    return typical_rows(max(kept, key=n_rows), reader.encoder)


def column_values(
    parts: list[ScorePart], X: Any, references: Any, player: NDArray[np.intp], n_players: int
) -> tuple[FloatArray, bool]:
    """Return the contribution of each player to the scores of rows, and whether it is exact.

    Of shape (n_rows, n_outputs, n_players), summing to the score of a row less the mean of those of
    the references. A player is a column that was given, with all columns that it is encoded by.
    """
    n, n_references, n_outputs = n_rows(X), n_rows(references), parts[0].coef.shape[1]
    values, exact = np.zeros((n, n_players, n_outputs)), True
    for add in (game for part in parts for game in games_of(part, player)):
        for i in range(n):
            for k in range(n_references):
                exact &= add(values[i], X[i : i + 1], references[k : k + 1])
    values /= n_references
    return np.ascontiguousarray(values.transpose(0, 2, 1)), exact


def _closed(parts: FloatArray, total: FloatArray) -> FloatArray:
    """Return parts, on the last axis, that sum to a total: rounding goes to each by its size."""
    left, sizes = total - parts.sum(axis=-1), np.abs(parts)
    whole = sizes.sum(axis=-1)
    if (np.abs(left) > _ROUNDING * (1.0 + whole + np.abs(total))).any():
        raise NumericalError(
            f"Contributions must add up to the scores, but miss {np.abs(left).max():.2g}. Kernels "
            "far from the origin, or coefficients of a tiny λ, lose that many digits: scale the "
            "columns, or fit with a larger regularization."
        )
    shares = np.full_like(parts, 1.0 / parts.shape[-1])
    np.divide(sizes, whole[..., None], out=shares, where=whole[..., None] > 0)
    return np.asarray(parts + shares * left[..., None])
