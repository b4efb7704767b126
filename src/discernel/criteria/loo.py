"""The leave-one-out error as a function of the weights and of λ, with its gradient.

With N = λI + G̃(w), Q = N⁻¹ − N⁻¹11ᵀN⁻¹/(1ᵀN⁻¹1) and the class scores T, the error that row i is
predicted with by the fit to all other rows is e_i = (QT)_i/Q_ii. The mean of ‖e_i‖² is smooth in
(w, λ), not convex, and its gradient for all kernels costs one product of size n_samples more:

    ∂/∂w_i = ⟨K_i, S⟩,  ∂/∂λ = tr S,  S = Q diag(2‖e_i‖²/Q_ii) Q − sym(Q(2e_i/Q_ii) (QT)ᵀ),

up to the factor of the mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discernel.backend import FloatArray, matmul, self_product_less, subtract_outer
from discernel.bank import Bank
from discernel.targets import Target

__all__ = ["LeaveOneOut", "LeaveOneOutPoint"]


@dataclass(frozen=True)
class LeaveOneOutPoint:
    """The error and its derivatives at some weights and λ."""

    value: float
    by_weights: FloatArray
    by_regularization: float


class LeaveOneOut:
    """The mean squared leave-one-out error of the class scores.

    Parameters
    ----------
    bank : Bank
        The kernels, normalised to centred trace 1.
    target : Target
        What is to be separated.
    """

    def __init__(self, bank: Bank, target: Target) -> None:
        self.bank = bank
        self.target = target

    def at(self, weights: FloatArray, regularization: float) -> LeaveOneOutPoint:
        """Return error and gradient; about eight factorisations of size n_samples."""
        T = self.target.scores
        Q = self.bank.system(weights, regularization).inverse()
        # N⁻¹1 is 1/λ, but that G̃1 = 0 holds up to rounding only, and λ may not be far above it.
        sums = Q.sum(axis=1)
        subtract_outer(Q, sums, sums / sums.sum())
        diagonal = Q.diagonal().copy()
        QT = matmul(Q, T)
        errors = QT / diagonal[:, None]
        influence = matmul(Q, 2.0 * errors / diagonal[:, None])
        leverage = 2.0 * np.einsum("ij,ij->i", errors, errors) / diagonal
        value = float(np.mean(errors**2))
        Q *= np.sqrt(leverage)[:, None]  # no longer Q: its rows, scaled
        # Q is symmetric and C-ordered, so the transpose of its scaled rows is its scaled columns.
        S = self_product_less(Q.T, influence, QT, 1.0 / errors.size)
        return LeaveOneOutPoint(value, self.bank.inner(S), float(np.trace(S)))
