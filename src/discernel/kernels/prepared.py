"""Rows as the pairwise matrices of kernels take them, for NumPy or on a device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from discernel.arrays import Buffers, Device, n_rows
from discernel.kernels.terms import Bases, Key


@dataclass(frozen=True)
class PreparedRows:
    """Rows, and what the pairwise matrices of some kernels need of them, computed once.

    A slice of them costs next to nothing. `of` makes them for NumPy; `on` sends what was prepared
    to a device.
    """

    rows: Any
    bases: Bases
    device: Device | None = None
    is_single: bool = False

    @classmethod
    def of(cls, keys: Iterable[Key], X: Any, like: PreparedRows | None = None) -> PreparedRows:
        """Return rows for some pairwise matrices; ``like`` are the rows that they will meet."""
        wanted = dict.fromkeys(keys)
        seen = {view: view.of(X) for view in dict.fromkeys(view for _, view in wanted)}
        bases = {
            (pair, view): pair.rows(seen[view], None if like is None else like.bases[pair, view])
            for pair, view in wanted
        }
        return cls(X, bases)

    def single(self, keys: Iterable[Key]) -> PreparedRows | None:
        """Return the same rows of single precision, for some pairwise matrices.

        None where one has none: squared distances of several columns have.
        """
        bases = {key: key[0].single(self.bases[key]) for key in keys}
        found = {key: base for key, base in bases.items() if base is not None}
        return PreparedRows(self.rows, found) if len(found) == len(bases) else None

    def on(self, device: Device, *, single: bool = False) -> PreparedRows:
        """Return the same rows on a device, whose matrices are then made there."""
        bases = {key: key[0].put(base, device, single) for key, base in self.bases.items()}
        return PreparedRows(self.rows, bases, device, single)

    def __getitem__(self, rows: Any) -> PreparedRows:
        bases = {key: base[rows] for key, base in self.bases.items()}
        return replace(self, rows=self.rows[rows], bases=bases)

    def pairwise(
        self,
        keys: Iterable[Key],
        other: PreparedRows | None = None,
        buffers: Buffers | None = None,
        *,
        aligned: bool = False,
    ) -> Bases:
        """Return some pairwise matrices of these rows and others, by default of these alone.

        Of rows on a device, the others are always given. ``aligned`` says that they begin with
        these, or these with them: distances there are then exactly 0. By NumPy, matrices are made
        in buffers if there are some.
        """
        there, found = self if other is None else other, {}
        for place, (pair, view) in enumerate(keys):
            left, right = self.bases[pair, view], there.bases[pair, view]
            if self.device is None:
                out = None
                if buffers is not None:
                    out = buffers(f"base {place}", (n_rows(self.rows), n_rows(there.rows)))
                base = pair.tile(left, None if other is None else right, out)
            else:
                base = pair.tile_on(self.device, left, right, self.is_single)
                if aligned and pair.is_distance:
                    base = self.device.clear_diagonal(base)  # not what rounding leaves there
            found[pair, view] = base
        return found
