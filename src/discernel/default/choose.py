"""The choice of a metric, kernel weights and λ on a sample, by the log-loss of held-out folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Device, FloatArray, in_threads, n_cores, typical_row
from discernel.arrays.groups import Groups, random_places
from discernel.arrays.sample_weights import SampleWeights, effective_number
from discernel.default.likelihood import learn_likelihood_metric
from discernel.default.menu import Menu, menu_of
from discernel.default.metric import Metric
from discernel.default.ridge import Ridge
from discernel.default.sources import Columns, SourceMenu, average_of
from discernel.discriminant import row_losses
from discernel.programs.lambdas import Rule, lambda_grid, search_lambda
from discernel.programs.loo import ErrorPoint, minimize_error
from discernel.programs.simplex import uniform
from discernel.programs.solution import Candidate
from discernel.progress.deadline import must_stop_learning
from discernel.targets import Target, by_appearance, deal

#: Powers of the learned scales: no metric, half of it, all of it.
STRENGTHS = (0.0, 0.5, 1.0)
#: The name of equal weights with a metric by likelihood.
_BY_LIKELIHOOD = "likelihood"
#: Rows that scales are learned on by likelihood; and those for the fold that decides whether it is
#: tried on the others.
MOST_BY_LIKELIHOOD, _MOST_TO_TRY = 500, 300
#: λ to choose from; smaller ones are too small for single precision.
_LAMBDAS, _RULE = lambda_grid(0.0, -5.5), Rule(skips_failures=True)
#: A candidate that is less simple must be better by this many standard errors.
_CLEARLY = 1.0
#: With so many rows, by twice as many.
_FEW_ROWS = 20.0
#: Evaluations of the descent over weights, and the decrease that is worth one more.
_EVALUATIONS, _WORTHWHILE = 20, 1e-4

Positions = NDArray[np.intp]
Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Sample:
    """Rows of a training set, at random, divided into folds.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        Columns in comparable units, less a typical row.
    scores : ndarray of shape (n_rows, n_outputs)
        What is to be predicted.
    target : Target
        The target of these rows.
    positions : ndarray of shape (n_rows,)
        Where each row stands in the training set.
    folds : ndarray of shape (n_rows,)
        The fold of each row, from 0.
    menu : Menu or SourceMenu
        The kernels that suit the rows.
    quantiles : bool
        Whether the values of columns are normal quantiles.
    """

    rows: FloatArray
    scores: FloatArray
    target: Target
    positions: Positions
    folds: Positions
    menu: Menu | SourceMenu
    quantiles: bool = False

    @property
    def weights(self) -> SampleWeights:
        """The weights of the rows."""
        return self.target.row_weights

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return int(self.folds.max()) + 1

    def divisions(self) -> Iterator[tuple[Positions, Positions]]:
        """Yield the rows outside of each fold and those in it."""
        for fold in range(self.n_folds):
            yield np.flatnonzero(self.folds != fold), np.flatnonzero(self.folds == fold)

    def held_out(self, rows: Positions) -> tuple[FloatArray, Target]:
        """Return what is to be predicted of some rows, or of all, and their target."""
        if len(rows) == len(self.rows):
            return self.scores, self.target
        return self.scores[rows], self.target.subset(rows)

    def with_quantiles(self, rows: FloatArray) -> Sample:
        """Return the sample with other columns: quantiles, of all rows of the training set."""
        drawn = rows[self.positions]
        return replace(self, rows=drawn - typical_row(drawn), quantiles=True)

    def likelihood_metric(
        self,
        rows: Positions,
        groups: Positions | None,
        device: Device | None = None,
        *,
        most: int = MOST_BY_LIKELIHOOD,
        dtype: type[np.floating[Any]] = np.float64,
    ) -> Metric:
        """Return the metric by likelihood of the first of some rows, which are in random order."""
        first = rows[:most]
        return learn_likelihood_metric(
            self.rows[first],
            self.scores[first],
            self.weights.values[first],
            groups=groups,
            dtype=dtype,
            device=device,
        )


def draw_sample(
    rows: FloatArray,
    target: Target,
    *,
    most: int,
    n_folds: int,
    rng: np.random.RandomState,
    sources: Columns | None = None,
) -> Sample:
    """Return at most so many rows, and folds of them, with a share of every class.

    Rows are in comparable units, and their columns may be of several sources. Nothing depends on
    the order of the rows: they are sorted before any are drawn. Folds are fewer where there are
    fewer rows. A group of rows is in one fold.
    """
    groups = target.groups
    last = [] if groups is None else [groups.codes[:, None]]  # for rows that are the same
    order = _sorted(np.hstack([rows, target.labels, *last]))
    strata = by_appearance(target.strata[order])
    if groups is None:
        chosen = np.argsort(random_places(strata, rng), kind="stable")[:most]
    else:
        chosen = Groups(by_appearance(groups.codes[order])).draw(strata, most, rng)
    positions = order[chosen]
    drawn = rows[positions]
    drawn = drawn - typical_row(drawn)  # far from 0, single precision would see no differences
    return Sample(
        rows=drawn,
        scores=target.truth[positions],
        target=target.part(positions),  # with the codes of all classes
        positions=positions,
        folds=deal(strata[chosen], n_folds, None if groups is None else groups.subset(positions)),
        menu=menu_of(drawn) if sources is None else SourceMenu(menu_of(drawn), sources),
    )


def _sorted(rows: FloatArray) -> Positions:
    """Return an order of rows that depends on their values, but not on the units of columns."""
    first = np.argsort(rows[:, 0], kind="stable")
    if (np.diff(rows[first, 0]) > 0).all():  # the others would not be looked at
        return first
    return np.lexsort(rows.T[::-1])


# ---- folds -------------------------------------------------------------------------------------


class Scored(NamedTuple):
    """A candidate, its loss on each held-out row (see `row_losses`), and the predicted scores."""

    candidate: Candidate
    losses: FloatArray
    predicted: FloatArray


class Selection(NamedTuple):
    """The candidates that were compared, and the choices without each fold."""

    #: The best of each kind, the chosen one first.
    candidates: list[Candidate]
    #: For each fold, the choice by the losses of the other rows.
    without: list[Candidate]
    #: For each fold, the metric learned by likelihood without it; None where it is not chosen.
    by_likelihood: list[Metric] | None


class CrossFit:
    """Scores candidates by folds; the metric of each fold is learned without it.

    Parameters
    ----------
    sample : Sample
        The rows.
    metrics : sequence of Metric
        One per fold; of the first fold alone, only that fold is held out.
    strength : float
        The power of their scales.
    dtype : type
        The precision. Single is enough to compare.
    memory : CrossFit, optional
        One of the same sample, kernels and precision that is not needed any more.
    device : Device, optional
        Where matrices are made and solved with, always in double precision; by default here.
    """

    def __init__(
        self,
        sample: Sample,
        metrics: Sequence[Metric],
        strength: float,
        *,
        dtype: type[np.floating[Any]] = np.float32,
        memory: CrossFit | None = None,
        device: Device | None = None,
    ) -> None:
        self.sample, self.strength, self._device = sample, strength, device
        self._divisions = list(sample.divisions())[: len(metrics)]
        #: The held-out rows.
        self.rows = np.flatnonzero(sample.folds < len(metrics))

        def make(job: tuple[Metric, tuple[Positions, Positions], Any]) -> Ridge:
            metric, (outside, inside), stack = job
            scales, order = metric.of_strength(strength), np.concatenate([outside, inside])
            rows, n = sample.menu.scaled(sample.rows, scales)[order], len(outside)
            if device is not None:
                stack = sample.menu.matrices_on_device(rows, n, device)
            else:
                shape = sample.menu.n_kernels, len(rows), n
                stack = np.empty(shape, dtype=dtype) if stack is None else stack
                stack = sample.menu.matrices(rows, n, stack)
            return Ridge(stack, sample.scores[order], sample.weights.values[order], device)

        olds = [None] * len(metrics) if memory is None else [fold.stack for fold in memory.folds]
        #: One fit per fold, which is held out.
        self.folds: list[Ridge] = each(
            make, list(zip(metrics, self._divisions, olds, strict=True)), device
        )
        #: All that was tried.
        self.tried: list[Scored] = []

    def predictor(self, weights: Sequence[FloatArray]) -> Callable[[float], FloatArray]:
        """Return the function from λ to predictions for held-out rows, by fits to other folds.

        Weights are those of each fold.
        """

        def prepare(job: tuple[Ridge, FloatArray]) -> Callable[[float], FloatArray]:
            fold, of_fold = job
            return partial(fold.predict, fold.combined(of_fold))

        predictors = each(prepare, list(zip(self.folds, weights, strict=True)), self._device)

        def at(regularization: float) -> FloatArray:
            parts = each(lambda predict: predict(regularization), predictors, self._device)
            predicted = np.empty_like(self.sample.scores)
            for (_, inside), part in zip(self._divisions, parts, strict=True):
                predicted[inside] = part
            return predicted[self.rows]

        return at

    def best(
        self,
        name: str,
        weights: FloatArray,
        regularizations: Sequence[float],
        start: float | None = None,
        by_fold: Sequence[FloatArray] | None = None,
    ) -> Scored:
        """Return weights with the best of some λ: from a start downhill, until the loss grows.

        λ that are too small for the precision are passed over. Where weights depend on labels,
        those of each fold may be given too.
        """
        predicted_with = self.predictor(by_fold or [weights] * len(self.folds))
        truth, target = self.sample.held_out(self.rows)
        shares, found = target.row_weights.shares, dict[float, Scored]()

        def loss(regularization: float) -> float:
            predicted = predicted_with(regularization)
            losses, right = row_losses(predicted, truth, target)
            candidate = Candidate(
                name,
                weights,
                regularization,
                error=float(shares @ losses),
                pull=0.0,
                strength=self.strength,
                accuracy=None if right is None else float(shares @ right),
                quantiles=self.sample.quantiles,
            )
            found[regularization] = Scored(candidate, losses, predicted)
            self.tried.append(found[regularization])
            return candidate.error

        middle = len(regularizations) // 2
        position = middle if start is None else regularizations.index(start)
        return found[search_lambda(regularizations, loss, _RULE, position).regularization]

    def constant_errors(self) -> FloatArray:
        """Return the squared errors of the means of the other folds, for each row."""
        weights, scores = self.sample.weights.values, self.sample.scores
        found = np.empty(len(scores))
        for outside, inside in self._divisions:
            mean = np.average(scores[outside], axis=0, weights=weights[outside])
            found[inside] = np.sum((scores[inside] - mean) ** 2, axis=1)
        return found

    def _inner_folds(self, fold: int) -> list[Ridge]:
        """Return fits to the rows outside of a fold, with each of the other folds held out.

        They know nothing of the labels in the fold, unlike fits with another fold held out. These
        are enough for kernels of the same columns; the weights of 20 sources of noise knew the
        labels of 100 rows from them, and claimed an accuracy of 59 %.
        """
        sample, outside = self.sample, self._divisions[fold][0]
        rows, found = self.folds[fold], []
        for other in np.setdiff1d(np.arange(sample.n_folds), fold):
            is_held = sample.folds[outside] == other
            order = np.concatenate([np.flatnonzero(~is_held), np.flatnonzero(is_held)])
            stack = rows.part(order, int(np.sum(~is_held)))
            chosen = outside[order]
            known = sample.scores[chosen], sample.weights.values[chosen]
            found.append(Ridge(stack, *known, self._device))
        return found

    def learn_weights(
        self, start: Candidate, pull: float, without: int | None = None
    ) -> FloatArray:
        """Return the weights that descent finds from a candidate, pulled towards equal ones.

        Down the squared error of the scores, which has a gradient that costs little, for the λ of
        the candidate; perhaps without the errors of a fold.
        """
        folds, counted = self.folds, self.sample.weights
        if without is not None and self.sample.menu.n_sources > 1:
            folds = self._inner_folds(without)
        elif without is not None:
            folds = [*folds[:without], *folds[without + 1 :]]
        n_numbers = counted.total * self.sample.scores.shape[1]

        def at(weights: FloatArray, regularization: float) -> ErrorPoint:
            found = each(lambda fold: fold.error(weights, regularization), folds, self._device)
            by_weights = np.sum([f.by_weights for f in found], axis=0)
            return ErrorPoint(sum(f.value for f in found) / n_numbers, by_weights / n_numbers)

        weights, _ = minimize_error(
            at,
            start.weights,
            start.regularization,
            pull=pull,
            n_samples=self.sample.target.effective,
            max_evaluations=_EVALUATIONS,
            worthwhile=_WORTHWHILE,
        )
        return weights


def each(
    work: Callable[[Job], Result], jobs: Sequence[Job], device: Device | None = None
) -> list[Result]:
    """Return the results of some work for all jobs, in their order.

    In as many threads as `n_cores` allows; on a device, which does the work of all, one by one.
    """
    if device is not None:
        return [work(job) for job in jobs]
    results: dict[int, Result] = {}

    def run(position: int, _: None) -> None:
        results[position] = work(jobs[position])

    in_threads(run, range(len(jobs)), [None] * min(n_cores(), len(jobs)))
    return [results[position] for position in range(len(jobs))]


def clearly_better(
    first: FloatArray,
    second: FloatArray,
    shares: FloatArray,
    groups: Groups | None = None,
    n_errors: float = _CLEARLY,
) -> bool:
    """Whether the first losses are less by more than some standard errors of the difference.

    By more than that of few rows, whose standard errors are uncertain themselves. Losses are those
    of held-out rows, which count by their shares. Groups of rows vary together.
    """
    gains = second - first
    mean = float(shares @ gains)
    parts, counted = shares * (gains - mean), shares
    if groups is not None:
        parts, counted = groups.sums(parts), groups.sums(shares)
    clearly = n_errors * (1.0 + _FEW_ROWS / effective_number(counted))
    return mean > clearly * float(np.sqrt(parts @ parts))


class ColumnChoice(NamedTuple):
    """Whether columns are quantiles, with equal weights."""

    #: All that was tried with the chosen columns, by the strength of metrics.
    tried: list[list[Scored]]
    #: The metrics of the chosen columns, one per fold; None if only fits without one were compared.
    metrics: list[Metric] | None
    #: Fits that are not needed any more.
    memory: CrossFit | None
    #: The best of the other columns.
    other: Candidate
    #: For each fold, the choice by the losses of the other rows.
    without: list[Candidate]

    @property
    def quantiles(self) -> bool:
        """Whether quantiles are chosen."""
        return not self.other.quantiles


def choose_columns(
    given: Sample,
    quantiles: Sample,
    learn: Callable[[Sample], list[Metric]],
    *,
    regularization: float | None = None,
    device: Device | None = None,
) -> ColumnChoice:
    """Choose between columns as they are and quantiles, which must be clearly better.

    First without a metric, which takes 3 to 6 % of the time of the default; where quantiles are
    better there, again with the best strength of metrics for each.

    Parameters
    ----------
    given, quantiles : Sample
        The same rows.
    learn : callable
        From a sample to metrics, one per fold.
    regularization, device
        As in `choose`.
    """
    shares, together = given.weights.shares, given.target.groups
    none = [Metric(np.ones(given.rows.shape[1]))] * given.n_folds

    def compare(
        sample: Sample,
        metrics: Sequence[Metric],
        strengths: Sequence[float],
        known: Sequence[list[Scored]] = (),
        memory: CrossFit | None = None,
    ) -> tuple[list[list[Scored]], list[Scored], CrossFit | None]:
        make, lambdas = _fits(sample, regularization, device)
        return _try_strengths(make, metrics, lambdas, shares, together, known, memory, strengths)

    plain, best, memory = compare(given, none, STRENGTHS[:1])
    mapped, rival, memory = compare(quantiles, none, STRENGTHS[:1], memory=memory)
    metrics: tuple[list[Metric] | None, list[Metric] | None] = None, None
    is_better = clearly_better(rival[0].losses, best[0].losses, shares, together)
    if is_better and not must_stop_learning():
        metrics = found = learn(given), learn(quantiles)
        plain, best, memory = compare(given, found[0], STRENGTHS, plain, memory)
        mapped, rival, memory = compare(quantiles, found[1], STRENGTHS, mapped, memory)
    without = [
        _columns_without(plain, mapped, np.where(given.folds == fold, 0.0, shares), together)
        for fold in range(given.n_folds)
    ]
    if clearly_better(rival[0].losses, best[0].losses, shares, together):
        return ColumnChoice(mapped, metrics[1], memory, best[0].candidate, without)
    return ColumnChoice(plain, metrics[0], memory, rival[0].candidate, without)


def _columns_without(
    plain: list[list[Scored]],
    mapped: list[list[Scored]],
    shares: FloatArray,
    together: Groups | None,
) -> Candidate:
    """Return the choice of columns by some shares of the rows.

    Columns as they are come without a metric: others than that of quantiles are not kept.
    """
    shares = shares / shares.sum()
    (best, *_), (rival, *_) = (_ranked(tried, shares, together)[0] for tried in (plain, mapped))
    if clearly_better(rival.losses, best.losses, shares, together):
        return rival.candidate
    return _ranked(plain[:1], shares, together)[0][0].candidate


def _fits(
    sample: Sample, regularization: float | None, device: Device | None
) -> tuple[Callable[..., CrossFit], Sequence[float]]:
    """Return the function from metrics and their strength to fits, and the λ to choose from."""
    # Some λ that users give are too small for single precision.
    dtype = np.float32 if regularization is None else np.float64
    lambdas = _LAMBDAS if regularization is None else (regularization,)
    return partial(CrossFit, sample, device=device, dtype=dtype), lambdas


def choose(
    sample: Sample,
    metrics: Sequence[Metric],
    *,
    pull: float,
    regularization: float | None = None,
    device: Device | None = None,
    is_whole: bool = True,
    groups: Positions | None = None,
    columns: ColumnChoice | None = None,
) -> Selection:
    """Choose a metric and its strength, weights and λ.

    The metric is chosen with equal weights, and then whether learned weights are better. What is
    less simple must be clearly better: a metric or weights that have seen the labels of a small
    sample look good by chance. Strengths of the given metrics are tried as long as the loss falls
    and there is time; then a metric by likelihood, see `_try_likelihood`.

    Parameters
    ----------
    sample : Sample
        The rows.
    metrics : sequence of Metric
        One per fold, learned without it.
    pull : float
        As in `discernel.criteria.LeaveOneOut`.
    regularization : float, optional
        λ; chosen by default.
    device : Device, optional
        Where to compute; by default here.
    is_whole : bool
        Whether the sample has all rows, so that the weights without each fold are of use.
    groups : ndarray of shape (n_columns,), optional
        As in `learn_likelihood_metric`.
    columns : ColumnChoice, optional
        The choice of the columns of the sample, with fits without a metric; by default these are
        made here.
    """
    (make, lambdas), shares = _fits(sample, regularization, device), sample.weights.shares
    together = sample.target.groups
    known = ([], None) if columns is None else (columns.tried, columns.memory)
    tried, ranking, _ = _try_strengths(make, metrics, lambdas, shares, together, *known)
    found = _try_likelihood(make, sample, ranking[0], lambdas, groups, device)
    by_likelihood = None
    if found is not None:
        fit, by_folds = found
        ranking = _with_likelihood(ranking, fit.tried, shares, together)
        if ranking[0].candidate.name == _BY_LIKELIHOOD:
            metrics = by_likelihood = by_folds
            # Without a fold, its metric stays a choice; others than this were not learned for it.
            tried = tried[:1]
    without = []
    for fold in range(sample.n_folds):
        others = np.where(sample.folds == fold, 0.0, shares)
        ranked, _ = _ranked(tried, others, together)
        if by_likelihood is not None:
            ranked = _with_likelihood(ranked, fit.tried, others, together)
        without.append(ranked[0].candidate)
    # Weights and predictions are no choice between few things: in single precision their third and
    # fifth digits would depend on the machine, and on the units of the columns.
    best = ranking[0].candidate
    fit = make(metrics, best.strength, dtype=np.float64)
    ranking[0] = fit.best(best.name, best.weights, (best.regularization,))
    if sample.menu.n_sources > 1:
        ranking = [*_useful_sources(fit, ranking[0], lambdas, without), *ranking]
    candidates = [scored.candidate for scored in ranking]
    if not must_stop_learning():
        learned = _learn_weights(fit, ranking[0], pull, lambdas, without if is_whole else [])
        is_better = clearly_better(learned.losses, ranking[0].losses, shares, together)
        candidates.insert(0 if is_better else 1, learned.candidate)
    if columns is not None:
        candidates.append(columns.other)
    if sample.quantiles and columns is not None:
        # Without a fold, columns as they are stay a choice, without a metric.
        pairs = zip(without, columns.without, strict=True)
        without = [own if one.quantiles else one for own, one in pairs]
    return Selection(candidates, without, by_likelihood)


def _useful_sources(
    fit: CrossFit, start: Scored, lambdas: Sequence[float], without: list[Candidate]
) -> list[Scored]:
    """Return the average of the sources that alone predict better than a constant, if not of all.

    Better must be better than the best of so many sources of noise. With the largest λ, a weak
    source is told from noise by the direction of its predictions, whatever their size. An empty
    list if all are useful or none, or if the others are clearly better with the rest. The choice
    without a fold, by the other rows, replaces the weights in the candidate ``without`` it.
    """
    best, sample, n = start.candidate, fit.sample, fit.sample.menu.n_kernels
    shares, groups = sample.weights.shares, sample.target.groups
    constant, errors = fit.constant_errors(), []
    for source in range(n):
        predicted = fit.predictor([average_of(np.arange(n) == source)] * sample.n_folds)
        errors.append(np.sum((predicted(max(_LAMBDAS)) - sample.scores) ** 2, axis=1))
    clearly = max(_CLEARLY, float(np.sqrt(2.0 * np.log(n))))

    def average(shares: FloatArray) -> FloatArray:
        of_row = shares / shares.sum()
        return average_of([clearly_better(e, constant, of_row, groups, clearly) for e in errors])

    by_fold = [
        average(np.where(sample.folds == fold, 0.0, shares)) for fold in range(sample.n_folds)
    ]
    whole = average(shares)
    if np.all(whole == best.weights):
        return []
    found = fit.best("sources", whole, lambdas, best.regularization, by_fold)
    if clearly_better(start.losses, found.losses, shares, groups):
        return []
    for fold, one in enumerate(without):
        if one.strength == best.strength:
            without[fold] = replace(one, weights=by_fold[fold])
    return [found]


def _learn_weights(
    fit: CrossFit, start: Scored, pull: float, lambdas: Sequence[float], without: list[Candidate]
) -> Scored:
    """Return learned weights from a start; if they are better, learn them without each fold too.

    The latter replace the weights in the candidates ``without`` each fold, if there are any. The
    weights of sources, which have less in common than kernels of the same columns, would look good
    by chance: there, those without each fold predict the rows of the fold.
    """
    best, sample, by_fold = start.candidate, fit.sample, None

    def learn_without(fold: int) -> FloatArray:
        own = without[fold] if without else best
        like = replace(best, weights=own.weights) if own.strength == best.strength else best
        return fit.learn_weights(like, pull, without=fold)

    if sample.menu.n_sources > 1:
        by_fold = [learn_without(fold) for fold in range(sample.n_folds)]
    learned = fit.learn_weights(best, pull)
    found = fit.best("weights", learned, lambdas, best.regularization, by_fold)
    if clearly_better(found.losses, start.losses, sample.weights.shares, sample.target.groups):
        for fold, one in enumerate(without):
            weights = learn_without(fold) if by_fold is None else by_fold[fold]
            like = found.candidate if one.strength == best.strength else one
            without[fold] = replace(like, weights=weights)
    return found


def _try_strengths(
    make: Callable[..., CrossFit],
    metrics: Sequence[Metric],
    lambdas: Sequence[float],
    shares: FloatArray,
    together: Groups | None,
    known: Sequence[list[Scored]] = (),
    memory: CrossFit | None = None,
    strengths: Sequence[float] = STRENGTHS,
) -> tuple[list[list[Scored]], list[Scored], CrossFit | None]:
    """Return all that was tried with each strength of metrics, the ranking of the best, and memory.

    The first strengths may be known.
    """
    tried, fit = list(known), memory
    ranking, falls = _ranked(tried, shares, together)
    for strength in strengths[len(tried) :]:
        if not falls or (tried and must_stop_learning()):
            break  # more of a metric that does no good does none either
        start = ranking[0].candidate.regularization if ranking else None
        fit = make(metrics, strength, memory=fit)
        fit.best("average", uniform(fit.sample.menu.n_kernels), lambdas, start)
        tried.append(fit.tried)
        ranking, falls = _ranked(tried, shares, together)
    return tried, ranking, fit


def _try_likelihood(
    make: Callable[..., CrossFit],
    sample: Sample,
    best: Scored,
    lambdas: Sequence[float],
    groups: Positions | None,
    device: Device | None,
) -> tuple[CrossFit, list[Metric]] | None:
    """Return fits with a metric by likelihood for each fold, and the metrics.

    None if on the first fold they are not clearly better than the best so far, if there is no time,
    if there are several sources, or no two columns or classes to tell apart there.
    """
    rows = np.flatnonzero(sample.folds == 0)
    truth, target = sample.held_out(rows)
    is_table = sample.menu.n_sources == 1 and sample.rows.shape[1] > 1
    if must_stop_learning() or not is_table or not target.scores.shape[1]:
        return None
    known, weights = best.candidate, uniform(sample.menu.n_kernels)

    def scored(metrics: list[Metric]) -> tuple[CrossFit, Scored]:
        fit = make(metrics, 1.0)
        return fit, fit.best(_BY_LIKELIHOOD, weights, lambdas, known.regularization)

    outside = [rows for rows, _ in sample.divisions()]
    first = sample.likelihood_metric(
        outside[0], groups, device, most=_MOST_TO_TRY, dtype=np.float32
    )
    _, found = scored([first])
    losses, _ = row_losses(best.predicted[rows], truth, target)
    if not clearly_better(found.losses, losses, target.row_weights.shares, target.groups):
        return None
    metrics = each(partial(sample.likelihood_metric, groups=groups, device=device), outside, device)
    if must_stop_learning():
        return None  # they may have been cut short
    fit, _ = scored(metrics)
    return fit, metrics


def _with_likelihood(
    ranking: list[Scored], tried: list[Scored], shares: FloatArray, together: Groups | None
) -> list[Scored]:
    """Return a ranking with the best of some fits: first if it is clearly better, else last."""
    shares = shares / shares.sum()
    best = min(tried, key=lambda one: float(shares @ one.losses))
    is_better = clearly_better(best.losses, ranking[0].losses, shares, together)
    return [best, *ranking] if is_better else [*ranking, best]


def _ranked(
    tried: list[list[Scored]], shares: FloatArray, together: Groups | None = None
) -> tuple[list[Scored], bool]:
    """Return the best of each strength, the chosen one first, by some shares of the rows.

    The chosen one is the first that no other is clearly better than. And whether the loss falls
    from each strength to the next; those after one where it does not are left out.
    """
    shares = shares / shares.sum()
    found: list[Scored] = []
    before = np.inf
    for group in tried:
        losses = [float(shares @ one.losses) for one in group]
        best, loss = group[int(np.argmin(losses))], min(losses)
        clearly = bool(found) and clearly_better(best.losses, found[0].losses, shares, together)
        found.insert(0 if clearly else len(found), best)
        if loss >= before:
            return found, False
        before = loss
    return found, True
