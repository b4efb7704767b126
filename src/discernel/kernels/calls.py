"""Rows of any array library, of one dimension, or sparse: what kernels do with each of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

import numpy as np

from discernel.arrays import as_host, as_rows, check_given, device_errors, device_of, is_sparse
from discernel.exceptions import InvalidInputError

__all__ = ["any_array", "any_rows", "refuse_sparse"]

Method = TypeVar("Method", bound=Callable[..., Any])

#: What is no array of another library. One look at types is next to free.
_HERE = frozenset({np.ndarray, type(None), dict, str, int})


def any_array(method: Method) -> Method:
    """Return a method of kernels that takes arrays of other libraries too.

    What it returns is then an array of the library and device of its rows. Kernel matrices are
    computed there as far as kernels can be; all else, of the size of the rows, by NumPy.

    Parameters
    ----------
    method : callable
        The method, which is given NumPy's arrays only.
    """

    @wraps(method)
    def dispatched(self: Any, *given: Any, **named: Any) -> Any:
        if not named and _HERE.issuperset(map(type, given)):
            return method(self, *given, **named)
        device = check_given(*given, *named.values())
        if device is None:
            return method(self, *given, **named)
        bound = signature(method).bind(self, *given, **named)
        here = _on_host(bound.args)
        by_name = dict(zip(bound.kwargs, _on_host(bound.kwargs.values()), strict=True))
        with device_errors(device, smaller="Take fewer rows at a time"):
            if method.__name__ == "__call__" and not device.is_host:
                from discernel.kernels.device.matrix import device_matrix  # kernels on devices

                X, Z = (*here[1:], None)[:2]
                found = device_matrix(self, X, Z, device)
                if found is not None:
                    return found
            return device.returned(method(*here, **by_name))

    return cast(Method, dispatched)


def _on_host(given: Any) -> list[Any]:
    """Return arrays as those of NumPy; one that is given twice stays one."""
    brought: dict[int, Any] = {}
    for each in given:
        if id(each) not in brought:
            brought[id(each)] = each if device_of(each) is None else as_host(each)
    return [brought[id(each)] for each in given]


def refuse_sparse(kernel: Any, X: Any) -> None:
    """Raise a clear error if X is sparse and the kernel needs dense rows.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : array-like of shape (n_rows, n_features)
        Rows.
    """
    if is_sparse(X) and not kernel.takes_sparse:
        raise InvalidInputError(
            f"{kernel.name} needs dense rows. Got a sparse matrix of numbers; write X.toarray()."
        )


def any_rows(method: Method) -> Method:
    """Return a method that takes rows of any library, and refuses those that are none.

    That is, rows of one dimension, and sparse ones if need be. Two rows of one dimension each give
    a number: this is how scikit-learn calls its kernels.

    Parameters
    ----------
    method : callable
        A method of kernels whose first argument is rows, which is given NumPy's arrays only.
    """
    anywhere = any_array(method)

    @wraps(method)
    def checked(self: Any, *given: Any, **named: Any) -> Any:
        X = given[0] if given else None
        if type(X) is np.ndarray and X.ndim == 2:
            return anywhere(self, *given, **named)
        refuse_sparse(self, X)
        if getattr(X, "ndim", 2) == 1 and not self.precomputed:
            pair = (*given, *named.values())
            is_call = method.__name__ == "__call__" and len(pair) == 2
            if is_call and all(_is_row(self, x) for x in pair):
                return float(anywhere(self, *map(_as_matrix, pair))[0, 0])
            if not self.takes_any_rows:
                as_rows(X)  # which says what is wrong
        return anywhere(self, *given, **named)

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
