"""Rows of any array library, of one dimension, or sparse: what kernels do with each of them.

Kernels know NumPy's arrays, and a room above what to do with others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from discernel.arrays import as_rows
from discernel.exceptions import InvalidInputError

__all__ = ["Elsewhere", "anywhere", "refuse_sparse", "take_anywhere"]

Method = TypeVar("Method", bound=Callable[..., Any])

#: Calls a method of a kernel with arrays of other libraries among what it is given. Of its name,
#: the method, the kernel, and the positional and named arguments.
Elsewhere = Callable[[str, Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]

#: The methods that a class of kernels defines, and that are called with rows.
_OF_ROWS = ("__call__", "diagonal", "resolve")

#: What is no array of another library. One look at types is next to free.
_HERE = frozenset({np.ndarray, type(None), dict, str, int})


def anywhere(method: Method, name: str | None = None) -> Method:
    """Return a method of kernels that takes arrays of other libraries too.

    Parameters
    ----------
    method : callable
        The method, which is given NumPy's arrays only.
    name : str, optional
        What it is called in its class; by default its own name.
    """
    called = method.__name__ if name is None else name

    @wraps(method)
    def dispatched(self: Any, *given: Any, **named: Any) -> Any:
        elsewhere = self._elsewhere
        if elsewhere is None or (not named and _HERE.issuperset(map(type, given))):
            return method(self, *given, **named)
        return elsewhere(called, method, self, given, named)

    return cast(Method, dispatched)


def refuse_sparse(kernel: Any, X: Any) -> None:
    """Raise a clear error if X is sparse and the kernel needs dense rows.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : array-like of shape (n_rows, n_features)
        Rows.
    """
    if hasattr(X, "tocsr") and not kernel.takes_sparse:
        raise InvalidInputError(
            f"{kernel.name} needs dense rows. Got a sparse matrix of numbers; write X.toarray()."
        )


def _check_rows(method: Method, name: str) -> Method:
    """Return a method that refuses rows of one dimension, and sparse ones if need be.

    Two rows of one dimension each give a number: this is how scikit-learn calls its kernels.
    """

    @wraps(method)
    def checked(self: Any, *given: Any, **named: Any) -> Any:
        X = given[0] if given else None
        if type(X) is np.ndarray and X.ndim == 2:
            return method(self, *given, **named)
        refuse_sparse(self, X)
        if getattr(X, "ndim", 2) == 1 and not self.precomputed:
            pair = (*given, *named.values())
            if name == "__call__" and len(pair) == 2 and all(_is_row(self, x) for x in pair):
                return float(method(self, *map(_as_matrix, pair))[0, 0])
            if not self.takes_any_rows:
                as_rows(X)  # which says what is wrong
        return method(self, *given, **named)

    return cast(Method, checked)


def _is_row(kernel: Any, x: Any) -> bool:
    """Whether an array of one dimension is a row.

    To kernels that take any rows, only one of floats is; others are one cell per row.
    """
    if getattr(x, "ndim", 2) != 1:
        return False
    return not kernel.takes_any_rows or getattr(x.dtype, "kind", "f") == "f"


def _as_matrix(x: Any) -> Any:
    """Return a row as a matrix of one row."""
    return (x.to_numpy() if hasattr(x, "to_numpy") else x)[None, :]


def take_anywhere(cls: type) -> None:
    """Let the methods that a class of kernels defines itself take rows of every kind."""
    for name in _OF_ROWS:
        method = vars(cls).get(name)
        if isinstance(method, FunctionType):
            setattr(cls, name, _check_rows(anywhere(method, name), name))
