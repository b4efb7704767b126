"""Kernels computed together, from rows prepared once and in buffers, are what they are alone."""

import copy
import pickle

import numpy as np
import pytest

from discernel.arrays import Buffers, ShiftedRows, inner_products, squared_distances
from discernel.exceptions import InvalidInputError
from discernel.kernels import (
    RBF,
    Cosine,
    Exponential,
    Function,
    Linear,
    Polynomial,
    pairs,
    rbf_ladder,
)
from discernel.kernels.evaluate import KernelSet
from discernel.kernels.terms import View


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((40, 5))


@pytest.fixture(scope="module")
def kernels(X):
    found = [*rbf_ladder(4), RBF(width=1.3), Cosine(), Linear(), Polynomial(degree=2)]
    found += [Exponential(), Exponential(), RBF().on([0, 2]), 2.0 * RBF(width=0.7)]
    found += [2.0 * Polynomial(degree=3).on([1]).named("p")]
    found += [RBF() + 0.5 * Linear() + 1.0, RBF() * Cosine(), Linear() + Function(inner_products)]
    return [kernel.resolve(X) for kernel in found]


@pytest.mark.parametrize("buffers", [None, Buffers()])
@pytest.mark.parametrize("tile", [(slice(0, 9), slice(9, 40)), (slice(3, 20), slice(0, 4))])
def test_tiles_of_prepared_rows(X, kernels, tile, buffers):
    """Buffers serve tiles of several shapes, one after another."""
    together = KernelSet(kernels)
    prepared = together.prepare(X)
    seen = set()
    for position, matrix in together.matrices(prepared[tile[0]], prepared[tile[1]], buffers):
        expected = kernels[position](X[tile[0]], X[tile[1]])
        np.testing.assert_allclose(matrix, expected, rtol=1e-11, atol=1e-13)
        seen.add(position)
    assert seen == set(range(len(kernels)))


@pytest.mark.parametrize("buffers", [None, Buffers()])
def test_tiles_on_the_diagonal(X, kernels, buffers):
    together = KernelSet(kernels)
    rows = together.prepare(X)[slice(5, 25)]
    for position, matrix in together.matrices(rows, None, buffers):
        np.testing.assert_allclose(matrix, kernels[position](X[5:25]), rtol=1e-11, atol=1e-13)
        if isinstance(kernels[position], (RBF, Exponential)):
            np.testing.assert_array_equal(np.diag(matrix), 1.0)


def test_rows_prepared_like_others(X, kernels):
    together = KernelSet(kernels)
    training = together.prepare(X[:30])
    new = together.prepare(X[30:], training)
    for position, matrix in together.matrices(new, training):
        expected = kernels[position](X[30:], X[:30])
        np.testing.assert_allclose(matrix, expected, rtol=1e-11, atol=1e-13)


def test_without_buffers_no_matrix_is_overwritten(X, kernels):
    together = KernelSet(kernels)
    for position, matrix in dict(together.matrices(together.prepare(X))).items():
        np.testing.assert_allclose(matrix, kernels[position](X), rtol=1e-11, atol=1e-13)


def test_buffers_are_the_same_memory_again():
    buffers = Buffers()
    first = buffers("a", (4, 6))
    assert np.shares_memory(first, buffers("a", (5, 3)))
    assert not np.shares_memory(first, buffers("b", (4, 6)))
    assert buffers("a", (10, 10)).shape == (10, 10)


# --- distances from shifted rows ------------------------------------------------------------------


def exact(X, Z):
    return np.array([[np.sum((x - z) ** 2) for z in Z] for x in X])


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_distances_far_from_the_origin_keep_their_digits(offset):
    rng = np.random.default_rng(0)
    X, Z = offset + rng.standard_normal((30, 6)), offset + rng.standard_normal((20, 6))
    right = ShiftedRows.of(Z)
    left = ShiftedRows.of(X, right)
    np.testing.assert_allclose(left.squared_distances(right), exact(X, Z), rtol=1e-12)
    np.testing.assert_allclose(
        left.squared_distances(right), squared_distances(X, Z), rtol=1e-13, atol=1e-13
    )


def test_distances_are_never_negative_and_0_on_the_diagonal():
    X = np.repeat(np.random.default_rng(0).standard_normal((10, 3)), 5, axis=0)
    rows = ShiftedRows.of(X)
    assert np.diag(rows.squared_distances()).max() == 0.0
    assert rows.squared_distances(rows).min() >= 0.0


def test_distances_of_integers_are_exact():
    X = np.random.default_rng(0).integers(-1000, 1000, (25, 7))
    rows = ShiftedRows.of(X)
    np.testing.assert_array_equal(rows.squared_distances(), exact(X, X))
    np.testing.assert_array_equal(rows[3:9].squared_distances(rows[10:20]), exact(X[3:9], X[10:20]))


