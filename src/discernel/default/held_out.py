"""Held-out scores: the scores of each row by a kernel and a fit that have not seen its label.

The rows are divided into folds. For the rows of a fold, the kernel is learned from the other folds,
and the fit with this kernel is to all rows but the row itself or, with up to 10,000 rows, but a
twentieth of every class. So nothing that predicts a row knows its label, and every fit has almost
as many rows as that of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from discernel.arrays import FloatArray
from discernel.bank import Bank
from discernel.criteria import GivenWeights, LeastSquares, Uniform
from discernel.default.logits import LogitSearch
from discernel.default.propose import Proposal
from discernel.default.sample import Positions
from discernel.kernels import Kernel
from discernel.programs.simplex import normalize
from discernel.programs.solution import Candidate, LearnedKernel
from discernel.progress.deadline import must_stop_learning
from discernel.targets import Target, deal_folds

#: The number of folds up to so many rows. Of more, half of the rows are predicted by what was
#: learned from some of the other half.
_FOLDS = {600: 5, 2000: 3}
_FEW, _MOST_TO_LEARN_FROM = max(_FOLDS), 1000
#: Of more targets with weights of their own there are fewer folds.
_MOST_TARGETS, _FEW_FOLDS = 100, 3
#: A search on a part of the rows takes no fewer; with a search on all of 480 rows in each of five
#: folds, 600 rows took the time of eight fits.
_FEWEST_SEARCHED = 300
#: No division by less.
_TINY = 1e-300


class Refit(NamedTuple):
    """Weights and λ, learned from some of the rows, and the kernels on all of them."""

    bank: Bank
    weights: FloatArray
    regularization: float


@dataclass(frozen=True)
class Relearner:
    """Repeats the learning of a model on some of the rows.

    Attributes
    ----------
    target : Target
        What is to be predicted.
    request : Request
        What is learned, and how.
    learn : callable
        From a bank, a target and a request to a `LearnedKernel`.
    bank : Bank
        The kernels of the model.
    weights : ndarray of shape (n_kernels,)
        Their weights.
    regularization : float
        Its λ.
    proposal : Proposal or None
        Where the kernels come from; None where they were given.
    X : array-like
        The training rows.
    bank_of : callable
        From kernels to a bank of them on all rows.
    """

    target: Target
    request: Any
    learn: Callable[[Bank, Target, Any], LearnedKernel]
    bank: Bank
    weights: FloatArray
    regularization: float
    proposal: Proposal | None
    X: Any
    bank_of: Callable[[list[Kernel]], Bank]

    @property
    def learns(self) -> bool:
        """Whether anything that has seen labels has to be learned anew."""
        n = self.target.n_samples
        chooses_lambda = self.request.given_regularization is None and n <= _FEW
        if self.proposal is not None:
            chosen = self.proposal.chosen
            if chosen.strength == 0 and chosen.name == "average" and must_stop_learning():
                return False  # nothing was learned in the time there was
            if n <= _FEW or chosen.strength > 0:
                return True
        if self.request.criterion.name == GivenWeights.name:
            return False
        return self._learns_weights or chooses_lambda

    @property
    def _learns_weights(self) -> bool:
        """Whether weights of given kernels depend on labels."""
        known = (GivenWeights.name, Uniform.name)
        return self.bank.n_kernels > 1 and self.request.criterion.name not in known

    @property
    def learned_rows(self) -> Positions:
        """The rows whose labels had a part in the kernel."""
        n, proposal = self.target.n_samples, self.proposal
        if proposal is not None:
            return proposal.dependent
        return np.arange(n if self._learns_weights else 0)

    def without(self, fold: int, outside: Positions) -> tuple[Refit, ...]:
        """Learn from the rows outside of a fold.

        Two kernels where λ or the strength of the metric was chosen too: with the choice of these
        rows, which is what predicts, and with that of the model, which has the units of its scores.
        """
        proposal = self.proposal
        if proposal is None:
            return self._relearned(self.bank, outside)
        metric = proposal.metric_without(fold, self.X, self.target, outside)
        chosen = proposal.chosen
        own = proposal.selection.without[fold] if proposal.is_whole else chosen

        def bank_with(one: Candidate) -> Bank:
            is_model = proposal.is_whole and one.kernel_options == chosen.kernel_options
            if is_model and one.strength == 0 and self.bank.has_matrices:
                return self.bank  # its kernels have seen no labels
            return self.bank_of(proposal.kernels_of(one, metric, self.X))

        is_same = own.kernel_options == chosen.kernel_options
        if not self.request.leaves_choice:
            found = self._relearned(bank_with(own), outside)
            return (
                found if is_same else (found[0], *self._relearned(bank_with(chosen), outside)[-1:])
            )
        is_same = is_same and own.regularization == chosen.regularization
        refits = []
        for one in [own] if is_same else [own, chosen]:
            bank = bank_with(one)
            lam = self.regularization * (one.regularization / chosen.regularization)
            refits.append(Refit(bank, normalize(one.weights[bank.kept]), lam))
        return tuple(refits)

    def _relearned(self, bank: Bank, outside: Positions) -> tuple[Refit, ...]:
        target = self.target.subset(outside)
        if not target.scores.shape[1]:
            # The only row of the other class is in the fold: it counts as wrong, whatever is done.
            return (Refit(self.bank, self.weights, self.regularization),)
        # The candidates of a part of the rows are the kernels of the bank.
        request = replace(self.request, criterion=self.request.criterion.on_bank(bank))
        if self.target.n_samples > request.few:  # searched on a part of the rows, as the model was
            request = replace(request, few=min(request.few, _FEWEST_SEARCHED))
        learned = self.learn(bank.subset(outside), target, request)
        found = Refit(bank, learned.own_weights, learned.own_regularization)
        if np.array_equal(found.regularization, self.regularization):
            return (found,)
        like_model = found._replace(regularization=self.regularization)
        return (found, like_model) if self.target.n_samples <= _FEW else (like_model,)


def predict_independent(
    logits: LogitSearch, bank: Bank, weights: FloatArray, fitted: FloatArray, rows: Positions
) -> None:
    """Predict rows whose labels had no part in the kernel, in folds, by regressions of the others.

    Parameters
    ----------
    logits : LogitSearch
        Predicts the rows.
    bank : Bank
        The kernels of the model.
    weights : ndarray of shape (n_kernels,)
        Their weights.
    fitted : ndarray of shape (n_samples, n_targets)
        The predictions of the model, by which rows are told apart.
    rows : ndarray of int
        The rows.
    """
    part = logits.target.part(rows)
    folds = deal_folds(fitted[rows], part.strata, _FOLDS[_FEW], part.groups)
    for fold in range(int(folds.max()) + 1):
        logits.add(bank, weights, rows[folds == fold])


def cross_fitted_scores(
    relearner: Relearner, fit: LeastSquares, logits: LogitSearch | None = None
) -> tuple[FloatArray, Positions]:
    """Return the held-out score of each row, and its fold; rows of fold -1 have none.

    Parameters
    ----------
    relearner : Relearner
        Learns kernels without each fold.
    fit : LeastSquares
        The fit of the model, by which rows are told apart.
    logits : LogitSearch, optional
        Predicts the rows of each fold too, with the kernel that was learned without it.
    """
    target, proposal, rng = relearner.target, relearner.proposal, np.random.RandomState(0)
    fitted = relearner.request.criterion.least_squares
    n, few = target.n_samples, target.n_samples <= _FEW
    if proposal is not None and proposal.is_whole:
        folds = proposal.sample.folds[np.argsort(proposal.sample.positions)]
    else:
        n_folds = next((k for most, k in _FOLDS.items() if n <= most), 2)
        if relearner.request.criterion.by_target and target.scores.shape[1] > _MOST_TARGETS:
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
        refits = relearner.without(fold, outside)
        fits = (fitted(bank, weights, target, lam) for bank, weights, lam in refits)
        if target.predicts_scores:
            scores[inside] = next(fits).leave_one_out[inside]
        else:
            own, *like_model = [fit.left_out_scores(groups)[inside] for fit in fits]
            for other in like_model:
                own *= float(np.linalg.norm(other)) / max(float(np.linalg.norm(own)), _TINY)
            scores[inside] = own
        if logits is not None:
            logits.add(refits[0].bank, refits[0].weights, inside)
    return scores, folds
