"""The equations of Yeung 2006, against loops, explicit matrices and eigenvalues on 1⊥."""

import numpy as np
import pytest
from scipy.linalg import null_space

from discernel.bank import DenseBank
from discernel.papers.separability.criterion import (
    Scatter,
    bank_scatter,
    closed_form,
    critical_alpha,
    is_maximum,
    is_visible,
    left_out_scatter,
    ratio,
    spectral_alignment,
    vector_scatter,
)
from discernel.targets import ClassTarget
from tests import reference
from tests.conftest import make_problem


def scatter_by_loops(features, y):
    """tr S_b and tr S_w of explicit features, Eq. (3) and (4), sample by sample."""
    mean, n = features.mean(axis=0), len(y)
    between = within = 0.0
    for label in np.unique(y):
        rows = features[y == label]
        between += len(rows) / n * np.sum((rows.mean(axis=0) - mean) ** 2)
        for row in rows:
            within += np.sum((row - rows.mean(axis=0)) ** 2) / n
    return between, within


def printed_scatter(K, y):
    """Eq. (7) and (10) as printed, with a_jk and δ_jk."""
    n = len(y)
    f = g = 0.0
    for j in range(n):
        for k in range(n):
            a = 1.0 / np.sum(y == y[j]) if y[j] == y[k] else 0.0
            f += (a - 1.0 / n) * K[j, k] / n
            g += ((j == k) - a) * K[j, k] / n
    return f, g


@pytest.fixture(params=[2, 3, 5])
def vectors(request):
    """Labelled rows of orthonormal vectors on more rows, and their classes, unbalanced."""
    rng = np.random.default_rng(request.param)
    basis = np.linalg.qr(rng.standard_normal((60, 9)))[0]
    y = np.sort(rng.integers(0, request.param, 25))
    return basis[:25] + 0.02 * y[:, None], y


def test_eq_7_and_10_equal_loops_over_samples(vectors):
    V, y = vectors
    found = vector_scatter(V, ClassTarget.from_labels(y))
    for r, v in enumerate(V.T):
        expected = scatter_by_loops(v[:, None], y)
        np.testing.assert_allclose([found.between[r], found.within[r]], expected, rtol=1e-12)
        np.testing.assert_allclose(printed_scatter(np.outer(v, v), y), expected, rtol=1e-10)


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("normalization", ["centered_trace", "trace"])
def test_scatter_of_given_kernels_is_that_of_their_matrices(k, normalization):
    grams, y = make_problem(24, k, 4)
    bank = DenseBank(grams, normalization=normalization)
    found = bank_scatter(bank, ClassTarget.from_labels(y))
    scaled = reference.trace_normalized(grams)
    if normalization == "trace":
        scaled = [G * 24 / np.trace(G) for G in grams]
    expected = np.array([printed_scatter(K, y) for K in scaled])
    np.testing.assert_allclose(np.transpose(found), expected, rtol=1e-9, atol=1e-15)


def test_traces_are_linear_in_the_kernel_eq_5_and_9(vectors):
    V, y = vectors
    mu = np.random.default_rng(0).standard_normal(V.shape[1])
    f, g = vector_scatter(V, ClassTarget.from_labels(y))
    between, within = scatter_by_loops(V * mu, y)
    assert f @ mu**2 == pytest.approx(between, rel=1e-12)
    assert g @ mu**2 == pytest.approx(within, rel=1e-12)


def test_left_out_scatter_is_that_of_the_other_rows(vectors):
    V, y = vectors
    y = np.where(np.arange(len(y)) == 0, 99, y)  # a class of one row too
    found = left_out_scatter(V, ClassTarget.from_labels(y))
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        expected = vector_scatter(V[rest], ClassTarget.from_labels(y[rest]))
        np.testing.assert_allclose(found.between[i], expected.between, rtol=1e-9, atol=1e-16)
        np.testing.assert_allclose(found.within[i], expected.within, rtol=1e-9, atol=1e-16)


