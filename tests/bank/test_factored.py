"""The bank of factors says what the one that stores everything says."""

from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp

from discernel import MultipleKernelDiscriminant
from discernel.bank import BankChoice, DenseBank, FeatureBank, gram_stack, make_bank
from discernel.bank.ranks import factor_kernel, have_low_rank
from discernel.exceptions import DroppedKernelWarning, InvalidInputError
from discernel.kernels import RBF, Exponential, Linear, Polynomial, Precomputed, feature_kernels
from discernel.kernels.adapters import Function
from discernel.plan import choose_bank

N = 150


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).standard_normal((N, 5))
    X[:, 3] = np.random.default_rng(1).standard_t(2, N)  # far tails
    X[:, 4] = np.round(X[:, 4])  # ties
    return X


def candidates(X):
    kernels = [RBF().on([i]) for i in range(5)] + [Linear(), Polynomial(degree=2)]
    kernels += [RBF(width=2.0) + Linear(), 2.0 * RBF(width=3.0).on([0, 2]), Exponential()]
    return [kernel.resolve(X) for kernel in kernels]


def close(first, second):
    np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-10 * np.abs(second).max())


@pytest.mark.parametrize("normalization", ["centered_trace", "trace"])
def test_everything_equals_the_dense_bank(rows, normalization):
    kernels = candidates(rows)
    dense = DenseBank(gram_stack(kernels, rows), normalization=normalization)
    factored = FeatureBank.from_kernels(kernels, rows, normalization=normalization)
    rng = np.random.default_rng(1)
    V, S = rng.standard_normal((N, 3)), rng.standard_normal((N, N))
    S = S + S.T
    w = rng.dirichlet(np.ones(len(kernels)))
    w[::3] = 0.0
    part = np.sort(rng.choice(N, 60, replace=False))
    for ours, theirs in ((factored, dense), (factored.subset(part), dense.subset(part))):
        rows_of = slice(None, ours.n_samples)
        close(ours.scales, theirs.scales)
        close(ours.traces(), theirs.traces())
        close(ours.combined(w), theirs.combined(w))
        close(ours.products(V[rows_of]), theirs.products(V[rows_of]))
        close(ours.inner(S[rows_of, rows_of]), theirs.inner(S[rows_of, rows_of]))
        close(ours.inner_products(), theirs.inner_products())
        close(ours.centering(w).row_means, theirs.centering(w).row_means)
        close(ours.centering(w).grand_mean, theirs.centering(w).grand_mean)
        close(ours.coefficients(w), theirs.coefficients(w))
    assert not factored.combined(np.zeros(len(kernels))).any()
    factored.check_definite()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("draw", ["standard_normal", "standard_cauchy", "exponential"])
def test_factor_leaves_a_rounding_error_of_the_trace(seed, draw):
    """Far tails included: what is left over is bounded by its trace, 1e-14 of the kernel's."""
    X = getattr(np.random.default_rng(seed), draw)(size=(300, 1))
    kernel = RBF().resolve(X)
    factor = factor_kernel(kernel, X)
    assert np.linalg.norm(kernel(X) - factor.T @ factor, 2) <= 2e-14 * 300


def test_rank_is_that_of_the_kernel(rows):
    assert len(factor_kernel(Linear(), rows)) == 5
    assert len(factor_kernel(RBF(width=1e-3), rows[:, :2])) == N
    assert len(factor_kernel(RBF(width=2.0), rows[:, 4:])) == len(np.unique(rows[:, 4]))
    assert factor_kernel(RBF(width=1e-3), rows[:, :2], most=40) is None


def test_norms_are_the_largest_eigenvalues(rows):
    bank = FeatureBank.from_kernels(candidates(rows), rows)
    for norm, unit in zip(bank.norms(), np.eye(bank.n_kernels), strict=True):
        assert norm == pytest.approx(np.linalg.norm(bank.combined(unit), 2))


@pytest.mark.parametrize("kind", ["dense", "tiled", "factored"])
def test_selection_is_the_same_kernels_as_they_are(rows, kind):
    constant = Function(lambda X, Z: np.ones((len(X), len(Z))))
    kernels = [*([constant] if kind != "factored" else []), *candidates(rows)]
    with pytest.warns(DroppedKernelWarning) if kind != "factored" else nullcontext():
        bank = make_bank(BankChoice(kind), kernels, rows, "centered_trace")
    positions = np.array([7, 1, 4])
    part = bank.select(positions)
    w = np.zeros(bank.n_kernels)
    w[positions] = [0.2, 0.5, 0.3]
    few = w[positions]
    V = np.random.default_rng(0).standard_normal((N, 2))
    np.testing.assert_allclose(part.compressed(V), bank.compressed(V)[positions], atol=1e-14)
    np.testing.assert_allclose(bank.compressed(V)[2], V.T @ bank.products(V)[2], atol=1e-12)
    np.testing.assert_allclose(part.products(V), bank.products(V)[positions], atol=1e-14)
    np.testing.assert_allclose(part.combined(few), bank.combined(w), atol=1e-14)
    np.testing.assert_allclose(part.coefficients(few), bank.coefficients(w))
    np.testing.assert_allclose(part.centering(few).row_means, bank.centering(w).row_means)
    np.testing.assert_array_equal(part.traces(), bank.traces()[positions])
    np.testing.assert_array_equal(part.norms(), bank.norms()[positions])


