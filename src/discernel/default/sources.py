"""The candidate kernels of several sources: one for each, on the columns of the source."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import Device, FloatArray, draw_rows, typical_row
from discernel.default.menu import FEW_WIDTHS, Menu, stack_on_device
from discernel.kernels import Kernel, Linear, Standardized
from discernel.kernels.curves import Curves

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

    def matrices_on_device(self, rows: FloatArray, n_fitted: int, device: Device) -> Any:
        """Return `matrices` in double precision on a device."""
        fitted = rows[:n_fitted]
        rows = rows - typical_row(fitted)  # only linear kernels depend on the origin
        kernels = self.standardized(fitted, [1.0] * rows.shape[1], None)
        return stack_on_device(kernels, rows, n_fitted, device)

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


def _units(stack: Any) -> FloatArray:
    """Return one over the trace of each matrix once centred, over their number; 0 for no trace."""
    n, total = stack.shape[1], stack.sum(axis=(1, 2), dtype=np.float64)
    traces = np.trace(stack, axis1=1, axis2=2, dtype=np.float64) - total / n
    found = np.zeros(len(stack))
    np.divide(1.0 / len(stack), traces, out=found, where=traces > _ROUNDING * n)
    return found
