"""Many kernels, few at a time: the same optimum, with a certificate over all of them."""

import cvxpy as cp
import numpy as np
import pytest

from discernel import MultipleKernelDiscriminant, learn_kernel, regularization_path
from discernel.bank import DenseBank, FeatureBank, TiledBank
from discernel.criteria import RKDA
from discernel.exceptions import ConvergenceWarning
from discernel.kernels import RBF, feature_kernels
from discernel.kernels.evaluate import KernelSet
from discernel.kernels.terms import Decay
from discernel.learn import make_request, request
from discernel.programs import columns
from discernel.programs.rkda import JointRKDAProgram, RKDAProgram, ShrunkRKDAProgram
from discernel.programs.solution import Solution, Status, Task
from discernel.solvers import SILP, Columns, Newton
from discernel.targets import ClassTarget
from tests import reference


def features(n_samples, n_features, *, n_classes=2, seed=0):
    """Rows of which four features say something about the class."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    score = X[:, 0] + X[:, 1] ** 2 - 1 + np.sin(2 * X[:, 2]) + 0.5 * X[:, 3]
    score += 0.5 * rng.standard_normal(n_samples)
    edges = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(edges, score)


def stack(X):
    return np.exp(-np.square(X.T[:, :, None] - X.T[:, None, :]))


def task(tol=1e-9, init=None, max_iter=None, monitor=lambda *_: None):
    return Task(tol, max_iter, init, monitor)


def criterion_of(X, y, lam):
    return RKDAProgram(
        DenseBank(stack(X), trusted=[True] * X.shape[1]), ClassTarget.from_labels(y), lam
    )


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("lam", [1e-3, 1e-2, 1e-1])
def test_optimum_is_that_of_newton_on_all_kernels(lam, n_classes):
    X, y = features(60, 200, n_classes=n_classes)
    criterion = criterion_of(X, y, lam)
    plain, ours = Newton().solve(criterion, task()), Columns(Newton()).solve(criterion, task())
    assert ours.status is Status.CONVERGED
    assert ours.gap <= 1e-9
    assert ours.value == pytest.approx(plain.value, rel=1e-8)
    np.testing.assert_allclose(ours.weights, plain.weights, atol=1e-6)
    assert criterion.at(ours.weights).value == pytest.approx(ours.value, rel=1e-12)
    assert 0 < ours.screened <= 200 - np.count_nonzero(ours.weights)


@pytest.mark.parametrize("seed", range(15))
def test_bound_is_one_over_all_kernels_and_screened_ones_have_no_weight(seed):
    """The bound of the survivors is no more than the optimum of all, wherever it stops."""
    X, y = features(30, 120, seed=seed)
    criterion = criterion_of(X, y, 10.0 ** -(1 + seed % 3))
    optimum = Newton().solve(criterion, task(1e-11))
    for max_iter in (1, 2, 3, 100):
        found = Columns(Newton()).solve(criterion, task(1e-9, max_iter=max_iter))
        assert found.bound <= optimum.value * (1 + 1e-12)
        assert found.value >= optimum.value * (1 - 1e-12)
        assert found.screened <= 120 - np.count_nonzero(optimum.weights > 1e-7)


def test_value_is_that_of_the_qcqp_of_the_paper():
    """Ye 2008, Eq. (34), by CVXPY."""
    X, y = features(20, 70)
    lam = 0.05
    G, H = reference.trace_normalized(stack(X)), reference.indicator(y)
    beta, t = cp.Variable(H.shape), cp.Variable()
    energies = []
    for K in G:
        values, vectors = np.linalg.eigh(K)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        energies.append(cp.sum_squares(root.T @ beta) <= t)
    value = cp.sum(cp.multiply(beta, H)) - 0.25 * cp.sum_squares(beta) - t / (4 * lam)
    best = cp.Problem(cp.Maximize(value), energies).solve(solver="CLARABEL")
    found = Columns(Newton()).solve(criterion_of(X, y, lam), task(1e-8))
    assert found.value == pytest.approx(best, rel=1e-6)


def test_duplicates_and_ties():
    """All kernels three times: the value of once, and equal kernels may share the weight."""
    X, y = features(40, 80)
    once = Columns(Newton()).solve(criterion_of(X, y, 1e-2), task())
    thrice = Columns(Newton()).solve(criterion_of(np.tile(X, 3), y, 1e-2), task())
    assert thrice.status is Status.CONVERGED
    assert thrice.value == pytest.approx(once.value, rel=1e-9)
    np.testing.assert_allclose(thrice.weights.reshape(3, 80).sum(axis=0), once.weights, atol=1e-5)
    same = Columns(Newton()).solve(criterion_of(np.tile(X[:, :1], 100), y, 1e-2), task())
    assert same.status is Status.CONVERGED
    assert same.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("kind", [TiledBank, FeatureBank.from_kernels])
def test_banks_that_store_no_matrices_agree(kind):
    X, y = features(50, 90)
    kernels = [RBF(width=1.0).on([i]).resolve(X) for i in range(90)]
    dense = Columns(Newton()).solve(criterion_of(X, y, 1e-2), task())
    other = RKDAProgram(kind(kernels, X), ClassTarget.from_labels(y), 1e-2)
    found = Columns(Newton()).solve(other, task())
    assert found.value == pytest.approx(dense.value, rel=1e-9)
    np.testing.assert_allclose(found.weights, dense.weights, atol=1e-6)


def test_start_from_given_weights():
    X, y = features(50, 100)
    criterion = criterion_of(X, y, 1e-2)
    best = Columns(Newton()).solve(criterion, task())
    again = Columns(Newton()).solve(criterion, task(init=best.weights))
    assert again.n_iter <= 1
    poor = Columns(Newton()).solve(criterion, task(init=np.eye(100)[50]))
    assert poor.value == pytest.approx(best.value, rel=1e-9)


# ---- as users meet it ------------------------------------------------------------------------


def test_where_it_is_used(monkeypatch):
    X, y = features(30, 8)
    monkeypatch.setattr(request, "MANY_KERNELS", 8)
    bank, target = DenseBank(stack(X)), ClassTarget.from_labels(y)
    few = bank.select(np.arange(7))

    def chosen(program, bank=bank, **options):
        made = make_request(**{"criterion": "rkda", "regularization": 0.1, **options})
        return request.faster_solver(made, program, bank, target)

    assert chosen(RKDAProgram(bank, target, 0.1)) == Columns(Newton())
    assert chosen(RKDAProgram(few, target, 0.1), few) == Newton()
    assert chosen(JointRKDAProgram(bank, target)) == Newton()
    assert chosen(ShrunkRKDAProgram(bank, target, 0.1, 0.1)) == Newton()
    for named in ("newton", "galerkin", "silp", Newton()):  # what a user names is not replaced
        solver = make_request(criterion="rkda", solver=named).solver
        assert chosen(RKDAProgram(bank, target, 0.1), solver=named) == solver
        assert not isinstance(solver, Columns)
    inside = SILP()
    assert chosen(RKDAProgram(few, target, 0.1), few, solver=Columns(inside)).solver is inside


def test_what_ran_is_named(monkeypatch):
    X, y = features(30, 8)
    monkeypatch.setattr(request, "MANY_KERNELS", 8)

    def learned(**options):
        return learn_kernel(stack(X), y, criterion="rkda", regularization=0.1, **options)

    assert learned().solver == "columns"
    assert learned(solver="newton").solver == "newton"
    assert learned(solver="columns").solver == "columns"
    monkeypatch.setattr(request, "MANY_KERNELS", 9)
    assert learned().solver == "newton"
    np.testing.assert_allclose(
        learned(solver="columns").weights, learned(solver="newton").weights, atol=1e-3
    )


def test_few_kernels_are_solved_as_before():
    X, y = features(40, 20)
    learned = learn_kernel(stack(X), y, criterion="rkda", regularization=1e-2)
    plain = Newton().solve(criterion_of(X, y, 1e-2), task(1e-6))
    np.testing.assert_array_equal(learned.weights, plain.weights)
    assert (learned.screened, learned.solver) == (0, "newton")


def test_learn_kernel_tells_what_was_screened_and_how_it_went():
    X, y = features(40, 220)
    seen = []
    learned = learn_kernel(stack(X), y, criterion="rkda", regularization=0.05, callback=seen.append)
    assert learned.gap <= 1e-6
    assert learned.solver == "columns"
    assert learned.screened > 100
    assert np.count_nonzero(learned.weights) + learned.screened <= 220
    assert seen == learned.history
    assert [entry.iteration for entry in seen] == list(range(learned.n_iter + 1))
    assert seen[-1].gap == learned.gap
    assert seen[-1].n_active == np.count_nonzero(learned.weights)
    values = [entry.objective for entry in seen]
    assert values == sorted(values, reverse=True)
    shrunk = learn_kernel(stack(X), y, criterion=RKDA(0.1), regularization=0.05)
    assert (shrunk.screened, shrunk.solver) == (0, "newton")
    assert np.count_nonzero(shrunk.weights) > np.count_nonzero(learned.weights)


def test_iterations_are_the_steps_of_the_solver(monkeypatch):
    """As with few kernels: counted, told and limited over all programs, and so comparable."""
    X, y = features(40, 80)
    criterion = criterion_of(X, y, 1e-2)
    monkeypatch.setattr(columns, "_FIRST", 3)  # so that there are several rounds
    monkeypatch.setattr(columns, "_NEW", 2)
    counted, plain = [], Newton._step
    monkeypatch.setattr(
        Newton, "_step", staticmethod(lambda *args: counted.append(1) or plain(*args))
    )
    seen = []
    found = Columns(Newton()).solve(
        criterion, task(monitor=lambda i, value, gap, w: seen.append((i, value, gap, w)))
    )
    assert found.n_iter == len(counted) > 15
    assert [entry[0] for entry in seen] == list(range(found.n_iter + 1))
    assert seen[-1][1:3] == (found.value, found.gap)
    values, gaps = np.array([entry[1:3] for entry in seen]).T
    assert (np.diff(values) <= 1e-13 * values[0]).all()
    assert ((values - found.value) / values <= gaps + 1e-9).all()  # gaps over all kernels
    assert gaps.max() <= 1.0
    assert (np.diff(values * (1.0 - gaps)) >= -1e-12 * values[0]).all()  # no bound is given up
    for entry in seen:
        assert entry[3].shape == (80,)
        assert criterion.at(entry[3]).value == pytest.approx(entry[1], rel=1e-9)
    for limit in (1, 3, 5, 7, 9, 11, found.n_iter - 1):
        less = Columns(Newton()).solve(criterion, task(max_iter=limit))
        assert (less.n_iter, less.status) == (limit, Status.MAX_ITERATIONS)
    assert (
        Columns(Newton()).solve(criterion, task(max_iter=found.n_iter)).status is Status.CONVERGED
    )


def test_stopping_early_warns():
    X, y = features(40, 220)
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        learned = learn_kernel(
            stack(X), y, criterion="rkda", regularization=1e-3, max_iter=1, tol=1e-9
        )
    assert learned.n_iter == 1
    assert learned.gap > 1e-9


def test_a_stalled_solver_is_reported():
    class Stalled:
        name = "newton"

        def solve(self, criterion, task):
            point = criterion.at(task.init)
            return Solution(point.weights, point.value, 0.0, Status.STALLED, 0)

    X, y = features(30, 40)  # all kernels are active at once, so none can enter
    found = Columns(Stalled()).solve(criterion_of(X, y, 1e-2), task())
    assert found.status is Status.STALLED


def test_path_with_warm_starts_equals_single_values(monkeypatch):
    X, y = features(40, 60)
    lams = [1.0, 0.1, 1e-2]
    plain = regularization_path(stack(X), y, lams, tol=1e-8)
    monkeypatch.setattr(request, "MANY_KERNELS", 10)
    path = regularization_path(stack(X), y, lams, tol=1e-8)
    np.testing.assert_allclose(path.objectives, plain.objectives, rtol=1e-8)
    np.testing.assert_allclose(path.weights, plain.weights, atol=1e-4)
    chosen = learn_kernel(stack(X), y, criterion="rkda", regularization="loo")
    monkeypatch.setattr(request, "MANY_KERNELS", 10**6)
    best = learn_kernel(stack(X), y, criterion="rkda", regularization="loo")
    assert chosen.regularization == best.regularization
    assert (chosen.solver, best.solver) == ("columns", "newton")


def test_estimator_finds_the_features_that_matter():
    X, y = features(200, 300)
    clf = MultipleKernelDiscriminant(
        feature_kernels(300), criterion="rkda", regularization=0.1, bank="factored"
    ).fit(X, y)
    assert clf.gap_ <= 1e-6
    assert set(np.argsort(-clf.kernel_weights_)[:3]) == {0, 1, 2}
    assert clf.learned_kernel_.screened == 300 - np.count_nonzero(clf.kernel_weights_)


# ---- what it costs ---------------------------------------------------------------------------


def test_tiles_form_every_kernel_three_times(monkeypatch):
    """For the centring, to see where to start, and for the certificate; few of them again."""
    formed, plain = [], KernelSet.matrices

    def count(self, *args):  # 120 rows are one tile
        if len(self.kernels) > 500:  # few of them are formed more often
            formed.append(len(self.kernels))
        return plain(self, *args)

    monkeypatch.setattr(KernelSet, "matrices", count)
    X, y = features(120, 1000)
    bank = TiledBank([RBF(width=1.0).on([i]).resolve(X) for i in range(1000)], X)
    found = Columns(Newton()).solve(RKDAProgram(bank, ClassTarget.from_labels(y), 0.3), task(1e-6))
    assert found.gap <= 1e-6
    assert sum(formed) <= 3.1 * 1000


def test_factors_need_a_fraction_of_the_entries(monkeypatch):
    """Less than a third of one pass over all kernels, certificate included."""

    entries, plain = [], Decay.write

    def counted(self, base, out):
        entries.append(base.size)
        plain(self, base, out)

    monkeypatch.setattr(Decay, "write", counted)
    X, y = features(600, 20)
    bank = FeatureBank.from_kernels([RBF(width=1.0).on([i]).resolve(X) for i in range(20)], X)
    found = Columns(Newton()).solve(RKDAProgram(bank, ClassTarget.from_labels(y), 0.1), task(1e-6))
    assert found.gap <= 1e-6
    assert sum(entries) <= 20 * 600 * 601 / 2 / 3
