"""Few λ are scored, and the choice is that of all of them."""

import itertools
from importlib import import_module

import numpy as np
import pytest
from sklearn.datasets import make_classification

from discernel import MultipleKernelDiscriminant, learn_kernel, regularization_path
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import DenseBank, TiledBank
from discernel.criteria import RKDA
from discernel.exceptions import NumericalError
from discernel.kernels import RBF, rbf_ladder
from discernel.learn.learn import DEFAULT_REGULARIZATIONS, WeightLearner, learn
from discernel.learn.request import make_request
from discernel.programs import base
from discernel.programs.lambdas import (
    LEAST,
    NEAR_LEAST,
    WALK,
    Rule,
    find_limit,
    lambda_grid,
    search_lambda,
    undecided,
)
from discernel.solvers import SILP, Status
from discernel.targets import ClassTarget
from tests.conftest import make_problem
from tests.programs.test_auto import leave_one_out_error
from tests.programs.test_part import problem_with_unseen

N = len(DEFAULT_REGULARIZATIONS)


def best_of_all(errors):
    """The rule on the whole path: the first error within 1 % of the least."""
    errors = np.asarray(errors)
    return int(np.argmax(errors <= 1.01 * errors.min()))


def valleys():
    """Errors with one valley: steep or slow on its sides, with a floor that is flat or not."""
    steps = np.arange(N)
    for low, left, right in itertools.product(range(N), (0.05, 0.2, 1.0), (0.0, 1e-9, 0.02, 0.3)):
        yield 1.0 + left * np.maximum(low - steps, 0) + right * np.maximum(steps - low, 0)


# ---- the search alone ------------------------------------------------------------------------


def searched(errors, rule=WALK, start=None):
    """Return the search of errors by λ, and the λ that were asked for."""
    grid = tuple(10.0**-k for k in range(len(errors)))
    asked = []
    by_lambda = dict(zip(grid, errors, strict=True))
    return search_lambda(
        grid, lambda lam: (asked.append(lam), by_lambda[lam])[1], rule, start
    ), asked


@pytest.mark.parametrize("rule", [WALK, NEAR_LEAST], ids=["walk", "near"])
@pytest.mark.parametrize("start", [None, 0, 3, 6, 9, 12])
def test_of_one_valley_the_search_chooses_what_the_whole_path_would(rule, start):
    for errors in valleys():
        found, asked = searched(errors, rule, start)
        chosen = found.losses[found.position]
        assert chosen <= 1.01 * min(errors)
        if rule is WALK or start is None:
            assert found.position == best_of_all(errors)
        assert len(set(asked)) == len(asked) == len(found.losses)  # each was asked for once
        assert all(found.losses[i] == errors[i] for i in found.losses)
        assert found.loss == errors[found.position]
        assert found.regularization == found.grid[found.position]


def test_a_good_start_takes_three_and_no_start_about_half():
    from_good, from_nothing = [], []
    for errors in valleys():
        from_good.append(len(searched(errors, start=best_of_all(errors))[1]))
        from_nothing.append(len(searched(errors)[1]))
    assert np.mean(from_good) <= 3.5
    assert np.mean(from_nothing) <= 8


def test_between_two_that_are_as_good_lies_a_better_one():
    errors = [3.0, 2.5, 2.0, 1.5, 1.0, 0.8, 0.7, 0.8, 1.0, 1.2, 1.3, 1.4, 1.5]
    assert searched(errors)[0].position == 6


def test_without_a_start_the_lower_of_two_wide_valleys_is_found():
    errors = [1.0, 0.9, 0.8, 0.7, 0.6, 0.8, 1.0, 0.9, 0.5, 0.3, 0.4, 0.9, 1.0]
    assert searched(errors)[0].position == 9


@pytest.mark.parametrize("errors", [[0.4], [0.5, 0.4], [0.4, 0.5], [0.4, 0.4, 0.4]])
@pytest.mark.parametrize("start", [None, 0])
@pytest.mark.parametrize("rule", [WALK, LEAST, NEAR_LEAST], ids=["walk", "least", "near"])
def test_short_paths(errors, start, rule):
    assert searched(errors, rule, start)[0].position == best_of_all(errors)


