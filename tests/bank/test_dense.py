"""The dense bank against explicit P G P, its centring on new rows, and the combined kernel."""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from discernel import learn_kernel
from discernel.arrays import ShiftedRows
from discernel.bank import CombinedKernel, DenseBank, WithIdentity, gram_stack
from discernel.exceptions import (
    DroppedKernelWarning,
    InvalidGramError,
    InvalidInputError,
    NumericalError,
)
from discernel.kernels import (
    RBF,
    Cosine,
    Exponential,
    Function,
    Kernel,
    Linear,
    Pairwise,
    Polynomial,
    Precomputed,
)
from tests.conftest import make_problem

KERNELS = [Linear(), RBF(width=1.5), Polynomial(degree=2), Exponential(gamma=0.7)]
NORMALIZATIONS = ["centered_trace", "trace"]
every_normalization = pytest.mark.parametrize("normalization", NORMALIZATIONS)


def read_only(array: Any) -> np.ndarray:
    array = np.array(array, dtype=np.float64)
    array.flags.writeable = False
    return array


def make_rows(n_rows: int, seed: int) -> np.ndarray:
    # Off-centre on purpose: centring must have something to do.
    return read_only(np.random.default_rng(seed).normal(loc=1.0, size=(n_rows, 3)))


@pytest.fixture
def X() -> np.ndarray:
    return make_rows(14, seed=0)


@pytest.fixture
def grams(X: np.ndarray) -> np.ndarray:
    return read_only([kernel(X) for kernel in KERNELS])


@pytest.fixture
def weights() -> np.ndarray:
    return read_only([0.4, 0.0, 1.3, 0.7])


@pytest.fixture
def vectors() -> np.ndarray:
    return read_only(np.random.default_rng(1).normal(size=(14, 5)))


def centred_and_normalised(grams: np.ndarray, normalization: str) -> np.ndarray:
    """P G P, divided by its own trace or by tr(G) / m, with P = I − 11ᵀ/m."""
    m = grams.shape[1]
    P = np.eye(m) - np.ones((m, m)) / m
    out = []
    for gram in grams:
        centred = P @ gram @ P
        trace = np.trace(centred) if normalization == "centered_trace" else np.trace(gram) / m
        out.append(centred / trace)
    return np.array(out)


def constant_among(grams: np.ndarray) -> DenseBank:
    """A bank whose second of five candidates is constant."""
    stack = np.insert(grams, 1, 0.3, axis=0)
    with pytest.warns(DroppedKernelWarning, match="kernel 1"):
        return DenseBank(stack)


# --- against the formulas -----------------------------------------------------------------------


@every_normalization
def test_combined_equals_explicit_centring(grams, weights, normalization) -> None:
    bank = DenseBank(grams, normalization=normalization)
    expected = np.tensordot(weights, centred_and_normalised(grams, normalization), axes=1)
    assert_allclose(bank.combined(weights), expected, rtol=1e-10, atol=1e-13)


@every_normalization
@pytest.mark.parametrize("n_vectors", [1, 5])
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_equal_explicit_centring(grams, vectors, normalization, n_vectors, order) -> None:
    V = np.array(vectors[:, :n_vectors], order=order)
    V.flags.writeable = False
    bank = DenseBank(grams, normalization=normalization)
    expected = centred_and_normalised(grams, normalization) @ V
    assert bank.products(V).shape == (4, 14, n_vectors)
    assert_allclose(bank.products(V), expected, rtol=1e-10, atol=1e-12)


@every_normalization
def test_traces_equal_those_of_the_centred_kernels(grams, normalization) -> None:
    expected = [np.trace(gram) for gram in centred_and_normalised(grams, normalization)]
    traces = DenseBank(grams, normalization=normalization).traces()
    assert_allclose(traces, expected, rtol=1e-12)
    assert np.allclose(traces, 1.0) is (normalization == "centered_trace")  # [Ye08]


