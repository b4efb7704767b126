"""The metric by marginal likelihood: one scale per column, for columns that act together.

Gradients of a fit (`learn_metric`) find nothing where few of many columns act together: a wide
kernel on all columns sees near-linear effects only, and a scale that is near 0 after the first
round stays there. The likelihood of the scores under a Gaussian process, y ~ N(0, σ²(K + λ/ω)) with
a scale per column in K, rises as long as any pair of columns explains more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from discernel.arrays import Cholesky, Device, DeviceFactor, FloatArray, as_host, draw_rows
from discernel.default.menu import MEDIAN_ROWS
from discernel.default.metric import DIGITS, Metric, varying_scores
from discernel.exceptions import NumericalError
from discernel.kernels.distance import median_distance
from discernel.progress.deadline import must_stop_learning

#: Evaluations of the likelihood. Each takes three factorisations. Stopping earlier, with a step
#: that decreases J by less than 3e-5, would end on plateaus, such as one of `segment`.
_EVALUATIONS = 30
#: λ where the search starts, and its limits. With a larger one all is noise, which is a local
#: optimum of its own; a smaller one is too small for single precision.
_START, _LIMITS = 0.3, (1e-3, 1.0)
#: Scales grow no further than this many times their first value.
_MOST_GROWTH = 1e3


class MarginalLikelihood:
    """Minus the logarithm of the marginal likelihood per score, and its gradient.

    With z = s∘x, K = exp(−‖z − z′‖²), A = K + λ diag(1/ω) and n rows of m scores Y, centred, and
    the best σ², up to a constant

        J = ½ log(tr YᵀA⁻¹Y / nm) + log det A / 2n.

    With C = A⁻¹Y, Γ = ½(A⁻¹/n − CCᵀ/tr YᵀC) and M = Γ∘K

        ∂J/∂log s_l = −4[Σ_i (M1)_i z_il² − (zᵀMz)_ll],   ∂J/∂log λ = λ Σ_i Γ_ii/ω_i.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Rows, with values near 0.
    scores : ndarray of shape (n_rows, n_outputs)
        Y, not constant.
    weights : ndarray of shape (n_rows,)
        ω, of mean 1.
    groups : ndarray of shape (n_columns,)
        The position of the scale of each column; columns of a group have one scale.
    dtype : type
        The precision on the host.
    device : Device, optional
        Where to compute, in double precision; by default here.
    """

    def __init__(
        self,
        X: FloatArray,
        scores: FloatArray,
        weights: FloatArray,
        groups: NDArray[np.intp],
        *,
        dtype: type[np.floating[Any]] = np.float64,
        device: Device | None = None,
    ) -> None:
        self._device, self._dtype, self._groups = device, dtype, groups
        self._xp: Any = np if device is None else device.xp
        self._X = self._put(X)
        self._scores = self._put(scores - np.average(scores, axis=0, weights=weights))
        self._noise, self._counts = self._put(np.diag(1.0 / weights)), 1.0 / weights

    def __call__(self, logarithms: FloatArray) -> tuple[float, FloatArray]:
        """Return J and its gradient at the logarithms of the scales, and of λ, which is last."""
        xp, (n, m), lam = self._xp, self._scores.shape, float(np.exp(logarithms[-1]))
        rows = self._X * self._put(np.exp(logarithms[:-1])[self._groups])
        squares = rows * rows
        lengths, ones = xp.sum(squares, axis=1)[:, None], xp.ones_like(rows[:, :1])
        right = xp.concat([rows, -lengths, ones], axis=1)
        gram = xp.matmul(xp.concat([2.0 * rows, ones, -lengths], axis=1), right.T)
        gram[gram > 0] = 0.0
        gram = xp.exp(gram)
        system = lam * self._noise
        system += gram
        factor = Cholesky(system) if self._device is None else DeviceFactor(system, self._device)
        log_determinant = factor.log_determinant
        inverse = factor.inverse()
        coef = xp.matmul(inverse, self._scores)
        fit = float(xp.sum(coef * self._scores))
        value = 0.5 * np.log(fit / (n * m)) + log_determinant / (2.0 * n)
        inverse *= 0.5 / n
        inverse -= xp.matmul(coef * (0.5 / fit), coef.T)
        by_lambda = lam * float(self._counts @ as_host(xp.linalg.diagonal(inverse)))
        inverse *= gram
        by_column = xp.matmul(xp.sum(inverse, axis=1), squares)
        by_column -= xp.sum(xp.matmul(inverse, rows) * rows, axis=0)
        by_group = np.bincount(self._groups, -4.0 * np.asarray(as_host(by_column), dtype=float))
        return float(value), np.append(by_group, by_lambda)

    def _put(self, array: ArrayLike) -> Any:
        if self._device is None:
            return np.asarray(array, dtype=self._dtype)
        return self._device.put(np.asarray(array))


def learn_likelihood_metric(
    X: FloatArray,
    scores: FloatArray,
    sample_weight: FloatArray | None = None,
    *,
    groups: NDArray[np.intp] | None = None,
    dtype: type[np.floating[Any]] = np.float64,
    device: Device | None = None,
) -> Metric:
    """Return the scales of columns with the largest marginal likelihood that L-BFGS finds.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Rows, of columns in comparable units, with values near 0.
    scores : ndarray of shape (n_rows, n_outputs)
        What is to be predicted, such as indicators of classes.
    sample_weight : ndarray of shape (n_rows,), optional
        How much each row counts, whatever their sum.
    groups : ndarray of shape (n_columns,), optional
        Columns with the same number have one scale; by default each has its own.
    dtype : type
        The precision on the host; single is enough to see whether scales are any good.
    device : Device, optional
        Where to compute; by default here.

    Returns
    -------
    Metric
        The scales, 0 of constant columns; all 1 where there is nothing to learn.

    Notes
    -----
    From equal scales at the median distance, with at most 30 evaluations.
    """
    X = np.asarray(X, dtype=np.float64)
    varies = (X[0] != X).any(axis=0)
    scores, weights = varying_scores(scores, sample_weight)
    if not varies.any() or not scores.any():
        return Metric(np.ones(X.shape[1]))
    rows, of_group = X[:, varies], np.arange(X.shape[1]) if groups is None else groups
    _, places = np.unique(of_group[varies], return_inverse=True)
    function = MarginalLikelihood(rows, scores, weights, places, dtype=dtype, device=device)
    start = -np.log(median_distance(draw_rows(rows, MEDIAN_ROWS)))
    found = np.exp(_minimize(function, np.full(int(places.max()) + 1, start)))
    scales = np.zeros(X.shape[1])
    scales[varies] = np.round(found / found.max(), DIGITS)[places]
    return Metric(scales)


def _minimize(function: MarginalLikelihood, start: FloatArray) -> FloatArray:
    """Return the logarithms of the best scales, of those seen in the time there is."""
    best: tuple[float, FloatArray] = (np.inf, start)

    def value_and_gradient(logarithms: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        nothing = np.zeros(len(logarithms))
        if np.isfinite(best[0]) and must_stop_learning():
            return best[0], nothing  # where nothing changes, the descent ends
        try:
            value, gradient = function(logarithms)
        except NumericalError:  # too far
            return 1.0 + abs(best[0]), nothing
        if value < best[0]:
            best = value, logarithms[:-1].copy()
        return value, gradient

    # Scales have no lower bound: with two bounds for each variable, the first step of L-BFGS-B is
    # the gradient itself, which is too short.
    highest = float(start[0] + np.log(_MOST_GROWTH))
    minimize(
        value_and_gradient,
        np.append(start, np.log(_START)),
        jac=True,
        method="L-BFGS-B",
        bounds=[*[(None, highest)] * len(start), tuple(np.log(_LIMITS).tolist())],
        options={"maxfun": _EVALUATIONS},
    )
    return best[1]
