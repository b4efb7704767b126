"""The choice of a kernel and its new eigenvalues, by leave-one-out on the labelled rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, matmul
from discernel.exceptions import check_number
from discernel.papers.separability.criterion import ALPHA, Scatter, left_out_scatter
from discernel.papers.separability.spectrum import (
    GramSpectrum,
    Labels,
    Method,
    ReweighedSpectrum,
    Reweighing,
    left_out_alignment,
    reweigh,
)
from discernel.targets import ClassTarget

#: Candidates for the share of the trace.
SHARES: tuple[float, ...] = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
#: Candidates for α: that of the paper, and one that gives the best directions clearly more weight.
ALPHAS: tuple[float | str, ...] = (ALPHA, "2*critical")
#: The plain kernel is replaced only by one that classifies more labelled rows correctly, by this
#: many standard errors: a 5 % level for one trial ([McNemar47]_, one-sided), more for the best of
#: many. Without this rule, selection cost 1.3 points on wdbc with 20 % labelled, where nothing can
#: be gained. On seven data sets together, stricter rules gained less, and selection nested in folds
#: the same.
_CLEARLY = 1.645


class Trial(NamedTuple):
    """A candidate, one kernel with one choice of options, and its score on the labelled rows.

    Attributes
    ----------
    kernel : int
        The position of the kernel matrix.
    method : str
        The method, or ``"plain"``.
    share : float
        The share of the trace.
    alpha : float, str or None
        α; None if the method has none.
    hits : ndarray of shape (n_labelled,)
        Whether each labelled row is classified correctly by the others.
    margin : float
        The mean relative difference between the distances to other classes and to the own class.
    weights : ndarray of shape (n_labelled,)
        Weights of the labelled rows.
    """

    kernel: int
    method: str
    share: float
    alpha: float | str | None
    hits: NDArray[np.bool_]
    margin: float
    weights: FloatArray

    @property
    def accuracy(self) -> float:
        """The leave-one-out accuracy of nearest neighbours on the labelled rows."""
        return float(np.average(self.hits, weights=self.weights))

    @property
    def rank(self) -> tuple[float, float]:
        """The sort key of choices: accuracy, then margin."""
        return self.accuracy, self.margin


class Choice(NamedTuple):
    """The result of `choose_reweighing`.

    Attributes
    ----------
    spectrum : ReweighedSpectrum
        The learned kernel matrix.
    kernel : int
        The position of the selected kernel.
    trials : tuple of Trial
        All trials, the selected one first; empty if there was only one candidate.
    """

    spectrum: ReweighedSpectrum
    kernel: int
    trials: tuple[Trial, ...]


def choose_reweighing(
    grams: FloatArray,
    labels: Labels,
    *,
    method: Method = "closed_form",
    alpha: float | str = "auto",
    cap: float = 2.0,
    share: float | str = "auto",
    n_neighbors: int = 1,
    include_plain: bool = True,
) -> Choice:
    """Select the kernel, share and α that classify labelled rows best, and reweight the kernel.

    Every labelled row is classified by its nearest neighbours among the others, with eigenvalues
    computed without its label; otherwise the estimate would be too optimistic. The plain kernels
    are candidates too, and are replaced only by a clearly better candidate.

    Parameters
    ----------
    grams : ndarray of shape (n_kernels, n_samples, n_samples)
        Kernel matrices on labelled and unlabelled rows.
    labels : Labels
        The labels.
    method : {"closed_form", "dinkelbach", "alignment"}, default="closed_form"
        As in `reweigh_spectrum`.
    alpha : float or str, default="auto"
        As in `reweigh_spectrum`; ``"auto"`` tries `ALPHAS`.
    cap : float, default=2.0
        As in `reweigh_spectrum`.
    share : float or "auto", default="auto"
        As in `reweigh_spectrum`; ``"auto"`` tries `SHARES`.
    n_neighbors : int, default=1
        The number of neighbours.
    include_plain : bool, default=True
        Whether the plain kernels are candidates too.

    Returns
    -------
    Choice
        The learned kernel matrix, and all trials.

    Notes
    -----
    It takes one eigendecomposition for each kernel, and two products of n_labelled² · n_vectors for
    each trial.
    """
    rules = [Reweighing(method, ALPHA if alpha == "auto" else alpha, cap).checked()]
    if method == "closed_form" and alpha == "auto":
        rules = [Reweighing(method, each, cap) for each in ALPHAS]
    shares = SHARES
    if share != "auto":
        shares = (check_number("share of the trace", share, positive=True, most=1.0),)
    if len(grams) == len(shares) == len(rules) == 1:
        leading = GramSpectrum.of(grams[0], labels.weights).leading(shares[0])
        return Choice(reweigh(leading, labels, rules[0], shares[0]), 0, ())

    spectra = [GramSpectrum.of(K, labels.weights) for K in grams]
    trials = []
    for position, spectrum in enumerate(spectra):
        # Several shares may keep the same eigenvectors.
        parts = {len(part.values): (part, s) for s in shares for part in [spectrum.leading(s)]}
        for part, size in parts.values():
            trials += _try(position, part, size, labels, rules, n_neighbors)
    best = max(trials, key=lambda trial: trial.rank)
    if include_plain:
        plain = [_try_plain(i, K, labels, n_neighbors) for i, K in enumerate(grams)]
        trials += plain
        best_plain = max(plain, key=lambda trial: trial.rank)
        best = best if _is_clearly_better(best, best_plain) else best_plain
    part = spectra[best.kernel].leading(best.share)
    found = reweigh(part, labels, Reweighing(best.method, best.alpha or ALPHA, cap), best.share)
    others = (trial for trial in trials if trial is not best)
    return Choice(found, best.kernel, (best, *others))


def _try(
    kernel: int,
    spectrum: GramSpectrum,
    share: float,
    labels: Labels,
    rules: Sequence[Reweighing],
    n_neighbors: int,
) -> list[Trial]:
    """Return a trial for every rule on the leading part of one spectrum."""
    target = labels.target
    known = spectrum.vectors[labels.rows]
    scatter = Scatter(*map(spectrum.pooled, left_out_scatter(known, target)))
    aligned = spectrum.pooled(left_out_alignment(known, target, scatter.between))
    trials = []
    for rule in rules:
        weights = rule.weights(spectrum, scatter, aligned)
        hits, margin = _leave_one_out(_left_out_distances(known, weights), target, n_neighbors)
        alpha = rule.alpha if rule.method == "closed_form" else None
        counts = target.row_weights.values
        trials.append(Trial(kernel, rule.method, share, alpha, hits, margin, counts))
    return trials


def _try_plain(kernel: int, K: FloatArray, labels: Labels, n_neighbors: int) -> Trial:
    part = K[np.ix_(labels.rows, labels.rows)]
    squares = part.diagonal()
    distances = np.maximum(squares[:, None] + squares - 2.0 * part, 0.0)
    hits, margin = _leave_one_out(distances, labels.target, n_neighbors)
    return Trial(kernel, "plain", 1.0, None, hits, margin, labels.target.row_weights.values)


def _is_clearly_better(trial: Trial, plain: Trial) -> bool:
    gains = trial.weights * (trial.hits.astype(float) - plain.hits)
    return bool(gains.sum() > _CLEARLY * np.sqrt(gains @ gains))


def _left_out_distances(known: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the squared distances of each row to all others, with its own weights."""
    vectors = known - known.mean(axis=0)  # avoids cancellation
    weighted = weights * vectors
    distances = matmul(weights, (vectors**2).T)
    distances -= 2.0 * matmul(weighted, vectors.T)
    distances += np.sum(weighted * vectors, axis=1)[:, None]
    return np.asarray(np.maximum(distances, 0.0))


