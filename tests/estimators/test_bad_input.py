"""Every bad input: what must hold, what was received, what to do, before any heavy work."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from discernel import (
    KernelDiscriminant,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
    learn_kernel,
    regularization_path,
)
from discernel.criteria import RKDA, LeaveOneOut
from discernel.exceptions import (
    DiscernelError,
    DroppedKernelWarning,
    InvalidGramError,
    InvalidInputError,
    NumericalError,
)
from discernel.kernels import RBF, Linear, Precomputed
from discernel.solvers import SDP, SILP


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"criterion": "svm"},
            r"criterion must be one of 'auto', 'rkda', 'fdr', .*'loo', 'uniform'.*'svm'",
        ),
        (
            {"solver": "admm"},
            r"solver of criterion='rkda' must be one of .*'newton', 'galerkin', .*'admm'",
        ),
        ({"criterion": "fdr", "solver": "qcqp"}, r"solver of criterion='fdr'.*'newton', 'sdp'"),
        ({"criterion": "fdr", "solver": SILP()}, r"solver of criterion='fdr'.*Got 'silp'"),
        ({"criterion": "fdr"}, r"defined for two classes. Got 3.*criterion='rkda'"),
        ({"criterion": "fdr", "regularization": "joint"}, r"'auto', 'loo'. Got 'joint'"),
        ({"regularization": -1}, r"regularization must be a finite number.*Got -1"),
        ({"regularization": np.nan}, r"regularization must be a finite number.*Got nan"),
        ({"regularization": "much"}, r"criterion='auto'.*'auto', 'loo'. Got 'much'"),
        (
            {"criterion": "rkda", "regularization": "much"},
            r"'auto', 'loo', 'joint'. Got 'much'",
        ),
        ({"criterion": 3}, r"criterion must be one of .*Got 3"),
        ({"criterion": LeaveOneOut(), "solver": "newton"}, r"solver of criterion='loo'.*'lbfgs'"),
        ({"tol": 0}, r"tol must be a positive, finite number. Got 0"),
        ({"max_iter": 0}, r"max_iter must be an integer of at least 1. Got 0"),
        ({"callback": 3}, r"callback must be a function of a Progress. Got 3"),
        ({"random_state": "a"}, r"random_state must be an integer .*RandomState or None. Got 'a'"),
        ({"random_state": -1}, r"random_state must be an integer of at least 0.* Got -1"),
        (
            {"solver": SDP(backend="NOPE"), "regularization": 0.1},
            r"conic solver must be one of.*NOPE",
        ),
    ],
)
def test_learn_kernel_refuses_words_it_does_not_know(three_classes, options, message):
    grams, y = three_classes
    with pytest.raises(InvalidInputError, match=message):
        learn_kernel(grams, y, **options)


def test_learn_kernel_refuses_labels_that_do_not_fit(three_classes):
    grams, y = three_classes
    with pytest.raises(InvalidInputError, match=r"one label per row.*44 labels.*\(45, 45\)"):
        learn_kernel(grams, y[:-1])
    with pytest.raises(InvalidInputError, match="at least two classes"):
        learn_kernel(grams, np.zeros(45))


def test_path_refuses_bad_lambdas(three_classes):
    grams, y = three_classes
    for bad in ([], [0.1, 0.0], [np.inf]):
        with pytest.raises(InvalidInputError, match="positive, finite numbers, at least one"):
            regularization_path(grams, y, bad)
    for criterion in ("auto", "loo"):
        with pytest.raises(InvalidInputError, match="learns λ itself, so there is no path"):
            regularization_path(grams, y, [0.1], criterion=criterion)
    with pytest.raises(InvalidInputError, match="one label per row"):
        regularization_path(grams, y[:-1])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_with_nan_or_inf(blobs, bad):
    X, y = blobs
    X = X.copy()
    X[3, 2] = bad
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        MultipleKernelDiscriminant([RBF(), "linear"]).fit(X, y)
    clf = KernelDiscriminant(regularization=0.1).fit(blobs[0], y)
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        clf.predict(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernels": []}, r"non-empty list of kernels. Got \[\].*'auto'"),
        ({"kernels": [3]}, r"A kernel must be an object of discernel.kernels.*Got 3 of type int"),
        ({"kernels": ["rbff"]}, r"kernel name must be one of .*'rbff'"),
        ({"kernels": [RBF().on("age")]}, r"only in a dataframe. Got the name 'age'"),
        ({"kernels": [RBF().on([0, 99])]}, r"must lie in the 5 columns"),
        ({"kernels": [Precomputed(0), Linear()]}, r"must not be mixed"),
        ({"kernels": [lambda A, B: np.zeros((2, 2))]}, r"must return a matrix.*Got shape \(2, 2\)"),
        ({"kernels": [lambda A, B: -(A @ B.T)]}, r"positive semidefinite. <lambda> has the eigen"),
        (
            {"kernels": [lambda A, B: A @ B.T * np.nan]},
            r"NaN or infinity. <lambda> has nan at row 0",
        ),
        ({"statistics": "test"}, r"statistics must be one of 'loo', 'training'. Got 'test'"),
        ({"n_components": 3}, r"from 1 to n_classes - 1 = 2, or None. Got 3"),
        ({"priors": [0.5, 0.5]}, r"3 positive, finite numbers.*Got \[0.5, 0.5\]"),
        ({"priors": [0.5, 0.5, 0.5]}, r"must sum to 1"),
        ({"priors": "flat"}, r"None, 'uniform', a list.*Got 'flat'"),
        ({"class_costs": {7: 2.0}}, r"must name classes of \[0, 1, 2\]. Got \[7\]"),
        ({"class_costs": [1, 0, 1]}, r"3 positive, finite numbers"),
        ({"threshold": 0.3}, r"a threshold is defined for two classes. Got 3"),
    ],
)
def test_estimator_refuses(blobs, options, message):
    X, y = blobs
    clf = MultipleKernelDiscriminant(**{"regularization": 0.1, **options})
    with pytest.raises(InvalidInputError, match=message):
        clf.fit(X, y)
    with pytest.raises(NotFittedError):  # nothing half-fitted is left behind
        clf.predict(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 1.5}, "probability between 0 and 1, 'roc' or None. Got 1.5"),
        ({"threshold": 0.3, "class_costs": [1, 2]}, "not both"),
    ],
)
def test_threshold_refuses(blobs, options, message):
    X, y = blobs
    with pytest.raises(InvalidInputError, match=message):
        KernelDiscriminant(regularization=0.1, **options).fit(X[y > 0], y[y > 0])


def test_precomputed_of_wrong_layout_says_how_to_turn_it(three_classes):
    grams, y = three_classes
    clf = MultipleKernelDiscriminant("precomputed", regularization=0.1)
    with pytest.raises(InvalidInputError, match=r"n_kernels\)\. Got.*np.moveaxis\(stack, 0, -1\)"):
        clf.fit(grams[:, :, :40], np.arange(6) % 2)
    with pytest.raises(InvalidGramError, match="must be symmetric"):
        clf.fit(np.moveaxis(grams, 0, -1) + np.arange(45)[:, None, None], y)


@pytest.mark.parametrize("layout", [np.asarray, list, tuple, np.ndarray.tolist])
def test_matrices_with_the_kernels_first_say_how_to_stack_them(three_classes, layout):
    grams, y = three_classes
    assert len(grams) != len(y)
    clf = MultipleKernelDiscriminant("precomputed", regularization=0.1)
    message = r"must have the shape .*n_kernels.* Got .*np.stack\(matrices, axis=-1\).*np.moveaxis"
    with pytest.raises(InvalidInputError, match=message):
        clf.fit(layout(grams), y)
    with pytest.raises(InvalidInputError, match=message):
        KernelDiscriminant("precomputed", regularization=0.1).fit(layout(grams), y)
    stack = np.stack(list(grams), axis=-1)
    clf.fit(stack, y)
    assert clf.fit(stack.tolist(), y).kernel_weights_.shape == (len(grams),)
    with pytest.raises(InvalidInputError, match=message):
        clf.predict(layout(grams))
    with pytest.raises(InvalidInputError, match=r"n_kernels = .*Got \(45, 45, 2\)"):
        clf.predict(stack[:, :, :2])
    with pytest.raises(InvalidInputError, match=r"matrices of the same rows.*np.stack"):
        clf.fit([grams[0], grams[1][:9, :9]], y)


@pytest.mark.parametrize("value", [np.array([1.0, 2.0]), np.array(["loo", "auto"]), [0.1, 0.2]])
def test_regularization_of_several_values_is_refused(three_classes, blobs, value):
    with pytest.raises(InvalidInputError, match=r"regularization must be a finite number.*Got"):
        learn_kernel(*three_classes, regularization=value)
    for clf in (KernelDiscriminant, MultipleKernelDiscriminant):
        with pytest.raises(InvalidInputError, match=r"regularization must be a finite number.*Got"):
            clf(regularization=value).fit(*blobs)
    shrunken = MultipleKernelDiscriminant(criterion=RKDA(0.1), regularization=value)
    with pytest.raises(InvalidInputError, match=r"regularization must be a finite number.*Got"):
        shrunken.fit(*blobs)


def test_constant_column_kernel_is_left_out_by_name(blobs):
    X, y = blobs
    X = np.hstack([X, np.ones((len(y), 1))])
    with pytest.warns(DroppedKernelWarning, match="Linear.. on 5. Such a kernel"):
        clf = MultipleKernelDiscriminant([Linear().on(5), RBF()], regularization=0.1).fit(X, y)
    assert clf.kernel_weights_.tolist() == [0.0, 1.0]
    assert np.isfinite(clf.predict_proba(X)).all()


def test_numerical_trouble_is_never_a_bare_linalg_error(monkeypatch):
    """An indefinite matrix that hides from the early check is named when Cholesky breaks down."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    bad = (basis * np.append(np.ones(29), -0.5)) @ basis.T
    y = np.arange(30) % 2
    monkeypatch.setattr("discernel.bank.grams.CHECKED_ROWS", 3)
    monkeypatch.setattr("discernel.bank.grams._INDEFINITE", 0.9)
    with pytest.raises(NumericalError, match=r"broke down.*check the kernels or raise") as error:
        learn_kernel(bad[None], y, regularization=1e-6)
    assert isinstance(error.value, DiscernelError)
    monkeypatch.setattr("discernel.bank.exact.check_no_indefinite", _strict_check)
    with pytest.raises(InvalidGramError, match=r"eigenvalue -0\.5"):
        learn_kernel(bad[None], y, regularization=1e-6)


