"""Shapley values: what each of several players adds to a score, whatever the order they come in.

A player is a column, or a source. Present, it has its value in the row that is explained; absent,
that of a typical row. The value of a player is what its coming changes, averaged over all orders.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_legendre

from discernel.arrays import FloatArray

__all__ = ["n_nodes", "product_integrals", "product_values", "sampled_values"]

#: What values of a product may miss of what they add up to, over the sum of its coefficients.
_TOLERANCE = 1e-13
#: Nodes that are tried first where fewer than the exact number may do.
_FIRST_NODES = 6
#: Players up to which a game of any form is played in all subsets; of more, orders are drawn, each
#: with its reverse.
_ALL_SUBSETS, _ORDERS = 8, 32


@lru_cache(maxsize=64)
def _nodes(n: int) -> tuple[FloatArray, FloatArray]:
    """Return the nodes and weights of Gauss and Legendre on [0, 1], exact up to degree 2n − 1."""
    points, weights = roots_legendre(n)
    return 0.5 * (1.0 + points), 0.5 * weights


def n_nodes(n_players: int) -> int:
    """Return how many nodes are tried first."""
    return min((n_players + 1) // 2, _FIRST_NODES)


def _others(factors: FloatArray) -> FloatArray:
    """Return the product of all factors but each one, without dividing: factors may be 0."""
    out = np.ones_like(factors)
    np.multiply.accumulate(factors[:-1], axis=0, out=out[1:])
    out[:-1] *= np.multiply.accumulate(factors[:0:-1], axis=0)[::-1]
    return out


def product_integrals(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the Shapley values of games v(S) = Π_{l∈S} a_l Π_{l∉S} b_l.

    φ_l = ∫₀¹ (a_l − b_l) Π_{m≠l} (b_m + t(a_m − b_m)) dt: where all players come at random times,
    player l comes at t, and each of the others is there with probability t. The integrand is a
    polynomial of degree n_players − 1, so that a rule of half as many nodes is exact. Fewer are
    taken where the values add up with them, as they do for smooth kernels of many columns.

    Parameters
    ----------
    a, b : ndarray of shape (n_players, ...)
        The factor of each player, present and absent, of as many games as there are.

    Returns
    -------
    ndarray of the same shape
        φ, which sum to Π a − Π b in each game.
    """
    change, total = a - b, a.prod(axis=0) - b.prod(axis=0)
    exact, n = (len(a) + 1) // 2, n_nodes(len(a))
    while True:
        rest = np.zeros_like(a)
        for node, weight in zip(*_nodes(n), strict=True):
            rest += weight * _others(b + node * change)
        rest *= change
        if n == exact or np.abs(rest.sum(axis=0) - total).max(initial=0.0) <= _TOLERANCE:
            return np.asarray(rest)
        n = min(2 * n, exact)


def product_values(a: FloatArray, b: FloatArray, coef: FloatArray) -> FloatArray:
    """Return Σ_j coef_j φ_j of products, of shape (n_players, n_outputs).

    Parameters
    ----------
    a, b : ndarray of shape (n_players, n_terms)
        The factors, present and absent, as of `product_integrals`.
    coef : ndarray of shape (n_terms, n_outputs)
        What the products are multiplied by.
    """
    return np.asarray(product_integrals(a, b) @ coef)


def sampled_values(
    value: Callable[[NDArray[np.bool_]], FloatArray], n_players: int
) -> tuple[FloatArray, bool]:
    """Return the Shapley values of a game of any form, and whether they are exact.

    Of up to 8 players all subsets are played. Of more, 32 orders are drawn: values are then
    estimates, but add up whatever the orders are, because each order does.

    Parameters
    ----------
    value : callable
        From who is present, of shape (n_games, n_players), to results of shape
        (n_games, n_outputs).
    n_players : int
        How many players there are.
    """
    if n_players <= _ALL_SUBSETS:
        return _all_subsets(value, n_players), True
    rng = np.random.default_rng(0)
    drawn = [rng.permutation(n_players) for _ in range(_ORDERS // 2)]
    orders = np.array([order for one in drawn for order in (one, one[::-1])])
    ranks = np.argsort(orders, axis=1)
    # Who is there when so many have come: (order, how many, player).
    taken = ranks[:, None, :] < np.arange(n_players + 1)[None, :, None]
    results = value(taken.reshape(-1, n_players)).reshape(len(orders), n_players + 1, -1)
    steps = np.diff(results, axis=1)
    by_player = np.take_along_axis(steps, ranks[:, :, None], axis=1)
    return np.asarray(by_player.mean(axis=0)), False


def _all_subsets(value: Callable[[NDArray[np.bool_]], FloatArray], n: int) -> FloatArray:
    codes = np.arange(2**n)
    taken = (codes[:, None] >> np.arange(n)) % 2 == 1
    results, sizes = value(taken), taken.sum(axis=1)
    out = np.zeros((n, results.shape[1]))
    for player in range(n):
        without = codes[~taken[:, player]]
        weights = np.array([1.0 / (n * comb(n - 1, size)) for size in sizes[without]])
        out[player] = weights @ (results[without + 2**player] - results[without])
    return out
