"""Kernels that are called with arrays of another library: what they return is made there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import signature
from typing import Any, TypeGuard

from discernel.arrays.device import Device, as_host, check_given, device_of
from discernel.arrays.failures import device_errors
from discernel.kernels import Kernel, Standardized
from discernel.kernels.base import (
    Elementwise,
    Named,
    Offset,
    Power,
    Product,
    Restricted,
    Scaled,
    Sum,
    Wrapper,
)
from discernel.kernels.columns import column_indices, take_columns
from discernel.kernels.device.pairs import STRIP_ENTRIES, DeviceKernels
from discernel.kernels.evaluate import KernelSet, can_prepare
from discernel.kernels.weighted import slices

__all__ = ["called_there"]


def called_there(
    name: str,
    method: Callable[..., Any],
    kernel: Kernel,
    given: tuple[Any, ...],
    named: dict[str, Any],
) -> Any:
    """Return what a method of a kernel returns, as an array of the library and device of its rows.

    Matrices are computed there as far as kernels can be. All else, of the size of the rows, is
    computed by NumPy.

    Parameters
    ----------
    name : str
        What the method is called.
    method : callable
        The method, which knows NumPy only.
    kernel : Kernel
        The kernel.
    given, named : tuple and dict
        What the method was called with.
    """
    device = check_given(*given, *named.values())
    if device is None:
        return method(kernel, *given, **named)
    bound = signature(method).bind(kernel, *given, **named)
    here = _on_host(bound.args)
    by_name = dict(zip(bound.kwargs, _on_host(bound.kwargs.values()), strict=True))
    with device_errors(device, smaller="Take fewer rows at a time"):
        if name == "__call__" and not device.is_host:
            X, Z = (*here[1:], None)[:2]
            found = _matrix(kernel, X, Z, device)
            if found is not None:
                return found
        return device.returned(method(*here, **by_name))


def _on_host(given: Any) -> list[Any]:
    """Return arrays as those of NumPy; one that is given twice stays one."""
    brought: dict[int, Any] = {}
    for each in given:
        if id(each) not in brought:
            brought[id(each)] = each if device_of(each) is None else as_host(each)
    return [brought[id(each)] for each in given]


# ---- a matrix, strip by strip ------------------------------------------------------------------


def _matrix(kernel: Kernel, X: Any, Z: Any | None, device: Device) -> Any | None:
    """Return the matrix between rows of NumPy on a device; None where only NumPy can make it."""
    if not (can_prepare(X) and (Z is None or can_prepare(Z))):
        return None
    whole = _spread(kernel, X)
    leaves = _leaves(whole)
    if not any(map(_is_made_there, leaves)):
        return None
    n, m = len(X), len(X if Z is None else Z)
    device.check_room(
        8 * n * m,
        f"A matrix of {n:,} × {m:,} numbers",
        "or take fewer rows at a time. Estimators take rows and kernels, and need no more than one "
        "matrix.",
    )
    terms, matrix = _Terms(leaves, X, Z, device), device.empty((n, m))
    entries, with_itself = STRIP_ENTRIES // len(leaves), Z is None or Z is X
    for rows, columns in _blocks(n, m, entries, with_itself=with_itself):
        matrix[rows, columns] = _joined(whole, iter(terms.block(rows, columns)))
    return matrix


def _blocks(n: int, m: int, entries: int, *, with_itself: bool) -> Iterator[tuple[slice, slice]]:
    """Yield rows and columns of the parts of a matrix.

    Those on the diagonal of a matrix of rows with themselves begin on it: `DeviceKernels` then
    knows that distances there are 0.
    """
    for rows in slices(slice(0, n), max(1, entries // max(1, m))):
        if with_itself and rows.start:
            yield rows, slice(0, rows.start)
        yield rows, slice(rows.start if with_itself else 0, m)


class _Terms:
    """The kernels that a matrix is made of, between some rows.

    Those that only NumPy knows are computed by it, as a whole and as they are called here: what
    a user wrote may mean something by a Z that is not given.
    """

    def __init__(self, kernels: list[Kernel], X: Any, Z: Any | None, device: Device) -> None:
        self._device, with_itself = device, Z is None or Z is X
        self._there = [i for i, kernel in enumerate(kernels) if _is_made_there(kernel)]
        there = KernelSet([kernels[i] for i in self._there])
        right = there.prepare(X if with_itself else Z)
        left = right if with_itself else there.prepare(X, right)
        self._left = DeviceKernels(there, left, device)
        self._right = None if with_itself else DeviceKernels(there, right, device)
        self._here = {
            i: KernelSet([kernel]).direct_matrix(0, X, Z)
            for i, kernel in enumerate(kernels)
            if i not in self._there
        }

    def block(self, rows: slice, columns: slice) -> list[Any]:
        """Return a part of the matrix of every kernel, which is to be read, not changed."""
        strips = self._left.strips(rows, columns, other=self._right)
        found = {self._there[i]: part for i, part in strips}
        for i, matrix in self._here.items():
            found[i] = self._device.put(matrix[rows, columns])
        return [found[i] for i in sorted(found)]


# ---- sums and products -------------------------------------------------------------------------


def _is_made_there(kernel: Kernel) -> bool:
    """Whether a kernel is made of a pairwise matrix that devices know."""
    return kernel.pairs is not None and kernel.base_key is not None


def _spread(kernel: Kernel, X: Any) -> Kernel:
    """Return the same kernel with columns and spreads innermost, and columns by their positions.

    Of a subclass nothing is known but that it can be called.
    """
    if _is_pair(kernel):
        return type(kernel)(_spread(kernel.left, X), _spread(kernel.right, X))
    if type(kernel) is Named:
        return _spread(kernel.kernel, X)
    if type(kernel) is Restricted:
        indices = column_indices(kernel.columns, X)
        inner = _spread(kernel.kernel, take_columns(X, indices))
        return _wrapped(replace(kernel, columns=tuple(indices.tolist())), inner)
    if type(kernel) is Standardized:
        return _wrapped(kernel, _spread(kernel.kernel, X))
    if _is_elementwise(kernel):
        return replace(kernel, kernel=_spread(kernel.kernel, X))
    return kernel


def _is_elementwise(kernel: Kernel) -> TypeGuard[Elementwise]:
    return type(kernel) in (Scaled, Offset, Power)


def _is_pair(kernel: Kernel) -> TypeGuard[Sum | Product]:
    return type(kernel) in (Sum, Product)


def _is_leaf(kernel: Kernel) -> bool:
    """Whether a kernel is no sum or product, and no function of the values of one."""
    return _is_leaf(kernel.kernel) if _is_elementwise(kernel) else not _is_pair(kernel)


def _wrapped(wrapper: Wrapper, inner: Kernel) -> Kernel:
    """Return a kernel on columns or with spreads: of sums and products, each part of it."""
    if _is_pair(inner):
        return type(inner)(_wrapped(wrapper, inner.left), _wrapped(wrapper, inner.right))
    if _is_elementwise(inner):
        return replace(inner, kernel=_wrapped(wrapper, inner.kernel))
    return replace(wrapper, kernel=inner)


def _leaves(kernel: Kernel) -> list[Kernel]:
    """Return what is added and multiplied, from left to right."""
    if _is_pair(kernel):
        return [*_leaves(kernel.left), *_leaves(kernel.right)]
    if _is_elementwise(kernel) and not _is_leaf(kernel):
        return _leaves(kernel.kernel)
    return [kernel]


def _joined(kernel: Kernel, matrices: Iterator[Any]) -> Any:
    """Return sums and products of the matrices of the `_leaves`."""
    if _is_pair(kernel):
        left, right = (_joined(part, matrices) for part in (kernel.left, kernel.right))
        return left + right if type(kernel) is Sum else left * right
    if _is_elementwise(kernel) and not _is_leaf(kernel):
        return kernel.apply(_joined(kernel.kernel, matrices))
    return next(matrices)
