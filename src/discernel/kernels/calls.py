"""Rows of any array library, of one dimension, or sparse: what kernels do with each of them."""

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

#: What is no array of another library. One look at types is next to free.
_HERE = frozenset({np.ndarray, type(None), dict, str, int})


def any_rows(method: Method) -> Method:
    """Return a method of kernels, written for NumPy, that takes rows of any library.

    What it returns is then an array of the library and device of its rows. Kernel matrices are
    computed there as far as kernels can be; all else, of the size of the rows, by NumPy. Rows of
    one dimension, and sparse ones if need be, are refused. Two rows of one dimension each give a
    number: this is how scikit-learn calls its kernels.
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
                    as_rows(X)  # which says what is wrong
        if not named and _HERE.issuperset(map(type, given)):
            return method(self, *given)
        device = check_given(*given, *named.values())
        if device is None:
            return method(self, *given, **named)
        bound = signature(method).bind(self, *given, **named)
        brought: dict[int, Any] = {}  # an array that is given twice stays one
        for name, each in bound.arguments.items():
            if device_of(each) is not None:
                bound.arguments[name] = brought.setdefault(id(each), as_host(each))
        with device_errors(device, smaller="Take fewer rows at a time"):
            if is_call and not device.is_host:
                from discernel.kernels.device import device_matrix  # which imports kernels

                X, Z = (*bound.args[1:], None)[:2]
                found = device_matrix(self, X, Z, device)
                if found is not None:
                    return found
            return device.returned(method(*bound.args, **bound.kwargs))

    return cast(Method, dispatched)


def _is_row(kernel: Any, x: Any) -> bool:
    """Whether an array of one dimension is a row.

    To kernels that take any rows, only one of floats is; others are one cell per row.
    """
    if getattr(x, "ndim", 2) != 1:
        return False
    return not kernel.takes_any_rows or getattr(x.dtype, "kind", "f") == "f"


def refuse_sparse(kernel: Any, X: Any) -> None:
    """Raise a clear error if X is sparse and the kernel needs dense rows."""
    if is_sparse(X) and not kernel.takes_sparse:
        raise InvalidInputError(
            f"{kernel.name} needs dense rows. Got a sparse matrix of numbers; write X.toarray()."
        )


def is_whole(value: Any) -> bool:
    """Whether a setting is an integer of at least 1."""
    return isinstance(value, Integral) and value is not True and int(value) >= 1


def is_positive(value: Any) -> bool:
    """Whether a setting is a finite number above 0."""
    return isinstance(value, Real) and 0 < float(value) < np.inf
