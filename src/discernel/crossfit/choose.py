"""Which metric and which kernels: what predicts the rows of folds best that had no part in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import joblib
import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from discernel.backend import FloatArray, in_threads
from discernel.crossfit.fold import Fold
from discernel.crossfit.menu import MENU, Menu
from discernel.crossfit.sample import Sample
from discernel.exceptions import NumericalError
from discernel.learners.loo import pull_to_equal
from discernel.learners.simplex import normalize, uniform
from discernel.metric import Metric, learn_metric

__all__ = ["Choice", "CrossFit", "choose"]

#: Powers of the learned scales: no metric, half of it, all of it.
STRENGTHS = (0.0, 0.5, 1.0)
#: λ to start from, falling.
_LAMBDAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
_LAMBDA_BOUNDS = (3e-6, 1.0)
#: A candidate that is less simple must be better by this many standard errors.
_CLEARLY = 2.0
#: Steps of the descent over weights.
_EVALUATIONS = 20
_WORTHWHILE, _NEGLIGIBLE = 1e-4, 1e-3

Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Choice:
    """A candidate: a strength of the metric, weights, λ, and what it predicts for left-out rows.

    Attributes
    ----------
    name : str
        ``"average"`` or ``"weights"``.
    strength : float
        The power of the learned scales.
    weights : ndarray of shape (n_kernels,)
        Of the kernels of the menu.
    regularization : float
        λ.
    predicted : ndarray of shape (n_rows, n_outputs)
        For every row, by the fit and the metric of the other folds.
    errors : ndarray of shape (n_rows,)
        The mean squared error of each row.
    """

    name: str
    strength: float
    weights: FloatArray
    regularization: float
    predicted: FloatArray
    errors: FloatArray


class CrossFit:
    """Scores candidates by folds; the metric of each fold is learned without it.

    Parameters
    ----------
    sample : Sample
        The rows.
    metrics : sequence of Metric
        One per fold.
    strength : float
        The power of their scales.
    menu : Menu
        The kernels.
    """

    def __init__(
        self, sample: Sample, metrics: Sequence[Metric], strength: float, menu: Menu = MENU
    ) -> None:
        self.sample, self.strength, self.n_kernels = sample, strength, menu.n_kernels
        self._share = sample.weights / sample.weights.sum()

        def make(job: tuple[Metric, tuple[FloatArray, FloatArray]]) -> Fold:
            metric, (outside, inside) = job
            return Fold(sample, outside, inside, metric.of_strength(strength), menu)

        self.folds = each(make, list(zip(metrics, sample.divisions(), strict=True)))

    def choices(self, name: str, weights: FloatArray) -> Callable[[float], Choice]:
        """Return a function of λ: these weights, with what they predict."""
        predictors = each(lambda fold: fold.predictor(weights), self.folds)

        def at(regularization: float) -> Choice:
            parts = each(lambda predict: predict(regularization), predictors)
            predicted = np.empty_like(self.sample.scores)
            for fold, part in zip(self.folds, parts, strict=True):
                predicted[fold.inside] = part
            errors = np.mean((predicted - self.sample.scores) ** 2, axis=1)
            return Choice(name, self.strength, weights, regularization, predicted, errors)

        return at

    def average(self, regularizations: Sequence[float], start: float | None = None) -> Choice:
        """Return equal weights with the best λ: from a start downhill, until the error grows."""
        at = self.choices("average", uniform(self.n_kernels))
        found: dict[int, Choice] = {}

        def error(position: int) -> float:
            if not 0 <= position < len(regularizations):
                return np.inf
            if position not in found:
                try:
                    found[position] = at(regularizations[position])
                except NumericalError:
                    return np.inf
            return self.mean(found[position])

        here = len(regularizations) // 2 if start is None else regularizations.index(start)
        while (there := min((here, here - 1, here + 1), key=error)) != here:
            here = there
        return found[here]

    def mean(self, choice: Choice) -> float:
        """Return the mean squared error, by the weights of the rows."""
        return float(self._share @ choice.errors)

    def improved(self, start: Choice, pull: float, *, fixed_regularization: bool) -> Choice:
        """Return the weights and λ that descent finds from a candidate, pulled to equal ones."""
        p, n, size = self.n_kernels, float(self.sample.weights.sum()), self.sample.scores.shape[1]
        unit = self.mean(start)

        def value_and_gradient(z: FloatArray) -> tuple[float, FloatArray]:
            w, lam = np.maximum(softmax(z[:p]), 1e-30), float(np.exp(z[p]))
            found = each(lambda fold: fold.error(w, lam), self.folds)
            value = pull_to_equal(w, pull, n)
            by_w = pull / n * (np.log(w * p) + 1.0)
            by_lambda = 0.0
            for fold, error in zip(self.folds, found, strict=True):
                inside = fold.inside
                squares = (error.predicted - self.sample.scores[inside]) ** 2
                value += float(self._share[inside] @ squares.mean(axis=1))
                by_w = by_w + error.by_weights / (n * size)
                by_lambda += error.by_regularization / (n * size)
            slope = 0.0 if fixed_regularization else by_lambda * lam
            return value / unit, np.append(w * (by_w - w @ by_w), slope) / unit

        low, high = _LAMBDA_BOUNDS
        lam = start.regularization
        bounds = (lam, lam) if fixed_regularization else (min(low, lam), max(high, lam))
        z0 = np.append(np.log(np.maximum(start.weights, _NEGLIGIBLE / p)), np.log(lam))
        try:
            result = minimize(
                value_and_gradient,
                z0,
                jac=True,
                method="L-BFGS-B",
                bounds=[(None, None)] * p + [tuple(np.log(bounds))],
                options={"maxfun": _EVALUATIONS, "ftol": _WORTHWHILE},
            )
        except NumericalError:
            return start
        weights = softmax(result.x[:p])
        weights = normalize(np.where(weights < _NEGLIGIBLE, 0.0, weights))
        return self.choices("weights", weights)(float(np.exp(result.x[p])))


def each(work: Callable[[Job], Result], jobs: Sequence[Job]) -> list[Result]:
    """Return what work makes of every job, in their order, in as many threads as there are CPUs."""
    results: dict[int, Result] = {}

    def run(position: int, _: None) -> None:
        results[position] = work(jobs[position])

    in_threads(run, range(len(jobs)), [None] * min(int(joblib.cpu_count()), len(jobs)))
    return [results[position] for position in range(len(jobs))]


def clearly_better(first: Choice, second: Choice, share: FloatArray) -> bool:
    """Whether the first is better by more than two standard errors of the difference."""
    gain = second.errors - first.errors
    mean = float(share @ gain)
    spread = float(np.sqrt(share**2 @ (gain - mean) ** 2))
    return mean > _CLEARLY * spread


def choose(
    sample: Sample,
    metrics: Sequence[Metric],
    *,
    pull: float,
    regularization: float | None = None,
    strengths: Sequence[float] = STRENGTHS,
) -> list[Choice]:
    """Return all candidates, the chosen one first.

    The strength is chosen with equal weights, and then whether learned weights are better. What is
    less simple must be clearly better: a metric or weights that have seen the labels of a small
    sample look good by chance.

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
    strengths : sequence of float
        The powers of the scales to choose from, rising, 0 among them.
    """
    lambdas = _LAMBDAS if regularization is None else (regularization,)
    share = sample.weights / sample.weights.sum()
    best: CrossFit | None = None
    candidates: list[Choice] = []
    for strength in strengths:
        fit = CrossFit(sample, metrics, strength)
        start = candidates[0].regularization if candidates else None
        found = fit.average(lambdas, start)
        if best is None or clearly_better(found, candidates[0], share):
            best, candidates = fit, [found, *candidates]
        else:
            candidates.append(found)
    assert best is not None
    learned = best.improved(
        candidates[0], pull, fixed_regularization=regularization is not None
    )
    place = 0 if clearly_better(learned, candidates[0], share) else 1
    candidates.insert(place, learned)
    return candidates
