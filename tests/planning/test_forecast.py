"""Which way a fit takes, and what it is expected to cost."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Laplace
from discernel.planning import Problem, Speed, measure_speed, parse_duration, plan_fit

#: Two cores of some years ago.
SPEED = Speed(product=2e11, entry=2e-8, n_threads=2)


def problem(n_rows, **changes):
    sizes = {"n_columns": 20, "n_kernels": 12, "chooses": True, "n_programs": 0.0}
    return Problem(n_rows, **(sizes | changes))


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    limit = {"bytes": 16e9}
    monkeypatch.setattr("discernel.planning.forecast.memory_limit", lambda: limit["bytes"])
    return limit


def test_few_rows_are_fitted_exactly_and_many_with_a_low_rank():
    kinds = [plan_fit(problem(n), SPEED).kind for n in (1000, 10_000, 1_000_000)]
    assert kinds[0] in ("dense", "tiled")
    assert kinds[1] in ("tiled", "iterative")
    assert kinds[2] == "lowrank"


def test_what_does_not_fit_into_memory_is_not_factored(memory):
    assert plan_fit(problem(20_000), SPEED).n_bytes < 0.8 * memory["bytes"]
    memory["bytes"] = 2e9
    found = plan_fit(problem(20_000), SPEED)
    assert found.kind == "iterative"
    assert found.n_bytes < 0.8 * 2e9
    memory["bytes"] = None  # a system that does not say
    assert plan_fit(problem(2500), SPEED).kind == "tiled"


def test_a_shorter_time_means_a_lower_rank():
    long = plan_fit(problem(1_000_000), SPEED)
    short = plan_fit(problem(1_000_000), SPEED, max_time=long.seconds / 3)
    assert short.kind == long.kind == "lowrank"
    assert short.rank < long.rank
    assert short.seconds <= long.seconds / 3
    with pytest.raises(InvalidInputError, match="max_time must leave time for a fit of rank 200"):
        plan_fit(problem(1_000_000), SPEED, max_time=1.0)


def test_more_time_than_ten_minutes_is_taken_where_it_is_given():
    assert plan_fit(problem(100_000), SPEED).kind == "lowrank"
    assert plan_fit(problem(100_000), SPEED, max_time=1e6).kind == "iterative"


def test_given_matrices_that_do_not_fit_are_refused_with_the_sizes():
    with pytest.raises(InvalidInputError, match=r"100,000 × 100,000 numbers.*160.5 GB.*16.0 GB"):
        plan_fit(problem(100_000, approximable=False), SPEED)


@pytest.mark.parametrize("kind", ["dense", "tiled", "iterative", "lowrank", "factored"])
def test_what_is_asked_for_is_taken_and_forecast(kind):
    found = plan_fit(problem(3000), SPEED, asked=kind)
    assert found.kind == kind
    assert 0 < found.seconds < 100
    assert "3,000 rows" in str(found)
    assert "asked for" in str(found)


@pytest.mark.parametrize("kind", ["tiled", "iterative", "lowrank"])
def test_costs_grow_with_rows_kernels_and_programs(kind):
    few = problem(10_000, n_programs=1.0).cost(kind, SPEED).seconds
    assert problem(20_000, n_programs=1.0).cost(kind, SPEED).seconds > few
    assert problem(10_000, n_programs=2.0).cost(kind, SPEED).seconds > few


def test_speed_is_measured_on_the_kernels_and_rows_at_hand():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 5))
    one, many = ([RBF(width=1.0)], [Laplace(width=1.0 + 0.1 * i) for i in range(20)])
    few, more = measure_speed(one, X), measure_speed(many, X)
    assert few.factorisation(1000) > 1e8
    assert more.entry > 2 * few.entry > 0
    assert measure_speed(one, X[:3]).entry > 0


def test_threads_wait_for_each_other():
    speeds = [replace(SPEED, n_threads=n).threads_in_effect for n in (1, 2, 4, 8, 16)]
    assert_allclose(speeds, [1.0, 1.79, 2.94, 4.35, 5.71], atol=0.01)
    cost = [
        Problem(10_000, 5, 3, False, 1.0).cost("iterative", replace(SPEED, n_threads=n))
        for n in (1, 16)
    ]
    assert cost[0].seconds / 6 < cost[1].seconds < cost[0].seconds


def test_a_busy_machine_is_slower(monkeypatch):
    X = np.random.default_rng(0).standard_normal((600, 5))
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0), raising=False)
    quiet = measure_speed([RBF(width=1.0)], X)
    monkeypatch.setattr("os.getloadavg", lambda: (1e3, 0.0, 0.0), raising=False)
    busy = measure_speed([RBF(width=1.0)], X)
    assert busy.product < quiet.product / 2
    assert busy.entry > 2 * quiet.entry


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(None, None), (5, 5.0), ("90s", 90.0), ("10m", 600.0), ("1.5 h", 5400.0), ("2min", 120.0)],
)
def test_durations_are_read(given, seconds):
    assert parse_duration(given) == seconds


@pytest.mark.parametrize("given", [0, -1, "soon", "10 days", "1.2.3", ".", "", "nan", float("inf")])
def test_what_is_no_duration_is_refused(given):
    with pytest.raises(InvalidInputError, match="max_time must be a positive number of seconds"):
        parse_duration(given)
