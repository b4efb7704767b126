"""Every term of the screening rule is needed: cases in which the rule without it is wrong.

The ball: ‖C − B*‖² ≤ r² = g/(2λ) − ¼(1 − t)²‖B‖² with C = ½(1 + t)B. The bounds in it:
q_i(C) − 2r‖K_iC‖ ≤ q_i(B*) ≤ q_i(C) + 2r‖K_iC‖ + r²‖K_i‖.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq

from discernel.bank import DenseBank
from discernel.programs.columns import DualBall
from discernel.programs.rkda import RKDAProgram
from discernel.programs.solution import Task
from discernel.solvers import Newton
from discernel.targets import ClassTarget
from tests.conftest import make_problem


class Small:
    """The criterion of some kernels A_iA_iᵀ, of any scale and not centred, by plain formulas."""

    def __init__(self, factors, scores, lam):
        self.kernels = np.array([A @ A.T for A in np.asarray(factors, dtype=float)])
        self.scores, self.ridge, self.scale = np.asarray(scores, dtype=float)[:, None], lam, lam

    def at(self, weights):
        N = self.ridge * np.eye(len(self.scores)) + np.tensordot(weights, self.kernels, 1)
        dual = np.linalg.solve(N, self.scores)
        value = self.scale * float(np.sum(self.scores * dual))
        return SimpleNamespace(dual=dual, value=value)

    dual_ball = RKDAProgram.dual_ball

    def best_of_two(self):
        """The optimum over two kernels: a root of the derivative, or an end."""

        def slope(share):
            dual = self.at(np.array([share, 1.0 - share])).dual
            return float(np.sum(dual * ((self.kernels[1] - self.kernels[0]) @ dual)))

        if slope(0.0) >= 0:
            return np.array([0.0, 1.0])
        if slope(1.0) <= 0:
            return np.array([1.0, 0.0])
        share = brentq(slope, 0.0, 1.0, xtol=1e-15, rtol=1e-14)
        return np.array([share, 1.0 - share])


def ball_and_stay(criterion, kernels, point):
    products = kernels @ point.dual
    energies = np.einsum("ijk,jk->i", products, point.dual)
    lengths = np.sqrt(np.square(products).sum(axis=(1, 2)))
    ball = criterion.dual_ball(point.value, point.dual, energies)
    return ball, ball.can_enter(energies, lengths, np.linalg.norm(kernels, 2, axis=(1, 2)))


def kernels_of(bank):
    return np.array([bank.combined(unit) for unit in np.eye(bank.n_kernels)])


# ---- the rule --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_a_kernel_stays_exactly_if_its_upper_bound_reaches_every_lower_bound(seed):
    """The two bounds of the ball around C = s·B, from ⟨B, K_iB⟩ and ‖K_iB‖."""
    rng = np.random.default_rng(seed)
    energies, lengths, norms = rng.exponential(size=(3, 12))
    scale, radius = rng.uniform(0.5, 1.0), rng.exponential(0.1)
    upper = [
        scale**2 * q + 2 * radius * scale * length + radius**2 * norm
        for q, length, norm in zip(energies, lengths, norms, strict=True)
    ]
    lower = [
        scale**2 * q - 2 * radius * scale * length
        for q, length in zip(energies, lengths, strict=True)
    ]
    expected = [all(u >= other for other in lower) for u in upper]
    assert DualBall(scale, radius).can_enter(energies, lengths, norms).tolist() == expected


NEEDED = {
    # Without r²‖K_i‖, with half of 2r‖K_iC‖, or compared with the largest q itself, the rule drops
    # the first kernel of each, which has weight at the optimum. Found by drawing.
    "curvature": (
        [[[0.99, -0.0089], [1.4, 0.2]], [[5.6, 0.13], [-40.0, 0.29]]],
        [0.41, 0.057],
        29.0,
        [0.0, 1.0],
    ),
    "slope": (
        [[[-0.72, -0.0057], [1.6, -0.059]], [[-0.1, -0.27], [-0.12, -0.39]]],
        [3.0, 0.015],
        2.8,
        [0.0, 1.0],
    ),
    "lower bound": (
        [[[0.0032, 0.014], [-0.023, -0.0091]], [[-51.0, -0.018], [25.0, 0.021]]],
        [-0.15, 1.0],
        1.1,
        [1.0, 0.0],
    ),
}


@pytest.mark.parametrize("term", NEEDED)
def test_a_kernel_with_weight_stays_where_one_term_alone_keeps_it(term):
    factors, scores, lam, weights = NEEDED[term]
    criterion = Small(factors, scores, lam)
    assert criterion.best_of_two().min() > 0.01
    _, stay = ball_and_stay(criterion, criterion.kernels, criterion.at(np.array(weights)))
    assert stay.all()


@pytest.mark.parametrize("seed", range(4))
def test_no_kernel_with_weight_is_dropped_on_small_problems_of_any_scale(seed):
    rng = np.random.default_rng(seed)
    dropped = 0
    for _ in range(60):
        factors = rng.standard_normal((2, 2, 2)) * np.exp(rng.uniform(-4, 3, size=(2, 1, 2)))
        scores = rng.standard_normal(2) * np.exp(rng.uniform(-3, 3, size=2))
        criterion = Small(factors, scores, np.exp(rng.uniform(-2, 4)))
        best = criterion.best_of_two()
        for share in (1.0, 0.1, 1e-3):
            end = np.eye(2)[rng.integers(2)]
            point = criterion.at((1 - share) * best + share * end)
            ball, stay = ball_and_stay(criterion, criterion.kernels, point)
            assert stay[best > 0].all()
            distance = np.linalg.norm(ball.scale * point.dual - criterion.at(best).dual)
            assert distance <= ball.radius * (1 + 1e-7)
            dropped += np.count_nonzero(~stay)
    assert dropped > 0, "a rule that keeps everything is safe, but no use"


# ---- the ball --------------------------------------------------------------------------------


@pytest.mark.parametrize("lam", [1e-3, 1e-2, 0.1, 1.0])
def test_the_ball_is_no_larger_than_it_must_be(lam):
    """K_1T = 0 and K_2 = TTᵀ/‖T‖²: from K_1 alone, B = T/λ and B* = tB with t = λ/(λ + 1).

    ‖C − B*‖² is ¼(1 − t)²‖B‖² and r² is ¼(1 − t²)‖B‖²: the same as λ falls.
    """
    T, v = np.array([1.0, 1.0, -1.0, -1.0]), np.array([1.0, -1.0, 1.0, -1.0])
    grams = np.array([np.outer(v, v), np.outer(T, T)])
    criterion = RKDAProgram(DenseBank(grams), ClassTarget.from_labels([1, 1, 0, 0]), lam)
    point, best = criterion.at(np.array([1.0, 0.0])), criterion.at(np.array([0.0, 1.0]))
    ball, stay = ball_and_stay(criterion, kernels_of(criterion.bank), point)
    t = lam / (lam + 1.0)
    np.testing.assert_allclose(best.dual, t * point.dual, atol=1e-9 / lam)
    assert ball.scale == pytest.approx(0.5 * (1.0 + t))
    norm = np.linalg.norm(point.dual)
    assert ball.radius == pytest.approx(0.5 * np.sqrt(1.0 - t**2) * norm)
    distance = np.linalg.norm(ball.scale * point.dual - best.dual)
    assert distance == pytest.approx(0.5 * (1.0 - t) * norm)
    assert distance <= ball.radius
    assert stay[1]


@pytest.mark.parametrize("seed", range(12))
def test_equal_kernels_stay_at_an_optimum_that_rounding_blurs(seed):
    """Multiples of one kernel are equal but for rounding, and any of them may have the weight.

    There the gap is rounding too, of either sign. A ball without radius would keep the kernel
    whose energy came out largest and call the others proven to have no weight.
    """
    rng = np.random.default_rng(seed)
    grams, y = make_problem(24, 2, 3, seed=seed)
    copies = grams[seed % 3] * rng.uniform(0.1, 10.0, size=(10, 1, 1))
    criterion = RKDAProgram(
        DenseBank(copies), ClassTarget.from_labels(y), 10.0 ** -rng.integers(0, 4)
    )
    for weights in (np.full(10, 0.1), np.eye(10)[seed % 10]):
        _, stay = ball_and_stay(criterion, kernels_of(criterion.bank), criterion.at(weights))
        assert stay.all()


@pytest.mark.parametrize("seed", range(25))
def test_no_kernel_with_weight_is_dropped_at_the_optimum_itself(seed):
    """As far as floating point gets: what the gap is there, is rounding."""
    for n_classes in (2, 3):
        grams, y = make_problem(24, n_classes, 6, seed=seed)
        bank = DenseBank(np.concatenate([grams, 3.0 * grams[:2]]))
        criterion = RKDAProgram(bank, ClassTarget.from_labels(y), 10.0 ** -(seed % 5))
        found = Newton().solve(criterion, Task(1e-17, 60, None, lambda *_: None))
        point = criterion.at(found.weights)
        _, stay = ball_and_stay(criterion, kernels_of(bank), point)
        assert stay[found.weights > 1e-7].all()
