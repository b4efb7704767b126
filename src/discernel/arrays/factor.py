"""A symmetric positive definite matrix on a device, factored in device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discernel.arrays.device import Device, as_host
from discernel.arrays.rows import FloatArray
from discernel.exceptions import NumericalError

__all__ = ["DeviceFactor"]

#: Rows of the blocks on the diagonal: large enough for products at full speed, small beside the
#: matrix.
_BLOCK = 2048


class DeviceFactor:
    """LLᵀ = A, block column by block column, each by one large product.

    Parameters
    ----------
    matrix : array of shape (n_samples, n_samples)
        On a device; **overwritten**. Only what is on and below the diagonal is read.
    device : Device
        Where it is.
    coarse : bool, default=False
        Whether a factor of three digits is enough, as it is for a preconditioner: products of
        single precision are then four times as fast.

    Raises
    ------
    NumericalError
        If the matrix is not positive definite in floating point.

    Notes
    -----
    The inverses of the blocks on the diagonal are kept. Solving then is products only.
    """

    def __init__(
        self, matrix: Any, device: Device, *, coarse: bool = False, block: int = _BLOCK
    ) -> None:
        self._device, self._coarse, self.n = device, coarse, int(matrix.shape[0])
        self._lower: Any = matrix
        self._starts = [(k, min(k + block, self.n)) for k in range(0, self.n, block)]
        self._inverses: list[Any] = []
        self._logs: list[float] = []
        with device.coarse_products(coarse):
            for start, stop in self._starts:
                self._factor_column(start, stop)

    def _factor_column(self, start: int, stop: int) -> None:
        A, device = self._lower, self._device
        if start:
            device.subtract_product(
                A[start:, start:stop], A[start:, :start], A[start:stop, :start].T
            )
        lower = self._factored_block(A[start:stop, start:stop], stop)
        inverse = device.triangular_inverse(lower)
        A[start:stop, start:stop] = lower
        if stop < self.n:
            A[stop:, start:stop] = device.xp.matmul(A[stop:, start:stop], inverse.T)
        self._inverses.append(inverse)

    def _factored_block(self, block: Any, stop: int) -> Any:
        lower, logs = self._device.cholesky(block)
        if not math.isfinite(logs):
            raise NumericalError(
                "The regularised kernel matrix must be positive definite, but its Cholesky "
                f"factorisation broke down before row {stop} of {self.n}. A kernel is not "
                "positive semidefinite, or the regularization is too small for its rounding "
                "errors: check the kernels or raise the regularization."
            )
        self._logs.append(logs)
        return lower

    def solve(self, right: Any) -> Any:
        """Return A⁻¹ times ``right``, an array of the device of shape (n_samples, n)."""
        xp, L = self._device.xp, self._lower
        out = xp.asarray(right, copy=True)
        with self._device.coarse_products(self._coarse):
            for (start, stop), inverse in zip(self._starts, self._inverses, strict=True):
                block = out[start:stop, :]
                if start:
                    block = block - xp.matmul(L[start:stop, :start], out[:start, :])
                out[start:stop, :] = xp.matmul(inverse, block)
            for (start, stop), inverse in reversed(
                list(zip(self._starts, self._inverses, strict=True))
            ):
                block = out[start:stop, :]
                if stop < self.n:
                    block = block - xp.matmul(L[stop:, start:stop].T, out[stop:, :])
                out[start:stop, :] = xp.matmul(inverse.T, block)
        return out

    def log_determinant(self) -> float:
        """Return the logarithm of the determinant."""
        return 2.0 * sum(self._logs)

    def inverse_diagonal(self) -> FloatArray:
        """Return the diagonal of the inverse, in the memory of the factor, which is lost.

        diag(A⁻¹)_j = Σ_i (L⁻¹)_ij².
        """
        lower, xp = self._inverted(), self._device.xp
        out = np.empty(self.n)
        for start, stop in self._starts:
            column = lower[start:, start:stop]
            out[start:stop] = as_host(xp.sum(column * column, axis=0))
        return out

    def inverse(self) -> Any:
        """Return A⁻¹ = L⁻ᵀL⁻¹, symmetric, in new memory; the factor is lost."""
        lower, xp = self._inverted(), self._device.xp
        out = xp.empty_like(lower)
        for start, stop in self._starts:
            # L⁻¹ is 0 above the diagonal: only rows from the later of two columns on count.
            columns = xp.matmul(lower[start:, :start].T, lower[start:, start:stop])
            corner = xp.matmul(lower[start:, start:stop].T, lower[start:, start:stop])
            out[:start, start:stop] = columns
            out[start:stop, :start] = columns.T
            out[start:stop, start:stop] = corner
        return out

    def _inverted(self) -> Any:
        """Return L⁻¹ in the memory of L; what is above the blocks on the diagonal is not set.

        Block columns from the last to the first, and in each the rows from the last to the first:
        what is overwritten is not needed any more.
        """
        xp, L = self._device.xp, self._lower
        with self._device.coarse_products(self._coarse):
            for column in reversed(range(len(self._starts))):
                start, stop = self._starts[column]
                inverse = self._inverses[column]
                L[start:stop, start:stop] = inverse
                for row in reversed(range(column + 1, len(self._starts))):
                    top, bottom = self._starts[row]
                    product = xp.matmul(L[top:bottom, stop:bottom], L[stop:bottom, start:stop])
                    L[top:bottom, start:stop] = -xp.matmul(product, inverse)
        self._lower = None
        return L
