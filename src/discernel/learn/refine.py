"""Column scales refined on many rows, by gradients of fits with landmarks.

The default learns column scales from exact fits to at most 1,500 rows. These are too few rows for
columns that only matter in combination. With more rows, the same recursion [Radhakrishnan24]_
continues with fits to about ten thousand of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discernel.arrays import Device, FloatArray, Positions
from discernel.bank import TiledBank
from discernel.bank.sums import Labelled, SummedSystem, SumPass
from discernel.default import scaled_kernels
from discernel.default.cross_fit import clearly_better
from discernel.default.menu import MENU, Menu, SourceMenu
from discernel.discriminant import row_losses
from discernel.kernels.curves import divided_columns
from discernel.kernels.features import NystromMap
from discernel.programs.lambdas import lambda_grid, search_lambda
from discernel.progress.deadline import must_stop_learning

#: Number of rounds, and of landmarks in each round.
_ROUNDS, _LANDMARKS = 5, 1_000
#: Number of rows for gradients, for the normalization of kernels, and for median distances.
_GRADIENT_ROWS, _UNIT_ROWS, _MEDIAN_ROWS = 2_000, 1_000, 1_500
#: The smallest sample for which scales are refined.
_ENOUGH = 6_000
#: The share of the sample for the fits; the other rows are held out.
_SHARE = 2 / 3
_LAMBDAS = lambda_grid(-2.0, -8.0)
#: Number of decimal digits of a scale.
_DIGITS = 4


class Refined(NamedTuple):
    """Column scales, with the held-out losses and the gradient of a fit with them.

    Attributes
    ----------
    scales : ndarray of shape (n_columns,)
        The column scales.
    losses : ndarray of shape (n_held,)
        The loss of each held-out row.
    gradient : ndarray of shape (n_columns,)
        The mean squared derivative of the fit by each column, from which new scales are computed.
    """

    scales: FloatArray
    losses: FloatArray
    gradient: FloatArray


def divide_rows(n_rows: int) -> tuple[Positions, Positions] | None:
    """Return the rows of a sample for the fits, and the held-out rows; None for few rows.

    Parameters
    ----------
    n_rows : int
        The number of rows of the sample, which are in random order.
    """
    if n_rows < _ENOUGH:
        return None
    n_fitted = int(_SHARE * n_rows)
    return np.arange(n_fitted), np.arange(n_fitted, n_rows)


@dataclass(frozen=True, eq=False)
class Refinement:
    """A search for better column scales, by fits to some rows and their losses on others.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Rows: first those for the fits, then the held-out rows.
    fitted, held : ClassTarget or RegressionTarget
        The targets of these two parts.
    spreads : tuple of float
        The divisors of the columns before scaling; 0 leaves a column out.
    weights : ndarray of shape (n_kernels,)
        The weights of the default kernels.
    device : Device, optional
        The device for products of features; by default the CPU.
    menu : Menu or SourceMenu
        The default kernels.
    """

    X: FloatArray
    fitted: Any
    held: Any
    spreads: tuple[float, ...]
    weights: FloatArray
    device: Device | None = None
    menu: Menu | SourceMenu = MENU

    def search(self, scales: FloatArray, start: FloatArray) -> FloatArray | None:
        """Return refined column scales; None unless their held-out loss is clearly smaller.

        Parameters
        ----------
        scales : ndarray of shape (n_columns,)
            The scales to improve.
        start : ndarray of shape (n_columns,)
            The initial scales. They should be rather too large: the recursion reduces large scales
            but hardly increases small ones.
        """
        given = found = best = self.fit(scales)
        if not np.array_equal(start, scales):
            found = self.fit(start)
            best = found if self._is_better(found, given) else given
        for _ in range(_ROUNDS):
            largest = found.gradient.max()
            if must_stop_learning() or not largest > 0:
                break
            found = self.fit(np.round(np.sqrt(found.gradient / largest), _DIGITS))
            # Scales decrease from round to round, and a fit to more rows would need more columns.
            if not self._is_better(found, best):
                break
            best = found
        return None if best is given else best.scales

    def _is_better(self, found: Refined, other: Refined) -> bool:
        return clearly_better(found.losses, other.losses, self.held.row_weights.shares)

    def fit(self, scales: FloatArray) -> Refined:
        """Fit with some column scales; return held-out losses and squared gradients by column."""
        X, n, shares = self.X, self.fitted.n_samples, self.held.row_weights.shares
        rows = divided_columns(X[:_MEDIAN_ROWS], self.spreads)
        kernels = scaled_kernels(scales, self.spreads, rows, self.menu)
        kernels = [kernel.shifted(X[:_UNIT_ROWS]) for kernel in kernels]
        bank = TiledBank(kernels, X[:_UNIT_ROWS])
        kept = self.weights[bank.kept]
        features = NystromMap(kernels, bank.coefficients(kept / kept.sum()), X[:_LANDMARKS])
        values, truth = self.fitted.scores_of(self.fitted), self.fitted.scores_of(self.held)
        summing = SumPass(features, values.shape[1], self.device)
        labelled = Labelled(X[:n], values, self.fitted.row_weights.values)
        system = SummedSystem(summing.add(summing.start(), labelled), features)
        new, table = summing.map(X[n:]), np.eye(values.shape[1])
        fits: dict[float, tuple[FloatArray, FloatArray]] = {}

        def loss(regularization: float) -> float:
            beta, intercept = system.fit(table, regularization)
            losses, _ = row_losses(new @ beta + intercept, truth, self.held)
            fits[regularization] = losses, beta
            return float(shares @ losses)

        losses, beta = fits[search_lambda(_LAMBDAS, loss).regularization]
        coef = features.expansion(beta)
        some = X[: min(n, _GRADIENT_ROWS)]
        gradient = features.kernel.squared_gradient(some, coef, features.landmarks, self.device)
        return Refined(scales, losses, gradient * np.square(self.spreads))
