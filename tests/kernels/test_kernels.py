"""Kernels against loops and scikit-learn, their algebra, derivatives, widths and errors."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from discernel import KernelDiscriminant
from discernel.arrays import squared_distances
from discernel.exceptions import InvalidInputError
from discernel.kernels import (
    RBF,
    Cosine,
    Exponential,
    Function,
    GaussianProcess,
    Kernel,
    Laplace,
    Linear,
    Pairwise,
    Polynomial,
    Precomputed,
    Standardized,
)
from discernel.kernels.distance import _median, median_distance
from discernel.kernels.evaluate import KernelSet
from discernel.kernels.terms import single_atom
from discernel.testing import check_kernel


def read_only(array: Any) -> np.ndarray:
    array = np.array(array, dtype=np.float64)
    array.flags.writeable = False
    return array


def make_rows(n_rows: int, seed: int, n_columns: int = 4) -> np.ndarray:
    return read_only(np.random.default_rng(seed).normal(size=(n_rows, n_columns)))


def loop(k: Callable[[Any, Any], float], X: Any, Z: Any) -> np.ndarray:
    return np.array([[k(x, z) for z in Z] for x in X])


def distance(x: np.ndarray, z: np.ndarray) -> float:
    return float(np.sqrt(sum((a - b) ** 2 for a, b in zip(x, z, strict=True))))


def inner(x: np.ndarray, z: np.ndarray) -> float:
    return float(sum(a * b for a, b in zip(x, z, strict=True)))


def shifted_inner_products(X: Any, Z: Any) -> np.ndarray:
    return np.asarray(X) @ np.asarray(Z).T + 1.0


@dataclasses.dataclass(frozen=True)
class Case:
    """A kernel, what it is in one line, and the kind of rows it takes."""

    kernel: Kernel
    reference: Callable[[np.ndarray, np.ndarray], float]
    positive: bool = False

    def rows(self, n_rows: int, seed: int) -> np.ndarray:
        X = make_rows(n_rows, seed)
        # Not read-only: scikit-learn's chi2 refuses such arrays.
        return np.abs(X) if self.positive else X


SQRT3 = np.sqrt(3.0)

CASES = {
    "linear": Case(Linear(), inner),
    "rbf width": Case(RBF(width=1.7), lambda x, z: np.exp(-(distance(x, z) ** 2) / 1.7**2)),
    "rbf length_scale": Case(
        RBF(length_scale=1.3), lambda x, z: np.exp(-(distance(x, z) ** 2) / (2 * 1.3**2))
    ),
    "rbf gamma": Case(RBF(gamma=0.4), lambda x, z: np.exp(-0.4 * distance(x, z) ** 2)),
    "exponential width": Case(Exponential(width=2.1), lambda x, z: np.exp(-distance(x, z) / 2.1)),
    "exponential gamma": Case(Exponential(gamma=0.6), lambda x, z: np.exp(-0.6 * distance(x, z))),
    "polynomial": Case(
        Polynomial(degree=3, gamma=0.5, coef0=1.5), lambda x, z: (1.5 + 0.5 * inner(x, z)) ** 3
    ),
    "polynomial homogeneous": Case(Polynomial(coef0=0.0), lambda x, z: inner(x, z) ** 2),
    "cosine": Case(Cosine(), lambda x, z: inner(x, z) / np.sqrt(inner(x, x) * inner(z, z))),
    "function": Case(Function(shifted_inner_products), lambda x, z: inner(x, z) + 1.0),
    "pairwise laplacian": Case(
        Pairwise("laplacian", (("gamma", 0.3),)),
        lambda x, z: np.exp(-0.3 * sum(abs(x - z))),
    ),
    "pairwise chi2": Case(
        Pairwise("chi2", (("gamma", 0.7),)),
        lambda x, z: np.exp(-0.7 * sum((x - z) ** 2 / (x + z))),
        positive=True,
    ),
    "gp rbf": Case(
        GaussianProcess(gp.RBF(length_scale=1.3)),
        lambda x, z: np.exp(-(distance(x, z) ** 2) / (2 * 1.3**2)),
    ),
    "gp matern": Case(
        GaussianProcess(2.0 * gp.Matern(length_scale=1.1, nu=1.5)),
        lambda x, z: (
            2.0 * (1.0 + SQRT3 * distance(x, z) / 1.1) * np.exp(-SQRT3 * distance(x, z) / 1.1)
        ),
    ),
    "sum": Case(
        RBF(gamma=0.4) + Linear(), lambda x, z: np.exp(-0.4 * distance(x, z) ** 2) + inner(x, z)
    ),
    "product": Case(
        RBF(gamma=0.4) * Polynomial(degree=2),
        lambda x, z: np.exp(-0.4 * distance(x, z) ** 2) * (1.0 + inner(x, z)) ** 2,
    ),
    "scaled": Case(
        2.5 * RBF(width=1.7), lambda x, z: 2.5 * np.exp(-(distance(x, z) ** 2) / 1.7**2)
    ),
    "restricted": Case(
        RBF(gamma=0.4).on([2, 0]),
        lambda x, z: np.exp(-0.4 * distance(x[[0, 2]], z[[0, 2]]) ** 2),
    ),
    "named": Case(Exponential(gamma=0.6).named("e"), lambda x, z: np.exp(-0.6 * distance(x, z))),
    "nested": Case(
        0.5 * (RBF(gamma=0.4).on([0, 1]) + Linear().on(3)) * Cosine(),
        lambda x, z: (
            0.5
            * (np.exp(-0.4 * distance(x[:2], z[:2]) ** 2) + x[3] * z[3])
            * inner(x, z)
            / np.sqrt(inner(x, x) * inner(z, z))
        ),
    ),
}

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


@pytest.fixture
def X() -> np.ndarray:
    return make_rows(15, seed=0)


@pytest.fixture
def Z() -> np.ndarray:
    return make_rows(9, seed=1)


# --- values -------------------------------------------------------------------------------------


@every_case
def test_gram_matrix_equals_loop(case: Case) -> None:
    X = case.rows(15, seed=0)
    assert_allclose(case.kernel(X), loop(case.reference, X, X), rtol=1e-10, atol=1e-12)


@every_case
def test_cross_matrix_equals_loop(case: Case) -> None:
    X, Z = case.rows(15, seed=0), case.rows(9, seed=1)
    matrix = case.kernel(X, Z)
    assert matrix.shape == (15, 9)
    assert_allclose(matrix, loop(case.reference, X, Z), rtol=1e-10, atol=1e-12)


@every_case
def test_matrix_is_float64_and_new_at_every_call(case: Case) -> None:
    X = case.rows(6, seed=0)
    matrix = case.kernel(X)
    expected = matrix.copy()
    matrix += 1.0  # the caller's own: nothing of it may be kept or shared with X
    assert matrix.dtype == np.float64
    assert_array_equal(case.kernel(X), expected)


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (Linear(), pairwise.linear_kernel),
        (RBF(gamma=0.3), lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.3)),
        (RBF(width=2.0), lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.25)),
        (RBF(length_scale=1.5), gp.RBF(length_scale=1.5)),
        (Exponential(width=1.5), gp.Matern(length_scale=1.5, nu=0.5)),
        (
            Polynomial(degree=3, gamma=0.2, coef0=0.7),
            lambda X, Z: pairwise.polynomial_kernel(X, Z, degree=3, gamma=0.2, coef0=0.7),
        ),
        (Cosine(), pairwise.cosine_similarity),
        (
            Pairwise("laplacian", (("gamma", 0.3),)),
            lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=0.3),
        ),
        (
            Pairwise("sigmoid", (("gamma", 0.1), ("coef0", 0.5))),
            lambda X, Z: pairwise.sigmoid_kernel(X, Z, gamma=0.1, coef0=0.5),
        ),
        (GaussianProcess(gp.RationalQuadratic(1.2, 0.8)), gp.RationalQuadratic(1.2, 0.8)),
    ],
    ids=lambda value: repr(value) if isinstance(value, Kernel) else "",
)
def test_equals_scikit_learn(kernel: Kernel, reference: Any, X: Any, Z: Any) -> None:
    assert_allclose(kernel(X, Z), reference(X, Z), rtol=1e-10, atol=1e-14)


def test_chi2_equals_scikit_learn_on_positive_rows(X: np.ndarray, Z: np.ndarray) -> None:
    kernel = Pairwise("chi2", (("gamma", 0.7),))
    expected = pairwise.chi2_kernel(np.abs(X), np.abs(Z), gamma=0.7)
    assert_allclose(kernel(np.abs(X), np.abs(Z)), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "exponent"),
    [
        pytest.param(RBF(width=2.0), -9.0 / 4.0, id="[Kim06] exp(-d²/σ²)"),
        pytest.param(RBF(length_scale=2.0), -9.0 / 8.0, id="[Pothin06] exp(-d²/2σ²)"),
        pytest.param(RBF(gamma=2.0), -18.0, id="[Fung04] exp(-μd²)"),
        pytest.param(Exponential(width=2.0 * 2.0**2), -3.0 / 8.0, id="[Pothin06] exp(-d/2σ²)"),
        pytest.param(Exponential(gamma=2.0), -6.0, id="exp(-γd)"),
    ],
)
def test_conventions_of_the_papers_at_distance_3_and_parameter_2(
    kernel: Kernel, exponent: float
) -> None:
    x, z = read_only([[1.0, 2.0, 2.0]]), read_only([[2.0, 4.0, 4.0]])  # d² = 9
    assert_allclose(kernel(x, z), [[np.exp(exponent)]], rtol=1e-14)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (RBF(width=1.6), RBF(gamma=1.6**-2)),
        (RBF(width=1.6), RBF(length_scale=1.6 / np.sqrt(2.0))),
        (RBF(length_scale=1.6), RBF(gamma=0.5 * 1.6**-2)),
        (Exponential(width=1.6), Exponential(gamma=1.0 / 1.6)),
        (Polynomial(degree=1, coef0=0.0), Linear()),
        (RBF(gamma=0.3), Pairwise("rbf", (("gamma", 0.3),))),
        (RBF(length_scale=1.6), GaussianProcess(gp.RBF(1.6))),
        (RBF(gamma=0.3) * RBF(gamma=0.4), RBF(gamma=0.7)),
        (Exponential(gamma=0.3) * Exponential(gamma=0.4), Exponential(gamma=0.7)),
        (Linear() + Linear(), 2.0 * Linear()),
    ],
    ids=lambda kernel: repr(kernel),
)
def test_equivalent_kernels_agree(one: Kernel, other: Kernel, X: Any, Z: Any) -> None:
    assert_allclose(one(X, Z), other(X, Z), rtol=1e-12)


# --- what makes a matrix a Gram matrix ----------------------------------------------------------


@every_case
def test_gram_matrix_is_symmetric(case: Case) -> None:
    matrix = case.kernel(case.rows(15, seed=2))
    assert_allclose(matrix, matrix.T, rtol=1e-14, atol=1e-15)


@every_case
def test_gram_matrix_is_positive_semidefinite(case: Case) -> None:
    eigenvalues = np.linalg.eigvalsh(case.kernel(case.rows(15, seed=3)))
    assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]
    assert eigenvalues[-1] > 0


@every_case
def test_diagonal_is_that_of_the_gram_matrix(case: Case) -> None:
    X = case.rows(15, seed=4)
    assert_allclose(case.kernel.diagonal(X), np.diag(case.kernel(X)), rtol=1e-12)


@every_case
def test_one_set_of_rows_equals_twice_the_same_set(case: Case) -> None:
    X = case.rows(15, seed=5)
    assert_allclose(case.kernel(X), case.kernel(X, X), rtol=1e-12, atol=1e-14)


@every_case
def test_cross_matrix_transposes_with_its_arguments(case: Case) -> None:
    X, Z = case.rows(15, seed=5), case.rows(9, seed=6)
    assert_allclose(case.kernel(X, Z), case.kernel(Z, X).T, rtol=1e-12, atol=1e-15)


def test_cosine_of_a_row_of_zeros_is_zero() -> None:
    X = read_only([[0.0, 0.0], [3.0, 4.0]])
    assert_array_equal(Cosine()(X), [[0.0, 0.0], [0.0, 1.0]])
    assert_array_equal(Cosine().diagonal(X), [0.0, 1.0])


@pytest.mark.parametrize(
    "kernel",
    [Linear(), RBF(width=1.7), Exponential(gamma=0.6), Polynomial(), Cosine()],
    ids=repr,
)
def test_identical_rows_have_identical_kernels(kernel: Kernel) -> None:
    # Whole numbers, so that the distance of identical rows is exactly 0.
    X = np.random.default_rng(7).integers(1, 9, size=(6, 3)).astype(np.float64)
    X = read_only(np.vstack([X, X[[2]], X[[2]]]))
    matrix = kernel(X)
    assert_allclose(matrix[6], matrix[2], rtol=1e-14)
    assert_allclose(matrix[6, 7], kernel.diagonal(X)[2], rtol=1e-14)


# --- algebra ------------------------------------------------------------------------------------


def test_sum_product_and_scaling_act_on_matrices(X: np.ndarray, Z: np.ndarray) -> None:
    a, b = RBF(gamma=0.4), Polynomial(degree=2, gamma=0.5)
    assert_allclose((a + b)(X, Z), a(X, Z) + b(X, Z), rtol=1e-14)
    assert_allclose((a * b)(X, Z), a(X, Z) * b(X, Z), rtol=1e-14)
    assert_allclose((3.0 * a)(X, Z), 3.0 * a(X, Z), rtol=1e-14)
    assert_allclose((a + b).diagonal(X), a.diagonal(X) + b.diagonal(X), rtol=1e-14)
    assert_allclose((a * b).diagonal(X), a.diagonal(X) * b.diagonal(X), rtol=1e-14)
    assert_allclose((3.0 * b).diagonal(X), 3.0 * b.diagonal(X), rtol=1e-14)


def test_distributive_law(X: np.ndarray) -> None:
    a, b, c = RBF(gamma=0.4), Linear(), Exponential(gamma=0.2)
    assert_allclose((a * (b + c))(X), (a * b + a * c)(X), rtol=1e-12)
    assert_allclose((2.0 * (a + b))(X), (2.0 * a + 2.0 * b)(X), rtol=1e-12)


@pytest.mark.parametrize("factor", [2, 2.0, np.float64(2.0), np.float32(2.0), np.int64(2)])
def test_factor_is_the_same_number_from_either_side(factor: Any, X: np.ndarray) -> None:
    left, right = factor * Linear(), Linear() * factor
    assert left == right == 2.0 * Linear()
    assert_allclose(left(X), 2.0 * X @ X.T, rtol=1e-14)


@pytest.mark.parametrize("factor", [0.0, 0, -1.5, np.nan, np.inf, -np.inf])
def test_factor_must_be_positive(factor: float) -> None:
    with pytest.raises(InvalidInputError, match="factor of a kernel must be a positive"):
        factor * Linear()


@pytest.mark.parametrize("other", ["linear", None])
def test_only_kernels_and_numbers_can_be_added(other: Any) -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        Linear() + other


@pytest.mark.parametrize("constant", [2, 2.0, np.float64(2.0), np.float32(2.0), np.int64(2)])
def test_constant_is_the_same_number_from_either_side(constant: Any, X: np.ndarray) -> None:
    left, right = constant + Linear(), Linear() + constant
    assert left == right == Linear() + 2.0
    assert_allclose(left(X), 2.0 + X @ X.T, rtol=1e-14)
    assert Linear() + 0.0 == 0 + Linear() == Linear()
    assert (Linear() + 1.5) + 0.5 == left


@pytest.mark.parametrize("constant", [-1.5, -1, np.nan, np.inf])
def test_constant_must_not_be_negative(constant: float) -> None:
    for kernel in (Linear(), Linear() + 3.0):
        with pytest.raises(InvalidInputError, match="added to a kernel must be at least 0"):
            kernel + constant


@pytest.mark.parametrize("exponent", [2, 3, np.int64(3)])
def test_powers_are_products(exponent: Any, X: np.ndarray, Z: np.ndarray) -> None:
    for kernel in (RBF(gamma=0.4), Linear(), Linear() + Cosine(), Polynomial() + 1.0):
        power = kernel**exponent
        product = kernel * kernel if exponent == 2 else kernel * kernel * kernel
        assert_allclose(power(X, Z), product(X, Z), rtol=1e-12)
        assert_allclose(power.diagonal(X), product.diagonal(X), rtol=1e-12)
        assert power**2 == kernel ** (2 * exponent)
        assert kernel**1 == kernel


@pytest.mark.parametrize("exponent", [0, -1, 0.5, 2.0, np.nan, True])
def test_powers_must_be_positive_integers(exponent: Any) -> None:
    with pytest.raises(InvalidInputError, match="must be an integer of at least 1"):
        Linear() ** exponent
    with pytest.raises(TypeError, match="unsupported operand"):
        Linear() ** "2"


#: Kernels plus constants and to powers, alone and within others.
CONSTANTS_AND_POWERS = [
    RBF(width=2.0) + 0.5,
    RBF(width=2.0) ** 2,
    Linear() ** 3,
    (Linear() + 1.0) ** 2,
    2.0 * (RBF(width=2.0) + 0.5) + Laplace(width=2.0) ** 2 * Linear(),
    (Polynomial(degree=2) + 0.3).on([0, 2]) ** 2,
    Standardized(Linear() + 1.0) ** 2,
    (RBF(width=2.0).named("near") + 1.0).named("both"),
    Function(lambda A, B: A @ B.T) ** 2 + 1.0,
]


@pytest.mark.parametrize("kernel", CONSTANTS_AND_POWERS, ids=repr)
def test_constants_and_powers_are_kernels(kernel: Kernel) -> None:
    check_kernel(kernel)


@pytest.mark.parametrize("kernel", CONSTANTS_AND_POWERS[:-3], ids=repr)
def test_constants_and_powers_of_sparse_rows(kernel: Kernel, X: np.ndarray) -> None:
    assert_allclose(kernel(sp.csr_array(X)), kernel(X), rtol=1e-9, atol=1e-12)


def test_the_text_of_constants_and_powers() -> None:
    a = RBF(width=2.0)
    assert repr(a + 1) == "RBF(width=2) + 1"
    assert repr((a + 1.0) ** 2) == "(RBF(width=2) + 1) ** 2"
    assert repr(3.0 * (a + 1.0)) == "3 * (RBF(width=2) + 1)"
    assert repr((a**2).on([0])) == "(RBF(width=2) ** 2).on(0)"


def test_constants_and_powers_have_settings() -> None:
    kernel = (RBF(width=2.0) + 1.0) ** 2
    assert kernel.settings["width"] == 2.0
    assert (kernel.settings["constant"], kernel.settings["exponent"]) == (1.0, 2)
    changed = kernel.with_settings(width=3.0, constant=2.0, exponent=3)
    assert changed == (RBF(width=3.0) + 2.0) ** 3


def test_constants_and_powers_have_gradients(X: np.ndarray, Z: np.ndarray) -> None:
    a, coef = RBF(width=2.0), np.linspace(-1.0, 1.0, len(Z))
    kernel = 2.0 * a + 0.5
    expected = kernel.kernel.gradient(X, coef, Z)
    assert_allclose(kernel.gradient(X, coef, Z), expected, rtol=1e-12)
    assert_allclose(kernel.scale_derivative(1, X), 2.0 * a.scale_derivative(1, X), rtol=1e-12)
    expected = 2.0 * a(X) * a.scale_derivative(1, X)
    assert_allclose((a**2).scale_derivative(1, X), expected, rtol=1e-12)
    expected = RBF(width=2.0 / np.sqrt(2.0)).gradient(X, coef, Z)
    assert_allclose((a**2).gradient(X, coef, Z), expected, rtol=1e-12)


def test_a_constant_does_not_change_a_centred_fit_and_powers_do(blobs: Any) -> None:
    X, y = blobs
    far = X + 1e6  # centred kernels of inner products are computed about a typical row
    scores = [
        KernelDiscriminant(kernel, regularization=0.1).fit(far, y).decision_function(far)
        for kernel in (Linear(), Linear() + 5.0)
    ]
    assert_allclose(scores[0], scores[1], rtol=1e-6, atol=1e-8)
    plain, power = (
        KernelDiscriminant(kernel, regularization=0.1).fit(X, y).decision_function(X)
        for kernel in (Polynomial(degree=2), (Linear() + 1.0) ** 2)
    )
    assert_allclose(plain, power, rtol=1e-6, atol=1e-8)


def test_kernels_cannot_be_multiplied_by_a_name() -> None:
    with pytest.raises(TypeError, match="can't multiply sequence"):
        Linear() * "linear"


# --- sparse rows --------------------------------------------------------------------------------


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        RBF(width=1.7),
        RBF(length_scale=1.3),
        RBF(gamma=0.4),
        Exponential(width=2.1),
        Polynomial(degree=3, gamma=0.5),
        Cosine(),
        Pairwise("laplacian", (("gamma", 0.3),)),
        RBF(gamma=0.4) + Linear(),
        RBF(gamma=0.4) * Cosine(),
        2.5 * Exponential(gamma=0.4),
        RBF(gamma=0.4).on([3, 0, 1]),
    ],
    ids=repr,
)
def test_sparse_rows_give_what_dense_rows_give(kernel: Kernel, container: Any) -> None:
    rng = np.random.default_rng(8)
    X = read_only(rng.normal(size=(12, 6)) * (rng.random((12, 6)) < 0.6))
    Z = read_only(rng.normal(size=(7, 6)) * (rng.random((7, 6)) < 0.6))
    sparse_X, sparse_Z = container(X), container(Z)
    assert sparse_X.nnz < X.size
    assert_allclose(kernel(sparse_X), kernel(X), rtol=1e-12, atol=1e-12)
    assert_allclose(kernel(sparse_X, sparse_Z), kernel(X, Z), rtol=1e-12, atol=1e-12)
    assert_allclose(kernel.diagonal(sparse_X), kernel.diagonal(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("width", ["median", "0.5*median"])
def test_median_width_of_sparse_rows(width: str) -> None:
    rng = np.random.default_rng(9)
    X = read_only(rng.normal(size=(12, 6)) * (rng.random((12, 6)) < 0.6))
    dense, sparse = RBF(width=width).resolve(X), RBF(width=width).resolve(sp.csr_matrix(X))
    assert_allclose(sparse.parameters["width"], dense.parameters["width"], rtol=1e-12)


# --- pairwise matrices that kernels share -------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [Linear(), RBF(width=1.7), Exponential(width=2.1), Polynomial(degree=3), Laplace(width=2.0)],
    ids=repr,
)
def test_functions_of_a_pairwise_matrix_leave_it(kernel: Kernel, X: Any, Z: Any) -> None:
    _, atom = single_atom(kernel.terms())
    for arguments in [(X,), (X, Z)]:
        base = atom.pair.entries(*arguments)
        before = base.copy()
        base.flags.writeable = False
        matrix = atom.function(base)
        assert_allclose(matrix, kernel(*arguments), rtol=1e-14)
        assert_array_equal(base, before)
        assert not np.shares_memory(matrix, base)


def key(kernel: Kernel) -> Any:
    return KernelSet([kernel]).keys[0]


def test_pairwise_matrices_are_squared_distances_and_inner_products(X: Any, Z: Any) -> None:
    squared = loop(lambda x, z: distance(x, z) ** 2, X, Z)
    for kernel, expected in [
        (RBF(gamma=1.0), squared),
        (Exponential(gamma=1.0), squared),
        (Polynomial(), loop(inner, X, Z)),
        (Linear().on([1, 2]), X[:, [1, 2]] @ Z[:, [1, 2]].T),
    ]:
        ((pair, view),) = key(kernel)
        assert_allclose(pair.entries(*view.of_both(X, Z)), expected, rtol=1e-12)


def test_keys_are_equal_exactly_for_kernels_that_can_share() -> None:
    assert key(RBF(width=1.0)) == key(Exponential(gamma=3.0))
    assert key(Linear()) == key(2.0 * Polynomial()) == key(Linear().named("l"))
    assert key(RBF(width=1.0)) != key(Linear())
    assert key(RBF(width=1.0).on([0])) == key(RBF(width=2.0).on([0]))
    assert key(RBF(width=1.0).on([0])) != key(RBF(width=1.0).on([1]))
    assert key(RBF(width=1.0).on([0])) != key(RBF(width=1.0))
    assert key(Linear() + Linear()) == key(Linear()) == key(Linear() * Linear())
    assert key(Linear() + RBF(width=1.0)) == (*key(Linear()), *key(RBF(width=2.0)))
    assert KernelSet([Function(shifted_inner_products), Linear()]).direct == [0]


def test_terms_are_joined_where_they_can_be() -> None:
    a, b = RBF(gamma=0.5), RBF(gamma=0.25).named("b")
    assert (a * b).terms() == RBF(gamma=0.75).terms()
    assert (Linear() ** 3).terms() == Polynomial(degree=3, coef0=0.0).terms()
    assert len((a * Laplace(gamma=1.0)).terms()[0].atoms) == 2
    assert [term.factor for term in ((a + 2.0 * Linear()) ** 2).terms()] == [4.0, 4.0, 1.0]


# --- parameters and derivatives -----------------------------------------------------------------

DIFFERENTIABLE = [
    RBF(width=1.7),
    RBF(length_scale=1.3),
    RBF(gamma=0.4),
    Exponential(width=2.1),
    Exponential(gamma=0.6),
    Polynomial(degree=1, gamma=0.5, coef0=1.5),
    Polynomial(degree=4, gamma=0.5, coef0=1.5),
    2.5 * Linear(),
    2.5 * RBF(width=1.7),
    RBF(width=1.7) + Polynomial(gamma=0.5),
    RBF(width=1.7) * Polynomial(gamma=0.5),
    (RBF(width=1.7) + 0.5 * Linear()) * Exponential(gamma=0.6),
    RBF(gamma=0.4).on([0, 3]),
    (RBF(gamma=0.4).on([0]) * Exponential(width=2.1).on([1, 2])).named("product"),
]

GAUSSIAN_PROCESSES = [
    GaussianProcess(gp.RBF(length_scale=1.3)),
    GaussianProcess(gp.RBF(length_scale=[1.3, 0.8, 2.0, 1.1])),
    GaussianProcess(gp.Matern(length_scale=1.1, nu=2.5) + gp.WhiteKernel(0.3)),
    GaussianProcess(2.0 * gp.Matern(length_scale=1.1, nu=1.5) + gp.WhiteKernel(0.3)),
    GaussianProcess(gp.ConstantKernel(2.0, "fixed") * gp.RationalQuadratic(1.2, 0.8)),
    2.0 * GaussianProcess(gp.RBF(length_scale=1.3)).on([0, 1]),
]


def central_difference(kernel: Kernel, parameter: str, *arguments: Any) -> np.ndarray:
    value, step = kernel.parameters[parameter], 1e-5
    above = kernel.with_parameters(**{parameter: value + step})(*arguments)
    below = kernel.with_parameters(**{parameter: value - step})(*arguments)
    return (above - below) / (2.0 * step)


@pytest.mark.parametrize("kernel", DIFFERENTIABLE, ids=repr)
def test_every_derivative_equals_central_difference(kernel: Kernel, X: Any, Z: Any) -> None:
    assert kernel.parameters
    for parameter in kernel.parameters:
        for arguments in [(X,), (X, Z)]:
            assert_allclose(
                kernel.derivative(parameter, *arguments),
                central_difference(kernel, parameter, *arguments),
                rtol=1e-7,
                atol=1e-8,
                err_msg=parameter,
            )


@pytest.mark.parametrize("kernel", GAUSSIAN_PROCESSES, ids=repr)
def test_gaussian_process_derivative_equals_central_difference(kernel: Kernel, X: Any) -> None:
    assert kernel.parameters
    for parameter in kernel.parameters:
        assert_allclose(
            kernel.derivative(parameter, X),
            central_difference(kernel, parameter, X),
            rtol=1e-7,
            atol=1e-8,
            err_msg=parameter,
        )


@pytest.mark.parametrize("gamma", [0.3, 2.0])
def test_pairwise_derivatives_equal_their_formulas(gamma: float, X: Any, Z: Any) -> None:
    l1 = loop(lambda x, z: sum(abs(x - z)), X, Z)
    derivative = Pairwise("laplacian", (("gamma", gamma),)).derivative("gamma", X, Z)
    assert_allclose(derivative, -l1 * np.exp(-gamma * l1), rtol=1e-6, atol=1e-9)

    X, Z = np.abs(X), np.abs(Z)
    chi2 = loop(lambda x, z: sum((x - z) ** 2 / (x + z)), X, Z)
    derivative = Pairwise("chi2", (("gamma", gamma),)).derivative("gamma", X, Z)
    assert_allclose(derivative, -chi2 * np.exp(-gamma * chi2), rtol=1e-6, atol=1e-9)


def test_pairwise_polynomial_derivatives_equal_those_of_polynomial(X: Any, Z: Any) -> None:
    theirs = Pairwise("poly", (("degree", 3), ("gamma", 0.5), ("coef0", 1.5)))
    ours = Polynomial(degree=3, gamma=0.5, coef0=1.5)
    assert theirs.parameters == ours.parameters == {"gamma": 0.5, "coef0": 1.5}
    for name in ours.parameters:
        assert_allclose(
            theirs.derivative(name, X, Z), ours.derivative(name, X, Z), rtol=1e-6, atol=1e-7
        )


@pytest.mark.parametrize(
    ("kernel", "parameters"),
    [
        (Linear(), {}),
        (Cosine(), {}),
        (RBF(), {}),
        (RBF(width=3), {"width": 3.0}),
        (RBF(length_scale=3.0), {"length_scale": 3.0}),
        (RBF(gamma=3.0), {"gamma": 3.0}),
        (Polynomial(degree=3, gamma=0.5), {"gamma": 0.5, "coef0": 1.0}),
        (2.0 * RBF(width=3.0), {"factor": 2.0, "width": 3.0}),
        (RBF(width=3.0).on([0]).named("r"), {"width": 3.0}),
        (Linear() + RBF(width=3.0), {"right.width": 3.0}),
        (
            (2.0 * RBF(width=3.0)) * (RBF(gamma=1.0) + Linear()),
            {"left.factor": 2.0, "left.width": 3.0, "right.left.gamma": 1.0},
        ),
        (Pairwise("laplacian", (("gamma", 0.5),)), {"gamma": 0.5}),
        (Pairwise("laplacian"), {}),
        (Pairwise("poly", (("degree", 3.0), ("gamma", 0.5))), {"gamma": 0.5}),
    ],
    ids=lambda value: repr(value),
)
def test_parameters_are_the_numbers_that_can_be_tuned(kernel: Kernel, parameters: dict) -> None:
    assert kernel.parameters == parameters


def test_gaussian_process_parameters_carry_scikit_learns_names_and_values() -> None:
    kernel = GaussianProcess(2.0 * gp.RBF([1.3, 0.8]) + gp.WhiteKernel(0.3, "fixed"))
    assert kernel.parameters == pytest.approx(
        {"k1__k1__constant_value": 2.0, "k1__k2__length_scale[0]": 1.3}
        | {"k1__k2__length_scale[1]": 0.8}
    )


@pytest.mark.parametrize(
    ("kernel", "values", "expected"),
    [
        (RBF(width=1.0), {"width": 2.0}, RBF(width=2.0)),
        (Exponential(gamma=1.0), {"gamma": 2.0}, Exponential(gamma=2.0)),
        (Polynomial(degree=3), {"coef0": 0.5}, Polynomial(degree=3, coef0=0.5)),
        (
            Polynomial(degree=3),
            {"coef0": 0.5, "gamma": 0.1},
            Polynomial(degree=3, gamma=0.1, coef0=0.5),
        ),
        (2.0 * RBF(width=1.0), {"factor": 3.0}, 3.0 * RBF(width=1.0)),
        (2.0 * RBF(width=1.0), {"width": 3.0}, 2.0 * RBF(width=3.0)),
        (RBF(width=1.0).on([0], "a"), {"width": 3.0}, RBF(width=3.0).on([0], "a")),
        (RBF(width=1.0).named("a"), {"width": 3.0}, RBF(width=3.0).named("a")),
        (RBF(width=1.0) + Linear(), {"left.width": 3.0}, RBF(width=3.0) + Linear()),
        (
            RBF(width=1.0) * RBF(width=2.0),
            {"left.width": 3.0, "right.width": 4.0},
            RBF(width=3.0) * RBF(width=4.0),
        ),
        (
            Pairwise("poly", (("degree", 2), ("gamma", 0.5))),
            {"gamma": 0.1},
            Pairwise("poly", (("degree", 2), ("gamma", 0.1))),
        ),
        (RBF(width=1.0), {}, RBF(width=1.0)),
    ],
    ids=lambda value: repr(value),
)
def test_with_parameters_changes_only_what_is_named(
    kernel: Kernel, values: dict, expected: Kernel
) -> None:
    before = copy.deepcopy(kernel)
    assert kernel.with_parameters(**values) == expected
    assert kernel == before


def test_gaussian_process_with_parameters(X: np.ndarray) -> None:
    kernel = GaussianProcess(2.0 * gp.RBF(1.3))
    changed = kernel.with_parameters(k2__length_scale=0.7)
    assert_allclose(changed(X), (2.0 * gp.RBF(0.7))(X), rtol=1e-12)
    assert_allclose(kernel(X), (2.0 * gp.RBF(1.3))(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "unknown", "known"),
    [
        (RBF(width=1.0), "gamma", r"\['width'\]"),
        (Polynomial(), "degree", r"\['gamma', 'coef0'\]"),
        (Linear() + RBF(width=1.0), "width", r"\['right.width'\]"),
        (GaussianProcess(gp.RBF(1.0)), "width", r"\['length_scale'\]"),
        (RBF(), "width", r"\[\]"),
    ],
    ids=lambda value: repr(value),
)
def test_unknown_parameter_error_lists_the_known(
    kernel: Kernel, unknown: str, known: str, X: np.ndarray
) -> None:
    message = rf"can be set or differentiated are {known}\. Got \['{unknown}'\]"
    with pytest.raises(InvalidInputError, match=message):
        kernel.with_parameters(**{unknown: 1.0})
    with pytest.raises(InvalidInputError, match=message):
        kernel.derivative(unknown, X)


def test_with_parameters_checks_the_values() -> None:
    with pytest.raises(InvalidInputError, match="width of RBF must be a positive number"):
        RBF(width=1.0).with_parameters(width=-1.0)
    with pytest.raises(InvalidInputError, match="factor of a kernel must be a positive"):
        (2.0 * RBF(width=1.0)).with_parameters(factor=0.0)


def test_gaussian_process_derivative_needs_one_set_of_rows(X: Any, Z: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"one set of rows .*derivative\('length_scale', X"):
        GaussianProcess(gp.RBF(1.0)).derivative("length_scale", X, Z)


# --- widths from the data -----------------------------------------------------------------------


def plain_median(X: np.ndarray) -> float:
    distances = [distance(X[i], X[j]) for i in range(len(X)) for j in range(i)]
    return float(np.median([d for d in distances if d > 0]))


@pytest.mark.parametrize(
    ("width", "factor"),
    [("median", 1.0), ("0.5*median", 0.5), ("2*median", 2.0), ("1e-3 * median", 1e-3)],
)
@pytest.mark.parametrize("n_rows", [2, 14, 15])
def test_median_width_is_a_multiple_of_the_median_distance(
    width: str, factor: float, n_rows: int
) -> None:
    X = make_rows(n_rows, seed=10)
    expected = factor * plain_median(X)
    for kernel in [RBF(width=width), RBF(length_scale=width), Exponential(width=width)]:
        (value,) = kernel.resolve(X).parameters.values()
        assert_allclose(value, expected, rtol=1e-12)
        assert kernel.parameters == {}  # the kernel itself stays as it was


@pytest.mark.parametrize("seed", range(40))
def test_median_of_one_feature_is_that_of_all_pairs(seed: int) -> None:
    """By counting: with ties, tails, an offset, an odd or even number of pairs."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    draws = [rng.standard_normal, rng.standard_cauchy, lambda n: rng.integers(0, 4, n) * 1.0]
    x = draws[seed % 3](n) + 1e3 * (seed % 2)
    x[0], x[-1] = x[0] + 0.25, x[0]  # never all the same
    pairs = np.abs(x[:, None] - x)[np.triu_indices(n, 1)]
    expected = np.median(pairs[pairs > 1e-12])
    assert_allclose(median_distance(x[:, None]), expected, rtol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 1001, 1002])
