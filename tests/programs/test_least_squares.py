"""Kernel least squares and its leave-one-out predictions, against refits."""

import numpy as np
import pytest

from discernel.bank import DenseBank
from discernel.criteria import KernelLeastSquares
from discernel.programs.least_squares import center_left_out
from discernel.targets import ClassTarget
from tests import reference


@pytest.mark.parametrize("balanced", [False, True], ids=["samples", "classes"])
@pytest.mark.parametrize("lam", [1.0, 1e-3, 1e-7])
def test_fit_and_leave_one_out_against_refits(three_classes, lam, balanced):
    grams, y = three_classes
    target, bank = ClassTarget.from_labels(y), DenseBank(grams)
    w = np.full(len(grams), 1 / len(grams))
    ridge = lam * (target.counts[target.codes] if balanced else np.ones(len(y)))
    K = np.tensordot(w, reference.trace_normalized(grams), 1)
    fit = KernelLeastSquares(bank.system(w, ridge), ridge, target.scores)
    coef, intercept = reference.least_squares(K, ridge, target.scores)
    np.testing.assert_allclose(fit.fitted, K @ coef + intercept, atol=1e-8)
    np.testing.assert_allclose(fit.coef.sum(axis=0), 0, atol=1e-8 * np.abs(fit.coef).max())
    expected = reference.leave_one_out(K, ridge, target.scores)
    np.testing.assert_allclose(fit.leave_one_out, expected, atol=1e-6)
    error = np.mean((target.scores - expected) ** 2)
    assert fit.leave_one_out_error() == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("lam", [1.0, 1e-3])
def test_left_out_scores_are_those_of_refits_without_a_share_of_every_class(three_classes, lam):
    grams, y = three_classes
    target, bank, w = (
        ClassTarget.from_labels(y),
        DenseBank(grams),
        np.full(len(grams), 1 / len(grams)),
    )
    ridge = np.full(len(y), lam)
    fit = KernelLeastSquares(bank.system(w, ridge), ridge, target.scores)
    groups = fit.left_out_groups(target).codes
    K = np.tensordot(w, reference.trace_normalized(grams), 1)
    expected = reference.leave_one_out(K, ridge, target.scores, groups)
    expected = reference.about_other_rows(expected, target.scores, groups)
    np.testing.assert_allclose(
        fit.left_out_scores(fit.left_out_groups(target)), expected, atol=1e-7
    )


def test_left_out_scores_are_about_the_mean_of_the_other_rows():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(7))
    targets, predicted = rng.standard_normal((2, 7, 2))
    targets -= shares @ targets
    found = center_left_out(predicted, targets, shares)
    for i in range(7):
        others = np.arange(7) != i
        mean = shares[others] @ targets[others] / shares[others].sum()
        np.testing.assert_allclose(found[i], predicted[i] - mean, rtol=1e-12)
