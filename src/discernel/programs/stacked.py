"""Least-squares fits of many targets at a time, with kernel weights and λ of each.

With weights and λ of its own, each target has its own system N = λI + Σ w_i K_i. On a device, the
systems of as many targets as fit into its memory are factored, solved and inverted together; on the
CPU, small systems of as many targets as fit into its cache.

On a device, descents have single precision where λ is large enough for it. Errors and fits that are
compared or returned have double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import HOST, Device, DeviceFactor, FloatArray, as_host
from discernel.bank import Bank
from discernel.bank.device import has_room
from discernel.exceptions import NumericalError
from discernel.kernels.weighted import slices
from discernel.programs.lockstep import TargetErrors
from discernel.progress.deadline import check_deadline
from discernel.targets import Target

#: Matrices of n_samples² numbers per target in memory.
_MATRICES = 6
#: Share of the free memory of a device for these matrices, bytes if it is unknown, and the most
#: targets at a time.
_SHARE, _BYTES, _MOST_TARGETS = 0.5, 2**31, 2**14
#: The same on the CPU: the size of a cache, and the number of rows up to which systems together are
#: faster than one at a time. With 60 rows they take half of the time, with 200 rows three quarters.
_CACHE, _MOST_ROWS = 2**22, 200
#: Entries of an array on a device, which libraries count with 31 bits, and errors of candidates.
_MOST_ENTRIES, _NUMBERS = 2**30, 2**24
#: Rows of the blocks on the diagonal of factors on a device and on the CPU.
_ROWS, _ROWS_ON_HOST = 64, 32
#: Whether NumPy has the functions of the array API standard, since version 2.
_HAS_STACKS = hasattr(np, "matrix_transpose")
#: λ from which single precision has five digits of leave-one-out errors, and more than three of
#: their gradients: far below what ends a descent. At a λ of 1e-6 gradients have no correct digit.
_COARSE_RIDGE = 3e-4


class StackedFits(NamedTuple):
    """Least-squares fits with Q = N⁻¹ − N⁻¹rrᵀN⁻¹/(rᵀN⁻¹r), r the ones or √ω, as NumPy arrays.

    Attributes
    ----------
    dual : ndarray of shape (n_targets, n_samples)
        QT.
    diagonal : ndarray of shape (n_targets, n_samples)
        The diagonal of Q.
    intercept : ndarray of shape (n_targets,)
        b.
    """

    dual: FloatArray
    diagonal: FloatArray
    intercept: FloatArray


@dataclass(frozen=True, eq=False)
class _Inverses:
    """Inverses of systems on a device, with s = N⁻¹r, rᵀs and the diagonals of Q."""

    xp: Any
    matrices: Any
    ones: Any
    totals: Any
    diagonals: Any

    def times(self, vectors: Any) -> Any:
        """Return N⁻¹ times one vector for each system."""
        return self.xp.matmul(self.matrices, vectors[:, :, None])[:, :, 0]

    def intercepts(self, vectors: Any) -> Any:
        """Return sᵀv/rᵀs, of shape (n_systems, 1)."""
        return _dot(self.xp, self.ones, vectors) / self.totals

    def project(self, vectors: Any) -> Any:
        """Return Q times one vector for each system."""
        return self.times(vectors) - self.ones * self.intercepts(vectors)


def _room(device: Device) -> int:
    """Return the bytes for the matrices of targets."""
    if device is HOST:
        return _CACHE
    free = device.free_bytes()
    return _BYTES if free is None else int(_SHARE * free)


def _dot(xp: Any, left: Any, right: Any) -> Any:
    return xp.sum(left * right, axis=1)[:, None]


class StackedKernels:
    """Fits, errors and gradients of many targets at a time; rows have no groups.

    A call returns the `TargetErrors` of some targets for a descent, by `gradients`; on a device, in
    single precision for a large λ.

    Parameters
    ----------
    bank : Bank
        The kernels. All their matrices are put on the device.
    scores : ndarray of shape (n_samples, n_targets)
        The targets, times √ω.
    device : Device, optional
        The device; by default the CPU.
    n_bytes : int, optional
        Memory for the matrices of the targets that are computed together; by default half of what
        is free on a device, and 4 MiB on the CPU.
    """

    def __init__(
        self, bank: Bank, scores: FloatArray, device: Device = HOST, n_bytes: int | None = None
    ) -> None:
        n = self._n = bank.n_samples
        self._device, self._total, self._is_single = device, float(bank.total), False
        # λ is the weight of the last matrix, the identity.
        stack = np.empty((bank.n_kernels + 1, n * n))
        for row, unit in zip(stack, np.eye(bank.n_kernels), strict=False):
            row[:] = bank.combined(unit).ravel()
        stack[-1] = np.eye(n).ravel()
        self._stack, self._roots = device.put(stack), device.put(bank.row_weights.roots)
        self._scores = device.put(scores.T)
        n_bytes = _room(device) if n_bytes is None else n_bytes
        self._step = int(np.clip(n_bytes // (8 * _MATRICES * n * n), 1, _MOST_TARGETS))
        self._columns = min(n_bytes // 32, _MOST_ENTRIES) // n
        self._rows = _ROWS_ON_HOST if device is HOST else _ROWS
        self._least_single = np.inf if device is HOST else _COARSE_RIDGE

    @classmethod
    def of(
        cls, bank: Bank, scores: FloatArray, target: Target, device: Device | None
    ) -> StackedKernels | None:
        """Return the kernels on a device or on the CPU; None if one target at a time is better."""
        n, p = bank.n_samples, bank.n_kernels
        if target.groups is not None:
            return None
        if device is None:
            return cls(bank, scores) if _HAS_STACKS and n <= _MOST_ROWS else None
        if not has_room(device, 8 * (2 * (p + 1 + _MATRICES) * n * n + 2 * scores.size)):
            return None
        return cls(bank, scores, device)

    # ---- in steps --------------------------------------------------------------------------------

    def __call__(
        self, places: NDArray[np.intp], weights: FloatArray, regularization: FloatArray
    ) -> TargetErrors:
        values, by_lambda = np.empty((2, len(places)))
        by_weights, is_large = np.empty(weights.shape), regularization >= self._least_single
        for at, gradients in ((is_large, self._coarse_gradients), (~is_large, self.gradients)):
            if at.any():
                found = gradients(places[at], weights[at], regularization[at])
                values[at], by_weights[at], by_lambda[at] = found
        return TargetErrors(values, by_weights, by_lambda)

    def _coarse_gradients(self, *given: Any) -> TargetErrors:
        try:
            return self._coarse.gradients(*given)
        except NumericalError:  # single precision is not enough
            return self.gradients(*given)

    @cached_property
    def _coarse(self) -> Self:
        """The same kernels in single precision."""
        made = copy(self)
        xp = self._device.xp
        made._is_single = True
        for name in ("_stack", "_roots", "_scores"):
            made.__dict__[name] = xp.astype(self.__dict__[name], xp.float32)
        return made

    def gradients(
        self, places: NDArray[np.intp], weights: FloatArray, regularization: FloatArray
    ) -> TargetErrors:
        """Return errors and derivatives of some targets, as `LeaveOneOutProgram.error` does."""
        return TargetErrors(*self._in_steps(self._gradients, places, weights, regularization))

    def fits(self, weights: FloatArray, regularization: FloatArray) -> StackedFits:
        """Return the fits of all targets."""
        every = np.arange(len(weights))
        return StackedFits(*self._in_steps(self._fits, every, weights, regularization))

    def errors(self, weights: FloatArray, regularization: FloatArray) -> FloatArray:
        """Return the mean squared leave-one-out error of each target."""
        every = np.arange(len(weights))
        return self._in_steps(self._errors, every, weights, regularization)[0]

    def shared_errors(self, several: FloatArray, regularization: FloatArray) -> FloatArray:
        """Return the errors of all targets with the same weights.

        Parameters
        ----------
        several : ndarray of shape (n_candidates, n_kernels)
            Candidates for the weights of all targets.
        regularization : ndarray of shape (n_lambdas,)
            Values of λ.

        Returns
        -------
        ndarray of shape (n_candidates, n_lambdas, n_targets)
            The mean squared leave-one-out errors.
        """
        n, m = len(several), len(regularization)
        pairs = np.repeat(several, m, axis=0), np.tile(regularization, n)
        return self._in_steps(self._shared_errors, *pairs)[0].reshape(n, m, -1)

    def n_together(self, n_lambdas: int) -> int:
        """Return the number of candidates whose `shared_errors` are computed together."""
        numbers = n_lambdas * int(self._scores.shape[0])
        return max(1, min(self._step // n_lambdas, _NUMBERS // numbers))

    def _in_steps(
        self, work: Callable[..., tuple[Any, ...]], *arrays: NDArray[Any]
    ) -> list[FloatArray]:
        """Return the concatenated results for as many systems at a time as memory allows."""
        parts = []
        for first in range(0, len(arrays[0]), self._step):
            check_deadline()
            found = work(*(each[first : first + self._step] for each in arrays))
            parts.append([as_host(each) for each in found])
        return [np.concatenate(each) for each in zip(*parts, strict=True)]

    # ---- one step --------------------------------------------------------------------------------

    def _inverses(self, weights: FloatArray, lam: FloatArray) -> _Inverses:
        xp, n, r = self._device.xp, self._n, self._roots[None, :]
        factors = self._device.put(np.column_stack([weights, lam]), single=self._is_single)
        systems = xp.reshape(xp.matmul(factors, self._stack), (-1, n, n))
        C = DeviceFactor(systems, self._device, block=self._rows).inverse()
        s = xp.matmul(C, self._roots)
        total = _dot(xp, s, r)
        return _Inverses(xp, C, s, total, xp.linalg.diagonal(C) - s**2 / total)

    def _some(self, places: NDArray[np.intp]) -> Any:
        xp, device = self._device.xp, self._device
        return xp.take(self._scores, xp.asarray(places, device=device.where), axis=0)

    def _fits(
        self, places: NDArray[np.intp], weights: FloatArray, lam: FloatArray
    ) -> tuple[Any, ...]:
        T, inverses = self._some(places), self._inverses(weights, lam)
        return inverses.project(T), inverses.diagonals, inverses.intercepts(T)[:, 0]

    def _errors(
        self, places: NDArray[np.intp], weights: FloatArray, lam: FloatArray
    ) -> tuple[Any, ...]:
        xp, inverses = self._device.xp, self._inverses(weights, lam)
        errors = inverses.project(self._some(places)) / inverses.diagonals
        return (xp.sum(errors**2, axis=1) / self._total,)

    def _shared_errors(self, weights: FloatArray, lam: FloatArray) -> tuple[Any, ...]:
        xp, n, found = self._device.xp, self._n, self._inverses(weights, lam)
        s = found.ones
        Q = found.matrices - s[:, :, None] * (s / found.totals)[:, None, :]
        Q = xp.reshape(Q / found.diagonals[:, :, None], (-1, n))
        every, step, parts = slice(0, self._scores.shape[0]), self._columns // len(lam), []
        for some in slices(every, max(1, step)):
            errors = xp.matmul(Q, xp.matrix_transpose(self._scores[some, :]))
            parts.append(xp.sum(xp.reshape(errors**2, (len(lam), n, -1)), axis=1) / self._total)
        return (xp.concat(parts, axis=1),)

    def _gradients(
        self, places: NDArray[np.intp], weights: FloatArray, lam: FloatArray
    ) -> tuple[Any, ...]:
        xp, n, T, found = self._device.xp, self._n, self._some(places), self._inverses(weights, lam)
        C, s, total, diagonal = found.matrices, found.ones, found.totals, found.diagonals
        dual = found.project(T)
        errors = dual / diagonal
        influence, leverage = found.project(2.0 * errors / diagonal), 2.0 * errors**2 / diagonal
        twice = 2.0 * found.times(leverage * s) / total
        twice = twice - (_dot(xp, leverage, s**2) / total**2) * s
        half = C * xp.sqrt(leverage)[:, None, :]
        S = xp.matmul(half, xp.matrix_transpose(half))
        left, right = xp.stack([influence, twice], axis=2), xp.stack([dual, s], axis=2)
        S -= xp.matmul(left, xp.matrix_transpose(right))
        slopes = xp.matmul(xp.reshape(S, (-1, n * n)), xp.matrix_transpose(self._stack))
        slopes = slopes / self._total
        values = xp.sum(errors**2, axis=1) / self._total
        return values, slopes[:, :-1], slopes[:, -1]
