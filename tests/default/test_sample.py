"""The rows that kernels are chosen on: by what is in them, not by their order."""

import numpy as np
import pytest

from discernel.arrays import typical_row
from discernel.default import sample as module
from discernel.default.sample import draw_sample
from discernel.kernels.columns import column_spreads
from discernel.kernels.curves import divided_columns
from tests.default.tables import make_target, three_classes

KINDS = ["classes", "numbers", "labels"]


def draw(X, target, most=50, n_folds=5, seed=0):
    return draw_sample(X, target, most=most, n_folds=n_folds, rng=np.random.RandomState(seed))


def contents(sample):
    """Return all that a sample is of, as one matrix."""
    folds, weights = sample.folds[:, None], sample.weights.values[:, None]
    return np.hstack([sample.rows, sample.scores, weights, folds])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("most", [50, 1000])
def test_the_order_of_the_rows_changes_nothing(kind, most):
    X, y = three_classes(120)
    expected = draw(X, make_target(kind, X, y), most)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(120)
        found = draw(X[order], make_target(kind, X[order], y[order]), most)
        np.testing.assert_allclose(contents(found), contents(expected), atol=1e-12)
        np.testing.assert_array_equal(order[found.positions], expected.positions)


def test_rounding_of_the_spreads_changes_nothing():
    """A sum in another order has other last digits, and so have columns divided by it."""
    X, y = three_classes(120)
    X = 3.0 + X * np.array([0.1, 0.3, 0.7, 1.1, 3.3, 7.7])
    taken = []
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(120)
        rows = divided_columns(X[order], column_spreads(X[order]))
        target = make_target("classes", X, y[order])
        taken.append(order[draw(rows, target).positions])
    for other in taken[1:]:
        np.testing.assert_array_equal(other, taken[0])


@pytest.mark.parametrize("whole", [False, True])
def test_every_row_is_drawn_once_with_its_weight(whole):
    X, y = three_classes(60)
    given = np.random.default_rng(0).uniform(0.2, 3.0, 60)
    given = np.ceil(given) if whole else given
    target = make_target("classes", X, y, given)
    sample = draw(X, target, most=1000)
    np.testing.assert_array_equal(np.sort(sample.positions), np.arange(60))
    np.testing.assert_allclose(sample.weights.values, (given / given.mean())[sample.positions])
    np.testing.assert_allclose(sample.weights.shares.sum(), 1.0)
    # Scores are those of the target, without the roots of the weights in them.
    unweighted = target.scores / target.sample_weights.roots[:, None]
    np.testing.assert_allclose(sample.scores, unweighted[sample.positions])
    np.testing.assert_allclose(sample.weights.shares @ sample.scores, 0.0, atol=1e-12)
    np.testing.assert_allclose(sample.target.sample_weights.shares, sample.weights.shares)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("most", [10, 33, 120, 500])
def test_no_more_rows_than_asked_for(kind, most):
    X, y = three_classes(120)
    sample = draw(X, make_target(kind, X, y), most)
    assert len(sample.rows) == min(most, 120)
    assert len(set(sample.positions)) == len(sample.positions)
    drawn = X[sample.positions]
    np.testing.assert_array_equal(sample.rows, drawn - typical_row(drawn))
    assert sample.target.n_samples == len(sample.rows)


def test_classes_keep_their_shares_and_two_rows_at_least():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), [600, 300, 94, 4, 2])
    X = rng.standard_normal((1000, 3))
    for seed in range(5):
        sample = draw(X, make_target("classes", X, y), most=100, seed=seed)
        counts = np.bincount(sample.target.codes, minlength=5)
        assert counts[4] == 2
        assert 2 <= counts[3] <= 3
        np.testing.assert_allclose(counts[:3], [60, 30, 9.4], atol=3)
        np.testing.assert_array_equal(sample.target.classes, np.arange(5))


def test_a_class_of_one_row_is_there():
    X, y = three_classes(60)
    y = np.where(np.arange(60) == 17, 3, y)
    sample = draw(X, make_target("classes", X, y), most=20)
    assert np.bincount(sample.target.codes)[3] == 1


@pytest.mark.parametrize("n_folds", [2, 5, 7])
def test_folds_are_of_one_size_and_have_a_share_of_every_class(n_folds):
    X, y = three_classes(103)
    sample = draw(X, make_target("classes", X, y), most=97, n_folds=n_folds)
    assert sample.n_folds == n_folds
    assert np.ptp(np.bincount(sample.folds)) <= 1
    for code in range(3):
        counts = np.bincount(sample.folds[sample.target.codes == code], minlength=n_folds)
        assert np.ptp(counts) <= 1
    together = []
    for outside, inside in sample.divisions():
        assert len(np.intersect1d(outside, inside)) == 0
        assert len(outside) + len(inside) == 97
        together.extend(inside)
    assert sorted(together) == list(range(97))


def test_no_more_folds_than_rows():
    X, y = three_classes(60)
    assert draw(X, make_target("classes", X, y), most=3, n_folds=5).n_folds == 3


def test_the_random_state_draws():
    X, y = three_classes(120)
    target = make_target("classes", X, y)
    first, again, other = (draw(X, target, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.positions, again.positions)
    np.testing.assert_array_equal(first.folds, again.folds)
    assert set(first.positions) != set(other.positions)


def test_zeros_have_no_sign():
    X, y = three_classes(50)
    X[::3, 2] = 0.0
    negative = X.copy()
    negative[::3, 2] = -0.0
    found = [draw(rows, make_target("classes", rows, y)).positions for rows in (X, negative)]
    np.testing.assert_array_equal(*found)


def test_labels_that_vanish_keep_their_columns():
    X, y = three_classes(100)
    target = make_target("labels", X, y)
    rare = type(target)(np.column_stack([target.has, np.arange(100) == 3]))
    sample = draw(X, rare, most=20, seed=1)
    assert 3 not in sample.positions
    assert sample.scores.shape == (20, 3)


@pytest.mark.parametrize("n_values", [3, 10**6])
def test_rows_are_in_the_order_of_all_columns(n_values):
    """One column decides where it has no ties; else all do."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, n_values, size=(200, 4)).astype(float)
    found = rows[module._sorted(rows)].tolist()
    assert found == sorted(rows.tolist())
