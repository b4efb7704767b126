"""Tables of which no column varies: the shares of the classes are predicted."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from discernel import (
    KernelDiscriminant,
    LearnedKernelTransformer,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
    open_rows,
)
from discernel.exceptions import InvalidInputError, LeftOutColumnWarning
from discernel.kernels import RBF, Linear

QUICK = {"criterion": "uniform", "regularization": 0.1}
CONSTANT = {
    "array": np.ones((30, 2)),
    "table": pd.DataFrame({"a": ["x"] * 30, "b": 1.0}),
    "missing": pd.DataFrame({"a": ["x"] * 30, "b": np.nan}),
}


@pytest.mark.filterwarnings("ignore:1 column was left out")
@pytest.mark.parametrize("kind", CONSTANT)
@pytest.mark.parametrize("settings", [{}, QUICK, {"criterion": "rkda"}, {"statistics": "training"}])
def test_where_no_column_varies_the_prior_is_predicted(kind, settings):
    X, y = CONSTANT[kind], np.repeat([0, 1, 2], [15, 10, 5])
    with pytest.warns(LeftOutColumnWarning, match="No column varies: all training rows"):
        clf = MultipleKernelDiscriminant(**settings).fit(X, y)
    assert_allclose(clf.predict_proba(X[:2]), [[1 / 2, 1 / 3, 1 / 6]] * 2, atol=1e-9)
    assert clf.predict(X[:2]).tolist() == [0, 0]
    assert_array_equal(clf.feature_importances_, [0.0, 0.0])
    assert_array_equal(clf.feature_importances_std_, [0.0, 0.0])


def test_new_rows_that_differ_from_constant_ones_have_the_prior_too():
    y = np.repeat([0, 1], [20, 10])
    with pytest.warns(LeftOutColumnWarning, match="No column varies"):
        clf = MultipleKernelDiscriminant().fit(CONSTANT["table"], y)
    new = pd.DataFrame({"a": ["new"], "b": [7.0]})
    assert_allclose(clf.predict_proba(new), [[2 / 3, 1 / 3]], atol=1e-9)
    with pytest.warns(LeftOutColumnWarning, match="No column varies"):
        weighted = MultipleKernelDiscriminant().fit(CONSTANT["array"], y, np.where(y, 4, 1))
    assert_allclose(weighted.predict_proba([[1.0, 5.0]]), [[1 / 3, 2 / 3]], atol=1e-9)


def test_other_estimators_take_constant_rows():
    X, y = CONSTANT["array"], np.repeat([0, 1], [20, 10])
    with pytest.warns(LeftOutColumnWarning, match="No column varies"):
        assert_allclose(KernelDiscriminant().fit(X, y).predict_proba(X[:1]), [[2 / 3, 1 / 3]])
    with pytest.warns(LeftOutColumnWarning, match="No column varies"):
        assert_allclose(MultipleKernelRidge().fit(X, 3.0 * y).predict(X[:1]), [1.0])
    with pytest.warns(LeftOutColumnWarning, match="No column varies"):
        many = MultiLabelKernelDiscriminant().fit(X, np.column_stack([y, 1 - y]))
    assert many.predict(X[:1]).tolist() == [[0, 1]]
    with pytest.warns(LeftOutColumnWarning, match="No column varies"):
        mapped = LearnedKernelTransformer().fit(X, y).transform(X)
    assert_allclose(mapped, np.zeros((30, 30)), atol=1e-12)
    with pytest.raises(InvalidInputError, match="30 equal rows"):
        MultipleKernelDiscriminant().fit(open_rows(X, y))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("criterion", ["auto", "rkda", "loo", "alignment", "uniform", "akfd"])
@pytest.mark.parametrize("together", [False, True])
def test_no_column_may_vary_without_a_fold(criterion, together):
    """Only one row differs from the others, or only the rows of one group."""
    X, y, groups = np.zeros((40, 2)), np.arange(40) % 2, None
    X[3] = 1.0, 2.0
    if together:
        X[[17, 30]] = X[3]
        groups = np.where(X[:, 0] > 0, -1, np.arange(40))
    for kernels in ("auto", [Linear().on([0]), RBF(gamma=1.0).on([1])]):
        clf = MultipleKernelDiscriminant(kernels, criterion=criterion).fit(X, y, groups=groups)
        assert clf.expected_.accuracy <= 0.5
        if criterion != "akfd":
            reg = MultipleKernelRidge(kernels, criterion=criterion)
            assert reg.fit(X, 1.0 * y, groups=groups).expected_.r2 < 0.0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("criterion", ["auto", "rkda"])
@pytest.mark.parametrize("kernels", ["auto", [Linear(), RBF()]])
def test_two_rows_are_enough_for_numbers_and_labels(kernels, criterion):
    X = np.array([[0.0, 1.0], [2.0, 1.5]])
    reg = MultipleKernelRidge(kernels, criterion=criterion).fit(X, [1.0, 2.0])
    assert_allclose(reg.predict(X).mean(), 1.5)
    many = MultiLabelKernelDiscriminant(kernels, criterion=criterion).fit(X, [[0, 1], [1, 0]])
    assert many.predict(X).tolist() == [[0, 1], [1, 0]]


def test_no_column_may_vary_on_the_rows_that_choose_the_regularization():
    X, y = np.zeros((2600, 2)), np.arange(2600) % 2
    X[3] = 1.0, 2.0
    assert MultipleKernelRidge().fit(X, 1.0 * y).expected_.r2 < 0.01
