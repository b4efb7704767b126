"""Kernels of rows less an origin: the same once centred, with the digits that rows do not share."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from discernel.arrays import Buffers
from discernel.bank.grams import gram_stack
from discernel.bank.tiled import TiledBank
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Cosine, Exponential, Function, Linear, Polynomial, Precomputed
from discernel.kernels.evaluate import KernelSet

LINEAR = [
    Linear(),
    2.5 * Linear(),
    Linear().named("plain"),
    Linear().on([0, 2]),
    (3.0 * Linear().on([1]).named("one")).named("three"),
    Linear() + RBF(gamma=0.5),
    0.5 * (RBF(gamma=0.5) + Linear().on([2])),
    Linear() + Linear().on([0, 1]),
]


class Squared(Linear):
    """A subclass that is not what it is a subclass of."""

    def __call__(self, X, Z=None):
        return super().__call__(X, Z) ** 2


OTHER = [
    Squared(),
    RBF(gamma=0.5),
    Exponential(gamma=0.5).on([0, 1]),
    Polynomial(degree=1),
    Cosine(),
    Linear() * RBF(gamma=0.5),
    Linear() * Linear(),
    RBF(gamma=0.5) + Cosine(),
    Function(lambda X, Z: X @ Z.T),
    Precomputed(),
]


@pytest.fixture
def X() -> np.ndarray:
    rows = np.random.default_rng(0).standard_normal((25, 3)) * [1.0, 0.1, 20.0] + [1.0, -2.0, 0.0]
    rows.flags.writeable = False
    return rows


def centered(matrix: np.ndarray) -> np.ndarray:
    return matrix - matrix.mean(axis=0) - matrix.mean(axis=1, keepdims=True) + matrix.mean()


def exact_centered_products(X: np.ndarray) -> np.ndarray:
    """Return the centred inner products of rows, in rational arithmetic."""
    rows = [[Fraction(value) for value in row] for row in X.tolist()]
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    less = [[value - mean for value, mean in zip(row, means, strict=True)] for row in rows]
    return np.array(
        [[float(sum(a * b for a, b in zip(x, z, strict=True))) for z in less] for x in less]
    )


@pytest.mark.parametrize("offset", [0.0, 5e5, 1e9])
@pytest.mark.parametrize("far", [False, True], ids=["no far row", "a far row"])
def test_shifted_linear_is_right_to_all_digits_once_centered(X, offset, far):
    X = X + offset
    if far:
        X[0] += 1e7
    expected = exact_centered_products(X)
    found = centered(Linear().shifted(X)(X))
    # Centring itself rounds, relative to the largest product.
    assert_allclose(found, expected, rtol=0, atol=1e-14 * np.abs(expected).max())


def test_unshifted_linear_loses_the_digits_that_rows_share(X):
    expected = exact_centered_products(X + 5e5)
    found = centered(Linear()(X + 5e5))
    assert np.abs(found - expected).max() > 1e-8 * np.abs(expected).max()


@pytest.mark.parametrize("kernel", LINEAR, ids=repr)
def test_shifted_kernels_are_the_same_once_centered(kernel, X):
    shifted = kernel.shifted(X)
    assert shifted != kernel
    assert shifted.name == kernel.name
    assert_allclose(centered(shifted(X)), centered(kernel(X)), atol=1e-9)
    origin = np.partition(X, len(X) // 2, axis=0)[len(X) // 2]
    assert_allclose(shifted(X, X[:4]), kernel(X - origin, X[:4] - origin), rtol=1e-12, atol=1e-12)
    assert_allclose(shifted.diagonal(X), np.diagonal(shifted(X)), rtol=1e-12, atol=1e-12)
    assert shifted.shifted(X)(X).tolist() == shifted(X).tolist()


@pytest.mark.parametrize("kernel", OTHER, ids=repr)
def test_kernels_that_would_change_or_gain_nothing_are_returned_as_they_are(kernel, X):
    assert kernel.shifted(X) is kernel


def test_sparse_rows_are_not_shifted_but_may_meet_an_origin(X):
    assert Linear().shifted(sp.csr_array(X)) == Linear()
    shifted = Linear().shifted(X)
    assert_allclose(shifted(sp.csr_array(X), X), shifted(X), rtol=1e-12)
    assert_allclose(shifted.diagonal(sp.csr_array(X)), shifted.diagonal(X), rtol=1e-12)


@pytest.mark.parametrize("kernel", LINEAR, ids=repr)
def test_shifted_kernels_in_tiles_and_stacks_are_those_of_plain_calls(kernel, X):
    kernels = [kernel.shifted(X), Linear(), Linear().shifted(X + 3.0), Polynomial()]
    expected = np.array([k(X) for k in kernels])
    assert_allclose(gram_stack(kernels, X), expected, rtol=1e-12, atol=1e-10)
    evaluated = KernelSet(kernels)
    rows = evaluated.prepare(X)
    for position, matrix in evaluated.matrices(rows[3:9], rows[9:], Buffers()):
        assert_allclose(matrix, expected[position, 3:9, 9:], rtol=1e-12, atol=1e-10)
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    tiled = TiledBank(kernels, X).combined(weights)
    raw = np.array([centered(matrix) for matrix in expected])
    traces = np.trace(raw, axis1=1, axis2=2)
    assert_allclose(tiled, np.tensordot(weights / traces, raw, 1), rtol=1e-9, atol=1e-12)


def test_kernels_share_inner_products_only_of_one_origin(X):
    shifted = Linear().shifted(X)
    same = Linear().shifted(X).named("same")
    kernels = [Linear(), Polynomial(), shifted, same, Linear().shifted(X + 1.0)]
    keys = KernelSet(kernels).keys
    assert keys[0] == keys[1] != keys[2] == keys[3]
    assert len(set(keys)) == 3


def test_a_shifted_kernel_shows_its_origin_and_keeps_its_name(X):
    assert repr(Linear()) == "Linear()"
    assert repr(Linear((0.5, 1e6))) == "Linear(origin=(0.5, 1e+06))"
    assert Linear((0.5, 1e6)).name == "Linear()"
    assert Linear((0.5,)) == Linear((0.5,)) != Linear()
    assert hash(Linear((0.5,))) == hash(Linear((0.5,)))


def test_rows_of_another_width_than_the_origin_are_refused(X):
    with pytest.raises(InvalidInputError, match=r"Rows must have 3 features.*Got 2"):
        Linear().shifted(X)(X[:, :2])


def test_integers_stay_exact(X):
    rows = np.random.default_rng(0).integers(-9, 9, (20, 4)) + 10**8
    less = rows - np.partition(rows, 10, axis=0)[10]
    assert_array_equal(Linear().shifted(rows)(rows), less @ less.T)
