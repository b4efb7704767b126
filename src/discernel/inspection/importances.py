"""What sources are worth to rows that were left out: importances that noise cannot earn.

A flexible kernel of a noise source fits the training rows, and has weight for that. So a source is
judged by what it adds to the score of each training row in the fit to all other rows. How that goes
with the label of the row is its worth. What noise adds to a row that was left out goes with no
label: its worth is 0 up to chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.backend import FloatArray, draw_rows, n_rows
from discernel.exceptions import InvalidInputError
from discernel.inspection.explained import explained_learner
from discernel.inspection.games import n_nodes
from discernel.inspection.learner import column_groups, column_names, learner_rows
from discernel.inspection.left_out import LeftOutFit, add_split, kernel_groups
from discernel.inspection.reference import has_columns
from discernel.kernels import Kernel
from discernel.targets import ClassTarget
from discernel.views import kernel_sources

__all__ = ["SourceImportances", "source_importances"]

#: Rows that importances are taken from at most, at least, and the work that decides between them.
_MOST_ROWS, _LEAST_ROWS, _WORK = 1500, 200, 2.5e8
#: What is worth less than so many standard errors may be chance, and is worth nothing; the more it
#: is beyond that, the less is taken off (a non-negative garrote).
_DOUBT = 2.5


@dataclass(frozen=True)
class SourceImportances:
    """What sources are worth to rows that were left out.

    Attributes
    ----------
    names : list of str
        The sources.
    shares : ndarray of shape (n_sources,)
        Their shares of what all are worth, summing to 1; all 0 where none is worth more than
        chance.
    spread : ndarray of shape (n_sources,)
        The standard error of each share, over rows.
    n_rows : int
        The rows that were left out, one at a time.
    """

    names: list[str]
    shares: FloatArray
    spread: FloatArray
    n_rows: int


def source_importances(
    clf: Any, X: Any = None, y: Any = None, *, groups: Mapping[str, Any] | None = None
) -> SourceImportances:
    """Return what each source is worth to rows that were left out of the fit.

    What a source adds to the score of a training row, in the fit to all other rows, is known in
    closed form. Its covariance with the class of the row is what the source is worth: 0 where it is
    within 2.5 standard errors of 0, a little less than measured beyond. Weights of kernels are none
    of this: a source of noise may have weight, and a source that matters may need little.

    Parameters
    ----------
    clf : estimator or Pipeline
        Fitted: `KernelDiscriminant`, `MultipleKernelDiscriminant` or `MultipleKernelRidge`.
    X : array-like of shape (n_rows, n_features), optional
        The training rows, or precomputed kernels between them. Needed where the model does not
        keep them: with precomputed kernels, of low rank, or of rows in chunks. At most 1,500 are
        drawn, fewer where kernels see many groups, which takes some seconds.
    y : array-like of shape (n_rows,), optional
        Their labels, or numbers.
    groups : dict of str to columns, optional
        Sources as groups of columns, as with ``kernels="auto"``; by default what kernels were put
        on with ``.on``, and each precomputed kernel.

    Returns
    -------
    SourceImportances
        Names, shares and their spread.

    Notes
    -----
    Rows count the same, whatever their weights in training. Weights of kernels, and a metric,
    were learned from all rows: that a source has any weight at all may be due to the row that is
    left out, which favours noise by a little.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import MultipleKernelDiscriminant
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> X["noise"] = [(7 * i) % 11 for i in range(len(X))]
    >>> clf = MultipleKernelDiscriminant().fit(X, y)
    >>> found = source_importances(clf, groups={"wine": slice(0, 13), "noise": ["noise"]})
    >>> found.shares.round(2).tolist()
    [1.0, 0.0]
    """
    learner = explained_learner(clf)
    if not hasattr(learner, "regularization_"):
        raise InvalidInputError(
            "Importances of sources are of KernelDiscriminant, MultipleKernelDiscriminant and "
            f"MultipleKernelRidge. Got {type(learner).__name__}."
        )
    rows, labels = _training_rows(clf, learner, X, y)
    sources = _Sources.of(clf, learner, rows, groups)
    chosen = draw_rows(np.arange(n_rows(rows)), sources.most_rows)
    rows = rows[np.ix_(chosen, chosen)] if sources.precomputed else rows[chosen]
    targets, ridge = _targets(learner, labels[chosen])
    return _shares(sources.names, sources.contributions(rows, targets, ridge), targets)


def _training_rows(clf: Any, learner: Any, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    """Return rows as the kernels take them and their labels, given or kept."""
    if X is not None and y is not None:
        return learner._validate(learner_rows(clf, X), learner.kernels_), np.asarray(y)
    kept = getattr(learner.combined_kernel_, "rows", None)
    if X is not None or y is not None or kept is None or hasattr(learner, "streamed_"):
        raise InvalidInputError(
            "This model does not keep all that importances of sources are made of. Give the "
            "training rows and their labels, both: source_importances(clf, X, y)."
        )
    return kept, learner._kept_labels


def _targets(learner: Any, labels: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Return what was fitted, class scores or centred numbers, and with which ridge."""
    if hasattr(learner, "classes_"):
        target = ClassTarget.from_labels(labels)
        criterion = learner._request().criterion
        return target.scores, criterion.sample_ridge(target, learner.regularization_)
    values = np.asarray(labels, dtype=np.float64).reshape(len(labels), -1)
    return values - values.mean(axis=0), np.full(len(labels), learner.regularization_)


