"""Forms of kernels, column by column, give the kernels' own numbers."""

import numpy as np
import pytest

from discernel.inspection.games import OtherForm, ProductForm, SumForm, kernel_forms
from discernel.kernels import (
    RBF,
    Cosine,
    Exponential,
    Function,
    Laplace,
    Linear,
    Polynomial,
    Standardized,
)


def matrix(form, X, Z):
    """Return the kernel matrix that a form says."""
    if isinstance(form, ProductForm):
        rows = [np.exp(-form.exponents(x, Z).sum(axis=0)) for x in X]
        return form.factor * np.array(rows)
    if isinstance(form, SumForm):
        return form.factor * ((X - form.origin) * form.weights) @ (Z - form.origin).T
    return form.kernel(X, Z)


KNOWN = {
    "gaussian": RBF(gamma=0.3),
    "length scale": RBF(length_scale=2.0),
    "scales": RBF(width=1.5, scales=(1.0, 0.0, 0.5, 2.0)),
    "laplace": Laplace(width=2.0, scales=(1.0, 3.0, 0.0, 0.1)),
    "linear": Linear(),
    "shifted": Standardized(Linear((0.1, 0.2, 0.3, 0.0)), (1.0, 2.0, 0.5, 0.0)),
    "columns": RBF(gamma=0.4).on([2, 0]),
    "standardized": Standardized(Laplace(gamma=0.4), (0.3, 1.0, 0.0, 4.0)),
    "on and standardized": Standardized(RBF(gamma=0.4), (0.3, 2.0)).on([3, 1]),
    "on twice": RBF(gamma=0.4).on([1]).on([2, 3]),
    "named": (2.5 * RBF(gamma=0.4)).named("a name"),
    "product": RBF(gamma=0.4).on([0]) * (3.0 * Laplace(gamma=0.2)),
    "sum": RBF(gamma=0.4).on([0]) + 0.5 * Linear().on([1, 2]),
    "product of sums": (RBF(gamma=0.4) + RBF(gamma=2.0)) * Laplace(gamma=0.1),
    "constant": 2.0 * (Linear().on([1]) + 0.3),
    "power": (RBF(gamma=0.4).on([0]) + 0.5) ** 3,
}
OTHERS = {
    "exponential": Exponential(gamma=0.3),
    "polynomial": Polynomial(degree=2),
    "cosine": Cosine(),
    "function": Function(lambda X, Z: X @ Z.T),
    "times a line": RBF(gamma=0.4) * Linear(),
    "a part": RBF(gamma=0.4) * Polynomial(),
    "power of a line": Linear() ** 2,
}


@pytest.mark.parametrize("kernel", KNOWN.values(), ids=KNOWN)
def test_forms_add_up_to_the_kernel(kernel, rng):
    X, Z = rng.normal(size=(5, 4)), rng.normal(size=(6, 4))
    forms = kernel_forms(kernel, 4)
    assert not any(isinstance(form, OtherForm) for form in forms)
    total = sum(matrix(form, X, Z) for form in forms)
    np.testing.assert_allclose(total, kernel(X, Z), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", OTHERS.values(), ids=OTHERS)
def test_what_is_neither_is_kept_whole(kernel):
    assert kernel_forms(kernel, 4) == [OtherForm(kernel)]


def test_a_sum_is_taken_apart_where_one_side_can_be(rng):
    X = rng.normal(size=(5, 4))
    kernel = (RBF(gamma=0.4) + Polynomial()).named("both")
    product, other = kernel_forms(kernel, 4)
    assert isinstance(product, ProductForm)
    np.testing.assert_allclose(matrix(product, X, X) + other.kernel(X), kernel(X), rtol=1e-12)


def test_a_power_is_taken_apart_where_a_part_can_be(rng):
    X, kernel = rng.normal(size=(5, 4)), (Exponential(gamma=0.3) + 1.0) ** 2
    constant, other = kernel_forms(kernel, 4)
    assert (constant.factor, len(constant.columns)) == (1.0, 0)
    np.testing.assert_allclose(1.0 + other.kernel(X), kernel(X), rtol=1e-12)


def test_a_subclass_may_be_anything():
    class Mine(RBF):
        def __call__(self, X, Z=None):
            return 2.0 * super().__call__(X, Z)

    assert isinstance(kernel_forms(Mine(gamma=1.0), 2)[0], OtherForm)
