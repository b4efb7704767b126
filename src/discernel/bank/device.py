"""A bank whose n_samples² work is done on another device.

Vectors of the size of the samples stay NumPy's: they are thousands of times smaller than what is
computed of them there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Device, DeviceFactor, FloatArray, as_host
from discernel.bank.base import Bank
from discernel.bank.device_system import DeviceInverse, DeviceSystem
from discernel.bank.iterative import IterativeBank
from discernel.bank.products import centering_of_inner
from discernel.bank.system import Inverse
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel
from discernel.kernels.device import DeviceKernels
from discernel.kernels.device.pairs import STRIP_ENTRIES
from discernel.kernels.evaluate import PreparedRows

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
        self._strip_entries = self._room_for_strips(X)
        self._on_device: dict[bool, DeviceKernels] = {}
        super().__init__(kernels, X, **options)

    def _room_for_strips(self, X: FloatArray) -> int:
        """Return the entries of a strip that the device has room for, or raise a clear error."""
        free = self.device.free_bytes()
        if free is None:
            return STRIP_ENTRIES
        # Rows are there in both precisions, twice each for distances.
        left = free - 24 * X.size
        if left < 8 * _STRIPS * len(X):
            needed = 24 * X.size + 8 * _STRIPS * len(X)
            raise InvalidInputError(
                f"{len(X):,} rows of {X.shape[1]:,} columns need at least {needed / 1e9:.2g} GB on "
                f"{self.device.where}, of which {free / 1e9:.2g} GB are free. Free some, take some "
                "of the rows, or leave the device out: bank='lowrank' of NumPy needs least."
            )
        return int(min(STRIP_ENTRIES, left // (8 * 2 * _STRIPS)))

    def _kernels_there(self, *, single: bool = False) -> DeviceKernels:
        """Return the kernels with their rows on the device, which are sent once."""
        known = self._on_device.get(single)
        if known is None or known.kernels is not self._kernels:
            rows = cast(PreparedRows, self._rows)
            known = DeviceKernels(self._kernels, rows, self.device, single=single)
            self._on_device[single] = known
        return known

    def _strips(self, n_alive: int = 1) -> Iterator[tuple[slice, slice]]:
        """Yield rows and the columns from the first of them on: each pair once.

        Smaller ones where so many matrices of each are alive.
        """
        n, start, entries = self.n_samples, 0, self._strip_entries // n_alive
        while start < n:
            stop = min(n, start + max(1, entries // (n - start)))
            yield slice(start, stop), slice(start, n)
            start = stop

    def _less_means_there(
        self, position: int, matrix: Any, rows: slice, columns: slice, *, single: bool = False
    ) -> Any:
        """Return the matrix of a nearly constant kernel less its means, others as they are."""
        means = self._taken_off.get(position)
        if means is None:
            return matrix
        put, down, across = self.device.put, means[rows, None], means[columns] - self._mean(means)
        return matrix - put(down, single=single) - put(across[None, :], single=single)

    # ---- passes ------------------------------------------------------------------------------

    def _raw_products(
        self, vectors: FloatArray, active: NDArray[np.intp] | None = None
    ) -> FloatArray:
        wanted = None if active is None else active.tolist()
        there, xp = self._kernels_there(), self.device.xp
        V = self.device.put(vectors)
        out = self.device.zeros((len(self._kernels.kernels), *vectors.shape))
        for rows, columns in self._strips():
            for i, found in there.strips(rows, columns, wanted):
                matrix = self._less_means_there(i, found, rows, columns)
                height = rows.stop - rows.start
                out[i, rows, :] += xp.matmul(matrix, V[columns, :])
                if columns.stop > rows.stop:
                    out[i, rows.stop :, :] += xp.matmul(matrix[:, height:].T, V[rows, :])
        self._count(None)
        return as_host(out)

    def compressed(self, basis: FloatArray) -> FloatArray:
        there, xp = self._kernels_there(), self.device.xp
        S = self.device.put(self._centered_vectors(basis))
        out = self.device.zeros((self.n_kernels, basis.shape[1], basis.shape[1]))
        for rows, columns in self._strips():
            height = rows.stop - rows.start
            for i, found in there.strips(rows, columns):
                matrix = self._less_means_there(i, found, rows, columns)
                # The square on the diagonal is its own mirror image, all else stands for two.
                right = 0.5 * xp.matmul(matrix[:, :height], S[rows, :])
                if columns.stop > rows.stop:
                    right = right + xp.matmul(matrix[:, height:], S[rows.stop :, :])
                out[i, :, :] += xp.matmul(S[rows, :].T, right)
        self._count(None)
        half = as_host(out)
        found_all = (half + half.transpose(0, 2, 1)) * self.scales[:, None, None]
        self.workspace.subspace = basis, found_all
        return np.asarray(found_all)

    def combined_product(
        self, weights: FloatArray, vectors: FloatArray, single: Any = None
    ) -> FloatArray:
        precise = single is None
        columns_of = self._centered_vectors(vectors)
        lengths = np.linalg.norm(columns_of, axis=0) / np.sqrt(len(columns_of))
        lengths[lengths == 0] = 1.0
        V = self.device.put(columns_of / lengths, single=not precise)
        out, xp = self.device.zeros(vectors.shape, single=not precise), self.device.xp
        for rows, columns in self._strips():
            total = self._sum_there(weights * self.scales, rows, columns, single=not precise)
            height = rows.stop - rows.start
            out[rows, :] += xp.matmul(total, V[columns, :])
            if columns.stop > rows.stop:
                out[rows.stop :, :] += xp.matmul(total[:, height:].T, V[rows, :])
        self._count(single)
        found = np.asarray(as_host(out).astype(np.float64) * lengths)
        self._center_rows(found[None])
        return found

    def _sum_there(self, factors: FloatArray, rows: slice, columns: slice, *, single: bool) -> Any:
        """Return Σ f_i G_i between some rows and others, less what is taken off."""
        total = self._kernels_there(single=single).weighted_sum(rows, columns, factors)
        for i, means in self._taken_off.items():
            if factors[i]:
                down = factors[i] * means[rows, None]
                across = factors[i] * (means[columns] - self._mean(means))
                total = total - self.device.put(down, single=single)
                total = total - self.device.put(across[None, :], single=single)
        return total

    def _combined_columns(self, weights: FloatArray, at: NDArray[np.intp]) -> FloatArray:
        factors, rows = weights * self.scales, cast(PreparedRows, self._rows)
        means = factors @ self._means
        across = means - self._mean(means)
        there = self._kernels_there()
        chosen = DeviceKernels(self._kernels, rows[cast(Any, at)], self.device)
        out, step = np.empty((len(at), self.n_samples)), max(1, self._strip_entries // len(at))
        for start in range(0, self.n_samples, step):
            here = slice(start, min(start + step, self.n_samples))
            total = there.weighted_sum(here, slice(0, len(at)), factors, chosen)
            strip = as_host(total)
            for i, less in self._taken_off.items():
                strip = strip - factors[i] * less[here, None]
                strip = strip - factors[i] * (less[at] - self._mean(less))
            strip = strip - means[here, None] - across[at]
            if self.sample_weights is not None:
                roots = self.sample_weights.roots
                strip = strip * roots[here, None] * roots[at]
            out[:, here] = strip.T
        return out

    def _matrix_there(self, weights: FloatArray, ridge: FloatArray, *, single: bool) -> Any:
        """Return diag(ridge) + Σ w_i K_i on the device; what is above the diagonal is not set."""
        n, factors = self.n_samples, weights * self.scales
        means = factors @ self._means
        across = means - self._mean(means)
        matrix, put = self.device.empty((n, n), single=single), self.device.put
        roots = None if self.sample_weights is None else self.sample_weights.roots
        for rows, columns in self._strips():
            total = self._sum_there(factors, rows, columns, single=single)
            total = total - put(means[rows, None], single=single)
            total = total - put(across[None, columns], single=single)
            if roots is not None:
                total = total * put(roots[rows, None], single=single)
                total = total * put(roots[None, columns], single=single)
            height = rows.stop - rows.start
            eye = self.device.xp.eye(height, dtype=matrix.dtype, device=self.device.where)
            matrix[rows.stop :, rows] = total[:, height:].T
            matrix[rows, rows] = total[:, :height] + eye * put(ridge[rows, None], single=single)
        self._count(True if single else None)
        return matrix

    # ---- systems -----------------------------------------------------------------------------

    def _new_system(self, weights: FloatArray, diagonal: FloatArray, tol: float) -> Any:
        n, least = self.n_samples, float(diagonal.min())
        single, coarse_diagonal = is_refined(n) and least >= _COARSE_RIDGE, least >= _DIAGONAL_RIDGE
        # The diagonal of the inverse may be asked for, and a coarse factor not be good enough.
        stays_single = single and (coarse_diagonal or tol >= self.tols[1])
        needed = factor_bytes(n, single=stays_single, strip_entries=self._strip_entries)
        if not (self._factors and has_room(self.device, needed)):
            return super()._new_system(weights, diagonal, tol)
        plain = self._without_workspace()

        def factored(coarse: bool) -> DeviceFactor:
            matrix = plain._matrix_there(weights, diagonal, single=coarse)
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

    def subset(self, rows: NDArray[np.intp]) -> Bank:
        if len(rows) < _FEW_ROWS:  # a device is not worth its delay
            return super().subset(rows)
        return DeviceBank(
            self._kernels.kernels,
            self._X[rows],
            device=self.device,
            factors=self._factors,
            normalization=self.normalization,
            cache_bytes=self._cache_bytes,
            part=True,
            sample_weights=self._weights_of(rows),
        )

    # ---- whole matrices ----------------------------------------------------------------------

    has_matrices: ClassVar[bool] = True

    def combined(self, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:  # type: ignore[override]
        lower = as_host(self._matrix_there(weights, np.zeros(self.n_samples), single=False))
        whole = np.tril(lower) + np.tril(lower, -1).T
        if out is None:
            return np.asarray(whole)
        out[:] = whole
        return out

    def inverse(self, weights: FloatArray, ridge: float | FloatArray) -> Inverse:
        self.workspace.last = None
        matrix = self._matrix_there(weights, np.full(self.n_samples, ridge), single=False)
        inverse = DeviceFactor(matrix, self.device).inverse()
        return DeviceInverse(inverse, self.device, self._inner_there)

    def inner(self, matrix: FloatArray) -> FloatArray:
        return self._inner_there(self.device.put(matrix))

    def inner_products(self) -> FloatArray:
        there, xp, p = self._kernels_there(), self.device.xp, self.n_kernels
        total = self.device.zeros((p, p))
        for rows, columns in self._strips(p):
            parts: list[Any] = [None] * p
            for i, found in there.strips(rows, columns):
                parts[i] = self._centered_strip(i, found, rows, columns)
            flat = xp.stack(parts)
            total += xp.matmul(flat, flat.T)
        return np.asarray(as_host(total) * np.outer(self.scales, self.scales))

    def _centered_strip(self, position: int, matrix: Any, rows: slice, columns: slice) -> Any:
        """Return a strip of a kernel, centred and weighted, as one vector, for inner products.

        The square on the diagonal counts once, all else for its mirror image too.
        """
        put, means = self.device.put, self._means[position]
        matrix = self._less_means_there(position, matrix, rows, columns)
        matrix = (
            matrix - put(means[rows, None]) - put((means[columns] - self._mean(means))[None, :])
        )
        twice = np.full(columns.stop - columns.start, np.sqrt(2.0))
        twice[: rows.stop - rows.start] = 1.0
        down = np.ones(rows.stop - rows.start)
        if self.sample_weights is not None:
            down = self.sample_weights.roots[rows]
            twice = twice * self.sample_weights.roots[columns]
        return self.device.xp.reshape(matrix * put(down[:, None]) * put(twice[None, :]), (-1,))

    def _inner_there(self, matrix: Any) -> FloatArray:
        """Return every ⟨K_i, S⟩ of a symmetric S on the device."""
        there, xp, weights = self._kernels_there(), self.device.xp, self.sample_weights
        if weights is not None:
            roots = self.device.put(weights.roots)
            matrix = matrix * roots[:, None] * roots[None, :]
        total = self.device.zeros((self.n_kernels,))
        for rows, columns in self._strips():
            height = rows.stop - rows.start
            # The square on the diagonal counts once, all else for its mirror image too.
            part = 2.0 * matrix[rows, columns]
            part[:, :height] = matrix[rows, rows]
            for i, found in there.strips(rows, columns):
                total[i] += xp.sum(self._less_means_there(i, found, rows, columns) * part)
        row_sums = as_host(xp.sum(matrix, axis=1))
        centering = centering_of_inner(self._means, row_sums, weights)
        return np.asarray(self.scales * (as_host(total) + centering))