def test_trace_normalization_makes_raw_traces_the_number_of_samples(grams) -> None:
    """[Kim06]: every raw matrix has trace m."""
    bank = DenseBank(grams, normalization="trace")
    scaled = bank.scales[:, None, None] * grams
    assert_allclose(np.trace(scaled, axis1=1, axis2=2), np.full(4, 14.0), rtol=1e-12)


@every_normalization
def test_scale_of_a_kernel_does_not_matter(grams, weights, normalization) -> None:
    factors = np.array([1e-3, 2.0, 50.0, 1e4])
    bank = DenseBank(grams, normalization=normalization)
    scaled = DenseBank(factors[:, None, None] * grams, normalization=normalization)
    assert_allclose(scaled.combined(weights), bank.combined(weights), rtol=1e-9, atol=1e-12)
    assert_allclose(scaled.scales * factors, bank.scales, rtol=1e-12)


@every_normalization
@pytest.mark.parametrize("ridge", [0.3, np.linspace(0.1, 2.0, 14)], ids=["number", "vector"])
def test_system_solves_and_inverts(grams, weights, vectors, normalization, ridge) -> None:
    system = DenseBank(grams, normalization=normalization).system(weights, ridge)
    combined = np.tensordot(weights, centred_and_normalised(grams, normalization), axes=1)
    inverse = np.linalg.inv(combined + np.diag(np.broadcast_to(ridge, 14)))
    assert_allclose(system.solve(vectors), inverse @ vectors, rtol=1e-9, atol=1e-11)
    assert_allclose(system.solve(vectors[:, :1]), inverse @ vectors[:, :1], rtol=1e-9, atol=1e-11)
    assert_allclose(system.inverse_diagonal(), np.diag(inverse), rtol=1e-9)


def test_no_question_spoils_another(grams, weights, vectors) -> None:
    """The diagonal of the inverse takes the memory of the factor; nobody gets to know."""
    bank = DenseBank(grams)
    system = bank.system(weights, 0.3)
    first = system.solve(vectors)
    assert_array_equal(system.solve(vectors), first)
    diagonal = system.inverse_diagonal()
    N = bank.combined(weights) + 0.3 * np.eye(bank.n_samples)
    assert_allclose(diagonal, np.diag(np.linalg.inv(N)), rtol=1e-10)
    assert_allclose(system.solve(vectors), first, rtol=1e-12)
    assert_array_equal(system.inverse_diagonal(), diagonal)
    assert bank.system(weights, 0.3) is system
    other = bank.system(weights, 0.4)
    assert_allclose(system.solve(vectors), first, rtol=1e-12)
    assert_allclose((N + 0.1 * np.eye(len(N))) @ other.solve(vectors), vectors, atol=1e-10)


def test_systems_and_banks_do_not_keep_each_other(grams, weights) -> None:
    """Without waiting for the garbage collector: they are the largest arrays there are."""
    bank = DenseBank(grams)
    system = bank.system(weights, 0.3)
    gone = [weakref.ref(bank), weakref.ref(system)]
    gc.disable()
    try:
        del bank, system
        assert [reference() for reference in gone] == [None, None]
    finally:
        gc.enable()


def test_an_inverse_answers_without_showing_itself(grams, weights, vectors) -> None:
    bank = DenseBank(grams)
    inverse = bank.inverse(weights, 0.3)
    N = bank.combined(weights) + 0.3 * np.eye(bank.n_samples)
    M = np.linalg.inv(N)
    assert_allclose(inverse.solve(vectors), M @ vectors, rtol=1e-9, atol=1e-11)
    assert_allclose(inverse.inverse_diagonal(), np.diag(M), rtol=1e-10)
    rng = np.random.default_rng(0)
    d, L, R = rng.random(len(N)), rng.random((len(N), 2)), rng.random((len(N), 2))
    S = 0.5 * (M @ np.diag(d) @ M - 0.5 * (L @ R.T + R @ L.T))
    found, trace = inverse.inner(d, L, R, 0.5)
    assert_allclose(found, bank.inner(S), rtol=1e-9)
    assert trace == pytest.approx(np.trace(S))
    with pytest.raises(RuntimeError, match="must be the last call"):
        inverse.solve(vectors)


