"""Landmarks: different rows, the same for a seed, drawn as they say."""

import numpy as np
import pytest
import scipy.sparse as sp

from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Linear
from discernel.kernels.features import NystromMap, distinct_rows, draw_landmarks
from discernel.kernels.weighted import WeightedKernels

WAYS = ["uniform", "kmeans++", "leverage", "balanced"]
KERNEL = WeightedKernels([RBF(width=1.0)], np.ones(1))


def rows_of(n=400, seed=0):
    """Return two clouds, of which one is large and dense, and the cloud of each row."""
    rng = np.random.default_rng(seed)
    codes = (np.arange(n) < n // 20).astype(np.intp)
    return np.where(codes[:, None], 6.0, 0.1) * rng.standard_normal((n, 2)), codes


def drawn(X, n, how, codes, seed=0):
    return draw_landmarks(X, n, how, codes=codes, kernel=KERNEL, random_state=seed)


@pytest.mark.parametrize("how", WAYS)
def test_landmarks_are_different_rows_and_the_same_for_a_seed(how):
    X, codes = rows_of()
    X[100:300] = X[:200]  # half of them are there twice
    first = drawn(X, 50, how, codes)
    assert len(first) == 50
    assert (np.diff(first) > 0).all()
    assert len(np.unique(X[first], axis=0)) == 50
    np.testing.assert_array_equal(first, drawn(X, 50, how, codes))
    assert not np.array_equal(first, drawn(X, 50, how, codes, seed=1))


@pytest.mark.parametrize("how", WAYS)
def test_more_than_there_are_is_all_that_are_different(how):
    X, codes = rows_of(60)
    X[30:] = X[:30]
    found = drawn(X, 50, how, codes)
    assert len(found) == len(np.unique(X, axis=0)) == 30
    assert len(drawn(X[:7], 7, how, codes[:7])) == 7


@pytest.mark.parametrize("how", WAYS)
def test_sparse_rows_are_drawn_like_dense_ones(how):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((200, 20)) < 0.2, np.round(2 * rng.random((200, 20))), 0.0)
    dense[1] = dense[0] = 0.0
    codes = (np.arange(200) % 3).astype(np.intp)
    found = drawn(sp.csr_matrix(dense), 40, how, codes)
    np.testing.assert_array_equal(found, drawn(dense, 40, how, codes))


def test_zeros_of_either_sign_and_stored_zeros_are_one():
    np.testing.assert_array_equal(distinct_rows(np.array([[0.0], [-0.0], [1.0]])), [0, 2])
    stored = sp.csr_matrix((np.zeros(1), ([0], [1])), shape=(2, 3))
    np.testing.assert_array_equal(distinct_rows(stored), [0])


def test_few_far_rows_are_found_by_all_but_uniform_draws():
    X, codes = rows_of(2000)
    far = {
        how: np.mean([codes[drawn(X, 40, how, codes, s)].mean() for s in range(5)]) for how in WAYS
    }
    assert far["uniform"] < 0.15
    assert min(far["kmeans++"], far["leverage"], far["balanced"]) > 0.4
    plain = draw_landmarks(X, 40, "kmeans++")  # without a kernel: distances of rows
    assert codes[plain].mean() > 0.4


@pytest.mark.parametrize("how", ["kmeans++", "leverage"])
def test_such_landmarks_leave_less_of_the_trace(how):
    X, codes = rows_of(2000)

    def left(how):
        total = 0.0
        for seed in range(5):
            nystrom = NystromMap([RBF(width=1.0)], [1.0], X[drawn(X, 60, how, codes, seed)])
            total += nystrom.remainder(X, nystrom(X)).sum()
        return total

    assert left(how) < 0.7 * left("uniform")


def test_balanced_landmarks_take_turns():
    codes = np.repeat([0, 1, 2], [5, 100, 300]).astype(np.intp)
    X = np.random.default_rng(0).standard_normal((405, 3))
    found = draw_landmarks(X, 65, "balanced", codes=codes)
    np.testing.assert_array_equal(np.bincount(codes[found]), [5, 30, 30])


def test_what_cannot_be_drawn_is_refused():
    X, _ = rows_of()
    with pytest.raises(InvalidInputError, match=r"way to draw landmarks.*Got 'best'"):
        draw_landmarks(X, 5, "best")
    with pytest.raises(InvalidInputError, match=r"at least one landmark. Got 0"):
        draw_landmarks(X, 0)
    with pytest.raises(InvalidInputError, match="need the classes"):
        draw_landmarks(X, 5, "balanced")
    with pytest.raises(InvalidInputError, match="need a kernel"):
        draw_landmarks(X, 5, "leverage")


def test_rows_that_a_kernel_does_not_tell_apart_are_filled_up():
    X = np.column_stack([np.zeros(50), np.arange(50.0)])
    kernel = WeightedKernels([Linear().on([0])], np.ones(1))
    assert len(draw_landmarks(X, 20, "kmeans++", kernel=kernel)) == 20
