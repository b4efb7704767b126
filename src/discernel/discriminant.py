"""From a combined kernel to directions, scores and probabilities.

The directions of kernel discriminant analysis are those of a least-squares fit of class scores
(optimal scoring), so no eigenproblem of size n_samples is solved: one system, then everything
happens in n_classes − 1 dimensions, where samples are told apart as in linear discriminant
analysis: Gaussian classes with their own means and one covariance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from discernel.arrays import FloatArray
from discernel.arrays.sample_weights import SampleWeights, row_weights
from discernel.criteria import LeastSquares
from discernel.exceptions import InvalidInputError, is_word
from discernel.links import LINKS, Link, logistic_link, mixture_weights
from discernel.targets import SMALLEST_REST, ClassTarget, Target, deal_folds

#: Where class means and covariance come from. ``"loo"``: leave-one-out predictions.
#: ``"training"``: the fit itself, as in the papers.
Statistics = Literal["loo", "training"]

#: Smallest variance within the classes along a direction, relative to the largest, and to the mean
#: square of the scores: where nothing varies within the classes, there is no largest to go by.
_SMALLEST_VARIANCE = 1e-12
#: Left-out rows lie reversed along a direction in which the fit is weaker than 1/n_samples. Below
#: this share of that, there is nothing to be told.
_HOPELESS = 0.1
#: Folds that rows are divided into to find out what to expect; more where a class has fewer rows.
_FOLDS, _FOLDS_OF_FEW, _MANY_PER_CLASS = 5, 10, 30
#: Root mean square of fitted scores, of targets of 1, that changes no probability by more.
_INVISIBLE = 1e-10
#: The logarithm of a probability that stands for 0.
LEAST_LOG = float(np.log(1e-6))
#: Below this no logarithm of a probability counts, as in scikit-learn's ``log_loss``.
_LEAST_LOSS_LOG = float(np.log(np.finfo(np.float64).eps))


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

    @property
    def training(self) -> ClassTarget:
        """The classes of the training rows, and how much these count."""
        given = self.training_weights
        weights = None if given is None else SampleWeights(given)
        return ClassTarget(np.arange(len(self.means)), self.training_codes, weights)

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
        return np.asarray((scores - self.center) @ self.scalings)

    def log_likelihood(self, scores: FloatArray) -> FloatArray:
        """Return log p(x | class) up to a constant of the row, of shape (n_rows, n_classes)."""
        if self.mixture is not None:
            slopes, constants = self.mixture.link
            return np.asarray(scores @ slopes + constants)
        return self.gaussian.log_likelihood(self.coordinates(scores))

    def log_posterior(self, scores: FloatArray, priors: FloatArray) -> FloatArray:
        """Return log p(class | x) up to a constant of the row, of shape (n_rows, n_classes)."""
        return self.log_likelihood(scores) + _log(priors)

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


@dataclass(frozen=True)
class Mixture:
    """Links that are added with weights, learned from held-out rows.

    Attributes
    ----------
    weights : dict of str to float
        The weight of each link, by name.
    link : Link
        Their weighted sum, from fitted scores to log-likelihoods.
    held_out : ndarray of shape (n_rows, n_classes)
        Log-likelihoods of held-out rows, by links and weights of the other folds.
    """

    weights: dict[str, float]
    link: Link
    held_out: FloatArray

    def among(self, place: FloatArray) -> Mixture:
        """Return the mixture with further classes, which have no rows."""
        held_out = np.full((len(self.held_out), len(place)), -np.inf)
        held_out[:, place.any(axis=1)] = self.held_out
        link = Link(self.link.slopes @ place.T, place @ self.link.constants)
        return Mixture(self.weights, link, held_out)


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Scores of rows, each predicted without its label.

    Attributes
    ----------
    rows : ndarray of int or None
        Training rows that the scores are of; None: all.
    scores : ndarray of shape (n_rows, n_classes - 1) or None
        The scores; None: leave-one-out scores are held-out scores, because the kernel was learned
        without the labels of these rows.
    target : ClassTarget or None
        The classes of the rows; None: those that training rows have.
    where : str
        How they were predicted, in words.
    """

    rows: NDArray[np.intp] | None = None
    scores: FloatArray | None = None
    target: ClassTarget | None = None
    where: str = "leave-one-out"

    def of(self, fit: LeastSquares, target: ClassTarget) -> tuple[FloatArray, ClassTarget]:
        """Return the scores that statistics are taken from, and the classes of their rows.

        Classes with fewer than two of the rows are there with all of their rows, for want of
        better.
        """
        if self.scores is not None and self.target is not None:
            return self.scores, self.target
        if self.rows is None:
            return fit.left_out_scores, target
        if self.scores is not None:
            return self.scores, target.part(self.rows)
        counts = np.bincount(target.codes[self.rows], minlength=target.n_classes)
        rows = np.union1d(self.rows, np.flatnonzero((counts < 2)[target.codes]))
        return fit.left_out_scores[rows], target.part(rows)