def test_which_bank(rows, monkeypatch):
    smooth = [kernel.resolve(rows) for kernel in feature_kernels(4).values()] * 16
    room = 8 * 64 * N**2 - 1
    # 150 rows are few: no kernel with tails has a rank below a sixteenth of that
    monkeypatch.setattr("discernel.bank.ranks._LOW", 0.5)
    assert choose_bank("auto", smooth, rows, room) == "factored"
    assert choose_bank("auto", smooth[:-1], rows, room) == "dense"
    with monkeypatch.context() as patch:
        patch.setattr("discernel.bank.ranks._FACTOR_BYTES", 8 * 64 * N)  # of rank 1
        assert choose_bank("auto", smooth, rows, room) == "tiled"
    narrow = [RBF(width=1e-3).on([0, 1])] * 64
    assert choose_bank("auto", narrow, rows, room) == "tiled"
    assert choose_bank("factored", narrow, rows) == "factored"
    own = Function(lambda X, Z: X @ Z.T)
    assert not have_low_rank([*smooth, own], rows)
    with pytest.raises(InvalidInputError, match="known to be positive semidefinite"):
        choose_bank("factored", [own], rows)
    with pytest.raises(InvalidInputError, match="kernels are precomputed"):
        choose_bank("factored", [Precomputed()], np.eye(3))
    with pytest.raises(InvalidInputError, match="normalization"):
        FeatureBank(np.array([[1.0, 0.0, 0.0]]), [1], ["a"], normalization="none")


def test_constant_kernels_are_left_out_and_nan_is_named(rows):
    X = np.column_stack([rows, np.ones(N)])
    kernels = [kernel.resolve(X) for kernel in (RBF().on([0]), RBF().on([5]), RBF().on([1]))]
    with pytest.warns(DroppedKernelWarning, match=r"RBF\(width=1\) on 5"):
        bank = FeatureBank.from_kernels(kernels, X)
    assert bank.kept.tolist() == [0, 2]
    for row in range(4):  # in the first pool or not
        broken = X.copy()
        broken[row, 0] = np.nan
        with pytest.raises(InvalidInputError, match=r"NaN or infinity, but that of RBF"):
            FeatureBank.from_kernels(kernels, broken)


def test_sparse_rows(rows):
    kernels = [RBF(width=2.0), Linear()]
    dense = FeatureBank.from_kernels(kernels, rows)
    sparse = FeatureBank.from_kernels(kernels, sp.csr_matrix(rows))
    w = np.array([0.5, 0.5])
    np.testing.assert_allclose(sparse.combined(w), dense.combined(w), atol=1e-12)


@pytest.mark.parametrize("criterion", ["auto", "rkda", "fdr", "alignment"])
def test_estimators_learn_the_same_from_both(rows, criterion):
    y = (rows[:, 0] + rows[:, 1] ** 2 + rows[:, 2] > 1.0).astype(int)
    fits = {
        bank: MultipleKernelDiscriminant(
            feature_kernels(5), criterion=criterion, regularization="loo", bank=bank
        ).fit(rows, y)
        for bank in ("dense", "factored")
    }
    assert [fit.bank_ for fit in fits.values()] == ["dense", "factored"]
    np.testing.assert_allclose(
        fits["dense"].kernel_weights_, fits["factored"].kernel_weights_, atol=1e-4
    )
    np.testing.assert_allclose(
        fits["dense"].predict_proba(rows), fits["factored"].predict_proba(rows), atol=1e-4
    )


class _Noisy(RBF):
    """A kernel with errors in its seventh digit, as after a long computation of the user's."""

    def __call__(self, X, Z=None):
        matrix = super().__call__(X, Z)
        rng = np.random.default_rng(matrix.shape)
        return matrix * (1.0 + 1e-7 * rng.standard_normal(matrix.shape))


@pytest.mark.parametrize("seed", range(50))
def test_no_row_is_a_pivot_twice(seed):
    """Rows that are represented already may not be taken again for what rounding left of them."""
    X = np.random.default_rng(seed).standard_normal((40, 2))
    factor = factor_kernel(_Noisy(width=2.0), X)
    assert factor is not None
    assert len(factor) <= 40
