"""Kernels whose centred part is a small share of them, in every bank."""

import mpmath
import numpy as np
import pytest

from discernel.bank import CombinedKernel, DenseBank, TiledBank, gram_stack
from discernel.kernels import RBF, Linear, Polynomial

#: Raw over centred trace: about 10, 1e3, 1e6 and 1e9.
WIDTHS = (5.0, 50.0, 1e3, 3e4)


def rows(n=45, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 3))


def exactly_centered(gram):
    """PGP/tr(PGP) of the given doubles, in 50 digits."""
    with mpmath.workdps(50):
        G = mpmath.matrix(gram.tolist())
        n = len(gram)
        means = [mpmath.fsum(G[i, :]) / n for i in range(n)]
        grand = mpmath.fsum(means) / n
        C = [[G[i, j] - means[i] - means[j] + grand for j in range(n)] for i in range(n)]
        trace = mpmath.fsum(C[i][i] for i in range(n))
        return np.array([[float(c / trace) for c in row] for row in C])


def banks(kernels, X):
    yield DenseBank(gram_stack(kernels, X))
    yield TiledBank(kernels, X)
    yield TiledBank(kernels, X, n_threads=2, cache_bytes=2**17)


@pytest.mark.parametrize("width", WIDTHS)
def test_wide_kernels_keep_their_digits(width):
    """Products with the raw matrix would lose as many digits as the kernel is constant to."""
    X = rows()
    kernels = [RBF(width=width), RBF(width=1.0)]
    V = np.random.default_rng(1).standard_normal((len(X), 2))
    for bank in banks(kernels, X):
        gram = RBF(width=width)(X) if isinstance(bank, DenseBank) else tile_values(bank, X)
        true = exactly_centered(gram)
        np.testing.assert_allclose(bank.products(V)[0], true @ V, atol=1e-11)
        np.testing.assert_allclose(bank.combined(np.array([1.0, 0.0])), true, atol=1e-11)
        np.testing.assert_allclose(bank.compressed(V)[0], V.T @ true @ V, atol=1e-10)
        S = V @ V.T
        np.testing.assert_allclose(bank.inner(S)[0], np.sum(true * S), rtol=1e-9)
        np.testing.assert_allclose(bank.inner_products()[0, 0], np.sum(true**2), rtol=1e-9)
        np.testing.assert_allclose(bank.traces(), 1.0, rtol=1e-9)


def tile_values(bank, X):
    """The raw kernel as tiles have it: a square of another may differ in the last digit."""
    from discernel.arrays import Buffers

    out = np.empty((len(X), len(X)))
    for rows_, columns in bank._engine.tiles():
        found = bank._engine.kernels.matrices(
            bank._engine.rows[rows_],
            None if rows_ == columns else bank._engine.rows[columns],
            Buffers(),
        )
        for position, matrix in found:
            if position == 0:
                out[rows_, columns] = matrix
                out[columns, rows_] = matrix.T
    return out


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=2), RBF(width=2e3)])
def test_selections_and_new_rows(kernel):
    X, new = rows() + 300.0, rows(20, seed=2) + 300.0
    kernels = [RBF(width=2.0), kernel]
    for bank in banks(kernels, X):
        part = bank.select(np.array([1]))
        V = np.random.default_rng(1).standard_normal((len(X), 2))
        np.testing.assert_allclose(part.products(V)[0], bank.products(V)[1], atol=1e-14)
        weights = np.array([0.0, 1.0])
        np.testing.assert_allclose(
            part.combined(np.array([1.0])), bank.combined(weights), atol=1e-14
        )
        combined = CombinedKernel(
            [kernel], bank.coefficients(weights)[1:], X, bank.centering(weights)
        )
        # On the training rows, what a new row is told is what the system was made of.
        np.testing.assert_allclose(combined(X), bank.combined(weights), atol=1e-9)
        np.testing.assert_allclose(combined.product(X, V), bank.products(V)[1], atol=1e-9)
        np.testing.assert_allclose(
            combined.product(new, V), combined(new) @ (V - V.mean(axis=0)), atol=1e-9
        )
