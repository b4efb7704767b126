"""The default: what predicts left-out samples best, and what it says about its choice."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification
from sklearn.preprocessing import scale

from discernel import MultipleKernelDiscriminant, Status, learn_kernel
from discernel.bank import DenseBank
from discernel.criteria import KernelLeastSquares, LeaveOneOut
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, as_kernels
from discernel.programs.loo import (
    LeaveOneOutProgram,
    choose_regularization,
    minimize_error,
    pull_to_equal,
)
from discernel.targets import ClassTarget
from tests.conftest import make_problem


def leave_one_out_error(bank, target, weights, lam):
    ridge = np.full(bank.n_samples, lam)
    fit = KernelLeastSquares(bank.system(weights, ridge), ridge, target.scores)
    return fit.leave_one_out_error()


def test_the_candidate_with_the_least_score_is_chosen(three_classes):
    grams, y = three_classes
    learned = learn_kernel(grams, y)
    names = [candidate.name for candidate in learned.considered]
    assert sorted(names) == ["average", "loo", "rkda", "single"]
    scores = [candidate.score for candidate in learned.considered]
    assert scores == sorted(scores)
    best = learned.considered[0]
    np.testing.assert_array_equal(learned.weights, best.weights)
    assert (learned.regularization, learned.objective) == (best.regularization, best.score)
    assert (learned.gap, learned.status) == (None, Status.NO_CERTIFICATE)


def test_scores_are_leave_one_out_errors_plus_the_pull(three_classes):
    grams, y = three_classes
    bank, target = DenseBank(grams), ClassTarget.from_labels(y)
    for candidate in learn_kernel(grams, y).considered:
        error = leave_one_out_error(bank, target, candidate.weights, candidate.regularization)
        assert candidate.error == pytest.approx(error, rel=1e-9)
        w = candidate.weights[candidate.weights > 0]
        assert candidate.pull == pytest.approx(5 / 45 * np.sum(w * np.log(6 * w)), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_descent_ends_below_its_start_and_at_a_stationary_point(seed):
    grams, y = make_problem(60, 3, 5, seed=seed)
    bank, target = DenseBank(grams), ClassTarget.from_labels(y)
    start = np.full(5, 0.2)
    weights, regularization = minimize_error(
        LeaveOneOutProgram(bank, target).error,
        start,
        0.01,
        pull=5.0,
        n_samples=60,
        learns_regularization=True,
        max_evaluations=300,
    )

    def score(w, lam):
        return leave_one_out_error(bank, target, w, lam) + pull_to_equal(w, 5.0, 60)

    value = score(weights, regularization)
    assert value <= score(start, 0.01)
    rng = np.random.default_rng(seed)
    for _ in range(20):  # no small step is better, within what counts as worthwhile
        w = 0.99 * weights + 0.01 * rng.dirichlet(np.ones(5))
        lam = regularization * np.exp(rng.uniform(-0.02, 0.02))
        assert score(w, lam) >= value * (1 - 1e-3)


def test_a_stronger_pull_is_closer_to_equal_weights(three_classes):
    grams, y = three_classes
    away = [
        np.linalg.norm(learn_kernel(grams, y, criterion=LeaveOneOut(pull=pull)).weights - 1 / 6)
        for pull in (0.0, 5.0, 50.0, 1e4)
    ]
    assert away == sorted(away, reverse=True)
    assert away[-1] < 0.01


def test_a_given_lambda_is_kept(three_classes):
    grams, y = three_classes
    for criterion in ("auto", "loo"):
        learned = learn_kernel(grams, y, criterion=criterion, regularization=0.03)
        assert learned.regularization == 0.03


def test_noise_kernels_lose_their_weight():
    rng = np.random.default_rng(0)
    X, y = make_classification(120, 4, n_redundant=0, class_sep=1.5, random_state=0)
    noise = rng.standard_normal((120, 4))
    kernels = {"signal": RBF().on(slice(0, 4)), "noise": RBF().on(slice(4, 8))}
    clf = MultipleKernelDiscriminant(kernels).fit(np.hstack([X, noise]), y)
    assert clf.kernel_weights_[0] > 0.8


def test_many_samples_are_searched_on_a_part_and_settled_on_all():
    """Above 500 samples; the same data give the same kernel, whatever the seed is called."""
    X, y = load_digits(return_X_y=True)
    X, y = scale(X[:700]), y[:700]
    grams = np.array([kernel.resolve(X)(X) for kernel in as_kernels("auto")])
    first, second = (learn_kernel(grams, y) for _ in range(2))
    np.testing.assert_array_equal(first.weights, second.weights)
    np.testing.assert_array_equal(first.weights, learn_kernel(grams, y, random_state=0).weights)
    bank, target = DenseBank(grams), ClassTarget.from_labels(y)
    for candidate in first.considered:
        error = leave_one_out_error(bank, target, candidate.weights, candidate.regularization)
        assert candidate.error == pytest.approx(error, rel=1e-9)
    direct = learn_kernel(grams, y, criterion="loo")
    assert first.objective <= direct.objective * 1.02


def test_all_samples_may_want_less_regularization_than_a_part():
    """Fine structure that a third of the samples does not show: 0.3 λ is tried too, and better."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (900, 2))
    y = np.sin(9.0 * X[:, 0]) * np.sin(9.0 * X[:, 1]) > 0
    grams = np.array([RBF(width=width)(X) for width in (0.3, 0.6, 1.2)])
    bank, target = DenseBank(grams), ClassTarget.from_labels(y)
    found = next(c for c in learn_kernel(grams, y).considered if c.name == "average")
    on_part = found.regularization / 0.3
    assert np.log10(on_part) == pytest.approx(round(np.log10(on_part)))  # one of those searched
    assert found.error < leave_one_out_error(bank, target, found.weights, on_part)


