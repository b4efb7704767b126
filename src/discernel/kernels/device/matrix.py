"""The matrix of one kernel on a device, strip by strip."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from discernel.arrays.device import Device
from discernel.kernels.base import Combination, Kernel
from discernel.kernels.device.pairs import STRIP_ENTRIES, DeviceKernels
from discernel.kernels.evaluate import KernelSet, can_prepare
from discernel.kernels.terms import Atom, Term, combine
from discernel.kernels.weighted import slices

__all__ = ["device_matrix"]


def device_matrix(kernel: Kernel, X: Any, Z: Any | None, device: Device) -> Any | None:
    """Return the matrix between rows of NumPy on a device; None where only NumPy can make it.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X, Z : array-like of shape (n_rows, n_features)
        Rows; without Z, those of X on both sides.
    device : Device
        Where the matrix is made.
    """
    if not (can_prepare(X) and (Z is None or can_prepare(Z))):
        return None
    terms = kernel.terms()
    atoms = list(dict.fromkeys(atom for term in terms for atom in term.atoms))
    if not any(atom.pair.kind for atom in atoms):
        return None
    n, m = len(X), len(X if Z is None else Z)
    device.check_room(
        8 * n * m,
        f"A matrix of {n:,} × {m:,} numbers",
        "or take fewer rows at a time. Estimators take rows and kernels, and need no more than one "
        "matrix.",
    )
    made, matrix = _Atoms(atoms, X, Z, device), device.empty((n, m))
    entries, with_itself = STRIP_ENTRIES // len(atoms), Z is None or Z is X
    for rows, columns in _blocks(n, m, entries, with_itself=with_itself):
        matrix[rows, columns] = combine(terms, made.block(rows, columns).__getitem__)
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


class _Atoms:
    """The atoms that a matrix is made of, between some rows.

    Those that only NumPy knows are computed by it, as a whole and as they are called here: what
    a user wrote may mean something by a Z that is not given.
    """

    def __init__(self, atoms: list[Atom], X: Any, Z: Any | None, device: Device) -> None:
        self._device, with_itself = device, Z is None or Z is X
        self._there = [atom for atom in atoms if atom.pair.kind]
        there = KernelSet([Combination((Term(1.0, (atom,)),)) for atom in self._there])
        right = there.prepare(X if with_itself else Z)
        left = right if with_itself else there.prepare(X, right)
        self._left = DeviceKernels(there, left, device)
        self._right = None if with_itself else DeviceKernels(there, right, device)
        self._here = {
            atom: atom.function(atom.pair.entries(*atom.view.of_both(X, Z)))
            for atom in atoms
            if not atom.pair.kind
        }

    def block(self, rows: slice, columns: slice) -> dict[Atom, Any]:
        """Return a part of the matrix of every atom, which is to be read, not changed."""
        strips = self._left.strips(rows, columns, other=self._right)
        found = {self._there[i]: part for i, part in strips}
        for atom, matrix in self._here.items():
            found[atom] = self._device.put(matrix[rows, columns])
        return found
