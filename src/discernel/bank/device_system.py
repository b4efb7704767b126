"""A system that is factored on a device, coarsely, and refined by products of double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Device, DeviceFactor, FloatArray, as_host
from discernel.bank.conjugate import Solved, solve_refined
from discernel.bank.iterative_system import RefinedSystem
from discernel.bank.system import Inverse
from discernel.exceptions import NumericalError

__all__ = ["DeviceInverse", "DeviceSystem"]

#: From this relative residual on, what the factor gives at once is good enough.
_AT_ONCE = 1e-3
#: A refinement that leaves more than this share is not worth another: conjugate gradients are.
_GAIN = 0.1
#: Entries of a coarse diagonal that are compared with exact ones.
_PROBES = 16


class DeviceSystem(RefinedSystem):
    """N = diag(ridge) + Σ w_i K_i on a device.

    Parameters
    ----------
    factored : callable
        From whether it may be coarse to the factor of N.
    product : callable
        From V to NV, in double precision.
    device : Device
        The device.
    least_ridge : float
        The least of the ridge.
    tol : float
        The length of a residual over that of its right-hand side, at which it is solved.
    coarse : bool
        Whether a coarse factor of single precision is good enough to refine with.
    coarse_diagonal : bool
        Whether it is for the diagonal of the inverse too, which nothing refines.
    """

    def __init__(
        self,
        factored: Callable[[bool], DeviceFactor],
        product: Callable[[FloatArray], FloatArray],
        device: Device,
        *,
        least_ridge: float,
        tol: float,
        coarse: bool,
        coarse_diagonal: bool,
    ) -> None:
        super().__init__(tol, least_ridge)
        self._factored, self._product, self._device = factored, product, device
        self._coarse, self._coarse_diagonal = coarse, coarse_diagonal
        self._factor: DeviceFactor | None = self._make()
        self._n_samples = self._factor.n
        self._log_determinant = None if self._coarse else self._factor.log_determinant()
        self._diagonal: FloatArray | None = None

    def _make(self) -> DeviceFactor:
        if self._coarse:
            try:
                return self._factored(True)
            except NumericalError:  # its digits were too few
                self._coarse = False
        return self._factored(False)

    def _at_once(self, right: FloatArray) -> FloatArray:
        """Return what the factor says, without refinement."""
        if self._factor is None:
            self._factor = self._make()
        # Of numbers around 1, which single precision has neither over- nor underflow of.
        lengths = np.linalg.norm(right, axis=0) / np.sqrt(len(right))
        lengths[lengths == 0] = 1.0
        found = self._factor.solve(self._device.put(right / lengths, single=self._coarse))
        return np.asarray(as_host(found).astype(np.float64) * lengths)

    def solve(self, right: FloatArray) -> FloatArray:
        if self.tol >= _AT_ONCE:
            return self.solve_roughly(right)
        return super().solve(right)

    def solve_roughly(self, right: FloatArray) -> FloatArray:
        if right.ndim == 1:
            return self._at_once(right[:, None])[:, 0]
        return self._at_once(right)

    def _refined(self, right: FloatArray, enough: FloatArray) -> Solved:
        left, residual = np.linalg.norm(right, axis=0), right
        solution = np.zeros_like(right)
        while (left > enough).any():
            better = solution + self._at_once(residual)
            new = right - self._product(better)
            now = np.linalg.norm(new, axis=0)
            if not (now <= np.maximum(enough, _GAIN * left)).all():
                return solve_refined(self._product, None, self._at_once, right, enough, better)
            solution, residual, left = better, new, now
        return Solved(solution, residual, left)

    def _advice(self, reached: float, tol: float) -> str:
        return (
            f"A system of {self._n_samples:,} rows on {self._device.where} was solved to a "
            f"relative residual of {reached:.1e}, asked for {tol:.1e}. Raise the regularization."
        )

    def inverse_diagonal(self) -> FloatArray:
        if self._diagonal is None:
            coarse = self._coarse and self._coarse_diagonal
            at, exact = self._some_of_diagonal() if coarse else (np.arange(0), np.empty(0))
            factor, self._factor = self._factor, None  # its memory is taken
            if factor is None or coarse != self._coarse:
                factor = None  # before the next one is made
                factor = self._factored(coarse)
            self._diagonal = factor.inverse_diagonal()
            if coarse:
                off = self._diagonal[at] / exact - 1.0
                self.diagonal_error = float(np.sqrt(np.mean(off**2)))
        return self._diagonal

    def _some_of_diagonal(self) -> tuple[NDArray[np.intp], FloatArray]:
        """Return some positions, and the diagonal of the inverse at them as exactly as we solve."""
        n = self._n_samples
        at = np.random.default_rng(0).choice(n, min(n, _PROBES), replace=False)
        units = np.zeros((n, len(at)))
        units[at, np.arange(len(at))] = 1.0
        return at, self._solve_new(units, self.tol).solution[at, np.arange(len(at))]

    def log_determinant(self) -> float | None:
        return self._log_determinant


class DeviceInverse(Inverse):
    """N⁻¹ on a device.

    Parameters
    ----------
    matrix : array of shape (n_samples, n_samples)
        N⁻¹, on the device.
    device : Device
        Where it is.
    inner_products : callable
        From a symmetric S on the device to every ⟨K_i, S⟩.
    """

    def __init__(
        self, matrix: Any, device: Device, inner_products: Callable[[Any], FloatArray]
    ) -> None:
        self._there, self._device, self._inner_products = matrix, device, inner_products
        self.diagonal = as_host(device.xp.linalg.diagonal(matrix)).copy()

    def solve(self, right: FloatArray) -> FloatArray:
        return as_host(self._device.xp.matmul(self._there, self._device.put(right)))

    def inner(
        self, diagonal: FloatArray, left: FloatArray, right: FloatArray, scale: float
    ) -> tuple[FloatArray, float]:
        put, xp = self._device.put, self._device.xp
        S = xp.matmul(self._there * put(diagonal)[None, :], self._there)
        cross = xp.matmul(put(left), put(right).T)
        S = (S - 0.5 * (cross + cross.T)) * scale
        return self._inner_products(S), float(xp.sum(xp.linalg.diagonal(S)))
