"""The few array operations that depend on where the arrays live.

NumPy and SciPy today. Everything above this module reaches dense factorisations and pairwise
products only through it, so that another array library needs to be taught here and nowhere else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import joblib
import numpy as np
import scipy.linalg
import scipy.sparse as sp
import threadpoolctl
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances
from sklearn.utils.extmath import safe_sparse_dot
from threadpoolctl import ThreadpoolController

from discernel.deadline import active_deadline, check_deadline, keep_deadline
from discernel.exceptions import InvalidInputError, NumericalError

__all__ = [
    "ROUNDING",
    "SQUARED_ROUNDING",
    "Buffers",
    "Cholesky",
    "FloatArray",
    "ShiftedRows",
    "as_rows",
    "blas_threads",
    "city_distances",
    "draw_rows",
    "fill_masked",
    "free_threads",
    "in_threads",
    "inner",
    "inner_products",
    "larger_tiles",
    "matmul",
    "n_rows",
    "one_blas_thread",
    "orthonormal",
    "pairwise_inner",
    "quadratic_forms",
    "rows_for_threads",
    "self_product",
    "self_product_less",
    "squared_distances",
    "squared_norms",
    "symmetric_eigen",
    "typical_row",
    "weighted_sum",
]

FloatArray: TypeAlias = NDArray[np.float64]
Job = TypeVar("Job")
Part = TypeVar("Part")


def n_rows(X: Any) -> int:
    """Return the number of rows of an array, a sparse matrix or a sequence."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def as_rows(X: Any) -> Any:
    """Return rows as a float64 array or CSR matrix, or raise an error if they have one dimension.

    Integers then cannot overflow. The indices of a sparse matrix are of 32 bits where these are
    enough: scikit-learn's distances take no others.
    """
    if hasattr(X, "tocsr"):
        X = X.tocsr()
        parts = X.data, X.indices, X.indptr
        return sp.csr_matrix(parts, shape=X.shape, dtype=np.float64, copy=True)
    rows = np.asarray(fill_masked(X), dtype=np.float64)
    if rows.ndim < 2:
        raise InvalidInputError(
            f"Rows must be an array of shape (n_rows, n_features). Got shape {rows.shape}. Write "
            "X[None, :] for a single row, X[:, None] for rows of a single feature."
        )
    return rows


def fill_masked(array: Any) -> Any:
    """Return a masked array with NaN, beside other cells than floats None, for what is masked.

    Anything else is returned as it is.
    """
    if not isinstance(array, np.ma.MaskedArray):
        return array
    is_float, cells = array.dtype.kind == "f", np.asarray(array.data)
    if not np.ma.is_masked(array):
        return cells
    filled = cells.astype(cells.dtype if is_float else object)
    filled[np.ma.getmaskarray(array)] = np.nan if is_float else None
    return filled


#: Rows of which an origin and a scale are taken, and the seed with which they are drawn.
_DRAWN_ROWS, _SEED = 64, 0
#: One over the share of the rows that are near neighbours of one: more groups are not seen.
_NEAR_SHARE = 16
#: A row is far out if its squared distance from the origin is above this many times that of near
#: neighbours: rounding is then about 1e-12 of the latter.
_FAR = 1e3
#: Numbers, and squared distances by a product, that differ by less than this share of their terms
#: are the same up to rounding.
ROUNDING, SQUARED_ROUNDING = 1e-15, 1e-12
#: Entries that are computed anew at a time.
_BLOCK_ENTRIES = 2**18


def draw_rows(X: Any, most: int) -> Any:
    """Return at most so many rows of X, in their order: the same ones for the same number of rows.

    Drawn, because every n-th row of data in some periodic order can be of one kind.
    """
    return X if n_rows(X) <= most else X[_drawn(n_rows(X), most)]


@lru_cache(maxsize=64)
def _drawn(n: int, most: int) -> NDArray[np.intp]:
    return np.sort(np.random.default_rng(_SEED).choice(n, most, replace=False, shuffle=False))


