"""What one far row, or the order of the rows, does to a whole fit."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from discernel import KernelDiscriminant, MultipleKernelDiscriminant
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
