"""Calls of kernels with arrays of any library, one-dimensional rows or sparse rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import numpy as np

from discernel.arrays import as_host, as_rows, check_given, device_errors, device_of, is_sparse
from discernel.exceptions import InvalidInputError

Method = TypeVar("Method", bound=Callable[..., Any])

#: Types of arguments that are never arrays of another library; a fast test.
_NOT_ON_DEVICE = frozenset({np.ndarray, type(None), dict, str, int})


def any_rows(method: Method) -> Method:
    """Wrap a kernel method written for NumPy so that it takes rows of any array library.

    The result is an array of the library and device of the rows. Kernel matrices are computed on
    that device if possible, everything else by NumPy. One-dimensional rows are refused, and sparse
    rows if the kernel needs dense ones. Two one-dimensional rows give a number, because
    scikit-learn calls kernels this way.
    """
    is_call = method.__name__ == "__call__"

    @wraps(method)
    def dispatched(self: Any, *given: Any, **named: Any) -> Any:
        X = given[0] if given else None
        if not (type(X) is np.ndarray and X.ndim == 2):
            refuse_sparse(self, X)
            if getattr(X, "ndim", 2) == 1 and not self.precomputed:
                pair = (*given, *named.values())
                if is_call and len(pair) == 2 and all(_is_row(self, x) for x in pair):
                    rows = [x.to_numpy() if hasattr(x, "to_numpy") else x for x in pair]
                    return float(dispatched(self, *(x[None, :] for x in rows))[0, 0])
                if not self.takes_any_rows:
                    as_rows(X)  # raises an error
        if not named and _NOT_ON_DEVICE.issuperset(map(type, given)):
            return method(self, *given)
        device = check_given(*given, *named.values())
        if device is None:
            return method(self, *given, **named)
        bound = signature(method).bind(self, *given, **named)
        converted: dict[int, Any] = {}  # X and Z may be the same array
        for name, each in bound.arguments.items():
            if device_of(each) is not None:
                bound.arguments[name] = converted.setdefault(id(each), as_host(each))
        with device_errors(device, smaller="Take fewer rows at a time"):
            if is_call and not device.is_host:
                from discernel.kernels.device import device_matrix  # imports Kernel

                X, Z = (*bound.args[1:], None)[:2]
                found = device_matrix(self, X, Z, device)
                if found is not None:
                    return found
            return device.returned(method(*bound.args, **bound.kwargs))

    return cast(Method, dispatched)


def _is_row(kernel: Any, x: Any) -> bool:
    """Whether a one-dimensional array is a single row, not one cell for each row.

    If a kernel takes rows of any type, only an array of floats is a single row.
    """
    if getattr(x, "ndim", 2) != 1:
        return False
    return not kernel.takes_any_rows or getattr(x.dtype, "kind", "f") == "f"


def refuse_sparse(kernel: Any, X: Any) -> None:
    """Raise an error if X is sparse and the kernel needs dense rows."""
    if is_sparse(X) and not kernel.takes_sparse:
        raise InvalidInputError(
            f"{kernel.name} needs dense rows. Got a sparse matrix; use X.toarray()."
        )


def is_whole(value: Any) -> bool:
    """Whether a setting is an integer of at least 1."""
    return isinstance(value, Integral) and value is not True and int(value) >= 1


def is_positive(value: Any) -> bool:
    """Whether a setting is a finite number above 0."""
    return isinstance(value, Real) and 0 < float(value) < np.inf
