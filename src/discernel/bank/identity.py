"""A bank with the identity among its kernels, so that λ is learned as a weight."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, matmul
from discernel.bank.base import Bank, Centering
from discernel.bank.system import System


class WithIdentity(Bank):
    """G̃_0 = I / `total` followed by the kernels of another bank.

    [Ye08]_ section 4: θ_0 multiplies the identity, whose trace is r_0 = n_samples; with
    weights of rows, their sum.
    """

    def __init__(self, bank: Bank) -> None:
        self.bank = bank
        self.n_samples, self.sample_weights = bank.n_samples, bank.sample_weights
        self.n_candidates = bank.n_candidates + 1
        self.kept = np.concatenate([[0], bank.kept + 1])
        self.scales = np.concatenate([[1.0 / bank.total], bank.scales])
        self.rounding = np.concatenate([[0.0], bank.rounding])  # a multiple of ‖B‖² itself

    def check_definite(self) -> None:
        self.bank.check_definite()

    def traces(self) -> FloatArray:
        return np.concatenate([[self.n_samples / self.total], self.bank.traces()])

    def products(self, vectors: FloatArray) -> FloatArray:
        identity = (vectors / self.total)[None]
        return np.concatenate([identity, self.bank.products(vectors)])

    def compressed(self, basis: FloatArray) -> FloatArray:
        identity = matmul(basis.T, basis)[None] / self.total
        return np.concatenate([identity, self.bank.compressed(basis)])

    def inner(self, matrix: FloatArray) -> FloatArray:
        return np.concatenate([[np.trace(matrix) / self.total], self.bank.inner(matrix)])

    def inner_products(self) -> FloatArray:
        products = np.empty((self.n_kernels, self.n_kernels))
        products[1:, 1:] = self.bank.inner_products()
        products[0, 1:] = products[1:, 0] = self.bank.traces() / self.total
        products[0, 0] = self.n_samples / self.total**2
        return products

    def subset(self, rows: NDArray[np.intp]) -> WithIdentity:
        return WithIdentity(self.bank.subset(rows))

    def select(self, positions: NDArray[np.intp]) -> Bank:
        """Return some of the kernels; the identity, if it is among them, comes first."""
        if len(positions) and positions[0] == 0:
            return WithIdentity(self.bank.select(positions[1:] - 1))
        return self.bank.select(positions - 1)

    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:
        matrix = self.bank.combined(weights[1:], out)
        matrix[np.diag_indices_from(matrix)] += weights[0] / self.total
        return matrix

    def system(self, weights: FloatArray, ridge: float | FloatArray) -> System:
        return self.bank.system(weights[1:], ridge + weights[0] / self.total)

    def rough_system(self, weights: FloatArray, ridge: float) -> System:
        return self.bank.rough_system(weights[1:], float(ridge + weights[0] / self.total))

    def systems(self, weights: FloatArray) -> Callable[[float | FloatArray], System]:
        system = self.bank.systems(weights[1:])
        return lambda ridge: system(ridge + weights[0] / self.total)

    def centering(self, weights: FloatArray) -> Centering:
        return self.bank.centering(weights[1:])
