"""Kernel least squares with an intercept, and its leave-one-out predictions in closed form.

If rows have groups, "leave-one-out" leaves out the group of a row: with S the rows of a group, the
errors of the fit without them at these rows are (Q_SS)⁻¹(QT)_S. For a group of one row this is the
leave-one-out error (QT)_i/Q_ii.

The discriminants of both papers are least-squares fits of class scores: with equal ridges of all
samples for [Ye08]_, and with ridges in proportion to the class sizes for [Kim06]_.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.arrays.groups import Groups
from discernel.arrays.sample_weights import SampleWeights, row_weights
from discernel.bank import Bank, System
from discernel.targets import Target


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

    def left_out_groups(self, target: Target) -> Groups | None:
        """Return `Target.left_out_groups` of the training rows, told apart by their errors."""

    def left_out_scores(self, groups: Groups | None) -> FloatArray:
        """Return predictions by fits without each group, with the mean of ``fitted``."""

    @property
    def ridge(self) -> FloatArray:
        """The ridge of each row."""

    @property
    def penalty(self) -> FloatArray:
        """‖f‖², the matrix of inner products between all pairs of targets."""

    @property
    def row_weights(self) -> SampleWeights:
        """The sample weights."""


@dataclass(frozen=True, eq=False)
class LeftOutRows:
    """Leave-one-out fits without each of some training rows, or without the group of each.

    With a_i the fit to 1 at row i and 0 at all others, the fit without row i is
    f_{−i}(x) = f(x) − a_i(x) e_i, where e_i = t_i − f_{−i}(x_i) is its error at that row. Without
    the rows S of a group it is f_{−S}(x) = f(x) − Σ_{j∈S} a_j(x) e_j, with the errors of that fit:
    for each target, one function of x.

    Attributes
    ----------
    rows : ndarray of shape (n_rows,)
        Positions of the rows that are left out.
    scores : ndarray of shape (n_rows, n_targets)
        f_{−i}(x_i).
    errors : ndarray of shape (n_rows, n_targets)
        e_i; with groups, ones.
    influence : ndarray of shape (n_terms, n_rows), or (n_terms, n_rows * n_targets)
        The coefficients of a_i, in the same terms as those of f. With groups, or if each target has
        kernel weights of its own, those of Σ_{j∈S} a_j e_j, all targets of a row side by side.
    weights : ndarray of shape (n_rows,)
        Sample weights of the rows.
    groups : Groups or None
        The groups of the rows.
    """

    rows: NDArray[np.intp]
    scores: FloatArray
    errors: FloatArray
    influence: FloatArray
    weights: FloatArray
    groups: Groups | None = None


class KernelLeastSquares:
    """Minimize Σ_i ω_i‖t_i − f(x_i) − b‖²/ρ_i + ‖f‖² over f and b, where N = diag(ρ) + G̃.

    Parameters
    ----------
    system : System
        N, factored.
    ridge : float or ndarray of shape (n_samples,)
        ρ.
    targets : ndarray of shape (n_samples, n_targets)
        The rows t_i; with sample weights √ω_i t_i, as in `Target.scores`.
    sample_weights : SampleWeights, optional
        ω, the sample weights of the bank of N.
    groups : Groups, optional
        Groups of rows that are left out together.

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
        ridge: float | FloatArray,
        targets: FloatArray,
        sample_weights: SampleWeights | None = None,
        groups: Groups | None = None,
    ) -> None:
        self._system, self._targets = system, targets
        self._ridge = np.broadcast_to(np.asarray(ridge, dtype=np.float64), len(targets))
        self.row_weights, self.groups = row_weights(sample_weights, len(targets)), groups
        roots = self.row_weights.roots  # with sample weights, √ω replaces the ones
        # Only b depends on the means of the targets. Coefficients of the differences from them have
        # no rounding errors in units of large means.
        means = self.row_weights.means(self.truth.T)
        solved = system.solve(np.hstack([roots[:, None], targets - roots[:, None] * means]))
        self._solved_ones = solved[:, 0]  # N⁻¹1
        self._sum = float(roots @ self._solved_ones)
        offsets = roots @ solved[:, 1:] / self._sum
        self.intercept = means + offsets
        # QT with Q = N⁻¹ − N⁻¹11ᵀN⁻¹/(1ᵀN⁻¹1)
        self._dual = solved[:, 1:] - self._solved_ones[:, None] * offsets
        self.coef = self._dual * roots[:, None]

    @classmethod
    def of(
        cls,
        system: System,
        ridge: float | FloatArray,
        target: Target,
        scores: FloatArray | None = None,
    ) -> KernelLeastSquares:
        """Return the fit of the scores of a target, or of other scores of its rows."""
        scores = target.scores if scores is None else scores
        return cls(system, ridge, scores, target.row_weights, target.groups)

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
        return self.row_weights.unscale(self._targets - self._ridge[:, None] * self._dual)

    @property
    def truth(self) -> FloatArray:
        """The targets t_i, not multiplied by √ω_i."""
        return self.row_weights.unscale(self._targets)

    @property
    def ridge(self) -> FloatArray:
        """The ridge ρ_i/ω_i of each row."""
        return self._ridge / self.row_weights.values

    @property
    def penalty(self) -> FloatArray:
        """‖f‖², the matrix of inner products between all pairs of targets."""
        return np.asarray(self.coef.T @ (self.fitted - self.intercept))

    @cached_property
    def leave_one_out(self) -> FloatArray:
        """The leave-one-out prediction for each training row."""
        return self.row_weights.unscale(self._targets - self._residuals)

    def left_out_groups(self, target: Target) -> Groups | None:
        """Return `Target.left_out_groups` of the training rows, told apart by their errors."""
        return target.left_out_groups(self.row_weights.unscale(-self._dual))  # also where ρ is 0

    def left_out_scores(self, groups: Groups | None) -> FloatArray:
        """Return predictions of the training rows by fits without their group.

        They have the same mean as ``fitted``; see `center_left_out`.

        Parameters
        ----------
        groups : Groups or None
            Those of `left_out_groups`; None: each row, or given group, is left out alone.
        """
        if groups is None or groups is self.groups:
            left_out = self.leave_one_out
        else:
            left_out = self.row_weights.unscale(self._targets - self._residuals_without(groups))
        shares = 1.0 / self.ridge if self._ridge.any() else self.row_weights.values
        shares = shares / shares.sum()
        targets = self.truth - shares @ self.truth
        return center_left_out(left_out, targets, shares, groups or self.groups)

    @cached_property
    def _residuals(self) -> FloatArray:
        """The leave-one-out errors, times √ω."""
        if self.groups is not None:
            return self._residuals_without(self.groups)
        diagonal = self._system.inverse_diagonal() - self._solved_ones**2 / self._sum  # Q_ii
        return np.asarray(self._dual / diagonal[:, None])

    def _residuals_without(self, groups: Groups) -> FloatArray:
        """Return the errors of the fits without the group of each row, times √ω."""
        return solve_groups(self._system, groups, self._solved_ones, self._sum, self._dual)

    def left_out(self, rows: NDArray[np.intp]) -> LeftOutRows:
        """Return the leave-one-out fits without each of some rows.

        Parameters
        ----------
        rows : ndarray of int
            Positions of the rows.
        """
        if self.groups is not None:
            return self._left_out_groups(rows, self.groups)
        places, units = np.arange(len(rows)), np.zeros((self.n_samples, len(rows)))
        units[rows, places] = self.row_weights.roots[rows]
        unit = KernelLeastSquares(self._system, self._ridge, units, self.row_weights)
        errors = self._dual[rows] / unit._dual[rows, places][:, None]
        scores, weights = self.truth[rows] - errors, self.row_weights.values[rows]
        return LeftOutRows(rows, scores, errors, unit.coef, weights)

    def _left_out_groups(self, rows: NDArray[np.intp], groups: Groups) -> LeftOutRows:
        """Return the fits without the group of each of some rows: Q times its errors."""
        present, place = np.unique(groups.numbers[rows], return_inverse=True)
        inside = groups.numbers[:, None] == present  # (n_samples, n_groups)
        errors, n_targets = self._residuals, self._targets.shape[1]
        right = (inside[:, :, None] * errors[:, None, :]).reshape(self.n_samples, -1)
        unit = KernelLeastSquares(self._system, self._ridge, right, self.row_weights)
        influence = unit.coef.reshape(self.n_samples, len(present), n_targets)[:, place]
        weights = self.row_weights.values[rows]
        return LeftOutRows(
            rows,
            self.leave_one_out[rows],
            np.ones((len(rows), n_targets)),
            influence.reshape(self.n_samples, -1),
            weights,
            groups.subset(rows),
        )

    def leave_one_out_error(self) -> float:
        """Return the mean squared leave-one-out error."""
        n_columns = self._targets.shape[1]
        if not n_columns:
            return 0.0  # a single class, with nothing to predict
        return float(np.sum(self._residuals**2) / (self.row_weights.total * n_columns))


