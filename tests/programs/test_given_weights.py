"""Weights of the user: taken as they are, for every way to fit, and checked."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from discernel import (
    LearnedKernelTransformer,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
    learn_kernel,
    regularization_path,
)
from discernel.criteria import GivenWeights, Uniform
from discernel.exceptions import DroppedKernelWarning, InvalidInputError
from discernel.kernels import RBF, Function, Laplace, Linear

KERNELS = {"near": RBF(width=3.0), "line": Linear(), "corners": Laplace(width=9.0)}


def test_weights_are_divided_by_their_sum(two_classes):
    grams, y = two_classes
    given = np.array([2.0, 0.0, 1.0, 0.0, 1.0])
    learned = learn_kernel(grams, y, criterion=GivenWeights(given), regularization=0.01)
    np.testing.assert_allclose(learned.weights, given / 4.0, rtol=1e-15)
    assert (learned.criterion, learned.solver, learned.gap) == ("given", "none", None)
    assert (
        learned.certificate
        == "No certificate needed: the weights are given, nothing was optimised."
    )


def test_equal_weights_are_the_plain_average(two_classes):
    grams, y = two_classes
    given, plain = (
        learn_kernel(grams, y, criterion=criterion)
        for criterion in (GivenWeights([1] * 5), Uniform())
    )
    assert given.regularization == plain.regularization
    assert given.leave_one_out == plain.leave_one_out
    np.testing.assert_array_equal(given.coefficients, plain.coefficients)


def test_learned_weights_given_again_are_the_same_model(blobs):
    X, y = blobs
    # Held-out scores know whether weights were learned; statistics of the training rows do not.
    options = {"regularization": 0.05, "statistics": "training"}
    clf = MultipleKernelDiscriminant(KERNELS, criterion="rkda", **options).fit(X, y)
    named = dict(zip(clf.kernel_names_, clf.kernel_weights_, strict=True))
    for weights in (clf.kernel_weights_, named):
        again = clone(clf).set_params(criterion=GivenWeights(weights)).fit(X, y)
        np.testing.assert_allclose(again.kernel_weights_, clf.kernel_weights_, rtol=1e-12)
        np.testing.assert_allclose(again.predict_proba(X), clf.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("bank", ["dense", "tiled", "factored", "iterative", "lowrank"])
def test_every_bank(blobs, bank):
    X, y = blobs
    criterion = GivenWeights({"near": 1.0, "corners": 3.0})
    clf = MultipleKernelDiscriminant(KERNELS, criterion=criterion, bank=bank, regularization=0.05)
    np.testing.assert_allclose(clf.fit(X, y).kernel_weights_, [0.25, 0.0, 0.75], rtol=1e-12)
    assert clf.score(X, y) > 0.7


def test_every_estimator(blobs):
    X, y = blobs
    criterion = GivenWeights([1.0, 1.0, 2.0])
    for estimator, target in (
        (MultipleKernelDiscriminant, y),
        (MultipleKernelRidge, X[:, 0]),
        (MultiLabelKernelDiscriminant, np.column_stack([y == 0, y == 1])),
        (LearnedKernelTransformer, y),
    ):
        fitted = estimator(KERNELS, criterion=criterion).fit(X, target)
        np.testing.assert_allclose(fitted.kernel_weights_, [0.25, 0.25, 0.5], rtol=1e-12)
    sparse = MultipleKernelDiscriminant(KERNELS, criterion=criterion).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.kernel_weights_, [0.25, 0.25, 0.5], rtol=1e-12)


def test_many_rows_whose_lambda_is_looked_for_on_a_part():
    """A kernel is constant on all rows, and another on most of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2))
    X[:, 1] = 0.0
    X[0, 1] = 1.0
    y = (X[:, 0] > 0).astype(int)
    kernels = [Function(lambda A, B: np.ones((len(A), len(B)))), RBF().on([0]), Linear().on([1])]
    clf = MultipleKernelDiscriminant(kernels, criterion=GivenWeights([2.0, 3.0, 1.0]))
    with pytest.warns(DroppedKernelWarning):
        clf.fit(X, y)
    np.testing.assert_allclose(clf.kernel_weights_, [0.0, 0.75, 0.25], rtol=1e-12)
    only = MultipleKernelDiscriminant(kernels, criterion=GivenWeights([0.0, 0.0, 1.0]))
    with pytest.warns(DroppedKernelWarning):
        np.testing.assert_allclose(only.fit(X, y).kernel_weights_, [0.0, 0.0, 1.0], rtol=1e-12)
    with (
        pytest.warns(DroppedKernelWarning),
        pytest.raises(InvalidInputError, match="must vary on the training rows"),
    ):
        MultipleKernelDiscriminant(kernels, criterion=GivenWeights([1.0, 0.0, 0.0])).fit(X, y)


def test_a_path_of_lambda(two_classes):
    grams, y = two_classes
    path = regularization_path(grams, y, criterion=GivenWeights([1.0, 0.0, 0.0, 0.0, 3.0]))
    for weights in path.weights:
        np.testing.assert_allclose(weights, [0.25, 0.0, 0.0, 0.0, 0.75], rtol=1e-12)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, -0.1], "at least 0"),
        ([0.5, np.nan], "finite numbers"),
        ([[0.5, 0.5]], "list of finite numbers"),
        ("half", "list of finite numbers"),
        (None, "list of finite numbers"),
        ([0.0, 0.0], "must be above 0"),
        ([], "must be above 0"),
        ({}, "must be above 0"),
    ],
)
def test_weights_that_cannot_be(weights, message):
    with pytest.raises(InvalidInputError, match=message):
        GivenWeights(weights)


def test_weights_of_other_kernels(two_classes):
    grams, y = two_classes
    with pytest.raises(InvalidInputError, match=r"one weight per kernel, here 5\. Got 2"):
        learn_kernel(grams, y, criterion=GivenWeights([1.0, 2.0]))
    named = dict(zip("abcde", grams, strict=True))
    with pytest.raises(InvalidInputError, match=r"those of the kernels .*Got \['z'\]"):
        learn_kernel(named, y, criterion=GivenWeights({"a": 1.0, "z": 1.0}))


def test_they_are_values():
    assert GivenWeights([1, 2]) == GivenWeights(np.array([1.0, 2.0]))
    assert GivenWeights({"a": 1}) != GivenWeights({"b": 1})
    assert repr(GivenWeights([1, 2])) == "GivenWeights(weights=(1.0, 2.0))"
    assert clone(
        MultipleKernelDiscriminant(criterion=GivenWeights([1, 2]))
    ).criterion == GivenWeights([1, 2])