def fit_discriminant(
    fit: LeastSquares,
    target: ClassTarget,
    statistics: Statistics,
    held_out: HeldOutScores = HeldOutScores(),  # frozen
) -> Discriminant:
    """Return the discriminant of a least-squares fit of the class scores.

    Parameters
    ----------
    fit : LeastSquares
        The fit of ``target.scores``.
    target : ClassTarget
        The classes.
    statistics : {"loo", "training"}
        ``"training"`` takes means and covariance from the fit, with the regularised within-class
        covariance of [Ye08]_ Eq. (23); it is linear discriminant analysis for a linear kernel and
        vanishing λ. ``"loo"`` takes them from leave-one-out predictions: a flexible kernel fits
        its training rows far better than new ones, and only these say how sure one may be. The
        sharpness is then fitted to them too, and probabilities are those of a mixture of links.
    held_out : HeldOutScores
        What ``"loo"`` takes them from: leave-one-out predictions of all rows, or, where the kernel
        itself has seen labels and these would look too good, others.
    """
    if target.n_classes == 1:
        found = discriminant_of_shares(target)
    elif statistics == "training":
        means = target.means(fit.fitted)
        means[np.abs(means) < _INVISIBLE] = 0.0  # rounding errors of a kernel that is constant
        found = _with_statistics(fit.fitted, target, means, _span(fit, statistics), fit)
    else:
        scores, counted = held_out.of(fit, target)
        scores = scores.copy()
        # The fit without a row that is a class of its own knows nothing of this class, which would
        # lie among the others: such rows have the scores of the fit to all.
        for code in np.flatnonzero(target.counts == 1):
            scores[counted.codes == code] = fit.fitted[target.codes == code]
        scores = _within_reach(scores, target)
        scores = np.where(np.abs(scores) < _INVISIBLE, 0.0, scores)  # rounding errors
        basis = _span(fit, statistics)
        found, _ = _calibrated(scores, counted, target.class_scores, basis)
        found = replace(found, mixture=mix_links(found, basis))
    return replace(found, dual_coef=fit.coef, intercept=fit.intercept)


def mix_links(found: Discriminant, basis: FloatArray | None) -> Mixture:
    """Return the links of held-out scores, mixed by how well they predict the classes of rows.

    The rows are divided into folds. Links for the rows of a fold are those of the other folds, so
    that nothing has seen a label that it is compared with. Weights of the links are those of all
    rows, and for held-out probabilities those of the other folds.

    Parameters
    ----------
    found : Discriminant
        Gaussian classes.
    basis : ndarray of shape (n_classes - 1, n_components) or None
        The directions in which scores vary; None: all.
    """
    target, log_shares = found.training, np.log(found.training.shares)
    folds, predicted = held_out_likelihoods(found, basis)
    known = np.isfinite(predicted[0])
    # A class that the other folds do not know is as unlikely as any can be.
    finite = np.where(known, predicted, predicted.max(axis=2, keepdims=True) + 2.0 * LEAST_LOG)
    usable, held_out = known[np.arange(len(known)), target.codes], np.empty_like(finite[0])

    def weights(rows: NDArray[np.bool_]) -> FloatArray:
        return mixture_weights(finite[:, rows], target.part(np.flatnonzero(rows)), log_shares)

    for fold in np.unique(folds):
        inside = folds == fold
        held_out[inside] = np.tensordot(weights(usable & ~inside), finite[:, inside], 1)
    mixed, links = weights(usable), _links(found, found.training_scores, target)
    slopes, constants = (
        np.tensordot(mixed, np.stack(parts), 1) for parts in zip(*links, strict=True)
    )
    return Mixture(
        dict(zip(LINKS, mixed.tolist(), strict=True)),
        Link(slopes, constants),
        np.where(known, held_out, -np.inf),
    )


