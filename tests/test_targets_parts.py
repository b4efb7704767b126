"""Parts of targets, and signs that do not depend on LAPACK."""

import numpy as np
import pytest

from discernel.targets import ClassTarget, LabelsTarget, RegressionTarget


@pytest.mark.parametrize("n_classes", [2, 3, 4, 7])
def test_the_last_class_has_the_larger_score(n_classes):
    rng = np.random.default_rng(n_classes)
    for _ in range(5):
        y = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=20)])
        scores = ClassTarget.from_labels(y).scores
        assert (scores[y == n_classes - 1] >= -1e-12).all()
        if n_classes == 2:
            assert scores[y == 1].min() > 0 > scores[y == 0].max()


def test_classes_that_vanish_are_left_out_of_a_part():
    target = ClassTarget.from_labels(["a", "b", "c", "a", "b", "c", "c"])
    part = target.subset(np.array([0, 2, 3, 5]))
    assert part.classes.tolist() == ["a", "c"]
    assert part.codes.tolist() == [0, 1, 0, 1]
    assert part.counts.tolist() == [2, 2]
    assert np.isfinite(part.scores).all()


def test_numbers_are_drawn_at_random_and_sorted():
    target = RegressionTarget.from_values(np.arange(100.0))
    draws = [target.draw(0.3, np.random.RandomState(seed)) for seed in range(5)]
    for rows in draws:
        assert len(rows) == 30
        assert rows.tolist() == sorted(set(rows.tolist()))
    assert len({tuple(rows) for rows in draws}) == 5
    assert all(rows.max() > 60 for rows in draws)


def test_labels_that_do_not_vary_on_a_part_are_left_out():
    has = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 0], [0, 0, 0]], dtype=bool)
    part = LabelsTarget(has).subset(np.array([0, 1]))  # all have the first, one each of the others
    np.testing.assert_array_equal(part.has, [[False, True], [True, False]])
    assert np.isfinite(part.scores).all()
    none = LabelsTarget(has).subset(np.array([2, 3]))
    np.testing.assert_array_equal(none.has, [[True], [False]])


@pytest.mark.parametrize("seed", range(5))
def test_a_drawn_part_has_two_rows_with_and_two_without_every_label(seed):
    has = np.zeros((200, 3), dtype=bool)
    has[[3, 150], 0] = True  # rare
    has[:, 1] = True
    has[[7, 90], 1] = False  # common
    has[::2, 2] = True
    rows = LabelsTarget(has).draw(0.1, np.random.RandomState(seed))
    assert rows.tolist() == sorted(set(rows.tolist()))
    assert 20 <= len(rows) <= 32
    assert has[rows].sum(axis=0).min() >= 2
    assert (~has[rows]).sum(axis=0).min() >= 2
