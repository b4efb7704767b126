"""The soft margin of a support vector machine: the criteria of Lanckriet et al. (2004).

Two classes, y = ±1, kernels K_i scaled to trace n_samples, K(w) = Σ w_i K_i. With β = diag(y)α all
three programs minimise over the simplex

    f(w) = max 2αᵀ1 − βᵀ(K(w) + ρI)β   over   0 ≤ α ≤ B, Σβ = 0:

* SM1: ρ = 0, B = C;
* SM2: ρ = 1/C, B = ∞;
* SM2_C: ρ = 0, B = ∞, and I is the first of the kernels, so that C is learnt.

Because β sums to 0, kernels may be centred first. f is a maximum of functions linear in w, hence
convex, and both certificates hold for numbers of any accuracy. From any feasible α,

    min_w f(w)  ≥  2αᵀ1 − ρ‖α‖² − max_i βᵀK_iβ,

and from any β and threshold b, the machine itself, with the slacks ξ = max(0, 1 − y(K(w)β + b)),

    f(w)  ≤  βᵀK(w)β + 2C Σξ    or    βᵀK(w)β + Σξ²/ρ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from discernel.backend import FloatArray, matmul
from discernel.bank import Bank
from discernel.criteria.base import Criterion, Point
from discernel.targets import ClassTarget

__all__ = ["FixedWeights", "Machine", "MarginKind", "MarginPoint", "MarginProgram", "SoftMargin"]

MarginKind = Literal["SM1", "SM2", "SM2_C"]

#: Where C is learnt, the least weight that all kernels together are left with.
_SMALLEST_SHARE = 1e-9
#: Keeps 0/0 away where no α is above 0.
_TINY = 1e-300


class Machine(NamedTuple):
    """A support vector machine on the training set, of any accuracy.

    Attributes
    ----------
    beta : ndarray of shape (n_samples,)
        β = diag(y)α.
    threshold : float
        b.
    """

    beta: FloatArray
    threshold: float


class MarginPoint(Point):
    """A program at some weights, as far as a machine shows it.

    Attributes
    ----------
    weights : ndarray of shape (n_weights,)
    value : float
        The primal value of the machine: f(w) is at most this.
    """

    def __init__(
        self, program: MarginProgram, weights: FloatArray, machine: Machine, products: FloatArray
    ) -> None:
        self.weights = weights
        self.value = program.upper_bound(weights, machine, products)
        self._intercept = program.linear_part(machine.beta)
        self._energies = products @ machine.beta  # βᵀK_iβ

    @cached_property
    def gradient(self) -> FloatArray:
        return -self._energies

    @property
    def hessian(self) -> FloatArray:
        raise NotImplementedError("The soft margin is differentiable once, not twice.")

    @property
    def intercept(self) -> float:
        return self._intercept  # not from the value, which is an upper bound of f(w)

    @cached_property
    def bound(self) -> float:
        return self._intercept - float(self._energies.max())


class MarginProgram(ABC):
    """min over w of max over α, for some kernels K_i; and what of it needs no algorithm.

    Attributes
    ----------
    signs : ndarray of shape (n_samples,)
        y, 1 on the second class and −1 on the first.
    limit : float
        B, the largest α allowed.
    ridge : float
        ρ.
    n_weights : int
        The number of kernels.
    identity_first : bool
        Whether the first kernel is I.
    """

    signs: FloatArray
    limit: float
    ridge: float
    n_weights: int
    identity_first: bool = False

    @abstractmethod
    def matrix(self, weights: FloatArray) -> FloatArray:
        """Return K(w) as a new matrix, without ρI."""

    @abstractmethod
    def products(self, beta: FloatArray) -> FloatArray:
        """Return every K_iβ, of shape (n_weights, n_samples)."""

    def feasible(self, beta: FloatArray) -> FloatArray:
        """Return β cut to 0 ≤ α ≤ B, and scaled down on one class so that it sums to 0."""
        alpha = np.clip(self.signs * beta, 0.0, self.limit)
        second = self.signs > 0
        sums = np.where(second, alpha[second].sum(), alpha[~second].sum())
        return np.asarray(self.signs * alpha * (sums.min() / np.maximum(sums, _TINY)))

    def linear_part(self, beta: FloatArray) -> float:
        """Return 2αᵀ1 − ρ‖α‖²: what of the maximum does not depend on the weights."""
        return 2.0 * float(self.signs @ beta) - self.ridge * float(beta @ beta)

    def lower_bound(self, beta: FloatArray) -> float:
        """Return a value no weights fall below, from any β, which is made feasible."""
        beta = self.feasible(beta)
        return self.linear_part(beta) - float((self.products(beta) @ beta).max())

    def upper_bound(self, weights: FloatArray, machine: Machine, products: FloatArray) -> float:
        """Return the primal value of a machine, which f(w) does not exceed.

        Parameters
        ----------
        weights : ndarray of shape (n_weights,)
            w.
        machine : Machine
            Any β, any threshold.
        products : ndarray of shape (n_weights, n_samples)
            Every K_iβ.

        Notes
        -----
        ρI is a kernel of its own, whose features are the slacks. Where slacks are next to
        forbidden, a machine without any is better: the same one, scaled up to a margin of 1.
        """
        beta, threshold = machine
        ridge, weights = self.split_ridge(weights)
        scores = weights @ products[-len(weights) :]
        norm = float(scores @ beta)
        slacks = np.maximum(0.0, 1.0 - self.signs * (scores + threshold))
        if np.isfinite(self.limit):
            soft = norm + 2.0 * self.limit * float(slacks.sum())
        else:
            soft = norm + float(slacks @ slacks) / ridge if ridge > 0 else np.inf
        margin = float(np.min(self.signs * (scores + ridge * beta + threshold)))
        hard = (norm + ridge * float(beta @ beta)) / margin / margin if margin > 0 else np.inf
        return min(soft, hard)

    def split_ridge(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return ρ together with the weight of the identity, and the weights of the others."""
        if self.identity_first:
            return self.ridge + float(weights[0]), weights[1:]
        return self.ridge, weights


