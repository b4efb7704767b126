"""Which columns matter: one scale per column, learned from what is to be predicted.

The diagonal of the average gradient outer product (recursive feature machines, [Radhakrishnan24]_):
fit f by kernel ridge regression on s∘x, take the mean square of ∂f/∂x_l over the rows for the next
scale s_l², and fit again. Columns that the fit does not look at fade within a few rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.backend import Cholesky, FloatArray, draw_rows
from discernel.exceptions import InvalidInputError, NumericalError
from discernel.kernels import RBF
from discernel.kernels.distance import median_distance

__all__ = ["Metric", "learn_metric"]

#: λ to choose from in every round, falling, in units of the kernel normalised to trace 1.
_LAMBDAS = (1e-1, 1e-2, 1e-3, 1e-4)
#: A smaller λ must have a leave-one-out error smaller by this share.
_WORTHWHILE = 0.01
#: Differences of scores that are rounding errors, as a share of the scores.
_ROUNDING = 1e-6
#: Digits of a scale: single precision knows few more, and on another machine they are others.
_DIGITS = 4
#: Rows of which the median distance is taken.
_MEDIAN_ROWS = 300


@dataclass(frozen=True)
class Metric:
    """A scale per column.

    Attributes
    ----------
    scales : ndarray of shape (n_columns,)
        From 0 to 1, that of the column that matters most.
    """

    scales: FloatArray

    @property
    def importances(self) -> FloatArray:
        """The share of every column in the mean squared gradient; they sum to 1."""
        squares = self.scales**2
        return np.asarray(squares / squares.sum())

    def of_strength(self, strength: float) -> FloatArray:
        """Return the scales to a power: 0 is no metric at all, 1 the learned one."""
        return np.asarray(self.scales**strength)


def learn_metric(
    X: Any, scores: Any, sample_weight: FloatArray | None = None, *, rounds: int = 3
) -> Metric:
    """Return scales of columns, learned from the gradients of a kernel fit.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Rows, of columns in comparable units, with values near 0: single precision sees no
        differences far from it.
    scores : ndarray of shape (n_rows, n_outputs)
        What is to be predicted, such as indicators of classes.
    sample_weight : ndarray of shape (n_rows,), optional
        How much each row counts, whatever their sum. Leave-one-out, by which λ is chosen, leaves
        out the row.
    rounds : int, default=3
        Fits; the first has all scales 1.

    Returns
    -------
    Metric
        The scales; all 1 where the fit finds nothing to go by.

    Notes
    -----
    In single precision. A round takes one matrix of n_rows², one or some factorisations and
    n_outputs · n_rows² · n_columns multiplications.
    """
    X, scores = np.asarray(X, dtype=np.float32), np.asarray(scores, dtype=np.float64)
    if X.ndim != 2 or scores.ndim != 2 or len(X) != len(scores):
        raise InvalidInputError(
            "X and scores must be matrices with one row per sample. "
            f"Got shapes {X.shape} and {scores.shape}."
        )
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight)
    scales, regularization = np.ones(X.shape[1]), None
    for _ in range(rounds if len(X) > 1 else 0):
        gradient, regularization = _squared_gradient(X, scores, weights, scales, regularization)
        if not gradient.max() > 0:
            break
        scales = np.round(np.sqrt(gradient / gradient.max()), _DIGITS)
    return Metric(scales)


def _squared_gradient(
    X: FloatArray,
    scores: FloatArray,
    weights: FloatArray,
    scales: FloatArray,
    regularization: float | None,
) -> tuple[FloatArray, float]:
    """Return the mean square of every partial derivative of a fit on scaled rows, and its λ.

    λ is chosen where it is not given.
    """
    width = median_distance(draw_rows(X * scales, _MEDIAN_ROWS))
    kernel = RBF(width=width, scales=tuple(scales.tolist()))
    gram: NDArray[np.float32] = kernel(X).astype(np.float32)
    fit = _Ridge(gram, scores, weights)
    if regularization is None:
        regularization = fit.best_regularization()
    coef = fit.coef(regularization)
    return kernel.squared_gradient(X, coef, gram=gram, row_weights=weights), regularization


class _Ridge:
    """Kernel ridge fits with an unpenalised intercept, in single precision.

    With the weights ω of the rows, π = ω/Σω and D = diag(√ω), the kernel is D(I − 1πᵀ)K(I − π1ᵀ)D
    of trace 1, of which √π is an eigenvector with eigenvalue 0.
    """

    def __init__(self, gram: NDArray[np.float32], scores: FloatArray, weights: FloatArray) -> None:
        self._share = share = (weights / weights.sum()).astype(np.float32)
        self._root = root = np.sqrt(weights).astype(np.float32)
        means = gram @ share
        centered = gram - means
        centered += (share @ means - means)[:, None]
        centered *= root
        centered *= root[:, None]
        trace = float(np.trace(centered))
        centered /= np.float32(trace if trace > 0 else 1.0)
        self._centered = centered
        differences = scores - share @ scores
        # Of what is constant, nothing is left but rounding errors.
        varies = np.abs(differences).max(axis=0) > _ROUNDING * np.abs(scores).max(axis=0)
        self._right = root[:, None] * (differences * varies).astype(np.float32)

    def coef(self, regularization: float) -> FloatArray:
        """Return the coefficients of the kernel at each row."""
        found = self._factor(regularization).solve(self._right)
        return np.asarray(self._root[:, None] * found.astype(np.float32))

    def best_regularization(self) -> float:
        """Return the λ with the least leave-one-out error: downhill, until it grows again."""
        best, least = _LAMBDAS[0], np.inf
        for regularization in _LAMBDAS:
            try:
                error = self._leave_one_out_error(regularization)
            except NumericalError:
                break
            if error > (1.0 - _WORTHWHILE) * least:
                break
            best, least = regularization, error
        return best

    def _leave_one_out_error(self, regularization: float) -> float:
        factor = self._factor(regularization)
        coef = factor.solve(self._right)
        leverage = factor.inverse_diagonal() - self._share / regularization
        return float(np.mean((coef / leverage[:, None]) ** 2))

    def _factor(self, regularization: float) -> Cholesky:
        system = self._centered.copy()
        system[np.diag_indices(len(system))] += np.float32(regularization)
        return Cholesky(system)
