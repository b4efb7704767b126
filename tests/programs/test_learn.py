"""`learn_kernel`: invariances, λ, warm starts, statuses, callbacks."""

import numpy as np
import pytest

from discernel import Status, learn_kernel, regularization_path
from discernel.criteria import Alignment
from discernel.exceptions import ConvergenceWarning, DroppedKernelWarning, MissingExtraError
from discernel.learn import Progress
from discernel.solvers import SILP, Newton
from tests import reference
from tests.conftest import make_problem

RKDA = {"criterion": "rkda", "regularization": 1e-2, "tol": 1e-10}
FDR = {"criterion": "fdr", "regularization": 1e-2, "tol": 1e-9}


@pytest.mark.parametrize("options", [RKDA, FDR, {**RKDA, "regularization": "joint", "tol": 1e-8}])
def test_permuting_kernels_permutes_weights(two_classes, options):
    grams, y = two_classes
    order = np.random.default_rng(0).permutation(len(grams))
    plain = learn_kernel(grams, y, **options)
    permuted = learn_kernel(grams[order], y, **options)
    np.testing.assert_allclose(permuted.weights, plain.weights[order], atol=1e-5)
    assert permuted.regularization == pytest.approx(plain.regularization, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("options", [RKDA, FDR])
def test_permuting_samples_and_renaming_labels_changes_nothing(two_classes, options):
    grams, y = two_classes
    rows = np.random.default_rng(1).permutation(len(y))
    plain = learn_kernel(grams, y, **options)
    names = np.array(["zebra", "ant"])[y]
    other = learn_kernel(grams[:, rows][:, :, rows], names[rows], **options)
    np.testing.assert_allclose(other.weights, plain.weights, atol=1e-6)
    assert other.objective == pytest.approx(plain.objective, rel=1e-8)


@pytest.mark.parametrize("options", [RKDA, FDR])
def test_scaling_a_kernel_changes_nothing_but_its_coefficient(two_classes, options):
    grams, y = two_classes
    factors = np.array([1.0, 1e3, 1e-3, 7.0, 0.2])
    plain = learn_kernel(grams, y, **options)
    scaled = learn_kernel(grams * factors[:, None, None], y, **options)
    np.testing.assert_allclose(scaled.weights, plain.weights, atol=1e-6)
    np.testing.assert_allclose(scaled.coefficients * factors, plain.coefficients, rtol=1e-4)


@pytest.mark.parametrize("options", [RKDA, FDR])
def test_duplicated_kernels_share_the_weight_of_the_original(two_classes, options):
    grams, y = two_classes
    plain = learn_kernel(grams, y, **options)
    doubled = learn_kernel(np.concatenate([grams, grams]), y, **options)
    assert doubled.objective == pytest.approx(plain.objective, rel=1e-7)
    halves = doubled.weights.reshape(2, -1)
    np.testing.assert_allclose(halves.sum(axis=0), plain.weights, atol=1e-5)
    np.testing.assert_allclose(halves[0], halves[1], atol=1e-5)


def test_one_kernel_gets_all_the_weight(three_classes):
    grams, y = three_classes
    learned = learn_kernel(grams[:1], y, **RKDA)
    assert learned.weights.tolist() == [1.0]
    assert learned.gap <= 1e-11
    assert learned.objective == pytest.approx(reference.rkda(grams[:1], y, [1.0], 1e-2))


def test_one_kernel_needs_no_certificate(three_classes):
    """There are no other weights; only the value is not known to the digits asked for."""
    y = three_classes[1]
    v = np.random.default_rng(0).standard_normal(len(y))
    learned = learn_kernel(np.outer(v, v)[None], y, criterion="rkda", regularization=1e-12)
    assert learned.status is Status.NO_PROGRAM
    assert learned.gap > 1e-6


def test_constant_kernel_is_left_out_and_named(three_classes):
    grams, y = three_classes
    ones = np.ones((1, len(y), len(y)))
    with pytest.warns(DroppedKernelWarning, match=r"kernel 0\. Such a kernel"):
        learned = learn_kernel(np.concatenate([ones, grams]), y, **RKDA)
    plain = learn_kernel(grams, y, **RKDA)
    np.testing.assert_allclose(learned.weights, [0.0, *plain.weights], atol=1e-9)
    assert learned.coefficients[0] == 0.0


def test_uniform_is_the_plain_average_without_a_certificate(three_classes):
    grams, y = three_classes
    learned = learn_kernel(grams, y, criterion="uniform", regularization=0.1)
    np.testing.assert_array_equal(learned.weights, np.full(6, 1 / 6))
    assert (learned.objective, learned.gap, learned.status) == (None, None, Status.NO_PROGRAM)
    expected = np.tensordot(learned.weights, reference.trace_normalized(grams), 1)
    np.testing.assert_allclose(reference.centered(learned.combine(grams)[None])[0], expected)


def test_joint_reports_weights_and_lambda_of_the_same_system(three_classes):
    """M = λI + Σ w_iG̃_i/r_i is the program's Σ θ_iG̃_i up to scale."""
    grams, y = three_classes
    learned = learn_kernel(grams, y, criterion="rkda", regularization="joint", tol=1e-8)
    assert learned.weights.sum() == pytest.approx(1.0)
    value = reference.rkda_joint(grams, y, learned.weights, learned.regularization)
    assert learned.objective == pytest.approx(value, rel=1e-7)


def test_joint_says_that_the_floor_was_hit():
    """A kernel that separates every sample perfectly needs no λ at all."""
    y = np.arange(20) % 2
    learned = learn_kernel(np.eye(20)[None] + np.outer(y, y), y, regularization="joint")
    assert learned.status is Status.FLOOR
    assert learned.regularization == pytest.approx(1e-10, rel=1.0)
    assert "smallest" in learned.status.advice


def test_joint_stays_above_the_floor_for_kernels_of_low_rank():
    grams, y = make_problem(40, 2, 3, seed=3)
    linear = grams[-1:]
    learned = learn_kernel(linear, y, regularization="joint", tol=1e-8)
    assert learned.status is Status.CONVERGED
    grid = [reference.rkda_joint(linear, y, [1.0], lam) for lam in np.geomspace(1e-6, 1e3, 200)]
    assert learned.objective <= min(grid) * (1 + 1e-9)


def test_loo_takes_the_largest_lambda_as_good_as_the_best(three_classes):
    grams, y = three_classes
    learned = learn_kernel(grams, y, criterion="rkda", regularization="loo")
    errors = learned.leave_one_out
    good = [lam for lam, error in errors.items() if error <= 1.01 * min(errors.values())]
    assert learned.regularization == max(good)
    target = reference.indicator(y)
    T = target @ np.linalg.svd(target)[2][:2].T  # any T with the same TTᵀ has the same error
    K = np.tensordot(learned.weights, reference.trace_normalized(grams), 1)
    ridge = np.full(len(y), learned.regularization)
    brute = np.mean((T - reference.leave_one_out(K, ridge, T)) ** 2)
    assert errors[learned.regularization] == pytest.approx(brute, rel=1e-6)


def test_a_solver_or_joint_lambda_means_the_convex_program(three_classes):
    grams, y = three_classes
    for options in ({"solver": Newton()}, {"regularization": "joint"}):
        learned = learn_kernel(grams, y, **options)
        assert (learned.criterion, learned.solver) == ("rkda", "newton")
        assert learned.gap <= 1e-6


@pytest.mark.parametrize("criterion", ["rkda", "fdr"])
def test_path_equals_separate_fits_in_fewer_steps(criterion, two_classes):
    """λ only scales the kernels: warm starts change the way, not the answer."""
    grams, y = two_classes
    lams = np.geomspace(1e-4, 1.0, 9)
    path = regularization_path(grams, y, lams, criterion=criterion, tol=1e-8)
    np.testing.assert_allclose(path.regularizations, lams[::-1])
    cold = [
        learn_kernel(grams, y, criterion=criterion, regularization=lam, tol=1e-8)
        for lam in path.regularizations
    ]
    np.testing.assert_allclose(path.objectives, [c.objective for c in cold], rtol=1e-7)
    assert (path.gaps <= 1e-8).all()
    assert path.n_iters.sum() < sum(c.n_iter for c in cold)
    as_good = path.leave_one_out_errors <= 1.01 * path.leave_one_out_errors.min()
    assert path.best.regularization == path.regularizations[as_good].max()
    chosen = learn_kernel(grams, y, criterion="rkda", regularization="loo")
    default = regularization_path(grams, y, criterion="rkda")
    assert chosen.regularization == default.best.regularization


def test_stopping_early_is_a_status_and_a_warning_that_says_what_to_do(three_classes):
    grams, y = three_classes
    with pytest.warns(ConvergenceWarning, match=r"after 1 iterations of 'newton'.*Raise max_iter"):
        learned = learn_kernel(grams, y, criterion="rkda", regularization=1e-4, max_iter=1)
    assert learned.status is Status.MAX_ITERATIONS
    assert learned.gap > 1e-6


def test_asking_for_more_digits_than_there_are_is_a_status_too(three_classes):
    grams, y = three_classes
    with pytest.warns(ConvergenceWarning, match="no further progress.*Raise the regularization"):
        learned = learn_kernel(grams, y, criterion="rkda", regularization=1e-3, tol=1e-18)
    assert learned.status is Status.STALLED
    assert learned.gap < 1e-10


def test_callback_and_history_see_every_iteration(three_classes):
    grams, y = three_classes
    seen = []
    learned = learn_kernel(grams, y, criterion="rkda", regularization=1e-2, callback=seen.append)
    assert seen == learned.history
    assert len(seen) == learned.n_iter + 1
    assert all(isinstance(progress, Progress) for progress in seen)
    objectives = [progress.objective for progress in seen]
    assert objectives == sorted(objectives, reverse=True)
    assert seen[-1].gap == learned.gap
    assert seen[-1].n_active == np.count_nonzero(learned.weights)
    stages = []
    regularization_path(
        grams, y, criterion="rkda", callback=lambda p: stages.append((p.stage, p.n_stages))
    )
    assert sorted(set(stages)) == [(i, 13) for i in range(13)]


def test_inputs_are_left_as_they_are(three_classes):
    grams, y = three_classes
    before = grams.copy()
    learn_kernel(grams, y)  # the fixture is read-only: writing would raise
    np.testing.assert_array_equal(grams, before)


def test_same_call_same_answer(three_classes):
    grams, y = three_classes
    first, second = (learn_kernel(grams, y, random_state=s) for s in (0, 1))
    np.testing.assert_array_equal(first.weights, second.weights)


def test_a_missing_extra_is_named(monkeypatch, three_classes):
    monkeypatch.setitem(__import__("sys").modules, "cvxpy", None)
    grams, y = three_classes
    with pytest.raises(MissingExtraError, match=r"discernel\[conic\]"):
        learn_kernel(grams, y, solver="sdp", regularization=0.1)


def test_solver_objects_are_values():
    assert SILP() == SILP(stopping="gap")
    assert SILP() != SILP(stopping="paper")


def test_joint_gives_all_to_lambda_where_no_kernel_helps():
    """A kernel along a direction orthogonal to the classes: the identity is better."""
    y = np.repeat([0, 1], 10)
    direction = np.tile([1.0, -1.0], 10)
    learned = learn_kernel(np.outer(direction, direction)[None], y, regularization="joint")
    assert learned.weights.tolist() == [1.0]
    assert learned.regularization > 1e6
    assert learned.gap <= 1e-6


@pytest.mark.parametrize("method", ["greedy", "qp"])
def test_alignment_is_learned_once_and_lambda_chosen_after_it(three_classes, method):
    grams, y = three_classes
    learned = learn_kernel(grams, y, criterion="alignment", solver=method)
    assert (learned.solver, learned.gap) == (method, None)
    same = learn_kernel(grams, y, criterion=Alignment(), solver=method)
    np.testing.assert_array_equal(same.weights, learned.weights)
    K = np.tensordot(learned.weights, reference.trace_normalized(grams), 1)
    target = reference.indicator(y) @ reference.indicator(y).T
    expected = np.sum(K * target) / np.linalg.norm(K) / np.linalg.norm(target)
    assert learned.objective == pytest.approx(expected, rel=1e-9)
    assert learned.regularization in learned.leave_one_out
    assert learned.n_iter <= len(grams)
    assert len(learned.history) == learned.n_iter
    assert learned.history[-1].objective == learned.objective


def test_akfd_gives_weights_for_our_discriminant(three_classes):
    grams, y = three_classes
    learned = learn_kernel(grams, y, criterion="akfd")
    assert (learned.criterion, learned.solver, learned.gap) == ("akfd", "alternating", None)
    assert learned.weights.sum() == pytest.approx(1.0)
    assert learned.regularization in learned.leave_one_out
