"""Landmarks: different rows, the same for a seed, drawn as they say."""

import numpy as np
import pytest
import scipy.sparse as sp

from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Linear
from discernel.kernels.features import NystromMap, draw_landmarks
from discernel.kernels.weighted import WeightedKernels

KERNEL = WeightedKernels([RBF(width=1.0)], np.ones(1))
WAYS = pytest.mark.parametrize("kernel", [None, KERNEL], ids=["uniform", "by distance"])


def rows_of(n=400, seed=0):
    """Return two clouds, of which one is large and dense, and the cloud of each row."""
    rng = np.random.default_rng(seed)
    codes = (np.arange(n) < n // 20).astype(np.intp)
    return np.where(codes[:, None], 6.0, 0.1) * rng.standard_normal((n, 2)), codes


@WAYS
def test_landmarks_are_different_rows_and_always_the_same(kernel):
    X, _ = rows_of()
    X[100:300] = X[:200]  # half of them are there twice
    first = draw_landmarks(X, 50, kernel)
    assert len(first) == 50
    assert (np.diff(first) > 0).all()
    assert len(np.unique(X[first], axis=0)) == 50
    np.testing.assert_array_equal(first, draw_landmarks(X, 50, kernel))


@WAYS
def test_more_than_there_are_is_all_that_are_different(kernel):
    X, _ = rows_of(60)
    X[30:] = X[:30]
    found = draw_landmarks(X, 50, kernel)
    assert len(found) == len(np.unique(X, axis=0)) == 30
    assert len(draw_landmarks(X[:7], 7, kernel)) == 7


@WAYS
def test_sparse_rows_are_drawn_like_dense_ones(kernel):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((200, 20)) < 0.2, np.round(2 * rng.random((200, 20))), 0.0)
    dense[1] = dense[0] = 0.0
    found = draw_landmarks(sp.csr_matrix(dense), 40, kernel)
    np.testing.assert_array_equal(found, draw_landmarks(dense, 40, kernel))


def test_zeros_of_either_sign_and_stored_zeros_are_one():
    assert len(draw_landmarks(np.array([[0.0], [-0.0], [1.0]]), 3)) == 2
    stored = sp.csr_matrix((np.zeros(1), ([0], [1])), shape=(2, 3))
    assert len(draw_landmarks(stored, 2)) == 1


def test_few_far_rows_are_found_by_distance():
    X, codes = rows_of(2000)
    orders = [np.random.default_rng(seed).permutation(2000) for seed in range(5)]
    uniform, far = (
        np.mean([codes[order][draw_landmarks(X[order], 40, k)].mean() for order in orders])
        for k in (None, KERNEL)
    )
    assert uniform < 0.15
    assert far > 0.4


def test_such_landmarks_leave_less_of_the_trace():
    X, _ = rows_of(2000)

    def left(kernel):
        total = 0.0
        for seed in range(5):
            rows = np.random.default_rng(seed).permutation(X)
            landmarks = rows[draw_landmarks(rows, 60, kernel)]
            nystrom = NystromMap([RBF(width=1.0)], [1.0], landmarks)
            total += nystrom.remainder(X, nystrom(X)).sum()
        return total

    assert left(KERNEL) < 0.7 * left(None)


def test_no_landmarks_are_refused():
    with pytest.raises(InvalidInputError, match=r"at least one landmark. Got 0"):
        draw_landmarks(rows_of()[0], 0)


def test_rows_that_a_kernel_does_not_tell_apart_are_filled_up():
    X = np.column_stack([np.zeros(50), np.arange(50.0)])
    kernel = WeightedKernels([Linear().on([0])], np.ones(1))
    assert len(draw_landmarks(X, 20, kernel)) == 20
