"""Held-out scores: of each row, by a kernel and a fit that have not seen its label.

The rows are divided into folds. For the rows of a fold, the kernel is learned from the other folds,
and the fit with this kernel is to all rows but one. So nothing that predicts a row knows its label,
and every fit has one row less than that of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discernel.backend import FloatArray
from discernel.bank import Bank
from discernel.criteria import KernelLeastSquares, LeastSquares
from discernel.crossfit.propose import CrossFitted, Proposal, fold_metric, scaled_kernels
from discernel.crossfit.sample import Positions
from discernel.kernels import Kernel
from discernel.learners import Request, learn_part
from discernel.targets import ClassTarget, Target, deal_folds

__all__ = ["Relearner", "cross_fitted_scores"]

#: Up to this many rows there are five folds, learned from all rows of the others. Of more, half of
#: the rows are predicted by what was learned from some of the other half.
_FEW, _FOLDS, _MOST_TO_LEARN_FROM = 2000, 5, 1500


@dataclass(frozen=True)
class Relearner:
    """Learns from some of the rows what the model has learned from all of them.

    Attributes
    ----------
    target : Target
        What is to be predicted.
    request : Request
        What is learned, and how.
    bank : Bank
        The kernels of the model.
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
    request: Request
    bank: Bank
    regularization: float
    proposal: Proposal | None
    X: Any
    bank_of: Callable[[list[Kernel]], Bank]

    @property
    def folds(self) -> Positions | None:
        """The folds of the proposal, where it has all rows."""
        if self.proposal is None or len(self.proposal.sample.positions) < self.target.n_samples:
            return None
        folds = np.empty(self.target.n_samples, dtype=np.intp)
        folds[self.proposal.sample.positions] = self.proposal.sample.folds
        return folds

    @property
    def learns(self) -> bool:
        """Whether anything that has seen labels has to be learned anew."""
        n, given = self.target.n_samples, isinstance(self.request.regularization, float)
        chooses_lambda = not given and n <= _FEW
        if self.proposal is not None and (n <= _FEW or self.proposal.chosen.strength > 0):
            return True
        learns_weights = self.bank.n_kernels > 1 and self.request.criterion.name != "uniform"
        return learns_weights or chooses_lambda

    def __call__(self, fold: int, outside: Positions) -> tuple[Bank, FloatArray, float]:
        """Return a bank of all rows, weights and λ, learned from the rows outside of a fold."""
        bank, proposal = self.bank, self.proposal
        if proposal is not None:
            one = proposal.without[fold] if self.folds is not None else proposal.chosen
            metric = fold_metric(proposal, self.X, proposal.spreads, self.target, fold, outside)
            scales, rows = metric.of_strength(one.strength), proposal.sample.rows
            bank = self.bank_of(scaled_kernels(scales, proposal.spreads, rows))
            if isinstance(self.request.solver, CrossFitted):
                weights = one.weights[bank.kept]
                ratio = one.regularization / proposal.chosen.regularization
                return bank, weights / weights.sum(), self.regularization * ratio
        part = bank.subset(outside)
        learned = learn_part(part, self.target.subset(outside), self.request)
        return bank, learned.weights, learned.regularization


def cross_fitted_scores(relearner: Relearner, fit: LeastSquares) -> tuple[FloatArray, Positions]:
    """Return the held-out score of each row, and its fold; rows of fold -1 have none.

    Parameters
    ----------
    relearner : Relearner
        Learns from some of the rows.
    fit : LeastSquares
        The fit of the model, by which rows are told apart.
    """
    target, folds, rng = relearner.target, relearner.folds, np.random.RandomState(0)
    n, few = target.n_samples, target.n_samples <= _FEW
    if folds is None:
        codes = target.codes if isinstance(target, ClassTarget) else np.zeros(n, dtype=np.intp)
        folds = deal_folds(fit.fitted, codes, _FOLDS if few else 2)
        folds = folds if few else -folds  # one half is predicted, from the other
    scores = np.zeros_like(target.scores)
    for fold in range(int(folds.max()) + 1):
        outside, inside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if not few and len(outside) > _MOST_TO_LEARN_FROM:
            share = _MOST_TO_LEARN_FROM / len(outside)
            outside = outside[target.subset(outside).draw(share, rng)]
        bank, weights, lam = relearner(fold, outside)
        ridge = relearner.request.criterion.sample_ridge(target, lam)
        system = bank.system(weights, ridge)
        other = KernelLeastSquares(system, ridge, target.scores, target.sample_weights)
        scores[inside] = other.left_out_scores[inside]
    return scores, folds