def test_the_memory_of_a_system_goes_to_the_next_one(grams, weights, vectors) -> None:
    bank = DenseBank(grams)
    first = bank.system(weights, 0.3)
    expected = first.solve(vectors)
    second = bank.system(weights, 0.4)  # the first is still held: it keeps its memory
    assert_array_equal(first.solve(vectors), expected)
    assert not bank.workspace.spare
    del first
    (memory,) = bank.workspace.spare
    third = bank.systems(weights)(0.3)
    assert not bank.workspace.spare
    assert np.shares_memory(third._factor._lower, memory)
    assert_array_equal(third.solve(vectors), expected)
    del second, third
    assert len(bank.workspace.spare) == 1, "one is enough"


def test_combined_is_linear_in_weights(grams) -> None:
    rng = np.random.default_rng(2)
    bank = DenseBank(grams)
    w, v = rng.random(4), rng.random(4)
    assert_allclose(
        bank.combined(2.0 * w + 0.5 * v),
        2.0 * bank.combined(w) + 0.5 * bank.combined(v),
        rtol=1e-10,
        atol=1e-13,
    )


def test_products_sum_to_the_combined_product(grams, weights, vectors) -> None:
    bank = DenseBank(grams)
    total = np.tensordot(weights, bank.products(vectors), axes=1)
    assert_allclose(total, bank.combined(weights) @ vectors, rtol=1e-9, atol=1e-12)


def test_combined_annihilates_ones_and_is_symmetric_semidefinite(grams, weights) -> None:
    combined = DenseBank(grams).combined(weights)
    assert_allclose(combined @ np.ones(14), np.zeros(14), atol=1e-12)
    assert_allclose(combined, combined.T, atol=1e-14)
    eigenvalues = np.linalg.eigvalsh(combined)
    assert eigenvalues[0] > -1e-12
    assert eigenvalues[-1] > 0.1


def test_centring_is_idempotent(grams, weights) -> None:
    centred = centred_and_normalised(grams, "centered_trace")
    assert_allclose(
        DenseBank(centred).combined(weights),
        DenseBank(grams).combined(weights),
        rtol=1e-9,
        atol=1e-12,
    )


def test_no_weight_gives_a_matrix_of_zeros(grams) -> None:
    assert_array_equal(DenseBank(grams).combined(np.zeros(4)), np.zeros((14, 14)))


def test_combined_is_a_new_matrix_at_every_call(grams, weights) -> None:
    bank = DenseBank(grams)
    first = bank.combined(weights)
    expected = first.copy()
    first[:] = np.nan
    assert_array_equal(bank.combined(weights), expected)


# --- what is given stays as it is ---------------------------------------------------------------


@pytest.mark.parametrize("writeable", [True, False])
def test_stack_is_neither_copied_nor_changed(grams, weights, vectors, writeable) -> None:
    stack = grams.copy()
    stack.flags.writeable = writeable
    bank = DenseBank(stack, names=list("abcd"))
    assert np.shares_memory(bank._grams, stack)
    bank.combined(weights)
    bank.products(vectors)
    bank.traces()
    bank.centering(weights)
    bank.system(weights, 0.1).solve(vectors)
    WithIdentity(bank).combined(np.append(0.1, weights))
    bank.check_definite()
    assert_array_equal(stack, grams)
    assert stack.flags.writeable is writeable


def test_weights_ridge_and_right_sides_stay_as_they_are(grams, weights, vectors) -> None:
    ridge = read_only(np.full(14, 0.5))
    before = weights.copy(), vectors.copy(), ridge.copy()
    bank = DenseBank(grams)
    system = bank.system(weights, ridge)
    system.solve(vectors)
    bank.products(vectors)
    for now, then in zip((weights, vectors, ridge), before, strict=True):
        assert_array_equal(now, then)


