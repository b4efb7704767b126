"""Alignment maximised: Table 1, Eq. (6) and section 4 of Pothin 2006, against brute force."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.sparse import csr_array
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from discernel import Status, learn_kernel
from discernel.bank import DenseBank
from discernel.criteria import Alignment
from discernel.exceptions import ConvergenceWarning, DroppedKernelWarning, InvalidInputError
from discernel.kernels import RBF, Exponential, Function, Kernel, Linear, Polynomial
from discernel.papers.alignment.criterion import alignment, stack_products
from discernel.papers.alignment.parameters import _Search, align_kernels
from discernel.papers.alignment.solvers import Greedy, QuadraticProgram, greedy, qp
from discernel.solvers import Task
from discernel.targets import ClassTarget, RegressionTarget
from tests import reference
from tests.conftest import make_problem

TABLE_1, QP = Greedy(), QuadraticProgram()
#: samples, classes, kernels
SIZES = [(30, 2, 3), (40, 2, 8), (36, 3, 5), (45, 3, 12), (30, 5, 20)]


def products(m, k, p, seed=0):
    grams, y = make_problem(m, k, p, seed=seed)
    return stack_products(grams, ClassTarget.from_labels(y).scores)


def explicit_alignment(K, y, *, centered=True, regression=False):
    """Eq. (4) with matrices."""
    m = len(K)
    P = np.eye(m) - np.ones((m, m)) / m
    if regression:
        target = np.outer(P @ y, P @ y)
    elif centered or len(np.unique(y)) > 2:
        target = reference.indicator(y) @ reference.indicator(y).T
    else:
        target = np.where(y[:, None] == y, 1.0, -1.0)
    K = P @ K @ P if centered else K
    return np.sum(K * target) / np.linalg.norm(K) / np.linalg.norm(target)


# ---- Table 1 ---------------------------------------------------------------------------------


def best_angle(first, second, target):
    """The pair of the largest alignment, by a line search over all directions."""
    lengths = np.linalg.norm(first), np.linalg.norm(second)

    def pair(angle):
        return np.array([np.cos(angle) / lengths[0], np.sin(angle) / lengths[1]])

    def value(angle):
        a, b = pair(angle)
        K = a * first + b * second
        return np.sum(K * target) / np.linalg.norm(K) / np.linalg.norm(target)

    best = max(np.linspace(0.0, np.pi / 2, 91), key=value)
    near = (max(0.0, best - 0.02), min(np.pi / 2, best + 0.02))
    angle = minimize_scalar(lambda t: -value(t), bounds=near, options={"xatol": 1e-9}).x
    return value(angle), pair(angle)


def table_1(kernels, target, epsilon):
    """The greedy algorithm as printed, with K̂ as a matrix."""
    values = [np.sum(K * target) / np.linalg.norm(K) / np.linalg.norm(target) for K in kernels]
    order, path, combined = [], [], np.zeros_like(target)
    chosen, value, pair = int(np.argmax(values)), max(values), (0.0, 1.0)
    while True:
        order.append(chosen)
        path.append(value)
        combined = pair[0] * combined + pair[1] * kernels[chosen]
        left = [j for j in range(len(kernels)) if j not in order]
        trials = [(*best_angle(combined, kernels[j], target), j) for j in left]
        if not trials:
            return order, path
        following, pair, chosen = max(trials, key=lambda trial: trial[0])
        if following - value <= epsilon:
            return order, path
        value = following


@pytest.mark.parametrize("epsilon", [1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize(("m", "k", "p"), SIZES[:4])
def test_greedy_is_table_1(m, k, p, epsilon):
    grams, y = make_problem(m, k, p, seed=3)
    kernels = reference.trace_normalized(grams)
    target = reference.indicator(y) @ reference.indicator(y).T
    order, path = table_1(kernels, target, epsilon)
    M, f, norm = stack_products(grams, ClassTarget.from_labels(y).scores)
    found = greedy(M, f, epsilon, norm=norm)
    assert found.order == tuple(order)
    np.testing.assert_allclose(found.alignments, path, rtol=1e-7)
    assert np.flatnonzero(found.weights).tolist() == sorted(order)


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 1e-2])
@pytest.mark.parametrize("seed", range(5))
def test_greedy_gains_more_than_epsilon_at_every_step(seed, epsilon):
    M, f, norm = products(40, 3, 15, seed)
    path = greedy(M, f, epsilon, norm=norm)
    assert (np.diff(path.alignments) > epsilon).all()
    assert path.alignments[0] == pytest.approx(max(f / np.sqrt(np.diag(M))) / norm)
    assert path.alignments[-1] == pytest.approx(float(alignment(M, f, path.weights, norm)))


def test_greedy_stops_where_the_gain_is_no_more_than_epsilon():
    M, f, norm = products(40, 3, 15, seed=1)
    whole = greedy(M, f, 0.0, norm=norm)
    gains = np.diff(whole.alignments)
    assert len(gains) > 2
    for last, gain in enumerate(gains):
        before = gains[:last].min(initial=np.inf)
        if gain < before:
            stopped = greedy(M, f, 1.0001 * gain, norm=norm)
            assert stopped.order == whole.order[: last + 1]
            assert stopped.alignments == whole.alignments[: last + 1]
            assert len(greedy(M, f, 0.9999 * gain, norm=norm).order) > last + 1


@pytest.mark.parametrize(("m", "k", "p"), SIZES)
def test_greedy_is_nearly_as_good_as_the_program_with_no_more_kernels(m, k, p):
    """What section 5 of the paper finds; a fact about these problems, not a theorem."""
    for seed in range(20):
        M, f, norm = products(m, k, p, seed)
        path, exact = greedy(M, f, 1e-3, norm=norm), qp(M, f)
        largest = float(alignment(M, f, exact, norm))
        assert 0.98 * largest <= path.alignments[-1] <= largest * (1 + 1e-12)
        assert len(path.order) <= np.count_nonzero(exact)


def test_greedy_takes_no_kernel_twice_under_another_name(three_classes):
    grams, y = three_classes
    columns = ClassTarget.from_labels(y).scores
    M, f, norm = stack_products(grams[3] * np.array([1.0, 3.0, 1e-4])[:, None, None], columns)
    assert len(greedy(M, f, 0.0, norm=norm).order) == 1


def test_greedy_with_nothing_to_find():
    path = greedy(np.eye(3), np.zeros(3), 0.0)
    assert (path.alignments, len(path.order)) == ((0.0,), 1)
    one = greedy(np.array([[4.0]]), np.array([1.0]), 1e-3, norm=2.0)
    assert (one.weights.tolist(), one.alignments, one.order) == ([1.0], (0.25,), (0,))


# ---- Eq. (6) ---------------------------------------------------------------------------------


def check_first_order_conditions(M, f, lam, mu):
    """The slope is 0 where there is weight and not positive elsewhere; kernels of length 1."""
    lengths = np.sqrt(np.diag(M) + lam)
    slope = (f - 2.0 * (M + lam * np.eye(len(f))) @ mu) / lengths / np.max(f / lengths)
    assert mu.min() >= 0
    assert slope.max() <= 1e-10
    assert np.abs(slope[mu > 0]).max() <= 1e-10


@pytest.mark.parametrize("lam", [0.0, 1e-3, 10.0])
@pytest.mark.parametrize(("m", "k", "p"), [*SIZES, (30, 3, 80)])
def test_qp_meets_the_first_order_conditions(m, k, p, lam):
    for seed in range(5):
        M, f, _ = products(m, k, p, seed)
        check_first_order_conditions(M, f, lam, qp(M, f, lam))


@pytest.mark.parametrize("lam", [0.0, 1e-3])
def test_qp_meets_them_with_duplicates_and_polynomials_of_high_degree(blobs, lam):
    """The ill-conditioned Hessian that the paper saw a solver fail on."""
    X, y = blobs
    kernels = [RBF(width=8.0), RBF(width=8.0), *(Polynomial(degree=q) for q in range(1, 7))]
    grams = np.array([kernel(X) for kernel in kernels])
    M, f, _ = stack_products(grams, ClassTarget.from_labels(y).scores)
    assert np.linalg.cond(M) > 1e16
    check_first_order_conditions(M, f, lam, qp(M, f, lam))


@pytest.mark.conic
@pytest.mark.parametrize("lam", [0.0, 0.1])
@pytest.mark.parametrize(("m", "k", "p"), SIZES)
def test_qp_finds_the_value_of_the_papers_program(m, k, p, lam):
    """Eq. (6) as printed, for kernels of length 1 and a target of length 1."""
    M, f, norm = products(m, k, p, seed=2)
    lengths = np.sqrt(np.diag(M))
    M, f = M / np.outer(lengths, lengths), f / lengths / norm
    mu = cp.Variable(p, nonneg=True)
    value = -cp.quad_form(mu, cp.psd_wrap(M + lam * np.eye(p))) + f @ mu
    problem = cp.Problem(cp.Maximize(value), [])
    problem.solve(solver="CLARABEL")
    found = qp(M, f, lam)
    assert f @ found - found @ (M + lam * np.eye(p)) @ found == pytest.approx(
        problem.value, rel=1e-7
    )


@pytest.mark.parametrize(("m", "k", "p"), SIZES)
def test_without_lambda_no_weights_are_better_aligned(m, k, p):
    M, f, norm = products(m, k, p, seed=4)
    lengths = np.sqrt(np.diag(M))
    best = float(alignment(M, f, qp(M, f), norm))
    starts = [np.full(p, 1.0 / p), *np.random.default_rng(0).dirichlet(np.ones(p), 3)]
    brute = [
        minimize(
            lambda nu: -float(alignment(M, f, np.maximum(nu, 0) / lengths, norm)),
            start,
            bounds=[(0, 1)] * p,
        )
        for start in starts
    ]
    assert best == pytest.approx(-min(result.fun for result in brute), rel=1e-6)
    assert best >= -min(result.fun for result in brute) * (1 - 1e-12)


def test_lambda_spreads_the_weights():
    M, f, _ = products(40, 2, 8, seed=0)
    lengths = np.sqrt(np.diag(M))
    M, f = M / np.outer(lengths, lengths), f / lengths
    counts = [np.count_nonzero(qp(M, f, lam)) for lam in (0.0, 1.0, 1e4)]
    assert counts[0] < counts[1] <= counts[2] == 8
    np.testing.assert_allclose(qp(M, f, 1e4) * 2e4, f, rtol=1e-3)  # M no longer matters


def test_scaling_kernels_scales_the_solution_of_the_program():
    M, f, _ = products(36, 3, 6, seed=1)
    factors = np.geomspace(1e-6, 1e6, 6)
    scaled = qp(M * np.outer(factors, factors), f * factors)
    np.testing.assert_allclose(scaled * factors, qp(M, f), rtol=1e-9)


def test_program_with_nothing_to_find_and_with_kernels_that_are_nothing():
    assert qp(np.eye(3), np.zeros(3)).tolist() == [0, 0, 0]
    np.testing.assert_allclose(qp(np.diag([0.0, 2.0]), np.array([0.0, 4.0])), [0, 1])


# ---- weights on a bank -----------------------------------------------------------------------


def weigh(grams, y, solver=TABLE_1, told=None, **options):
    """Weights by Table 1 or, with `QP`, by Eq. (6); ``told`` gets the objectives."""
    target = y if isinstance(y, RegressionTarget) else ClassTarget.from_labels(y)
    program = Alignment(**options).program(DenseBank(grams), target, None)
    told = [] if told is None else told
    return solver.solve(program, Task(1e-6, monitor=lambda _, value, *__: told.append(value)))


@pytest.mark.parametrize("options", [{}, {"solver": QP}, {"solver": QP, "lam": 0.1}])
@pytest.mark.parametrize("problem", ["two_classes", "three_classes"])
def test_objective_is_the_alignment_of_the_normalised_kernels(problem, options, request):
    grams, y = request.getfixturevalue(problem)
    told = []
    found = weigh(grams, y, told=told, **options)
    K = np.tensordot(found.weights, reference.trace_normalized(grams), 1)
    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.value == pytest.approx(explicit_alignment(K, y), rel=1e-9)
    assert told[-1] == found.value
    assert found.n_iter == len(told)
    assert found.status.is_success


def test_program_is_better_than_greedy_and_greedy_better_than_equal_weights():
    grams, y = make_problem(30, 5, 20, seed=1)
    exact, fast = weigh(grams, y, QP), weigh(grams, y)
    assert (exact.status, fast.status) == (Status.CONVERGED, Status.APPROXIMATE)
    assert exact.value > fast.value
    equal = reference.trace_normalized(grams).mean(axis=0)
    assert fast.value > explicit_alignment(equal, y)
    assert fast.n_iter == np.count_nonzero(fast.weights) > 1


@pytest.mark.parametrize("options", [{"epsilon": 1e-5}, {"solver": QP}, {"solver": QP, "lam": 0.1}])
def test_scaling_and_permuting_kernels(two_classes, options):
    grams, y = two_classes
    plain = weigh(grams, y, **options)
    factors = np.array([1.0, 1e3, 1e-3, 7.0, 0.2])
    scaled = weigh(grams * factors[:, None, None], y, **options)
    np.testing.assert_allclose(scaled.weights, plain.weights, atol=1e-8)
    order = np.random.default_rng(0).permutation(len(grams))
    permuted = weigh(grams[order], y, **options)
    np.testing.assert_allclose(permuted.weights, plain.weights[order], atol=1e-8)
    assert np.count_nonzero(plain.weights) > 1


def test_numbers_to_regress_on_are_a_target_like_any_other(two_classes):
    grams, _ = two_classes
    numbers = RegressionTarget.from_values(grams[-1][0])
    found = weigh(grams, numbers, QP)
    K = np.tensordot(found.weights, reference.trace_normalized(grams), 1)
    expected = explicit_alignment(K, grams[-1][0], regression=True)
    assert found.value == pytest.approx(expected, rel=1e-9)
    assert np.count_nonzero(found.weights) > 1


def test_equal_weights_where_no_kernel_knows_the_classes():
    y = np.repeat([0, 1], 10)
    across = np.tile([1.0, -1.0], 10)
    grams = np.array([np.outer(across, across), 2.0 * np.outer(across, across)])
    found = weigh(grams, y, QP)
    assert (found.weights.tolist(), found.value) == ([0.5, 0.5], 0.0)
    assert weigh(grams, y).value == pytest.approx(0.0, abs=1e-12)


def test_options_are_values():
    assert Alignment() == Alignment(epsilon=1e-3, lam=0.0)
    assert Alignment() != Alignment(epsilon=1e-2)
    assert Alignment.name == "alignment"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -1e-3}, r"epsilon of Alignment must be a finite number of at least 0. Got -"),
        ({"epsilon": "small"}, r"epsilon of Alignment must be .*Got 'small'"),
        ({"lam": np.inf}, r"lam of Alignment must be .*Got inf"),
        ({"lam": np.nan}, r"lam of Alignment must be .*Got nan"),
    ],
)
def test_options_refuse_what_cannot_work(options, message):
    with pytest.raises(InvalidInputError, match=message):
        Alignment(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "sdp"}, r"solver of criterion='alignment' .*'auto', 'greedy', 'qp'. Got 'sdp'"),
        ({}, r"lam of Alignment must be 0 with solver='greedy'. Got 0.1. Use solver='qp'"),
        ({"solver": Greedy()}, r"lam of Alignment must be 0 with solver='greedy'. Got 0.1"),
    ],
)
def test_a_solver_that_cannot_work_is_refused(two_classes, options, message):
    with pytest.raises(InvalidInputError, match=message):
        learn_kernel(*two_classes, criterion=Alignment(lam=0.1), **options)
    learned = learn_kernel(*two_classes, criterion=Alignment(lam=0.1), solver="qp")
    assert learned.solver == "qp"


# ---- section 4: parameters -------------------------------------------------------------------

METHODS = ["gradient", "newton"]
#: The first and the third are what `clusters` calls for, neither with the right parameters.
BLEND = [
    RBF(width=1.0).on([0, 1]),
    Exponential(width=9.0),
    Polynomial(degree=2, gamma=0.5).on([2]),
    Linear(),
]


def clusters(n_classes):
    """Six clusters on a circle that take turns in the classes, and a column that follows them."""
    rows = np.arange(90)
    y, angle = rows % n_classes, rows % 6 * np.pi / 3
    X = np.column_stack([4.0 * np.cos(angle), 4.0 * np.sin(angle), 1.5 * y])
    X += np.random.default_rng(0).standard_normal(X.shape)
    kept = (y != 1) | (rows % 4 != 1)  # centring only matters where classes differ in size
    X, y = X[kept], y[kept]
    X.flags.writeable = y.flags.writeable = False
    return X, y


def combined(found, X):
    """Σ c_i k_i, as a user would make it."""
    return sum(c * k(X) for c, k in zip(found.coefficients, found.kernels, strict=True))


def regression_target(X):
    return np.sin(X[:, 0]) + 0.5 * X[:, 2]


@pytest.mark.parametrize("centered", [True, False])
def test_gradient_by_all_parameters_against_differences(centered):
    """Eq. (12) through the units that the parameters move in."""
    X, y = clusters(2)
    kernels = [RBF(width=2.0), Polynomial(degree=2, gamma=0.1), 2.0 * Exponential(gamma=0.1)]
    columns = (y - y.mean())[:, None] if centered else np.where(y, 1.0, -1.0)[:, None]
    search = _Search(kernels, X, columns, centered=centered, epsilon=0.0)
    search.weights = np.array([0.6, 0.1, 0.3])
    names = [(coordinate.kernel, coordinate.name) for coordinate in search.coordinates]
    assert names == [(0, "width"), (1, "gamma"), (1, "coef0"), (2, "gamma")]
    gradient = search._gradient()
    for index in range(len(names)):
        ends = []
        for step in (1e-5, -1e-5):
            point = search.point.copy()
            point[index] += step
            moved = [search._kernel(i, point) for i in range(3)]
            grams = np.array([kernel(X) for kernel in moved])
            matrices = reference.centered(grams) if centered else grams
            traces = np.trace(matrices, axis1=1, axis2=2)
            K = np.tensordot(search.weights / traces, grams, 1)
            ends.append(explicit_alignment(K, y, centered=centered))
        assert gradient[index] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-8)
    assert np.abs(gradient).min() > 1e-5


def test_newton_direction_is_gradient_over_curvature():
    X, y = clusters(2)
    columns = ClassTarget.from_labels(y).scores
    kernels = [RBF(width=0.3).on([0, 1]), Polynomial(degree=2, gamma=0.5).on([2])]
    search = _Search(kernels, X, columns, centered=True, epsilon=0.0)

    def value(index, step):
        point = search.point.copy()
        point[index] += step
        grams = np.array([search._kernel(i, point)(X) for i in range(2)])
        return explicit_alignment(
            np.tensordot(search.weights, reference.trace_normalized(grams), 1), y
        )

    gradient = search._gradient()
    direction = search._newton_direction(gradient)
    concave = 0
    for index in range(3):
        second = (value(index, 1e-2) - 2.0 * value(index, 0.0) + value(index, -1e-2)) / 1e-4
        if -second > 1.1 * abs(gradient[index]):
            concave += 1
            assert direction[index] == pytest.approx(-gradient[index] / second, rel=1e-2)
        else:
            assert abs(direction[index]) == pytest.approx(1.0, rel=0.1)
            assert direction[index] * gradient[index] > 0
    assert concave in (1, 2)  # both cases are seen


def test_where_greedy_weights_are_worse_the_support_is_kept_and_weighed_anew():
    X, y = clusters(2)
    columns = ClassTarget.from_labels(y).scores
    kernels = [BLEND[0], BLEND[2], RBF(width=2.0).on([0, 1])]
    search = _Search(kernels, X, columns, centered=True, epsilon=1.0)  # greedy takes one kernel
    search.weights = np.array([0.3, 0.7, 0.0])
    kernels = reference.trace_normalized(search.grams)
    before = explicit_alignment(np.tensordot(search.weights, kernels, 1), y)
    search.value = before
    search._reweigh()
    assert search.value > before + 1e-4
    assert (search.weights > 0).tolist() == [True, True, False]
    K = np.tensordot(search.weights, kernels, 1)
    assert search.value == pytest.approx(explicit_alignment(K, y), rel=1e-9)
    best = search.value
    search._reweigh()  # nothing better is left
    assert search.value == pytest.approx(best, rel=1e-12)


def test_a_kernel_that_others_make_superfluous_does_not_hold_them_back():
    """It helps at the start, adds less than ε on the way and nothing in the end."""
    X, y = load_wine(return_X_y=True)
    alone = align_kernels([RBF(width=2.0)], scale(X), y)
    both = align_kernels([RBF(width=2.0), Linear()], scale(X), y)
    assert both.history[0] > alone.history[0] + 1e-3
    assert both.alignment == pytest.approx(alone.alignment, abs=1e-5)


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_alignment_never_falls_and_is_that_of_the_kernels_returned(n_classes, method, centered):
    X, y = clusters(n_classes)
    found = align_kernels(BLEND, X, y, method=method, centered=centered)
    assert np.count_nonzero(found.weights) == 2
    assert (np.diff(found.history) >= 0).all()
    assert found.history[-1] > found.history[0] + 0.01
    assert found.alignment == found.history[-1]
    value = explicit_alignment(combined(found, X), y, centered=centered)
    assert found.alignment == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_near_what_is_found_is_better(method):
    """Neither other parameters nor other weights, where all kernels have weight."""
    X, y = clusters(2)
    kernels = [RBF(width=1.0).on([0, 1]), RBF(width=1.0).on([2])]
    found = align_kernels(kernels, X, y, method=method, epsilon=0.0, tol=1e-11)

    def minus_value(logarithms):
        first, second, share = np.exp(logarithms)
        K = RBF(width=first)(X[:, :2]) + share * RBF(width=second)(X[:, 2:])
        return -explicit_alignment(K, y)

    widths = [next(iter(kernel.parameters.values())) for kernel in found.kernels]
    share = found.coefficients[1] / found.coefficients[0]
    best = minimize(minus_value, np.log([*widths, share]), method="Nelder-Mead")
    assert found.alignment == pytest.approx(-best.fun, rel=1e-6)


@pytest.mark.parametrize("centered", [True, False])
def test_weights_are_over_kernels_of_equal_trace(centered):
    X, y = clusters(2)
    found = align_kernels([BLEND[0], 50.0 * BLEND[2]], X, y, centered=centered)
    grams = np.array([kernel(X) for kernel in found.kernels])
    matrices = reference.centered(grams) if centered else grams
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.weights.min() > 0.05
    np.testing.assert_allclose(
        found.coefficients * np.trace(matrices, axis1=1, axis2=2), found.weights
    )


def brute_force_width(X, y, family, **options):
    """The best width of one kernel, by a grid and a line search around its best point."""

    def minus_value(log_width):
        return -explicit_alignment(family(width=np.exp(log_width))(X), y, **options)

    best = min(np.linspace(np.log(0.2), np.log(50.0), 60), key=minus_value)
    near = (best - 0.1, best + 0.1)
    result = minimize_scalar(minus_value, bounds=near, options={"xatol": 1e-9})
    return np.exp(result.x), -result.fun


@pytest.mark.parametrize("task", ["two plain", "two", "three", "regression"])
@pytest.mark.parametrize("family", [RBF, Exponential])
def test_one_width_is_that_of_a_line_search(family, task):
    X, y = clusters(3 if task == "three" else 2)
    X, y = X[:, :2], regression_target(X) if task == "regression" else y
    options = {"centered": task != "two plain"}
    width, value = brute_force_width(X, y, family, regression=task == "regression", **options)
    for method in METHODS:
        for start in (0.4 * width, 3.0 * width):
            kernels = [family(width=start)]
            found = align_kernels(kernels, X, y, method=method, tol=1e-12, **options)
            assert found.alignment == pytest.approx(value, rel=1e-9)
            assert found.kernels[0].width == pytest.approx(width, rel=1e-4)
            assert found.held == ()


def test_newton_needs_fewer_iterations_to_many_digits():
    X, y = clusters(3)
    gradient, newton = (
        align_kernels([RBF(width=1.0)], X, y, method=method, tol=1e-11) for method in METHODS
    )
    assert newton.alignment == pytest.approx(gradient.alignment, rel=1e-8)
    assert len(newton.history) < len(gradient.history)


def test_a_first_step_far_too_long_or_too_short_does_no_harm():
    X, y = clusters(3)
    values = [
        align_kernels([RBF(width=1.0)], X, y, step=step, tol=1e-9).alignment
        for step in (1e-4, 0.5, 1e6)
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_no_step_is_longer_than_a_factor_of_e(method):
    X, y = clusters(3)
    with pytest.warns(ConvergenceWarning, match="after 1 iterations"):
        found = align_kernels([RBF(width=0.2)], X, y, method=method, step=1e6, max_iter=1)
    assert found.kernels[0].width == pytest.approx(0.2 * np.e)


@pytest.mark.parametrize("centered", [True, False])
def test_regression_target_is_the_centred_y(centered):
    X, _ = clusters(2)
    y = regression_target(X)
    found = align_kernels(BLEND, X, y, centered=centered)
    value = explicit_alignment(combined(found, X), y, centered=centered, regression=True)
    assert found.alignment == pytest.approx(value, rel=1e-9)
    for same in (1e3 * y - 7.0, 1e-100 * y):
        other = align_kernels(BLEND, X, same, centered=centered)
        np.testing.assert_allclose(other.history, found.history, rtol=1e-7)


def test_several_columns_to_regress_on_count_the_same():
    X, _ = clusters(2)
    Y = np.column_stack([regression_target(X), 1e3 * X[:, 0] + 5.0])
    found = align_kernels(BLEND, X, Y)
    standard = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    K = reference.centered(combined(found, X)[None])[0]
    expected = np.sum(K * (standard @ standard.T)) / np.linalg.norm(K)
    assert found.alignment == pytest.approx(expected / np.linalg.norm(standard @ standard.T))


def test_whole_numbers_are_labels_and_names_do_not_matter():
    X, y = clusters(3)
    plain = align_kernels(BLEND, X, y)
    for same in (y.astype(float), np.array(["c", "a", "b"])[y], list(y)):
        np.testing.assert_allclose(align_kernels(BLEND, X, same).history, plain.history, rtol=1e-7)
    regressed = align_kernels(BLEND, X, (y - y.mean()) / y.std())
    assert regressed.alignment != pytest.approx(plain.alignment, rel=1e-2)


def test_two_numbers_are_two_classes_however_they_are_taken():
    """The centred targets of classification and regression are multiples of each other."""
    X, y = clusters(2)
    classes = align_kernels(BLEND, X, y)
    regressed = align_kernels(BLEND, X, np.where(y == 1, 0.3, 1.7))
    np.testing.assert_allclose(regressed.history, classes.history, rtol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_units_of_the_rows_do_not_matter(method):
    X, y = clusters(2)
    here = [RBF(width=1.0).on([0, 1]), Polynomial(gamma=0.5).on([2])]
    thousandth = [RBF(width=1e3).on([0, 1]), Polynomial(gamma=0.5e-6).on([2])]
    plain = align_kernels(here, X, y, method=method)
    scaled = align_kernels(thousandth, 1e3 * X, y, method=method)
    np.testing.assert_allclose(scaled.history, plain.history, rtol=1e-6)
    widths = [found.kernels[0].parameters["width"] for found in (scaled, plain)]
    assert widths[0] == pytest.approx(1e3 * widths[1], rel=1e-5)
    assert widths[1] > 1.5


@pytest.mark.parametrize("method", METHODS)
def test_scaling_kernels_changes_nothing_but_their_coefficients(method):
    X, y = clusters(2)
    factors = [5.0, 1e-3, 1e2, 0.5]
    plain = align_kernels(BLEND, X, y, method=method)
    kernels = [c * k for c, k in zip(factors, BLEND, strict=True)]
    scaled = align_kernels(kernels, X, y, method=method)
    np.testing.assert_allclose(scaled.history, plain.history, rtol=1e-7)
    np.testing.assert_allclose(scaled.weights, plain.weights, atol=1e-6)
    np.testing.assert_allclose(scaled.coefficients * factors, plain.coefficients, rtol=1e-4)
    assert [kernel.factor for kernel in scaled.kernels] == factors


@pytest.mark.parametrize("method", METHODS)
def test_permuting_kernels_permutes_what_is_found(method):
    X, y = clusters(3)
    order = [2, 0, 3, 1]
    plain = align_kernels(BLEND, X, y, method=method)
    permuted = align_kernels([BLEND[i] for i in order], X, y, method=method)
    np.testing.assert_allclose(permuted.history, plain.history, rtol=1e-7)
    np.testing.assert_allclose(permuted.weights, plain.weights[order], atol=1e-6)
    for position, original in enumerate(order):
        assert permuted.kernels[position].parameters == pytest.approx(
            plain.kernels[original].parameters, rel=1e-4
        )


@pytest.mark.parametrize("method", METHODS)
def test_a_parameter_at_its_bound_is_held_there_and_reported(method):
    """With classes at ±x a constant in the kernel only hurts: coef0 goes to 0, not below."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = np.where(y, 1.0, -1.0)[:, None] + 0.3 * rng.standard_normal((40, 1))
    kernels = [Polynomial(degree=1), Polynomial(degree=2, coef0=0.0)]
    found = align_kernels(kernels, X, y, centered=False, method=method, tol=1e-10)
    assert found.weights.tolist() == [1.0, 0.0]  # so that the other coef0 is not reported
    assert found.held == ((0, "coef0"),)
    assert found.kernels[0].coef0 == 0.0
    best = align_kernels([Linear()], X, y, centered=False).alignment
    assert found.alignment == pytest.approx(best, rel=1e-9)
    again = align_kernels(found.kernels, X, y, centered=False, method=method)
    assert (len(again.history), again.held) == (1, found.held)


