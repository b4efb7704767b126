"""Kernels of the inner product: linear, polynomial, cosine."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import cosine_similarity

from discernel.backend import FloatArray, as_rows, inner_products, squared_norms
from discernel.exceptions import InvalidInputError
from discernel.kernels.base import Kernel

__all__ = ["Cosine", "Linear", "Polynomial"]


class _InnerProductKernel(Kernel):
    """A kernel that depends on ⟨x, z⟩ only."""

    base = "inner product"

    def base_matrix(self, X: Any, Z: Any | None = None) -> FloatArray:
        return inner_products(X, Z)

    def base_rows(self, X: Any, like: Any | None = None) -> Any:
        return as_rows(X)

    def base_tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        return np.asarray(np.matmul(X, (X if Z is None else Z).T, out=out))

    def __call__(self, X: Any, Z: Any | None = None) -> FloatArray:
        return self.from_base(self.base_matrix(X, Z))

    def diagonal(self, X: Any) -> FloatArray:
        return self.from_base(squared_norms(X))


@dataclass(frozen=True)
class Linear(_InnerProductKernel):
    """The inner product ⟨x, z⟩."""

    def from_base(self, base: FloatArray) -> FloatArray:
        return base.copy()

    def fill_from_base(self, base: FloatArray, out: FloatArray) -> None:
        out[:] = base


@dataclass(frozen=True)
class Polynomial(_InnerProductKernel):
    """The polynomial kernel (coef0 + gamma ⟨x, z⟩)^degree, as in [Pothin06]_ with coef0 = 1.

    Parameters
    ----------
    degree : int, default=2
        The degree, at least 1.
    gamma : float, default=1.0
        The factor of the inner product, positive.
    coef0 : float, default=1.0
        The constant, at least 0.
    """

    degree: int = 2
    gamma: float = 1.0
    coef0: float = 1.0

    def __post_init__(self) -> None:
        if not (isinstance(self.degree, Integral) and self.degree >= 1):
            raise InvalidInputError(
                f"The degree of Polynomial must be an integer of at least 1. Got {self.degree!r}."
            )
        if not (isinstance(self.gamma, Real) and np.isfinite(self.gamma) and self.gamma > 0):
            raise InvalidInputError(
                f"The gamma of Polynomial must be positive. Got {self.gamma!r}."
            )
        if not (isinstance(self.coef0, Real) and np.isfinite(self.coef0) and self.coef0 >= 0):
            raise InvalidInputError(
                "The coef0 of Polynomial must be at least 0, or the kernel is not positive "
                f"semidefinite. Got {self.coef0!r}."
            )

    @property
    def parameters(self) -> dict[str, float]:
        return {"gamma": self.gamma, "coef0": self.coef0}

    def from_base(self, base: FloatArray) -> FloatArray:
        matrix = np.empty_like(base)
        self.fill_from_base(base, matrix)
        return matrix

    def fill_from_base(self, base: FloatArray, out: FloatArray) -> None:
        np.multiply(base, self.gamma, out=out)
        out += self.coef0
        out **= int(self.degree)

    def _derivative(self, parameter: str, X: Any, Z: Any | None) -> FloatArray:
        base = self.base_matrix(X, Z)
        outer = self.degree * (self.coef0 + self.gamma * base) ** (int(self.degree) - 1)
        return np.asarray(outer * base if parameter == "gamma" else outer)


@dataclass(frozen=True)
class Cosine(Kernel):
    """The cosine of the angle between two rows; 0 with a row of zeros."""

    def __call__(self, X: Any, Z: Any | None = None) -> FloatArray:
        return np.asarray(cosine_similarity(X, Z), dtype=np.float64)

    def diagonal(self, X: Any) -> FloatArray:
        return (squared_norms(X) > 0).astype(np.float64)
