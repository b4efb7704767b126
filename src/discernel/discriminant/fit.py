"""From a least-squares fit and held-out scores to a discriminant with a mixture of links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, free_threads, in_threads, one_blas_thread
from discernel.discriminant.gaussian import (
    Discriminant,
    calibrated,
    discriminant_of_shares,
    with_statistics,
    within_reach,
)
from discernel.discriminant.links import (
    LEAST_LOG,
    LINKS,
    KernelLogistic,
    Link,
    Mixture,
    logistic_link,
    mixture_weights,
)
from discernel.programs.least_squares import LeastSquares
from discernel.targets import ClassTarget, Target, deal_folds

#: Where class means and covariance come from. ``"loo"``: leave-one-out predictions.
#: ``"training"``: the fit itself, as in the papers.
Statistics = Literal["loo", "training"]

#: Left-out rows lie reversed along a direction in which the fit is weaker than 1/n_samples. Below
#: this share of that, there is nothing to be told.
_HOPELESS = 0.1
#: Folds that rows are divided into to find out what to expect; more where a class has fewer rows.
_FOLDS, _FOLDS_OF_FEW, _MANY_PER_CLASS = 5, 10, 30
#: Root mean square of fitted scores, of targets of 1, that changes no probability by more.
_INVISIBLE = 1e-10


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
    target : Target or None
        The classes, or the numbers, of the rows; None: those that training rows have.
    where : str
        How they were predicted, in words.
    logistic : KernelLogistic or None
        A kernel logistic regression with the same kernel, and its logits of the same rows.
    """

    rows: NDArray[np.intp] | None = None
    scores: FloatArray | None = None
    target: Any = None
    where: str = "leave-one-out"
    logistic: KernelLogistic | None = None

    def of(self, fit: LeastSquares, target: ClassTarget) -> tuple[FloatArray, ClassTarget]:
        """Return the scores that statistics are taken from, and the classes of their rows.

        Classes with fewer than two of the rows, or with rows of fewer than two groups, are there
        with all of their rows, for want of better.
        """
        if self.scores is not None:
            part = target if self.rows is None else target.part(self.rows)
            return self.scores, self.target or part
        left_out = fit.left_out_scores(fit.left_out_groups(target))
        if self.rows is None:
            return left_out, target
        rows = self.counted(target)
        return left_out[rows], target.part(rows)

    def counted(self, target: ClassTarget) -> NDArray[np.intp]:
        """Return the rows of `of`, where leave-one-out scores are held-out scores."""
        if self.rows is None:
            return np.arange(target.n_samples)
        held = target.part(self.rows).holders
        return np.union1d(self.rows, np.flatnonzero((held < 2)[target.codes]))


def left_out_words(target: Target, n_held: int | None = None, learned: str | None = None) -> str:
    """Return a description of predictions of rows that are left out in turn.

    Parameters
    ----------
    target : Target
        The target of the rows.
    n_held : int, optional
        The number of given groups that are predicted, if not all.
    learned : str, optional
        What was not learned from these rows, and its verb, such as "column scales were".
    """
    if target.groups is not None:
        what = f"leave-one-group-out, {n_held or len(target.groups):,} groups"
        return what if learned is None else f"{what} that the {learned} not learned from"
    n_folds = target.n_left_out_groups
    what = "leave-one-out" if n_folds is None else f"held out, {n_folds} folds"
    return what if learned is None else f"{what}, on rows that the {learned} not learned from"


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
        found = with_statistics(
            fit.fitted, target, means, _span(fit, statistics, target.effective), fit
        )
    else:
        scores, counted = held_out.of(fit, target)
        scores = scores.copy()
        # The fit without a row, or a group, that is a class of its own knows nothing of this class,
        # which would lie among the others: such rows have the scores of the fit to all.
        for code in np.flatnonzero(target.holders == 1):
            inside, own = counted.codes == code, fit.fitted[target.codes == code]
            scores[inside] = own if len(own) == inside.sum() else own.mean(axis=0)
        scores = within_reach(scores, target)
        scores = np.where(np.abs(scores) < _INVISIBLE, 0.0, scores)  # rounding errors
        basis = _span(fit, statistics, target.effective)
        found, _ = calibrated(scores, counted, target.class_scores, basis)
        return _with_mixture(found, fit, basis, held_out.logistic)
    return replace(found, dual_coef=fit.coef, intercept=fit.intercept)


