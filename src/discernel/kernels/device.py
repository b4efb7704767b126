"""Kernels on devices, by any library of the array API standard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray
from discernel.arrays.device import Device, as_host
from discernel.kernels.base import Combination, Kernel
from discernel.kernels.evaluate import KernelSet, PreparedRows, is_dense
from discernel.kernels.objects import SimilarityKernel
from discernel.kernels.terms import Term, combine
from discernel.kernels.weighted import WeightedKernels, slices

#: Entries of the matrices that are made at a time: far more than a device does at once.
STRIP_ENTRIES = 2**27


class DeviceKernels:
    """Kernels on prepared rows, of which strips are computed on a device.

    What rows need is prepared by NumPy, once. Pairwise matrices are made on the device of the
    prepared rows, and kernels of these. A kernel that is only known to NumPy, a user's callable
    among them, is computed by NumPy and sent there.

    Parameters
    ----------
    kernels : KernelSet
        The kernels.
    rows : PreparedRows
        All rows, from ``kernels.prepare``.
    device : Device
        Where to compute.
    single : bool, default=False
        Whether in single precision.
    """

    def __init__(
        self, kernels: KernelSet, rows: PreparedRows, device: Device, *, single: bool = False
    ) -> None:
        self.kernels, self.device, self.single = kernels, device, single
        self._host, self._fused = rows, device.fused()
        self._bases = {
            (pair, view): pair.put(rows.bases[pair, view], device, single)
            for pair, view in kernels.groups
        }
        decays = [kernels.decay(position) for position in range(len(kernels.kernels))]
        #: The rates of kernels that are the exponential of their pairwise matrix times a number.
        self._rates = {i: d[1] for i, d in enumerate(decays) if d is not None and d[0] == "exp"}

    def strips(
        self,
        rows: slice,
        columns: slice,
        active: Sequence[int] | None = None,
        other: DeviceKernels | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Yield every kernel's position and matrix, which is to be read, not changed.

        Parameters
        ----------
        rows, columns : slice
            Which rows it is between.
        active : sequence of int, optional
            The positions of the kernels that are wanted; by default all.
        other : DeviceKernels, optional
            The same kernels with the rows that the columns belong to; by default these.
        """
        wanted = range(len(self.kernels.kernels)) if active is None else set(active)
        for positions, base in self._groups(rows, columns, wanted, other):
            yield from ((position, self._made_of(position, base)) for position in positions)

    def weighted_sum(
        self,
        rows: slice,
        columns: slice,
        factors: FloatArray,
        other: DeviceKernels | None = None,
    ) -> Any:
        """Return Σ f_i k_i, with one factor per kernel, as `strips` are; it may be changed."""
        shape = rows.stop - rows.start, columns.stop - columns.start
        total = self.device.zeros(shape, single=self.single)
        wanted = set(np.flatnonzero(factors).tolist())
        for positions, base in self._groups(rows, columns, wanted, other):
            if self._fused is not None and self._rates.keys() >= set(positions):
                rates = np.array([self._rates[position] for position in positions])
                self._fused.add_exponentials(total, base, rates, factors[positions])
                continue
            for position in positions:
                total += self._made_of(position, base) * float(factors[position])
        return total

    def _groups(
        self, rows: slice, columns: slice, wanted: Any, other: DeviceKernels | None
    ) -> Iterator[tuple[list[int], Any]]:
        """Yield the wanted kernels of one pairwise matrix, and this matrix.

        A kernel that shares nothing stands alone, with its own matrix.
        """
        there = self if other is None else other
        for position in self.kernels.direct:
            if position in wanted:
                given = self._host.rows[rows], there._host.rows[columns]
                matrix = self.kernels.direct_matrix(position, *given)
                yield [position], self.device.put(matrix, single=self.single)
        for key, steps in self.kernels.groups.items():
            positions = [i for i, _ in steps if i in wanted]
            if not positions:
                continue
            (pair, _), left, right = key, self._bases[key], there._bases[key]
            found = pair.tile_on(self.device, left, rows, right, columns, self.single)
            if other is None and pair.is_distance and rows.start == columns.start:
                found = self.device.clear_diagonal(found)  # not what rounding leaves there
            yield positions, found

    def _made_of(self, position: int, base: Any) -> Any:
        if self.kernels.keys[position] is None:
            return base
        if self._fused is not None and position in self._rates:
            return self._fused.exponential(base, self._rates[position])
        xp = self.device.xp
        return combine(self.kernels.terms[position], lambda atom: atom.function.on_device(base, xp))


