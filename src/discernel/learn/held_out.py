"""Held-out scores: the scores of each row by a kernel and a fit that have not seen its label.

The rows are divided into folds. For the rows of a fold, the kernel is learned from the other folds,
and the fit with this kernel is to all rows but the row itself or, with up to 10,000 rows, but a
twentieth of every class. So nothing that predicts a row knows its label, and every fit has almost
as many rows as that of the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discernel.arrays import FloatArray
from discernel.bank import Bank
from discernel.default.logits import LogitSearch
from discernel.default.sample import Positions
from discernel.programs.least_squares import LeastSquares
from discernel.targets import deal_folds

if TYPE_CHECKING:
    from discernel.learn.rows import Learning

#: The number of folds up to so many rows. Of more, half of the rows are predicted by what was
#: learned from some of the other half.
_FOLDS = {600: 5, 2000: 3}
FEW_ROWS, _MOST_TO_LEARN_FROM = max(_FOLDS), 1000
#: Of more targets with weights of their own there are fewer folds.
_MOST_TARGETS, _FEW_FOLDS = 100, 3
#: A search on a part of the rows takes no fewer; with a search on all of 480 rows in each of five
#: folds, 600 rows took the time of eight fits.
FEWEST_SEARCHED = 300
#: No division by less.
_TINY = 1e-300


class Refit(NamedTuple):
    """Weights and λ, learned from some of the rows, and the kernels on all of them."""

    bank: Bank
    weights: FloatArray
    regularization: float


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
    folds = deal_folds(fitted[rows], part.strata, _FOLDS[FEW_ROWS], part.groups)
    for fold in range(int(folds.max()) + 1):
        logits.add(kernel, rows[folds == fold])


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
    n, few = target.n_samples, target.n_samples <= FEW_ROWS
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
        refits = learning.without(fold, outside)
        fits = (
            criterion.least_squares(bank, weights, target, lam) for bank, weights, lam in refits
        )
        if target.predicts_scores:
            scores[inside] = next(fits).leave_one_out[inside]
        else:
            own, *like_model = [fit.left_out_scores(groups)[inside] for fit in fits]
            for other in like_model:
                own *= float(np.linalg.norm(other)) / max(float(np.linalg.norm(own)), _TINY)
            scores[inside] = own
        if logits is not None:
            logits.add(refits[0].bank.combined(refits[0].weights), inside)
    return scores, folds
