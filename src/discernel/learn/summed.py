"""From what two passes found to the fit: λ, and honest scores of rows of the sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.sums import FeatureSums, SummedSystem
from discernel.criteria import LeftOutRows
from discernel.discriminant import HeldOutScores, row_losses
from discernel.exceptions import InvalidInputError
from discernel.kernels.features import NystromMap
from discernel.learn.survey import Positions, Survey, SurveyPass, chosen_rows
from discernel.programs.lambdas import LambdaSearch, lambda_grid, search_lambda
from discernel.programs.least_squares import center_left_out
from discernel.programs.solution import Limit
from discernel.targets import ClassTarget

#: λ to choose from, falling, in units of the normalised kernel: more rows want less.
_LAMBDAS = lambda_grid(0.0, -10.0)
#: How far sums of the same weights in another order may differ, relatively.
_SAME_WEIGHT = 1e-10
#: Bytes of the features of the rows that λ and class statistics are taken from.
_FEATURE_BYTES = 2**27


@dataclass(frozen=True, eq=False)
class StreamState:
    """Sums and a sample of the rows that a model has seen; new rows are added to them.

    Attributes
    ----------
    survey : Survey
        Class sizes and the sample, its rows as the kernels take them.
    surveying : SurveyPass
        How the sample is drawn.
    features : NystromMap
        From rows to features.
    sums : FeatureSums
        The sums over all rows.
    classes : ndarray of shape (n_classes,)
        All labels that there may be, sorted.
    factors : ndarray of shape (n_classes,)
        What rows of each class weigh more.
    n_seen : int
        How many rows there were, those of weight 0 too.
    """

    survey: Survey
    surveying: SurveyPass
    features: NystromMap
    sums: FeatureSums
    classes: NDArray[Any]
    factors: FloatArray
    n_seen: int

    def check_same_rows(self) -> None:
        """Raise an error where the sums are of other rows than the survey."""
        weights = dict(zip(self.classes.tolist(), self.sums.values / self.factors, strict=True))
        counts = {"rows": (self.survey.n_rows, self.sums.n_rows)} | {
            f"rows of class {label!r}": (self.survey.labels.get(label, 0.0), weight)
            for label, weight in weights.items()
        }
        for what, (first, second) in counts.items():
            if not np.isclose(first, second, rtol=_SAME_WEIGHT, atol=0.0):
                raise InvalidInputError(
                    f"Rows must be the same in both passes of a fit. Got {first:,.12g} {what} in "
                    f"the first and {second:,.12g} in the second. Do not change files during a "
                    "fit; a function that returns chunks must return the same rows in every call."
                )


@dataclass(frozen=True, eq=False)
class StreamedFit:
    """The fit to all rows, as far as it is known: on rows of the sample.

    It has what `fit_discriminant` asks of a `LeastSquares`: f(x) = Σ_j coef_j k(z_j, x) + b, with
    z_j the landmarks.

    Attributes
    ----------
    state : StreamState
        What the fit was made of.
    system : SummedSystem
        What it was solved with.
    regularization : float
        λ.
    regularization_at_limit : {"smallest", "largest"} or None
        Whether a better λ may lie beyond those considered.
    target : ClassTarget
        The classes of the rows of the sample, which weigh as much as those of all rows.
    honest : HeldOutScores
        Which of them had no part in the metric.
    rows : ndarray of int
        Their positions in the sample.
    table : ndarray of shape (n_all_classes, n_targets)
        What the scores of each class should be.
    truth : ndarray of shape (n_rows, n_targets)
        What the scores of the rows should be.
    weights : ndarray of shape (n_rows,)
        What the rows weigh in the sums.
    fitted : ndarray of shape (n_rows, n_targets)
        Their predictions by the fit to all rows.
    left : ndarray of shape (n_rows,)
        The share of the error of each row that is left where the row has a part in the fit.
    """

    state: StreamState
    system: SummedSystem
    regularization: float
    regularization_at_limit: Limit | None
    target: ClassTarget
    honest: HeldOutScores
    rows: Positions
    table: FloatArray
    truth: FloatArray
    weights: FloatArray
    fitted: FloatArray
    left: FloatArray

    @cached_property
    def _solution(self) -> tuple[FloatArray, FloatArray]:
        """The coefficients of features, and the constants."""
        return self.system.fit(self.table, self.regularization)

    @cached_property
    def coef(self) -> FloatArray:
        """The expansion of f in the landmarks, of shape (rank, n_targets)."""
        return self.state.features.expansion(self._solution[0]) * self.system.unit

    @property
    def intercept(self) -> FloatArray:
        """The constants b."""
        return self._solution[1]

    @cached_property
    def leave_one_out(self) -> FloatArray:
        """The prediction for each row of the sample of the fit to all other rows."""
        return self.truth - (self.truth - self.fitted) / self.left[:, None]

    @cached_property
    def left_out_scores(self) -> FloatArray:
        """The same in the units of ``fitted``; see `center_left_out`."""
        shares = self.weights / float(self.state.sums.weight)
        return center_left_out(self.leave_one_out, self.truth, shares)

    @property
    def sample_weights(self) -> SampleWeights | None:
        """The weights of the rows of the sample, relative to each other."""
        return self.target.sample_weights

    @property
    def ridge(self) -> FloatArray:
        """The ridge of each row."""
        return np.asarray(self.regularization * (1.0 / self.target.row_weights.values))

    @property
    def penalty(self) -> FloatArray:
        """‖f‖² between all pairs of targets, for a sample instead of all rows."""
        # A share of all rows: where the sample stands for them, it has so much of the penalty.
        share = self.target.total / self.system.weight
        return self.system.penalty(self.table, self.regularization) * share

    def left_out(self, chosen: Positions) -> LeftOutRows:
        """Return the fits without each of some rows of the sample.

        Parameters
        ----------
        chosen : ndarray of int
            Which of the rows that the fit is known on.
        """
        features, weights = self.state.features, self.weights[chosen]
        values = features(self.state.survey.drawn.X[self.rows[chosen]])
        beta, left = self.system.influence(values, weights, self.regularization)
        errors = (self.truth - self.fitted)[chosen] / left[:, None]
        influence = features.expansion(beta) * self.system.unit
        return LeftOutRows(chosen, self.truth[chosen] - errors, errors, influence, weights)


def statistics_rows(state: StreamState) -> Positions:
    """Return the rows of the sample that λ and class statistics are taken from.

    Those that had no part in the metric, and of classes without such rows others.
    """
    sample, room = state.survey.drawn, _FEATURE_BYTES // (8 * state.features.rank)
    # Rows with a part in the metric come last, whatever their keys are.
    return chosen_rows(sample.keys + np.where(sample.involved, 1e300, 0.0), sample.y, room)


def fit_stream(
    state: StreamState,
    target: ClassTarget,
    rows: Positions,
    *,
    regularization: float | None,
    fallback: tuple[HeldOutScores, float] | None,
) -> StreamedFit:
    """Return the fit to all rows.

    Parameters
    ----------
    state : StreamState
        What is known of them.
    target : ClassTarget
        The classes of the rows of the sample that are looked at.
    rows : ndarray of int
        Their positions in the sample.
    regularization : float or None
        λ; None for that with the least leave-one-out log-loss of rows that had no part in the
        metric.
    fallback : (HeldOutScores, float), optional
        Scores and λ where there are too few such rows.
    """
    sample, system = state.survey.drawn, SummedSystem(state.sums, state.features)
    table = np.zeros((len(state.classes), target.n_classes - 1))
    table[np.searchsorted(state.classes, target.classes)] = target.class_scores
    codes = np.searchsorted(state.classes, target.classes)[target.codes]
    summed = sample.weights[rows] * sample.decays[rows] * state.factors[codes]
    at = system.sampled(state.features(sample.X[rows]), summed, table)
    truth = table[codes]
    counted = np.flatnonzero(~sample.involved[rows])
    honest = HeldOutScores()
    if sample.involved.any():
        where = "leave-one-out on a random sample of rows that the kernel was not learned from"
        honest = HeldOutScores(counted, where=where)
    elif len(rows) < state.survey.n_rows:
        honest = HeldOutScores(where="leave-one-out on a random sample of rows")
    at_limit: Limit | None = None
    if fallback is not None:
        honest, instead = fallback
        chosen = instead if regularization is None else regularization
    elif regularization is None:
        found = _best(at, truth, target, counted)
        chosen, at_limit = found.regularization, found.at_limit
    else:
        chosen = regularization
    known = (state, system, chosen, at_limit, target, honest, rows)
    return StreamedFit(*known, table, truth, summed, *at(chosen))


def _best(
    at: Callable[[float], tuple[FloatArray, FloatArray]],
    truth: FloatArray,
    target: ClassTarget,
    counted: Positions,
) -> LambdaSearch:
    """Search the λ with the least leave-one-out log-loss of some rows."""
    part = target.part(counted)
    if not part.counts.all():  # a class so rare that all of its rows were looked at
        counted, part = np.arange(len(truth)), target
    shares = None if part.sample_weights is None else part.sample_weights.shares

    def loss(regularization: float) -> float:
        fitted, left = at(regularization)
        predicted = truth - (truth - fitted) / left[:, None]
        found, _ = row_losses(predicted[counted], truth[counted], part)
        return float(np.average(found, weights=shares))

    return search_lambda(_LAMBDAS, loss)
