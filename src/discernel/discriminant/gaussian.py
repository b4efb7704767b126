"""Gaussian classes in the space of the scores: directions, means, covariance and sharpness.

The directions of kernel discriminant analysis are those of a least-squares fit of class scores
(optimal scoring), so no eigenproblem of size n_samples is solved: one system, then everything
happens in n_classes − 1 dimensions, where samples are told apart as in linear discriminant
analysis: Gaussian classes with their own means and one covariance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_softmax

from discernel.arrays import FloatArray
from discernel.arrays.groups import Groups
from discernel.arrays.sample_weights import SampleWeights
from discernel.discriminant.links import LEAST_LOG, Link, Mixture
from discernel.programs.least_squares import LeastSquares
from discernel.targets import SMALLEST_REST, ClassTarget, Target

#: Smallest variance within the classes along a direction, relative to the largest, and to the mean
#: square of the scores: where nothing varies within the classes, there is no largest to go by.
_SMALLEST_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Discriminant:
    """Gaussian classes in the space of the fitted class scores.

    Attributes
    ----------
    dual_coef : ndarray of shape (n_samples, n_classes - 1)
        The directions, expanded in the training rows.
    intercept : ndarray of shape (n_classes - 1,)
    means : ndarray of shape (n_classes, n_components)
        Class means, in coordinates where the covariance is the identity. There are n_classes − 1
        coordinates, or as many as the scores of rows span: a kernel of lower rank has fewer.
    scalings : ndarray of shape (n_classes - 1, n_components)
        From fitted scores to those coordinates; the classes differ most along the first.
    center : ndarray of shape (n_classes - 1,)
        The mean of the classes, taken from the scores first.
    explained : ndarray of shape (n_components,)
        The share of the variance between the classes along each coordinate.
    training_scores : ndarray of shape (n_samples, n_classes - 1)
        The scores of the training rows that the statistics were taken from.
    training_codes : ndarray of shape (n_samples,)
        The classes of those rows.
    training_weights : ndarray of shape (n_samples,) or None
        How much those rows count; None: all the same.
    training_groups : ndarray of shape (n_samples,) or None
        The groups of those rows, which are held out together; None: each row is held out alone.
    class_scores : ndarray of shape (n_classes, n_classes - 1) or None
        The scores that rows of each class were fitted to.
    sharpness : float
        The factor of log-likelihoods, because classes are not Gaussian.
    mixture : Mixture or None
        The links that probabilities are made with; None: Gaussian classes alone.
    """

    dual_coef: FloatArray
    intercept: FloatArray
    means: FloatArray
    scalings: FloatArray
    center: FloatArray
    explained: FloatArray
    training_scores: FloatArray
    training_codes: NDArray[np.intp]
    training_weights: FloatArray | None = None
    class_scores: FloatArray | None = None
    sharpness: float = 1.0
    mixture: Mixture | None = None
    training_groups: NDArray[np.intp] | None = None

    @property
    def training(self) -> ClassTarget:
        """The classes of the training rows, and how much these count."""
        given = self.training_weights
        weights = None if given is None else SampleWeights(given)
        groups = None if self.training_groups is None else Groups(self.training_groups)
        return ClassTarget(np.arange(len(self.means)), self.training_codes, weights, groups)

    def among(self, target: ClassTarget) -> Discriminant:
        """Return the discriminant with all classes of a target, also those without rows.

        These lie at the centre, and never win: their probability before a row is seen is 0.
        """
        if len(self.means) == target.n_classes:
            return self
        seen, given = np.flatnonzero(target.counts), self.class_scores
        place = np.eye(target.n_classes)[:, seen]
        return replace(
            self,
            means=place @ self.means,
            training_codes=seen[self.training_codes],
            class_scores=None if given is None else place @ given,
            mixture=None if self.mixture is None else self.mixture.among(place),
        )

    def coordinates(self, scores: FloatArray) -> FloatArray:
        """Return fitted scores in discriminant coordinates, covariance the identity."""
        return np.asarray((scores[:, : len(self.center)] - self.center) @ self.scalings)

    def log_likelihood(self, scores: FloatArray) -> FloatArray:
        """Return log p(x | class) up to a constant of the row, of shape (n_rows, n_classes)."""
        if self.mixture is not None:
            return self.mixture.link.log_likelihood(scores)
        return self.gaussian.log_likelihood(self.coordinates(scores))

    def log_posterior(self, scores: FloatArray, priors: FloatArray) -> FloatArray:
        """Return log p(class | x) up to a constant of the row, of shape (n_rows, n_classes)."""
        return self.log_likelihood(scores) + logarithms(priors)

    @property
    def gaussian(self) -> Link:
        """The link of Gaussian classes, from coordinates to log-likelihoods."""
        lengths = 0.5 * self.sharpness * np.sum(self.means**2, axis=1)
        return Link(self.sharpness * self.means.T, -lengths)

    def from_scores(self, link: Link) -> Link:
        """Return a link from coordinates as one from fitted scores."""
        slopes = self.scalings @ link.slopes
        return Link(slopes, link.constants - self.center @ slopes)

    @property
    def linear(self) -> Link:
        """The link with which `log_likelihood` is ``scores @ slopes + constants``."""
        return self.from_scores(self.gaussian) if self.mixture is None else self.mixture.link


def discriminant_of_shares(target: ClassTarget) -> Discriminant:
    """Return the discriminant where nothing tells classes apart: no scores and no coordinates."""
    none = np.empty(0)
    return Discriminant(
        dual_coef=np.empty((target.n_samples, 0)),
        intercept=none,
        means=np.empty((target.n_classes, 0)),
        scalings=np.empty((0, 0)),
        center=none,
        explained=none,
        training_scores=np.empty((target.n_samples, 0)),
        class_scores=np.empty((target.n_classes, 0)),
        **_training(target),
    )


def _training(target: ClassTarget) -> dict[str, Any]:
    """Return the fields of a `Discriminant` that `Discriminant.training` is made of."""
    weights, groups = target.row_weights, target.groups
    return {
        "training_codes": target.codes,
        "training_weights": None if weights.is_equal else weights.values,
        "training_groups": None if groups is None else groups.codes,
    }


def log_posteriors(scores: FloatArray, target: ClassTarget, truth: FloatArray) -> FloatArray:
    """Return log p(class | x) of rows whose scores were predicted without them.

    By the discriminant of these scores themselves, of shape (n_rows, n_classes): what a user would
    be told, for comparing kernels by what they are chosen for. The statistics of the classes are
    those of the other rows. Where the classes of the scores lie reversed, compared with the truth,
    nothing is told.
    """
    _, likelihood = calibrated(within_reach(scores, target), target, target.means(truth))
    return np.asarray(log_softmax(likelihood + np.log(target.shares), axis=1))


def row_losses(
    predicted: FloatArray, truth: FloatArray, target: Target
) -> tuple[FloatArray, NDArray[np.bool_] | None]:
    """Return the loss of the predicted scores of each row, and of classes whether they are right.

    Of classes, minus the logarithm of the probability of the right one, as the discriminant of
    these scores would state it: the scores themselves may be far from the truth and yet tell the
    classes well apart. Else, the mean squared error. Scores and truth are in the same units.
    """
    if not target.n_classes:
        return np.asarray(np.mean((predicted - truth) ** 2, axis=1)), None
    classes = cast(ClassTarget, target)
    return posterior_losses(log_posteriors(predicted, classes, truth), classes)


def posterior_losses(
    posterior: FloatArray, target: ClassTarget
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the log-loss of each row by log p(class | x), and whether its class is right."""
    own = posterior[np.arange(len(posterior)), target.codes]
    # No row costs more, whatever is said of it.
    return -np.maximum(own, LEAST_LOG), posterior.argmax(axis=1) == target.codes


