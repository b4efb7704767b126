"""Which bank: of kernels on rows, or of matrices that are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Device, check_given, elsewhere, memory_limit, n_rows, on_host
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank.base import Bank
from discernel.bank.checks import check_symmetric
from discernel.bank.combined import gram_stack
from discernel.bank.device import DeviceBank
from discernel.bank.distributed import DistributedBank
from discernel.bank.exact import DenseBank
from discernel.bank.features import FeatureBank
from discernel.bank.iterative import IterativeBank
from discernel.bank.products import Normalization
from discernel.bank.ranks import default_rank, have_low_rank
from discernel.bank.tiled import CACHE_BYTES, TiledBank
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.kernels import Kernel, kernel_names
from discernel.kernels.device import MatrixOnDevice

__all__ = ["Kind", "bank_of_matrices", "choose_bank", "device_of_matrices", "make_bank"]

Kind = Literal["dense", "tiled", "factored", "lowrank", "iterative", "distributed"]

#: From this many kernels on it is worth trying whether their ranks are low.
_MANY = 64
#: Rows and columns of the tiles that are compared with their mirror images.
_TILE = 2**13


def choose_bank(
    asked: str,
    kernels: Sequence[Kernel],
    X: Any,
    cache_bytes: float = CACHE_BYTES,
    n_samples: int | None = None,
) -> Kind:
    """Return which bank is meant, or raise a clear error.

    Parameters
    ----------
    asked : {"auto", "dense", "tiled", "factored", "lowrank", "iterative", "distributed"}
        ``"auto"`` is a stack of matrices where there is room for it. Else 64 kernels or more are
        factored if a sample of them has a low rank, or they are computed in tiles.
        Whether other ways are better for many rows is for a forecast to say.
    kernels : sequence of Kernel
        The candidates.
    X : array-like of shape (n_samples, n_features)
        The training rows.
    cache_bytes : float, default=256 MiB
        The room for kernel matrices.
    n_samples : int, optional
        The number of rows, where X has more or fewer.
    """
    n = n_rows(X) if n_samples is None else n_samples
    kind = _choose(asked, kernels, X, cache_bytes, n)
    if asked != "auto" or kind == "dense":  # of others, a forecast says whether they fit
        _check_memory(kind, kernels, n)
    return kind


def _check_memory(kind: Kind, kernels: Sequence[Kernel], n: int) -> None:
    """Raise a clear error, before any work, where the machine has too little memory."""
    if kind in ("lowrank", "iterative", "distributed"):
        return
    memory, one = memory_limit(), 8 * n**2
    given = any(kernel.precomputed for kernel in kernels)
    n_stored = len(kernels) if kind == "dense" and not given else 0
    needed = (2 + n_stored) * one
    if memory is not None and needed > memory:
        stack = f" and {n_stored} kernels" if n_stored else ""
        raise InvalidInputError(
            f"Two matrices{stack} of {n:,} × {n:,} numbers must fit into memory, "
            f"about {needed / 1e9:,.1f} GB. This process may take {memory / 1e9:,.1f} GB. Take "
            "some of the rows, drawn at random, or bank='iterative', which needs none of them"
            + (", or bank='auto'." if stack else ".")
        )


def _choose(asked: str, kernels: Sequence[Kernel], X: Any, cache_bytes: float, n: int) -> Kind:
    if asked not in ("auto", *get_args(Kind)):
        raise unknown_choice("bank", asked, ["auto", *get_args(Kind)])
    given = any(kernel.precomputed for kernel in kernels)
    if given and asked in ("tiled", "factored", "lowrank", "iterative", "distributed"):
        raise InvalidInputError(
            f"bank='{asked}' computes kernels of rows, but these are given as matrices. Use "
            "bank='auto', or give rows and kernels."
        )
    unknown = [kernel.name for kernel in kernels if not kernel.trusted]
    if unknown and asked in ("factored", "lowrank"):
        raise InvalidInputError(
            f"bank='{asked}' needs kernels that are known to be positive semidefinite, which "
            f"{unknown} are not. Use bank='auto'."
        )
    if asked == "dense" or given:
        return "dense"
    if asked != "auto":
        return cast(Kind, asked)
    if 8 * len(kernels) * n**2 <= cache_bytes:
        return "dense"
    return "factored" if len(kernels) >= _MANY and have_low_rank(kernels, X) else "tiled"


def make_bank(
    kind: Kind,
    kernels: Sequence[Kernel],
    X: Any,
    normalization: Normalization,
    cache_bytes: float = CACHE_BYTES,
    sample_weights: SampleWeights | None = None,
    rank: int | None = None,
) -> Bank:
    """Return the bank of some kernels on some rows.

    Parameters
    ----------
    kind : {"dense", "tiled", "factored", "lowrank", "iterative", "distributed"}
        From `choose_bank`.
    kernels : sequence of Kernel
        The candidates, resolved.
    X : array-like of shape (n_samples, n_features)
        The training rows.
    normalization : {"centered_trace", "trace"}
        What is made equal for all kernels.
    cache_bytes : float, default=256 MiB
        The room for tiles.
    sample_weights : SampleWeights, optional
        How much rows count; by default all the same.
    rank : int, optional
        The rank of all kernels together, of low rank; `default_rank` by default.
    """
    options: dict[str, Any] = {"normalization": normalization, "sample_weights": sample_weights}
    if kind == "tiled":
        return TiledBank(kernels, X, cache_bytes=cache_bytes, **options)
    if kind == "iterative":
        return IterativeBank(kernels, X, cache_bytes=cache_bytes, **options)
    if kind == "distributed":
        return DistributedBank(kernels, X, cache_bytes=cache_bytes, **options)
    if kind == "factored":
        return FeatureBank.from_kernels(kernels, X, **options)
    if kind == "lowrank":
        rank = max(default_rank(n_rows(X), cache_bytes), len(kernels)) if rank is None else rank
        return FeatureBank.of_rank(kernels, X, rank, **options)
    return DenseBank(
        gram_stack(kernels, X),
        kernel_names(kernels),
        trusted=[kernel.trusted for kernel in kernels],
        **options,
    )


# ---- given matrices --------------------------------------------------------------------------


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


def _kernels(grams: Any, names: Sequence[str] | None, device: Device) -> list[MatrixOnDevice]:
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
        check_symmetric(there, name, device.xp, _TILE)
        made.append(MatrixOnDevice(there, device, name))
    return made


def _floating(matrix: Any, device: Device) -> Any:
    """Return a matrix as real numbers with digits: whole ones are turned."""
    if device.xp.isdtype(matrix.dtype, "real floating"):
        return matrix
    return device.xp.astype(matrix, device.xp.float64)