def test_the_least_of_all_is_the_first_of_those_that_tie():
    assert searched([3.0, 1.0, 2.0, 1.0], LEAST)[0].position == 1
    assert searched([3.0, 1.005, 1.0, 2.0], LEAST)[0].position == 2
    assert searched([3.0, 1.005, 1.0, 2.0], NEAR_LEAST)[0].position == 1


def test_from_a_start_the_loss_is_followed_to_both_sides():
    errors = [3.0, 1.0, 2.0, 4.0, 0.5]
    for start, position, n_asked in [(0, 1, 3), (2, 1, 4), (3, 4, 3)]:
        found, asked = searched(errors, LEAST, start)
        assert (found.position, len(asked)) == (position, n_asked)


@pytest.mark.parametrize(
    ("gains", "position"),
    [
        ([2.0, 2.0, 2.0], 3),
        ([0.5, 2.0, 2.0], 0),  # hardly smaller is not worth a smaller λ
        ([2.0, 0.5, 2.0], 1),
        ([2.0, -2.0, 2.0], 1),
    ],
)
def test_a_smaller_lambda_must_be_worth_it(gains, position):
    """Each error is smaller than the one before by so many times what is worthwhile."""
    rule = Rule(worthwhile=0.01, tries_both_sides=False)
    errors = np.cumprod([1.0, *(1.0 - rule.worthwhile * np.array(gains))])
    assert searched(errors, rule, start=0)[0].position == position


@pytest.mark.parametrize("sides", [True, False])
@pytest.mark.parametrize("start", [0, 1, 3])
def test_lambdas_that_cannot_be_solved_with_are_skipped(sides, start):
    grid = (1.0, 0.1, 0.01, 0.001)

    def loss(lam):
        if lam < 0.1:
            raise NumericalError
        return lam

    rule = Rule(tries_both_sides=sides, skips_failures=True)
    assert search_lambda(grid, loss, rule, start).regularization == 0.1
    with pytest.raises(NumericalError):
        search_lambda(grid, loss, Rule(tries_both_sides=sides), start)
    with pytest.raises(NumericalError):  # there is nothing larger
        search_lambda(grid[2:], loss, rule, 0)


def test_grids_fall_by_steps_of_a_decade():
    assert lambda_grid(0.0, -2.0, per_decade=1) == (1.0, 0.1, 0.01)
    np.testing.assert_allclose(lambda_grid(0.5, -1.0), [10**0.5, 1.0, 10**-0.5, 0.1])
    assert lambda_grid(-1.0, -1.0) == (0.1,)


@pytest.mark.parametrize(
    ("margins", "expected"),
    [
        ({}, None),
        ({5: 1e-3, 6: 1e-3, 4: 1e-3}, None),
        ({4: 5e-3}, None),
        ({4: 7e-3}, 4),  # 1.016 might be within 1 % of 1.0
        ({4: 4e-3, 5: 3e-3}, 4),
        ({5: 1e-3, 6: 2e-3}, 6),  # 1.0 might be smaller than 1.0 by 0.25 %
        ({4: 5e-3, 5: 1e-3, 6: 2e-3}, 4),
        ({3: 1.0}, None),  # not tried
    ],
)
def test_a_choice_is_undecided_where_margins_might_change_it(margins, expected):
    errors = [2.0, 1.5, 1.2, 1.05, 1.016, 1.0, 1.0, 1.0]
    found, _ = searched(errors, start=5)
    assert found.position == 5
    assert undecided(found, [margins.get(i, 0.0) for i in range(8)], WALK, 5) == expected


@pytest.mark.parametrize("start", [None, 0, 6, 12])
def test_a_choice_that_is_decided_stays_with_all_errors_within_their_margins(start):
    rng, n_decided = np.random.default_rng(0), 0
    for errors in valleys():
        found, _ = searched(errors, WALK, start)
        margins = rng.uniform(0, 0.01, N)
        if undecided(found, margins, WALK, start) is not None:
            continue
        n_decided += 1
        for _ in range(5):
            others = np.array(errors) * (1.0 + margins * rng.uniform(-1, 1, N))
            assert searched(others, WALK, start)[0].position == found.position
    assert n_decided >= 20


