"""The strength of learned column scales, compared on held-out folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from discernel.arrays import Device, FloatArray
from discernel.arrays.groups import Groups
from discernel.default.cross_fit import CrossFit, Scored, clearly_better
from discernel.default.metric import Metric
from discernel.default.sample import Sample
from discernel.programs.lambdas import lambda_grid
from discernel.programs.simplex import uniform
from discernel.progress.deadline import must_stop_learning

#: Powers of the learned scales: no metric, half of it, all of it.
STRENGTHS = (0.0, 0.5, 1.0)
#: λ to choose from; smaller ones are too small for single precision.
LAMBDAS = lambda_grid(0.0, -5.5)


def make_fits(
    sample: Sample, regularization: float | None, device: Device | None
) -> tuple[Callable[..., CrossFit], Sequence[float]]:
    """Return the function from metrics and their strength to fits, and the λ to choose from."""
    # Some λ that users give are too small for single precision.
    dtype = np.float32 if regularization is None else np.float64
    lambdas = LAMBDAS if regularization is None else (regularization,)
    return partial(CrossFit, sample, device=device, dtype=dtype), lambdas


def try_strengths(
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
    ranking, falls = ranked_by_strength(tried, shares, together)
    for strength in strengths[len(tried) :]:
        if not falls or (tried and must_stop_learning()):
            break  # more of a metric that does no good does none either
        start = ranking[0].candidate.regularization if ranking else None
        fit = make(metrics, strength, memory=fit)
        fit.best("average", uniform(fit.sample.menu.n_kernels), lambdas, start)
        tried.append(fit.tried)
        ranking, falls = ranked_by_strength(tried, shares, together)
    return tried, ranking, fit


def ranked_by_strength(
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
        best = min(group, key=lambda one: float(shares @ one.score_losses))
        loss = float(shares @ best.losses)
        clearly = bool(found) and clearly_better(best.losses, found[0].losses, shares, together)
        found.insert(0 if clearly else len(found), best)
        if loss >= before:
            return found, False
        before = loss
    return found, True
