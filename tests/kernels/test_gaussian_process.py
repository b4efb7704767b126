"""scikit-learn's Gaussian process kernels: as values, with noise, and as one's own."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp

from discernel import KernelDiscriminant, MultipleKernelDiscriminant
from discernel.bank.tiled import TiledBank
from discernel.kernels import RBF, GaussianProcess
from discernel.kernels.adapters import equal_pairs

KERNELS = [
    gp.RBF(2.0),
    gp.RBF([1.0, 2.0, 3.0]),
    gp.ConstantKernel(2.0) * gp.Matern(1.5, nu=2.5) + gp.WhiteKernel(0.5),
    gp.Exponentiation(gp.RationalQuadratic(), 2),
    gp.PairwiseKernel(metric="laplacian"),
]
NOISY = [
    gp.RBF(2.0) + gp.WhiteKernel(0.5),
    gp.WhiteKernel(0.3) * gp.ConstantKernel(2.0) + gp.DotProduct(),
    gp.Exponentiation(gp.RBF(2.0) + gp.WhiteKernel(0.5), 2),
]


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((30, 3))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_equal_kernels_are_equal_and_hash_alike(kernel):
    ours = GaussianProcess(kernel)
    for other in (clone(kernel), deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert ours == GaussianProcess(other)
        assert hash(ours) == hash(GaussianProcess(other))
    clf = KernelDiscriminant(ours)
    assert clone(clf).kernel == ours
    assert clone(KernelDiscriminant(2.0 * ours.on([0, 1]))).kernel == 2.0 * ours.on([0, 1])


def test_different_kernels_are_different():
    ours = [GaussianProcess(kernel) for kernel in [*KERNELS, *NOISY]]
    ours += [GaussianProcess(gp.RBF(2.5)), GaussianProcess(gp.RBF(2.0, "fixed"))]
    ours += [GaussianProcess(gp.RBF([1.0, 2.0])), GaussianProcess(gp.RBF([1.0, 2.0, 3.5]))]
    assert len(set(ours)) == len(ours)
    assert ours[0] != RBF(width=2.0)
    assert ours[0] != gp.RBF(2.0)


@pytest.mark.parametrize("kernel", [*NOISY, *KERNELS], ids=str)
def test_a_row_given_again_is_the_same_row(kernel, X):
    ours = GaussianProcess(kernel)
    assert_allclose(ours(X), kernel(X), rtol=1e-12)  # no two rows are equal
    assert_allclose(ours(X, X.copy()), ours(X), rtol=1e-12, atol=1e-15)
    assert_allclose(ours(X[:7], X[3:]), ours(X)[:7, 3:], rtol=1e-12, atol=1e-15)
    assert_allclose(ours(X + 0.1, X), kernel(X + 0.1, X), rtol=1e-12)
    assert_allclose(ours.diagonal(X), ours(X).diagonal(), rtol=1e-12)


def test_equal_training_rows_are_the_same_row_too(X):
    ours = GaussianProcess(NOISY[0])
    twice = np.vstack([X[:5], X[:3], -0.0 * X[:1], 0.0 * X[:1]])
    found = ours(twice)
    assert_allclose(found[5:8], found[:3], rtol=1e-14)
    assert found[8, 9] == found[8, 8] == 1.5
    assert np.linalg.eigvalsh(found).min() > -1e-12
    step = 1e-6
    up, down = (
        ours.with_parameters(k2__noise_level=0.5 + sign * step)(twice) for sign in (1.0, -1.0)
    )
    derivative = ours.derivative("k2__noise_level", twice)
    assert_allclose(derivative, (up - down) / (2 * step), atol=1e-8)


@pytest.mark.parametrize("kernel", NOISY, ids=str)
def test_rows_and_precomputed_matrices_give_the_same_predictions(kernel, X):
    y = (X[:, 0] > 0).astype(int)
    rows = KernelDiscriminant(kernel, regularization=0.1).fit(X, y)
    matrix = KernelDiscriminant("precomputed", regularization=0.1).fit(kernel(X), y)
    assert_allclose(rows.predict_proba(X), matrix.predict_proba(kernel(X)), atol=1e-10)
    new = X + 0.3
    assert_allclose(rows.predict_proba(new), matrix.predict_proba(kernel(new, X)), atol=1e-10)


@pytest.mark.parametrize("bank", ["dense", "tiled"])
def test_noise_in_tiles(X, bank):
    twice = np.vstack([X, X])
    y = (twice[:, 0] > 0).astype(int)
    kernels = [NOISY[0], RBF(width=2.0)]
    options = {"criterion": "uniform", "regularization": 0.1}
    found = MultipleKernelDiscriminant(kernels, bank=bank, **options).fit(twice, y)
    stack = np.stack([GaussianProcess(NOISY[0])(twice), RBF(width=2.0)(twice)], axis=-1)
    expected = MultipleKernelDiscriminant("precomputed", **options).fit(stack, y)
    assert_allclose(found.predict_proba(twice), expected.predict_proba(stack), atol=1e-9)
    ours = GaussianProcess(NOISY[0])
    bank = TiledBank([ours], twice, cache_bytes=5 * 8 * 16 * 16 * 4, n_threads=1)
    raw = ours(twice)
    raw = raw - raw.mean(axis=0) - raw.mean(axis=1, keepdims=True) + raw.mean()
    assert_allclose(bank.combined(np.ones(1)), raw / np.trace(raw), atol=1e-12)


def test_a_kernel_changed_after_fit_changes_nothing(X):
    y = (X[:, 0] > 0).astype(int)
    kernel = gp.RBF(2.0)
    clf = KernelDiscriminant(kernel, regularization=0.1).fit(X, y)
    before = clf.predict_proba(X)
    kernel.length_scale = 50.0
    assert_array_equal(clf.predict_proba(X), before)


def test_equal_pairs_are_all_pairs_of_equal_rows():
    rng = np.random.default_rng(0)
    X, Z = rng.integers(0, 2, (20, 3)) * 1.0, rng.integers(0, 2, (15, 3)) * 1.0
    expected = np.argwhere((X[:, None] == Z[None]).all(axis=2))
    found = np.column_stack(equal_pairs(X, Z))
    assert_array_equal(found[np.lexsort(found.T[::-1])], expected)
    assert len(equal_pairs(X, Z + 0.5)[0]) == 0
