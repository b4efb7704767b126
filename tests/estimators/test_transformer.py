"""The learned kernel as a step of a pipeline."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_score,
    train_test_split,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler, scale
from sklearn.svm import SVC

from discernel import LearnedKernelTransformer, learn_kernel
from discernel.kernels import RBF, Linear
from tests import reference

KERNELS = [RBF(width=2.0), RBF(width=6.0), Linear()]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def test_matrix_is_the_learned_combination_centred(wine):
    X, y = wine
    options = {"criterion": "rkda", "regularization": 0.01}
    transformer = LearnedKernelTransformer(KERNELS, **options).fit(X, y)
    grams = np.array([kernel(X) for kernel in KERNELS])
    learned = learn_kernel(grams, y, **options)
    expected = len(y) * reference.centered(learned.combine(grams)[None])[0]
    np.testing.assert_allclose(transformer.transform(X), expected, atol=1e-8)
    assert np.trace(transformer.transform(X)) == pytest.approx(len(y))


def test_any_kernel_machine_follows_and_cross_validates(wine):
    """Inside a pipeline, a fold is predicted from the kernel to its own training rows only."""
    X, y = wine
    svm = make_pipeline(
        LearnedKernelTransformer(KERNELS, regularization=0.01), SVC(kernel="precomputed")
    )
    scores = cross_val_score(svm, X, y, cv=4)
    by_hand = []
    for train, test in StratifiedKFold(4).split(X, y):
        transformer = LearnedKernelTransformer(KERNELS, regularization=0.01).fit(X[train], y[train])
        machine = SVC(kernel="precomputed").fit(transformer.transform(X[train]), y[train])
        by_hand.append(machine.score(transformer.transform(X[test]), y[test]))
    np.testing.assert_allclose(scores, by_hand)
    assert scores.mean() > 0.95


def test_parameters_of_both_steps_can_be_searched(wine):
    X, y = wine
    pipeline = make_pipeline(
        StandardScaler(), LearnedKernelTransformer(regularization=0.01), SVC(kernel="precomputed")
    )
    grid = {"svc__C": [0.1, 10.0], "learnedkerneltransformer__criterion": ["uniform", "rkda"]}
    assert GridSearchCV(pipeline, grid, cv=3).fit(X, y).best_score_ > 0.95


def test_nearest_neighbours_in_the_learned_feature_space(wine):
    """Distances from the kernel: d² = k(x,x) − 2k(x,z) + k(z,z), the first term left out."""
    X, y = wine
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    transformer = LearnedKernelTransformer(KERNELS, regularization=0.01).fit(X_train, y_train)
    K = transformer.transform(X_train)
    diagonal = np.diagonal(K)

    def distances(K):
        return np.maximum(diagonal - 2 * K + diagonal.max() * 4, 0)

    knn = make_pipeline(
        FunctionTransformer(distances), KNeighborsClassifier(3, metric="precomputed")
    ).fit(K, y_train)
    assert knn.score(transformer.transform(X_test), y_test) > 0.95


def test_output_has_a_name_a_training_row(wine):
    X, _ = wine
    transformer = LearnedKernelTransformer(KERNELS, regularization=0.01)
    frame = (
        transformer.set_output(transform="pandas")
        .fit(X[:30], np.arange(30) % 2)
        .transform(X[30:40])
    )
    assert frame.shape == (10, 30)
    assert list(frame.columns[:2]) == ["row0", "row1"]
