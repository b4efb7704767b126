"""Tables in which few columns matter, and targets of them."""

import numpy as np

from discernel.arrays.sample_weights import SampleWeights
from discernel.default.sample import draw_sample
from discernel.targets import ClassTarget, LabelsTarget, RegressionTarget


def few_matter(n, n_columns=20, seed=0, noise=0.3):
    """Return rows and two classes that the first three columns tell apart, not by a line."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_columns))
    score = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + noise * rng.standard_normal(n)
    return X, (score > 0).astype(int)


def three_classes(n, n_columns=6, seed=0):
    """Return rows and three unequal classes."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], [n // 2, n - n // 2 - n // 5, n // 5])
    X = rng.standard_normal((n, n_columns))
    X[:, :2] += 1.5 * np.array([[0.0, 0.0], [1.0, 0.5], [-0.5, 1.5]])[y]
    order = rng.permutation(n)
    return X[order], y[order]


def make_target(kind, X, y, given=None):
    """Return the target of classes, numbers or labels."""
    weights = None if given is None else SampleWeights.of(np.asarray(given, dtype=float))
    if kind == "classes":
        return ClassTarget.from_labels(y, weights)
    if kind == "numbers":
        return RegressionTarget.from_values(np.column_stack([X[:, 0] ** 2, X[:, 1]]), weights)
    return LabelsTarget(np.column_stack([X[:, 0] > 0, X[:, 1] > 1.0]), weights)


def make_sample(n=60, *, given=None, kind="classes", most=1000, n_folds=4, seed=0):
    """Return a sample of three classes."""
    X, y = three_classes(n)
    target = make_target(kind, X, y, given)
    rng = np.random.RandomState(seed)
    return draw_sample(X, target, most=most, n_folds=n_folds, rng=rng)


def rules(n, seed=0):
    """Return rows of codes of five categories, and three classes by rules without noise."""
    codes = np.random.default_rng(seed).integers(0, 4, (n, 5))
    first, second, third, fourth, _ = codes.T
    others = (2 * second + third > 4) | ((fourth == 2) & (second > 1))
    return np.eye(4)[codes].reshape(n, 20), np.where(first == 0, 0, 1 + others)
