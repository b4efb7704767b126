"""The candidate kernels of the default, on all columns or on those of each source."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import (
    Device,
    FloatArray,
    city_distances,
    draw_rows,
    squared_distances,
    typical_row,
)
from discernel.kernels import RBF, Kernel, Laplace, Linear, Standardized
from discernel.kernels.curves import Curves
from discernel.kernels.distance import median_distance
from discernel.kernels.evaluate import KernelSet

#: Of single or double precision.
Array: TypeAlias = NDArray[Any]

#: Rows of which median distances are taken.
MEDIAN_ROWS = 300
#: Numbers below the smallest normal one take a hundred times as long: no number that is squared is
#: below its root, which is the exponential of the first, or below the fourth root if it is squared
#: twice.
_LEAST_EXPONENT, _LEAST = np.float32(-40.0), np.float32(1e-18)


@dataclass(frozen=True)
class Menu:
    """Candidate kernels, their widths as multiples of the median distance.

    Attributes
    ----------
    gaussian : tuple of float
        Widths of Gaussian kernels, falling by 2: each is the fourth power of the one before.
    laplace : tuple of float
        Widths of Laplace kernels in the 1-norm, falling by 2: each is the square of the one before.
    linear : bool
        Whether the last kernel is linear.
    """

    #: Only kernels of sources may have few widths; see `SourceMenu`.
    few_widths: ClassVar[bool] = False

    gaussian: tuple[float, ...] = (4.0, 2.0, 1.0, 0.5, 0.25, 0.125)
    laplace: tuple[float, ...] = (4.0, 2.0, 1.0, 0.5, 0.25)
    linear: bool = True

    @property
    def n_kernels(self) -> int:
        """The number of kernels."""
        return len(self.gaussian) + len(self.laplace) + self.linear

    @property
    def n_sources(self) -> int:
        """The number of sources of the rows; see `SourceMenu`."""
        return 1

    def with_widths(self, few: bool) -> Menu:
        """Return the menu itself, which has all widths; see `SourceMenu`."""
        return self

    def scaled(self, rows: FloatArray, scales: FloatArray) -> FloatArray:
        """Return rows times scales, as `matrices` takes them."""
        return np.asarray((rows * scales)[:, scales > 0])

    def standardized(
        self, rows: FloatArray, divisors: Sequence[float], curves: Curves | None
    ) -> list[Kernel]:
        """Return the kernels on columns, or curves of them, divided by numbers.

        Median distances are those of ``rows``, which are divided already. A divisor of 0 leaves a
        column out.
        """
        return [Standardized(kernel, tuple(divisors), curves) for kernel in self.kernels(rows)]

    def kernels(self, rows: FloatArray) -> list[Kernel]:
        """Return the kernels, with the median distances of some rows in comparable units."""
        wide, far = _medians(rows)
        return [
            *(RBF(width=factor * wide) for factor in self.gaussian),
            *(Laplace(width=factor * far) for factor in self.laplace),
            *[Linear()] * self.linear,
        ]

    def matrices(self, rows: FloatArray, n_fitted: int, out: Array) -> Array:
        """Return the matrices of all kernels from scaled rows to the first of them, in ``out``.

        Of shape (n_kernels, n_rows, n_fitted); median distances are those of the first rows.
        """
        X, Z = rows, rows[:n_fitted]
        wide, far = _medians(Z)
        n = len(self.gaussian)
        _fill_powers(squared_distances(X, Z), wide**2 * self.gaussian[0] ** 2, out[:n], 2)
        if self.laplace:
            last = n + len(self.laplace)
            _fill_powers(city_distances(X, Z), far * self.laplace[0], out[n:last], 1)
        if self.linear:
            origin = typical_row(Z)
            out[-1] = (X - origin) @ (Z - origin).T
        return out


def stack_on_device(
    kernels: Sequence[Kernel], rows: FloatArray, n_fitted: int, device: Device
) -> Any:
    """Return the matrices of kernels from rows to the first of them, made on a device."""
    known = KernelSet(kernels)
    there = known.prepare(rows).on(device)
    found = dict(known.matrices(there, there[:n_fitted], aligned=True))
    return device.xp.stack([found[i] for i in range(len(kernels))])


def _medians(rows: FloatArray) -> tuple[float, float]:
    """Return the median distance of some rows in the 2-norm and in the 1-norm."""
    drawn = draw_rows(rows, MEDIAN_ROWS)
    return median_distance(drawn), median_distance(drawn, norm=1)


def _fill_powers(distances: FloatArray, widest: float, out: Array, squarings: int) -> None:
    """Write exp(−distances/widest), and the square of the one before that many times, in turn."""
    out[0] = distances
    out[0] *= -1.0 / widest
    np.maximum(out[0], _LEAST_EXPONENT, out=out[0])
    np.exp(out[0], out=out[0])
    least = _LEAST if squarings == 1 else np.sqrt(_LEAST)
    for before, here in pairwise(out):
        np.maximum(before, least, out=here)
        for _ in range(squarings):
            np.square(here, out=here)


def menu_of(rows: FloatArray) -> Menu:
    """Return the menu for some rows: with narrower kernels where most occur more than once."""
    counts = Counter(row.tobytes() for row in rows)
    n_repeated = sum(count for count in counts.values() if count > 1)
    return _OF_REPEATED_ROWS if n_repeated > _MANY * len(rows) else MENU


MENU = Menu()
#: Enough for most sources.
FEW_WIDTHS = Menu((2.0, 1.0, 0.5), (), linear=False)
#: Nothing is near a row for the last of these kernels but copies of the row. They let copies have
#: something in common that their neighbours do not have, as a random effect per row would. The
#: log-loss of `maternal`, with copies of most rows in training and test, fell from 0.39 to 0.35.
#: Where copies were in training only, other kernels had to fit them: there it fell too, from 0.77
#: to 0.68, the mean of 150 rows of four data sets, two or four times each. Always in the
#: menu, the narrowest of them made three of 34 tasks worse, by 4 to 48 %.
_OF_REPEATED_ROWS = Menu(laplace=(4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125))
#: More than this share of the rows must have a copy.
_MANY = 0.5


# ---- several sources ---------------------------------------------------------------------------

#: The columns of each source, by its name.
Columns: TypeAlias = Mapping[str, NDArray[np.intp]]

#: Rows that kernels are normalised on before they are added.
_UNIT_ROWS = 500
#: Traces below this share of the number of rows are rounding errors.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class SourceMenu:
    """One candidate kernel per source: the average of normalised kernels.

    Attributes
    ----------
    menu : Menu
        The kernels of one table.
    columns : dict of str to ndarray of int
        The columns of each source, by its name. A column may be in several sources or in none.
    few_widths : bool
        Whether the average is of `FEW_WIDTHS` instead.
    """

    menu: Menu
    columns: Columns
    few_widths: bool = False

    @property
    def averaged(self) -> Menu:
        """The kernels of every source."""
        return FEW_WIDTHS if self.few_widths else self.menu

    @property
    def n_kernels(self) -> int:
        """The number of kernels, one per source."""
        return len(self.columns)

    @property
    def n_sources(self) -> int:
        """The number of sources."""
        return len(self.columns)

    def with_widths(self, few: bool) -> SourceMenu:
        """Return a menu with few widths or with all."""
        return replace(self, few_widths=few)

    def scaled(self, rows: FloatArray, scales: FloatArray) -> FloatArray:
        """Return rows times scales, as `matrices` takes them."""
        return rows * scales

    def matrices(self, rows: FloatArray, n_fitted: int, out: Any) -> Any:
        """Return the matrices of all sources from scaled rows to the first of them, in ``out``."""
        shape = self.averaged.n_kernels, len(rows), n_fitted
        stack = np.empty(shape, dtype=out.dtype)
        for columns, matrix in zip(self.columns.values(), out, strict=True):
            self.averaged.matrices(rows[:, columns], n_fitted, stack)
            units = _units(stack[:, :n_fitted]).astype(out.dtype)
            matrix[:] = np.tensordot(units, stack, axes=1)
        return out

    def kernels(self, rows: FloatArray) -> list[Kernel]:
        """Return the kernel of each source, with median distances of these rows."""
        return self.standardized(rows, [1.0] * rows.shape[1], None)

    def standardized(
        self, rows: FloatArray, divisors: Sequence[float], curves: Curves | None
    ) -> list[Kernel]:
        """Return the kernel of each source, with the name of the source; see `Menu`."""
        kernels: list[Kernel] = []
        for name, columns in self.columns.items():
            some, chosen = rows[:, columns], columns.tolist()
            own = tuple(divisors[column] for column in chosen)
            bent = None if curves is None else curves.take(chosen)
            drawn = draw_rows(some, _UNIT_ROWS)
            drawn = drawn - typical_row(drawn)
            made = self.averaged.kernels(some)
            units = _units(np.array([kernel(drawn) for kernel in made]))
            parts = [
                float(unit) * Standardized(kernel, own, bent)
                for unit, kernel in zip(units, made, strict=True)
                if unit > 0
            ] or [Standardized(Linear(), own, bent)]
            kernels.append(reduce(operator.add, parts).on(chosen, name).named(name))
        return kernels


def matrices_on_device(
    menu: Menu | SourceMenu, rows: FloatArray, n_fitted: int, device: Device
) -> Any:
    """Return the `Menu.matrices` in double precision on a device."""
    fitted = rows[:n_fitted]
    rows = rows - typical_row(fitted)  # only linear kernels depend on the origin
    return stack_on_device(menu.kernels(fitted), rows, n_fitted, device)


def _units(stack: Any) -> FloatArray:
    """Return one over the trace of each matrix once centred, over their number; 0 for no trace."""
    n, total = stack.shape[1], stack.sum(axis=(1, 2), dtype=np.float64)
    traces = np.trace(stack, axis1=1, axis2=2, dtype=np.float64) - total / n
    found = np.zeros(len(stack))
    np.divide(1.0 / len(stack), traces, out=found, where=traces > _ROUNDING * n)
    return found
