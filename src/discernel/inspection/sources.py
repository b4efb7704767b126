"""Importances of sources, measured on held-out rows.

A flexible kernel on a noise source can fit the training rows and have a positive weight. Therefore
the importance of a source is the covariance between labels and the contributions of the source to
leave-one-out scores. For a noise source it is 0 up to chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, draw_rows, n_rows
from discernel.arrays.groups import Groups
from discernel.exceptions import InvalidInputError
from discernel.inspection.explained import Explained, column_groups
from discernel.inspection.games import (
    Factors,
    kernel_forms,
    n_nodes,
    product_integrals,
    rows_of,
)
from discernel.inspection.source_weights import kernel_sources
from discernel.kernels import Kernel
from discernel.kernels.weighted import slices
from discernel.model.importances import fit_of_gram, has_columns, scores_without, worth
from discernel.model.parts import seen_columns
from discernel.model.swaps import dense
from discernel.programs.least_squares import LeftOutRows
from discernel.targets import ClassTarget

#: Largest and smallest number of rows, and the amount of work that decides between them.
_MOST_ROWS, _LEAST_ROWS, _WORK = 1500, 200, 2.5e8
#: Number of factors of groups and pairs of rows computed at a time.
_SPLIT_ENTRIES = 2**21


@dataclass(frozen=True)
class SourceImportances:
    """Importances of sources, measured on held-out rows.

    Attributes
    ----------
    names : list of str
        The sources.
    shares : ndarray of shape (n_sources,)
        Shares of the total importance, summing to 1; all 0 if no source is better than chance.
    spread : ndarray of shape (n_sources,)
        Standard error of each share, over rows.
    n_rows : int
        Number of rows, each left out once.
    """

    names: list[str]
    shares: FloatArray
    spread: FloatArray
    n_rows: int


def source_importances(
    clf: Any, X: Any = None, y: Any = None, *, groups: Mapping[str, Any] | None = None
) -> SourceImportances:
    """Return the importance of each source, measured on held-out rows.

    The contribution of a source to the leave-one-out score of a training row has a closed form. Its
    covariance with the class of the row is the importance of the source. It is set to 0 within 2.5
    standard errors of 0, and reduced slightly beyond. Importances are not kernel weights: a noise
    source may have a positive weight, and an important source a small one.

    Parameters
    ----------
    clf : estimator or Pipeline
        Fitted `KernelDiscriminant`, `MultipleKernelDiscriminant` or `MultipleKernelRidge`.
    X : array-like of shape (n_rows, n_features), optional
        Training rows, or precomputed kernels between them. Needed if the model does not keep them:
        with precomputed kernels, low rank, or rows in chunks. At most 1,500 random rows are used,
        fewer if kernels depend on many groups; this takes some seconds.
    y : array-like of shape (n_rows,), optional
        Labels or numeric targets.
    groups : dict of str to columns, optional
        Sources as groups of columns, needed with ``kernels="auto"``. By default, kernels on the
        same columns (``.on``) are a source, and each precomputed kernel is a source.

    Returns
    -------
    SourceImportances
        Names, shares and standard errors.

    Notes
    -----
    Rows that were fitted with groups are left out with their group, unless they are given as X.
    Sample weights are ignored. Kernel weights and column scales were learned from all rows,
    including the row that is left out, which slightly favours noise.

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
    explained = Explained.of(clf)
    lam = explained.learned.regularization
    if explained.learned.by_target is not None:
        raise InvalidInputError(
            "Sources have importances if all targets share one kernel. Got a model with kernel "
            "weights of each target. Fit one target at a time, or weights_per_target=False."
        )
    rows, labels, groups_of_rows = _training_rows(explained, X, y)
    sources = _Sources.of(explained, rows, groups)
    chosen = draw_rows(np.arange(n_rows(rows)), sources.most_rows)
    rows = rows[np.ix_(chosen, chosen)] if sources.precomputed else rows[chosen]
    targets, ridge = _targets(explained, labels[chosen], lam)
    together = None if groups_of_rows is None else Groups(groups_of_rows[chosen])
    added = sources.contributions(rows, targets, ridge, together)
    return _shares(sources.names, added, targets, together)


def _training_rows(
    explained: Explained, X: Any, y: Any
) -> tuple[Any, NDArray[Any], NDArray[np.intp] | None]:
    """Return training rows, as input of the kernels, and labels: given or kept; kept groups."""
    model = explained.model
    if X is not None and y is not None:
        return explained.read(X), np.asarray(y), None
    kept = None if model.kernel is None else model.kernel.rows
    labels = model.kept.labels if model.facts.streamed is None else None
    if X is not None or y is not None or kept is None or labels is None:
        raise InvalidInputError(
            "This model does not keep its training rows and labels. Pass both: "
            "source_importances(clf, X, y)."
        )
    return kept, labels, model.kept.groups


