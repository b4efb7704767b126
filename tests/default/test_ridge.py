"""Fits of a sum of kernels in single precision, against kernels, banks and fits in double."""

from dataclasses import replace

import numpy as np
import pytest

from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import CombinedKernel, DenseBank
from discernel.criteria import KernelLeastSquares
from discernel.default.menu import MENU, Menu
from discernel.default.ridge import Ridge
from discernel.kernels import Linear
from tests.default.tables import make_sample

SINGLE = np.float32
SCALES = np.array([1.0, 0.7, 0.2, 0.0, 0.05, 1.0])
EQUAL = np.full(MENU.n_kernels, 1.0 / MENU.n_kernels)
SOME = np.random.default_rng(0).dirichlet(np.ones(MENU.n_kernels))
GIVEN = {
    "equal": None,
    "counts": np.arange(60) % 3 + 1,
    "weights": np.random.default_rng(1).uniform(0.2, 3.0, 60),
}


def double_precision(sample, outside, inside, scales, weights, regularization):
    """Return what the kernels themselves predict for rows inside, fitted to those outside."""
    rows, known = sample.rows * scales, sample.weights.values[outside]
    kernels = MENU.kernels(rows[outside])
    counted = SampleWeights(known)
    bank = DenseBank(
        np.array([kernel(rows[outside]) for kernel in kernels]), sample_weights=counted
    )
    ridge = np.full(len(outside), regularization)
    targets = counted.roots[:, None] * sample.scores[outside]
    fit = KernelLeastSquares(bank.system(weights, ridge), ridge, targets, counted)
    combined = CombinedKernel(
        kernels, weights * bank.scales, rows[outside], bank.centering(weights)
    )
    return combined.product(rows[inside], fit.coef) + fit.intercept


def held_out_ridge(sample, outside, inside, scales, dtype):
    """Return the ridge of the rows outside of a fold, with those inside held out."""
    order = np.concatenate([outside, inside])
    shape = MENU.n_kernels, len(order), len(outside)
    stack = MENU.matrices((sample.rows * scales)[order], len(outside), np.empty(shape, dtype=dtype))
    return Ridge(stack, sample.scores[order], sample.weights.values[order])


def first_division(sample):
    return next(iter(sample.divisions()))


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("kind", ["classes", "numbers", "labels"])
@pytest.mark.parametrize("weights", [EQUAL, SOME], ids=["average", "some"])
@pytest.mark.parametrize(("dtype", "atol"), [(SINGLE, 2e-3), (np.float64, 1e-9)], ids=str)
def test_predictions_are_those_of_the_kernels(given, kind, weights, dtype, atol):
    sample = make_sample(given=GIVEN[given], kind=kind)
    for outside, inside in sample.divisions():
        ridge = held_out_ridge(sample, outside, inside, SCALES, dtype)
        combined = ridge.combined(weights)
        for regularization in (1.0, 1e-2, 1e-4):
            expected = double_precision(sample, outside, inside, SCALES, weights, regularization)
            found = ridge.predict(combined, regularization)
            np.testing.assert_allclose(found, expected, atol=atol)


def test_predictions_do_not_know_the_rows_of_the_fold():
    sample = make_sample()
    outside, inside = first_division(sample)
    ridge = held_out_ridge(sample, outside, inside, SCALES, SINGLE)
    expected = ridge.predict(ridge.combined(EQUAL), 1e-2)
    scores, weights = sample.scores.copy(), sample.weights.values.copy()
    scores[inside], weights[inside] = 100.0, 7.0
    target = replace(sample.target, sample_weights=SampleWeights(weights))
    other = replace(sample, scores=scores, target=target)
    ridge = held_out_ridge(other, outside, inside, SCALES, SINGLE)
    np.testing.assert_array_equal(ridge.predict(ridge.combined(EQUAL), 1e-2), expected)