def held_out_likelihoods(
    found: Discriminant, basis: FloatArray | None
) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the fold of each row, and its log-likelihoods by links of the other folds.

    Of shape (2, n_rows, n_classes); −inf for classes that have all of their rows in the fold.
    """
    scores, target = found.training_scores, found.training
    class_scores = np.asarray(found.class_scores)
    many = target.n_samples >= _MANY_PER_CLASS * target.n_classes
    folds = deal_folds(scores, target.codes, _FOLDS if many else _FOLDS_OF_FEW)
    predicted = np.full((2, target.n_samples, target.n_classes), -np.inf)
    for fold in np.unique(folds):
        outside, inside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        part = target.subset(outside)  # without classes that have all of their rows in the fold
        known = part.classes
        predicted[:, inside[:, None], known] = 0.0
        if len(known) > 1:
            other, _ = _calibrated(scores[outside], part, class_scores[known], basis)
            for found_here, link in zip(
                predicted, _links(other, scores[outside], part), strict=True
            ):
                found_here[np.ix_(inside, known)] = link.log_likelihood(scores[inside])
    return folds, predicted


def _links(found: Discriminant, scores: FloatArray, target: ClassTarget) -> list[Link]:
    """Return Gaussian classes and the logistic regression on scores, as links from scores."""
    logistic = logistic_link(found.gaussian, found.coordinates(scores), target)
    return [found.from_scores(link) for link in (found.gaussian, logistic)]


def _calibrated(
    scores: FloatArray,
    target: ClassTarget,
    class_scores: FloatArray,
    basis: FloatArray | None = None,
) -> tuple[Discriminant, FloatArray]:
    """Return the discriminant of held-out scores, with the sharpness that suits them.

    And what it then says of these scores, by the statistics of the other rows: log p(x | class).
    """
    found = _with_statistics(scores, target, class_scores, basis)
    likelihood = left_out_log_likelihood(found, target)
    factor = _best_factor(likelihood, target)
    return replace(found, sharpness=factor, class_scores=class_scores), factor * likelihood


def discriminant_of_shares(target: ClassTarget) -> Discriminant:
    """Return the discriminant where nothing tells classes apart: no scores and no coordinates."""
    weights, none = target.sample_weights, np.empty(0)
    return Discriminant(
        dual_coef=np.empty((target.n_samples, 0)),
        intercept=none,
        means=np.empty((target.n_classes, 0)),
        scalings=np.empty((0, 0)),
        center=none,
        explained=none,
        training_scores=np.empty((target.n_samples, 0)),
        training_codes=target.codes,
        training_weights=None if weights is None else weights.values,
        class_scores=np.empty((target.n_classes, 0)),
    )


def log_posteriors(scores: FloatArray, target: ClassTarget, truth: FloatArray) -> FloatArray:
    """Return log p(class | x) of rows whose scores were predicted without them.

    By the discriminant of these scores themselves, of shape (n_rows, n_classes): what a user would
    be told, for comparing kernels by what they are chosen for. The statistics of the classes are
    those of the other rows. Where the classes of the scores lie reversed, compared with the truth,
    nothing is told.
    """
    _, likelihood = _calibrated(_within_reach(scores, target), target, target.means(truth))
    return np.asarray(log_softmax(likelihood + np.log(target.shares), axis=1))


def row_losses(
    predicted: FloatArray, truth: FloatArray, target: Target
) -> tuple[FloatArray, NDArray[np.bool_] | None]:
    """Return the loss of the predicted scores of each row, and of classes whether they are right.

    Of classes, minus the logarithm of the probability of the right one, as the discriminant of
    these scores would state it: the scores themselves may be far from the truth and yet tell the
    classes well apart. Else, the mean squared error. Scores and truth are in the same units.
    """
    if not isinstance(target, ClassTarget):
        return np.asarray(np.mean((predicted - truth) ** 2, axis=1)), None
    posterior = log_posteriors(predicted, target, truth)
    own = posterior[np.arange(len(posterior)), target.codes]
    # No row costs more, whatever is said of it.
    return -np.maximum(own, LEAST_LOG), posterior.argmax(axis=1) == target.codes


def held_out_log_posterior(discriminant: Discriminant, decision: Decision) -> FloatArray:
    """Return log p(class | x) of the rows that statistics are of, without these rows.

    All that makes a probability was learned from the other folds.
    """
    if discriminant.class_scores is None:
        raise InvalidInputError(
            "Held-out rows must have been predicted to say what to expect of new ones. Got the "
            "statistics of training rows. Fit with statistics='loo'."
        )
    found = np.zeros((len(discriminant.training_codes), len(decision.priors)))  # of one class
    if discriminant.mixture is not None:
        found = discriminant.mixture.held_out
    return np.asarray(log_softmax(found + decision.log_priors, axis=1))


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
    row; see `ClassTarget.freedom`.
    """
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


