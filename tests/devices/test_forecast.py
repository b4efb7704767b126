"""What a fit on a device will take is said before, and shown while it runs."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from discernel import MultiLabelKernelDiscriminant, MultipleKernelDiscriminant
from discernel.arrays import Device
from discernel.bank.device import factor_bytes
from discernel.estimators import base
from discernel.exceptions import ConvergenceWarning, InvalidInputError
from discernel.kernels import RBF, Function, Laplace, Linear, rbf_ladder
from discernel.plan import Problem
from discernel.plan.costs import forecast
from discernel.plan.speed import Speed, measure_device
from discernel.solvers import Status

#: A large GPU.
SPEED = Speed(product=3e14, entry=6e-11, n_threads=1)
EXACT = {"kernels": rbf_ladder(3), "criterion": "rkda", "regularization": 1e-2}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] > 0).astype(int)


def slow_to_factor(*_):
    return Speed(1.0, SPEED.entry, 1)


def fit(rows, torch_tensor, **options):
    X, y = rows
    return MultipleKernelDiscriminant(**options).fit(torch_tensor(X), y)


@pytest.fixture
def tensor(torch_as_device):
    return pytest.importorskip("torch").as_tensor


@pytest.mark.parametrize(
    ("kernels", "n"),
    [([RBF(width=1.0), Laplace(width=2.0)], 300), ([Function(lambda A, B: A @ B.T)], 50)],
)
def test_a_device_is_measured_on_the_kernels_and_rows_at_hand(device, kernels, n):
    X = np.random.default_rng(0).normal(size=(n, 4))
    speed = measure_device(kernels, X, device)
    assert 1e6 < speed.product < 1e16
    assert 0 < speed.entry < 1e-3
    assert speed.threads_in_effect() == 1.0


def problem(n_rows, device, **changes):
    options = {"chooses": False, "n_programs": 1.0, "device": device}
    X = np.empty((1, 50))
    return Problem([RBF()] * 10, X, n_rows, **(options | changes), speeds={"device": SPEED})


def test_what_fits_is_factored_and_what_does_not_iterates(device, monkeypatch):
    exact = problem(50_000, device)
    monkeypatch.setattr(Device, "free_bytes", lambda self: 2 * factor_bytes(50_000))
    found = forecast(exact, "device")
    assert (found.kind, found.n_bytes) == ("device", factor_bytes(50_000))
    assert 1.0 < found.seconds < 5.0  # 2.5 on an H200
    assert "factored" in str(found)
    iterates = replace(exact, asked="iterative")
    assert "conjugate gradients" in str(forecast(iterates, "device"))
    monkeypatch.setattr(Device, "free_bytes", lambda self: factor_bytes(50_000) - 1)
    assert "conjugate gradients" in str(forecast(exact, "device"))


def test_the_default_needs_room_for_a_precise_diagonal(device, monkeypatch):
    chooses = problem(50_000, device, chooses=True, n_programs=0.0)
    single, double = (factor_bytes(50_000, single=each) for each in (True, False))
    monkeypatch.setattr(Device, "free_bytes", lambda self: 2 * double)
    found = forecast(chooses, "device")
    assert "factored" in str(found)
    assert found.n_bytes == double
    monkeypatch.setattr(Device, "free_bytes", lambda self: (single + double) / 2)
    assert "conjugate gradients" in str(forecast(chooses, "device"))
    assert "factored" in str(forecast(replace(chooses, chooses=False), "device"))


def test_few_rows_are_not_forecast_unless_asked(rows, tensor, capsys):
    assert fit(rows, tensor, **EXACT).forecast_ is None
    clf = fit(rows, tensor, verbose=True, **EXACT)
    assert clf.forecast_.kind == clf.bank_ == "device"
    shown = capsys.readouterr()
    assert "400 rows: bank='device' (exact, factored on cpu)" in shown.out
    assert "100%  done in" in shown.err


def test_a_short_time_means_a_low_rank(rows, tensor, monkeypatch):
    assert fit(rows, tensor, max_time="1h").bank_ == "device"
    monkeypatch.setattr("discernel.plan.costs.measure_device", slow_to_factor)
    clf = fit(rows, tensor, max_time="1h")
    assert (clf.bank_, clf.forecast_.kind) == ("stream", "lowrank")
    assert "would take too long" in clf.forecast_.reason
    assert isinstance(clf.predict_proba(tensor(rows[0])), type(tensor(rows[0])))


def test_what_cannot_be_summed_up_has_a_low_rank_here(rows, tensor, monkeypatch):
    X = rows[0]
    monkeypatch.setattr("discernel.plan.costs.measure_device", slow_to_factor)
    clf = MultiLabelKernelDiscriminant(
        [RBF(width=2.0)], regularization=0.1, criterion="uniform", max_time="1h"
    )
    assert clf.fit(tensor(X), (X[:, :2] > 0).astype(int)).bank_ == "lowrank"


def test_rows_that_a_device_does_not_take_say_so(rows, tensor, monkeypatch):
    X, y = rows
    clf = MultipleKernelDiscriminant(verbose=True)
    monkeypatch.setattr(base, "elsewhere", lambda found: Device.named("cpu"))
    with pytest.raises(InvalidInputError, match="Leave `device` out for other rows"):
        clf.fit(sp.csr_array(X), y)


def test_too_short_a_time_for_what_has_no_low_rank_stops_the_solver(rows, tensor, monkeypatch):
    monkeypatch.setattr("discernel.plan.costs.measure_device", slow_to_factor)
    with pytest.warns(ConvergenceWarning, match="stopped by the time limit"):
        clf = fit(rows, tensor, kernels=[RBF(), Linear()], criterion="loo", max_time=10)
    assert clf.bank_ == "device"
    assert clf.learned_kernel_.status is Status.OUT_OF_TIME


def test_sums_there_cost_what_the_device_does_with_all_rows(device, monkeypatch):
    here, product = Speed(product=2e11, entry=2e-8, n_threads=16), 1e14
    monkeypatch.setattr("discernel.plan.costs.device_product_rate", lambda *_, single: product)
    options = {"chooses": True, "n_programs": 0.0, "sums": True, "rank": 3_000}
    few, many = (
        replace(problem(n, device, **options), speeds={"here": here, "device": SPEED})
        for n in (100_000, 10_000_000)
    )
    costs = [forecast(each, "lowrank").seconds for each in (few, many)]
    added = 9.9e6 * 3_000 * (SPEED.entry + 2.0 * 3_000 / product)
    assert costs[1] - costs[0] == pytest.approx(added)
    on_host = replace(many, device=None)
    assert forecast(on_host, "lowrank").seconds > 10 * costs[1]


def test_iterative_never_factors(rows, tensor, monkeypatch):
    from discernel.bank import device

    monkeypatch.setattr(device, "_FEW_ROWS", 10)
    here = MultipleKernelDiscriminant(bank="tiled", tol=1e-9, **EXACT).fit(*rows)
    monkeypatch.setattr(device, "DeviceFactor", None)  # would raise
    found = fit(rows, tensor, bank="iterative", tol=1e-9, **EXACT)
    np.testing.assert_allclose(found.kernel_weights_, here.kernel_weights_, atol=1e-6)
