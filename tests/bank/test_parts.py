"""Some kernels of a bank, some of its rows, and the identity among them: plain formulas hold."""

import numpy as np
import pytest
import scipy.linalg

from discernel.bank import DenseBank, FeatureBank, TiledBank, WithIdentity
from discernel.kernels import RBF, Linear, Polynomial
from discernel.programs.rkda import RKDAProgram
from discernel.targets import ClassTarget
from tests import reference

KINDS = ["dense", "tiled", "factored"]
NORMALIZATIONS = ["centered_trace", "trace"]


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).standard_normal((40, 3)) + 2.0


def kernels_on(rows):
    kernels = [RBF(width=1.0), RBF(width=5.0), Linear(), Polynomial(degree=2)]
    return [kernel.resolve(rows) for kernel in kernels]


def make(kind, rows, normalization="centered_trace"):
    kernels = kernels_on(rows)
    if kind == "dense":
        return DenseBank([kernel(rows) for kernel in kernels], normalization=normalization)
    if kind == "tiled":
        return TiledBank(kernels, rows, normalization=normalization, n_threads=1)
    return FeatureBank.from_kernels(kernels, rows, normalization=normalization)


def matrices(rows, normalization="centered_trace"):
    """The kernels as the papers write them: PGP over its trace, or m over that of G."""
    grams = np.array([kernel(rows) for kernel in kernels_on(rows)])
    if normalization == "centered_trace":
        return reference.trace_normalized(grams)
    return np.array(
        [P * len(rows) / np.trace(G) for P, G in zip(reference.centered(grams), grams, strict=True)]
    )


def assert_are_matrices(bank, expected):
    """All that programs ask of matrices, by explicit ones."""
    rng = np.random.default_rng(1)
    p, m, _ = expected.shape
    weights, V = rng.dirichlet(np.ones(p)), rng.standard_normal((m, 2))
    assert (bank.n_kernels, bank.n_samples) == (p, m)
    total = np.tensordot(weights, expected, 1)
    np.testing.assert_allclose(bank.combined(weights), total, atol=1e-10)
    np.testing.assert_allclose(bank.products(V), expected @ V, atol=1e-9)
    basis = scipy.linalg.orth(V)
    np.testing.assert_allclose(bank.compressed(basis), basis.T @ expected @ basis, atol=1e-9)
    solved = np.linalg.solve(total + 0.1 * np.eye(m), V)
    np.testing.assert_allclose(bank.system(weights, 0.1).solve(V), solved, atol=1e-7)


