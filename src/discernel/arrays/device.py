"""Where arrays live: a library of the array API standard, and a device of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays.containers import convert_rows
from discernel.arrays.failures import device_errors
from discernel.arrays.memory import memory_limit
from discernel.exceptions import DeviceError, InvalidInputError, missing_extra

__all__ = ["Device", "as_host", "check_given", "device_of", "elsewhere", "on_host"]


@dataclass(frozen=True)
class Device:
    """A library and one of its devices.

    All that the standard lacks, and the libraries do each in their own way, is here.

    Attributes
    ----------
    xp : module
        The namespace of the library, as array-api-compat gives it.
    where : object
        A device of it.
    """

    xp: Any
    where: Any

    @classmethod
    def named(cls, name: str) -> Device:
        """Return a device of PyTorch by its name, such as ``"cuda"``, ``"cuda:1"`` or ``"cpu"``."""
        try:
            import torch
        except ImportError as error:
            raise missing_extra(f"device={name!r} needs PyTorch", "torch") from error
        xp = _compat().array_namespace(torch.empty(0))
        try:
            device = torch.device(name)
            # One that PyTorch counts and that does not answer is there, but has failed.
            with device_errors(cls(xp, device) if _counts(device) else None):
                torch.empty(1, device=device)
        except DeviceError:
            raise
        except (RuntimeError, AssertionError) as error:
            there = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
            raise InvalidInputError(
                f"device must be one that PyTorch can use here: {', '.join(there)}. Got {name!r}, "
                f"of which PyTorch says: {str(error).splitlines()[0]}"
            ) from error
        return cls(xp, device)

    @property
    def library(self) -> str:
        """The name of the library."""
        return str(self.xp.__name__).removeprefix("array_api_compat.").partition(".")[0]

    @property
    def is_cuda(self) -> bool:
        """Whether the device is one of NVIDIA's."""
        return self.library == "cupy" or str(self.where).startswith("cuda")

    @property
    def is_host(self) -> bool:
        """Whether arrays lie in the memory of the processor, where NumPy can compute with them.

        Those of array-api-strict do, but are there to be computed with by the standard alone.
        """
        return self.library == "torch" and str(self.where).partition(":")[0] == "cpu"

    def __reduce__(self) -> tuple[Any, ...]:
        return _known, (self.library, str(self.where))

    # ---- there and back --------------------------------------------------------------------------

    def put(self, array: NDArray[Any], *, single: bool = False) -> Any:
        """Return a NumPy array as one of the device, of double or single precision."""
        dtype = self.xp.float32 if single else self.xp.float64
        ours = np.ascontiguousarray(array, dtype=np.float32 if single else np.float64)
        return self.xp.asarray(ours, dtype=dtype, device=self.where)

    def returned(self, result: Any) -> Any:
        """Return what a user gets for arrays of this device; text stays NumPy's."""
        if not (isinstance(result, np.ndarray) and result.dtype.kind in "fiub"):
            return result
        # Libraries share the memory, and take none that is read-only or runs backwards.
        ours = np.require(result, requirements=["C", "W"])
        return self.xp.asarray(ours, device=self.where)

    def empty(self, shape: tuple[int, ...], *, single: bool = False) -> Any:
        """Return memory on the device."""
        dtype = self.xp.float32 if single else self.xp.float64
        return self.xp.empty(shape, dtype=dtype, device=self.where)

    def zeros(self, shape: tuple[int, ...], *, single: bool = False) -> Any:
        """Return an array of zeros on the device."""
        dtype = self.xp.float32 if single else self.xp.float64
        return self.xp.zeros(shape, dtype=dtype, device=self.where)

    def free_bytes(self) -> int | None:
        """Return the bytes that are free on the device; None where it does not say."""
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
        """Raise a clear error, before any work, where there is too little memory.

        Parameters
        ----------
        n_bytes : int
            What is needed.
        what : str
            What of: the beginning of a sentence.
        otherwise : str
            What to do, beside freeing some: the end of a sentence.
        """
        free = self.free_bytes()
        if free is not None and n_bytes > free:
            raise InvalidInputError(
                f"{what} must fit on {self.where}, {n_bytes / 1e9:.3g} GB. {free / 1e9:.3g} GB are "
                f"free. Free some, {otherwise}"
            )

    # ---- what the standard lacks -------------------------------------------------------------

    def cholesky(self, matrix: Any) -> tuple[Any, float]:
        """Return a lower factor, and the sum of the logarithms of its diagonal.

        NaN where the matrix is not positive definite. We wait for the device once only.
        """
        if self.library == "torch":
            import torch

            lower, failed = torch.linalg.cholesky_ex(matrix)
            logs = torch.log(torch.diagonal(lower)).sum()
            return lower, float(torch.where(failed == 0, logs, torch.nan))
        try:
            lower = self.xp.linalg.cholesky(matrix)
        except Exception as error:  # every library has its own
            if "positive" not in str(error) and "singular" not in str(error).lower():
                raise
            return matrix, float("nan")
        return lower, float(self.xp.sum(self.xp.log(self.xp.linalg.diagonal(lower))))

    def triangular_inverse(self, lower: Any) -> Any:
        """Return the inverse of a lower triangle; what is above the diagonal must be 0."""
        if self.library == "torch":
            import torch

            eye = torch.eye(len(lower), dtype=lower.dtype, device=lower.device)
            return torch.linalg.solve_triangular(lower, eye, upper=False)
        if self.library == "cupy":
            import cupy
            from cupyx.scipy.linalg import solve_triangular

            eye = cupy.eye(len(lower), dtype=lower.dtype)
            return solve_triangular(lower, eye, lower=True)
        return self.xp.linalg.inv(lower)

    def subtract_product(self, target: Any, left: Any, right: Any) -> None:
        """Subtract left·right from a part of an array, in its memory."""
        if self.library == "torch":
            target.addmm_(left, right, alpha=-1)
        else:
            target[...] = target - self.xp.matmul(left, right)

    def fused(self) -> Any:
        """Return our own passes over pairs of rows, where Triton can compile them; else None."""
        if not (self.library == "torch" and self.is_cuda):
            return None
        try:
            from discernel.arrays import fused
        except ImportError:
            return None
        return fused

    def clear_diagonal(self, matrix: Any) -> Any:
        """Return a matrix with zeros on its diagonal, in its memory where that can be."""
        if self.library == "torch":
            matrix.diagonal().zero_()
            return matrix
        return matrix * (1.0 - self.xp.eye(*matrix.shape, dtype=matrix.dtype, device=self.where))

    @contextmanager
    def coarse_products(self, wanted: bool = True) -> Iterator[None]:
        """Multiply single precision with ten digits of two inside, where the device can.

        Three decimal digits, four times as fast. PyTorch has a switch for all of the process; it
        is put back.
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


def _counts(device: Any) -> bool:
    """Whether PyTorch says that there is such a device of NVIDIA's."""
    import torch

    return bool(device.type == "cuda" and (device.index or 0) < torch.cuda.device_count())


