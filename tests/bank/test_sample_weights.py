"""Weights of rows in every bank: those of 2 have the matrices of rows that are there twice."""

import numpy as np
import pytest

from discernel.arrays.sample_weights import SampleWeights, check_sample_weight
from discernel.bank import DenseBank, FeatureBank, TiledBank, WithIdentity, gram_stack
from discernel.kernels import RBF, Linear

KERNELS = [RBF(width=1.0), RBF(width=3.0), Linear(), RBF(width=3e3)]
COUNTS = np.array([1, 3, 2, 1, 4, 1, 2, 2, 1, 5, 1, 1, 3, 2])


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).standard_normal((len(COUNTS), 3))


def make(kind, X, normalization="centered_trace", weights=None, kernels=KERNELS):
    options = {"normalization": normalization, "sample_weights": weights}
    if kind == "dense":
        return DenseBank(gram_stack(kernels, X), **options)
    if kind == "tiled":
        return TiledBank(kernels, X, n_threads=1, cache_bytes=8 * 5 * 16 * 16, **options)
    return FeatureBank.from_kernels(kernels, X, **options)


def both(kind, X, normalization="centered_trace"):
    """Return the bank with counts, that of repeated rows, and the basis that joins them."""
    repeated = np.repeat(np.arange(len(COUNTS)), COUNTS)
    basis = np.zeros((len(repeated), len(COUNTS)))
    basis[np.arange(len(repeated)), repeated] = 1.0 / np.sqrt(COUNTS[repeated])
    weights = SampleWeights(COUNTS.astype(float))
    weighted = make(kind, X, normalization, weights)
    return weighted, make(kind, X[repeated], normalization), basis


KINDS = pytest.mark.parametrize("kind", ["dense", "tiled", "factored"])
NORMALIZATIONS = pytest.mark.parametrize("normalization", ["centered_trace", "trace"])


@KINDS
@NORMALIZATIONS
def test_counts_are_repeated_rows(rows, kind, normalization):
    weighted, repeated, basis = both(kind, rows, normalization)
    close = {"rtol": 1e-8, "atol": 1e-8 * repeated.scales.max() ** 0.0}
    np.testing.assert_allclose(weighted.scales, repeated.scales, rtol=1e-8)
    np.testing.assert_allclose(weighted.traces(), repeated.traces(), rtol=1e-8)
    mu = np.array([0.2, 0.3, 0.1, 0.4])
    np.testing.assert_allclose(
        weighted.combined(mu), basis.T @ repeated.combined(mu) @ basis, **close
    )
    V = np.random.default_rng(1).standard_normal((len(COUNTS), 2))
    np.testing.assert_allclose(basis @ weighted.products(V), repeated.products(basis @ V), **close)
    np.testing.assert_allclose(weighted.compressed(V), repeated.compressed(basis @ V), **close)
    S = V @ V.T
    np.testing.assert_allclose(
        weighted.inner(S), repeated.inner(basis @ S @ basis.T), rtol=1e-8, atol=1e-8
    )
    np.testing.assert_allclose(weighted.inner_products(), repeated.inner_products(), rtol=1e-8)
    assert weighted.total == repeated.n_samples == repeated.total


