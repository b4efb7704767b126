"""Kernel least squares with an intercept, and its leave-one-out predictions in closed form.

The discriminants of both papers are least-squares fits of class scores: with equal weights for
all samples it is that of [Ye08]_, with weights inverse to the class sizes that of [Kim06]_.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from discernel.backend import FloatArray
from discernel.bank import System

__all__ = ["KernelLeastSquares"]


class KernelLeastSquares:
    """Minimise Σ_i ‖t_i − f(x_i) − b‖²/ρ_i + ‖f‖² over f and b, where N = diag(ρ) + G̃.

    Parameters
    ----------
    system : System
        N, factored.
    ridge : ndarray of shape (n_samples,)
        ρ.
    targets : ndarray of shape (n_samples, n_targets)
        The rows t_i.

    Attributes
    ----------
    coef : ndarray of shape (n_samples, n_targets)
        The expansion of f in the training rows: f(x) = Σ_i coef_i K̃(x_i, x).
    intercept : ndarray of shape (n_targets,)
    """

    def __init__(self, system: System, ridge: FloatArray, targets: FloatArray) -> None:
        self._system, self._ridge, self._targets = system, ridge, targets
        ones = np.ones((len(targets), 1))
        solved = system.solve(np.hstack([ones, targets]))
        self._solved_ones = solved[:, 0]  # N⁻¹1
        self._sum = float(self._solved_ones.sum())
        self.intercept = solved[:, 1:].sum(axis=0) / self._sum
        # QT with Q = N⁻¹ − N⁻¹11ᵀN⁻¹/(1ᵀN⁻¹1)
        self.coef = solved[:, 1:] - self._solved_ones[:, None] * self.intercept

    @property
    def fitted(self) -> FloatArray:
        """The predictions for the training rows: G̃·coef + b, without a product."""
        return np.asarray(self._targets - self._ridge[:, None] * self.coef)

    @cached_property
    def leave_one_out(self) -> FloatArray:
        """The prediction for each training row of the fit to all the others."""
        diagonal = self._system.inverse_diagonal() - self._solved_ones**2 / self._sum  # Q_ii
        return np.asarray(self._targets - self.coef / diagonal[:, None])

    def leave_one_out_error(self) -> float:
        """Return the mean squared leave-one-out error."""
        return float(np.mean((self._targets - self.leave_one_out) ** 2))
