"""Landmarks on a device: features of rows, sums of them, and gradients of functions of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from discernel.arrays import Device, FloatArray, as_host
from discernel.kernels import Kernel
from discernel.kernels.columns import divided_columns
from discernel.kernels.device import STRIP_ENTRIES, DeviceSum
from discernel.kernels.features import NystromMap
from discernel.kernels.terms import single_atom
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

    # ---- gradients ---------------------------------------------------------------------------

    def gradients(self, coef: FloatArray, X: FloatArray) -> tuple[FloatArray, list[int]]:
        """Return ∂f_c/∂x_l of f_c(x) = Σ_j coef_jc k(z_j, x), of shape (n_rows, n_columns, n).

        Of those kernels that are Gaussian or Laplace kernels of one set of divided columns; the
        positions of the others are returned too.

        Parameters
        ----------
        coef : ndarray of shape (rank, n)
            The coefficients.
        X : ndarray of shape (n_rows, n_columns)
            Where.

        Notes
        -----
        With u = x/s and v = z/s, exp(−c‖u − v‖²) has the derivative −2c(u_l − v_l)k/s_l and
        exp(−c‖u − v‖₁) has −c·sign(u_l − v_l)k/s_l. Sums of c·k over kernels come first, so that
        ten kernels cost as much as two.
        """
        kernels = self._features.kernel.kernels
        spreads = next((s for kernel in kernels if (s := _decay(kernel)[0]) is not None), None)
        kinds = [kind if own == spreads else None for own, kind, _ in map(_decay, kernels)]
        left = [i for i, kind in enumerate(kinds) if kind is None]
        total = np.zeros((len(X), X.shape[1], coef.shape[1]))
        if spreads is None or len(left) == len(kernels):
            return total, left
        xp, put, beta = self._device.xp, self._device.put, self._device.put(coef)
        U, V = (put(divided_columns(rows, spreads)) for rows in (X, self._features.landmarks))
        round_, city = (self._decaying(X, kinds, kind) for kind in ("squared", "city"))
        fitted = xp.matmul(round_, beta)
        for column in np.flatnonzero(spreads).tolist():
            u, v = U[:, column : column + 1], V[:, column : column + 1]
            signed = xp.matmul(city * xp.sign(u - v.T), beta)
            slope = 2.0 * (xp.matmul(round_, v * beta) - u * fitted) - signed
            total[:, column, :] = as_host(slope) / spreads[column]
        return total, left

    def _decaying(self, X: FloatArray, kinds: list[str | None], kind: str) -> Any:
        """Return Σ f_i c_i k_i between rows and landmarks, over the kernels of one kind."""
        kernel = self._features.kernel
        weights = [
            factor * _decay(each)[2] if found == kind else 0.0
            for found, factor, each in zip(kinds, kernel.coefficients, kernel.kernels, strict=True)
        ]
        return self._sum.matrix(X, np.array(weights))


def _decay(kernel: Kernel) -> tuple[tuple[float, ...] | None, str | None, float]:
    """Return the spreads, distance and rate of a Gaussian or Laplace kernel of spread columns.

    None, None and 0 for other kernels.
    """
    found = single_atom(kernel.terms())
    if found is None or found[0] != 1 or found[1].function.kind != "exp":
        return None, None, 0.0
    _, atom = found
    if [step for step, _ in atom.view.steps] != ["spreads"]:
        return None, None, 0.0
    spreads: Any = atom.view.steps[0][1]
    return spreads, atom.pair.kind, atom.function.numbers[0]
