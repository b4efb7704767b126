"""Which way a fit takes, and what it is expected to cost."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Laplace, Precomputed, as_kernels
from discernel.model import importances
from discernel.plan import Problem, costs, parse_duration, plan_fit, plan_stage, plan_stages
from discernel.plan.costs import forecast
from discernel.plan.speed import Speed, measure_speed

#: Two cores of some years ago.
SPEED = Speed(product=2e11, entry=2e-8, n_threads=2)


def problem(n_rows, speed=SPEED, **changes):
    rows, options = np.empty((1, 20)), {"chooses": True, "n_programs": 0.0}
    kernels = [RBF(width=1.0)] * 12
    return Problem(kernels, rows, n_rows, **(options | changes), speeds={"here": speed})


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    limit = {"bytes": 16e9}
    monkeypatch.setattr("discernel.plan.plan.memory_limit", lambda: limit["bytes"])
    return limit


def test_few_rows_are_fitted_exactly_and_many_with_a_low_rank():
    kinds = [plan_stage(problem(n)).kind for n in (1000, 10_000, 1_000_000)]
    assert kinds[0] in ("dense", "tiled")
    assert kinds[1] in ("tiled", "iterative")
    assert kinds[2] == "lowrank"


def test_what_does_not_fit_into_memory_is_not_factored(memory):
    assert plan_stage(problem(20_000)).n_bytes < 0.8 * memory["bytes"]
    memory["bytes"] = 2e9
    found = plan_stage(problem(20_000))
    assert found.kind == "iterative"
    assert found.n_bytes < 0.8 * 2e9
    memory["bytes"] = None  # a system that does not say
    assert plan_stage(problem(2500)).kind == "tiled"


@pytest.mark.parametrize("n_rows", [2000, 8000, 1_000_000])
def test_stages_go_from_equal_weights_on_few_rows_to_the_whole(n_rows):
    first, *between, whole = plan_stages(problem(n_rows))
    assert (first.n_rows, first.learns) == (500, False)
    assert first.seconds < 1
    assert whole == plan_stage(problem(n_rows))
    seconds = [each.seconds for each in (first, *between, whole)]
    assert seconds == sorted(seconds)
    assert {each.learns for each in between} == {False, True}


def test_stages_of_many_rows_have_lower_ranks_than_the_whole():
    *_, last, whole = plan_stages(problem(1_000_000))
    assert last.kind == whole.kind == "lowrank"
    assert last.rank < whole.rank


def test_a_rank_that_is_asked_for_is_that_of_all_stages_of_a_low_rank():
    stages = plan_stages(problem(1_000_000, rank=300))
    assert {each.rank for each in stages if each.kind == "lowrank"} == {300}


def test_more_time_than_ten_minutes_is_taken_where_it_is_given():
    assert plan_stage(problem(200_000)).kind == "lowrank"
    assert plan_stage(problem(200_000, patience=1e6)).kind == "iterative"


def test_given_matrices_that_do_not_fit_are_refused_with_the_sizes():
    with pytest.raises(InvalidInputError, match=r"100,000 × 100,000 numbers.*160.5 GB.*16.0 GB"):
        plan_stage(problem(100_000, approximable=False))


@pytest.mark.parametrize("kind", ["dense", "tiled", "iterative", "lowrank", "factored"])
def test_what_is_asked_for_is_taken_and_forecast(kind):
    found = plan_stage(problem(3000, asked=kind))
    assert found.kind == kind
    assert 0 < found.seconds < 100
    assert "3,000 rows" in str(found)
    assert "asked for" in str(found)


def test_few_rows_have_a_plan_without_a_forecast():
    (stage,) = plan_fit(problem(300)).stages
    assert (stage.kind, stage.exact, stage.rank, stage.is_forecast) == (
        "dense",
        "dense",
        None,
        False,
    )
    (stage,) = plan_fit(problem(300), verbose=True).stages
    assert (stage.kind, stage.is_forecast) == ("dense", True)
    (stage,) = plan_fit(problem(5, asked="lowrank", n_programs=1.0)).stages
    assert (stage.kind, stage.exact, stage.rank) == ("lowrank", "dense", 12)
    (stage,) = plan_fit(problem(300, asked="iterative", memory=1e6)).stages
    assert (stage.kind, stage.exact) == ("iterative", "tiled")


def test_features_that_do_not_fit_into_the_memory_of_the_bank_are_summed_up():
    few = {"asked": "lowrank", "rank": 100, "sums": True}
    for n_rows, memory, changes, sums in [
        (10_000, 8e6, {}, False),
        (10_001, 8e6, {}, True),
        (10_001, 8e6, {"balanced": True}, False),
        (10_001, 8e6, {"sums": False}, False),
        (300, 1e9, {"in_chunks": True}, True),
    ]:
        (stage,) = plan_fit(problem(n_rows, memory=memory, **(few | changes))).stages
        assert (stage.kind, stage.rank, stage.sums) == ("lowrank", 100, sums)


def test_a_time_limit_makes_more_stages_of_the_same_plan():
    plan = plan_fit(problem(8000), max_time=60.0)
    assert plan.max_time == 60.0
    expected = plan_stages(problem(8000))
    assert [stage.what for stage in plan.stages] == [stage.what for stage in expected]
    assert all(stage.is_forecast for stage in plan.stages)


@pytest.mark.parametrize("kind", ["tiled", "iterative", "lowrank"])
def test_costs_grow_with_rows_kernels_and_programs(kind):
    few = forecast(problem(10_000, n_programs=1.0), kind).seconds
    assert forecast(problem(20_000, n_programs=1.0), kind).seconds > few
    assert forecast(problem(10_000, n_programs=2.0), kind).seconds > few


def test_speed_is_measured_on_the_kernels_and_rows_at_hand():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 5))
    one, many = ([RBF(width=1.0)], [Laplace(width=1.0 + 0.1 * i) for i in range(20)])
    few, more = measure_speed(one, X), measure_speed(many, X)
    assert few.factorisation(1000) > 1e8
    assert more.entry > 2 * few.entry > 0
    assert measure_speed(one, X[:3]).entry > 0
    given = measure_speed([Precomputed()], X @ X.T)
    assert 0 < given.entry < 10 * few.entry


def test_threads_wait_for_each_other():
    speeds = [replace(SPEED, n_threads=n).threads_in_effect() for n in (1, 2, 4, 8, 16)]
    assert_allclose(speeds, [1.0, 1.79, 2.94, 4.35, 5.71], atol=0.01)
    cost = [
        forecast(problem(10_000, replace(SPEED, n_threads=n), chooses=False), "iterative")
        for n in (1, 16)
    ]
    assert cost[0].seconds / 6 < cost[1].seconds < cost[0].seconds


class Clock:
    """A clock that goes on by some seconds whenever somebody looks at it."""

    def __init__(self, step):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step
        return self.now


def test_speed_is_what_the_process_gets_whatever_the_load_average_says(monkeypatch):
    X = np.random.default_rng(0).standard_normal((600, 5))
    quiet = measure_speed([RBF(width=1.0)], X, clock=Clock(0.01))
    # Of a minute ago, and of our own threads.
    monkeypatch.setattr("os.getloadavg", lambda: (1e3, 1e3, 1e3), raising=False)
    assert measure_speed([RBF(width=1.0)], X, clock=Clock(0.01)) == quiet
    busy = measure_speed([RBF(width=1.0)], X, clock=Clock(0.05))
    assert_allclose([busy.product, busy.entry], [quiet.product / 5, quiet.entry * 5])


def measured_by(X, *seconds):
    """Return the speed if measurements take so many seconds: two of tiles, two of products."""
    # Every measurement looks at the clock twice: before and after.
    times = iter(np.cumsum(np.column_stack([np.zeros(len(seconds)), seconds]).ravel()))
    return measure_speed([RBF(width=1.0)], X, clock=lambda: next(times))


@pytest.mark.parametrize(
    ("cores", "together", "in_effect"),
    [(2, 0.1, 2.0), (2, 0.11, 2 / 1.1), (2, 0.2, 1.0), (2, 9.0, 1.0), (8, 0.1, 8.0), (8, 0.2, 4.0)],
)
def test_the_speedup_of_threads_is_measured(monkeypatch, cores, together, in_effect):
    """One job for each thread: threads that do not wait take the time of one."""
    monkeypatch.setattr("joblib.cpu_count", lambda: cores)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    X = np.random.default_rng(0).standard_normal((600, 5))
    speed = measured_by(X, 0.1, together, *[0.1] * 4)
    assert speed.threads_in_effect() == pytest.approx(in_effect)
    assert 1.0 <= speed.threads_in_effect(2) <= speed.threads_in_effect()


def test_kernels_of_users_and_one_thread_have_no_measured_waiting(monkeypatch):
    X = np.random.default_rng(0).standard_normal((600, 5))
    monkeypatch.setattr("joblib.cpu_count", lambda: 1)
    assert measured_by(X, 0.1, 0.1).waiting == SPEED.waiting
    monkeypatch.setattr("joblib.cpu_count", lambda: 4)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    theirs = as_kernels(lambda left, right: left @ right.T)
    assert measure_speed(theirs, X).waiting == SPEED.waiting


def test_threads_of_blas_that_wait_for_each_other_are_not_used(monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    X = np.random.default_rng(0).standard_normal((600, 5))

    idle, busy = measured_by(X, 0.1, 0.1, 0.1, 0.19), measured_by(X, 0.1, 0.1, 0.3, 0.2, 0.3, 0.3)
    late = measured_by(X, 0.1, 0.1, 0.3, 0.2, 0.3, 0.1)
    assert idle.blas_threads_pay
    assert not busy.blas_threads_pay
    assert late.blas_threads_pay  # it was disturbed
    assert idle.product == pytest.approx(1.9 * idle.single)
    assert late.product == pytest.approx(2.0 * late.single)
    assert busy.product == busy.single


def test_a_choice_of_five_folds_has_no_use_for_more_threads():
    few, many = (replace(SPEED, product=n * 1e11, n_threads=n, single=1e11) for n in (5, 64))
    assert few.jobs(5) == many.jobs(5) > few.jobs(1) == 1e11
    cost = [forecast(problem(1000, speed), "dense").seconds for speed in (few, many)]
    assert cost[1] > 0.5 * cost[0]


@pytest.mark.parametrize(
    ("n_rows", "seconds"), [(178, 0.12), (500, 0.75), (1000, 1.1), (4000, 6.1), (8000, 14.7)]
)
def test_forecasts_are_those_of_fits_that_were_measured(n_rows, seconds):
    # On one core of 48 Gflop/s, with 20 columns and three classes; 8,000 rows in tiles.
    core = Speed(product=4.8e10, entry=2e-8, n_threads=1)
    found = forecast(problem(n_rows, core), "tiled" if n_rows > 1000 else "dense").seconds
    assert seconds / 2 < found < 2 * seconds


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (None, None),
        (5, 5.0),
        ("90s", 90.0),
        ("10m", 600.0),
        ("1.5 h", 5400.0),
        ("2min", 120.0),
        (1e-5, 1e-5),
        (1e20, 1e20),
    ],
)
def test_durations_are_read(given, seconds):
    assert parse_duration(given) == seconds


@pytest.mark.parametrize("given", [0, -1, "soon", "10 days", "1.2.3", ".", "", "nan", float("inf")])
def test_what_is_no_duration_is_refused(given):
    with pytest.raises(InvalidInputError, match="max_time must be a positive number of seconds"):
        parse_duration(given)


def test_left_out_rows_are_forecast_where_fits_compute_them():
    assert costs._REFITTED == importances._MOST_REFITTED
    at, beyond = (
        forecast(problem(costs._REFITTED + more, SPEED), "tiled").seconds for more in (0, 1)
    )
    assert beyond > 1.005 * at


def test_many_threads_do_not_make_conjugate_gradients_faster_than_factors():
    """As measured on 16 cores with λ given: 14.5 s by conjugate gradients, 8.8 s by factors."""
    speed = Speed(product=4.2e11, entry=1.1e-8, n_threads=16, single=6.5e10, waiting=0.2)
    given = problem(10_000, speed, chooses=False, n_programs=1.0, holds_out=True)
    iterative, tiled = (forecast(given, kind).seconds for kind in ("iterative", "tiled"))
    assert 14.5 / 2 < iterative < 14.5 * 2
    assert 8.8 / 2 < tiled < 8.8 * 2
    assert tiled < iterative
    # On two of these cores 17.6 s by conjugate gradients; a factorization alone takes 4.5 s.
    two = replace(given, speeds={"here": replace(speed, product=1e11, n_threads=2, waiting=0.3)})
    iterative, tiled = (forecast(two, kind).seconds for kind in ("iterative", "tiled"))
    assert 17.6 / 2 < iterative < 17.6 * 2
    assert iterative < tiled