# ---- Eq. (16) --------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.3, 2.0, 1e4])
def test_eq_16_satisfies_its_first_order_conditions(vectors, alpha):
    V, y = vectors
    scatter = vector_scatter(V, ClassTarget.from_labels(y))
    mu = closed_form(scatter, alpha, 7.0)
    slopes = 2.0 * (scatter.between - alpha * scatter.within) * mu  # Eq. (14): all equal to ρ
    np.testing.assert_allclose(slopes, slopes.mean(), rtol=1e-10)
    assert mu.sum() == pytest.approx(7.0, rel=1e-10)  # Eq. (15)
    D = np.diag(scatter.between - alpha * scatter.within)
    ones = np.ones(len(mu))
    printed = 7.0 * np.linalg.inv(D) @ ones / (ones @ np.linalg.inv(D) @ ones)
    np.testing.assert_allclose(mu, printed, rtol=1e-10)


def of_slopes(slopes):
    """A scatter with f − αg as given, for α = 1."""
    slopes = np.asarray(slopes, dtype=float)
    within = np.full(len(slopes), np.abs(slopes).max() + 1.0)
    return Scatter(slopes + within, within)


SLOPES = [
    [-1.0, -2.0, -0.5],
    [0.1, -2.0, -0.5],  # one positive entry: Σ 1/d = 10 − 0.5 − 2 > 0
    [5.0, -2.0, -0.5],  # Σ 1/d < 0
    [0.5, -1.0, -1.0],  # Σ 1/d = 0 exactly: unbounded
    [0.1, 0.1, -3.0],
    [0.1, 0.0, -3.0],
    [0.0, -1.0, -2.0],
    [0.0, 0.0, -2.0],
    [3.0],
]


@pytest.mark.parametrize("slopes", SLOPES)
def test_second_order_check_is_the_sign_of_the_eigenvalues_on_the_complement_of_ones(slopes):
    slopes = np.array(slopes)
    basis = null_space(np.ones((1, len(slopes))))
    largest = np.linalg.eigvalsh(basis.T @ np.diag(slopes) @ basis).max(initial=-1.0)
    expected = largest < -1e-12 or (slopes <= 0).all()
    assert is_maximum(of_slopes(slopes), 1.0) == expected


def test_second_order_check_on_random_slopes():
    """One positive entry among negative ones, on either side of the condition."""
    rng = np.random.default_rng(0)
    answers = []
    for _ in range(300):
        slopes = -rng.exponential(size=rng.integers(2, 6))
        slopes[0] = rng.exponential() / 3
        basis = null_space(np.ones((1, len(slopes))))
        largest = np.linalg.eigvalsh(basis.T @ np.diag(slopes) @ basis).max()
        answers.append(is_maximum(of_slopes(slopes), 1.0))
        assert answers[-1] == (largest < 0)
    assert 50 < sum(answers) < 250


@pytest.mark.parametrize("slopes", SLOPES[:3] + SLOPES[4:5])
def test_eq_16_is_a_maximum_against_random_directions_where_the_check_says_so(slopes):
    rng = np.random.default_rng(1)
    scatter, slopes = of_slopes(slopes), np.array(slopes)
    mu = closed_form(scatter, 1.0, 3.0)
    directions = rng.standard_normal((2000, len(slopes)))
    directions -= directions.mean(axis=1, keepdims=True)
    gains = (mu + directions) ** 2 @ slopes - mu**2 @ slopes
    if is_maximum(scatter, 1.0):
        assert gains.max() < 0
    else:
        assert gains.max() > 0


def test_above_the_critical_alpha_it_is_a_maximum(vectors):
    V, y = vectors
    scatter = vector_scatter(V, ClassTarget.from_labels(y))
    critical = float(critical_alpha(scatter))
    assert critical == pytest.approx((scatter.between / scatter.within).max())
    assert is_maximum(scatter, 1.0001 * critical)
    two = np.sort(scatter.between / scatter.within)[-2]
    assert not is_maximum(scatter, 0.99 * two)


