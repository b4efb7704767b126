"""Dense linear algebra: products, eigenvectors, Cholesky factorisations on host and device."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discernel.arrays.device import Device, as_host
from discernel.arrays.lapack import overwrite, potrs, trmm
from discernel.arrays.machine import blas_threads, free_threads, in_threads, one_blas_thread
from discernel.arrays.rows import FloatArray
from discernel.exceptions import NumericalError
from discernel.progress.deadline import check_deadline


def quadratic_forms(products: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return every ⟨B, K_iB⟩ from every K_iB, of shape (n_kernels, n_samples, n), and B."""
    return np.asarray(np.einsum("ijk,jk->i", products, vectors))


def weighted_sum(weights: FloatArray, arrays: FloatArray) -> FloatArray:
    """Return Σ w_i A_i of a stack of arrays."""
    return np.asarray(np.tensordot(weights, arrays, axes=1))


def orthonormal(columns: FloatArray, tol: float) -> FloatArray:
    """Return an orthonormal basis of what columns span, but for a share ``tol`` of the largest.

    Of 10,000 × 72 numbers one thread finds it in 0.02 s, 16 threads in 0.18 s.
    """
    norms = np.linalg.norm(columns, axis=0)
    columns = columns[:, norms > 0] / norms[norms > 0]
    with blas_threads(columns.shape[1]):
        return np.asarray(scipy.linalg.orth(columns, rcond=tol))


def inner(left: FloatArray, right: FloatArray) -> float:
    """Return Σ left·right of two arrays of one shape, without BLAS, for the reason of `matmul`."""
    return float(np.sum(left * right))


