"""What a criterion is: a smooth convex function of the weights, with a certificate."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from discernel.backend import FloatArray
from discernel.bank import Matrices

__all__ = ["Criterion", "Point"]


class Point(ABC):
    """A criterion at some weights. What is not asked for is not computed.

    Attributes
    ----------
    weights : ndarray of shape (n_kernels,)
    value : float
        To be minimised.
    gradient : ndarray of shape (n_kernels,)
    hessian : ndarray of shape (n_kernels, n_kernels)
    bound : float
        No weights on the simplex have a smaller value than this.
    """

    weights: FloatArray
    value: float

    @property
    @abstractmethod
    def gradient(self) -> FloatArray: ...

    @property
    @abstractmethod
    def hessian(self) -> FloatArray: ...

    @property
    @abstractmethod
    def bound(self) -> float: ...

    @property
    def error(self) -> float:
        """How far the criterion at the weights can be above ``value``; infinite: nothing is known.

        Rounding, and whatever else keeps the value from being exact.
        """
        return 0.0

    @property
    def intercept(self) -> float:
        """The criterion is nowhere below ``intercept + gradient @ weights``."""
        return self.value - float(self.gradient @ self.weights)

    @property
    def gap(self) -> float:
        """How far the value can be above the smallest one at most, relative to itself."""
        return relative_gap(self.value, self.bound, self.error)


class Criterion(ABC):
    """A function of the weights of some matrices, to be minimised over the simplex."""

    bank: Matrices

    @abstractmethod
    def at(self, weights: FloatArray) -> Point:
        """Return the criterion at some weights."""

    def objective(self, value: float) -> float:
        """Return the value of the paper's own program from the value that is minimised."""
        return value


def relative_gap(value: float, bound: float, error: float = 0.0) -> float:
    """Return how far ``value`` can be above the optimum, which is at least ``bound``.

    A value below the bound contradicts it: one of them is wrong, by as much at least.

    Parameters
    ----------
    value, bound : float
        They say that the optimum is between them.
    error : float, default=0.0
        How far the true value can be above ``value``.
    """
    if not np.isfinite(value):
        return np.inf
    return float((abs(value - bound) + error) / max(abs(value), 1e-300))
