"""The proposal of the default: kernels on a learned metric, their weights and λ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from discernel.arrays import Device, FloatArray, Positions, draw_rows, one_blas_thread
from discernel.bank import Bank
from discernel.default.choose import Selection, choose
from discernel.default.comparison import FoldComparison, SampleChoice, choose_sample
from discernel.default.cross_fit import each
from discernel.default.logits import LogitSearch
from discernel.default.menu import MENU, Columns, Menu, SourceMenu
from discernel.default.metric import Metric
from discernel.default.sample import MOST_BY_LIKELIHOOD, Sample, draw_sample, near_typical
from discernel.discriminant import row_losses
from discernel.kernels import Kernel
from discernel.kernels.curves import Curves, divided_columns, quantile_curves
from discernel.programs.lambdas import lambda_grid, search_lambda
from discernel.programs.least_squares import fits_by_lambda
from discernel.programs.simplex import normalize
from discernel.programs.solution import Candidate
from discernel.progress.deadline import must_stop_learning
from discernel.targets import Target

#: Up to this many rows kernels are chosen on all of them; of more, on a quarter, no fewer than this
#: and no more than the second number. The metric of the fit is learned on no more than the third.
_FEW, _MOST, _MOST_FOR_METRIC = 600, 1000, 1500
#: Rows that λ is chosen on where there is no time to choose anything else.
FIRST_ROWS = 300
_FOLDS = 5
#: λ for all rows is looked for on no more than this many, unless many λ are as cheap as one.
_MOST_FOR_REGULARIZATION = 1500
#: What is tried there, in units of the λ of the sample, and the least of all. More rows want less
#: of it, so it goes downhill from the third.
_FACTORS, _LEAST = lambda_grid(0.5, -2.0), 1e-7
_START = 2
#: The power of the number of rows that λ falls with, chosen after these runs. Of 40,000 rows, 1,500
#: and 4,000 wanted about 3.5e-4 and 1.6e-4. Half of the λ of 1,500 rows changed the log-loss of
#: five data sets of 5,000 and 6,000 rows by −8.5, −4.4, −2.0, −0.1 and +0.5 %. A third of it
#: changed that of three others, of 10,000, 3,500 and 6,000 rows, by +3.0, +0.9 and +0.1 %.
_FALLS = 0.5
#: Rows that widths are taken from where only the cost of the kernels counts.
_FEW_ROWS = 50
#: Beyond these λ there was nothing to choose from.
LAMBDA_LIMITS = (1.0, _LEAST)


@dataclass(frozen=True)
class Proposal:
    """Kernels on the chosen metric, and how they were chosen.

    Attributes
    ----------
    kernels : list of Kernel
        The kernels of the menu, resolved.
    selection : Selection
        All that was compared, and what would have been chosen without each fold.
    sample : Sample
        The rows it was compared on.
    metric : Metric
        Learned on all rows of the sample, or on some more, if its strength is not 0; else that of
        the first fold.
    fold_metrics : list of Metric
        One per fold, learned without it.
    spreads : tuple of float
        What every column was divided by first.
    curves : Curves or None
        Functions of the columns before that, to normal quantiles; None if these were not chosen.
    dependent : ndarray of int
        The training rows whose labels, or those of their groups, had a part in the metric of the
        kernels; none where that is no metric at all.
    is_whole : bool
        Whether the sample has all training rows.
    learn_metric : callable
        From a sample and the positions of some of its rows to a metric of the chosen kind.
    """

    kernels: list[Kernel]
    selection: Selection
    sample: Sample
    metric: Metric
    fold_metrics: list[Metric]
    spreads: tuple[float, ...]
    curves: Curves | None
    dependent: Positions
    is_whole: bool
    learn_metric: Callable[[Sample, Positions], Metric]

    @property
    def chosen(self) -> Candidate:
        """The candidate that won."""
        return self.selection.candidates[0]

    def independent(self, rows: Positions) -> Positions:
        """Return which of some training rows had no part in the metric; none if they are few.

        Leaving such a row out of the fit is enough to predict it honestly.
        """
        if not len(self.dependent):
            return np.arange(len(rows))
        found = np.flatnonzero(~np.isin(rows, self.dependent))
        return found if len(found) >= len(self.sample.rows) // 2 else found[:0]

    def logit_start(self, n_rows: int) -> float | None:
        """Return a λ of kernel logistic regressions to start from, if there were any.

        More rows want less of it: of ten data sets with more rows than the sample, seven wanted a
        third of its λ or less, the others the same.
        """
        lam = self.selection.logit_regularization
        return None if lam is None else lam * len(self.sample.rows) / n_rows

    def kernels_of(self, one: Candidate, metric: Metric, X: FloatArray) -> list[Kernel]:
        """Return the kernels of a candidate with a metric; X are the training rows."""
        sample, curves = self.sample, self.curves if one.quantiles else None
        rows = sample.rows
        if one.quantiles != sample.quantiles:
            rows = near_typical(comparable_rows(X[sample.positions], self.spreads, curves))
        scales = metric.of_strength(one.strength)
        menu = sample.menu.with_widths(one.few_widths)
        return scaled_kernels(scales, self.spreads, rows, menu, curves)

    def metric_without(
        self, fold: int, X: FloatArray, target: Target, outside: Positions
    ) -> Metric:
        """Return a metric that was learned from rows of X outside of a fold.

        That of the fold where the sample has all rows.
        """
        if self.is_whole:
            return self.fold_metrics[fold]
        rows, part = comparable_rows(X[outside], self.spreads, self.curves), target.subset(outside)
        rng = np.random.RandomState(0)
        drawn = draw_sample(rows, part, most=_MOST_FOR_METRIC, n_folds=1, rng=rng)
        drawn = replace(drawn, menu=self.sample.menu)
        with one_blas_thread():  # as in the choice
            return self.learn_metric(drawn, np.arange(len(drawn.rows)))

    def regularization_of(self, bank: Bank, target: Target) -> float:
        """Return λ for all rows: more rows want less of it.

        By the leave-one-out losses of rows that had no part in the metric, where there are enough
        of them. Else that of the folds, for the share of rows that these had. What was found on a
        part of the rows is divided by the root of how many times as many there are.
        """
        chosen, n = self.chosen, bank.n_samples
        rows = np.arange(n)
        if n > _MOST_FOR_REGULARIZATION and not bank.cheap_path:
            drawn = target.shuffled(_MOST_FOR_REGULARIZATION, np.random.RandomState(0))
            rows = np.sort(drawn[:_MOST_FOR_REGULARIZATION])
        counted = self.independent(rows)
        part = bank if len(rows) == n else bank.subset(rows)
        if not (len(counted) and part.n_kernels):
            return chosen.regularization * (1.0 - 1.0 / self.sample.n_folds)
        if part is bank:
            return _best_regularization(bank, target, chosen, counted)
        found = _best_regularization(part, target.subset(rows), chosen, counted)
        return max(found * float((len(rows) / n) ** _FALLS), _LEAST)


def propose_kernels(
    X: FloatArray,
    spreads: tuple[float, ...],
    target: Target,
    *,
    pull: float = 5.0,
    regularization: float | None = None,
    random_state: Any = None,
    device: Device | None = None,
    groups: Positions | None = None,
    sources: Columns | None = None,
    logistic: bool = False,
) -> Proposal:
    """Return the kernels that predict held-out rows best.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
        The training rows.
    spreads : tuple of float
        What every column is divided by first; 0 leaves it out.
    target : Target
        What is to be predicted, and how much each row counts.
    pull : float, default=5.0
        As in `discernel.criteria.LeaveOneOut`.
    regularization : float, optional
        λ; chosen by default.
    random_state : int or RandomState, optional
        Draws rows and folds; None is 0.
    device : Device, optional
        Where to compute; by default here.
    groups : ndarray of shape (n_columns,), optional
        Columns with the same number, the codes of a category, have one scale in a metric by
        likelihood; by default each has its own.
    sources : dict of str to ndarray of int, optional
        The columns of each source; by default there is one source, of all columns.
    logistic : bool
        Whether the model has a kernel logistic regression, if it has few rows.
    """
    hurries, rows = must_stop_learning(), divided_columns(X, spreads)
    samples = _draw_samples(rows, target, random_state, hurries, sources)
    compared = FoldComparison(samples[0], regularization, device)
    samples, curves, made = _choose_samples(X, spreads, target, samples, compared)
    (sample, wider), is_whole = samples, len(samples[0].rows) == len(X)
    learn: Callable[..., Metric] = Sample.gradient_metric
    fold_metrics = _learn_metrics(sample, made, device)
    choice = choose(
        made[-1].compared if made else compared,
        fold_metrics,
        pull=pull,
        is_whole=is_whole,
        groups=groups,
        earlier=made,
        logistic=logistic and len(X) <= LogitSearch.most_rows,
    )
    strength, known = choice.candidates[0].strength, wider.positions
    if choice.by_likelihood is not None:
        learn, fold_metrics = partial(Sample.likelihood_metric, groups=groups), choice.by_likelihood
        known = known[:MOST_BY_LIKELIHOOD]
    is_known, every = strength == 0 or must_stop_learning(), np.arange(len(wider.rows))
    metric = fold_metrics[0] if is_known else learn(wider, every, device=device)
    if strength > 0 and must_stop_learning():  # it may have been cut short
        metric, known = fold_metrics[0], sample.positions
    scales, known = metric.of_strength(strength), known if strength > 0 else known[:0]
    return Proposal(
        kernels=scaled_kernels(scales, spreads, wider.rows, sample.menu, curves),
        selection=choice,
        sample=sample,
        metric=metric,
        fold_metrics=fold_metrics,
        spreads=spreads,
        curves=curves,
        dependent=known if target.groups is None else target.groups.fellows(known),
        is_whole=is_whole,
        learn_metric=learn,
    )


def _choose_samples(
    X: FloatArray,
    spreads: tuple[float, ...],
    target: Target,
    samples: list[Sample],
    compared: FoldComparison,
) -> tuple[list[Sample], Curves | None, list[SampleChoice]]:
    """Return the chosen samples, curves if their columns are quantiles, and the choices made.

    Kernels of sources with all widths must be better than with few, and quantiles clearly better
    than columns as they are. Both are chosen on the first sample, if there is time.
    """
    made: list[SampleChoice] = []
    if must_stop_learning():
        return samples, None, made
    if samples[0].menu.few_widths:
        more = replace(samples[0], menu=samples[0].menu.with_widths(few=False))
        made.append(choose_sample(compared, more, n_errors=0.0))
        compared = made[0].compared
        samples = [compared.sample, *samples[1:]]
    device, curves = compared.device, quantile_curves(X, spreads, target.row_weights.values)
    if not len(curves.changed):
        return samples, None, made
    rows = comparable_rows(X, spreads, curves)
    others = [sample.with_quantiles(rows) for sample in samples]
    made.append(choose_sample(compared, others[0], partial(_fold_metrics, device=device)))
    is_other = made[-1].compared.sample.quantiles
    return (others, curves, made) if is_other else (samples, None, made)


def _learn_metrics(
    sample: Sample, made: Sequence[SampleChoice], device: Device | None
) -> list[Metric]:
    """Return the metrics without each fold, unless they are known; in a hurry, none is chosen."""
    known = made[-1].metrics if made else None
    if known is None and must_stop_learning():
        known = [Metric(np.ones(sample.rows.shape[1]))] * sample.n_folds
    return _fold_metrics(sample, device) if known is None else known


def _fold_metrics(sample: Sample, device: Device | None) -> list[Metric]:
    """Return the metrics by gradients that are learned without each fold."""
    outside = [rows for rows, _ in sample.divisions()]
    return each(partial(sample.gradient_metric, device=device), outside, device)


def _draw_samples(
    rows: FloatArray,
    target: Target,
    random_state: Any,
    hurries: bool,
    sources: Columns | None,
) -> list[Sample]:
    """Return the sample that kernels are chosen on, and that which the metric is learned on."""
    n, rng = len(rows), check_random_state(0 if random_state is None else random_state)
    most = max(FIRST_ROWS if hurries else rows_to_choose_on(n), 3 * target.scores.shape[1])
    drawn = partial(draw_sample, rows, target, rng=rng, sources=sources)
    sample = drawn(most=most, n_folds=_FOLDS)
    if len(sample.rows) == n or hurries:
        return [sample, sample]
    most = max(_MOST_FOR_METRIC, most)
    return [sample, drawn(most=most, n_folds=1)]


def rows_to_choose_on(n_rows: int) -> int:
    """Return how many of so many rows kernels are chosen on, if there are as many."""
    return max(_FEW, min(n_rows // 4, _MOST))


def comparable_rows(X: FloatArray, spreads: tuple[float, ...], curves: Curves | None) -> FloatArray:
    """Return columns, or curves of them, over spreads."""
    return np.asarray(divided_columns(X if curves is None else curves.of(X), spreads))


def scaled_kernels(
    scales: FloatArray,
    spreads: tuple[float, ...],
    rows: FloatArray,
    menu: Menu | SourceMenu = MENU,
    curves: Curves | None = None,
) -> list[Kernel]:
    """Return the kernels of a menu on columns, or curves of them, over spreads, times scales.

    A spread of 0 leaves a column out. Median distances are those of `comparable_rows`.
    """
    divisors = np.divide(spreads, scales, out=np.zeros(len(scales)), where=scales > 0)
    return menu.standardized(rows * scales, divisors.tolist(), curves)


def menu_kernels(
    X: FloatArray, spreads: tuple[float, ...], sources: Columns | None = None
) -> list[Kernel]:
    """Return the kernels of the menu without a metric, to forecast the cost of the default.

    Their widths, which do not change the cost, are those of a few rows.
    """
    rows = divided_columns(draw_rows(X, _FEW_ROWS), spreads)
    menu = MENU if sources is None else SourceMenu(MENU, sources)
    return scaled_kernels(np.ones(rows.shape[1]), spreads, rows, menu)


def _best_regularization(
    bank: Bank, target: Target, chosen: Candidate, counted: Positions
) -> float:
    """Return the λ near that of a candidate with the least leave-one-out loss of some rows."""
    fits = fits_by_lambda(bank, normalize(chosen.weights[bank.kept]), target)
    part = target.subset(counted)
    truth, shares = target.truth, part.row_weights.shares
    lambdas: list[float] = [max(factor * chosen.regularization, _LEAST) for factor in _FACTORS]

    def loss(regularization: float) -> float:
        left_out = fits(regularization).leave_one_out
        found, _ = row_losses(left_out[counted], truth[counted], part)
        return float(shares @ found)

    return search_lambda(lambdas, loss, start=_START).regularization
