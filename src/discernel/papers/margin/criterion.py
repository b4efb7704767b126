"""The soft margin of a support vector machine: the criteria of Lanckriet et al. (2004).

For two classes, y = ±1, kernels K_i scaled to trace n_samples, K(w) = Σ w_i K_i and β = diag(y)α,
all three programs minimize over the simplex

    f(w) = max 2αᵀ1 − βᵀ(K(w) + ρI)β   over   0 ≤ α ≤ B, Σβ = 0:

* SM1: ρ = 0, B = C;
* SM2: ρ = 1/C, B = ∞;
* SM2_C: ρ = 0, B = ∞, and I is the first of the kernels, so that C is learned.

Because β sums to 0, kernels may be centred first. f is a maximum of functions that are linear in w,
so it is convex. Both bounds hold for inexact solutions too. For any feasible α,

    min_w f(w)  ≥  2αᵀ1 − ρ‖α‖² − max_i βᵀK_iβ,

and for any β and threshold b, with the slacks ξ = max(0, 1 − y(K(w)β + b)),

    f(w)  ≤  βᵀK(w)β + 2C Σξ    or    βᵀK(w)β + Σξ²/ρ.

With sample weights ω, all vectors above are multiplied by r = √ω, and the kernels by r from both
sides: r replaces the ones, and Br replaces B.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np

from discernel.arrays import ALMOST_ZERO, FloatArray
from discernel.bank import Bank, Matrices, Normalization, StoredMatrices
from discernel.exceptions import check_number, unknown_choice
from discernel.papers.margin.solver import Machine, MarginPoint, maximize
from discernel.programs.base import ConicModel, ConvexProgram, Criterion, Split
from discernel.programs.rkda import square_root
from discernel.programs.simplex import beside_identity
from discernel.targets import ClassTarget, Target

MarginKind = Literal["SM1", "SM2", "SM2_C"]

_KINDS: tuple[MarginKind, ...] = ("SM1", "SM2", "SM2_C")


class SoftMargin(ConvexProgram):
    """Minimize the value of a support vector machine over the weights, [Lanckriet04]_.

    Parameters
    ----------
    bank : Bank
        The kernels, normalized to raw trace n_samples.
    target : ClassTarget
        Two classes.
    kind : {"SM1", "SM2", "SM2_C"}
        The cost of slacks: linear, squared, or squared with C learned. In the last case, the
        identity, which has trace n_samples too, is the first of the kernels.
    C : float
        The cost of slacks; ``"SM2_C"`` does not use it.

    Attributes
    ----------
    signs : ndarray of shape (n_samples,)
        y, 1 on the second class and −1 on the first.
    roots : ndarray of shape (n_samples,)
        r, the square roots of the sample weights; ones without weights.
    limit : float
        B, the largest α allowed.
    ridge : float
        ρ.
    identity_first : bool
        Whether the first kernel is I.
    """

    def __init__(self, bank: Matrices, target: ClassTarget, kind: MarginKind, C: float) -> None:
        self.bank = bank
        self.signs, self.roots = target.signs, target.row_weights.roots
        self.limit = C if kind == "SM1" else np.inf
        self.ridge = 1.0 / C if kind == "SM2" else 0.0
        self.identity_first = kind == "SM2_C"

    @property
    def n_weights(self) -> int:
        return self.bank.n_kernels + self.identity_first

    def at(self, weights: FloatArray) -> MarginPoint:
        machine = maximize(self.fixed(weights))
        return MarginPoint(self, weights, machine, self.products(machine.beta))

    def fixed(self, weights: FloatArray) -> Self:
        """Return the program with K(w) as its only kernel: a single support vector machine."""
        single = copy(self)
        single.ridge, weights = self.split_ridge(weights)
        single.bank = StoredMatrices(self.bank.combined(weights)[None])
        single.identity_first = False
        return single

    def matrix(self, weights: FloatArray) -> FloatArray:
        """Return K(w) as a new matrix, without ρI."""
        if not self.identity_first:
            return self.bank.combined(weights)
        matrix = self.bank.combined(weights[1:])
        matrix[np.diag_indices_from(matrix)] += weights[0]
        return matrix

    def products(self, beta: FloatArray) -> FloatArray:
        """Return every K_iβ, of shape (n_weights, n_samples)."""
        products = self.bank.products(beta[:, None])[:, :, 0]
        return np.vstack([beta, products]) if self.identity_first else products

    def feasible(self, beta: FloatArray) -> FloatArray:
        """Return β clipped to 0 ≤ α ≤ B, and scaled down on one class so that it sums to 0."""
        alpha = np.clip(self.signs * beta, 0.0, self.limit * self.roots)
        second, counted = self.signs > 0, self.roots * alpha
        sums = np.where(second, counted[second].sum(), counted[~second].sum())
        return np.asarray(self.signs * alpha * (sums.min() / np.maximum(sums, ALMOST_ZERO)))

    def linear_part(self, beta: FloatArray) -> float:
        """Return 2αᵀ1 − ρ‖α‖², the part of the maximum that does not depend on the weights."""
        return 2.0 * float((self.signs * self.roots) @ beta) - self.ridge * float(beta @ beta)

    def lower_bound(self, beta: FloatArray) -> float:
        """Return a lower bound of the value for all weights, from any β, which is made feasible."""
        beta = self.feasible(beta)
        return self.linear_part(beta) - float((self.products(beta) @ beta).max())

    def upper_bound(self, weights: FloatArray, machine: Machine, products: FloatArray) -> float:
        """Return the primal value of a machine, an upper bound of f(w).

        Parameters
        ----------
        weights : ndarray of shape (n_weights,)
            w.
        machine : Machine
            Any β and threshold.
        products : ndarray of shape (n_weights, n_samples)
            Every K_iβ.

        Notes
        -----
        ρI is an additional kernel, whose features are the slacks. If slacks are very expensive, a
        machine without slacks is better: the same machine, scaled up to a margin of 1.
        """
        beta, threshold = machine
        ridge, weights = self.split_ridge(weights)
        scores = weights @ products[-len(weights) :]
        norm = float(scores @ beta)
        constant = threshold * self.roots
        slacks = np.maximum(0.0, self.roots - self.signs * (scores + constant))
        if np.isfinite(self.limit):
            soft = norm + 2.0 * self.limit * float((self.roots * slacks).sum())
        else:
            soft = norm + float(slacks @ slacks) / ridge if ridge > 0 else np.inf
        margin = float(np.min(self.signs * (scores + ridge * beta + constant) / self.roots))
        hard = (norm + ridge * float(beta @ beta)) / margin / margin if margin > 0 else np.inf
        return min(soft, hard)

    def split_ridge(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return ρ plus the weight of the identity, and the weights of the other kernels."""
        if self.identity_first:
            return self.ridge + float(weights[0]), weights[1:]
        return self.ridge, weights

    def split(self, weights: FloatArray) -> Split:
        """Return the kernel weights, which sum to 1, and the learned C for these weights.

        w_0I + Σ w_iK_i is a multiple of K(w') + I/C, so the support vector machine is the same up
        to scale. C is infinite if the identity has no weight, and no slack is allowed.
        """
        if not self.identity_first:
            return Split(weights)
        identity, kernels = self.split_ridge(weights)
        kernels, share = beside_identity(kernels)
        cost = share / identity if identity > 0 else np.inf
        return Split(kernels, parameters={"C": cost})

    def qcqp(self, cp: Any) -> ConicModel:
        """Return the quadratically constrained program of the dual.

        Parameters
        ----------
        cp : module
            CVXPY.
        """
        alpha, t = cp.Variable(len(self.signs), nonneg=True), cp.Variable()
        beta = cp.multiply(self.signs, alpha)
        limits = [
            cp.sum_squares(square_root(self.matrix(unit)) @ beta) <= t
            for unit in np.eye(self.n_weights)
        ]
        others = [cp.sum(cp.multiply(self.roots, beta)) == 0]
        if np.isfinite(self.limit):
            others.append(alpha <= self.limit * self.roots)
        value = (
            2.0 * cp.sum(cp.multiply(self.roots, alpha)) - t - self.ridge * cp.sum_squares(alpha)
        )

        def weights() -> FloatArray | None:
            if alpha.value is None:
                return None
            return np.array([np.ravel(limit.dual_value)[0] for limit in limits])

        def bound() -> float:
            return -np.inf if alpha.value is None else self.lower_bound(self.signs * alpha.value)

        return ConicModel(cp.Problem(cp.Maximize(value), limits + others), weights, bound)


