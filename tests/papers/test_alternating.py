"""A-KFD: the alternation of Fung 2004, the choice of ν, and the weights on a bank."""

import tracemalloc

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from discernel import AKFDClassifier, MultipleKernelDiscriminant, learn_kernel
from discernel.bank import DenseBank
from discernel.criteria import AKFD
from discernel.exceptions import InvalidInputError, NumericalError
from discernel.kernels import RBF, Linear
from discernel.papers.akfd.criterion import critical_nu, decide, objective, one_against_rest
from discernel.papers.akfd.solver import (
    NUS,
    Alternating,
    alternate,
    choose_nu,
    effective_rank,
    start_weights,
)
from discernel.programs.simplex import normalize
from discernel.solvers import Status, Task
from discernel.targets import ClassTarget
from tests import reference
from tests.conftest import make_problem


def targets(y):
    return one_against_rest(ClassTarget.from_labels(y))


def value(grams, d, nu, found):
    return objective(grams @ found.v, d, nu, found.weights, found.v, found.gamma)


def solve(bank, target, criterion=None, max_iter=None):
    """Return the solution on a bank, and the objective after every iteration."""
    told = []
    task = Task(
        1e-6, max_iter, monitor=lambda _, value, gap, weights: told.append((value, gap, weights))
    )
    program = (criterion or AKFD(tol=1e-6)).program(bank, target, None)
    found = Alternating().solve(program, task)
    assert all(gap is None for _, gap, _ in told)  # nothing is certified
    np.testing.assert_allclose(normalize(told[-1][2]), found.weights)
    return found, [value for value, _, _ in told]


# ---- Algorithm 4.1 ---------------------------------------------------------------------------


@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize(("n_classes", "seed"), [(2, 0), (2, 1), (3, 2), (5, 3)])
def test_objective_falls_at_every_half_step(n_classes, seed, nu):
    grams, y = make_problem(40, n_classes, 5, seed=seed)
    d = targets(y)
    found = alternate(grams, d, nu, tol=1e-9, max_iter=25)
    assert (np.diff(found.objectives) <= 0).all()
    assert len(found.objectives) == 2 * found.n_iter
    assert found.objectives[-1] < found.objectives[0]
    assert found.objectives[-1] == pytest.approx(value(grams, d, nu, found), rel=1e-12)


def test_first_half_steps_are_eq_23_and_24_in_this_order(two_classes):
    """From the given weights: the discriminant by a dense solve, then weights that are better."""
    grams, y = two_classes
    d, nu, start = targets(y), 10.0, np.array([0.0, 1.0, 0.0, 2.0, 0.5])
    found = alternate(grams, d, nu, start=start, max_iter=1)
    H = np.hstack([np.tensordot(start, grams, 1), -np.ones((40, 1))])
    solved = np.linalg.solve(H.T @ H + np.eye(41) / nu, H.T @ d)
    np.testing.assert_allclose(found.v, solved[:-1], atol=1e-7 * np.abs(solved).max())
    np.testing.assert_allclose(found.gamma, solved[-1], rtol=1e-6)
    assert found.objectives[0] == pytest.approx(
        objective(grams @ solved[:-1], d, nu, start, solved[:-1], solved[-1]), rel=1e-9
    )
    assert found.objectives[1] == pytest.approx(value(grams, d, nu, found), rel=1e-12)
    assert (found.n_iter, found.converged) == (1, False)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("nu", [1e-2, 0.3])
def test_the_end_is_a_minimum_in_each_block(n_classes, nu):
    """Central differences in v, γ and the positive a are 0; in the others they are not below."""
    grams, y = make_problem(24, n_classes, 4, seed=4)
    d = targets(y)
    found = alternate(grams, d, nu, tol=1e-15, max_iter=5000)
    assert found.converged
    at = [found.weights, found.v, found.gamma]

    def slope(block, index, step=1e-5):
        values = []
        for sign in (1, -1):
            moved = [part.copy() for part in at]
            moved[block][index] += sign * step
            a, v, gamma = moved
            values.append(objective(grams @ v, d, nu, a, v, gamma))
        return (values[0] - values[1]) / (2 * step)

    slopes = np.array([slope(0, i) for i in range(len(grams))])
    size = found.objectives[-1]
    np.testing.assert_allclose(slopes[found.weights > 0], 0, atol=1e-5 * size)
    assert (slopes >= -1e-5 * size).all()
    assert found.weights.any()
    for index in np.ndindex(found.v.shape):
        assert abs(slope(1, index)) <= 1e-4 * size
    for index in np.ndindex(found.gamma.shape):
        assert abs(slope(2, index)) <= 1e-4 * size


