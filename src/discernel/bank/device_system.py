"""A system that is factored on a device, coarsely, and refined by products of double precision."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from discernel.backend import FloatArray
from discernel.bank.conjugate import Solved, solve_refined
from discernel.bank.remembering import RememberingSystem
from discernel.devices import Device, DeviceFactor, as_host
from discernel.exceptions import ConvergenceWarning, NumericalError

__all__ = ["DeviceSystem"]

#: From this relative residual on, what the factor gives at once is good enough.
_AT_ONCE = 1e-3
#: A refinement that leaves more than this share is not worth another: conjugate gradients are.
_GAIN = 0.1
#: The relative residual above which nothing was solved.
_USELESS = 0.5


class DeviceSystem(RememberingSystem):
    """N = diag(ridge) + Σ w_i K_i on a device.

    Parameters
    ----------
    factored : callable
        From whether it may be coarse to the factor of N.
    product : callable
        From V to NV, in double precision.
    device : Device
        The device.
    tol : float
        The length of a residual over that of its right-hand side, at which it is solved.
    coarse : bool
        Whether a coarse factor of single precision is good enough to refine with.
    """

    def __init__(
        self,
        factored: Callable[[bool], DeviceFactor],
        product: Callable[[FloatArray], FloatArray],
        device: Device,
        *,
        tol: float,
        coarse: bool,
    ) -> None:
        super().__init__(tol)
        self._factored, self._product, self._device = factored, product, device
        self._coarse = coarse
        self._factor: DeviceFactor | None = self._make()
        self._log_determinant = None if self._coarse else self._factor.log_determinant()
        self._diagonal: FloatArray | None = None

    def _make(self) -> DeviceFactor:
        if self._coarse:
            try:
                return self._factored(True)
            except NumericalError:  # its digits were too few
                self._coarse = False
        return self._factored(False)

    @property
    def has_factor(self) -> bool:
        """Whether to solve costs no new factorisation."""
        return self._factor is not None

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

    def _solve_new(self, right: FloatArray, tol: float) -> Solved:
        lengths = np.linalg.norm(right, axis=0)
        enough, left = tol * lengths, lengths
        solution, residual = np.zeros_like(right), right
        while (left > enough).any():
            better = solution + self._at_once(residual)
            new = right - self._product(better)
            now = np.linalg.norm(new, axis=0)
            if not (now <= np.maximum(enough, _GAIN * left)).all():
                found = solve_refined(self._product, None, self._at_once, right, enough, better)
                self._check(found, lengths, tol)
                return found
            solution, residual, left = better, new, now
        return Solved(solution, residual, left)

    def _check(self, found: Solved, lengths: FloatArray, tol: float) -> None:
        """Warn, or raise, where residuals are longer than asked for."""
        shares = np.divide(found.lengths, lengths, out=0.0 * lengths, where=lengths > 0)
        reached = float(shares.max(initial=0.0))
        if reached <= tol:
            return
        message = (
            f"A system of {len(found.solution):,} rows on {self._device.where} was solved to a "
            f"relative residual of {reached:.1e}, asked for {tol:.1e}. Raise the regularization."
        )
        if not reached < _USELESS:
            raise NumericalError(message)
        warnings.warn(message, ConvergenceWarning, stacklevel=4)

    def inverse_diagonal(self) -> FloatArray:
        if self._diagonal is None:
            factor = self._make() if self._factor is None else self._factor
            self._factor = None  # its memory is taken
            self._diagonal = factor.inverse_diagonal()
        return self._diagonal

    def log_determinant(self) -> float | None:
        return self._log_determinant
