"""A fold whose matrices are made, and solved with, on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from discernel.arrays import Device, DeviceFactor, FloatArray, as_host, typical_row
from discernel.default.fold import FoldError
from discernel.default.menu import Menu
from discernel.default.sample import Positions, Sample
from discernel.kernels.device import DeviceKernels
from discernel.kernels.evaluate import KernelSet

__all__ = ["DeviceFold"]


class DeviceFold:
    """What `Fold` is, on a device.

    Parameters
    ----------
    sample, outside, inside, scales, menu
        As in `Fold`.
    device : Device
        Where, in double precision: of matrices of some hundred rows that takes about as long.
    """

    def __init__(
        self,
        sample: Sample,
        outside: Positions,
        inside: Positions,
        scales: FloatArray,
        menu: Menu,
        device: Device,
    ) -> None:
        self.inside, self._device = inside, device
        self._n, xp = len(outside), device.xp
        weights, scores = sample.weights[outside], sample.scores[outside]
        share = weights / weights.sum()
        self._mean = share @ scores
        roots = np.sqrt(weights)
        self._root = device.put(roots[:, None])
        self._right = device.put(roots[:, None] * (scores - self._mean))
        self._truth, self._weights = sample.scores[inside], sample.weights[inside]
        rows = (sample.rows * scales)[:, scales > 0]
        self._raw = self._matrices(rows[np.concatenate([outside, inside])], menu)
        means = xp.matmul(self._raw, device.put(share))
        self._row_means, host = means, as_host(means)
        self._total_mean = host[:, : self._n] @ share
        diagonals = as_host(xp.linalg.diagonal(self._raw[:, : self._n, :]))
        # The trace of what is centred and weighted, without making it.
        traces = (diagonals - 2.0 * host[:, : self._n]) @ weights
        traces += weights.sum() * self._total_mean
        self._units = np.divide(1.0, traces, out=np.zeros_like(traces), where=traces > 0)

    def _matrices(self, rows: FloatArray, menu: Menu) -> Any:
        """Return every kernel from all rows to those outside, which come first."""
        outside = rows[: self._n]
        rows = rows - typical_row(outside)  # all that the linear kernel minds
        kernels = KernelSet(menu.kernels(outside))
        there = DeviceKernels(kernels, kernels.prepare(rows), self._device)
        found = dict(there.strips(slice(0, len(rows)), slice(0, self._n)))
        return self._device.xp.stack([found[i] for i in range(len(found))])

    def predictor(self, weights: FloatArray) -> Callable[[float], FloatArray]:
        """Return a function of λ: what the fit to the rows outside predicts for those inside."""
        combined = self._combined(self._units * weights)
        return lambda regularization: self._fit(combined, regularization)[0]

    def error(self, weights: FloatArray, regularization: float) -> FoldError:
        """Return the error of the predictions and its gradient."""
        xp = self._device.xp
        combined = self._combined(self._units * weights)
        predicted, coef, factor = self._fit(combined, regularization)
        errors = predicted - self._truth
        value = float(self._weights @ np.sum(errors**2, axis=1))
        weighted = self._device.put(self._weights[:, None] * errors)
        adjoint = factor.solve(xp.matmul(combined[self._n :, :].T, weighted))
        expansion = self._root * coef
        left = xp.concat([-self._root * adjoint, weighted])
        flat = xp.reshape(xp.matmul(left, expansion.T), (-1,))
        by_weights = xp.matmul(xp.reshape(self._raw, (self._raw.shape[0], -1)), flat)
        means = xp.matmul(self._row_means[:, : self._n], expansion)
        by_weights = by_weights - xp.matmul(means, xp.sum(weighted, axis=0))
        return FoldError(value, 2.0 * self._units * as_host(by_weights))

    def _fit(self, combined: Any, regularization: float) -> tuple[FloatArray, Any, DeviceFactor]:
        """Return predictions, dual coefficients, and what solves the system."""
        xp, n = self._device.xp, self._n
        eye = xp.eye(n, dtype=combined.dtype, device=self._device.where)
        system = self._root * combined[:n, :] + regularization * eye
        factor = DeviceFactor(system, self._device)
        coef = factor.solve(self._right)
        predicted = as_host(xp.matmul(combined[n:, :], coef))
        return predicted + self._mean, coef, factor

    def _combined(self, factors: FloatArray) -> Any:
        """Return the centred sum of kernels, its columns times the roots of the weights."""
        xp, (p, n_rows, n) = self._device.xp, self._raw.shape
        by = self._device.put(factors)
        total = xp.reshape(xp.matmul(by, xp.reshape(self._raw, (p, -1))), (n_rows, n))
        means = xp.matmul(by, self._row_means)
        total = total - means[:, None] - means[None, :n]
        total = total + float(factors @ self._total_mean)
        return total * self._root.T
