"""The quadratic program inside every Newton step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discernel.programs.simplex import minimize_quadratic, normalize


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), rank=st.integers(1, 30))
def test_first_order_conditions_hold(seed, n, rank):
    """The slope is equal on the support and no smaller off it."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((n, rank))
    Q = root @ root.T / rank + 1e-8 * np.eye(n)
    c = rng.standard_normal(n)
    start = rng.dirichlet(np.full(n, 0.3))
    x = minimize_quadratic(c, Q, start)
    assert x.min() >= 0
    assert x.sum() == pytest.approx(1.0)
    slope = c + Q @ x
    level = slope[x > 0]
    assert np.ptp(level) <= 1e-6
    assert slope.min() >= level.min() - 1e-8


def test_start_at_a_corner_can_leave_it():
    x = minimize_quadratic(np.zeros(4), np.eye(4), np.array([1.0, 0, 0, 0]))
    np.testing.assert_allclose(x, 0.25)


def test_normalize_falls_back_to_equal_weights():
    np.testing.assert_array_equal(normalize(np.array([-1.0, 0.0])), [0.5, 0.5])
    np.testing.assert_array_equal(normalize(np.array([np.nan, 1.0])), [0.5, 0.5])
    np.testing.assert_array_equal(normalize(np.array([-1.0, 3.0, 1.0])), [0, 0.75, 0.25])