@pytest.mark.parametrize("method", METHODS)
def test_a_parameter_leaves_the_bound_it_started_from(method):
    X, y = clusters(2)
    start = Polynomial(degree=2, gamma=0.1, coef0=0.0).on([2])
    found = align_kernels([start], X, y, method=method)
    assert found.kernels[0].parameters["coef0"] > 0.1
    assert found.held == ()
    assert found.alignment > found.history[0] + 0.01


@pytest.mark.parametrize("method", METHODS)
def test_no_parameter_goes_further_than_its_reach(method):
    """Only coef0 / gamma matters, and here the best is further than both together may go."""
    X = np.random.default_rng(1).standard_normal((30, 2))
    kernel = Polynomial(degree=2, gamma=1e-2, coef0=1e-9)
    found = align_kernels([kernel], X, X @ [1.0, 0.5], method=method, tol=1e-12)
    assert found.held == ((0, "gamma"), (0, "coef0"))
    assert found.kernels[0].gamma == pytest.approx(1e-6)
    assert found.kernels[0].coef0 == pytest.approx(1e-5)
    better = align_kernels([Polynomial(degree=2)], X, X @ [1.0, 0.5], method=method)
    assert (better.held, better.alignment > found.alignment) == ((), True)


@pytest.mark.parametrize("method", METHODS)
def test_a_parameter_that_changes_nothing_stays(method):
    """Centring takes the constant of a linear kernel away; its derivative is rounding."""
    X, y = clusters(2)
    kernels = [Polynomial(degree=1, gamma=0.1, coef0=3.0).on([2]), RBF(width=1.0).on([0, 1])]
    found = align_kernels(kernels, X, y, method=method, tol=1e-11)
    assert found.weights.min() > 0.05
    assert found.kernels[0].parameters["coef0"] == 3.0
    assert found.held == ()