def _targets(
    explained: Explained, labels: NDArray[Any], lam: float
) -> tuple[FloatArray, FloatArray]:
    """Return the fitted targets (class scores or centred numbers) and the ridge of each row."""
    if explained.model.classes is not None:
        target = ClassTarget.from_labels(labels)
        criterion = explained.learner._request().criterion
        return target.scores, criterion.sample_ridge(target, lam)
    values = np.asarray(labels, dtype=np.float64).reshape(len(labels), -1)
    return values - values.mean(axis=0), np.full(len(labels), lam)


@dataclass(frozen=True)
class _Sources:
    """The kernels of a model, and the sources that each of them depends on."""

    names: list[str]
    kernels: list[Kernel]
    factors: FloatArray
    #: The sources of each kernel.
    seen: list[NDArray[np.intp]]
    #: The source of each column; empty if every kernel has one source.
    group: NDArray[np.intp]
    precomputed: bool

    @classmethod
    def of(cls, explained: Explained, rows: Any, groups: Mapping[str, Any] | None) -> _Sources:
        coefficients = explained.learned.coefficients
        active = np.flatnonzero(coefficients)
        kernels = explained.model.reader.kernels
        precomputed = kernels[0].precomputed
        if groups is None:
            listed = kernel_sources(kernels)
            names = list(dict.fromkeys(listed))
            seen = [np.array([names.index(listed[i])]) for i in active]
            group = np.empty(0, dtype=np.intp)
        else:
            listed = explained.column_names if has_columns(rows, kernels) else []
            names, group = column_groups(groups, listed)
            group = group[explained.model.reader.given_columns]
            seen = [np.unique(group[seen_columns([kernels[i]], len(group))]) for i in active]
        chosen = [kernels[i] if precomputed else kernels[i].shifted(rows) for i in active]
        return cls(names, chosen, coefficients[active], seen, group, precomputed)

    @property
    def most_rows(self) -> int:
        """Largest number of rows within the allowed work."""
        counts = [len(seen) for seen in self.seen if len(seen) > 1]
        work = sum(count * n_nodes(count) for count in counts)
        return int(np.clip(np.sqrt(_WORK / max(1, work)), _LEAST_ROWS, _MOST_ROWS))

    def contributions(
        self, rows: Any, targets: FloatArray, ridge: FloatArray, together: Groups | None = None
    ) -> FloatArray:
        """Return contributions to leave-one-out scores, of shape (n_sources, n_rows, n_outputs)."""
        n, gram = n_rows(rows), np.zeros((n_rows(rows), n_rows(rows)))
        for kernel, factor in zip(self.kernels, self.factors, strict=True):
            gram += factor * kernel(rows)
        fit = fit_of_gram(gram, targets, ridge, together)
        coef, left_out = fit.coef, fit.left_out(np.arange(n))
        out = np.zeros((len(self.names), *targets.shape))
        for kernel, factor, seen in zip(self.kernels, self.factors, self.seen, strict=True):
            if len(seen) == 1:
                _add_product(out, coef, left_out, seen, factor, rows_of(kernel(rows)))
                continue
            for form in kernel_forms(kernel, len(self.group)):
                for groups, number, factors in form.by_group(dense(rows), self.group):
                    _add_product(out, coef, left_out, groups, factor * number, factors)
        return out


def _add_product(
    out: FloatArray,
    coef: FloatArray,
    left_out: LeftOutRows,
    groups: NDArray[np.intp],
    number: float,
    factors: Factors,
) -> None:
    """Add the contributions of groups to leave-one-out scores, for a product of factors.

    Contributions are Shapley values between the value of a factor and its mean over the other rows.
    Without subtracting that mean, a constant contribution would correlate with the label of the
    left-out row.
    """
    n = len(coef)
    blocks = slices(slice(0, n), max(1, _SPLIT_ENTRIES // max(1, n * len(groups))))
    sums, diagonal = np.zeros((2, len(groups), n))
    for rows in blocks:
        present = factors(rows)
        sums += present.sum(axis=1)
        diagonal[:, rows] = np.diagonal(present[:, :, rows], axis1=1, axis2=2)
    for rows in blocks:
        present = factors(rows)
        # On the diagonal, the mean is the value itself: a row does not contribute to itself.
        absent = (sums[:, None, :] - present - diagonal[:, None, :]) / (n - 2)
        here = np.arange(rows.start, rows.stop)
        absent[:, here - rows.start, here] = diagonal[:, rows]
        values = product_integrals(present, absent)
        for place, one in enumerate(groups):
            out[one, rows] += number * scores_without(values[place], coef, left_out, rows)


def _shares(
    names: list[str], added: FloatArray, targets: FloatArray, together: Groups | None = None
) -> SourceImportances:
    """Return the shares of sources in the covariance between contributions and targets."""
    centered = added - added.mean(axis=1, keepdims=True)
    rows = np.einsum("sic,ic->si", centered, targets - targets.mean(axis=0))
    values, errors, is_clear = worth(rows, np.ones(len(targets)), together)
    values = values if is_clear else 0.0 * values
    total = float(values.sum()) or 1.0
    return SourceImportances(names, values / total, errors / total, len(targets))
