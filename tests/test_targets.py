"""The matrices the papers build from labels."""

import numpy as np
import pytest

from discernel.arrays.sample_weights import SampleWeights
from discernel.exceptions import InvalidInputError
from discernel.targets import ClassTarget, LabelsTarget
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