@dataclass(frozen=True)
class Blended(Kernel):
    """x_2 z_2 + share · x_0 z_0."""

    share: float = 0.0

    @property
    def parameters(self):
        return {"share": self.share}

    def __call__(self, X, Z=None):
        return np.outer(X[:, 2], X[:, 2]) + self.share * np.outer(X[:, 0], X[:, 0])

    def _derivative(self, parameter, X, Z):
        return np.outer(X[:, 0], X[:, 0])

    def diagonal(self, X):
        return np.diagonal(self(X))


@pytest.mark.parametrize("method", METHODS)
def test_a_parameter_of_any_name_may_start_from_0(method):
    X, _ = clusters(2)
    y = X[:, 2] + 0.3 * X[:, 0] + 0.1
    found = align_kernels([Blended()], X, y, method=method, tol=1e-12)
    apart = align_kernels([Linear().on([2]), Linear().on([0])], X, y, epsilon=0.0)
    assert found.alignment == pytest.approx(apart.alignment, rel=1e-6)
    ratio = apart.coefficients[1] / apart.coefficients[0]
    assert found.kernels[0].share == pytest.approx(ratio, rel=1e-3)


def test_a_kernel_without_parameters_is_left_as_it_is():
    X, y = clusters(2)
    linear = Linear()
    found = align_kernels([linear], X, y)
    assert found.kernels[0] is linear
    assert (found.weights.tolist(), len(found.history), found.held) == ([1.0], 1, ())


