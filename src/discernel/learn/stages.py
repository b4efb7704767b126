"""A fit of an estimator, in the stages of its plan."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from discernel.arrays import Device, blas_threads, one_blas_thread
from discernel.arrays.groups import make_groups
from discernel.arrays.sample_weights import check_sample_weight
from discernel.bank import read_choice
from discernel.default import Proposal, menu_kernels, propose_kernels
from discernel.exceptions import (
    InvalidInputError,
    LongFitWarning,
    caller_stacklevel,
)
from discernel.kernels.make import learns_scales
from discernel.learn.request import Request
from discernel.model import Model
from discernel.model.training import TrainingRows
from discernel.plan import (
    FIRST_STAGE_ROWS,
    FitPlan,
    Problem,
    Stage,
    forecast_rest,
    plan_fit,
)
from discernel.programs.loo import Auto
from discernel.progress import in_words, reporting
from discernel.progress.deadline import (
    Deadline,
    OutOfTimeError,
    active_deadline,
    keep_deadline,
)
from discernel.rows.groups import group_codes, group_labels
from discernel.targets import ClassTarget, Target

#: Rows, labels, sample weights and groups; a `Source` contains all of them.
Given = tuple[Any, Any, Any, Any]

#: Fits with a longer forecast, in seconds, emit a warning.
_LONG = 120.0
#: Number of weight optimizations in a forecast: with λ learned jointly, with λ chosen on a path,
#: and with a search over several criteria.
_PROGRAMS: dict[Any, float] = {"joint": 2.0, "loo": 3.0}
_SEARCH = 4.0
#: Banks without kernel matrices, which a kernel logistic regression needs.
_WITHOUT_MATRICES = ("iterative", "lowrank", "stream")
#: Forecasts may be too low by a factor of two. A stage whose forecast is at most the first share of
#: the remaining time will certainly finish. A stage of at most the second share leaves enough time
#: for a whole fit that takes half of the remaining time.
_SURE, _SECURED = 0.5, 0.25
#: The share of the remaining time for a stage once an earlier stage has shown how accurate
#: forecasts are, or if no stage will certainly finish. The share for the whole fit is larger: with
#: twice the time that it takes, no smaller stage should replace it.
_SHARE, _WHOLE_SHARE = 0.7, 1.25
#: If no stage fits into the remaining time, a stage is tried up to this multiple of it, and the
#: whole fit up to twice this multiple. Forecasts may be too high, and an unfinished stage only
#: costs time that is left anyway.
_HOPE = 1.5
#: The share of the time limit for the first pass over rows in chunks. If the pass takes longer, the
#: rows read so far are used as if they were all rows.
_READING = 0.4
#: Limit of the assumed error of forecasts, as a factor.
_MOST_WRONG = 5.0
#: The largest share of the remaining time that is reserved for the steps after learning. Forecasts
#: may be too high: with 2,000 rows on a busy machine, a fit whose search was stopped early finished
#: 2 s before its deadline.
_RESERVED = 0.5
#: Stages with a forecast of at least this many seconds are used to correct later forecasts.
_TELLING = 0.3


class FitRun:
    """One fit of an estimator: its parameters and the stages of its plan.

    Without a time limit, a fit has one stage. With a time limit, the first stage is short enough
    to finish in any case, and others follow while time is left. The estimator is not changed.

    Attributes
    ----------
    request : Request
        Criterion, solver and λ; without the callback in the first of several stages.
    bank : BankChoice
        The parameter ``bank`` of the estimator.
    device : Device or None
        The device to compute on; None for the CPU.
    tables : bool
        Whether the estimator has the default kernels, ``"auto"``, which take tables.
    survey : tuple of SurveyPass and Survey, or None
        The first pass over rows in chunks, and its result, if there is a time limit.
    problem : Problem
        The whole fit, from `plan` on.
    stage : Stage
        The current stage, from `plan` on.

    Parameters
    ----------
    estimator : BaseKernelEstimator
        The estimator.
    device : Device, optional
        The device to compute on; by default the CPU.
    seconds : float, optional
        The time limit.
    """

    problem: Problem
    stage: Stage

    def __init__(
        self, estimator: Any, device: Device | None = None, seconds: float | None = None
    ) -> None:
        self.request: Request = estimator._request()
        self.bank, self.device = read_choice(estimator.bank), device
        self.tables = learns_scales(estimator._candidates())
        self.survey: Any = None
        self._estimator, self._seconds, self._clock = estimator, seconds, estimator._clock
        self._stages: tuple[Stage, ...] = ()
        self._asked, self._n_rows = self.request, 0
        self._deadline = Deadline.after(np.inf if seconds is None else seconds, self._clock)
        self._start, self._is_cut = time.perf_counter(), False
        self._proposals: dict[int, Proposal] = {}
        self._ran: list[Stage] = []
        #: Measured time of stages divided by their forecast.
        self._ratio = 1.0

    # ---- methods called by a stage -----------------------------------------------------------

    @contextmanager
    def planned_stage(self, training: TrainingRows, n_rows: int | None = None) -> Iterator[Stage]:
        """Plan the fit in its first stage, and report progress while the stage runs.

        Parameters
        ----------
        training : TrainingRows
            The rows in memory.
        n_rows : int, optional
            The number of rows read in chunks, if the rows in memory are a sample of them.
        """
        verbose = self._estimator.verbose
        if not isinstance(verbose, (bool, int, np.bool_)):
            raise InvalidInputError(f"verbose must be True or False. Got {verbose!r}.")
        self._start = time.perf_counter()
        if not self._stages:
            in_chunks = n_rows is not None or self.survey is not None
            n_all = self._n_rows or n_rows or len(training.y)
            self.plan(self._problem(training, n_all, in_chunks))
        speed, stage = self.problem.speeds.get("here"), self.stage
        expected = replace(stage, seconds=self._ratio * stage.seconds)
        if stage.is_forecast and verbose:
            print(expected)
        elif stage.seconds > _LONG and self._seconds is None:
            warnings.warn(
                f"This fit is expected to take {in_words(stage.seconds)}: {stage}. "
                "verbose=True shows its progress, and max_time limits it.",
                LongFitWarning,
                stacklevel=caller_stacklevel(),
            )
        shown = reporting(expected.seconds, verbose=stage.is_forecast and bool(verbose))
        pay = speed is None or speed.blas_threads_pay
        with shown, blas_threads(len(training.y)) if pay else one_blas_thread():
            yield stage

    def plan(self, problem: Problem) -> None:
        """Plan the stages of a fit, and make the first one current."""
        most = None if self.survey is None else len(self.survey[1].drawn.y)
        verbose = bool(self._estimator.verbose)
        self.problem = problem
        self._stages = plan_fit(problem, self._seconds, most, verbose=verbose).stages
        self.stage = self._stages[0]

    def _problem(self, training: TrainingRows, n_rows: int, in_chunks: bool) -> Problem:
        """Return the problem of a fit to ``n_rows`` rows, or to a part of them in memory."""
        estimator, request, criterion = self._estimator, self.request, self.request.criterion
        X, kernels, chooses = training.X, training.reader.kernels, training.proposes
        per_target = request.weights_per_target and training.y.ndim == 2
        is_known = chooses and criterion.name == Auto.name and not per_target
        n_programs = _PROGRAMS.get(request.regularization, 1.0)
        n_programs = _SEARCH if criterion.regularization_is == "learned" else n_programs
        if per_target:
            n_programs *= training.y.shape[1]
        trusted = all(kernel.trusted and not kernel.precomputed for kernel in kernels)
        approximable = estimator._predicts and trusted and not per_target
        return Problem(
            menu_kernels(X, kernels[0].spreads, training.sources) if chooses else kernels,  # type: ignore[attr-defined]
            X,
            n_rows,
            chooses,
            0.0 if is_known else n_programs,
            approximable and (is_known or criterion.only_products),
            *self.bank,
            few_passes=criterion.regularization_is == "given" and request.regularization != "loo",
            holds_out=estimator._predicts,
            in_chunks=in_chunks,
            device=self.device,
            sums=estimator._sums and not per_target,
            balanced=criterion.balanced,
        )

    @property
    def fits_logits(self) -> bool:
        """Whether few rows in memory get a kernel logistic regression, if they have its matrix."""
        has_matrices = self.stage.kind not in _WITHOUT_MATRICES and not self.problem.in_chunks
        return self._estimator._fits_logits and has_matrices

    def propose(self, training: TrainingRows, target: Target) -> Proposal:
        """Return the default kernels for some rows, from an earlier stage or chosen now.

        The choice is kept for later stages, unless the deadline cut it short.

        Parameters
        ----------
        training : TrainingRows
            The rows. The first kernel of their reader has the spreads of the columns.
        target : Target
            The target.
        """
        X, request, n_rows = training.X, self.request, len(training.y)
        encoder, learns = training.reader.encoder, self.stage.learns
        found = self._proposals.get(n_rows) if learns else None
        if found is None:
            with one_blas_thread():  # samples are small: more threads would wait for each other
                found = propose_kernels(
                    X,
                    training.reader.kernels[0].spreads,  # type: ignore[attr-defined]
                    target,
                    pull=request.criterion.pull,
                    regularization=request.given_regularization or None,  # folds need λ > 0
                    random_state=request.random_state,
                    device=self.device,
                    groups=None if encoder is None else encoder.scale_groups,
                    sources=training.sources,
                    logistic=self.fits_logits,
                )
            if learns and not active_deadline().cut.is_set():
                self._proposals[n_rows] = found
        return found

    def record(self, bank: str) -> tuple[Stage | None, FitPlan]:
        """Return the forecast of the current stage, or None, and a plan with its measured time.

        Parameters
        ----------
        bank : str
            The name of the bank that was used.
        """
        seconds, stage = time.perf_counter() - self._start, self.stage
        if not stage.is_forecast:
            ran = Stage(bank, stage.n_rows, stage.reason, seconds, finished=True)
            return None, FitPlan((ran,))
        ran = replace(stage, seconds=seconds, forecast=stage.seconds, finished=True)
        return stage, FitPlan((ran,))

    # ---- the stages --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Model:
        """Return the model of the last stage that finished in time."""
        estimator, limit = self._estimator, self._seconds
        whole: Given = estimator._open_rows(X, y, sample_weight, groups, self.bank)
        if limit is None:
            with keep_deadline():  # this fit may be a part of another one
                return cast(Model, estimator._fit_model(*whole, self))
        whole, held_out_loss = self._survey(whole, limit), estimator._held_out_loss
        kept = self._run_stage(None, whole)
        while kept is not None and (stage := self._next_stage()) is not None:
            found = self._run_stage(stage, whole)
            if found is None:
                break
            loss, before = held_out_loss(found[0]), held_out_loss(kept[0])
            is_worse = loss is not None and before is not None and loss > before
            if stage is self._stages[-1] or not is_worse:
                kept = found
        if kept is None:  # invalid rows: a fit to all of them raises the complete error
            return FitRun(estimator, self.device).fit(*whole)
        for each in kept[1]:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
        return replace(kept[0], facts=replace(kept[0].facts, plan=FitPlan(tuple(self._ran), limit)))

    def _survey(self, whole: Given, limit: float) -> Given:
        """Survey rows in chunks, and return the rows to learn from.

        If the first pass takes too long, there is no time for a second one, and the rows to learn
        from are a sample of those read so far.
        """
        share = Deadline.after(_READING * limit, self._clock)
        with keep_deadline(share):
            if self._estimator._is_summed(whole[0]):
                self.survey = self._estimator._stream_learner(self).survey(whole[0])
        if self.survey is None or share.left >= 0:
            return whole
        sample, self.survey, self._is_cut = self.survey[1].drawn, None, True
        return sample.X, sample.y, sample.weights, sample.groups

    def _next_stage(self) -> Stage | None:
        """Return the next stage; None if there is no time for another one.

        This is the whole fit if it will certainly finish in time. Otherwise a smaller stage comes
        first, so that there is a better model if the whole fit does not finish.
        """
        if not self._stages or self.stage is self._stages[-1]:
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
                seconds = forecast_rest(self.problem, stage) if is_chosen else stage.seconds
                if seconds <= share * left:
                    return stage
        return None

    def _run_stage(self, stage: Stage | None, whole: Given) -> tuple[Model, list[Any]] | None:
        """Return the model of a stage and its warnings; None if it runs out of time.

        A ``stage`` of None is the first stage, which plans the others. It has equal weights and no
        deadline, and returns None for invalid rows.
        """
        start = self._clock()
        n, deadline = FIRST_STAGE_ROWS, Deadline(np.inf, self._clock, learns=False)
        self.request = replace(self._asked, callback=None) if stage is None else self._asked
        if stage is not None:
            problem = self.problem
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
                given = self._stage_rows(whole, n)
                found = self._estimator._fit_model(*given, self), heard
        except OutOfTimeError:
            pass
        except (ValueError, TypeError):
            if stage is not None:
                raise
            return None
        self._record_stage(
            self._clock() - start, finished=found is not None, cut=deadline.cut.is_set()
        )
        return found

    def _record_stage(self, taken: float, *, finished: bool, cut: bool) -> None:
        """Record a stage with its time, and update the ratio of measured to forecast time."""
        if not self._stages:
            return
        stage = self.stage
        is_whole = stage is self._stages[-1] and not self._is_cut and not cut
        ran = replace(stage, seconds=taken, forecast=self._ratio * stage.seconds)
        self._ran.append(replace(ran, finished=finished, is_whole=is_whole))
        if finished and len(self._ran) > 1 and stage.seconds >= _TELLING:
            self._ratio = min(max(taken / stage.seconds, 1.0 / _MOST_WRONG), _MOST_WRONG)

    # ---- rows of a stage ---------------------------------------------------------------------

    def _stage_rows(self, whole: Given, n: int) -> Given:
        """Return the rows of a stage: all other rows get weight 0.

        For rows in chunks, a smaller stage has a part of the sample.
        """
        if self.survey is not None:
            sample, self._n_rows = self.survey[1].drawn, self.survey[1].n_rows
            if self._stages and n >= self._n_rows:
                return whole
            rows, groups = self._draw_rows(sample.y, n, sample.groups), sample.groups
            known = sample.y[rows], sample.weights[rows], None if groups is None else groups[rows]
            return _safe_indexing(sample.X, rows), *known
        X, y, sample_weight, groups = whole
        weights = np.ones(_num_samples(X))
        if sample_weight is not None:
            weights = check_sample_weight(sample_weight, len(weights))
        present = np.flatnonzero(weights)
        self._n_rows = len(present)
        if n >= len(present):
            return whole
        labels = None if groups is None else group_labels(groups, len(weights))[present]
        drawn = present[self._draw_rows(np.asarray(_safe_indexing(y, present)), n, labels)]
        kept = np.zeros(len(weights))
        kept[drawn] = weights[drawn]
        return X, y, kept, groups

    def _draw_rows(
        self, y: NDArray[Any], n: int, labels: NDArray[Any] | None = None
    ) -> NDArray[np.intp]:
        """Return the positions of ``n`` random rows, stratified by class, in whole groups."""
        if n >= len(y):
            return np.arange(len(y))
        together = None if labels is None else make_groups(group_codes(labels))
        random_state = self.request.random_state
        rng = check_random_state(0 if random_state is None else copy(random_state))
        if y.ndim == 1 and not is_regressor(self._estimator):
            return ClassTarget.from_labels(y, groups=together).draw(n / len(y), rng)
        if together is not None:
            return np.sort(together.draw(np.zeros(len(y), dtype=np.intp), n, rng))
        return np.sort(rng.permutation(len(y))[:n])
