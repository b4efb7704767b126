"""The maximum Fisher discriminant ratio: the criterion of Kim, Magnani and Boyd (2006).

The paper maximizes, over the combined matrix G,

    F(G) = (1/λ) [aᵀGa − aᵀGJ(λI + JGJ)⁻¹JGa],                                Eq. (7)

whose inner inverse loses all its digits at the paper's λ = 1e-8. F is also the value of a
constrained least-squares problem: the minimum of (1/λ)(a − Ju)ᵀG(a − Ju) + ‖u‖² over u. The
vectors β = a − Ju are all vectors that sum to 1 on the second class and to −1 on the first, so

    F(G) + 2 = min { βᵀ(G/λ + D)β : Cᵀβ = c } = cᵀ(Cᵀ(G/λ + D)⁻¹C)⁻¹c,

with C the membership matrix, c = (−1, 1) and D the class sizes on the diagonal. λD + G is well
conditioned for all λ of the paper. Because β sums to 0, G may be centred first.

F is a minimum of functions that are linear in G, so it is concave in the weights. Its
linearization at any feasible β gives the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, cast

import numpy as np

from discernel.arrays import FloatArray, matmul
from discernel.bank import Bank, Normalization
from discernel.programs.base import ConicModel, ConvexProgram, Criterion, Point
from discernel.targets import ClassTarget, Target

_SUMS = np.array([-1.0, 1.0])  # c


class FisherRatioPoint(Point):
    """Minus the Fisher ratio at some weights."""

    def __init__(self, criterion: FisherRatioProgram, weights: FloatArray) -> None:
        self.weights = weights
        self._criterion = criterion
        self._system = criterion.bank.system(weights, criterion.ridge)
        membership = criterion.target.membership
        self._small = membership.T @ self._system.solve(membership)  # CᵀN⁻¹C
        beta = self._system.solve(membership @ np.linalg.solve(self._small, _SUMS))
        # The certificate is only valid for a feasible β, so correct its rounding errors.
        missing = (_SUMS - membership.T @ beta) / criterion.target.sizes
        self._beta = beta + membership @ missing
        self._products = criterion.bank.products(self._beta[:, None])[:, :, 0]  # G_iβ
        self._energies = self._products @ self._beta / criterion.regularization
        # β is a minimizer, so errors of β enter this form of the value squared.
        self.value = -criterion.penalty(self._beta) - float(weights @ self._energies)

    @cached_property
    def error(self) -> float:
        """An upper bound of the error of the value, which is too small.

        β is inexact, and sums are rounded. The best feasible β is lower by at most rᵀN⁻¹r/λ, where
        r is Nβ minus its class means, and N = λD + G is at least λ times the smaller class size.
        """
        criterion, beta = self._criterion, self._beta
        slope = criterion.ridge * beta + self.weights @ self._products  # Nβ
        membership, sizes = criterion.target.membership, criterion.target.sizes
        slope -= membership @ (membership.T @ slope / sizes)
        noise = float(self.weights @ criterion.bank.rounding)
        least = float(criterion.ridge.min()) - noise
        if not least > 0:
            return np.inf
        norm = float(beta @ beta)
        # The products in the slope have the rounding errors of the kernels.
        inexact = float((np.sqrt(slope @ slope) + noise * np.sqrt(norm)) ** 2) / least
        return (inexact + noise * norm) / criterion.regularization

    @property
    def intercept(self) -> float:
        return self.value - float(self.gradient @ self.weights) - self._criterion.noise(self._beta)

    @cached_property
    def gradient(self) -> FloatArray:
        return np.asarray(-self._energies)

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


class FisherRatioProgram(ConvexProgram):
    """Maximize the Fisher ratio of two classes, [Kim06]_ Eq. (7) and (8).

    Parameters
    ----------
    bank : Bank
        The kernels, normalized to raw trace n_samples.
    target : ClassTarget
        Two classes.
    regularization : float
        λ.
    """

    def __init__(self, bank: Bank, target: ClassTarget, regularization: float) -> None:
        self.bank = bank
        self.target = target
        self.regularization = regularization
        self.ridge = regularization * target.own_sizes  # λD

    def at(self, weights: FloatArray) -> FisherRatioPoint:
        return FisherRatioPoint(self, weights)

    def lower_bound(self, beta: FloatArray, *, energies: FloatArray | None = None) -> float:
        """Return a lower bound of the value for all weights, from any β with Cᵀβ = c.

        Parameters
        ----------
        beta : ndarray of shape (n_samples,)
            β.
        energies : ndarray of shape (n_kernels,), optional
            βᵀG_iβ/λ; by default they are computed.
        """
        if energies is None:
            products = self.bank.products(beta[:, None])[:, :, 0]
            energies = products @ beta / self.regularization
        return -self.penalty(beta) - float(energies.max()) - self.noise(beta)

    def noise(self, beta: FloatArray) -> float:
        """Return a bound of the rounding error of βᵀG_iβ/λ; infinite if N may be indefinite.

        Because of rounding errors, kernels of the bank may have negative eigenvalues.
        """
        rounding = float(self.bank.rounding.max())
        if not float(self.ridge.min()) > rounding:
            return np.inf
        return rounding * float(beta @ beta) / self.regularization

    def penalty(self, beta: FloatArray) -> float:
        """Return βᵀDβ − 2, which is ‖u‖², for any β with Cᵀβ = c.

        aᵀDa = 2, and β − a sums to 0 in each class, so βᵀDβ − 2 = (β − a)ᵀD(β − a).
        """
        difference = beta - self.target.mean_difference
        return float(difference @ (self.ridge * difference)) / self.regularization

    def objective(self, value: float) -> float:
        """Return the Fisher ratio, which is maximized."""
        return -value

    def sdp(self, cp: Any, *, approximate: bool = False) -> ConicModel:
        """Return the semidefinite program, Eq. (9).

        Parameters
        ----------
        cp : module
            CVXPY.
        approximate : bool, default=False
            Ignored: there is only one matrix inequality.
        """
        target, bank = self.target, self.bank
        kernels = bank.compressed(np.eye(bank.n_samples))
        within = target.membership @ np.diag(1.0 / target.sizes) @ target.membership.T
        J = (np.eye(bank.n_samples) - within) / np.sqrt(target.sizes[target.codes])
        a = target.mean_difference
        weights, t = cp.Variable(bank.n_kernels, nonneg=True), cp.Variable()
        matrix = self.regularization * np.eye(bank.n_samples) + sum(
            w * (J @ K @ J) for w, K in zip(weights, kernels, strict=True)
        )
        column = sum(w * (J @ K @ a) for w, K in zip(weights, kernels, strict=True))
        column = cp.reshape(column, (bank.n_samples, 1), order="C")
        inequality = cp.bmat([[matrix, column], [column.T, cp.reshape(t, (1, 1), order="C")]]) >> 0
        # Eq. (9) without its factor 1/λ, which does not change the optimum but hurts the scaling.
        linear = np.array([a @ K @ a for K in kernels])
        problem = cp.Problem(cp.Minimize(t - linear @ weights), [cp.sum(weights) == 1, inequality])

        def bound() -> float:
            if inequality.dual_value is None:
                return -np.inf
            # Complementarity: the last column of the multiplier is −u, and β = a − Ju.
            u = -inequality.dual_value[:-1, -1] / inequality.dual_value[-1, -1]
            return self.lower_bound(a - J @ u)

        return ConicModel(problem, lambda: weights.value, bound)


@dataclass(frozen=True)
class FisherRatio(Criterion):
    """Fisher discriminant ratio of two classes [Kim06]_.

    Kernels are scaled to trace n_samples, as in the paper, and λ is relative to that.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import rbf_ladder
    >>> X, y = load_wine(return_X_y=True)
    >>> grams = [kernel(X[::3]) for kernel in rbf_ladder(4, center=200.0)]
    >>> from discernel.criteria import FisherRatio
    >>> learned = learn_kernel(grams, (y[::3] == 0), criterion=FisherRatio(), regularization=0.01)
    >>> learned.criterion, learned.gap is None
    ('fdr', False)
    """

    name: ClassVar[str] = "fdr"
    solvers: ClassVar[tuple[str, ...]] = ("newton", "sdp")
    normalization: ClassVar[Normalization] = "trace"
    takes: ClassVar[Literal["two classes"]] = "two classes"
    balanced: ClassVar[bool] = True
    weighs_samples: ClassVar[bool] = True
    only_products: ClassVar[bool] = True

    def program(
        self, bank: Bank, target: Target, regularization: float | None
    ) -> FisherRatioProgram:
        return FisherRatioProgram(bank, cast(ClassTarget, target), cast(float, regularization))
