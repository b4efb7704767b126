"""Matrices that lie on a device are learned from there."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from discernel import MultipleKernelDiscriminant, learn_kernel, regularization_path
from discernel.arrays import Device, as_host, device_of
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import DenseBank, bank_of_matrices
from discernel.bank import device as device_bank
from discernel.bank.device import DeviceBank
from discernel.exceptions import InvalidGramError, InvalidInputError
from discernel.kernels import RBF, Laplace, Linear
from discernel.testing import check_bank

N = 120


@pytest.fixture(autouse=True)
def there(monkeypatch, torch_as_device):
    """Several strips, parts on the device too, and PyTorch on the processor counts as one."""
    monkeypatch.setattr(device_bank, "STRIP_ENTRIES", 4000)
    monkeypatch.setattr(device_bank, "_FEW_ROWS", 10)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] > 0).astype(int) + (X[:, 2] > 1)


@pytest.fixture(scope="module")
def grams(rows):
    kernels = [RBF(width=1.0), RBF(width=3.0), Laplace(width=2.0), Linear()]
    return np.stack([kernel(rows[0]) for kernel in kernels])


def sent(device, array):
    return device.xp.asarray(array, device=device.where)


def test_a_bank_of_them_says_what_the_matrices_say(device, grams, monkeypatch):
    monkeypatch.setattr(device_bank, "_FEW_TO_REFINE", 10)  # coarse factors, refined
    bank = bank_of_matrices(sent(device, grams), device=device)
    assert isinstance(bank, DeviceBank)
    check_bank(bank, grams, rtol=1e-7)
    weights = SampleWeights.of(np.random.default_rng(2).uniform(0.5, 2.0, N))
    here = DenseBank(grams, sample_weights=weights)
    bank = bank_of_matrices(sent(device, grams), sample_weights=weights, device=device)
    assert_allclose(bank.inner_products(), here.inner_products(), rtol=1e-9)
    part = np.random.default_rng(3).permutation(N)[:60]
    V = np.random.default_rng(1).normal(size=(60, 2))
    found, expected = bank.subset(part).products(V), here.subset(part).products(V)
    assert_allclose(found, expected, atol=1e-12)


def test_what_is_given_is_not_changed(device, grams):
    given = sent(device, grams)
    bank_of_matrices(given, device=device).system(np.full(4, 0.25), 0.1).inverse_diagonal()
    np.testing.assert_array_equal(as_host(given), grams)


CASES = {
    "rkda": {"criterion": "rkda", "regularization": 1e-2, "tol": 1e-10},
    "path": {"criterion": "rkda"},
    "auto": {},
    "alignment": {"criterion": "alignment", "regularization": 1e-2},
    "fung": {"criterion": "akfd", "regularization": 1e-2},
}


@pytest.mark.parametrize("name", CASES)
def test_weights_are_those_of_numpy(device, rows, grams, name):
    y, options = rows[1], CASES[name]
    here = learn_kernel(grams, y, **options)
    stack, labels = sent(device, grams), sent(device, y)
    for given in (stack, [stack[i, ...] for i in range(4)]):
        found = learn_kernel(given, labels, **options)
        assert_allclose(found.weights, here.weights, atol=1e-6)
        assert found.regularization == pytest.approx(here.regularization)
    if here.objective is not None:
        close = 1e-8 if name == "rkda" else 1e-6  # a search ends where it changes little
        assert found.objective == pytest.approx(here.objective, rel=close)


def test_names_weights_and_single_precision(device, rows, grams):
    y, weights = rows[1], np.random.default_rng(1).integers(0, 3, N)
    options = {"criterion": "rkda", "regularization": 1e-2, "sample_weight": weights}
    here = learn_kernel(grams, y, **options)
    named = {f"k{i}": sent(device, gram) for i, gram in enumerate(grams)}
    found = learn_kernel(named, y, **options)
    assert found.names == ("k0", "k1", "k2", "k3")
    assert_allclose(found.weights, here.weights, atol=1e-8)
    single = [sent(device, gram.astype(np.float32)) for gram in grams]
    assert_allclose(learn_kernel(single, y, **options).weights, here.weights, atol=1e-4)


def test_a_path_is_that_of_numpy(device, rows, grams):
    values = [1e-1, 1e-2]
    here = regularization_path(grams, rows[1], values, tol=1e-9)
    found = regularization_path(sent(device, grams), sent(device, rows[1]), values, tol=1e-9)
    assert_allclose(found.weights, here.weights, atol=1e-6)


def test_estimators_learn_from_them(device, rows, grams):
    y, stack = rows[1], np.moveaxis(grams, 0, -1)
    options = {"kernels": "precomputed", "criterion": "rkda", "regularization": 1e-2}
    here = MultipleKernelDiscriminant(**options).fit(stack, y)
    found = MultipleKernelDiscriminant(**options).fit(sent(device, stack), y)
    assert found.bank_ == "device"
    assert_allclose(found.kernel_weights_, here.kernel_weights_, atol=1e-6)
    predicted = found.predict_proba(sent(device, stack[:7]))
    assert device_of(predicted).library == device.library
    assert_allclose(as_host(predicted), here.predict_proba(stack[:7]), atol=1e-6)


# ---- bad input -----------------------------------------------------------------------------------


def test_what_is_no_gram_matrix_is_refused(device, rows, grams):
    y = rows[1]
    crooked, broken, negative = grams.copy(), grams.copy(), grams.copy()
    crooked[1, 7, 90] += 0.5
    broken[2, 5, 6] = broken[2, 6, 5] = np.nan
    negative[0] -= 5.0 * np.eye(N)
    with pytest.raises(InvalidGramError, match=r"kernel 1 has .* at row 7, column 90 and"):
        learn_kernel(sent(device, crooked), y)
    with pytest.raises(InvalidInputError, match="kernel 2 has nan at row 5, column 6"):
        learn_kernel(sent(device, broken), y)
    with pytest.raises(InvalidGramError, match=r"positive semidefinite\. kernel 0"):
        learn_kernel(sent(device, negative), y)


def test_shapes_and_labels_are_checked(device, rows, grams):
    y = rows[1]
    with pytest.raises(InvalidInputError, match="one label per row"):
        learn_kernel(sent(device, grams[:, :50, :50]), y)
    with pytest.raises(InvalidInputError, match=r"For one matrix K, pass\s+K\[None\]"):
        learn_kernel(sent(device, grams[0]), y)
    with pytest.raises(InvalidInputError, match="one size"):
        learn_kernel([sent(device, grams[0]), sent(device, grams[1][:50])], y)


def test_too_little_room_is_said_before_anything_is_sent(device, grams, monkeypatch):
    monkeypatch.setattr(Device, "free_bytes", lambda self: 4 * 8 * N * N)
    with pytest.raises(InvalidInputError, match=r"5 matrices of 120 × 120 .* must fit on"):
        bank_of_matrices(list(grams), device=device)
