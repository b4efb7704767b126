"""What is learned on some of the rows and used on all: kernels that are constant on the part."""

import sys
import warnings

import numpy as np
import pytest

from discernel import MultipleKernelDiscriminant, MultipleKernelRidge, learn_kernel
from discernel.bank import DenseBank, FeatureBank, TiledBank
from discernel.exceptions import DroppedKernelWarning
from discernel.kernels import RBF
from discernel.programs.base import draw_part
from discernel.targets import ClassTarget, RegressionTarget


def one_hot(n_rows, seed=0):
    """Rows of 8 columns; 1, 2 and 5 of them have a single 1, column 3 tells the classes apart."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n_rows, 8)) < 0.3).astype(float)
    X[:, [1, 2, 5]] = 0.0
    X[[7, 11, 13], [1, 2, 5]] = 1.0
    y = np.where(rng.random(n_rows) < 0.1, 1.0 - X[:, 3], X[:, 3]).astype(int)
    return X, y


def kernels(X):
    return [RBF(width=1.0).on([j]) for j in range(X.shape[1])]


@pytest.fixture
def few_are_many(monkeypatch):
    """Start from a quarter of the rows although they are few."""
    for name in ("learn.learn", "papers.akfd.solver"):
        monkeypatch.setattr(sys.modules[f"discernel.{name}"], "_MANY", 300)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("bank", ["dense", "tiled", "factored"])
@pytest.mark.parametrize(
    ("criterion", "regularization"),
    [
        ("auto", "auto"),
        ("auto", 0.01),
        ("loo", "auto"),
        ("rkda", 0.01),
        ("rkda", "joint"),
        ("fdr", 0.01),
        ("akfd", 0.01),
    ],
)
def test_one_hot_columns_are_learned(bank, criterion, regularization):
    """Single ones are absent from the third or quarter that is drawn; nobody is warned of it."""
    X, y = one_hot(520)
    clf = MultipleKernelDiscriminant(
        kernels(X), criterion=criterion, regularization=regularization, bank=bank
    ).fit(X, y)
    assert clf.kernel_weights_.shape == (8,)
    assert clf.score(X, y) >= np.mean(X[:, 3] == y) - 0.01
    if criterion != "akfd":  # it may end elsewhere
        assert clf.kernel_weights_.argmax() == 3


def test_weights_of_a_part_belong_to_the_same_kernels_on_all_rows():
    X, y = one_hot(700)
    bank = DenseBank([kernel(X) for kernel in kernels(X)])
    part = draw_part(bank, ClassTarget.from_labels(y), 300 / 700, np.random.RandomState(0))
    assert part.unseen.any()
    learned = learn_kernel([kernel(X) for kernel in kernels(X)], y)
    single = next(found for found in learned.considered if found.name == "single")
    np.testing.assert_array_equal(single.weights, np.eye(8)[3])
    average = next(found for found in learned.considered if found.name == "average")
    np.testing.assert_array_equal(average.weights, np.full(8, 1 / 8))


def dense(given, X):
    return DenseBank([kernel(X) for kernel in given])


BANKS = {
    "dense": dense,
    "tiled": TiledBank,
    "factored": FeatureBank.from_kernels,
}


@pytest.mark.parametrize("make", BANKS)
def test_the_candidates_of_a_part_are_the_kernels_of_the_whole(make):
    """Also where the whole has left a kernel out itself; and all may be constant on a part."""
    X, _ = one_hot(60)
    X[:, 0] = 1.0
    given = [kernel.resolve(X) for kernel in kernels(X)]
    with pytest.warns(DroppedKernelWarning, match="constant on the training set"):
        bank = BANKS[make](given, X)
    part = bank.subset(np.arange(20, 60))  # without the single ones
    weights = part.expand(np.arange(1.0, part.n_kernels + 1))
    assert len(weights) == bank.n_kernels == 7
    assert weights.nonzero()[0].tolist() == [2, 3, 5, 6]  # among the seven
    nothing = bank.subset(np.array([7, 7]))
    assert nothing.n_kernels == 0


def problem_with_unseen(n_noise, n_rows=600):
    """The first kernel alone tells the classes apart, and is constant on the rows searched on."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % 2
    rows = ClassTarget.from_labels(y).draw(300 / n_rows, np.random.RandomState(0))
    X = rng.standard_normal((n_rows, 1 + n_noise))
    X[:, 0] = 2.0 * y - 1.0 + 0.3 * X[:, 0]
    X[rows, 0] = 0.0
    return np.array([RBF(width=1.0)(X[:, [j]]) for j in range(1 + n_noise)]), y


@pytest.mark.parametrize("n_noise", [1, 6])
def test_a_kernel_that_the_part_does_not_see_still_gets_its_weight(n_noise):
    grams, y = problem_with_unseen(n_noise)
    learned = learn_kernel(grams, y)
    assert learned.weights.argmax() == 0
    alone = learn_kernel(grams[:1], y)
    assert learned.considered[0].error < alone.considered[0].error + 0.15


def test_a_part_on_which_nothing_varies_is_not_searched_on():
    grams, y = problem_with_unseen(0)
    learned = learn_kernel(grams, y)
    assert learned.weights.tolist() == [1.0]
    assert learned.considered[0].error < 0.6
    assert {progress.n_stages for progress in learned.history} == {1}


def test_only_kernels_that_are_constant_on_all_rows_are_warned_of():
    X, y = one_hot(520)
    X[:, 6] = 1.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        MultipleKernelDiscriminant(kernels(X)).fit(X, y)
    [warning] = caught
    assert warning.category is DroppedKernelWarning
    assert "training set: RBF(width=1) on 6." in str(warning.message)


def test_a_part_of_numbers_varies_as_all_do():
    """A column that is 0 but for two rows is not constant, nor lost, on any part."""
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.standard_normal(600), np.zeros(600), np.zeros(600)])
    values[5, 1] = values[[3, 9], 2] = 1.0
    target = RegressionTarget.from_values(values)
    for seed in range(10):
        rows = target.draw(0.2, np.random.RandomState(seed))
        assert 120 <= len(rows) <= 124
        assert (np.diff(rows) > 0).all()
        scores = target.subset(rows).scores
        np.testing.assert_allclose((scores**2).mean(axis=0), 1.0)
    X = rng.standard_normal((600, 3))
    X[:, 0] += values[:, 0]
    model = MultipleKernelRidge([RBF(width=w) for w in (1.0, 4.0)]).fit(X, values)
    assert np.isfinite(model.predict(X)).all()
