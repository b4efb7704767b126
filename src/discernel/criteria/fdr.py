"""The maximum Fisher discriminant ratio: the criterion of Kim, Magnani and Boyd (2006).

The paper maximises, over the combined matrix G,

    F(G) = (1/λ) [aᵀGa − aᵀGJ(λI + JGJ)⁻¹JGa],                                Eq. (7)

whose inner inverse loses all its digits at the paper's λ = 1e-8. The same number is a
constrained least-squares value. Minimising (1/λ)(a − Ju)ᵀG(a − Ju) + ‖u‖² over u gives F, and
β = a − Ju runs over all vectors that sum to 1 on the second class and to −1 on the first, so

    F(G) + 2 = min { βᵀ(G/λ + D)β : Cᵀβ = c } = cᵀ(Cᵀ(G/λ + D)⁻¹C)⁻¹c,

with C the membership matrix, c = (−1, 1) and D the class sizes on the diagonal. λD + G is well
conditioned for any λ the paper uses. Because β sums to 0, G may be centred first.

F is a minimum of functions linear in G, hence concave in the weights; its linearisation at any
feasible β is the certificate.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from discernel.backend import FloatArray, matmul
from discernel.bank import Bank
from discernel.criteria.base import Criterion, Point
from discernel.targets import ClassTarget

__all__ = ["FisherRatio", "FisherRatioPoint"]

_SUMS = np.array([-1.0, 1.0])  # c


class FisherRatioPoint(Point):
    """Minus the Fisher ratio at some weights."""

    def __init__(self, criterion: FisherRatio, weights: FloatArray) -> None:
        self.weights = weights
        self._criterion = criterion
        self._system = criterion.bank.system(weights, criterion.ridge)
        membership = criterion.target.membership
        self._small = membership.T @ self._system.solve(membership)  # CᵀN⁻¹C
        beta = self._system.solve(membership @ np.linalg.solve(self._small, _SUMS))
        # Rounding must not cost feasibility, on which the certificate rests.
        missing = (_SUMS - membership.T @ beta) / criterion.target.counts
        self._beta = beta + membership @ missing
        self._products = criterion.bank.products(self._beta[:, None])[:, :, 0]  # G_iβ
        self._energies = self._products @ self._beta / criterion.regularization
        # β minimises, so errors of β enter this form of the value squared.
        self.value = 2.0 - criterion.penalty(self._beta) - float(weights @ self._energies)

    @cached_property
    def gradient(self) -> FloatArray:
        return -self._energies

    @cached_property
    def hessian(self) -> FloatArray:
        # With N = λD + G: (2/λ) βᵀG_i [N⁻¹ − N⁻¹C(CᵀN⁻¹C)⁻¹CᵀN⁻¹] G_lβ
        solved = self._system.solve(np.ascontiguousarray(self._products.T))
        sums = self._criterion.target.membership.T @ solved
        hessian = matmul(self._products, solved) - sums.T @ np.linalg.solve(self._small, sums)
        return np.asarray(hessian + hessian.T) / self._criterion.regularization

    @cached_property
    def bound(self) -> float:
        return self._criterion.lower_bound(self._beta, energies=self._energies)


class FisherRatio(Criterion):
    """Maximise the Fisher ratio of two classes, [Kim06]_ Eq. (7) and (8).

    Parameters
    ----------
    bank : Bank
        The kernels, normalised to raw trace n_samples.
    target : ClassTarget
        Two classes.
    regularization : float
        λ.
    """

    def __init__(self, bank: Bank, target: ClassTarget, regularization: float) -> None:
        self.bank = bank
        self.target = target
        self.regularization = regularization
        self.ridge = regularization * target.counts[target.codes].astype(np.float64)  # λD

    def at(self, weights: FloatArray) -> FisherRatioPoint:
        return FisherRatioPoint(self, weights)

    def lower_bound(self, beta: FloatArray, *, energies: FloatArray | None = None) -> float:
        """Return a value no weights fall below, from any β with Cᵀβ = c.

        Parameters
        ----------
        beta : ndarray of shape (n_samples,)
            β.
        energies : ndarray of shape (n_kernels,), optional
            βᵀG_iβ/λ, where they are known.
        """
        if energies is None:
            products = self.bank.products(beta[:, None])[:, :, 0]
            energies = products @ beta / self.regularization
        return 2.0 - self.penalty(beta) - float(energies.max())

    def penalty(self, beta: FloatArray) -> float:
        """Return βᵀDβ."""
        return float(beta @ (self.ridge * beta)) / self.regularization

    def objective(self, value: float) -> float:
        """Return the Fisher ratio, which is maximised."""
        return -value