def test_a_vector_null_on_the_labelled_rows_gets_no_weight_and_changes_nothing(vectors):
    V, y = vectors
    target = ClassTarget.from_labels(y)
    with_null = vector_scatter(np.insert(V, 4, 0.0, axis=1), target)
    assert is_visible(with_null).tolist() == [True] * 4 + [False] + [True] * 5
    mu = closed_form(with_null, 10.0, 2.0)
    assert mu[4] == 0
    without = closed_form(vector_scatter(V, target), 10.0, 2.0)
    np.testing.assert_allclose(np.delete(mu, 4), without, rtol=1e-12)
    assert is_maximum(with_null, 1e4)


@pytest.mark.parametrize(
    ("slopes", "expected"), [([0, -1, -2], [3, 0, 0]), ([0, -1, 0], [1.5, 0, 1.5])]
)
def test_an_entry_where_f_equals_alpha_g_takes_all_as_the_limit_says(slopes, expected):
    np.testing.assert_allclose(closed_form(of_slopes(slopes), 1.0, 3.0), expected)
    near = closed_form(of_slopes(np.array(slopes) - 1e-9), 1.0, 3.0)
    np.testing.assert_allclose(near, expected, atol=1e-7)


def test_no_stationary_point_is_no_division_by_zero():
    np.testing.assert_array_equal(closed_form(of_slopes([0.5, -1.0, -1.0]), 1.0), 0.0)
    nothing = Scatter(np.zeros(3), np.zeros(3))
    np.testing.assert_array_equal(closed_form(nothing, 1.0), 0.0)
    assert critical_alpha(nothing) == 0


# ---- the ratio, and alignment ----------------------------------------------------------------


def test_the_largest_ratio_is_that_of_one_base_kernel(vectors):
    """Section 2.2: Tr(S_b)/Tr(S_w) alone degenerates, whatever the scale of μ."""
    V, y = vectors
    scatter = vector_scatter(V, ClassTarget.from_labels(y))
    weights = np.random.default_rng(0).dirichlet(np.full(V.shape[1], 0.2), 5000)
    best = ratio(scatter, np.eye(V.shape[1])).max()
    assert best == pytest.approx(float(critical_alpha(scatter)))
    assert (ratio(scatter, weights) <= best * (1 + 1e-12)).all()
    np.testing.assert_allclose(ratio(scatter, 3.7 * weights), ratio(scatter, weights))


def test_ratio_without_scatter_within():
    scatter = Scatter(np.array([1.0, 0.0]), np.array([0.0, 0.0]))
    assert ratio(scatter, np.array([1.0, 0.0])) == np.inf
    assert ratio(scatter, np.array([0.0, 1.0])) == 0


def test_spectral_alignment_has_the_largest_alignment_of_all_weights():
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.standard_normal((30, 6)))[0]
    y = np.r_[np.repeat([1.0, -1.0], 8), np.zeros(14)]

    def alignment(weights):
        K = (V * weights) @ V.T
        return y @ K @ y / np.linalg.norm(K) / (y @ y)

    best = spectral_alignment(V[:16], y[:16, None])
    np.testing.assert_allclose(best, (V.T @ y) ** 2)
    others = rng.exponential(size=(2000, 6))
    assert max(alignment(weights) for weights in others) < alignment(best)


def test_spectral_alignment_with_class_scores_is_the_scatter_between_classes(vectors):
    V, y = vectors
    target = ClassTarget.from_labels(y)
    weights = spectral_alignment(V, target.scores)
    np.testing.assert_allclose(weights, len(y) ** 2 * vector_scatter(V, target).between)
    if target.n_classes == 2:
        expected = (V.T @ np.where(y == y.max(), 1.0, -1.0)) ** 2
        np.testing.assert_allclose(spectral_alignment(V, target.signs[:, None]), expected)


def test_left_out_scatter_is_never_below_0():
    """Without a row of the only class that has two, nothing is within classes but rounding."""
    V = np.random.default_rng(0).standard_normal((3, 200))
    found = left_out_scatter(V, ClassTarget.from_labels(np.array([0, 0, 1])))
    assert (found.within >= 0).all()
    assert (found.between >= 0).all()