def test_few_evaluations_are_made_on_all_samples(monkeypatch):
    """At most 100 factorisations' worth at 1,000 samples: four gradients, few errors."""
    sizes = []
    plain = DenseBank.system

    def counted(bank, *args, **options):
        sizes.append(bank.n_samples)
        return plain(bank, *args, **options)

    monkeypatch.setattr(DenseBank, "system", counted)
    X, y = make_classification(1000, 10, n_informative=6, random_state=0)
    grams = np.array([RBF(width=width)(X) for width in np.geomspace(0.5, 50, 10)])
    learn_kernel(grams, y)
    assert 0 < sizes.count(1000) <= 20
    assert max(size for size in sizes if size < 1000) == 333


def test_callback_sees_the_descent(three_classes):
    grams, y = three_classes
    seen = []
    learned = learn_kernel(grams, y, callback=seen.append)
    assert seen == learned.history
    assert len(seen) == learned.n_iter
    assert all(progress.gap is None for progress in seen)


def test_pull_must_not_be_negative():
    with pytest.raises(InvalidInputError, match=r"at least 0. Got -1"):
        LeaveOneOut(pull=-1)


@pytest.mark.parametrize("seed", range(3))
def test_lambda_followed_downhill_is_that_of_all_lambdas(seed):
    """From any start, on curves with one valley; of λ that are as good, the largest tried."""
    grams, y = make_problem(60, 3, 4, seed=seed)
    bank, target = DenseBank(grams), ClassTarget.from_labels(y)
    lambdas = tuple(np.logspace(0, -6, 7).tolist())
    weights = np.full(4, 0.25)
    errors = [leave_one_out_error(bank, target, weights, lam) for lam in lambdas]
    valley = int(np.argmin(errors))
    assert (np.diff(errors[: valley + 1]) < 0).all()
    assert (np.diff(errors[valley:]) > 0).all()
    best, error = choose_regularization(bank, target, weights, lambdas)
    assert error == errors[lambdas.index(best)] <= 1.01 * min(errors)
    assert all(e > 1.01 * min(errors) for e in errors[: lambdas.index(best)])
    for start in lambdas:
        _, found = choose_regularization(bank, target, weights, lambdas, start)
        assert found <= 1.01 * min(errors)
