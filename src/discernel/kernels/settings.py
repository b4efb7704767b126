"""The settings of kernels by one name each, as scikit-learn's searches name parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discernel.exceptions import InvalidInputError
from discernel.kernels.base import Kernel
from discernel.kernels.make import as_kernel

__all__ = ["get_settings", "with_settings"]


def get_settings(kernels: Any) -> dict[str, Any]:
    """Return the settings of a kernel, or of the kernels of a list or dictionary, by name.

    Parameters
    ----------
    kernels : kernel, list of kernels or dict of names to kernels
        As a user gives them. Those of a list stand under their positions, ``0__width``, those of
        a dictionary under their names. What is no kernel has no settings.
    """
    if isinstance(kernels, (list, tuple, Mapping)):
        found: dict[str, Any] = {}
        for name, kernel in _items(kernels):
            settings = get_settings(kernel)
            found |= {name: kernel} | {f"{name}__{inner}": settings[inner] for inner in settings}
        return found
    kernel = _as_kernel(kernels)
    return {} if kernel is None else kernel.settings


def with_settings(kernels: Any, values: dict[str, Any]) -> Any:
    """Return kernels with other values of some of their settings; what was given stays as it is.

    Parameters
    ----------
    kernels : kernel, list of kernels or dict of names to kernels
        As a user gives them.
    values : dict of str to value
        The new values, by the names of `get_settings`.
    """
    if not isinstance(kernels, (list, tuple, Mapping)):
        kernel = _as_kernel(kernels)
        if kernel is None:
            raise InvalidInputError(
                f"There must be a kernel to set {list(values)} of. Got {kernels!r}."
            )
        return kernel.with_settings(**values)
    new = dict(_items(kernels))
    inner: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        # The name of a kernel may itself hold the sign between names: the longest one is meant.
        names = [name for name in new if path == name or path.startswith(f"{name}__")]
        if not names:
            raise InvalidInputError(f"The kernels are called {list(new)}. Got {path!r}.")
        name = max(names, key=len)
        if path == name:
            new[name] = value
        else:
            inner.setdefault(name, {})[path[len(name) + 2 :]] = value
    for name, changes in inner.items():
        new[name] = with_settings(new[name], changes)
    if isinstance(kernels, Mapping):
        return dict(zip(kernels, new.values(), strict=True))
    return type(kernels)(new.values())


def _items(kernels: Any) -> list[tuple[str, Any]]:
    named = kernels.items() if isinstance(kernels, Mapping) else enumerate(kernels)
    return [(str(name), kernel) for name, kernel in named]


def _as_kernel(kernel: Any) -> Kernel | None:
    """Return the kernel that is meant; None if it is none, or several."""
    if isinstance(kernel, str) and kernel in ("auto", "precomputed"):
        return None
    try:
        return as_kernel(kernel)
    except InvalidInputError:
        return None
