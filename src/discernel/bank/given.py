"""The bank of matrices that the user computed, wherever they lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Device, as_host, check_given, elsewhere, on_host
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.base import Bank, Normalization
from discernel.bank.checks import ASYMMETRY, not_symmetric
from discernel.bank.dense import DenseBank
from discernel.bank.device import DeviceBank
from discernel.exceptions import InvalidInputError
from discernel.kernels.device import MatrixThere

__all__ = ["bank_of_matrices", "device_of_matrices"]

#: Entries of the parts that are compared with their mirror images at a time.
_AT_ONCE = 2**26


def bank_of_matrices(
    grams: Any,
    names: Sequence[str] | None = None,
    *,
    normalization: Normalization = "centered_trace",
    sample_weights: SampleWeights | None = None,
    present: NDArray[np.intp] | None = None,
    device: Device | None = None,
) -> Bank:
    """Return the bank of raw Gram matrices.

    Parameters
    ----------
    grams : array-like of shape (n_kernels, n_samples, n_samples)
        One array, or a list of matrices, of any library.
    names : sequence of str, optional
        Their names, for messages.
    normalization : {"centered_trace", "trace"}, default="centered_trace"
        What is made equal for all kernels.
    sample_weights : SampleWeights, optional
        How much rows count; by default all the same.
    present : ndarray of int, optional
        The rows that count at all; by default all.
    device : Device, optional
        Where to compute, as of `device_of_matrices`; by default here.
    """
    options: dict[str, Any] = {"normalization": normalization, "sample_weights": sample_weights}
    if device is None:
        grams = on_host(grams)
        if present is not None:
            grams = [np.asarray(gram)[np.ix_(present, present)] for gram in grams]
        return DenseBank(grams, names, **options)
    kernels = _kernels(grams, names, device)
    rows = np.arange(kernels[0].matrix.shape[0]) if present is None else present
    return DeviceBank(kernels, rows[:, None].astype(np.float64), device=device, **options)


def device_of_matrices(grams: Any) -> Device | None:
    """Return where to compute with matrices: where they lie, and None where NumPy can.

    Parameters
    ----------
    grams : array-like of shape (n_kernels, n_samples, n_samples)
        One array, or a list of matrices, of any library.
    """
    return elsewhere(check_given(*(grams if isinstance(grams, (list, tuple)) else [grams])))


def _kernels(grams: Any, names: Sequence[str] | None, device: Device) -> list[MatrixThere]:
    """Return matrices on a device as kernels, or raise a clear error about their shapes."""
    matrices = [grams[i, ...] for i in range(grams.shape[0])] if hasattr(grams, "shape") else grams
    shapes = sorted({tuple(matrix.shape) for matrix in matrices})
    if len(shapes) != 1 or len(shapes[0]) != 2 or shapes[0][0] != shapes[0][1]:
        raise InvalidInputError(
            "The Gram matrices must have shape (n_kernels, n_samples, n_samples), or be a list of "
            f"square matrices of one size. Got matrices of shapes {shapes}. For one matrix K, pass "
            "K[None]; a stack with the kernels last is turned by moveaxis(stack, -1, 0)."
        )
    if names is None:
        names = [f"kernel {i}" for i in range(len(matrices))]
    sent, n = sum(isinstance(matrix, np.ndarray) for matrix in matrices), shapes[0][0]
    device.check_room(
        8 * (sent + 1) * n * n,
        f"{sent + 1} matrices of {n:,} × {n:,} numbers",
        "take fewer rows, or give rows and kernels, of which one matrix is made.",
    )
    made = []
    for matrix, name in zip(matrices, names, strict=True):
        there = device.put(matrix) if isinstance(matrix, np.ndarray) else _floating(matrix, device)
        _check_symmetric(there, name, device)
        made.append(MatrixThere(there, device, name))
    return made


def _floating(matrix: Any, device: Device) -> Any:
    """Return a matrix as real numbers with digits: whole ones are turned."""
    if device.xp.isdtype(matrix.dtype, "real floating"):
        return matrix
    return device.xp.astype(matrix, device.xp.float64)


def _check_symmetric(matrix: Any, name: str, device: Device) -> None:
    """Raise a clear error if a matrix differs from its transpose, in parts, each pair once."""
    xp, n = device.xp, matrix.shape[0]
    largest, worst, start = 0.0, (0.0, 0), 0
    while start < n:
        stop = min(n, start + max(1, _AT_ONCE // (n - start)))
        part = matrix[start:stop, start:]
        largest = max(largest, float(xp.max(xp.abs(part))))
        difference = float(xp.max(xp.abs(part - matrix[start:, start:stop].T)))
        worst = max(worst, (difference, start))
        start = stop
    # NaN is in no comparison; the bank finds it, and says where.
    if worst[0] > ASYMMETRY * largest:
        row = worst[1]
        stop = min(n, row + max(1, _AT_ONCE // (n - row)))
        ours, mirror = matrix[row:stop, row:], matrix[row:, row:stop].T
        at = int(xp.argmax(xp.reshape(xp.abs(ours - mirror), (-1,))))
        down, across = divmod(at, n - row)
        values = [float(as_host(part[down, across])) for part in (ours, mirror)]
        raise not_symmetric(name, (row + down, row + across), *values)
