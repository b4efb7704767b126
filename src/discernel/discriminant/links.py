"""Links: from the scores of rows to log-likelihoods of their classes, and their mixture.

Every link is linear in the scores, and so is their mixture, which is their weighted sum.
A model with several links therefore stays one kernel machine with one matrix of coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg

from discernel.arrays import ALMOST_ZERO, FloatArray
from discernel.targets import ClassTarget

#: The links in the order of their weights: Gaussian classes, logistic regression on held-out
#: scores, kernel logistic regression.
LINKS = ("gaussian", "logistic", "kernel logistic")
#: The pull of mixture weights to equal ones counts as so many rows with the mean curvature of the
#: log-loss, whose best weights are equal; as no more than there are. It does not depend on the
#: scale of the links: a pull by the distance of weights kept them nearly equal where classes are
#: well apart. Log-loss fell with up to 200 rows, and was the same in the mean over 34 tasks.
_PRIOR_ROWS = 200.0
#: The strength of a further pull by their distance, without which equal links would have any.
_PULL = 1.0
#: The logarithm of a probability that stands for 0.
LEAST_LOG = float(np.log(1e-6))
#: The mean change of a parameter of a logistic regression with which Newton's method ends, before a
#: last step that leaves so small a share of the gradient.
_LAST_CHANGE, _REST = 1e-6, 1e-6
#: Newton steps after a search for the weights of links, and the largest, relative to the weights.
_POLISHING, _NEAR = 2, 1e-2


class Link(NamedTuple):
    """log p(x | class) up to a constant of the row: ``scores @ slopes + constants``.

    Attributes
    ----------
    slopes : ndarray of shape (n_scores, n_classes)
    constants : ndarray of shape (n_classes,)
    """

    slopes: FloatArray
    constants: FloatArray

    def log_likelihood(self, scores: FloatArray) -> FloatArray:
        """Return the log-likelihoods of rows, of shape (n_rows, n_classes)."""
        return np.asarray(scores @ self.slopes + self.constants)


@dataclass(frozen=True)
class Mixture:
    """Links that are added with weights, learned from held-out rows.

    Attributes
    ----------
    weights : dict of str to float
        The weight of each link, by name.
    link : Link
        Their weighted sum, from all scores to log-likelihoods: those of the least-squares fit,
        then the logits of the kernel logistic regression, if it has weight.
    score_link : Link
        The mixture of the links of least-squares scores alone.
    held_out : ndarray of shape (n_rows, n_classes)
        Log-likelihoods of held-out rows, by links and weights of the other folds.
    """

    weights: dict[str, float]
    link: Link
    score_link: Link
    held_out: FloatArray

    def among(self, place: FloatArray) -> Mixture:
        """Return the mixture with further classes, which have no rows."""
        held_out = np.full((len(self.held_out), len(place)), -np.inf)
        held_out[:, place.any(axis=1)] = self.held_out
        link, score_link = (
            Link(link.slopes @ place.T, place @ link.constants)
            for link in (self.link, self.score_link)
        )
        return Mixture(self.weights, link, score_link, held_out)


class KernelLogistic(NamedTuple):
    """A kernel logistic regression, and its logits of held-out rows.

    Logits are those of all classes but the first, relative to the first.

    Attributes
    ----------
    coef : ndarray of shape (n_samples, n_classes - 1)
        The expansion of the logits in the training rows.
    intercept : ndarray of shape (n_classes - 1,)
    held_out : ndarray of shape (n_rows, n_classes - 1)
        Logits of rows, by fits to the other folds.
    """

    coef: FloatArray
    intercept: FloatArray
    held_out: FloatArray


def logistic_link(start: Link, coordinates: FloatArray, target: ClassTarget) -> Link:
    """Return the logistic regression of the classes on held-out scores, drawn to another link.

    With shares of the classes π and z the coordinates of a row, p is the softmax of zV + b + log π.
    Slopes V and constants b minimise Σ_i −log p_i + ½‖V − V₀‖²/mean(V₀²) + ½‖b − b₀‖², with V₀ and
    b₀ those of ``start``. Coordinates along which ``start`` has no slopes have none here: classes
    lie reversed along them, which new rows would not repeat.

    Parameters
    ----------
    start : Link
        The link that it is drawn to, from coordinates.
    coordinates : ndarray of shape (n_rows, n_components)
        The scores in coordinates in which the covariance within classes is the identity.
    target : ClassTarget
        The classes of the rows; each has rows.
    """
    told = np.flatnonzero(start.slopes.any(axis=1))
    spread = float(np.mean(start.slopes[told] ** 2)) if len(told) else 0.0
    if spread < ALMOST_ZERO:  # these slopes tell nothing
        return start
    counts, own = _counts(target)[:, None], np.eye(target.n_classes)[target.codes]
    features = np.hstack([np.sqrt(spread) * coordinates[:, told], np.ones((len(coordinates), 1))])
    offset = start.log_likelihood(coordinates) + np.log(target.shares)
    shape, rows = (features.shape[1], target.n_classes), np.arange(len(own))

    known = np.full(shape[0] * shape[1], np.nan), offset, offset  # of the last change

    def shares_at(change: FloatArray) -> tuple[FloatArray, FloatArray]:
        nonlocal known
        if not np.array_equal(known[0], change):
            known = change.copy(), *_softmax(offset + features @ change.reshape(shape))
        return known[1:]

    def loss(change: FloatArray) -> tuple[float, FloatArray]:
        shares, logs = shares_at(change)
        gradient = features.T @ (counts * (shares - own))
        value = -float(counts[:, 0] @ logs[rows, target.codes]) + 0.5 * float(change @ change)
        return value, gradient.ravel() + change

    def curvature(change: FloatArray, step: FloatArray) -> FloatArray:
        shares, _ = shares_at(change)
        along = shares * (features @ step.reshape(shape))
        along -= shares * along.sum(axis=1, keepdims=True)
        return np.asarray((features.T @ (counts * along)).ravel() + step)

    first, options = np.zeros(shape[0] * shape[1]), {"xtol": _LAST_CHANGE}
    found = minimize(loss, first, jac=True, hessp=curvature, method="Newton-CG", options=options).x
    # Nearer to the minimum values differ by rounding alone, but gradients do not.
    hessian = LinearOperator((found.size, found.size), partial(curvature, found), dtype=np.float64)
    found = found - cg(hessian, loss(found)[1], rtol=_REST, atol=ALMOST_ZERO)[0]
    change, slopes = found.reshape(shape), start.slopes.copy()
    slopes[told] += np.sqrt(spread) * change[:-1]
    return Link(slopes, start.constants + change[-1])


def mixture_weights(
    likelihoods: FloatArray, target: ClassTarget, log_priors: FloatArray
) -> FloatArray:
    """Return the weights v ≥ 0 of links whose weighted sum has the least log-loss.

    Probabilities are the softmax of Σ_j v_j l_j + log π, with l_j the log-likelihoods by link j.
    Weights are pulled to equal ones, see `_PRIOR_ROWS` and `_PULL`. As for the
    sharpness of Gaussian classes, one row in n + 2 counts as one of the likeliest other class: n
    rows without an error do not rule out an error of 1/n.

    Parameters
    ----------
    likelihoods : ndarray of shape (n_links, n_rows, n_classes)
        Held-out log-likelihoods by every link.
    target : ClassTarget
        The classes of the rows.
    log_priors : ndarray of shape (n_classes,)
        log π.
    """
    n_links, rows = len(likelihoods), np.arange(target.n_samples)
    equal = np.full(n_links, 1.0 / n_links)
    if not target.n_samples:
        return equal
    counts = _counts(target)
    doubt = 1.0 / (target.effective + 2.0)
    others = likelihoods.mean(axis=0) + log_priors
    others[rows, target.codes] = -np.inf
    truth = (1.0 - doubt) * likelihoods[:, rows, target.codes]
    truth += doubt * likelihoods[:, rows, others.argmax(axis=1)]
    along, flat = truth @ counts, likelihoods.reshape(n_links, -1)

    def curvature(weights: FloatArray) -> FloatArray:
        logits = (weights @ flat).reshape(likelihoods.shape[1:]) + log_priors
        shares, _ = _softmax(logits)
        centered = likelihoods - np.sum(likelihoods * shares, axis=2, keepdims=True)
        scaled = (centered * np.sqrt(counts[:, None] * shares)).reshape(n_links, -1)
        return np.asarray(scaled @ scaled.T)

    prior_rows = min(_PRIOR_ROWS, target.effective)
    prior = _PULL * n_links * np.eye(n_links) + prior_rows / target.effective * curvature(equal)

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        logits = (weights @ flat).reshape(likelihoods.shape[1:]) + log_priors
        shares, logs = _softmax(logits)
        totals = logits[:, 0] - logs[:, 0]
        pull = prior @ (weights - equal)
        value = counts @ totals - weights @ along + 0.5 * pull @ (weights - equal)
        return float(value), flat @ (counts[:, None] * shares).ravel() - along + pull

    bounds = [(0.0, None)] * n_links
    options = {"ftol": 1e-14, "gtol": 1e-10}
    found = minimize(loss, equal, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
    return _polished(found.x, lambda at: loss(at)[1], lambda at: curvature(at) + prior)


def _polished(
    weights: FloatArray,
    gradient: Callable[[FloatArray], FloatArray],
    hessian: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Return weights after Newton steps of the positive ones: values told half of their digits."""
    free = np.flatnonzero(weights > 0)
    for _ in range(_POLISHING if len(free) else 0):
        try:
            step = np.linalg.solve(hessian(weights)[np.ix_(free, free)], gradient(weights)[free])
        except np.linalg.LinAlgError:
            break  # links that say the same of few rows, whose pull is lost in rounding
        if not (np.abs(step) <= _NEAR * weights[free]).all():
            break  # it was not near the minimum
        weights = weights.copy()
        weights[free] -= step
    return weights


def _softmax(logits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the softmax of the rows of finite logits, and its logarithm.

    SciPy's functions take several times as long for a hundred rows.
    """
    logs = logits - logits.max(axis=1, keepdims=True)
    shares = np.exp(logs)
    totals = shares.sum(axis=1, keepdims=True)
    shares /= totals
    logs -= np.log(totals)
    return shares, logs


def _counts(target: ClassTarget) -> FloatArray:
    """Return the weights of rows, which sum to the effective number of rows or groups."""
    return target.row_weights.shares * target.effective
