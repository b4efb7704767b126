"""Rows of any array library: kernels know NumPy's, and a room above what to do with others."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

__all__ = ["Elsewhere", "anywhere", "take_anywhere"]

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


def take_anywhere(cls: type) -> None:
    """Let the methods that a class of kernels defines itself take arrays of other libraries."""
    for name in _OF_ROWS:
        method = vars(cls).get(name)
        if isinstance(method, FunctionType):
            setattr(cls, name, anywhere(method, name))
