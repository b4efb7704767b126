"""One kernel a feature or a group: feature selection by kernel weights."""

import numpy as np
import pandas as pd
import pytest

from discernel import MultipleKernelDiscriminant
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Linear, feature_kernels


@pytest.fixture
def rows():
    """Twelve features, of which 2, 5 and 7 know the class."""
    rng = np.random.default_rng(0)
    y = np.arange(150) % 2
    X = rng.standard_normal((150, 12))
    X[:, [2, 5]] += 1.6 * y[:, None]
    X[:, 7] *= 1.0 + 2.5 * y  # the same mean in both classes, another spread
    return X, np.array(["no", "yes"])[y]


def test_the_kernel_of_a_feature_sees_that_feature_only(rows):
    X, _ = rows
    kernels = feature_kernels(12, RBF(width=1.5))
    for i, (name, kernel) in enumerate(kernels.items()):
        assert name == kernel.name == f"feature {i}"
        np.testing.assert_allclose(kernel(X), np.exp(-((X[:, [i]] - X[:, i]) ** 2) / 1.5**2))


def test_groups_and_dataframes_name_the_kernels(rows):
    X, _ = rows
    frame = pd.DataFrame(X, columns=[f"gene {i}" for i in range(12)])
    assert list(feature_kernels(frame)) == list(frame.columns)
    assert list(feature_kernels(["gene 2", 5])) == ["gene 2", "feature 5"]
    grouped = feature_kernels({"first": slice(0, 4), "rest": range(4, 12)}, Linear())
    np.testing.assert_allclose(grouped["first"](X) + grouped["rest"](X), X @ X.T)


@pytest.mark.parametrize("as_frame", [False, True])
def test_the_features_that_matter_are_selected_with_a_certificate(rows, as_frame):
    X, y = rows
    X = pd.DataFrame(X, columns=[f"gene {i}" for i in range(12)]) if as_frame else X
    kernels = feature_kernels(X if as_frame else 12)
    clf = MultipleKernelDiscriminant(kernels, criterion="rkda", regularization=0.1).fit(X, y)
    assert clf.gap_ <= 1e-6
    chosen = np.flatnonzero(clf.kernel_weights_ > 0.02)
    assert chosen.tolist() == [2, 5, 7]


def test_no_features_are_refused():
    with pytest.raises(InvalidInputError, match="at least one feature"):
        feature_kernels(0)