def _with_statistics(
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
    weights = target.sample_weights
    return Discriminant(
        dual_coef=np.empty((0, scores.shape[1])),
        intercept=np.zeros(scores.shape[1]),
        means=np.where(agrees, means, 0.0)[:, order],
        scalings=scalings[:, order],
        center=center,
        explained=explained[order] / (total if total > 0 else 1.0),
        training_scores=scores,
        training_codes=target.codes,
        training_weights=None if weights is None else weights.values,
    )


def _within_reach(scores: FloatArray, target: ClassTarget) -> FloatArray:
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
    errors of 1/n: by Laplace's rule of succession, with the effective number of rows, that share
    counts as wrong. Convex in the factor.
    """
    codes, weights, log_share = target.codes, target.row_weights, np.log(target.shares)
    rows, doubt, counted = np.arange(len(codes)), 1.0 / (weights.effective + 2.0), weights.shares
    # Of every class less those of the row's own: minus the log of its probability is then the
    # logarithm of a sum of exponentials. A row without a class is wrong whatever the factor.
    own = likelihood[rows, codes][:, None]
    beyond = np.where(np.isinf(own), 0.0, likelihood - np.where(np.isinf(own), 0.0, own))
    odds, terms = log_share - log_share[codes][:, None], np.empty_like(beyond)
    others = beyond + odds
    others[rows, codes] = -np.inf
    other = others.argmax(axis=1)  # the likeliest class but its own
    gain, offset = beyond[rows, other], odds[rows, other]

    def loss(log_factor: float) -> float:
        factor = np.exp(log_factor)
        np.multiply(beyond, factor, out=terms)
        np.add(terms, odds, out=terms)
        top = terms.max(axis=1)
        np.exp(np.subtract(terms, top[:, None], out=terms), out=terms)
        lost = top + np.log(terms.sum(axis=1)) - doubt * (factor * gain + offset)
        return float(counted @ lost)

    # From so small a factor that all classes look the same to e^2.5, classes far apart.
    least = -7.0 - np.log(max(1.0, float(np.abs(gain).max())))
    return float(np.exp(minimize_scalar(loss, bounds=(least, 2.5), method="bounded").x))


def _log(probabilities: FloatArray) -> FloatArray:
    """Return logarithms; −inf of 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probabilities))


