"""The search for the best λ of a grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discernel.exceptions import NumericalError
from discernel.programs.solution import Limit

#: Losses that differ by less than this share count as equal. Towards λ = 0 the loss often becomes
#: flat. Of several λ with equal losses, the largest gives the simplest model.
FLAT = 0.01


@dataclass(frozen=True)
class Rule:
    """The rule of a search: which λ are tried, and which of them is chosen.

    Attributes
    ----------
    stride : int
        The step between the positions that are tried first, from the largest λ, if no start is
        given.
    worthwhile : float
        The relative decrease of the loss for which a smaller λ is preferred.
    flat : float
        The largest λ whose loss is within this share of the smallest loss is chosen.
    tries_both_sides : bool
        Whether both neighbours are compared at every step. Otherwise larger λ are tried only
        after smaller ones stopped improving, and while their loss stays within ``flat``.
    skips_failures : bool
        Whether a `NumericalError` counts as an infinite loss, except for the largest λ.
    """

    stride: int = 1
    worthwhile: float = 0.0
    flat: float = 0.0
    tries_both_sides: bool = True
    skips_failures: bool = False


#: Choose the λ with the smallest loss, of all λ or by descent from a start.
LEAST = Rule()
#: Choose the largest λ whose loss is within 1 % of the smallest.
NEAR_LEAST = Rule(flat=FLAT)
#: The same with fewer losses, for losses with one minimum. It is mostly flat towards λ = 0: of 732
#: paths on small samples of 14 data sets, none had two minima that differ by more than 1 %. The
#: search descends to the flat part, and then goes to the largest λ of this part. It starts with
#: every fourth λ, including both ends of a grid of 13, and so finds the lower of two wide minima.
WALK = Rule(stride=4, worthwhile=FLAT / 4, flat=FLAT, tries_both_sides=False)


@dataclass(frozen=True)
class LambdaSearch:
    """The chosen λ, and the losses of all λ that were tried.

    Attributes
    ----------
    grid : sequence of float
        Values of λ, in decreasing order.
    position : int
        The position of the chosen λ in the grid.
    losses : mapping of int to float
        Losses by position in the grid, in the order in which they were computed.
    """

    grid: Sequence[float]
    position: int
    losses: Mapping[int, float]

    @property
    def regularization(self) -> float:
        """The chosen λ."""
        return self.grid[self.position]

    @property
    def loss(self) -> float:
        """The loss of the chosen λ."""
        return self.losses[self.position]

    @property
    def at_limit(self) -> Limit | None:
        """The end of the grid that the chosen λ is, so that a better λ may lie beyond; or None."""
        return find_limit(self.regularization, self.grid)


def search_lambda(
    grid: Sequence[float],
    loss: Callable[[float], float],
    rule: Rule = LEAST,
    start: int | None = None,
) -> LambdaSearch:
    """Return the best λ of a grid.

    Parameters
    ----------
    grid : sequence of float
        Values of λ, in decreasing order.
    loss : callable
        Returns the loss of a λ; called at most once for each λ.
    rule : Rule
        Which λ are tried, and which of them is chosen.
    start : int, optional
        The position of a λ that is good for a similar problem. The search descends from this
        position, and does not try all λ.
    """
    losses: dict[int, float] = {}

    def at(position: int) -> float:
        if not 0 <= position < len(grid):
            return np.inf
        if position not in losses:
            try:
                losses[position] = loss(grid[position])
            except NumericalError:
                if position == 0 or not rule.skips_failures:
                    raise
                losses[position] = np.inf
        return losses[position]

    first = range(0, len(grid), rule.stride) if start is None else (start,)
    tried = [at(position) for position in first]
    worth = (1.0 + rule.worthwhile) * min(tried)
    here = next(position for position, one in zip(first, tried, strict=True) if one <= worth)
    while here > 0 and at(here) == np.inf:
        here -= 1
    if rule.tries_both_sides:
        while (there := min((here, here - 1, here + 1), key=at)) != here:
            here = there
    else:
        while at(here + 1) < (1.0 - rule.worthwhile) * at(here):
            here += 1
        # Also past λ that were tried: a better one may lie between two equally good ones.
        while at(here - 1) <= (1.0 + rule.flat) * min(losses.values()):
            here -= 1
    limit = (1.0 + rule.flat) * min(losses.values())
    taken = min((position for position, one in losses.items() if one < limit), default=here)
    return LambdaSearch(grid, min(here, taken), losses)


def undecided(
    search: LambdaSearch, margins: Sequence[float], rule: Rule = LEAST, start: int | None = None
) -> int | None:
    """Return the most uncertain of the losses that the choice depends on; None if there is none.

    The choice depends on a loss if another λ might be chosen, or another loss be needed, when this
    loss is off by its margin and all others by theirs to the other side.

    Parameters
    ----------
    search : LambdaSearch
        The result of `search_lambda` with this rule and start.
    margins : sequence of float
        The largest relative error of the loss of each λ of the grid.
    rule, start
        As in `search_lambda`.
    """

    def is_same(position: int, sign: float) -> bool:
        known = {
            search.grid[i]: loss * (1.0 + (sign if i == position else -sign) * margins[i])
            for i, loss in search.losses.items()
        }
        try:
            other = search_lambda(search.grid, known.__getitem__, rule, start)
            return other.position == search.position
        except KeyError:  # the loss of another λ would be needed
            return False

    unsure = [
        position
        for position in search.losses
        if margins[position] > 0 and not (is_same(position, 1.0) and is_same(position, -1.0))
    ]
    return max(unsure, key=lambda position: margins[position], default=None)


def lambda_grid(largest: float, smallest: float, per_decade: int = 2) -> tuple[float, ...]:
    """Return values of λ in decreasing order, from base-10 logarithms of both ends.

    They are powers computed by Python, because older versions of NumPy round `logspace` otherwise.
    """
    n_steps = round((largest - smallest) * per_decade)
    return tuple(10.0 ** (largest - step / per_decade) for step in range(n_steps + 1))


def find_limit(regularization: float, considered: Sequence[float]) -> Limit | None:
    """Return whether a λ is at or beyond the smallest or largest considered; None if neither."""
    if len(considered) < 2:
        return None
    if regularization <= min(considered) * (1.0 + 1e-9):
        return "smallest"
    return "largest" if regularization >= max(considered) * (1.0 - 1e-9) else None
