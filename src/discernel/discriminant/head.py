"""Heads: from the scores of a model to its predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from discernel.arrays import ALMOST_ZERO, FloatArray
from discernel.discriminant.conformal import conformal_quantile
from discernel.discriminant.decision import Decision
from discernel.discriminant.expectation import Expectation, held_out_log_posterior
from discernel.discriminant.gaussian import Discriminant, logarithms
from discernel.targets import ClassTarget

#: Below this no logarithm of a probability counts, as in scikit-learn's ``log_loss``.
_LEAST_LOSS_LOG = float(np.log(np.finfo(np.float64).eps))


class Head:
    """From fitted scores to predictions. Each head overrides what it supports."""

    def linear_scores(
        self, coef: FloatArray, intercept: FloatArray
    ) -> tuple[FloatArray, FloatArray, NDArray[np.bool_] | None] | None:
        """Return explained scores as linear in the terms of a row: slopes and constants.

        With them comes which classes the scores are of, None for numbers. None in place of all
        three: such scores cannot be explained.
        """
        return None

    def row_losses(self, labels: Any) -> Callable[[FloatArray], FloatArray]:
        """Return a function of the scores of rows with these labels: the loss of each row."""
        raise NotImplementedError

    @property
    def link_weights(self) -> Mapping[str, float]:
        """The weights of the links that probabilities are made with, by name; empty for none."""
        return {}

    def class_counts(self) -> NDArray[np.intp]:
        """Return the training rows of each class; empty where a row has no single class."""
        return np.zeros(0, dtype=np.intp)

    def confusion(self) -> FloatArray:
        """Return held-out rows by true and predicted class; empty where none was held out."""
        return np.zeros((0, 0))

    @property
    def n_rows(self) -> int | None:
        """The number of training rows; None where `class_counts` or nothing says it."""
        return None

    @property
    def expected(self) -> Any:
        """The performance to expect on new rows; None if unknown."""
        return None


@dataclass(frozen=True, eq=False)
class ClassHead(Head):
    """From fitted scores to probabilities and classes.

    Attributes
    ----------
    discriminant : Discriminant
        From scores to log-posteriors, of all classes that there may be.
    decision : Decision
        From these to a class.
    n_components : int
        The coordinates that are shown.
    expected : Expectation or None
        What to expect of new rows; None where no row was predicted without its label.
    threshold : float or None
        The probability from which on the second class is predicted, where it was chosen.
    """

    discriminant: Discriminant
    decision: Decision
    n_components: int
    expected: Expectation | None = None
    threshold: float | None = None

    @classmethod
    def of(
        cls,
        discriminant: Discriminant,
        decision: Decision,
        target: ClassTarget,
        n_components: int,
        where: str | None,
        *,
        chooses: bool = False,
    ) -> ClassHead:
        """Return the head for all classes of a target, from the discriminant of those with rows.

        ``where`` says how rows were predicted without their labels, None that none was; ``chooses``
        that a threshold is to be chosen.
        """
        discriminant, threshold = discriminant.among(target), None
        if chooses:
            threshold = decision.choose_threshold(discriminant)
            decision = decision.with_threshold(threshold)
        expected = None if where is None else Expectation.of(discriminant, decision, where)
        shown = min(n_components, len(discriminant.explained))
        return cls(discriminant, decision, shown, expected, threshold)

    @property
    def link_weights(self) -> Mapping[str, float]:
        mixture = self.discriminant.mixture
        return {"gaussian": 1.0} if mixture is None else mixture.weights

    @property
    def explained(self) -> FloatArray:
        """The share of the variance between the classes along each coordinate that is shown."""
        return self.discriminant.explained[: self.n_components]

    def coordinates(self, scores: FloatArray) -> FloatArray:
        """Return the discriminant coordinates that are shown."""
        return self.discriminant.coordinates(scores)[:, : self.n_components]

    def least_probabilities(self, coverage: float, *, per_class: bool) -> FloatArray:
        """Return the logarithm of the probability from which on each class is in a prediction set.

        Scores are minus the held-out log-posterior of the true class, which has the order of
        1 − p; limits are those of `conformal_quantile`, of all rows or of those of each class, by
        the scores of `_exchanged_scores` for this class.

        Parameters
        ----------
        coverage : float
            The share of new rows whose class is in their set.
        per_class : bool
            Whether it is that of the rows of every class.
        """
        scores = _exchanged_scores(self.discriminant, self.decision)
        training = self.discriminant.training
        weights, groups = training.row_weights.values, training.groups

        def limit(code: int) -> float:
            rows = np.flatnonzero(training.codes == code) if per_class else np.arange(len(scores))
            some = None if groups is None else groups.subset(rows)
            return conformal_quantile(scores[rows, code], coverage, weights[rows], some)

        return -np.array([limit(code) for code in range(scores.shape[1])])

    def linear_scores(
        self, coef: FloatArray, intercept: FloatArray
    ) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """Return log-posteriors with costs as linear in what scores are: slopes and constants.

        Of the classes that have rows, and which these are.
        """
        (slopes, constants), decision = self.discriminant.linear, self.decision
        seen = decision.priors > 0
        constant = intercept @ slopes + constants + decision.log_priors + decision.offsets
        return coef @ slopes[:, seen], constant[seen], seen

    def class_counts(self) -> NDArray[np.intp]:
        n_classes = len(self.decision.priors)
        return np.bincount(self.discriminant.training_codes, minlength=n_classes)

    def confusion(self) -> FloatArray:
        if self.expected is None:
            return super().confusion()
        found, n_classes = self.discriminant, len(self.decision.priors)
        posterior = held_out_log_posterior(found, self.decision)
        predicted = (posterior + self.decision.offsets).argmax(axis=1)
        table = np.zeros((n_classes, n_classes))
        np.add.at(table, (found.training_codes, predicted), found.training.row_weights.values)
        return table

    def row_losses(self, labels: NDArray[Any]) -> Callable[[FloatArray], FloatArray]:
        """Return a function of the least-squares scores of rows: the log-loss of each.

        Without the kernel logistic regression, whose fit without a row has no closed form.
        """
        rows, found = np.arange(len(labels)), self.discriminant
        link = found.linear if found.mixture is None else found.mixture.score_link

        def loss(scores: FloatArray) -> FloatArray:
            told = log_softmax(link.log_likelihood(scores) + self.decision.log_priors, axis=1)
            return np.asarray(-np.maximum(told[rows, labels], _LEAST_LOSS_LOG))

        return loss


def _exchanged_scores(discriminant: Discriminant, decision: Decision) -> FloatArray:
    """Return minus the held-out log-posterior of the right class, for each class of a new row.

    Of shape (n_rows, n_classes). If the priors are the shares of the classes, the right class of a
    training row is counted in them, that of a new row is not: where a class has many rows by
    chance, many rows have too high a probability of their class. Rows and a new row are compared
    alike if the new row takes the place of the held-out row, or of its group, in the shares.

    Notes
    -----
    With p the probabilities of a row, π the shares, ω_c the weight of its group in class c, as a
    share, and ω their sum, the exchange for a row of class y multiplies the priors by
    1 − ω_c/π_c, and adds ω/π_y to this factor for c = y.
    """
    posterior, target = held_out_log_posterior(discriminant, decision), discriminant.training
    rows, codes = np.arange(len(posterior)), target.codes
    own = -posterior[rows, codes][:, None]
    if not np.allclose(decision.priors, target.shares):
        return np.broadcast_to(own, posterior.shape)
    every, shares = np.arange(target.n_classes), np.maximum(target.shares, ALMOST_ZERO)
    lost = target.row_weights.shares[:, None] * (codes[:, None] == every)
    if target.groups is not None:
        lost = target.groups.sums(lost)[target.groups.numbers]
    probabilities, added = np.exp(posterior), lost.sum(axis=1, keepdims=True) / shares
    kept = 1.0 - lost / shares
    factors = kept[rows, codes][:, None] + added * (codes[:, None] == every)
    totals = np.sum(probabilities * kept, axis=1, keepdims=True) + added * probabilities
    return np.asarray(
        own + logarithms(np.maximum(totals, ALMOST_ZERO)) - logarithms(np.maximum(factors, 0.0))
    )