def _span(fit: LeastSquares, statistics: Statistics) -> FloatArray | None:
    """Return a basis of the directions in which scores of rows vary at all; None for all of them.

    A kernel of a rank r below n_classes − 1 has scores of r dimensions, in which those of new rows
    lie too. Left-out scores have more: every fit without a row has r dimensions of its own.
    Statistics of what they do outside would be those of noise, and whitening would blow it up.

    What counts as none of the scores depends on what uses them. A left-out row is T_i − (T_i −
    F_i)/(1 − h_i), with T the targets, of mean square 1, F the fit and h_i ≥ 1/n_samples: it lies
    reversed where F is weaker than 1/n_samples; with weights, than 1 over the effective number.
    Statistics of the fit itself have no such limit: there, what is left out are rounding errors,
    of about ε/λ, and what is as small as not to be seen in probabilities.
    """
    fitted, n_columns = fit.fitted.copy(), fit.fitted.shape[1]
    if n_columns == 1:
        return None
    weights = row_weights(fit.sample_weights, len(fitted))
    fitted = weights.scale(weights.center(fitted))
    _, singular, directions = np.linalg.svd(fitted, full_matrices=False)
    least = _HOPELESS / weights.effective
    if statistics == "training":
        ridge = float((fit.ridge * weights.values).min())  # without the weights: λ
        least = max(_INVISIBLE, float(np.finfo(np.float64).eps) / ridge)
    rank = max(1, int(np.count_nonzero(singular > least * np.sqrt(weights.total))))
    return None if rank == n_columns else np.asarray(directions[:rank].T)


@dataclass(frozen=True)
class Expectation:
    """What to expect of new rows, from rows that were predicted without their labels.

    Links and their weights are those of other folds. A row that is a class of its
    own counts as wrong: without it there is no such class.

    Attributes
    ----------
    accuracy : float
        The share of rows whose class was right.
    low, high : float
        An interval of 95 % for it: Wilson's with the effective number of rows (Σω)²/Σω², a tenth
        wider.
    log_loss : float
        Minus the mean logarithm of the probability of the right class.
    n_rows : int
        The number of rows.
    where : str
        How they were predicted.
    """

    accuracy: float
    low: float
    high: float
    log_loss: float
    n_rows: int
    where: str

    @classmethod
    def of(cls, discriminant: Discriminant, decision: Decision, where: str) -> Expectation:
        """Return the expectation of what a discriminant and a decision say of their own rows."""
        codes, weights = discriminant.training_codes, discriminant.training.row_weights
        posterior = held_out_log_posterior(discriminant, decision)
        right = (posterior + decision.offsets).argmax(axis=1) == codes
        accuracy = float(np.average(right, weights=weights.values))
        low, high = _interval(accuracy, weights.effective)
        own = posterior[np.arange(len(codes)), codes]
        # A class with a single row is unknown to the other folds; the row is not infinitely wrong.
        own = np.where(np.isinf(own), LEAST_LOG, own)
        loss = max(0.0, -float(np.average(own, weights=weights.values)))  # and not -0
        return cls(accuracy, low, high, loss, len(codes), where)

    def __repr__(self) -> str:
        return (
            f"accuracy {self.accuracy:.1%} ({self.low:.1%} to {self.high:.1%}), log-loss "
            f"{self.log_loss:z.3f}, on {self.n_rows} rows: {self.where}"
        )


def _interval(share: float, n: float) -> tuple[float, float]:
    """Return an interval of 95 % for a share of n rows: Wilson's, a tenth wider.

    Held-out rows share most of the rows that they are predicted from, so they are not independent:
    over 36 tables, Wilson's interval covers 91 to 95 %.
    """
    z2 = (1.1 * 1.96) ** 2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


