"""Rows that occur more than once: narrower kernels, for copies that occur again and for leaks."""

import numpy as np
import pytest

from discernel import MultipleKernelDiscriminant
from discernel.default import menu as module
from discernel.default.menu import MENU, menu_of
from discernel.default.propose import propose_kernels
from discernel.targets import ClassTarget

NARROW = module._OF_REPEATED_ROWS


def repeated(n, n_different=60, seed=0):
    """Return draws of few different rows, each of a class of its own, with 10 % other labels."""
    rng = np.random.default_rng(seed)
    rows, classes = rng.standard_normal((n_different, 4)), rng.integers(0, 2, n_different)
    drawn, flipped = rng.integers(0, n_different, n), rng.uniform(size=n) < 0.1
    return rows[drawn], np.where(flipped, 1 - classes[drawn], classes[drawn])


def loss(clf, X, y):
    return -np.log(clf.predict_proba(X)[np.arange(len(y)), y]).mean()


def loss_without_narrow_kernels(X, y, fresh, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(module, "_MANY", 1.0)
        clf = MultipleKernelDiscriminant().fit(X, y)
    assert len(clf.kernels_) == MENU.n_kernels
    return loss(clf, *fresh)


@pytest.mark.parametrize(("n_copied", "expected"), [(0, MENU), (20, MENU), (24, NARROW)])
def test_more_than_half_of_the_rows_must_have_a_copy(n_copied, expected):
    X = np.random.default_rng(0).standard_normal((40, 3))
    X[20 : 20 + n_copied // 2] = X[: n_copied // 2]
    assert menu_of(X) is expected
    assert menu_of(X[np.random.default_rng(1).permutation(40)]) is expected


def test_narrower_kernels_come_before_the_linear_one():
    X, _ = repeated(50)
    kernels, plain = NARROW.kernels(X), MENU.kernels(X)
    assert len(kernels) == NARROW.n_kernels == MENU.n_kernels + 3
    assert kernels[:11] == plain[:11]
    assert kernels[-1] == plain[-1]
    stack = NARROW.matrices(X, 50, np.empty((NARROW.n_kernels, 50, 50)))
    for matrix, kernel in zip(stack[:-1], kernels[:-1], strict=True):
        np.testing.assert_allclose(matrix, kernel(X), atol=1e-7)


def test_rows_that_occur_again_are_predicted_by_their_copies(monkeypatch):
    X, y = repeated(1300)
    clf = MultipleKernelDiscriminant().fit(X[:300], y[:300])
    assert len(clf.kernels_) == len(clf.kernel_weights_) == NARROW.n_kernels
    fresh = X[300:], y[300:]
    found = loss(clf, *fresh)
    assert found < loss_without_narrow_kernels(X[:300], y[:300], fresh, monkeypatch) + 0.01
    assert found < 0.43  # the entropy of 10 % is 0.325
    assert clf.expected_.log_loss == pytest.approx(found, abs=0.06)


def test_copies_that_are_a_leak_do_less_harm(monkeypatch):
    """Each training row four times, and new rows without a copy."""
    gains = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((1100, 4))
        y = (X[:, 0] + X[:, 1] ** 2 + rng.standard_normal(1100) > 1.0).astype(int)
        rows, labels = np.repeat(X[:100], 4, axis=0), np.repeat(y[:100], 4)
        found = loss(MultipleKernelDiscriminant().fit(rows, labels), X[100:], y[100:])
        before = loss_without_narrow_kernels(rows, labels, (X[100:], y[100:]), monkeypatch)
        gains.append(before - found)
    assert np.mean(gains) > 0.0


def test_the_metric_of_all_rows_has_the_kernels_of_the_sample(monkeypatch):
    """Where kernels are chosen on a part of the rows, in which fewer have a copy."""
    monkeypatch.setattr("discernel.default.propose._FEW", 60)
    X, y = repeated(200, 80)
    proposal = propose_kernels(X, (1.0,) * 4, ClassTarget.from_labels(y))
    assert not proposal.is_whole
    assert proposal.sample.menu is menu_of(proposal.sample.rows)
    assert len(proposal.kernels) == len(proposal.chosen.weights)
