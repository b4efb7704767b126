"""A bank whose matrices of n_samples² numbers are on a device, such as a GPU.

Vectors of length n_samples are NumPy arrays, thousands of times smaller than the matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Device, DeviceFactor, FloatArray, as_host
from discernel.arrays.groups import Groups
from discernel.bank.conjugate import Solved, solve_refined
from discernel.bank.iterative import IterativeBank, RefinedSystem
from discernel.bank.system import System, matrix_blocks
from discernel.bank.tiled import Threads, TiledBank
from discernel.bank.tiles import Tile, around_one
from discernel.exceptions import InvalidInputError, NumericalError
from discernel.kernels import Kernel
from discernel.kernels.device import STRIP_ENTRIES
from discernel.kernels.terms import PreparedRows

#: Number of rows of a subset up to which NumPy is as fast.
_FEW_ROWS = 500
#: Number of rows up to which a factorization in double precision is as fast as one in single
#: precision with refinement.
_FEW_TO_REFINE = 24_000
#: Number of strips in memory at a time.
_STRIPS = 4
#: Share of the free memory of the device that may be used.
_SHARE = 0.9
#: Smallest ridge, for kernels of trace 1, at which a factor of single precision solves in few
#: steps, and at which it gives three digits of the diagonal of the inverse.
_COARSE_RIDGE, _DIAGONAL_RIDGE = 1e-6, 3e-4
#: Tolerance from which the solution of the factor needs no refinement.
_UNREFINED = 1e-3
#: Number of entries of a diagonal in single precision that are compared with exact ones.
_PROBES = 16


def is_refined(n: int) -> bool:
    """Whether a system of n rows is factored in single precision if its ridge allows it."""
    return n > _FEW_TO_REFINE


def has_room(device: Device, n_bytes: int) -> bool:
    """Whether ``n_bytes`` are at most 90 % of the free memory of a device, if known."""
    free = device.free_bytes()
    return free is None or n_bytes <= _SHARE * free


def factor_bytes(n: int, *, single: bool | None = None, strip_entries: int = STRIP_ENTRIES) -> int:
    """Return the bytes of a factored system of n rows on a device.

    The precision is single by default if `is_refined`.
    """
    single = is_refined(n) if single is None else single
    return (4 if single else 8) * n * n + _STRIPS * 8 * min(strip_entries, n * n)


class Strips(Threads):
    """Engine whose tiles are strips of rows, of at most ``entries`` entries, on a device.

    A strip starts at the diagonal. The other parameters are those of `Threads`.
    """

    def __init__(self, device: Device, entries: int, *others: Any) -> None:
        super().__init__(*others)
        self._device, self.entries, self.xp, self._n_threads = device, entries, device.xp, 1
        self.matmul = device.xp.matmul
        self.dot = lambda left, right: device.xp.sum(left * right)

    def _place(self, rows: PreparedRows) -> PreparedRows:
        return rows.on(self._device, single=self._is_single)

    @cached_property
    def _on_device(self) -> PreparedRows:
        """The rows on the device, copied once."""
        return self._place(self.rows)

    def _placed_rows(self) -> PreparedRows:
        return self._on_device

    @cached_property
    def coarse(self) -> Self:
        """The engine in single precision, also for kernels that lose digits."""
        made = copy(self)
        made._is_single = True
        return made

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        left = ("_on_device", "coarse")  # caches for these kernels and this precision
        made.__dict__ |= {name: each for name, each in vars(self).items() if name not in left}
        return made

    def single(self, active: Sequence[int]) -> Self | None:
        return None if super().single(active) is None else self.coarse

    def put(self, array: FloatArray) -> Any:
        return self._device.put(array, single=self._is_single)

    def empty(self, shape: tuple[int, ...]) -> Any:
        return self._device.empty(shape, single=self._is_single)

    def _zeros(self, shape: tuple[int, ...]) -> Any:
        return self._device.zeros(shape, single=self._is_single)

    def tiles(self, n_alive: int = 1) -> Iterator[Tile]:
        """Yield strips of rows with the columns from the diagonal to the right.

        Strips have fewer entries if ``n_alive`` matrices are stored at a time.
        """
        n, start, entries = self.n_samples, 0, self.entries // n_alive
        while start < n:
            stop = min(n, start + max(1, entries // (n - start)))
            yield slice(start, stop), slice(start, n)
            start = stop


#: Blocks of so few groups are gathered on the device; for those of more, the matrix is copied.
_FEW_GROUPS = 100


class DeviceSystem(RefinedSystem):
    """A system factored on a device, in single precision if possible, and refined by products.

    Parameters
    ----------
    bank, weights, ridge, tol
        As in `RefinedSystem`; the bank is a `DeviceBank`.
    coarse : bool
        Whether a factor of single precision is accurate enough for refinement.
    """

    _bank: DeviceBank

    def __init__(
        self, bank: DeviceBank, weights: FloatArray, ridge: FloatArray, tol: float, *, coarse: bool
    ) -> None:
        super().__init__(bank, weights, ridge, tol)
        self._coarse = coarse
        self._factor: DeviceFactor | None = self._make()
        self._diagonal: FloatArray | None = None

    def _factored(self, coarse: bool) -> DeviceFactor:
        matrix = self._bank.device_matrix(self._weights, self._ridge, single=coarse)
        return DeviceFactor(matrix, self._bank.device, coarse=coarse)

    def _make(self) -> DeviceFactor:
        if self._coarse:
            try:
                return self._factored(True)
            except NumericalError:  # single precision is not enough
                self._coarse = False
        return self._factored(False)

    def _solve_unrefined(self, right: FloatArray) -> FloatArray:
        """Return the solution by the factor, without refinement."""
        if self._factor is None:
            self._factor = self._make()
        right, lengths = around_one(right)
        found = self._factor.solve(self._bank.device.put(right, single=self._coarse))
        return np.asarray(as_host(found).astype(np.float64) * lengths)

    def solve(self, right: FloatArray) -> FloatArray:
        if self.tol >= _UNREFINED:
            return self.solve_roughly(right)
        return super().solve(right)

    def solve_roughly(self, right: FloatArray) -> FloatArray:
        if right.ndim == 1:
            return self._solve_unrefined(right[:, None])[:, 0]
        return self._solve_unrefined(right)

    def _refined(self, right: FloatArray, enough: FloatArray) -> Solved:
        return solve_refined(self._product, None, self._solve_unrefined, right, enough, direct=True)

    def _advice(self, reached: float, tol: float) -> str:
        return (
            f"A system of {len(self._ridge):,} rows on {self._bank.device.where} was solved to a "
            f"relative residual of {reached:.1e}, asked for {tol:.1e}. Raise the regularization."
        )

    def inverse_diagonal(self) -> FloatArray:
        if self._diagonal is None:
            # The diagonal is not refined.
            coarse = self._coarse and self._least_ridge >= _DIAGONAL_RIDGE
            at, exact = self._some_of_diagonal() if coarse else (np.arange(0), np.empty(0))
            factor, self._factor = self._factor, None  # it is overwritten
            if factor is None or coarse != self._coarse:
                factor = None  # frees its memory for the next factor
                factor = self._factored(coarse)
            self._diagonal = factor.inverse_diagonal()
            if coarse:
                off = self._diagonal[at] / exact - 1.0
                self.diagonal_error = float(np.sqrt(np.mean(off**2)))
        return self._diagonal

    def inverse_blocks(self, groups: Groups) -> list[FloatArray]:
        self._factor = None  # frees its memory
        return _blocks(self._factored(False).inverse(), groups, self._bank.device)

    def _some_of_diagonal(self) -> tuple[NDArray[np.intp], FloatArray]:
        """Return random positions and the diagonal of the inverse there, by refined solves."""
        n = len(self._ridge)
        at = np.random.default_rng(0).choice(n, min(n, _PROBES), replace=False)
        units = np.zeros((n, len(at)))
        units[at, np.arange(len(at))] = 1.0
        return at, self._solve_new(units, self.tol).solution[at, np.arange(len(at))]


class DeviceInverse(System):
    """A system solved by products with its inverse on a device, which `inner` does not change."""

    def __init__(
        self, matrix: Any, device: Device, inner_products: Callable[[Any], FloatArray]
    ) -> None:
        self._matrix, self._device, self._inner_products = matrix, device, inner_products

    def solve(self, right: FloatArray) -> FloatArray:
        return as_host(self._device.xp.matmul(self._matrix, self._device.put(right)))

    def inverse_diagonal(self) -> FloatArray:
        return as_host(self._device.xp.linalg.diagonal(self._matrix))

    def inverse_blocks(self, groups: Groups) -> list[FloatArray]:
        return _blocks(self._matrix, groups, self._device)

    def inner(
        self, diagonal: FloatArray, left: FloatArray, right: FloatArray, scale: float
    ) -> tuple[FloatArray, float]:
        put, xp = self._device.put, self._device.xp
        S = xp.matmul(self._matrix * put(diagonal)[None, :], self._matrix)
        cross = xp.matmul(put(left), put(right).T)
        S = (S - 0.5 * (cross + cross.T)) * scale
        return self._inner_products(S), float(xp.sum(xp.linalg.diagonal(S)))


class DeviceBank(IterativeBank):
    """Kernels computed on a device and not stored.

    Parameters
    ----------
    kernels : sequence of Kernel
        The candidates, resolved.
    X : ndarray of shape (n_samples, n_features)
        The training rows.
    device : Device
        The device.
    factors : bool, default=True
        Whether systems are factored if there is memory. Otherwise they are solved by conjugate
        gradients, as in `IterativeBank`.
    **options
        As in `TiledBank`.

    Notes
    -----
    A large system is factored in single precision, in the memory of one matrix, and refined with
    products of double precision. Residuals and certificates have double precision. If one matrix
    does not fit into memory, the system is solved by conjugate gradients.
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
        if not device.takes(X):
            raise InvalidInputError(
                "Kernels on a device need dense rows of numbers. Got "
                f"{type(X).__name__}. Leave `device` out for other rows."
            )
        self.device, self._factors = device, factors
        self._strip_entries = _room_for_strips(X, device)
        super().__init__(kernels, X, **options)

    def _make_engine(self) -> Strips:
        others = self._all, self._X, self._n_threads, self._cache_bytes
        return Strips(self.device, self._strip_entries, *others)

    # ---- systems -----------------------------------------------------------------------------

    def _new_system(self, weights: FloatArray, diagonal: FloatArray, tol: float) -> System:
        n, least = self.n_samples, float(diagonal.min())
        coarse = is_refined(n) and least >= _COARSE_RIDGE
        # A diagonal of the inverse may need a factor of double precision.
        single = coarse and (least >= _DIAGONAL_RIDGE or tol >= self.tols[1])
        needed = factor_bytes(n, single=single, strip_entries=self._strip_entries)
        if not (self._factors and has_room(self.device, needed)):
            return super()._new_system(weights, diagonal, tol)
        return DeviceSystem(self._without_workspace(), weights, diagonal, tol, coarse=coarse)

    def device_matrix(self, weights: FloatArray, ridge: FloatArray, *, single: bool = False) -> Any:
        """Return diag(ridge) + Σ w_i K_i on the device."""
        n, factors = self.n_samples, weights * self.scales
        engine = self._engine.coarse if single else self._engine
        matrix = engine.empty((n, n))
        engine.combine(factors, self._centered(factors), matrix)
        for rows, _ in engine.tiles():
            height = rows.stop - rows.start
            eye = self.device.xp.eye(height, dtype=matrix.dtype, device=self.device.where)
            matrix[rows, rows] += eye * engine.put(ridge[rows, None])
        return matrix

    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:  # type: ignore[override]
        whole = as_host(self.device_matrix(weights, np.zeros(self.n_samples)))
        if out is None:
            return whole
        out[:] = whole
        return out

    def inverse(self, weights: FloatArray, ridge: float | FloatArray) -> System:  # type: ignore[override]
        self.workspace.forget()
        matrix = self.device_matrix(weights, np.full(self.n_samples, ridge))
        inverse = DeviceFactor(matrix, self.device).inverse()
        return DeviceInverse(inverse, self.device, self._inner)

    def _kind_of_part(self, n_rows: int) -> Callable[..., TiledBank] | None:
        if n_rows < _FEW_ROWS:  # the host is as fast
            return super()._kind_of_part(n_rows)
        return partial(DeviceBank, device=self.device, factors=self._factors)


def _room_for_strips(X: FloatArray, device: Device) -> int:
    """Return the number of entries of a strip that fits on the device, or raise an error."""
    rows = 24 * X.size  # both precisions, twice each for distances
    device.check_room(
        rows + 8 * _STRIPS * len(X),
        f"{len(X):,} rows of {X.shape[1]:,} columns",
        "take fewer rows, or leave the device out: bank='lowrank' of NumPy needs least.",
    )
    free = device.free_bytes()
    room = STRIP_ENTRIES if free is None else (free - rows) // (16 * _STRIPS)
    return int(min(STRIP_ENTRIES, room))


def _blocks(matrix: Any, groups: Groups, device: Device) -> list[FloatArray]:
    """Return the blocks of the rows and columns of each group of a matrix on a device."""
    if len(groups) > _FEW_GROUPS:
        return matrix_blocks(as_host(matrix), groups)
    xp, found = device.xp, []
    for rows in groups.batches:
        at = [xp.asarray(own, device=device.where) for own in rows]
        each = [as_host(xp.take(xp.take(matrix, own, axis=0), own, axis=1)) for own in at]
        found.append(np.asarray(np.stack(each), dtype=np.float64))
    return found
