"""Values of columns of kernel sums, against their definition over all subsets."""

import numpy as np
import pytest
import scipy.sparse

from discernel.inspection import games
from discernel.inspection.contributions import column_values
from discernel.kernels import RBF, Exponential, Laplace, Linear, Polynomial, Standardized
from discernel.kernels.features import ExactMap
from discernel.kernels.weighted import WeightedKernels
from discernel.model.parts import FeaturePart, KernelPart
from tests.inspection.brute import shapley

KERNELS = {
    "gaussian": RBF(gamma=0.3),
    "narrow": RBF(gamma=300.0),
    "laplace on columns": Standardized(Laplace(gamma=0.4), (0.3, 2.0, 1.0)).on([3, 1, 5]),
    "linear": Linear((0.1,) * 6),
    "product": RBF(gamma=0.4).on([0, 4]) * (3.0 * Laplace(gamma=0.2)),
    "sum": RBF(gamma=0.4).on([0]) + 0.5 * Linear().on([1, 2]),
    "exponential": Exponential(gamma=0.3),
    "polynomial": Polynomial(degree=2).on([1, 2, 3]),
    "constant": Linear().on([1, 2]) + 2.0,
    "power": (RBF(gamma=0.4).on([0, 4]) + 0.5) ** 2,
    "power of a line": (Linear().on([1, 2, 3]) + 1.0) ** 2,
    "both": RBF(gamma=0.4) + Polynomial(degree=2).on([1, 2, 3]),
}
PLAYERS = {"one each": np.arange(6), "together": np.array([0, 0, 0, 1, 2, 2])}


def kernel_part(kernel, Z, coef):
    return KernelPart(WeightedKernels([kernel], np.ones(1)), Z, coef, False)


def expected_values(part, x, reference, player):
    n_players = player.max() + 1

    def value(subset):
        return part(np.where(np.isin(player, subset), x, reference)[None])[0]

    return shapley(value, n_players).T


@pytest.mark.parametrize("player", PLAYERS.values(), ids=PLAYERS)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_values_are_those_of_the_definition(kernel, player, rng, monkeypatch):
    monkeypatch.setattr(games, "_BLOCK_ENTRIES", 40)  # several blocks of rows
    Z, X, references = rng.normal(size=(20, 6)), rng.normal(size=(3, 6)), rng.normal(size=(2, 6))
    X[1, :2] = references[0, :2]
    part = kernel_part(kernel, Z, rng.normal(size=(20, 2)))
    found, exact = column_values([part], X, references, player, player.max() + 1)
    assert exact
    for i, x in enumerate(X):
        mean = sum(expected_values(part, x, r, player) for r in references) / len(references)
        np.testing.assert_allclose(found[i], mean, atol=1e-12)


def test_parts_add_up_and_sparse_rows_are_the_same(rng):
    Z, X, reference = rng.normal(size=(20, 6)), rng.normal(size=(3, 6)), np.zeros((1, 6))
    coef = rng.normal(size=(20, 2))
    kernels = [RBF(gamma=0.3), Linear(), Polynomial()]
    parts = [kernel_part(kernel, Z, coef) for kernel in kernels]
    each = [column_values([part], X, reference, np.arange(6), 6)[0] for part in parts]
    found, _ = column_values(parts, X, reference, np.arange(6), 6)
    np.testing.assert_allclose(found, sum(each), atol=1e-13)
    sparse = scipy.sparse.csr_matrix
    thin = [kernel_part(kernel, sparse(Z), coef) for kernel in kernels]
    again, _ = column_values(thin, sparse(X), sparse(reference), np.arange(6), 6)
    np.testing.assert_allclose(again, found, atol=1e-12)


@pytest.mark.parametrize("kernel", [Linear().on([0, 2]), Polynomial(degree=2)])
def test_features_are_explained_too(kernel, rng):
    features = ExactMap(kernel, 6)
    part = FeaturePart(features, rng.normal(size=(features.rank, 1)))
    x, reference = rng.normal(size=(2, 1, 6))
    found, exact = column_values([part], x, reference, np.arange(6), 6)
    assert exact
    expected = expected_values(part, x[0], reference[0], np.arange(6))
    np.testing.assert_allclose(found[0], expected, atol=1e-12)


def test_many_columns_of_a_kernel_of_another_form_are_estimates(rng):
    Z, x, reference = rng.normal(size=(20, 12)), rng.normal(size=(1, 12)), np.zeros((1, 12))
    part = kernel_part(Exponential(gamma=0.1), Z, rng.normal(size=(20, 1)))
    found, exact = column_values([part], x, reference, np.arange(12), 12)
    assert not exact
    np.testing.assert_allclose(found[0].sum(axis=1), (part(x) - part(reference))[0], atol=1e-12)
