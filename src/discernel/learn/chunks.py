"""Fits to rows in chunks, in two passes, and fits to which rows are added."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from discernel.arrays import FloatArray, Positions, blas_threads, is_dask, is_sparse, n_rows
from discernel.bank import CombinedKernel, TiledBank, Uncentered
from discernel.bank.sums import Labelled, SumPass, check_room
from discernel.default import Proposal, comparable_rows, scaled_kernels
from discernel.default.metric import Metric
from discernel.discriminant import HeldOutScores
from discernel.exceptions import InvalidInputError, is_count
from discernel.kernels import Kernel, as_kernels
from discernel.kernels.features import NystromMap, draw_landmarks
from discernel.learn import LearnedKernel
from discernel.learn.labels import Totals
from discernel.learn.refine import Refinement, divide_rows
from discernel.learn.rows import Learning, learn_rows, rows_vary, shift_kernels
from discernel.learn.stages import FitRun
from discernel.learn.summed import (
    FoldedPass,
    GroupFolds,
    StreamedFit,
    StreamState,
    statistics_rows,
)
from discernel.learn.survey import RowSample, Survey, SurveyPass, check_cells, chosen_rows
from discernel.model import Facts, KeptRows, Model
from discernel.model.importances import (
    Importances,
    column_importances,
    has_importances,
    importance_rows,
)
from discernel.model.training import TrainingRows, check_training
from discernel.plan import LEARNED_ON
from discernel.progress import phase
from discernel.progress.deadline import check_deadline, must_stop_learning
from discernel.rows.chunks import Chunk, Place, RowProgress, errors_with_origin
from discernel.rows.reader import RowReader
from discernel.rows.sources import ArraySource, Source

#: This many rows that the kernel was not learned on suffice for the expected performance.
_MOST_TO_EXPECT_FROM = 1_000
#: The power of the learned scales from which their refinement starts.
_START_STRENGTH = 0.5
#: The part number of rows of `partial_fit`, beyond the parts of all sources.
_LATER = 2**40


@dataclass(frozen=True)
class Streamed:
    """Sizes of a fit that reads its rows in chunks.

    Attributes
    ----------
    n_rows : int
        The number of all rows.
    n_sample : int
        The number of rows of the random sample, from which the kernel, λ and the class statistics
        are learned.
    rank : int
        The number of landmarks. The discriminant is a sum of kernels at the landmarks.
    captured : float
        The share of the variance of all rows, in the feature space of the kernel, that the
        landmarks span. If it is small, a fit in memory may be more accurate.
    """

    n_rows: int
    n_sample: int
    rank: int
    captured: float


@dataclass(frozen=True, eq=False)
class Stream:
    """The state of a model to which `partial_fit` adds rows.

    Attributes
    ----------
    state : StreamState or None
        Sums and a sample of the rows so far; None until two classes have two rows.
    fallback : tuple of HeldOutScores and float, or None
        Cross-fitted scores and λ of the first rows, used while too few rows are held out from the
        kernel.
    waiting : Chunk or None
        Rows that are not used yet: those of classes with one row, or all rows until two classes
        have two.
    """

    state: StreamState | None = None
    fallback: tuple[HeldOutScores, float] | None = None
    waiting: Chunk | None = None


@dataclass(frozen=True, eq=False)
class _ChunkReader:
    """Convert a chunk to numbers, summed columns and weights; it can be sent to other machines.

    Attributes
    ----------
    reader : RowReader
        Checks and encodes the rows.
    totals : ClassTotals or NumberTotals
        The columns that stand for y.
    """

    reader: RowReader
    totals: Totals

    def __call__(self, chunk: Chunk) -> Labelled:
        return self.labelled(self.encoded(chunk))

    def encoded(self, chunk: Chunk) -> Chunk:
        """Return a chunk with encoded rows."""
        with errors_with_origin(chunk.place):
            return replace(chunk, X=self.reader.read(chunk.X))

    def labelled(self, chunk: Chunk) -> Labelled:
        """Return rows, summed columns and weights of an encoded chunk, without rows of weight 0."""
        X, y, weights = chunk.X, np.asarray(chunk.y), chunk.row_weights
        values = self.totals.values(y, chunk.place.name)
        if not weights.all():
            present = np.flatnonzero(weights)
            X, y, values, weights = X[present], y[present], values[present], weights[present]
        return Labelled(X, values, weights * self.totals.factors_of(y))


@dataclass(frozen=True, eq=False)
class StreamLearner(ABC):
    """Fit an estimator to a `Source` in two passes, and add rows to a model.

    Subclasses are for classes and for numbers.

    Attributes
    ----------
    estimator : BaseKernelEstimator
        The estimator, which is not changed.
    run : FitRun
        The fit.
    """

    estimator: Any
    run: FitRun

    #: The totals of no rows.
    totals: ClassVar[Totals]

    # ---- classes or numbers ------------------------------------------------------------------

    @abstractmethod
    def _coded(self, survey: Survey) -> Survey:
        """Return the survey with all classes and the columns to sum; check the parameters."""

    @abstractmethod
    def _target(self, survey: Survey, rows: NDArray[np.intp]) -> Any:
        """Return the target of rows of the sample."""

    @abstractmethod
    def _held_out(self, learning: Learning) -> tuple[HeldOutScores, float]:
        """Return held-out scores and λ of the rows that the kernel was learned on."""

    @abstractmethod
    def _fitted(self, known: Model, fit: StreamedFit) -> tuple[Model, NDArray[Any]]:
        """Return a model with head and coefficients of a fit, and the truth for its losses."""

    def _keeps_fallback(self, fallback: HeldOutScores, target: Any) -> bool:
        """Return whether held-out scores of the first rows suit a target of more rows."""
        return True

    # ---- two passes --------------------------------------------------------------------------

    def fit(self, source: Source, *, planned: bool = False) -> Model:
        """Survey all rows, learn the kernel on a sample, sum features over all rows, and fit.

        Parameters
        ----------
        source : Source
            The rows.
        planned : bool, default=False
            Whether the fit is already planned, for rows in memory.
        """
        surveying, survey = self.run.survey or self.survey(source)
        given = survey.drawn
        options = self.estimator._y_checks
        training = check_training(self.estimator, given.X, given.y, facts=survey.facts, **options)
        survey = replace(survey, sample=replace(given, X=training.X), facts=None)
        run, survey = self.run, self._coded(survey)
        working = blas_threads(len(survey.drawn))
        if not planned:
            working = run.planned_stage(training, survey.n_rows)
        with working:
            known, features, sample = self._learn_on_sample(survey, training)
            survey = replace(survey, sample=sample)
            prepare = _ChunkReader(known.reader, survey.totals)
            summing = SumPass(features, survey.totals.n_values, run.device, prepare)
            folds = None
            if given.groups is not None:
                folds = GroupFolds.of(survey.target(np.arange(len(given))), given.groups)
            parts = source.reduce(FoldedPass(summing, folds), self._report(1, survey.n_rows))
            n_seen = source.n_rows or survey.n_rows
            state = StreamState(survey, surveying, features, parts, n_seen, folds)
            state.check_same_rows()
            forecast, plan = run.record("stream")
            known = replace(known, facts=replace(known.facts, forecast=forecast, plan=plan))
            return self._fit_sums(known, replace(known.stream, state=state))

    def fit_rows(
        self, X: Any, y: Any, sample_weight: Any, groups: Any = None, *, planned: bool = False
    ) -> Model:
        """Fit to rows in memory as if they were read in chunks."""
        return self.fit(ArraySource(as_table(X), y, sample_weight, groups), planned=planned)

    def survey(self, source: Source) -> tuple[SurveyPass, Survey]:
        """Make the first pass over all rows; return the pass and its result."""
        self._refuse_unstreamable()
        seed = self.run.request.random_state
        if seed is None or not is_count(seed, least=0):
            seed = 0 if seed is None else check_random_state(seed).randint(2**31)
        surveying = SurveyPass.of(
            source,
            seed=int(seed),
            takes_tables=self.run.tables,
            totals=self.totals,
        )
        survey = source.reduce(surveying, self._report(0, source.estimated_n_rows))
        survey.check_kinds()
        return surveying, survey

    def _refuse_unstreamable(self) -> None:
        """Raise a clear error for parameters that require all rows in memory."""
        request = self.run.request
        if as_kernels(self.estimator._candidates())[0].precomputed:
            raise InvalidInputError(
                "Rows in chunks need kernels of rows. Got kernels='precomputed'. Give kernels, or "
                "matrices to fit(X, y)."
            )
        if request.criterion.balanced:
            raise InvalidInputError(
                "Rows in chunks are fitted with the same λ for all rows. Got criterion="
                f"{request.criterion.name!r}, which has one λ per class. Use 'auto' or 'rkda', "
                "with class_weight='balanced' to give all classes the same weight."
            )
        if request.regularization == 0.0:
            raise InvalidInputError(
                "Rows in chunks are fitted with low-rank features, which need a positive λ. Got "
                "regularization=0. Give a positive λ, or pass all rows to fit(X, y)."
            )

    def _report(self, stage: int, total: int | None) -> Callable[[int], None]:
        """Return a function that reports the number of rows read in a pass."""
        callback: Any = self.run.request.callback

        def report(rows: int) -> None:
            if stage > 0:
                check_deadline()
            of_all = "" if total is None else f" of {total:,}"
            phase(f"reading rows, pass {stage + 1} of 2: {rows:,}{of_all}")
            if callback is not None:
                callback(RowProgress(stage, 2, rows, total))

        return report

    def _learn_on_sample(
        self, survey: Survey, training: TrainingRows
    ) -> tuple[Model, NystromMap, RowSample]:
        """Learn the kernel on the sample, and draw landmarks.

        Returns
        -------
        known : Model
            The model without coefficients.
        features : NystromMap
            The features at the landmarks.
        sample : RowSample
            The sample, with a mask of the rows that the kernel was learned on.
        """
        run, sample, kernels = self.run, survey.drawn, training.reader.kernels
        rows = chosen_rows(sample.keys, survey.totals.strata(sample.y), LEARNED_ON)
        X, target = sample.X[rows], self._target(survey, rows)
        if not rows_vary(X, kernels, run.tables):
            raise InvalidInputError(
                "The rows that a kernel is learned on must differ in some column. Got "
                f"{len(rows):,} equal rows. Give other columns, or rows that vary."
            )
        part = replace(training, X=X, y=sample.y[rows])
        learning = learn_rows(run, part, target, exact=True)
        reader, facts, proposal = learning.training.reader, learning.facts, learning.proposal
        facts = replace(facts, bank="stream", low_rank_loss=None)
        learned_rows = learning.learned_rows
        involved, refined = rows[learned_rows], None
        n_involved = np.count_nonzero(sample.with_involved(involved).involved)
        few = 2 * (len(sample) - n_involved) < min(len(learned_rows), _MOST_TO_EXPECT_FROM)
        if proposal is not None:
            refined = self._refined(survey, kernels[0], proposal, X, facts)
        if refined is not None:
            near, facts, involved = refined
            reader = replace(reader, kernels=near)
        near = shift_kernels(reader.kernels, X, run.request)
        assert run.stage.rank is not None
        chosen = draw_landmarks(sample.X, run.stage.rank)
        features = NystromMap(near, facts.learned.coefficients, sample.X[chosen])
        check_room(features.rank)
        known = Model(
            reader,
            None,
            np.empty((0, 0)),
            np.empty(0),
            facts=facts,
            kept=KeptRows(sample.y[chosen][features.pivots]),
            device=run.device,
            stream=Stream(fallback=self._held_out(learning) if few else None),
        )
        return known, features, sample.with_involved(involved)

    def _refined(
        self, survey: Survey, given: Kernel, proposal: Proposal, X: FloatArray, facts: Facts
    ) -> tuple[list[Kernel], Facts, Positions] | None:
        """Return kernels and facts with refined column scales, and the rows used; or None.

        The result is None if the refined scales are not clearly better.
        """
        sample, parts = survey.drawn, divide_rows(len(survey.drawn))
        # The parts are random rows, which would divide groups.
        if parts is None or must_stop_learning() or sample.groups is not None:
            return None
        spreads: tuple[float, ...] = given.spreads  # type: ignore[attr-defined]
        fitted, held = (self._target(survey, rows) for rows in parts)
        learned = facts.learned
        curves = proposal.curves
        all_rows, menu = sample.X if curves is None else curves.of(sample.X), proposal.sample.menu
        known = all_rows, fitted, held, spreads, learned.weights, self.run.device, menu
        chosen, start = map(
            proposal.metric.of_strength, (proposal.chosen.strength, _START_STRENGTH)
        )
        scales = Refinement(*known).search(chosen, start)
        if scales is None:
            return None
        rows = comparable_rows(X, spreads, curves)
        kernels = scaled_kernels(scales, spreads, rows, menu, curves)
        bank = TiledBank([kernel.shifted(X) for kernel in kernels], X)
        weights = learned.weights[bank.kept]
        weights *= learned.weights.sum() / weights.sum()
        learned = replace(learned, coefficients=bank.coefficients(weights))
        better = replace(facts, learned=learned, names=list(bank.names), metric=Metric(scales))
        return kernels, better, parts[0]

    # ---- models ------------------------------------------------------------------------------

    def _fit_sums(self, known: Model, stream: Stream) -> Model:
        """Return the model of all rows so far.

        Parameters
        ----------
        known : Model
            A model with the same kernel: without coefficients, or fitted to fewer rows.
        stream : Stream
            Sums and a sample of the rows.
        """
        state, fallback = stream.state, stream.fallback
        assert state is not None
        rows, involved = statistics_rows(state), state.survey.drawn.involved
        target = self._target(state.survey, rows)
        # Until enough rows are held out from the learning of the kernel.
        still_few = 2 * np.count_nonzero(~involved) < np.count_nonzero(involved)
        if fallback is not None and not (still_few and self._keeps_fallback(fallback[0], target)):
            fallback = None
        given = self.run.request.given_regularization
        fit = StreamedFit(state, target, rows, regularization=given, fallback=fallback)
        kernel = state.features.kernel
        combined = CombinedKernel(
            kernel.kernels,
            kernel.coefficients / fit.system.unit,
            state.features.landmarks,
            Uncentered(),
            self.run.device,
        )
        found, truth = self._fitted(replace(known, kernel=combined), fit)
        rank, captured = state.features.rank, fit.system.captured
        facts = replace(
            known.facts,
            learned=_as_fitted(known.facts.learned, fit),
            importances=_importances(found, fit, truth),
            streamed=Streamed(state.sums.n_rows, len(state.survey.drawn), rank, captured),
        )
        return replace(found, facts=facts, stream=replace(stream, fallback=fallback))

    # ---- more rows ---------------------------------------------------------------------------

    def add_rows(
        self, model: Model | None, X: Any, y: Any, sample_weight: Any, groups: Any, forget: float
    ) -> Model:
        """Return the model with more rows.

        Parameters
        ----------
        model : Model or None
            The model of the rows so far, if any; a model of a fit in memory is replaced.
        X, y, sample_weight, groups : array-like
            Rows, labels or numbers, weights and groups.
        forget : float
            Factor for the weights of the rows so far.
        """
        X = as_table(X)
        if n_rows(X) == 0:
            raise InvalidInputError(
                f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required "
                "by partial_fit. Skip empty chunks."
            )
        if y is None:
            raise InvalidInputError("partial_fit needs a target per row. Got y=None.")
        given = ArraySource(X, y, sample_weight, groups).rows
        check_cells(given, takes_tables=self.run.tables)
        if model is not None and model.stream is None and model.facts.streamed is not None:
            raise InvalidInputError(
                "partial_fit adds rows to sums, which are not saved with a model. Got a model of "
                f"{model.facts.streamed.n_rows:,} rows in chunks from a file. Pickle an estimator "
                "that is to get more rows, or fit a clone of it to all of them."
            )
        if model is None or model.stream is None:
            return self._add_chunk(None, given, forget)
        with errors_with_origin(given.place):
            model.reader.check_columns(X)
        return self._add_chunk(model, given, forget)

    @abstractmethod
    def _add_chunk(self, model: Model | None, given: Chunk, forget: float) -> Model:
        """Return the model with the rows of a chunk; None stands for a model without rows."""

    def _add_to_sums(
        self,
        model: Model,
        state: StreamState,
        given: Chunk,
        forget: float,
        waiting: Chunk | None = None,
    ) -> Model:
        """Return the model after adding rows to the sums and the sample."""
        chunk = replace(given, place=Place("X", _LATER, state.n_seen))
        prepare = _ChunkReader(model.reader, state.survey.totals)
        chunk = prepare.encoded(chunk)
        prepare.totals.values(np.asarray(chunk.y), chunk.place.name)  # raises a clear error
        survey = state.surveying.add(state.survey.decayed(forget), chunk)
        with blas_threads(state.features.rank):
            n_values, device = prepare.totals.n_values, self.run.device
            summing = SumPass(state.features, n_values, device, prepare.labelled)
            # Copies, because the sums belong to the previous model.
            known = [deepcopy(part).decay(forget) for part in state.parts]
            parts = FoldedPass(summing, state.folds).add(known, chunk)
            n_seen = state.n_seen + chunk.n_rows
            state = replace(state, survey=survey, parts=parts, n_seen=n_seen)
            return self._fit_sums(model, replace(model.stream, state=state, waiting=waiting))


def _as_fitted(learned: LearnedKernel, fit: StreamedFit) -> LearnedKernel:
    """Return a kernel learned on a sample, with λ and normalization of the fit to all rows."""
    coefficients = fit.state.features.kernel.coefficients
    scale = float(np.max(coefficients)) / fit.system.unit / np.max(learned.coefficients)
    return replace(
        learned,
        regularization=fit.regularization,
        coefficients=learned.coefficients * scale,
        regularization_at_limit=fit.regularization_at_limit,
    )


def _importances(model: Model, fit: StreamedFit, truth: NDArray[Any]) -> Importances | None:
    """Return column importances from rows of the sample; None for rows without columns."""
    X, every, reader = fit.state.survey.drawn.X, np.arange(len(fit.rows)), model.reader
    if not has_importances(X, reader.kernels):
        return None
    counted = fit.held_out.rows if fit.held_out.scores is None else None
    if counted is None or len(counted) < 2:
        counted = every
    n_columns = fit.truth.shape[1] if fit.without else 1
    chosen = importance_rows(counted, fit.state.features.rank * n_columns, reader)
    assert model.kernel is not None
    kernel = model.kernel.to_cpu()
    known = X[fit.rows[chosen]], fit.coef, fit.left_out(chosen), truth[chosen]
    return Importances(partial(column_importances, kernel, reader, model.head, *known))


def as_table(X: Any) -> Any:
    """Return rows in memory as a sparse matrix, DataFrame or array."""
    if is_dask(X):
        raise InvalidInputError(
            "partial_fit takes rows that are in memory. Got a Dask collection. Call fit with it, "
            "or partial_fit with X.partitions[i].compute() of each partition."
        )
    return X if is_sparse(X) or hasattr(X, "columns") else np.asarray(X)
