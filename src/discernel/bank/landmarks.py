"""Landmarks on a device: features of rows, sums of them, and gradients of functions of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from discernel.arrays import Device, FloatArray, as_host
from discernel.kernels.device import STRIP_ENTRIES, DeviceSum
from discernel.kernels.features import NystromMap
from discernel.kernels.weighted import slices


class LandmarksOnDevice:
    """The landmarks of a feature map on a device.

    Parameters
    ----------
    features : NystromMap
        The map: φ(x) = L⁻¹k(Z, x).
    device : Device
        Where.
    whole : bool, default=True
        Whether sums are of φ; else of k(Z, x).
    """

    def __init__(self, features: NystromMap, device: Device, *, whole: bool = True) -> None:
        self._features, self._device, self._whole = features, device, whole
        self._sum = DeviceSum(features.kernel, features.landmarks, device)

    @cached_property
    def _inverse(self) -> Any:
        return self._device.triangular_inverse(self._device.put(self._features.lower))

    def _parts(self, X: FloatArray, whole: bool) -> Iterator[tuple[slice, Any]]:
        """Yield some rows at a time, and their φ(x), or k(Z, x), there."""
        for rows in slices(slice(0, len(X)), max(1, STRIP_ENTRIES // self._features.rank)):
            found = self._sum.matrix(X[rows])
            yield rows, self._device.xp.matmul(found, self._inverse.T) if whole else found

    def features(self, X: FloatArray) -> FloatArray:
        """Return φ(x) of rows, of shape (n_rows, rank), here.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
            Rows.
        """
        found = np.empty((len(X), self._features.rank))
        for rows, features in self._parts(X, True):
            found[rows] = as_host(features)
        return found

    def sums(self, X: FloatArray, weighted: FloatArray) -> tuple[FloatArray, Any]:
        """Return Σωφuᵀ, here, and Σωφφᵀ, there.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
            Rows.
        weighted : ndarray of shape (n_rows, n_values)
            Their ωu, of which the first column is ω.
        """
        xp, put, rank = self._device.xp, self._device.put, self._features.rank
        products = self._device.zeros((rank, rank))
        cross = self._device.zeros((rank, weighted.shape[1]))
        for rows, features in self._parts(X, self._whole):
            cross = cross + xp.matmul(features.T, put(weighted[rows]))
            weights = weighted[rows, :1]
            if (weights != 1.0).any():
                features = features * put(np.sqrt(weights))
            products = products + xp.matmul(features.T, features)
        return as_host(cross), products
