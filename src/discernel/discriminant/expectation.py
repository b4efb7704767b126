"""The performance to expect on new rows, from held-out rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from discernel.arrays import FloatArray
from discernel.discriminant.decision import Decision
from discernel.discriminant.gaussian import Discriminant
from discernel.discriminant.links import LEAST_LOG
from discernel.exceptions import InvalidInputError


@dataclass(frozen=True)
class Expectation:
    """What to expect of new rows, from rows that were predicted without their labels.

    Links and their weights are those of other folds. A row, or a group, that is a class of its own
    counts as wrong: without it there is no such class.

    Attributes
    ----------
    accuracy : float
        The share of rows whose class was right.
    low, high : float
        An interval of 95 % for it: Wilson's with the effective number of rows (Σω)²/Σω², a tenth
        wider. If rows have groups, with the effective number of groups, (Σω)²/Σ_g ω_g² with ω_g the
        weight of a group: as if the rows of a group were all right or all wrong. If they vary
        within groups, the interval is wider than it must be.
    log_loss : float
        Minus the mean logarithm of the probability of the right class.
    n_rows : int
        The number of rows.
    where : str
        How they were predicted.
    """

    accuracy: float
    low: float
    high: float
    log_loss: float
    n_rows: int
    where: str

    @classmethod
    def of(cls, discriminant: Discriminant, decision: Decision, where: str) -> Expectation:
        """Return the expectation of what a discriminant and a decision say of their own rows."""
        codes, weights = discriminant.training_codes, discriminant.training.row_weights
        posterior = held_out_log_posterior(discriminant, decision)
        right = (posterior + decision.offsets).argmax(axis=1) == codes
        accuracy = float(np.average(right, weights=weights.values))
        low, high = _interval(accuracy, discriminant.training.effective)
        own = posterior[np.arange(len(codes)), codes]
        # A class with a single row is unknown to the other folds; the row is not infinitely wrong.
        own = np.where(np.isinf(own), LEAST_LOG, own)
        loss = max(0.0, -float(np.average(own, weights=weights.values)))  # and not -0
        return cls(accuracy, low, high, loss, len(codes), where)

    def __repr__(self) -> str:
        return (
            f"accuracy {self.accuracy:.1%} ({self.low:.1%} to {self.high:.1%}), log-loss "
            f"{self.log_loss:z.3f}, on {self.n_rows:,} rows: {self.where}"
        )


def held_out_log_posterior(discriminant: Discriminant, decision: Decision) -> FloatArray:
    """Return log p(class | x) of the rows that statistics are of, without these rows.

    All that makes a probability was learned from the other folds.
    """
    if discriminant.class_scores is None:
        raise InvalidInputError(
            "Held-out rows must have been predicted to say what to expect of new ones. Got the "
            "statistics of training rows. Fit with statistics='loo'."
        )
    found = np.zeros((len(discriminant.training_codes), len(decision.priors)))  # of one class
    if discriminant.mixture is not None:
        found = discriminant.mixture.held_out
    return np.asarray(log_softmax(found + decision.log_priors, axis=1))


def _interval(share: float, n: float) -> tuple[float, float]:
    """Return an interval of 95 % for a share of n rows: Wilson's, a tenth wider.

    Held-out rows share most of the rows that they are predicted from, so they are not independent:
    over 36 tables, Wilson's interval covers 91 to 95 %.
    """
    z2 = (1.1 * 1.96) ** 2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))
