"""The metric: one scale per column, learned from the target.

The diagonal of the average gradient outer product (recursive feature machines, [Radhakrishnan24]_):
fit f by kernel ridge regression on s∘x, take the mean square of ∂f/∂x_l over the rows for the next
scale s_l², and fit again. Columns that the fit does not look at fade within a few rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discernel.arrays import Device, FloatArray, as_host, draw_rows, typical_row
from discernel.arrays.groups import Groups
from discernel.default.menu import MEDIAN_ROWS, stack_on_device
from discernel.default.ridge import Ridge, enough_precision
from discernel.kernels import RBF
from discernel.kernels.distance import median_distance
from discernel.programs.lambdas import Rule, lambda_grid, search_lambda

#: λ to choose from, in units of the kernel normalised to trace 1: a smaller one must have a
#: leave-one-out error that is smaller by 1 %.
_LAMBDAS = lambda_grid(-1.0, -4.0, per_decade=1)
_RULE = Rule(worthwhile=0.01, tries_both_sides=False, skips_failures=True)
#: Fits, each on the scales of the one before.
_ROUNDS = 3
#: Differences of scores that are rounding errors, as a share of the scores.
_ROUNDING = 1e-6
#: Digits of a scale: single precision knows few more, and on another machine they are others.
DIGITS = 4
#: Slopes that are computed at a time.
_AT_ONCE = 2**24
#: So many times as many outputs times columns as rows are many. In double precision, a quadratic
#: form of the rows then takes less time than slopes in single precision.
_MANY = 4


@dataclass(frozen=True, eq=False)
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
    X: Any,
    scores: Any,
    sample_weight: FloatArray | None = None,
    *,
    row_groups: Groups | None = None,
    device: Device | None = None,
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
    row_groups : Groups, optional
        Groups of rows, which leave-one-out leaves out together.
    device : Device, optional
        Where to compute; by default here.

    Returns
    -------
    Metric
        The scales; all 1 where the fit finds nothing to go by.

    Notes
    -----
    In single precision where that is enough. The first round has all scales 1. A round takes one
    matrix of n_rows², one or some factorisations and n_outputs · n_rows² · n_columns
    multiplications.
    """
    X, regularization = np.asarray(X, dtype=np.float32), None
    scales = np.ones(X.shape[1])
    if len(X) < 2:
        return Metric(scales)
    scores, weights = varying_scores(scores, sample_weight)
    for _ in range(_ROUNDS):
        gradient, regularization = _squared_gradient(
            X, scores, weights, row_groups, scales, regularization, device
        )
        if not gradient.max() > 0:
            break
        scales = np.round(np.sqrt(gradient / gradient.max()), DIGITS)
    return Metric(scales)


def varying_scores(scores: Any, sample_weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return scores, 0 for outputs that are constant up to rounding, and weights of mean 1."""
    scores = np.asarray(scores, dtype=np.float64)
    weights = np.ones(len(scores)) if sample_weight is None else np.asarray(sample_weight)
    weights = weights / weights.mean()  # in single precision, another scale rounds differently
    differences = np.abs(scores - np.average(scores, axis=0, weights=weights))
    varies = differences.max(axis=0) > _ROUNDING * np.abs(scores).max(axis=0)
    return scores * varies, weights


def _squared_gradient(
    X: FloatArray,
    scores: FloatArray,
    weights: FloatArray,
    row_groups: Groups | None,
    scales: FloatArray,
    regularization: float | None,
    device: Device | None,
) -> tuple[FloatArray, float]:
    """Return the mean square of every partial derivative of a fit on scaled rows, and its λ.

    λ is chosen where it is not given. ∂f/∂x_l at row i is −2γs_l² Σ_j c_j k_ij (x_il − x_jl), two
    products with the kernel.
    """
    rows = np.asarray(X * scales, dtype=np.float64)
    gamma = median_distance(draw_rows(rows, MEDIAN_ROWS)) ** -2
    kernel = RBF(gamma=gamma)
    if device is None:
        stack = kernel(rows).astype(enough_precision(weights))[None, :, :]
    else:
        stack = stack_on_device([kernel], rows, len(rows), device)
    ridge = Ridge(stack, scores, weights, device)
    coef, regularization = _fit(ridge, regularization, row_groups)
    values = rows - typical_row(rows)
    is_many = device is None and coef.shape[1] * rows.shape[1] > _MANY * len(rows)
    slopes = _slopes_of_many if is_many else _slopes
    total = slopes(ridge, stack[0, :, :], coef, values, weights)
    return np.asarray((2.0 * gamma * scales) ** 2 * total / weights.sum()), regularization


def _slopes(
    ridge: Ridge, gram: Any, coef: Any, values: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return Σ_io ω_i s_io² of each column x, with s_io = Σ_j k_ij c_jo (x_i − x_j)."""
    xp, columns, counts = ridge.xp, ridge.put(values)[:, None, :], ridge.put(weights[:, None, None])
    fitted = xp.matmul(gram, coef)[:, :, None]
    total, step = np.zeros(values.shape[1]), max(1, _AT_ONCE // values.size)
    for start in range(0, coef.shape[1], step):
        some = slice(start, min(start + step, coef.shape[1]))
        weighted = coef[:, some][:, :, None] * columns
        products = xp.matmul(gram, xp.reshape(weighted, (len(values), -1)))
        slopes = columns * fitted[:, some, :] - xp.reshape(products, weighted.shape)
        total += as_host(xp.sum(counts * slopes * slopes, axis=(0, 1)))
    return total


def _slopes_of_many(
    _: Ridge, gram: Any, coef: Any, values: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return `_slopes` as xᵀMx, which is faster if outputs times columns are more than rows.

    With f = Kc, M = KΩK∘CCᵀ − 2 (ΩFCᵀ)∘K + diag(ΩFFᵀ); in double precision, because its terms
    cancel.
    """
    K, C = (np.asarray(one, dtype=np.float64) for one in (gram, coef))
    counts = weights[:, None]
    fitted, weighted = K @ C, np.sqrt(counts) * K
    form = weighted.T @ weighted
    form *= C @ C.T
    form -= (2.0 * counts * fitted) @ C.T * K
    total = np.einsum("il,il->l", values, form @ values)
    total += np.einsum("i,il,il->l", weights * np.sum(fitted**2, axis=1), values, values)
    return np.asarray(np.maximum(total, 0.0))


def _fit(
    ridge: Ridge, regularization: float | None, row_groups: Groups | None = None
) -> tuple[Any, float]:
    """Return the coefficients of a fit, and its λ, chosen by leave-one-out where it is None."""
    combined = ridge.combined(np.ones(1))
    if regularization is not None:
        return ridge.coef(combined, regularization), regularization
    found: dict[float, Any] = {}

    def error(regularization: float) -> float:
        value, found[regularization] = ridge.leave_one_out(combined, regularization, row_groups)
        return value

    best = search_lambda(_LAMBDAS, error, _RULE, start=0).regularization
    return found[best], best
