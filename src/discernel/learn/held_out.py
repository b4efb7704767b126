"""Held-out scores: the scores of each row by a kernel and a fit that have not seen its label.

The rows are divided into folds. For the rows of a fold, the kernel is learned from the other folds,
and the fit with this kernel is to all rows but the row itself or, with up to 10,000 rows, but a
twentieth of every class. So nothing that predicts a row knows its label, and every fit has almost
as many rows as that of the model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from discernel.arrays import ALMOST_ZERO, FloatArray, Positions, n_rows
from discernel.bank import Bank
from discernel.default import LogitSearch
from discernel.discriminant import HeldOutScores, left_out_words
from discernel.learn import learn_part
from discernel.learn.rows import Learning, bank_of_rows, shift_kernels
from discernel.plan import bank_of_folds
from discernel.programs.least_squares import LeastSquares
from discernel.programs.simplex import normalize
from discernel.programs.solution import Candidate
from discernel.programs.uniform import GivenWeights
from discernel.progress import phase
from discernel.progress.deadline import must_stop_learning
from discernel.targets import deal_folds

#: The number of folds up to so many rows. Of more, half of the rows are predicted by what was
#: learned from some of the other half.
_FOLDS = {600: 5, 2000: 3}
_FEW_ROWS, _MOST_TO_LEARN_FROM = max(_FOLDS), 1000
#: Of more targets with weights of their own there are fewer folds.
_MOST_TARGETS, _FEW_FOLDS = 100, 3
#: A search on a part of the rows takes no fewer; with a search on all of 480 rows in each of five
#: folds, 600 rows took the time of eight fits.
_FEWEST_SEARCHED = 300


class Refit(NamedTuple):
    """Weights and λ, learned from some of the rows, and the kernels on all of them."""

    bank: Bank
    weights: FloatArray
    regularization: float


def held_out_scores(learning: Learning, fit: LeastSquares) -> HeldOutScores:
    """Return scores of rows whose labels neither the kernel nor the fit has seen.

    If the model may have a kernel logistic regression of the classes, it is fitted too.

    Parameters
    ----------
    learning : Learning
        The learned kernel.
    fit : LeastSquares
        The fit of the target.
    """
    proposal, target = learning.proposal, learning.target
    phase("scoring held-out rows")
    groups = target.groups
    if not _must_relearn(learning):
        return HeldOutScores(where=left_out_words(target))
    search = _logit_search(learning)
    if proposal is not None and len(proposal.dependent):
        rows = proposal.independent(np.arange(target.n_samples))
        if len(rows):
            n_held = None if groups is None else len(groups.subset(rows))
            where = left_out_words(target, n_held, "column scales were")
            return _with_logits(HeldOutScores(rows, where=where), learning, fit, search)
    scores, folds = cross_fitted_scores(learning, fit, search)
    rows, n_folds = np.flatnonzero(folds >= 0), int(folds.max()) + 1
    where = f"held out, {n_folds} folds" if n_folds > 1 else "held out, half of the rows"
    if groups is not None:
        where = f"held out, {n_folds} folds of {len(groups):,} groups"
        if n_folds == 1:
            where = f"held out, {len(groups.subset(rows)):,} of {len(groups):,} groups"
    regression = None
    if search is not None:
        regression = search.fit(learning.bank.combined(learning.weights))
    return HeldOutScores(rows, scores[rows], where=where, logistic=regression)


def _must_relearn(learning: Learning) -> bool:
    """Return whether anything that has seen labels has to be learned anew without some rows."""
    n, request = learning.target.n_samples, learning.request
    chooses_lambda = request.given_regularization is None and n <= _FEW_ROWS
    if learning.proposal is not None:
        chosen = learning.proposal.chosen
        if chosen.strength == 0 and chosen.name == "average" and must_stop_learning():
            return False  # nothing was learned in the time there was
        if n <= _FEW_ROWS or chosen.strength > 0:
            return True
    if request.criterion.name == GivenWeights.name:
        return False
    return learning.learns_weights or chooses_lambda


# ---- kernel logistic regression ----------------------------------------------------------------


def _logit_search(learning: Learning) -> LogitSearch | None:
    """Return a search for a kernel logistic regression; None if the model has none.

    With the kernels or the criterion of the default, if predictions are made with the kernel
    matrix of few rows, and if there is time.
    """
    proposal, n = learning.proposal, learning.target.n_samples
    is_default = proposal is not None or learning.request.leaves_choice
    is_few = n <= LogitSearch.most_rows
    if not (learning.run.fits_logits and is_default and learning.bank.is_exact and is_few):
        return None
    if must_stop_learning():
        return None
    known = None if proposal is None else proposal.logit_start(n)
    return LogitSearch(learning.target, learning.facts.learned.regularization, known)


def _with_logits(
    held_out: HeldOutScores, learning: Learning, fit: LeastSquares, search: LogitSearch | None
) -> HeldOutScores:
    """Return leave-one-out scores of some rows with their logits, if there are any."""
    if search is None:
        return held_out
    rows, kernel = held_out.counted(learning.target), learning.bank.combined(learning.weights)
    predict_independent(search, kernel, fit.fitted, rows)
    found = search.fit(kernel)
    if found is None:
        return held_out
    return replace(held_out, logistic=found._replace(held_out=found.held_out[rows]))


def predict_independent(
    logits: LogitSearch, kernel: FloatArray, fitted: FloatArray, rows: Positions
) -> None:
    """Predict rows whose labels had no part in the kernel, in folds, by regressions of the others.

    Parameters
    ----------
    logits : LogitSearch
        Predicts the rows.
    kernel : ndarray of shape (n_samples, n_samples)
        The kernel of the model, as in `LogitSearch.add`.
    fitted : ndarray of shape (n_samples, n_targets)
        The predictions of the model, by which rows are told apart.
    rows : ndarray of int
        The rows.
    """
    part = logits.target.part(rows)
    folds = deal_folds(fitted[rows], part.strata, _FOLDS[_FEW_ROWS], part.groups)
    for fold in range(int(folds.max()) + 1):
        logits.add(kernel, rows[folds == fold])


# ---- without some of the rows ------------------------------------------------------------------


def cross_fitted_scores(
    learning: Learning, fit: LeastSquares, logits: LogitSearch | None = None
) -> tuple[FloatArray, Positions]:
    """Return the held-out score of each row, and its fold; rows of fold -1 have none.

    Parameters
    ----------
    learning : Learning
        The learned kernel, which is learned again without each fold.
    fit : LeastSquares
        The fit of the model, by which rows are told apart.
    logits : LogitSearch, optional
        Predicts the rows of each fold too, with the kernel that was learned without it.
    """
    target, proposal, rng = learning.target, learning.proposal, np.random.RandomState(0)
    criterion = learning.request.criterion
    n, few = target.n_samples, target.n_samples <= _FEW_ROWS
    if proposal is not None and proposal.is_whole:
        folds = proposal.sample.folds[np.argsort(proposal.sample.positions)]
    else:
        n_folds = next((k for most, k in _FOLDS.items() if n <= most), 2)
        if criterion.by_target and target.scores.shape[1] > _MOST_TARGETS:
            n_folds = min(n_folds, _FEW_FOLDS)
        folds = deal_folds(fit.fitted, target.strata, n_folds, target.groups)
        folds = folds if few else -folds  # one half is predicted, from the other
    scores = np.zeros_like(target.scores)
    groups = None if target.predicts_scores else fit.left_out_groups(target)
    for fold in range(int(folds.max()) + 1):
        outside, inside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if not few and len(outside) > _MOST_TO_LEARN_FROM:
            share = _MOST_TO_LEARN_FROM / len(outside)
            outside = outside[target.subset(outside).draw(share, rng)]
        refits = learned_without(learning, fold, outside)
        fits = (
            criterion.least_squares(bank, weights, target, lam) for bank, weights, lam in refits
        )
        if target.predicts_scores:
            scores[inside] = next(fits).leave_one_out[inside]
        else:
            own, *like_model = [fit.left_out_scores(groups)[inside] for fit in fits]
            for other in like_model:
                own *= float(np.linalg.norm(other)) / max(float(np.linalg.norm(own)), ALMOST_ZERO)
            scores[inside] = own
        if logits is not None:
            logits.add(refits[0].bank.combined(refits[0].weights), inside)
    return scores, folds


def learned_without(learning: Learning, fold: int, outside: Positions) -> tuple[Refit, ...]:
    """Learn from the rows outside of a fold.

    Two kernels where λ or the strength of the metric was chosen too: with the choice of these
    rows, which is what predicts, and with that of the model, which has the units of its scores.
    """
    proposal, request, X = learning.proposal, learning.request, learning.training.X
    if proposal is None:
        return _relearned(learning, learning.bank, outside)
    metric = proposal.metric_without(fold, X, learning.target, outside)
    chosen = proposal.chosen
    own = proposal.selection.without[fold] if proposal.is_whole else chosen

    def bank_with(one: Candidate) -> Bank:
        is_model = proposal.is_whole and one.kernel_options == chosen.kernel_options
        if is_model and one.strength == 0 and learning.bank.is_exact:
            return learning.bank  # its kernels have seen no labels
        run = learning.run
        kind = bank_of_folds(run.stage, n_rows(X), one_sum=request.leaves_choice)
        near = shift_kernels(proposal.kernels_of(one, metric, X), X, request)
        return bank_of_rows(run, X, near, learning.target, request, exact=kind)[0]

    is_same = own.kernel_options == chosen.kernel_options
    if not request.leaves_choice:
        found = _relearned(learning, bank_with(own), outside)
        if is_same:
            return found
        return found[0], *_relearned(learning, bank_with(chosen), outside)[-1:]
    is_same = is_same and own.regularization == chosen.regularization
    refits = []
    for one in [own] if is_same else [own, chosen]:
        bank, factor = bank_with(one), one.regularization / chosen.regularization
        lam = learning.facts.learned.own_regularization * factor
        refits.append(Refit(bank, normalize(one.weights[bank.kept]), lam))
    return tuple(refits)


def _relearned(learning: Learning, bank: Bank, outside: Positions) -> tuple[Refit, ...]:
    """Learn weights of the kernels of a bank, and λ, from the rows outside of a fold."""
    n_samples, lam = learning.target.n_samples, learning.facts.learned.own_regularization
    target = learning.target.subset(outside)
    if not target.scores.shape[1]:
        # The only row of the other class is in the fold: it counts as wrong, whatever is done.
        return (Refit(learning.bank, learning.weights, lam),)
    part = bank.subset(outside)
    if not part.n_kernels:  # no kernel varies on these rows, so there is nothing to learn
        equal = np.full((*learning.weights.shape[:-1], bank.n_kernels), 1.0 / bank.n_kernels)
        return (Refit(bank, equal, lam),)
    # The candidates of a part of the rows are the kernels of the bank.
    request = replace(learning.request, criterion=learning.request.criterion.on_bank(bank))
    if n_samples > request.few:  # searched on a part of the rows, as the model was
        request = replace(request, few=min(request.few, _FEWEST_SEARCHED))
    learned = learn_part(part, target, request)
    found = Refit(bank, learned.own_weights, learned.own_regularization)
    if np.array_equal(found.regularization, lam):
        return (found,)
    like_model = found._replace(regularization=lam)
    return (found, like_model) if n_samples <= _FEW_ROWS else (like_model,)
