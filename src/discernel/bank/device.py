"""A bank whose n_samples² work is done on another device.

Vectors of the size of the samples stay NumPy's: they are thousands of times smaller than what is
computed of them there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Device, DeviceFactor, FloatArray, as_host
from discernel.bank import tiles
from discernel.bank.base import Bank
from discernel.bank.device_system import DeviceInverse, DeviceSystem
from discernel.bank.iterative import IterativeBank
from discernel.bank.system import Inverse, System
from discernel.bank.tiled import Threads
from discernel.bank.tiles import Centered, Tile, TilePass
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel
from discernel.kernels.device import STRIP_ENTRIES, DeviceKernels

__all__ = ["DeviceBank", "factor_bytes", "has_room", "is_refined"]

#: Rows of a part up to which NumPy is as fast.
_FEW_ROWS = 500
#: Rows up to which a factorisation of double precision is as fast as a coarse one and passes.
_FEW_TO_REFINE = 24_000
#: Matrices of that size that live at a time.
_STRIPS = 4
#: The share of the free memory of the device that may be taken.
_SHARE = 0.9
#: The least ridge, in units of kernels of trace 1, for which a coarse factor solves in few steps,
#: and for which it has three digits of the diagonal of the inverse.
_COARSE_RIDGE, _DIAGONAL_RIDGE = 1e-6, 3e-4


def is_refined(n: int) -> bool:
    """Whether a system of n rows is factored coarsely and refined, where its ridge allows it."""
    return n > _FEW_TO_REFINE


def has_room(device: Device, n_bytes: int) -> bool:
    """Whether a device has so much free memory, and some to spare; it may not say."""
    free = device.free_bytes()
    return free is None or n_bytes <= _SHARE * free


def factor_bytes(n: int, *, single: bool | None = None, strip_entries: int = STRIP_ENTRIES) -> int:
    """Return the memory that a factored system of n rows needs on a device.

    Parameters
    ----------
    n : int
        The rows.
    single : bool, optional
        Whether the factor is of single precision; by default as `is_refined` says.
    strip_entries : int
        Entries of what is computed at a time.
    """
    single = is_refined(n) if single is None else single
    return (4 if single else 8) * n * n + _STRIPS * 8 * min(strip_entries, n * n)


class Strips(Threads):
    """Strips of rows that a device computes, from the diagonal on.

    Parameters
    ----------
    kernels : sequence of Kernel
        The kernels, resolved.
    X : ndarray of shape (n_samples, n_features)
        The rows.
    n_threads, cache_bytes
        As of `Threads`, for what NumPy does.
    device : Device
        The device.
    entries : int
        Entries of a strip.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        X: FloatArray,
        n_threads: int,
        cache_bytes: float,
        device: Device,
        entries: int,
    ) -> None:
        super().__init__(kernels, X, n_threads, cache_bytes)
        self._device, self.entries, self.xp = device, entries, device.xp
        self.matmul = device.xp.matmul
        self.dot = lambda left, right: device.xp.sum(left * right)

    @cached_property
    def _there(self) -> DeviceKernels:
        """The kernels with their rows on the device, which are sent once."""
        return DeviceKernels(self.kernels, self.rows, self._device, single=self._is_single)

    @cached_property
    def coarse(self) -> Self:
        """The engine of single precision, be it good or not."""
        made = copy(self)
        made._is_single = True
        return made

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        left = ("_there", "coarse")  # other kernels, or another precision, are sent anew
        made.__dict__ |= {name: each for name, each in vars(self).items() if name not in left}
        return made

    def single(self, active: Sequence[int]) -> Self | None:
        return None if super().single(active) is None else self.coarse

    def put(self, array: FloatArray) -> Any:
        return self._device.put(array, single=self._is_single)

    def empty(self, shape: tuple[int, ...]) -> Any:
        return self._device.empty(shape, single=self._is_single)

    def host(self, array: Any) -> FloatArray:
        return as_host(array)

    def strips(self, n_alive: int = 1) -> Iterator[Tile]:
        """Yield rows and the columns from the first of them on: each pair once.

        Smaller ones where so many matrices of each are alive.
        """
        n, start, entries = self.n_samples, 0, self.entries // n_alive
        while start < n:
            stop = min(n, start + max(1, entries // (n - start)))
            yield slice(start, stop), slice(start, n)
            start = stop

    def run(self, task: TilePass) -> FloatArray:
        self._count()
        wanted = None if task.active is None else task.active.tolist()
        out = self._device.zeros(task.shape, single=self._is_single)
        for tile in self.strips(task.n_alive):
            found: Any
            if task.factors is None:
                found = self._less_means(tile, self._there.strips(*tile, wanted))
            else:
                found = self._there.weighted_sum(*tile, task.factors)
                for off in self._scaled_off(task.factors):
                    found = off(tile, found, self.put)
                if task.centered is not None:
                    task.centered.subtract(tile, found, self.put)
            task.work(tile, found, out)
        return as_host(out)

    def _scaled_off(self, factors: FloatArray) -> list[Centered]:
        """Return what is taken off Σ f_i G_i."""
        return [off.times(factors[i]) for i, off in self.taken_off.items() if factors[i]]

    def columns(self, at: NDArray[np.intp], factors: FloatArray, centered: Centered) -> FloatArray:
        chosen = DeviceKernels(self.kernels, self.rows[at], self._device)
        out, step = np.empty((len(at), self.n_samples)), max(1, self.entries // len(at))
        for start in range(0, self.n_samples, step):
            here = slice(start, min(start + step, self.n_samples))
            strip = as_host(self._there.weighted_sum(here, slice(0, len(at)), factors, chosen))
            for off in (*self._scaled_off(factors), centered):
                strip = off((here, at), np.array(strip), np.asarray)
            out[:, here] = strip.T
        return out


class DeviceBank(IterativeBank):
    """Kernels on rows, never stored, computed on a device.

    Parameters
    ----------
    kernels : sequence of Kernel
        The candidates, resolved.
    X : ndarray of shape (n_samples, n_features)
        The training rows.
    device : Device
        The device.
    factors : bool, default=True
        Whether systems are factored where there is room; else they are always solved by conjugate
        gradients, as in `IterativeBank`.
    **options
        As in `TiledBank`.

    Notes
    -----
    A system is factored in single precision, in the memory of one matrix, and refined with
    products of double precision: residuals, and so certificates, are those of double precision.
    Where even one matrix is too much, it is solved by conjugate gradients.
    """

    tols: ClassVar[tuple[float, float]] = 1e-9, 1e-3
    has_matrices: ClassVar[bool] = True
    _engine: Strips

    def __init__(
        self,
        kernels: Sequence[Kernel],
        X: Any,
        *,
        device: Device,
        factors: bool = True,
        **options: Any,
    ) -> None:
        if not isinstance(X, np.ndarray):
            raise InvalidInputError(
                "A device computes kernels of rows of numbers. Got "
                f"{type(X).__name__}. Leave `device` out for other rows."
            )
        self.device, self._factors = device, factors
        self._strip_entries = _room_for_strips(X, device)
        super().__init__(kernels, X, **options)

    def _make_engine(self) -> Strips:
        room = self._n_threads, self._cache_bytes
        return Strips(self._all, self._X, *room, self.device, self._strip_entries)

    # ---- systems -----------------------------------------------------------------------------

    def _new_system(self, weights: FloatArray, diagonal: FloatArray, tol: float) -> System:
        n, least = self.n_samples, float(diagonal.min())
        single, coarse_diagonal = is_refined(n) and least >= _COARSE_RIDGE, least >= _DIAGONAL_RIDGE
        # The diagonal of the inverse may be asked for, and a coarse factor not be good enough.
        stays_single = single and (coarse_diagonal or tol >= self.tols[1])
        needed = factor_bytes(n, single=stays_single, strip_entries=self._strip_entries)
        if not (self._factors and has_room(self.device, needed)):
            return super()._new_system(weights, diagonal, tol)
        plain = self._without_workspace()

        def factored(coarse: bool) -> DeviceFactor:
            matrix = plain._device_matrix(weights, diagonal, single=coarse)
            return DeviceFactor(matrix, plain.device, coarse=coarse)

        def product(V: FloatArray) -> FloatArray:
            return diagonal[:, None] * V + plain.combined_product(weights, V)

        return DeviceSystem(
            factored,
            product,
            self.device,
            least_ridge=least,
            tol=tol,
            coarse=single,
            coarse_diagonal=coarse_diagonal,
        )

    def _device_matrix(self, weights: FloatArray, ridge: FloatArray, *, single: bool) -> Any:
        """Return diag(ridge) + Σ w_i K_i on the device."""
        n, factors = self.n_samples, weights * self.scales
        engine = self._engine.coarse if single else self._engine
        matrix = engine.empty((n, n))
        tiles.combine(engine, factors, self._centered(factors), matrix)
        for rows, _ in engine.strips():
            height = rows.stop - rows.start
            eye = self.device.xp.eye(height, dtype=matrix.dtype, device=self.device.where)
            matrix[rows, rows] += eye * engine.put(ridge[rows, None])
        return matrix

    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:  # type: ignore[override]
        whole = as_host(self._device_matrix(weights, np.zeros(self.n_samples), single=False))
        if out is None:
            return whole
        out[:] = whole
        return out

    def inverse(self, weights: FloatArray, ridge: float | FloatArray) -> Inverse:
        self.workspace.last = None
        matrix = self._device_matrix(weights, np.full(self.n_samples, ridge), single=False)
        inverse = DeviceFactor(matrix, self.device).inverse()
        return DeviceInverse(inverse, self.device, self._inner)

    def subset(self, rows: NDArray[np.intp]) -> Bank:
        if len(rows) < _FEW_ROWS:  # a device is not worth its delay
            return super().subset(rows)
        return DeviceBank(
            self._engine.kernels.kernels,
            self._X[rows],
            device=self.device,
            factors=self._factors,
            normalization=self.normalization,
            cache_bytes=self._cache_bytes,
            part=True,
            sample_weights=self._weights_of(rows),
        )


def _room_for_strips(X: FloatArray, device: Device) -> int:
    """Return the entries of a strip that the device has room for, or raise a clear error."""
    free = device.free_bytes()
    if free is None:
        return STRIP_ENTRIES
    # Rows are there in both precisions, twice each for distances.
    left = free - 24 * X.size
    if left < 8 * _STRIPS * len(X):
        needed = 24 * X.size + 8 * _STRIPS * len(X)
        raise InvalidInputError(
            f"{len(X):,} rows of {X.shape[1]:,} columns need at least {needed / 1e9:.2g} GB on "
            f"{device.where}, of which {free / 1e9:.2g} GB are free. Free some, take some "
            "of the rows, or leave the device out: bank='lowrank' of NumPy needs least."
        )
    return int(min(STRIP_ENTRIES, left // (8 * 2 * _STRIPS)))
