"""Values, derivatives, convexity and certificates of both convex criteria."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discernel.bank import DenseBank
from discernel.criteria import relative_gap
from discernel.programs.fdr import FisherRatioProgram
from discernel.programs.rkda import JointRKDAProgram, RKDAProgram
from discernel.targets import ClassTarget
from tests import reference
from tests.conftest import make_problem

LAMBDAS = [1.0, 1e-2, 5e-4]


def make(kind, grams, y, lam=1e-2):
    target = ClassTarget.from_labels(y)
    if kind == "fdr":
        return FisherRatioProgram(DenseBank(grams, normalization="trace"), target, lam)
    bank = DenseBank(grams)
    return JointRKDAProgram(bank, target) if kind == "joint" else RKDAProgram(bank, target, lam)


def random_weights(n, seed):
    return np.random.default_rng(seed).dirichlet(np.ones(n))


@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_rkda_value_is_ye_2008_eq_26(n_classes, lam):
    grams, y = make_problem(40, n_classes, 5, seed=n_classes)
    w = random_weights(5, 0)
    value = make("rkda", grams, y, lam).at(w).value
    np.testing.assert_allclose(value, reference.rkda(grams, y, w, lam), rtol=1e-10)


def test_joint_value_is_the_program_of_ye_2008_eq_45(three_classes):
    grams, y = three_classes
    criterion = make("joint", grams, y)
    weights = random_weights(len(grams) + 1, 1)
    split = criterion.split(weights)
    w, lam = split.weights, split.regularization
    assert w.sum() == pytest.approx(1.0)
    expected = reference.rkda_joint(grams, y, w, lam)
    np.testing.assert_allclose(criterion.at(weights).value, expected, rtol=1e-8)


@pytest.mark.parametrize("lam", LAMBDAS)
def test_fisher_ratio_is_kim_2006_eq_7(two_classes, lam):
    grams, y = two_classes
    w = random_weights(len(grams), 2)
    criterion = make("fdr", grams, y, lam)
    value = criterion.objective(criterion.at(w).value)
    np.testing.assert_allclose(value, reference.fisher_ratio(grams, y, w, lam), rtol=1e-8)


def test_fisher_ratio_with_explicit_features():
    """A linear kernel gives the ratio of section 2.2, computed in the space of the features."""
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], [12, 18])
    X = rng.standard_normal((30, 3)) + y[:, None]
    X *= np.sqrt(30 / np.trace(X @ X.T))  # so that the kernel has trace m already
    criterion = make("fdr", (X @ X.T)[None], y, 0.1)
    value = criterion.objective(criterion.at(np.ones(1)).value)
    expected = reference.fisher_ratio_in_feature_space(X, y, 0.1)
    np.testing.assert_allclose(value, expected, rtol=1e-10)


@pytest.mark.parametrize("kind", ["rkda", "joint", "fdr"])
def test_gradient_and_hessian_against_finite_differences(kind, two_classes, three_classes):
    grams, y = two_classes if kind == "fdr" else three_classes
    criterion = make(kind, grams, y)
    n = criterion.bank.n_kernels
    w, step = random_weights(n, 4), 1e-5
    point = criterion.at(w)
    for i, unit in enumerate(np.eye(n)):
        above, below = criterion.at(w + step * unit), criterion.at(w - step * unit)
        difference = (above.value - below.value) / (2 * step)
        np.testing.assert_allclose(point.gradient[i], difference, rtol=1e-5)
        row = (above.gradient - below.gradient) / (2 * step)
        np.testing.assert_allclose(point.hessian[i], row, rtol=1e-4, atol=1e-6 * abs(row).max())


@pytest.mark.parametrize("kind", ["rkda", "joint", "fdr"])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), share=st.floats(0.05, 0.95))
def test_convex_along_random_chords(kind, seed, share):
    """Theorem 2.1 and Lemma 3.1 of Ye 2008; section 3.2 of Kim 2006 (minus the ratio)."""
    grams, y = make_problem(24, 2, 4, seed=seed % 5)
    criterion = make(kind, grams, y)
    n = criterion.bank.n_kernels
    a, b = random_weights(n, seed), random_weights(n, seed + 1)
    between = criterion.at(share * a + (1 - share) * b).value
    chord = share * criterion.at(a).value + (1 - share) * criterion.at(b).value
    assert between <= chord + 1e-9 * abs(chord)


@pytest.mark.parametrize("kind", ["rkda", "joint", "fdr"])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_certificate_is_a_true_bound(kind, seed):
    """No weights have a smaller value than the bound at any other weights."""
    grams, y = make_problem(24, 2, 4, seed=seed % 5)
    criterion = make(kind, grams, y)
    n = criterion.bank.n_kernels
    bound = criterion.at(random_weights(n, seed)).bound
    others = [random_weights(n, seed + s) for s in range(1, 6)] + list(np.eye(n) * 0.98 + 0.02 / n)
    assert all(criterion.at(w).value >= bound * (1 - 1e-9 * np.sign(bound)) for w in others)


def test_any_dual_point_bounds_rkda_from_below(three_classes):
    """Weak duality of Ye 2008, Eq. (34): B need not come from weights."""
    grams, y = three_classes
    criterion = make("rkda", grams, y)
    best = reference.rkda_qcqp(grams, y, 1e-2)[0]
    rng = np.random.default_rng(5)
    good = criterion.at(random_weights(len(grams), 6)).dual
    for noise in (0.0, 0.1, 1.0):
        dual = good + noise * np.abs(good).max() * rng.standard_normal(good.shape)
        assert criterion.lower_bound(dual) <= best * (1 + 1e-7)


def test_fisher_ratio_keeps_its_digits_at_the_papers_lambda(two_classes):
    """At λ = 1e-8 Eq. (7) as printed has lost most digits; the least-squares form has not.

    λF is what stays finite; compare with an evaluation in extended precision.
    """
    grams, y = (part[:2, :14, :14] if part.ndim == 3 else part[:14] for part in two_classes)
    lam, w = 1e-8, np.array([0.3, 0.7])
    criterion = make("fdr", grams, y, lam)
    mpmath.mp.dps = 60
    a, J = (mpmath.matrix(part.tolist()) for part in reference.kim_a_and_J(y))
    G = sum((wi * K * 14 / np.trace(K) for wi, K in zip(w, grams, strict=True)), np.zeros((14, 14)))
    G = mpmath.matrix(G.tolist())
    inner = (mpmath.mpf(lam) * mpmath.eye(14) + J * G * J) ** -1
    exact = ((a.T * G * a)[0] - (a.T * G * J * inner * J * G * a)[0]) / mpmath.mpf(lam)
    value = criterion.objective(criterion.at(w).value)
    assert value == pytest.approx(float(exact), rel=1e-7)


def test_a_value_below_its_bound_is_no_certificate():
    """One of the two is wrong, by their difference at least."""
    assert relative_gap(1.0, 1.5) == pytest.approx(0.5)
    assert relative_gap(2.0, 1.0) == pytest.approx(0.5)
    assert relative_gap(2.0, 1.0, error=1.0) == pytest.approx(1.0)
    assert relative_gap(1.0, -np.inf) == np.inf
    assert relative_gap(np.inf, 1.0) == relative_gap(np.nan, 1.0) == np.inf
    assert relative_gap(1.0, 1.0, error=np.inf) == np.inf
