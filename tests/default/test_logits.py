"""Held-out logits of the kernel logistic regression: honest, and where there is one at all."""

import tracemalloc

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import scale

from discernel import KernelDiscriminant, MultipleKernelDiscriminant, open_rows
from discernel.bank import DenseBank, Iterative, LowRank
from discernel.default import LogitSearch
from discernel.default.logits import _TOL
from discernel.exceptions import ConvergenceWarning
from discernel.kernels import RBF
from discernel.learn.held_out import predict_independent
from discernel.programs.logistic import LogisticProblem
from discernel.targets import ClassTarget

KERNEL = "kernel logistic"


def search(codes, n_folds=3, width=4.0):
    """Return the search of wine's rows in folds, their kernel, and the folds."""
    X = scale(load_wine().data)
    kernel = DenseBank(RBF(width=width)(X)[None]).combined(np.ones(1))
    folds = np.arange(len(X)) % n_folds
    made = LogitSearch(ClassTarget(np.arange(3), codes), 1e-3)
    for fold in range(n_folds):
        made.add(kernel, np.flatnonzero(folds == fold))
    return made, kernel, folds


def test_held_out_logits_are_those_of_the_other_folds():
    codes = load_wine().target
    made, kernel, folds = search(codes)
    held_out = made.fit(kernel).held_out
    for fold in range(3):
        outside, inside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        square = kernel[np.ix_(outside, outside)]
        problem = LogisticProblem(square, codes[outside], 3, np.ones(len(outside)))
        fits = [problem.minimize(lam, tol=_TOL) for lam in made._logits]
        logits = [kernel[np.ix_(inside, outside)] @ one.coef + one.intercept for one in fits]
        found = [one[:, 1:] - one[:, :1] for one in logits]
        error = min(np.abs(one - held_out[inside]).max() for one in found)
        assert error < 1e-3 * np.abs(held_out).max()


def test_logits_of_a_fold_do_not_know_its_labels(monkeypatch):
    monkeypatch.setattr("discernel.default.logits._GRID", ())  # leaves one λ
    monkeypatch.setattr("discernel.default.logits._MIDDLE", 0)
    codes, inside = load_wine().target, np.arange(178) % 3 == 1
    other = np.where(inside, (codes + 1) % 3, codes)
    found = []
    for labels in (codes, other):
        made, kernel, _ = search(labels)
        found.append(made.fit(kernel).held_out)
    np.testing.assert_array_equal(found[0][inside], found[1][inside])
    assert np.abs(found[0][~inside] - found[1][~inside]).max() > 0.1


def test_lambda_of_a_fold_is_the_best_of_the_other_folds():
    codes = load_wine().target
    made, kernel, folds = search(codes)
    own, inside = np.eye(3)[codes], folds == 0
    first, second, *_ = made._logits.values()
    # The first is better for all rows together, the second for those of the other folds.
    first[:] = np.where(inside[:, None], 50.0, 2.0) * own
    second[:] = np.where(inside[:, None], -50.0, 50.0) * own
    held_out = made.fit(kernel).held_out
    np.testing.assert_array_equal(held_out[inside], (second[:, 1:] - second[:, :1])[inside])


def test_the_regression_of_all_rows_predicts_like_its_expansion():
    X, y = load_wine(return_X_y=True)
    clf = MultipleKernelDiscriminant().fit(X[::2], y[::2])
    assert clf.link_weights_[KERNEL] > 0
    scores = clf.model_.scores(X[::2])
    assert scores.shape[1] == 4
    told = log_softmax(np.pad(scores[:, 2:], ((0, 0), (1, 0))), axis=1)
    assert (told.argmax(axis=1) == y[::2]).mean() > 0.95
    # Residuals sum to 0, as an intercept that is not penalised makes them.
    residuals = np.exp(told) - np.eye(3)[y[::2]]
    np.testing.assert_allclose(residuals.sum(axis=0), 0.0, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "has_one"),
    [
        ({}, True),
        ({"bank": "tiled"}, True),
        ({"criterion": "rkda"}, True),
        ({"bank": Iterative()}, False),
        ({"bank": LowRank(40)}, False),
        ({"kernels": "rbf"}, True),
        ({"kernels": "rbf", "bank": "tiled"}, True),
        ({"kernels": "rbf", "criterion": "rkda"}, False),
        ({"kernels": "rbf", "regularization": 1e-3}, False),  # nothing is learned but the fit
        ({"statistics": "training"}, False),
    ],
)
def test_where_there_is_a_kernel_logistic_regression(options, has_one):
    X, y = load_iris(return_X_y=True)
    clf = MultipleKernelDiscriminant(**options).fit(X, y)
    assert (KERNEL in clf.link_weights_) is has_one


def test_given_kernels_chunks_and_many_rows_have_none(monkeypatch):
    X, y = load_iris(return_X_y=True)
    assert KERNEL not in KernelDiscriminant().fit(X, y).link_weights_
    assert KERNEL not in MultipleKernelDiscriminant().fit(open_rows(X, y)).link_weights_
    monkeypatch.setattr(LogitSearch, "most_rows", len(X) - 1)
    assert KERNEL not in MultipleKernelDiscriminant().fit(X, y).link_weights_
    assert KERNEL in MultipleKernelDiscriminant().fit(X[1:], y[1:]).link_weights_


def test_it_takes_no_memory_beyond_that_of_the_rest_of_the_fit(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 4))
    y = (X[:, 0] + X[:, 1] ** 2 - 1.0 + rng.standard_normal(700) > 0).astype(int)

    def peak(most):
        monkeypatch.setattr(LogitSearch, "most_rows", most)
        tracemalloc.start()
        try:
            MultipleKernelDiscriminant().fit(X, y)
            return tracemalloc.get_traced_memory()[1] / (8 * 700**2)
        finally:
            tracemalloc.stop()

    peak(0)  # what is made once
    assert peak(2000) <= peak(0) + 0.1


def test_rows_that_had_no_part_in_the_kernel_are_predicted_in_folds_from_all_others():
    X, codes = scale(load_wine().data), load_wine().target
    kernel = DenseBank(RBF(width=4.0)(X)[None]).combined(np.ones(1))
    rows = np.arange(1, 178, 2)
    made, fitted = LogitSearch(ClassTarget(np.arange(3), codes), 1e-3), np.eye(3)[codes]
    predict_independent(made, kernel, fitted, rows)
    np.testing.assert_array_equal(np.sort(np.concatenate(made._folds)), rows)
    held_out = made.held_out()
    assert not held_out[::2].any()
    for inside in made._folds:
        outside = np.setdiff1d(np.arange(178), inside)
        square = kernel[np.ix_(outside, outside)]
        problem = LogisticProblem(square, codes[outside], 3, np.ones(len(outside)))
        fits = [problem.minimize(lam, tol=_TOL) for lam in made._logits]
        logits = [kernel[np.ix_(inside, outside)] @ one.coef + one.intercept for one in fits]
        error = min(np.abs(one - held_out[inside]).max() for one in logits)
        assert error < 1e-3 * np.abs(held_out).max()


def test_a_regression_that_does_not_converge_is_left_out_with_a_warning(monkeypatch):
    made, kernel, _ = search(load_wine().target)
    for coef in made._coef.values():
        coef[:] = 1e7  # a start that is worse than none
    monkeypatch.setattr("discernel.programs.logistic._MOST_STEPS", 0)
    with pytest.warns(ConvergenceWarning, match="did not converge, and is no part of the model"):
        assert made.fit(kernel) is None