def test_list_of_matrices_and_single_precision_are_taken(grams, weights) -> None:
    expected = DenseBank(grams).combined(weights)
    assert_array_equal(DenseBank(list(grams)).combined(weights), expected)
    single = DenseBank(grams.astype(np.float32)).combined(weights)
    assert single.dtype == np.float64
    assert_allclose(single, expected, atol=1e-5)


# --- constant kernels ---------------------------------------------------------------------------


@every_normalization
def test_constant_kernel_is_left_out_with_a_warning_that_names_it(grams, normalization) -> None:
    stack = np.insert(grams, 1, 0.3, axis=0)
    with pytest.warns(DroppedKernelWarning, match=r"constant on the training set: flat\. ") as seen:
        bank = DenseBank(
            stack, ["linear", "flat", "rbf", "poly", "exp"], normalization=normalization
        )
    assert len(seen) == 1
    assert (bank.n_candidates, bank.n_kernels) == (5, 4)
    assert_array_equal(bank.kept, [0, 2, 3, 4])
    assert_allclose(bank.scales, DenseBank(grams, normalization=normalization).scales, rtol=1e-12)


def test_all_constant_kernels_are_named(grams) -> None:
    stack = np.concatenate([np.zeros((1, 14, 14)), grams, np.ones((1, 14, 14))])
    with pytest.warns(DroppedKernelWarning, match="kernel 0, kernel 5"):
        bank = DenseBank(stack)
    assert_array_equal(bank.kept, [1, 2, 3, 4])


def test_far_too_wide_gaussian_is_constant(X) -> None:
    names = ["fine", "too wide"]
    with pytest.warns(DroppedKernelWarning, match="constant on the training set: too wide"):
        DenseBank(gram_stack([RBF(width=1.0), RBF(width=1e9)], X), names)


def test_kernel_that_varies_a_little_is_kept(X) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bank = DenseBank(gram_stack([RBF(width=1.0), RBF(width=1e4)], X))
    assert bank.n_kernels == 2


def test_left_out_kernels_change_nothing_else(grams, weights, vectors) -> None:
    bank, without = constant_among(grams), DenseBank(grams)
    assert_array_equal(bank.combined(weights), without.combined(weights))
    assert_array_equal(bank.products(vectors), without.products(vectors))
    assert_array_equal(bank.traces(), without.traces())
    assert_array_equal(bank.centering(weights).row_means, without.centering(weights).row_means)


def test_nothing_but_constant_kernels_is_an_error_that_names_them() -> None:
    stack = np.stack([np.ones((6, 6)), np.zeros((6, 6))])
    with pytest.raises(InvalidInputError, match="all 2 are constant: flat, zero"):
        DenseBank(stack, ["flat", "zero"])


def test_one_row_tells_nothing_apart() -> None:
    with pytest.raises(InvalidInputError, match="At least one kernel must vary over the training"):
        DenseBank(np.ones((1, 1, 1)))


def test_expand_and_coefficients_give_zero_to_left_out_kernels(grams, weights) -> None:
    bank = constant_among(grams)
    assert_array_equal(bank.expand(np.array([1.0, 2.0, 3.0, 4.0])), [1.0, 0.0, 2.0, 3.0, 4.0])
    expected = [weights[0] * bank.scales[0], 0.0, *(weights[1:] * bank.scales[1:])]
    assert_allclose(bank.coefficients(weights), expected, rtol=1e-14)


@every_normalization
def test_coefficients_combine_the_raw_candidates(grams, weights, normalization) -> None:
    bank = DenseBank(grams, normalization=normalization)
    raw = np.tensordot(bank.coefficients(weights), grams, axes=1)
    P = np.eye(14) - 1.0 / 14
    assert_allclose(bank.combined(weights), P @ raw @ P, rtol=1e-10, atol=1e-13)


# --- centring of new rows -----------------------------------------------------------------------


