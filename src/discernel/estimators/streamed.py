"""Rows that are not in memory: fitting in two passes, adding rows, predicting chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from discernel.arrays import FloatArray, blas_threads, n_rows
from discernel.bank import CombinedKernel, Uncentered, make_bank
from discernel.criteria import KernelLeastSquares
from discernel.default import Proposal, scaled_kernels
from discernel.default.metric import Metric
from discernel.discriminant import HeldOutScores, class_factors
from discernel.estimators.arrays import where_rows_are
from discernel.estimators.learner import (
    BaseKernelLearner,
    Learning,
    Way,
    has_importances,
    held_out_scores,
)
from discernel.estimators.staged import active_stages
from discernel.estimators.weighted import with_class_weight
from discernel.exceptions import InvalidInputError
from discernel.inspection.importances import importance_rows
from discernel.kernels import Kernel, as_kernels
from discernel.kernels.columns import divided_columns
from discernel.kernels.features import NystromMap, draw_landmarks, n_landmarks
from discernel.learn import Request
from discernel.progress import phase
from discernel.progress.deadline import check_deadline, must_stop_learning
from discernel.streams import ArraySource, Chunk, Place, RowProgress, Source
from discernel.streams.chunks import is_dask, is_frame, stack_rows
from discernel.streams.fit import (
    StreamedFit,
    StreamState,
    fit_stream,
    statistics_rows,
)
from discernel.streams.refine import divide_rows, refine_metric
from discernel.streams.sample import RowSample, comparable
from discernel.streams.summary import Labelled, Summing, check_room, one_hot
from discernel.streams.survey import Survey, Surveying, check_cells, codes_of
from discernel.targets import ClassTarget

__all__ = ["BaseStreamedLearner", "Streamed", "by_chunks", "copy_for_prediction"]

#: Rows of the sample that kernels, metric and weights are learned on.
_LEARNED_ON = 3_000
#: As many rows that a kernel was not learned from are enough to say what to expect.
_MOST_TO_EXPECT_FROM = 1_000
#: The power of the metric that further rounds start from.
_START_STRENGTH = 0.5
#: The part that rows of `partial_fit` are, beyond those of any source.
_LATER = 2**40

Method = TypeVar("Method", bound=Callable[[Any, Any], Any])
Learner = TypeVar("Learner")


def by_chunks(method: Method) -> Method:
    """Return a method of rows that also takes those that are not in memory.

    Of a source it gives an iterator of its results for the chunks, of a Dask collection a Dask
    array, which is computed when it is asked for; of an array of another library one of that, on
    the same device.
    """
    in_memory = where_rows_are(method)

    @wraps(method)
    def either(self: Any, X: Any) -> Any:
        if not (isinstance(X, Source) or is_dask(X)):
            return in_memory(self, X)
        check_is_fitted(self, "discriminant_")
        fitted = copy_for_prediction(self)  # as it is now, whenever chunks are predicted

        def work(chunk: Chunk) -> Any:
            with _naming(chunk.place):
                return in_memory(fitted, chunk.X)

        if isinstance(X, Source):
            return X.map(work)
        from discernel.streams.lazy import lazily

        work.__name__ = method.__name__
        rows = X._meta if is_frame(X) else np.empty((0, X.shape[1]))
        validate_data(fitted, rows, skip_check_array=True, reset=False)
        return lazily(work, X, *fitted._result_of(method.__name__))

    return cast(Method, either)


def copy_for_prediction(learner: Learner) -> Learner:
    """Return a copy that predicts the same, without what only further fitting needs.

    Parameters
    ----------
    learner : estimator
        Fitted. A callback, and the sums that `partial_fit` adds rows to, are left out.
    """
    kept = copy(learner)
    if isinstance(kept, BaseStreamedLearner):
        kept._stream = kept._fallback = kept._waiting = None
    if hasattr(kept, "callback"):
        kept.callback = None
    return kept


@contextmanager
def _naming(place: Place) -> Iterator[None]:
    """Say where the rows stand that something is wrong with."""
    try:
        yield
    except ValueError as error:
        raise InvalidInputError(
            f"{error} These are rows of {place.name}, from row {place.first} on."
        ) from error


@dataclass(frozen=True)
class Streamed:
    """What a fit that reads its rows in chunks is based on.

    Attributes
    ----------
    n_rows : int
        All rows.
    n_sample : int
        Those of them, drawn at random, that the kernel was learned on and that λ and the
        statistics of classes are taken from.
    rank : int
        The landmarks, whose kernels the discriminant is a sum of.
    captured : float
        The share of the variance of all rows in the space of the kernel that these span. Where it
        is small and more accuracy is needed, a fit in memory may have it.
    """

    n_rows: int
    n_sample: int
    rank: int
    captured: float


class _Preparing:
    """From a chunk to numbers, classes and weights; small enough to be sent to other machines.

    Parameters
    ----------
    estimator : BaseStreamedLearner
        What knows how rows are checked and encoded.
    kernels : list of Kernel
        The kernels that take them.
    classes : ndarray of shape (n_classes,)
        All labels, sorted.
    factors : ndarray of shape (n_classes,)
        What rows of each class weigh more.
    """

    def __init__(
        self,
        estimator: BaseStreamedLearner,
        kernels: list[Kernel],
        classes: NDArray[Any],
        factors: FloatArray,
    ) -> None:
        # Without what is learned, which rows need not know, and what may not travel.
        self._checker = copy_for_prediction(estimator)
        needed = ("encoder_", "n_features_in_", "feature_names_in_", "kernel", "kernels")
        for name in list(vars(self._checker)):
            if name not in needed and not name.startswith("_"):
                setattr(self._checker, name, None)
        self._checker._device = None
        self._kernels, self.classes, self.factors = kernels, classes, factors

    def __call__(self, chunk: Chunk) -> Labelled:
        return self.labelled(self.encoded(chunk))

    def encoded(self, chunk: Chunk) -> Chunk:
        """Return a chunk with rows as the kernels take them."""
        with _naming(chunk.place):
            return replace(chunk, X=self._checker._validate(chunk.X, self._kernels))

    def labelled(self, chunk: Chunk) -> Labelled:
        """Return what is summed up of a chunk of such rows."""
        X, codes = chunk.X, codes_of(np.asarray(chunk.y), self.classes, chunk.place.name)
        weights = np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights
        if not weights.all():
            present = np.flatnonzero(weights)
            X, codes, weights = X[present], codes[present], weights[present]
        return Labelled(X, one_hot(codes, len(self.classes)), weights * self.factors[codes])


class BaseStreamedLearner(BaseKernelLearner):
    """Learn from a `Source`, in two passes, and from more rows as they come."""

    class_weight: Any
    statistics: Any
    classes_: NDArray[Any]
    _banks_there = ("auto", "iterative", "lowrank")
    _stream: StreamState | None = None
    #: What stands in for honest rows, where the first rows were few.
    _fallback: tuple[HeldOutScores, float] | None = None
    #: Rows of `partial_fit` that cannot be learned from yet: of classes with one row, or of all
    #: classes while fewer than two have more.
    _waiting: Chunk | None = None

    # ---- two passes --------------------------------------------------------------------------

    def _fit_source(
        self, source: Source, classes: Any = None, way: Way | None = None
    ) -> StreamedFit:
        """Survey all rows, learn the kernel on a sample, sum up features, and fit."""
        request, stages = self._request(), active_stages()
        self._refuse_unstreamable(request)
        self._stream = None
        self.__dict__.pop("streamed_", None)
        known = None if stages is None else stages.survey
        surveying, survey = self._surveyed(source, request) if known is None else known
        survey, kernels = self._encoded(survey)
        ClassTarget.from_labels(survey.drawn.y)
        survey = survey if classes is None else survey.with_classes(classes)
        labels, factors = survey.classes, self._class_factors(survey)
        self._decide(survey.target(labels, survey.everywhere))
        with self._summing_up(survey, kernels, request, way) as rank:
            features, sample = self._learn_on_sample(survey, kernels, request, rank)
            survey = replace(survey, sample=sample)
            summing = self._summing(features, labels, factors)
            sums = source.reduce(summing, self._report(1, survey.n_rows))
            n_seen = source.n_rows or survey.n_rows
            state = StreamState(survey, surveying, features, sums, labels, factors, n_seen)
            state.check_same_rows()
            found = self._fit_state(state, request)
        self._stream = state
        return found

    def _surveyed(self, source: Source, request: Request) -> tuple[Surveying, Survey]:
        """Return the first pass over all rows, and what it found."""
        surveying = Surveying.of(
            source, seed=_seed(request.random_state), takes_tables=self._takes_tables()
        )
        survey = source.reduce(surveying, self._report(0, source.about_n_rows))
        survey.check_kinds()
        return surveying, survey

    def _survey_rows(self, X: Any) -> Any:
        if not isinstance(X, Source):
            return None
        request = self._request()
        self._refuse_unstreamable(request)
        return self._surveyed(X, request)

    @contextmanager
    def _summing_up(
        self, survey: Survey, kernels: list[Kernel], request: Request, way: Way | None
    ) -> Iterator[int]:
        """Say what is ahead, where that was not said before, and yield the rank."""
        sample = survey.drawn
        if way is not None:
            with blas_threads(len(sample)):
                yield way.rank or n_landmarks(survey.n_rows)
            return
        target = self._target(survey, survey.everywhere)
        with self._working(sample.X, kernels, target, request, n_rows=survey.n_rows) as found:
            yield found.rank or n_landmarks(survey.n_rows)

    def _refuse_unstreamable(self, request: Request) -> None:
        """Raise a clear error for what needs all rows at once."""
        if as_kernels(self._candidates())[0].precomputed:
            raise InvalidInputError(
                "Rows in chunks need kernels of rows. Got kernels='precomputed'. Give kernels, or "
                "matrices to fit(X, y)."
            )
        if request.criterion.balanced:
            raise InvalidInputError(
                "Rows in chunks are fitted with the same λ for all. Got criterion="
                f"{request.criterion.name!r}, which has one per class. Use 'auto' or 'rkda', with "
                "class_weight='balanced' to have all classes count the same."
            )
        if request.regularization == 0.0:
            raise InvalidInputError(
                "Rows in chunks are fitted by features of a low rank, which need a positive λ. Got "
                "regularization=0. Give a positive one, or all rows to fit(X, y)."
            )

    def _report(self, stage: int, total: int | None) -> Callable[[int], None]:
        callback = getattr(self, "callback", None)

        def report(rows: int) -> None:
            if stage > 0:
                check_deadline()
            of_all = "" if total is None else f" of {total:,}"
            phase(f"reading rows, pass {stage + 1} of 2: {rows:,}{of_all}")
            if callback is not None:
                callback(RowProgress(stage, 2, rows, total))

        return report

    def _encoded(self, survey: Survey) -> tuple[Survey, list[Kernel]]:
        """Return the survey with rows as kernels take them, and these, fixed to the rows."""
        given = survey.drawn
        X, _, kernels = self._validate_training(given.X, given.y, facts=survey.facts)
        return replace(survey, sample=given.with_rows(X), facts=None), kernels

    def _class_factors(self, survey: Survey) -> FloatArray:
        """Return what rows of each class weigh more."""
        target = survey.target(survey.classes, survey.everywhere)
        found = class_factors(self.class_weight, target)
        return np.ones(target.n_classes) if found is None else found

    def _target(self, survey: Survey, rows: NDArray[np.intp]) -> ClassTarget:
        """Return the classes of rows of the sample; only those that have weight."""
        target = with_class_weight(survey.target(survey.classes, rows), self.class_weight)
        return target.among(survey.seen)

    def _learn_on_sample(
        self, survey: Survey, kernels: list[Kernel], request: Request, rank: int
    ) -> tuple[NystromMap, RowSample]:
        """Learn the kernel and draw landmarks; return features, and which rows were looked at."""
        sample = survey.drawn
        rows = sample.first(_LEARNED_ON, classes=True)
        X, target = sample.X[rows], self._target(survey, rows)
        self._check_target(target.among(survey.classes), request)
        if not self._rows_vary(X, kernels):
            raise InvalidInputError(
                "The rows that a kernel is learned on must differ in some column. Got "
                f"{len(rows):,} rows that are all the same. Give other columns, or rows that vary."
            )
        learning = self._learn(X, kernels, target, request)
        proposal, learned = learning.proposal, learning.relearner.learned_rows
        few = 2 * (len(sample) - len(learned)) < min(len(learned), _MOST_TO_EXPECT_FROM)
        self._fallback = self._held_out(learning, target, request) if few else None
        if proposal is None:
            sample = sample.with_involved(rows[learned])
        else:
            involved = self._refined(survey, kernels[0], proposal, X)
            sample = sample.with_involved(
                rows[proposal.dependent] if involved is None else involved
            )
        near = self.kernels_
        if request.criterion.normalization == "centered_trace":
            near = [kernel.shifted(X) for kernel in near]
        chosen = draw_landmarks(sample.X, rank)
        features = NystromMap(near, self.learned_kernel_.coefficients, sample.X[chosen])
        check_room(features.rank)
        self._kept_labels, self._kept_rows = sample.y[chosen][features.pivots], None
        return features, sample

    def _refined(
        self, survey: Survey, given: Kernel, proposal: Proposal, X: FloatArray
    ) -> NDArray[np.intp] | None:
        """Take a metric of more rows of the sample where it is better, and return these rows."""
        sample, parts = survey.drawn, divide_rows(len(survey.drawn))
        if parts is None or must_stop_learning():
            return None
        spreads: tuple[float, ...] = given.spreads  # type: ignore[attr-defined]
        fitted, held = (self._target(survey, rows) for rows in parts)
        scales = refine_metric(
            sample.X,
            fitted,
            held,
            spreads,
            self.kernel_weights_,
            proposal.metric.of_strength(proposal.chosen.strength),
            proposal.metric.of_strength(_START_STRENGTH),
            self._device,
        )
        if scales is None:
            return None
        self.metric_ = Metric(scales)
        self.kernels_ = scaled_kernels(scales, spreads, divided_columns(X, spreads))
        near = [kernel.shifted(X) for kernel in self.kernels_]
        bank = make_bank("tiled", near, X, "centered_trace")
        weights = self.kernel_weights_[bank.kept]
        coefficients = bank.coefficients(weights / weights.sum())
        self.kernel_names_ = bank.names
        self.learned_kernel_ = replace(self.learned_kernel_, coefficients=coefficients)
        return parts[0]

    def _held_out(
        self, learning: Learning, target: ClassTarget, request: Request
    ) -> tuple[HeldOutScores, float]:
        """Return scores and λ of the rows that the kernel was learned from."""
        ridge = request.criterion.sample_ridge(target, self.regularization_)
        system = learning.bank.system(learning.weights, ridge)
        fit = KernelLeastSquares(system, ridge, target.scores, target.sample_weights)
        held_out = held_out_scores(learning, fit, target)(target, slice(None))
        if held_out.scores is None:
            scores, part = held_out.of(fit, target)
            held_out = replace(held_out, scores=scores, target=part)
        return held_out, self.regularization_

    def _summing(self, features: NystromMap, classes: NDArray[Any], factors: FloatArray) -> Summing:
        prepare = _Preparing(self, self.kernels_, classes, factors)
        return Summing(prepare, features, len(classes), self._device)

    def _fit_state(self, state: StreamState, request: Request) -> StreamedFit:
        """Return the fit to all rows there were so far, and store what it says of the kernel."""
        given = request.regularization if isinstance(request.regularization, float) else None
        rows = statistics_rows(state)
        target = self._target(state.survey, rows)
        fallback = self._fallback
        if fallback is not None:
            known = fallback[0].target
            new_class = known is not None and known.n_classes != target.n_classes
            if new_class or not self._still_few(state):
                fallback = self._fallback = None
        found = fit_stream(state, target, rows, regularization=given, fallback=fallback)
        kernel = state.features.kernel
        landmarks = state.features.landmarks
        self.combined_kernel_ = CombinedKernel(
            kernel.kernels,
            kernel.coefficients / found.system.unit,
            landmarks,
            Uncentered(),
            self._device,
        )
        learned = self.learned_kernel_
        self.regularization_ = found.fit.regularization
        scale = (
            float(np.max(kernel.coefficients)) / found.system.unit / np.max(learned.coefficients)
        )
        self.learned_kernel_ = replace(
            learned,
            regularization=self.regularization_,
            coefficients=learned.coefficients * scale,
            regularization_at_limit=found.regularization_at_limit,
        )
        self.bank_ = "stream"
        self.streamed_ = Streamed(
            state.sums.n_rows, len(state.survey.drawn), state.features.rank, found.system.captured
        )
        return found

    def _store_streamed_importances(self, found: StreamedFit) -> None:
        """Store importances from rows of the sample; nothing for rows without columns."""
        assert self._stream is not None
        X, every = self._stream.survey.drawn.X, np.arange(len(found.rows))
        if not has_importances(X, self.kernels_):
            return
        counted = found.honest.rows if found.honest.scores is None else None
        if counted is None or len(counted) < 2:
            counted = every
        chosen = importance_rows(counted, self._stream.features.rank, self.n_features_in_)
        left_out = found.left_out(self._stream, chosen)
        rows, labels = X[found.rows[chosen]], found.target.codes[chosen]
        self._set_importances(rows, found.fit.coef, left_out, labels)

    def _still_few(self, state: StreamState) -> bool:
        """Whether too few rows had no part in the metric."""
        involved = state.survey.drawn.involved
        return bool(2 * np.count_nonzero(~involved) < np.count_nonzero(involved))

    # ---- more rows ---------------------------------------------------------------------------

    def _fit_first(
        self, X: Any, y: Any, sample_weight: Any, classes: Any = None, way: Way | None = None
    ) -> StreamedFit:
        """Learn the kernel, and fit, on the first rows, or on all there are."""
        return self._fit_source(ArraySource(_table(X), y, sample_weight), classes, way)

    def _learn_more(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, forget: float
    ) -> StreamedFit | None:
        """Learn from rows and those that wait; return None where all have to wait."""
        state, given = self._stream, _as_chunk(X, y, sample_weight)
        if state is not None:
            classes = state.classes
        elif self._waiting is not None:
            classes = self.classes_
        elif classes is None:
            if len(np.unique(comparable(np.asarray(given.y)))) == 1:
                raise InvalidInputError(
                    "The first rows must be of two classes, or all classes must be named. Got rows "
                    f"of class {np.asarray(given.y)[0]!r}. Call partial_fit(X, y, classes=[...])."
                )
            return self._fit_first(X, y, sample_weight)
        classes = np.unique(np.asarray(classes))
        chunk = self._with_waiting(given, classes, forget)
        codes = codes_of(np.asarray(chunk.y), classes, "X")
        counted = None if chunk.weights is None else chunk.weights > 0
        # Leaving one row out must leave one of its class.
        ready = np.bincount(codes, counted, minlength=len(classes)) >= 2
        if state is not None:
            ready[np.isin(classes, state.survey.seen)] = True
        if state is None and np.count_nonzero(ready) < 2:
            self._waiting = chunk.part(np.arange(chunk.n_rows))  # a copy of our own
            self.classes_ = classes
            return None
        now, later = (chunk.part(np.flatnonzero(ready[codes] == each)) for each in (True, False))
        self._waiting = later if later.n_rows else None
        if state is None:
            return self._fit_first(now.X, now.y, now.weights, classes)
        return self._add_rows(state, now, forget) if now.n_rows else None

    def _with_waiting(self, given: Chunk, classes: NDArray[Any], forget: float) -> Chunk:
        """Return new rows after those that wait, or raise a clear error."""
        check_cells(given, takes_tables=self._takes_tables())
        waiting = self._waiting
        is_first = self._stream is None and waiting is None
        with _naming(given.place):
            validate_data(self, given.X, skip_check_array=True, reset=is_first)
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

    def _add_rows(self, state: StreamState, given: Chunk, forget: float) -> StreamedFit:
        """Add rows to those there were, and fit anew."""
        request = self._request()
        chunk = replace(given, place=Place("X", _LATER, state.n_seen))
        prepare = _Preparing(self, self.kernels_, state.classes, state.factors)
        chunk = prepare.encoded(chunk)
        rows = prepare.labelled(chunk)
        survey = state.surveying.add(state.survey.decayed(forget), chunk)
        with blas_threads(state.features.rank):
            summing = Summing(prepare, state.features, len(state.classes), self._device)
            # A copy, so that the model stays as it is where something fails.
            sums = summing.add_rows(deepcopy(state.sums).decay(forget), rows)
            n_seen = state.n_seen + chunk.n_rows
            self._stream = replace(state, survey=survey, sums=sums, n_seen=n_seen)
            return self._fit_state(self._stream, request)


def _as_chunk(X: Any, y: Any, sample_weight: Any) -> Chunk:
    """Return rows in memory as one chunk, or raise a clear error."""
    X = _table(X)
    if n_rows(X) == 0:
        raise InvalidInputError(
            f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required by "
            "partial_fit. Leave chunks without rows out."
        )
    if y is None:
        raise InvalidInputError("partial_fit needs a label per row. Got y=None.")
    source = ArraySource(X, y, sample_weight)
    return Chunk(source.X, source.y, source.weights, Place(source.name)).checked()


def _table(X: Any) -> Any:
    if is_dask(X):
        raise InvalidInputError(
            "partial_fit takes rows that are in memory. Got a Dask collection. Call fit with it, "
            "or partial_fit with X.partitions[i].compute() of each partition."
        )
    is_table = hasattr(X, "tocsr") or hasattr(X, "columns") or isinstance(X, np.ndarray)
    return X if is_table else np.asarray(X)


def _seed(random_state: Any) -> int:
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return int(random_state or 0)
    return int(check_random_state(random_state).randint(2**31))
