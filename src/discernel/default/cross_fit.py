"""Candidate kernels, weights and λ, compared by their losses on held-out folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from scipy.special import log_softmax

from discernel.arrays import Buffers, Device, FloatArray, Positions, in_threads, n_cores
from discernel.arrays.groups import Groups
from discernel.arrays.sample_weights import effective_number
from discernel.default.logits import LogitSearch
from discernel.default.menu import matrices_on_device
from discernel.default.metric import Metric
from discernel.default.ridge import Ridge
from discernel.default.sample import Sample
from discernel.discriminant import log_posteriors, posterior_losses, row_losses
from discernel.programs.lambdas import Rule, search_lambda
from discernel.programs.loo import ErrorPoint, minimize_error
from discernel.programs.solution import Candidate
from discernel.targets import ClassTarget

_RULE = Rule(skips_failures=True)
#: A candidate that is less simple must be better by this many standard errors.
CLEARLY = 1.0
#: With so many rows, by twice as many.
_FEW_ROWS = 20.0
#: Evaluations of the descent over weights, and the decrease that is worth one more.
_EVALUATIONS, _WORTHWHILE = 20, 1e-4
#: Steps towards the best shares of two links.
_MIXING_STEPS = 100

Job = TypeVar("Job")
Result = TypeVar("Result")


class Scored(NamedTuple):
    """A candidate, its losses on the held-out rows, and the predicted scores."""

    candidate: Candidate
    #: By which candidates are compared: of the links mixed, see `CrossFit.best`.
    losses: FloatArray
    predicted: FloatArray
    #: By which λ is chosen: of the predicted scores alone, see `row_losses`.
    score_losses: FloatArray


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
    buffers : sequence of Buffers, optional
        Memory for each fold, of fits that are not needed any more.
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
        buffers: Sequence[Buffers] | None = None,
        device: Device | None = None,
    ) -> None:
        self.sample, self.strength, self._device = sample, strength, device
        self._divisions = list(sample.divisions())[: len(metrics)]
        #: The held-out rows.
        self.rows = np.flatnonzero(sample.folds < len(metrics))

        def make(job: tuple[Metric, tuple[Positions, Positions], Buffers]) -> Ridge:
            metric, (outside, inside), buffers = job
            scales, order = metric.of_strength(strength), np.concatenate([outside, inside])
            rows, n = sample.menu.scaled(sample.rows, scales)[order], len(outside)
            if device is not None:
                stack = matrices_on_device(sample.menu, rows, n, device)
            else:
                shape = sample.menu.n_kernels, len(rows), n
                stack = sample.menu.matrices(rows, n, buffers("stack", shape, dtype))
            known = sample.scores[order], sample.weights.values[order]
            return Ridge(stack, *known, device, buffers)

        if buffers is None:
            buffers = [Buffers() for _ in self._divisions]
        #: One fit per fold, which is held out.
        self.folds: list[Ridge] = each(
            make, list(zip(metrics, self._divisions, buffers, strict=False)), device
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
        those of each fold may be given too. If the sample has classes for a kernel logistic
        regression, losses are those of a mixture of its probabilities with those of the scores.
        """
        weights_of_folds = by_fold or [weights] * len(self.folds)
        predicted_with = self.predictor(weights_of_folds)
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
                few_widths=self.sample.menu.few_widths,
            )
            found[regularization] = Scored(candidate, losses, predicted, losses)
            return candidate.error

        middle = len(regularizations) // 2
        position = middle if start is None else regularizations.index(start)
        lam = search_lambda(regularizations, loss, _RULE, position).regularization
        of_logits = self.sample.logit_regularization
        if of_logits is not None and len(self.rows) == len(self.sample.rows):
            classes = cast(ClassTarget, target)
            search = LogitSearch(classes, lam, of_logits, searches=False)
            self.add_logits(search, weights_of_folds)
            by_scores = log_posteriors(found[lam].predicted, classes, truth)
            by_logits = np.asarray(log_softmax(search.held_out(), axis=1))
            mixed = mixed_posteriors(by_scores, by_logits, classes)
            losses, right = posterior_losses(mixed, classes)
            error, accuracy = float(shares @ losses), float(shares @ right)
            told = replace(found[lam].candidate, error=error, accuracy=accuracy, logistic=True)
            found[lam] = found[lam]._replace(candidate=told)
            found = {known: one._replace(losses=losses) for known, one in found.items()}
        self.tried += found.values()
        return found[lam]

    def add_logits(
        self, search: LogitSearch, weights: Sequence[FloatArray], first: int = 0
    ) -> None:
        """Predict rows by kernel logistic regressions of the other folds.

        Parameters
        ----------
        search : LogitSearch
            Gets the regressions.
        weights : sequence of ndarray of shape (n_kernels,)
            Those of each fold, from the first on.
        first : int
            The first fold whose rows are predicted.
        """
        known = zip(self.folds[first:], weights, self._divisions[first:], strict=False)
        for fold, own, division in known:
            search.add_fold(*fold.weighted_matrices(own), *division)

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


def mixed_posteriors(
    by_scores: FloatArray, by_logits: FloatArray, target: ClassTarget
) -> FloatArray:
    """Return log p(class | x) of a mixture of two, each of shape (n_rows, n_classes).

    The shares of both are those that make the classes of the rows likeliest, with one row more for
    each, so that none is 0.
    """
    losses = [posterior_losses(each, target)[0] for each in (by_scores, by_logits)]
    truth, shares = np.exp(-np.stack(losses)), np.full(2, 0.5)
    counts = target.row_weights.shares * target.effective
    for _ in range(_MIXING_STEPS):
        parts = shares[:, None] * truth
        shares = ((parts / parts.sum(axis=0)) @ counts + 1.0) / (counts.sum() + 2.0)
    own, other = np.log(shares)
    return np.asarray(np.logaddexp(by_scores + own, by_logits + other))


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
    n_errors: float = CLEARLY,
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
