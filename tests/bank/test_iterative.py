"""Systems that are solved by iteration say what factored ones say, without any large matrix."""

import tracemalloc
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

from discernel import (
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
)
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import (
    Iterative,
    IterativeBank,
    TiledBank,
    gram_stack,
    iterative,
    tiled,
)
from discernel.criteria import KernelLeastSquares
from discernel.exceptions import ConvergenceWarning, InvalidInputError, NumericalError
from discernel.kernels import RBF, Laplace, Linear, Polynomial, Precomputed, rbf_ladder
from discernel.plan import choose_bank
from discernel.programs.fdr import FisherRatioProgram
from discernel.programs.rkda import RKDAProgram
from discernel.targets import ClassTarget
from discernel.testing import check_bank

N = 300


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Tiles that are cut, preconditioners far below the rank, and parts that are not factored."""
    monkeypatch.setattr(tiled, "_ROWS", 64)
    monkeypatch.setattr(tiled, "_COLUMNS", 96)
    monkeypatch.setattr(iterative, "_LEAST_RANK", 40)
    monkeypatch.setattr(tiled.Threads, "entries", 77 * 40)


@pytest.fixture
def passes(monkeypatch):
    """How often all tiles of some rows were computed, in double and in single precision."""
    found, run = Counter(), tiled.Threads.run

    def counted(self, task):
        found[self.n_samples, "single" if self._is_single else "double"] += 1
        return run(self, task)

    monkeypatch.setattr(tiled.Threads, "run", counted)
    return found


def rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    score = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)
    return X, np.digitize(score, [-0.5, 0.5])


def both(kernels, X, **options):
    kernels = [kernel.resolve(X) for kernel in kernels]
    return TiledBank(kernels, X, **options), IterativeBank(kernels, X, **options)


def relative(found, exact):
    return np.linalg.norm(found - exact) / np.linalg.norm(exact)


KERNELS = {
    "ladder": rbf_ladder(6),
    "narrow": [RBF(width=0.2), RBF(width=0.1)],
    "wide, nearly constant": [RBF(width=3e3), RBF(width=2.0), RBF(width=100.0)],
    "of many kinds": [RBF(width=1.0), Laplace(), Linear(), Polynomial(degree=2)],
    "of single columns": [RBF(width=1.0).on([0]), RBF(width=1.0).on([1, 2])],
}


# ---- against a factorisation ---------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
def test_solutions_are_those_of_a_factorisation(kernels, weighted):
    X, _ = rows()
    rng = np.random.default_rng(1)
    sample = SampleWeights.of(rng.integers(1, 4, N).astype(float)) if weighted else None
    exact, bank = both(kernels, X, sample_weights=sample)
    V = np.column_stack([rng.standard_normal((N, 2)), np.ones(N), np.zeros(N)])
    for weights in (rng.dirichlet(np.ones(bank.n_kernels)), np.eye(bank.n_kernels)[0]):
        for ridge in (0.1, 1e-3, 1e-5, 1e-3 * (1.0 + rng.random(N))):
            expected = exact.system(weights, ridge).solve(V)
            system = bank.system(weights, ridge)
            assert relative(system.solve(V), expected) < 1e-6
            assert not system.solve(V)[:, 3].any()
            assert relative(bank.system(weights, ridge, rough=True).solve(V), expected) < 1e-3
            assert relative(system.solve_roughly(V[:, ::-1]), expected[:, ::-1]) < 1e-3


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
def test_a_fused_product_is_the_sum_of_products(kernels):
    X, _ = rows()
    sample = SampleWeights.of(np.random.default_rng(1).random(N))
    exact, bank = both(kernels, X, sample_weights=sample)
    weights, V = np.arange(1.0, 1.0 + bank.n_kernels), np.random.default_rng(2).random((N, 3))
    weights[-1] = 0.0
    K = exact.combined(weights)
    np.testing.assert_allclose(bank.combined_product(weights, V), K @ V, atol=1e-10)
    np.testing.assert_allclose(bank.combined_diagonal(weights), K.diagonal(), atol=1e-11)
    at = np.array([5, 299, 0])
    factors = weights * bank.scales
    found = bank._engine.columns(at, factors, bank._centered(factors))
    np.testing.assert_allclose(found, K[at], atol=1e-11)
    single = bank.single_engine(weights)
    if single is not None:
        rough = bank.combined_product(weights, V, single)
        assert 1e-12 < relative(rough, K @ V) < 1e-3


def test_single_precision_is_for_squared_distances_only():
    X, _ = rows()
    assert both(KERNELS["ladder"], X)[1].single_engine(np.ones(6)) is not None
    mixed = both(KERNELS["of many kinds"], X)[1]
    assert mixed.single_engine(np.array([1.0, 0.0, 0.0, 0.0])) is not None
    assert mixed.single_engine(np.array([1.0, 1.0, 0.0, 0.0])) is None
    wide = both(KERNELS["wide, nearly constant"], X)[1]
    assert wide.single_engine(np.array([1.0, 1.0, 0.0])) is None
    assert wide.single_engine(np.array([0.0, 1.0, 0.0])) is not None
    assert both(KERNELS["of single columns"], X)[1].single_engine(np.ones(2)) is None
    sparse = IterativeBank([Linear()], sp.csr_matrix(X))
    assert sparse.single_engine(np.ones(1)) is None


def test_sparse_rows_are_solved_too():
    X, _ = rows()
    X[np.abs(X) < 0.7] = 0.0
    exact, bank = both([Linear(), RBF(width=1.0)], sp.csr_matrix(X))
    weights, V = np.array([0.3, 0.7]), X[:, :2] - X[:, :2].mean(axis=0)
    expected = exact.system(weights, 1e-3).solve(V)
    assert relative(bank.system(weights, 1e-3).solve(V), expected) < 1e-7


def test_columns_far_from_the_origin_keep_their_digits():
    X, _ = rows()
    far = X + 1e6
    _, near = both(rbf_ladder(4), X)
    exact, bank = both(rbf_ladder(4), far)
    weights, V = np.full(4, 0.25), X[:, :2] - X[:, :2].mean(axis=0)
    found = bank.system(weights, 1e-4).solve(V)
    assert relative(found, exact.system(weights, 1e-4).solve(V)) < 1e-6
    assert relative(found, near.system(weights, 1e-4).solve(V)) < 1e-5


def test_the_order_of_rows_changes_nothing():
    X, _ = rows()
    order = np.random.default_rng(3).permutation(N)
    weights, V = np.full(6, 1 / 6), X[:, :2] - X[:, :2].mean(axis=0)
    kernels = [kernel.resolve(X) for kernel in rbf_ladder(6)]
    one = IterativeBank(kernels, X).system(weights, 1e-4)
    other = IterativeBank(kernels, X[order]).system(weights, 1e-4)
    assert relative(other.solve(V[order]), one.solve(V)[order]) < 1e-6
    off = relative(other.inverse_diagonal(), one.inverse_diagonal()[order])
    assert off < 3.0 * (one.diagonal_error + other.diagonal_error)


def test_residuals_are_true():
    X, _ = rows()
    exact, bank = both(rbf_ladder(6), X)
    weights, V = np.full(6, 1 / 6), np.random.default_rng(0).standard_normal((N, 2))
    N_ = exact.combined(weights) + 1e-3 * np.eye(N)
    for system in (bank.system(weights, 1e-3, rough=True), bank.system(weights, 1e-3)):
        solution, residual = system.solve_residual(V)
        np.testing.assert_allclose(residual, V - N_ @ solution, atol=1e-10)


def test_a_rough_system_is_never_served_as_exact():
    """The last system serves again, for the same weights and ridge, if it is exact enough."""
    X, _ = rows()
    exact, bank = both(rbf_ladder(4), X)
    weights, V = np.full(4, 0.25), X - X.mean(axis=0)
    expected = exact.system(weights, 1e-3).solve(V)
    rough = bank.system(weights, 1e-3, rough=True)
    assert bank.system(weights, 1e-3, rough=True) is rough
    assert relative(rough.solve(V), expected) > 1e-7
    system = bank.system(weights, 1e-3)
    assert relative(system.solve(V), expected) < 1e-7
    assert bank.system(weights, 1e-3) is system
    assert bank.system(weights, 1e-3, rough=True) is system
    assert bank.system(weights, 1e-2, rough=True) is not system


# ---- the diagonal ----------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridge", [1e-1, 1e-2, 1e-3, 1e-4, "vector"])
@pytest.mark.parametrize("kernels", [rbf_ladder(6), [RBF(width=0.2)], [Linear()]])
def test_the_diagonal_of_the_inverse_is_as_good_as_it_says(kernels, ridge, weighted):
    X, _ = rows()
    rng = np.random.default_rng(4)
    sample = SampleWeights.of(rng.integers(1, 4, N).astype(float)) if weighted else None
    exact, bank = both(kernels, X, sample_weights=sample)
    if ridge == "vector":
        ridge = 1e-3 * (1.0 + rng.random(N))
    weights = np.full(bank.n_kernels, 1 / bank.n_kernels)
    expected = exact.system(weights, ridge).inverse_diagonal()
    system = bank.system(weights, ridge)
    assert system.diagonal_error is None
    found = system.inverse_diagonal()
    off = np.sqrt(np.mean((found / expected - 1.0) ** 2))
    assert off < 2.5 * system.diagonal_error
    assert system.diagonal_error < 0.25
    assert system.inverse_diagonal() is found  # computed once


@pytest.mark.parametrize(
    ("n", "width", "limit"),
    [
        (300, 0.02, 0.004),  # 0.002; 0.012 where the noise is believed
        (8, 0.5, 0.01),  # 0.004; 0.08 where it is turned round, as less spread than noise asks for
        (2, 0.5, 1e-6),  # hardly any spread
    ],
)
def test_rows_that_are_alike_have_the_same_diagonal(n, width, limit, monkeypatch):
    """On a circle the entries are equal: what differs between rows of random columns is noise."""
    monkeypatch.setattr(iterative, "_largest_rank", lambda n: 1)
    angles = 2.0 * np.pi * np.arange(n) / n
    exact, bank = both([RBF(width=width)], np.column_stack([np.cos(angles), np.sin(angles)]))
    expected = exact.system(np.ones(1), 1e-2).inverse_diagonal()
    assert np.ptp(expected) < 1e-6 * expected.mean()
    found = bank.system(np.ones(1), 1e-2).inverse_diagonal()
    assert relative(found, expected) < limit


def test_leave_one_out_predictions_are_those_of_a_factorisation():
    X, y = rows(1000)
    exact, bank = both(rbf_ladder(6), X)
    weights, ridge, T = np.full(6, 1 / 6), np.full(1000, 1e-3), ClassTarget.from_labels(y).scores
    fits = [KernelLeastSquares(b.system(weights, ridge), ridge, T) for b in (exact, bank)]
    assert relative(fits[1].leave_one_out, fits[0].leave_one_out) < 0.05
    errors = [fit.leave_one_out_error() for fit in fits]
    assert abs(errors[1] / errors[0] - 1.0) < 0.01


def test_leave_one_out_of_a_far_row_is_never_of_the_wrong_sign():
    """The least diagonal: a row that has nearly all of the trace."""
    X, y = rows()
    X[7] *= 1e4
    exact, bank = both([Linear()], X)
    ridge, T = np.full(N, 1e-5), ClassTarget.from_labels(y).scores
    fits = [KernelLeastSquares(b.system(np.ones(1), ridge), ridge, T) for b in (exact, bank)]
    assert relative(fits[1].leave_one_out, fits[0].leave_one_out) < 0.05


# ---- programs --------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["galerkin", "newton"])
@pytest.mark.parametrize("kernels", [rbf_ladder(6), KERNELS["narrow"], KERNELS["of many kinds"]])
@pytest.mark.parametrize("lam", [1e-1, 1e-2, 1e-3, 1e-4])
def test_weights_and_objective_are_those_of_a_factorisation(kernels, lam, solver):
    X, y = rows(600)
    options = {"criterion": "rkda", "solver": solver, "regularization": lam}
    found = {
        bank: MultipleKernelDiscriminant(kernels, **options, bank=bank, statistics="training").fit(
            X, y
        )
        for bank in ("tiled", "iterative")
    }
    one, other = found["tiled"].learned_kernel_, found["iterative"].learned_kernel_
    assert found["iterative"].bank_ == "iterative"
    assert other.gap <= 1e-6
    assert other.status == one.status
    np.testing.assert_allclose(other.objective, one.objective, rtol=1e-6)
    np.testing.assert_allclose(other.weights, one.weights, atol=2e-6)
    proba = [clf.predict_proba(X[:100]) for clf in found.values()]
    assert np.abs(proba[0] - proba[1]).mean() < 0.03


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-8])
def test_values_bounds_and_errors_are_proven_whatever_the_solve(tol, monkeypatch):
    """The true optimum lies between the bound and the value with its error; so do estimates."""
    X, y = rows()
    exact, bank = both(rbf_ladder(5), X)
    monkeypatch.setattr(IterativeBank, "tols", (tol, 1e-4))
    target = ClassTarget.from_labels(y)
    for lam in (1e-1, 1e-3):
        truth, program = RKDAProgram(exact, target, lam), RKDAProgram(bank, target, lam)
        optimum = min(truth.at(w).value for w in np.random.default_rng(0).dirichlet(np.ones(5), 50))
        for weights in np.random.default_rng(0).dirichlet(np.ones(5), 5):
            value = truth.at(weights).value
            point = program.at(weights)
            assert point.value <= value * (1 + 1e-12) <= point.value + point.error + 1e-12 * value
            assert point.bound <= optimum
            estimate, error = program.estimate(weights)
            assert estimate <= value * (1 + 1e-12) <= estimate + error + 1e-12 * value


@pytest.mark.parametrize("tol", [1e-2, 1e-8])
def test_the_certificate_of_fdr_is_proven_whatever_the_solve(tol, monkeypatch):
    X, y = rows()
    exact, bank = both(rbf_ladder(4), X, normalization="trace")
    monkeypatch.setattr(IterativeBank, "tols", (tol, 1e-4))
    target = ClassTarget.from_labels(y > 0)
    truth, program = FisherRatioProgram(exact, target, 0.1), FisherRatioProgram(bank, target, 0.1)
    for weights in np.random.default_rng(0).dirichlet(np.ones(4), 5):
        value, point = truth.at(weights).value, program.at(weights)
        slack = 1e-10 * abs(value)
        assert point.value <= value + slack
        assert value <= point.value + point.error + slack
        assert point.bound <= value + slack


def test_an_estimate_of_what_is_known_costs_no_pass(passes):
    X, y = rows()
    _, bank = both(rbf_ladder(5), X)
    program, weights = RKDAProgram(bank, ClassTarget.from_labels(y), 1e-2), np.full(5, 0.2)
    point, before = program.at(weights), passes.copy()
    assert before
    value, error = program.estimate(weights)
    assert passes == before
    np.testing.assert_allclose(value, point.value, rtol=1e-12)
    np.testing.assert_allclose(error, point.error, rtol=1e-3)


def test_the_subspace_of_a_criterion_is_a_first_guess(passes):
    X, y = rows()
    exact, bank = both(rbf_ladder(5), X)
    T, weights = ClassTarget.from_labels(y).scores, np.full(5, 0.2)
    first = bank.system(weights, 1e-3)
    before = passes.total()
    solution = first.solve(T)
    assert passes.total() - before > 2
    bank.compressed(np.linalg.qr(solution)[0])
    again = bank.system(weights.copy(), 1e-3 + 1e-12)
    before = passes.total()
    assert relative(again.solve(T), solution) < 1e-6
    assert passes.total() - before <= 2
    uneven = np.arange(5.0)  # a guess that need not be good does no harm
    expected = exact.system(uneven, 1e-3).solve(T)
    assert relative(bank.system(uneven, 1e-3).solve(T), expected) < 1e-6


def test_a_fit_takes_few_passes(monkeypatch, passes):
    monkeypatch.setattr(iterative, "_LEAST_RANK", 150)
    X, y = rows(1200)
    banks = []
    made = IterativeBank.__init__

    def remember(self, *arguments, **options):
        made(self, *arguments, **options)
        banks.append(self)

    monkeypatch.setattr(IterativeBank, "__init__", remember)
    clf = MultipleKernelDiscriminant(
        rbf_ladder(10), criterion="rkda", regularization=1e-2, bank="iterative"
    ).fit(X, y)
    assert clf.gap_ <= 1e-6
    assert [bank.n_samples for bank in banks] == [1200]  # its part is small enough to be factored
    assert 0 < passes[1200, "double"] <= 15 + 3 * 5  # three folds of held-out scores
    assert passes[1200, "double"] + passes[1200, "single"] <= 45 + 3 * 10


def test_systems_of_the_same_weights_share_a_factor():
    X, _ = rows()
    exact, bank = both(rbf_ladder(4), X)
    weights, V = np.full(4, 0.25), X[:, :1] - X[:, :1].mean(axis=0)
    system, direct = bank.systems(weights), exact.systems(weights)
    ranks = []
    for ridge in (1.0, 1e-2, 1e-4):
        made = system(ridge)
        assert relative(made.solve(V), direct(ridge).solve(V)) < 1e-6
        ranks.append(made._factor.rank)
    assert made._factor is system(1e-3)._factor
    assert ranks == sorted(ranks)
    assert bank.system(weights, 1e-3) is bank.system(weights.copy(), np.full(N, 1e-3))


# ---- estimators ------------------------------------------------------------------------------


def test_the_default_needs_no_large_matrix():
    X, y = rows(700)
    found = {
        bank: MultipleKernelDiscriminant(bank=bank).fit(X, y) for bank in ("tiled", "iterative")
    }
    assert relative(found["iterative"].kernel_weights_, found["tiled"].kernel_weights_) < 1e-9
    proba = [clf.predict_proba(X) for clf in found.values()]
    assert np.abs(proba[0] - proba[1]).mean() < 0.02


@pytest.mark.parametrize(
    ("n", "options"),
    [
        (600, {}),
        (600, {"regularization": "joint"}),
        *((n, {"criterion": "auto"}) for n in (200, 600)),
    ],
)
def test_lambda_can_be_chosen_or_learned(n, options):
    X, y = rows(n)
    options = {"criterion": "rkda", "statistics": "training"} | options
    one, other = (
        MultipleKernelDiscriminant(rbf_ladder(4), bank=bank, **options).fit(X, y)
        for bank in ("tiled", "iterative")
    )
    ratio = other.regularization_ / one.regularization_
    assert 0.3 < ratio < 3.4  # neighbours on the path: the leave-one-out error is an estimate
    assert other.score(X, y) > one.score(X, y) - 0.03


def test_numbers_labels_and_weights_of_rows_are_learned():
    X, y = rows(600)
    counts = np.random.default_rng(0).integers(0, 3, 600)
    options = {"kernels": rbf_ladder(4), "criterion": "rkda", "regularization": 1e-2}
    for estimator, target in (
        (MultipleKernelRidge, X[:, 0] * X[:, 1]),
        (MultiLabelKernelDiscriminant, np.column_stack([y > 0, y > 1, X[:, 0] > 0]).astype(int)),
        (MultipleKernelDiscriminant, y),
    ):
        one, other = (
            estimator(bank=bank, **options).fit(X, target, sample_weight=counts)
            for bank in ("tiled", "iterative")
        )
        np.testing.assert_allclose(other.kernel_weights_, one.kernel_weights_, atol=2e-6)
        np.testing.assert_array_less(np.abs(other.predict(X) - one.predict(X)).mean(), 0.01)


@pytest.mark.parametrize("criterion", ["fdr", "uniform", "alignment", "separability"])
def test_other_criteria_work_too(criterion):
    X, y = rows()
    one, other = (
        MultipleKernelDiscriminant(
            rbf_ladder(4), criterion=criterion, regularization=1e-2, bank=bank
        ).fit(X, y > 0)
        for bank in ("tiled", "iterative")
    )
    np.testing.assert_allclose(other.kernel_weights_, one.kernel_weights_, atol=1e-5)


# ---- bounds and bad input --------------------------------------------------------------------


def test_no_matrix_of_all_samples_is_made(monkeypatch):
    monkeypatch.undo()
    n = 3000
    X, y = rows(n)
    clf = MultipleKernelDiscriminant(
        [RBF(width=width) for width in (0.5, 1.0, 2.0, 4.0, 8.0)],  # no median of many distances
        criterion="rkda",
        regularization=1e-2,
        bank=Iterative(memory="8MiB"),
    )
    monkeypatch.setattr(iterative, "_LEAST_RANK", 100)
    tracemalloc.start()
    try:
        clf.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert clf.gap_ <= 1e-6
    assert peak < 0.8 * 8 * n**2


@pytest.mark.parametrize(("n", "rank"), [(300, 40), (4000, 250), (50_000, 1600), (10**6, 80)])
def test_the_rank_follows_rows_and_memory(n, rank, monkeypatch):
    monkeypatch.setattr(iterative, "memory_limit", lambda: 2**40)
    assert abs(iterative._largest_rank(n) - rank) <= 0.05 * rank
    monkeypatch.setattr(iterative, "memory_limit", lambda: None)
    assert abs(iterative._largest_rank(n) - rank) <= 0.05 * rank
    monkeypatch.setattr(iterative, "memory_limit", lambda: 2**28)
    assert 8 * n * iterative._largest_rank(n) <= max(2**24, 8 * n)


def test_more_rows_than_matrices_fit_into_memory_are_taken(monkeypatch):
    monkeypatch.setattr("discernel.plan.plan.memory_limit", lambda: 10**6)
    X, _ = rows()
    kernels = [RBF(width=1.0)]
    assert choose_bank("iterative", kernels, X) == "iterative"
    with pytest.raises(InvalidInputError, match="or bank='iterative', which needs none"):
        choose_bank("tiled", kernels, X)


def test_matrices_are_refused_and_so_is_what_needs_them():
    X, y = rows(60)
    with pytest.raises(InvalidInputError, match="bank='iterative' computes kernels from rows"):
        choose_bank("iterative", [Precomputed()], np.eye(3))
    _, bank = both(rbf_ladder(3), X)
    with pytest.raises(InvalidInputError, match=r"criterion='loo' needs the inverse.*tiled"):
        bank.inverse(np.full(3, 1 / 3), 0.1)
    for criterion in ("loo", "margin"):
        clf = MultipleKernelDiscriminant(
            rbf_ladder(3), criterion=criterion, bank="iterative", regularization=0.1
        )
        with pytest.raises(InvalidInputError, match="stores no matrix of n_samples²"):
            clf.fit(X, y > 0)


def test_a_stall_is_said_with_what_was_reached_and_what_to_do(monkeypatch):
    X, _ = rows()
    _, bank = both([RBF(width=1.0)], X)
    monkeypatch.setattr("discernel.bank.conjugate._MOST_STEPS", 2)
    V = np.random.default_rng(0).standard_normal((N, 2))
    with pytest.warns(ConvergenceWarning, match=r"residual of .*asked for 1\.0e-08.*tiled"):
        solution, residual = bank.system(np.ones(1), 1e-2).solve_residual(V)
    share = np.linalg.norm(residual, axis=0) / np.linalg.norm(V, axis=0)
    assert (share > 1e-8).any()
    assert np.isfinite(solution).all()
    monkeypatch.setattr("discernel.bank.conjugate._MOST_STEPS", 0)
    with pytest.raises(NumericalError, match="Conjugate gradients stalled"):
        bank.system(np.ones(1), 2e-4).solve(V)


@pytest.mark.filterwarnings("ignore:Conjugate gradients stalled")
@pytest.mark.parametrize("solver", ["galerkin", "newton"])
def test_learning_ends_where_systems_stall(solver, monkeypatch):
    monkeypatch.setattr("discernel.bank.conjugate._MOST_STEPS", 8)
    X, y = rows(600)
    clf = MultipleKernelDiscriminant(
        rbf_ladder(5), criterion="rkda", solver=solver, regularization=1e-4, bank="iterative"
    )
    with pytest.warns(ConvergenceWarning, match="may not be optimal"):
        clf.fit(X, y)
    exact = MultipleKernelDiscriminant(
        rbf_ladder(5), criterion="rkda", regularization=1e-4, bank="tiled"
    ).fit(X, y)
    learned = clf.learned_kernel_
    # The certificate holds all the same.
    assert learned.objective * (1 + learned.gap) >= exact.learned_kernel_.objective * (1 - 1e-6)
    assert learned.objective * (1 - learned.gap) <= exact.learned_kernel_.objective * (1 + 1e-6)


def test_parts_of_many_rows_are_iterative_too(monkeypatch):
    X, _ = rows()
    _, bank = both(rbf_ladder(4), X, cache_bytes=2**19)
    assert isinstance(bank.subset(np.arange(100, 250)), TiledBank)
    monkeypatch.setattr(iterative, "_FACTORED_ROWS", 100)
    part = bank.subset(np.arange(100, 250))
    assert isinstance(part, IterativeBank)
    kernels = [kernel.resolve(X) for kernel in rbf_ladder(4)]
    whole, V = TiledBank(kernels, X[100:250]), X[100:250, :2]
    weights = np.full(4, 0.25)
    expected = whole.system(weights, 1e-3).solve(V)
    assert relative(part.system(weights, 1e-3).solve(V), expected) < 1e-7
    few = bank.select(np.array([2, 0]))
    expected = TiledBank(kernels, X).select(np.array([2, 0])).system(weights[:2], 1e-3)
    assert relative(few.system(weights[:2], 1e-3).solve(X), expected.solve(X)) < 1e-7


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
def test_it_is_a_bank(kernels):
    X, _ = rows()
    kernels = [kernel.resolve(X) for kernel in kernels]
    check_bank(IterativeBank(kernels, X), gram_stack(kernels, X), rtol=1e-6)
    bank = IterativeBank(kernels, X, normalization="trace")
    check_bank(bank, gram_stack(kernels, X), "trace", rtol=1e-6)
