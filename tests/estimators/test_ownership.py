"""Fitted estimators own what they need: what the caller does to X and y later changes nothing."""

import inspect

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from discernel import (
    AKFDClassifier,
    KernelDiscriminant,
    MultiLabelKernelDiscriminant,
    MultipleKernelRidge,
    SeparabilityClassifier,
    estimators,
)
from discernel.kernels import RBF, Function, Linear

ALL = [getattr(estimators, name) for name in estimators.__all__]
ALL += [AKFDClassifier, SeparabilityClassifier]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X)[::2], y[::2], scale(X)[1::6]


def make(estimator, kernels, **given):
    """Return the estimator with these kernels, or the first of them, and quick options."""
    taken = inspect.signature(estimator).parameters
    options = {"kernels": kernels} if "kernels" in taken else {"kernel": kernels[0]}
    quick = {"regularization": 0.1, "criterion": "uniform", "cv": 2, "nu": 1.0, "random_state": 0}
    if estimator is SeparabilityClassifier:
        quick |= {"require_unlabelled": False, "share": 0.9, "alpha": 1e4}
    return estimator(**options, **{k: v for k, v in (quick | given).items() if k in taken})


def outputs(fitted, X):
    names = ["predict", "predict_proba", "decision_function", "transform"]
    return [np.asarray(getattr(fitted, name)(X)) for name in names if hasattr(fitted, name)]


def targets(estimator, y):
    if estimator is MultiLabelKernelDiscriminant:
        return (y[:, None] == [0, 1]).astype(int)
    return y.astype(float) if estimator is MultipleKernelRidge else y.copy()


def overwritten(X, y):
    """Overwrite rows and labels in place, whatever they are."""
    y[:] = y[0]
    if hasattr(X, "tocsr"):
        X.data[:] = 0.0
        X.indices[:] = 0
    elif hasattr(X, "iloc"):
        X.iloc[:, :] = 0.0
    elif isinstance(X, list):
        for row in X:
            row[:] = 0.0
    else:
        X[:] = 0.0


KINDS = {
    "array": np.array,
    "fortran": np.asfortranarray,
    "single": lambda X: np.array(X, dtype=np.float32),
    "frame": lambda X: pd.DataFrame(np.array(X), columns=[f"c{i}" for i in range(X.shape[1])]),
    "sparse": sp.csr_array,
    "old sparse": sp.csr_matrix,
    "integers in sparse": lambda X: sp.csr_array(np.rint(3 * X).astype(int)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", ALL)
def test_rows_and_labels_may_be_overwritten_after_fit(wine, estimator, kind):
    X, y, new = wine
    rows, labels, new_rows = KINDS[kind](X), targets(estimator, y), KINDS[kind](new)
    fitted = make(estimator, [RBF(), Linear().on([0, 1, 2])]).fit(rows, labels)
    before = outputs(fitted, new_rows)
    overwritten(rows, labels)
    for found, expected in zip(outputs(fitted, new_rows), before, strict=True):
        assert_array_equal(found, expected)


@pytest.mark.parametrize("estimator", ALL)
def test_matrices_may_be_overwritten_after_fit(wine, estimator):
    X, y, new = wine
    matrix, cross = RBF(width=4.0)(X), RBF(width=4.0)(new, X)
    labels = targets(estimator, y)
    fitted = make(estimator, ["precomputed"]).fit(matrix, labels)
    before = outputs(fitted, cross)
    overwritten(matrix, labels)
    for found, expected in zip(outputs(fitted, cross), before, strict=True):
        assert_array_equal(found, expected)


@pytest.mark.parametrize("estimator", [KernelDiscriminant, AKFDClassifier])
def test_rows_of_any_kind_may_be_overwritten_after_fit(wine, estimator):
    X, y, new = wine

    def products(A, B):
        return np.array([[np.exp(-0.05 * np.sum((a - b) ** 2)) for b in B] for a in A])

    rows, labels = [row.copy() for row in X], y.copy()
    # Rows of different lengths are no table: they reach the callable as they are.
    kernel = Function(lambda A, B: products([a[:13] for a in A], [b[:13] for b in B]))
    rows[0] = np.append(rows[0], 1.0)
    fitted = make(estimator, [kernel]).fit(rows, labels)
    before = outputs(fitted, [*new, rows[0].copy()])
    expected_last = rows[0].copy()
    overwritten(rows, labels)
    for found, expected in zip(outputs(fitted, [*new, expected_last]), before, strict=True):
        assert_array_equal(found, expected)


def test_rows_are_copied_once_and_only_where_they_are_shared(wine, monkeypatch):
    X, y, _ = wine
    kept = KernelDiscriminant(RBF()).fit(X, y).combined_kernel_.rows
    assert not np.shares_memory(kept, X)
    copied = []
    from discernel.model import training as rows

    original = rows._copy_if_shared
    monkeypatch.setattr(rows, "_copy_if_shared", lambda *args: copied.append(1) or original(*args))
    KernelDiscriminant(RBF()).fit(X, y)
    assert len(copied) == 1
    fresh = rows._copy_if_shared(converted := np.array(X), X.tolist())
    assert fresh is converted
