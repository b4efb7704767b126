"""Kernel weights and λ of each target: errors, descent, and many targets at once on a device."""

import numpy as np
import pytest

from discernel import MultipleKernelRidge
from discernel.arrays import HOST
from discernel.arrays.groups import Groups
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import DenseBank
from discernel.exceptions import NumericalError
from discernel.kernels import RBF
from discernel.programs import stacked as module
from discernel.programs.by_target import SingleErrors, TargetFits, TargetSearch
from discernel.programs.lockstep import minimize_errors
from discernel.programs.loo import LeaveOneOutProgram, minimize_error
from discernel.programs.solution import TargetWeights
from discernel.programs.stacked import StackedKernels
from discernel.targets import RegressionTarget
from tests.devices.conftest import LIBRARIES, device_of_library

N, N_TARGETS = 60, 7
KERNELS = [RBF(width=w).on(columns) for columns in ([0, 1], [2, 3]) for w in (1.0, 3.0)]


@pytest.fixture(params=[*LIBRARIES, "numpy"])
def anywhere(request):
    """A device, or NumPy."""
    if request.param != "numpy":
        return device_of_library(request.param)
    if not hasattr(np, "matrix_transpose"):
        pytest.skip("needs NumPy 2")
    return HOST


@pytest.fixture
def one_at_a_time(monkeypatch):
    """On the CPU, compute one target at a time: the slow path that others are compared with."""
    monkeypatch.setattr(module, "_MOST_ROWS", 0)


def problem(weighted=False):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 4))
    Y = np.stack([np.sin(2.0 * X[:, i % 4]) + X[:, (i + 1) % 4] for i in range(N_TARGETS)], axis=1)
    Y += np.linspace(0.1, 1.0, N_TARGETS) * rng.standard_normal(Y.shape)
    known = SampleWeights(rng.uniform(0.2, 3.0, N)) if weighted else None
    grams = np.stack([kernel(X) for kernel in KERNELS])
    return DenseBank(grams, sample_weights=known), RegressionTarget.from_values(Y, known)


def points():
    rng = np.random.default_rng(1)
    weights, lam = rng.dirichlet(np.ones(4), N_TARGETS), 10.0 ** rng.uniform(-4, 0, N_TARGETS)
    return weights, lam


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_bytes", [1, 2**31])
def test_errors_of_many_targets_are_those_of_single_ones(anywhere, weighted, n_bytes):
    bank, target = problem(weighted)
    places = np.array([5, 0, 3])
    weights, lam = (each[places] for each in points())
    expected = SingleErrors(bank, target)(places, weights, lam)
    stacked = StackedKernels(bank, target.scores, anywhere, n_bytes)
    found = stacked.gradients(places, weights, lam)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_bytes", [1, None])
def test_descents_have_single_precision_where_it_has_enough_digits(device, n_bytes):
    """By a large λ; and no precision is lost by a small one."""
    bank, target = problem()
    stacked = StackedKernels(bank, target.scores, device, n_bytes)
    places, (weights, lam) = np.arange(N_TARGETS), points()
    lam[2] = 1e-6
    expected, found = (at(places, weights, lam) for at in (stacked.gradients, stacked))
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-4)
    for one, other in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-2, atol=1e-3 * np.abs(other).max())
        np.testing.assert_allclose(one[2], other[2], rtol=1e-7)  # with λ = 1e-6
        assert (one[3] != other[3]).any()