# ---- few samples: all of them are looked at ---------------------------------------------------


CRITERIA = ["rkda", "fdr", "alignment", "uniform", "separability", "akfd", RKDA(shrinkage=0.1)]


@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_few_samples_the_same_lambda_weights_and_errors_as_on_the_whole_path(criterion, seed):
    grams, y = make_problem(60, 2, 4, seed=seed)
    learned = learn_kernel(grams, y, criterion=criterion, tol=1e-8)
    path = regularization_path(grams, y, criterion=criterion, tol=1e-8)
    assert learned.regularization == path.best.regularization
    assert learned.regularization_at_limit == path.best.regularization_at_limit
    np.testing.assert_allclose(learned.weights, path.best.weights, atol=2e-3)
    errors = dict(zip(path.regularizations, path.leave_one_out_errors, strict=True))
    lambdas = list(learned.leave_one_out)
    assert lambdas == sorted(lambdas, reverse=True)
    assert {1.0, 1e-2, 1e-4, 1e-6} <= set(lambdas) < set(errors)
    for lam, error in learned.leave_one_out.items():
        assert error == pytest.approx(errors[lam], rel=1e-3)


def test_stages_count_the_lambdas_as_they_are_taken_up(three_classes):
    grams, y = three_classes
    seen = []
    learned = learn_kernel(grams, y, criterion="rkda", callback=seen.append)
    assert seen == learned.history
    stages = [progress.stage for progress in seen]
    assert stages == sorted(stages)
    assert set(stages) == set(range(len(learned.leave_one_out)))
    assert {progress.n_stages for progress in seen} == {N}
    assert {progress.regularization for progress in seen} == set(learned.leave_one_out)
    assert learned.n_iter == sum(progress.iteration > 0 for progress in seen)


# ---- many samples: a part of them says where to start -----------------------------------------


def rows_of(name, n, paper_data):
    if name == "synthetic":
        return make_classification(
            n, 20, n_informative=6, n_classes=3, class_sep=0.8, random_state=0
        )
    X, y = paper_data(name)
    rows = np.random.default_rng(0).permutation(len(y))[:n]
    return (X[rows] - X[rows].mean(axis=0)) / (X[rows].std(axis=0) + 1e-12), y[rows]


def grams_of(X):
    return np.array([kernel.resolve(X)(X) for kernel in rbf_ladder(6)])


@pytest.mark.parametrize(
    ("name", "criterion"),
    [
        ("synthetic", "rkda"),
        ("synthetic", RKDA(shrinkage=0.1)),
        ("synthetic", "alignment"),
        ("waveform", "rkda"),
        ("segment", "rkda"),
        ("segment", "uniform"),
        ("pima", "rkda"),
        ("pima", "fdr"),
    ],
    ids=str,
)
def test_many_samples_an_error_within_one_percent_of_the_best_of_the_whole_path(
    name, criterion, paper_data
):
    X, y = rows_of(name, 700, paper_data)
    grams = grams_of(X)
    learned = learn_kernel(grams, y, criterion=criterion)
    path = regularization_path(grams, y, criterion=criterion)
    errors = dict(zip(path.regularizations, path.leave_one_out_errors, strict=True))
    assert errors[learned.regularization] <= 1.01 * min(errors.values()) * (1 + 1e-6)
    assert learned.regularization == path.best.regularization
    assert len(learned.leave_one_out) <= 5
    for lam, error in learned.leave_one_out.items():
        assert error == pytest.approx(errors[lam], rel=2e-3)
    if learned.gap is not None:
        assert learned.gap <= 1e-6
        np.testing.assert_allclose(learned.objective, path.best.objective, rtol=2e-6)


@pytest.fixture
def blurred():
    X, y = make_classification(620, 8, n_informative=5, n_classes=3, class_sep=0.6, random_state=1)
    return grams_of(X), y


