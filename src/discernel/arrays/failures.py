"""A device that fails in the middle: out of memory, or gone."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from discernel.exceptions import DeviceError

if TYPE_CHECKING:  # which uses this
    from discernel.arrays.device import Device

__all__ = ["device_errors", "device_failure"]

#: How libraries call too little memory; the third is PyTorch's for the memory of the processor.
_OUT_OF_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "alloc_failed")
#: How errors of a device are called, and how those without a name of their own begin.
_NAMES = ("AcceleratorError", "CUDARuntimeError", "CUDADriverError", "CUBLASError", "CUSOLVERError")
_BEGINNINGS = ("CUDA error", "cusolver error", "cuBLAS error", "Triton Error [CUDA]")


@contextmanager
def device_errors(
    device: Device | None,
    *,
    smaller: str = "Take fewer rows",
    instead: str = "give NumPy arrays, to compute on the processor",
) -> Iterator[None]:
    """Raise a `DeviceError` that says what to do where a device fails within.

    Parameters
    ----------
    device : Device or None
        The device; None where there is none, and errors stay as they are.
    smaller, instead : str
        As in `device_failure`.
    """
    try:
        yield
    except Exception as error:
        failed = device_failure(error, device, smaller=smaller, instead=instead)
        if failed is None:
            raise
        raise failed from error


def device_failure(
    error: BaseException,
    device: Device | None,
    *,
    smaller: str = "Take fewer rows",
    instead: str = "give NumPy arrays, to compute on the processor",
) -> DeviceError | None:
    """Return what to raise from an error of a device; None where it is none.

    Parameters
    ----------
    error : BaseException
        What was raised.
    device : Device or None
        The device that was computed on; None where that was none.
    smaller : str
        What needs less memory: the beginning of a sentence, in the imperative.
    instead : str
        What works without the device: the end of a sentence, in the imperative.
    """
    if device is None or isinstance(error, DeviceError):
        return None
    said, where = _in_short(error), str(device.where).strip("<>")
    if _is_out_of_memory(error):
        free = None
        with suppress(Exception):  # which may not answer any more
            free = device.free_bytes()
        # Arrays of the work that failed, or whoever catches this could not try a smaller one.
        traceback.clear_frames(error.__traceback__)
        there = "" if free is None else f" {free / 1e9:.3g} GB were free then."
        return DeviceError(
            f"The memory of {where} is not enough. {device.library} says: {said}.{there} "
            f"{smaller}, free other arrays there, or {instead}."
        )
    if _is_of_device(error):
        return DeviceError(
            f"{where} failed. {device.library} says: {said}. This process can usually not "
            f"use it any more: start a new one, or {instead}."
        )
    return None


def _in_short(error: BaseException) -> str:
    """Return the first two sentences of an error; what follows is on the library's options."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return ". ".join(line.split(". ")[:2]).rstrip(".")


def _is_out_of_memory(error: BaseException) -> bool:
    if type(error).__name__ == "OutOfMemoryError":
        return True
    words = str(error).lower()
    of_library = isinstance(error, RuntimeError) or _is_of_device(error)
    return of_library and any(each in words for each in _OUT_OF_MEMORY)


def _is_of_device(error: BaseException) -> bool:
    if type(error).__name__ in _NAMES:
        return True
    return isinstance(error, RuntimeError) and str(error).startswith(_BEGINNINGS)