class SoftMargin(MarginProgram, Criterion):
    """Minimise the value of a support vector machine over the weights, [Lanckriet04]_.

    Parameters
    ----------
    bank : Bank
        The kernels, normalised to raw trace n_samples.
    target : ClassTarget
        Two classes.
    kind : {"SM1", "SM2", "SM2_C"}
        Slacks that count once, squared slacks, or squared slacks with C learnt: the identity, of
        trace n_samples too, is then the first of the kernels.
    C : float
        The cost of slacks; not used by ``"SM2_C"``.
    maximize : callable
        From the program at fixed weights to the machine. Finding α takes an algorithm, which
        has no place here.
    """

    def __init__(
        self,
        bank: Bank,
        target: ClassTarget,
        kind: MarginKind,
        C: float,
        maximize: Callable[[MarginProgram], Machine],
    ) -> None:
        self.bank = bank
        self.signs = np.where(target.codes == 1, 1.0, -1.0)
        self.limit = C if kind == "SM1" else np.inf
        self.ridge = 1.0 / C if kind == "SM2" else 0.0
        self.identity_first = kind == "SM2_C"
        self.n_weights = bank.n_kernels + self.identity_first
        self._maximize = maximize

    def at(self, weights: FloatArray) -> MarginPoint:
        machine = self._maximize(FixedWeights(self, weights))
        return MarginPoint(self, weights, machine, self.products(machine.beta))

    def matrix(self, weights: FloatArray) -> FloatArray:
        if not self.identity_first:
            return self.bank.combined(weights)
        matrix = self.bank.combined(weights[1:])
        matrix[np.diag_indices_from(matrix)] += weights[0]
        return matrix

    def products(self, beta: FloatArray) -> FloatArray:
        products = self.bank.products(beta[:, None])[:, :, 0]
        return np.vstack([beta, products]) if self.identity_first else products

    def split(self, weights: FloatArray) -> tuple[FloatArray, float]:
        """Return the weights of the kernels, summing to 1, and the learnt C that goes with them.

        w_0I + Σ w_iK_i is a multiple of K(w') + I/C, so the machine is the same but for its
        scale. C is infinite where the identity has no weight, and no slack is allowed.
        """
        identity, kernels = self.split_ridge(weights)
        share = float(kernels.sum())
        if share < _SMALLEST_SHARE:  # no kernel tells the classes apart better than the identity
            kernels, share = np.full(len(kernels), _SMALLEST_SHARE / len(kernels)), _SMALLEST_SHARE
        return kernels / share, share / identity if identity > 0 else np.inf


class FixedWeights(MarginProgram):
    """One support vector machine: the program whose only kernel is K(w) of another one.

    Parameters
    ----------
    criterion : SoftMargin
        The other one.
    weights : ndarray of shape (n_weights,)
        w.
    """

    def __init__(self, criterion: SoftMargin, weights: FloatArray) -> None:
        self.signs, self.limit, self.n_weights = criterion.signs, criterion.limit, 1
        self.ridge, weights = criterion.split_ridge(weights)
        self._kernel = criterion.bank.combined(weights)

    def matrix(self, weights: FloatArray) -> FloatArray:
        return np.asarray(weights[0] * self._kernel)

    def products(self, beta: FloatArray) -> FloatArray:
        return matmul(self._kernel, beta[:, None]).T
