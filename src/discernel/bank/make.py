"""Construction of banks from kernels and rows, or from precomputed matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Device, check_given, elsewhere, on_host
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.base import Bank
from discernel.bank.choice import BankChoice
from discernel.bank.device import DeviceBank
from discernel.bank.exact import DenseBank
from discernel.bank.features import FeatureBank
from discernel.bank.grams import Normalization, check_symmetric, gram_stack
from discernel.bank.iterative import IterativeBank
from discernel.bank.tiled import TiledBank
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel, kernel_names
from discernel.kernels.device import MatrixOnDevice

Kind = Literal["dense", "tiled", "factored", "lowrank", "iterative", "distributed"]
KINDS: tuple[Kind, ...] = get_args(Kind)
#: Rows and columns of the tiles in the check of symmetry.
_TILE = 2**13


def make_bank(
    choice: BankChoice,
    kernels: Sequence[Kernel],
    X: Any,
    normalization: Normalization,
    sample_weights: SampleWeights | None = None,
    device: Device | None = None,
) -> Bank:
    """Return the bank of kernels on rows.

    Parameters
    ----------
    choice : BankChoice
        The bank, its memory limit and, for low rank, its rank. On a device also ``"auto"``, for
        systems that are factored there.
    kernels : sequence of Kernel
        The candidates, resolved.
    X : array-like of shape (n_samples, n_features)
        The training rows.
    normalization, sample_weights
        As in `ExactBank`.
    device : Device, optional
        The device that computes kernels, except for low rank; by default the host.
    """
    kind, rank, n_bytes = choice
    options: dict[str, Any] = {"normalization": normalization, "sample_weights": sample_weights}
    if kind == "lowrank":
        assert rank is not None
        return FeatureBank.of_rank(kernels, X, rank, **options)
    if device is not None:
        options["device"] = device
        if kernels[0].precomputed:
            return bank_of_matrices([one(X) for one in kernels], kernel_names(kernels), **options)
        return DeviceBank(kernels, X, cache_bytes=n_bytes, factors=kind != "iterative", **options)
    if kind == "factored":
        return FeatureBank.from_kernels(kernels, X, **options)
    if kind == "dense":
        trusted = [kernel.trusted for kernel in kernels]
        return DenseBank(gram_stack(kernels, X), kernel_names(kernels), trusted=trusted, **options)
    options["cache_bytes"] = n_bytes
    if kind == "distributed":
        from discernel.bank.distributed import DistributedBank  # few programs need Dask

        return DistributedBank(kernels, X, **options)
    return (IterativeBank if kind == "iterative" else TiledBank)(kernels, X, **options)


# ---- precomputed matrices --------------------------------------------------------------------


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
        Names of the matrices, for messages.
    normalization, sample_weights
        As in `ExactBank`.
    present : ndarray of int, optional
        Positions of the rows to use; by default all rows.
    device : Device, optional
        The device to compute on, from `device_of_matrices`; by default the host.
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
    """Return the device of matrices, or None if NumPy computes with them."""
    return elsewhere(check_given(*(grams if isinstance(grams, (list, tuple)) else [grams])))


def _kernels(grams: Any, names: Sequence[str] | None, device: Device) -> list[MatrixOnDevice]:
    """Convert matrices on a device to kernels, or raise an error about their shapes."""
    matrices = [grams[i, ...] for i in range(grams.shape[0])] if hasattr(grams, "shape") else grams
    shapes = sorted({tuple(matrix.shape) for matrix in matrices})
    if len(shapes) != 1 or len(shapes[0]) != 2 or shapes[0][0] != shapes[0][1]:
        raise InvalidInputError(
            "The Gram matrices must have shape (n_kernels, n_samples, n_samples), or be a list of "
            f"square matrices of one size. Got matrices of shapes {shapes}. For one matrix K, pass "
            "K[None]; convert a stack with the kernels last by moveaxis(stack, -1, 0)."
        )
    if names is None:
        names = [f"kernel {i}" for i in range(len(matrices))]
    is_numpy = [isinstance(matrix, np.ndarray) for matrix in matrices]
    sent, n = sum(is_numpy), shapes[0][0]
    device.check_room(
        8 * (sent + 1) * n * n,
        f"{sent + 1} matrices of {n:,} × {n:,} numbers",
        "take fewer rows, or give rows and kernels, which need one matrix.",
    )
    made, xp = [], device.xp
    for matrix, name, is_sent in zip(matrices, names, is_numpy, strict=True):
        values = device.put(matrix) if is_sent else matrix
        if not xp.isdtype(values.dtype, "real floating"):  # integers
            values = xp.astype(values, xp.float64)
        check_symmetric(values, name, xp, _TILE)
        made.append(MatrixOnDevice(values, device, name))
    return made
