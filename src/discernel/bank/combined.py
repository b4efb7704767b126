"""The combined kernel between new rows and the training rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from discernel.arrays import Device, FieldState, FloatArray, n_rows
from discernel.bank.base import Centering
from discernel.kernels import Kernel
from discernel.kernels.device import DeviceSum
from discernel.kernels.features import FeatureMap
from discernel.kernels.weighted import WeightedKernels


@dataclass(frozen=True, eq=False)
class CombinedKernel(FieldState):
    """Σ c_i k_i between new rows and the training rows, centred as on the training set.

    Attributes
    ----------
    kernels : list of Kernel
        The kernels with nonzero weight.
    coefficients : ndarray of shape (n_kernels,)
        Factors of the kernels, including normalization.
    rows : array of shape (n_samples, n_features) or None
        The training rows; None for precomputed kernels.
    centering : Centering
        The means of the training set.
    device : Device or None
        The device for products.
    """

    kernels: list[Kernel]
    coefficients: FloatArray
    rows: Any
    centering: Centering
    device: Device | None = None
    #: Whether every target has coefficients of its own.
    by_target: ClassVar[bool] = False

    @property
    def sum(self) -> WeightedKernels:
        """The kernel before centring."""
        return WeightedKernels(self.kernels, self.coefficients)

    def __call__(self, X: Any) -> FloatArray:
        """Return the centred kernel between the rows of X and the training rows."""
        n_samples = X.shape[1] if self.rows is None else n_rows(self.rows)
        cross = np.empty((n_rows(X), n_samples))
        self.sum.write(X, self.rows, cross)
        return self.centering.apply(cross)

    def product(self, X: Any, vectors: FloatArray) -> FloatArray:
        """Return the centred kernel times ``vectors``, without storing the kernel matrix."""
        vectors, offset = self.centering.of_product(vectors)
        centred = self.centering.ignores_constants
        if self.device is not None and self.device.takes(X):
            found = self._on_device.product(X, vectors, sum_to_zero=centred)
            self.sum.check_finite(X, self.rows, found)
        else:
            found = self.sum.product(X, self.rows, vectors, sum_to_zero=centred)
        found -= offset
        return found

    def to_cpu(self) -> CombinedKernel:
        """Return the kernel whose products are computed with NumPy."""
        return replace(self, device=None)

    @cached_property
    def _on_device(self) -> DeviceSum:
        """The kernel with the training rows on the device, copied once."""
        assert self.device is not None
        return DeviceSum(self.sum, self.rows, self.device)


@dataclass(frozen=True, eq=False)
class TargetKernels:
    """Σ_i c_ti k_i between new rows and the training rows, with coefficients for each target t.

    Attributes
    ----------
    kernels : list of Kernel
        The kernels with nonzero weight for some target.
    coefficients : ndarray of shape (n_targets, n_kernels)
        Factors of the kernels, including normalization.
    rows : array of shape (n_samples, n_features) or None
        The training rows; None for precomputed kernels.
    centerings : list of Centering
        The means of each kernel over the training set.
    device : Device or None
        The device for products.
    """

    kernels: list[Kernel]
    coefficients: FloatArray
    rows: Any
    centerings: list[Centering]
    device: Device | None = None
    by_target: ClassVar[bool] = True

    def parts(self, vectors: FloatArray) -> Iterator[tuple[CombinedKernel, FloatArray]]:
        """Yield each kernel, and the vectors times its coefficients, 0 for other targets.

        Parameters
        ----------
        vectors : ndarray of shape (n_samples, n_blocks * n_targets)
            Vectors of all targets, in one or several blocks of all targets side by side.
        """
        n_blocks = vectors.shape[1] // len(self.coefficients)
        for one, factors, centering in zip(
            self.kernels, self.coefficients.T, self.centerings, strict=True
        ):
            kernel = CombinedKernel([one], np.ones(1), self.rows, centering, self.device)
            yield kernel, vectors * np.tile(factors, n_blocks)

    def product(self, X: Any, vectors: FloatArray) -> FloatArray:
        """Return the centred kernel of each target times its vector, for vectors as in `parts`."""
        out = np.zeros((n_rows(X), vectors.shape[1]))
        for kernel, own in self.parts(vectors):
            used = np.flatnonzero(own.any(axis=0))
            out[:, used] += kernel.product(X, own[:, used])
        return out

    def to_cpu(self) -> TargetKernels:
        """Return the kernels whose products are computed with NumPy."""
        return replace(self, device=None)


@dataclass(frozen=True, eq=False)
class CombinedFeatures:
    """Features of new rows, centred as on the training set. No training rows are stored.

    Attributes
    ----------
    maps : list of FeatureMap
        The feature maps of kernels with nonzero weight.
    factors : ndarray of shape (n_maps,)
        Factors of the features, including normalization.
    center : ndarray of shape (total_rank,)
        Means of the multiplied features over the training set.
    """

    maps: list[FeatureMap]
    factors: FloatArray
    center: FloatArray
    by_target: ClassVar[bool] = False
    #: No training rows are stored.
    rows: ClassVar[None] = None

    def __call__(self, X: Any) -> FloatArray:
        """Return the centred features of the rows of X, of shape (n_rows, total_rank)."""
        parts = [factor * one(X) for factor, one in zip(self.factors, self.maps, strict=True)]
        out = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        out -= self.center
        return np.asarray(out)

    def to_cpu(self) -> CombinedFeatures:
        """Return the features, which are always computed with NumPy."""
        return self

    def product(self, X: Any, vectors: FloatArray) -> FloatArray:
        """Return the centred features times ``vectors``, without storing the features."""
        out = np.zeros((n_rows(X), vectors.shape[1]))
        first = 0
        for factor, one in zip(self.factors, self.maps, strict=True):
            out += one.product(X, factor * vectors[first : first + one.rank])
            first += one.rank
        out -= self.center @ vectors
        return out
