"""The numbers that the search for λ and weights goes by: what happens on either side of each."""

from types import SimpleNamespace

import numpy as np
import pytest

from discernel import learn_kernel, regularization_path
from discernel.bank import DenseBank
from discernel.kernels import RBF
from discernel.learn import RegularizationPath
from discernel.programs import loo
from discernel.programs import search as auto
from discernel.programs.loo import LeaveOneOutProgram, choose_regularization, minimize_error
from discernel.programs.solution import Candidate, Task
from discernel.targets import ClassTarget
from tests.conftest import make_problem


def opposite_pairs(n_samples=40):
    """Equal rows of different classes: the less is fitted, the better for those left out."""
    X = np.repeat(np.random.default_rng(0).standard_normal((n_samples // 2, 2)), 2, axis=0)
    return np.array([RBF(width=0.3)(X), RBF(width=0.6)(X)]), np.arange(n_samples) % 2


def far_apart(n_samples=60):
    rng = np.random.default_rng(0)
    y = np.arange(n_samples) % 2
    X = 10.0 * y[:, None] + 0.01 * rng.standard_normal((n_samples, 2))
    return np.array([RBF(width=w)(X) for w in (20.0, 40.0)]), y


# ---- λ of given weights ----------------------------------------------------------------------


@pytest.fixture
def errors_of_lambda(monkeypatch):
    """Leave-one-out errors by λ, whatever the fit."""
    errors = {}

    def fit(system, ridge, target):
        return SimpleNamespace(leave_one_out_error=lambda: errors[ridge])

    monkeypatch.setattr(loo, "KernelLeastSquares", SimpleNamespace(of=fit))
    return errors


@pytest.mark.parametrize(("first", "chosen"), [(1.0099, 1.0), (1.0101, 0.1)])
def test_of_lambdas_within_one_percent_the_largest_is_taken(errors_of_lambda, first, chosen):
    errors_of_lambda.update({1.0: first, 0.1: 1.0, 0.01: 1.2})
    bank = SimpleNamespace(systems=lambda weights: lambda ridge: None)
    found = choose_regularization(bank, None, np.ones(1), (1.0, 0.1, 0.01))
    assert found == (chosen, errors_of_lambda[chosen])
    path = RegularizationPath(
        np.array([1.0, 0.1, 0.01]),
        np.ones((3, 1)),
        *(np.zeros(3) for _ in range(3)),
        np.array([first, 1.0, 1.2]),
        regularization_path(*opposite_pairs(), [1.0, 0.1, 0.01]).learned,
    )
    assert path.best.regularization == chosen


@pytest.mark.parametrize("seed", range(3))
def test_learning_by_leave_one_out_is_the_best_of_its_path(seed):
    grams, y = make_problem(60, 3, 4, seed=seed)
    learned = learn_kernel(grams, y, criterion="rkda")
    lambdas = np.array(list(learned.leave_one_out))
    errors = np.array(list(learned.leave_one_out.values()))
    assert set(lambdas) < set(np.logspace(0, -6, 13))
    path = regularization_path(grams, y, criterion="rkda")
    np.testing.assert_allclose(path.regularizations, np.logspace(0, -6, 13))
    assert learned.regularization == path.best.regularization
    as_good = lambdas[errors <= 1.01 * errors.min()]
    assert learned.regularization == as_good.max()


# ---- descent of the leave-one-out error ------------------------------------------------------


@pytest.mark.parametrize(("problem", "limit"), [(opposite_pairs, 10.0), (far_apart, 1e-7)])
def test_descent_ends_at_the_bounds_of_lambda(problem, limit):
    grams, y = problem()
    _, regularization = minimize_error(
        LeaveOneOutProgram(DenseBank(grams), ClassTarget.from_labels(y)).error,
        np.array([0.5, 0.5]),
        0.1 if limit > 1 else 2e-7,
        pull=0.0,
        n_samples=len(y),
        learns_regularization=True,
    )
    assert regularization == pytest.approx(limit, rel=1e-6)


def test_negligible_weights_are_none_and_no_weight_starts_at_none(monkeypatch, three_classes):
    """Below a thousandth it is 0; what was 0 starts from a thousandth of the equal share."""
    given = {}

    def minimize(function, start, **options):
        given.update(options, start=start)
        weights = np.array([0.6, 0.3, 0.0975, 0.0011, 0.0009, 0.0005])
        return SimpleNamespace(x=np.append(np.log(weights), np.log(0.1)))

    monkeypatch.setattr(loo, "minimize", minimize)
    grams, y = three_classes
    weights, _ = minimize_error(
        LeaveOneOutProgram(DenseBank(grams), ClassTarget.from_labels(y)).error,
        np.array([1.0, 0, 0, 0, 0, 0]),
        0.1,
        pull=5.0,
        n_samples=len(y),
        max_evaluations=7,
    )
    np.testing.assert_array_equal(weights > 0, [True, True, True, True, False, False])
    np.testing.assert_allclose(np.exp(given["start"][:6]), [1.0, *[1e-3 / 6] * 5])
    assert given["options"] == {"maxfun": 7, "ftol": 1e-5}


# ---- auto ------------------------------------------------------------------------------------


def candidate(score, lam=0.1):
    return Candidate("single", np.ones(1), lam, score, 0.0)


def search_for(regularization):
    return auto._Search(LeaveOneOutProgram(None, None, 5.0, regularization), Task(1e-6))


def test_a_close_candidate_is_worth_a_second_lambda():
    """On all rows: within a tenth of the best score, and where λ is not given."""
    search, best = search_for(None), candidate(1.0)
    assert search.lambdas_on_all(candidate(1.099), best) == (0.1, 0.3 * 0.1)
    assert search.lambdas_on_all(candidate(1.101), best) == (0.1,)
    assert search_for(0.1).lambdas_on_all(best, best) == (0.1,)


@pytest.mark.parametrize(
    ("n_samples", "n_searched"),
    [(500, None), (502, 300), (900, 300), (1200, 400), (1800, 600), (3000, 600)],
)
def test_a_third_of_many_samples_is_searched(n_samples, n_searched, monkeypatch):
    """300 at least, 600 at most; all of up to 500."""
    drawn = [None]

    def draw(bank, target, share, seed):
        drawn.append(len(target.draw(share, np.random.RandomState(0))))

    def search(program, task):
        return SimpleNamespace(try_all=lambda: None, solution=lambda: None)

    monkeypatch.setattr("discernel.programs.base.draw_part", draw)
    monkeypatch.setattr(auto, "_Search", search)
    target = ClassTarget.from_labels(np.arange(n_samples) % 2)
    auto.Search().solve(LeaveOneOutProgram(None, target), Task(1e-6))
    assert drawn[-1] == n_searched


@pytest.fixture
def calls(monkeypatch):
    """What `auto` asks for: λ, shrinkages with their λ, and evaluations."""
    seen = {"lambdas": [], "shrinkages": [], "evaluations": []}
    choose, build, descend = (
        auto.choose_regularization,
        auto.ShrunkRKDAProgram,
        auto.minimize_error,
    )

    def choosing(bank, target, weights, lambdas, start):
        seen["lambdas"].append(lambdas)
        return choose(bank, target, weights, lambdas, start)

    def building(bank, target, lam, amount):
        seen["shrinkages"].append((lam, amount))
        return build(bank, target, lam, amount)

    def descending(at, weights, lam, **options):
        seen["evaluations"].append((options["n_samples"], options["max_evaluations"]))
        return descend(at, weights, lam, **options)

    monkeypatch.setattr(auto, "choose_regularization", choosing)
    monkeypatch.setattr(auto, "ShrunkRKDAProgram", building)
    monkeypatch.setattr(auto, "minimize_error", descending)
    return seen


def test_what_is_tried_on_few_samples(calls):
    grams, y = make_problem(60, 2, 3)
    learn_kernel(grams, y)
    lambdas = [1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]
    for tried in calls["lambdas"][:4]:  # the average and three single kernels
        np.testing.assert_allclose(tried, lambdas)
    path, best = calls["shrinkages"][:7], calls["shrinkages"][7:]
    np.testing.assert_allclose(path, [(lam, 0.0) for lam in lambdas])
    assert [amount for _, amount in best] == [0.03, 0.1, 0.3]
    assert len({lam for lam, _ in best}) == 1
    assert set(calls["evaluations"]) == {(60, 60)}


def test_what_is_tried_on_many_samples(calls):
    grams, y = make_problem(510, 2, 2)
    learn_kernel(grams, y)
    assert calls["evaluations"][-1] == (510, 3)
    assert {n for n, _ in calls["evaluations"][:-1]} == {300}
