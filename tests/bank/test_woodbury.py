"""Systems in the space of features say what those of whole matrices say."""

import numpy as np
import pytest

from discernel.bank import system as module
from discernel.bank.system import WoodburySystem, feature_gram

N, RANK = 70, 12
RNG = np.random.default_rng(0)
FACTOR = RNG.standard_normal((RANK, N)) / 20.0
WEIGHTS = np.where(np.arange(RANK) < 3, 0.0, RNG.random(RANK))
RIDGES = [0.05, 1e-6, 1e-3 * (1.0 + RNG.random(N))]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 16)  # 70 is no multiple of it


def dense(ridge, weights=None):
    weights = np.ones(RANK) if weights is None else weights
    return np.diag(np.full(N, ridge)) + FACTOR.T @ (weights[:, None] * FACTOR)


def check(system, matrix):
    """Check twice, in another order: no question spoils another."""
    inverse, right = np.linalg.inv(matrix), RNG.standard_normal((N, 3))
    for _ in range(2):
        np.testing.assert_allclose(
            system.solve(right), inverse @ right, atol=1e-10 * np.abs(inverse).max()
        )
        np.testing.assert_allclose(system.inverse_diagonal(), np.diagonal(inverse), rtol=1e-8)
        one = system.solve(right[:, 0])
        np.testing.assert_array_equal(one, system.solve(right[:, :1])[:, 0])


@pytest.mark.parametrize("ridge", RIDGES, ids=["one", "small", "each"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_woodbury_is_the_dense_system(ridge, order):
    factor = np.array(FACTOR, order=order)
    check(WoodburySystem(factor, ridge), dense(ridge))
    check(WoodburySystem(factor, ridge, WEIGHTS), dense(ridge, WEIGHTS))
    known = feature_gram(factor)
    np.testing.assert_allclose(known, FACTOR @ FACTOR.T, atol=1e-14)
    check(WoodburySystem(factor, ridge, WEIGHTS, known), dense(ridge, WEIGHTS))


@pytest.mark.parametrize("ridge", RIDGES, ids=["one", "small", "each"])
def test_a_new_ridge_of_known_eigenvalues_is_the_dense_system(ridge):
    values, vectors = np.linalg.eigh(FACTOR @ FACTOR.T)
    check(WoodburySystem(vectors.T @ FACTOR, ridge, gram=values), dense(ridge))


@pytest.mark.parametrize("ridge", [0.05, RIDGES[2]], ids=["one", "each"])
def test_the_inverse_answers_what_the_dense_one_does(ridge):
    factors = [FACTOR[:5], FACTOR[5:]]
    found = WoodburySystem(FACTOR, ridge, kernels=factors)
    inverse, d = np.linalg.inv(dense(ridge)), RNG.random(N)
    left, right = RNG.standard_normal((2, N, 2))
    S = 0.3 * (inverse @ np.diag(d) @ inverse - 0.5 * (left @ right.T + right @ left.T))
    by_kernel, trace = found.inner(d, left, right, 0.3)
    np.testing.assert_allclose(by_kernel, [np.sum((f.T @ f) * S) for f in factors], rtol=1e-8)
    assert trace == pytest.approx(np.trace(S))
    np.testing.assert_allclose(found.inverse_diagonal(), np.diagonal(inverse), rtol=1e-10)
    np.testing.assert_allclose(found.solve(left), inverse @ left, rtol=1e-8, atol=1e-10)


def test_no_array_of_all_pairs_is_made():
    import tracemalloc

    n, rank = 20000, 20
    factor = np.random.default_rng(0).standard_normal((rank, n)) / 100.0
    tracemalloc.start()
    system = WoodburySystem(factor, 0.1)
    system.solve(np.ones((n, 1)))
    system.inverse_diagonal()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * factor.nbytes  # all pairs would be a thousand times as much
