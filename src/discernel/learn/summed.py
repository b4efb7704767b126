"""The fit to sums of features: the choice of λ, and held-out scores of rows of the sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, Positions
from discernel.arrays.groups import Groups
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.sums import FeatureSums, SummedSystem, SumPass
from discernel.discriminant import HeldOutScores, left_out_words, row_losses
from discernel.exceptions import InvalidInputError
from discernel.kernels.features import NystromMap
from discernel.learn.survey import Survey, SurveyPass, chosen_rows, mixed
from discernel.programs.lambdas import LambdaSearch, lambda_grid, search_lambda
from discernel.programs.least_squares import LeftOutRows, center_left_out
from discernel.programs.solution import Limit
from discernel.rows.chunks import Chunk
from discernel.targets import Target, deal

#: The number of folds of groups.
_FOLDS = 5
#: Candidates for λ, relative to the normalized kernel. More rows need smaller values.
_LAMBDAS = lambda_grid(0.0, -10.0)
#: Largest relative difference between sums of the same numbers in different orders.
_SAME_WEIGHT = 1e-10
#: Memory limit, in bytes, for features of the rows that determine λ and class statistics.
_FEATURE_BYTES = 2**27


@dataclass(frozen=True, eq=False)
class GroupFolds:
    """The fold of each group: dealt for the groups of a sample, and by a hash for others.

    Attributes
    ----------
    known : ndarray of int
        The numbers of the groups of the sample, sorted.
    dealt : ndarray of int
        Their folds.
    """

    known: NDArray[np.int64]
    dealt: Positions

    @classmethod
    def of(cls, target: Target, groups: NDArray[np.int64]) -> GroupFolds:
        """Return folds of the groups of a sample, with similar shares of all classes."""
        known, first = np.unique(groups, return_index=True)
        return cls(known, deal(target.strata, _FOLDS, Groups(groups))[first])

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return int(self.dealt.max()) + 1

    def __call__(self, groups: NDArray[np.int64]) -> Positions:
        """Return the folds of groups."""
        place = np.minimum(np.searchsorted(self.known, groups), len(self.known) - 1)
        hashed = (mixed(groups.astype(np.uint64)) % np.uint64(self.n_folds)).astype(np.intp)
        return np.where(self.known[place] == groups, self.dealt[place], hashed)


@dataclass(frozen=True)
class FoldedPass:
    """Pass over chunks that sums features of the rows of each fold; a group is in one fold.

    Attributes
    ----------
    summing : SumPass
        Sums features.
    folds : GroupFolds or None
        The fold of each group; None for rows without groups, which are one fold.
    """

    summing: SumPass
    folds: GroupFolds | None

    def start(self) -> list[FeatureSums]:
        n_folds = 1 if self.folds is None else self.folds.n_folds
        return [self.summing.start() for _ in range(n_folds)]

    def add(self, state: list[FeatureSums], chunk: Chunk) -> list[FeatureSums]:
        if self.folds is None:
            return [self.summing.add(state[0], chunk)]
        if chunk.groups is None:
            raise InvalidInputError(
                "Every chunk must have groups, as the first one. Got one without."
            )
        folds = self.folds(chunk.groups)
        for fold in np.unique(folds):
            rows = chunk.part(np.flatnonzero(folds == fold))
            state[fold] = self.summing.add(state[fold], rows)
        return state

    def merge(self, state: list[FeatureSums], other: list[FeatureSums]) -> list[FeatureSums]:
        return [self.summing.merge(*both) for both in zip(state, other, strict=True)]


def add_sums(parts: Sequence[FeatureSums]) -> FeatureSums:
    """Return the sums of all rows from those of some parts, which are not changed."""
    if len(parts) == 1:
        return parts[0]
    total = deepcopy(parts[0])
    for part in parts[1:]:
        total += part
    return total


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
    parts : list of FeatureSums
        The sums over the rows of each fold; rows without groups are one fold.
    n_seen : int
        The number of rows so far, including those of weight 0.
    folds : GroupFolds or None
        The folds of groups; None for rows without groups.
    """

    survey: Survey
    surveying: SurveyPass
    features: NystromMap
    parts: list[FeatureSums]
    n_seen: int
    folds: GroupFolds | None = None

    @cached_property
    def sums(self) -> FeatureSums:
        """The sums over all rows."""
        return add_sums(self.parts)

    def check_same_rows(self) -> None:
        """Raise an error if the two passes read different rows."""
        found = self.survey.totals.compared(self.sums)
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


