"""Which bank: a stack of matrices, or tiles that are computed anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from discernel.backend import n_rows
from discernel.bank.base import Bank, Normalization
from discernel.bank.combined import gram_stack
from discernel.bank.dense import DenseBank
from discernel.bank.tiled import STACK_BYTES, TiledBank
from discernel.exceptions import InvalidInputError, unknown_choice
from discernel.kernels import Kernel, kernel_names

__all__ = ["choose_bank", "make_bank"]

Kind = Literal["dense", "tiled"]


def choose_bank(asked: str, kernels: Sequence[Kernel], X: Any) -> Kind:
    """Return which bank is meant, or raise a clear error.

    Parameters
    ----------
    asked : {"auto", "dense", "tiled"}
        ``"auto"`` is a stack of matrices up to 256 MiB of them, and tiles beyond.
    kernels : sequence of Kernel
        The candidates.
    X : array-like of shape (n_samples, n_features)
        The training rows.
    """
    if asked not in ("auto", "dense", "tiled"):
        raise unknown_choice("bank", asked, ["auto", "dense", "tiled"])
    given = any(kernel.precomputed for kernel in kernels)
    if given and asked == "tiled":
        raise InvalidInputError(
            "bank='tiled' computes kernels of rows again each time, but these are given as "
            "matrices. Use bank='auto', or give rows and kernels."
        )
    if asked == "dense" or given:
        return "dense"
    n_bytes = 8 * len(kernels) * n_rows(X) ** 2
    return "tiled" if asked == "tiled" or n_bytes > STACK_BYTES else "dense"


def make_bank(kind: Kind, kernels: Sequence[Kernel], X: Any, normalization: Normalization) -> Bank:
    """Return the bank of some kernels on some rows.

    Parameters
    ----------
    kind : {"dense", "tiled"}
        From `choose_bank`.
    kernels : sequence of Kernel
        The candidates, resolved.
    X : array-like of shape (n_samples, n_features)
        The training rows.
    normalization : {"centered_trace", "trace"}
        What is made equal for all kernels.
    """
    if kind == "tiled":
        return TiledBank(kernels, X, normalization=normalization)
    return DenseBank(
        gram_stack(kernels, X),
        kernel_names(kernels),
        normalization=normalization,
        trusted=[kernel.trusted for kernel in kernels],
    )