def _compat() -> Any:
    try:
        import array_api_compat
    except ImportError as error:
        need = "Arrays of other libraries than NumPy need array-api-compat"
        raise missing_extra(need, "torch") from error
    return array_api_compat


def _known(library: str, where: str) -> Device:
    """Return a device again, in another process."""
    if library == "torch":
        return Device.named(where)
    import importlib

    module = importlib.import_module(library)
    return device_of(module.asarray([0.0])) or Device.named("cpu")


def device_of(array: Any) -> Device | None:
    """Return where an array lives; None for those of NumPy, and for what is no array.

    Parameters
    ----------
    array : object
        What a user gave.
    """
    module = type(array).__module__.partition(".")[0]
    if module not in ("torch", "cupy", "array_api_strict"):
        return None
    compat = _compat()
    return Device(compat.array_namespace(array), compat.device(array))


def elsewhere(device: Device | None) -> Device | None:
    """Return a device to compute on; None where NumPy computes, also with the arrays of others.

    Parameters
    ----------
    device : Device or None
        Where arrays live.
    """
    return None if device is None or device.is_host else device


def as_host(array: Any) -> NDArray[Any]:
    """Return an array of any library as one of NumPy.

    Parameters
    ----------
    array : object
        An array.
    """
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "get") and type(array).__module__.startswith("cupy"):
        return np.asarray(array.get())
    if hasattr(array, "detach"):
        return np.asarray(array.detach().cpu().numpy())
    return np.asarray(array)


def on_host(given: Any) -> Any:
    """Return arrays of other libraries as those of NumPy, also in lists and dictionaries.

    Parameters
    ----------
    given : object
        What a user gave; all else is returned as `convert_rows` returns it.
    """
    if isinstance(given, dict) and not hasattr(given, "tocsr"):  # as one sparse matrix has
        return {key: on_host(value) for key, value in given.items()}
    if isinstance(given, (list, tuple)) and any(device_of(each) is not None for each in given):
        return [on_host(each) for each in given]
    return convert_rows(given) if device_of(given) is None else as_host(given)


def check_given(*arrays: Any) -> Device | None:
    """Return where what a user gave lives, or raise a clear error where that is two devices.

    Parameters
    ----------
    *arrays : object
        Rows, labels and weights. Those of NumPy, lists and None may go with any.
    """
    found = [(array, device) for array in arrays if (device := device_of(array)) is not None]
    for array, device in found:
        first = found[0][1]
        if (device.library, str(device.where)) != (first.library, str(first.where)):
            move = f".to({str(first.where)!r})" if device.library == "torch" else ""
            raise InvalidInputError(
                f"All arrays must be of one library and on one device. Got {first.library} on "
                f"{first.where} and {device.library} on {device.where}. Move the second there"
                + (f" by array{move}." if move else ".")
            )
        kind = str(array.dtype)
        if "float16" in kind or "float8" in kind or "complex" in kind:
            raise InvalidInputError(
                f"Arrays must be of real numbers with at least 32 bits. Got {kind}, of too few "
                "digits for a kernel. Convert it, for example by array.to(torch.float32)."
            )
        layout = str(getattr(array, "layout", "torch.strided"))
        if layout != "torch.strided":
            raise InvalidInputError(
                f"Tensors must be dense. Got one of the layout {layout}. Convert it by "
                "array.to_dense(), or give a sparse matrix of SciPy, without a device."
            )
    return found[0][1] if found else None
