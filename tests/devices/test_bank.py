"""A bank on a device says what the matrices say."""

import pickle

import numpy as np
import pytest

from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import TiledBank, gram_stack
from discernel.bank import device as device_bank
from discernel.bank.device import DeviceBank
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Cosine, Exponential, Function, Laplace, Linear, Polynomial
from discernel.kernels import device as device_kernels
from discernel.testing import check_bank

N = 160


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Several strips, and parts that are on the device too."""
    monkeypatch.setattr(device_bank, "STRIP_ENTRIES", 4000)
    monkeypatch.setattr(device_kernels, "STRIP_ENTRIES", 4000)
    monkeypatch.setattr(device_bank, "_FEW_ROWS", 10)
    monkeypatch.setattr(device_bank, "_FEW_TO_REFINE", 10)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(N, 4))


KERNELS = {
    "widths": [RBF(width=1.0), RBF(width=2.0), RBF(width=3.3)],
    "1-norm": [Laplace(width=2.0), Laplace(width=4.0), Laplace(width=7.1)],
    "all": [
        Linear(),
        Polynomial(),
        Exponential(width=2.0),
        0.5 * RBF(width=2.0),
        RBF(scales=[1.0, 2.0, 0.0, 1.0], width=2.0).on([0, 1, 2, 3]),
        Laplace(width=1.0).on([2]).named("one column"),
        RBF(width=1.0).on([1]),
        RBF(width=2.0) * Laplace(width=3.0),
        Cosine(),
        Function(lambda A, B: A[:, :2] @ B[:, :2].T),
    ],
}


@pytest.mark.parametrize("name", KERNELS)
def test_bank(X, device, name):
    kernels = KERNELS[name]
    check_bank(DeviceBank(kernels, X, device=device), gram_stack(kernels, X), rtol=1e-7)


@pytest.mark.parametrize("name", KERNELS)
def test_small_ridges_are_solved_as_exactly(X, device, name):
    bank, here = DeviceBank(KERNELS[name], X, device=device), TiledBank(KERNELS[name], X)
    weights = np.full(bank.n_kernels, 1.0 / bank.n_kernels)
    V = np.random.default_rng(1).normal(size=(N, 2))
    for ridge in (1e-3, 1e-5, 1e-8):
        system, expected = bank.system(weights, ridge), here.system(weights, ridge)
        solution, residual = system.solve_residual(V)
        there = V - ridge * solution - here.combined(weights) @ solution
        rounding = 1e-14 * np.abs(solution).max()
        np.testing.assert_allclose(residual, there, atol=rounding + 1e-9)
        np.testing.assert_allclose(solution, expected.solve(V), rtol=1e-5, atol=1e-4 / ridge**0.5)
        error = np.abs(system.inverse_diagonal() / expected.inverse_diagonal() - 1.0).max()
        assert error < 1e-3


def test_sample_weights(X, device):
    weights = SampleWeights.of(np.random.default_rng(2).uniform(0.5, 2.0, N))
    kernels = [RBF(width=1.0), Laplace(width=2.0)]
    bank = DeviceBank(kernels, X, device=device, sample_weights=weights)
    here = TiledBank(kernels, X, sample_weights=weights)
    w, V = np.array([0.3, 0.7]), np.random.default_rng(1).normal(size=(N, 2))
    np.testing.assert_allclose(bank.products(V), here.products(V), atol=1e-12)
    np.testing.assert_allclose(bank.combined(w), here.combined(w), atol=1e-12)
    np.testing.assert_allclose(bank.system(w, 0.1).solve(V), here.system(w, 0.1).solve(V), 1e-7)
    S = V @ V.T
    np.testing.assert_allclose(bank.inner(S), here.inner(S), rtol=1e-9)


@pytest.mark.parametrize("far", [1e3, 1e7])
def test_rows_far_from_each_other(X, device, far):
    X = X + far * (np.arange(N) % 2)[:, None]
    kernels = [RBF(width=1.0), Laplace(width=2.0), Linear().shifted(X)]
    bank, here = DeviceBank(kernels, X, device=device), TiledBank(kernels, X)
    V = np.random.default_rng(1).normal(size=(N, 2))
    np.testing.assert_allclose(bank.products(V), here.products(V), atol=1e-9)


def test_without_room_for_a_matrix_it_iterates(X, device, monkeypatch):
    monkeypatch.setattr(type(device), "free_bytes", lambda self: 8 * N * 30)
    kernels = KERNELS["widths"]
    bank, here = DeviceBank(kernels, X, device=device), TiledBank(kernels, X)
    w, V = np.full(3, 1 / 3), np.random.default_rng(1).normal(size=(N, 2))
    system = bank.system(w, 1e-2)
    assert type(system).__name__ == "IterativeSystem"
    np.testing.assert_allclose(system.solve(V), here.system(w, 1e-2).solve(V), rtol=1e-6)


def test_room_for_a_precise_diagonal_is_foreseen(X, device, monkeypatch):
    """Of a small ridge, the diagonal of the inverse takes a factor of twice the memory."""
    single, double = (
        device_bank.factor_bytes(N, single=each, strip_entries=4000) for each in (True, False)
    )
    bank, w = DeviceBank(KERNELS["widths"], X, device=device), np.full(3, 1 / 3)
    monkeypatch.setattr(type(device), "free_bytes", lambda self: (single + double) // 2 / 0.9)
    made = [bank.system(w, 1e-3), bank.system(w, 1e-4), bank.system(w, 2e-4, rough=True)]
    names = [type(system).__name__ for system in made]
    assert names == ["DeviceSystem", "IterativeSystem", "DeviceSystem"]


def test_too_little_memory_is_foreseen(X, device, monkeypatch):
    monkeypatch.setattr(type(device), "free_bytes", lambda self: 20_000)
    with pytest.raises(InvalidInputError, match=r"rows of .* must fit on .* GB are free"):
        DeviceBank(KERNELS["widths"], X, device=device)


def test_rows_that_are_no_numbers_are_refused(device):
    with pytest.raises(InvalidInputError, match="Leave `device` out"):
        DeviceBank([Function(lambda A, B: np.eye(2))], ["a", "b"], device=device)


def test_a_device_survives_a_pickle(device):
    again = pickle.loads(pickle.dumps(device))
    assert again.library == device.library
    assert str(again.where) == str(device.where)
