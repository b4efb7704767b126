"""Kernel matrices on a device, such as a GPU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.arrays.device import Device, as_host
from discernel.kernels.base import Kernel
from discernel.kernels.evaluate import KernelSet, is_dense
from discernel.kernels.objects import SimilarityKernel
from discernel.kernels.weighted import WeightedKernels, slices

#: Number of matrix entries computed at a time; enough to keep a device busy.
STRIP_ENTRIES = 2**27


class DeviceSum:
    """Weighted sum of kernels, Σ c_i k_i, between new rows and rows kept on a device.

    Parameters
    ----------
    kernel : WeightedKernels
        The weighted sum.
    rows : ndarray of shape (n_samples, n_features)
        The rows to keep on the device.
    device : Device
        The device.
    """

    def __init__(self, kernel: WeightedKernels, rows: Any, device: Device) -> None:
        self._kernels, self._device = KernelSet(kernel.kernels), device
        self._coefficients = kernel.coefficients
        self._host = self._kernels.prepare(rows)
        self._rows = self._host.on(device)

    def matrix(self, X: Any) -> Any:
        """Return the matrix between the rows of X and the kept rows, on the device."""
        new = self._kernels.prepare(X, self._host).on(self._device)
        return self._kernels.weighted_sum(self._coefficients, new, self._rows)

    def product(self, X: Any, vectors: FloatArray, *, sum_to_zero: bool) -> FloatArray:
        """Return the matrix between the rows of X and the kept rows, times ``vectors``.

        With ``sum_to_zero``, the vectors sum to 0. A constant is then subtracted from each row of
        the matrix, which does not change the product and saves digits.
        """
        V, xp = self._device.put(vectors), self._device.xp
        out = np.empty((len(X), vectors.shape[1]))
        for rows in slices(slice(0, len(X)), max(1, STRIP_ENTRIES // len(vectors))):
            total = self.matrix(X[rows])
            if sum_to_zero:
                total = total - total[:, :1]
            out[rows] = as_host(xp.matmul(total, V))
        return out


def device_matrix(kernel: Kernel, X: Any, Z: Any | None, device: Device) -> Any | None:
    """Return the kernel matrix between NumPy rows, computed on a device in strips.

    Return None if only NumPy can compute the kernel or a part of it. Kernels written by users are
    called once with all rows, because they may treat a missing Z differently. Without Z, the
    matrix is between the rows of X.
    """
    if not (is_dense(X) and (Z is None or is_dense(Z))):
        return None
    kernels = KernelSet([kernel])
    (keys,) = kernels.groups
    if kernels.direct or not any(pair.kind for pair, _ in keys):
        return None
    n, m = len(X), len(X if Z is None else Z)
    device.check_room(
        8 * n * m,
        f"A matrix of {n:,} × {m:,} numbers",
        "or take fewer rows at a time. Estimators need the memory of one matrix only.",
    )
    prepared, with_itself = kernels.prepare(X if Z is None else Z), Z is None or Z is X
    left = right = prepared.on(device)
    if not with_itself:
        left = kernels.prepare(X, prepared).on(device)
    matrix = device.empty((n, m))
    entries = STRIP_ENTRIES // len({atom for term in kernels.terms[0] for atom in term.atoms})
    for rows, columns in _blocks(n, m, entries, with_itself=with_itself):
        aligned = with_itself and rows.start == columns.start
        ((_, found),) = kernels.matrices(left[rows], right[columns], aligned=aligned)
        matrix[rows, columns] = found
    return matrix


def _blocks(n: int, m: int, entries: int, *, with_itself: bool) -> Iterable[tuple[slice, slice]]:
    """Yield the rows and columns of the blocks of a matrix.

    In a matrix between the rows of X only, a block on the diagonal starts at the diagonal, where
    distances are 0.
    """
    for rows in slices(slice(0, n), max(1, entries // max(1, m))):
        if with_itself and rows.start:
            yield rows, slice(0, rows.start)
        yield rows, slice(rows.start if with_itself else 0, m)


@dataclass(frozen=True, eq=False, repr=False)
class MatrixOnDevice(SimilarityKernel):
    """Kernel given by a matrix on a device.

    The rows of this kernel are an array of shape (n_rows, 1) with positions in the matrix. A
    subset of the rows is then a part of the matrix, without a copy.

    Parameters
    ----------
    matrix : array of shape (n_samples, n_samples)
        The matrix, in single or double precision. It is never changed.
    device : Device
        The device of the matrix.
    label : str
        Name of the kernel.
    """

    matrix: Any
    device: Device
    label: str

    trusted = False

    @property
    def name(self) -> str:
        return self.label

    def __repr__(self) -> str:
        return f"MatrixOnDevice({self.label!r})"

    def rows(self, X: Any, like: Any | None = None) -> Any:
        return np.asarray(X[:, 0], dtype=np.int64)

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        return as_host(self._block(X, X if Z is None else Z, single=False))

    def tile_on(self, device: Device, X: Any, Z: Any, single: bool) -> Any:
        return self._block(X, Z, single=single)

    def diagonal(self, X: Any) -> FloatArray:
        whole: FloatArray = as_host(self.device.xp.linalg.diagonal(self.matrix)).astype(np.float64)
        return np.asarray(whole[self.rows(X)])

    def _block(self, left: NDArray[np.int64], right: NDArray[np.int64], *, single: bool) -> Any:
        """Return the entries between two sets of positions, on the device."""
        xp, found = self.device.xp, self.matrix
        for axis, rows in enumerate((left, right)):
            if len(rows) and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
                some = slice(int(rows[0]), int(rows[0]) + len(rows))
                found = found[some, :] if axis == 0 else found[:, some]
            else:
                positions = xp.asarray(rows, device=self.device.where)
                found = xp.take(found, positions, axis=axis)
        dtype = xp.float32 if single else xp.float64
        return found if found.dtype == dtype else xp.astype(found, dtype)
