"""Groups of rows that are held out together, such as the rows of one patient.

Rows of a group resemble each other more than new rows resemble any of them. If some of them are
held out and others are not, held-out scores are too good. So a group is held out as a whole:
folds consist of groups, and leave-one-out becomes leave-one-group-out. Intervals and standard
errors use the effective number of groups, (Σω)²/Σ_g ω_g² with ω_g the weight of a group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discernel.arrays.rows import FloatArray, Positions
from discernel.exceptions import InvalidInputError

#: A sample of rows has rows of at least this many groups, if there are as many; groups that are
#: too large for that give a part of their rows.
_FEWEST = 30


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each row.

    Attributes
    ----------
    codes : ndarray of shape (n_samples,)
        Any integers; rows with the same number are a group.
    """

    codes: Positions

    @cached_property
    def numbers(self) -> Positions:
        """The group of each row, from 0, in the order of the codes."""
        return np.unique(self.codes, return_inverse=True)[1]

    @cached_property
    def sizes(self) -> Positions:
        """The number of rows of each group."""
        return np.bincount(self.numbers)

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def batches(self) -> list[Positions]:
        """Positions of rows, of shape (n_groups, size), for each size of groups."""
        order, starts = self._order
        return [
            order[starts[self.sizes == size][:, None] + np.arange(size)]
            for size in np.unique(self.sizes)
        ]

    @cached_property
    def _order(self) -> tuple[Positions, Positions]:
        """Rows sorted by group, and where each group starts among them."""
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        return np.argsort(self.numbers, kind="stable"), starts

    def subset(self, rows: Positions) -> Groups:
        """Return the groups of some of the rows."""
        return replace(self, codes=self.codes[rows])

    def sums(self, numbers: FloatArray) -> FloatArray:
        """Return the sums over the rows of each group, of shape (n_groups, ...)."""
        order, starts = self._order
        return np.asarray(np.add.reduceat(numbers[order], starts, axis=0))

    def tables(self, strata: Positions) -> Positions:
        """Return the number of rows of each group and class, of shape (n_groups, n_classes)."""
        n = int(strata.max()) + 1
        return np.bincount(self.numbers * n + strata, minlength=len(self) * n).reshape(-1, n)

    def fellows(self, rows: Positions) -> Positions:
        """Return the positions of all rows of the groups of some rows."""
        return np.flatnonzero(np.isin(self.codes, self.codes[rows]))

    def draw(self, strata: Positions, most: int, rng: np.random.RandomState) -> Positions:
        """Return at most so many rows in a random order, with a share of every class.

        Groups are drawn as a whole, unless they would be fewer than 30: then each gives a part of
        its rows. Every class comes with rows of two groups, if it has as many.
        """
        table = self.tables(strata)
        places = random_places(_rarest(table), rng)
        for column in table.T:
            members = np.flatnonzero(column)
            places[members[np.argsort(places[members], kind="stable")[:2]]] = 0.0
        fewest = min(len(self), max(_FEWEST, 2 * table.shape[1]))
        most_of_one = -(-most // fewest)
        shuffled = rng.permutation(len(strata))
        own = self.numbers[shuffled]
        by_group, rank = np.argsort(own, kind="stable"), np.empty(len(own), dtype=np.intp)
        rank[by_group] = np.arange(len(own)) - self._order[1][own[by_group]]
        order = np.lexsort([rank, own, places[own], rank // most_of_one])
        return shuffled[order[:most]]

    def deal(self, strata: Positions, n_folds: int) -> Positions:
        """Return the fold of each row, from 0: whole groups, with similar shares of all classes.

        Large groups come first. A group goes to the fold that has the fewest rows of its classes
        or, if several have, to the smallest of them. Rows that are groups of their own are dealt
        in turn.
        """
        table = self.tables(strata)
        shares = table / np.maximum(table.sum(axis=0), 1)
        n_folds = min(n_folds, len(self))
        filled, n_rows = np.zeros((n_folds, table.shape[1])), np.zeros(n_folds)
        folds = np.empty(len(self), dtype=np.intp)
        for group in np.lexsort([_rarest(table), -self.sizes]):
            overlap = np.round((filled * shares[group]).sum(axis=1), 9)
            fold = folds[group] = np.lexsort([n_rows, overlap])[0]
            filled[fold] += table[group]
            n_rows[fold] += self.sizes[group]
        return np.asarray(folds[self.numbers])


def _rarest(table: Positions) -> Positions:
    """Return the class of each group with the fewest rows of all groups."""
    rarity = np.argsort(np.argsort(table.sum(axis=0), kind="stable"))
    rarest = np.where(table > 0, rarity, table.shape[1]).min(axis=1)
    return np.asarray(np.argsort(rarity)[rarest])


def random_places(strata: Positions, rng: np.random.RandomState) -> FloatArray:
    """Return random places from 0 to 1 in an order that mixes strata, two of each at 0."""
    places = np.empty(len(strata))
    for stratum in np.unique(strata):
        members = rng.permutation(np.flatnonzero(strata == stratum))
        places[members] = (np.arange(len(members)) + rng.uniform()) / len(members)
        places[members[:2]] = 0.0
    return places


def make_groups(codes: Positions) -> Groups | None:
    """Return groups of rows; None if every row is a group of its own, or raise an error."""
    groups = Groups(codes)
    if len(groups) == len(codes):
        return None
    if len(groups) < 2:
        raise InvalidInputError(
            "There must be at least two groups, so that one can be held out. Got 1 group for "
            f"{len(codes)} rows. Leave groups out, or use a column that tells the groups apart."
        )
    return groups
