"""Fits of classes to rows in chunks, and fits of classes to which rows are added."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discernel.arrays.groups import make_groups
from discernel.arrays.sample_weights import SampleWeights
from discernel.discriminant import (
    HeldOutScores,
    class_factors,
    discriminant_of_shares,
    fit_discriminant,
)
from discernel.exceptions import InvalidInputError
from discernel.learn.chunks import Stream, StreamLearner
from discernel.learn.held_out import held_out_scores
from discernel.learn.labels import ClassTotals, Totals, codes_of, comparable
from discernel.learn.rows import PRIOR_REQUEST, Learning
from discernel.learn.summed import StreamedFit
from discernel.learn.survey import Survey
from discernel.model import Model
from discernel.model.training import with_class_weight
from discernel.rows.chunks import Chunk, stack_rows
from discernel.rows.reader import RowReader
from discernel.targets import ClassTarget


@dataclass(frozen=True, eq=False)
class ClassStreamLearner(StreamLearner):
    """Fit a discriminant to rows in chunks, or add rows to it.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,), optional
        All class labels, including those of later rows; by default those of the rows.
    """

    classes: Any = None
    totals: ClassVar[Totals] = ClassTotals()

    def _coded(self, survey: Survey) -> Survey:
        groups = survey.drawn.groups
        together = None if groups is None else make_groups(groups)
        ClassTarget.from_labels(survey.drawn.y, groups=together)
        totals, every = survey.totals, self.classes
        if every is not None:
            codes_of(totals.classes, every)  # raises an error if a class of the rows is missing
            totals = ClassTotals(dict.fromkeys(every.tolist(), 0.0) | dict(totals.weights))
            survey = replace(survey, totals=totals)
        target = survey.target(np.arange(len(survey.drawn)))
        factors = class_factors(self.estimator.class_weight, target)
        factors = np.ones(target.n_classes) if factors is None else factors
        self.estimator._decide(target, self.run.request)
        return replace(survey, totals=replace(totals, factors=factors))

    def _target(self, survey: Survey, rows: NDArray[np.intp]) -> ClassTarget:
        """Return the classes of rows of the sample, without classes of weight 0."""
        target = with_class_weight(survey.target(rows), self.estimator.class_weight)
        return target.among(survey.totals.seen)

    def _held_out(self, learning: Learning) -> tuple[HeldOutScores, float]:
        """Return cross-fitted scores and λ of the rows that the kernel was learned on."""
        fit = learning.fit()
        held_out = held_out_scores(learning, fit)
        scores, part = held_out.of(fit, learning.target)
        return replace(held_out, scores=scores, target=part), learning.facts.learned.regularization

    def _keeps_fallback(self, fallback: HeldOutScores, target: ClassTarget) -> bool:
        """Return whether there is no new class."""
        return fallback.target is None or fallback.target.n_classes == target.n_classes

    def _fitted(self, known: Model, fit: StreamedFit) -> tuple[Model, NDArray[Any]]:
        estimator, classes = self.estimator, fit.state.survey.totals.classes
        found = fit_discriminant(fit, fit.target, estimator.statistics, fit.held_out)
        target = fit.target.among(classes)
        decision = estimator._decide(target, self.run.request)
        head = estimator._make_head(found, decision, target, fit.held_out.where)
        parts = {"coef": found.dual_coef, "intercept": found.intercept, "classes": classes}
        return replace(known, head=head, **parts), fit.target.codes

    # ---- more rows ---------------------------------------------------------------------------

    def _add_chunk(self, model: Model | None, given: Chunk, forget: float) -> Model:
        """Return the model with more rows; rows that cannot be used yet are kept in it."""
        stream = Stream() if model is None else model.stream
        state = stream.state
        classes = self.classes if model is None else model.classes
        if classes is None:
            if len(np.unique(self.totals.read(np.asarray(given.y)))) == 1:
                raise InvalidInputError(
                    "The first rows must be of two classes, or all classes must be named. Got rows "
                    f"of class {np.asarray(given.y)[:1].tolist()[0]!r}. Call partial_fit(X, y, "
                    "classes=[...])."
                )
            return self.fit_rows(given.X, given.y, given.weights, given.groups)
        classes = np.unique(np.asarray(classes))
        chunk = self._prepend_waiting(model, given, classes, forget)
        codes = codes_of(np.asarray(chunk.y), classes, "X")
        # A class needs two rows: leave-one-out must leave one of them.
        ready = np.bincount(codes, chunk.row_weights > 0, minlength=len(classes)) >= 2
        if state is not None:
            ready[np.isin(classes, state.survey.totals.seen)] = True
        if state is None and np.count_nonzero(ready) < 2:
            copied = chunk.part(np.arange(chunk.n_rows))  # independent of the user's arrays
            name = type(self.estimator).__name__
            reader = RowReader(name, []).with_columns(given.X) if model is None else model.reader
            return self._waiting_model(reader, classes, copied)
        now, later = (chunk.part(np.flatnonzero(ready[codes] == each)) for each in (True, False))
        waiting = later if later.n_rows else None
        if model is None or state is None:
            learner = replace(self, classes=classes)
            found = learner.fit_rows(now.X, now.y, now.weights, now.groups)
            return replace(found, stream=replace(found.stream, waiting=waiting))
        if not now.n_rows:
            return replace(model, stream=replace(stream, waiting=waiting))
        return self._add_to_sums(model, state, now, forget, waiting)

    def _prepend_waiting(
        self, model: Model | None, given: Chunk, classes: NDArray[Any], forget: float
    ) -> Chunk:
        """Return waiting rows and new rows as one chunk, or raise a clear error."""
        waiting: Chunk | None = None if model is None else model.stream.waiting
        if waiting is None:
            return given
        codes_of(np.asarray(given.y), classes, "X")
        if (waiting.groups is None) != (given.groups is None):
            raise InvalidInputError(
                "Either all calls of partial_fit have groups, or none. Got some without. Pass "
                "groups in every call, or in none."
            )
        y = [comparable(np.asarray(chunk.y)) for chunk in (waiting, given)]
        weights = np.concatenate([forget * waiting.row_weights, given.row_weights])
        unweighted = waiting.weights is given.weights is None and forget == 1.0
        return replace(
            given,
            X=stack_rows([waiting.X, given.X]),
            y=np.concatenate(y),
            weights=None if unweighted else weights,
            groups=None
            if waiting.groups is None or given.groups is None
            else np.concatenate([waiting.groups, given.groups]),
        )

    def _waiting_model(self, reader: RowReader, classes: NDArray[Any], chunk: Chunk) -> Model:
        """Return a model that predicts class frequencies, until two classes have two rows."""
        estimator = self.estimator
        weights = chunk.row_weights
        counted = np.flatnonzero(weights)
        if not len(counted):
            raise InvalidInputError("Some rows must have a weight above 0. Got none.")
        codes = codes_of(np.asarray(chunk.y), classes)[counted]
        target = ClassTarget(classes, codes, SampleWeights.of(weights[counted]))
        target = with_class_weight(target, estimator.class_weight)
        decision = estimator._decide(target, PRIOR_REQUEST)
        head = estimator._make_head(discriminant_of_shares(target), decision, target, None)
        none = (np.empty((0, 0)), np.empty(0))
        return Model(reader, None, *none, head, classes, stream=Stream(waiting=chunk))
