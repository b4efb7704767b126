"""The choice of a metric, kernel weights and λ on a sample, by the log-loss of held-out folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, cast

import numpy as np
from scipy.special import log_softmax

from discernel.arrays import FloatArray, Positions
from discernel.default.comparison import LAMBDAS, FoldComparison, SampleChoice
from discernel.default.cross_fit import CLEARLY, CrossFit, Scored, clearly_better, each
from discernel.default.logits import LogitSearch
from discernel.default.metric import Metric
from discernel.discriminant import posterior_losses, row_losses
from discernel.programs.simplex import normalize, uniform
from discernel.programs.solution import Candidate
from discernel.progress.deadline import must_stop_learning
from discernel.targets import ClassTarget

#: The name of equal weights with a metric by likelihood.
_BY_LIKELIHOOD = "likelihood"
#: Rows to learn a metric by likelihood from, to see whether it is any good.
_MOST_TO_TRY = 300
#: Kernel logistic regressions must have less than this share of the log-loss before candidates are
#: compared by them, which takes time: where they had more, the choice hardly changed.
_MUCH_BETTER = 0.9
#: They are not by so many standard errors on the first folds before no others are tried.
_HOPELESS = 2.0


class Selection(NamedTuple):
    """The candidates that were compared, and the choices without each fold."""

    #: The best of each kind, the chosen one first.
    candidates: list[Candidate]
    #: For each fold, the choice by the losses of the other rows.
    without: list[Candidate]
    #: For each fold, the metric learned by likelihood without it; None where it is not chosen.
    by_likelihood: list[Metric] | None
    #: λ of kernel logistic regressions of the folds; None without any.
    logit_regularization: float | None


def choose(
    compared: FoldComparison,
    metrics: Sequence[Metric],
    *,
    pull: float,
    is_whole: bool = True,
    groups: Positions | None = None,
    earlier: Sequence[SampleChoice] = (),
    logistic: bool = False,
) -> Selection:
    """Choose a metric and its strength, weights and λ.

    The metric is chosen with equal weights, and then whether learned weights are better. What is
    less simple must be clearly better: a metric or weights that have seen the labels of a small
    sample look good by chance. Strengths of the given metrics are tried as long as the loss falls
    and there is time; then a metric by likelihood, see `_try_likelihood`. If a kernel logistic
    regression with the best of them is much better than Gaussian classes of the scores, what
    follows is compared by a mixture of both, and strengths once more.

    Parameters
    ----------
    compared : FoldComparison
        The sample, and the strengths that were tried, if any.
    metrics : sequence of Metric
        One per fold, learned without it.
    pull : float
        As in `discernel.criteria.LeaveOneOut`.
    is_whole : bool
        Whether the sample has all rows, so that the weights without each fold are of use.
    groups : ndarray of shape (n_columns,), optional
        As in `learn_likelihood_metric`.
    earlier : sequence of SampleChoice
        The choices of the sample, of its columns and of kernels of sources.
    logistic : bool
        Whether the model may have a kernel logistic regression of classes.
    """
    compared.try_strengths(metrics)
    logit_regularization = None
    if logistic:
        compared, logit_regularization = _with_logits(compared, metrics)
    sample, tried, ranking = compared.sample, compared.tried, compared.ranking()
    found = _try_likelihood(compared, ranking[0], groups, is_whole)
    by_likelihood = None
    if found is not None:
        fit, by_folds = found
        ranking = compared.with_rival(ranking, compared.best_of(fit.tried))
        if ranking[0].candidate.name == _BY_LIKELIHOOD:
            metrics = by_likelihood = by_folds
            # Without a fold, its metric stays a choice; others than this were not learned for it.
            tried = tried[:1]
    without = []
    for fold in range(sample.n_folds):
        ranked = compared.ranking(fold, tried)
        if by_likelihood is not None:
            ranked = compared.with_rival(ranked, compared.best_of(fit.tried, fold), fold)
        without.append(ranked[0].candidate)
    # Weights and predictions are no choice between few things: in single precision their third and
    # fifth digits would depend on the machine, and on the units of the columns.
    best = ranking[0].candidate
    fit = compared.fit(metrics, best.strength, is_final=True)
    ranking[0] = fit.best(best.name, best.weights, (best.regularization,))
    if sample.menu.n_sources > 1:
        ranking = [*_useful_sources(compared, fit, ranking[0], without), *ranking]
    candidates = [scored.candidate for scored in ranking]
    if not must_stop_learning():
        learned, is_better = _learn_weights(
            compared, fit, ranking[0], pull, without if is_whole else []
        )
        candidates.insert(0 if is_better else 1, learned.candidate)
    for made in earlier:
        candidates.append(made.other)
        pairs = zip(without, made.without, strict=True)
        without = [own if one is None else one for own, one in pairs]
    return Selection(candidates, without, by_likelihood, logit_regularization)


def _with_logits(
    compared: FoldComparison, metrics: Sequence[Metric]
) -> tuple[FoldComparison, float | None]:
    """Return a comparison by mixtures with kernel logistic regressions, and the λ of these.

    If they are much better than the best candidate, with its kernel: then other metrics and weights
    may suit them. Else, and of targets that are not classes, the comparison itself. They are made
    fold by fold, until they are no better on the first or clearly not much better on the first few;
    λ is that of these folds, and None without any.
    """
    best = compared.ranking()[0]
    if must_stop_learning() or not compared.sample.target.n_classes:
        return compared, None
    target, folds = cast(ClassTarget, compared.sample.target), compared.sample.folds
    search = LogitSearch(target, best.candidate.regularization)
    weights, strength = [best.candidate.weights], best.candidate.strength
    compared.fit(metrics[:1], strength).add_logits(search, weights)
    lam, first = search.regularization, np.flatnonzero(folds == 0)
    if search.loss > float(target.row_weights.values[first] @ best.losses[first]):
        return compared, lam
    fit = compared.fit(metrics, strength)
    for fold in range(1, len(fit.folds)):
        fit.add_logits(search, weights, first=fold)
        losses, _ = posterior_losses(np.asarray(log_softmax(search.held_out(), axis=1)), target)
        lam, shares = search.regularization, np.where(folds <= fold, compared.shares(), 0.0)
        shares, needed = shares / shares.sum(), _MUCH_BETTER * best.losses
        if clearly_better(needed, losses, shares, target.groups, _HOPELESS):
            return compared, lam
    if not (float(shares @ losses) < shares @ needed and compared.is_better(losses, best.losses)):
        return compared, lam
    mixed = replace(compared, sample=replace(compared.sample, logit_regularization=lam))
    mixed.try_strengths(metrics)
    return mixed, lam


def _useful_sources(
    compared: FoldComparison, fit: CrossFit, start: Scored, without: list[Candidate]
) -> list[Scored]:
    """Return the average of the sources that alone predict better than a constant, if not of all.

    Better must be better than the best of so many sources of noise. With the largest λ, a weak
    source is told from noise by the direction of its predictions, whatever their size. An empty
    list if all are useful or none, or if the others are clearly better with the rest. The choice
    without a fold, by the other rows, replaces the weights in the candidate ``without`` it.
    """
    best, sample, n = start.candidate, fit.sample, fit.sample.menu.n_kernels
    constant, errors = fit.constant_errors(), []
    for source in range(n):
        predicted = fit.predictor([np.eye(n)[source]] * sample.n_folds)
        errors.append(np.sum((predicted(max(LAMBDAS)) - sample.scores) ** 2, axis=1))
    clearly = max(CLEARLY, float(np.sqrt(2.0 * np.log(n))))

    def average(fold: int | None = None) -> FloatArray:
        useful = [float(compared.is_better(e, constant, fold, clearly)) for e in errors]
        return normalize(np.array(useful))  # all of them if none is

    by_fold, whole = [average(fold) for fold in range(sample.n_folds)], average()
    if np.all(whole == best.weights):
        return []
    found = fit.best("sources", whole, compared.lambdas, best.regularization, by_fold)
    if compared.is_better(start.losses, found.losses):
        return []
    for fold, one in enumerate(without):
        if one.strength == best.strength:
            without[fold] = replace(one, weights=by_fold[fold])
    return [found]


def _learn_weights(
    compared: FoldComparison, fit: CrossFit, start: Scored, pull: float, without: list[Candidate]
) -> tuple[Scored, bool]:
    """Return learned weights from a start, and whether they are better.

    If so, weights that are learned without each fold too replace those of the candidates
    ``without`` the fold, if there are any. Weights must be clearly better. The weights of sources,
    which have less in common than kernels of the same columns, would look good by chance: there,
    those without each fold predict the rows of the fold, and any smaller loss is enough.
    """
    best, sample, by_fold = start.candidate, fit.sample, None

    def learn_without(fold: int) -> FloatArray:
        own = without[fold] if without else best
        like = replace(best, weights=own.weights) if own.strength == best.strength else best
        return fit.learn_weights(like, pull, without=fold)

    if sample.menu.n_sources > 1:
        by_fold = [learn_without(fold) for fold in range(sample.n_folds)]
    learned = fit.learn_weights(best, pull)
    found = fit.best("weights", learned, compared.lambdas, best.regularization, by_fold)
    n_errors = CLEARLY if by_fold is None else 0.0
    is_better = compared.is_better(found.losses, start.losses, n_errors=n_errors)
    if is_better:
        for fold, one in enumerate(without):
            weights = learn_without(fold) if by_fold is None else by_fold[fold]
            like = found.candidate if one.strength == best.strength else one
            without[fold] = replace(like, weights=weights)
    return found, is_better


def _try_likelihood(
    compared: FoldComparison, best: Scored, groups: Positions | None, is_whole: bool
) -> tuple[CrossFit, list[Metric]] | None:
    """Return fits with a metric by likelihood for each fold, and the metrics.

    None if on the first fold they are not clearly better than the best so far, if there is no time,
    if there are several sources, or no two columns or classes to tell apart there: of few groups,
    each class may be in one alone. Only metrics of a sample of all rows are learned from more than
    a few: they predict the rows once more.
    """
    sample, device = compared.sample, compared.device
    rows = np.flatnonzero(sample.folds == 0)
    truth, target = sample.held_out(rows)
    is_table = sample.menu.n_sources == 1 and sample.rows.shape[1] > 1
    tells = bool(target.scores.shape[1])
    if isinstance(target, ClassTarget) and target.groups is not None:
        tells &= bool((target.holders > 1).any())  # else nothing is known without a group
    if must_stop_learning() or not is_table or not tells:
        return None
    known, weights = best.candidate, uniform(sample.menu.n_kernels)

    losses, _ = row_losses(best.predicted[rows], truth, target)
    outside = [rows for rows, _ in sample.divisions()]
    learn = partial(sample.likelihood_metric, groups=groups, device=device)
    # What serves the choice alone is learned from few rows, and may be in single precision.
    learn_from_few = partial(learn, most=_MOST_TO_TRY, dtype=np.float32)

    def scored(metrics: list[Metric]) -> tuple[CrossFit, Scored]:
        fit = compared.fit(metrics, 1.0)
        return fit, fit.best(_BY_LIKELIHOOD, weights, compared.lambdas, known.regularization)

    def is_better(first: Metric) -> bool:
        found, shares = scored([first])[1].losses, target.row_weights.shares
        return clearly_better(found, losses, shares, target.groups)

    of_folds = learn if is_whole else learn_from_few
    is_dear = is_whole and len(outside[0]) > _MOST_TO_TRY
    for of_first in [learn_from_few, learn] if is_dear else [of_folds]:
        first = of_first(outside[0])
        if must_stop_learning() or not is_better(first):
            return None
    metrics = [first, *each(of_folds, outside[1:], device)]
    if must_stop_learning():
        return None  # they may have been cut short
    return scored(metrics)[0], metrics
