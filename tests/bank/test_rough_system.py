"""Systems of single precision: where they are used, how good they are, what happens if they fail.

A rough system is one in single precision where that is good for three digits.
"""

import numpy as np
import pytest

from discernel.bank import DenseBank, FeatureBank, TiledBank
from discernel.kernels import RBF, Linear

WIDTHS = (0.3, 1.0, 3.0, 10.0)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).standard_normal((150, 3))


def tiles(X, kernels=None):
    kernels = [RBF(width=width) for width in WIDTHS] if kernels is None else kernels
    return TiledBank([kernel.resolve(X) for kernel in kernels], X, n_threads=1)


def relative_error(found, exact):
    return np.linalg.norm(found - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize("ridge", [1e-8, 1e-6, 1e-5])
def test_below_a_small_ridge_rough_is_exact(rows, ridge):
    """Single precision would have no digits left: 6e-8 of the trace against the ridge."""
    bank, T = tiles(rows), rows - rows.mean(axis=0)
    weights = np.array([0.0, 0.0, 0.3, 0.7])
    rough = bank.system(weights, ridge, rough=True).solve(T)
    assert relative_error(rough, bank.system(weights, ridge).solve(T)) < 1e-9


@pytest.mark.parametrize("ridge", [1e-4, 1e-3, 1e-2, 1.0])
def test_rough_is_good_for_three_digits(rows, ridge):
    bank, T = tiles(rows), rows - rows.mean(axis=0)
    for weights in (*np.eye(4), np.full(4, 0.25)):
        rough = bank.system(weights, ridge, rough=True).solve(T)
        assert relative_error(rough, bank.system(weights, ridge).solve(T)) < 1e-3


@pytest.mark.parametrize("ridge", [1e-4, 1e-2, 1.0])
def test_the_residual_of_single_precision_is_known_in_double_precision(rows, ridge):
    bank, T = tiles(rows + 1e3), rows - rows.mean(axis=0)
    weights = np.array([0.1, 0.0, 0.3, 0.6])
    system = bank.system(weights, ridge, rough=True)
    found, residual = system.solve_residual(T)
    np.testing.assert_array_equal(found, system.solve(T))
    N = bank.combined(weights) + ridge * np.eye(150)
    np.testing.assert_allclose(residual, T - N @ found, atol=1e-11)
    assert 1e-10 < np.linalg.norm(residual) / np.linalg.norm(T) < 1e-3
    assert bank.system(weights, ridge).solve_residual(T)[1] is None  # rounding errors only


def test_tiles_are_factored_in_single_precision_and_stored_matrices_are_not(rows):
    weights, T = np.full(4, 0.25), rows - rows.mean(axis=0)
    exact = tiles(rows).system(weights, 1e-2).solve(T)
    assert relative_error(tiles(rows).system(weights, 1e-2, rough=True).solve(T), exact) > 1e-10
    kernels = [RBF(width=width).resolve(rows) for width in WIDTHS]
    stored = DenseBank([kernel(rows) for kernel in kernels])
    for bank in (stored, FeatureBank.from_kernels(kernels, rows)):
        assert relative_error(bank.system(weights, 1e-2, rough=True).solve(T), exact) < 1e-9


def test_where_single_precision_breaks_down_double_precision_is_used(rows):
    """A kernel of low rank, 1e6 times heavier than on the simplex: its rounding exceeds the ridge.

    In double precision it does not, and the system is as good as ever.
    """
    bank, T = tiles(rows, [Linear(), RBF(width=1.0)]), rows - rows.mean(axis=0)
    weights = np.array([1e6, 0.0])
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        np.linalg.cholesky((1e-3 * np.eye(150) + bank.combined(weights)).astype(np.float32))
    rough = bank.system(weights, 1e-3, rough=True).solve(T)
    assert relative_error(rough, bank.system(weights, 1e-3).solve(T)) < 1e-3


def test_what_a_rough_system_used_serves_an_exact_one_next(rows):
    """They share memory, one after the other; neither spoils the other's numbers."""
    bank, T = tiles(rows), rows - rows.mean(axis=0)
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    N = bank.combined(weights) + 1e-2 * np.eye(150)
    for _ in range(3):
        rough = bank.system(weights, 1e-2, rough=True)
        first = rough.solve(T)
        exact = bank.system(weights, 1e-2).solve(T)
        np.testing.assert_allclose(N @ exact, T, atol=1e-10)
        np.testing.assert_array_equal(rough.solve(T), first)
        del rough
