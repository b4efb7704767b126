"""Fits with a weighted sum of raw kernels: predictions, leave-one-out errors and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discernel.arrays import Buffers, Cholesky, Device, DeviceFactor, FloatArray, as_host
from discernel.arrays.groups import Groups
from discernel.bank.system import matrix_blocks
from discernel.programs.loo import ErrorPoint

#: What is added to a combined kernel for its rounding errors, in units of the precision and of its
#: trace. With 1, one of 60 kernels of ten rows was still not definite, with 8 none.
_ROUNDING = 8.0
#: The largest share of all weight that a row may have in single precision.
_MOST_WEIGHT = 0.5


def enough_precision(weights: FloatArray) -> type[np.floating[Any]]:
    """Return the precision for comparisons of fits to weighted rows: mostly single precision.

    Double where one row has most of the weight: rounding errors in proportion to it would be larger
    than what is left of the kernel once that is centred.
    """
    is_uneven = float(weights.max()) > _MOST_WEIGHT * float(weights.sum())
    return np.float64 if is_uneven else np.float32


class Ridge:
    """Minimise Σω‖t − f(x) − b‖² + λ‖f‖² over f and b, for any weights of some kernels.

    With the weights ω of the fitted rows, π = ω/Σω and D = diag(√ω), the normalised kernel is
    D(I − 1πᵀ)K(I − π1ᵀ)D, of trace 1, of which √π is an eigenvector with eigenvalue 0. Matrices are
    kept raw; only their sum is centred.

    Parameters
    ----------
    stack : array of shape (n_kernels, n_rows, n_fitted)
        Raw kernels from all rows to those that are fitted, which come first. All others are held
        out. Of NumPy, in single or double precision, in which all is computed; else in double
        precision on the device.
    scores : ndarray of shape (n_rows, n_outputs)
        The t of all rows.
    weights : ndarray of shape (n_rows,)
        How much each row counts.
    device : Device, optional
        Where the stack is; by default here.
    buffers : Buffers, optional
        Memory of double precision, perhaps of fits that are not needed any more.
    """

    def __init__(
        self,
        stack: Any,
        scores: FloatArray,
        weights: FloatArray,
        device: Device | None = None,
        buffers: Buffers | None = None,
    ) -> None:
        self.stack, self._device = stack, device
        self.xp = np if device is None else device.xp
        self._buffers = Buffers() if buffers is None else buffers
        n = self._n = stack.shape[2]
        fitted, self._held = weights[:n], weights[n:]
        self._share = share = fitted / fitted.sum()
        self._mean, self._truth = share @ scores[:n], scores[n:]
        self._root = self.put(np.sqrt(fitted)[:, None])
        self._right = self._root * self.put(scores[:n] - self._mean)
        self._flat = self.xp.reshape(stack, (stack.shape[0], -1))
        self._row_means = self.xp.matmul(stack, self.put(share))
        means = as_host(self._row_means)[:, :n]
        self._total_mean = means @ share
        # The trace of what is centred and weighted, without making it.
        traces = (as_host(self._flat[:, : n * n : n + 1]) - 2.0 * means) @ fitted
        traces += fitted.sum() * self._total_mean
        self._units = np.divide(1.0, traces, out=np.zeros_like(traces), where=traces > 0)

    def part(self, rows: NDArray[np.intp], n_fitted: int) -> Any:
        """Return the stack of some of the fitted rows, to the first of them."""
        xp, device = self.xp, self._device
        where = {} if device is None else {"device": device.where}
        by_row = xp.take(self.stack, xp.asarray(rows, **where), axis=1)
        return xp.take(by_row, xp.asarray(rows[:n_fitted], **where), axis=2)

    def combined(self, weights: FloatArray) -> Any:
        """Return the centred sum of normalised kernels, its columns times the roots of ω."""
        xp, (_, n_rows, n), by = self.xp, self.stack.shape, self.put(self._units * weights)
        total = xp.reshape(xp.matmul(by, self._flat), (n_rows, n))
        means = xp.matmul(by, self._row_means)
        total -= means[:, None]
        total += float(as_host(by) @ self._total_mean) - means[:n]
        total *= self._root[:, 0]
        return total

    def weighted_matrices(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `combined` in double precision on the host, as rows that are fitted and held out.

        The first has the roots of ω on both sides, and rounding errors of its precision added to
        the diagonal: without them, it would not be positive semidefinite. They are those of the
        matrix before it is centred, which is much larger if one row has most of the weight.
        """
        made, n = np.asarray(as_host(self.combined(weights))), self._n
        combined = made.astype(np.float64)
        combined[:n] *= as_host(self._root)
        square = combined[:n]
        uncentred = as_host(self._flat[:, : n * n : n + 1]) @ as_host(self._root)[:, 0] ** 2
        error = np.finfo(made.dtype).eps * float((self._units * weights) @ uncentred)
        square.flat[:: n + 1] += _ROUNDING * error
        return square, combined[n:]

    def coef(self, combined: Any, regularization: float) -> Any:
        """Return the coefficients of the kernel at each fitted row."""
        return self._root * self._factor(combined, regularization).solve(self._right)

    def predict(self, combined: Any, regularization: float) -> FloatArray:
        """Return the predictions for the held-out rows of the fit with a combined kernel."""
        return self._predicted(combined, self._factor(combined, regularization).solve(self._right))

    def leave_one_out(
        self, combined: Any, regularization: float, groups: Groups | None = None
    ) -> tuple[float, Any]:
        """Return the mean square of leave-one-out errors, times √ω, and the coefficients.

        Of the fitted rows; the coefficients are those of `coef`. Groups of rows are left out
        together.
        """
        factor = self._factor(combined, regularization)
        solved = factor.solve(self._right)
        if groups is not None:
            coef, inverse = as_host(solved), as_host(factor.inverse())
            ones, blocks = np.sqrt(self._share / regularization), matrix_blocks(inverse, groups)
            parts = [
                np.linalg.solve(block - ones[rows][:, :, None] * ones[rows][:, None, :], coef[rows])
                for rows, block in zip(groups.batches, blocks, strict=True)
            ]
            error = float(sum(np.sum(part**2) for part in parts) / coef.size)
            return error, self._root * solved
        leverage = factor.inverse_diagonal() - self._share / regularization
        error = float(np.mean((as_host(solved) / leverage[:, None]) ** 2))
        return error, self._root * solved

    def error(self, weights: FloatArray, regularization: float) -> ErrorPoint:
        """Return the sum of squared errors of the held-out rows, times ω, and its gradient."""
        xp, n, combined = self.xp, self._n, self.combined(weights)
        factor = self._factor(combined, regularization)
        coef = factor.solve(self._right)
        errors = self._predicted(combined, coef) - self._truth
        value = float(self._held @ np.sum(errors**2, axis=1))
        weighted, expansion = self._held[:, None] * errors, self._root * coef
        adjoint = self._root * factor.solve(xp.matmul(combined[n:, :].T, self.put(weighted)))
        # Every ⟨K_i, M⟩ of one matrix M of low rank, in one pass over the matrices. Centring takes
        # the mean of each row off, times a sum of coefficients that is 0, and a constant, which the
        # adjoint, of sum 0 too, does not see.
        left = self.put(np.concatenate([-as_host(adjoint), weighted]))
        if self._device is None:
            outer = np.matmul(left, expansion.T, out=self._memory("outer", combined.shape))
        else:
            outer = xp.matmul(left, expansion.T)
        by_weights = xp.matmul(self._flat, xp.reshape(outer, (-1,)))
        means = xp.matmul(self._row_means[:, :n], expansion)
        by_weights -= xp.matmul(means, self.put(weighted.sum(axis=0)))
        return ErrorPoint(value, 2.0 * self._units * as_host(by_weights))

    def _predicted(self, combined: Any, coef: Any) -> FloatArray:
        return np.asarray(as_host(self.xp.matmul(combined[self._n :, :], coef)) + self._mean)

    def _factor(self, combined: Any, regularization: float) -> Cholesky | DeviceFactor:
        """Return the system of the fitted rows, factored; that of before is lost."""
        n = self._n
        if self._device is None:  # large arrays of its own take as long to get as to compute
            system = np.multiply(self._root, combined[:n], out=self._memory("system", (n, n)))
            system.flat[:: n + 1] += system.dtype.type(regularization)
            return Cholesky(system)
        system = self._root * combined[:n, :]
        eye = self.xp.eye(n, dtype=system.dtype, device=self._device.where)
        return DeviceFactor(system + regularization * eye, self._device)

    def _memory(self, name: str, shape: tuple[int, int]) -> Any:
        return self._buffers(name, shape, self.stack.dtype)

    def put(self, array: ArrayLike) -> Any:
        """Return numbers where the stack is, and in its precision."""
        if self._device is None:
            return np.asarray(array, dtype=self.stack.dtype)
        return self._device.put(np.asarray(array))
