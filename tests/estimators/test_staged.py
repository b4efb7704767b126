"""A time limit is a deadline: a first stage is certain, others follow while time is left."""

import warnings

import numpy as np
import pytest

from discernel import (
    LearnedKernelTransformer,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
    open_rows,
)
from discernel.bank import AutoBank
from discernel.estimators.base import BaseKernelEstimator
from discernel.exceptions import ConvergenceWarning, InvalidInputError
from discernel.kernels import Function, rbf_ladder
from discernel.learn import stages as staged
from discernel.learn.stages import FitRun
from discernel.model import Facts, Model
from discernel.plan import FitPlan, Problem, Stage
from discernel.plan.speed import Speed
from discernel.progress.deadline import check_deadline, must_stop_learning
from discernel.solvers import Status

GIVEN = {"kernels": rbf_ladder(4), "criterion": "rkda", "regularization": 1e-2}


class Clock:
    """A clock that goes on by some seconds whenever somebody looks at it."""

    def __init__(self, step=0.0):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step
        return self.now


def limited(clf, step=0.0):
    clf._clock = Clock(step)
    return clf


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 3))
    return X, np.where(X[:, 0] * X[:, 1] > 0, "a", "b")


def test_no_time_is_too_short(rows):
    clf = limited(MultipleKernelDiscriminant(max_time=0.001), step=1.0).fit(*rows)
    (stage,) = clf.plan_.stages
    assert stage.what == "500 rows: bank='dense', equal weights"
    assert not clf.plan_.is_whole
    assert len(clf.model_.kept.labels) == 500
    np.testing.assert_allclose(clf.kernel_weights_, clf.kernel_weights_[0])
    assert clf.score(*rows) > 0.8
    assert clf.feature_importances_.sum() == pytest.approx(1.0)


def test_enough_time_gives_the_fit_without_a_limit(rows):
    clf = limited(MultipleKernelDiscriminant(max_time="1h")).fit(*rows)
    assert [stage.finished for stage in clf.plan_.stages] == [True, True]
    assert clf.plan_.is_whole
    assert clf.plan_.max_time == 3600.0
    without = MultipleKernelDiscriminant().fit(*rows)
    np.testing.assert_array_equal(clf.predict_proba(rows[0]), without.predict_proba(rows[0]))
    assert without.plan_.is_whole


def test_a_stage_that_is_out_of_time_leaves_the_model_of_the_one_before(rows):
    # Jobs look at the clock before they begin: the second stage has no time for all of them.
    clf = limited(MultipleKernelDiscriminant(max_time=1000), step=20.0).fit(*rows)
    first, second = clf.plan_.stages
    assert (first.finished, second.finished) == (True, False)
    assert "stopped by the time limit" in str(clf.plan_)
    only = limited(MultipleKernelDiscriminant(max_time=0.001), step=1.0).fit(*rows)
    np.testing.assert_array_equal(clf.predict_proba(rows[0]), only.predict_proba(rows[0]))


def test_what_was_asked_for_by_name_is_kept(rows):
    asked = {**GIVEN, "bank": "iterative", "solver": "silp", "tol": 1e-7, "max_time": 0.001}
    with pytest.warns(ConvergenceWarning, match="stopped by the time limit") as heard:
        clf = limited(MultipleKernelDiscriminant(**asked), step=1.0).fit(*rows)
    assert {each.filename for each in heard} == {__file__}
    learned = clf.learned_kernel_
    assert (learned.criterion, learned.solver, clf.bank_) == ("rkda", "silp", "iterative")
    assert (learned.status, learned.n_iter) == (Status.OUT_OF_TIME, 0)
    assert 1e-7 < clf.gap_ < np.inf
    np.testing.assert_allclose(clf.kernel_weights_, 0.25)


def test_a_solver_that_runs_out_of_time_keeps_all_rows(rows, monkeypatch):
    slow = Speed(product=1e8, entry=1e-9, n_threads=1)
    monkeypatch.setattr("discernel.plan.costs.measure_speed", lambda kernels, X: slow)
    clf = MultipleKernelDiscriminant(**GIVEN, tol=1e-12, max_time=1000)
    clf._clock = clock = Clock()

    def late(progress):
        # Time for a factorisation, but not for all that follows the solver.
        clock.now = 996.4 if progress.iteration == 1 else clock.now

    with pytest.warns(ConvergenceWarning, match="stopped by the time limit"):
        clf.set_params(callback=late).fit(*rows)
    assert clf.callback is late
    assert clf.learned_kernel_.status is Status.OUT_OF_TIME
    assert len(clf.model_.kept.labels) == len(rows[0])
    assert 1e-12 < clf.gap_ < 1


