"""Before heavy work a fit says which way it takes; what it chooses keeps to memory and time."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import threadpoolctl
from sklearn.base import clone

from discernel import LearnedKernelTransformer, MultipleKernelDiscriminant, open_rows
from discernel.bank import AutoBank, LowRank
from discernel.exceptions import InvalidInputError, LongFitWarning, LowRankWarning
from discernel.kernels import rbf_ladder
from discernel.plan import Stage
from discernel.plan.speed import Speed

SLOW = Speed(product=1e7, entry=1e-6, n_threads=1)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((240, 3))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def few_are_many(monkeypatch, speed=None):
    monkeypatch.setattr("discernel.plan.plan.FEW_ROWS", 100)
    if speed is not None:
        monkeypatch.setattr("discernel.plan.costs.measure_speed", lambda kernels, X: speed)


def test_few_rows_have_no_forecast(rows):
    assert MultipleKernelDiscriminant().fit(*rows).forecast_ is None


def test_verbose_says_what_was_chosen_and_how_far_it_is(rows, capsys):
    clf = MultipleKernelDiscriminant(verbose=True).fit(*rows)
    shown = capsys.readouterr()
    assert str(clf.forecast_) in shown.out
    assert "240 rows: bank='dense'" in shown.out
    assert "done in" in shown.err
    assert clf.bank_ == clf.forecast_.kind == "dense"


def test_long_fits_warn_and_say_what_to_do(rows, monkeypatch):
    few_are_many(monkeypatch, SLOW)
    with pytest.warns(LongFitWarning, match=r"expected to take .* verbose=True .* max_time") as one:
        MultipleKernelDiscriminant(bank="tiled").fit(*rows)
    with pytest.warns(LongFitWarning, match="rows in chunks") as other:
        MultipleKernelDiscriminant().fit(open_rows(*rows))
    assert {each.filename for each in (*one, *other)} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error", LongFitWarning)
        MultipleKernelDiscriminant(bank="tiled", verbose=True).fit(*rows)


def test_the_rank_of_the_forecast_is_that_of_the_fit(rows, monkeypatch):
    asked = set()

    def plan(problem, kind, reason, rank=None):
        asked.add(kind)
        return Stage("lowrank", problem.n_rows, "no room", 1.0, 1e6, 60, problem.learns)

    monkeypatch.setattr("discernel.plan.plan.forecast", plan)
    monkeypatch.setattr("discernel.learn.stages.forecast_rest", lambda *_: 0.5)
    clf = MultipleKernelDiscriminant(
        rbf_ladder(4), criterion="rkda", regularization=0.01, max_time="2m"
    )
    with pytest.warns(LowRankWarning, match="A larger rank would reduce the error"):
        clf.fit(*rows)
    assert asked == {"dense"}
    assert clf.bank_ == "lowrank"
    assert clf.discriminant_.dual_coef.shape[0] <= 60


def test_a_bank_that_nobody_asked_for_is_not_said_to_be_asked_for(rows):
    few = MultipleKernelDiscriminant(verbose=True).fit(*rows)
    assert few.forecast_.reason == "all matrices fit into the cache"
    asked = MultipleKernelDiscriminant(bank="dense", verbose=True).fit(*rows)
    assert asked.forecast_.reason == "asked for"


@pytest.mark.parametrize("max_time", [None, "1h"])
def test_a_busy_machine_has_one_thread_of_blas(monkeypatch, max_time):
    X = np.random.default_rng(0).standard_normal((2000, 3))
    y, seen = (X[:, 0] > 0).astype(int), set()
    busy = Speed(product=2e10, entry=2e-8, n_threads=2, single=2e10, blas_threads_pay=False)
    monkeypatch.setattr("discernel.plan.costs.measure_speed", lambda kernels, X: busy)

    def look(progress):
        pools = threadpoolctl.threadpool_info()
        seen.update(pool["num_threads"] for pool in pools if pool["user_api"] == "blas")

    with threadpoolctl.threadpool_limits(2):
        MultipleKernelDiscriminant(
            rbf_ladder(2), criterion="rkda", regularization=0.1, max_time=max_time, callback=look
        ).fit(X, y)
    assert seen == {1}


def test_fits_of_few_rows_say_how_they_were_computed(rows):
    (stage,) = MultipleKernelDiscriminant().fit(*rows).plan_.stages
    assert stage.what == "240 rows: bank='dense'"
    assert stage.forecast is None
    assert stage.finished
    assert stage.is_whole


@pytest.mark.parametrize("given", ["soon", 0, -3])
def test_bad_times_are_refused_before_any_work(rows, given):
    with pytest.raises(InvalidInputError, match="max_time must be"):
        MultipleKernelDiscriminant(max_time=given).fit(*rows)


def test_bad_verbose_is_refused(rows):
    with pytest.raises(InvalidInputError, match="verbose must be True or False"):
        MultipleKernelDiscriminant(verbose="yes").fit(*rows)


def test_criteria_that_need_whole_matrices_are_not_approximated(rows, monkeypatch):
    few_are_many(monkeypatch, replace(SLOW, product=1e6))
    for criterion in ("loo", "alignment"):
        with pytest.warns(LongFitWarning):
            clf = MultipleKernelDiscriminant(
                rbf_ladder(3), criterion=criterion, bank=AutoBank(memory="1MiB")
            ).fit(*rows)
        assert clf.bank_ == "tiled"
    with pytest.warns(LongFitWarning):
        kernel = LearnedKernelTransformer(bank=AutoBank(memory="1MiB")).fit(*rows)
    assert kernel.bank_ == "tiled"


def test_what_does_not_fit_into_memory_and_cannot_be_approximated_is_refused(rows, monkeypatch):
    few_are_many(monkeypatch)
    monkeypatch.setattr("discernel.plan.plan.memory_limit", lambda: 8 * 240**2)
    with pytest.raises(InvalidInputError, match="240 × 240 numbers must fit into memory"):
        MultipleKernelDiscriminant(
            rbf_ladder(3), criterion="loo", bank=AutoBank(memory="1MiB")
        ).fit(*rows)


def test_features_that_do_not_fit_into_the_cache_are_summed_up():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2400, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, "a", "b")
    clf = MultipleKernelDiscriminant(bank=LowRank(100, memory="1MiB"))
    with pytest.warns(LowRankWarning):
        kept = clone(clf).set_params(bank=LowRank(100)).fit(X, y)
    summed = clone(clf).fit(X, y)
    assert (kept.bank_, summed.bank_) == ("lowrank", "stream")
    assert summed.forecast_.kind == "lowrank"
    assert summed.discriminant_.dual_coef.shape[0] <= 100
    in_chunks = clone(clf).fit(open_rows(X, y))
    expected = in_chunks.predict_proba(X)
    np.testing.assert_allclose(summed.predict_proba(X), expected, atol=1e-8)
    as_lists = clone(clf).fit(X.tolist(), y.tolist())
    np.testing.assert_allclose(as_lists.predict_proba(X), expected, atol=1e-8)
    assert abs(kept.score(X, y) - summed.score(X, y)) < 0.03