def test_the_chosen_lambda_alone_is_solved_to_the_gap_asked_for(blurred):
    grams, y = blurred
    seen = []
    options = {"criterion": "rkda", "solver": "newton", "tol": 1e-10}
    learned = learn_kernel(grams, y, **options, callback=seen.append)
    assert learned.gap <= 1e-10
    assert seen == learned.history
    last = {(p.stage, p.regularization): p.gap for p in seen}
    assert all(gap <= 1e-4 for gap in last.values())
    assert min(gap for (_, lam), gap in last.items() if lam != learned.regularization) > 1e-10
    assert len(last) == len(learned.leave_one_out) + 1
    assert seen[-1].regularization == learned.regularization
    assert seen[-1].gap == learned.gap
    assert learned.n_iter == sum(progress.iteration > 0 for progress in seen)


@pytest.mark.parametrize(
    ("name", "weighted"),
    [("synthetic", False), ("synthetic", True), ("waveform", False), ("satimage", False)],
)
def test_tiles_take_the_lambda_and_the_weights_of_the_whole_path(name, weighted, paper_data):
    """Rough factors and subspaces of other λ: the slow search has neither."""
    X, y = rows_of(name, 520, paper_data)
    X = X + 100.0  # far from the origin
    counts = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    known = SampleWeights(counts) if weighted else None
    target = ClassTarget.from_labels(y, known)
    slow = WeightLearner(
        DenseBank(grams_of(X), sample_weights=known),
        target,
        make_request(criterion="rkda", solver="newton", regularization=1.0, tol=1e-9),
    )
    errors = [slow.error(lam) for lam in DEFAULT_REGULARIZATIONS]
    expected, _ = slow.found[DEFAULT_REGULARIZATIONS[best_of_all(errors)]]
    bank = TiledBank(
        [kernel.resolve(X) for kernel in rbf_ladder(6)], X, sample_weights=known, n_threads=1
    )
    learned = learn(bank, target, make_request(criterion="rkda", tol=1e-9))
    assert learned.regularization == expected.regularization
    assert learned.gap <= 1e-9
    assert learned.objective == pytest.approx(expected.objective, rel=1e-8)
    np.testing.assert_allclose(learned.weights, expected.weights, atol=1e-4)
    for lam, error in learned.leave_one_out.items():
        assert error == pytest.approx(slow.found[lam][1], rel=2e-3)


def test_a_lambda_that_does_not_win_is_factored_in_single_precision(monkeypatch):
    """One factor of double precision per round of the best λ, however many λ are tried."""
    system = import_module("discernel.bank.system")
    made = []

    class Counted(system.Cholesky):
        def __init__(self, matrix):
            made.append((len(matrix), matrix.dtype))
            super().__init__(matrix)

    monkeypatch.setattr(system, "Cholesky", Counted)
    X, y = make_classification(700, 8, n_informative=5, n_classes=3, class_sep=0.6, random_state=1)
    bank = TiledBank([kernel.resolve(X) for kernel in rbf_ladder(6)], X)
    learned = learn(bank, ClassTarget.from_labels(y), make_request(criterion="rkda"))
    assert len(learned.leave_one_out) >= 3
    assert made.count((700, np.float64)) <= 1
    assert made.count((700, np.float32)) <= 2 * len(learned.leave_one_out) + 1


def test_errors_near_the_limit_are_learned_to_the_gap_asked_for(blurred, monkeypatch):
    """With a margin so large that nothing is decided, every λ is refined, each once."""
    grams, y = blurred
    options = {"criterion": "rkda", "solver": "newton", "tol": 1e-10}
    plain = learn_kernel(grams, y, **options)
    monkeypatch.setattr(import_module("discernel.learn.learn"), "_MARGIN", 500.0)
    seen = []
    learned = learn_kernel(grams, y, **options, callback=seen.append)
    last = {}
    for progress in seen:
        last[progress.regularization] = progress.gap
    assert all(gap <= 1e-10 for gap in last.values())
    assert len({progress.stage for progress in seen}) == 2 * len(learned.leave_one_out)
    assert learned.regularization == plain.regularization
    np.testing.assert_allclose(learned.weights, plain.weights, atol=1e-6)


def test_the_errors_are_those_of_all_samples(blurred):
    grams, y = blurred
    learned = learn_kernel(grams, y, criterion="rkda")
    bank, lam = DenseBank(grams), learned.regularization
    error = leave_one_out_error(bank, ClassTarget.from_labels(y), learned.weights, lam)
    assert learned.leave_one_out[lam] == pytest.approx(error, rel=1e-3)