def test_centering_of_new_rows_equals_centring_in_feature_space(X) -> None:
    """With the linear kernel the features are the rows: K̃(x) = (x − x̄)(X − x̄)ᵀ."""
    new = make_rows(6, seed=3)
    bank = DenseBank((X @ X.T)[None])
    centred_X, centred_new = X - X.mean(axis=0), new - X.mean(axis=0)
    trace = np.sum(centred_X**2)
    centering = bank.centering(np.ones(1))
    cross = centering.apply(bank.scales[0] * (new @ X.T))
    assert_allclose(cross, centred_new @ centred_X.T / trace, rtol=1e-10, atol=1e-14)


def test_centering_of_a_combination_equals_centring_in_feature_space(X) -> None:
    """Two linear kernels on different columns: their features side by side."""
    new = make_rows(6, seed=3)
    kernels = [Linear().on([0]), Linear().on([1, 2])]
    bank = DenseBank(gram_stack(kernels, X), normalization="trace")
    coefficients = bank.coefficients(np.array([0.7, 1.9]))
    scale = np.sqrt(coefficients[[0, 1, 1]])
    mean = (scale * X).mean(axis=0)
    expected = (scale * new - mean) @ (scale * X - mean).T
    raw = sum(c * kernel(new, X) for c, kernel in zip(coefficients, kernels, strict=True))
    cross = bank.centering(np.array([0.7, 1.9])).apply(raw)
    assert_allclose(cross, expected, rtol=1e-9, atol=1e-12)


@every_normalization
def test_centering_of_the_training_rows_gives_the_combined_kernel(
    grams, weights, normalization
) -> None:
    bank = DenseBank(grams, normalization=normalization)
    raw = np.tensordot(bank.coefficients(weights), grams, axes=1)
    centred = bank.centering(weights).apply(raw)
    assert centred is raw  # in place
    assert_allclose(centred, bank.combined(weights), rtol=1e-10, atol=1e-13)


# --- the identity as a kernel -------------------------------------------------------------------


def test_identity_comes_first_with_trace_one(grams, weights, vectors) -> None:
    """[Ye08] section 4: θ_0 multiplies I / m."""
    bank = WithIdentity(DenseBank(grams))
    w = np.append(0.6, weights)
    matrices = np.concatenate(
        [np.eye(14)[None] / 14, centred_and_normalised(grams, "centered_trace")]
    )
    expected = np.tensordot(w, matrices, axes=1)
    assert_allclose(bank.combined(w), expected, rtol=1e-10, atol=1e-13)
    assert_allclose(bank.products(vectors), matrices @ vectors, rtol=1e-10, atol=1e-12)
    assert (bank.n_samples, bank.n_kernels) == (14, 5)


def test_identity_is_a_ridge(grams, weights, vectors) -> None:
    inner = DenseBank(grams)
    system = WithIdentity(inner).system(np.append(0.6, weights), 0.1)
    ridge = inner.system(weights, 0.1 + 0.6 / 14)
    assert_allclose(system.solve(vectors), ridge.solve(vectors), rtol=1e-9)
    assert_allclose(system.inverse_diagonal(), ridge.inverse_diagonal(), rtol=1e-9)


# --- matrices that are not semidefinite ---------------------------------------------------------


def test_trusted_indefinite_kernel_breaks_the_system_and_is_then_found(grams) -> None:
    stack = np.concatenate([grams, -np.eye(14)[None] + 2.0 * grams[1]])
    assert np.linalg.eigvalsh(stack[4])[0] < -0.1
    bank = DenseBank(stack, [*"abcd", "culprit"], trusted=[True] * 5)
    with pytest.raises(NumericalError, match="Cholesky factorisation broke down at row"):
        bank.system(np.array([0.0, 0.0, 0.0, 0.0, 1.0]), 1e-9)
    with pytest.raises(InvalidGramError, match="culprit has the eigenvalue -"):
        bank.check_definite()


# --- stacks of raw matrices ---------------------------------------------------------------------

