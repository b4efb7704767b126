"""Fits of numbers to rows in chunks, and fits of numbers to which rows are added."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discernel.discriminant import HeldOutNumbers, HeldOutScores
from discernel.exceptions import InvalidInputError
from discernel.learn.chunks import StreamLearner
from discernel.learn.held_out import held_out_scores
from discernel.learn.labels import NumberTotals, Totals
from discernel.learn.rows import Learning
from discernel.learn.summed import StreamedFit
from discernel.learn.survey import Survey
from discernel.model import Model
from discernel.rows.chunks import Chunk
from discernel.targets import RegressionTarget


@dataclass(frozen=True, eq=False)
class NumberStreamLearner(StreamLearner):
    """Fit a ridge regression to rows in chunks, or add rows to it."""

    totals: ClassVar[Totals] = NumberTotals()

    def _coded(self, survey: Survey) -> Survey:
        if not survey.totals.varies:
            raise InvalidInputError(
                "Every target must vary over the rows. Got the same number in all of them. Leave "
                "this target out; for partial_fit, pass more rows in the first call."
            )
        target, request = self._target(survey, np.arange(len(survey.drawn))), self.run.request
        request.criterion.check_target(target, request.regularization)
        return replace(survey, totals=replace(survey.totals, origin=survey.totals.mean))

    def _target(self, survey: Survey, rows: NDArray[np.intp]) -> RegressionTarget:
        found: RegressionTarget = survey.target(rows)
        return found

    def _held_out(self, learning: Learning) -> tuple[HeldOutScores, float]:
        """Return cross-fitted numbers and λ of the rows that the kernel was learned on."""
        target, fit = learning.target, learning.fit(learning.target.weighted_values)
        held_out = held_out_scores(learning, fit)
        rows = np.arange(target.n_samples) if held_out.rows is None else held_out.rows
        predicted = fit.leave_one_out[rows]
        if held_out.scores is not None:
            predicted = target.in_units(held_out.scores)
        found = replace(held_out, rows=rows, scores=predicted, target=target.subset(rows))
        return found, learning.facts.learned.regularization

    def _fitted(self, known: Model, fit: StreamedFit) -> tuple[Model, NDArray[Any]]:
        origin, units = fit.state.survey.totals.origin, fit.target.units
        y, held = fit.state.survey.drawn.y, fit.held_out
        rows = np.arange(len(fit.rows))
        if held.target is None and held.rows is not None and len(held.rows) > 1:
            rows = held.rows
        left_out = fit.leave_one_out[rows] * units + origin
        target = fit.target.subset(rows) if held.target is None else held.target
        predicted = left_out if held.scores is None else held.scores
        groups = None if target.groups is None else target.groups.codes
        numbers = HeldOutNumbers(
            target.values,
            predicted,
            np.ones_like(predicted),
            target.row_weights.values,
            held.where,
            groups,
        )
        has_columns = y.ndim == 2
        head = self.estimator._make_stream_head(left_out, numbers, has_columns=has_columns)
        coef, intercept = fit.coef * units, fit.intercept * units + origin
        return replace(known, head=head, coef=coef, intercept=intercept), fit.truth

    def _add_chunk(self, model: Model | None, given: Chunk, forget: float) -> Model:
        if model is None:
            n_counted = np.count_nonzero(given.row_weights)
            if n_counted < 2:
                raise InvalidInputError(
                    "The first call of partial_fit learns the kernel from its rows alone, which "
                    f"takes at least 2 rows with a weight above 0. Got {n_counted}. Pass more rows "
                    "in the first call, if possible some thousands; later ones may have one row."
                )
            return self.fit_rows(given.X, given.y, given.weights, given.groups)
        return self._add_to_sums(model, model.stream.state, given, forget)
