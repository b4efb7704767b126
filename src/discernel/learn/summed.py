"""The fit to sums of features: the choice of λ, and held-out scores of rows of the sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discernel.arrays import FloatArray
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.sums import FeatureSums, SummedSystem
from discernel.criteria import LeftOutRows
from discernel.discriminant import HeldOutScores, row_losses
from discernel.exceptions import InvalidInputError
from discernel.kernels.features import NystromMap
from discernel.learn.labels import Positions
from discernel.learn.survey import Survey, SurveyPass, chosen_rows
from discernel.programs.lambdas import LambdaSearch, lambda_grid, search_lambda
from discernel.programs.least_squares import center_left_out
from discernel.programs.solution import Limit
from discernel.targets import ClassTarget, RegressionTarget

#: Candidates for λ, relative to the normalized kernel. More rows need smaller values.
_LAMBDAS = lambda_grid(0.0, -10.0)
#: Largest relative difference between sums of the same numbers in different orders.
_SAME_WEIGHT = 1e-10
#: Memory limit, in bytes, for features of the rows that determine λ and class statistics.
_FEATURE_BYTES = 2**27


@dataclass(frozen=True, eq=False)
class StreamState:
    """Sums and a sample of all rows of a model, to which new rows are added.

    Attributes
    ----------
    survey : Survey
        Totals of y and the sample, with encoded rows.
    surveying : SurveyPass
        The pass that draws the sample.
    features : NystromMap
        The feature map.
    sums : FeatureSums
        The sums over all rows.
    coding : Coding
        The columns that stand for y in the sums.
    n_seen : int
        The number of rows so far, including those of weight 0.
    """

    survey: Survey
    surveying: SurveyPass
    features: NystromMap
    sums: FeatureSums
    coding: Any
    n_seen: int

    def check_same_rows(self) -> None:
        """Raise an error if the two passes read different rows."""
        found = self.coding.totals(self.survey.totals, self.sums)
        for what, first, second, unit in [
            ("rows", self.survey.n_rows, self.sums.n_rows, 0.0),
            *found,
        ]:
            if not np.isclose(first, second, rtol=_SAME_WEIGHT, atol=_SAME_WEIGHT * unit):
                raise InvalidInputError(
                    f"Rows must be the same in both passes of a fit. Got {first:,.12g} {what} in "
                    f"the first and {second:,.12g} in the second. Do not change files during a "
                    "fit; a function that returns chunks must return the same rows in every call."
                )


@dataclass(frozen=True, eq=False)
class StreamedFit:
    """The fit to all rows, with its predictions for some rows of the sample.

    It has the interface of `LeastSquares` that `fit_discriminant` needs:
    f(x) = Σ_j coef_j k(z_j, x) + b, with landmarks z_j.

    Attributes
    ----------
    state : StreamState
        Sums and sample.
    system : SummedSystem
        The linear system of the sums.
    regularization : float
        λ.
    regularization_at_limit : {"smallest", "largest"} or None
        Whether λ is the smallest or largest considered, so that a better one may lie beyond.
    target : ClassTarget or RegressionTarget
        The target of the rows of the sample; classes have the class weights of all rows.
    held_out : HeldOutScores
        The rows that are held out from the learning of the kernel.
    rows : ndarray of int
        Positions of the rows in the sample.
    table : ndarray of shape (n_values, n_targets)
        The matrix that turns the summed columns into target scores.
    truth : ndarray of shape (n_rows, n_targets)
        The target scores of the rows.
    weights : ndarray of shape (n_rows,)
        The weights of the rows in the sums.
    fitted : ndarray of shape (n_rows, n_targets)
        Predictions for the rows by the fit to all rows.
    left : ndarray of shape (n_rows,)
        The residual of each row divided by its leave-one-out error.
    """

    state: StreamState
    system: SummedSystem
    regularization: float
    regularization_at_limit: Limit | None
    target: Any
    held_out: HeldOutScores
    rows: Positions
    table: FloatArray
    truth: FloatArray
    weights: FloatArray
    fitted: FloatArray
    left: FloatArray

    @cached_property
    def _solution(self) -> tuple[FloatArray, FloatArray]:
        """The coefficients of the features, and the intercepts."""
        return self.system.fit(self.table, self.regularization)

    @cached_property
    def coef(self) -> FloatArray:
        """The coefficients of the landmarks, of shape (rank, n_targets)."""
        return self.state.features.expansion(self._solution[0]) * self.system.unit

    @property
    def intercept(self) -> FloatArray:
        """The intercepts b."""
        return self._solution[1]

    @cached_property
    def leave_one_out(self) -> FloatArray:
        """The leave-one-out prediction for each row of the sample."""
        return self.truth - (self.truth - self.fitted) / self.left[:, None]

    @cached_property
    def left_out_scores(self) -> FloatArray:
        """Leave-one-out predictions with the same mean as ``fitted``; see `center_left_out`."""
        shares = self.weights / float(self.state.sums.weight)
        return center_left_out(self.leave_one_out, self.truth, shares)

    @property
    def sample_weights(self) -> SampleWeights | None:
        """The relative weights of the rows of the sample."""
        found: SampleWeights | None = self.target.sample_weights
        return found

    @property
    def ridge(self) -> FloatArray:
        """The ridge of each row."""
        return np.asarray(self.regularization * (1.0 / self.target.row_weights.values))

    @property
    def penalty(self) -> FloatArray:
        """‖f‖², the matrix of inner products of targets, scaled from all rows to the sample."""
        # The sample replaces all rows in the statistics, so it gets its share of the penalty.
        share = self.target.row_weights.total / self.system.weight
        return np.asarray(self.system.penalty(self.table, self.regularization) * share)

    def left_out(self, chosen: Positions) -> LeftOutRows:
        """Return the leave-one-out fits without each of some rows of the sample.

        Parameters
        ----------
        chosen : ndarray of int
            Positions in ``rows``.
        """
        features, weights = self.state.features, self.weights[chosen]
        values = features(self.state.survey.drawn.X[self.rows[chosen]])
        beta, left = self.system.influence(values, weights, self.regularization)
        errors = (self.truth - self.fitted)[chosen] / left[:, None]
        influence = features.expansion(beta) * self.system.unit
        return LeftOutRows(chosen, self.truth[chosen] - errors, errors, influence, weights)


def statistics_rows(state: StreamState) -> Positions:
    """Return the rows of the sample that determine λ and held-out scores.

    Rows that the kernel was not learned on are preferred.
    """
    sample, most = state.survey.drawn, _FEATURE_BYTES // (8 * state.features.rank)
    # Rows that the kernel was learned on come last, whatever their keys are.
    strata = state.survey.totals.strata(sample.y)
    return chosen_rows(sample.keys + np.where(sample.involved, 1e300, 0.0), strata, most)


def fit_stream(
    state: StreamState,
    target: ClassTarget | RegressionTarget,
    rows: Positions,
    *,
    regularization: float | None,
    fallback: tuple[HeldOutScores, float] | None,
) -> StreamedFit:
    """Return the fit to all rows.

    Parameters
    ----------
    state : StreamState
        Sums and sample of all rows.
    target : ClassTarget or RegressionTarget
        The target of some rows of the sample.
    rows : ndarray of int
        Positions of these rows in the sample.
    regularization : float or None
        λ; None for the λ with the smallest leave-one-out loss of rows that the kernel was not
        learned on: log-loss of classes, squared error of numbers.
    fallback : (HeldOutScores, float), optional
        Scores and λ to use instead if there are too few such rows.
    """
    sample, system = state.survey.drawn, SummedSystem(state.sums, state.features)
    table, y = state.coding.table(target), sample.y[rows]
    summed = sample.weights[rows] * sample.decays[rows] * state.coding.factors_of(y)
    at = system.sampled(state.features(sample.X[rows]), summed, table)
    truth = state.coding.scores(y, table)
    counted = np.flatnonzero(~sample.involved[rows])
    held_out = HeldOutScores()
    if sample.involved.any():
        where = "leave-one-out on a random sample of rows that the kernel was not learned from"
        held_out = HeldOutScores(counted, where=where)
    elif len(rows) < state.survey.n_rows:
        held_out = HeldOutScores(where="leave-one-out on a random sample of rows")
    at_limit: Limit | None = None
    if fallback is not None:
        held_out, instead = fallback
        chosen = instead if regularization is None else regularization
    elif regularization is None:
        found = _best(at, truth, target, counted)
        chosen, at_limit = found.regularization, found.at_limit
    else:
        chosen = regularization
    known = (state, system, chosen, at_limit, target, held_out, rows)
    return StreamedFit(*known, table, truth, summed, *at(chosen))


def _best(
    at: Callable[[float], tuple[FloatArray, FloatArray]],
    truth: FloatArray,
    target: ClassTarget | RegressionTarget,
    counted: Positions,
) -> LambdaSearch:
    """Search for the λ with the smallest leave-one-out loss of some rows."""
    part = target.part(counted)
    if not part.is_complete:  # the kernel was learned on all rows of a rare class
        counted, part = np.arange(len(truth)), target
    shares = None if part.sample_weights is None else part.sample_weights.shares

    def loss(regularization: float) -> float:
        fitted, left = at(regularization)
        predicted = truth - (truth - fitted) / left[:, None]
        found, _ = row_losses(predicted[counted], truth[counted], part)
        return float(np.average(found, weights=shares))

    return search_lambda(_LAMBDAS, loss)
