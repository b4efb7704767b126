"""The Fisher ratio's certificate rests on Cᵀβ = c, which no rounding of β may cost.

F + 2 is the least βᵀ(G/λ + D)β over all β with Cᵀβ = c: any such β, however rough, gives too large
a ratio, and minus it a bound below.
"""

import numpy as np
import pytest

from discernel.bank import DenseBank
from discernel.programs.fdr import FisherRatioProgram
from discernel.targets import ClassTarget
from tests import reference
from tests.conftest import make_problem


class Noisy:
    """A system whose solutions are off by a share of their length, anew each time."""

    def __init__(self, system, error, rng):
        self._system, self._error, self._rng = system, error, rng

    def solve(self, right):
        exact = self._system.solve(right)
        off = self._rng.standard_normal(exact.shape)
        return exact + self._error * np.linalg.norm(exact) * off / np.linalg.norm(off)


class NoisyBank(DenseBank):
    def __init__(self, grams, error, seed):
        super().__init__(grams, normalization="trace")
        self._error, self._rng = error, np.random.default_rng(seed)

    def system(self, weights, ridge):
        return Noisy(super().system(weights, ridge), self._error, self._rng)


@pytest.mark.parametrize("error", [1e-6, 1e-3, 0.05])
@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_any_feasible_beta_gives_too_large_a_ratio(lam, error):
    for seed in range(8):
        grams, y = make_problem(30, 2, 4, seed=seed)
        weights = np.random.default_rng(seed).dirichlet(np.ones(4))
        criterion = FisherRatioProgram(
            NoisyBank(grams, error, seed), ClassTarget.from_labels(y), lam
        )
        exact = -reference.fisher_ratio(grams, y, weights, lam)
        point = criterion.at(weights)
        assert point.value <= exact + 1e-9 * abs(exact)
        assert point.bound <= exact + 1e-9 * abs(exact)


@pytest.mark.parametrize("sizes", [(5, 25), (15, 15), (28, 2)])
def test_the_mean_difference_is_feasible_and_bounds_every_ratio(sizes):
    """a itself, 1/m₊ and −1/m₋, is one of these β: F ≤ aᵀGa/λ."""
    grams, _ = make_problem(30, 2, 4)
    target = ClassTarget.from_labels(np.repeat([0, 1], sizes))
    criterion = FisherRatioProgram(DenseBank(grams, normalization="trace"), target, 0.1)
    a = target.mean_difference
    np.testing.assert_allclose(target.membership.T @ a, [-1.0, 1.0])
    values = [criterion.at(w).value for w in np.random.default_rng(0).dirichlet(np.ones(4), 20)]
    assert criterion.lower_bound(a) <= min(values)
    largest = max(a @ G @ a * 30 / np.trace(G) for G in grams)
    assert -criterion.lower_bound(a) == pytest.approx(largest / 0.1, rel=1e-8)
