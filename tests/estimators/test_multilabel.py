"""Several labels a sample, one kernel for all."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_wine, make_multilabel_classification
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import hamming_loss
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from discernel import KernelDiscriminant, MultiLabelKernelDiscriminant
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Linear, rbf_ladder
from discernel.targets import LabelsTarget
from tests import reference

#: As in scikit-learn's RidgeCV.
LEFT_OUT = (
    "leave-one-out leaves out a row with all of its weight, but only one of several repeated rows"
)


@parametrize_with_checks(
    [MultiLabelKernelDiscriminant()],  # others are in test_estimator_checks.py
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": LEFT_OUT,
        "check_sample_weight_equivalence_on_sparse_data": LEFT_OUT,
    },
)
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def labels():
    X, Y = make_multilabel_classification(n_samples=160, n_features=10, random_state=0)
    return scale(X), Y


def test_with_one_kernel_every_label_is_a_discriminant_of_its_own(labels):
    X, Y = labels
    clf = MultiLabelKernelDiscriminant([RBF(width=4.0)], regularization=1e-2).fit(X[:100], Y[:100])
    for label in range(Y.shape[1]):
        alone = KernelDiscriminant(RBF(width=4.0), regularization=1e-2)
        alone.fit(X[:100], Y[:100, label])
        np.testing.assert_allclose(
            clf.predict_proba(X[100:])[:, label], alone.predict_proba(X[100:])[:, 1], rtol=1e-7
        )
        np.testing.assert_array_equal(clf.predict(X[100:])[:, label], alone.predict(X[100:]))


def test_weights_are_those_of_one_program_over_all_labels(labels):
    """Least squares of all centred, scaled label columns: value at random weights, by loops."""
    X, Y = labels
    kernels = [RBF(width=2.0), RBF(width=6.0), Linear()]
    clf = MultiLabelKernelDiscriminant(kernels, criterion="rkda", regularization=1e-2).fit(X, Y)
    grams = reference.trace_normalized(np.array([kernel(X) for kernel in kernels]))
    columns = (Y - Y.mean(axis=0)) / Y.std(axis=0)

    def value(weights):
        matrix = np.eye(len(X)) + np.tensordot(weights, grams, 1) / 1e-2
        return sum(column @ np.linalg.solve(matrix, column) for column in columns.T)

    best = value(clf.kernel_weights_)
    assert clf.learned_kernel_.objective == pytest.approx(best, rel=1e-8)
    assert clf.gap_ <= 1e-6
    for weights in np.random.default_rng(0).dirichlet(np.ones(3), 30):
        assert value(weights) >= best * (1 - 1e-6)


def test_one_class_a_row_is_one_class_against_the_rest():
    X, y = load_wine(return_X_y=True)
    X, y = scale(X), np.array(["red", "rose", "white"])[y]
    clf = MultiLabelKernelDiscriminant().fit(X[::2], y[::2])
    assert not clf.multilabel_
    assert clf.score(X[1::2], y[1::2]) >= 0.95
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)


def test_a_label_that_never_varies_is_predicted_as_it_was(labels):
    X, Y = labels
    constant = np.column_stack([Y, np.ones(len(Y), dtype=int), np.zeros(len(Y), dtype=int)])
    clf = MultiLabelKernelDiscriminant(regularization=1e-2)
    with pytest.warns(UserWarning, match=r"\[5, 6\]"):
        clf.fit(X, constant)
    assert (clf.predict(X)[:, 5:] == [1, 0]).all()
    assert (clf.predict_proba(X)[:, 5:] == [1.0, 0.0]).all()


def test_sparse_indicator_and_cross_validation(labels):
    X, Y = labels
    dense = MultiLabelKernelDiscriminant(criterion="rkda", regularization=1e-2).fit(X, Y)
    sparse = MultiLabelKernelDiscriminant(criterion="rkda", regularization=1e-2)
    sparse.fit(X, sp.csr_array(Y))
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(X))
    assert np.isfinite(cross_val_score(dense, X, Y, cv=3)).all()


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (np.array([[0, 2], [1, 1], [2, 0]]), "0 and 1"),
        (np.array([[0, 1], [0, 1], [0, 1]]), "At least one label must vary"),
    ],
)
def test_labels_that_cannot_work_are_refused(Y, message):
    with pytest.raises(InvalidInputError, match=message):
        MultiLabelKernelDiscriminant().fit(np.eye(3), Y)


def test_criteria_for_classes_refuse_labels_by_name(labels):
    with pytest.raises(InvalidInputError, match=r"'fdr' is for two classes\. Got several labels"):
        MultiLabelKernelDiscriminant(criterion="fdr").fit(*labels)


def test_draw_keeps_two_of_every_kind():
    has = np.zeros((200, 3), dtype=bool)
    has[:2, 0] = True
    has[:, 1] = True
    has[7:9, 1] = False
    has[::2, 2] = True
    target = LabelsTarget(has)
    for seed in range(20):
        rows = target.draw(0.1, np.random.RandomState(seed))
        assert len(rows) <= 24
        assert (has[rows].sum(axis=0) >= 2).all()
        assert ((~has[rows]).sum(axis=0) >= 2).all()
        assert target.subset(rows).scores.shape == (len(rows), 3)


def test_it_matches_kernel_ridge_with_a_grid_search_on_digits():
    """Four properties of handwritten digits: even, above 4, prime, with a loop."""
    X, digit = load_digits(return_X_y=True)
    Y = np.column_stack(
        [digit % 2 == 0, digit > 4, np.isin(digit, [2, 3, 5, 7]), np.isin(digit, [0, 6, 8, 9])]
    ).astype(int)
    X_train, X_test, Y_train, Y_test = train_test_split(X / 16.0, Y, train_size=250, random_state=0)
    kernels = [*rbf_ladder(), Linear()]  # of pixels as they are, like those of the grid
    ours = MultiLabelKernelDiscriminant(kernels).fit(X_train, Y_train).predict(X_test)
    grid = {"gamma": np.logspace(-2.5, -0.5, 5), "alpha": np.logspace(-4, 0, 5)}
    ridge = GridSearchCV(KernelRidge(kernel="rbf"), grid).fit(X_train, Y_train - 0.5)
    theirs = (ridge.predict(X_test) > 0).astype(int)
    assert hamming_loss(Y_test, ours) <= hamming_loss(Y_test, theirs) + 0.003


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (1, 2), (0, 2)])
def test_labels_must_be_0_and_1(low, high):
    """Which of 1 and 2 has the label is unknown, and predictions of 0 and 1 would match neither."""
    X, Y = make_multilabel_classification(60, n_classes=3, random_state=0)
    with pytest.raises(InvalidInputError, match=r"must hold 0 and 1, .* Got (-1|2)\. .* y == 1"):
        MultiLabelKernelDiscriminant().fit(X, np.where(Y, high, low))
    expected = MultiLabelKernelDiscriminant().fit(X, Y).predict(X)
    found = MultiLabelKernelDiscriminant().fit(X, Y == 1).predict(X)
    np.testing.assert_array_equal(found, expected)


def test_three_rows_are_enough():
    X = np.random.default_rng(0).normal(size=(60, 4))[:3]
    Y = np.array([[0, 1], [1, 0], [1, 1]])
    clf = MultiLabelKernelDiscriminant().fit(X, Y)
    assert clf.predict(X).shape == Y.shape
    assert np.isfinite(clf.predict_proba(X)).all()