def test_the_same_samples_give_the_same_kernel_and_others_may_be_drawn(blurred, monkeypatch):
    grams, y = blurred
    drawn = []

    def draw(bank, target, share, seed):
        part = original(bank, target, share, seed)
        drawn.append(part.bank.scales.tolist())
        return part

    original = base.draw_part
    monkeypatch.setattr(base, "draw_part", draw)
    first, again, zero, other = (
        learn_kernel(grams, y, criterion="rkda", random_state=seed) for seed in (None, None, 0, 1)
    )
    for same in (again, zero):
        np.testing.assert_array_equal(first.weights, same.weights)
        assert first.leave_one_out == same.leave_one_out
        assert first.history == same.history
    assert drawn[0] == drawn[1] == drawn[2] != drawn[3]
    assert other.regularization == first.regularization


@pytest.mark.parametrize("n_noise", [0, 3])
def test_a_part_that_does_not_see_the_kernel_that_matters_costs_steps_and_no_error(n_noise):
    grams, y = problem_with_unseen(n_noise)
    learned = learn_kernel(grams, y, criterion="rkda")
    path = regularization_path(grams, y, criterion="rkda")
    assert learned.regularization == path.best.regularization
    assert learned.weights.argmax() == 0
    assert learned.gap <= 1e-6


def test_a_solver_that_takes_no_start_is_asked_once_per_lambda(blurred):
    grams, y = blurred
    learned = learn_kernel(grams[:3], y, criterion="rkda", solver=SILP(), tol=1e-5)
    assert learned.gap <= 1e-5
    stages = {progress.stage for progress in learned.history}
    assert len(stages) == len(learned.leave_one_out)
    path = regularization_path(grams[:3], y, criterion="rkda", tol=1e-5)
    assert learned.regularization == path.best.regularization


@pytest.mark.filterwarnings("ignore::discernel.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("solver", "status", "n_more"), [
    (SILP(), Status.MAX_ITERATIONS, 0),
    ("newton", Status.STALLED, 1),
])  # fmt: skip
def test_what_does_not_reach_the_gap_is_asked_again_only_with_another(
    blurred, solver, status, n_more
):
    grams, y = blurred
    max_iter = 3 if status is Status.MAX_ITERATIONS else None
    learned = learn_kernel(
        grams[:3], y, criterion="rkda", solver=solver, tol=1e-18, max_iter=max_iter
    )
    assert learned.status is status
    stages = {progress.stage for progress in learned.history}
    assert len(stages) == len(learned.leave_one_out) + n_more


@pytest.mark.parametrize("bank", ["dense", "tiled", "factored"])
def test_every_bank_takes_the_same_lambda(bank):
    X, y = make_classification(560, 3, n_informative=3, n_redundant=0, random_state=2)
    kernels = [RBF(width=width) for width in (1.0, 3.0, 9.0)]
    clf = MultipleKernelDiscriminant(kernels, criterion="rkda", bank=bank).fit(X, y)
    path = regularization_path([kernel(X) for kernel in kernels], y)
    assert clf.regularization_ == path.best.regularization
    assert clf.gap_ <= 1e-6


def test_the_last_factorisation_of_the_solver_scores_lambda_too(monkeypatch):
    """Solver and leave-one-out ask for the same system, which is factored once."""
    system = import_module("discernel.bank.system")
    made = []

    class Counted(system.Cholesky):
        def __init__(self, matrix):
            made.append(len(matrix))
            super().__init__(matrix)

    monkeypatch.setattr(system, "Cholesky", Counted)
    grams, y = make_problem(80, 2, 4, seed=0)
    learned = learn_kernel(grams, y, criterion="rkda", solver="newton")
    # One at the start of each λ and one per step, where no step was shortened.
    assert made.count(80) == len(learned.history)


@pytest.mark.parametrize(
    ("regularization", "expected"), [(1.0, "largest"), (0.1, None), (1e-3, "smallest")]
)
def test_the_end_of_the_path_is_named(regularization, expected):
    considered = (1.0, 0.1, 1e-2, 1e-3)
    assert find_limit(regularization, considered) == expected
    assert find_limit(regularization, (regularization,)) is None  # a given λ has no limits