class DeviceSum:
    """Σ c_i k_i between new rows and some that stay on a device.

    Parameters
    ----------
    kernel : WeightedKernels
        The sum.
    rows : ndarray of shape (n_samples, n_features)
        The rows that stay.
    device : Device
        Where.
    """

    def __init__(self, kernel: WeightedKernels, rows: Any, device: Device) -> None:
        self._set, self._device = KernelSet(kernel.kernels), device
        self._coefficients = kernel.coefficients
        self._host = self._set.prepare(rows)
        self._rows = DeviceKernels(self._set, self._host, device)

    def matrix(self, X: Any, coefficients: FloatArray | None = None) -> Any:
        """Return the matrix between the rows of X and those that stay, on the device.

        Other factors than those of the sum may be given.
        """
        part = self._set.prepare(X, self._host)
        new = DeviceKernels(self._set, part, self._device)
        here, there = slice(0, len(X)), slice(0, len(self._host.rows))
        factors = self._coefficients if coefficients is None else coefficients
        return new.weighted_sum(here, there, factors, self._rows)

    def product(self, X: Any, vectors: FloatArray, *, sum_to_zero: bool) -> FloatArray:
        """Return the matrix between the rows of X and those that stay, times ``vectors``.

        If the vectors sum to zero, what all entries of a row share loses no digits.
        """
        V, xp = self._device.put(vectors), self._device.xp
        out = np.empty((len(X), vectors.shape[1]))
        for rows in slices(slice(0, len(X)), max(1, STRIP_ENTRIES // len(vectors))):
            total = self.matrix(X[rows])
            if sum_to_zero:
                total = total - total[:, :1]
            out[rows] = as_host(xp.matmul(total, V))
        return out


def device_matrix(kernel: Kernel, X: Any, Z: Any | None, device: Device) -> Any | None:
    """Return the matrix of a kernel between rows of NumPy, made on a device strip by strip.

    None where only NumPy can make it. Without Z, rows are those of X on both sides.
    """
    if not (is_dense(X) and (Z is None or is_dense(Z))):
        return None
    terms = kernel.terms()
    atoms = list(dict.fromkeys(atom for term in terms for atom in term.atoms))
    known = [atom for atom in atoms if atom.pair.kind]
    if not known:
        return None
    n, m = len(X), len(X if Z is None else Z)
    device.check_room(
        8 * n * m,
        f"A matrix of {n:,} × {m:,} numbers",
        "or take fewer rows at a time. Estimators take rows and kernels, and need no more than one "
        "matrix.",
    )
    kernels = KernelSet([Combination((Term(1.0, (atom,)),)) for atom in known])
    right, others = kernels.prepare(X if Z is None else Z), None
    left = there = DeviceKernels(kernels, right, device)
    if Z is not None and Z is not X:
        left, others = DeviceKernels(kernels, kernels.prepare(X, right), device), there
    # What only NumPy knows is computed as a whole and as it is called here: what a user wrote may
    # mean something by a Z that is not given.
    here = {
        atom: atom.function(atom.pair.entries(*atom.view.of_both(X, Z)))
        for atom in atoms
        if not atom.pair.kind
    }
    matrix = device.empty((n, m))
    for rows, columns in _blocks(n, m, STRIP_ENTRIES // len(atoms), with_itself=others is None):
        found = {known[i]: part for i, part in left.strips(rows, columns, other=others)}
        found |= {atom: device.put(values[rows, columns]) for atom, values in here.items()}
        matrix[rows, columns] = combine(terms, found.__getitem__)
    return matrix


def _blocks(n: int, m: int, entries: int, *, with_itself: bool) -> Iterable[tuple[slice, slice]]:
    """Yield rows and columns of the parts of a matrix.

    Those on the diagonal of a matrix of rows with themselves begin on it: `DeviceKernels` then
    knows that distances there are 0.
    """
    for rows in slices(slice(0, n), max(1, entries // max(1, m))):
        if with_itself and rows.start:
            yield rows, slice(0, rows.start)
        yield rows, slice(rows.start if with_itself else 0, m)


@dataclass(frozen=True, eq=False, repr=False)
class MatrixOnDevice(SimilarityKernel):
    """A matrix on a device, as a kernel between the numbers of its rows.

    What it is given for rows is an array of shape (n_rows, 1) with these numbers, so that a part
    of the rows is a part of the matrix, and nothing is copied.

    Parameters
    ----------
    matrix : array of shape (n_samples, n_samples)
        The matrix, of single or double precision. It is read, never changed.
    device : Device
        Where it is.
    label : str
        Its name.
    """

    matrix: Any
    device: Device
    label: str

    trusted = False

    @property
    def name(self) -> str:
        return self.label

    def __repr__(self) -> str:
        return f"MatrixOnDevice({self.label!r})"

    def rows(self, X: Any, like: Any | None = None) -> Any:
        return np.asarray(X[:, 0], dtype=np.int64)

    def tile(self, X: Any, Z: Any | None, out: FloatArray | None) -> FloatArray:
        return as_host(self._block(X, X if Z is None else Z, single=False))

    def tile_on(
        self, device: Device, left: Any, rows: slice, right: Any, columns: slice, single: bool
    ) -> Any:
        return self._block(left[rows], right[columns], single=single)

    def diagonal(self, X: Any) -> FloatArray:
        whole: FloatArray = as_host(self.device.xp.linalg.diagonal(self.matrix)).astype(np.float64)
        return np.asarray(whole[self.rows(X)])

    def _block(self, left: NDArray[np.int64], right: NDArray[np.int64], *, single: bool) -> Any:
        """Return what is between rows of some numbers and of others, on the device."""
        xp, found = self.device.xp, self.matrix
        for axis, rows in enumerate((left, right)):
            if len(rows) and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
                some = slice(int(rows[0]), int(rows[0]) + len(rows))
                found = found[some, :] if axis == 0 else found[:, some]
            else:
                there = xp.asarray(rows, device=self.device.where)
                found = xp.take(found, there, axis=axis)
        dtype = xp.float32 if single else xp.float64
        return found if found.dtype == dtype else xp.astype(found, dtype)
