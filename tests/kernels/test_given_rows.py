"""Rows as users and scikit-learn give them: of one dimension, sparse, with indices of 64 bits."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import SpectralClustering
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge

from discernel import KernelDiscriminant, MultipleKernelDiscriminant
from discernel.exceptions import InvalidInputError
from discernel.kernels import (
    RBF,
    ChiSquared,
    Cosine,
    Exponential,
    Function,
    GaussianProcess,
    Intersection,
    Jaccard,
    Laplace,
    Linear,
    Lookup,
    Matching,
    NGram,
    Pairwise,
    Polynomial,
    Precomputed,
    Spectrum,
    Standardized,
    Tanimoto,
    WhereKnown,
)


def dot(A, B):
    return A @ B.T


#: Kernels of rows of three counts, some of them 0.
KERNELS = [
    RBF(width=2.0),
    Exponential(width=2.0),
    Laplace(width=2.0),
    RBF(width=2.0, scales=[1.0, 2.0, 0.0]),
    Linear(),
    Polynomial(),
    Cosine(),
    Tanimoto(),
    Matching(),
    ChiSquared(),
    Intersection(),
    Pairwise("laplacian", (("gamma", 0.5),)),
    GaussianProcess(gp.Matern(2.0)),
    Function(dot),
    Standardized(RBF(width=2.0), (1.0, 2.0, 3.0)),
    WhereKnown(RBF(width=2.0)),
    RBF(width=2.0).on([0, 2]),
    2.0 * RBF(width=2.0) + Linear() * Cosine(),
    RBF(width=2.0).named("near"),
]


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).poisson(1.5, (20, 3)).astype(float)


def wide_indices(X, container=sp.csr_array):
    made = container(X)
    made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
    return made


# ---- two rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_two_rows_of_one_dimension_give_a_number(kernel, X):
    kernel = kernel.resolve(X)
    matrix = kernel(X)
    for i, j in [(0, 1), (3, 3), (5, 2)]:
        value = kernel(X[i], X[j])
        assert type(value) is float
        assert value == pytest.approx(matrix[i, j], rel=1e-9, abs=1e-12)
    assert kernel(X[0], Z=X[1]) == kernel(X[0], X[1])


def test_sets_and_identifiers_too():
    sets = np.array([[0.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    assert Jaccard()(*sets) == pytest.approx(1 / 3)
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    assert Lookup(matrix)(np.array([0.0]), np.array([1.0])) == 1.0


def test_to_kernels_of_any_rows_one_dimension_is_one_cell_per_row():
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    assert Lookup(matrix)(np.array([0, 1, 1]), np.array([1, 0])).shape == (3, 2)
    words = np.array(["one", "two", "one"], dtype=object)
    assert NGram()(words, words).shape == (3, 3)
    assert Spectrum(2)(words).shape == (3, 3)


@pytest.mark.parametrize(
    "kernel", [k for k in KERNELS if not k.takes_any_rows and k != Cosine()], ids=repr
)
def test_a_single_array_of_one_dimension_is_refused(kernel, X):
    kernel = kernel.resolve(X)
    for call in (kernel, kernel.diagonal):
        with pytest.raises(
            InvalidInputError, match=r"Rows must be.*Got shape \(3,\).*X\[None, :\]"
        ):
            call(X[0])
    with pytest.raises(InvalidInputError, match=r"Rows must be"):
        kernel(X[0], X)


def test_a_list_of_numbers_is_no_rows():
    with pytest.raises(InvalidInputError, match="Rows must be"):
        RBF(width=2.0)([1.0, 2.0])


def test_matrices_that_were_given_are_not_rows():
    with pytest.raises(InvalidInputError, match="needs a stack"):
        Precomputed(0)(np.ones(3), np.ones(3))


# ---- as the kernel of scikit-learn's estimators --------------------------------------------------

FOR_SKLEARN = [
    RBF(width=2.0),
    Laplace(width=2.0),
    Polynomial(2),
    Matching(),
    Function(dot),
    GaussianProcess(gp.RBF(1.5)),
    RBF(width=2.0).on([0, 2]) + 0.5 * Linear(),
]


@pytest.mark.parametrize("kernel", FOR_SKLEARN, ids=repr)
def test_kernel_pca(kernel, X):
    ours = KernelPCA(2, kernel=kernel).fit(X)
    given = KernelPCA(2, kernel="precomputed").fit(kernel(X))
    np.testing.assert_allclose(ours.eigenvalues_, given.eigenvalues_, rtol=1e-8)
    expected = np.abs(given.transform(kernel(X[:5], X)))
    np.testing.assert_allclose(np.abs(ours.transform(X[:5])), expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("kernel", FOR_SKLEARN, ids=repr)
def test_kernel_ridge(kernel, X):
    y = X[:, 0] - X[:, 1]
    ours = KernelRidge(kernel=kernel).fit(X, y).predict(X[:5])
    given = KernelRidge(kernel="precomputed").fit(kernel(X), y).predict(kernel(X[:5], X))
    np.testing.assert_allclose(ours, given, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kernel", FOR_SKLEARN, ids=repr)
def test_nystroem(kernel, X):
    ours = Nystroem(kernel=kernel, n_components=8, random_state=0).fit(X)
    landmarks = X[ours.component_indices_]
    cross, inner = kernel(X, landmarks), kernel(landmarks)
    given = cross @ np.linalg.pinv(inner, rcond=1e-12, hermitian=True) @ cross.T
    features = ours.transform(X)
    np.testing.assert_allclose(features @ features.T, given, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "kernel",
    [RBF(width=2.0), Laplace(width=2.0).on([0, 2]), GaussianProcess(gp.RBF(1.5)), Tanimoto()],
    ids=repr,
)
def test_spectral_clustering(kernel):
    rng = np.random.default_rng(1)
    X = np.vstack([rng.random((10, 3)), rng.random((10, 3)) + 3.0])
    options = {"n_clusters": 2, "random_state": 0}
    ours = SpectralClustering(affinity=kernel, **options).fit_predict(X)
    given = SpectralClustering(affinity="precomputed", **options).fit_predict(kernel(X))
    np.testing.assert_array_equal(ours, given)


# ---- sparse rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(
    "kernel",
    [
        Laplace(width=2.0),
        Laplace(width=2.0, scales=[1.0, 0.0, 2.0]),
        Laplace(width=2.0).on([0, 2]),
        RBF(width=2.0),
        Linear(),
        Pairwise("laplacian", (("gamma", 0.5),)),
    ],
    ids=repr,
)
def test_indices_of_64_bits(kernel, container, X):
    wide = wide_indices(X, container)
    np.testing.assert_allclose(kernel(wide), kernel(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(kernel(wide, wide[:4]), kernel(X, X[:4]), rtol=1e-9, atol=1e-12)
    assert wide.indices.dtype == np.int64  # what was given is left as it is


def test_estimators_take_indices_of_64_bits(X):
    y = np.arange(len(X)) % 2
    clf = KernelDiscriminant(Laplace(), regularization=0.1)
    expected = clf.fit(X, y).decision_function(X)
    found = clf.fit(wide_indices(X), y).decision_function(wide_indices(X))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "kernel",
    [
        GaussianProcess(gp.RBF(1.5)),
        GaussianProcess(gp.DotProduct()),
        2.0 * GaussianProcess(gp.RBF(1.5)).on([0, 1]) + Linear(),
        Matching(),
        WhereKnown(RBF()),
    ],
    ids=repr,
)
def test_kernels_that_need_dense_rows_say_so(kernel, X):
    y, sparse = np.arange(len(X)) % 2, sp.csr_array(X)
    for call in (kernel, kernel.diagonal):
        with pytest.raises(InvalidInputError, match=r"needs dense rows.*X\.toarray\(\)"):
            call(sparse)
    clf = MultipleKernelDiscriminant([kernel, Linear()])
    assert not clf.__sklearn_tags__().input_tags.sparse
    with pytest.raises(InvalidInputError, match=r"needs dense rows"):
        clf.fit(sparse, y)
    clf.fit(X, y)
    with pytest.raises(InvalidInputError, match=r"needs dense rows"):
        clf.predict(sparse)


def test_kernels_of_texts_say_that_rows_are_sparse():
    with pytest.raises(InvalidInputError, match="needs dense rows"):
        NGram()(sp.csr_array(np.eye(3)))
