"""Kernels of the user's that override some methods only: every way to compute them agrees."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from discernel import MultipleKernelDiscriminant
from discernel.arrays import Buffers
from discernel.bank import CombinedKernel, DenseBank, gram_stack
from discernel.bank.base import Centering
from discernel.bank.tiled import TiledBank
from discernel.kernels import RBF, Exponential, Linear, Polynomial, Tanimoto
from discernel.kernels.composites import Scaled
from discernel.kernels.evaluate import KernelSet
from discernel.kernels.terms import PairFunction, Term

METRIC = np.array([0.3, 2.0, 1.0])


class OtherTerms(RBF):
    """Another distance, in the one method that says so."""

    def _terms(self, view):
        return super()._terms(view.then("scales", tuple(METRIC.tolist())))


class OtherFunction(RBF):
    """Another function of the distance."""

    def _terms(self, view):
        ((_, (atom,)),) = super()._terms(view)
        return (Term(2.0, (replace(atom, function=Student(self.exponent)),)),)


@dataclass(frozen=True)
class Student(PairFunction):
    """1 / (1 + rate·p), a function of a user's."""

    rate: float
    kind = "student"

    def values(self, base, xp):
        return 1.0 / (1.0 + self.rate * base)

    def slope(self, base, xp):
        return self(base, xp) ** 2, -self.rate


class OtherCall(RBF):
    """Not made of distances any more."""

    def __call__(self, X, Z=None):
        return 2.0 * super().__call__(X, Z) + 0.5


class OtherScaled(Scaled):
    def __call__(self, X, Z=None):
        return super().__call__(X, Z) + 0.25


class Weighted:
    """A mixin: the method is not in the class itself."""

    def __call__(self, X, Z=None):
        return super().__call__(X * METRIC, None if Z is None else Z * METRIC)


class ByMixin(Weighted, Exponential):
    pass


class Grandchild(OtherTerms):
    @property
    def exponent(self):
        return 0.5 * super().exponent


@dataclass(frozen=True, repr=False)
class WithField(RBF):
    scale: float = 1.0

    def __post_init__(self):
        pass

    def _given(self):
        return "width", self.width, None

    def _terms(self, view):
        return tuple(Term(self.scale * c, atoms) for c, atoms in super()._terms(view))


SUBCLASSES = [
    OtherTerms(width=2.0),
    OtherFunction(width=2.0),
    OtherCall(width=2.0),
    OtherScaled(RBF(width=2.0), 3.0),
    ByMixin(width=2.0),
    Grandchild(width=2.0),
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
        np.array(
            [
                matrix.copy()
                for _, matrix in sorted(KernelSet(kernels).matrices(KernelSet(kernels).prepare(X)))
            ]
        ),
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
    kernels = [OtherTerms(width=2.0), OtherTerms(width=4.0)]
    clf = MultipleKernelDiscriminant(kernels, bank=bank, **options).fit(X, y)
    kernels = [RBF(width=2.0), RBF(width=4.0)]
    scaled = MultipleKernelDiscriminant(kernels, **options).fit(X * METRIC, y)
    new = X[::3] + 0.2
    assert_allclose(clf.predict_proba(new), scaled.predict_proba(new * METRIC), atol=1e-10)


def test_subclasses_that_change_nothing_keep_the_fast_way(X):
    class Renamed(RBF):
        @property
        def name(self):
            return "mine"

    kernels = [RBF(width=1.0), Renamed(width=2.0), OtherFunction(width=1.0), OtherTerms(width=1.0)]
    together = KernelSet([*kernels, OtherCall(width=1.0)])
    assert together.keys[0] == together.keys[1] == together.keys[2] != together.keys[3]
    assert together.direct == [4]
    assert OtherCall(width=1.0).is_opaque


@pytest.mark.parametrize("kernel", [OtherTerms(width=2.0), OtherFunction(width=2.0)], ids=repr)
def test_gradients_follow_from_terms(kernel, X):
    coef = np.linspace(-1.0, 1.0, 8)
    found, step = kernel.gradient(X[8:], coef, X[:8])[:, :, 0], 1e-6
    for column in range(3):
        moved = step * (np.arange(3) == column)
        above, below = (kernel(X[8:] + s * moved, X[:8]) @ coef for s in (1, -1))
        assert_allclose(found[:, column], (above - below) / (2 * step), atol=1e-8)


def test_a_kernel_of_another_call_has_the_diagonal_of_its_own():
    class Doubled(Tanimoto):
        def __call__(self, X, Z=None):
            return 2.0 * super().__call__(X, Z)

    rows = np.arange(12.0).reshape(4, 3)
    assert_allclose(Doubled().diagonal(rows), 2.0)
    assert_allclose((Doubled() + 1.0).diagonal(rows), 3.0)


def test_terms_add_up_however_kernels_are_made(X):
    kernel = 2.0 * (OtherCall(width=1.0) + RBF(width=2.0) * Linear().on([1]) + 0.5) ** 3
    expected = 2.0 * (OtherCall(width=1.0)(X) + RBF(width=2.0)(X) * Linear()(X[:, [1]]) + 0.5) ** 3
    assert_allclose(kernel(X), expected, rtol=1e-12, atol=1e-12)
    assert_allclose(kernel.diagonal(X), expected.diagonal(), rtol=1e-12)
    assert len(kernel.terms()) == 10  # of three summands to the third power
