"""The training rows behind a prediction."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discernel import KernelDiscriminant, MultipleKernelDiscriminant, MultipleKernelRidge
from discernel.bank import LowRank
from discernel.exceptions import InvalidInputError
from discernel.inspection import similar_rows
from discernel.kernels import RBF, Laplace, Linear
from tests.inspection.test_contributions import VIEWS, make_rows, make_table


@pytest.mark.parametrize(("side", "sign"), [("for", 1.0), ("against", -1.0)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_are_those_that_push_most_for_the_prediction_or_against_it(n_classes, side, sign):
    X, y = make_rows(n_classes=n_classes)
    names = np.array(["no", "yes", "maybe"])[y]
    kernels = [RBF(gamma=0.02), Linear()]
    clf = MultipleKernelDiscriminant(kernels, criterion="uniform").fit(X[::2], names[::2])
    found, new = similar_rows(clf, X[1::2], n=4, side=side), X[1::2]
    combined, discriminant = clf.combined_kernel_, clf.discriminant_
    pairs = list(zip(combined.kernels, combined.coefficients, strict=True))
    gram, trained = (sum(c * k(rows, X[::2]) for k, c in pairs) for rows in (new, X[::2]))
    more = gram - trained.mean(axis=0)
    coef = discriminant.dual_coef - discriminant.dual_coef.mean(axis=0)
    coef = coef @ discriminant.linear.slopes
    coef -= coef.mean(axis=1, keepdims=True)
    factor = 2.0 if n_classes == 2 else 1.0  # log-odds are the difference of two scores
    support = factor * more * coef[:, clf.predict_proba(new).argmax(axis=1)].T
    expected = np.argsort(-sign * np.where(more > 0, support, 0.0), axis=1)[:, :4]
    np.testing.assert_array_equal(found.indices, expected)
    np.testing.assert_allclose(found.support, np.take_along_axis(support, expected, axis=1))
    sizes = [sum(c * k.diagonal(rows) for k, c in pairs) for rows in (new, X[::2])]
    alike = np.take_along_axis(gram / np.sqrt(np.outer(*sizes)), expected, axis=1)
    np.testing.assert_allclose(found.similarity, alike, rtol=1e-9)
    np.testing.assert_array_equal(found.labels, names[::2][expected])


def test_rows_of_the_predicted_class_are_shown_though_others_are_nearer():
    """The class depends on one column of ten, in which rows of the rare one are far from most."""
    X = np.random.default_rng(0).normal(size=(300, 10))
    y = np.where(X[:, 0] > 1.3, "compensated", "negative")
    clf = MultipleKernelDiscriminant([RBF(width=5.0)]).fit(X, y)
    new = 2.0 * np.eye(1, 10)
    assert clf.predict_proba(new)[0, 0] > 0.99
    every = similar_rows(clf, new, n=300)
    nearest = np.argsort(-every.similarity[0])[:5]
    assert (every.labels[0, nearest] == "negative").sum() == 4
    found = similar_rows(clf, new)
    assert (found.labels == "compensated").all()
    assert (found.support > 0).all()
    against = similar_rows(clf, new, side="against")
    assert (against.labels == "negative").all()
    assert (against.support < 0).all()


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


def similar_to_itself(found, positions):
    """Return the similarity of each of some rows, that are among those of training, to itself."""
    here = found.indices == np.asarray(positions)[:, None]
    assert (here.sum(axis=1) == 1).all()
    return found.similarity[here]


def test_a_training_row_is_like_itself_in_tables_and_pipelines():
    X, y = make_table()
    clf = MultipleKernelDiscriminant().fit(X, y)
    found = similar_rows(clf, X[10:14], n=len(X))
    np.testing.assert_allclose(similar_to_itself(found, range(10, 14)), 1.0)
    np.testing.assert_array_equal(found.labels, np.asarray(y)[found.indices])
    X, y = make_rows()
    pipe = make_pipeline(StandardScaler(), KernelDiscriminant(RBF())).fit(X, y)
    found = similar_rows(pipe, X[5:7], n=len(X))
    np.testing.assert_allclose(similar_to_itself(found, [5, 6]), 1.0)


def test_positions_are_those_of_the_rows_as_given():
    X, y = make_rows()
    weights = np.ones(len(X))
    weights[:20] = 0.0
    clf = KernelDiscriminant(RBF()).fit(X, y, sample_weight=weights)
    found = similar_rows(clf, X[30:33], n=len(X))
    np.testing.assert_allclose(similar_to_itself(found, [30, 31, 32]), 1.0)
    np.testing.assert_array_equal(found.labels, y[found.indices])


@pytest.mark.filterwarnings("ignore")
def test_landmarks_are_labelled():
    X, y = make_rows(300)
    names = np.array(["no", "yes"])[y]
    clf = MultipleKernelDiscriminant(bank=LowRank(40)).fit(X, names)
    found = similar_rows(clf, X[:7])
    np.testing.assert_array_equal(found.labels, names[found.indices])
    assert len(np.unique(similar_rows(clf, X[:1], n=1000).indices)) <= 40
    clf = MultipleKernelDiscriminant(bank=LowRank(40)).partial_fit(X, names)
    landmarks = clf.combined_kernel_.rows
    found = similar_rows(clf, landmarks[:9], n=1000)
    np.testing.assert_allclose(similar_to_itself(found, range(9)), 1.0)
    places = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in landmarks]
    np.testing.assert_array_equal(found.labels, names[places][found.indices])
    given = MultipleKernelDiscriminant(VIEWS, bank=LowRank(30), criterion="rkda")
    with pytest.raises(InvalidInputError, match="Fit with bank='auto'"):
        similar_rows(given.fit(X, y), X[:1])


def test_matrices_and_regressions_have_similar_rows_too():
    X, y = make_rows()
    stack = np.stack([RBF(gamma=0.1)(X), Laplace(gamma=0.2)(X)], axis=-1)
    clf = MultipleKernelDiscriminant("precomputed", criterion="uniform").fit(stack, y)
    found = similar_rows(clf, stack[:4], n=3)
    assert (found.support > 0).all()
    np.testing.assert_array_equal(found.labels, y[found.indices])
    reg = MultipleKernelRidge(VIEWS).fit(X, X[:, 0])
    found = similar_rows(reg, X[:4])
    np.testing.assert_array_equal(found.labels, X[:, 0][found.indices])
    above = np.sign(reg.predict(X[:4]) - reg.predict(X).mean())
    np.testing.assert_allclose(found.support, above[:, None] * found.influence[..., 0])


@pytest.mark.parametrize("n", [0, 1.5, "all"])
def test_a_strange_number_is_refused(n):
    X, y = make_rows()
    with pytest.raises(InvalidInputError, match="an integer of at least 1"):
        similar_rows(KernelDiscriminant(RBF()).fit(X, y), X, n=n)


def test_a_strange_side_is_refused():
    X, y = make_rows()
    with pytest.raises(InvalidInputError, match="side must be one of 'for', 'against'"):
        similar_rows(KernelDiscriminant(RBF()).fit(X, y), X, side="both")


def test_targets_with_weights_of_their_own_have_no_common_similar_rows():
    X = np.random.default_rng(0).standard_normal((30, 3))
    reg = MultipleKernelRidge(weights_per_target=True).fit(X, X[:, :2] ** 2)
    with pytest.raises(
        InvalidInputError, match=r"weights_per_target=True.*fit a model for each target"
    ):
        similar_rows(reg, X[:2])
