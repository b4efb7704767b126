"""SM1, SM2 and SM2_C of Lanckriet 2004: all solvers against the programs written plainly."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from discernel import MultipleKernelDiscriminant, Status, learn_kernel
from discernel.bank import DenseBank
from discernel.criteria import Margin
from discernel.exceptions import ConvergenceWarning, InvalidInputError
from discernel.kernels import rbf_ladder
from discernel.papers.margin.criterion import SoftMargin
from discernel.solvers import QCQP, SILP
from discernel.targets import ClassTarget
from tests.conftest import make_problem

KINDS = ["SM1", "SM2", "SM2_C"]
SOLVERS = ["interior_point", "silp", "qcqp"]
#: samples, kernels, C, seed
PROBLEMS = [(30, 3, 1.0, 0), (40, 6, 0.05, 1), (36, 10, 1.0, 2), (40, 5, 50.0, 3)]


def learn(grams, y, kind="SM2", C=1.0, **options):
    options = {"regularization": 0.1, **options}
    return learn_kernel(grams, y, criterion=Margin(kind, C), **options)


def program(grams, y, kind, C):
    """The QCQP as printed: max 2αᵀ1 − ct, t ≥ αᵀdiag(y)K_idiag(y)α / r_i, with c = m = tr K."""
    m = len(y)
    sign = np.where(y == y.max(), 1.0, -1.0)
    kernels = [*grams, np.eye(m)] if kind == "SM2_C" else grams
    alpha, t = cp.Variable(m), cp.Variable()
    limits = [
        t >= cp.quad_form(alpha, cp.psd_wrap(np.outer(sign, sign) * K / np.trace(K)))
        for K in kernels
    ]
    others = [alpha >= 0, sign @ alpha == 0] + ([alpha <= C] if kind == "SM1" else [])
    value = 2 * cp.sum(alpha) - m * t
    if kind == "SM2":
        value -= cp.sum_squares(alpha) / C
    problem = cp.Problem(cp.Maximize(value), limits + others)
    problem.solve(solver="CLARABEL")
    return problem.value


@pytest.mark.conic
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("m", "p", "C", "seed"), PROBLEMS)
def test_all_solvers_find_the_value_of_the_program(m, p, C, seed, kind):
    grams, y = make_problem(m, 2, p, seed=seed)
    expected = program(grams, y, kind, C)
    for solver in SOLVERS:
        learned = learn(grams, y, kind, C, solver=solver)
        assert learned.objective == pytest.approx(expected, rel=1.1e-6), solver
        assert learned.gap <= 1e-6, solver
        assert learned.status is Status.CONVERGED, solver
        assert learned.weights.sum() == pytest.approx(1.0), solver


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_the_certificate_holds_and_the_objective_is_that_of_the_weights(kind, seed):
    grams, y = make_problem(40, 2, 6, seed=seed)
    exact, loose = learn(grams, y, kind, tol=1e-9), learn(grams, y, kind, tol=1e-2)
    assert exact.objective * (1 - 1e-9) <= loose.objective
    assert loose.objective - exact.objective <= loose.gap * loose.objective
    bank = DenseBank(grams, normalization="trace")
    criterion = SoftMargin(bank, ClassTarget.from_labels(y), kind, 1.0)
    weights = exact.weights
    if kind == "SM2_C":
        C = exact.parameters["C"]
        weights = np.append(1.0, C * weights) / (1.0 + C)
    assert exact.objective == pytest.approx(criterion.at(weights).value, rel=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_sm2_c_is_the_hard_margin_with_the_identity_among_the_kernels(seed):
    grams, y = make_problem(40, 2, 5, seed=seed)
    joined = np.concatenate([np.eye(40)[None], grams])
    learned = learn(grams, y, "SM2_C", tol=1e-8)
    for kind in ("SM1", "SM2"):  # no slack is worth its price
        hard = learn(joined, y, kind, C=1e10, tol=1e-7)
        assert hard.objective == pytest.approx(learned.objective, rel=1e-6), kind
    C = learned.parameters["C"]
    share = 1.0 / (1.0 + C)
    assert hard.weights[0] == pytest.approx(share, abs=1e-3)
    np.testing.assert_allclose(hard.weights[1:], (1 - share) * learned.weights, atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_no_fixed_cost_is_better_than_the_learned_one(seed):
    """K(w) + I/C has the trace m(1 + 1/C): at equal traces SM2_C is the least of all SM2."""
    grams, y = make_problem(40, 2, 5, seed=seed)
    learned = learn(grams, y, "SM2_C", tol=1e-9)
    for C in np.append(np.logspace(-3, 4, 8), learned.parameters["C"]):
        fixed = learn(grams, y, "SM2", C=C, tol=1e-9).objective * (1 + 1 / C)
        assert learned.objective <= fixed * (1 + 1e-8)
    assert fixed == pytest.approx(learned.objective, rel=1e-6)  # the last is the learned one


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_samples_names_of_classes_and_scales_of_kernels_do_not_matter(kind):
    grams, y = make_problem(40, 2, 5, seed=3)
    expected = learn(grams, y, kind, tol=1e-9)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = learn(grams[:, order][:, :, order], y[order], kind, tol=1e-9)
    renamed = learn(grams, np.where(y == 0, "yes", "no"), kind, tol=1e-9)  # the order turns round
    scaled = learn(grams * np.geomspace(1e-3, 1e3, 5)[:, None, None], y, kind, tol=1e-9)
    for other in (shuffled, renamed, scaled):
        assert other.objective == pytest.approx(expected.objective, rel=1e-8)
        np.testing.assert_allclose(other.weights, expected.weights, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_with_duplicates_is_as_good_as_without(kind):
    grams, y = make_problem(40, 2, 4, seed=4)
    once, thrice = learn(grams, y, kind), learn(np.concatenate([grams] * 3), y, kind)
    assert thrice.objective == pytest.approx(once.objective, rel=1e-6)


# ---- degenerate programs ---------------------------------------------------------------------


def overlapping(m=60, seed=0):
    """Three features and all of them, of classes that no line separates."""
    rng = np.random.default_rng(seed)
    y = np.arange(m) % 2
    X = rng.standard_normal((m, 3)) + y[:, None]
    return np.array([*(np.outer(x, x) for x in X.T), X @ X.T]), y


@pytest.mark.conic
@pytest.mark.parametrize("kind", ["SM1", "SM2"])
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1e3, 1e6])
def test_inseparable_classes_and_any_cost(kind, C):
    grams, y = overlapping()
    learned = learn(grams, y, kind, C)
    assert learned.gap <= 1e-6
    if 1e-3 < C < 1e4:  # beyond, the conic solver loses its digits
        assert learned.objective == pytest.approx(program(grams, y, kind, C), rel=2e-6)


def test_all_alpha_at_the_limit():
    """With a tiny C and equal classes α = C: the value is 2mC but for terms of order C²."""
    grams, y = make_problem(40, 2, 4)
    learned = learn(grams, y, "SM1", 1e-7)
    assert learned.objective == pytest.approx(2 * 40 * 1e-7, rel=1e-4)
    assert learned.gap <= 1e-6


def test_kernels_that_know_nothing_leave_all_to_the_identity():
    X = np.repeat(np.random.default_rng(0).standard_normal((10, 2)), 2, axis=0)
    grams, y = np.array([X @ X.T, np.abs(X @ X.T) ** 2]), np.tile([0, 1], 10)
    learned = learn(grams, y, "SM2_C")
    assert learned.objective == pytest.approx(20.0, rel=1e-6)  # all α are 1, I has the trace m
    assert learned.parameters["C"] <= 1e-6
    assert learned.weights.sum() == pytest.approx(1.0)
    assert learn(grams, y, "SM1", 10.0).objective == pytest.approx(400.0, rel=1e-6)


def test_a_cost_beyond_floating_point_is_told_with_its_true_gap():
    grams, y = overlapping()
    with pytest.warns(ConvergenceWarning, match="no further progress|iteration limit"):
        learned = learn(grams, y, "SM1", 1e13)
    assert learned.gap > 1e-6
    best = learn(grams, y, "SM1", 1e6).objective  # less than with a larger cost
    assert learned.objective >= best


def test_the_iteration_limit_is_kept_and_told(two_classes):
    grams, y = two_classes
    exact = learn(grams, y, tol=1e-9).objective
    for solver in ("interior_point", "silp"):
        with pytest.warns(ConvergenceWarning, match="iteration limit"):
            early = learn(grams, y, solver=solver, max_iter=2)
        assert early.n_iter == 2
        assert early.gap > 1e-6
        assert early.objective - exact <= early.gap * early.objective


# ---- behind learn_kernel and the estimator ---------------------------------------------------


def test_the_history_holds_the_gaps_and_the_callback_is_told(two_classes):
    grams, y = two_classes
    told = []
    learned = learn(grams, y, callback=told.append)
    assert [progress.gap for progress in learned.history] == [progress.gap for progress in told]
    assert len(told) == learned.n_iter + 1
    assert told[-1].gap <= 1e-6
    assert told[0].gap > 1e-2
    assert learned.criterion == "margin"
    assert learned.solver == "interior_point"


def test_weights_that_the_certificate_can_spare_are_exactly_zero():
    grams, y = make_problem(60, 2, 10, seed=0)
    learned = learn(grams, y)
    assert 1 <= np.count_nonzero(learned.weights) <= 5
    assert learned.gap <= 1e-6


def test_the_regularization_is_chosen_by_leave_one_out(two_classes):
    grams, y = two_classes
    learned = learn(grams, y, "SM2_C", regularization="auto")
    assert learned.regularization in learned.leave_one_out
    assert learned.gap <= 1e-6
    assert learned.parameters["C"] > 0
    fixed = learn(grams, y, "SM2_C", regularization=0.5)
    np.testing.assert_array_equal(fixed.weights, learned.weights)


@pytest.mark.conic
@pytest.mark.parametrize("solver", [SILP(), QCQP(), "silp"])
def test_solvers_may_be_objects(two_classes, solver):
    grams, y = two_classes
    expected = learn(grams, y, tol=1e-8).objective
    assert learn(grams, y, solver=solver).objective == pytest.approx(expected, rel=2e-6)


def test_the_estimator_takes_the_criterion_by_name_and_by_options():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:200], np.array(["malignant", "benign"])[y[:200]]
    kernels = rbf_ladder()
    by_name = MultipleKernelDiscriminant(kernels, criterion="margin").fit(X, y)
    by_options = MultipleKernelDiscriminant(kernels, criterion=Margin("SM1", C=10.0)).fit(X, y)
    assert by_name.gap_ <= 1e-6
    assert by_options.gap_ <= 1e-6
    assert not np.allclose(by_name.kernel_weights_, by_options.kernel_weights_)
    assert by_name.score(X, y) > 0.8


def test_three_classes_are_refused_with_advice(three_classes):
    with pytest.raises(InvalidInputError, match=r"two classes.*Use criterion='rkda'"):
        learn_kernel(*three_classes, criterion="margin")


@pytest.mark.parametrize("C", [0, -1.0, np.inf, np.nan, "1", None, [1.0]])
def test_a_cost_that_is_none_is_refused(C):
    with pytest.raises(InvalidInputError, match="C of Margin must be a positive, finite number"):
        Margin("SM1", C=C)


def test_an_unknown_kind_or_solver_is_refused(two_classes):
    with pytest.raises(InvalidInputError, match=r"kind of Margin must be one of 'SM1'.*'SM3'"):
        Margin("SM3")
    with pytest.raises(InvalidInputError, match="'interior_point', 'silp', 'qcqp'"):
        learn_kernel(*two_classes, criterion="margin", solver="newton")
