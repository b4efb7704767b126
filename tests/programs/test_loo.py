"""The leave-one-out error as a criterion, and shrinkage towards the plain average."""

import numpy as np
import pytest

from discernel.bank import DenseBank
from discernel.criteria import KernelLeastSquares
from discernel.programs.loo import LeaveOneOutProgram
from discernel.programs.newton import Newton
from discernel.programs.rkda import ShrunkRKDAProgram
from discernel.programs.solution import Task
from discernel.targets import ClassTarget
from tests import reference
from tests.conftest import make_problem


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("lam", [1e-1, 1e-3])
def test_error_is_that_of_refits_and_gradient_that_of_differences(n_classes, lam):
    grams, y = make_problem(36, n_classes, 4, seed=2)
    target = ClassTarget.from_labels(y)
    criterion = LeaveOneOutProgram(DenseBank(grams), target)
    w, step = np.random.default_rng(0).dirichlet(np.ones(4)), 1e-6
    point = criterion.error(w, lam)
    K = np.tensordot(w, reference.trace_normalized(grams), 1)
    predictions = reference.leave_one_out(K, np.full(36, lam), target.scores)
    assert point.value == pytest.approx(np.mean((target.scores - predictions) ** 2), rel=1e-9)
    for i, unit in enumerate(np.eye(4)):
        above, below = (criterion.error(w + s * step * unit, lam).value for s in (1, -1))
        assert point.by_weights[i] == pytest.approx(
            (above - below) / (2 * step), rel=1e-5, abs=1e-8
        )
    above, below = (criterion.error(w, lam * (1 + s * 1e-6)).value for s in (1, -1))
    assert point.by_regularization == pytest.approx((above - below) / (2e-6 * lam), rel=1e-5)


@pytest.mark.parametrize("shrinkage", [0.0, 0.1, 1.0])
def test_shrunk_criterion_derivatives_and_certificate(three_classes, shrinkage):
    grams, y = three_classes
    criterion = ShrunkRKDAProgram(DenseBank(grams), ClassTarget.from_labels(y), 1e-2, shrinkage)
    rng = np.random.default_rng(1)
    w, step = rng.dirichlet(np.ones(6)), 1e-5
    point = criterion.at(w)
    for i, unit in enumerate(np.eye(6)):
        above, below = criterion.at(w + step * unit), criterion.at(w - step * unit)
        assert point.gradient[i] == pytest.approx(
            (above.value - below.value) / (2 * step), rel=1e-5
        )
        row = (above.gradient - below.gradient) / (2 * step)
        np.testing.assert_allclose(point.hessian[i], row, rtol=1e-4, atol=1e-6 * abs(row).max())
    others = rng.dirichlet(np.ones(6), size=20)
    assert all(criterion.at(other).value >= point.bound for other in others)


def test_shrinkage_leads_from_the_optimum_to_the_plain_average(three_classes):
    grams, y = three_classes
    bank, target = DenseBank(grams), ClassTarget.from_labels(y)

    def solve(shrinkage):
        criterion = ShrunkRKDAProgram(bank, target, 1e-2, shrinkage)
        solution = Newton().solve(criterion, Task(1e-9, None, None, lambda *_: None))
        assert solution.gap <= 1e-9
        return solution.weights

    distances = [np.linalg.norm(solve(s) - 1 / 6) for s in (0.0, 0.01, 0.1, 1.0, 1e4)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-3


def test_nothing_rests_on_centring_being_exact():
    """Linear kernels far from the origin: their centred matrices times 1 are only nearly 0."""
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    X = rng.standard_normal((30, 4)) + 0.5 * y[:, None]
    target = ClassTarget.from_labels(y)
    lam, ridge, weights = 1e-5, np.full(30, 1e-5), np.array([0.4, 0.6])
    errors = []
    for offset in (0.0, 3e4):
        Z = X + offset
        bank = DenseBank(np.array([Z @ Z.T, Z[:, :2] @ Z[:, :2].T]))
        point = LeaveOneOutProgram(bank, target).error(weights, lam)
        fit = KernelLeastSquares(bank.system(weights, ridge), ridge, target.scores)
        assert point.value == pytest.approx(fit.leave_one_out_error(), rel=1e-9)
        errors.append(point.value)
    assert errors[1] == pytest.approx(errors[0], rel=1e-3)  # X + 3e4 has lost digits of its own
