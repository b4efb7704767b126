"""The search over λ: which values of a grid are tried, and which of them is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discernel.exceptions import NumericalError
from discernel.programs.solution import Limit

#: Losses that differ by less than this share count as equal. Towards λ = 0 the loss often becomes
#: flat: of λ that are as good, the largest is the simplest.
FLAT = 0.01


@dataclass(frozen=True)
class Rule:
    """The rule of a search: the λ that are tried, and the one that is taken.

    Attributes
    ----------
    stride : int
        Without a start, the step between the positions that are tried first, from the largest λ.
    worthwhile : float
        The fall of the loss, as a share, for which a smaller λ is taken.
    flat : float
        Of the λ whose losses are larger than the least by a smaller share, the largest is taken.
    tries_both_sides : bool
        Whether both neighbours are compared at every step. Else larger λ are tried only where
        smaller ones are no better, and as long as they are as good.
    skips_failures : bool
        Whether λ other than the largest may be too small to be solved with.
    """

    stride: int = 1
    worthwhile: float = 0.0
    flat: float = 0.0
    tries_both_sides: bool = True
    skips_failures: bool = False


#: The least loss: of all λ, or from a start downhill.
LEAST = Rule()
#: The largest λ that is as good.
NEAR_LEAST = Rule(flat=FLAT)
#: The same for few losses. They have one valley, mostly with a flat floor towards λ = 0: of 732
#: paths on small samples of 14 data sets none had two that differ by more than 1 %. So it is
#: followed down to the floor, and then along the floor to the largest λ on it. Every fourth λ, both
#: ends of 13 among them, also finds the lower one of two wide valleys.
WALK = Rule(stride=4, worthwhile=FLAT / 4, flat=FLAT, tries_both_sides=False)


@dataclass(frozen=True)
class LambdaSearch:
    """The λ that was taken, and all that were tried.

    Attributes
    ----------
    grid : sequence of float
        The values that were known, falling.
    position : int
        Which of them was taken.
    losses : mapping of int to float
        By position, in the order in which they were tried.
    """

    grid: Sequence[float]
    position: int
    losses: Mapping[int, float]

    @property
    def regularization(self) -> float:
        """The λ that was taken."""
        return self.grid[self.position]

    @property
    def loss(self) -> float:
        """Its loss."""
        return self.losses[self.position]

    @property
    def at_limit(self) -> Limit | None:
        """Whether it is an end of the grid, so that a better one may lie beyond."""
        return find_limit(self.regularization, self.grid)


def search_lambda(
    grid: Sequence[float],
    loss: Callable[[float], float],
    rule: Rule = LEAST,
    start: int | None = None,
) -> LambdaSearch:
    """Return the best λ of a grid by a rule.

    Parameters
    ----------
    grid : sequence of float
        λ, falling.
    loss : callable
        From λ to its loss; called once per position that is tried.
    rule : Rule
        Which are tried, and which is taken.
    start : int, optional
        The position of a λ that is good for a similar problem. The loss is followed downhill from
        there, and some λ are never tried.
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
        # Also past what is tried: between two that are as good may be a better one.
        while at(here - 1) <= (1.0 + rule.flat) * min(losses.values()):
            here -= 1
    limit = (1.0 + rule.flat) * min(losses.values())
    taken = min((position for position, one in losses.items() if one < limit), default=here)
    return LambdaSearch(grid, min(here, taken), losses)


def lambda_grid(largest: float, smallest: float, per_decade: int = 2) -> tuple[float, ...]:
    """Return values of λ, falling, from the logarithms of both ends to the base 10.

    By powers of Python: older versions of NumPy round `logspace` otherwise.
    """
    n_steps = round((largest - smallest) * per_decade)
    return tuple(10.0 ** (largest - step / per_decade) for step in range(n_steps + 1))


def find_limit(regularization: float, considered: Sequence[float]) -> Limit | None:
    """Return whether a chosen λ is the smallest or largest of those considered, or beyond."""
    if len(considered) < 2:
        return None
    if regularization <= min(considered) * (1.0 + 1e-9):
        return "smallest"
    return "largest" if regularization >= max(considered) * (1.0 - 1e-9) else None
