"""Kernels between rows on a device: their pairwise matrices, and sums of what is made of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from discernel.arrays import FloatArray, ShiftedRows
from discernel.arrays.device import Device, as_host
from discernel.kernels.base import Kernel
from discernel.kernels.device.given import MatrixOnDevice
from discernel.kernels.evaluate import KernelSet, PreparedRows
from discernel.kernels.terms import Key, PairKind, combine

__all__ = ["STRIP_ENTRIES", "DeviceKernels", "DeviceSum"]


class DeviceKernels:
    """Kernels on prepared rows, of which strips are computed on a device.

    What rows need is prepared by NumPy, once. Pairwise matrices are made on the device of the
    prepared rows, and kernels of these. A kernel that is only known to NumPy, a user's callable
    among them, is computed by NumPy and sent there.

    Parameters
    ----------
    kernels : KernelSet
        The kernels.
    rows : PreparedRows
        All rows, from ``kernels.prepare``.
    device : Device
        Where to compute.
    single : bool, default=False
        Whether in single precision.
    """

    def __init__(
        self, kernels: KernelSet, rows: PreparedRows, device: Device, *, single: bool = False
    ) -> None:
        self.kernels, self.device, self.single = kernels, device, single
        self._host = rows
        self._bases: dict[Key, _Rows] = {
            key: _rows_on(key[0], rows.bases[key], device, single) for key in kernels.groups
        }

    def strips(
        self,
        rows: slice,
        columns: slice,
        active: Sequence[int] | None = None,
        other: DeviceKernels | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Yield every kernel's position and matrix, which is to be read, not changed.

        Parameters
        ----------
        rows, columns : slice
            Which rows it is between.
        active : sequence of int, optional
            The positions of the kernels that are wanted; by default all.
        other : DeviceKernels, optional
            The same kernels with the rows that the columns belong to; by default these.
        """
        wanted = range(len(self.kernels.kernels)) if active is None else set(active)
        for position in self.kernels.direct:
            if position in wanted:
                yield position, self._from_host(position, rows, columns, other or self)
        for key, steps in self.kernels.groups.items():
            positions = [i for i, _ in steps if i in wanted]
            if positions:
                base = self._pairs(key, rows, columns, other)
                yield from ((position, self._made_of(position, base)) for position in positions)

    def weighted_sum(
        self,
        rows: slice,
        columns: slice,
        factors: FloatArray,
        other: DeviceKernels | None = None,
    ) -> Any:
        """Return Σ f_i k_i between some rows and others, which may be changed.

        Parameters
        ----------
        rows, columns, other
            As in `strips`.
        factors : ndarray of shape (n_kernels,)
            The f_i.
        """
        shape = rows.stop - rows.start, columns.stop - columns.start
        total = self.device.zeros(shape, single=self.single)
        for position in self.kernels.direct:
            if factors[position]:
                matrix = self._from_host(position, rows, columns, other or self)
                total += matrix * float(factors[position])
        for key, steps in self.kernels.groups.items():
            positions = [i for i, _ in steps if factors[i]]
            if positions:
                self._add(total, positions, factors, self._pairs(key, rows, columns, other))
        return total

    def _add(self, total: Any, positions: list[int], factors: FloatArray, base: Any) -> None:
        """Add Σ f_i k_i of kernels of one pairwise matrix."""
        fused = self.device.fused()
        if fused is not None and all(map(self._decays, positions)):
            fused.add_exponentials(total, base, self._exponents(positions), factors[positions])
            return
        for position in positions:
            total += self._made_of(position, base) * float(factors[position])

    def _decays(self, position: int) -> bool:
        """Whether a kernel is the exponential of its pairwise matrix times a number."""
        decay = self.kernels.decay(position)
        return decay is not None and decay[0] == "exp"

    def _exponents(self, positions: list[int]) -> FloatArray:
        return np.array([self.kernels.decay(i)[1] for i in positions])  # type: ignore[index]

    def _pairs(self, key: Key, rows: slice, columns: slice, other: DeviceKernels | None) -> Any:
        left = self._bases[key]
        if other is not None:
            return left.pairs(rows, other._bases[key], columns)
        found = left.pairs(rows, left, columns)
        if left.zero_with_itself and rows.start == columns.start:
            found = self.device.clear_diagonal(found)  # not what rounding leaves there
        return found

    def _made_of(self, position: int, base: Any) -> Any:
        fused, xp = self.device.fused(), self.device.xp
        if fused is not None and self._decays(position):
            return fused.exponential(base, float(self._exponents([position])[0]))
        return combine(self.kernels.terms[position], lambda atom: atom.function.on_device(base, xp))

    def _from_host(self, position: int, rows: slice, columns: slice, other: DeviceKernels) -> Any:
        left, right = self._host.rows[rows], other._host.rows[columns]
        kernel = self.kernels.kernels[position]
        if isinstance(kernel, MatrixOnDevice):
            return kernel.block(left, right, single=self.single)
        matrix = self.kernels.direct_matrix(position, left, right)
        return self.device.put(matrix, single=self.single)


#: Entries of the matrices that are made at a time: far more than a device does at once.
STRIP_ENTRIES = 2**27


