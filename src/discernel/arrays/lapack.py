"""Functions of SciPy's BLAS and LAPACK that let other threads of Python run.

SciPy's own wrappers keep the global interpreter lock while they compute, so that of five folds in
five threads one is factored at a time: on 16 cores, 1.6 were busy while the default chose its
kernels. SciPy also passes the addresses of these functions on, for Cython; ctypes calls them
without the lock. Matrices are Fortran-ordered, of double or single precision, and overwritten.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas, cython_lapack

Matrix = NDArray[np.floating[Any]]

#: The first letter of functions, and the type of their numbers.
_TYPES = {
    np.dtype(np.float64): ("d", ctypes.c_double),
    np.dtype(np.float32): ("s", ctypes.c_float),
}
#: Up to so many columns of at least so many rows are solved for one by one: OpenBLAS copies the
#: triangle for several, which took two to four times as long for 800 rows and one to three columns.
_FEW_COLUMNS, _MANY_ROWS = 3, 300


def capsule_name(capsule: Any) -> str:
    """Return the name of a capsule, which for functions of Cython is their signature."""
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
        ("PyCapsule_GetName", ctypes.pythonapi)
    )
    return str(name(capsule).decode())


def capsule_address(capsule: Any) -> int:
    """Return the address of a function of Cython."""
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return int(pointer(capsule, capsule_name(capsule).encode()))


@lru_cache(maxsize=32)
def _function(name: str) -> tuple[Any, Any]:
    """Return a function of BLAS or LAPACK, and the type of its integers."""
    is_blas = name[1:] in ("trmm", "trsv")
    known = cython_blas.__pyx_capi__ if is_blas else cython_lapack.__pyx_capi__
    signature = capsule_name(known[name])
    # An integer of a BLAS for more than 2³¹ numbers has a name of its own.
    integer = ctypes.c_int if re.search(r"\bint \*", signature) else ctypes.c_int64
    parameters = [ctypes.c_void_p] * (signature.count(",") + 1)
    return ctypes.CFUNCTYPE(None, *parameters)(capsule_address(known[name])), integer


def _call(
    name: str,
    letters: bytes,
    sizes: Sequence[int],
    *matrices: Matrix,
    factor: float | None = None,
    info: bool = True,
) -> int:
    """Call the function of the precision of matrices, which are passed with their numbers of rows.

    Returns what LAPACK says of its success, 0 if all is well.
    """
    letter, number = _TYPES[matrices[0].dtype]
    function, integer = _function(letter + name)
    said, pointers = integer(0), list[Any](bytes([one]) for one in letters)
    pointers += [ctypes.byref(integer(size)) for size in sizes]
    pointers += [] if factor is None else [ctypes.byref(number(factor))]
    for matrix in matrices:
        pointers += [matrix.ctypes.data, ctypes.byref(integer(max(1, len(matrix))))]
    function(*pointers, *([ctypes.byref(said)] if info else []))
    return int(said.value)


def overwrite(name: str, lower: Matrix) -> int:
    """Overwrite a lower triangle; return 0, or the row where a factorization breaks down.

    ``"potrf"`` writes L of LLᵀ = A, ``"potri"`` the inverse of LLᵀ, ``"trtri"`` L⁻¹, and
    ``"lauum"`` LᵀL.
    """
    return _call(name, b"LN" if name == "trtri" else b"L", [len(lower)], lower)


def potrs(lower: Matrix, right: Matrix) -> Matrix:
    """Return the inverse of LLᵀ times ``right``, of shape (n_samples,) or (n_samples, n)."""
    found = np.array(right, dtype=lower.dtype, order="F")
    n, n_columns = len(lower), found.size // max(1, len(lower))
    if n < _MANY_ROWS or n_columns > _FEW_COLUMNS:
        _call("potrs", b"L", [n, n_columns], lower, found)
        return found
    for column in found.T.reshape(n_columns, n):
        for letters in (b"LNN", b"LTN"):  # L, then Lᵀ
            _call("trsv", letters, [n], lower, column[None, :], info=False)  # of increment 1
    return found


def trmm(
    factor: float, lower: Matrix, right: Matrix, *, turned: bool = False, after: bool = False
) -> Matrix:
    """Return factor·LB, factor·LᵀB if turned, or factor·BL with L ``after`` B."""
    found = np.array(right, dtype=lower.dtype, order="F")
    letters = (b"R" if after else b"L") + b"L" + (b"T" if turned else b"N") + b"N"
    _call("trmm", letters, found.shape, lower, found, factor=factor, info=False)
    return found