class StreamedFit:
    """The fit to all rows, with its predictions for some rows of the sample.

    It has the interface of `LeastSquares` that `fit_discriminant` needs:
    f(x) = Σ_j coef_j k(z_j, x) + b, with landmarks z_j.

    Parameters
    ----------
    state : StreamState
        Sums and sample of all rows.
    target : ClassTarget or RegressionTarget
        The target of the rows of the sample; classes have the class weights of all rows.
    rows : ndarray of int
        Positions of these rows in the sample.
    regularization : float or None
        λ; None for the λ with the smallest leave-one-out loss of rows that the kernel was not
        learned on: log-loss of classes, squared error of numbers.
    fallback : (HeldOutScores, float), optional
        Scores and λ to use instead if there are too few such rows.

    Attributes
    ----------
    system : SummedSystem
        The linear system of the sums.
    without : list of (FeatureSums, SummedSystem)
        The sums and systems of all rows but those of each fold; empty for rows without groups.
    regularization : float
        λ.
    regularization_at_limit : {"smallest", "largest"} or None
        Whether λ is the smallest or largest considered, so that a better one may lie beyond.
    held_out : HeldOutScores
        The rows that are held out from the learning of the kernel.
    table : ndarray of shape (n_values, n_targets)
        The matrix that turns the summed columns into target scores.
    truth : ndarray of shape (n_rows, n_targets)
        The target scores of the rows.
    weights : ndarray of shape (n_rows,)
        The weights of the rows in the sums.
    fitted : ndarray of shape (n_rows, n_targets)
        Predictions for the rows by the fit to all rows.
    leave_one_out : ndarray of shape (n_rows, n_targets)
        Predictions for the rows by fits without each of them, or without the fold of its group.
    """

    regularization_at_limit: Limit | None = None

    def __init__(
        self,
        state: StreamState,
        target: Any,
        rows: Positions,
        *,
        regularization: float | None,
        fallback: tuple[HeldOutScores, float] | None,
    ) -> None:
        sample, totals, y = state.survey.drawn, state.survey.totals, state.survey.drawn.y[rows]
        self.state, self.target, self.rows = state, target, rows
        self.system = SummedSystem(state.sums, state.features)
        self.table = totals.table(target)
        self.truth: FloatArray = totals.scores(y, self.table)
        self.weights = sample.weights[rows] * sample.decays[rows] * totals.factors_of(y)
        self.without = []
        for fold in range(0 if state.folds is None else len(state.parts)):
            others = add_sums([part for other, part in enumerate(state.parts) if other != fold])
            self.without.append((others, SummedSystem(others, state.features)))
        counted = np.flatnonzero(~sample.involved[rows])
        self.held_out, predict = self._held_out(counted), self._predictions()
        if fallback is not None:
            self.held_out, known = fallback
            regularization = known if regularization is None else regularization
        elif regularization is None:
            found = self._best(predict, counted)
            regularization = found.regularization
            self.regularization_at_limit = found.at_limit
        self.regularization = regularization
        self.fitted, self.leave_one_out = predict(regularization)

    def _held_out(self, counted: Positions) -> HeldOutScores:
        """Return the rows that are held out, with a description of how they are predicted."""
        sample, n_folds = self.state.survey.drawn, len(self.without)
        how = f"held out, {n_folds} folds of groups" if n_folds else left_out_words(self.target)
        if sample.involved.any():
            where = f"{how}, on a random sample of rows that the kernel was not learned from"
            return HeldOutScores(counted, where=where)
        if n_folds or len(self.rows) < self.state.survey.n_rows:
            return HeldOutScores(where=f"{how}, on a random sample of rows")
        return HeldOutScores(where=how)

    def _predictions(self) -> Callable[[float], tuple[FloatArray, FloatArray]]:
        """Return a function of λ that returns fitted and left-out predictions for the rows.

        Left-out predictions are those of leave-one-out or, for rows with groups, of the fits
        without the fold of each group.
        """
        features = self.state.features(self.state.survey.drawn.X[self.rows])
        if not self.without:
            sampled = self.system.sampled(features, self.weights, self.table)

            def at(regularization: float) -> tuple[FloatArray, FloatArray]:
                fitted, left = sampled(regularization)
                return fitted, self.truth - (self.truth - fitted) / left[:, None]

            return at
        folds = self._folds

        def at_folds(regularization: float) -> tuple[FloatArray, FloatArray]:
            beta, intercept = self.system.fit(self.table, regularization)
            predicted = np.empty_like(self.truth)
            for fold in range(len(self.without)):
                own, inside = self._without(fold, regularization), folds == fold
                predicted[inside] = features[inside] @ own[0] + own[1]
            return features @ beta + intercept, predicted

        return at_folds

    def _best(
        self, predict: Callable[[float], tuple[FloatArray, FloatArray]], counted: Positions
    ) -> LambdaSearch:
        """Search for the λ with the smallest left-out loss of some rows."""
        part = self.target.part(counted)
        if not part.is_complete:  # the kernel was learned on all rows of a rare class
            counted, part = np.arange(len(self.truth)), self.target

        def loss(regularization: float) -> float:
            _, predicted = predict(regularization)
            found, _ = row_losses(predicted[counted], self.truth[counted], part)
            return float(part.row_weights.means(found))

        return search_lambda(_LAMBDAS, loss)

    def _without(self, fold: int, regularization: float) -> tuple[FloatArray, FloatArray]:
        """Return the fit without a fold, with the penalty of the fit to all rows."""
        part = self.without[fold][1]
        return part.fit(self.table, regularization * self.system.unit / part.unit)

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

    def left_out_groups(self, target: Target) -> Groups | None:
        """Return `Target.left_out_groups` of the rows, told apart by their errors."""
        return target.left_out_groups(self.fitted - self.truth)

    def left_out_scores(self, groups: Groups | None) -> FloatArray:
        """Return predictions of the rows by fits without their group.

        They have the same mean as ``fitted``; see `center_left_out`.

        Parameters
        ----------
        groups : Groups or None
            Those of `left_out_groups`; None: each row is left out alone.
        """
        sums = self.state.sums
        if self.without:
            means = [part.values / part.weight for part, _ in self.without]
            shift = (sums.values / sums.weight - means) @ self.table
            return np.asarray(self.leave_one_out + shift[self._folds])
        shares = self.weights / float(sums.weight)
        left_out = self.leave_one_out
        if groups is not None:
            features, errors = self._features(self.rows), self.truth - self.fitted
            known = features, self.weights, groups, errors, self.regularization
            left_out = self.truth - self.system.errors_without(*known)
        return center_left_out(left_out, self.truth, shares, groups)

    def _features(self, rows: Positions) -> FloatArray:
        """Return the features of rows of the sample."""
        return self.state.features(self.state.survey.drawn.X[rows])

    @property
    def _groups(self) -> NDArray[np.int64]:
        """The number of the group of each row, for rows with groups."""
        groups = self.state.survey.drawn.groups
        assert groups is not None
        return groups[self.rows]

    @property
    def _folds(self) -> Positions:
        """The fold of each row, for rows with groups."""
        assert self.state.folds is not None
        return self.state.folds(self._groups)

    @property
    def row_weights(self) -> SampleWeights:
        """The relative weights of the rows of the sample."""
        found: SampleWeights = self.target.row_weights
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
        features, weights, lam = self.state.features, self.weights[chosen], self.regularization
        if self.without:
            betas = [self._without(fold, lam)[0] for fold in range(len(self.without))]
            coefs = [self.coef - features.expansion(beta) * self.system.unit for beta in betas]
            influence = np.stack([coefs[fold] for fold in self._folds[chosen]], axis=1)
            return LeftOutRows(
                chosen,
                self.leave_one_out[chosen],
                np.ones_like(self.truth[chosen]),
                influence.reshape(len(influence), -1),
                weights,
                Groups(self._groups[chosen]),
            )
        values = self._features(self.rows[chosen])
        beta, left = self.system.influence(values, weights, lam)
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
