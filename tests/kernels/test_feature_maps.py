"""Feature maps: φ(x)·φ(z) is the kernel, or near it, and what is left is known."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Cosine, Laplace, Linear, Polynomial, Standardized
from discernel.kernels.adapters import Function
from discernel.kernels.features import ExactMap, NystromMap, exact_rank

RNG = np.random.default_rng(0)
X = 3.0 + RNG.standard_normal((90, 4))
NEW = 3.0 + RNG.standard_normal((37, 4))
KERNELS = [
    Standardized(RBF(width=2.0)).resolve(X),
    RBF(width=1.0, scales=(1.0, 0.0, 0.5, 2.0)),
    Laplace(width=3.0),
    Linear(),
    Function(lambda x, z: 1.0 + x @ z.T).on([0, 2]),
]
FACTORS = np.array([0.5, 2.0, 1.0, 0.1, 0.3])


def plain_sum(left, right):
    """Return Σ c_i k_i kernel by kernel."""
    return sum(c * kernel(left, right) for c, kernel in zip(FACTORS, KERNELS, strict=True))


# ---- Nyström -----------------------------------------------------------------------------------


def test_landmarks_that_are_all_rows_give_the_kernel():
    nystrom = NystromMap(KERNELS, FACTORS, X)
    features = nystrom(X)
    assert features.shape == (90, nystrom.rank)
    np.testing.assert_allclose(features @ features.T, plain_sum(X, X), atol=1e-9)
    np.testing.assert_allclose(features @ nystrom(NEW).T, plain_sum(X, NEW), atol=1e-9)


def test_features_are_those_of_the_textbook():
    """k(x, Z) k(Z, Z)⁻¹ k(Z, x), and what is left is positive semidefinite, its diagonal known."""
    Z = X[:30]
    nystrom = NystromMap(KERNELS, FACTORS, Z)
    features = nystrom(NEW)
    cross = plain_sum(NEW, Z)
    expected = cross @ np.linalg.solve(plain_sum(Z, Z), cross.T)
    np.testing.assert_allclose(features @ features.T, expected, atol=1e-9)
    left = plain_sum(NEW, NEW) - features @ features.T
    assert np.linalg.eigvalsh(left)[0] > -1e-9
    np.testing.assert_allclose(nystrom.remainder(NEW, features), np.diagonal(left), atol=1e-12)
    np.testing.assert_array_equal(nystrom.landmarks, Z[nystrom.pivots])


def test_equal_rows_among_landmarks_change_nothing():
    Z = X[:20]
    once, twice = NystromMap(KERNELS, FACTORS, Z), NystromMap(KERNELS, FACTORS, np.tile(Z, (3, 1)))
    assert twice.rank == once.rank == 20
    first, second = once(NEW), twice(NEW)
    np.testing.assert_allclose(first @ first.T, second @ second.T, atol=1e-10)


def test_a_linear_function_of_features_is_a_sum_of_kernels_at_landmarks():
    nystrom = NystromMap(KERNELS, FACTORS, X[:25])
    beta = RNG.standard_normal((nystrom.rank, 3))
    expected = plain_sum(NEW, nystrom.landmarks) @ nystrom.expansion(beta)
    np.testing.assert_allclose(nystrom(NEW) @ beta, expected, atol=1e-9)


@pytest.mark.parametrize("made", ["nystrom", "exact"])
def test_rows_are_taken_in_blocks_and_maps_are_pickled(monkeypatch, made):
    feature_map = {
        "nystrom": lambda: NystromMap(KERNELS[:4], FACTORS[:4], X[:25]),
        "exact": lambda: ExactMap(Polynomial(degree=2), 4),
    }[made]()
    whole = feature_map(NEW)
    monkeypatch.setattr("discernel.kernels.features.rows_for_threads", lambda *_: 5)
    np.testing.assert_allclose(feature_map(NEW), whole, atol=1e-12)
    loaded = pickle.loads(pickle.dumps(feature_map))
    np.testing.assert_array_equal(loaded(NEW), feature_map(NEW))


def test_sparse_rows_have_the_features_of_dense_ones():
    dense = np.where(RNG.random((60, 12)) < 0.3, RNG.random((60, 12)), 0.0)
    sparse = sp.csr_matrix(dense)
    kernels = [Linear(), Cosine(), RBF(width=1.0)]
    nystrom = NystromMap(kernels, np.ones(3), sparse[:20])
    features = nystrom(sparse)
    expected = NystromMap(kernels, np.ones(3), dense[:20])(dense)
    np.testing.assert_allclose(features @ features.T, expected @ expected.T, atol=1e-9)
    for feature_map in [ExactMap(Cosine(), 12), ExactMap(Polynomial(), 12)]:
        np.testing.assert_allclose(feature_map(sparse), feature_map(dense), atol=1e-12)


def test_coefficients_of_zero_count_nothing_and_bad_ones_are_refused():
    factors = np.array([1.0, 0.0])
    nystrom = NystromMap(
        [RBF(width=1.0), Function(lambda x, z: np.full((1, 1), np.nan))], factors, X
    )
    np.testing.assert_allclose(nystrom(NEW) @ nystrom(X).T, RBF(width=1.0)(NEW, X), atol=1e-9)
    with pytest.raises(InvalidInputError, match="one finite coefficient of at least 0 per kernel"):
        NystromMap([Linear()], [-1.0], X)
    with pytest.raises(InvalidInputError, match="0 for all 3 landmarks"):
        NystromMap([Linear()], [1.0], np.zeros((3, 2)))


def test_a_row_that_is_not_finite_is_named():
    broken = NEW.copy()
    broken[5, 1] = np.nan
    with pytest.raises(InvalidInputError, match=r"RBF\(width=1\) is nan between new row 5"):
        NystromMap([RBF(width=1.0)], [1.0], X[:10])(broken)


# ---- exact -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Linear().shifted(X),
        Cosine(),
        Standardized(Linear()).resolve(X),
        2.0 * Polynomial(degree=3, gamma=0.5, coef0=2.0),
        Polynomial(degree=2, coef0=0.0).on([1, 2]),
        Standardized(Polynomial(degree=2)).resolve(X).named("squares"),
    ],
    ids=repr,
)
def test_exact_features_are_the_kernel(kernel):
    exact = ExactMap(kernel, 4)
    assert exact.rank == exact_rank(kernel, 4) == exact(NEW).shape[1]
    np.testing.assert_allclose(exact(NEW) @ exact(X).T, kernel(NEW, X), rtol=1e-12)


def test_the_cosine_of_a_row_of_zeros_is_zero():
    rows = np.vstack([np.zeros(4), X[:2]])
    features = ExactMap(Cosine(), 4)(rows)
    np.testing.assert_allclose(features @ features.T, Cosine()(rows), atol=1e-15)


def test_what_has_no_exact_features_is_refused():
    assert exact_rank(RBF(width=1.0), 4) is None
    with pytest.raises(InvalidInputError, match=r"Linear, Cosine and Polynomial.*Use NystromMap"):
        ExactMap(RBF(width=1.0), 4)