def matmul(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return left @ right for float64 matrices, by the same BLAS as the factorisations.

    The wheels of NumPy and SciPy each bring an OpenBLAS with threads of its own, and those of
    the one keep spinning for a while after they are done. Where calls alternate, each library
    waits for the other's threads: on two cores a product of 462 × 462 by 462 × 6 between
    factorisations took 2.4 ms with ``@`` and 0.1 ms with this function. A single column is not
    copied into blocks first, which takes half of the time or less.
    """
    check_deadline()
    a, trans_a = (left.T, 1) if left.flags.c_contiguous else (left, 0)
    if right.shape[1] == 1 and left.size:
        column = scipy.linalg.blas.dgemv(1.0, a, right[:, 0], trans=trans_a)
        return np.asarray(column[:, None], dtype=np.float64)
    b, trans_b = (right.T, 1) if right.flags.c_contiguous else (right, 0)
    product = scipy.linalg.blas.dgemm(1.0, a, b, trans_a=trans_a, trans_b=trans_b)
    return np.asarray(product, dtype=np.float64)


def self_product(matrix: FloatArray) -> FloatArray:
    """Return AAᵀ, symmetric, with one triangle computed and mirrored."""
    check_deadline()
    return _mirror(scipy.linalg.blas.dsyrk(1.0, matrix, lower=1))


def self_product_less(
    matrix: FloatArray, left: FloatArray, right: FloatArray, scale: float
) -> FloatArray:
    """Return scale·(AAᵀ − ½(LRᵀ + RLᵀ)), symmetric, with one triangle computed and mirrored."""
    check_deadline()
    lower = scipy.linalg.blas.dsyrk(scale, matrix, lower=1)
    lower = scipy.linalg.blas.dsyr2k(
        -0.5 * scale, left, right, beta=1.0, c=lower, lower=1, overwrite_c=1
    )
    return _mirror(lower)


#: Rows and columns of the tiles that are mirrored: a tile and its image fit the cache.
_TILE = 128
#: What is above the diagonal of a tile.
_ABOVE = np.triu(np.ones((_TILE, _TILE), dtype=bool), 1)


def _mirror(matrix: FloatArray) -> FloatArray:
    """Copy the lower triangle to the upper one, in place, and return the matrix, C-ordered.

    Tile by tile: ``lower + lower.T`` reads one of them against the grain of the memory, which at
    3,000 rows takes as long as their Cholesky factorisation.
    """
    for top in range(0, len(matrix), _TILE):
        rows = slice(top, top + _TILE)
        for left in range(0, top, _TILE):
            columns = slice(left, left + _TILE)
            matrix[columns, rows] = matrix[rows, columns].T
        corner = matrix[rows, rows]
        n = len(corner)
        corner[_ABOVE[:n, :n]] = corner.T[_ABOVE[:n, :n]]
    return matrix.T if matrix.flags.f_contiguous else matrix


class Cholesky:
    """A symmetric positive definite matrix, factored once and in place.

    Parameters
    ----------
    matrix : ndarray of shape (n_samples, n_samples)
        C-contiguous, of double or single precision; **overwritten** by its factor.

    Raises
    ------
    NumericalError
        If the matrix is not positive definite in floating point.
    """

    def __init__(self, matrix: NDArray[np.floating[Any]]) -> None:
        # The transpose of a C-ordered array is Fortran-ordered, which LAPACK overwrites without
        # a copy; the matrix is symmetric, so it is the same matrix. What is above the diagonal
        # stays: to write zeros there, column by column of a row, took SciPy 0.19 s of the 0.86 s of
        # 10,000 rows on 16 cores.
        check_deadline(_operations(matrix))
        lower = np.asfortranarray(matrix if matrix.flags.f_contiguous else matrix.T)
        failed = overwrite("potrf", lower)
        if failed:
            raise _not_definite(f"at row {failed} of {len(matrix)}")
        self._lower, self._is_inverse = lower, False
        self._inverse: FloatArray | None = None

    def solve(self, right: NDArray[np.floating[Any]]) -> FloatArray:
        """Return the inverse times ``right``, of shape (n_samples,) or (n_samples, n).

        Of the precision of the matrix.
        """
        check_deadline()
        if self._is_inverse:
            half = trmm(1.0, self._lower, right.reshape(len(right), -1))
            half = trmm(1.0, self._lower, half, turned=True)
            return np.asarray(half.reshape(right.shape))
        return np.asarray(potrs(self._lower, right))

    def half_solve(self, right: FloatArray) -> FloatArray:
        """Return L⁻¹ times ``right`` of a matrix LLᵀ of double precision."""
        check_deadline(float(len(self._lower) * right.size))
        return np.asarray(scipy.linalg.blas.dtrsm(1.0, self._lower, right, lower=1))

    @property
    def least_pivot(self) -> float:
        """The least of the pivots L_ii² of a matrix LLᵀ, which is 0 if its rank is not full."""
        return float(np.diagonal(self._lower).min()) ** 2

    def inverse(self) -> FloatArray:
        """Return the inverse, symmetric, mostly in the memory of the factor, which is lost.

        About the price of two factorisations.
        """
        check_deadline(2.0 * _operations(self._lower))
        inverse = self._lower if self._is_inverse else _triangular_inverse(self._lower)
        overwrite("lauum", inverse)  # L⁻ᵀL⁻¹
        return _mirror(inverse)

    @property
    def log_determinant(self) -> float:
        """The logarithm of the determinant."""
        return 2.0 * float(np.log(np.diagonal(self._lower)).sum(dtype=np.float64))

    def inverse_diagonal(self) -> FloatArray:
        """Return the diagonal of the inverse, for the price of the factorisation.

        Of many rows, L⁻¹ takes the memory of L.
        """
        return _squared_columns(self._inverted())

    def inverse_blocks(self, rows: NDArray[np.intp]) -> FloatArray:
        """Return the blocks of the inverse at the rows and columns of groups of the same size.

        Of shape (n_groups, size, size), for ``rows`` of shape (n_groups, size). Of many rows, L⁻¹
        takes the memory of L.
        """
        inverse, size = self._inverted(), rows.shape[1]
        blocks = np.zeros((*rows.shape, size))

        def add(place: int, _: object) -> None:
            _add_block(inverse, rows[place], blocks[place])

        in_threads(add, range(len(rows)), [None] * min(len(rows), free_threads(len(inverse))))
        return blocks

    def _inverted(self) -> FloatArray:
        """Return L⁻¹, with anything above its diagonal, computed once."""
        if self._inverse is None:
            check_deadline(_operations(self._lower))
            self._inverse = _triangular_inverse(self._lower)
            self._is_inverse = np.may_share_memory(self._inverse, self._lower)
        return self._inverse


def _squared_columns(lower: FloatArray) -> FloatArray:
    """Return the sum of squares of each column of a lower triangle, whatever is above it."""
    out = np.empty(len(lower), dtype=lower.dtype)
    for start in range(0, len(lower), _TILE):
        some = slice(start, start + _TILE)
        corner, below = np.tril(lower[some, some]), lower[start + _TILE :, some]
        out[some] = np.einsum("ij,ij->j", corner, corner)
        out[some] += np.einsum("ij,ij->j", below, below)
    return out


#: Entries of a slice of the columns of a group, which shares the cache with its product.
_SLICE = 2**18


def _add_block(lower: FloatArray, columns: NDArray[np.intp], out: FloatArray) -> None:
    """Add MᵀM to ``out``, with M some columns of a lower triangle, whatever is above it.

    A column counts from its diagonal on: of columns in order, slices of the rows see only the
    first ones, and the product takes a third of the operations.
    """
    order = np.argsort(columns)
    columns = columns[order]
    step = max(_TILE, _SLICE // len(columns))
    total = np.zeros_like(out)
    for start in range(int(columns[0]), len(lower), step):
        stop = min(start + step, len(lower))
        n = int(np.searchsorted(columns, stop))
        part = lower[start:stop, columns[:n]]
        part[np.arange(start, stop)[:, None] < columns[:n]] = 0.0
        total[:n, :n] += part.T @ part
    out[np.ix_(order, order)] += total


def pivoted_cholesky(matrix: FloatArray, least: float) -> tuple[NDArray[np.intp], FloatArray]:
    """Return pivots, and the factor L of LLᵀ = A between them, of a semidefinite matrix.

    The largest pivots first, those above ``least``. L is Fortran-ordered.
    """
    lower, order, rank, _ = scipy.linalg.lapack.dpstrf(matrix, lower=1, tol=least)
    pivots = np.asarray(order[:rank] - 1, dtype=np.intp)
    return pivots, np.asfortranarray(np.tril(lower[:rank, :rank]))


def _not_definite(where: str) -> NumericalError:
    return NumericalError(
        "The regularised kernel matrix must be positive definite, but its Cholesky factorisation "
        f"broke down {where}. A kernel is not positive semidefinite, or the regularization is too "
        "small for its rounding errors: check the kernels or raise the regularization."
    )


def _operations(matrix: NDArray[np.floating[Any]]) -> float:
    """Return the operations of a factorisation."""
    return len(matrix) ** 3 / 3.0


#: Up to so many rows, eigenvectors are found on one thread: on two busy cores 1,000 rows took 0.2 s
#: on one, and from 1 to 8 s on both, which wait for each other at every row.
_EIGEN_ALONE = 1500
#: What eigenvectors take, in factorisations of the same matrix.
_EIGEN_FACTORISATIONS = 12.0


def symmetric_eigen(matrix: FloatArray, driver: str | None = None) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of a symmetric matrix, **overwritten**, rising, and eigenvectors."""
    check_deadline(_EIGEN_FACTORISATIONS * _operations(matrix))
    with one_blas_thread() if len(matrix) <= _EIGEN_ALONE else nullcontext():
        values, vectors = scipy.linalg.eigh(
            matrix, overwrite_a=True, check_finite=False, driver=driver
        )
    return values, vectors


#: Triangles up to the first size LAPACK inverts fast, and from the second on again.
_SMALL_TRIANGLE, _LARGE_TRIANGLE = 128, 1500


def _triangular_inverse(lower: FloatArray) -> FloatArray:
    """Return the inverse of a lower triangle, Fortran-ordered, mostly in its memory.

    By halves, L⁻¹ = [[A⁻¹, 0], [−C⁻¹BA⁻¹, C⁻¹]]: at some hundred rows, where LAPACK's own routine
    takes twice the time of the factorisation, this takes once.
    """
    n = len(lower)
    if n <= _SMALL_TRIANGLE or n >= _LARGE_TRIANGLE:
        overwrite("trtri", lower)
        return lower
    half = n // 2
    inverse = np.zeros((n, n), order="F", dtype=lower.dtype)
    inverse[:half, :half] = first = _triangular_inverse(np.asfortranarray(lower[:half, :half]))
    inverse[half:, half:] = second = _triangular_inverse(np.asfortranarray(lower[half:, half:]))
    corner = trmm(-1.0, second, lower[half:, :half])
    inverse[half:, :half] = trmm(1.0, first, corner, after=True)
    return inverse


#: Rows of the blocks on the diagonal: large enough for products at full speed, small beside the
#: matrix.
_BLOCK = 2048


class DeviceFactor:
    """LLᵀ = A, block column by block column, each by one large product.

    A may be a stack of matrices: all of them are then factored, solved and inverted together.

    Parameters
    ----------
    matrix : array of shape (..., n_samples, n_samples)
        On a device; **overwritten**. Only what is on and below the diagonal is read.
    device : Device
        Where it is.
    coarse : bool, default=False
        Whether a factor of three digits is enough, as it is for a preconditioner: products of
        single precision are then four times as fast.
    block : int, default=2048
        Rows of the blocks on the diagonal.

    Raises
    ------
    NumericalError
        If the matrix is not positive definite in floating point.

    Notes
    -----
    The inverses of the blocks on the diagonal are kept. Solving then is products only.
    """

    def __init__(
        self, matrix: Any, device: Device, *, coarse: bool = False, block: int = _BLOCK
    ) -> None:
        self._device, self._coarse, self.n = device, coarse, int(matrix.shape[-1])
        self._lower: Any = matrix
        self._starts = [(k, min(k + block, self.n)) for k in range(0, self.n, block)]
        self._inverses: list[Any] = []
        with device.coarse_products(coarse):
            for start, stop in self._starts:
                self._factor_column(start, stop)

    def _factor_column(self, start: int, stop: int) -> None:
        A, xp = self._lower, self._device.xp
        if start:
            across = xp.matrix_transpose(A[..., start:stop, :start])
            A[..., start:, start:stop] -= xp.matmul(A[..., start:, :start], across)
        lower = self._device.cholesky(A[..., start:stop, start:stop])
        if lower is None or not math.isfinite(float(xp.sum(xp.linalg.diagonal(lower)))):
            raise _not_definite(f"before row {stop} of {self.n}")
        inverse = self._device.triangular_inverse(lower)
        A[..., start:stop, start:stop] = lower
        if stop < self.n:
            A[..., stop:, start:stop] = xp.matmul(
                A[..., stop:, start:stop], xp.matrix_transpose(inverse)
            )
        self._inverses.append(inverse)

    def solve(self, right: Any) -> Any:
        """Return A⁻¹ times ``right``, an array of the device of shape (..., n_samples, n)."""
        xp, L = self._device.xp, self._lower
        out = xp.asarray(right, copy=True)
        with self._device.coarse_products(self._coarse):
            for (start, stop), inverse in zip(self._starts, self._inverses, strict=True):
                block = out[..., start:stop, :]
                if start:
                    block = block - xp.matmul(L[..., start:stop, :start], out[..., :start, :])
                out[..., start:stop, :] = xp.matmul(inverse, block)
            for (start, stop), inverse in reversed(
                list(zip(self._starts, self._inverses, strict=True))
            ):
                block = out[..., start:stop, :]
                if stop < self.n:
                    below = xp.matrix_transpose(L[..., stop:, start:stop])
                    block = block - xp.matmul(below, out[..., stop:, :])
                out[..., start:stop, :] = xp.matmul(xp.matrix_transpose(inverse), block)
        return out

    @property
    def log_determinant(self) -> float:
        """The logarithm of the determinant."""
        diagonal = as_host(self._device.xp.linalg.diagonal(self._lower))
        return 2.0 * float(np.log(diagonal).sum(dtype=np.float64))

    def inverse_diagonal(self) -> FloatArray:
        """Return the diagonal of the inverse, in the memory of the factor, which is lost.

        diag(A⁻¹)_j = Σ_i (L⁻¹)_ij².
        """
        lower, xp = self._inverted(), self._device.xp
        squares = []
        for start, stop in self._starts:
            column = lower[..., start:, start:stop]
            squares.append(as_host(xp.sum(column * column, axis=-2)))
        return np.concatenate(squares, axis=-1, dtype=np.float64)

    def inverse(self) -> Any:
        """Return A⁻¹ = L⁻ᵀL⁻¹, symmetric, in new memory; the factor is lost."""
        lower, xp = self._inverted(), self._device.xp
        out = xp.empty_like(lower)
        for start, stop in self._starts:
            # L⁻¹ is 0 above the diagonal: only rows from the later of two columns on count.
            own = lower[..., start:, start:stop]
            columns = xp.matmul(xp.matrix_transpose(lower[..., start:, :start]), own)
            out[..., :start, start:stop] = columns
            out[..., start:stop, :start] = xp.matrix_transpose(columns)
            out[..., start:stop, start:stop] = xp.matmul(xp.matrix_transpose(own), own)
        return out

    def _inverted(self) -> Any:
        """Return L⁻¹ in the memory of L; what is above the blocks on the diagonal is not set.

        Block columns from the last to the first, and in each the rows from the last to the first:
        what is overwritten is not needed any more.
        """
        xp, L = self._device.xp, self._lower
        with self._device.coarse_products(self._coarse):
            for column in reversed(range(len(self._starts))):
                start, stop = self._starts[column]
                inverse = self._inverses[column]
                L[..., start:stop, start:stop] = inverse
                for row in reversed(range(column + 1, len(self._starts))):
                    top, bottom = self._starts[row]
                    left = L[..., top:bottom, stop:bottom]
                    product = xp.matmul(left, L[..., stop:bottom, start:stop])
                    L[..., top:bottom, start:stop] = -xp.matmul(product, inverse)
        self._lower = None
        return L
