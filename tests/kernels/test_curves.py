"""Curves of columns: values, slopes, quantiles, and kernels of them against slow ones."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Laplace, Linear, Polynomial, Standardized
from discernel.kernels.curves import Curves, quantile_curves
from discernel.kernels.terms import View

CURVES = Curves(
    knots=((0.0, 1.0, 4.0), (), (-2.0, -1.0, 0.5, 3.0)),
    values=((-1.0, 0.5, 1.0), (), (0.0, 2.0, 2.5, 6.0)),
)


def bent(X, curves=CURVES):
    """Return the values of curves, column by column by `numpy.interp`."""
    columns = zip(X.T, curves.knots, curves.values, strict=True)
    return np.array([np.interp(x, k, v) if k else x for x, k, v in columns]).T


def rows(n=30, seed=0):
    """Return rows, some beyond the knots and some on them."""
    X = 3.0 * np.random.default_rng(seed).standard_normal((n, 3))
    X[:4, 0], X[:4, 2] = (0.0, 1.0, 4.0, 9.0), (-2.0, 0.5, 3.0, -7.0)
    return X


def test_values_are_interpolated_and_constant_beyond_the_knots():
    assert_allclose(CURVES.of(rows()), bent(rows()), atol=1e-14)


def test_slopes_are_those_of_differences_and_means_of_both_sides_at_knots():
    X, step = rows(), 1e-6
    expected = np.empty_like(X)
    for column in range(3):
        move = step * np.eye(3)[column]
        expected[:, column] = (bent(X + move) - bent(X - move))[:, column] / (2.0 * step)
    assert_allclose(CURVES.slopes(X), expected, atol=1e-8)


def test_values_far_from_the_origin_keep_their_digits():
    far = Curves(tuple(tuple(k + 1e9 for k in knots) for knots in CURVES.knots), CURVES.values)
    X = np.round(8.0 * rows()) / 8.0
    assert_allclose(far.of(X + 1e9)[:, [0, 2]], bent(X)[:, [0, 2]], atol=1e-12)


def test_curves_are_values():
    again = pickle.loads(pickle.dumps(CURVES))
    assert again == CURVES
    assert hash(again) == hash(CURVES)
    assert set(vars(again)) <= {"knots", "values", "_hash"}
    assert CURVES.take([2, 0]).knots == (CURVES.knots[2], CURVES.knots[0])


# ---- quantiles -----------------------------------------------------------------------------------


def slow_quantiles(x, weights):
    """Return the normal quantile of every value: the share below, and half of the equal ones."""
    total = weights.sum()
    below = np.array([weights[x < each].sum() + 0.5 * weights[x == each].sum() for each in x])
    return norm.ppf(below / total)


def test_few_values_become_normal_quantiles_with_the_spread_of_the_column():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 7, 60) ** 3.0
    weights = rng.uniform(0.2, 3.0, 60)
    found = quantile_curves(x[:, None], (5.0,), weights).of(x[:, None])[:, 0]
    slow = slow_quantiles(x, weights)
    middle = np.average(slow, weights=weights)
    deviation = np.sqrt(np.average((slow - middle) ** 2, weights=weights))
    assert_allclose(found, 5.0 * slow / deviation, rtol=1e-12)


def test_many_values_are_near_their_normal_quantiles():
    x = np.exp(2.0 * np.random.default_rng(1).standard_normal(500))
    curves = quantile_curves(x[:, None], (1.0,))
    found, slow = curves.of(x[:, None])[:, 0], slow_quantiles(x, np.ones(500))
    assert len(curves.knots[0]) == 11
    assert (np.diff(curves.knots[0]) > 0).all()
    assert (np.diff(curves.values[0]) > 0).all()
    assert curves.knots[0][::10] == (x.min(), x.max())
    assert np.corrcoef(found, slow)[0, 1] > 0.99
    assert np.corrcoef(x, slow)[0, 1] < 0.7


def test_one_far_value_leaves_the_others_apart():
    x = np.random.default_rng(1).standard_normal(200)
    far = x.copy()
    far[7] = 1e8
    found = np.sort(quantile_curves(far[:, None], (1.0,)).of(far[:, None])[:, 0])
    expected = np.sort(slow_quantiles(x, np.ones(200)))
    assert_allclose(found[-11:-1], expected[-11:-1], atol=0.4)
    assert (np.diff(found[-11:]) > 0.01).all()


def test_a_column_with_one_frequent_value_has_half_its_range_for_a_spread():
    """As in `column_spreads`: rare values must not be far from all others."""
    x = np.where(np.arange(100) < 80, 0.0, np.arange(100.0) ** 2)
    found = quantile_curves(x[:, None], (3.0,)).of(x[:, None])
    assert np.ptp(found) == pytest.approx(6.0)


def test_constant_and_two_valued_columns_and_columns_without_spread_stay():
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [np.full(50, 7.0), rng.integers(0, 2, 50) * 9.0, rng.normal(size=50), rng.normal(size=50)]
    )
    curves = quantile_curves(X, (0.0, 1.0, 0.0, 1.0))
    assert curves.changed.tolist() == [3]
    assert_array_equal(curves.of(X)[:, :3], X[:, :3])


def test_quantiles_know_neither_the_order_of_rows_nor_the_units_nor_the_scale_of_weights():
    rng = np.random.default_rng(0)
    X, weights, order = (
        rng.standard_normal((80, 2)) ** 3,
        rng.uniform(1, 2, 80),
        rng.permutation(80),
    )
    curves = quantile_curves(X, (1.0, 2.0), weights)
    again = quantile_curves(X[order], (1.0, 2.0), 7.0 * weights[order])
    assert again.knots == curves.knots
    assert_allclose(again.of(X), curves.of(X), atol=1e-12)
    moved = quantile_curves(1000.0 * X + 5e5, (1000.0, 2000.0), weights)
    assert_allclose(moved.of(1000.0 * X + 5e5), 1000.0 * curves.of(X), rtol=1e-7, atol=1e-7)


def test_weights_of_rows_are_copies_and_rows_without_weight_are_none():
    rng = np.random.default_rng(0)
    X, copies = rng.standard_normal((60, 3)) ** 3, rng.integers(0, 4, 60)
    curves = quantile_curves(X, (1.0, 1.0, 1.0), copies.astype(float))
    repeated = quantile_curves(np.repeat(X, copies, axis=0), (1.0, 1.0, 1.0))
    assert curves.knots == repeated.knots
    assert_allclose(curves.values, repeated.values, rtol=1e-12)


def test_hardly_any_weight_has_no_infinite_quantile():
    weights = np.ones(20)
    weights[[0, -1]] = 1e-300
    curves = quantile_curves(np.arange(20.0)[:, None], (1.0,), weights)
    assert np.isfinite(curves.values[0]).all()


# ---- kernels -------------------------------------------------------------------------------------

SPREADS = (2.0, 0.5, 3.0)
KERNELS = [RBF(width=1.5), Laplace(width=2.0), Linear(), RBF(width=2.0) * Linear() + Linear()]


def curved(kernel):
    return Standardized(kernel, SPREADS, CURVES)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_that_of_bent_columns_over_spreads(kernel):
    X, Z = rows(), rows(20, seed=1)
    plain = [bent(each) / SPREADS for each in (X, Z)]
    assert_allclose(curved(kernel)(X, Z), kernel(*plain), atol=1e-13)
    assert_allclose(curved(kernel).diagonal(X), np.diag(kernel(plain[0])), atol=1e-13)
    shifted = curved(kernel).shifted(X)
    assert_allclose(shifted(X, Z), kernel.shifted(plain[0])(*plain), atol=1e-13)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_follow_the_curves(kernel):
    X, Z = rows(seed=2)[4:], rows(20, seed=1)
    coef, step = np.random.default_rng(3).standard_normal((20, 2)), 1e-6
    expected = np.empty((*X.shape, 2))
    for column in range(3):
        move = step * np.eye(3)[column]
        up, down = (curved(kernel)(X + sign * move, Z) @ coef for sign in (1.0, -1.0))
        expected[:, column] = (up - down) / (2.0 * step)
    assert_allclose(curved(kernel).gradient(X, coef, Z), expected, atol=1e-7)


def test_a_kernel_on_some_columns_has_their_curves():
    X = rows()
    kernel = Standardized(RBF(width=1.5), (2.0, 3.0), CURVES.take([2, 0])).on([2, 0])
    expected = RBF(width=1.5)(bent(X)[:, [2, 0]] / (2.0, 3.0))
    assert_allclose(kernel(X), expected, atol=1e-13)
    (term,) = kernel.terms()
    seen = term.atoms[0].view.seen(3)
    assert_allclose(RBF(width=1.5)(seen.of(X)), expected, atol=1e-13)
    inner = Standardized(RBF(width=1.5).on([2, 0]), SPREADS, CURVES)
    seen = inner.terms()[0].atoms[0].view.seen(3)
    assert_allclose(seen.of(X), (bent(X) / SPREADS)[:, [2, 0]], atol=1e-13)
    assert_allclose(seen.take(np.array([1])).of(X), (bent(X) / SPREADS)[:, [0]], atol=1e-13)


def test_column_scales_come_after_the_curves():
    X = rows()
    kernel = curved(RBF(width=1.5, scales=(0.0, 2.0, 0.5)))
    expected = RBF(width=1.5)(bent(X) / SPREADS * (0.0, 2.0, 0.5))
    assert_allclose(kernel(X), expected, atol=1e-13)
    seen = kernel.terms()[0].atoms[0].view.seen(3)
    assert_allclose(RBF(width=1.5)(seen.of(X)), expected, atol=1e-13)


def test_few_rows_have_the_curves_of_many():
    rng = np.random.default_rng(0)
    rows = rng.lognormal(size=(300, 5))
    found = quantile_curves(rows, np.ones(5)).of(rows)
    for n in (1, 7):
        np.testing.assert_array_equal(quantile_curves(rows, np.ones(5)).of(rows[:n]), found[:n])


def test_curves_of_other_columns_are_refused():
    with pytest.raises(InvalidInputError, match="one curve per column, here 2"):
        Standardized(RBF(width=1.0), (1.0, 1.0), CURVES)(np.ones((4, 2)))
    with pytest.raises(InvalidInputError, match="before these are divided"):
        View().then("spreads", SPREADS).then("curves", CURVES)


def test_settings_do_not_show_curves_and_keep_them():
    kernel = curved(Polynomial(degree=2))
    assert "curves" not in kernel.settings
    assert kernel.with_settings(degree=3).curves is CURVES


def test_columns_without_curves_stay():
    X = rows()
    assert_array_equal(CURVES.take([1, 1]).of(X[:, [1, 1]]), X[:, [1, 1]])
    assert_array_equal(CURVES.take([1]).slopes(X[:, [1]]), 1.0)