@dataclass(frozen=True)
class Margin(Criterion):
    """Soft margin of a support vector machine for two classes [Lanckriet04]_.

    Parameters
    ----------
    kind : {"SM1", "SM2", "SM2_C"}, default="SM2"
        The cost of a slack ξ: Cξ for ``"SM1"``, Cξ² for ``"SM2"``. ``"SM2_C"`` is ``"SM2"`` with C
        learned in the same program; ``parameters["C"]`` of the `LearnedKernel` has its value.
    C : float, default=1.0
        The cost, above 0, for kernels of trace n_samples; ``"SM2_C"`` does not use it.

    Notes
    -----
    All three are certified. The objective is the primal value of the support vector machine at
    the weights, and the gap is relative to it. The learned C is for the combined kernel with trace
    n_samples. It is infinite, or about 1e8, if slacks do not improve the objective. It is not
    unique if a kernel is close to a multiple of the identity, such as a very narrow Gaussian.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from discernel import learn_kernel
    >>> from discernel.kernels import RBF
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, y = scale(X[:100]), y[:100]
    >>> grams = [RBF(width=s)(X) for s in (1, 4, 16)]
    >>> learned = learn_kernel(grams, y, criterion=Margin("SM1", C=10.0))
    >>> learned.weights.round(2).tolist()
    [0.46, 0.54, 0.0]
    >>> learned.gap <= 1e-6
    True
    """

    kind: MarginKind = "SM2"
    C: float = 1.0
    name: ClassVar[str] = "margin"
    solvers: ClassVar[tuple[str, ...]] = ("interior_point", "silp", "qcqp")
    normalization: ClassVar[Normalization] = "trace"
    regularization_is: ClassVar[Literal["apart"]] = "apart"
    takes: ClassVar[Literal["two classes"]] = "two classes"
    balanced: ClassVar[bool] = True  # as for fdr, which has kernels of the same trace
    weighs_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise unknown_choice("kind of Margin", self.kind, list(_KINDS))
        check_number("C of Margin", self.C, positive=True)

    def program(self, bank: Bank, target: Target, regularization: float | None) -> SoftMargin:
        return SoftMargin(bank, cast(ClassTarget, target), self.kind, float(self.C))
