"""Optional compiled loops over tiles, which release the global interpreter lock.

``hatch_build.py`` compiles the C sources in this folder when the package is installed. Without a
compiler, NumPy computes the same results more slowly; tests compare the loops with NumPy.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discernel.arrays.lapack import capsule_address
from discernel.arrays.rows import FloatArray

#: Environment variable; the value 0 disables the compiled loops.
SWITCH = "DISCERNEL_COMPILED"
#: The compiled library, whose suffix is not that of a Python module, and its sources.
LIBRARY, SOURCES = "loops.compiled", ("loops.c", "passes.h", "rows.h")
#: Operations of a step, as in ``loops.c``.
EXP, ROOT_EXP, POWER, SQUARE, KEEP, TIMES, ADD, ADD_CONSTANT = range(8)
#: What a pairwise matrix is of two arrays: their product; distances by such a product, at least 0
#: and 0 on the diagonal; squared differences of one column; sums of absolute differences; distances
#: by a product of rows that are not the same, with no diagonal; a stored matrix.
PRODUCT, DISTANCES, DIFFERENCES, ABSOLUTE, BETWEEN, STORED = range(6)
#: The most pairwise matrices of a group, the place of what the group before has made, and entries
#: of a tile that is computed at a time.
MOST_BASES, PREVIOUS, _BLOCK_ENTRIES = 15, 15, 256 * 256

Integers = NDArray[np.int64]
#: Types of NumPy's arrays, as the names of compiled functions have them.
_NAMES = {np.dtype(np.float64): "double", np.dtype(np.float32): "float"}
#: And as BLAS has their products.
_GEMM = {np.dtype(np.float64): "dgemm", np.dtype(np.float32): "sgemm"}


def digest(folder: Path) -> str:
    """Return a hash of the sources in a folder."""
    content = b"".join((folder / name).read_bytes() for name in SOURCES)
    return hashlib.sha256(content).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Steps:
    """A sequence of elementwise operations on the pairwise matrices of a group.

    Attributes
    ----------
    steps : ndarray of shape (n_steps, 3)
        Operations, the places of the pairwise matrices that they are of, and their n.
    numbers : ndarray of shape (n_steps, 2)
        Their a and b.
    """

    steps: Integers
    numbers: FloatArray


@dataclass(frozen=True, eq=False)
class Factors:
    """Two arrays that a pairwise matrix is computed of, one row for each row of the data.

    With a matrix, C-contiguous: that matrix, after some columns of its rows changed. ``left`` then
    has their old and new values side by side, and ``right`` is transposed.
    """

    kind: int
    left: FloatArray
    right: FloatArray
    matrix: FloatArray | None = None

    @classmethod
    def stored(cls, matrix: FloatArray) -> Factors:
        """Return the factors of a known matrix."""
        none = np.empty((len(matrix), 0))
        return cls(STORED, none, none.T, np.ascontiguousarray(matrix))

    @classmethod
    def changed(
        cls, kind: int, old: FloatArray, new: FloatArray, other: FloatArray, matrix: FloatArray
    ) -> Factors:
        """Return the factors of a matrix after columns of its rows changed; a sum over columns."""
        left = np.ascontiguousarray(np.concatenate([old, new], axis=1))
        return cls(kind, left, np.ascontiguousarray(other.T), np.ascontiguousarray(matrix))

    @property
    def numbers(self) -> tuple[int, ...]:
        """What compiled loops get of them: see ``Base`` in ``loops.c``."""
        arrays = self.left.ctypes.data, self.right.ctypes.data
        if self.matrix is None:
            return self.kind, self.left.shape[1], *arrays, 0, 0
        return self.kind, len(self.right), *arrays, self.matrix.ctypes.data, self.matrix.shape[1]

    def to(self, other: Factors) -> Factors | None:
        """Return what a matrix between these rows and others is computed of; None if unknown."""
        if self.kind != other.kind:
            return None
        kind = BETWEEN if self.kind == DISTANCES else self.kind
        return Factors(kind, self.left, other.right)


class _Sum(ctypes.Structure):
    _fields_ = (
        ("gemm", ctypes.c_void_p),
        ("n_groups", ctypes.c_int64),
        ("most_bases", ctypes.c_int64),
        ("groups", ctypes.c_void_p),
        ("bases", ctypes.c_void_p),
        ("steps", ctypes.c_void_p),
        ("numbers", ctypes.c_void_p),
    )


class SumOfKernels:
    """Σ f_i k_i between all rows, as compiled loops take it.

    Parameters
    ----------
    loops : Loops
        The compiled loops.
    groups : sequence of (Steps, list of Factors)
        What is added up, or wanted by itself. All arrays are of one precision. A group without
        `Factors` has those of the group before.
    """

    def __init__(self, loops: Loops, groups: Sequence[tuple[Steps, list[Factors]]]) -> None:
        bases = [base for _, found in groups for base in found]
        self.dtype = bases[0].left.dtype
        self._loops = loops
        sizes = [(len(found), len(steps.steps)) for steps, found in groups]
        rows = [base.numbers for base in bases]
        # Keep references to arrays whose addresses are passed to C.
        self._kept = (
            np.array(sizes, dtype=np.int64),
            np.array(rows, dtype=np.int64),
            np.concatenate([steps.steps for steps, _ in groups]),
            np.concatenate([steps.numbers for steps, _ in groups]).astype(self.dtype),
            bases,
        )
        addresses = [array.ctypes.data for array in self._kept[:4]]
        most, gemm = max(n for n, _ in sizes), loops.gemm[self.dtype]
        #: Entries of the tiles that a call holds in memory.
        self.n_entries = (most + 1) * _BLOCK_ENTRIES
        self._sum = _Sum(gemm, len(groups), most, *addresses)

    def add_products(
        self,
        tiles: Integers,
        vectors: FloatArray,
        out: FloatArray,
        places: Integers | None = None,
    ) -> None:
        """Add tiles times vectors, of the precision of the rows, to ``out``, of double precision.

        Parameters
        ----------
        tiles : ndarray of shape (n_tiles, 4)
            First row, end of the rows, first column and end of the columns of every tile. Those
            that do not begin on the diagonal count for their mirror images too.
        vectors : ndarray of shape (n_samples, n_vectors)
            The vectors.
        out : ndarray of shape (n_results, n_samples, n_vectors)
            The results.
        places : ndarray of shape (n_groups,), optional
            The results of groups by themselves; by default there is one, of their sum.
        """
        call = self._loops.add_products[self.dtype]
        where = None if places is None else places.ctypes.data
        arrays = vectors.ctypes.data, out.ctypes.data, where
        n, q = vectors.shape
        _check_memory(call(self._sum, len(tiles), tiles.ctypes.data, q, *arrays, n))

    def write_between(self, rows: slice, columns: slice, out: FloatArray) -> FloatArray:
        """Write the sum between some rows and others, of double precision, to ``out``.

        The factors are those of `Factors.to`; rows of ``out`` are contiguous. Returns the sum of
        all entries, which is not finite if one of them is not.
        """
        tile = np.array([rows.start, rows.stop, columns.start, columns.stop], dtype=np.int64)
        stride, total = out.strides[0] // out.itemsize, np.zeros(1)
        arrays = tile.ctypes.data, out.ctypes.data, stride, total.ctypes.data
        _check_memory(self._loops.write_between(self._sum, *arrays))
        return total

    def add_compressed(
        self, tiles: Integers, basis: FloatArray, out: FloatArray, places: Integers
    ) -> None:
        """Add halves of SᵀGS of every group to its place in ``out``, in double precision.

        Such a half and its transpose are SᵀGS.

        Parameters
        ----------
        tiles, places
            As in `add_products`.
        basis : ndarray of shape (n_samples, n_columns)
            S.
        out : ndarray of shape (n_results, n_columns, n_columns)
            The results.
        """
        arrays = basis.ctypes.data, out.ctypes.data, places.ctypes.data
        call, q = self._loops.add_compressed, basis.shape[1]
        _check_memory(call(self._sum, len(tiles), tiles.ctypes.data, q, *arrays))

    def write(
        self,
        tiles: Integers,
        means: FloatArray,
        across: FloatArray,
        roots: FloatArray,
        out: FloatArray,
    ) -> None:
        """Write (S_ij − means_i − across_j) roots_i roots_j of tiles and their mirror images.

        Sums are of double precision, ``out`` of any, and C-contiguous.
        """
        arrays = [array.ctypes.data for array in (means, across, roots)]
        single = int(out.dtype == np.float32)
        where = len(out), out.ctypes.data, single
        failed = self._loops.write_sums(self._sum, len(tiles), tiles.ctypes.data, *arrays, *where)
        _check_memory(failed)


def _check_memory(failed: int) -> None:
    if failed:
        raise MemoryError("There is no memory for a tile of a kernel matrix.")


_POINTER, _NUMBER, _FLAG = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
_TILES = (ctypes.POINTER(_Sum), _NUMBER, _POINTER)
#: The types of results and parameters of the compiled functions.
_PRODUCTS = ctypes.CFUNCTYPE(_FLAG, *_TILES, _NUMBER, *[_POINTER] * 3, _NUMBER)
_COMPRESSING = ctypes.CFUNCTYPE(_FLAG, *_TILES, _NUMBER, *[_POINTER] * 3)
_WRITING = ctypes.CFUNCTYPE(_FLAG, *_TILES, *[_POINTER] * 3, _NUMBER, _POINTER, _FLAG)
_BETWEEN = ctypes.CFUNCTYPE(_FLAG, ctypes.POINTER(_Sum), *[_POINTER] * 2, _NUMBER, _POINTER)
_EVALUATING = ctypes.CFUNCTYPE(
    None, *[_POINTER] * 2, *[_NUMBER] * 2, *[_POINTER] * 2, *[_NUMBER] * 2, _FLAG, _POINTER
)  # fmt: skip
_CITY = ctypes.CFUNCTYPE(None, *[_POINTER] * 2, *[_NUMBER] * 3, _POINTER, _NUMBER)
_SOURCE = ctypes.CFUNCTYPE(ctypes.c_char_p)


class Loops:
    """The compiled library, by the precision of numbers."""

    def __init__(self, path: Path) -> None:
        from scipy.linalg import cython_blas

        library, names = ctypes.CDLL(str(path)), _NAMES.items()
        self.source = _SOURCE(("source", library))().decode()
        self.add_products = {t: _PRODUCTS((f"add_products_{name}", library)) for t, name in names}
        self.add_compressed = _COMPRESSING(("add_compressed", library))
        self.write_sums = _WRITING(("write_sums", library))
        self.write_between = _BETWEEN(("write_between", library))
        self._evaluate = {t: _EVALUATING((f"evaluate_{name}", library)) for t, name in names}
        self._city = _CITY(("city_double", library))
        gemm = cython_blas.__pyx_capi__
        self.gemm = {t: capsule_address(gemm[name]) for t, name in _GEMM.items()}

    def evaluate(
        self, steps: Steps, bases: Sequence[FloatArray], out: FloatArray, *, add: bool = False
    ) -> None:
        """Write to ``out``, or add to it, what steps make of pairwise matrices of its type.

        ``out`` is C-contiguous, and may be one of the matrices, whose rows are contiguous.
        """
        height, width = out.shape
        places = np.array([base.ctypes.data for base in bases], dtype=np.int64)
        strides = np.array([base.strides[0] // base.itemsize for base in bases], dtype=np.int64)
        numbers = np.ascontiguousarray(steps.numbers, dtype=out.dtype)
        self._evaluate[out.dtype](
            places.ctypes.data,
            strides.ctypes.data,
            len(bases),
            len(steps.steps),
            steps.steps.ctypes.data,
            numbers.ctypes.data,
            height,
            width,
            int(add),
            out.ctypes.data,
        )

    def city_distances(self, X: FloatArray, Z: FloatArray, out: FloatArray) -> None:
        """Write ‖x − z‖₁ of rows of double precision to ``out``, whose rows are contiguous.

        X and Z are C-contiguous.
        """
        sizes = X.shape[1], len(X), len(Z)
        to = out.ctypes.data, out.strides[0] // out.itemsize
        self._city(X.ctypes.data, Z.ctypes.data, *sizes, *to)


@lru_cache(maxsize=1)
def compiled_loops() -> Loops | None:
    """Return the compiled loops; None if they are missing, disabled or of another version."""
    folder = Path(__file__).parent
    if os.environ.get(SWITCH) == "0" or not (folder / LIBRARY).exists():
        return None
    try:
        loops = Loops(folder / LIBRARY)
    except (OSError, AttributeError, KeyError):  # for another machine, or of another SciPy
        return None
    return loops if loops.source == digest(folder) else None
