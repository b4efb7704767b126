"""Kernels on devices, by any library of the array API standard."""

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

#: Entries of the matrices that are made at a time: far more than a device does at once.
STRIP_ENTRIES = 2**27


class DeviceSum:
    """Σ c_i k_i between new rows and some that stay on a device.

    Parameters
    ----------
    kernel : WeightedKernels
        The sum.
    rows : ndarray of shape (n_samples, n_features)
        The rows that stay.
    device : Device
        Where.
    """

    def __init__(self, kernel: WeightedKernels, rows: Any, device: Device) -> None:
        self._kernels, self._device = KernelSet(kernel.kernels), device
        self._coefficients = kernel.coefficients
        self._host = self._kernels.prepare(rows)
        self._rows = self._host.on(device)

    def matrix(self, X: Any) -> Any:
        """Return the matrix between the rows of X and those that stay, on the device."""
        new = self._kernels.prepare(X, self._host).on(self._device)
        return self._kernels.weighted_sum(self._coefficients, new, self._rows)

    def product(self, X: Any, vectors: FloatArray, *, sum_to_zero: bool) -> FloatArray:
        """Return the matrix between the rows of X and those that stay, times ``vectors``.

        If the vectors sum to zero, what all entries of a row share loses no digits.
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
    """Return the matrix of a kernel between rows of NumPy, made on a device strip by strip.

    None where only NumPy can make it, or a part of it: what a user wrote may mean something by a Z
    that is not given, and is called with all rows. Without Z, rows are those of X on both sides.
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
        "or take fewer rows at a time. Estimators take rows and kernels, and need no more than one "
        "matrix.",
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
    """Yield rows and columns of the parts of a matrix.

    Those on the diagonal of a matrix of rows with themselves begin on it, where distances are 0.
    """
    for rows in slices(slice(0, n), max(1, entries // max(1, m))):
        if with_itself and rows.start:
            yield rows, slice(0, rows.start)
        yield rows, slice(rows.start if with_itself else 0, m)


@dataclass(frozen=True, eq=False, repr=False)
class MatrixOnDevice(SimilarityKernel):
    """A matrix on a device, as a kernel between the numbers of its rows.

    What it is given for rows is an array of shape (n_rows, 1) with these numbers, so that a part
    of the rows is a part of the matrix, and nothing is copied.

    Parameters
    ----------
    matrix : array of shape (n_samples, n_samples)
        The matrix, of single or double precision. It is read, never changed.
    device : Device
        Where it is.
    label : str
        Its name.
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
        """Return what is between rows of some numbers and of others, on the device."""
        xp, found = self.device.xp, self.matrix
        for axis, rows in enumerate((left, right)):
            if len(rows) and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
                some = slice(int(rows[0]), int(rows[0]) + len(rows))
                found = found[some, :] if axis == 0 else found[:, some]
            else:
                there = xp.asarray(rows, device=self.device.where)
                found = xp.take(found, there, axis=axis)
        dtype = xp.float32 if single else xp.float64
        return found if found.dtype == dtype else xp.astype(found, dtype)
