"""Functions of SciPy's BLAS and LAPACK that let other threads of Python run.

SciPy's own wrappers keep the global interpreter lock while they compute, so that of five folds in
five threads one is factored at a time: on 16 cores, 1.6 were busy while the default chose its
kernels. SciPy also passes the addresses of these functions on, for Cython; ctypes calls them
without the lock. Matrices are Fortran-ordered, of double or single precision, and overwritten.
"""

from __future__ import annotations

import ctypes
import re
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
    known = cython_blas.__pyx_capi__ if name[1:] == "trmm" else cython_lapack.__pyx_capi__
    signature = capsule_name(known[name])
    # An integer of a BLAS for more than 2³¹ numbers has a name of its own.
    integer = ctypes.c_int if re.search(r"\bint \*", signature) else ctypes.c_int64
    parameters = [ctypes.c_void_p] * (signature.count(",") + 1)
    return ctypes.CFUNCTYPE(None, *parameters)(capsule_address(known[name])), integer


def _call(name: str, like: Matrix, *given: Any, info: bool = True) -> int:
    """Call the function of the precision of a matrix, by pointers to letters, numbers and arrays.

    Returns what LAPACK says of its success, 0 if all is well.
    """
    letter, number = _TYPES[like.dtype]
    function, integer = _function(letter + name)
    said, pointers = integer(0), list[Any]()
    for one in given:
        if isinstance(one, np.ndarray):
            pointers.append(one.ctypes.data)
        elif isinstance(one, int):
            pointers.append(ctypes.byref(integer(one)))
        else:
            pointers.append(one if isinstance(one, bytes) else ctypes.byref(number(one)))
    function(*pointers, *([ctypes.byref(said)] if info else []))
    return int(said.value)


def _rows(matrix: Matrix) -> int:
    return max(1, len(matrix))  # from one column to the next


def potrf(matrix: Matrix) -> int:
    """Write L of LLᵀ = A to the lower triangle; the row where it breaks down is returned, or 0."""
    return _call("potrf", matrix, b"L", len(matrix), matrix, _rows(matrix))


def potrs(lower: Matrix, right: Matrix) -> Matrix:
    """Return the inverse of LLᵀ times ``right``, of shape (n_samples,) or (n_samples, n)."""
    found = np.array(right, dtype=lower.dtype, order="F")
    columns = found.size // _rows(lower)
    _call("potrs", lower, b"L", len(lower), columns, lower, _rows(lower), found, _rows(lower))
    return found


def potri(lower: Matrix) -> None:
    """Write the lower triangle of the inverse of LLᵀ to that of L."""
    _call("potri", lower, b"L", len(lower), lower, _rows(lower))


def trtri(lower: Matrix) -> None:
    """Write L⁻¹ to the lower triangle of L."""
    _call("trtri", lower, b"L", b"N", len(lower), lower, _rows(lower))


def lauum(lower: Matrix) -> None:
    """Write the lower triangle of LᵀL to that of L."""
    _call("lauum", lower, b"L", len(lower), lower, _rows(lower))


def trmm(
    factor: float, lower: Matrix, right: Matrix, *, turned: bool = False, after: bool = False
) -> Matrix:
    """Return factor·LB, factor·LᵀB if turned, or factor·BL with L ``after`` B."""
    found = np.array(right, dtype=lower.dtype, order="F")
    how = b"R" if after else b"L", b"L", b"T" if turned else b"N", b"N"
    m, n = found.shape
    sizes = (m, n, float(factor), lower, _rows(lower), found, _rows(found))
    _call("trmm", lower, *how, *sizes, info=False)
    return found