def left_out_log_likelihood(discriminant: Discriminant, target: ClassTarget) -> FloatArray:
    """Return log p(x | class) of the rows that statistics are of, by those of the other rows.

    Up to a constant of the row, without the sharpness; of shape (n_rows, n_classes). Of many
    classes, or few rows, means and covariance know too much of every row they are of: in some
    tens of dimensions they tell noise apart. Of a row that is a class of its own, that of its class
    is −inf: without the row there is no such class. Coordinates along which all classes are the
    same count nothing.

    Notes
    -----
    The covariance is I in discriminant coordinates z, of d degrees of freedom, as a share. Without
    a row of residual r, weight ω and class size m, all as shares, its class mean lies m/(m − ω)·r
    from it, and the covariance is (dI − a rrᵀ)/e with a = ωm/(m − ω), and e what d is without the
    row; see `ClassTarget.freedom`. Without the group of a row, see `_left_out_groups`.
    """
    if target.groups is not None:
        return _left_out_groups(discriminant, target, target.groups)
    codes, shares, sizes = target.codes, target.row_weights.shares, target.shares[target.codes]
    told = discriminant.means.any(axis=0)
    means = discriminant.means[:, told]
    z = discriminant.coordinates(discriminant.training_scores)[:, told]
    residuals, own = z - means[codes], (np.arange(len(codes)), codes)
    freedom, without = target.freedom
    stretch = sizes / np.maximum(sizes - shares, SMALLEST_REST * sizes)
    lost = shares * stretch / freedom
    left = np.maximum(1.0 - lost * np.sum(residuals**2, axis=1), SMALLEST_REST)
    inner = np.sum(residuals * z, axis=1)[:, None] - residuals @ means.T  # r · (z − mean)
    distances = np.sum(z**2, axis=1)[:, None] - 2.0 * z @ means.T + np.sum(means**2, axis=1)
    inner[own] *= stretch
    distances[own] *= stretch**2
    distances += (lost / left)[:, None] * inner**2
    distances *= (np.maximum(without, SMALLEST_REST * freedom) / freedom)[:, None]
    lone = np.flatnonzero(target.counts[codes] == 1)
    distances[lone, codes[lone]] = np.inf
    return np.asarray(-0.5 * distances)


