"""Sources given by their columns: ``kernels={"name": columns}``."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

import discernel
from discernel import MultipleKernelDiscriminant, MultipleKernelRidge
from discernel.default import propose
from discernel.default.menu import MENU, SourceMenu
from discernel.exceptions import DroppedKernelWarning, InvalidInputError
from discernel.inspection import source_importances
from discernel.kernels.make import are_sources
from discernel.streams import open_rows
from discernel.views import join_views, source_weights


def made_up(n=240, seed=0, n_noise=2):
    """Rows of two sources that are of use in different ways, and of noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    first = rng.normal(size=(n, 4)) + 1.2 * np.eye(3)[y] @ rng.normal(size=(3, 4))
    second = rng.normal(size=(n, 3))
    second[:, 0] += 1.5 * (y == 2)
    noise = {f"noise {i}": 100.0 * rng.normal(size=(n, 6)) for i in range(n_noise)}
    joined = join_views({"first": first, "second": second} | noise)
    return joined.table, y, joined.columns


@pytest.mark.parametrize("few", [False, True])
def test_the_matrices_of_folds_are_those_of_the_kernels(few):
    rng = np.random.default_rng(0)
    rows, columns = rng.normal(size=(60, 5)), {"a": np.array([0, 1]), "b": np.array([1, 2, 4])}
    menu, scales = SourceMenu(MENU, columns, few), np.array([1.0, 0.5, 2.0, 1.0, 0.1])
    scaled = menu.scaled(rows, scales)
    found = menu.matrices(scaled, 40, np.empty((2, 60, 40)))
    kernels = menu.standardized(scaled[:40], (1.0 / scales).tolist(), None)
    for matrix, kernel in zip(found, kernels, strict=True):
        expected = kernel(rows, rows[:40])
        centred = [each - each[:40].mean(axis=0) for each in (matrix, expected)]
        centred = [each - each.mean(axis=1, keepdims=True) for each in centred]
        np.testing.assert_allclose(centred[0], centred[1], atol=1e-12)
        center = np.eye(40) - 1.0 / 40
        assert np.trace(center @ matrix[:40] @ center) == pytest.approx(1.0, rel=1e-10)


def stripes(n, seed=0):
    """Rows of two sources; the class is the parity of a number that narrow kernels see."""
    X = np.random.default_rng(seed).uniform(size=(n, 3))
    return X, (np.floor(12.0 * X[:, 0]) % 2).astype(int), {"a": [0], "b": [1, 2]}


def test_kernels_of_sources_have_few_widths_unless_all_are_better():
    X, y, columns = stripes(300)
    narrow = MultipleKernelDiscriminant(columns).fit(X, y)
    wide = MultipleKernelDiscriminant(columns).fit(X, (X[:, 0] + X[:, 1] > 1).astype(int))
    for clf, is_few, expected in [(narrow, False, (6, 5, 1)), (wide, True, (3, 0, 0))]:
        chosen, *others = clf.learned_kernel_.considered
        assert chosen.few_widths == is_few
        assert any(one.few_widths != is_few for one in others)
        parts = str(clf.kernels_[0])
        assert tuple(map(parts.count, ("RBF(", "Laplace(", "Linear("))) == expected
    assert "three widths per source" in repr(wide.learned_kernel_.considered[0])
    new, truth, _ = stripes(1000, seed=1)
    assert narrow.score(new, truth) > 0.8


def test_without_a_fold_few_widths_stay_a_choice(monkeypatch):
    X, y, columns = stripes(300)
    choose = propose.choose_sample

    def doubtful(*samples, **options):
        found = choose(*samples, **options)
        if not found.other.few_widths:
            return found  # of quantiles
        return found._replace(without=[found.other, None, None, None, None])

    monkeypatch.setattr(propose, "choose_sample", doubtful)
    made = []

    def keep(*given, **options):
        made.append(propose.propose_kernels(*given, **options))
        return made[0]

    monkeypatch.setattr("discernel.learn.stages.propose_kernels", keep)
    clf = MultipleKernelDiscriminant(columns).fit(X, y)
    assert [one.few_widths for one in made[0].selection.without] == [
        True,
        False,
        False,
        False,
        False,
    ]
    own = made[0].kernels_of(made[0].selection.without[0], made[0].metric, X)
    assert str(own[0]) != str(made[0].kernels[0])
    # The fold is predicted with kernels that are too wide.
    monkeypatch.undo()
    usual = MultipleKernelDiscriminant(columns).fit(X, y)
    assert clf.expected_.accuracy < 0.98 * usual.expected_.accuracy


def test_sources_of_noise_have_hardly_any_weight():
    losses = []
    for seed in range(3):
        X, y, columns = made_up(seed=seed)
        clf, whole = MultipleKernelDiscriminant(columns), MultipleKernelDiscriminant()
        for each in (clf, whole):
            each.fit(X[:160], y[:160])
        losses.append([log_loss(y[160:], each.predict_proba(X[160:])) for each in (clf, whole)])
        weights = source_weights(clf)
        assert list(weights) == ["first", "second", "noise 0", "noise 1", "all sources"]
        assert weights["noise 0"] + weights["noise 1"] <= 0.05
    loss, plain = np.mean(losses, axis=0)
    assert loss < 1.05 * plain
    assert clf.kernel_names_ == list(weights)
    worth = source_importances(clf)
    assert worth.names[int(np.argmax(worth.shares))] == "first"