def _strict_check(stack, names):
    from discernel.bank import grams

    grams._INDEFINITE = 1e-6
    for gram, name in zip(stack, names, strict=True):
        grams._check_definite(gram, name, len(gram))


@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("label", ["p", 1.5])
def test_a_missing_label_is_named_with_its_row(missing, label):
    X = np.random.default_rng(0).normal(size=(8, 2))
    y = np.array([label, "q" if label == "p" else 2.5] * 4, dtype=object)
    y[5] = missing
    with pytest.raises(InvalidInputError, match=r"y contains NaN.*Got .* in row 5\. Leave.*out"):
        MultipleKernelDiscriminant().fit(X, y)
    weights = np.where(np.arange(8) < 3, 0.0, 1.0)  # rows of weight 0 are left out, yet counted
    with pytest.raises(InvalidInputError, match=r"y contains NaN.*in row 5"):
        MultipleKernelDiscriminant().fit(X, y, sample_weight=weights)
    if label != "p":
        with pytest.raises(InvalidInputError, match=r"y contains NaN.*in row 5"):
            MultipleKernelRidge().fit(X, y)


def test_a_regression_on_names_or_dates_says_what_to_use():
    X = np.random.default_rng(0).normal(size=(8, 2))
    with pytest.raises(InvalidInputError, match=r"y must hold numbers.*'p'.*MultipleKernelDiscr"):
        MultipleKernelRidge().fit(X, ["p", "q"] * 4)
    days = np.datetime64("2024-01-01") + np.arange(8)
    with pytest.raises(InvalidInputError, match=r"y must hold numbers.*2024-01-01"):
        MultipleKernelRidge().fit(X, days)