def test_one_far_row_changes_no_other_prediction():
    sample = make_sample()
    outside, inside = first_division(sample)
    sample.rows[outside[4]] += 1e6
    ridge = held_out_ridge(sample, outside, inside, np.ones(6), SINGLE)
    found = ridge.predict(ridge.combined(EQUAL), 1e-2)
    expected = double_precision(sample, outside, inside, np.ones(6), EQUAL, 1e-2)
    np.testing.assert_allclose(found, expected, atol=1e-2)


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("regularization", [1e-1, 1e-3])
@pytest.mark.parametrize(("dtype", "rtol"), [(SINGLE, 5e-3), (np.float64, 1e-6)], ids=str)
def test_errors_and_their_gradients_equal_differences(given, regularization, dtype, rtol):
    sample = make_sample(given=GIVEN[given])
    outside, inside = first_division(sample)

    def value(weights):
        found = double_precision(sample, outside, inside, SCALES, weights, regularization)
        return sample.weights.values[inside] @ np.sum((found - sample.scores[inside]) ** 2, axis=1)

    found = held_out_ridge(sample, outside, inside, SCALES, dtype).error(SOME, regularization)
    assert found.value == pytest.approx(value(SOME), rel=rtol)
    step = 1e-5
    expected = [
        (value(SOME + step * unit) - value(SOME - step * unit)) / (2 * step)
        for unit in np.eye(MENU.n_kernels)
    ]
    atol = rtol * np.abs(expected).max()
    np.testing.assert_allclose(found.by_weights, expected, atol=atol)


def test_kernels_that_are_constant_count_nothing():
    sample = make_sample()
    outside, inside = first_division(sample)
    sample.rows[:] = 1.0
    ridge = held_out_ridge(sample, outside, inside, np.ones(6), SINGLE)
    found = ridge.predict(ridge.combined(EQUAL), 1e-2)
    mean = sample.scores[outside].mean(axis=0)
    np.testing.assert_allclose(found, np.tile(mean, (len(inside), 1)), atol=1e-6)
    np.testing.assert_array_equal(ridge.error(EQUAL, 1e-2).by_weights, 0.0)


# ---- the menu --------------------------------------------------------------------------------


@pytest.mark.parametrize("menu", [MENU, Menu(gaussian=(2.0, 1.0), laplace=(1.0,))])
def test_matrices_are_those_of_the_kernels(menu):
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((17, 4)), rng.standard_normal((23, 4))
    out = np.empty((menu.n_kernels, 40, 23), dtype=np.float32)
    out = menu.matrices(np.concatenate([Z, X]), 23, out)[:, 23:]
    kernels = menu.kernels(Z)
    assert len(kernels) == menu.n_kernels
    for kernel, found in zip(kernels[:-1], out[:-1], strict=True):
        np.testing.assert_allclose(found, kernel(X, Z), rtol=1e-4, atol=1e-12, err_msg=repr(kernel))
    assert kernels[-1] == Linear()
    origin = np.median(Z, axis=0)
    np.testing.assert_allclose(out[-1], (X - origin) @ (Z - origin).T, atol=1e-5)


def test_nothing_far_becomes_denormal():
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((5, 2)), rng.standard_normal((9, 2))
    X[0] = 1e8
    out = np.empty((MENU.n_kernels, 14, 9), dtype=np.float32)
    out = MENU.matrices(np.concatenate([Z, X]), 9, out)[:, 9:]
    assert np.abs(out[:-1]).min() >= np.finfo(np.float32).tiny
    assert np.abs(out[:-1, 0]).max() < 1e-15


def test_widths_are_multiples_of_the_medians():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40, 3))
    pairs = [(i, j) for i in range(40) for j in range(i)]
    wide = np.median([np.linalg.norm(rows[i] - rows[j]) for i, j in pairs])
    far = np.median([np.abs(rows[i] - rows[j]).sum() for i, j in pairs])
    kernels = MENU.kernels(rows)
    widths = [kernel.width for kernel in kernels[:-1]]
    factors = [*(factor * wide for factor in MENU.gaussian), *(f * far for f in MENU.laplace)]
    np.testing.assert_allclose(widths, factors)