def _left_out_groups(discriminant: Discriminant, target: ClassTarget, groups: Groups) -> FloatArray:
    """Return `left_out_log_likelihood` by the statistics of other groups.

    Notes
    -----
    Without the rows S of a group, with R_c the sum of ωr over those of class c and m_c their
    weight, the mean of class c is moved by −R_c/(m − m_c), and Σω rrᵀ, which is dI for all rows,
    loses Σ_S ω rrᵀ + Σ_c R_cR_cᵀ/(m − m_c).
    """
    codes, shares, sizes = target.codes, target.row_weights.shares, target.shares
    told = discriminant.means.any(axis=0)
    means = discriminant.means[:, told]
    z = discriminant.coordinates(discriminant.training_scores)[:, told]
    residuals, member = z - means[codes], np.eye(target.n_classes)[codes]
    weighted, squares = shares[:, None] * member, (shares**2)[:, None] * member
    own, own_squares = groups.sums(weighted), groups.sums(squares)  # (n_groups, n_classes)
    rest = np.maximum(sizes - own, SMALLEST_REST * sizes)
    summed = groups.sums(weighted[:, :, None] * residuals[:, None, :])
    lost = groups.sums(shares[:, None, None] * residuals[:, :, None] * residuals[:, None, :])
    lost += np.einsum("gci,gcj->gij", summed / rest[:, :, None], summed)
    moved = means - summed / rest[:, :, None]
    freedom = target.freedom[0]
    without = (
        freedom
        - own.sum(axis=1)
        + np.sum(
            (own > 0) * (squares.sum(axis=0) / sizes - (squares.sum(axis=0) - own_squares) / rest),
            axis=1,
        )
    )
    values, vectors = np.linalg.eigh(np.eye(means.shape[1]) - lost / freedom)
    scales = np.sqrt(np.maximum(without, SMALLEST_REST * freedom) / freedom)
    vectors *= (scales[:, None] / np.sqrt(np.maximum(values, SMALLEST_REST)))[:, None, :]
    moved, distances = moved @ vectors, np.empty((len(codes), target.n_classes))
    for rows in groups.batches:
        at = groups.numbers[rows[:, 0]]
        turned = z[rows] @ vectors[at]
        found = np.sum(turned**2, axis=2)[:, :, None] - 2.0 * turned @ moved[at].swapaxes(1, 2)
        distances[rows] = found + np.sum(moved[at] ** 2, axis=2)[:, None, :]
    # Without a group that has all rows of a class, this class is unknown.
    unknown = (own > 0) & (target.holders == 1)
    distances[unknown[groups.numbers]] = np.inf
    return np.asarray(-0.5 * distances)


def calibrated(
    scores: FloatArray,
    target: ClassTarget,
    class_scores: FloatArray,
    basis: FloatArray | None = None,
) -> tuple[Discriminant, FloatArray]:
    """Return the discriminant of held-out scores, with the sharpness that suits them.

    And what it then says of these scores, by the statistics of the other rows: log p(x | class).
    """
    found = with_statistics(scores, target, class_scores, basis)
    likelihood = left_out_log_likelihood(found, target)
    factor = _best_factor(likelihood, target)
    return replace(found, sharpness=factor, class_scores=class_scores), factor * likelihood


