"""`rkda` between the papers' optimum and the plain average."""

import cvxpy as cp
import numpy as np
import pytest

from discernel import learn_kernel
from discernel.criteria import RKDA
from discernel.exceptions import InvalidInputError
from discernel.targets import ClassTarget
from tests import reference

LAM = 1e-2


@pytest.mark.conic
@pytest.mark.parametrize("amount", [0.01, 0.3])
def test_weights_are_those_of_the_convex_program(three_classes, amount):
    """The SDP of Ye 2008 (29) with the penalty written into its objective."""
    grams, y = three_classes
    kernels = reference.trace_normalized(grams)
    m, p = len(y), len(kernels)
    H = ClassTarget.from_labels(y).indicator
    at_equal = np.trace(H.T @ np.linalg.solve(np.eye(m) + kernels.mean(axis=0) / LAM, H))
    w = cp.Variable(p, nonneg=True)
    t = cp.Variable(H.shape[1])
    matrix = np.eye(m) + sum(w[i] * (K / LAM) for i, K in enumerate(kernels))
    blocks = [
        cp.bmat([[matrix, H[:, [j]]], [H[:, [j]].T, cp.reshape(t[j], (1, 1), order="C")]]) >> 0
        for j in range(H.shape[1])
    ]
    penalty = 0.5 * amount * p * at_equal * cp.sum_squares(w - 1.0 / p)
    problem = cp.Problem(cp.Minimize(cp.sum(t) + penalty), [cp.sum(w) == 1, *blocks])
    problem.solve(solver="CLARABEL")
    for solver in ("newton", "galerkin"):
        learned = learn_kernel(
            grams, y, criterion=RKDA(amount), regularization=LAM, solver=solver, tol=1e-8
        )
        assert learned.gap <= 1e-8
        assert learned.objective == pytest.approx(problem.value, rel=2e-5)
        np.testing.assert_allclose(learned.weights, w.value, atol=5e-3)


def test_from_the_optimum_to_the_plain_average(three_classes):
    grams, y = three_classes
    optimum = learn_kernel(grams, y, criterion="rkda", regularization=LAM, tol=1e-9)
    none = learn_kernel(grams, y, criterion=RKDA(0), regularization=LAM, tol=1e-9)
    np.testing.assert_allclose(none.weights, optimum.weights, atol=1e-6)
    away = [
        np.abs(
            learn_kernel(grams, y, criterion=RKDA(a), regularization=LAM).weights - 1 / len(grams)
        ).max()
        for a in (0.0, 0.1, 1.0, 1e4)
    ]
    assert sorted(away, reverse=True) == away
    assert away[-1] < 1e-3


@pytest.mark.parametrize(
    "asked",
    [
        {"solver": "qcqp"},
        {"solver": "sdp"},
        {"solver": "silp"},
        {"solver": "columns"},
        {"regularization": "joint"},
    ],
)
def test_what_does_not_go_with_shrinkage_is_refused(three_classes, asked):
    with pytest.raises(InvalidInputError, match="RKDA must go with"):
        learn_kernel(*three_classes, criterion=RKDA(0.1), **asked)
    with pytest.raises(InvalidInputError, match="shrinkage of RKDA must be"):
        RKDA(-1.0)