def typical_row(X: FloatArray) -> FloatArray:
    """Return the median of every column, of at most 64 rows: few far rows cannot move it.

    It is a number of that column, so that integers less their typical row are integers.
    """
    drawn = draw_rows(X, _DRAWN_ROWS)
    return np.asarray(np.partition(drawn, len(drawn) // 2, axis=0)[len(drawn) // 2])


def _near_distance(X: FloatArray) -> float:
    """Return the squared distance of near neighbours, of at most 64 rows; 0 if those are equal.

    Of near ones and not of any, because rows may come in groups far from each other. Too few rows
    to tell have none: 0, with which all of their distances are computed with care.
    """
    drawn = draw_rows(X, _DRAWN_ROWS)
    rank = len(drawn) // _NEAR_SHARE
    if rank == 0:
        return 0.0
    distances = cdist(drawn, drawn, "sqeuclidean")
    near = np.partition(distances, rank, axis=1)[:, rank]
    near = np.sort(near[near > 0])
    return float(near[len(near) // 4]) if len(near) else 0.0


def squared_distances(X: Any, Z: Any | None = None) -> FloatArray:
    """Return ‖x − z‖² for all rows of X and Z, dense or CSR; exactly 0 on the diagonal of X, X."""
    X, Z = as_rows(X), None if Z is None or Z is X else as_rows(Z)
    if isinstance(X, np.ndarray) and not hasattr(Z, "tocsr"):
        if X.shape[1] == 1:  # exact, with nothing to prepare
            difference = X - (X if Z is None else Z).T
            return np.asarray(np.square(difference, out=difference))
        other = None if Z is None else ShiftedRows.of(Z)
        return ShiftedRows.of(X, other).squared_distances(other)
    return np.asarray(euclidean_distances(X, Z, squared=True), dtype=np.float64)


@dataclass(frozen=True)
class ShiftedRows:
    """Dense rows x − o, each followed by 1 and ‖x − o‖²: all that squared distances need of them.

    ‖x‖² − 2⟨x, z⟩ + ‖z‖² loses the digits that all rows share, so a typical row o is taken off
    first. Two rows that are both far from it still share digits. Where there are such rows, their
    distances are those of the rows as they were given.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_features + 2)
        The rows.
    origin : ndarray of shape (n_features,)
        What was taken off, o; nothing from a single feature, which needs no products.
    limit : float
        The ‖x − o‖² above which a row is far out.
    given : ndarray of shape (n_rows, n_features) or None
        The rows x, where some are far out.
    """

    values: FloatArray
    origin: FloatArray
    limit: float
    given: FloatArray | None

    @classmethod
    def of(cls, X: Any, like: ShiftedRows | None = None) -> ShiftedRows:
        """Return rows less a typical one of them, or less the origin of others."""
        X = as_rows(X)
        if like is not None:
            origin, limit = like.origin, like.limit
        elif X.shape[1] == 1:
            origin, limit = np.zeros(1), np.inf
        else:
            origin, limit = typical_row(X), _FAR * _near_distance(X)
        values = np.empty((X.shape[0], X.shape[1] + 2))
        shifted = np.subtract(X, origin, out=values[:, :-2])
        values[:, -2] = 1.0
        norms = np.einsum("ij,ij->i", shifted, shifted, out=values[:, -1])
        return cls(values, origin, limit, X if (norms > limit).any() else None)

    def __getitem__(self, rows: slice) -> ShiftedRows:
        given = None if self.given is None else self.given[rows]
        return ShiftedRows(self.values[rows], self.origin, self.limit, given)

    def single(self) -> ShiftedRows:
        """Return the same rows, of single precision."""
        values: Any = self.values.astype(np.float32)
        return ShiftedRows(values, self.origin, self.limit, self.given)

    def squared_distances(
        self, other: ShiftedRows | None = None, out: FloatArray | None = None
    ) -> FloatArray:
        """Return ‖x − z‖² between these rows and others of the same origin, by one product.

        ‖x‖² − 2⟨x, z⟩ + ‖z‖² = ⟨(−2x, ‖x‖², 1), (z, 1, ‖z‖²)⟩. NumPy's product lets other threads
        run meanwhile; SciPy's does not.
        """
        right = self if other is None else other
        if len(self.origin) == 1:  # exact, and a fifth of the time
            distances = np.subtract(self.values[:, :1], right.values[:, 0], out=out)
            return np.asarray(np.square(distances, out=distances))
        left = np.empty_like(self.values)
        np.multiply(self.values[:, :-2], -2.0, out=left[:, :-2])
        left[:, -2], left[:, -1] = self.values[:, -1], 1.0
        distances = np.matmul(left, right.values.T, out=out)
        np.maximum(distances, 0.0, out=distances)
        if self.given is not None and right.given is not None:
            _write_far(distances, self.given, self._far(), right.given, right._far())
        if other is None:
            np.fill_diagonal(distances, 0.0)
        return np.asarray(distances)

    def rounding(self) -> FloatArray:
        """Return r with which ‖x − z‖² up to r(x) + r(z) may be the rounding of equal rows."""
        rounding = SQUARED_ROUNDING * self.values[:, -1]
        if self.given is not None:
            far = self._far()
            # Far rows are as given: what differs from the origin is rounded to its own size.
            varying = np.where(self.values[far, :-2] != 0, self.given[far], 0.0)
            rounding[far] = squared_norms(ROUNDING * varying)
        return np.asarray(rounding)

    def _far(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.values[:, -1] > self.limit)


def _write_far(
    distances: FloatArray,
    X: FloatArray,
    rows: NDArray[np.intp],
    Z: FloatArray,
    columns: NDArray[np.intp],
) -> None:
    """Write the squared distances between some rows of X and of Z, by differences, in blocks."""
    step = max(1, _BLOCK_ENTRIES // max(1, len(columns)))
    for start in range(0, len(rows) if len(columns) else 0, step):
        block = rows[start : start + step]
        distances[np.ix_(block, columns)] = cdist(X[block], Z[columns], "sqeuclidean")


#: Rows of X and of Z whose distances of the 1-norm are computed at a time: both stay in the cache.
_CITY_ROWS = 256


def city_distances(X: Any, Z: Any | None = None, out: FloatArray | None = None) -> FloatArray:
    """Return ‖x − z‖₁ = Σ |x_l − z_l| for all rows of X and Z, dense or CSR.

    No product gives them: they take 3 times as long as `squared_distances` with 20 columns and 5
    times with 100, half as long again between X and Z: those of X alone are computed once per
    pair. But differences lose no digits, wherever the rows are.

    Parameters
    ----------
    X, Z : array-like or CSR of shape (n_rows, n_features)
        Rows; without Z, those of X on both sides.
    out : ndarray of shape (n_rows_X, n_rows_Z), optional
        Where to write those of dense rows, C-contiguous.
    """
    X, Z = as_rows(X), None if Z is None or Z is X else as_rows(Z)
    if hasattr(X, "tocsr") or hasattr(Z, "tocsr"):
        return np.asarray(manhattan_distances(X, Z), dtype=np.float64)
    X = np.ascontiguousarray(X)
    other = X if Z is None else np.ascontiguousarray(Z)
    out = np.empty((len(X), len(other))) if out is None else out
    if max(out.shape) <= _CITY_ROWS:
        return np.asarray(cdist(X, other, "cityblock", out=out))

    def work(tile: tuple[slice, slice], _: object) -> None:
        # SciPy lets other threads run meanwhile; scikit-learn's DistanceMetric does not.
        rows, columns = tile
        found = cdist(X[rows], other[columns], "cityblock")
        out[rows, columns] = found
        if Z is None and rows != columns:
            out[columns, rows] = found.T

    starts = [range(0, n, _CITY_ROWS) for n in out.shape]
    tiles = [
        (slice(top, top + _CITY_ROWS), slice(left, left + _CITY_ROWS))
        for top in starts[0]
        for left in starts[1]
        if Z is not None or left >= top
    ]
    in_threads(work, tiles, [None] * free_threads(max(out.shape)))
    return out


def inner_products(X: Any, Z: Any | None = None) -> FloatArray:
    """Return ⟨x, z⟩ for all rows of X and Z, dense or CSR."""
    X = as_rows(X)
    other = X if Z is None else as_rows(Z)
    return np.asarray(safe_sparse_dot(X, other.T, dense_output=True), dtype=np.float64)


def squared_norms(X: Any) -> FloatArray:
    """Return ‖x‖² for all rows of X, dense or CSR."""
    X = as_rows(X)
    if isinstance(X, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", X, X), dtype=np.float64)
    return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()


#: Below this size a second thread gains a third at best and, on a busy machine, costs far more.
_ONE_THREAD_BELOW = 2000


@lru_cache(maxsize=1)
def _thread_pools() -> tuple[ThreadpoolController, ThreadpoolController]:
    """Return the BLAS libraries with threads per process, and those with threads per thread.

    An OpenBLAS on OpenMP has a number of threads for each thread that calls it.
    """
    blas = ThreadpoolController().select(user_api="blas")  # looks through all loaded libraries
    own = blas.select(internal_api="openblas").select(threading_layer="openmp")
    others = set(blas.lib_controllers) - set(own.lib_controllers)
    return blas.select(filepath=[library.filepath for library in others]), own


class SharedLimit:
    """One BLAS thread for the whole process, for as long as anybody is inside.

    The number of threads belongs to the process. Were every context to restore what it found, then
    of two that overlap the last would restore the limit of the first, for good. The first to enter
    saves and limits; the last to leave, be it another thread, restores.

    Parameters
    ----------
    pools : callable
        Returns what is limited, a `ThreadpoolController`.
    """

    def __init__(self, pools: Callable[[], Any]) -> None:
        self._pools = pools
        self._lock = threading.Lock()
        self._n_inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                self._limit = self._pools().limit(limits=1)
                _let_others_limit()
            self._n_inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._limit.restore_original_limits()
                _let_others_limit()


def _let_others_limit() -> None:
    """Give up the control that threadpoolctl, from 3.8 on, leaves to the thread that limits.

    It ignores all other threads, while the last to leave may be any.
    """
    give_up = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if give_up is not None:
        give_up()


_ONE_THREAD = SharedLimit(lambda: _thread_pools()[0])


def blas_threads(n_samples: int) -> AbstractContextManager[object]:
    """Return a context in which BLAS uses as many threads as matrices of this size are worth.

    OpenBLAS starts all its threads for a matrix of 100 rows and lets them spin. On an idle
    machine that gains little; on a busy one, small fits were seen to take 100 times longer.
    """
    return one_blas_thread() if n_samples < _ONE_THREAD_BELOW else nullcontext()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Return a context in which BLAS uses one thread, because the threads are those of others.

    Threads may be inside at the same time, and contexts within each other: see `SharedLimit`.
    """
    with _ONE_THREAD, _thread_pools()[1].limit(limits=1):
        yield


#: What a thread is at: inside `in_threads` it starts no others.
_THREAD = threading.local()


def free_threads(n_samples: int) -> int:
    """Return how many threads work on matrices of this size is worth; one within `in_threads`."""
    if n_samples < _ONE_THREAD_BELOW or getattr(_THREAD, "is_busy", False):
        return 1
    return int(joblib.cpu_count())


#: Threads up to which tiles of a core's cache are right.
_FEW_THREADS = 4
#: What is made at a time, for all threads together.
_BLOCK_BYTES = 2**28


def larger_tiles(n_threads: int) -> int:
    """Return how many times larger tiles are to be for so many threads: 1, 2 or 4.

    Python runs in one thread at a time, and changes to the next some 10 µs after each operation on
    a tile: more threads need longer operations. A pass over 10,000 rows and ten kernels took 16
    threads 0.64 s with tiles of 256 × 512, 0.42 s with 512 × 512 and 0.25 s with 512 × 1024, though
    these do not fit into the cache. One thread took 1.4, 1.7 and 2.6 s.
    """
    if n_threads <= _FEW_THREADS:
        return 1
    return 2 if n_threads <= 2 * _FEW_THREADS else 4


def rows_for_threads(row_bytes: int, thread_bytes: int) -> int:
    """Return how many rows are made at a time, so that every thread has enough of them.

    Parameters
    ----------
    row_bytes : int
        What a row takes.
    thread_bytes : int
        What the rows of one thread may take; all together no more than 256 MiB.
    """
    room = min(thread_bytes * max(2, int(joblib.cpu_count())), _BLOCK_BYTES)
    return max(1, room // max(1, row_bytes))


class Buffers:
    """Arrays that one thread uses again and again, instead of fresh ones a tile.

    Parameters
    ----------
    single : bool, default=False
        Whether they are of single precision.
    """

    def __init__(self, single: bool = False) -> None:
        self._arrays: dict[str, FloatArray] = {}
        self._type = np.float32 if single else np.float64

    def __call__(self, name: str, shape: tuple[int, int]) -> FloatArray:
        """Return an array of this shape, the memory of which is that of the name."""
        size = shape[0] * shape[1]
        if name not in self._arrays or self._arrays[name].size < size:
            self._arrays[name] = np.empty(size, self._type)
        return self._arrays[name][:size].reshape(shape)


def in_threads(
    work: Callable[[Job, Part], None], jobs: Iterable[Job], parts: Sequence[Part]
) -> None:
    """Call ``work(job, part)`` for every job, in one thread per part, each BLAS call in one.

    Whatever ends it, be it an error in one of the threads or an interrupt, none of them is left
    behind: each ends with the job that it is at.
    """
    waiting = iter(list(jobs))  # an iterator of a list gives each job to one thread only
    stopped, deadline = threading.Event(), active_deadline()

    def run(part: Part) -> None:
        was_busy, _THREAD.is_busy = getattr(_THREAD, "is_busy", False), True
        try:
            with keep_deadline(deadline):  # a new thread knows of none
                for job in waiting:
                    if stopped.is_set():
                        break
                    check_deadline()
                    work(job, part)
        except BaseException:
            stopped.set()  # at once, not only when the thread that waits gets to know
            raise
        finally:
            _THREAD.is_busy = was_busy

    with one_blas_thread():
        if len(parts) == 1:
            return run(parts[0])
        threads = ThreadPoolExecutor(len(parts))
        try:
            for done in as_completed([threads.submit(run, part) for part in parts]):
                done.result()
        finally:
            stopped.set()
            threads.shutdown(cancel_futures=True)


def quadratic_forms(products: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return every ⟨B, K_iB⟩ from every K_iB, of shape (n_kernels, n_samples, n), and B."""
    return np.asarray(np.einsum("ijk,jk->i", products, vectors))


def pairwise_inner(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return ⟨A_i, B_j⟩ of two stacks of arrays of one shape, of shape (n_left, n_right)."""
    return matmul(left.reshape(len(left), -1), right.reshape(len(right), -1).T)


def weighted_sum(weights: FloatArray, arrays: FloatArray) -> FloatArray:
    """Return Σ w_i A_i of a stack of arrays."""
    return np.asarray(np.tensordot(weights, arrays, axes=1))


def orthonormal(columns: FloatArray, tol: float) -> FloatArray:
    """Return an orthonormal basis of what columns span, but for a share ``tol`` of the largest."""
    norms = np.linalg.norm(columns, axis=0)
    columns = columns[:, norms > 0] / norms[norms > 0]
    left, singular, _ = scipy.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, singular > tol * singular[0]])


def inner(left: FloatArray, right: FloatArray) -> float:
    """Return Σ left·right of two arrays of one shape, without BLAS, for the reason of `matmul`."""
    return float(np.sum(left * right))


def matmul(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return left @ right for float64 matrices, by the same BLAS as the factorisations.

    The wheels of NumPy and SciPy each bring an OpenBLAS with threads of its own, and those of
    the one keep spinning for a while after they are done. Where calls alternate, each library
    waits for the other's threads: on two cores a product of 462 × 462 by 462 × 6 between
    factorisations took 2.4 ms with ``@`` and 0.1 ms with this function.
    """
    check_deadline()
    a, trans_a = (left.T, 1) if left.flags.c_contiguous else (left, 0)
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
        corner[:] = np.tril(corner) + np.tril(corner, -1).T
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
        # a copy; the matrix is symmetric, so it is the same matrix.
        check_deadline(_operations(matrix))
        single, lapack = matrix.dtype == np.float32, scipy.linalg.lapack
        potrf = lapack.spotrf if single else lapack.dpotrf
        self._potrs = lapack.spotrs if single else lapack.dpotrs
        factor, info = potrf(matrix.T, lower=1, clean=1, overwrite_a=1)
        if info != 0:
            raise NumericalError(
                "The regularised kernel matrix must be positive definite, but its Cholesky "
                f"factorisation broke down at row {info} of {len(matrix)}. A kernel is not "
                "positive semidefinite, or the regularization is too small for its rounding "
                "errors: check the kernels or raise the regularization."
            )
        self._lower = factor

    def solve(self, right: NDArray[np.floating[Any]]) -> FloatArray:
        """Return the inverse times ``right``, of shape (n_samples,) or (n_samples, n)."""
        check_deadline()
        solution, _ = self._potrs(self._lower, right, lower=1)
        return np.asarray(solution, dtype=np.float64)

    def half_solve(self, right: FloatArray) -> FloatArray:
        """Return L⁻¹ times ``right`` of a matrix LLᵀ of double precision."""
        check_deadline(float(len(self._lower) * right.size))
        return np.asarray(scipy.linalg.blas.dtrsm(1.0, self._lower, right, lower=1))

    @property
    def least_pivot(self) -> float:
        """The least of the pivots L_ii² of a matrix LLᵀ, which is 0 if its rank is not full."""
        return float(np.diagonal(self._lower).min()) ** 2

    def log_determinant(self) -> float:
        """Return the logarithm of the determinant."""
        return 2.0 * float(np.log(np.diagonal(self._lower)).sum(dtype=np.float64))

    def inverse(self) -> FloatArray:
        """Return the inverse, symmetric, in the memory of the factor, which is lost.

        About the price of two factorisations.
        """
        check_deadline(2.0 * _operations(self._lower))
        inverse, _ = scipy.linalg.lapack.dpotri(self._lower, lower=1, overwrite_c=1)
        return _mirror(inverse)

    def inverse_diagonal(self) -> FloatArray:
        """Return the diagonal of the inverse, for the price of the factorisation; this is lost."""
        check_deadline(_operations(self._lower))
        inverse = _triangular_inverse(self._lower)
        return np.asarray(np.einsum("ij,ij->j", inverse, inverse))


def _operations(matrix: NDArray[np.floating[Any]]) -> float:
    """Return the operations of a factorisation."""
    return len(matrix) ** 3 / 3.0


#: Up to so many rows, eigenvectors are found on one thread: on two busy cores 1,000 rows took 0.2 s
#: on one, and from 1 to 8 s on both, which wait for each other at every row.
_EIGEN_ALONE = 1500
#: What eigenvectors take, in factorisations of the same matrix.
_EIGEN_FACTORISATIONS = 12.0


def symmetric_eigen(matrix: FloatArray, driver: str | None = None) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of a symmetric matrix, rising, and its eigenvectors.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        **Overwritten**.
    driver : str, optional
        As of `scipy.linalg.eigh`.
    """
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
    single, lapack, blas = lower.dtype == np.float32, scipy.linalg.lapack, scipy.linalg.blas
    if n <= _SMALL_TRIANGLE or n >= _LARGE_TRIANGLE:
        trtri = lapack.strtri if single else lapack.dtrtri
        return np.asarray(trtri(lower, lower=1, overwrite_c=1)[0])
    trmm = blas.strmm if single else blas.dtrmm
    half = n // 2
    inverse = np.zeros((n, n), order="F", dtype=lower.dtype)
    inverse[:half, :half] = first = _triangular_inverse(np.asfortranarray(lower[:half, :half]))
    inverse[half:, half:] = second = _triangular_inverse(np.asfortranarray(lower[half:, half:]))
    corner = trmm(-1.0, second, np.asfortranarray(lower[half:, :half]), lower=1)
    inverse[half:, :half] = trmm(1.0, first, corner, side=1, lower=1)
    return inverse
