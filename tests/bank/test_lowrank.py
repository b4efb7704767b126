"""Banks of features: exact with all rows as landmarks, honest with fewer."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from discernel import MultipleKernelDiscriminant, MultipleKernelRidge
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import (
    DenseBank,
    FeatureBank,
    LowRank,
    TiledBank,
    gram_stack,
)
from discernel.bank.ranks import default_rank, share_rank, spectra_of
from discernel.default.logits import LogitSearch
from discernel.exceptions import DroppedKernelWarning, InvalidInputError, LowRankWarning
from discernel.kernels import RBF, Laplace, Linear, Polynomial
from discernel.kernels.features import ExactMap, NystromMap
from discernel.plan import choose_bank
from discernel.testing import check_bank
from tests.bank._blend import blend_of_rank

N = 120
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 4))
KERNELS = [k.resolve(X) for k in (RBF(), RBF(width=1.0), Laplace(), Linear(), Polynomial())]
WEIGHTS = np.array([0.3, 0.0, 0.4, 0.2, 0.1])
COUNTS = SampleWeights.of(RNG.integers(1, 4, N).astype(float))
IMPORTANCE = SampleWeights.of(RNG.random(N) + 0.1)


def banks(rank, **options):
    return FeatureBank.of_rank(KERNELS, X, rank, **options)


# ---- all rows are landmarks --------------------------------------------------------------------


@pytest.mark.parametrize("normalization", ["centered_trace", "trace"])
def test_with_all_landmarks_it_is_the_dense_bank(normalization):
    bank = banks(N * len(KERNELS), normalization=normalization)
    check_bank(bank, gram_stack(KERNELS, X), normalization)


def test_one_kernel_of_low_rank_is_solved_in_the_space_of_its_features():
    kernels = [Linear(), Polynomial(degree=2)]  # 4 and 15 features of 120 rows
    maps = [ExactMap(kernel, 4) for kernel in kernels]
    bank = FeatureBank.from_maps(maps, kernels, X)
    assert bank.rank == 19
    check_bank(bank, gram_stack(kernels, X))


@pytest.mark.parametrize("sample_weights", [None, COUNTS, IMPORTANCE], ids=["no", "counts", "mean"])
@pytest.mark.parametrize("how", ["low rank", "blend"])
def test_with_all_landmarks_systems_and_features_are_those_of_all_rows(how, sample_weights):
    dense = TiledBank(KERNELS, X, sample_weights=sample_weights)
    if how == "blend":
        bank = blend_of_rank(KERNELS, WEIGHTS, X, N, sample_weights=sample_weights)
    else:
        bank = banks(N * len(KERNELS), sample_weights=sample_weights)
    np.testing.assert_allclose(bank.scales, dense.scales, rtol=1e-9)
    V = RNG.standard_normal((N, 2))
    for ridge in (1e-3, 1e-3 * (1.0 + RNG.random(N))):
        ours, theirs = bank.system(WEIGHTS, ridge), dense.system(WEIGHTS, ridge)
        np.testing.assert_allclose(ours.solve(V), theirs.solve(V), atol=1e-6)
        np.testing.assert_allclose(ours.inverse_diagonal(), theirs.inverse_diagonal(), rtol=1e-8)
        again = bank.systems(WEIGHTS)(ridge)
        np.testing.assert_allclose(again.solve(V), ours.solve(V), atol=1e-6)
    # f(x) = Σ_j V_j K̃(x_j, x), in features and in kernels
    new, centering = RNG.standard_normal((9, 4)), dense.centering(WEIGHTS)
    coefficients = dense.coefficients(WEIGHTS)
    cross = sum(c * kernel(new, X) for c, kernel in zip(coefficients, KERNELS, strict=True))
    expected = centering.apply(cross) @ V
    features, beta = bank.combined_features(WEIGHTS), bank.feature_coef(WEIGHTS, V)
    np.testing.assert_allclose(features.product(new, beta), expected, atol=1e-9)
    np.testing.assert_allclose(features(new) @ beta, expected, atol=1e-9)
    ours = bank.centering(WEIGHTS)
    np.testing.assert_allclose(ours.row_means, centering.row_means, atol=1e-10)


# ---- fewer landmarks ---------------------------------------------------------------------------


@pytest.mark.parametrize("sample_weights", [None, COUNTS, IMPORTANCE], ids=["no", "counts", "mean"])
@pytest.mark.parametrize("how", ["low rank", "blend"])
def test_systems_are_those_of_the_approximated_matrices(how, sample_weights):
    if how == "blend":
        bank = blend_of_rank(KERNELS, WEIGHTS, X, 25, sample_weights=sample_weights)
    else:
        bank = banks(40, sample_weights=sample_weights)
    assert bank.rank <= 60 < N
    K, V = bank.combined(WEIGHTS), RNG.standard_normal((N, 2))
    for ridge in (1e-2, 1e-2 * (1.0 + RNG.random(N))):
        inverse = np.linalg.inv(np.diag(np.full(N, ridge)) + K)
        for system in (bank.system(WEIGHTS, ridge), bank.systems(WEIGHTS)(ridge)):
            np.testing.assert_allclose(system.solve(V), inverse @ V, atol=1e-9)
            np.testing.assert_allclose(system.inverse_diagonal(), np.diagonal(inverse), rtol=1e-9)
    exact = TiledBank(KERNELS, X, sample_weights=sample_weights).combined(WEIGHTS)
    left = exact - K
    assert np.linalg.eigvalsh(left)[0] > -1e-3 * np.trace(exact)  # up to what scales differ by
    total = float(bank.remainder(WEIGHTS).sum())
    assert np.trace(K) + total == pytest.approx(1.0, abs=0.05)  # what is left is not centred


def test_what_is_left_is_known_exactly():
    bank, stack = banks(40), gram_stack(KERNELS, X)
    stack *= bank.scales[:, None, None]
    P = np.eye(N) - 1.0 / N
    for position, unit in enumerate(np.eye(len(KERNELS))):
        left = P @ stack[position] @ P - bank.combined(unit)
        assert np.linalg.eigvalsh(left)[0] > -1e-9
        raw = bank.remainder(unit)
        assert np.trace(left) <= raw.sum() + 1e-9  # centring takes some more
    assert ((bank.captured() > 0) & (bank.captured() <= 1 + 1e-12)).all()
    assert bank.captured()[3] == pytest.approx(1.0)  # linear: an exact map


def test_the_captured_share_is_that_of_weighted_rows():
    bank = banks(40, sample_weights=IMPORTANCE)
    diagonals = np.array([kernel.diagonal(X) for kernel in KERNELS])
    held = np.array([np.sum(one(X) ** 2, axis=1) for one in bank._maps])
    left = bank.scales * ((diagonals - held) @ IMPORTANCE.values)
    traces = np.array([np.trace(bank.combined(unit)) for unit in np.eye(len(KERNELS))])
    np.testing.assert_allclose(bank.captured(), traces / (traces + left), rtol=1e-9)


def test_parts_are_the_same_features():
    bank = banks(40)
    rows = np.sort(RNG.choice(N, 60, replace=False))
    part = bank.subset(rows)
    P = np.eye(60) - 1.0 / 60
    for unit in np.eye(len(KERNELS)):
        whole = bank.combined(unit)
        raw = P @ whole[np.ix_(rows, rows)] @ P
        made = part.combined(unit)
        np.testing.assert_allclose(made / np.trace(made), raw / np.trace(raw), atol=1e-10)
    few = bank.select(np.array([3, 0]))
    assert few.rank == sum(len(bank._factors[i]) for i in (3, 0))
    w = np.array([0.25, 0.75])
    expected = bank.combined(np.array([0.75, 0, 0, 0.25, 0]))
    np.testing.assert_allclose(few.combined(w), expected, atol=1e-12)
    half = bank.halved()
    assert half.rank < 0.8 * bank.rank
    assert np.linalg.eigvalsh(bank.combined(WEIGHTS) - half.combined(WEIGHTS))[0] > -1e-10


def test_a_part_of_a_blend_is_the_same_sum():
    bank = blend_of_rank(KERNELS, WEIGHTS, X, 25, sample_weights=IMPORTANCE)
    plain = blend_of_rank(KERNELS, WEIGHTS, X, 25)
    rows = np.sort(RNG.choice(N, 60, replace=False))
    P = np.eye(60) - 1.0 / 60
    raw = P @ plain.combined(WEIGHTS)[np.ix_(rows, rows)] @ P
    np.testing.assert_allclose(plain.subset(rows).combined(WEIGHTS), N / 60 * raw, atol=1e-12)
    for one in (plain, bank):
        half = one.halved()
        assert half.rank == 13
        left = one.combined(WEIGHTS) - half.combined(WEIGHTS)
        assert np.linalg.eigvalsh(left)[0] > -1e-10
        assert half.captured() < one.captured() < 1.0


def test_what_a_blend_does_not_know_is_refused():
    bank = blend_of_rank(KERNELS, WEIGHTS, X, 25)
    V = np.ones((N, 1))
    asked = [
        lambda: bank.system(np.full(5, 0.2), 0.1),
        lambda: bank.products(V),
        lambda: bank.inner(np.eye(N)),
        lambda: bank.inner_products(),
        lambda: bank.compressed(V),
        lambda: bank.select(np.array([0])),
        lambda: bank.inverse(WEIGHTS, 0.1),
    ]
    for question in asked:
        with pytest.raises(InvalidInputError, match="one sum of kernels does not support"):
            question()
    with pytest.raises(InvalidInputError, match="Predict with the whole"):
        bank.subset(np.arange(50)).combined_features(WEIGHTS)
    with pytest.raises(InvalidInputError, match="Predict with the whole"):
        banks(40).subset(np.arange(50)).combined_features(WEIGHTS)


def test_kernels_that_do_not_vary_are_left_out():
    rows = np.column_stack([X, np.ones(N)])
    kernels = [RBF(width=1.0).on([4]), RBF(width=2.0)]
    weights = np.array([0.5, 0.5])
    with pytest.warns(DroppedKernelWarning, match="on 4"):
        blend = blend_of_rank(kernels, weights, rows, N)
    with pytest.warns(DroppedKernelWarning, match="on 4"):
        bank = FeatureBank.of_rank(kernels, rows, 30)
    dense = DenseBank(gram_stack(kernels[1:], rows))
    one = np.ones(1)
    np.testing.assert_allclose(blend.combined(one), dense.combined(one), atol=1e-9)
    assert bank.kept.tolist() == blend.kept.tolist() == [1]
    assert len(bank.combined_features(one)(rows[:3])[0]) == bank.rank


# ---- ranks -------------------------------------------------------------------------------------


def test_the_largest_eigenvalues_of_all_kernels_are_taken_first():
    spectra = [np.array([0.9, 0.05, 0.04, 0.01]), np.full(4, 0.25), np.array([1.0, 0.0, 0.0, 0.0])]
    assert share_rank(spectra, 6, 4) == [1, 4, 1]
    assert share_rank(spectra, 3, 4) == [1, 1, 1]
    assert share_rank(spectra, 8, 4) == [3, 4, 1]
    assert share_rank(spectra, 100, 4) == [4, 4, 1]  # no more than there are
    assert share_rank(spectra, 20, 9) == [9, 9, 1]
    assert sum(share_rank(spectra, 14, 100)) == 14


def test_narrow_kernels_get_the_larger_rank():
    wide, narrow = RBF(width=10.0), RBF(width=0.5)
    spectra = spectra_of([wide, narrow], X)
    assert all(values.sum() == pytest.approx(1.0) for values in spectra)
    ranks = share_rank(spectra, 60, N)
    assert ranks[1] > 4 * ranks[0]
    assert sum(ranks) == 60


def test_the_rank_for_which_nobody_asked():
    assert default_rank(5000, 256 * 2**20) == 1500
    assert default_rank(100_000, 256 * 2**20) == 335
    assert default_rank(10**7, 256 * 2**20) == 100
    assert default_rank(300, 256 * 2**20) == 300


def test_any_maps_make_a_bank():
    kernels = [RBF(width=3.0), Linear()]
    maps = [NystromMap(kernels[:1], [1.0], X[:60]), ExactMap(kernels[1], 4)]
    bank = FeatureBank.from_maps(maps, kernels, X)
    dense = DenseBank(gram_stack(kernels, X))
    w = np.array([0.5, 0.5])
    assert bank.rank == 64
    assert np.abs(bank.combined(w) - dense.combined(w)).max() < 0.2 * dense.combined(w).max()
    assert bank.halved().rank == 34


# ---- estimators --------------------------------------------------------------------------------


def three_classes(n=260, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    rows = rng.standard_normal((n, 5))
    rows[:, 0] += np.where(y == 0, 2.0, 0.0)
    rows[:, 1] *= np.where(y == 1, 2.5, 1.0)
    return rows, y


@pytest.mark.parametrize("weighted", [False, True])
def test_with_all_landmarks_the_default_is_the_exact_one(weighted, monkeypatch):
    monkeypatch.setattr(LogitSearch, "most_rows", 0)  # features have no kernel logistic regression
    rows, y = three_classes()
    weight = np.random.default_rng(1).integers(1, 3, len(y)) if weighted else None
    exact = MultipleKernelDiscriminant(bank="tiled").fit(rows, y, weight)
    low = MultipleKernelDiscriminant(bank=LowRank(len(y))).fit(rows, y, weight)
    assert low.bank_ == "lowrank"
    new = three_classes(seed=9)[0]
    np.testing.assert_allclose(low.kernel_weights_, exact.kernel_weights_, atol=1e-8)
    assert low.regularization_ == exact.regularization_
    np.testing.assert_allclose(low.predict_proba(new), exact.predict_proba(new), atol=1e-8)
    np.testing.assert_allclose(low.transform(new), exact.transform(new), atol=1e-6)


@pytest.mark.parametrize("criterion", ["rkda", "loo", "uniform"])
def test_with_all_landmarks_learning_is_exact(criterion):
    rows, y = three_classes(150)
    kernels = [RBF(width=w) for w in (1.0, 3.0)] + [Linear()]
    options = {"criterion": criterion, "regularization": 1e-2 if criterion == "rkda" else "auto"}
    exact = MultipleKernelDiscriminant(kernels, bank="dense", **options).fit(rows, y)
    low = MultipleKernelDiscriminant(kernels, bank=LowRank(450), **options).fit(rows, y)
    np.testing.assert_allclose(low.kernel_weights_, exact.kernel_weights_, atol=1e-8)
    new = three_classes(seed=9)[0]
    np.testing.assert_allclose(low.predict_proba(new), exact.predict_proba(new), atol=1e-7)
    if criterion == "rkda":
        assert low.learned_kernel_.objective == pytest.approx(
            exact.learned_kernel_.objective, rel=1e-8
        )
        assert low.gap_ <= 1e-6


@pytest.mark.parametrize("criterion", ["rkda", "loo", "auto", "fdr"])
def test_learning_with_few_landmarks_keeps_no_training_rows(criterion):
    rows, y = three_classes(400)
    y = y % 2 if criterion == "fdr" else y
    kernels = [RBF(width=w) for w in (1.0, 3.0, 9.0)] + [Linear()]
    exact = MultipleKernelDiscriminant(kernels, bank="dense", criterion=criterion).fit(rows, y)
    low = MultipleKernelDiscriminant(kernels, bank=LowRank(120), criterion=criterion)
    low.fit(rows, y)
    assert low.discriminant_.dual_coef.shape[0] <= 130
    new, codes = three_classes(seed=9)
    codes = codes % 2 if criterion == "fdr" else codes
    assert low.score(new, codes) > exact.score(new, codes) - 0.05
    assert len(low.discriminant_.dual_coef) == len(low.combined_kernel_.center)


def test_the_regularization_is_learned_in_the_space_of_features(monkeypatch):
    rows, y = three_classes(150)
    kernels = [RBF(width=1.0), RBF(width=3.0)]
    options = {"criterion": "rkda", "regularization": "joint"}
    low = MultipleKernelDiscriminant(kernels, bank=LowRank(300), **options).fit(rows, y)
    exact = MultipleKernelDiscriminant(kernels, bank="dense", **options).fit(rows, y)
    np.testing.assert_allclose(low.kernel_weights_, exact.kernel_weights_, atol=1e-6)
    monkeypatch.setattr(FeatureBank, "combined", None)  # no matrix of all pairs
    few = MultipleKernelDiscriminant(kernels, bank=LowRank(60), **options).fit(rows, y)
    assert few.gap_ <= 1e-6


def test_ridge_and_sparse_rows(monkeypatch):
    monkeypatch.setattr(LogitSearch, "most_rows", 0)  # features have no kernel logistic regression
    rows, y = three_classes(200)
    exact = MultipleKernelRidge(bank="tiled").fit(rows, rows[:, 0] ** 2)
    low = MultipleKernelRidge(bank=LowRank(200)).fit(rows, rows[:, 0] ** 2)
    np.testing.assert_allclose(low.predict(rows), exact.predict(rows), atol=1e-7)
    sparse = sp.csr_matrix(np.where(np.abs(rows) > 0.8, rows, 0.0))
    kernels = [Linear(), "cosine"]
    exact = MultipleKernelDiscriminant(kernels, bank="dense").fit(sparse, y)
    low = MultipleKernelDiscriminant(kernels, bank=LowRank(400)).fit(sparse, y)
    np.testing.assert_allclose(low.predict_proba(sparse), exact.predict_proba(sparse), atol=1e-6)


def test_what_cannot_be_of_low_rank_is_refused():
    rows, y = three_classes(60)
    with pytest.raises(InvalidInputError, match=r"integer of at least 1. Got 0"):
        MultipleKernelDiscriminant(bank=LowRank(0)).fit(rows, y)
    with pytest.raises(InvalidInputError, match=r"at least the number of kernels, 2. Got 1"):
        MultipleKernelDiscriminant([RBF(), Linear()], bank=LowRank(1)).fit(rows, y)
    with pytest.raises(InvalidInputError, match="bank='lowrank' computes kernels from rows"):
        MultipleKernelDiscriminant("precomputed", bank="lowrank").fit(np.eye(60), y)
    with pytest.raises(InvalidInputError, match="bank='lowrank' needs kernels that are known"):
        choose_bank("lowrank", [_indefinite()], rows)


def _indefinite():
    from discernel.kernels.adapters import Function

    return Function(lambda a, b: -np.asarray(a) @ np.asarray(b).T)


def test_landmarks_are_all_that_a_map_keeps():
    nystrom = NystromMap(KERNELS, WEIGHTS, X[:20])
    assert nystrom.landmarks.shape == (20, 4)


def test_text_like_rows_take_memory_of_the_features_only():
    """10,000 sparse rows of 3,000 words: all pairs would be 800 MB, dense rows 240 MB."""
    rng = np.random.default_rng(0)
    n, words = 10_000, 30
    y = rng.integers(0, 3, n)
    columns = np.where(rng.random((n, words)) < 0.3, 100 * y[:, None], 300)
    columns = columns + rng.integers(0, 100, (n, words)) * np.where(columns == 300, 27, 1)
    places = np.repeat(np.arange(n), words), columns.ravel()
    rows = sp.csr_matrix((np.ones(n * words), places), shape=(n, 3000))
    clf = MultipleKernelDiscriminant(
        [Linear(), "cosine"], criterion="rkda", regularization=1e-3, bank=LowRank(200)
    )
    tracemalloc.start()
    with pytest.warns(LowRankWarning, match="larger rank would reduce the error"):
        clf.fit(rows, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Most of it for blocks of kernels, however many rows; dense rows would come on top. Before 1.7,
    # scikit-learn makes sparse blocks of sparse rows first.
    assert peak < 320e6
    assert clf.score(rows, y) > 0.9
    assert clf.gap_ <= 1e-6