def test_kernels_without_weight_do_not_move():
    X, y = clusters(2)
    found = align_kernels(BLEND, X, y)
    assert found.weights[[1, 3]].tolist() == found.coefficients[[1, 3]].tolist() == [0, 0]
    assert found.kernels[1] == BLEND[1]
    assert found.kernels[0].parameters != BLEND[0].parameters


def test_rows_and_kernels_in_all_their_forms():
    X, y = clusters(2)
    expected = align_kernels([RBF(width=2.0), Linear()], X, y)
    frame = pd.DataFrame(X, columns=list("abc"))
    named = {"near": RBF(width=2.0), "far": Linear()}
    own = [RBF(width=2.0), Function(lambda A, B: A @ B.T)]
    for kernels, rows in ((named, frame), (named, csr_array(X)), (own, X), (own, X.tolist())):
        found = align_kernels(kernels, rows, y)
        np.testing.assert_allclose(found.history, expected.history, rtol=1e-7)
    on_columns = align_kernels([RBF(width="median").on(["a", "c"])], frame, y)
    by_hand = align_kernels([RBF(width="median")], X[:, [0, 2]], y)
    np.testing.assert_allclose(on_columns.history, by_hand.history, rtol=1e-9)
    assert on_columns.kernels[0].parameters == pytest.approx(by_hand.kernels[0].parameters)


