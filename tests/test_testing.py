"""Our own kernels, banks, criteria and solvers pass the checkers that users have."""

import dataclasses

import numpy as np
import pytest

from discernel.bank import DenseBank, FeatureBank, TiledBank, gram_stack
from discernel.criteria import CRITERIA, RKDA, Criterion
from discernel.kernels import RBF, Cosine, Exponential, Laplace, Linear, Polynomial, rbf_ladder
from discernel.kernels.adapters import Function, Pairwise
from discernel.programs.rkda import RKDAPoint, RKDAProgram
from discernel.solvers import QCQP, SDP, SILP, Columns, Galerkin, Newton, Solution, Status
from discernel.testing import check_bank, check_criterion, check_kernel, check_solver

ROWS = np.random.default_rng(3).standard_normal((37, 4))


def dot(X, Z):
    return np.asarray(X) @ np.asarray(Z).T


KERNELS = [
    Linear(),
    RBF(),
    RBF(gamma=0.3),
    RBF(length_scale="0.5*median"),
    Exponential(width=2.0),
    Laplace(),
    Laplace(gamma=0.3),
    RBF(scales=[1.0, 0.5, 0.0, 2.0]),
    Exponential(width=2.0, scales=[1.0, 0.5, 0.0, 2.0]),
    Laplace(scales=[1.0, 0.5, 0.0, 2.0]),
    Polynomial(degree=3, gamma=0.2),
    Cosine(),
    Function(dot),
    Pairwise("laplacian"),
    RBF(width=2.0).on([0, 2]),
    2.5 * RBF(width=2.0),
    RBF(width=2.0) + Linear(),
    RBF(width=2.0) * Polynomial(degree=2, gamma=0.1),
    RBF(width=2.0).named("width two"),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_our_kernels(kernel):
    check_kernel(kernel)


@pytest.mark.parametrize("normalization", ["centered_trace", "trace"])
@pytest.mark.parametrize("kind", ["dense", "tiled", "small tiles", "factored"])
def test_our_banks(kind, normalization):
    kernels = [kernel.resolve(ROWS) for kernel in [*rbf_ladder(5), Linear(), RBF().on([1])]]
    grams = gram_stack(kernels, ROWS)
    bank = {
        "dense": lambda: DenseBank(grams, normalization=normalization),
        "tiled": lambda: TiledBank(kernels, ROWS, normalization=normalization),
        "small tiles": lambda: TiledBank(
            kernels, ROWS, normalization=normalization, n_threads=2, cache_bytes=2**16
        ),
        "factored": lambda: FeatureBank.from_kernels(kernels, ROWS, normalization=normalization),
    }[kind]()
    check_bank(bank, grams, normalization)


@pytest.mark.parametrize("name", sorted(CRITERIA))
def test_our_criteria(name):
    check_criterion(name)


def test_shrinkage_is_checked_too():
    check_criterion(RKDA(shrinkage=0.3))


SOLVERS = [Newton(), Galerkin(), Columns(), SILP()]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
def test_our_solvers(solver):
    check_solver(solver)


@pytest.mark.conic
@pytest.mark.parametrize("solver", [QCQP(), SDP()], ids=lambda solver: solver.name)
def test_our_conic_solvers(solver):
    pytest.importorskip("cvxpy")
    check_solver(solver)


def test_newton_with_the_fisher_ratio():
    check_solver(Newton(), "fdr")


# ---- what is wrong is found ------------------------------------------------------------------


class Asymmetric(RBF):
    def __call__(self, X, Z=None):
        matrix = super().__call__(X, Z)
        return matrix + 1e-3 * np.arange(matrix.shape[1])


class WrongDiagonal(RBF):
    def diagonal(self, X):
        return np.full(len(X), 1.01)


class WrongDerivative(RBF):
    def _derivative(self, parameter, X, Z):
        return 1.1 * super()._derivative(parameter, X, Z)


def indefinite(X, Z):
    return -dot(X, Z)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (Asymmetric(width=2.0), "must be symmetric"),
        (WrongDiagonal(width=2.0), "diagonal"),
        (WrongDerivative(width=2.0), "derivative"),
        (Function(indefinite), "semidefinite"),
    ],
    ids=["asymmetric", "diagonal", "derivative", "indefinite"],
)
def test_wrong_kernels_are_found(kernel, words):
    with pytest.raises(AssertionError, match=words):
        check_kernel(kernel)


@pytest.mark.parametrize(
    "method", ["products", "combined", "inner", "inner_products", "compressed"]
)
def test_wrong_banks_are_found(method, monkeypatch):
    grams = gram_stack([RBF(width=2.0), Linear()], ROWS)
    right = getattr(TiledBank, method)
    monkeypatch.setattr(TiledBank, method, lambda self, *a: 1.001 * right(self, *a))
    with pytest.raises(AssertionError, match="off by"):
        check_bank(TiledBank([RBF(width=2.0), Linear()], ROWS), grams)


@pytest.mark.parametrize("method", ["select", "subset"])
def test_a_bank_with_wrong_parts_is_found(method, monkeypatch):
    grams = gram_stack([RBF(width=2.0), RBF(width=8.0), Linear()], ROWS)
    bank = TiledBank([RBF(width=2.0), RBF(width=8.0), Linear()], ROWS)
    own = getattr(TiledBank, method)
    monkeypatch.setattr(TiledBank, method, lambda self, which: own(self, which[::-1]))
    with pytest.raises(AssertionError, match=method):
        check_bank(bank, grams)


class _WrongPoint(RKDAPoint):
    wrong = ""

    @property
    def gradient(self):
        return (1.01 if self.wrong == "gradient" else 1.0) * super().gradient

    @property
    def hessian(self):
        return (1.1 if self.wrong == "hessian" else 1.0) * super().hessian

    @property
    def bound(self):
        return self.value * 1.2 if self.wrong == "bound" else super().bound


@dataclasses.dataclass(frozen=True)
class Wrong(Criterion):
    wrong: str

    def program(self, bank, target, regularization):
        class Point(_WrongPoint):
            wrong = self.wrong

        class Made(RKDAProgram):
            def at(self, weights):
                return Point(self, weights)

        return Made(bank, target, regularization)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [("gradient", "gradient"), ("hessian", "Hessian"), ("bound", "bound")],
)
def test_wrong_criteria_are_found(wrong, words):
    with pytest.raises(AssertionError, match=words):
        check_criterion(Wrong(wrong))


class Boaster:
    """Claims to have converged where it started."""

    name = "boaster"

    def solve(self, program, task):
        weights = np.full(program.n_weights, 1.0 / program.n_weights)
        value = program.at(weights).value
        task.monitor(0, value, 0.0, weights)
        return Solution(weights, value, value, Status.CONVERGED, 0)


def test_a_solver_that_claims_too_much_is_found():
    with pytest.raises(AssertionError, match="claims a gap"):
        check_solver(Boaster())
