"""Data made up for a figure of a paper."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discernel.datasets import Dataset

__all__ = ["TOYS", "five_groups"]

#: The groups of Figure 1 of Yeung 2006: centre, points, class.
_GROUPS = (
    ((0.0, 2.0), 100, 0),
    ((0.0, -2.0), 100, 0),
    ((-2.0, 0.0), 100, 1),
    ((2.0, 0.0), 100, 1),
    ((0.0, 0.0), 100, 2),
)


def five_groups() -> Dataset:
    """Return 500 points in five round groups, a cross, of three classes.

    Above and below are one class, left and right another, the middle is the third. The paper
    prints neither centres nor widths; here the centres are 2 apart and the standard deviation is
    0.35, so that the groups nearly touch.
    """
    rng = np.random.default_rng(0)
    X = np.concatenate([0.35 * rng.standard_normal((n, 2)) + center for center, n, _ in _GROUPS])
    y = np.concatenate([np.full(n, label) for _, n, label in _GROUPS])
    return Dataset("five_groups", X, y, ("x", "y"), "Five groups of points, a cross", "made here")


#: From names to what makes the data.
TOYS: dict[str, Callable[[], Dataset]] = {"five_groups": five_groups}
