"""Kernel alignment: Eq. (3), (4), (7) and (12) of Pothin 2006, against sums over all entries."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from discernel.bank import DenseBank, tiles
from discernel.bank.grams import inner_products
from discernel.kernels import RBF, Exponential, Polynomial
from discernel.papers.alignment.criterion import (
    MatrixAlignment,
    alignment,
    alignment_derivative,
    bank_products,
    best_pair,
    stack_products,
)
from discernel.targets import ClassTarget
from tests import reference
from tests.conftest import make_problem


def frobenius(A, B):
    """⟨A, B⟩_F, entry by entry."""
    return sum(A[i, j] * B[i, j] for i in range(len(A)) for j in range(len(A)))


def aligned(K, target):
    """Eq. (2) and (4)."""
    return frobenius(K, target) / np.sqrt(frobenius(K, K) * frobenius(target, target))


def class_target(y):
    """K* = HHᵀ, of any number of classes."""
    H = reference.indicator(y)
    return H @ H.T


def sign_target(y):
    """Eq. (3): 1 where two labels are the same, −1 where they are not."""
    return np.array([[1.0 if a == b else -1.0 for b in y] for a in y])


def check_products(products, kernels, target):
    M = [[frobenius(a, b) for b in kernels] for a in kernels]
    np.testing.assert_allclose(products.M, M, rtol=1e-9, atol=1e-12 * np.max(M))
    np.testing.assert_allclose(products.f, [frobenius(K, target) for K in kernels], rtol=1e-9)
    assert products.norm == pytest.approx(np.sqrt(frobenius(target, target)), rel=1e-12)


# ---- products --------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["two_classes", "three_classes"])
def test_products_of_a_bank_are_those_of_centred_normalised_kernels(problem, request):
    grams, y = request.getfixturevalue(problem)
    found = bank_products(DenseBank(grams), ClassTarget.from_labels(y))
    check_products(found, reference.trace_normalized(grams), class_target(y))


@pytest.mark.parametrize("problem", ["two_classes", "three_classes"])
def test_products_of_a_stack_are_those_of_centred_kernels(problem, request):
    grams, y = request.getfixturevalue(problem)
    found = stack_products(grams, ClassTarget.from_labels(y).scores)
    check_products(found, reference.centered(grams), class_target(y))


def test_centring_takes_the_target_along(two_classes):
    grams, y = two_classes
    m = len(y)
    P = np.eye(m) - np.ones((m, m)) / m
    columns = np.random.default_rng(0).standard_normal((m, 2)) + 3.0
    found = stack_products(grams, columns)
    check_products(found, reference.centered(grams), P @ columns @ columns.T @ P)


def test_plain_products_are_those_of_the_paper(two_classes):
    grams, y = two_classes
    unbalanced = np.where(np.arange(len(y)) < 11, "a", "b")
    columns = ClassTarget.from_labels(unbalanced).signs[:, None]
    found = stack_products(grams, columns, centered=False)
    check_products(found, grams, sign_target(unbalanced))
    assert found.norm == pytest.approx(len(y))


@pytest.mark.parametrize("centered", [True, False])
def test_rows_in_turns_give_the_same_products(three_classes, centered, monkeypatch):
    grams, _ = three_classes
    once = inner_products(grams, centered=centered)
    monkeypatch.setattr(tiles, "_BLOCK_ENTRIES", grams[:, :7].size)  # 45 is no multiple of 7
    np.testing.assert_allclose(inner_products(grams, centered=centered), once, rtol=1e-12)


def test_kernels_much_wider_than_the_data_keep_their_digits(blobs):
    """exp(−t) − 1 has all digits of what centring leaves of exp(−t)."""
    X, y = blobs
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    for width in (1e2, 1e4, 1e5):
        exact = reference.centered(np.expm1(-squared / width**2)[None])[0]
        found = stack_products(RBF(width=width)(X)[None], ClassTarget.from_labels(y).scores)
        assert found.M[0, 0] == pytest.approx(np.sum(exact**2), rel=1e-6)
        expected = np.sum(exact * class_target(y)) / np.linalg.norm(exact)
        assert found.f[0] / np.sqrt(found.M[0, 0]) == pytest.approx(expected, rel=1e-6)


def test_a_constant_kernel_counts_as_nothing_once_centred(three_classes):
    grams, y = three_classes
    stack = np.concatenate([grams[:2], 0.1 + 1e-14 * grams[:1]])  # constant but for rounding
    columns = ClassTarget.from_labels(y).scores
    M, f, norm = stack_products(stack, columns)
    assert M[2].tolist() == M[:, 2].tolist() == [0, 0, 0]
    assert (f[2], float(alignment(M, f, np.array([0, 0, 1.0]), norm))) == (0.0, 0.0)
    one = MatrixAlignment(stack[2].copy(), columns)
    assert (one.value, one.derivative(grams[0])) == (0.0, 0.0)


def test_a_constant_kernel_is_like_any_other_where_it_is_not_centred():
    labels = np.repeat([0, 1], [10, 30])
    columns = ClassTarget.from_labels(labels).signs[:, None]
    one = MatrixAlignment(np.full((40, 40), 2.0), columns, centered=False)
    assert one.value == pytest.approx(0.25)  # (30 − 10)² / 40²


def test_the_second_class_is_the_positive_one():
    target = ClassTarget.from_labels(["no", "yes", "yes"])
    np.testing.assert_array_equal(target.signs, [-1, 1, 1])


# ---- Eq. (4) ---------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["two_classes", "three_classes"])
def test_alignment_is_equation_4_of_the_centred_combination(problem, request):
    grams, y = request.getfixturevalue(problem)
    M, f, norm = bank_products(DenseBank(grams), ClassTarget.from_labels(y))
    for seed in range(5):
        mu = np.random.default_rng(seed).exponential(size=len(grams))
        K = np.tensordot(mu, reference.trace_normalized(grams), 1)
        assert alignment(M, f, mu, norm) == pytest.approx(aligned(K, class_target(y)), rel=1e-10)


def test_plain_alignment_is_equation_4_as_printed(two_classes):
    grams, y = two_classes
    M, f, norm = stack_products(grams, ClassTarget.from_labels(y).signs[:, None], centered=False)
    mu = np.array([0.5, 0.0, 2.0, 1.0, 1e-3])
    K = np.tensordot(mu, grams, 1)
    signs = np.where(y == 1, 1.0, -1.0)
    printed = signs @ K @ signs / (len(y) * np.linalg.norm(K))
    assert alignment(M, f, mu, norm) == pytest.approx(printed, rel=1e-12)
    assert printed == pytest.approx(aligned(K, sign_target(y)), rel=1e-12)


def test_alignment_of_many_weights_at_once(three_classes):
    grams, y = three_classes
    M, f, norm = stack_products(grams, ClassTarget.from_labels(y).scores)
    weights = np.random.default_rng(0).exponential(size=(3, 4, len(f)))
    together = alignment(M, f, weights, norm)
    assert together.shape == (3, 4)
    for index in np.ndindex(3, 4):
        assert together[index] == pytest.approx(float(alignment(M, f, weights[index], norm)))


def test_alignment_does_not_depend_on_scales(three_classes):
    grams, y = three_classes
    columns = ClassTarget.from_labels(y).scores
    factors = np.geomspace(1e-3, 1e3, len(grams))
    mu = np.arange(1.0, len(grams) + 1)
    M, f, norm = stack_products(grams, columns)
    scaled = stack_products(grams * factors[:, None, None], 5.0 * columns)
    value = alignment(M, f, mu, norm)
    assert alignment(M, f, 7.0 * mu, norm) == pytest.approx(value)
    assert alignment(scaled.M, scaled.f, mu / factors, scaled.norm) == pytest.approx(value)


# ---- Eq. (7) ---------------------------------------------------------------------------------


def all_pairs():
    """Products of every pair of kernels of some problems, either one first."""
    for seed in range(2):
        grams, y = make_problem(30, 2 + seed % 2, 6, seed=seed)
        M, f, _ = stack_products(grams, ClassTarget.from_labels(y).scores)
        yield from ((M[np.ix_(p, p)], f[list(p)]) for p in np.ndindex(6, 6) if p[0] != p[1])


def test_best_pair_is_that_of_a_grid_and_of_scipy():
    outcomes = set()
    for M, f in all_pairs():

        def value(angle, M=M, f=f):
            scaled = np.array([np.cos(angle), np.sin(angle)]) / np.sqrt(np.diag(M))
            return float(alignment(M, f, scaled))

        pair = best_pair(M, f)
        found = float(alignment(M, f, pair))
        grid = np.linspace(0.0, np.pi / 2, 201)
        best = max(grid, key=value)
        near = (max(0.0, best - 0.01), min(np.pi / 2, best + 0.01))
        refined = minimize_scalar(lambda t: -value(t), bounds=near, options={"xatol": 1e-10})
        assert pair.min() >= 0
        assert found == pytest.approx(max(value(best), -refined.fun), rel=1e-9)
        outcomes.add("both" if pair.min() > 0 else tuple(pair.tolist()))
    assert outcomes == {"both", (1.0, 0.0), (0.0, 1.0)}  # all three lines of Eq. (7)


@pytest.mark.parametrize("lam", [0.0, 0.3, 30.0])
def test_best_pair_maximises_the_program_of_two_kernels(lam):
    """Eq. (6) with m = 2; where one kernel is left the paper fixes its weight to 1."""
    n_both = 0
    for M, f in all_pairs():
        scale = np.sqrt(np.diag(M))
        M, f = M / np.outer(scale, scale), f / scale / f.max()
        pair = best_pair(M, f, lam)

        def minus_w(mu, M=M, f=f):
            gradient = 2.0 * (M + lam * np.eye(2)) @ mu - f
            return mu @ (M + lam * np.eye(2)) @ mu - f @ mu, gradient

        options = {"ftol": 1e-15, "gtol": 1e-12}
        brute = minimize(
            minus_w,
            [0.1, 0.1],
            jac=True,
            bounds=[(0, None)] * 2,
            method="L-BFGS-B",
            options=options,
        )
        if pair.min() > 0:
            n_both += 1
            assert minus_w(pair)[0] <= brute.fun + 1e-12
            # The second condition with ‖K_2‖², not the ‖K_2‖ that is printed.
            np.testing.assert_allclose(minus_w(pair)[1], 0, atol=1e-9)
        else:
            np.testing.assert_allclose(brute.x / brute.x.max(), pair, atol=1e-5)
    assert n_both > 10


def test_many_pairs_at_once():
    Ms, fs = (np.array(stack) for stack in zip(*all_pairs(), strict=True))
    together = best_pair(Ms, fs, 0.1)
    for M, f, pair in zip(Ms, fs, together, strict=True):
        np.testing.assert_array_equal(best_pair(M, f, 0.1), pair)


def test_of_two_parallel_kernels_the_first_is_taken():
    for factor in np.linspace(0.1, 3.0, 50):
        both = np.array([1.3, 1.3 * factor])
        np.testing.assert_array_equal(best_pair(np.outer(both, both), 0.7 * both), [1, 0])
    np.testing.assert_array_equal(best_pair(np.diag([0.0, 2.0]), np.array([0.0, 1.0])), [0, 1])
    # λ tells even parallel kernels apart.
    assert best_pair(np.outer(both, both), both, 1.0).min() > 0


# ---- Eq. (12) --------------------------------------------------------------------------------


def test_derivative_by_products_is_equation_12(two_classes):
    grams, y = two_classes
    K, slope = reference.centered(grams)[[2, 4]]
    target = class_target(y)
    found = alignment_derivative(
        frobenius(slope, target),
        frobenius(slope, K),
        frobenius(K, target),
        frobenius(K, K),
        np.linalg.norm(target),
    )
    step = 1e-5 * np.linalg.norm(K) / np.linalg.norm(slope)
    difference = aligned(K + step * slope, target) - aligned(K - step * slope, target)
    assert abs(found) > 1e-6
    assert found == pytest.approx(difference / (2 * step), rel=1e-6)


KERNELS = [
    RBF(width=4.0),
    RBF(length_scale=3.0),
    RBF(gamma=0.02),
    Exponential(width=6.0),
    Polynomial(degree=3, gamma=0.2, coef0=1.5),
    RBF(width=5.0) + 0.1 * Polynomial(degree=2, gamma=0.3),
]


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_derivatives_by_parameters_against_differences(blobs, kernel, centered):
    X, y = blobs
    y = y if centered else y > 0
    target = ClassTarget.from_labels(y)
    columns = target.scores if centered else target.signs[:, None]

    def value(**parameters):
        K = kernel.with_parameters(**parameters)(X)
        K = reference.centered(K[None])[0] if centered else K
        return np.sum(K * (columns @ columns.T)) / np.linalg.norm(K)

    here = MatrixAlignment(kernel(X), columns, centered=centered)
    norm = np.linalg.norm(columns.T @ columns)
    assert here.value == pytest.approx(value() / norm, rel=1e-12)
    for name, parameter in kernel.parameters.items():
        step = 1e-5 * parameter
        above, below = value(**{name: parameter + step}), value(**{name: parameter - step})
        found = here.derivative(kernel.derivative(name, X))
        assert found == pytest.approx((above - below) / (2 * step * norm), rel=1e-5, abs=1e-9)
