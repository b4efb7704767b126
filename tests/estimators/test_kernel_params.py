"""The settings of kernels are parameters of the estimators that hold them."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.gaussian_process import kernels as gp
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discernel import (
    AKFDClassifier,
    KernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
)
from discernel.exceptions import InvalidInputError
from discernel.kernels import (
    RBF,
    Exponential,
    Function,
    GaussianProcess,
    Linear,
    Pairwise,
    Polynomial,
    Precomputed,
)


@pytest.mark.parametrize(
    ("kernel", "changes", "expected"),
    [
        (RBF(width=1.0), {"width": 3.0}, RBF(width=3.0)),
        (RBF(), {"gamma": 0.5}, RBF(gamma=0.5)),
        (RBF(gamma=0.5), {"length_scale": "2*median"}, RBF(length_scale="2*median")),
        (Exponential(width=2.0), {"gamma": 2.0, "width": None}, Exponential(gamma=2.0)),
        (Polynomial(), {"degree": 4, "coef0": 0.0}, Polynomial(4, coef0=0.0)),
        (2.0 * RBF(width=1.0), {"factor": 5.0, "width": 2.0}, 5.0 * RBF(width=2.0)),
        (RBF(width=1.0).named("a"), {"width": 2.0}, RBF(width=2.0).named("a")),
        (RBF().on([0, 1]), {"width": 2.0, "columns": (2,)}, RBF(width=2.0).on([2])),
        (
            (2.0 * RBF(width=1.0).on([0]).named("a")).named("b"),
            {"width": 2.0, "factor": 3.0},
            (3.0 * RBF(width=2.0).on([0]).named("a")).named("b"),
        ),
        (RBF() + Polynomial(), {"right__degree": 3}, RBF() + Polynomial(3)),
        (
            (RBF() * Linear()).on([0]) + 2.0 * RBF(gamma=1.0),
            {"left__left__width": 2.0, "right__factor": 4.0},
            (RBF(width=2.0) * Linear()).on([0]) + 4.0 * RBF(gamma=1.0),
        ),
        (Pairwise("laplacian"), {"gamma": 0.5}, Pairwise("laplacian", (("gamma", 0.5),))),
        (Precomputed(), {"index": 2}, Precomputed(2)),
        ("rbf", {"width": 2.0}, RBF(width=2.0)),
        ("laplacian", {"gamma": 0.5}, Pairwise("laplacian", (("gamma", 0.5),))),
    ],
)
def test_settings_of_a_kernel_are_reached_and_replaced(kernel, changes, expected):
    clf = KernelDiscriminant(kernel)
    before = pickle.dumps(kernel)
    names = {f"kernel__{name}": value for name, value in changes.items()}
    assert set(names) <= set(clf.get_params())
    assert not any("__" in name for name in clf.get_params(deep=False))
    assert clf.set_params(**names) is clf
    assert clf.kernel == expected
    assert pickle.dumps(kernel) == before
    found = clf.get_params()
    for name, value in names.items():
        assert found[name] == value
    assert clone(clf).kernel == expected
    again = KernelDiscriminant(kernel).set_params(**found)
    assert again.kernel == expected


def test_gaussian_process_kernels_are_replaced_not_changed():
    for kernel in (gp.RBF(1.0), GaussianProcess(gp.RBF(1.0)), gp.RBF(1.0) + gp.WhiteKernel(0.1)):
        clf = KernelDiscriminant(kernel)
        name = next(name for name in clf.get_params() if name.endswith("length_scale"))
        clf.set_params(**{name: 3.0})
        assert clf.get_params()[name] == 3.0
        assert KernelDiscriminant(kernel).get_params()[name] == 1.0


@pytest.mark.parametrize(
    ("kernels", "changes", "expected"),
    [
        ([RBF(), Linear()], {"0__width": 2.0}, [RBF(width=2.0), Linear()]),
        ((RBF(), "rbf"), {"1__gamma": 2.0}, (RBF(), RBF(gamma=2.0))),
        ([RBF(), Linear()], {"1": Polynomial()}, [RBF(), Polynomial()]),
        ([RBF(), Linear()], {"1": Polynomial(), "1__degree": 3}, [RBF(), Polynomial(3)]),
        ({"a": RBF(), "b": Linear()}, {"a__width": 2.0}, {"a": RBF(width=2.0), "b": Linear()}),
        (
            {"a": RBF(), "a__b": RBF()},
            {"a__b__width": 2.0, "a__width": 1.0},
            {"a": RBF(width=1.0), "a__b": RBF(width=2.0)},
        ),
        ({0: RBF()}, {"0__width": 2.0}, {0: RBF(width=2.0)}),
        (RBF(), {"width": 2.0}, RBF(width=2.0)),
    ],
)
def test_settings_of_kernels_in_lists_and_dictionaries(kernels, changes, expected):
    for estimator in (MultipleKernelDiscriminant, MultipleKernelRidge, AKFDClassifier):
        before = pickle.dumps(kernels)
        clf = estimator(kernels)
        names = {f"kernels__{name}": value for name, value in changes.items()}
        clf.set_params(**names)
        assert set(names) <= set(clf.get_params())
        assert clf.kernels == expected
        assert type(clf.kernels) is type(expected)
        assert pickle.dumps(kernels) == before


def test_a_new_kernel_and_its_settings_may_be_set_at_once():
    clf = KernelDiscriminant("cosine").set_params(kernel__degree=3, kernel=Polynomial())
    assert clf.kernel == Polynomial(3)


def test_a_failed_change_changes_nothing():
    clf = KernelDiscriminant(RBF(width=2.0), regularization=0.1)
    with pytest.raises(InvalidInputError, match="width of RBF must be a positive"):
        clf.set_params(regularization=1.0, kernel__width=-1.0)
    assert clf.kernel == RBF(width=2.0)
    assert clf.regularization == 0.1


@pytest.mark.parametrize(
    ("estimator", "changes", "message"),
    [
        (KernelDiscriminant(RBF()), {"kernel__size": 2}, r"settings of RBF.*'width'.*\['size'\]"),
        (KernelDiscriminant(RBF()), {"kernel__width": 1.0, "kernel__gamma": 1.0}, "exactly one of"),
        (KernelDiscriminant(RBF() + RBF()), {"kernel__width": 2}, r"'left__width'.*\['width'\]"),
        (KernelDiscriminant(Linear()), {"kernel__origin": (1.0,)}, r"settings of Linear"),
        (
            MultipleKernelDiscriminant([RBF()]),
            {"kernels__1__width": 2},
            r"kernels are \['0'\].*'1__w",
        ),
        (
            MultipleKernelDiscriminant({"a": RBF()}),
            {"kernels__b__width": 2},
            r"kernels are \['a'\]",
        ),
        (
            MultipleKernelDiscriminant(),
            {"kernels__0__width": 2.0},
            r"can only be set for a kernel. Got 'auto'",
        ),
        (
            KernelDiscriminant("nope"),
            {"kernel__width": 2.0},
            r"can only be set for a kernel. Got 'nope'",
        ),
    ],
)
def test_unknown_settings_are_refused(estimator, changes, message):
    with pytest.raises(InvalidInputError, match=message):
        estimator.set_params(**changes)


@pytest.mark.parametrize("kernels", ["auto", "precomputed", "nope", 3, None, [], [3, "nope"]])
def test_what_is_no_kernel_has_no_settings(kernels):
    params = MultipleKernelDiscriminant(kernels).get_params()
    assert not any(name.count("__") > 1 for name in params)


def test_a_search_reaches_the_settings_of_kernels():
    X, y = load_wine(return_X_y=True)
    machine = make_pipeline(
        StandardScaler(), KernelDiscriminant(RBF(width=1e-3).named("mine"), regularization=0.1)
    )
    search = GridSearchCV(machine, {"kerneldiscriminant__kernel__width": [1e-3, 4.0]}, cv=3)
    search.fit(X, y)
    assert search.best_estimator_[-1].kernel == RBF(width=4.0).named("mine")
    several = MultipleKernelDiscriminant(
        {"a": RBF(width=1e-3).on(slice(0, 6)), "b": RBF(width=1e-3)}, criterion="uniform"
    )
    several.set_params(regularization=0.1)
    search = GridSearchCV(several, {"kernels__a__width": [3.0, 1e-3]}, cv=3)
    search.fit(StandardScaler().fit_transform(X), y)
    assert search.best_params_ == {"kernels__a__width": 3.0}
    assert search.best_estimator_.kernels["a"].kernel.width == 3.0


def test_estimators_with_kernels_show_and_compare_as_before():
    clf = KernelDiscriminant(RBF(width=2.0))
    assert repr(clf) == "KernelDiscriminant(kernel=RBF(width=2))"
    assert "kernel" in clf._repr_html_()
    function = KernelDiscriminant(Function(np.dot))
    assert function.get_params()["kernel__function"] is np.dot
