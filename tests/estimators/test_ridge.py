"""Multiple kernel ridge regression."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from discernel import MultipleKernelRidge
from discernel.bank import LowRank
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Linear
from tests import reference


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), y


def test_prediction_is_that_of_kernel_ridge_with_an_intercept(diabetes):
    X, y = diabetes[0][:80], diabetes[1][:80]
    reg = MultipleKernelRidge([RBF(width=5.0)], regularization=1e-2).fit(X, y)
    K = reference.trace_normalized(RBF(width=5.0)(X)[None])[0]
    coef, intercept = reference.least_squares(K, np.full(80, 1e-2), y[:, None])
    np.testing.assert_allclose(reg.predict(X), (K @ coef + intercept)[:, 0], rtol=1e-8)


def test_leave_one_out_is_that_of_scikit_learn(diabetes):
    """With the normalisation of the kernel held fixed, left-out rows are predicted by refits."""
    X, y = diabetes[0][:60], diabetes[1][:60]
    reg = MultipleKernelRidge([Linear()], regularization=0.05).fit(X, y)
    K = reference.trace_normalized((X @ X.T)[None])[0]
    expected = reference.leave_one_out(K, np.full(60, 0.05), y[:, None])[:, 0]
    np.testing.assert_allclose(reg.leave_one_out_, expected, rtol=1e-8)
    # scikit-learn centres nothing: an unpenalised intercept is a constant kernel of huge weight.
    constant = KernelRidge(alpha=0.05, kernel="precomputed")
    sklearn = cross_val_predict(constant, K + 1e7, y, cv=LeaveOneOut())
    np.testing.assert_allclose(reg.leave_one_out_, sklearn, rtol=1e-3)


def test_targets_share_one_set_of_weights_and_count_the_same(diabetes):
    X, y = diabetes[0][:120], diabetes[1][:120]
    both = np.column_stack([y, 1e6 * X[:, 2] ** 2])
    reg = MultipleKernelRidge(criterion="rkda", regularization=1e-2).fit(X, both)
    rescaled = MultipleKernelRidge(criterion="rkda", regularization=1e-2).fit(X, both * [1, 1e-6])
    assert reg.predict(X).shape == (120, 2)
    assert reg.gap_ <= 1e-6
    np.testing.assert_allclose(reg.kernel_weights_, rescaled.kernel_weights_, atol=1e-8)
    np.testing.assert_allclose(reg.predict(X) * [1, 1e-6], rescaled.predict(X), rtol=1e-6)


def test_informative_source_gets_the_weight():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 6))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(150)
    kernels = {"signal": RBF().on([0]), "noise": RBF().on([1, 2, 3, 4, 5])}
    reg = MultipleKernelRidge(kernels, criterion="rkda").fit(X, y)
    assert reg.kernel_weights_[0] > 0.7
    new = rng.standard_normal((150, 6))
    assert reg.score(new, np.sin(2 * new[:, 0])) > 0.9


def test_matches_a_grid_searched_kernel_ridge_on_diabetes(diabetes):
    X, y = diabetes
    ours, grid = [], []
    for seed in range(5):
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
        ours.append(MultipleKernelRidge().fit(X_train, y_train).score(X_test, y_test))
        search = GridSearchCV(
            make_pipeline(StandardScaler(), KernelRidge(kernel="rbf")),
            {
                "kernelridge__alpha": np.logspace(-4, 1, 6),
                "kernelridge__gamma": np.logspace(-4, 0, 9),
            },
        )
        centered = y_train - y_train.mean()
        search.fit(X_train, centered)
        grid.append(search.score(X_test, y_test - y_train.mean()))
    assert np.mean(ours) >= np.mean(grid) - 0.01


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (np.ones(20), {}, "must vary over the samples. Got a constant in column 0"),
        (1e200 * np.arange(20.0), {}, "between 1e-100 and 1e\\+100, .* Got 1.9e\\+201 in column 0"),
        (1e-200 * np.arange(20.0), {}, "Got 1.9e-199 in column 0 of y. Use other units"),
        (1.7e308 * np.linspace(-1, 1, 20), {}, "Got inf in column 0 of y"),
        (np.arange(20.0), {"criterion": "fdr"}, "criterion='fdr' is for two classes"),
        (np.arange(20.0), {"criterion": "akfd"}, "criterion='akfd' is for classes. Got numbers"),
    ],
)
def test_refuses(y, options, message):
    X = np.random.default_rng(0).standard_normal((20, 3))
    with pytest.raises(InvalidInputError, match=message):
        MultipleKernelRidge(**options).fit(X, y)


@pytest.mark.parametrize("unit", [1e-47, 1e-9, 1e47])
def test_the_unit_of_the_target_changes_only_the_unit_of_predictions(diabetes, unit):
    X, y = diabetes[0][:60], diabetes[1][:60]
    reg, other = MultipleKernelRidge().fit(X, y), MultipleKernelRidge().fit(X, unit * y)
    np.testing.assert_allclose(other.predict(X) / unit, reg.predict(X), rtol=1e-6)
    np.testing.assert_allclose(other.predict_interval(X) / unit, reg.predict_interval(X), rtol=1e-6)
    assert other.expected_.r2 == pytest.approx(reg.expected_.r2)
    np.testing.assert_allclose(other.feature_importances_, reg.feature_importances_, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"regularization": 1e-7, "kernels": [RBF(), Linear()], "criterion": "uniform"},
        {"bank": "iterative", "kernels": [RBF(), Linear()], "regularization": 1e-3},
        {"bank": LowRank(40), "kernels": [RBF(), Linear()]},
        {"weights_per_target": True, "kernels": [RBF(), Linear()]},
    ],
    ids=["default", "given", "iterative", "lowrank", "by target"],
)
def test_numbers_far_from_0_lose_no_more_digits_than_they_have(diabetes, options, weighted):
    X, y = diabetes[0][:120], np.round(diabetes[1][:120])
    weights = 1.0 + np.arange(120) % 3 if weighted else None
    near = MultipleKernelRidge(**options).fit(X, y, weights)
    far = MultipleKernelRidge(**options).fit(X, y + 1e11, weights)
    for name in ("predict", "predict_interval"):
        found = getattr(far, name)(X) - 1e11
        np.testing.assert_allclose(found, getattr(near, name)(X), atol=0.1, err_msg=name)
    np.testing.assert_allclose(far.leave_one_out_ - 1e11, near.leave_one_out_, atol=0.1)