def with_statistics(
    scores: FloatArray,
    target: ClassTarget,
    truth: FloatArray,
    basis: FloatArray | None = None,
    penalized: LeastSquares | None = None,
) -> Discriminant:
    """Return the discriminant of some scores, without the fit that they are of.

    Coordinates whiten the covariance within the classes, on the span of the basis, and are then
    turned to where the classes differ most. Along some of them the classes may lie the other way
    round than in ``truth``, the class scores that are fitted: there is nothing to be told there.
    Taken at its word, such a coordinate would turn predictions round; it comes last, all means 0.

    The covariance is that of the scores, or Wᵀ(S_w + λI)W in the coordinates of a penalized fit,
    with the sample weights 1/ρ.
    """
    means, share = target.means(scores), target.shares
    center, residuals = share @ means, scores - means[target.codes]
    if penalized is None:
        counted = target.row_weights.shares
        covariance = residuals.T @ (counted[:, None] * residuals) / target.freedom[0]
    else:
        counted = 1.0 / penalized.ridge
        scatter = residuals.T @ (counted[:, None] * residuals)
        covariance = (scatter + penalized.penalty) / counted.sum()
    deviations = np.sqrt(share)[:, None] * (means - center)
    if basis is not None:
        covariance, deviations = basis.T @ covariance @ basis, deviations @ basis
    values, vectors = scipy.linalg.eigh((covariance + covariance.T) / 2.0)
    largest = max(values[-1], float(np.square(deviations).sum()))
    values = np.maximum(values, _SMALLEST_VARIANCE * (largest if largest > 0 else 1.0))
    whitening = vectors / np.sqrt(values)
    _, singular, rotation = np.linalg.svd(deviations @ whitening, full_matrices=False)
    scalings = (whitening if basis is None else basis @ whitening) @ rotation.T
    # A sign that does not depend on LAPACK: the last class is on the positive side.
    scalings *= np.where((means[-1] - center) @ scalings < 0, -1.0, 1.0)
    means = (means - center) @ scalings
    agrees = target.sizes @ (means * ((truth - share @ truth) @ scalings)) > 0
    explained = np.where(agrees, singular**2, 0.0)
    total, order = float(explained.sum()), np.argsort(-explained, kind="stable")
    return Discriminant(
        dual_coef=np.empty((0, scores.shape[1])),
        intercept=np.zeros(scores.shape[1]),
        means=np.where(agrees, means, 0.0)[:, order],
        scalings=scalings[:, order],
        center=center,
        explained=explained[order] / (total if total > 0 else 1.0),
        training_scores=scores,
        **_training(target),
    )


def within_reach(scores: FloatArray, target: ClassTarget) -> FloatArray:
    """Return scores of left-out rows, none farther out than twice the farthest class.

    A linear kernel says of a row at 1e8 that it is 1e8 times as much of its class as any other. One
    such row would decide on the covariance of all.
    """
    reach = 2.0 * np.sqrt(1.0 / target.shares.min() - 1.0)  # that class is at half of it
    lengths = np.linalg.norm(scores, axis=1, keepdims=True)
    return np.asarray(scores * np.minimum(1.0, reach / np.maximum(lengths, reach)))


def _best_factor(likelihood: FloatArray, target: ClassTarget) -> float:
    """Return the factor of log-likelihoods with the least log-loss.

    Scores have heavier tails than Gaussians: most rows lie close to their class, few far out, and
    without the factor those few would be called with far too much confidence. Where no row is on
    the wrong side, no factor would be large enough. But n rows without an error do not rule out
    errors of 1/n: by Laplace's rule of succession, with the effective number of rows or groups,
    that share counts as wrong. Convex in the factor.
    """
    codes, weights, log_share = target.codes, target.row_weights, np.log(target.shares)
    rows, doubt, counted = np.arange(len(codes)), 1.0 / (target.effective + 2.0), weights.shares
    # Of every class less those of the row's own: minus the log of its probability is then the
    # logarithm of a sum of exponentials. A row without a class is wrong whatever the factor.
    own = likelihood[rows, codes][:, None]
    beyond = np.where(np.isinf(own), 0.0, likelihood - np.where(np.isinf(own), 0.0, own))
    odds, terms = log_share - log_share[codes][:, None], np.empty_like(beyond)
    others = beyond + odds
    others[rows, codes] = -np.inf
    other = others.argmax(axis=1)  # the likeliest class but its own
    finite = np.where(np.isinf(beyond), 0.0, beyond)  # classes that the other folds do not know
    gain = finite[rows, other]

    def slope(log_factor: float) -> float:
        """Return the derivative of the mean loss by the factor, which rises with it."""
        np.multiply(beyond, np.exp(log_factor), out=terms)
        np.add(terms, odds, out=terms)
        np.exp(np.subtract(terms, terms.max(axis=1)[:, None], out=terms), out=terms)
        along = np.einsum("ij,ij->i", terms, finite) / terms.sum(axis=1)
        return float(counted @ (along - doubt * gain))

    # From so small a factor that all classes look the same to e^2.5, classes far apart.
    least, most = -7.0 - np.log(max(1.0, float(np.abs(gain).max()))), 2.5
    if slope(least) >= 0.0:
        return float(np.exp(least))
    return float(np.exp(most if slope(most) <= 0.0 else brentq(slope, least, most, xtol=1e-13)))


def logarithms(probabilities: FloatArray) -> FloatArray:
    """Return logarithms; −inf of 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probabilities))