def test_distances_are_written_where_they_are_asked_for(X):
    rows, out = ShiftedRows.of(X), np.full((40, 40), np.nan)
    assert rows.squared_distances(rows, out) is out
    np.testing.assert_allclose(out, squared_distances(X, X), atol=1e-12)


def with_far_rows(kind, n=200, columns=4):
    """Return rows of which some are far out."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, columns))
    groups = np.arange(n) % 3
    if kind == "the first":
        X[0] = 1e8
    elif kind == "a few":
        X[[3, 50, 51, 170]] += 10.0 ** np.array([[3.0], [6.0], [6.0], [9.0]])
    elif kind == "half":
        X[n // 2 :] += 1e8
    elif kind == "half, equal":
        X[:] = np.where(np.arange(n)[:, None] < n // 2, 0.1, 1e8 + 0.1)
    elif kind == "three corners":  # the medians of the columns are in none of the groups
        X[np.arange(n), groups] += 1e8
    elif kind == "one column":
        X[:100, 1] += 1e7
    elif kind == "constant columns":
        X = np.column_stack([np.full(n, 1e9), X, np.zeros(n)])
        X[7] = -1e5
    return X


FAR = ["the first", "a few", "half", "half, equal", "three corners", "one column"]
FAR += ["constant columns"]


@pytest.mark.parametrize("columns", [2, 4, 30])
@pytest.mark.parametrize("kind", FAR)
def test_far_rows_cost_no_digits_of_any_distance(kind, columns):
    """Neither those of near rows, nor those among far ones, nor those between the two."""
    X = with_far_rows(kind, columns=columns + 2)
    expected = exact(X, X)
    found = squared_distances(X)
    # What rounding may cost: 1e-12 of the distance, or of that of rows next to each other.
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found.diagonal(), 0.0)
    rows = ShiftedRows.of(X)
    np.testing.assert_allclose(rows[40:60].squared_distances(rows), expected[40:60], atol=1e-12)
    new = ShiftedRows.of(X[::7], rows[:])
    np.testing.assert_allclose(new.squared_distances(rows), expected[::7], rtol=1e-12, atol=1e-12)
    few = squared_distances(X, X[:3])
    np.testing.assert_allclose(few, expected[:, :3], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e8, 1e150])
def test_a_gaussian_kernel_does_not_depend_on_a_far_first_row(size):
    Z = np.random.default_rng(0).standard_normal((200, 4))
    kernel, expected = RBF(width=2.0), RBF(width=2.0)(Z)[1:, 1:]
    Z[0] = size
    np.testing.assert_allclose(kernel(Z)[1:, 1:], expected, rtol=1e-12, atol=1e-300)
    for buffers in (None, Buffers()):
        rows = KernelSet([kernel]).prepare(Z)
        ((_, found),) = KernelSet([kernel]).matrices(rows, rows, buffers)
        np.testing.assert_allclose(found[1:, 1:], expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("shape", [(4000, 20), (200, 20), (200, 3), (500, 2), (20, 5)])
def test_rows_of_one_cloud_are_not_computed_twice(shape):
    X = np.random.default_rng(0).standard_normal(shape)
    assert ShiftedRows.of(X).given is None
    assert ShiftedRows.of(np.abs(X).round() + 1e6).given is None


def test_distances_of_one_column_are_exact_in_tiles_too():
    x = np.array([[1e8], [1e8 + 1], [0.1], [0.3], [-1e8]])
    np.testing.assert_array_equal(ShiftedRows.of(x).squared_distances(), np.square(x - x.T))


def test_a_view_is_found_in_another_process():
    """Hashes of words differ between processes: the one that was computed is not taken along."""
    view = View((("spreads", (1.0, 2.0)),))
    assert {view: 1}[View((("spreads", (1.0, 2.0)),))] == 1
    assert vars(pickle.loads(pickle.dumps(view))) == {"steps": view.steps}


@pytest.mark.parametrize("name", ["SQUARED", "CITY", "CHI_SQUARED", "INNER", "COSINE"])
def test_a_pair_without_numbers_is_one_object(name):
    pair = vars(pairs)[name]
    assert pickle.loads(pickle.dumps(pair)) is pair
    assert copy.deepcopy(pair) is pair


@pytest.mark.parametrize("widths", [(1e170, 1e180), (1e160, 1e170), (1e161, 1.0)])
def test_widths_whose_exponents_underflow_are_constant_kernels(widths):
    rows = np.random.default_rng(0).standard_normal((20, 3))
    kernels = [RBF(width=width) for width in widths]
    matrices = dict(KernelSet(kernels).matrices(KernelSet(kernels).prepare(rows)))
    np.testing.assert_array_equal(matrices[0], 1.0)
    np.testing.assert_allclose(matrices[1], kernels[1](rows))


@pytest.mark.parametrize("kernel", [RBF(width=1e-170), RBF(length_scale=1e-160)])
def test_a_width_whose_exponent_overflows_is_refused(kernel):
    with pytest.raises(InvalidInputError, match="too small"):
        kernel(np.eye(3))