TABLE = pd.DataFrame({"age": np.arange(12.0), "dose": np.arange(12.0) ** 2})
LABELS = ["p", "q"] * 6
#: What is fitted, and what the error must say: what holds, what was received, what to do.
MISTAKES = {
    "images": (
        lambda: MultipleKernelDiscriminant().fit(np.ones((12, 3, 3)), LABELS),
        r"dim 3.*dim <= 2.*X.reshape\(len\(X\), -1\)",
    ),
    "a file": (
        lambda: MultipleKernelDiscriminant().fit("patients.csv", LABELS),
        r"X must be one table. Got 'patients.csv'. Read the file, .*open_rows\('patients.csv'",
    ),
    "the name of the target": (
        lambda: MultipleKernelDiscriminant().fit(TABLE, "dose"),
        r"y must have one label or number per row. Got 'dose'.*X\['dose'\]",
    ),
    "fewer labels": (
        lambda: MultipleKernelDiscriminant().fit(TABLE, LABELS[:-2]),
        r"samples: \[12, 10\]. X and y must have the same number of rows: remove the same rows",
    ),
    "0/1 columns": (
        lambda: MultipleKernelDiscriminant().fit(TABLE, np.eye(12)[:, :2]),
        r"y should be a 1d array.*shape \(12, 2\).*MultiLabelKernelDiscriminant",
    ),
    "numbers": (
        lambda: MultipleKernelDiscriminant().fit(TABLE, np.arange(12) ** 0.5),
        "Unknown label type: continuous.*MultipleKernelRidge",
    ),
    "two columns of one name": (
        lambda: MultipleKernelDiscriminant().fit(TABLE.set_axis(["a", "a"], axis=1), LABELS),
        "Column names must be unique. Got 'a' 2 times. Rename",
    ),
    "a misspelt column": (
        lambda: MultipleKernelDiscriminant([RBF().on(["aged"])]).fit(TABLE, LABELS),
        r"column 'aged' is not among the columns \['age', 'dose'\]. Did you mean 'age'",
    ),
    "lists of kernels": (
        lambda: MultipleKernelDiscriminant({"all": [RBF(), Linear()]}).fit(TABLE, LABELS),
        r"one kernel or its columns.*Got a list with RBF.*source_kernels\(sources, kernels",
    ),
    "another order": (
        lambda: (
            MultipleKernelDiscriminant([Linear()], criterion="uniform")
            .fit(TABLE, LABELS)
            .predict(TABLE[["dose", "age"]])
        ),
        r"must be in the same order.*predict\(X\[model.feature_names_in_\]\)",
    ),
    "rows as matrices": (
        lambda: learn_kernel(TABLE.to_numpy(), LABELS),
        r"matrices must be square.*Got.*\(12, 2\).*MultipleKernelDiscriminant",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_plausible_mistake_is_answered_with_what_to_do(mistake):
    make, message = MISTAKES[mistake]
    with pytest.raises(InvalidInputError, match=f"(?s){message}"):
        make()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, "b", 2.5], r"Got objects of type float, int, str. .*astype\(str"),
        (["b", 1, 2.5], r"Got objects of type float, int, str. .*astype\(str"),
        ([b"a", b"b", b"c"], r"labels must be text, .* Got objects of type bytes. Convert them"),
        ([2**70, 2**80, 2**90], r"or an array of numbers.* Got objects of type int. Convert"),
    ],
)
def test_labels_of_several_types_are_refused(blobs, labels, message):
    X, y = blobs
    with pytest.raises(InvalidInputError, match=message):
        KernelDiscriminant().fit(X, np.array(labels, dtype=object)[y])
    with pytest.raises(InvalidInputError, match=message):
        MultiLabelKernelDiscriminant().fit(X, np.array(labels, dtype=object)[y])


def test_no_rows_are_refused(blobs):
    X, y = blobs
    for estimator in (MultipleKernelDiscriminant(), MultipleKernelRidge()):
        with pytest.raises(ValueError, match="0 sample"):
            estimator.fit(X[:0], y[:0])
        with pytest.raises(ValueError, match="0 sample"):
            estimator.fit(X[:0], y[:0].astype(object))
