"""Kernels of the user's that override some methods only: every way to compute them agrees."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

from discernel import MultipleKernelDiscriminant
from discernel.arrays import Buffers
from discernel.bank import CombinedKernel, gram_stack
from discernel.bank.base import Centering
from discernel.bank.dense import DenseBank
from discernel.bank.tiled import TiledBank
from discernel.kernels import RBF, Exponential, Linear, Polynomial
from discernel.kernels.base import Scaled
from discernel.kernels.evaluate import KernelSet

METRIC = np.array([0.3, 2.0, 1.0])


class OtherDistance(RBF):
    """Another distance, in the one method that says so."""

    def base_matrix(self, X, Z=None):
        return super().base_matrix(X * METRIC, None if Z is None else Z * METRIC)


class OtherProduct(Linear):
    def base_matrix(self, X, Z=None):
        return super().base_matrix(X * METRIC, None if Z is None else Z * METRIC)


class OtherFunction(RBF):
    """Another function of the distance."""

    def from_base(self, base):
        return 2.0 / (1.0 + self.exponent * base)


class OtherFill(Exponential):
    def fill_from_base(self, base, out):
        np.divide(2.0, 1.0 + self.exponent * base, out=out)


class OtherPolynomial(Polynomial):
    def from_base(self, base):
        return super().from_base(base) + 3.0 * base


class OtherFillOfLinear(Linear):
    def fill_from_base(self, base, out):
        np.multiply(base, 3.0, out=out)


class OtherCall(RBF):
    """Not made of distances any more."""

    def __call__(self, X, Z=None):
        return 2.0 * super().__call__(X, Z) + 0.5


class OtherScaled(Scaled):
    def __call__(self, X, Z=None):
        return super().__call__(X, Z) + 0.25


class Weighted:
    """A mixin: the method is not in the class itself."""

    def base_matrix(self, X, Z=None):
        return super().base_matrix(X * METRIC, None if Z is None else Z * METRIC)


class ByMixin(Weighted, Exponential):
    pass


class Grandchild(OtherDistance):
    @property
    def exponent(self):
        return 0.5 * super().exponent


class OtherPower(RBF):
    """A power of the distance that RBF does not have, under the same decay."""

    def _distance(self, base, out=None):
        return np.power(base, 0.9, out=out)


@dataclass(frozen=True, repr=False)
class WithField(RBF):
    scale: float = 1.0

    def __post_init__(self):
        pass

    def _given(self):
        return "width", self.width

    def from_base(self, base):
        return self.scale * super().from_base(base)


SUBCLASSES = [
    OtherDistance(width=2.0),
    OtherProduct(),
    OtherFunction(width=2.0),
    OtherFill(width=2.0),
    OtherPolynomial(),
    OtherFillOfLinear(),
    OtherCall(width=2.0),
    OtherScaled(RBF(width=2.0), 3.0),
    ByMixin(width=2.0),
    Grandchild(width=2.0),
    OtherPower(width=2.0),
    WithField(width=2.0, scale=2.5),
]
IDS = [type(kernel).__name__ for kernel in SUBCLASSES]


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((40, 3))


def beside(kernel):
    """Return the kernel in every wrapper, beside ones it could wrongly share with."""
    return [
        RBF(width=2.0),
        kernel,
        RBF(width=4.0),
        2.0 * kernel,
        kernel.named("same"),
        kernel.on([2, 1, 0]),
        Linear(),
        Exponential(width=2.0),
        Exponential(width=1.0),
        Polynomial(),
    ]


@pytest.mark.parametrize("kernel", SUBCLASSES, ids=IDS)
def test_every_way_to_compute_a_subclass_agrees_with_calling_it(kernel, X):
    kernels = beside(kernel)
    expected = np.array([k(X) for k in kernels])
    for found in (
        gram_stack(kernels, X),
        np.array([matrix.copy() for _, matrix in sorted(KernelSet(kernels).matrices(X))]),
    ):
        assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    evaluated = KernelSet(kernels)
    rows = evaluated.prepare(X)
    for position, matrix in evaluated.matrices(rows[3:9], rows[9:], Buffers()):
        assert_allclose(matrix, expected[position, 3:9, 9:], rtol=1e-11, atol=1e-12)
    for one, matrix in zip(kernels, expected, strict=True):
        assert_allclose(one.diagonal(X), matrix.diagonal(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kernel", SUBCLASSES, ids=IDS)
def test_banks_and_prediction_agree_on_a_subclass(kernel, X):
    kernels = beside(kernel)
    stack = np.array([k(X) for k in kernels])
    dense, tiled = DenseBank(stack), TiledBank(kernels, X)
    weights = np.linspace(1.0, 2.0, len(kernels))
    assert_allclose(tiled.scales, dense.scales, rtol=1e-9)
    assert_allclose(tiled.combined(weights), dense.combined(weights), rtol=1e-9, atol=1e-12)
    combined = CombinedKernel(kernels, weights, X, Centering(np.zeros(len(X)), 0.0))
    new = X[:7] + 0.1
    expected = np.tensordot(weights, [k(new, X) for k in kernels], 1)
    expected -= expected.mean(axis=1, keepdims=True)
    assert_allclose(combined(new), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("bank", ["dense", "tiled"])
def test_an_estimator_sees_another_distance(X, bank):
    y = (X[:, 1] > 0).astype(int)
    options = {"criterion": "uniform", "regularization": 0.1}
    kernels = [OtherDistance(width=2.0), OtherDistance(width=4.0)]
    clf = MultipleKernelDiscriminant(kernels, bank=bank, **options).fit(X, y)
    kernels = [RBF(width=2.0), RBF(width=4.0)]
    scaled = MultipleKernelDiscriminant(kernels, **options).fit(X * METRIC, y)
    new = X[::3] + 0.2
    assert_allclose(clf.predict_proba(new), scaled.predict_proba(new * METRIC), atol=1e-10)


def test_subclasses_that_change_nothing_keep_the_fast_way():
    class Renamed(RBF):
        @property
        def name(self):
            return "mine"

    assert Renamed.base_tile is RBF.base_tile
    assert Renamed(width=2.0).base_key == RBF(width=1.0).base_key
    assert OtherFunction(width=1.0).base_key == RBF(width=1.0).base_key
    assert OtherDistance(width=1.0).base_key != RBF(width=1.0).base_key
    assert OtherCall(width=1.0).base_key is None
