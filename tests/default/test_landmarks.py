"""Landmarks where the fit still errs."""

import numpy as np
import scipy.sparse as sp

from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import BlendBank
from discernel.default import landmarks, residual_landmarks
from discernel.kernels import RBF, Linear
from discernel.kernels.weighted import WeightedKernels
from discernel.targets import ClassTarget

RNG = np.random.default_rng(0)
X = RNG.random((800, 2))
Y = (X[:, 0] > 0.5).astype(int)
TARGET = ClassTarget.from_labels(Y)
KERNEL = WeightedKernels([RBF(width=0.1)], np.array([1.0 / 800]))


def test_they_are_different_rows_and_the_same_for_a_seed():
    rows = X.copy()
    rows[400:] = rows[:400]
    target = ClassTarget.from_labels(np.tile(Y[:400], 2))
    found = residual_landmarks(rows, KERNEL, target, 60, 1e-4)
    assert len(found) == len(np.unique(rows[found], axis=0)) == 60
    assert (np.diff(found) > 0).all()
    np.testing.assert_array_equal(found, residual_landmarks(rows, KERNEL, target, 60, 1e-4))
    assert len(residual_landmarks(rows, KERNEL, target, 500, 1e-4)) == 400  # all there are
    assert len(residual_landmarks(X, KERNEL, TARGET, 1, 1e-4)) == 1


def test_they_gather_where_classes_meet():
    near = np.abs(X[:, 0] - 0.5) < 0.1
    found = residual_landmarks(X, KERNEL, TARGET, 90, 1e-4)
    assert near[found].mean() > 1.5 * near.mean()


def test_needs_are_those_of_the_textbook():
    chosen = np.arange(0, 800, 20)
    T = TARGET.scores - TARGET.scores.mean(axis=0)
    found = landmarks._needs(KERNEL(X, X[chosen]), chosen, KERNEL.diagonal(X), T, 1e-3)
    K, Z = KERNEL(X, X), KERNEL(X, X[chosen])
    low = Z @ np.linalg.solve(Z[chosen], Z.T)
    P = np.eye(800) - 1.0 / 800
    dual = np.linalg.solve(1e-3 * np.eye(800) + P @ low @ P, T)
    expected = np.square(1e-3 * dual).sum(axis=1) * np.maximum(np.diagonal(K - low), 0.0)
    np.testing.assert_allclose(found, expected, atol=1e-5 * expected.max())


def test_weights_sparse_rows_and_a_pool_are_taken(monkeypatch):
    weights = SampleWeights.of(RNG.integers(1, 4, 800).astype(float))
    target = ClassTarget.from_labels(Y, weights)
    assert len(residual_landmarks(X, KERNEL, target, 40, 1e-4)) == 40
    sparse = sp.csr_matrix(np.round(3 * RNG.random((800, 9)) * (RNG.random((800, 9)) < 0.4), 2))
    kernel = WeightedKernels([Linear(), RBF(width=1.0)], np.full(2, 1e-3))
    found = residual_landmarks(sparse, kernel, TARGET, 40, 1e-4)
    assert len(found) == 40
    monkeypatch.setattr(landmarks, "_POOL", 2)
    assert len(residual_landmarks(X, KERNEL, TARGET, 40, 1e-4)) == 40


def test_they_predict_better_than_uniform_ones():
    rng = np.random.default_rng(1)
    rows, new = rng.random((2000, 3)), rng.random((2000, 3))

    def label(points):
        return (np.sin(12 * points[:, 0]) > 2 * points[:, 1] - 1).astype(int)

    target = ClassTarget.from_labels(label(rows))
    kernel, one = RBF(width=0.2), np.ones(1)

    def errors(draw):
        bank = BlendBank.of_landmarks([kernel], one, rows, draw)
        dual = bank.system(one, 1e-5).solve(target.scores)
        scores = bank.combined_features(one).product(new, bank.feature_coef(one, dual))
        return np.mean((scores[:, 0] > 0) != label(new)), np.mean((scores[:, 0] < 0) != label(new))

    ours = min(errors(lambda own: residual_landmarks(rows, own, target, 150, 1e-5)))
    theirs = min(errors(lambda _: np.arange(150)))
    assert ours < theirs