MIXED = [
    RBF(width=1.5),
    Linear(),
    Exponential(gamma=0.7),
    RBF(width=1.5).on([0, 2]),
    Cosine(),
    2.0 * Polynomial(degree=3),
    RBF(gamma=0.3).on([1]),
    Exponential(width=2.0).on([0, 2]).named("e"),
    RBF(length_scale=0.8) + Linear(),
    Pairwise("laplacian", (("gamma", 0.4),)),
    Function(lambda X, Z: np.asarray(X) @ np.asarray(Z).T + 1.0),
    Linear().on([1]),
    0.5 * RBF(width=3.0).on([0, 2]),
]


def test_stack_with_shared_distances_equals_one_kernel_at_a_time(X) -> None:
    stack = gram_stack(MIXED, X)
    assert stack.shape == (13, 14, 14)
    for matrix, kernel in zip(stack, MIXED, strict=True):
        assert_allclose(matrix, kernel(X), rtol=1e-14, atol=1e-15, err_msg=repr(kernel))


def test_distances_are_computed_once_for_kernels_on_the_same_columns(X, monkeypatch) -> None:
    calls = []
    original = ShiftedRows.squared_distances

    def counted(self: ShiftedRows, *args: Any) -> np.ndarray:
        calls.append((len(self.values), self.values.shape[1] - 2))
        return original(self, *args)

    monkeypatch.setattr(ShiftedRows, "squared_distances", counted)
    kernels = [RBF(gamma=0.1), Exponential(gamma=0.1), 2.0 * RBF(gamma=0.2), RBF(gamma=0.3)]
    gram_stack([*kernels, RBF(gamma=0.1).on([0]), RBF(gamma=0.2).on([0]).named("x")], X)
    assert calls == [(14, 3), (14, 1)]


def test_stack_of_sparse_rows(X) -> None:
    kernels = [RBF(width=1.5), Linear(), RBF(width=1.5).on([0, 2])]
    assert_allclose(gram_stack(kernels, sp.csr_matrix(X)), gram_stack(kernels, X), atol=1e-12)


def test_stack_of_precomputed_kernels_is_the_turned_stack(grams) -> None:
    kernels_last = read_only(np.moveaxis(grams, 0, -1))
    assert_array_equal(gram_stack([Precomputed(i) for i in range(4)], kernels_last), grams)


# --- the combined kernel ------------------------------------------------------------------------


def combined_kernel(kernels: list[Kernel], X: Any, weights: np.ndarray) -> CombinedKernel:
    bank = DenseBank(gram_stack(kernels, X))
    return CombinedKernel(kernels, bank.coefficients(weights), X, bank.centering(weights))


def test_combined_kernel_on_the_training_rows_is_the_banks(X, grams, weights) -> None:
    combined = combined_kernel(KERNELS, X, weights)
    assert_allclose(combined(X), DenseBank(grams).combined(weights), rtol=1e-9, atol=1e-12)


