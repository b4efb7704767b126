"""Symmetric products and factors, against plain NumPy."""

import numpy as np
import pytest

from discernel.backend import Cholesky, self_product_less


@pytest.mark.parametrize("n", [1, 5, 127, 128, 129, 300])
def test_symmetric_products_are_those_of_numpy(n):
    rng = np.random.default_rng(n)
    A, L, R = rng.standard_normal((n, 7)), rng.standard_normal((n, 2)), rng.standard_normal((n, 2))
    found = self_product_less(A, L, R, 0.25)
    np.testing.assert_allclose(found, 0.25 * (A @ A.T - (L @ R.T + R @ L.T) / 2), atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    assert found.flags.c_contiguous


@pytest.mark.parametrize("n", [1, 5, 127, 128, 129, 300])
def test_inverse_is_whole_and_symmetric(n):
    A = np.random.default_rng(n).standard_normal((n, n))
    matrix = A @ A.T + n * np.eye(n)
    factor = Cholesky(matrix.copy())
    found = factor.inverse()
    np.testing.assert_allclose(found, np.linalg.inv(matrix), atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(factor.inverse_diagonal(), found.diagonal(), rtol=1e-10)
