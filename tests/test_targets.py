"""The matrices the papers build from labels."""

import numpy as np
import pytest

from discernel.arrays.groups import Groups
from discernel.arrays.sample_weights import SampleWeights
from discernel.exceptions import InvalidInputError
from discernel.targets import ClassTarget, LabelsTarget, deal_folds
from tests import reference

LABELS = [np.array([1, 0, 1, 1, 0]), np.array(["b", "c", "a", "b", "c", "c", "a"])]


@pytest.mark.parametrize("y", LABELS, ids=["two", "three"])
def test_indicator_is_ye_2008_eq_24(y):
    target = ClassTarget.from_labels(y)
    np.testing.assert_allclose(target.indicator, reference.indicator(y), atol=1e-14)
    np.testing.assert_allclose(target.indicator.sum(axis=0), 0, atol=1e-13)


@pytest.mark.parametrize("y", LABELS, ids=["two", "three"])
def test_scores_have_the_same_outer_product_as_the_indicator(y):
    target = ClassTarget.from_labels(y)
    H, T = target.indicator, target.scores
    assert T.shape == (len(y), target.n_classes - 1)
    np.testing.assert_allclose(T @ T.T, H @ H.T, atol=1e-13)
    np.testing.assert_allclose(T.T @ T, len(y) * np.eye(T.shape[1]), atol=1e-12)


def test_a_column_of_the_indicator_is_a_multiple_of_kims_a():
    """Column j of H is (m − n_j)√(n_j/m) times the a of 'class j against the rest'."""
    y = np.array([0, 1, 1, 0, 1, 1])
    target = ClassTarget.from_labels(y)
    a, _ = reference.kim_a_and_J(y)
    np.testing.assert_allclose(target.mean_difference, a)
    m, n_1 = 6, 4
    np.testing.assert_allclose(target.indicator[:, 1], (m - n_1) * np.sqrt(n_1 / m) * a)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 1, 1], "at least two classes.*Got 1 class"),
        ([0, 1, 2], "more samples than classes"),
        ([[0, 1], [1, 0]], "should be a 1d array"),
        ([0.0, np.nan, 1.0], "must not contain NaN.*position 1"),
        ([0.5, 1.5, 2.5, 0.5], "Unknown label type"),
    ],
)
def test_labels_that_cannot_work(y, message):
    with pytest.raises(ValueError, match=message):
        ClassTarget.from_labels(y)


def test_errors_are_of_the_house_and_built_in():
    with pytest.raises(InvalidInputError):
        ClassTarget.from_labels([1, 1])


@pytest.mark.parametrize(("share", "counts"), [(0.1, [9, 2, 2, 1]), (0.5, [45, 4, 2, 1])])
def test_a_drawn_part_has_two_samples_of_every_class(share, counts):
    """One alone could not be left out; a class of one has no more."""
    target = ClassTarget.from_labels(np.repeat(np.arange(4), [90, 8, 3, 1]))
    rows = target.draw(share, np.random.RandomState(0))
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(target.subset(rows).counts, counts)


@pytest.mark.parametrize("weights", [None, (1.0, 3.0, 0.5, 2.0, 2.0, 1.0, 4.0, 1.5, 1.0)])
def test_freedom_without_a_sample_is_that_of_the_others(weights):
    y = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])
    given = None if weights is None else SampleWeights.of(np.array(weights))
    freedom, without = ClassTarget.from_labels(y, given).freedom
    shares = np.ones(9) / 9.0 if weights is None else np.array(weights) / np.sum(weights)

    def by_definition(rows):
        sums = [
            (shares[rows & (y == c)].sum(), (shares[rows & (y == c)] ** 2).sum()) for c in (0, 1, 2)
        ]
        return shares[rows].sum() - sum(squares / total for total, squares in sums)

    assert freedom == pytest.approx(by_definition(np.ones(9, dtype=bool)))
    assert without == pytest.approx([by_definition(np.arange(9) != row) for row in range(9)])


@pytest.mark.parametrize("weights", [None, (1.0, 3.0, 0.5, 2.0, 2.0, 1.0, 4.0)])
def test_class_scores_are_the_scores_of_the_rows_of_a_class(weights):
    given = None if weights is None else SampleWeights.of(np.array(weights))
    target = ClassTarget.from_labels(np.array([0, 0, 0, 0, 1, 1, 2]), given)
    roots = target.row_weights.roots[:, None]
    np.testing.assert_allclose(target.class_scores[target.codes] * roots, target.scores, atol=1e-12)


