"""Fits to rows in chunks, in two passes, and fits to which rows are added."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from discernel.arrays import FloatArray, blas_threads, is_sparse, n_rows
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import CombinedKernel, TiledBank, Uncentered
from discernel.bank.sums import Labelled, SumPass, check_room
from discernel.default import Proposal, scaled_kernels
from discernel.default.metric import Metric
from discernel.discriminant import (
    HeldOutScores,
    class_factors,
    discriminant_of_shares,
    fit_discriminant,
)
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel, as_kernels
from discernel.kernels.columns import divided_columns
from discernel.kernels.features import NystromMap, draw_landmarks
from discernel.learn import LearnedKernel
from discernel.learn.refine import divide_rows, refine_metric
from discernel.learn.rows import PRIOR_REQUEST, Learning, learn_rows, rows_vary
from discernel.learn.stages import FitRun
from discernel.learn.summed import (
    StreamedFit,
    StreamState,
    fit_stream,
    statistics_rows,
)
from discernel.learn.survey import (
    Positions,
    RowSample,
    Survey,
    SurveyPass,
    check_cells,
    chosen_rows,
    codes_of,
    comparable,
)
from discernel.learn.training import TrainingRows, check_training, with_class_weight
from discernel.model import Facts, KeptRows, Model
from discernel.model.importances import (
    Importances,
    column_importances,
    has_importances,
    importance_rows,
)
from discernel.plan import LEARNED_ON
from discernel.progress import phase
from discernel.progress.deadline import check_deadline, must_stop_learning
from discernel.rows.chunks import Chunk, Place, RowProgress, is_dask, stack_rows
from discernel.rows.reader import RowReader
from discernel.rows.sources import ArraySource, Source
from discernel.targets import ClassTarget

#: This many rows that the kernel was not learned on suffice for the expected performance.
_MOST_TO_EXPECT_FROM = 1_000
#: The power of the learned scales from which their refinement starts.
_START_STRENGTH = 0.5
#: The part number of rows of `partial_fit`, beyond the parts of all sources.
_LATER = 2**40


@contextmanager
def errors_with_origin(place: Place) -> Iterator[None]:
    """Add the origin of the rows to error messages."""
    try:
        yield
    except ValueError as error:
        raise InvalidInputError(
            f"{error} These are rows of {place.name}, from row {place.first} on."
        ) from error


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
    """Convert a chunk to numbers, classes and weights; small enough to be sent to other machines.

    Attributes
    ----------
    reader : RowReader
        Checks and encodes the rows.
    classes : ndarray of shape (n_classes,)
        All class labels, sorted.
    factors : ndarray of shape (n_classes,)
        The class weights.
    """

    reader: RowReader
    classes: NDArray[Any]
    factors: FloatArray

    def __call__(self, chunk: Chunk) -> Labelled:
        return self.labelled(self.encoded(chunk))

    def encoded(self, chunk: Chunk) -> Chunk:
        """Return a chunk with encoded rows."""
        with errors_with_origin(chunk.place):
            return replace(chunk, X=self.reader.read(chunk.X))

    def labelled(self, chunk: Chunk) -> Labelled:
        """Return rows, classes and weights of an encoded chunk, without rows of weight 0."""
        X, codes = chunk.X, codes_of(np.asarray(chunk.y), self.classes, chunk.place.name)
        weights = np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights
        if not weights.all():
            present = np.flatnonzero(weights)
            X, codes, weights = X[present], codes[present], weights[present]
        return Labelled(X, np.eye(len(self.classes))[codes], weights * self.factors[codes])


@dataclass(frozen=True, eq=False)
class StreamLearner:
    """Fit an estimator to a `Source` in two passes, and add rows to a model.

    Attributes
    ----------
    estimator : BaseKernelDiscriminant
        The estimator, which is not changed.
    run : FitRun
        The fit.
    """

    estimator: Any
    run: FitRun

    # ---- two passes --------------------------------------------------------------------------

    def fit(self, source: Source, classes: Any = None, *, planned: bool = False) -> Model:
        """Survey all rows, learn the kernel on a sample, sum features over all rows, and fit.

        Parameters
        ----------
        source : Source
            The rows.
        classes : array-like, optional
            All class labels, including those of later rows; by default those of the rows.
        planned : bool, default=False
            Whether the fit is already planned, for rows in memory.
        """
        surveying, survey = self.run.survey or self.survey(source)
        given = survey.drawn
        training = check_training(self.estimator, given.X, given.y, facts=survey.facts)
        survey = replace(survey, sample=replace(given, X=training.X), facts=None)
        ClassTarget.from_labels(survey.drawn.y)
        survey = survey if classes is None else survey.with_classes(classes)
        run, labels, n_drawn = self.run, survey.classes, len(survey.drawn)
        target = survey.target(labels, np.arange(n_drawn))
        factors = class_factors(self.estimator.class_weight, target)
        factors = np.ones(target.n_classes) if factors is None else factors
        self.estimator._decide(target, run.request)
        working = blas_threads(n_drawn)
        if not planned:
            working = run.planned_stage(training, survey.n_rows)
        with working:
            known, features, sample = self._learn_on_sample(survey, training)
            survey = replace(survey, sample=sample)
            prepare = _ChunkReader(known.reader, labels, factors)
            summing = SumPass(features, len(labels), run.device, prepare)
            sums = source.reduce(summing, self._report(1, survey.n_rows))
            n_seen = source.n_rows or survey.n_rows
            state = StreamState(survey, surveying, features, sums, labels, factors, n_seen)
            state.check_same_rows()
            forecast, plan = run.record("stream")
            known = replace(known, facts=replace(known.facts, forecast=forecast, plan=plan))
            return self._fit_sums(known, replace(known.stream, state=state))

    def fit_rows(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        classes: Any = None,
        *,
        planned: bool = False,
    ) -> Model:
        """Fit to rows in memory as if they were read in chunks."""
        return self.fit(ArraySource(_table(X), y, sample_weight), classes, planned=planned)

    def survey(self, source: Source) -> tuple[SurveyPass, Survey]:
        """Make the first pass over all rows; return the pass and its result."""
        self._refuse_unstreamable()
        surveying = SurveyPass.of(
            source,
            seed=_seed(self.run.request.random_state),
            takes_tables=self.run.tables,
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

    def _target(self, survey: Survey, rows: NDArray[np.intp]) -> ClassTarget:
        """Return the classes of rows of the sample, without classes of weight 0."""
        target = survey.target(survey.classes, rows)
        return with_class_weight(target, self.estimator.class_weight).among(survey.seen)

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
        rows = chosen_rows(sample.keys, sample.y, LEARNED_ON)
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
        learned_rows = learning.relearner.learned_rows
        few = 2 * (len(sample) - len(learned_rows)) < min(len(learned_rows), _MOST_TO_EXPECT_FROM)
        involved, refined = rows[learned_rows], None
        if proposal is not None:
            refined = self._refined(survey, kernels[0], proposal, X, facts)
        if refined is not None:
            near, facts, involved = refined
            reader = replace(reader, kernels=near)
        near = reader.kernels
        if run.request.criterion.normalization == "centered_trace":
            near = [kernel.shifted(X) for kernel in near]
        assert run.stage is not None
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
        if parts is None or must_stop_learning():
            return None
        spreads: tuple[float, ...] = given.spreads  # type: ignore[attr-defined]
        fitted, held = (self._target(survey, rows) for rows in parts)
        learned = facts.learned
        scales = refine_metric(
            sample.X,
            fitted,
            held,
            spreads,
            learned.weights,
            proposal.metric.of_strength(proposal.chosen.strength),
            proposal.metric.of_strength(_START_STRENGTH),
            self.run.device,
            proposal.sample.menu,
        )
        if scales is None:
            return None
        rows, menu = divided_columns(X, spreads), proposal.sample.menu
        kernels = scaled_kernels(scales, spreads, rows, menu)
        bank = TiledBank([kernel.shifted(X) for kernel in kernels], X)
        weights = learned.weights[bank.kept]
        weights *= learned.weights.sum() / weights.sum()
        learned = replace(learned, coefficients=bank.coefficients(weights))
        better = replace(facts, learned=learned, names=list(bank.names), metric=Metric(scales))
        return kernels, better, parts[0]

    def _held_out(self, learning: Learning) -> tuple[HeldOutScores, float]:
        """Return cross-fitted scores and λ of the rows that the kernel was learned on."""
        fit = learning.fit()
        held_out = learning.held_out(fit)
        scores, part = held_out.of(fit, learning.target)
        return replace(held_out, scores=scores, target=part), learning.facts.learned.regularization

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
        estimator, request = self.estimator, self.run.request
        state, fallback = stream.state, stream.fallback
        assert state is not None
        rows = statistics_rows(state)
        target = self._target(state.survey, rows)
        if fallback is not None:
            of_rows = fallback[0].target
            new_class = of_rows is not None and of_rows.n_classes != target.n_classes
            if new_class or not _still_few(state):
                fallback = None
        given = request.given_regularization
        fit = fit_stream(state, target, rows, regularization=given, fallback=fallback)
        kernel = state.features.kernel
        combined = CombinedKernel(
            kernel.kernels,
            kernel.coefficients / fit.system.unit,
            state.features.landmarks,
            Uncentered(),
            self.run.device,
        )
        discriminant = fit_discriminant(fit, fit.target, estimator.statistics, fit.held_out)
        target = fit.target.among(state.classes)
        decision = estimator._decide(target, request)
        head = estimator._make_head(discriminant, decision, target, fit.held_out.where)
        rank, captured = state.features.rank, fit.system.captured
        facts = replace(
            known.facts,
            learned=_as_fitted(known.facts.learned, fit),
            importances=_importances(known.reader, fit, combined, head),
            streamed=Streamed(state.sums.n_rows, len(state.survey.drawn), rank, captured),
        )
        return replace(
            known,
            kernel=combined,
            coef=discriminant.dual_coef,
            intercept=discriminant.intercept,
            head=head,
            classes=target.classes,
            facts=facts,
            stream=replace(stream, fallback=fallback),
        )

    def _waiting_model(self, reader: RowReader, classes: NDArray[Any], chunk: Chunk) -> Model:
        """Return a model that predicts class frequencies, until two classes have two rows."""
        estimator = self.estimator
        weights = np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights
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

    # ---- more rows ---------------------------------------------------------------------------

    def add_rows(
        self,
        model: Model | None,
        X: Any,
        y: Any,
        sample_weight: Any,
        classes: Any,
        forget: float,
    ) -> Model:
        """Return the model with more rows; rows that cannot be used yet are kept in it.

        Parameters
        ----------
        model : Model or None
            The model of the rows so far, if any; a model of a fit in memory is replaced.
        X, y, sample_weight : array-like
            Rows, labels and weights.
        classes : array-like or None
            All class labels, given with the first rows.
        forget : float
            Factor for the weights of the rows so far.
        """
        model = None if model is None or model.stream is None else model
        stream = Stream() if model is None else model.stream
        state, given = stream.state, _as_chunk(X, y, sample_weight)
        if model is not None:
            classes = model.classes
        elif classes is None:
            if len(np.unique(comparable(np.asarray(given.y)))) == 1:
                raise InvalidInputError(
                    "The first rows must be of two classes, or all classes must be named. Got rows "
                    f"of class {np.asarray(given.y)[0]!r}. Call partial_fit(X, y, classes=[...])."
                )
            return self.fit_rows(X, y, sample_weight)
        classes = np.unique(np.asarray(classes))
        chunk = self._prepend_waiting(model, given, classes, forget)
        codes = codes_of(np.asarray(chunk.y), classes, "X")
        counted = None if chunk.weights is None else chunk.weights > 0
        # A class needs two rows: leave-one-out must leave one of them.
        ready = np.bincount(codes, counted, minlength=len(classes)) >= 2
        if state is not None:
            ready[np.isin(classes, state.survey.seen)] = True
        if state is None and np.count_nonzero(ready) < 2:
            copied = chunk.part(np.arange(chunk.n_rows))  # independent of the user's arrays
            name = type(self.estimator).__name__
            reader = RowReader(name, []).with_columns(X) if model is None else model.reader
            return self._waiting_model(reader, classes, copied)
        now, later = (chunk.part(np.flatnonzero(ready[codes] == each)) for each in (True, False))
        waiting = later if later.n_rows else None
        if model is None or state is None:
            found = self.fit_rows(now.X, now.y, now.weights, classes)
            return replace(found, stream=replace(found.stream, waiting=waiting))
        if not now.n_rows:
            return replace(model, stream=replace(stream, waiting=waiting))
        return self._add_to_sums(model, state, now, forget, waiting)

    def _prepend_waiting(
        self, model: Model | None, given: Chunk, classes: NDArray[Any], forget: float
    ) -> Chunk:
        """Return waiting rows and new rows as one chunk, or raise a clear error."""
        check_cells(given, takes_tables=self.run.tables)
        if model is None:
            return given
        with errors_with_origin(given.place):
            model.reader.check_columns(given.X)
        waiting: Chunk | None = model.stream.waiting
        if waiting is None:
            return given
        codes_of(np.asarray(given.y), classes, "X")
        weights = [np.ones(c.n_rows) if c.weights is None else c.weights for c in (waiting, given)]
        y = [comparable(np.asarray(chunk.y)) for chunk in (waiting, given)]
        unweighted = waiting.weights is given.weights is None and forget == 1.0
        return replace(
            given,
            X=stack_rows([waiting.X, given.X]),
            y=np.concatenate(y),
            weights=None if unweighted else np.concatenate([forget * weights[0], weights[1]]),
        )

    def _add_to_sums(
        self, model: Model, state: StreamState, given: Chunk, forget: float, waiting: Chunk | None
    ) -> Model:
        """Return the model after adding rows to the sums and the sample."""
        chunk = replace(given, place=Place("X", _LATER, state.n_seen))
        prepare = _ChunkReader(model.reader, state.classes, state.factors)
        chunk = prepare.encoded(chunk)
        rows = prepare.labelled(chunk)
        survey = state.surveying.add(state.survey.decayed(forget), chunk)
        with blas_threads(state.features.rank):
            summing = SumPass(state.features, len(state.classes), self.run.device)
            # A copy, because the sums belong to the previous model.
            sums = summing.add(deepcopy(state.sums).decay(forget), rows)
            n_seen = state.n_seen + chunk.n_rows
            state = replace(state, survey=survey, sums=sums, n_seen=n_seen)
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


def _importances(
    reader: RowReader, fit: StreamedFit, kernel: CombinedKernel, head: Any
) -> Importances | None:
    """Return column importances from rows of the sample; None for rows without columns."""
    X, every = fit.state.survey.drawn.X, np.arange(len(fit.rows))
    if not has_importances(X, reader.kernels):
        return None
    counted = fit.held_out.rows if fit.held_out.scores is None else None
    if counted is None or len(counted) < 2:
        counted = every
    chosen = importance_rows(counted, fit.state.features.rank, reader)
    rows, labels = X[fit.rows[chosen]], fit.target.codes[chosen]
    left_out = fit.left_out(chosen)
    return Importances(column_importances(kernel, reader, head, rows, fit.coef, left_out, labels))


def _still_few(state: StreamState) -> bool:
    """Return whether too few rows are held out from the learning of the kernel."""
    involved = state.survey.drawn.involved
    return bool(2 * np.count_nonzero(~involved) < np.count_nonzero(involved))


def _as_chunk(X: Any, y: Any, sample_weight: Any) -> Chunk:
    """Return rows in memory as one chunk, or raise a clear error."""
    X = _table(X)
    if n_rows(X) == 0:
        raise InvalidInputError(
            f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required by "
            "partial_fit. Skip empty chunks."
        )
    if y is None:
        raise InvalidInputError("partial_fit needs a label per row. Got y=None.")
    source = ArraySource(X, y, sample_weight)
    return Chunk.of(source.X, source.y, source.weights, Place(source.name))


def _table(X: Any) -> Any:
    """Return rows in memory as a sparse matrix, DataFrame or array."""
    if is_dask(X):
        raise InvalidInputError(
            "partial_fit takes rows that are in memory. Got a Dask collection. Call fit with it, "
            "or partial_fit with X.partitions[i].compute() of each partition."
        )
    return X if is_sparse(X) or hasattr(X, "columns") else np.asarray(X)


def _seed(random_state: Any) -> int:
    """Return a random state as an integer seed."""
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return int(random_state or 0)
    return int(check_random_state(random_state).randint(2**31))