def test_warnings_are_those_of_the_stage_that_is_kept(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the first stage stops its solver
        limited(MultipleKernelDiscriminant(**GIVEN, max_time="1h")).fit(*rows)


@pytest.mark.parametrize(
    "estimator",
    [
        MultipleKernelRidge(),
        LearnedKernelTransformer(**GIVEN),
        MultiLabelKernelDiscriminant(),
        MultipleKernelDiscriminant("precomputed"),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_all_estimators_have_a_first_stage(rows, estimator, weighted):
    X, y = rows
    given = X @ X.T if estimator.kernels == "precomputed" else X
    y = (y == "a").astype(float) if isinstance(estimator, MultipleKernelRidge) else y
    weights = np.where(np.arange(700) % 7 == 0, 0.0, 1.0) if weighted else None
    estimator = limited(estimator.set_params(max_time=0.001), step=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(given, y, weights)
    assert estimator.plan_.stages[0].what.startswith("500 rows")
    if isinstance(estimator, LearnedKernelTransformer):
        assert estimator.transform(X[:5]).shape == (5, 700)
    else:
        assert estimator.score(given, y) > 0.3


def test_classes_with_few_rows_are_in_the_first_stage(rows):
    X, y = rows
    y = np.where(np.arange(700) < 3, "rare", y)
    clf = limited(MultipleKernelDiscriminant(max_time=0.001), step=1.0).fit(X, y)
    assert clf.classes_.tolist() == ["a", "b", "rare"]


def test_errors_are_those_of_all_rows(rows):
    X, y = rows
    broken = X.copy()
    broken[600, 1] = np.inf
    for max_time in (None, "1h"):
        with pytest.raises(ValueError, match="infinity"):
            MultipleKernelDiscriminant(**GIVEN, max_time=max_time).fit(broken, y)
    with pytest.raises(InvalidInputError, match="at least two classes"):
        MultipleKernelDiscriminant(max_time="1h").fit(X, np.zeros(700))


@pytest.mark.parametrize("step", [0.0, 1.0])
def test_rows_in_chunks_have_stages_of_a_sample(rows, step):
    X, y = rows
    clf = MultipleKernelDiscriminant(
        bank=AutoBank(rank=50), max_time=1000 if step == 0.0 else 0.001
    )
    limited(clf, step).fit(open_rows(X, y))
    first = clf.plan_.stages[0]
    assert first.what == "500 rows: bank='dense', equal weights"
    assert clf.plan_.is_whole == (step == 0.0)
    assert clf.bank_ == ("stream" if step == 0.0 else "dense")
    if step == 0.0:
        without = MultipleKernelDiscriminant(bank=AutoBank(rank=50)).fit(open_rows(X, y))
        np.testing.assert_array_equal(clf.predict_proba(X), without.predict_proba(X))


@pytest.mark.parametrize("is_sorted", [False, True])
def test_a_first_pass_that_takes_too_long_ends_once_there_are_two_classes(rows, is_sorted):
    X, y = rows
    order = np.argsort(y) if is_sorted else np.arange(700)
    clf = MultipleKernelDiscriminant(max_time=100)
    clf._clock = clock = Clock()
    read = []

    def chunks():
        for part in np.array_split(order, 14):
            clock.now += 15.0
            read.append(len(part))
            yield X[part], y[part]

    clf.fit(open_rows(chunks))
    n_first = int(np.flatnonzero(y[order] != y[order[0]])[0]) // 50 + 1 if is_sorted else 2
    assert len(read) <= n_first + 3
    assert not clf.plan_.is_whole
    assert clf.classes_.tolist() == ["a", "b"]


# ---- which stage is next -----------------------------------------------------------------------


class Fitted(BaseKernelEstimator):
    """An estimator whose stages take what a test says."""

    def __init__(self, clock, seconds, losses, learning=0.0):
        super().__init__()
        self.clock, self.seconds, self.losses, self.learning = clock, seconds, losses, learning
        self._clock = clock

    def _held_out_loss(self, model):
        return self.losses.get(model.head)

    def _fit_model(self, X, y, sample_weight, groups, run):
        if not hasattr(run, "stage"):
            run.plan(PROBLEM)
        stage = run.stage
        learning = self.learning * self.seconds[stage.n_rows]
        self.clock.now += learning
        if not stage.learns or not must_stop_learning():
            self.clock.now += self.seconds[stage.n_rows] - learning
        check_deadline()
        none = np.empty(0)
        return Model(None, None, none, none, stage.n_rows, facts=Facts(None, [], "dense"))


PROBLEM = Problem([], None, 4000, False, 1.0, speeds={"here": Speed(np.inf, 0.0)})


def run_stages(limit, forecasts, seconds=None, losses=None, learning=0.0):
    clock = Clock()
    estimator = Fitted(clock, forecasts if seconds is None else seconds, losses or {}, learning)
    stages = [
        Stage("dense", n_rows, "why", expected, learns=n_rows > 500)
        for n_rows, expected in forecasts.items()
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staged, "plan_fit", lambda *_, **__: FitPlan(tuple(stages), limit))
        reserved = learning > 0
        patch.setattr(staged, "forecast_rest", lambda _, stage: reserved * stage.seconds)
        run = FitRun(estimator, seconds=limit)
        found = run.fit(np.zeros((4000, 1)), np.arange(4000) % 2, None)
    return found, [stage.what.split()[0] for stage in found.facts.plan.stages]


FORECASTS = {500: 0.1, 1000: 1.0, 2000: 4.0, 4000: 10.0}


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (0.05, ["500"]),
        (0.7, ["500"]),
        (2.0, ["500", "1,000"]),
        (7.0, ["500", "1,000", "2,000"]),
        (21.0, ["500", "4,000"]),
    ],
)
def test_the_largest_stage_is_run_that_is_sure_to_be_in_time(limit, expected):
    assert run_stages(limit, FORECASTS)[1] == expected


@pytest.mark.parametrize("factor", [0.5, 0.7, 1.0, 1.4, 2.0])
def test_with_twice_its_time_the_whole_is_in_time_though_forecasts_are_wrong_by_two(factor):
    taken = {n_rows: factor * seconds for n_rows, seconds in FORECASTS.items()}
    found, _ = run_stages(2.0 * taken[4000] + 0.2, FORECASTS, taken)
    assert found.facts.plan.is_whole


@pytest.mark.parametrize("limit", [3.0, 5.0, 8.0, 11.0, 15.0])
def test_a_whole_that_is_not_in_time_does_not_cost_all_other_stages(limit):
    late = {500: 0.1, 1000: 1.0, 2000: 4.0, 4000: 25.0}
    found, _ = run_stages(limit, FORECASTS, late)
    assert found.head in (1000, 2000)
    assert not found.facts.plan.is_whole


def test_what_a_stage_took_says_how_good_the_other_forecasts_are():
    half = {n_rows: seconds / 2 for n_rows, seconds in FORECASTS.items()}
    found, stages = run_stages(9.0, FORECASTS, half)
    assert stages == ["500", "1,000", "4,000"]
    assert found.facts.plan.is_whole
    assert found.facts.plan.seconds == pytest.approx(5.55)
    assert [stage.forecast for stage in found.facts.plan.stages] == pytest.approx([0.1, 1.0, 5.0])


def test_a_forecast_that_was_too_short_costs_no_more_than_the_limit():
    twice = {n_rows: 2 * seconds for n_rows, seconds in FORECASTS.items()}
    found, stages = run_stages(12.0, FORECASTS, twice)
    assert stages == ["500", "1,000", "2,000"]
    assert found.facts.plan.seconds < 12.0
    assert not found.facts.plan.is_whole


def test_time_that_is_left_is_used_in_the_hope_that_forecasts_are_too_high():
    fast = {500: 0.1, 1000: 0.8, 2000: 1.0, 4000: 2.0}
    found, stages = run_stages(1.0, FORECASTS, fast)
    assert (found.head, stages) == (1000, ["500", "1,000"])
    found, stages = run_stages(4.0, FORECASTS, fast)
    assert (found.head, stages) == (4000, ["500", "1,000", "2,000", "4,000"])
    assert found.facts.plan.is_whole


def test_of_two_stages_that_with_the_smaller_loss_is_kept_but_the_whole_is_what_was_asked_for():
    worse = {500: 0.1, 1000: 0.2, 2000: 0.3, 4000: 0.4}
    assert run_stages(7.0, FORECASTS, losses=worse)[0].head == 500
    assert run_stages(21.0, FORECASTS, losses=worse)[0].head == 4000


@pytest.mark.parametrize(("learning", "is_whole"), [(0.1, True), (0.5, True), (0.8, False)])
def test_a_whole_whose_learning_was_cut_short_is_not_whole(learning, is_whole):
    """At least half of the time that is left is for learning, however much should follow."""
    found, stages = run_stages(13.0, {500: 0.1, 4000: 10.0}, learning=learning)
    assert (found.head, stages) == (4000, ["500", "4,000"])
    assert found.facts.plan.is_whole is is_whole


def test_a_fit_within_a_fit_has_no_part_in_its_stages(rows):
    X, y = rows
    inner = []

    def similar(A, B):
        if not inner:
            inner.append(MultipleKernelDiscriminant().fit(X[:60], y[:60]))
        return A @ B.T

    clf = MultipleKernelDiscriminant([Function(similar)], criterion="uniform", max_time="1h")
    limited(clf).fit(X, y)
    (stage,) = inner[0].plan_.stages
    assert stage.what == "60 rows: bank='dense'"
    assert len(inner[0].learned_kernel_.considered) > 1  # it was made in the first stage
    assert clf.plan_.is_whole
