"""A fit with a time limit: a stage that is certain to be in time, and more while time is left."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from discernel.arrays.sample_weights import check_sample_weight
from discernel.default import Proposal
from discernel.model import Model
from discernel.plan import (
    FIRST_STAGE_ROWS,
    FitPlan,
    Problem,
    Stage,
    forecast_rest,
    parse_duration,
    plan_stages,
)
from discernel.progress.deadline import (
    Clock,
    Deadline,
    OutOfTimeError,
    active_deadline,
    keep_deadline,
)
from discernel.targets import ClassTarget

Given = tuple[Any, Any, Any]

#: Forecasts may be too low by a factor of two. A stage whose forecast is no more than the first
#: share of the time that is left is sure to be in time; one of the second leaves time for a whole
#: that takes half of what is left.
_SURE, _SECURED = 0.5, 0.25
#: Once a stage has shown how good forecasts are, or where none is sure, the share is this; that of
#: the whole is larger, because with twice its time it should not be missed for a smaller stage.
_SHARE, _WHOLE_SHARE = 0.7, 1.25
#: Where no stage is in time, one is tried up to this multiple of the time that is left, and the
#: whole up to twice as much: forecasts may be too high, and a stage that does not end in time costs
#: only time that there is.
_HOPE = 1.5
#: The share of the time that a first pass over rows in chunks may take; the rows that it has read
#: then stand for all.
_READING = 0.4
#: Forecasts are taken to be wrong by no more than this factor.
_MOST_WRONG = 5.0
#: The share of the time left that may be reserved for what follows learning. Forecasts may be too
#: high: 2,000 rows on a busy machine ended with 2 s to spare after a choice that was cut short.
_RESERVED = 0.5
#: Forecasts from which on the time that was taken says how good forecasts are, in seconds.
_TELLING = 0.3


def fit_in_stages(estimator: Any, given: Given, setting: Any) -> Model:
    """Return the model of a fit, in stages where the estimator has a time limit.

    Parameters
    ----------
    estimator : BaseKernelEstimator
        What is fitted.
    given : tuple
        Rows, labels and weights.
    setting : Setting
        How it asks to be fitted.
    """
    seconds = parse_duration(estimator.max_time)
    if seconds is None:
        with keep_deadline():  # it may be a part of another fit
            return cast(Model, estimator._fit_model(*given, setting))
    return StagedFit(estimator, setting, seconds, estimator._clock).fit(*given)


class StagedFit:
    """One fit of an estimator, which is not changed, in stages within some seconds of a clock.

    Attributes
    ----------
    n_rows : int
        All rows that count.
    survey : object
        What the first pass over rows in chunks found; None for rows in memory.
    problem : Problem or None
        The whole fit; None before the first stage.
    stage : Stage or None
        The present stage.
    """

    def __init__(self, estimator: Any, setting: Any, seconds: float, clock: Clock) -> None:
        self.seconds, self.n_rows, self.survey = seconds, 0, None
        self._estimator, self._given_setting, self._clock = estimator, setting, clock
        self._setting = replace(setting, stages=self)
        self._deadline = Deadline.after(seconds, clock)
        self.problem: Problem | None = None
        self.stage: Stage | None = None
        self._stages: list[Stage] = []
        self._is_cut = False
        self._proposals: dict[int, Proposal] = {}
        self._ran: list[Stage] = []
        #: The time that stages take over their forecasts.
        self._ratio = 1.0

    # ---- what a stage asks for ---------------------------------------------------------------

    def begin(self, problem: Problem) -> Stage:
        """Plan the stages of a fit, and return the first."""
        most = None if self.survey is None else len(self.survey[1].drawn.y)
        self.problem, self._stages = problem, plan_stages(problem, most)
        self.stage = self._stages[0]
        return self.stage

    def proposal(self, n_rows: int, propose: Callable[[], Proposal]) -> Proposal:
        """Return what an earlier stage chose from the same rows, or choose.

        The choice is kept if there was time for all of it.
        """
        learns = self.stage is not None and self.stage.learns
        found = self._proposals.get(n_rows) if learns else None
        if found is None:
            found = propose()
            if learns and not active_deadline().cut.is_set():
                self._proposals[n_rows] = found
        return found

    # ---- the stages --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any) -> Model:
        """Return the model of the last stage that was in time."""
        whole: Given = self._estimator._open_rows(X, y, sample_weight, self._setting)
        whole, held_out_loss = self._survey(whole), self._estimator._held_out_loss
        kept = self._run(None, whole)
        while kept is not None and (stage := self._next()) is not None:
            found = self._run(stage, whole)
            if found is None:
                break
            loss, before = held_out_loss(found[0]), held_out_loss(kept[0])
            is_worse = loss is not None and before is not None and loss > before
            if stage is self._stages[-1] or not is_worse:
                kept = found
        if kept is None:  # what is wrong with the rows is said by the fit to all of them
            return cast(Model, self._estimator._fit_model(*whole, self._given_setting))
        for each in kept[1]:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
        facts = replace(kept[0].facts, plan=FitPlan(tuple(self._ran), self.seconds))
        return replace(kept[0], facts=facts)

    def _survey(self, whole: Given) -> Given:
        """Have a first pass over rows in chunks, and return the rows that are to be learned from.

        Where that takes too long, a second pass would too: these are then a sample of the rows
        that were read.
        """
        share = Deadline.after(_READING * self.seconds, self._clock)
        with keep_deadline(share):
            self.survey = self._estimator._survey_rows(whole[0], self._setting)
        if self.survey is None or share.left >= 0:
            return whole
        sample, self.survey, self._is_cut = self.survey[1].drawn, None, True
        return sample.X, sample.y, sample.weights

    def _next(self) -> Stage | None:
        """Return the stage that is run next; None where there is time for none.

        The whole, where it is sure to be in time. Else a smaller stage comes first, so that a whole
        that is not in time after all does not cost the time of all others.
        """
        problem = self.problem
        if problem is None or self.stage is None or self.stage is self._stages[-1]:
            return None
        left = self._deadline.left / self._ratio
        *others, whole = self._stages[self._stages.index(self.stage) + 1 :]
        is_secured = self.stage is not self._stages[0]
        tries: list[tuple[float, list[Stage]]] = [
            (_WHOLE_SHARE if is_secured else _SURE, [whole]),
            (_SHARE if is_secured else _SECURED, others[::-1]),
            (_SHARE, others),
            (_HOPE, [whole]),
            (_HOPE, others),
            (2.0 * _HOPE, [whole]),
        ]
        for share, stages in tries:
            for stage in stages:
                is_chosen = stage.learns and stage.n_rows in self._proposals
                seconds = forecast_rest(problem, stage) if is_chosen else stage.seconds
                if seconds <= share * left:
                    return stage
        return None

    def _run(self, stage: Stage | None, whole: Given) -> tuple[Model, list[Any]] | None:
        """Return the fit of a stage and its warnings; None where it is out of time.

        Of the first, which is not planned yet, with equal weights; None where rows have an error.
        """
        start, setting, problem = self._clock(), self._setting, self.problem
        n, deadline = FIRST_STAGE_ROWS, Deadline(np.inf, self._clock, learns=False)
        if stage is None:
            setting = replace(setting, request=replace(setting.request, callback=None))
        else:
            assert problem is not None
            self.stage, n, rest = stage, stage.n_rows, self._ratio * forecast_rest(problem, stage)
            rate = np.inf
            if problem.device is None:
                rate = problem.speed("here").factorisation(stage.rank or n) / self._ratio
            reserve = min(rest, _RESERVED * self._deadline.left)
            deadline = replace(self._deadline, reserve=reserve, rate=rate, learns=stage.learns)
        found = None
        try:
            with (
                warnings.catch_warnings(record=True, action="always") as heard,
                keep_deadline(deadline),
            ):
                given = self._some_rows(whole, n)
                found = self._estimator._fit_model(*given, setting), heard
        except OutOfTimeError:
            pass
        except (ValueError, TypeError):
            if stage is not None:
                raise
            return None
        self._note(self._clock() - start, finished=found is not None, cut=deadline.cut.is_set())
        return found

    def _note(self, taken: float, *, finished: bool, cut: bool) -> None:
        """Note what was run, and how good its forecast was."""
        stage = self.stage
        if stage is None:
            return
        is_whole = stage is self._stages[-1] and not self._is_cut and not cut
        ran = replace(stage, seconds=taken, forecast=stage.seconds)
        self._ran.append(replace(ran, finished=finished, is_whole=is_whole))
        if finished and len(self._ran) > 1 and stage.seconds >= _TELLING:
            self._ratio = min(max(taken / stage.seconds, 1.0 / _MOST_WRONG), _MOST_WRONG)

    # ---- some of the rows --------------------------------------------------------------------

    def _some_rows(self, whole: Given, n: int) -> Given:
        """Return the rows of a stage: others have weight 0; of rows in chunks, some of a sample."""
        if self.survey is not None:
            sample, self.n_rows = self.survey[1].drawn, self.survey[1].n_rows
            if self.stage is not None and n >= self.n_rows:
                return whole
            rows = self._drawn(sample.y, n)
            return _safe_indexing(sample.X, rows), sample.y[rows], sample.weights[rows]
        X, y, sample_weight = whole
        weights = np.ones(_num_samples(X))
        if sample_weight is not None:
            weights = check_sample_weight(sample_weight, len(weights))
        present = np.flatnonzero(weights)
        self.n_rows = len(present)
        if n >= len(present):
            return whole
        drawn = present[self._drawn(np.asarray(_safe_indexing(y, present)), n)]
        kept = np.zeros(len(weights))
        kept[drawn] = weights[drawn]
        return X, y, kept

    def _drawn(self, y: NDArray[Any], n: int) -> NDArray[np.intp]:
        """Return the positions of some rows, with a share of every class."""
        if n >= len(y):
            return np.arange(len(y))
        random_state = self._setting.request.random_state
        rng = check_random_state(0 if random_state is None else copy(random_state))
        if y.ndim == 1 and not is_regressor(self._estimator):
            return ClassTarget.from_labels(y).draw(n / len(y), rng)
        return np.sort(rng.permutation(len(y))[:n])