@dataclass(frozen=True, eq=False)
class Decision:
    """Priors, and the costs or the threshold by which probabilities become a class.

    Attributes
    ----------
    priors : ndarray of shape (n_classes,)
        Class probabilities before a row is seen.
    offsets : ndarray of shape (n_classes,)
        What is added to the log-posteriors before the largest is taken: the logarithm of what
        misclassifying a sample of the class costs.
    """

    priors: FloatArray
    offsets: FloatArray

    @property
    def log_priors(self) -> FloatArray:
        """The logarithms of the priors; −inf of a class without rows."""
        return _log(self.priors)

    @classmethod
    def make(
        cls, target: ClassTarget, *, priors: Any, class_costs: Any, threshold: Any
    ) -> Decision:
        """Return the decision these parameters stand for, or raise a clear error.

        A threshold of ``"roc"`` is left open; `choose_threshold` fills it in.
        """
        probabilities = _check_priors(priors, target)
        if threshold is None:
            costs = np.ones(target.n_classes)
            if class_costs is not None:
                word = {"balanced": _balanced(target)}
                costs = _per_class("class costs", class_costs, target, word, default=1.0)
            return cls(probabilities, np.log(costs))
        _check_threshold(threshold, class_costs, target)
        decision = cls(probabilities, np.zeros(2))
        return decision if threshold == "roc" else decision.with_threshold(float(threshold))

    def with_threshold(self, threshold: float) -> Decision:
        """Return the decision for the second class from this probability on."""
        # log p₁ − log p₀ > log t − log(1 − t)
        return replace(self, offsets=np.array([np.log(threshold), np.log1p(-threshold)]))

    def choose_threshold(self, discriminant: Discriminant) -> float:
        """Return the probability of the second class that best splits the training scores.

        It maximises true minus false positive rate ([Youden50]_) on the scores the statistics
        were taken from, and lies midway between the two scores it separates.
        """
        posterior = discriminant.log_posterior(discriminant.training_scores, self.priors)
        probability = softmax(posterior, axis=1)[:, 1]
        order = np.argsort(probability, kind="stable")
        values, positive = probability[order], discriminant.training_codes[order] == 1
        counted = discriminant.training.row_weights.values[order]
        negatives, positives = np.cumsum(~positive * counted), np.cumsum(positive * counted)
        if not negatives[-1] * positives[-1]:
            return 0.5  # one class has all rows with weight, and any threshold will do
        gain = negatives / negatives[-1] - positives / positives[-1]
        # No threshold fits between equal scores.
        gain = np.where(np.diff(values) > 0, gain[:-1], -np.inf)
        best = int(gain.argmax())
        return float(np.clip((values[best] + values[best + 1]) / 2.0, 1e-12, 1.0 - 1e-12))


class Head:
    """From fitted scores to predictions. Each head overrides what it supports."""

    def linear_scores(
        self, coef: FloatArray, intercept: FloatArray
    ) -> tuple[FloatArray, FloatArray, NDArray[np.bool_] | None] | None:
        """Return explained scores as linear in the terms of a row: slopes and constants.

        With them comes which classes the scores are of, None for numbers. None in place of all
        three: such scores cannot be explained.
        """
        return None

    def row_losses(self, labels: Any) -> Callable[[FloatArray], FloatArray]:
        """Return a function of the scores of rows with these labels: the loss of each row."""
        raise NotImplementedError

    @property
    def link_weights(self) -> Mapping[str, float]:
        """The weights of the links that probabilities are made with, by name; empty for none."""
        return {}

    def class_counts(self) -> NDArray[np.intp]:
        """Return the training rows of each class; empty where a row has no single class."""
        return np.zeros(0, dtype=np.intp)

    def confusion(self) -> FloatArray:
        """Return held-out rows by true and predicted class; empty where none was held out."""
        return np.zeros((0, 0))

    def expect(self, labels: Any, held_out_error: float | None) -> Mapping[str, Any]:
        """Return the expected scores of new rows, by name; empty if unknown.

        Parameters
        ----------
        labels : ndarray or None
            Those of the training rows, where the model keeps them.
        held_out_error : float or None
            The squared error of rows held out of the choice of kernels too, in units of the
            variance; None where there were no such rows.
        """
        return {}