@KINDS
def test_the_centring_of_new_rows_is_weighted(rows, kind):
    weighted, repeated, _ = both(kind, rows)
    mu, new = np.array([0.2, 0.3, 0.1, 0.4]), np.random.default_rng(2).standard_normal((5, 3))
    counted, again = weighted.centering(mu), repeated.centering(mu)
    raw = gram_stack(KERNELS, np.vstack([rows, new]))[:, len(rows) :, : len(rows)]
    cross = np.tensordot(weighted.coefficients(mu), raw, 1)
    expected = again.apply(np.repeat(cross, COUNTS, axis=1))
    np.testing.assert_allclose(
        np.repeat(counted.apply(cross.copy()), COUNTS, axis=1), expected, atol=1e-9
    )
    vectors = np.random.default_rng(3).standard_normal((len(rows), 2))
    other, offset = counted.of_product(vectors)
    np.testing.assert_allclose(other.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(
        cross @ other - offset, counted.apply(cross.copy()) @ vectors, atol=1e-9
    )


@KINDS
def test_weights_go_with_rows_into_a_part(rows, kind):
    weighted, _, _ = both(kind, rows)
    some = np.array([0, 2, 4, 5, 9, 12])
    part = weighted.subset(some)
    fresh = make(kind, rows[some], weights=SampleWeights(COUNTS[some].astype(float)))
    mu = np.full(4, 0.25)
    np.testing.assert_allclose(part.combined(mu), fresh.combined(mu), atol=1e-8)
    np.testing.assert_allclose(part.total, COUNTS[some].sum())


def test_the_identity_has_the_trace_of_repeated_rows(rows):
    weighted, repeated, basis = both("dense", rows)
    weighted, repeated = WithIdentity(weighted), WithIdentity(repeated)
    V = np.random.default_rng(1).standard_normal((len(COUNTS), 2))
    np.testing.assert_allclose(
        basis @ weighted.products(V), repeated.products(basis @ V), atol=1e-8
    )
    mu = np.full(5, 0.2)
    np.testing.assert_allclose(
        weighted.combined(mu), basis.T @ repeated.combined(mu) @ basis, atol=1e-9
    )


@KINDS
def test_scaling_weights_changes_nothing(rows, kind):
    given = np.random.default_rng(4).integers(1, 9, len(rows)).astype(float)
    one, other = (make(kind, rows, weights=SampleWeights.of(c * given)) for c in (1.0, 1e-3))
    mu = np.full(4, 0.25)
    np.testing.assert_allclose(one.combined(mu), other.combined(mu), rtol=1e-9, atol=1e-12)
    assert one.total == pytest.approx(len(rows))


# ---- the weights themselves --------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1.0, 0.3, 1e17, 1e200, 1e307, 1e-200, 1e-300])
def test_weights_are_relative_whether_whole_or_not(factor):
    found = SampleWeights.of(factor * np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(found.values, [0.5, 1.0, 1.5])
    assert found.total == pytest.approx(3)
    assert found.effective == pytest.approx(36 / 14)
    assert SampleWeights.of(np.full(3, factor)).is_equal


def test_projected_columns_are_orthogonal_to_the_roots():
    weights = SampleWeights.of(np.array([0.5, 1.0, 3.0]))
    found = weights.project(np.arange(6.0).reshape(3, 2) ** 2)
    np.testing.assert_allclose(weights.roots @ found, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([1.0, -1.0, 1.0], "at least 0. Got -1.0 for row 1"),
        ([1.0, np.nan, 1.0], "finite.*Got nan for row 1"),
        ([1.0, 1.0, np.inf], "finite.*Got inf for row 2"),
        ([1.0, 1.0], r"one number per row, here shape \(3,\). Got shape \(2,\)"),
        (np.ones((3, 1)), r"Got shape \(3, 1\)"),
        ([0.0, 0.0, 0.0], "at least one non-zero number. Got 0 for all 3 rows"),
        (["a", "b", "c"], "must be numbers.*Got a list"),
        (
            [1e200, 1.0, 1e-300],
            "ratio.*Got 1e\\+200 and 1e-300. Set the smallest weights to 0",
        ),
        ([1.0, 1e15, 2.0], "all rows but one .*Got 1e\\+15 for one row and 3 for all others"),
    ],
)
def test_bad_weights_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        check_sample_weight(given, 3)


def test_weights_that_nothing_would_notice_are_0():
    np.testing.assert_array_equal(check_sample_weight([1.0, 1e-40], 2), [1.0, 0.0])
    np.testing.assert_array_equal(check_sample_weight(2, 3), [2.0, 2.0, 2.0])
