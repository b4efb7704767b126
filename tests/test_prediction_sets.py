"""Prediction sets: their quantiles, their coverage by simulation, and every kind of model."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import discernel
from discernel import (
    KernelDiscriminant,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    open_rows,
)
from discernel.arrays.groups import Groups
from discernel.bank import LowRank
from discernel.discriminant import Decision, conformal_quantile, held_out_log_posterior
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF

ONE = {"kernels": [RBF(width=2.0)], "regularization": 0.1}


def blobs(n=90, seed=0, n_classes=3, apart=1.5):
    """Return classes on a circle that overlap."""
    rng, y = np.random.default_rng(seed), np.arange(n) % n_classes
    angles = 2.0 * np.pi * y / n_classes
    means = apart * np.column_stack([np.cos(angles), np.sin(angles)])
    return means + rng.standard_normal((n, 2)), y


# ---- quantiles ---------------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0.05, 0.5, 0.55, 0.7, 0.9, 0.99])
@pytest.mark.parametrize("n", [1, 4, 9, 19, 99])
def test_the_rank_of_a_new_score_is_uniform(n, coverage):
    """Of n + 1 exchangeable scores, each may be the new one: the share covered is exact."""
    scores = np.random.default_rng(n).permutation(np.arange(n + 1.0))
    covered = [
        scores[new] <= conformal_quantile(np.delete(scores, new), coverage, np.ones(n))
        for new in range(n + 1)
    ]
    wanted = min(n + 1, math.ceil(round(coverage * (n + 1), 6)))
    assert sum(covered) == wanted
    assert coverage - 1e-12 <= wanted / (n + 1) < coverage + 1.0 / (n + 1)


@pytest.mark.parametrize("seed", range(5))
def test_weighted_quantiles_are_as_defined(seed):
    rng = np.random.default_rng(seed)
    scores, weights = rng.integers(0, 9, 30).astype(float), rng.uniform(0.1, 3.0, 30)
    n = weights.sum() ** 2 / np.sum(weights**2)
    for coverage in (0.1, 0.5, 0.8, 0.9, 0.99):
        reached = [
            one
            for one in np.sort(scores)
            if weights[scores <= one].sum() >= coverage * (1 + 1 / n) * weights.sum()
        ]
        found = conformal_quantile(scores, coverage, weights)
        assert found == (reached[0] if reached else np.inf)
        assert found == conformal_quantile(scores[::-1], coverage, 1e-7 * weights[::-1])
    assert conformal_quantile(np.empty(0), 0.5, np.empty(0)) == np.inf


# ---- sets --------------------------------------------------------------------------------------


def test_groups_of_copies_have_the_quantile_of_one_row_of_each():
    scores, groups = np.random.default_rng(0).normal(size=30), np.repeat(np.arange(30), 4)
    for coverage in (0.5, 0.9, 0.96, 0.98):
        single = conformal_quantile(scores, coverage, np.ones(30))
        copies = conformal_quantile(scores[groups], coverage, np.ones(120), Groups(groups))
        assert copies == single
    assert conformal_quantile(scores[groups], 0.98, np.ones(120)) < np.inf == single


@pytest.mark.parametrize("per_class", [False, True])
def test_sets_are_as_defined(per_class):
    X, y = blobs()
    clf = MultipleKernelDiscriminant(**ONE).fit(X, y)
    evenly = held_out_log_posterior(clf.discriminant_, Decision(np.full(3, 1 / 3), np.zeros(3)))
    new = blobs(200, 1)[0]
    found = clf.predict_set(new, 0.8, per_class=per_class, allow_empty=True)
    for code in range(3):
        counts = np.tile(np.bincount(y, minlength=3), (90, 1))
        counts[np.arange(90), y] -= 1  # a new row of this class takes the place of each row
        counts[:, code] += 1
        own = softmax(evenly + np.log(counts), axis=1)[np.arange(90), y]
        scores = np.sort(1.0 - (own[y == code] if per_class else own))
        limit = scores[math.ceil(0.8 * (len(scores) + 1)) - 1]
        expected = 1.0 - clf.predict_proba(new)[:, code] <= limit
        np.testing.assert_array_equal(found[:, code], expected)
    assert found.dtype == bool


def test_the_class_of_new_rows_is_covered():
    """The mean over training sets of shares of 400 new rows; a standard error is about 0.6 %."""
    covered, by_class, others = [], [], []
    for seed in range(30):
        clf = MultipleKernelDiscriminant(**ONE).fit(*blobs(seed=seed))
        new, y = blobs(400, 1000 + seed)
        rows = np.arange(400)
        covered.append(clf.predict_set(new)[rows, y].mean())
        own = clf.predict_set(new, per_class=True)[rows, y]
        by_class.append([own[y == code].mean() for code in range(3)])
        others.append(clf.predict_set(new, 0.6, allow_empty=True)[rows, y].mean())
    assert np.mean(covered) == pytest.approx(0.9, abs=0.02)
    assert np.mean(by_class, axis=0) == pytest.approx(np.full(3, 0.92), abs=0.03)
    assert 0.58 < np.mean(others) < 0.66  # links of held-out rows are a little less sharp


def drawn(n, seed):
    """Return five overlapping classes, whose frequencies vary from draw to draw."""
    rng = np.random.default_rng(seed)
    y = rng.integers(5, size=n)
    return np.eye(5, 6)[y] + rng.standard_normal((n, 6)), y


def test_classes_whose_frequencies_vary_by_chance_are_covered():
    """If rows count in the class shares, and new ones do not, 76 and 89 % are covered.

    The standard errors of the means are 0.8 and 0.6 %.
    """
    covered, new = [], np.arange(500)
    for seed in range(100):
        X, y = drawn(50, seed)
        clf = MultipleKernelDiscriminant(**ONE).fit(X, y)
        X, y = drawn(500, 1000 + seed)
        sets = [clf.predict_set(X, each, allow_empty=True) for each in (0.8, 0.9)]
        covered.append([each[new, np.searchsorted(clf.classes_, y)].mean() for each in sets])
    assert np.mean(covered, axis=0) == pytest.approx([0.8, 0.9], abs=0.02)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_new_row_takes_the_place_of_a_row_or_of_its_group(grouped):
    """The limits, with the shares that the classes then have; weights are those of the rows."""
    X, y = blobs(60)
    rng = np.random.default_rng(0)
    weights, groups = rng.uniform(0.5, 2.0, 60), rng.permutation(np.arange(60) // 2)
    given = {"sample_weight": weights, "groups": groups if grouped else None}
    clf = MultipleKernelDiscriminant(**ONE).fit(X, y, **given)
    evenly = held_out_log_posterior(clf.discriminant_, Decision(np.full(3, 1 / 3), np.zeros(3)))
    found = clf.model_.head.least_probabilities(0.7, per_class=False)
    for code in range(3):
        own = []
        for row in range(60):
            then = np.where(groups == groups[row] if grouped else np.arange(60) == row, code, y)
            shares = np.bincount(then, weights, minlength=3) / weights.sum()
            own.append(softmax(evenly[row] + np.log(shares))[y[row]])
        together = Groups(groups) if grouped else None
        limit = conformal_quantile(-np.log(own), 0.7, weights, together)
        assert found[code] == pytest.approx(-limit, rel=1e-9)
    assert np.ptp(found) > 0


def test_priors_that_are_given_do_not_change_with_a_row():
    X, y = blobs(60)
    clf = MultipleKernelDiscriminant(**ONE, priors=[0.6, 0.3, 0.1]).fit(X, y)
    told = held_out_log_posterior(clf.discriminant_, clf.decision_)[np.arange(60), y]
    limit = conformal_quantile(-told, 0.7, np.ones(60))
    np.testing.assert_array_equal(clf.model_.head.least_probabilities(0.7, per_class=False), -limit)


def test_a_learned_kernel_is_covered_too():
    covered = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = blobs(480, seed)
        X = np.hstack([X, rng.standard_normal((480, 6))])
        clf = MultipleKernelDiscriminant().fit(X[:80], y[:80])
        covered.append(clf.predict_set(X[80:])[np.arange(400), y[80:]].mean())
    assert np.mean(covered) == pytest.approx(0.9, abs=0.035)


def test_rows_that_weigh_more_are_covered_more():
    """The quantile is that of the rows that have nearly all weight."""
    X, y = blobs(300, 5, n_classes=2, apart=1.0)
    weights = np.where(y == 1, 20.0, 1.0)
    new, truth = blobs(2000, 6, n_classes=2, apart=1.0)
    sets = MultipleKernelDiscriminant(**ONE).fit(X, y, weights).predict_set(new)
    covered = sets[np.arange(2000), truth]
    assert np.average(covered, weights=np.where(truth == 1, 20.0, 1.0)) > 0.88
    assert covered[truth == 0].mean() < 0.8 < covered[truth == 1].mean()
    scaled = MultipleKernelDiscriminant(**ONE).fit(X, y, 3.0 * weights).predict_set(new)
    np.testing.assert_array_equal(sets, scaled)


def test_no_set_is_empty_unless_asked():
    X, y = blobs(apart=6.0)
    clf = MultipleKernelDiscriminant(**ONE).fit(X, y)
    new = blobs(500, 1, apart=6.0)[0]
    empty = ~clf.predict_set(new, 0.5, allow_empty=True).any(axis=1)
    assert empty.mean() > 0.2
    found = clf.predict_set(new, 0.5)
    assert found.any(axis=1).all()
    np.testing.assert_array_equal(found[empty].argmax(axis=1), clf.predict(new[empty]))
    assert (found[empty].sum(axis=1) == 1).all()


def test_sets_grow_with_the_coverage():
    X, y = blobs()
    clf = KernelDiscriminant().fit(X, y)
    found = [clf.predict_set(X, coverage, allow_empty=True) for coverage in (0.3, 0.6, 0.9, 0.95)]
    for small, large in itertools.pairwise(found):
        assert (small <= large).all()
        assert small.sum() < large.sum()
    assert clf.predict_set(X, 0.999).all()  # 90 rows say nothing about one in 1,000


def test_classes_of_few_rows_are_in_every_set_of_their_own():
    X, y = blobs(100)
    y = np.where(np.arange(100) < 5, "few", np.where(y == 0, "a", "b"))
    weights = np.ones(100)
    weights[y == "b"] = 0.0
    y[50:60] = "c"
    clf = MultipleKernelDiscriminant(**ONE).fit(X, y, weights)
    assert clf.classes_.tolist() == ["a", "b", "c", "few"]
    found = clf.predict_set(X, per_class=True)
    assert found[:, [1, 3]].all()  # no row, five rows
    assert not found[:, 0].all()
    assert not clf.predict_set(X)[:, 1].any()


def test_costs_change_no_set():
    X, y = blobs()
    plain = MultipleKernelDiscriminant(**ONE).fit(X, y)
    costly = MultipleKernelDiscriminant(**ONE, class_costs=[50.0, 1.0, 1.0]).fit(X, y)
    assert (plain.predict(X) != costly.predict(X)).any()
    np.testing.assert_array_equal(plain.predict_set(X), costly.predict_set(X))


# ---- models ------------------------------------------------------------------------------------


def streamed(X, y):
    return MultipleKernelDiscriminant(**ONE).partial_fit(X[:150], y[:150]).partial_fit(X, y)


def of_a_source(X, y):
    return MultipleKernelDiscriminant(**ONE).fit(open_rows(X, y))


def low_rank(X, y):
    return MultipleKernelDiscriminant(**ONE, bank=LowRank(20)).fit(X, y)


def precise(X, y):
    return clone(KernelDiscriminant(RBF(width=2.0))).fit(X, y)


@pytest.mark.parametrize("fitted", [streamed, of_a_source, low_rank, precise])
def test_every_kind_of_model_covers_and_is_saved(fitted, tmp_path):
    X, y = blobs(300)
    clf = fitted(X, y)
    new, truth = blobs(1000, 1)
    found = clf.predict_set(new)
    assert found[np.arange(1000), truth].mean() == pytest.approx(0.9, abs=0.05)
    again = discernel.load(discernel.save(clf, tmp_path / "model.skops"))
    np.testing.assert_array_equal(again.predict_set(new), found)


def test_rows_in_chunks_and_in_frames():
    X, y = blobs()
    frame = pd.DataFrame(X, columns=["a", "b"])
    clf = MultipleKernelDiscriminant(**ONE).fit(frame, y)
    expected = clf.predict_set(frame, coverage=0.8, per_class=True)
    chunks = clf.predict_set(open_rows(frame, y, chunk_rows=25), 0.8, per_class=True)
    np.testing.assert_array_equal(np.concatenate(list(chunks)), expected)
    da = pytest.importorskip("dask.array")
    given = MultipleKernelDiscriminant(**ONE).fit(X, y)
    lazy = given.predict_set(da.from_array(X, chunks=(30, 2)), 0.8, per_class=True)
    assert (lazy.shape, lazy.dtype) == ((90, 3), bool)
    np.testing.assert_array_equal(lazy.compute(), expected)


def test_arrays_of_the_library_of_the_rows():
    torch = pytest.importorskip("torch")
    X, y = blobs()
    clf = MultipleKernelDiscriminant(**ONE).fit(X, y)
    found = clf.predict_set(torch.from_numpy(X), 0.8)
    assert found.dtype == torch.bool
    np.testing.assert_array_equal(found.numpy(), clf.predict_set(X, 0.8))


@pytest.mark.parametrize("coverage", [0.0, 1.0, -1, 90, np.nan, "0.9", True, None])
def test_a_coverage_is_a_probability(coverage):
    clf = MultipleKernelDiscriminant(**ONE).fit(*blobs())
    with pytest.raises(InvalidInputError, match=r"above 0 and below 1, such as 0\.9.*Got"):
        clf.predict_set(blobs()[0], coverage)


def test_models_without_held_out_rows_are_refused():
    X, y = blobs()
    with pytest.raises(NotFittedError):
        MultipleKernelDiscriminant().predict_set(X)
    clf = MultipleKernelDiscriminant(**ONE, statistics="training").fit(X, y)
    with pytest.raises(InvalidInputError, match=r"statistics='training'.*statistics='loo'"):
        clf.predict_set(X)
    waiting = MultipleKernelDiscriminant(**ONE).partial_fit(X[:1], y[:1], classes=[0, 1, 2])
    with pytest.raises(InvalidInputError, match="rows of two classes"):
        waiting.predict_set(X)
    assert not hasattr(MultiLabelKernelDiscriminant(), "predict_set")