class DeviceSum:
    """Σ c_i k_i between new rows and some that stay on a device.

    Parameters
    ----------
    kernels : sequence of Kernel
        The kernels, resolved.
    coefficients : ndarray of shape (n_kernels,)
        Their factors.
    rows : ndarray of shape (n_samples, n_features)
        The rows that stay.
    device : Device
        Where.
    """

    def __init__(
        self, kernels: Sequence[Kernel], coefficients: FloatArray, rows: Any, device: Device
    ) -> None:
        self._set, self._coefficients, self._device = KernelSet(kernels), coefficients, device
        self._host = self._set.prepare(rows)
        self._rows = DeviceKernels(self._set, self._host, device)

    def matrix(self, X: Any, coefficients: FloatArray | None = None) -> Any:
        """Return the matrix between the rows of X and those that stay, on the device.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            New rows.
        coefficients : ndarray of shape (n_kernels,), optional
            Other factors than those of the sum.
        """
        part = self._set.prepare(X, self._host)
        new = DeviceKernels(self._set, part, self._device)
        here, there = slice(0, len(X)), slice(0, len(self._host.rows))
        factors = self._coefficients if coefficients is None else coefficients
        return new.weighted_sum(here, there, factors, self._rows)

    def product(self, X: Any, vectors: FloatArray, *, sum_to_zero: bool) -> FloatArray:
        """Return the matrix between the rows of X and those that stay, times ``vectors``.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            New rows.
        vectors : ndarray of shape (n_samples, n)
            What the matrix is multiplied by.
        sum_to_zero : bool
            Whether the vectors do: what all entries of a row share then loses no digits.
        """
        V, xp = self._device.put(vectors), self._device.xp
        out = np.empty((len(X), vectors.shape[1]))
        step = max(1, STRIP_ENTRIES // len(vectors))
        for start in range(0, len(X), step):
            total = self.matrix(X[start : start + step])
            if sum_to_zero:
                total = total - total[:, :1]
            out[start : start + step] = as_host(xp.matmul(total, V))
        return out


# ---- pairwise matrices ---------------------------------------------------------------------------


class _Rows(ABC):
    """Rows on a device, of which a pairwise matrix is made."""

    #: Whether the matrix of rows with themselves has zeros on its diagonal.
    zero_with_itself = False

    @abstractmethod
    def pairs(self, rows: slice, other: Any, columns: slice) -> Any:
        """Return the pairwise matrix between some of these rows and some others."""


class _Products(_Rows):
    """⟨x, z⟩."""

    def __init__(self, values: Any, device: Device) -> None:
        self._values, self._matmul = values, device.xp.matmul

    def pairs(self, rows: slice, other: Any, columns: slice) -> Any:
        return self._matmul(self._values[rows, :], other._values[columns, :].T)


class _Sums(_Rows):
    """‖x − z‖₁ or ‖x − z‖², as sums of differences, which lose no digits."""

    zero_with_itself = True

    def __init__(self, values: Any, device: Device, *, squared: bool) -> None:
        self._values, self._xp, self._squared = values, device.xp, squared
        self._fused = device.fused()
        if self._fused is not None:
            self._values = values.T.contiguous()

    def pairs(self, rows: slice, other: Any, columns: slice) -> Any:
        X, Z = self._values, other._values
        if self._fused is not None:
            return self._fused.sums_of_differences(X[:, rows], Z[:, columns], self._squared)
        total: Any = 0.0
        for column in range(X.shape[1]):
            part = X[rows, column : column + 1] - Z[columns, column : column + 1].T
            total = total + (part * part if self._squared else self._xp.abs(part))
        return total


class _Squares(_Rows):
    """‖x − z‖², by one product: see `ShiftedRows`."""

    zero_with_itself = True

    def __init__(self, rows: ShiftedRows, device: Device, single: bool) -> None:
        values = rows.values
        left = np.column_stack([-2.0 * values[:, :-2], values[:, -1], values[:, -2]])
        self._left, self._right = device.put(left, single=single), device.put(values, single=single)
        self._matmul, self._sums = device.xp.matmul, None
        # Of two far rows, and of single numbers, a product would lose what they share.
        if rows.given is not None or len(rows.origin) == 1:
            given = values[:, :1] if rows.given is None else rows.given - rows.origin
            self._sums = _Sums(device.put(given, single=single), device, squared=True)

    def pairs(self, rows: slice, other: Any, columns: slice) -> Any:
        if self._sums is not None and other._sums is not None:
            return self._sums.pairs(rows, other._sums, columns)
        return self._matmul(self._left[rows, :], other._right[columns, :].T)


class _Host(_Rows):
    """A pairwise matrix that only NumPy can make."""

    def __init__(self, pair: PairKind, rows: Any, device: Device, single: bool) -> None:
        self._pair, self._rows, self._device, self._single = pair, rows, device, single

    def pairs(self, rows: slice, other: Any, columns: slice) -> Any:
        made = self._pair.tile(self._rows[rows], other._rows[columns], None)
        return self._device.put(made, single=self._single)


def _rows_on(pair: PairKind, rows: Any, device: Device, single: bool) -> _Rows:
    """Return prepared rows on a device."""
    if pair.kind == "squared":
        return _Squares(rows, device, single)
    if pair.kind == "city":
        return _Sums(device.put(rows, single=single), device, squared=False)
    if pair.kind in ("inner", "cosine"):
        return _Products(device.put(rows, single=single), device)
    return _Host(pair, rows, device, single)
