"""The spread of errors: how it differs between rows, learned from held-out errors.

The logarithm of the size of an error is fitted with the learned kernel, by least squares. The fit
has its own λ, because sizes of errors are noisier than targets, and is used only if it predicts the
sizes of left-out errors better than their mean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from discernel.arrays import ALMOST_ZERO, FloatArray
from discernel.bank import Bank
from discernel.programs.lambdas import lambda_grid, search_lambda
from discernel.programs.least_squares import fits_by_lambda
from discernel.programs.simplex import normalize
from discernel.targets import SMALLEST_REST, Target

#: Added to the sizes of errors, in units of their root mean square: the logarithm of an error that
#: happens to be nearly 0 says nothing.
_LEAST_SIZE = 0.1
#: λ to choose from, downhill from the start.
_GRID, _START = lambda_grid(0, -4, per_decade=1), 2
#: λ is chosen on at most so many rows.
_MOST_ROWS = 1000
#: Of more targets, spreads are the same for all rows.
_MOST_TARGETS = 100
#: A smaller gain in mean squared logarithms is a rounding error.
_LEAST_GAIN = 1e-9
#: The largest power that spreads are raised to.
_LARGEST_POWER = 3.0


class SpreadFit(NamedTuple):
    """Logarithms of the sizes of errors, fitted with a kernel.

    Attributes
    ----------
    dual : ndarray of shape (n_samples, n_targets)
        The coefficients of the training rows; 0 for targets whose errors are alike everywhere.
    intercept : ndarray of shape (n_targets,)
        The intercept.
    left_out : ndarray of shape (n_samples, n_targets)
        The logarithm at each row, by fits without the row or its group.
    """

    dual: FloatArray
    intercept: FloatArray
    left_out: FloatArray


def learn_spread(
    bank: Bank,
    weights: FloatArray,
    target: Target,
    errors: FloatArray,
) -> SpreadFit | None:
    """Return how the sizes of errors depend on the row; None if they are alike everywhere.

    Parameters
    ----------
    bank : Bank
        The kernels on the training rows.
    weights : ndarray of shape (n_kernels,)
        Their weights.
    target : Target
        The target, for sample weights and groups, which are left out together.
    errors : ndarray of shape (n_samples, n_targets)
        Errors of predictions of the rows, by fits without the row.
    """
    if errors.shape[1] > _MOST_TARGETS:
        return None
    rows = target.row_weights
    sizes = np.abs(errors) / np.sqrt(np.maximum(rows.means((errors**2).T), ALMOST_ZERO))
    logs = np.log(sizes + _LEAST_SIZE)
    lam = _choose_lambda(bank, weights, target, logs)
    fit = fits_by_lambda(bank, weights, target, rows.scale(logs.copy()))(lam)
    means, shares = rows.means(logs.T), rows.shares[:, None]
    # The mean of the other rows.
    others = means - (logs - means) * shares / np.maximum(1.0 - shares, SMALLEST_REST)
    gains = (logs - others) ** 2 - (logs - fit.leave_one_out) ** 2
    gain = rows.means(gains.T)
    error = np.sqrt(rows.means(((gains - gain) ** 2).T) / rows.effective)
    if target.groups is not None:  # which vary together
        error = np.linalg.norm(target.groups.sums((gains - gain) * shares), axis=0)
    differs: NDArray[np.bool_] = gain > np.maximum(error, _LEAST_GAIN)
    if not differs.any():
        return None
    left_out = np.where(differs, fit.leave_one_out, means)
    pairs = zip(left_out.T, sizes.T, strict=True)
    powers = np.array([_power(told, size, rows.shares) for told, size in pairs])
    dual, intercept = np.where(differs, fit.coef, 0.0), np.where(differs, fit.intercept, means)
    return SpreadFit(powers * dual, powers * intercept, powers * left_out)


def _power(logs: FloatArray, sizes: FloatArray, shares: FloatArray) -> float:
    """Return the power of spreads under which sizes of errors are likeliest.

    Spreads of one target are exp(κg), with g the logarithms by fits without the row: what is added
    to sizes, and λ, make g vary less than the logarithm of the spread. κ is that of the largest
    likelihood of errors with density exp(−|e|/cs)/2cs, for the best c.
    """

    def loss(power: float) -> float:
        told = power * (logs - shares @ logs)
        return float(shares @ told + np.log(shares @ (sizes * np.exp(-told)) + ALMOST_ZERO))

    return float(minimize_scalar(loss, bounds=(0.0, _LARGEST_POWER), method="bounded").x)


def _choose_lambda(bank: Bank, weights: FloatArray, target: Target, logs: FloatArray) -> float:
    """Return the λ with the least leave-one-out error, of all rows or of a part of them."""
    n = target.n_samples
    if n > _MOST_ROWS:
        chosen = target.draw(_MOST_ROWS / n, np.random.RandomState(0))
        part = bank.subset(chosen)
        if not part.n_kernels:
            return _GRID[0]
        weights = normalize(weights[part.kept])
        bank, target, logs = part, target.subset(chosen), logs[chosen]
    rows = target.row_weights
    fits = fits_by_lambda(bank, weights, target, rows.scale(logs.copy()))

    def loss(regularization: float) -> float:
        squares = (logs - fits(regularization).leave_one_out) ** 2
        return float(rows.shares @ np.mean(squares, axis=1))

    return search_lambda(_GRID, loss, start=_START).regularization