def test_median_of_numbers_is_that_of_numpy(n: int) -> None:
    values = np.random.default_rng(n).standard_normal(n)
    assert _median(values.copy()) == np.median(values)


def test_distances_of_one_feature_are_exact() -> None:
    x = 1e8 + np.arange(4.0)[:, None]
    expected = np.square(np.arange(4.0)[:, None] - np.arange(4.0))
    np.testing.assert_array_equal(squared_distances(x), expected)
    np.testing.assert_array_equal(squared_distances(x, x[1:]), expected[:, 1:])


def test_median_keeps_the_convention(X: np.ndarray) -> None:
    median = plain_median(X)
    squared = loop(lambda x, z: distance(x, z) ** 2, X, X)
    assert_allclose(RBF(width="median").resolve(X)(X), np.exp(-squared / median**2), atol=1e-12)
    assert_allclose(
        RBF(length_scale="median").resolve(X)(X), np.exp(-squared / (2 * median**2)), atol=1e-12
    )


def test_default_width_is_the_median() -> None:
    assert RBF() == RBF(width="median")
    assert Exponential() == Exponential(width="median")


def test_median_ignores_distances_between_identical_rows() -> None:
    X = read_only([[0.0], [0.0], [0.0], [0.0], [3.0], [10.0]])
    # Positive distances: 3 four times, 10 four times, 7 once; with zeros it would be 3.
    assert RBF().resolve(X) == RBF(width=7.0)