def fits_by_lambda(
    bank: Bank, weights: FloatArray, target: Target, scores: FloatArray | None = None
) -> Callable[[float], KernelLeastSquares]:
    """Return a function from λ to the fit with a sum of kernels, which is combined only once."""
    system = bank.systems(weights)
    return lambda lam: KernelLeastSquares.of(system(lam), lam, target, scores)


def solve_groups(
    system: System, groups: Groups, solved_ones: FloatArray, total: float, right: FloatArray
) -> FloatArray:
    """Return (Q_SS)⁻¹V_S for the rows S of each group, with Q = N⁻¹ − ssᵀ/σ.

    Parameters
    ----------
    system : System
        N.
    groups : Groups
        The groups.
    solved_ones : ndarray of shape (n_samples,)
        s = N⁻¹r, with r the ones or √ω.
    total : float
        σ = rᵀs.
    right : ndarray of shape (n_samples, n)
        V.
    """
    out = np.empty_like(right)
    for rows, blocks in zip(groups.batches, system.inverse_blocks(groups), strict=True):
        ones = solved_ones[rows]
        own = blocks - ones[:, :, None] * ones[:, None, :] / total
        try:
            out[rows] = np.linalg.solve(own, right[rows])
        except np.linalg.LinAlgError:  # positive definite only without rounding errors
            n = own.shape[1]
            error = n * np.finfo(np.float64).eps * np.abs(own).max(axis=(1, 2), keepdims=True)
            out[rows] = np.linalg.solve(own + error * np.eye(n), right[rows])
    return out


def center_left_out(
    leave_one_out: FloatArray,
    targets: FloatArray,
    shares: FloatArray,
    groups: Groups | None = None,
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
    groups : Groups, optional
        Groups of rows that are left out together.
    """
    if groups is not None:
        own = groups.sums(shares[:, None] * targets) / (1.0 - groups.sums(shares)[:, None])
        return np.asarray(leave_one_out + own[groups.numbers])
    return np.asarray(leave_one_out + (shares / (1.0 - shares))[:, None] * targets)
