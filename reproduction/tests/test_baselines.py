"""What holds of every baseline: scikit-learn's checks, own rows, tables, settings of kernels."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from numpydoc.validate import validate
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

from discernel import LearnedKernelTransformer
from discernel.kernels import RBF, Function, Laplace, Linear
from discernel_reproduction import baselines
from discernel_reproduction.baselines import (
    KDDA,
    ConformalKernelTransformer,
    KernelNeighborsClassifier,
    LearnedKernelSVC,
    SingleKernelClassifier,
)
from tests.estimators.test_mixed import KERNELS, mixed
from tests.estimators.test_ownership import KINDS, make, outputs, overwritten, wine  # noqa: F401
from tests.estimators.test_tables import QUICK, table
from tests.test_docs import CHECKED

ALL = [getattr(baselines, name) for name in baselines.__all__]
TWO = [RBF(), Linear()]
ESTIMATORS = [
    ConformalKernelTransformer(Laplace(), centers=0.5, n_steps=20),
    KDDA(Laplace(), n_components=1),
    KernelNeighborsClassifier(3, kernel=Linear()),
    LearnedKernelSVC(TWO, criterion="rkda", loss="l2"),
    LearnedKernelSVC(TWO, criterion="fdr"),
    SingleKernelClassifier(TWO, cv=2, regularizations=[0.1, 1.0]),
]


def checks():
    """Yield every estimator with every check, but those of sample weights against copies."""
    for number, given in enumerate(ESTIMATORS):
        for estimator, check in estimator_checks_generator(given, mark=None):
            name = getattr(check, "func", check).__name__
            if not name.startswith("check_sample_weight_equivalence"):
                label = f"{type(given).__name__} {number} {name}"
                yield pytest.param(estimator, check, id=label)


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", baselines.__all__)
def test_docstrings_name_the_real_parameters(name):
    found = validate(f"{baselines.__name__}.{name}")["errors"]
    assert [(code, text) for code, text in found if code in CHECKED] == []


@pytest.mark.parametrize(("criterion", "many"), [("margin", False), ("auto", True)])
def test_the_tag_says_whether_there_may_be_many_classes(criterion, many):
    tags = LearnedKernelSVC(criterion=criterion).__sklearn_tags__()
    assert tags.classifier_tags.multi_class is many


# ---- rows --------------------------------------------------------------------------------------


def quick(estimator, kernels):
    options = {"regularizations": [0.1]} if estimator is SingleKernelClassifier else {}
    return make(estimator, kernels, **options | {"regularization": 1.0})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", ALL)
def test_rows_and_labels_may_be_overwritten_after_fit(wine, estimator, kind):  # noqa: F811
    X, y, new = wine
    rows, labels, new_rows = KINDS[kind](X), y.copy(), KINDS[kind](new)
    fitted = quick(estimator, [RBF(), Linear().on([0, 1, 2])]).fit(rows, labels)
    before = outputs(fitted, new_rows)
    overwritten(rows, labels)
    for found, expected in zip(outputs(fitted, new_rows), before, strict=True):
        assert_array_equal(found, expected)


@pytest.mark.parametrize("estimator", ALL)
def test_matrices_may_be_overwritten_after_fit(wine, estimator):  # noqa: F811
    X, y, new = wine
    matrix, cross, labels = RBF(width=4.0)(X), RBF(width=4.0)(new, X), y.copy()
    fitted = quick(estimator, ["precomputed"]).fit(matrix, labels)
    before = outputs(fitted, cross)
    overwritten(matrix, labels)
    for found, expected in zip(outputs(fitted, cross), before, strict=True):
        assert_array_equal(found, expected)


def test_rows_are_copied(wine):  # noqa: F811
    X, y, _ = wine
    single = SingleKernelClassifier([RBF()], regularizations=[0.1], cv=2).fit(X, y)
    assert not np.shares_memory(single.estimator_.combined_kernel_.rows, X)
    conformal = ConformalKernelTransformer(random_state=0).fit(X, y)
    assert not np.shares_memory(conformal.rows_, X)


@pytest.mark.parametrize(
    "estimator",
    [
        LearnedKernelSVC(**QUICK),
        SingleKernelClassifier(regularizations=[0.1], cv=3, random_state=0),
        make_pipeline(LearnedKernelTransformer(**QUICK), LearnedKernelSVC("precomputed", **QUICK)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_baselines_take_tables(estimator):
    X, y = table()
    new, y_new = table(seed=1)
    assert clone(estimator).fit(X, y).score(new, y_new) > 0.8


@pytest.mark.parametrize(
    "estimator",
    [
        LearnedKernelSVC(KERNELS, criterion="uniform", regularization=1.0),
        SingleKernelClassifier(KERNELS, regularizations=[0.1], cv=3, random_state=0),
        KernelNeighborsClassifier(3, kernel=KERNELS["s"]),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_baselines_take_mixed_tables(estimator):
    data, y = mixed()
    new, y_new = mixed(seed=1)
    assert clone(estimator).fit(pd.DataFrame(data), y).score(pd.DataFrame(new), y_new) > 0.7


# ---- settings of kernels -----------------------------------------------------------------------


def test_kernels_are_shown_and_their_settings_set():
    conformal = ConformalKernelTransformer(factor_kernel=RBF()).set_params(
        factor_kernel__width=2.0, kernel__width=3.0
    )
    assert (conformal.kernel, conformal.factor_kernel) == (RBF(width=3.0), RBF(width=2.0))
    assert repr(KDDA(RBF(width=2.0))) == "KDDA(kernel=RBF(width=2))"
    neighbors = KernelNeighborsClassifier(kernel=Function(np.dot))
    assert neighbors.get_params()["kernel__function"] is np.dot
