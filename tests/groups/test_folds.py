"""Folds and samples of groups."""

import numpy as np
import pytest

from discernel import MultipleKernelDiscriminant
from discernel.arrays.groups import Groups
from discernel.default import propose_kernels
from discernel.default.cross_fit import clearly_better
from discernel.default.sample import draw_sample
from discernel.discriminant import fit as discriminant_fit
from discernel.kernels import rbf_ladder
from discernel.kernels.columns import column_spreads
from discernel.learn import held_out
from discernel.targets import ClassTarget, LabelsTarget, RegressionTarget, deal, deal_folds
from tests.groups.test_fit import patients


def unequal(seed=0, n=300, n_groups=40, n_classes=3):
    """Return classes and groups of very different sizes; some groups have several classes."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(n_groups, n, p=rng.dirichlet(np.full(n_groups, 0.7)))
    labels = rng.integers(0, n_classes, n_groups)[groups]
    mixed = rng.uniform(size=n) < 0.1
    labels[mixed] = rng.integers(0, n_classes, mixed.sum())
    return labels, groups


def are_whole(folds, groups):
    return all(len(set(folds[groups == group])) == 1 for group in np.unique(groups))


@pytest.mark.parametrize("seed", range(5))
def test_a_group_is_in_one_fold_and_folds_are_alike(seed):
    labels, groups = unequal(seed)
    keys = np.random.default_rng(seed).normal(size=(300, 2))
    for folds in (deal(labels, 5, Groups(groups)), deal_folds(keys, labels, 5, Groups(groups))):
        assert are_whole(folds, groups)
        assert set(folds) == set(range(5))
        largest = np.bincount(np.unique(groups, return_inverse=True)[1]).max()
        assert np.ptp(np.bincount(folds)) <= max(largest, 30)
        for label in range(3):
            assert len(set(folds[labels == label])) >= 3


def test_rows_that_are_groups_of_their_own_are_dealt_as_without_groups():
    labels, _ = unequal(1)
    keys = np.random.default_rng(0).normal(size=(300, 2))
    own = Groups(np.random.default_rng(1).permutation(300))
    np.testing.assert_array_equal(deal(labels, 5, own), deal(labels, 5))
    np.testing.assert_array_equal(deal_folds(keys, labels, 5, own), deal_folds(keys, labels, 5))


def test_folds_do_not_depend_on_the_order_of_rows_or_the_names_of_groups():
    labels, groups = unequal(2)
    rng = np.random.default_rng(0)
    keys, order, names = rng.normal(size=(300, 2)), rng.permutation(300), rng.permutation(40)
    first = deal_folds(keys, labels, 5, Groups(groups))
    second = deal_folds(keys[order], labels[order], 5, Groups(names[groups[order]]))
    np.testing.assert_array_equal(second, first[order])


def test_fewer_groups_than_folds():
    folds = deal(np.arange(12) % 2, 5, Groups(np.repeat([3, 1, 2], 4)))
    assert sorted(set(folds)) == [0, 1, 2]


@pytest.mark.parametrize("kind", ["classes", "numbers", "labels"])
def test_drawn_groups_are_whole(kind):
    labels, groups = unequal(3, 600, 120)
    target = {
        "classes": ClassTarget.from_labels(labels, groups=Groups(groups)),
        "numbers": RegressionTarget(
            np.random.default_rng(0).normal(size=(600, 1)), None, Groups(groups)
        ),
        "labels": LabelsTarget(labels[:, None] == [0, 1], None, Groups(groups)),
    }[kind]
    drawn = target.draw(0.4, np.random.RandomState(0))
    assert len(drawn) == pytest.approx(240, abs=4)
    assert target.subset(drawn).groups is not None
    counts = np.bincount(groups, minlength=120)
    parts = np.bincount(groups[drawn], minlength=120)
    # A group is drawn as a whole, but for the last one, and for groups larger than a 30th.
    assert np.count_nonzero((parts > 0) & (parts < np.minimum(counts, 8))) <= 2
    assert len(set(groups[drawn])) >= 30
    assert set(labels[drawn]) == {0, 1, 2}


def test_large_groups_give_a_part_of_their_rows():
    groups = np.repeat(np.arange(20), 1000)
    target = ClassTarget.from_labels(groups % 2, groups=Groups(groups))
    drawn = target.draw(0.05, np.random.RandomState(0))
    assert len(drawn) == 1000
    assert set(np.bincount(groups[drawn])) == {50}


@pytest.mark.parametrize("most", [60, 1000])
def test_samples_of_the_default_have_folds_of_groups(most):
    X, y, groups = patients(0, 60, 5)
    target = ClassTarget.from_labels(y, groups=Groups(groups))
    rng = np.random.RandomState(0)
    sample = draw_sample(X, target, most=most, n_folds=5, rng=rng)
    assert are_whole(sample.folds, groups[sample.positions])
    np.testing.assert_array_equal(sample.target.groups.codes, groups[sample.positions])
    assert len(sample.rows) == min(most, 300)


def test_rows_whose_groups_had_a_part_in_the_metric_are_dependent():
    X = np.random.default_rng(0).normal(size=(3010, 12))
    y, groups = (np.hypot(X[:, 0], X[:, 1]) > 1.2).astype(int), np.repeat(np.arange(430), 7)
    target = ClassTarget.from_labels(y, groups=Groups(groups))
    proposal = propose_kernels(X, tuple(column_spreads(X)), target)
    assert len(proposal.dependent)
    rows = proposal.independent(np.arange(len(X)))
    assert not np.isin(groups[rows], groups[proposal.dependent]).any()
    # The last group was drawn in part; all of its rows are dependent.
    assert set(np.bincount(groups[rows], minlength=430)) == {0, 7}


def test_all_folds_of_a_fit_are_of_groups(monkeypatch):
    """Those of held-out scores, and those of the links from scores to probabilities."""
    seen = []

    def recorded(keys, codes, n_folds, groups=None):
        folds = deal_folds(keys, codes, n_folds, groups)
        seen.append((folds, groups))
        return folds

    monkeypatch.setattr(held_out, "deal_folds", recorded)
    monkeypatch.setattr(discriminant_fit, "deal_folds", recorded)
    X, y, groups = patients(2, 40, 4, shift=1.0)
    MultipleKernelDiscriminant(rbf_ladder(3), criterion="rkda").fit(X, y, groups=groups)
    assert len(seen) >= 2
    assert all(known is not None and are_whole(folds, known.codes) for folds, known in seen)


def test_differences_are_judged_by_groups():
    """Repeated rows are no further evidence."""
    rng = np.random.default_rng(0)
    gains = rng.normal(0.35, 1.0, 40)
    base, shares = np.zeros(40), np.full(40, 1 / 40)
    expected = clearly_better(base, base + gains, shares)
    repeated = np.repeat(gains, 10)
    base, shares = np.zeros(400), np.full(400, 1 / 400)
    groups = Groups(np.repeat(np.arange(40), 10))
    assert clearly_better(base, base + repeated, shares, groups) is expected
    weak = np.repeat(gains - gains.mean() + 0.15, 10)
    assert clearly_better(base, base + weak, shares)
    assert not clearly_better(base, base + weak, shares, groups)
