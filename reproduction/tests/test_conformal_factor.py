"""The separability of a data-dependent kernel, its ascent and its exact maximum."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from discernel.kernels import RBF
from discernel.targets import ClassTarget
from discernel_reproduction.baselines.conformal_factor import (
    ConformalSeparability,
    ascend,
    factor_design,
    maximize,
)


@pytest.fixture(params=[2, 3, 5])
def problem(request):
    """Rows, classes of different sizes, the kernel, the design and some coefficients."""
    rng = np.random.default_rng(request.param)
    y = np.sort(rng.permutation(np.arange(40) % (request.param + 1) % request.param))
    X = rng.standard_normal((40, 3)) + y[:, None]
    gram = RBF(width=2.0)(X)
    design = factor_design(RBF(width=1.0)(X, X[::4]))
    return gram, design, ClassTarget.from_labels(y), rng.standard_normal(design.shape[1])


def scatters(gram, factors, codes):
    """Return tr S_b and tr S_w of explicit feature vectors of Q K₀ Q, by loops."""
    kernel = factors[:, None] * gram * factors
    values, vectors = np.linalg.eigh(kernel)
    features = vectors * np.sqrt(np.maximum(values, 0.0))  # rows whose inner products are kernel
    mean, between, within = features.mean(axis=0), 0.0, 0.0
    for code in np.unique(codes):
        rows = features[codes == code]
        between += len(rows) * np.sum((rows.mean(axis=0) - mean) ** 2)
        for row in rows:
            within += np.sum((row - rows.mean(axis=0)) ** 2)
    return between / len(codes), within / len(codes)


def test_design_puts_the_constant_first():
    np.testing.assert_array_equal(factor_design(np.array([[2.0], [3.0]])), [[1, 2], [1, 3]])


def test_quadratic_forms_are_the_scatters_in_the_empirical_feature_space(problem):
    gram, design, target, alpha = problem
    criterion = ConformalSeparability(gram, design, target)
    between, within = scatters(gram, design @ alpha, target.codes)
    assert alpha @ criterion.between @ alpha == pytest.approx(between, rel=1e-9)
    assert alpha @ criterion.within @ alpha == pytest.approx(within, rel=1e-9)
    assert criterion.value(alpha) == pytest.approx(between / within, rel=1e-9)


def test_both_forms_are_semidefinite_and_sum_to_the_total_scatter(problem):
    gram, design, target, _ = problem
    criterion = ConformalSeparability(gram, design, target)
    for matrix in (criterion.between, criterion.within):
        values = np.linalg.eigvalsh(matrix)
        assert values[0] > -1e-12 * values[-1]
    n_samples = target.n_samples
    total = np.diag(np.diagonal(gram)) - gram / n_samples
    np.testing.assert_allclose(
        criterion.between + criterion.within, design.T @ total @ design / n_samples, atol=1e-12
    )


def test_gradient_equals_finite_differences_and_is_orthogonal_to_alpha(problem):
    gram, design, target, alpha = problem
    criterion = ConformalSeparability(gram, design, target)
    gradient = criterion.gradient(alpha)
    expected = approx_fprime(alpha, criterion.value, 1e-7)
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    assert gradient @ alpha == pytest.approx(0.0, abs=1e-12)


def test_length_and_sign_of_alpha_do_not_matter(problem):
    criterion = ConformalSeparability(*problem[:3])
    alpha = problem[3]
    assert criterion.value(-7.0 * alpha) == pytest.approx(criterion.value(alpha))


def test_classes_without_width_are_infinitely_separable():
    y = np.repeat([0, 1], 3)
    gram = (y[:, None] == y).astype(float)
    criterion = ConformalSeparability(gram, np.ones((6, 1)), ClassTarget.from_labels(y))
    assert criterion.value(np.ones(1)) == np.inf


# ---- the factor ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def criterion():
    X, y = load_wine(return_X_y=True)
    X, kernel = scale(X), RBF(width=4.0)
    design = factor_design(kernel(X, X[::20]))
    return ConformalSeparability(kernel(X), design, ClassTarget.from_labels(y))


def test_ascent_follows_the_rule_of_the_paper(criterion):
    """α ← α + η (1 − t/T) (M/J₂ − (J₁/J₂²) N) α, written out."""
    M, N = criterion.between, criterion.within
    alpha = np.eye(len(M))[0]
    for step in range(30):
        J1, J2 = alpha @ M @ alpha, alpha @ N @ alpha
        alpha = alpha + 0.05 * (1 - step / 30) * (M / J2 - J1 / J2**2 * N) @ alpha
        alpha /= np.linalg.norm(alpha)
    found = ascend(criterion, rate=0.05, n_steps=30)
    np.testing.assert_allclose(found.alpha, alpha, rtol=1e-9)
    assert len(found.history) == 31
    assert found.value == found.history[-1] > found.history[0]


def test_ascent_starts_from_the_plain_kernel(criterion):
    plain = criterion.value(np.eye(len(criterion.within))[0])
    assert ascend(criterion).history[0] == plain


def test_steps_far_too_long_never_make_it_worse(criterion):
    found = ascend(criterion, rate=1e4, n_steps=20)
    assert found.value == max(found.history) == criterion.value(found.alpha)
    assert min(found.history) < max(found.history)


def test_exact_maximum_is_that_of_a_general_optimizer(criterion):
    found = maximize(criterion, ridge=0.0)
    best = max(
        -minimize(
            lambda alpha: -criterion.value(alpha), start, jac=lambda a: -criterion.gradient(a)
        ).fun
        for start in np.random.default_rng(0).standard_normal((5, len(criterion.within)))
    )
    assert found.value == pytest.approx(best, rel=1e-4)
    assert found.value >= best * (1 - 1e-9)


def test_ascent_tends_to_the_exact_maximum(criterion):
    exact = maximize(criterion, ridge=0.0)
    assert ascend(criterion).value < ascend(criterion, rate=0.5, n_steps=5000).value < exact.value
    assert ascend(criterion, rate=0.5, n_steps=5000).value > 0.9 * exact.value


def test_ridge_solves_the_ratio_it_states(criterion):
    size = len(criterion.within)
    within = criterion.within + 0.1 * np.trace(criterion.within) / size * np.eye(size)

    def ratio(alpha):
        return (alpha @ criterion.between @ alpha) / (alpha @ within @ alpha)

    found = maximize(criterion, ridge=0.1)
    rng = np.random.default_rng(1)
    others = found.alpha + 0.01 * rng.standard_normal((200, size))
    assert ratio(found.alpha) >= max(ratio(alpha) for alpha in others)
    assert found.value < maximize(criterion, ridge=0.0).value


def test_classes_without_width_end_the_ascent():
    y = np.repeat([0, 1], 3)
    gram = (y[:, None] == y).astype(float)
    criterion = ConformalSeparability(gram, np.ones((6, 1)), ClassTarget.from_labels(y))
    assert ascend(criterion).history == (np.inf,)
    assert maximize(criterion).value == np.inf