def test_descents_have_double_precision_where_single_precision_breaks_down(device, monkeypatch):
    bank, target = problem()
    stacked = StackedKernels(bank, target.scores, device)
    places, (weights, lam) = np.arange(N_TARGETS), points()
    expected = stacked.gradients(places, weights, lam)

    def refuse(*_):
        raise NumericalError("too few digits")

    monkeypatch.setattr(stacked._coarse, "gradients", refuse)
    for one, other in zip(stacked(places, weights, lam), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_bytes", [1, None])
def test_errors_with_shared_weights_are_those_of_single_systems(anywhere, weighted, n_bytes):
    bank, target = problem(weighted)
    search = TargetSearch(bank, target, 5.0)
    several, lambdas = points()[0], np.array(search.lambdas)
    stacked = StackedKernels(bank, target.scores, anywhere, n_bytes)
    found = stacked.shared_errors(several, lambdas)
    for weights, one in zip(several, found, strict=True):
        systems = bank.systems(weights)
        expected = np.stack([search._losses(systems(lam), lam) for lam in lambdas])
        np.testing.assert_allclose(one, expected, rtol=1e-9)


def test_the_best_candidate_does_not_depend_on_how_many_are_tried_together(anywhere):
    """The slow way: one after another, one target at a time."""
    bank, target = problem()
    device = None if anywhere is HOST else anywhere
    search = TargetSearch(bank, target, 5.0, device=device)
    several = np.vstack([np.eye(4), points()[0]])
    assert search.stacked.n_together(len(search.lambdas)) > 1
    assert StackedKernels(bank, target.scores, anywhere, 1).n_together(7) == 1
    together, best = search.try_weights(several), None
    for weights in several:
        systems = bank.systems(weights)
        losses = np.stack([search._losses(systems(lam), lam) for lam in search.lambdas])
        one = search._with_lambda(weights, losses)
        best = one if best is None else search.best(best, one)
    np.testing.assert_array_equal(together.weights, best.weights)
    np.testing.assert_array_equal(together.regularization, best.regularization)
    np.testing.assert_allclose(together.errors, best.errors, rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_fits_of_many_targets_are_those_of_single_ones(anywhere, weighted, monkeypatch):
    bank, target = problem(weighted)
    weights, lam = points()
    at = TargetWeights(weights, lam, np.zeros(N_TARGETS))

    def found(device):
        search = TargetSearch(bank, target, 5.0, device=device)
        fits = TargetFits(bank, weights, lam, target.weighted_values, target, device)
        assert (search.stacked is None) == (module._MOST_ROWS == 0)
        return fits, search.scored(at).errors

    many, errors = found(None if anywhere is HOST else anywhere)
    monkeypatch.setattr(module, "_MOST_ROWS", 0)
    single, expected = found(None)
    for name in ("coef", "intercept", "fitted", "leave_one_out", "truth", "ridge"):
        np.testing.assert_allclose(
            getattr(many, name), getattr(single, name), rtol=1e-9, atol=1e-9, err_msg=name
        )
    np.testing.assert_allclose(errors, expected, rtol=1e-9)


def test_what_does_not_fit_on_the_device_is_computed_one_target_at_a_time(device, monkeypatch):
    bank, target = problem()
    assert StackedKernels.of(bank, target.scores, target, device) is not None
    monkeypatch.setattr(type(device), "free_bytes", lambda self: 1000)
    assert StackedKernels.of(bank, target.scores, target, device) is None
    assert isinstance(TargetSearch(bank, target, 5.0, device=device).errors, SingleErrors)


def test_groups_are_computed_one_target_at_a_time(device):
    bank, target = problem()
    grouped = RegressionTarget.from_values(target.values, groups=Groups(np.arange(N) // 2))
    assert StackedKernels.of(bank, target.scores, grouped, device) is None
    assert StackedKernels.of(bank, target.scores, grouped, None) is None


@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_are_differences_of_errors(weighted):
    bank, target = problem(weighted)
    weights, lam = points()
    at, places, step = SingleErrors(bank, target), np.arange(N_TARGETS), 1e-6
    middle = at(places, weights, lam)
    for i, unit in enumerate(np.eye(4)):
        up, down = (at(places, weights + sign * step * unit, lam) for sign in (1, -1))
        slope = (up.values - down.values) / (2.0 * step)
        np.testing.assert_allclose(middle.by_weights[:, i], slope, rtol=1e-4, atol=1e-6)
    up, down = (at(places, weights, lam * (1.0 + sign * step)) for sign in (1, -1))
    slope = (up.values - down.values) / (2.0 * step * lam)
    np.testing.assert_allclose(middle.by_regularization, slope, rtol=1e-4, atol=1e-6)


def test_fits_are_those_of_single_targets():
    bank, target = problem(weighted=True)
    weights, lam = points()
    weights[1], lam[1] = weights[0], lam[0]  # two targets with one system
    fits = TargetFits(bank, weights, lam, target.weighted_values, target)
    search = TargetSearch(bank, target, 5.0)
    errors = search.scored(TargetWeights(weights, lam, np.zeros(N_TARGETS))).errors
    for i in range(N_TARGETS):
        point = LeaveOneOutProgram(bank, target.columns([i])).error(weights[i], lam[i])
        residuals = (fits.truth - fits.leave_one_out)[:, i]
        own = target.row_weights.shares @ residuals**2 / target.units[i] ** 2
        assert own == pytest.approx(point.value, rel=1e-9)
        assert errors[i] == pytest.approx(point.value, rel=1e-9)


def test_descent_ends_where_that_of_single_targets_does():
    """The minima are the same, unless both end in different ones, which the error may have."""
    bank, target = problem()
    search = TargetSearch(bank, target, 5.0)
    start = search.try_weights(np.full((1, 4), 0.25))
    n_evaluations = np.zeros(N_TARGETS)

    def at(places, weights, lam):
        n_evaluations[places] += 1
        return search.errors(places, weights, lam)

    options = {"worthwhile": 1e-10, "max_evaluations": 500}
    found = search.scored(minimize_errors(at, start, pull=5.0 / N, **options))
    single = []
    for i in range(N_TARGETS):
        program = LeaveOneOutProgram(bank, target.columns([i]))
        initial = start.weights[i], start.regularization[i]
        options |= {"pull": 5.0, "n_samples": N, "learns_regularization": True}
        single.append(minimize_error(program.error, *initial, **options))
    weights, lam = (np.array(each) for each in zip(*single, strict=True))
    expected = search.scored(TargetWeights(weights, lam, np.zeros(N_TARGETS)))
    same = np.abs(found.weights - weights).max(axis=1) < 0.01
    assert same.sum() >= N_TARGETS - 2
    np.testing.assert_allclose(found.errors[same], expected.errors[same], rtol=1e-3)
    assert (found.errors < start.errors).all()
    assert n_evaluations.mean() < 60


def test_descent_never_ends_above_its_start():
    bank, target = problem()
    search = TargetSearch(bank, target, 5.0)
    for worthwhile in (1e-2, 1e-5):
        start = search.try_weights(np.eye(4)[[1]])
        found = search.best(start, search.descend(start, 5, worthwhile))
        assert (search._scores(found) <= search._scores(start)).all()


def test_models_of_many_targets_at_once_are_those_of_one_at_a_time(monkeypatch):
    X, Y = rows_and_targets()
    many = MultipleKernelRidge(KERNELS, weights_per_target=True).fit(X, Y)
    monkeypatch.setattr(module, "_MOST_ROWS", 0)
    single = MultipleKernelRidge(KERNELS, weights_per_target=True).fit(X, Y)
    np.testing.assert_allclose(many.kernel_weights_, single.kernel_weights_, atol=1e-6)
    np.testing.assert_allclose(many.predict(X), single.predict(X), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(many.leave_one_out_, single.leave_one_out_, rtol=1e-6, atol=1e-6)


def rows_and_targets():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 4))
    return X, np.column_stack([X[:, 0] ** 2, np.sin(X[:, 2])]) + 0.1 * rng.standard_normal((N, 2))


def test_models_of_targets_on_a_device_are_those_of_the_host(torch_as_device, one_at_a_time):
    torch = pytest.importorskip("torch")
    X, Y = rows_and_targets()
    host = MultipleKernelRidge(KERNELS, weights_per_target=True).fit(X, Y)
    there = MultipleKernelRidge(KERNELS, weights_per_target=True)
    there.fit(torch.as_tensor(X), torch.as_tensor(Y))
    np.testing.assert_allclose(there.kernel_weights_, host.kernel_weights_, atol=0.01)
    found = there.predict(torch.as_tensor(X)).numpy(force=True)
    np.testing.assert_allclose(found, host.predict(X), atol=1e-2)
    assert there.expected_.r2 == pytest.approx(host.expected_.r2, abs=0.01)


def test_models_of_a_device_are_those_of_the_host(device, one_at_a_time):
    X, Y = rows_and_targets()
    bank, target = problem()
    here = TargetSearch(bank, target, 5.0).search(tries_others=True)
    there = TargetSearch(bank, target, 5.0, device=device).search(tries_others=True)
    np.testing.assert_allclose(there.weights, here.weights, atol=1e-3)
    np.testing.assert_allclose(there.errors, here.errors, rtol=1e-4)
    host = MultipleKernelRidge(KERNELS, weights_per_target=True).fit(X, Y)
    if device.library == "torch":
        torch = pytest.importorskip("torch")
        sent = torch.as_tensor(X, device=device.where), torch.as_tensor(Y, device=device.where)
        reg = MultipleKernelRidge(KERNELS, weights_per_target=True).fit(*sent)
        np.testing.assert_allclose(reg.predict(sent[0]).cpu().numpy(), host.predict(X), atol=1e-2)