@dataclass(frozen=True, eq=False)
class ClassHead(Head):
    """From fitted scores to probabilities and classes.

    Attributes
    ----------
    discriminant : Discriminant
        From scores to log-posteriors, of all classes that there may be.
    decision : Decision
        From these to a class.
    n_components : int
        The coordinates that are shown.
    expected : Expectation or None
        What to expect of new rows; None where no row was predicted without its label.
    threshold : float or None
        The probability from which on the second class is predicted, where it was chosen.
    """

    discriminant: Discriminant
    decision: Decision
    n_components: int
    expected: Expectation | None = None
    threshold: float | None = None

    @classmethod
    def of(
        cls,
        discriminant: Discriminant,
        decision: Decision,
        target: ClassTarget,
        n_components: int,
        where: str | None,
        *,
        chooses: bool = False,
    ) -> ClassHead:
        """Return the head for all classes of a target, from the discriminant of those with rows.

        ``where`` says how rows were predicted without their labels, None that none was; ``chooses``
        that a threshold is to be chosen.
        """
        discriminant, threshold = discriminant.among(target), None
        if chooses:
            threshold = decision.choose_threshold(discriminant)
            decision = decision.with_threshold(threshold)
        expected = None if where is None else Expectation.of(discriminant, decision, where)
        shown = min(n_components, len(discriminant.explained))
        return cls(discriminant, decision, shown, expected, threshold)

    @property
    def link_weights(self) -> Mapping[str, float]:
        mixture = self.discriminant.mixture
        return {"gaussian": 1.0} if mixture is None else mixture.weights

    @property
    def explained(self) -> FloatArray:
        """The share of the variance between the classes along each coordinate that is shown."""
        return self.discriminant.explained[: self.n_components]

    def coordinates(self, scores: FloatArray) -> FloatArray:
        """Return the discriminant coordinates that are shown."""
        return self.discriminant.coordinates(scores)[:, : self.n_components]

    def log_posterior(self, scores: FloatArray) -> FloatArray:
        """Return log p(class | x) up to a constant of the row, of shape (n_rows, n_classes)."""
        return self.discriminant.log_posterior(scores, self.decision.priors)

    def decide(self, scores: FloatArray) -> FloatArray:
        """Return the log-posteriors with costs; of two classes the odds of the second."""
        decision = self.log_posterior(scores) + self.decision.offsets
        return decision[:, 1] - decision[:, 0] if decision.shape[1] == 2 else decision

    def linear_scores(
        self, coef: FloatArray, intercept: FloatArray
    ) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """Return log-posteriors with costs as linear in what scores are: slopes and constants.

        Of the classes that have rows, and which these are.
        """
        (slopes, constants), decision = self.discriminant.linear, self.decision
        seen = decision.priors > 0
        constant = intercept @ slopes + constants + decision.log_priors + decision.offsets
        return coef @ slopes[:, seen], constant[seen], seen

    def class_counts(self) -> NDArray[np.intp]:
        n_classes = len(self.decision.priors)
        return np.bincount(self.discriminant.training_codes, minlength=n_classes)

    def confusion(self) -> FloatArray:
        if self.expected is None:
            return super().confusion()
        found, n_classes = self.discriminant, len(self.decision.priors)
        posterior = held_out_log_posterior(found, self.decision)
        predicted = (posterior + self.decision.offsets).argmax(axis=1)
        table = np.zeros((n_classes, n_classes))
        np.add.at(table, (found.training_codes, predicted), found.training.row_weights.values)
        return table

    def expect(self, labels: Any, held_out_error: float | None) -> Mapping[str, Any]:
        return {} if self.expected is None else vars(self.expected)

    def row_losses(self, labels: NDArray[Any]) -> Callable[[FloatArray], FloatArray]:
        """Return a function of the scores of rows of known classes: the log-loss of each."""
        rows = np.arange(len(labels))

        def loss(scores: FloatArray) -> FloatArray:
            told = log_softmax(self.log_posterior(scores), axis=1)
            return np.asarray(-np.maximum(told[rows, labels], _LEAST_LOSS_LOG))

        return loss