def test_kernels_of_kernels_move_by_the_parameters_of_their_parts():
    X, y = clusters(2)
    both = RBF(width=1.0).on([0, 1]) + 0.5 * RBF(width=1.0).on([2])
    found = align_kernels([both], X, y, method="newton", tol=1e-9)
    assert set(found.kernels[0].parameters) == {"left.width", "right.width", "right.factor"}
    assert found.kernels[0].parameters["right.factor"] != 0.5
    apart = align_kernels([both.left, both.right], X, y, epsilon=0.0, method="newton", tol=1e-9)
    assert found.alignment == pytest.approx(apart.alignment, rel=1e-6)


def test_matrices_that_are_given_are_weighed(two_classes):
    grams, y = two_classes
    found = align_kernels("precomputed", np.moveaxis(grams, 0, -1), y, epsilon=1e-5)
    weighed = weigh(grams, y, epsilon=1e-5)
    np.testing.assert_allclose(found.weights, weighed.weights, atol=1e-8)
    assert np.count_nonzero(found.weights) > 1
    assert found.history == pytest.approx([weighed.value])


def test_inputs_are_left_as_they_are():
    X, y = clusters(2)
    before, kernels = X.copy(), list(BLEND)
    align_kernels(kernels, X, y)  # the rows are read-only: writing would raise
    np.testing.assert_array_equal(X, before)
    assert kernels == BLEND


