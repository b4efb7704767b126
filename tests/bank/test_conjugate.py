"""Conjugate gradients for several columns, against a factorisation."""

import numpy as np
import pytest

from discernel.bank.conjugate import PartialFactor, conjugate_gradients, solve_refined
from discernel.bank.system import WoodburySystem

N = 120


@pytest.fixture(scope="module")
def matrix():
    """Eigenvalues from 1e-3 to 1."""
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.standard_normal((N, N)))[0]
    return (vectors * np.geomspace(1e-3, 1.0, N)) @ vectors.T


def same(V):
    return V.copy()


def in_single(matrix):
    small = matrix.astype(np.float32)
    return lambda V: (small @ V.astype(np.float32)).astype(float)


def lengths(columns):
    return np.linalg.norm(columns, axis=0)


def test_every_column_is_solved_as_far_as_asked_for(matrix):
    B = np.random.default_rng(1).standard_normal((N, 4))
    tol = np.array([1e-2, 1e-6, 1e-9, 1e-4])
    X = conjugate_gradients(lambda V: matrix @ V, same, B, tol)
    left = lengths(B - matrix @ X)
    assert (left <= 1.01 * tol).all()
    assert (left >= 1e-3 * tol).all()  # and not much farther: columns leave when they are done


def test_columns_that_are_done_leave_the_product(matrix):
    B = np.random.default_rng(1).standard_normal((N, 3))
    widths = []

    def product(V):
        widths.append(V.shape[1])
        return matrix @ V

    conjugate_gradients(product, same, B, np.array([1e-1, 1e-4, 1e-8]))
    assert widths[0] == 3
    assert widths[-1] == 1
    assert widths == sorted(widths, reverse=True)


def test_columns_that_depend_on_each_other_break_nothing_down(matrix):
    b = np.random.default_rng(1).standard_normal((N, 1))
    B = np.hstack([b, b, 2.0 * b, np.zeros((N, 1)), b - 1e-14])
    X = conjugate_gradients(lambda V: matrix @ V, same, B, np.full(5, 1e-9))
    np.testing.assert_allclose(X, np.linalg.solve(matrix, B), atol=1e-5)
    assert not X[:, 3].any()


def test_single_precision_is_refined_to_double(matrix):
    B = np.random.default_rng(2).standard_normal((N, 3))
    enough = 1e-11 * lengths(B)
    n_double = []

    def product(V):
        n_double.append(1)
        return matrix @ V

    found = solve_refined(product, in_single(matrix), same, B, enough)
    assert (lengths(B - matrix @ found.solution) <= 1.1 * enough).all()
    np.testing.assert_allclose(found.residual, B - matrix @ found.solution, atol=1e-13)
    np.testing.assert_allclose(found.lengths, lengths(found.residual), rtol=1e-12)
    assert len(n_double) <= 4  # one a refinement


def test_where_single_precision_gains_nothing_double_takes_over(matrix):
    B = np.random.default_rng(2).standard_normal((N, 2))

    def wrong(V):
        return 3.0 * V - matrix @ V

    enough = 1e-9 * lengths(B)
    found = solve_refined(lambda V: matrix @ V, wrong, same, B, enough)
    assert (found.lengths <= enough).all()


def test_a_guess_that_is_worse_than_none_is_not_used(matrix):
    B = np.random.default_rng(2).standard_normal((N, 2))
    exact = np.linalg.solve(matrix, B)
    calls = []

    def product(V):
        calls.append(1)
        return matrix @ V

    good = solve_refined(product, None, same, B, 1e-6 * lengths(B), guess=exact)
    assert len(calls) == 1
    np.testing.assert_array_equal(good.solution, exact)
    bad = solve_refined(product, None, same, B, 1e-6 * lengths(B), guess=1e6 * exact)
    assert (bad.lengths <= 1e-6 * lengths(B)).all()


def test_what_cannot_be_solved_ends_and_says_how_far_it_came():
    singular = np.diag(np.r_[np.zeros(5), np.ones(N - 5)])
    B = np.random.default_rng(0).standard_normal((N, 2))
    found = solve_refined(lambda V: singular @ V, None, same, B, 1e-8 * lengths(B))
    np.testing.assert_allclose(found.lengths, lengths(B - singular @ found.solution), rtol=1e-10)
    assert (found.lengths >= lengths(B[:5]) * (1 - 1e-9)).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_products_that_are_no_numbers_end_at_once(value):
    B = np.ones((N, 2))
    with np.errstate(invalid="ignore"):
        found = solve_refined(lambda V: value * V, None, same, B, 1e-8 * lengths(B))
    assert (found.lengths == lengths(B)).all()


# ---- the preconditioner ------------------------------------------------------------------------


def test_the_factor_leaves_what_it_says(matrix):
    factor = PartialFactor(matrix.diagonal(), lambda at: matrix[at].copy(), 40)
    factor.extend(0.0)
    left = matrix - factor.factor.T @ factor.factor
    assert factor.rank == 40
    np.testing.assert_allclose(factor.left, left.diagonal(), atol=1e-12)
    assert np.linalg.eigvalsh(left)[0] > -1e-12


def test_the_factor_ends_where_little_is_left(matrix):
    low = matrix[:, :10] @ matrix[:10]
    factor = PartialFactor(low.diagonal(), lambda at: low[at].copy(), N)
    factor.extend(1e-6 * np.trace(low))
    assert 1 <= factor.rank <= 12
    before = factor.rank
    factor.extend(1e-3 * np.trace(low))
    assert factor.rank == before  # never smaller again
    nothing = PartialFactor(np.zeros(N), lambda at: np.zeros((len(at), N)), 5)
    nothing.extend(0.0)
    assert nothing.rank == 0


def test_a_factor_of_all_ranks_is_the_matrix(matrix):
    factor = PartialFactor(matrix.diagonal(), lambda at: matrix[at].copy(), N)
    factor.extend(0.0)
    np.testing.assert_allclose(factor.factor.T @ factor.factor, matrix, atol=1e-10)


@pytest.mark.parametrize("rank", [0, 7])
def test_woodbury_is_the_inverse(rank):
    rng = np.random.default_rng(0)
    F, d = rng.standard_normal((rank, N)), 0.1 + rng.random(N)
    P = np.diag(d) + F.T @ F
    V = rng.standard_normal((N, 3))
    system = WoodburySystem(F, d)
    np.testing.assert_allclose(system.solve(V), np.linalg.solve(P, V), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(system.inverse_diagonal(), np.linalg.inv(P).diagonal(), rtol=1e-9)