def _with_mixture(
    found: Discriminant,
    fit: LeastSquares,
    basis: FloatArray | None,
    kernel: KernelLogistic | None,
) -> Discriminant:
    """Return a discriminant with the fit, whose probabilities are those of a mixture of links.

    Logits of a kernel logistic regression with weight are further columns of scores.
    """
    coef, intercept, scores = fit.coef, fit.intercept, found.training_scores
    logits = None
    if kernel is not None:
        logits = bounded_logits(kernel.held_out)
    with one_blas_thread():
        mixture = mix_links(found, basis, logits)
    if kernel is not None and logits is not None and mixture.weights[LINKS[2]] > 0:
        coef = np.hstack([coef, kernel.coef])
        intercept = np.concatenate([intercept, kernel.intercept])
        scores = np.hstack([scores, logits])
    return replace(
        found, dual_coef=coef, intercept=intercept, training_scores=scores, mixture=mixture
    )


def bounded_logits(logits: FloatArray) -> FloatArray:
    """Return logits of which none is far below the largest: one far row does not decide on all.

    Parameters
    ----------
    logits : ndarray of shape (n_rows, n_classes - 1)
        Those of all classes but the first, relative to the first. What is bounded is the distance
        to the likeliest class: bounds of these themselves would make two likely classes equal.
    """
    every = np.pad(logits, ((0, 0), (1, 0)))
    bounded: FloatArray = np.maximum(every, every.max(axis=1, keepdims=True) + LEAST_LOG)
    return bounded[:, 1:] - bounded[:, :1]


def mix_links(
    found: Discriminant, basis: FloatArray | None, logits: FloatArray | None = None
) -> Mixture:
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
    logits : ndarray of shape (n_rows, n_classes - 1), optional
        Held-out logits of a kernel logistic regression, relative to the first class. It has weight
        only if Gaussian classes tell rows apart; for the rows of a fold, those of the other folds.
    """
    target, log_shares = found.training, np.log(found.training.shares)
    folds, predicted = held_out_likelihoods(found, basis)
    if logits is not None:
        own = np.pad(logits, ((0, 0), (1, 0))) - log_shares
        predicted = np.concatenate([predicted, own[None]])
    known = np.isfinite(predicted[0])
    # A class that the other folds do not know is as unlikely as any can be.
    finite = np.where(known, predicted, predicted.max(axis=2, keepdims=True) + 2.0 * LEAST_LOG)
    usable, held_out = known[np.arange(len(known)), target.codes], np.empty_like(finite[0])

    def weights(rows: NDArray[np.bool_], n_links: int) -> FloatArray:
        part = target.part(np.flatnonzero(rows))
        return mixture_weights(finite[:n_links, rows], part, log_shares)

    def mix(fold: int) -> None:
        inside = folds == fold
        tells_apart = np.where(known, predicted[0], 0.0)[inside].any()
        n_links = len(finite) if tells_apart else 2
        of_fold = weights(usable & ~inside, n_links)
        held_out[inside] = np.tensordot(of_fold, finite[:n_links, inside], 1)

    _for_folds(mix, folds)
    mixed = weights(usable, len(finite) if found.means.any() else 2)
    links = _links(found, found.training_scores, target)
    link = score_link = _weighted_sum(mixed[:2], links)
    named = dict.fromkeys(LINKS if logits is not None else LINKS[:2], 0.0)
    named.update(zip(LINKS, mixed.tolist(), strict=False))
    if mixed[2:].any():
        # Logits of all classes but the first, relative to it, are log-likelihoods and log-shares.
        further = mixed[2] * np.eye(len(log_shares))[1:]
        constants = score_link.constants - mixed[2] * log_shares
        link = Link(np.vstack([score_link.slopes, further]), constants)
        score_link = _weighted_sum(weights(usable, 2), links)
    return Mixture(named, link, score_link, np.where(known, held_out, -np.inf))


def _weighted_sum(weights: FloatArray, links: list[Link]) -> Link:
    """Return the sum of links with weights."""
    parts = zip(*links, strict=True)
    return Link(*(np.tensordot(weights, np.stack(each), 1) for each in parts))


def held_out_likelihoods(
    found: Discriminant, basis: FloatArray | None
) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the fold of each row, and its log-likelihoods by links of the other folds.

    Of shape (2, n_rows, n_classes); −inf for classes that have all of their rows in the fold.
    """
    scores, target = found.training_scores, found.training
    class_scores = np.asarray(found.class_scores)
    n_held = target.n_samples if target.groups is None else len(target.groups)
    many = n_held >= _MANY_PER_CLASS * target.n_classes
    n_folds = _FOLDS if many else _FOLDS_OF_FEW
    folds = deal_folds(scores, target.codes, n_folds, target.groups)
    predicted = np.full((2, target.n_samples, target.n_classes), -np.inf)

    def predict(fold: int) -> None:
        outside, inside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        part = target.subset(outside)  # without classes that have all of their rows in the fold
        known = part.classes
        predicted[:, inside[:, None], known] = 0.0
        if len(known) > 1:
            other, _ = calibrated(scores[outside], part, class_scores[known], basis)
            for found_here, link in zip(
                predicted, _links(other, scores[outside], part), strict=True
            ):
                found_here[np.ix_(inside, known)] = link.log_likelihood(scores[inside])

    _for_folds(predict, folds)
    return folds, predicted