def test_labels_that_do_not_vary_leave_scores_without_columns():
    target = LabelsTarget(np.empty((5, 0), dtype=bool))
    assert target.scores.shape == (5, 0)


@pytest.mark.parametrize("seed", range(3))
def test_rounding_errors_of_keys_change_neither_groups_nor_folds(seed):
    """Rows that are equal in the first key are told apart by the second."""
    rng = np.random.default_rng(seed)
    y, keys = np.repeat([0, 1], 60), rng.standard_normal((120, 2)) * [1e3, 1.0]
    keys[::2, 0] = 7.0
    noisy = keys * (1.0 + 1e-14 * rng.standard_normal(keys.shape))
    target = ClassTarget.from_labels(y)
    found, again = (target.left_out_groups(each).codes for each in (keys, noisy))
    np.testing.assert_array_equal(found, again)
    folds = [deal_folds(each, y, 5) for each in (keys, noisy)]
    np.testing.assert_array_equal(*folds)


@pytest.mark.parametrize("sizes", [(40, 60), (20, 30, 50)])
def test_names_of_classes_change_neither_scores_nor_groups_nor_folds(sizes):
    """Other names rotate the scores of a model; those of the target stay, up to their signs."""
    rng, n = np.random.default_rng(0), len(sizes)
    y, keys = np.repeat(np.arange(n), sizes), rng.standard_normal((100, n - 1))
    rotated = keys @ np.linalg.qr(rng.standard_normal((n - 1, n - 1)))[0]
    new = np.roll(np.arange(n), 1)
    plain, renamed = ClassTarget.from_labels(y), ClassTarget.from_labels(new[y])
    np.testing.assert_allclose(abs(renamed.scores), abs(plain.scores), atol=1e-14)
    groups = renamed.left_out_groups(rotated).codes
    np.testing.assert_array_equal(groups, plain.left_out_groups(keys).codes)
    np.testing.assert_array_equal(deal_folds(rotated, new[y], 5), deal_folds(keys, y, 5))
    drawn = [each.draw(0.3, np.random.RandomState(0)) for each in (plain, renamed)]
    np.testing.assert_array_equal(*drawn)


def test_near_rows_of_two_classes_are_in_one_group_by_chance_only():
    """On noise, the fits without such a group would see near rows of the same class only."""
    rng = np.random.default_rng(0)
    keys, y = rng.standard_normal((200, 1)) * 0.1, np.arange(200) % 2
    keys[1::2] = -keys[::2]  # the fit of a row pulls that of its neighbour as far from its class
    codes = ClassTarget.from_labels(y).left_out_groups(keys + np.where(y, 1, -1)[:, None]).codes
    assert np.mean(codes[::2] == codes[1::2]) < 0.15


def test_left_out_groups_have_a_share_of_every_class():
    rng = np.random.default_rng(0)
    y, keys = np.repeat(["a", "b", "c"], [60, 35, 21]), rng.standard_normal((116, 2))
    target = ClassTarget.from_labels(y)
    groups = target.left_out_groups(keys)
    assert len(groups) == 20
    table = groups.tables(target.codes)
    assert np.ptp(table, axis=0).max() <= 1
    order = rng.permutation(116)
    shuffled = ClassTarget.from_labels(y[order]).left_out_groups(keys[order])
    np.testing.assert_array_equal(shuffled.codes, groups.codes[order])


def test_rare_classes_have_rows_in_as_many_groups_as_they_can():
    keys = np.random.default_rng(0).standard_normal((100, 1))
    for n_rare, n_groups in [(2, 5), (7, 7), (30, 20)]:
        target = ClassTarget.from_labels(np.arange(100) < n_rare)
        groups = target.left_out_groups(keys)
        assert len(groups) == n_groups
        assert np.count_nonzero(groups.tables(target.codes)[:, 1]) == min(n_rare, n_groups)


def test_given_groups_stay_and_many_rows_are_left_out_alone():
    y, keys = np.arange(10_001) % 2, np.random.default_rng(0).standard_normal((10_001, 1))
    assert ClassTarget.from_labels(y).left_out_groups(keys) is None
    assert ClassTarget.from_labels(y[:-1]).left_out_groups(keys[:-1]) is not None
    given = Groups(np.arange(10_001) // 3)
    assert ClassTarget.from_labels(y, groups=given).left_out_groups(keys) is given
