"""Shapley values of products, in closed form, against their definition over all subsets."""

import numpy as np
import pytest

from discernel.inspection.games import product_integrals, sampled_values
from tests.inspection.brute import shapley


def product_game(a, b, coef):
    def value(subset):
        inside = np.isin(np.arange(len(a)), subset)[:, None]
        return np.where(inside, a, b).prod(axis=0) @ coef

    return value


@pytest.mark.parametrize("n_players", [1, 2, 3, 4, 5, 6])
def test_products_have_the_values_of_their_definition(n_players, rng):
    a, b = rng.random((2, n_players, 7))
    coef = rng.normal(size=(7, 2))
    expected = shapley(product_game(a, b, coef), n_players)
    np.testing.assert_allclose(product_integrals(a, b) @ coef, expected, atol=1e-14)


def test_factors_of_zero_are_no_division(rng):
    a, b = rng.random((2, 4, 5))
    a[1], b[2], a[3], b[3] = 0.0, 0.0, 0.0, 0.0
    coef = rng.normal(size=(5, 1))
    expected = shapley(product_game(a, b, coef), 4)
    np.testing.assert_allclose(product_integrals(a, b) @ coef, expected, atol=1e-14)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_many_players_add_up(scale, rng):
    a, b = np.exp(-scale * rng.random((2, 300, 20)))
    coef = 100 * rng.normal(size=(20, 2))
    found = product_integrals(a, b) @ coef
    total = (a.prod(axis=0) - b.prod(axis=0)) @ coef
    np.testing.assert_allclose(found.sum(axis=0), total, atol=1e-10)


def test_few_players_of_any_game_are_exact_and_many_add_up(rng):
    weights = rng.normal(size=(12, 12))

    def value(taken):
        return np.stack([np.sin(taken @ weights[0]), (taken @ weights[1]) ** 2], axis=1)

    found, exact = sampled_values(lambda taken: value(np.pad(taken, ((0, 0), (0, 8)))), 4)
    assert exact
    expected = shapley(lambda s: value(np.isin(np.arange(12), s)[None])[0], 4)
    np.testing.assert_allclose(found, expected, atol=1e-13)
    found, exact = sampled_values(value, 12)
    assert not exact
    ends = value(np.array([np.zeros(12), np.ones(12)]))
    np.testing.assert_allclose(found.sum(axis=0), ends[1] - ends[0], atol=1e-13)


def test_orders_with_their_reverse_are_exact_for_pairs(rng):
    """Of two players, one comes before the other in an order or in its reverse."""
    weights = np.triu(rng.normal(size=(12, 12)), 1)
    found, exact = sampled_values(
        lambda taken: np.einsum("gi,ij,gj->g", taken, weights, taken)[:, None], 12
    )
    assert not exact
    expected = 0.5 * (weights.sum(axis=0) + weights.sum(axis=1))
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-13)


def test_one_order_is_enough_for_a_sum(rng):
    each = rng.normal(size=(15, 2))
    found, _ = sampled_values(lambda taken: taken @ each, 15)
    np.testing.assert_allclose(found, each, atol=1e-13)
