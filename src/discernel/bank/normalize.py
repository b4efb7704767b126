"""What every bank does alike: which kernels are kept, and what they are scaled by."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.bank.base import Normalization
from discernel.bank.products import constant_by_traces
from discernel.exceptions import DroppedKernelWarning, InvalidInputError, unknown_choice

__all__ = ["check_normalization", "kernel_scales", "varying_kernels"]


def check_normalization(normalization: Normalization) -> Normalization:
    """Return it, or raise an error with the choices."""
    if normalization not in get_args(Normalization):
        raise unknown_choice("normalization", normalization, list(get_args(Normalization)))
    return normalization


def varying_kernels(
    traces: FloatArray, centered_traces: FloatArray, names: Sequence[str], *, part: bool = False
) -> NDArray[np.intp]:
    """Return the positions of kernels that are not constant; warn of those that are left out.

    On a part of the training set they are left out in silence, be it all of them: they vary on the
    rest.
    """
    constant = constant_by_traces(traces, centered_traces)
    if part:
        return np.flatnonzero(~constant)
    if constant.all():
        raise InvalidInputError(
            "At least one kernel must vary over the training set, but all "
            f"{len(names)} are constant: {', '.join(names)}. Check the data for "
            "identical rows and the kernels for far too large widths."
        )
    if constant.any():
        dropped = [name for name, is_one in zip(names, constant, strict=True) if is_one]
        warnings.warn(
            f"Left out because constant on the training set: {', '.join(dropped)}. Such a "
            "kernel tells no sample from another; use a smaller width or other columns.",
            DroppedKernelWarning,
            stacklevel=3,
        )
    return np.flatnonzero(~constant)


def kernel_scales(
    normalization: Normalization, n_samples: float, traces: FloatArray, centered_traces: FloatArray
) -> FloatArray:
    """Return what raw matrices of some traces are multiplied by to normalise them."""
    centered = normalization == "centered_trace"
    return 1.0 / centered_traces if centered else n_samples / traces
