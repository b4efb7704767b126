"""The base class of margin programs, and support vector machines as their points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import NamedTuple

import numpy as np

from discernel.arrays import FloatArray
from discernel.programs.base import Point

#: Avoids 0/0 if all α are 0.
_TINY = 1e-300


class Machine(NamedTuple):
    """A support vector machine on the training set, exact or approximate.

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
    """A program at some weights, bounded from both sides by a support vector machine.

    Attributes
    ----------
    weights : ndarray of shape (n_weights,)
    value : float
        The primal value of the machine, an upper bound of f(w).
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
    def intercept(self) -> float:
        return self._intercept  # not from the value, which is an upper bound of f(w)

    @cached_property
    def bound(self) -> float:
        return self._intercept - float(self._energies.max())


class MarginProgram(ABC):
    """The program min over w of max over α, for kernels K_i.

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

    signs: FloatArray
    roots: FloatArray
    limit: float
    ridge: float
    identity_first: bool = False

    @property
    @abstractmethod
    def n_weights(self) -> int:
        """The number of kernels."""

    @abstractmethod
    def matrix(self, weights: FloatArray) -> FloatArray:
        """Return K(w) as a new matrix, without ρI."""

    @abstractmethod
    def products(self, beta: FloatArray) -> FloatArray:
        """Return every K_iβ, of shape (n_weights, n_samples)."""

    def feasible(self, beta: FloatArray) -> FloatArray:
        """Return β clipped to 0 ≤ α ≤ B, and scaled down on one class so that it sums to 0."""
        alpha = np.clip(self.signs * beta, 0.0, self.limit * self.roots)
        second, counted = self.signs > 0, self.roots * alpha
        sums = np.where(second, counted[second].sum(), counted[~second].sum())
        return np.asarray(self.signs * alpha * (sums.min() / np.maximum(sums, _TINY)))

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
