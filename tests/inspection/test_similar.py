"""The training rows behind a prediction."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discernel import KernelDiscriminant, MultipleKernelDiscriminant, MultipleKernelRidge
from discernel.exceptions import InvalidInputError
from discernel.inspection import similar_rows
from discernel.kernels import RBF, Laplace, Linear
from tests.inspection.test_contributions import VIEWS, make_rows, make_table


def test_rows_are_those_of_the_largest_normalised_kernel():
    X, y = make_rows()
    names = np.array(["no", "yes"])[y]
    kernels = [RBF(gamma=0.02), Linear()]
    clf = MultipleKernelDiscriminant(kernels, criterion="uniform").fit(X[::2], names[::2])
    found, new = similar_rows(clf, X[1::2], n=4), X[1::2]
    combined = clf.combined_kernel_
    pairs = list(zip(combined.kernels, combined.coefficients, strict=True))
    gram = sum(c * k(new, X[::2]) for k, c in pairs)
    sizes = [sum(c * k.diagonal(rows) for k, c in pairs) for rows in (new, X[::2])]
    alike = gram / np.sqrt(np.outer(*sizes))
    expected = np.argsort(-alike, axis=1)[:, :4]
    np.testing.assert_array_equal(found.indices, expected)
    np.testing.assert_allclose(found.similarity, np.sort(alike, axis=1)[:, ::-1][:, :4], rtol=1e-9)
    np.testing.assert_array_equal(found.labels, names[::2][expected])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_influences_of_all_rows_sum_to_the_score_but_for_a_constant(n_classes):
    X, y = make_rows(n_classes=n_classes)
    clf = MultipleKernelDiscriminant(VIEWS).fit(X, y)
    found = similar_rows(clf, X[:6], n=1000)
    assert found.indices.shape == (6, len(X))
    decision = clf.decision_function(X[:6]).reshape(6, -1)
    decision = decision if n_classes == 2 else decision - decision.mean(axis=1, keepdims=True)
    left = decision - found.influence.sum(axis=1)
    np.testing.assert_allclose(left, left[:1].repeat(6, axis=0), atol=1e-8)


def test_a_training_row_is_most_like_itself_in_tables_and_pipelines():
    X, y = make_table()
    clf = MultipleKernelDiscriminant().fit(X, y)
    found = similar_rows(clf, X[10:14])
    assert found.indices[:, 0].tolist() == [10, 11, 12, 13]
    np.testing.assert_allclose(found.similarity[:, 0], 1.0)
    assert found.labels[:, 0].tolist() == list(y[10:14])
    X, y = make_rows()
    pipe = make_pipeline(StandardScaler(), KernelDiscriminant(RBF())).fit(X, y)
    assert similar_rows(pipe, X[5:7], n=1).indices.tolist() == [[5], [6]]


def test_positions_are_those_of_the_rows_as_given():
    X, y = make_rows()
    weights = np.ones(len(X))
    weights[:20] = 0.0
    clf = KernelDiscriminant(RBF()).fit(X, y, sample_weight=weights)
    found = similar_rows(clf, X[30:33], n=2)
    assert found.indices[:, 0].tolist() == [30, 31, 32]
    np.testing.assert_array_equal(found.labels, y[found.indices])


@pytest.mark.filterwarnings("ignore")
def test_landmarks_are_labelled():
    X, y = make_rows(300)
    names = np.array(["no", "yes"])[y]
    clf = MultipleKernelDiscriminant(bank="lowrank", rank=40).fit(X, names)
    found = similar_rows(clf, X[:7])
    np.testing.assert_array_equal(found.labels, names[found.indices])
    assert len(np.unique(similar_rows(clf, X[:1], n=1000).indices)) <= 40
    clf = MultipleKernelDiscriminant(rank=40).partial_fit(X, names)
    landmarks = clf.combined_kernel_.rows
    found = similar_rows(clf, landmarks[:9], n=1)
    assert found.indices[:, 0].tolist() == list(range(9))
    places = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in landmarks[:9]]
    assert found.labels[:, 0].tolist() == names[places].tolist()
    given = MultipleKernelDiscriminant(VIEWS, bank="lowrank", rank=30, criterion="rkda")
    with pytest.raises(InvalidInputError, match="Fit with bank='auto'"):
        similar_rows(given.fit(X, y), X[:1])


def test_matrices_and_regressions_have_similar_rows_too():
    X, y = make_rows()
    stack = np.stack([RBF(gamma=0.1)(X), Laplace(gamma=0.2)(X)], axis=-1)
    clf = MultipleKernelDiscriminant("precomputed", criterion="uniform").fit(stack, y)
    found = similar_rows(clf, stack[:4], n=3)
    assert found.indices[:, 0].tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(found.labels, y[found.indices])
    reg = MultipleKernelRidge(VIEWS).fit(X, X[:, 0])
    found = similar_rows(reg, X[:4])
    np.testing.assert_array_equal(found.labels, X[:, 0][found.indices])


@pytest.mark.parametrize("n", [0, 1.5, "all"])
def test_a_strange_number_is_refused(n):
    X, y = make_rows()
    with pytest.raises(InvalidInputError, match="an integer of at least 1"):
        similar_rows(KernelDiscriminant(RBF()).fit(X, y), X, n=n)
