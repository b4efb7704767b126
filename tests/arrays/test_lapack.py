"""LAPACK without the interpreter's lock is that of SciPy."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import blas
from scipy.linalg import lapack as scipys

from discernel.arrays import Cholesky, dense, lapack


@pytest.fixture(params=[(np.float64, "d"), (np.float32, "s")], ids=["double", "single"])
def precision(request):
    return request.param


def matrix_of(n, dtype):
    half = np.random.default_rng(n).standard_normal((n, n))
    return np.asfortranarray(half @ half.T + n * np.eye(n), dtype=dtype)


@pytest.mark.parametrize("n", [1, 5, 200])
def test_functions_are_those_of_scipy(n, precision):
    dtype, letter = precision
    matrix, right = matrix_of(n, dtype), np.random.default_rng(0).standard_normal((n, 3))
    expected, _ = getattr(scipys, letter + "potrf")(matrix, lower=1, clean=0)
    lower = matrix.copy(order="F")
    assert lapack.overwrite("potrf", lower) == 0
    assert_allclose(lower, expected, rtol=0)
    for columns in (right, right[:, 0], right[:, :0]):
        found = lapack.potrs(lower, columns)
        if columns.size:
            solved = getattr(scipys, letter + "potrs")(expected, columns, lower=1)[0]
            assert_allclose(found, solved, rtol=0)
        assert found.shape == columns.shape
        assert found.dtype == dtype
    for name in ("potri", "trtri", "lauum"):
        made = lower.copy(order="F")
        lapack.overwrite(name, made)
        assert_allclose(made, getattr(scipys, letter + name)(expected, lower=1)[0], rtol=0)
    times = getattr(blas, letter + "trmm")
    B = np.asfortranarray(right, dtype=dtype)
    assert_allclose(lapack.trmm(2.0, lower, B), times(2.0, lower, B, lower=1), rtol=0)
    turned = lapack.trmm(1.0, lower, B, turned=True)
    assert_allclose(turned, times(1.0, lower, B, lower=1, trans_a=1), rtol=0)
    after = lapack.trmm(1.0, lower, B.T, after=True)
    assert_allclose(after, times(1.0, lower, B.T, side=1, lower=1), rtol=0)


@pytest.mark.parametrize("n_columns", [0, 1, 3, 4])
def test_few_columns_of_many_rows_are_solved_for_as_many_are(n_columns, precision):
    dtype, letter = precision
    lower = matrix_of(400, dtype)
    lapack.overwrite("potrf", lower)
    right = np.random.default_rng(0).standard_normal((400, n_columns)).astype(dtype)
    found = lapack.potrs(lower, right)
    assert found.shape == right.shape
    if n_columns:
        expected = getattr(scipys, letter + "potrs")(lower, right, lower=1)[0]
        assert_allclose(found, expected, atol=100 * np.finfo(dtype).eps * np.abs(expected).max())


def test_the_row_where_a_factorisation_breaks_down_is_returned(precision):
    matrix = matrix_of(6, precision[0])
    matrix[3, 3] = -1.0
    assert lapack.overwrite("potrf", matrix) == 4


def test_other_threads_run_while_a_matrix_is_factored():
    """Python code of another thread, many times as much as the time slices of two calls allow."""
    matrix, stop, turns = matrix_of(1500, np.float64), threading.Event(), []

    def count():
        while not stop.is_set():
            turns.append(None)

    thread = threading.Thread(target=count)
    thread.start()
    before = len(turns)
    lapack.overwrite("potrf", matrix)
    after = len(turns)
    stop.set()
    thread.join()
    assert after > before


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_matrices_of_any_order_are_factored(order):
    matrix = matrix_of(40, np.float64)
    given = np.zeros((40, 80))[:, ::2] if order == "strided" else np.empty((40, 40), order=order)
    given[:] = matrix
    assert_allclose(Cholesky(given).solve(np.eye(40)), np.linalg.inv(matrix), atol=1e-12)


@pytest.mark.parametrize("n", [1, 127, 128, 129, 400, 1600])
def test_the_diagonal_of_the_inverse_ignores_what_is_above_the_factor(n):
    matrix = matrix_of(n, np.float64)
    given = matrix.copy(order="C")
    found = Cholesky(given).inverse_diagonal()
    assert_allclose(found, np.linalg.inv(matrix).diagonal(), rtol=1e-9)


@pytest.mark.parametrize("n", [100, 200, 1600])
def test_the_inverse_of_the_factor_is_computed_once(n, monkeypatch):
    sizes, inverse = [], dense._triangular_inverse

    def counted(lower):
        sizes.append(len(lower))
        return inverse(lower)

    monkeypatch.setattr(dense, "_triangular_inverse", counted)
    matrix = matrix_of(n, np.float64)
    factor, expected = Cholesky(matrix.copy()), np.linalg.inv(matrix)
    for rows in (np.array([[0, 5], [7, 1]]), np.array([[2, 3, 4]])):
        for own, found in zip(rows, factor.inverse_blocks(rows), strict=True):
            assert_allclose(found, expected[np.ix_(own, own)], rtol=1e-9)
    assert_allclose(factor.inverse_diagonal(), expected.diagonal(), rtol=1e-9)
    assert_allclose(factor.solve(matrix), np.eye(n), atol=1e-9)
    assert sizes.count(n) == 1
