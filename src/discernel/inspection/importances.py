"""What columns and sources are worth to rows that were left out: noise earns nothing there.

A flexible kernel of a noise source fits the training rows, and has weight for that. So a source is
judged by what it adds to the score of each training row in the fit to all other rows. How that goes
with the label of the row is its worth. What noise adds to a row that was left out goes with no
label: its worth is 0 up to chance.

A column is judged by the loss of each training row in the fit to all other rows: how much it grows
when the cell of this column is that of another row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.special import ndtri

from discernel.arrays import Buffers, FloatArray, draw_rows, in_threads, n_rows
from discernel.bank import CombinedFeatures, CombinedKernel
from discernel.criteria import LeftOutRows
from discernel.exceptions import InvalidInputError
from discernel.inspection.explained import Explained, ScorePart, column_groups, expand
from discernel.inspection.games import (
    Factors,
    kernel_forms,
    n_nodes,
    product_integrals,
    rows_of,
    seen_columns,
)
from discernel.inspection.rows import dense, has_columns
from discernel.kernels import Kernel
from discernel.kernels.weighted import slices
from discernel.rows.views import kernel_sources
from discernel.targets import ClassTarget

__all__ = [
    "SourceImportances",
    "column_importances",
    "importance_rows",
    "leave_rows_out",
    "source_importances",
]

#: Rows that importances are taken from at most, at least, and the work that decides between them.
_MOST_ROWS, _LEAST_ROWS, _WORK = 1500, 200, 2.5e8
#: What is worth so many standard errors counts half of that; what is worth one counts 1.2 % of it,
#: since it may well be chance.
_DOUBT = 3.0
#: The probability of finding anything clearly worth more than nothing where nothing is.
_LEVEL = 0.05
#: Rows in which each column is exchanged, times columns; at least so many rows and at most so many.
_EXCHANGES, _FEWEST, _MOST_EXCHANGED = 12_000, 100, 1000
#: How many of them are different, and how often each is taken, at most.
_MOST_LEFT_OUT, _ROUNDS = 500, 4
#: Numbers of the influence of all rows that are left out.
_MOST_INFLUENCE = 2**22
#: Entries of the kernel between some rows and all training rows that are made at a time, and
#: factors of groups and pairs of rows.
_BLOCK_ENTRIES, _SPLIT_ENTRIES = 2**17, 2**21

#: From the scores of all rows to the loss of each.
Loss = Callable[[FloatArray], FloatArray]


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
    explained = Explained.of(clf)
    learner = explained.learner
    if not hasattr(learner, "regularization_"):
        raise InvalidInputError(
            "Importances of sources are of KernelDiscriminant, MultipleKernelDiscriminant and "
            f"MultipleKernelRidge. Got {type(learner).__name__}."
        )
    rows, labels = _training_rows(explained, X, y)
    sources = _Sources.of(explained, rows, groups)
    chosen = draw_rows(np.arange(n_rows(rows)), sources.most_rows)
    rows = rows[np.ix_(chosen, chosen)] if sources.precomputed else rows[chosen]
    targets, ridge = _targets(learner, labels[chosen])
    return _shares(sources.names, sources.contributions(rows, targets, ridge), targets)


def _training_rows(explained: Explained, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    """Return rows as the kernels take them and their labels, given or kept."""
    model = explained.learner.model_
    if X is not None and y is not None:
        return explained.read(X), np.asarray(y)
    kept = model.kernel.rows if isinstance(model.kernel, CombinedKernel) else None
    if X is not None or y is not None or kept is None or model.facts.streamed is not None:
        raise InvalidInputError(
            "This model does not keep all that importances of sources are made of. Give the "
            "training rows and their labels, both: source_importances(clf, X, y)."
        )
    return kept, model.kept.labels


def _targets(learner: Any, labels: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Return what was fitted, class scores or centred numbers, and with which ridge."""
    if learner.model_.classes is not None:
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
    def of(cls, explained: Explained, rows: Any, groups: Mapping[str, Any] | None) -> _Sources:
        learner = explained.learner
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
            names, group = column_groups(groups, explained.column_names)
            encoder = learner.encoder_
            group = group if encoder is None else group[encoder.source]
            seen = [np.unique(group[seen_columns([kernels[i]], len(group))]) for i in active]
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
        n, gram = n_rows(rows), np.zeros((n_rows(rows), n_rows(rows)))
        for kernel, factor in zip(self.kernels, self.factors, strict=True):
            gram += factor * kernel(rows)
        coef, left_out = leave_rows_out(gram, np.arange(n), targets, ridge, np.ones(n))
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
    """Add what groups add to the score of each row that is left out, by a product of factors.

    Their Shapley values, each between the value of its factor and the mean over the other rows,
    each left out too: what is the same for all rows is no contribution, but would go with the
    label of the row that is left out.
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
        # On the diagonal, the mean is the value itself: a row says nothing of itself.
        absent = (sums[:, None, :] - present - diagonal[:, None, :]) / (n - 2)
        here = np.arange(rows.start, rows.stop)
        absent[:, here - rows.start, here] = diagonal[:, rows]
        values = product_integrals(present, absent)
        for place, one in enumerate(groups):
            out[one, rows] += number * _without_rows(values[place], coef, left_out, rows)


def leave_rows_out(
    gram: FloatArray,
    rows: NDArray[np.intp],
    truth: FloatArray,
    ridge: FloatArray,
    weights: FloatArray,
) -> tuple[FloatArray, LeftOutRows]:
    """Return the coefficients of a fit to ``truth``, and what it is without some rows, in turn.

    With Q = N⁻¹ − N⁻¹11ᵀN⁻¹/(1ᵀN⁻¹1) and α = QT, the fit without row i has the coefficients
    α − Q_:i α_i/Q_ii, of which that of row i is 0. They sum to 0, as α does, so that kernels need
    not be centred. ``gram`` is the kernel between all rows, which is overwritten; ``ridge`` and
    ``weights`` are what each row was fitted with, and how much it counts.
    """
    gram -= gram.mean(axis=0)
    gram -= gram.mean(axis=1, keepdims=True)
    gram[np.diag_indices_from(gram)] += ridge
    inverse = scipy.linalg.inv(gram, overwrite_a=True)
    ones = inverse.sum(axis=1)
    inverse -= np.outer(ones, ones) / ones.sum()
    coef = inverse @ truth
    errors = coef[rows] / inverse.diagonal()[rows, None]
    return coef, LeftOutRows(rows, truth[rows] - errors, errors, inverse[:, rows], weights[rows])


def _without_rows(
    values: FloatArray, coef: FloatArray, left_out: LeftOutRows, rows: slice
) -> FloatArray:
    """Return Σ_j (coef_j − influence_ji e_i) values_ij of some of the rows i that are left out."""
    own = np.einsum("ij,ij->i", values, left_out.influence.T[rows])
    return np.asarray(values @ coef - own[:, None] * left_out.errors[rows])


def _shares(names: list[str], added: FloatArray, targets: FloatArray) -> SourceImportances:
    """Return the shares of sources in how what they add goes with what is to be predicted."""
    centered = added - added.mean(axis=1, keepdims=True)
    rows = np.einsum("sic,ic->si", centered, targets - targets.mean(axis=0))
    values, errors, is_clear = _worth(rows, np.ones(len(targets)))
    values = values if is_clear else 0.0 * values
    total = float(values.sum()) or 1.0
    return SourceImportances(names, values / total, errors / total, len(targets))


def _worth(rows: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, bool]:
    """Return the worth of columns or sources from that for each row, of shape (n, n_rows).

    The means, at least 0, times z⁴/(z⁴ + 3⁴) for a mean of z standard errors; these errors; and
    whether the largest z is beyond what chance gives to the largest of so many.
    """
    shares = weights / weights.sum()
    means = rows @ shares
    errors = np.sqrt((rows - means[:, None]) ** 2 @ shares**2)
    gains = np.maximum(means, 0.0)
    z = np.divide(gains, errors, out=np.where(gains > 0, np.inf, 0.0), where=errors > 0)
    trust = 1.0 / (1.0 + np.divide(_DOUBT, z, out=np.full_like(z, np.inf), where=z > 0) ** 4)
    is_clear = bool((z > -ndtri(_LEVEL / max(1, len(rows)))).any())
    return gains * trust, errors, is_clear


# ---- columns -------------------------------------------------------------------------------------


def importance_rows(rows: NDArray[np.intp], n_samples: int, n_columns: int) -> NDArray[np.intp]:
    """Return which of some of the training rows importances of columns are taken from."""
    most = min(_MOST_LEFT_OUT, _n_exchanged(n_columns), _MOST_INFLUENCE // max(1, n_samples))
    return np.asarray(draw_rows(rows, max(2, most)))


def _n_exchanged(n_columns: int) -> int:
    """Return in how many rows each of so many columns is exchanged."""
    return int(np.clip(_EXCHANGES // max(1, n_columns), _FEWEST, _MOST_EXCHANGED))


def column_importances(
    combined: CombinedKernel | CombinedFeatures,
    coef: FloatArray,
    left_out: LeftOutRows,
    X: Any,
    source: NDArray[np.intp],
    n_columns: int,
    loss: Loss,
) -> tuple[FloatArray, FloatArray]:
    """Return how much the loss of left-out rows grows when a column is that of other rows.

    Parameters
    ----------
    combined : CombinedKernel or CombinedFeatures
        The learned kernel between new rows and those of training.
    coef : ndarray of shape (n_terms, n_outputs)
        What it is multiplied by to predict.
    left_out : LeftOutRows
        What the fit is without each of some rows.
    X : array or Table of shape (n_rows, n_encoded)
        These rows, as the kernels take them.
    source, n_columns : ndarray of shape (n_encoded,) and int
        The column that was given which each of theirs is of, and how many there are.
    loss : callable
        From scores of these rows to the loss of each.

    Returns
    -------
    shares : ndarray of shape (n_columns,)
        At least 0, summing to 1; all 0 where predictions depend on no column. Where no growth is
        clearly more than chance, they are those of the mean squared change of the scores: what
        predictions depend on, though it does not help them.
    spread : ndarray of shape (n_columns,)
        The standard error of each share, over rows.
    """
    rounds = int(np.clip(_n_exchanged(n_columns) // len(left_out.rows), 1, _ROUNDS))
    changes = _score_changes(combined, coef, left_out, X, source, n_columns, rounds)
    before, weights = loss(left_out.scores), left_out.weights
    growth, moved = np.zeros((2, n_columns, len(before)))
    for column, each in enumerate(changes):
        if each.any():
            growth[column] = np.mean([loss(left_out.scores + one) for one in each], axis=0) - before
            moved[column] = np.sum(each**2, axis=(0, 2))
    values, errors, is_clear = _worth(growth, weights)
    if not is_clear:
        values, errors, _ = _worth(moved, weights)
    total = float(values.sum()) or 1.0
    return values / total, errors / total


def _score_changes(
    combined: CombinedKernel | CombinedFeatures,
    coef: FloatArray,
    left_out: LeftOutRows,
    X: Any,
    source: NDArray[np.intp],
    n_columns: int,
    rounds: int,
) -> FloatArray:
    """Return how scores change, of shape (n_columns, n_rounds, n_rows, n_outputs).

    f_{−i}(x′) − f_{−i}(x) = Σ_j (coef_j − influence_ji e_i)(k(x′, x_j) − k(x, x_j)), where x′ is
    row i with the column of another row.
    """
    n, k = len(left_out.rows), coef.shape[1]
    out = np.zeros((n_columns, rounds, n, k))
    order = np.random.default_rng(0).permutation(n)
    partners = np.empty((rounds, n), dtype=np.intp)
    for shift, partner in enumerate(partners, start=1):
        partner[order] = np.roll(order, shift)
    for part in expand(combined, np.hstack([coef, left_out.influence]))[0]:
        seen = seen_columns(part.kernels, len(source))
        columns = [np.flatnonzero((source == one) & seen) for one in range(n_columns)]
        own = replace(left_out, influence=np.asfortranarray(part.coef[:, k:]))
        _add_changes(out, part, own, X, partners, columns)
    return out


def _add_changes(
    out: FloatArray,
    part: ScorePart,
    left_out: LeftOutRows,
    X: Any,
    partners: NDArray[np.intp],
    columns: list[NDArray[np.intp]],
) -> None:
    """Add how one part of the scores changes with columns of partners, in threads."""
    swaps, coef = part.swaps(X.shape[1]), part.coef[:, : out.shape[-1]]

    def work(rows: slice, buffers: Buffers) -> None:
        changes, others = swaps(X[rows], buffers), [X[partner[rows]] for partner in partners]
        for place, seen in enumerate(columns):
            for turn, change in enumerate(changes(seen, others) if len(seen) else ()):
                out[place, turn, rows] += _without_rows(change, coef, left_out, rows)

    blocks = slices(slice(0, len(left_out.rows)), max(1, _BLOCK_ENTRIES // len(coef)))
    n_threads = min(int(joblib.cpu_count()) if part.thread_safe else 1, len(blocks))
    in_threads(work, blocks, [Buffers() for _ in range(n_threads)])
