"""Devices of the array API standard, such as GPUs, and their errors."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays.machine import memory_limit
from discernel.arrays.rows import convert_rows, is_sparse, library_of
from discernel.exceptions import DeviceError, InvalidInputError, needs_extra

#: Texts of out-of-memory errors; the third is that of PyTorch on the CPU.
_OUT_OF_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "alloc_failed")
#: Type names of device errors, and the first words of those with a generic type.
_NAMES = ("AcceleratorError", "CUDARuntimeError", "CUDADriverError", "CUBLASError", "CUSOLVERError")
_BEGINNINGS = ("CUDA error", "cusolver error", "cuBLAS error", "Triton Error [CUDA]")


def squared_difference(x: Any, z: Any) -> Any:
    """Return (x − z)², more accurate than by products."""
    return (x - z) ** 2


def absolute_difference(x: Any, z: Any) -> Any:
    """Return |x − z|."""
    return abs(x - z)


@dataclass(frozen=True)
class Device:
    """An array library and one of its devices.

    Operations that the array API standard lacks are implemented here for each library.

    Attributes
    ----------
    xp : module
        The namespace of the library, from array-api-compat.
    where : object
        The device.
    """

    xp: Any
    where: Any

    @classmethod
    def named(cls, name: str) -> Device:
        """Return the PyTorch device of a name such as ``"cuda"``, ``"cuda:1"`` or ``"cpu"``."""
        with needs_extra(f"device={name!r} needs PyTorch", "torch"):
            import torch
        xp, n_cuda = _compat().array_namespace(torch.empty(0)), torch.cuda.device_count()
        try:
            device = torch.device(name)
            # A device that PyTorch counts, but that does not answer, has failed.
            counted = device.type == "cuda" and (device.index or 0) < n_cuda
            with device_errors(cls(xp, device) if counted else None):
                torch.empty(1, device=device)
        except DeviceError:
            raise
        except (RuntimeError, AssertionError) as error:
            known = ["cpu", *(f"cuda:{i}" for i in range(n_cuda))]
            raise InvalidInputError(
                f"device must be one that PyTorch can use here: {', '.join(known)}. Got {name!r}; "
                f"PyTorch says: {str(error).splitlines()[0]}"
            ) from error
        return cls(xp, device)

    @property
    def library(self) -> str:
        """The name of the library."""
        return str(self.xp.__name__).removeprefix("array_api_compat.").partition(".")[0]

    @property
    def is_cuda(self) -> bool:
        """Whether this is an NVIDIA GPU."""
        return self.library == "cupy" or str(self.where).startswith("cuda")

    @property
    def is_host(self) -> bool:
        """Whether arrays are in host memory and computed by NumPy.

        Arrays of array-api-strict are in host memory too, but test the standard, so they are not
        converted.
        """
        return self.library == "torch" and str(self.where).partition(":")[0] == "cpu"

    def __reduce__(self) -> tuple[Any, ...]:
        return _known, (self.library, str(self.where))

    @staticmethod
    def takes(X: Any) -> bool:
        """Whether rows can be computed on a device: dense ones, which are a NumPy array so far."""
        return isinstance(X, np.ndarray)

    # ---- conversion ------------------------------------------------------------------------------

    def _dtype(self, single: bool) -> Any:
        return self.xp.float32 if single else self.xp.float64

    def put(self, array: NDArray[Any], *, single: bool = False) -> Any:
        """Copy a NumPy array to the device, in double or single precision."""
        values = np.ascontiguousarray(array, dtype=np.float32 if single else np.float64)
        return self.xp.asarray(values, dtype=self._dtype(single), device=self.where)

    def returned(self, result: Any) -> Any:
        """Convert a result to an array of the device; text and other objects are unchanged."""
        if not (isinstance(result, np.ndarray) and result.dtype.kind in "fiub"):
            return result
        # Libraries share the memory, but not if it is read-only or has negative strides.
        values = np.require(result, requirements=["C", "W"])
        return self.xp.asarray(values, device=self.where)

    def empty(self, shape: tuple[int, ...], *, single: bool = False) -> Any:
        """Return an uninitialized array on the device."""
        return self.xp.empty(shape, dtype=self._dtype(single), device=self.where)

    def zeros(self, shape: tuple[int, ...], *, single: bool = False) -> Any:
        """Return an array of zeros on the device."""
        return self.xp.zeros(shape, dtype=self._dtype(single), device=self.where)

    def free_bytes(self) -> int | None:
        """Return the free bytes of the device, or None if unknown."""
        if self.library == "torch" and self.is_cuda:
            import torch

            free, _ = torch.cuda.mem_get_info(self.where)
            held = torch.cuda.memory_reserved(self.where)
            return int(free + held - torch.cuda.memory_allocated(self.where))
        if self.library == "cupy":
            import cupy

            free, _ = cupy.cuda.runtime.memGetInfo()
            return int(free + cupy.get_default_memory_pool().free_bytes())
        return memory_limit()

    def check_room(self, n_bytes: int, what: str, otherwise: str) -> None:
        """Raise an error before any work if there is too little memory.

        ``what`` is the first part of the message, ``otherwise`` advice at its end.
        """
        free = self.free_bytes()
        if free is not None and n_bytes > free:
            raise InvalidInputError(
                f"{what} must fit on {self.where}, {n_bytes / 1e9:.3g} GB. {free / 1e9:.3g} GB are "
                f"free. Free some, {otherwise}"
            )

    # ---- operations that the standard lacks -------------------------------------------------

    def cholesky(self, matrix: Any) -> Any:
        """Return the lower Cholesky factor, or None if a matrix is not positive definite."""
        try:
            return self.xp.linalg.cholesky(matrix)
        except Exception as error:  # each library has its own type
            if "positive" not in str(error) and "singular" not in str(error).lower():
                raise
            return None

    def triangular_inverse(self, lower: Any) -> Any:
        """Return the inverses of lower triangular matrices with zeros above the diagonal."""
        if self.library == "torch":
            import torch

            eye = torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device)
            return torch.linalg.solve_triangular(lower, eye, upper=False)
        if self.library == "cupy" and lower.ndim == 2:
            import cupy
            from cupyx.scipy.linalg import solve_triangular

            eye = cupy.eye(len(lower), dtype=lower.dtype)
            return solve_triangular(lower, eye, lower=True)
        return self.xp.linalg.inv(lower)

    @cached_property
    def fused(self) -> Any:
        """The compiled passes over pairs of rows (Triton), or None."""
        if not (self.library == "torch" and self.is_cuda):
            return None
        try:
            from discernel.arrays import fused
        except ImportError:
            return None
        return fused

    @cached_property
    def functions(self) -> Any:
        """The functions of the library and `column_sums`, for `PairKind.formula`."""
        return SimpleNamespace(**vars(self.xp), column_sums=self.column_sums)

    def column_sums(self, function: Callable[[Any, Any], Any], X: Any, Z: Any) -> Any:
        """Return Σ_l function(x_l, z_l) for all pairs of rows, one column at a time."""
        if self.fused is not None and function in (squared_difference, absolute_difference):
            return self.fused.sums_of_differences(X.T, Z.T, function is squared_difference)
        each = (slice(column, column + 1) for column in range(X.shape[1]))
        return sum(function(X[:, column], Z[:, column].T) for column in each)

    def put_columns(self, rows: NDArray[Any], *, single: bool = False) -> Any:
        """Copy rows to the device, column by column in memory if `fused` computes them."""
        values = self.put(rows, single=single)
        return values if self.fused is None else values.T.contiguous().T

    def clear_diagonal(self, matrix: Any) -> Any:
        """Set the diagonal of a matrix to 0, in place if possible, and return the matrix."""
        if self.library == "torch":
            matrix.diagonal().zero_()
            return matrix
        return matrix * (1.0 - self.xp.eye(*matrix.shape, dtype=matrix.dtype, device=self.where))

    @contextmanager
    def coarse_products(self, wanted: bool = True) -> Iterator[None]:
        """Allow TF32 products of single precision within the context, if the device has them.

        They have three decimal digits and are four times as fast. PyTorch's switch for the whole
        process is reset at the end.
        """
        if not (wanted and self.library == "torch" and self.is_cuda):
            yield
            return
        import torch

        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            yield
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before


#: NumPy, from version 2 on, for code that any array library can run.
HOST = Device(np, None)


def _compat() -> Any:
    need = "Arrays of other libraries than NumPy need array-api-compat"
    with needs_extra(need, "torch"):
        import array_api_compat
    return array_api_compat


def _known(library: str, where: str) -> Device:
    """Return the device of a library by name, for unpickling."""
    if library == "torch":
        return Device.named(where)
    module = importlib.import_module(library)
    return device_of(module.asarray([0.0])) or Device.named("cpu")


def device_of(array: Any) -> Device | None:
    """Return the device of an array; None for NumPy arrays and other objects."""
    if library_of(array) not in ("torch", "cupy", "array_api_strict"):
        return None
    compat = _compat()
    return Device(compat.array_namespace(array), compat.device(array))


def elsewhere(device: Device | None) -> Device | None:
    """Return the device to compute on, or None if NumPy computes."""
    return None if device is None or device.is_host else device


def as_host(array: Any) -> NDArray[Any]:
    """Convert an array of any library to a NumPy array."""
    library = library_of(array)
    if library == "cupy":
        array = array.get()
    elif library == "torch":
        array = array.detach().cpu().numpy()
    return np.asarray(array)


def on_host(given: Any) -> Any:
    """Convert arrays of other libraries to NumPy, also in lists and dictionaries.

    Other containers are converted by `convert_rows`.
    """
    if isinstance(given, dict) and not is_sparse(given):  # SciPy's DOK matrix is a dict
        return {key: on_host(value) for key, value in given.items()}
    if isinstance(given, (list, tuple)) and any(device_of(each) is not None for each in given):
        return [on_host(each) for each in given]
    return convert_rows(given) if device_of(given) is None else as_host(given)


def check_given(*arrays: Any) -> Device | None:
    """Return the common device of arrays; raise an error if there are two devices.

    NumPy arrays, lists and None may be combined with any device.
    """
    found = [(array, device) for array in arrays if (device := device_of(array)) is not None]
    for array, device in found:
        first = found[0][1]
        if (device.library, str(device.where)) != (first.library, str(first.where)):
            by = f" by array.to({str(first.where)!r})" if device.library == "torch" else ""
            raise InvalidInputError(
                f"All arrays must be of one library and on one device. Got {first.library} on "
                f"{first.where} and {device.library} on {device.where}. Move the second array{by}."
            )
        kind = str(array.dtype)
        if "float16" in kind or "float8" in kind or "complex" in kind:
            raise InvalidInputError(
                f"Arrays must hold real numbers of at least 32 bits. Got {kind}. Convert the "
                "array, for example by array.to(torch.float32)."
            )
        layout = str(getattr(array, "layout", "torch.strided"))
        if layout != "torch.strided":
            raise InvalidInputError(
                f"Tensors must be dense. Got the layout {layout}. Convert the tensor by "
                "array.to_dense(), or give a sparse matrix of SciPy, without a device."
            )
    return found[0][1] if found else None


# ---- errors --------------------------------------------------------------------------------------


@contextmanager
def device_errors(device: Device | None, **advice: str) -> Iterator[None]:
    """Translate device errors within the context by `device_failure`."""
    try:
        yield
    except Exception as error:
        failed = device_failure(error, device, **advice)
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
    """Translate an error of a device; return None for other errors, and without a device.

    Parameters
    ----------
    error : BaseException
        The error that was raised.
    device : Device or None
        The device of the computation.
    smaller : str
        How to need less memory: start of a sentence, in the imperative.
    instead : str
        How to work without the device: end of a sentence, in the imperative.
    """
    if device is None or isinstance(error, DeviceError):
        return None
    kind, said, where = type(error).__name__, str(error).strip(), str(device.where).strip("<>")
    is_runtime = isinstance(error, RuntimeError)
    of_device = kind in _NAMES or (is_runtime and said.startswith(_BEGINNINGS))
    out_of_memory = kind == "OutOfMemoryError" or (
        (is_runtime or of_device) and any(each in said.lower() for each in _OUT_OF_MEMORY)
    )
    # Keep two sentences; the rest is about options of the library.
    line = said.splitlines()[0] if said else kind
    said = ". ".join(line.split(". ")[:2]).rstrip(".")
    if out_of_memory:
        free = None
        with suppress(Exception):  # which may not answer any more
            free = device.free_bytes()
        # Free the arrays of the failed work, so that the caller can try a smaller problem.
        traceback.clear_frames(error.__traceback__)
        were_free = "" if free is None else f" {free / 1e9:.3g} GB were free."
        return DeviceError(
            f"The memory of {where} is not enough. {device.library} says: {said}.{were_free} "
            f"{smaller}, free other arrays on it, or {instead}."
        )
    if of_device:
        return DeviceError(
            f"{where} failed. {device.library} says: {said}. This process can usually not "
            f"use the device any more: start a new process, or {instead}."
        )
    return None
