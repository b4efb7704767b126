"""Kernels that are wrong by as much as their bank says: values, errors and bounds allow for it.

A bank says by how much ε_i‖B‖² each ⟨B, K_iB⟩ can be wrong. Here it is wrong by just that, up or
down, and the truth is that of the kernels without it.
"""

import numpy as np
import pytest

from discernel.bank import DenseBank
from discernel.programs.fdr import FisherRatioProgram
from discernel.programs.rkda import RKDAProgram
from discernel.targets import ClassTarget
from tests import reference
from tests.conftest import make_problem
from tests.programs.test_fdr_certificate import NoisyBank


class WrongBank(DenseBank):
    """Centred kernels K_i + sεP, of which it is known that ε is their rounding."""

    def __init__(self, grams, size, sign, normalization="centered_trace"):
        super().__init__(grams, normalization=normalization)
        self.rounding, self._shift = np.full(self.n_kernels, size), sign * size

    def products(self, vectors):
        return super().products(vectors) + self._shift * (vectors - vectors.mean(axis=0))

    def combined(self, weights, out=None):
        matrix = super().combined(weights, out)
        n = self.n_samples
        matrix += weights.sum() * self._shift * (np.eye(n) - 1.0 / n)
        return matrix


def problem(lam, size, sign, seed):
    grams, y = make_problem(30, 2, 4, seed=seed)
    target = ClassTarget.from_labels(y)
    return RKDAProgram(WrongBank(grams, size, sign), target, lam), RKDAProgram(
        DenseBank(grams), target, lam
    )


@pytest.mark.parametrize("lam", [1e-2, 1.0])
@pytest.mark.parametrize("share", [1e-6, 1e-3])
def test_the_error_allows_for_what_kernels_are_wrong_by(lam, share):
    """⟨T, N⁻¹T⟩ is more than the value by ε‖B‖², but for what is smaller by another ε/λ."""
    for seed in range(3):
        wrong, truth = problem(lam, share * lam, 1.0, seed)
        for weights in np.random.default_rng(seed).dirichlet(np.ones(4), size=3):
            point, exact = wrong.at(weights), truth.at(weights).value
            assert point.value < exact * (1 - 1e-12)
            assert exact <= point.value + point.error * (1 + 1e-9)


@pytest.mark.parametrize("lam", [1e-2, 1.0])
@pytest.mark.parametrize("share", [1e-6, 1e-3, 0.5])
def test_bounds_allow_for_what_kernels_are_wrong_by(lam, share):
    """From kernels that are too small, no weights of the true ones fall below the bound."""
    for seed in range(3):
        wrong, truth = problem(lam, share * lam, -1.0, seed)
        for weights in (*np.eye(4), np.full(4, 0.25)):
            point = wrong.at(weights)
            one = RKDAProgram(truth.bank.select(np.flatnonzero(weights)), truth.target, lam)
            few = RKDAProgram(wrong.bank.select(np.flatnonzero(weights)), wrong.target, lam)
            inside = weights[weights > 0]
            assert few.at(inside).bound <= one.at(inside).value * (1 + 1e-12)
            assert point.bound <= truth.at(weights).value * (1 + 1e-12)


@pytest.mark.parametrize("size", [1.0, 1.5, 10.0])
def test_nothing_is_certified_where_kernels_can_be_wrong_by_the_ridge(size):
    """N(w) need not be positive definite then: no error is known, and no bound."""
    wrong, _ = problem(1e-2, size * 1e-2, 0.0, 0)
    point = wrong.at(np.full(4, 0.25))
    assert point.error == np.inf
    assert point.bound <= 0.0
    assert point.gap == np.inf
    assert wrong.estimate(np.full(4, 0.25))[1] == np.inf


class BackwardBank(DenseBank):
    """A bank whose factorisations are those of N + E, with the E of some dozen roundings."""

    def system(self, weights, ridge, **options):
        return super().system(weights, ridge + 1e-14, **options)


@pytest.mark.parametrize("lam", [1e-4, 1e-6, 1e-8])
def test_an_estimate_allows_for_the_backward_error_of_its_factorisation(lam):
    """⟨T, (N + E)⁻¹T⟩ is off by ⟨B, EB⟩, far more than rounding errors of the value."""
    for seed in range(3):
        grams, y = make_problem(30, 2, 4, seed=seed)
        target, weights = ClassTarget.from_labels(y), np.array([0.0, 0.2, 0.3, 0.5])
        value, error = RKDAProgram(BackwardBank(grams), target, lam).estimate(weights)
        assert abs(value - RKDAProgram(DenseBank(grams), target, lam).at(weights).value) <= error


@pytest.mark.parametrize("error", [1e-4, 1e-2])
@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_the_error_of_the_fisher_ratio_covers_a_rough_beta(lam, error):
    for seed in range(6):
        grams, y = make_problem(30, 2, 4, seed=seed)
        weights = np.random.default_rng(seed).dirichlet(np.ones(4))
        criterion = FisherRatioProgram(
            NoisyBank(grams, error, seed), ClassTarget.from_labels(y), lam
        )
        exact = -reference.fisher_ratio(grams, y, weights, lam)
        point = criterion.at(weights)
        assert point.value <= exact <= point.value + point.error + 1e-9 * abs(exact)
        assert point.error > 0


@pytest.mark.parametrize("share", [1e-6, 1e-3, 0.5])
def test_bounds_of_the_fisher_ratio_allow_for_what_kernels_are_wrong_by(share):
    for seed in range(3):
        grams, y = make_problem(30, 2, 2, seed=seed)
        target, lam = ClassTarget.from_labels(y), 0.1
        size = share * lam * target.counts.min()
        wrong = FisherRatioProgram(WrongBank(grams[:1], size, -1.0, "trace"), target, lam)
        exact = -reference.fisher_ratio(grams[:1], y, np.ones(1), lam)
        assert wrong.at(np.ones(1)).bound <= exact + 1e-10 * abs(exact)