def _check_priors(priors: Any, target: ClassTarget) -> FloatArray:
    """Return class probabilities, or raise a clear error; None is the share of the samples.

    Whatever is given, that of a class without samples is 0.
    """
    if priors is None:
        return target.shares.copy()
    seen = target.counts > 0
    word = {"uniform": np.asarray(seen / seen.sum())}
    values = _per_class("priors", priors, target, word, default=None)
    if abs(values.sum() - 1.0) > 1e-6:
        raise InvalidInputError(
            f"The priors must sum to 1. Got {priors!r}, which sum to {values.sum():.6g}."
        )
    return values if seen.all() else np.asarray(values * seen / (values @ seen))


def class_factors(class_weight: Any, target: ClassTarget) -> FloatArray | None:
    """Return the factors of the weights of samples by class; None for none.

    ``class_weight`` has a number above 0 per class, 1 where not said; ``"balanced"`` makes all
    classes weigh the same.
    """
    if class_weight is None:
        return None
    if is_word(class_weight, "balanced"):
        return _balanced(target)
    if not hasattr(class_weight, "keys"):
        raise InvalidInputError(
            "class_weight must be None, 'balanced' or a dictionary of class to number. Got "
            f"{class_weight!r}."
        )
    return _per_class("class weights", class_weight, target, {}, default=1.0)


def _balanced(target: ClassTarget) -> FloatArray:
    """Return the factors that make all classes weigh the same; 1 for those without samples."""
    seen, factors = target.counts > 0, np.ones(target.n_classes)
    factors[seen] = target.total / (np.count_nonzero(seen) * target.sizes[seen])
    return factors


def _per_class(
    what: str,
    given: Any,
    target: ClassTarget,
    words: dict[str, FloatArray],
    *,
    default: float | None,
) -> FloatArray:
    """Return a positive number per class, copied, or raise a clear error.

    ``default`` is for classes that a dictionary does not name; None: it must name all. Words stand
    for numbers.
    """
    if isinstance(given, str):
        if given not in words:
            raise InvalidInputError(
                f"The {what} must be None, {', '.join(map(repr, words))}, a list or a dictionary "
                f"with one number per class. Got {given!r}."
            )
        return words[given]
    labels, numbers = target.classes.tolist(), given
    if hasattr(given, "keys"):  # a dictionary, or a series of pandas
        named = {label: given[label] for label in given.keys()}  # noqa: SIM118
        unknown = [label for label in named if label not in labels]
        missing = [label for label in labels if label not in named and default is None]
        if unknown or missing:
            wrong = f"{unknown}, which are none" if unknown else f"nothing for {missing}"
            raise InvalidInputError(
                f"The {what}, given as a dictionary, must name classes of {labels}"
                f"{', all of them' if default is None else ''}. Got {wrong}."
            )
        numbers = [named.get(label, default) for label in labels]
    try:
        values = np.array(numbers, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (len(labels),) or not ((values > 0) & np.isfinite(values)).all():
        raise InvalidInputError(
            f"The {what} must be {len(labels)} positive, finite numbers, as a list in the order of "
            f"the classes {labels} or as a dictionary of class to number. Got {given!r}."
        )
    return values


def _check_threshold(threshold: Any, costs: Any, target: ClassTarget) -> None:
    if target.n_classes != 2:
        raise InvalidInputError(
            "Only binary classification is supported: a threshold is defined for two classes. Got "
            f"{target.n_classes}: {target.classes.tolist()}. Use class_costs or priors."
        )
    if costs is not None:
        raise InvalidInputError(
            "Give a threshold or class_costs, not both: each moves the same boundary. Got "
            f"threshold={threshold!r} and class_costs={costs!r}."
        )
    is_number = isinstance(threshold, (int, float, np.number))
    if not is_word(threshold, "roc") and not (is_number and 0 < threshold < 1):
        raise InvalidInputError(
            "The threshold must be a probability between 0 and 1, 'roc' or None. "
            f"Got {threshold!r}."
        )
