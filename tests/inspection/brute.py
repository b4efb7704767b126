"""Shapley values by their definition: over all subsets of players."""

from itertools import combinations
from math import factorial

import numpy as np


def shapley(value, n_players):
    """Return the Shapley values of ``value(subset of players)``, whatever it returns."""
    known = {
        subset: value(subset)
        for size in range(n_players + 1)
        for subset in combinations(range(n_players), size)
    }
    found = [0.0] * n_players
    for player in range(n_players):
        for subset in known:
            if player in subset:
                continue
            joined = tuple(sorted((*subset, player)))
            weight = factorial(len(subset)) * factorial(n_players - len(subset) - 1)
            found[player] += weight / factorial(n_players) * (known[joined] - known[subset])
    return np.array(found)
