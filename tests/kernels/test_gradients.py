"""Derivatives by scales, and gradients of sums of kernels by their rows, against differences."""

import numpy as np
import pytest
import scipy.sparse as sp

from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Cosine, Exponential, Laplace, Linear, Polynomial, Standardized
from discernel.kernels import expansion as module
from discernel.kernels.expansion import Expansion
from discernel.kernels.pairs import _common_ranks

RNG = np.random.default_rng(0)
X, Z = RNG.standard_normal((13, 4)), RNG.standard_normal((9, 4))
COEF = RNG.standard_normal((9, 3))
SCALES = (0.5, 2.0, 0.0, 1.3)

KERNELS = [
    RBF(gamma=0.4),
    RBF(width=2.0, scales=SCALES),
    RBF(length_scale=2.0, scales=SCALES),
    Exponential(width=2.0),
    Exponential(gamma=0.3, scales=SCALES),
    Laplace(width=2.0),
    Laplace(gamma=0.3, scales=SCALES),
]
WRAPPED = [
    RBF(width=2.0).named("a"),
    3.0 * Exponential(width=2.0, scales=SCALES),
    Laplace(width=2.0, scales=[2.0, 0.5]).on([3, 0]),
    Standardized(RBF(width=2.0, scales=SCALES)).resolve(X * [1.0, 5.0, 0.2, 1.0]),
    Standardized(2.0 * Laplace(width=2.0)).resolve(X),
    (2.0 * RBF(width=2.0).on([1, 2])).named("b"),
    RBF(width=2.0) + 2.0 * Laplace(width=3.0, scales=[1.0]).on([1]),
    Linear().on([2, 0]) + 0.5,
    Standardized(Linear((0.1, 0.2, 0.3, 0.4)), (2.0, 1.0, 0.0, 0.5)),
    2.0 * Polynomial(degree=3, gamma=0.2),
    RBF(width=2.0) * Laplace(width=3.0),
    (RBF(width=2.0).on([0, 1]) * Linear() + 0.5) ** 2,
]


def differences(kernel, X, coef, Z, step=1e-6):
    """Return ∂f_c/∂x_l at every row, by moving every column both ways."""
    found = np.empty((*X.shape, coef.shape[1]))
    for column in range(X.shape[1]):
        above, below = X.copy(), X.copy()
        above[:, column] += step
        below[:, column] -= step
        found[:, column] = (kernel(above, Z) - kernel(below, Z)) @ coef / (2.0 * step)
    return found


# ---- by scales -------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("other", [None, Z], ids=["X", "X and Z"])
def test_derivatives_by_scales_equal_differences(kernel, other):
    scales = np.ones(4) if kernel.scales is None else np.array(kernel.scales)
    for column in range(4):
        step = 1e-6 * (np.arange(4) == column)
        above = kernel.with_settings(scales=scales + step)(X, other)
        if scales[column] == 0:  # from the right only
            expected = (above - kernel(X, other)) / 1e-6
        else:
            below = kernel.with_settings(scales=scales - step)(X, other)
            expected = (above - below) / 2e-6
        found = kernel.scale_derivative(column, X, other)
        np.testing.assert_allclose(found, expected, atol=2e-6)
        assert found.dtype == np.float64


@pytest.mark.parametrize(
    ("kernel", "rows", "column"),
    [
        (RBF(width=2.0, scales=SCALES).named("a"), X, 1),
        (3.0 * Laplace(width=2.0, scales=SCALES), X, 0),
        (Exponential(width=2.0, scales=[2.0, 0.5]).on([3, 0]), X, 1),
        (Standardized(RBF(width=2.0, scales=SCALES), spreads=(2.0, 1.0, 1.0, 0.5)), X, 3),
    ],
    ids=["named", "scaled", "restricted", "standardized"],
)
def test_derivatives_by_scales_of_wrapped_kernels(kernel, rows, column):
    scales = np.array(kernel.settings["scales"])
    step = 1e-6 * (np.arange(len(scales)) == column)
    above, below = (kernel.with_settings(scales=scales + s)(rows, Z) for s in (step, -step))
    found = kernel.scale_derivative(column, rows, Z)
    np.testing.assert_allclose(found, (above - below) / 2e-6, atol=1e-8)


@pytest.mark.parametrize("kind", [RBF, Exponential, Laplace])
def test_derivatives_by_scales_of_sparse_rows(kind):
    kernel = kind(width=2.0, scales=SCALES)
    found = kernel.scale_derivative(1, sp.csr_array(X), sp.csr_array(Z))
    np.testing.assert_allclose(found, kernel.scale_derivative(1, X, Z), atol=1e-7)


