"""Factors on a device are those of NumPy, in whatever library."""

import numpy as np
import pytest

from discernel.arrays import DeviceFactor, as_host
from discernel.exceptions import NumericalError

N, BLOCK = 150, 32


@pytest.fixture
def matrix():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(N, N))
    return A @ A.T / N + 0.1 * np.eye(N)


def factor(matrix, device, **options):
    spoiled = matrix + np.triu(np.full((N, N), 7.0), 1)  # what is above the diagonal is not read
    return DeviceFactor(device.put(spoiled), device, block=BLOCK, **options)


def test_solves_as_numpy_does(matrix, device):
    V = np.random.default_rng(1).normal(size=(N, 3))
    found = as_host(factor(matrix, device).solve(device.put(V)))
    np.testing.assert_allclose(found, np.linalg.solve(matrix, V), atol=1e-11)


def test_diagonal_of_the_inverse(matrix, device):
    expected = np.linalg.inv(matrix).diagonal()
    np.testing.assert_allclose(factor(matrix, device).inverse_diagonal(), expected, rtol=1e-11)


def test_inverse(matrix, device):
    found = as_host(factor(matrix, device).inverse())
    np.testing.assert_allclose(found, np.linalg.inv(matrix), atol=1e-11)


def test_stacks_of_matrices_are_factored_together(matrix, device):
    stack = np.stack([matrix, 2.0 * matrix + np.eye(N), matrix[::-1, ::-1]])
    V = np.random.default_rng(1).normal(size=(3, N, 2))
    solved, inverted, diagonal = (
        DeviceFactor(device.put(stack.copy()), device, block=BLOCK) for _ in range(3)
    )
    found = as_host(solved.solve(device.put(V)))
    np.testing.assert_allclose(found, np.linalg.solve(stack, V), atol=1e-11)
    expected = np.linalg.inv(stack)
    np.testing.assert_allclose(as_host(inverted.inverse()), expected, atol=1e-11)
    np.testing.assert_allclose(
        diagonal.inverse_diagonal(), np.diagonal(expected, axis1=1, axis2=2), rtol=1e-11
    )


def test_single_precision_has_its_digits(matrix, device):
    made = DeviceFactor(device.put(matrix, single=True), device, block=BLOCK, coarse=True)
    V = np.random.default_rng(1).normal(size=(N, 3))
    found = as_host(made.solve(device.put(V, single=True)))
    assert found.dtype == np.float32
    # Coarse products, where the device has them, are good for three digits of the matrix.
    close = 5e-2 if device.is_cuda else 2e-4
    np.testing.assert_allclose(found, np.linalg.solve(matrix, V), atol=close)


def test_a_matrix_that_is_not_positive_definite_is_refused(matrix, device):
    matrix[100, 100] = -5.0
    with pytest.raises(NumericalError, match="broke down before row 128 of 150"):
        factor(matrix, device)
