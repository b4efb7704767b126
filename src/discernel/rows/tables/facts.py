"""What is known of a column over all rows, where only some of them are at hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from discernel.rows.tables.cells import Column

__all__ = ["ColumnFacts"]

#: Values of one column that are counted; a column with more is text, or its rows decide.
_MOST_VALUES = 10_000


@dataclass(frozen=True)
class ColumnFacts:
    """Counts of a column; those of two parts add up.

    Attributes
    ----------
    n_known, n_missing : int
        Cells with a value and without.
    counts : mapping of str to int, or None
        How often each value is there, of categories and text; None where there are too many.
    kinds : mapping of str to str
        What the cells with a value are, and where the first of them was seen.
    """

    n_known: int
    n_missing: int
    counts: Mapping[str, int] | None
    kinds: Mapping[str, str]

    @classmethod
    def of(cls, column: Column, where: str) -> ColumnFacts:
        """Return the facts of the cells of a part.

        Parameters
        ----------
        column : Column
            The cells.
        where : str
            The name of the part.
        """
        n_missing = int(column.missing.sum())
        counts: Counter[str] = Counter()
        if column.declared or "text" in column.kinds:
            words = zip(column.words, column.missing, strict=True)
            counts = Counter(word for word, missing in words if not missing)
        return cls(
            len(column.cells) - n_missing,
            n_missing,
            _bounded(counts),
            dict.fromkeys(sorted(column.kinds), where),
        )

    def __add__(self, other: ColumnFacts) -> ColumnFacts:
        counts = None
        if self.counts is not None and other.counts is not None:
            counts = _bounded(Counter(self.counts) + Counter(other.counts))
        return ColumnFacts(
            self.n_known + other.n_known,
            self.n_missing + other.n_missing,
            counts,
            {**other.kinds, **self.kinds},
        )


def _bounded(counts: Counter[str]) -> Counter[str] | None:
    return counts if len(counts) <= _MOST_VALUES else None