def test_stops_at_the_first_small_change_of_the_objective(two_classes):
    grams, y = two_classes
    ends = [alternate(grams, targets(y), 1e-3, tol=tol) for tol in (1e-1, 1e-3, 1e-5)]
    assert [end.converged for end in ends] == [True] * 3
    assert ends[0].n_iter < ends[1].n_iter < ends[2].n_iter
    for end, tol in zip(ends, (1e-1, 1e-3, 1e-5), strict=True):
        after = np.array(end.objectives[1::2])
        changes = 1 - after[1:] / after[:-1]
        assert (changes[:-1] > tol).all()
        assert changes[-1] <= tol


def test_more_iterations_go_on_from_fewer(two_classes):
    grams, y = two_classes
    few, many = (alternate(grams, targets(y), 1.0, tol=1e-12, max_iter=n) for n in (3, 6))
    assert few.objectives == many.objectives[:6]
    again = alternate(grams, targets(y), 1.0, start=few.weights, tol=1e-12, max_iter=3)
    np.testing.assert_allclose(again.objectives, many.objectives[6:], rtol=1e-12)
    np.testing.assert_allclose(again.weights, many.weights, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_permuting_kernels_permutes_weights(n_classes):
    grams, y = make_problem(36, n_classes, 5, seed=5)
    order = np.random.default_rng(0).permutation(5)
    plain = alternate(grams, targets(y), 1.0, tol=1e-8)
    permuted = alternate(grams[order], targets(y), 1.0, tol=1e-8)
    np.testing.assert_allclose(permuted.weights, plain.weights[order], atol=1e-7)
    np.testing.assert_allclose(permuted.scores(grams[order]), plain.scores(grams), atol=1e-6)


def test_permuting_samples_changes_nothing(three_classes):
    grams, y = three_classes
    rows = np.random.default_rng(1).permutation(len(y))
    plain = alternate(grams, targets(y), 1.0)
    other = alternate(grams[:, rows][:, :, rows], targets(y[rows]), 1.0)
    np.testing.assert_allclose(other.weights, plain.weights, atol=1e-8)
    np.testing.assert_allclose(other.v, plain.v[rows], atol=1e-7 * np.abs(plain.v).max())


def test_swapping_two_classes_turns_the_sign_of_the_score(two_classes):
    grams, y = two_classes
    plain, swapped = (alternate(grams, targets(labels), 1.0) for labels in (y, 1 - y))
    np.testing.assert_allclose(swapped.weights, plain.weights, atol=1e-10)
    np.testing.assert_allclose(swapped.scores(grams), -plain.scores(grams), atol=1e-9)


def test_relabelling_classes_permutes_the_columns_only(three_classes):
    grams, y = three_classes
    new = np.array([2, 0, 1])
    plain, renamed = (alternate(grams, targets(labels), 1.0) for labels in (y, new[y]))
    assert plain.weights.shape == (len(grams),)  # one vector for all three classes
    np.testing.assert_allclose(renamed.weights, plain.weights, atol=1e-10)
    np.testing.assert_allclose(renamed.scores(grams)[:, new], plain.scores(grams), atol=1e-9)


def test_a_column_given_twice_is_one_column_at_another_nu(two_classes):
    """Shared weights: on centred kernels, where γ = 0, scaling a by 2^¼ turns one into the other.

    2(ν/2 ‖r‖² + ½‖v‖²) + ½‖a‖² with a = 2^¼ b and v = 2^-¼ u is √2 times
    √2ν/2 ‖r‖² + ½‖u‖² + ½‖b‖².
    """
    grams, y = two_classes
    kernels, d, start = reference.trace_normalized(grams), targets(y), np.ones(5)
    twice = alternate(kernels, np.hstack([d, d]), 1.0, start=2**0.25 * start, tol=1e-6)
    once = alternate(kernels, d, 2**0.5, start=start, tol=1e-6)
    np.testing.assert_allclose(twice.objectives, 2**0.5 * np.array(once.objectives), rtol=1e-9)
    np.testing.assert_allclose(twice.weights, 2**0.25 * once.weights, atol=1e-8)
    np.testing.assert_allclose(twice.v, np.hstack([once.v, once.v]) / 2**0.25, rtol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_vanish_up_to_the_critical_nu(n_classes):
    """On centred kernels: below it nothing beats 0, above it something does."""
    grams, y = make_problem(40, n_classes, 5, seed=7)
    kernels, d = reference.trace_normalized(grams), targets(y)
    critical = critical_nu(kernels @ d)
    for factor in (0.5, 0.99, 1.1):
        found = alternate(kernels, d, factor * critical, tol=1e-14, max_iter=2000)
        nothing = factor * critical / 2 * np.sum(d**2)
        if factor < 1:
            assert found.objectives[-1] >= nothing * (1 - 1e-12)
            assert found.weights.sum() < 0.05
        else:
            assert found.objectives[-1] < 0.999 * nothing
            assert found.weights.sum() > 0.05


def test_callback_sees_every_iteration(two_classes):
    grams, y = two_classes
    seen = []
    found = alternate(grams, targets(y), 0.1, callback=seen.append)
    assert [progress.iteration for progress in seen] == list(range(1, found.n_iter + 1))
    assert tuple(progress.objective for progress in seen) == found.objectives[1::2]
    assert seen[-1].n_active == np.count_nonzero(found.weights)
    assert seen[-1].gap is None


# ---- the start, Eq. (26) ---------------------------------------------------------------------


def test_effective_rank_is_that_of_the_centred_eigenvalues(two_classes):
    for gram in two_classes[0]:
        kappa = np.linalg.eigvalsh(reference.centered(gram[None])[0])
        expected = kappa.sum() ** 2 / (kappa @ kappa)
        assert effective_rank(gram) == pytest.approx(expected, rel=1e-6)
    assert effective_rank(np.eye(7)) == pytest.approx(6.0)
    assert effective_rank(np.outer(np.arange(7), np.arange(7))) == pytest.approx(1.0)
    assert np.isnan(effective_rank(np.ones((7, 7))))


@pytest.mark.parametrize("offset", [0.0, 0.4])
def test_start_is_linear_plus_the_narrowest_gaussian(offset):
    """The paper's five kernels on data in [−1, 1], in any order."""
    X = np.random.default_rng(2).uniform(-1, 1, (60, 5)) * (1 - offset) + offset
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    grams = np.array([X @ X.T, *(np.exp(-mu * squared) for mu in (0.001, 0.01, 0.1, 1.0))])
    assert start_weights(grams).tolist() == [1, 0, 0, 0, 1]
    assert start_weights(grams[[4, 2, 0, 1, 3]]).tolist() == [1, 0, 1, 0, 0]


def test_start_leaves_constant_kernels_out(two_classes):
    grams, _ = two_classes
    ones = np.ones((1, 40, 40))
    assert start_weights(np.concatenate([ones, grams])).tolist() == [0, *start_weights(grams)]
    assert start_weights(ones).tolist() == [1.0]
    assert start_weights(np.concatenate([ones, ones])).tolist() == [1.0, 1.0]
    assert start_weights(grams[:1]).tolist() == [1.0]


def test_one_kernel_and_one_start_are_the_default(two_classes):
    grams, y = two_classes
    start = start_weights(grams)
    assert 0 < start.sum() < len(grams)
    plain = alternate(grams, targets(y), 1.0)
    given = alternate(grams, targets(y)[:, 0], 1.0, start=start.tolist())
    assert plain.objectives == given.objectives
    other = alternate(grams, targets(y), 1.0, start=np.ones(len(grams)))
    assert plain.objectives[0] != other.objectives[0]


# ---- the choice of ν -------------------------------------------------------------------------


def test_choice_of_nu_is_that_of_folds_taken_by_hand(three_classes):
    grams, y = three_classes
    nus = [1e-3, 1e-1, 10.0, 1e4, 1e9]
    hits = np.zeros(len(nus))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=3).split(y, y):
        block = grams[:, train][:, :, train]
        for i, nu in enumerate(nus):
            found = alternate(block, targets(y[train]), nu, tol=1e-2)
            hits[i] += (decide(found.scores(grams[:, test][:, :, train])) == y[test]).sum()
    nu, accuracies = choose_nu(grams, y, nus[::-1], n_splits=5, random_state=3)
    assert accuracies == dict(zip(nus, hits / 45, strict=True))
    assert nu == nus[hits.argmax()]
    assert len(set(hits)) > 1


def test_the_smallest_of_equally_accurate_nus_is_chosen():
    y = np.repeat([0, 1], 20)
    X = np.random.default_rng(4).standard_normal((40, 2)) + 50.0 * y[:, None] - 25.0
    nu, accuracies = choose_nu((X @ X.T)[None], y, [100.0, 1.0, 10.0], random_state=0)
    assert accuracies == {1.0: 1.0, 10.0: 1.0, 100.0: 1.0}
    assert nu == 1.0


def test_a_small_class_gets_fewer_folds(two_classes):
    grams, _ = two_classes
    y = np.array([1, 1, 1] + [0] * 37)
    ten, three = (choose_nu(grams, y, [1.0], n_splits=n, random_state=0)[1] for n in (10, 3))
    assert ten == three


def test_seed_of_the_folds(two_classes):
    grams, y = two_classes
    first, again, other = (choose_nu(grams, y, random_state=s)[1] for s in (0, 0, 1))
    assert first == again
    assert first != other


def test_nus_beyond_floating_point_are_not_chosen():
    """A kernel of two directions and size 1e10: rounding errors of 1e-6 where 1/√ν is 1e-6."""
    y = np.arange(30) % 2
    X = 1e5 * (np.random.default_rng(5).standard_normal((30, 2)) + y[:, None])
    nu, accuracies = choose_nu((X @ X.T)[None], y, [1e-3, 1.0, 1e20], random_state=0)
    assert nu in (1e-3, 1.0)
    assert min(accuracies[1e-3], accuracies[1.0]) > 0.5
    assert accuracies[1e20] == 0.0
    with pytest.raises(NumericalError, match=r"1/√ν = 1.0e-10.*Use a smaller nu"):
        alternate((X @ X.T)[None], targets(y), 1e20)
    with pytest.raises(NumericalError, match="Use a smaller nu"):
        choose_nu((X @ X.T)[None], y, [1e20], random_state=0)


# ---- on a bank -------------------------------------------------------------------------------


def test_many_samples_start_where_a_quarter_of_them_ends():
    grams, y = make_problem(1040, 3, 4, seed=1)
    found = learn_kernel(grams, y, criterion="akfd", regularization=1e-2)
    assert found.n_iter <= 3
    cold = alternate(
        reference.trace_normalized(grams),
        targets(y),
        5 * critical_nu(reference.trace_normalized(grams) @ targets(y)),
        tol=1e-2,
    )
    assert found.objective <= cold.objectives[-1] * 1.01
    np.testing.assert_allclose(found.weights, cold.weights / cold.weights.sum(), atol=0.03)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_on_a_bank_are_those_on_its_explicit_kernels(n_classes):
    grams, y = make_problem(40, n_classes, 5, seed=6)
    kernels = reference.trace_normalized(grams)
    expected = alternate(kernels, targets(y), 1.5, tol=1e-6)
    found, objectives = solve(DenseBank(grams), ClassTarget.from_labels(y), AKFD(nu=1.5, tol=1e-6))
    np.testing.assert_allclose(found.weights, expected.weights / expected.weights.sum(), atol=1e-8)
    np.testing.assert_allclose(objectives, expected.objectives[1::2], rtol=1e-8)
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.value == objectives[-1]
    assert (found.n_iter, found.status) == (expected.n_iter, Status.CONVERGED)
    assert found.n_iter < 100


def test_default_nu_on_a_bank(two_classes):
    grams, y = two_classes
    arguments = DenseBank(grams), ClassTarget.from_labels(y)
    default, objectives = solve(*arguments)
    nu = 5 * critical_nu(reference.trace_normalized(grams) @ targets(y))
    given, expected = solve(*arguments, AKFD(nu=nu, tol=1e-6))
    np.testing.assert_allclose(objectives, expected, rtol=1e-9)
    np.testing.assert_allclose(default.weights, given.weights, atol=1e-8)
    assert default.status is Status.CONVERGED
    assert np.count_nonzero(default.weights) > 1


def test_scaling_and_shifting_kernels_changes_nothing_on_a_bank(two_classes):
    grams, y = two_classes
    target = ClassTarget.from_labels(y)
    factors = np.array([1.0, 1e3, 1e-3, 7.0, 0.2])[:, None, None]
    plain, _ = solve(DenseBank(grams), target)
    other, _ = solve(DenseBank(grams * factors + 3.0), target)
    np.testing.assert_allclose(other.weights, plain.weights, atol=1e-6)
    np.testing.assert_allclose(other.value, plain.value, rtol=1e-7)


def test_stopping_early_on_a_bank_is_a_status(two_classes):
    grams, y = two_classes
    bank, target = DenseBank(grams), ClassTarget.from_labels(y)
    found, objectives = solve(bank, target, max_iter=2)
    assert (found.n_iter, found.status) == (2, Status.MAX_ITERATIONS)
    assert objectives == solve(bank, target)[1][:2]
    assert objectives[-1] == found.value


def test_one_combined_kernel_and_one_set_of_products_an_iteration(monkeypatch, three_classes):
    grams, y = three_classes
    bank = DenseBank(grams)
    calls = {"combined": 0, "products": 0}
    for name in calls:
        plain = getattr(DenseBank, name)

        def counted(self, *arguments, name=name, plain=plain):
            calls[name] += 1
            return plain(self, *arguments)

        monkeypatch.setattr(DenseBank, name, counted)
    found, _ = solve(bank, ClassTarget.from_labels(y))
    assert calls["products"] == found.n_iter + 1  # one for ν
    assert calls["combined"] == found.n_iter


@pytest.mark.parametrize("n_kernels", [4, 16])
def test_memory_on_a_bank_is_a_few_matrices_however_many_kernels(n_kernels):
    grams, y = make_problem(300, 2, n_kernels)
    bank, target = DenseBank(grams), ClassTarget.from_labels(y)
    tracemalloc.start()
    solve(bank, target, max_iter=3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 4 * grams[0].nbytes


# ---- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [0, -1.0, np.inf, np.nan, "cv", True])
def test_options_refuse_a_nu_that_is_not_a_positive_number(nu):
    with pytest.raises(
        InvalidInputError, match=r"nu of A-KFD.* must be a positive, finite number. Got "
    ):
        AKFD(nu)


def test_options_are_values():
    assert AKFD() == AKFD(nu=None)
    assert AKFD(1.0) != AKFD(2.0)
    assert AKFD.name == "akfd"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nu": 0.0}, r"nu of A-KFD.* must be a positive, finite number. Got 0.0"),
        ({"grams": np.eye(40)}, r"must have shape \(n_kernels, n_samples, n_samples\).*\(40, 40\)"),
        ({"d": np.ones(39)}, r"one target per sample, here 40 rows. Got targets of shape \(39,\)"),
        ({"tol": 0.0}, r"tol must be a positive, finite number. Got 0.0"),
        ({"max_iter": 0}, r"max_iter must be an integer of at least 1. Got 0"),
        ({"start": [1.0, 2.0]}, r"must be 5 numbers of at least 0.*Got \[1.0, 2.0\]"),
        ({"start": [1.0, -1.0, 0, 0, 0]}, r"must be 5 numbers of at least 0, not all 0"),
        ({"start": np.zeros(5)}, r"not all 0: from 0 the alternation never leaves"),
    ],
)
def test_alternate_refuses(two_classes, options, message):
    grams, y = two_classes
    with pytest.raises(InvalidInputError, match=message):
        alternate(**{"grams": grams, "d": targets(y), "nu": 1.0, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nus": []}, r"at least one ν to choose from and at least two folds. Got nus=\[\]"),
        ({"nus": [1.0, -1.0]}, r"nu of A-KFD.* must be a positive, finite number. Got -1.0"),
        ({"n_splits": 1}, r"at least two folds.*n_splits=1"),
        ({"y": np.zeros(40)}, r"at least two classes"),
    ],
)
def test_choose_nu_refuses(two_classes, options, message):
    grams, y = two_classes
    with pytest.raises(InvalidInputError, match=message):
        choose_nu(**{"grams": grams, "y": y, **options})


def test_an_indefinite_kernel_is_a_clear_error():
    y = np.arange(20) % 2
    with pytest.raises(NumericalError, match=r"not positive semidefinite.*check the kernels"):
        alternate(-np.eye(20)[None], targets(y), 100.0)


def test_kernels_that_have_nothing_in_common_with_the_classes_tell_none_apart():
    X, y = np.tile([[-1.0], [1.0]], (8, 1)), np.repeat([0, 1], 8)
    clf = MultipleKernelDiscriminant([RBF(width=1.0), Linear()], criterion="akfd").fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X), 0.5)
    assert AKFDClassifier([RBF(width=1.0), Linear()]).fit(X, y).score(X, y) == 0.5


def test_the_effective_rank_does_not_depend_on_the_unit(two_classes):
    for gram in two_classes[0]:
        assert effective_rank(1e200 * gram) == pytest.approx(effective_rank(gram))