@dataclass(frozen=True)
class _Sources:
    """The kernels of a model, and the sources that each of them sees."""

    names: list[str]
    kernels: list[Kernel]
    factors: FloatArray
    #: The sources of each kernel.
    seen: list[NDArray[np.intp]]
    #: The source of each column; of no use where every kernel has one source.
    group: NDArray[np.intp]
    precomputed: bool

    @classmethod
    def of(cls, clf: Any, learner: Any, rows: Any, groups: Mapping[str, Any] | None) -> _Sources:
        coefficients = learner.learned_kernel_.coefficients
        active = np.flatnonzero(coefficients)
        kernels, precomputed = learner.kernels_, learner.kernels_[0].precomputed
        if groups is None:
            listed = kernel_sources(kernels)
            names = list(dict.fromkeys(listed))
            seen = [np.array([names.index(listed[i])]) for i in active]
            group = np.empty(0, dtype=np.intp)
        elif precomputed or not has_columns(rows):
            raise InvalidInputError(
                "groups are of columns, which these rows do not have. Leave groups out: every "
                "kernel is a source."
            )
        else:
            names, group = column_groups(groups, column_names(clf))
            encoder = getattr(learner, "encoder_", None)
            group = group if encoder is None else group[encoder.source]
            seen = [kernel_groups(kernels[i], group) for i in active]
        chosen = [kernels[i] if precomputed else kernels[i].shifted(rows) for i in active]
        return cls(names, chosen, coefficients[active], seen, group, precomputed)

    @property
    def most_rows(self) -> int:
        """How many rows there is time for: pairs of rows, groups and kernels are all looked at."""
        counts = [len(seen) for seen in self.seen if len(seen) > 1]
        work = sum(count * n_nodes(count) for count in counts)
        return int(np.clip(np.sqrt(_WORK / max(1, work)), _LEAST_ROWS, _MOST_ROWS))

    def contributions(self, rows: Any, targets: FloatArray, ridge: FloatArray) -> FloatArray:
        """Return what sources add to left-out rows, of shape (n_sources, n_rows, n_outputs)."""
        pairs = list(zip(self.kernels, self.factors, strict=True))
        gram = np.zeros((n_rows(rows), n_rows(rows)))
        for kernel, factor in pairs:
            gram += factor * kernel(rows)
        fit = LeftOutFit.of(gram, targets, ridge)
        out = np.zeros((len(self.names), *targets.shape))
        for (kernel, factor), seen in zip(pairs, self.seen, strict=True):
            if len(seen) == 1:
                fit.add_kernel(out[seen[0]], factor * kernel(rows))
            else:
                add_split(out, fit, kernel, factor, rows, self.group)
        return out


def _shares(names: list[str], added: FloatArray, targets: FloatArray) -> SourceImportances:
    """Return the shares of sources in how what they add goes with what is to be predicted."""
    n = len(targets)
    centered = added - added.mean(axis=1, keepdims=True)
    rows = np.einsum("sic,ic->si", centered, targets - targets.mean(axis=0))
    means, errors = rows.mean(axis=1), rows.std(axis=1, ddof=1) / np.sqrt(n)
    doubt = np.divide(_DOUBT * errors, means, out=np.ones_like(means), where=means > 0)
    worth = np.maximum(means, 0.0) * np.maximum(1.0 - doubt**2, 0.0)
    total = float(worth.sum()) or 1.0
    return SourceImportances(names, worth / total, errors / total, n)