def _leave_one_out(
    distances: FloatArray, target: ClassTarget, n_neighbors: int
) -> tuple[NDArray[np.bool_], float]:
    """Return which rows are classified correctly by the others, and the mean relative margin."""
    weights = target.row_weights.values
    np.fill_diagonal(distances, np.inf)
    votes = neighbor_votes(
        distances,
        target.codes,
        target.n_classes,
        min(n_neighbors, target.n_samples - 1),
        weights,
    )
    same = target.codes[:, None] == target.codes
    own = np.where(same, distances, np.inf).min(axis=1)
    other = np.where(same, np.inf, distances).min(axis=1)
    # The only row of a class has no neighbour of its own class.
    relative = np.where(np.isinf(own), -1.0, 0.0)
    exists = np.isfinite(own) & (own + other > 0)
    relative[exists] = (other[exists] - own[exists]) / (other[exists] + own[exists])
    hits = votes.argmax(axis=1) == target.codes
    return hits, float(np.average(relative, weights=weights))


def neighbor_votes(
    distances: FloatArray,
    codes: NDArray[np.intp],
    n_classes: int,
    n_neighbors: int,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Return the number of nearest neighbours of each class, of shape (n_rows, n_classes).

    Parameters
    ----------
    distances : ndarray of shape (n_rows, n_samples)
        Distances, or numbers in the same order. Ties go to the first samples.
    codes : ndarray of shape (n_samples,)
        The classes of the samples.
    n_classes : int
        The number of classes.
    n_neighbors : int
        The number of neighbours.
    weights : ndarray of shape (n_samples,), optional
        Weights of the samples; 1 by default.
    """
    if n_neighbors == 1:
        nearest = distances.argmin(axis=1)[:, None]
    else:
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    votes = np.eye(n_classes)[codes[nearest]]
    if weights is not None:
        votes *= weights[nearest][:, :, None]
    return np.asarray(votes.sum(axis=1))
