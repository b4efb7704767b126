"""Gram matrices that lie on a device, as kernels of the numbers of their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.arrays.device import Device, as_host
from discernel.kernels.base import Kernel

__all__ = ["MatrixOnDevice"]


@dataclass(frozen=True, eq=False, repr=False)
class MatrixOnDevice(Kernel):
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

    def __call__(self, X: Any, Z: Any | None = None) -> FloatArray:
        return as_host(self.block(X, X if Z is None else Z, single=False))

    def diagonal(self, X: Any) -> FloatArray:
        return as_host(self.device.xp.linalg.diagonal(self.matrix)).astype(np.float64)[_numbers(X)]

    def block(self, X: FloatArray, Z: FloatArray, *, single: bool) -> Any:
        """Return what is between some rows and others, on the device.

        Parameters
        ----------
        X, Z : ndarray of shape (n_rows, 1)
            Their numbers.
        single : bool
            Whether in single precision.
        """
        xp, found = self.device.xp, self.matrix
        for axis, rows in enumerate((_numbers(X), _numbers(Z))):
            if len(rows) and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
                some = slice(int(rows[0]), int(rows[0]) + len(rows))
                found = found[some, :] if axis == 0 else found[:, some]
            else:
                there = xp.asarray(rows, device=self.device.where)
                found = xp.take(found, there, axis=axis)
        dtype = xp.float32 if single else xp.float64
        return found if found.dtype == dtype else xp.astype(found, dtype)


def _numbers(X: FloatArray) -> NDArray[np.int64]:
    return np.asarray(X[:, 0], dtype=np.int64)