def test_rows_that_are_all_the_same_get_width_one() -> None:
    X = read_only(np.full((5, 3), 2.0))
    kernel = RBF(width="0.5*median").resolve(X)
    assert kernel == RBF(width=0.5)
    assert_array_equal(kernel(X), np.ones((5, 5)))


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("norm", [1, 2])
def test_median_distance_is_that_of_all_pairs_of_different_rows(norm: int, copies: int) -> None:
    rows = np.repeat(np.random.default_rng(0).normal(size=(31, 4)) + 1e6, copies, axis=0)
    distances = [
        np.linalg.norm(rows[i] - rows[j], ord=norm) for i in range(len(rows)) for j in range(i)
    ]
    expected = np.median([d for d in distances if d > 0])
    assert median_distance(rows, norm=norm) == pytest.approx(expected, rel=1e-9)  # type: ignore[arg-type]


def test_median_of_many_rows_is_that_of_some_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discernel.kernels.distance.MEDIAN_ROWS", 10)
    X = make_rows(28, seed=11)
    width = RBF().resolve(X).parameters["width"]
    drawn = np.sort(np.random.default_rng(0).choice(28, 10, replace=False, shuffle=False))
    assert_allclose(width, plain_median(X[drawn]), rtol=1e-12)
    assert RBF().resolve(X).parameters["width"] == width
    assert not np.isclose(width, plain_median(X))


