"""A metric of many rows: gradients of a fit in the span of landmarks, round by round.

The default learns its metric on at most 1,500 rows, by exact fits. Of columns that matter together
these see little. Where rows are plenty, rounds of the same recursion [Radhakrishnan24]_ go on with
fits to some ten thousand of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discernel.arrays import Device, FloatArray
from discernel.bank import TiledBank
from discernel.bank.sums import Labelled, SummedSystem, SumPass
from discernel.default import scaled_kernels
from discernel.default.choose import clearly_better
from discernel.default.menu import MENU, Menu
from discernel.discriminant import row_losses
from discernel.kernels.columns import divided_columns
from discernel.kernels.features import NystromMap
from discernel.learn.survey import Positions
from discernel.programs.lambdas import lambda_grid, search_lambda
from discernel.progress.deadline import must_stop_learning
from discernel.targets import ClassTarget

#: Rounds, and the landmarks of each.
_ROUNDS, _LANDMARKS = 5, 1_000
#: Rows that gradients, units and median distances are taken from.
_GRADIENT_ROWS, _UNIT_ROWS, _MEDIAN_ROWS = 2_000, 1_000, 1_500
#: Fewer rows of the sample than this are left to the default.
_ENOUGH = 6_000
#: The share of the sample that fits are made to; the others say whether they are better.
_SHARE = 2 / 3
_LAMBDAS = lambda_grid(-2.0, -8.0)
#: Digits of a scale.
_DIGITS = 4


class Refined(NamedTuple):
    """Scales of columns, the losses of held-out rows with them, and where to go on.

    Attributes
    ----------
    scales : ndarray of shape (n_columns,)
        The metric.
    losses : ndarray of shape (n_held,)
        The loss of each held-out row.
    gradient : ndarray of shape (n_columns,)
        The mean squared gradient of the fit by column.
    """

    scales: FloatArray
    losses: FloatArray
    gradient: FloatArray


def divide_rows(n_rows: int) -> tuple[Positions, Positions] | None:
    """Return the rows of a sample that fits are made to, and those held out; None for few rows.

    Parameters
    ----------
    n_rows : int
        The rows of the sample, which are in random order.
    """
    if n_rows < _ENOUGH:
        return None
    n_fitted = int(_SHARE * n_rows)
    return np.arange(n_fitted), np.arange(n_fitted, n_rows)


def refine_metric(
    X: FloatArray,
    fitted: ClassTarget,
    held: ClassTarget,
    spreads: tuple[float, ...],
    weights: FloatArray,
    scales: FloatArray,
    start: FloatArray,
    device: Device | None = None,
    menu: Menu = MENU,
) -> FloatArray | None:
    """Return better scales; None where held-out rows do not say that they are clearly better.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Rows: first those that fits are made to, then those held out.
    fitted, held : ClassTarget
        Their classes.
    spreads : tuple of float
        What every column is divided by first; 0 leaves it out.
    weights : ndarray of shape (n_kernels,)
        Of the kernels of the menu.
    scales : ndarray of shape (n_columns,)
        The metric that is to be bettered.
    start : ndarray of shape (n_columns,)
        That to start from: a scale that is too small stays so, one that is too large does not.
    device : Device, optional
        Where features are multiplied; by default here.
    menu : Menu
        The kernels.
    """
    weighted = held.sample_weights
    shares = np.full(held.n_samples, 1.0 / held.n_samples)
    shares = shares if weighted is None else weighted.shares

    def judged(scales: FloatArray) -> Refined:
        return _round(X, fitted, held, shares, spreads, weights, scales, device, menu)

    given = found = best = judged(scales)
    if not np.array_equal(start, scales):
        found = judged(start)
        best = found if clearly_better(found.losses, given.losses, shares) else given
    for _ in range(_ROUNDS):
        largest = found.gradient.max()
        if must_stop_learning() or not largest > 0:
            break
        found = judged(np.round(np.sqrt(found.gradient / largest), _DIGITS))
        # Columns fade from round to round, and more rows than these would want to keep more.
        if not clearly_better(found.losses, best.losses, shares):
            break
        best = found
    return None if best is given else best.scales


def _round(
    X: FloatArray,
    fitted: ClassTarget,
    held: ClassTarget,
    shares: FloatArray,
    spreads: tuple[float, ...],
    weights: FloatArray,
    scales: FloatArray,
    device: Device | None,
    menu: Menu = MENU,
) -> Refined:
    """Return the losses of held-out rows with some scales, and the squared gradient by column."""
    n = fitted.n_samples
    kernels = [
        kernel.shifted(X[:_UNIT_ROWS])
        for kernel in scaled_kernels(
            scales, spreads, divided_columns(X[:_MEDIAN_ROWS], spreads), menu
        )
    ]
    bank = TiledBank(kernels, X[:_UNIT_ROWS])
    kept = weights[bank.kept]
    features = NystromMap(kernels, bank.coefficients(kept / kept.sum()), X[:_LANDMARKS])
    summing = SumPass(features, fitted.n_classes, device)
    own = np.ones(n) if fitted.sample_weights is None else fitted.sample_weights.values
    rows = Labelled(X[:n], np.eye(fitted.n_classes)[fitted.codes], own)
    system = SummedSystem(summing.add(summing.start(), rows), features)
    table = fitted.class_scores
    new = summing.map(X[n:])
    truth = table[held.codes]
    fits: dict[float, tuple[FloatArray, FloatArray]] = {}

    def loss(regularization: float) -> float:
        beta, intercept = system.fit(table, regularization)
        losses, _ = row_losses(new @ beta + intercept, truth, held)
        fits[regularization] = losses, beta
        return float(shares @ losses)

    losses, beta = fits[search_lambda(_LAMBDAS, loss).regularization]
    coef = features.expansion(beta)
    some = X[: min(n, _GRADIENT_ROWS)]
    gradient = features.kernel.squared_gradient(some, coef, features.landmarks, device)
    return Refined(scales, losses, gradient * np.square(spreads))
