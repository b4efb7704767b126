"""Kernel least squares with an intercept, and its leave-one-out predictions in closed form.

The discriminants of both papers are least-squares fits of class scores: with equal ridges of all
samples for [Ye08]_, and with ridges in proportion to the class sizes for [Kim06]_.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.arrays.sample_weights import SampleWeights, row_weights
from discernel.bank import System


class LeastSquares(Protocol):
    """The interface of a least-squares fit with an intercept."""

    @property
    def coef(self) -> FloatArray:
        """The coefficients of f in terms of kernels at the kept rows."""

    @property
    def intercept(self) -> FloatArray:
        """The intercept b."""

    @property
    def fitted(self) -> FloatArray:
        """The predictions for the training rows."""

    @property
    def leave_one_out(self) -> FloatArray:
        """The leave-one-out prediction for each training row."""

    @property
    def left_out_scores(self) -> FloatArray:
        """Leave-one-out predictions with the same mean as ``fitted``; see `center_left_out`."""

    @property
    def ridge(self) -> FloatArray:
        """The ridge of each row."""

    @property
    def penalty(self) -> FloatArray:
        """‖f‖², the matrix of inner products between all pairs of targets."""

    @property
    def sample_weights(self) -> SampleWeights | None:
        """The sample weights."""


@dataclass(frozen=True, eq=False)
class LeftOutRows:
    """Leave-one-out fits without each of some training rows.

    With a_i the fit to 1 at row i and 0 at all others, the fit without row i is
    f_{−i}(x) = f(x) − a_i(x) e_i, where e_i = t_i − f_{−i}(x_i) is its error at that row.

    Attributes
    ----------
    rows : ndarray of shape (n_rows,)
        Positions of the rows that are left out.
    scores : ndarray of shape (n_rows, n_targets)
        f_{−i}(x_i).
    errors : ndarray of shape (n_rows, n_targets)
        e_i.
    influence : ndarray of shape (n_terms, n_rows)
        The coefficients of a_i, in the same terms as those of f.
    weights : ndarray of shape (n_rows,)
        Sample weights of the rows.
    """

    rows: NDArray[np.intp]
    scores: FloatArray
    errors: FloatArray
    influence: FloatArray
    weights: FloatArray


class KernelLeastSquares:
    """Minimize Σ_i ω_i‖t_i − f(x_i) − b‖²/ρ_i + ‖f‖² over f and b, where N = diag(ρ) + G̃.

    Parameters
    ----------
    system : System
        N, factored.
    ridge : ndarray of shape (n_samples,)
        ρ.
    targets : ndarray of shape (n_samples, n_targets)
        The rows t_i; with sample weights √ω_i t_i, as in `Target.scores`.
    sample_weights : SampleWeights, optional
        ω, the sample weights of the bank of N.

    Attributes
    ----------
    coef : ndarray of shape (n_samples, n_targets)
        The coefficients of the training rows: f(x) = Σ_i coef_i K̃(x_i, x).
    intercept : ndarray of shape (n_targets,)
        b.
    """

    def __init__(
        self,
        system: System,
        ridge: FloatArray,
        targets: FloatArray,
        sample_weights: SampleWeights | None = None,
    ) -> None:
        self._system, self._ridge, self._targets = system, ridge, targets
        self.sample_weights = sample_weights
        self._rows = row_weights(sample_weights, len(targets))
        roots = self._rows.roots  # with sample weights, √ω replaces the ones
        solved = system.solve(np.hstack([roots[:, None], targets]))
        self._solved_ones = solved[:, 0]  # N⁻¹1
        self._sum = float(roots @ self._solved_ones)
        self.intercept = roots @ solved[:, 1:] / self._sum
        # QT with Q = N⁻¹ − N⁻¹11ᵀN⁻¹/(1ᵀN⁻¹1)
        self._dual = solved[:, 1:] - self._solved_ones[:, None] * self.intercept
        self.coef = self._dual * roots[:, None]

    @property
    def by_iteration(self) -> bool:
        """Whether the system is solved by iteration, which takes passes over the kernels."""
        return self._system.by_iteration

    @property
    def n_samples(self) -> int:
        """The number of training rows."""
        return len(self._targets)

    @property
    def fitted(self) -> FloatArray:
        """The predictions G̃·coef + b for the training rows, without a product with G̃."""
        return self._rows.unscale(self._targets - self._ridge[:, None] * self._dual)

    @property
    def truth(self) -> FloatArray:
        """The targets t_i, not multiplied by √ω_i."""
        return self._rows.unscale(self._targets)

    @property
    def ridge(self) -> FloatArray:
        """The ridge ρ_i/ω_i of each row."""
        return self._ridge / self._rows.values

    @property
    def penalty(self) -> FloatArray:
        """‖f‖², the matrix of inner products between all pairs of targets."""
        return np.asarray(self.coef.T @ (self.fitted - self.intercept))

    @cached_property
    def leave_one_out(self) -> FloatArray:
        """The leave-one-out prediction for each training row."""
        return self._rows.unscale(self._targets - self._residuals)

    @property
    def left_out_scores(self) -> FloatArray:
        """Leave-one-out predictions with the same mean as ``fitted``; see `center_left_out`."""
        shares = 1.0 / self.ridge if self._ridge.any() else self._rows.values
        shares = shares / shares.sum()
        return center_left_out(self.leave_one_out, self.truth - shares @ self.truth, shares)

    @cached_property
    def _residuals(self) -> FloatArray:
        """The leave-one-out errors, times √ω."""
        diagonal = self._system.inverse_diagonal() - self._solved_ones**2 / self._sum  # Q_ii
        return np.asarray(self._dual / diagonal[:, None])

    def left_out(self, rows: NDArray[np.intp]) -> LeftOutRows:
        """Return the leave-one-out fits without each of some rows.

        Parameters
        ----------
        rows : ndarray of int
            Positions of the rows.
        """
        places, units = np.arange(len(rows)), np.zeros((self.n_samples, len(rows)))
        units[rows, places] = self._rows.roots[rows]
        unit = KernelLeastSquares(self._system, self._ridge, units, self.sample_weights)
        errors = self._dual[rows] / unit._dual[rows, places][:, None]
        scores, weights = self.truth[rows] - errors, self._rows.values[rows]
        return LeftOutRows(rows, scores, errors, unit.coef, weights)

    def leave_one_out_error(self) -> float:
        """Return the mean squared leave-one-out error."""
        n_columns = self._targets.shape[1]
        if not n_columns:
            return 0.0  # a single class, with nothing to predict
        return float(np.sum(self._residuals**2) / (self._rows.total * n_columns))


def center_left_out(
    leave_one_out: FloatArray, targets: FloatArray, shares: FloatArray
) -> FloatArray:
    """Return leave-one-out predictions, shifted to the mean of the fit to all rows.

    The fit without a row has the mean of the other targets, which is shifted away from the target
    of this row. Within one fit, a common shift does not matter. But leave-one-out predictions come
    from different fits, and their shifts would reverse the order of the classes.

    Parameters
    ----------
    leave_one_out, targets : ndarray of shape (n_samples, n_targets)
        The predictions, and the targets minus their mean.
    shares : ndarray of shape (n_samples,)
        The share of each row in the mean.
    """
    return np.asarray(leave_one_out + (shares / (1.0 - shares))[:, None] * targets)