@pytest.mark.parametrize("column", [-1, 4])
def test_the_column_of_a_scale_must_be_one(column):
    with pytest.raises(InvalidInputError, match="one of 0 to 3"):
        RBF(width=1.0).scale_derivative(column, X)


# ---- by rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [*KERNELS, *WRAPPED], ids=repr)
def test_gradients_equal_differences(kernel):
    found = kernel.gradient(X, COEF, Z)
    assert found.shape == (13, 4, 3)
    np.testing.assert_allclose(found, differences(kernel, X, COEF, Z), atol=1e-8)


@pytest.mark.parametrize("kernel", [*KERNELS, *WRAPPED], ids=repr)
@pytest.mark.parametrize("entries", [2**21, 40, 1])
def test_squared_gradients_are_means_of_squares_of_gradients(kernel, entries, monkeypatch):
    """However many rows are taken at a time."""
    expected = (kernel.gradient(X, COEF, Z) ** 2).sum(axis=2).mean(axis=0)
    own = kernel.gradient(X, X[:, :2])
    monkeypatch.setattr(module, "_BLOCK_ENTRIES", entries)
    found = kernel.squared_gradient(X, COEF, Z)
    assert found.shape == (4,)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(kernel.gradient(X, X[:, :2]), own, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_at_its_own_rows_a_kernel_has_no_slope(kernel):
    """Without Z: a row is at distance 0 from itself, where a tip counts for nothing."""
    coef = RNG.standard_normal((13, 2))
    others = [np.arange(13) != i for i in range(13)]
    expected = [kernel.gradient(X[[i]], coef[keep], X[keep])[0] for i, keep in enumerate(others)]
    np.testing.assert_allclose(kernel.gradient(X, coef), expected, rtol=1e-9, atol=1e-12)
    one = kernel.gradient(X, coef[:, 0])
    np.testing.assert_array_equal(one, kernel.gradient(X, coef[:, :1]))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_equal_rows_and_equal_values_have_no_slope(kernel):
    """Rows that are there twice, and columns of few values."""
    rows = np.round(np.concatenate([X, X[:4]]))
    coef = RNG.standard_normal((17, 1))
    slow = np.zeros((17, 4))
    scales = np.ones(4) if kernel.scales is None else np.array(kernel.scales)
    for i, x in enumerate(rows):
        for j, z in enumerate(rows):
            u = scales * (x - z)
            k = kernel(x[None], z[None]).item() * coef[j, 0] * scales
            if isinstance(kernel, RBF):
                slow[i] += -2.0 * kernel.exponent * k * u
            elif isinstance(kernel, Exponential) and u.any():
                slow[i] += -kernel.exponent * k * u / np.linalg.norm(u)
            elif isinstance(kernel, Laplace):
                slow[i] += -kernel.exponent * k * np.sign(x - z)
    np.testing.assert_allclose(kernel.gradient(rows, coef)[:, :, 0], slow, atol=1e-7)
    np.testing.assert_allclose(
        kernel.squared_gradient(rows, coef), (slow**2).mean(axis=0), atol=1e-7
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("offset", [2.0**10, 2.0**20, -(2.0**30)])
def test_far_from_the_origin_gradients_keep_their_digits(kernel, offset):
    near = np.round(X * 64) / 64, np.round(Z * 64) / 64  # of which the offset costs no digit
    expected = kernel.gradient(near[0], COEF, near[1])
    found = kernel.gradient(near[0] + offset, COEF, near[1] + offset)
    lost = 0.0 if kernel.scales is None else 1e-15 * abs(offset)  # by the product with 1.3
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 + lost)


@pytest.mark.parametrize("entries", [2**21, 500])
def test_rows_are_at_distance_0_from_themselves(entries, monkeypatch):
    """Exactly: next to 0, rounding errors of the distance cost half of the digits."""
    monkeypatch.setattr(module, "_BLOCK_ENTRIES", entries)
    rows, coef = RNG.standard_normal((60, 6)), RNG.standard_normal(60)
    differences = rows[:, None] - rows
    distances = np.linalg.norm(differences, axis=2) + np.eye(60)
    weights = -0.5 * np.exp(-0.5 * distances) * coef / distances
    expected = np.einsum("ij,ijl->il", weights, differences)
    found = Exponential(width=2.0).gradient(rows, coef)[:, :, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(Exponential(width=2.0).gradient(rows, coef, rows)[:, :, 0], found)


def test_blocks_are_bounded_whatever_is_large():
    for n, m, columns, outputs in ((5000, 3000, 2, 1), (5000, 10, 1500, 2)):
        made = Expansion.of(np.zeros((n, columns)), np.zeros((m, outputs)), np.zeros((m, columns)))
        longest = max(rows.stop - rows.start for rows in made.blocks)
        assert longest * max(m, columns * outputs) <= 2**21
        assert 1 < len(made.blocks) < 10
        assert [rows.start for rows in made.blocks[1:]] == [rows.stop for rows in made.blocks[:-1]]
        assert made.blocks[-1].stop == n


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("size", [1e6, 1e100])
def test_one_far_row_does_not_matter(kernel, size):
    rows, coef = X.copy(), np.ones((13, 1))
    rows[4] = size
    keep = np.arange(13) != 4
    expected = kernel.gradient(rows[keep], coef[keep])
    found = kernel.gradient(rows, coef)
    np.testing.assert_allclose(found[keep], expected, atol=1e-9)
    assert np.isfinite(kernel.squared_gradient(rows, coef)).all()


@pytest.mark.parametrize("kernel", [*KERNELS, *WRAPPED[:6]], ids=repr)
def test_single_precision(kernel):
    rows, others, coef = (a.astype(np.float32) for a in (X, Z, COEF))
    expected = kernel.gradient(rows.astype(float), coef.astype(float), others.astype(float))
    found = kernel.gradient(rows, coef, others)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=5e-6)
    squared = kernel.squared_gradient(rows, coef, others)
    assert squared.dtype == np.float64
    np.testing.assert_allclose(squared, (expected**2).sum(axis=2).mean(axis=0), rtol=1e-4)
    assert kernel.gradient(rows, coef.astype(float), others).dtype == np.float64


def test_ranks_of_many_rows_are_wide_enough():
    """Differences of 16 bits would turn round."""
    x = np.linspace(0.0, 1.0, 2**15 + 10)[:, None]
    left, right = _common_ranks(x[:5], x[5:])
    assert left.shape == (1, 5)
    assert int(right[0, -1]) - int(left[0, 0]) == 2**15 + 9
    small, _ = _common_ranks(x[: 2**15 - 1], None)
    assert small.dtype == np.int16
    assert (np.diff(small[0]) == 1).all()
    assert small[0, -1] - small[0, 0] == 2**15 - 2


@pytest.mark.parametrize("signs", [1, 30, 2**16])
def test_signs_some_columns_and_rows_at_a_time(signs, monkeypatch):
    rows, others = RNG.standard_normal((150, 4)), RNG.standard_normal((9, 4))
    expected = differences(Laplace(width=2.0), rows, COEF, others)
    monkeypatch.setattr("discernel.kernels.pairs._SIGNS", signs)
    monkeypatch.setattr("discernel.kernels.pairs.free_threads", lambda n: 3)
    np.testing.assert_allclose(Laplace(width=2.0).gradient(rows, COEF, others), expected, atol=1e-8)


# ---- what is refused -------------------------------------------------------------------------


class Other(RBF):
    def __call__(self, X, Z=None):
        return 1.0 / (1.0 + super().__call__(X, Z))


@pytest.mark.parametrize("kernel", [Cosine(), Other(width=1.0), Other(width=1.0) * RBF()], ids=repr)
def test_kernels_without_gradients_say_so(kernel):
    """A subclass that is another function has not the gradient of what it inherits from."""
    kernel = kernel.resolve(X)
    for method in (kernel.gradient, kernel.squared_gradient, kernel.named("a").gradient):
        with pytest.raises(NotImplementedError, match="has no gradient by its rows"):
            method(X, COEF, Z)
    with pytest.raises(NotImplementedError, match="has no column scales"):
        kernel.scale_derivative(0, X)


@pytest.mark.parametrize("kernel", [Linear(), RBF(width=1.0) + Laplace(width=1.0)], ids=repr)
def test_kernels_without_scales_say_so(kernel):
    with pytest.raises(NotImplementedError, match="has no column scales"):
        kernel.scale_derivative(0, X)


def test_what_does_not_fit_is_refused():
    kernel = RBF(width=1.0)
    with pytest.raises(InvalidInputError, match=r"one row of coefficients per row of Z.* here 9"):
        kernel.gradient(X, COEF[:5], Z)
    with pytest.raises(InvalidInputError, match=r"one row of coefficients .* here 13"):
        kernel.squared_gradient(X, COEF)
    with pytest.raises(InvalidInputError, match="dense rows"):
        kernel.gradient(sp.csr_array(X), COEF, Z)
    with pytest.raises(InvalidInputError, match=r"one scale per column, here 4\. Got 2"):
        RBF(width=1.0, scales=[1.0, 2.0]).squared_gradient(X, COEF, Z)