def assert_is_bank_of(bank, expected):
    """All that is asked of a bank, by explicit matrices."""
    assert_are_matrices(bank, expected)
    V = np.random.default_rng(1).standard_normal((bank.n_samples, 2))
    S = V @ V.T
    traces = np.trace(expected, axis1=1, axis2=2)
    np.testing.assert_allclose(bank.traces(), traces, rtol=1e-9)
    assert (bank.norms() >= np.linalg.norm(expected, 2, axis=(1, 2)) * (1 - 1e-9)).all()
    assert (bank.norms() <= traces * (1 + 1e-9)).all()
    np.testing.assert_allclose(bank.inner(S), np.einsum("ijk,jk->i", expected, S), atol=1e-8)
    products = np.einsum("ijk,ljk->il", expected, expected)
    np.testing.assert_allclose(bank.inner_products(), products, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_bank_is_its_matrices(rows, kind, normalization):
    assert_is_bank_of(make(kind, rows, normalization), matrices(rows, normalization))


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_selected_kernels_are_as_they_were(rows, kind, normalization):
    """In any order, and selected twice."""
    bank, expected = make(kind, rows, normalization), matrices(rows, normalization)
    part = bank.select(np.array([3, 0, 1]))
    assert_is_bank_of(part, expected[[3, 0, 1]])
    assert_is_bank_of(part.select(np.array([2, 0])), expected[[1, 3]])
    assert_is_bank_of(bank, expected)
    np.testing.assert_array_equal(part.expand(np.array([1.0, 2.0, 3.0])), [2.0, 3.0, 0.0, 1.0])


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_centring_of_a_selection_is_that_of_its_kernels(rows, kind, normalization):
    """Between new rows and the training rows: k − mean(k) − r + mean(r)."""
    bank = make(kind, rows, normalization).select(np.array([2, 1]))
    weights, kernels = np.array([0.3, 0.7]), [kernels_on(rows)[i] for i in (2, 1)]
    raw = sum(c * k(rows) for c, k in zip(weights * bank.scales, kernels, strict=True))
    centering = bank.centering(weights)
    np.testing.assert_allclose(centering.row_means, raw.mean(axis=1), rtol=1e-9)
    assert centering.grand_mean == pytest.approx(raw.mean(), rel=1e-9)
    new = np.random.default_rng(2).standard_normal((5, 3))
    cross = sum(c * k(new, rows) for c, k in zip(weights * bank.scales, kernels, strict=True))
    V = np.random.default_rng(3).standard_normal((40, 2))
    expected = cross - cross.mean(axis=1, keepdims=True) - raw.mean(axis=1) + raw.mean()
    vectors, offset = centering.of_product(V)
    np.testing.assert_allclose(cross @ vectors - offset, expected @ V, atol=1e-8)
    np.testing.assert_allclose(centering.apply(cross.copy()), expected, atol=1e-9)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_part_of_the_rows_is_centred_and_normalised_anew(rows, kind, normalization):
    chosen = np.arange(5, 30)
    part = make(kind, rows, normalization).subset(chosen)
    grams = np.array([kernel(rows) for kernel in kernels_on(rows)])[:, 5:30, 5:30]
    expected = reference.trace_normalized(grams)
    if normalization == "trace":
        scales = 25 / np.trace(grams, axis1=1, axis2=2)
        expected = scales[:, None, None] * reference.centered(grams)
    assert_is_bank_of(part, expected)


# ---- the identity among the kernels ----------------------------------------------------------


def with_identity(rows):
    return np.concatenate([np.eye(len(rows))[None] / len(rows), matrices(rows)])


@pytest.mark.parametrize("kind", KINDS)
def test_the_identity_comes_first_with_trace_one(rows, kind):
    assert_are_matrices(WithIdentity(make(kind, rows)), with_identity(rows))


# ---- the system that is kept -----------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_selection_does_not_keep_the_system_of_other_kernels(rows, kind):
    bank, expected = make(kind, rows), matrices(rows)
    weights, T = np.array([0.4, 0.3, 0.2, 0.1]), rows - rows.mean(axis=0)
    bank.system(weights, 0.1).solve(T)
    turned = bank.select(np.array([3, 2, 1, 0]))
    N = np.tensordot(weights, expected[::-1], 1) + 0.1 * np.eye(40)
    np.testing.assert_allclose(turned.system(weights, 0.1).solve(T), np.linalg.solve(N, T))


def test_a_system_is_there_again_after_its_memory_was_taken(rows):
    bank, T = make("dense", rows), rows - rows.mean(axis=0)
    weights = np.full(4, 0.25)
    first = bank.system(weights, 0.1)
    expected, diagonal = first.solve(T), first.inverse_diagonal()
    again = bank.system(weights, 0.1)
    np.testing.assert_allclose(again.solve(T), expected, rtol=1e-12)
    np.testing.assert_allclose(diagonal, bank.inverse(weights, 0.1).inverse_diagonal(), rtol=1e-9)


def test_what_happens_to_the_weights_later_does_not_change_which_system_is_kept(rows):
    bank, expected, T = make("dense", rows), matrices(rows), rows - rows.mean(axis=0)
    weights = np.array([0.7, 0.1, 0.1, 0.1])
    bank.system(weights, 0.1)
    weights[:] = [0.1, 0.1, 0.1, 0.7]
    N = np.tensordot(weights, expected, 1) + 0.1 * np.eye(40)
    np.testing.assert_allclose(bank.system(weights, 0.1).solve(T), np.linalg.solve(N, T))


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_subspace_sees_is_exactly_symmetric(rows, kind):
    """SᵀK_iS is, but for rounding, which a factorisation would take one half of."""
    target = ClassTarget.from_labels(rows[:, 0] > 2)
    basis = scipy.linalg.orth(np.random.default_rng(4).standard_normal((40, 7)))
    program = RKDAProgram(make(kind, rows), target, 0.1)
    model = program.restricted(program.subspace(basis))
    for unit in np.eye(4):
        matrix = model.bank.combined(unit)
        np.testing.assert_array_equal(matrix, matrix.T)