def _for_folds(work: Callable[[int], None], folds: NDArray[np.intp]) -> None:
    """Do the work of every fold, in threads for many rows.

    Each with one BLAS thread: matrices have as few columns as there are classes, and 16 threads
    that wait for each other took three times as long as one.
    """
    each = np.unique(folds)
    n_threads = min(len(each), free_threads(len(folds)))
    in_threads(lambda fold, _: work(fold), each.tolist(), [None] * n_threads)


def _links(found: Discriminant, scores: FloatArray, target: ClassTarget) -> list[Link]:
    """Return Gaussian classes and the logistic regression on scores, as links from scores."""
    logistic = logistic_link(found.gaussian, found.coordinates(scores), target)
    return [found.from_scores(link) for link in (found.gaussian, logistic)]


def _span(fit: LeastSquares, statistics: Statistics, n_held: float) -> FloatArray | None:
    """Return a basis of the directions in which scores of rows vary at all; None for all of them.

    A kernel of a rank r below n_classes − 1 has scores of r dimensions, in which those of new rows
    lie too. Left-out scores have more: every fit without a row has r dimensions of its own.
    Statistics of what they do outside would be those of noise, and whitening would blow it up.

    What counts as none of the scores depends on what uses them. A left-out row is T_i − (T_i −
    F_i)/(1 − h_i), with T the targets, of mean square 1, F the fit and h_i ≥ 1/n_samples: it lies
    reversed where F is weaker than 1/n_samples; with weights or groups, than 1 over the effective
    number ``n_held``.
    Statistics of the fit itself have no such limit: there, what is left out are rounding errors,
    of about ε/λ, and what is as small as not to be seen in probabilities.
    """
    fitted, n_columns = fit.fitted.copy(), fit.fitted.shape[1]
    if n_columns == 1:
        return None
    weights = fit.row_weights
    fitted = weights.scale(weights.center(fitted))
    _, singular, directions = np.linalg.svd(fitted, full_matrices=False)
    least = _HOPELESS / n_held
    if statistics == "training":
        ridge = float((fit.ridge * weights.values).min())  # without the weights: λ
        least = max(_INVISIBLE, float(np.finfo(np.float64).eps) / ridge)
    rank = max(1, int(np.count_nonzero(singular > least * np.sqrt(weights.total))))
    return None if rank == n_columns else np.asarray(directions[:rank].T)