def test_expected_accuracy_of_many_sources_of_noise_is_that_of_guessing():
    claimed = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(100, 60)), np.arange(100) % 2
        columns = {f"group {i}": slice(3 * i, 3 * i + 3) for i in range(20)}
        clf = MultipleKernelDiscriminant(columns, random_state=seed).fit(X, y)
        claimed.append(clf.expected_.accuracy)
    assert np.mean(claimed) < 0.58


def test_order_of_rows_offsets_and_units_change_nothing():
    X, y, columns = made_up(150)
    new, X, y = X[100:], X[:100], y[:100]
    expected = MultipleKernelDiscriminant(columns).fit(X, y).predict_proba(new)
    order = np.random.default_rng(1).permutation(100)
    found = MultipleKernelDiscriminant(columns).fit(X[order], y[order]).predict_proba(new)
    np.testing.assert_allclose(found, expected, atol=1e-7)
    unit, far = 10.0 ** (np.arange(X.shape[1]) % 5), 1e4
    clf = MultipleKernelDiscriminant(columns).fit(X * unit + far, y)
    np.testing.assert_allclose(clf.predict_proba(new * unit + far), expected, atol=1e-4)


def test_tables_with_categories_and_missing_cells(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y, _ = made_up(120, n_noise=0)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    frame["kind"] = np.array(["low", "high"])[(y == 1).astype(int)]
    frame.loc[::7, "x0"] = np.nan
    sources = {"numbers": ["x0", "x1", "x2"], "clinic": ["x3", "kind"]}
    clf = MultipleKernelDiscriminant(sources).fit(frame, y)
    assert clf.score(frame, y) > 0.8
    assert clf.feature_importances_.shape == (8,)
    np.testing.assert_array_equal(clf.feature_importances_[4:7], 0.0)  # in no source
    np.testing.assert_array_equal(clone(clf).fit(frame, y).predict(frame), clf.predict(frame))
    pytest.importorskip("skops")
    discernel.save(clf, tmp_path / "model.skops")
    loaded = discernel.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict_proba(frame), clf.predict_proba(frame))
    assert source_weights(loaded) == source_weights(clf)


@pytest.mark.parametrize("given", [{"criterion": "rkda"}, {"bank": "lowrank"}, {"max_time": 60}])
def test_other_criteria_and_banks(given):
    X, y, columns = made_up(150)
    clf = MultipleKernelDiscriminant(columns, **given).fit(X, y)
    assert clf.score(X, y) > 0.6
    assert sum(source_weights(clf).values()) == pytest.approx(1.0)


def test_rows_in_chunks_and_further_rows():
    X, y, columns = made_up(400)
    clf = MultipleKernelDiscriminant(columns).fit(
        open_rows([(X[:150], y[:150]), (X[150:], y[150:])])
    )
    whole = MultipleKernelDiscriminant(columns).fit(X, y)
    assert abs(clf.score(X, y) - whole.score(X, y)) < 0.06
    further = MultipleKernelDiscriminant(columns).partial_fit(X[:200], y[:200])
    assert further.partial_fit(X[200:], y[200:]).score(X, y) > 0.6


def test_numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 9))
    y = np.sin(X[:, 0]) + X[:, 4]
    ridge = MultipleKernelRidge({"a": [0, 1, 2], "b": [3, 4, 5], "noise": [6, 7, 8]}).fit(X, y)
    assert ridge.score(X, y) > 0.8
    assert source_weights(ridge)["noise"] < 0.05


def test_overlapping_constant_and_single_sources():
    X, y, _ = made_up(100)
    X = np.column_stack([X, np.full(100, 3.0)])
    last = X.shape[1] - 1
    clf = MultipleKernelDiscriminant({"a": [0, 1, 2, 3], "b": [3, 4, 5], "constant": [last]})
    with pytest.warns(DroppedKernelWarning, match="training set: constant"):
        clf.fit(X, y)
    assert source_weights(clf)["constant"] == 0.0
    one = MultipleKernelDiscriminant({"a": [0, 1, 2, 3]}).fit(X, y)
    assert source_weights(one) == {"a": 1.0}
    changed = X.copy()
    changed[:, 4:] = 0.0
    np.testing.assert_array_equal(one.predict(changed), one.predict(X))


def test_errors_say_what_to_do():
    X, y, columns = made_up(60)
    with pytest.raises(InvalidInputError, match="must all be kernels, or all columns"):
        MultipleKernelDiscriminant({"a": [0, 1], "b": "rbf"}).fit(X, y)
    with pytest.raises(InvalidInputError, match="must lie in the"):
        MultipleKernelDiscriminant({"a": [0, 1], "b": [99]}).fit(X, y)
    with pytest.raises(InvalidInputError, match="at least one column"):
        MultipleKernelDiscriminant({"a": [0, 1], "b": []}).fit(X, y)
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(InvalidInputError, match="must be dense"):
        MultipleKernelDiscriminant({"a": [0, 1], "b": [2]}).fit(sparse.csr_array(X), y)
    assert are_sources(columns)
    assert not are_sources({"a": "rbf"})
    assert not are_sources({})


@pytest.mark.parametrize(
    "names", [("a", "all sources"), (1, "1")], ids=["the name of all", "equal as text"]
)
def test_names_of_sources_must_differ(names):
    X, y, _ = made_up()
    sources = dict(zip(names, (slice(0, 2), slice(2, 4)), strict=True))
    with pytest.raises(InvalidInputError, match=r"names of sources must differ.*Got"):
        MultipleKernelDiscriminant(sources).fit(X, y)