def test_constant_kernels_are_named_and_get_no_weight():
    X, y = clusters(2)
    message = r"constant on the training set: RBF\(width=1e\+09"
    with pytest.warns(DroppedKernelWarning, match=message):
        found = align_kernels([RBF(width=1e9), Linear()], X, y)
    assert found.weights.tolist() == [0.0, 1.0]
    with pytest.raises(InvalidInputError, match="all 1 are constant"):
        align_kernels([RBF(width=1e9)], X, y)


def test_stopping_early_is_a_warning_that_says_what_to_do():
    X, y = clusters(2)
    with pytest.warns(ConvergenceWarning, match=r"after 2 iterations.*Raise max_iter or tol"):
        found = align_kernels(BLEND, X, y, max_iter=2)
    assert len(found.history) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"method": "bfgs"},
            r"method of align_kernels must be one of 'gradient', 'newton'.*'bfgs'",
        ),
        ({"step": 0.0}, r"step must be a positive, finite number. Got 0.0"),
        ({"step": None}, r"step must be a positive, finite number. Got None"),
        ({"epsilon": -1.0}, r"epsilon must be a finite number of at least 0. Got -1.0"),
        ({"tol": 0}, r"tol must be a positive, finite number. Got 0"),
        ({"tol": np.nan}, r"tol must be a positive, finite number. Got nan"),
        ({"max_iter": 0}, r"max_iter must be an integer of at least 1. Got 0"),
        ({"max_iter": 2.5}, r"max_iter must be an integer of at least 1. Got 2.5"),
        ({"kernels": []}, r"non-empty list of kernels"),
        ({"kernels": [lambda A, B: -(A @ B.T)]}, r"positive semidefinite. <lambda> has the eigen"),
        ({"y": np.full(100, 0.5)}, r"must vary over the samples. Got a constant in column 0"),
        ({"y": np.ones(100)}, r"at least two classes to separate. Got 1 class: \[1.0\]"),
        ({"y": np.full(100, np.nan)}, r"labels must not contain NaN or infinity"),
        ({"y": np.ones((100, 2))}, r"y should be a 1d array of labels, one per sample"),
        ({"y": [0, 1, 1]}, r"one target per row. Got 100 rows and 3 targets"),
    ],
)
@pytest.mark.parametrize("centered", [True, False])
def test_bad_input_is_refused(blobs, options, message, centered):
    X, y = blobs
    words = {"kernels": [RBF(width=5.0)], "y": y, "centered": centered, **options}
    with pytest.raises(InvalidInputError, match=message):
        align_kernels(words.pop("kernels"), X, words.pop("y"), **words)