@pytest.mark.parametrize("columns", [1, 3])
def test_median_does_not_depend_on_the_order_of_rows(columns: int) -> None:
    """Two classes that alternate: every second, or n-th, row is of one of them."""
    rng = np.random.default_rng(0)
    x = np.concatenate([0.001 * rng.standard_normal(3000), 1.5 + rng.standard_normal(3000)])
    X = np.column_stack([x, np.full((6000, columns - 1), 7.0)])
    alternating = X.reshape(2, 3000, columns).swapaxes(0, 1).reshape(6000, columns)
    orders = [X, X[::-1], alternating, X[rng.permutation(6000)], X[np.argsort(X[:, 0])]]
    medians = [median_distance(rows) for rows in orders]
    assert_allclose(medians, median_distance(X[rng.permutation(6000)][:2000]), rtol=0.05)


@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize("size", [1e3, 1e8, 1e12])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_one_far_row_hardly_changes_the_median(columns: int, size: float, container: Any) -> None:
    X = np.random.default_rng(0).standard_normal((300, columns))
    plain = median_distance(container(X))
    for position in (0, 150, 299):
        far = X.copy()
        far[position] = size
        assert_allclose(median_distance(container(far)), plain, rtol=0.02)


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_median_within_groups_far_apart_is_found(columns: int) -> None:
    """Of three groups the middle distance is between groups; of one large one, within it."""
    X = np.random.default_rng(0).standard_normal((300, columns))
    plain = median_distance(X[60:])
    X[:60] += 1e8
    expected = plain_median(X)
    assert_allclose(median_distance(X), expected, rtol=1e-12)
    assert expected < 2.0 * plain


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("columns", [1, 3])
def test_median_ignores_rows_that_are_equal_up_to_rounding(offset: float, columns: int) -> None:
    """Also where most pairs are such, and beside a far row."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((6, columns)), 30, axis=0) + offset
    rounded = X * (1.0 + 2e-16 * rng.integers(-1, 2, X.shape))
    expected = plain_median(X)
    assert expected > 0.1
    assert_allclose(median_distance(X), expected, rtol=1e-6)
    assert_allclose(median_distance(rounded), expected, rtol=1e-6)
    X[0] = 1e12
    assert_allclose(median_distance(X), plain_median(X), rtol=1e-6)


def test_constant_columns_do_not_matter_for_the_median() -> None:
    X = np.random.default_rng(0).standard_normal((50, 3))
    X[:5] += 1e6
    wide = np.column_stack([np.full(50, 1e15), X, np.zeros(50), np.full(50, -3e9)])
    assert_allclose(median_distance(wide), median_distance(X), rtol=1e-12)
    one = np.column_stack([np.full(50, 1e15), X[:, 0]])
    assert_allclose(median_distance(one), median_distance(X[:, :1]), rtol=1e-9)


def test_resolve_reaches_into_compound_kernels(X: np.ndarray) -> None:
    kernel = (2.0 * RBF() + Exponential(width="0.5*median").on([0, 2])) * RBF(gamma=1.0)
    resolved = kernel.named("all").resolve(X)
    assert resolved.name == "all"
    assert resolved.parameters == pytest.approx(
        {
            "left.left.factor": 2.0,
            "left.left.width": plain_median(X),
            "left.right.width": 0.5 * plain_median(X[:, [0, 2]]),
            "right.gamma": 1.0,
        }
    )


@pytest.mark.parametrize(
    "kernel", [RBF(width=1.0), Linear(), Polynomial(), 2.0 * RBF(gamma=1.0)], ids=repr
)
def test_resolve_leaves_numbers_alone(kernel: Kernel, X: np.ndarray) -> None:
    assert kernel.resolve(X) == kernel


@pytest.mark.parametrize(
    ("metric", "gamma"), [("laplacian", 0.25), ("rbf", 0.25), ("poly", 0.25), ("chi2", 1.0)]
)
def test_pairwise_gamma_resolves_to_scikit_learns_default(metric: str, gamma: float) -> None:
    X = np.abs(make_rows(8, seed=12))  # not read-only: scikit-learn's chi2 refuses such arrays
    kernel = Pairwise(metric)
    resolved = kernel.resolve(X)
    assert resolved.parameters == {"gamma": gamma}
    assert_allclose(resolved(X), kernel(X), rtol=1e-14)
    # Fixed on the training rows: a kernel on fewer columns would have another default.
    assert Pairwise(metric, (("gamma", 0.5),)).resolve(X).parameters == {"gamma": 0.5}


@pytest.mark.parametrize("kernel", [RBF(), RBF(length_scale="2*median"), Exponential()], ids=repr)
def test_unresolved_median_is_an_error_that_names_resolve(kernel: Kernel, X: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match=r"depends on the training set.*resolve\(X\)"):
        kernel(X)
    with pytest.raises(InvalidInputError, match=r"Resolve 'median' widths first"):
        kernel.derivative("width", X)


# --- parameters that cannot work ----------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("name", ["width", "length_scale"])
def test_rbf_width_must_be_positive(name: str, value: float) -> None:
    with pytest.raises(
        InvalidInputError, match=f"The {name} of RBF must be a positive number or 'median'"
    ):
        RBF(**{name: value})


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "median", "0.5*median"])
@pytest.mark.parametrize("kernel", [RBF, Exponential])
def test_gamma_must_be_a_positive_number(kernel: type[Kernel], value: Any) -> None:
    with pytest.raises(
        InvalidInputError, match=rf"The gamma of {kernel.__name__} must be a positive number\. Got"
    ):
        kernel(gamma=value)


@pytest.mark.parametrize("value", [0.0, -2.0, np.nan])
def test_exponential_width_must_be_positive(value: float) -> None:
    with pytest.raises(InvalidInputError, match="width of Exponential must be a positive number"):
        Exponential(width=value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mean",
        "medians",
        "0.5median",
        "median*2",
        "x*median",
        "0*median",
        "-1*median",
        "nan*median",
        "inf*median",
        "*median",
        "1",
    ],
)
@pytest.mark.parametrize("kernel", [RBF, Exponential])
def test_widths_in_words_must_be_multiples_of_the_median(kernel: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"such as '0.5\*median'") as caught:
        kernel(width=text)
    assert f"Got {text!r}." in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"width": 1.0, "gamma": 1.0},
        {"width": 1.0, "length_scale": 1.0},
        {"length_scale": "median", "gamma": 1.0},
        {"width": 1.0, "length_scale": 1.0, "gamma": 1.0},
    ],
)
def test_rbf_takes_one_convention_only(given: dict) -> None:
    with pytest.raises(InvalidInputError, match=r"RBF takes exactly one of \['width', 'leng"):
        RBF(**given)


def test_exponential_takes_one_convention_only() -> None:
    with pytest.raises(InvalidInputError, match=r"exactly one of \['width', 'gamma'\]"):
        Exponential(width=1.0, gamma=1.0)


@pytest.mark.parametrize("degree", [0, -1, 1.5, np.nan, np.inf])
def test_polynomial_degree_must_be_a_positive_integer(degree: float) -> None:
    with pytest.raises(InvalidInputError, match="degree of Polynomial must be an integer of at"):
        Polynomial(degree=degree)


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.nan, np.inf])
def test_polynomial_gamma_must_be_positive(gamma: float) -> None:
    with pytest.raises(InvalidInputError, match="gamma of Polynomial must be positive"):
        Polynomial(gamma=gamma)


@pytest.mark.parametrize("coef0", [-0.1, -1.0, np.nan, np.inf])
def test_polynomial_coef0_must_not_be_negative(coef0: float) -> None:
    with pytest.raises(InvalidInputError, match="coef0 of Polynomial must be at least 0"):
        Polynomial(coef0=coef0)


def test_unknown_pairwise_name_error_lists_the_known() -> None:
    with pytest.raises(InvalidInputError, match=r"'chi2', .*'laplacian', .*Got 'laplace'"):
        Pairwise("laplace")


# --- kernels that others wrote ------------------------------------------------------------------


def common_letters(words: list[str], others: list[str]) -> list[list[int]]:
    return [[len(set(word) & set(other)) for other in others] for word in words]


def test_function_takes_rows_that_are_not_numbers() -> None:
    kernel = Function(common_letters)
    words = ["tea", "ate", "tomato", "be"]
    assert kernel.takes_any_rows
    assert_array_equal(kernel(words, ["tea", "bet"]), [[3, 2], [3, 2], [2, 1], [1, 2]])
    assert_array_equal(kernel.diagonal(words), [3, 3, 4, 2])
    assert_array_equal(np.diag(kernel(words)), [3, 3, 4, 2])


@pytest.mark.parametrize(
    ("function", "got"),
    [
        (lambda X, Z: X, r"\(15, 4\)"),
        (lambda X, Z: Z @ X.T, r"\(9, 15\)"),
        (lambda X, Z: (X @ Z.T)[..., None], r"\(15, 9, 1\)"),
        (lambda X, Z: 1.0, r"\(\)"),
    ],
)
def test_function_must_return_a_row_a_row_and_a_column_a_column(
    function: Any, got: str, X: Any, Z: Any
) -> None:
    with pytest.raises(InvalidInputError, match=rf"here \(15, 9\)\. Got shape {got}"):
        Function(function)(X, Z)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_precomputed_takes_one_matrix_of_the_stack(index: int) -> None:
    stack = read_only(np.random.default_rng(13).normal(size=(5, 7, 3)))
    matrix = Precomputed(index)(stack)
    assert_array_equal(matrix, stack[:, :, index])
    assert matrix.flags.c_contiguous
    assert Precomputed(index).name == f"matrix {index}"


def test_precomputed_takes_a_single_matrix_and_its_diagonal(X: np.ndarray) -> None:
    gram = read_only(X @ X.T)
    assert_array_equal(Precomputed()(gram), gram)
    assert_array_equal(Precomputed().diagonal(gram), np.diag(gram))
    assert_array_equal(
        Precomputed(1).diagonal(np.stack([gram, 2 * gram], axis=-1)), 2 * np.diag(gram)
    )


@pytest.mark.parametrize(
    ("index", "shape"), [(1, (5, 5)), (3, (5, 5, 3)), (-1, (5, 5, 3)), (0, (5,)), (0, (5, 5, 3, 1))]
)
def test_precomputed_needs_a_stack_that_holds_its_index(index: int, shape: tuple) -> None:
    message = rf"Precomputed\(index={index}\) needs a stack .*np\.moveaxis\(stack, 0, -1\)"
    with pytest.raises(InvalidInputError, match=message) as caught:
        Precomputed(index)(np.zeros(shape))
    assert f"Got shape {shape}" in str(caught.value)


@pytest.mark.parametrize(
    ("kernel", "trusted"),
    [
        (Linear(), True),
        (RBF(), True),
        (Polynomial(), True),
        (Cosine(), True),
        (Function(shifted_inner_products), False),
        (Pairwise("sigmoid"), False),
        (Precomputed(), False),
        (2.0 * Precomputed(), False),
        (Function(shifted_inner_products).on([0]).named("f"), False),
        (Linear() + RBF(), True),
        (Linear() + Pairwise("sigmoid"), False),
        (Pairwise("sigmoid") * Linear(), False),
    ],
    ids=lambda value: repr(value),
)
def test_only_kernels_known_to_be_semidefinite_are_trusted(kernel: Kernel, trusted: bool) -> None:
    assert kernel.trusted is trusted


def test_wrappers_and_pairs_take_what_their_parts_take() -> None:
    any_rows, stack = Function(common_letters), Precomputed(1)
    assert (2.0 * any_rows).named("f").takes_any_rows
    assert (any_rows + any_rows).takes_any_rows
    assert not (any_rows + Linear()).takes_any_rows
    assert (2.0 * stack).named("s").precomputed
    assert (stack * stack).precomputed
    assert not (stack * Linear()).precomputed


# --- value objects ------------------------------------------------------------------------------

ROUND_TRIPS = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda kernel: pickle.loads(pickle.dumps(kernel)),
    "clone": lambda kernel: clone(kernel, safe=False),
}


@pytest.mark.parametrize("round_trip", ROUND_TRIPS.values(), ids=ROUND_TRIPS.keys())
@every_case
def test_round_trip_gives_the_same_kernel(case: Case, round_trip: Callable) -> None:
    X = case.rows(8, seed=14)
    again = round_trip(case.kernel)
    assert again is not case.kernel
    assert repr(again) == repr(case.kernel)
    assert again.name == case.kernel.name
    assert again.parameters == case.kernel.parameters
    assert_array_equal(again(X), case.kernel(X))
    if not isinstance(case.kernel, GaussianProcess):  # which are compared by identity
        assert again == case.kernel


@pytest.mark.parametrize(
    "kernel", [RBF(), Pairwise("chi2"), Precomputed(2), Linear().on(["a", "b"], "ab")], ids=repr
)
@pytest.mark.parametrize("round_trip", ROUND_TRIPS.values(), ids=ROUND_TRIPS.keys())
def test_round_trip_of_unresolved_kernels(kernel: Kernel, round_trip: Callable) -> None:
    again = round_trip(kernel)
    assert again == kernel
    assert (repr(again), again.name) == (repr(kernel), kernel.name)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (RBF(width=1), RBF(width=1.0), True),
        (RBF(width=1.0), RBF(width=2.0), False),
        (RBF(width=1.0), RBF(gamma=1.0), False),
        (RBF(width=1.0), Exponential(width=1.0), False),
        (Linear(), Linear(), True),
        (Linear(), Cosine(), False),
        (Polynomial(), Polynomial(degree=2, gamma=1.0, coef0=1.0), True),
        (Polynomial(), Polynomial(degree=3), False),
        (Linear() + Cosine(), Linear() + Cosine(), True),
        (Linear() + Cosine(), Linear() * Cosine(), False),
        (Linear() + Cosine(), Cosine() + Linear(), False),
        (2.0 * Linear(), 2.0 * Linear(), True),
        (2.0 * Linear(), 3.0 * Linear(), False),
        (Linear().on((0, 1)), Linear().on((0, 1)), True),
        (Linear().on((0, 1)), Linear().on(np.array([0, 1])), True),
        (Linear().on((0, 1)), Linear().on((0, 2)), False),
        (Linear().on((0, 1)), Linear().on((0, 1), "ab"), False),
        (Linear().named("a"), Linear().named("a"), True),
        (Linear().named("a"), Linear().named("b"), False),
        (Function(common_letters), Function(common_letters), True),
        (Function(common_letters), Function(shifted_inner_products), False),
        (Pairwise("chi2"), Pairwise("chi2"), True),
        (Pairwise("chi2"), Pairwise("chi2", (("gamma", 1.0),)), False),
        (Precomputed(1), Precomputed(1), True),
        (Precomputed(1), Precomputed(2), False),
    ],
    ids=lambda value: repr(value),
)
def test_equality_and_hash_are_those_of_values(one: Kernel, other: Kernel, equal: bool) -> None:
    assert (one == other) is equal
    assert len({one, other}) == (1 if equal else 2)


@pytest.mark.parametrize(
    ("kernel", "field"),
    [(RBF(width=1.0), "width"), (Polynomial(), "degree"), (2.0 * Linear(), "factor")],
    ids=lambda value: repr(value),
)
def test_kernels_cannot_be_changed(kernel: Kernel, field: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot assign to field '{field}'"):
        setattr(kernel, field, 3.0)


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (Linear(), "Linear()"),
        (Cosine(), "Cosine()"),
        (RBF(), "RBF(width='median')"),
        (RBF(width="0.5*median"), "RBF(width='0.5*median')"),
        (RBF(width=1.23456789), "RBF(width=1.235)"),
        (RBF(length_scale=2), "RBF(length_scale=2)"),
        (RBF(gamma=1e-9), "RBF(gamma=1e-09)"),
        (Exponential(gamma=0.5), "Exponential(gamma=0.5)"),
        (Polynomial(degree=3), "Polynomial(degree=3, gamma=1.0, coef0=1.0)"),
        (Function(common_letters), "Function(common_letters)"),
        (Pairwise("chi2"), "Pairwise('chi2')"),
        (Pairwise("laplacian", (("gamma", 0.25),)), "Pairwise('laplacian', gamma=0.25)"),
        (GaussianProcess(gp.RBF(2.0)), "GaussianProcess(RBF(length_scale=2))"),
        (Precomputed(3), "Precomputed(index=3)"),
        (Linear() + Cosine(), "Linear() + Cosine()"),
        (Linear() * Cosine(), "Linear() * Cosine()"),
        ((Linear() + Cosine()) * Linear(), "(Linear() + Cosine()) * Linear()"),
        (Linear() * (Linear() + Cosine()), "Linear() * (Linear() + Cosine())"),
        (2.5 * Linear(), "2.5 * Linear()"),
        (Linear().on([0, 3]), "Linear().on(0, 3)"),
        (Linear().named("plain"), "Linear()"),
    ],
)
def test_repr_is_short_and_says_it_all(kernel: Kernel, text: str) -> None:
    assert repr(kernel) == text


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (RBF(width=2.0), "RBF(width=2)"),
        (RBF(width=2.0).named("narrow"), "narrow"),
        (Function(common_letters), "common_letters"),
        (GaussianProcess(gp.RBF(2.0)), "RBF(length_scale=2)"),
        (Precomputed(3), "matrix 3"),
        (Linear().on([0, 3]), "Linear() on 0, 3"),
        (Linear().on([0, 3], "ends"), "Linear() on ends"),
        (Linear().named("plain").on(0), "plain on 0"),
    ],
)
def test_name_for_tables(kernel: Kernel, name: str) -> None:
    assert kernel.name == name