def test_combined_kernel_on_new_rows_equals_the_centred_sum(X) -> None:
    """K̃(x) = k − 1ᵀk/m − (G1/m − 1ᵀG1/m²), kernel by kernel."""
    new = make_rows(6, seed=4)
    weights = np.linspace(0.2, 1.4, len(MIXED))
    expected = np.zeros((6, 14))
    for weight, kernel in zip(weights, MIXED, strict=True):
        gram, cross = kernel(X), kernel(new, X)
        centred = cross - cross.mean(axis=1)[:, None] - gram.mean(axis=0)[None] + gram.mean()
        P = np.eye(14) - 1.0 / 14
        expected += weight * centred / np.trace(P @ gram @ P)
    assert_allclose(combined_kernel(MIXED, X, weights)(new), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("block_bytes", "blocks"),
    [(1, [1] * 10), (8 * 14 * 3, [3, 3, 3, 1]), (8 * 14 * 5, [5, 5]), (8 * 14 * 10, [10])],
)
def test_product_in_blocks_of_rows_equals_the_whole_product(
    X, vectors, weights, monkeypatch, block_bytes, blocks
) -> None:
    new = make_rows(10, seed=5)
    seen = []

    def spy(X: Any, Z: Any) -> np.ndarray:
        seen.append(len(X))
        return X @ Z.T

    kernels = [RBF(width=1.5), Function(spy), Linear().on([0]), Cosine()]
    combined = combined_kernel(kernels, X, weights + 0.1)
    expected = combined(new) @ vectors
    seen.clear()
    monkeypatch.setattr("discernel.kernels.weighted._BLOCK_BYTES", block_bytes)
    assert_allclose(combined.product(new, vectors), expected, rtol=1e-10, atol=1e-13)
    assert seen == blocks


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_product_of_sparse_rows_in_blocks(X, vectors, monkeypatch, container) -> None:
    new = make_rows(10, seed=5)
    weights = np.array([0.4, 0.6, 0.9])
    kernels = [RBF(width=1.5), Linear(), RBF(width=1.0).on([0, 2])]
    expected = combined_kernel(kernels, X, weights)(new) @ vectors
    monkeypatch.setattr("discernel.kernels.weighted._BLOCK_BYTES", 8 * 14 * 4)
    sparse = combined_kernel(kernels, container(X), weights)
    assert_allclose(sparse.product(container(new), vectors), expected, rtol=1e-9, atol=1e-12)


def test_combined_kernel_of_precomputed_matrices(X, grams, weights, vectors, monkeypatch) -> None:
    monkeypatch.setattr("discernel.kernels.weighted._BLOCK_BYTES", 8 * 14 * 4)
    new = make_rows(10, seed=6)
    bank = DenseBank(grams)
    coefficients, centering = bank.coefficients(weights), bank.centering(weights)
    stack = read_only(np.stack([kernel(new, X) for kernel in KERNELS], axis=-1))
    precomputed = [Precomputed(i) for i in range(4)]
    from_stack = CombinedKernel(precomputed, coefficients, None, centering)
    from_rows = CombinedKernel(KERNELS, coefficients, X, centering)
    assert_allclose(from_stack(stack), from_rows(new), rtol=1e-10, atol=1e-13)
    assert_allclose(
        from_stack.product(stack, vectors), from_rows(new) @ vectors, rtol=1e-9, atol=1e-12
    )


def test_combined_kernel_changes_neither_rows_nor_matrices(X, grams, weights, vectors) -> None:
    bank = DenseBank(grams)
    stack = np.moveaxis(grams, 0, -1).copy()
    before = stack.copy()
    combined = CombinedKernel(
        [Precomputed(i) for i in range(4)],
        bank.coefficients(weights),
        None,
        bank.centering(weights),
    )
    combined.product(stack, vectors)
    combined(stack)
    assert_array_equal(stack, before)


def test_single_precomputed_matrix_is_left_as_it_is(X, grams) -> None:
    gram = grams[1].copy()
    bank = DenseBank(gram[None])
    one = np.ones(1)
    combined = CombinedKernel([Precomputed(0)], bank.coefficients(one), None, bank.centering(one))
    assert_allclose(combined(gram), bank.combined(one), rtol=1e-10, atol=1e-14)
    assert_array_equal(gram, grams[1])


def test_of_many_constant_kernels_the_warning_names_a_few():
    X = np.random.default_rng(0).standard_normal((20, 2))
    grams = np.stack([X @ X.T, *np.ones((70, 20, 20))])
    with pytest.warns(DroppedKernelWarning, match=r" and 65 more\. Such"):
        DenseBank(grams)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "criterion", ["auto", "rkda", "fdr", "akfd", "alignment", "margin", "separability"]
)
def test_the_units_of_kernels_change_no_weight(criterion):
    """Not even units whose squares overflow."""
    grams, y = make_problem(30, 2, 3)
    expected = learn_kernel(grams, y, criterion=criterion).weights
    units = np.array([2.0**-600, 1.0, 2.0**600])[:, None, None]
    found = learn_kernel(grams * units, y, criterion=criterion).weights
    assert_allclose(found, expected, atol=1e-12)
