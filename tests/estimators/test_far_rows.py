"""What one far row, or the order of the rows, does to a whole fit."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import scale

from discernel import KernelDiscriminant, MultipleKernelDiscriminant, MultipleKernelRidge
from discernel.kernels import RBF


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


@pytest.mark.parametrize("position", [0, 40, 88])
@pytest.mark.parametrize(
    "classifier",
    [
        KernelDiscriminant(RBF(), regularization=1e-2),
        KernelDiscriminant(RBF(), regularization=1e-2).set_params(kernel=RBF(width=5.0)),
        MultipleKernelDiscriminant([RBF(), RBF("2*median")], regularization=1e-2, bank="tiled"),
    ],
    ids=["median", "number", "tiled"],
)
def test_one_far_training_row_leaves_the_accuracy(wine, classifier, position):
    X, y = wine
    training = X[::2].copy()
    training[position] = 1e8
    assert classifier.fit(training, y[::2]).score(X[1::2], y[1::2]) > 0.93


def test_far_new_rows_leave_those_beside_them_as_they_are(wine):
    X, y = wine
    clf = KernelDiscriminant(RBF(), regularization=1e-2).fit(X[::2], y[::2])
    new = X[1::2].copy()
    expected = clf.predict_proba(new)
    new[:2] = 1e9
    np.testing.assert_allclose(clf.predict_proba(new)[2:], expected[2:], rtol=1e-10)


def halves(name):
    X, y = {"iris": load_iris, "wine": load_wine, "digits": load_digits}[name](return_X_y=True)
    X, y = X[:500], y[:500]
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
@pytest.mark.parametrize(
    "classifier",
    [
        MultipleKernelDiscriminant(),
        MultipleKernelDiscriminant(criterion="rkda", regularization=1e-3),
        MultipleKernelDiscriminant(criterion="rkda", regularization=1e-3, bank="tiled"),
        KernelDiscriminant("linear"),
    ],
    ids=["default", "rkda", "tiled", "linear"],
)
def test_the_origin_of_the_columns_does_not_matter(name, classifier, monkeypatch):
    """Not even 1e6 from the data, where inner products share their first ten digits."""
    # As rough as they are, logistic regressions of the folds change the sixth digit.
    monkeypatch.setattr("discernel.default.logits._FOLD_TOL", 1e-9)
    monkeypatch.setattr("discernel.default.logits._TOL", 1e-9)
    X, y, new, _ = halves(name)
    expected = clone(classifier).fit(X, y).predict_proba(new)
    for offset in (1e3, 1e6):
        found = clone(classifier).fit(X + offset, y).predict_proba(new + offset)
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
@pytest.mark.parametrize("criterion", ["auto", "rkda"])
def test_one_far_row_decides_as_little_as_if_it_were_left_out(name, criterion):
    X, y, new, _ = halves(name)
    X, new = (X, new) if name == "digits" else (scale(X), scale(new))
    clf = MultipleKernelDiscriminant(criterion=criterion)
    expected = clf.fit(np.delete(X, 11, axis=0), np.delete(y, 11)).predict(new)
    far = X.copy()
    far[11] = 1e8
    # A row or two on the boundary: what is like nothing else still changes traces and λ a little.
    # Of digits, any row less can change the choice of quantiles, and with it 6 % of predictions.
    assert np.mean(clf.fit(far, y).predict(new) != expected) <= (0.06 if name == "digits" else 0.03)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [1e20, -1e38, 1e149])
@pytest.mark.parametrize("estimator", [MultipleKernelDiscriminant(), MultipleKernelRidge()])
def test_one_cell_that_means_missing_does_not_end_the_default(wine, estimator, value):
    """Such as 1e20, the fill value of climate data, which single precision cannot square."""
    X, y = wine[0][::2].copy(), wine[1][::2]
    X[11, 4] = value
    estimator.fit(X, y).predict(X)
    assert estimator.score(wine[0][1::2], wine[1][1::2]) > 0.85
    sources = {"first": list(range(6)), "second": list(range(6, 13))}
    clone(estimator).set_params(kernels=sources).fit(X, y)
    assert np.isfinite(estimator.feature_importances_).all()
