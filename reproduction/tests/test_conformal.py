"""The data-dependent kernel as a step of a pipeline."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from discernel import KernelDiscriminant
from discernel.exceptions import InvalidGramError, InvalidInputError
from discernel.kernels import RBF, Linear, Precomputed
from discernel_reproduction.baselines import ConformalKernelTransformer

KERNEL, FACTOR = RBF(width=4.0), RBF(width=6.0)


@parametrize_with_checks(
    [ConformalKernelTransformer(random_state=0), ConformalKernelTransformer(method="exact")]
)
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), np.array(["red", "rose", "white"])[y]


@pytest.mark.parametrize("method", ["ascent", "exact"])
def test_matrix_is_the_kernel_times_both_factors(wine, method):
    X, y = wine
    conformal = ConformalKernelTransformer(
        KERNEL, factor_kernel=FACTOR, method=method, random_state=0
    ).fit(X[::2], y[::2])
    centers = X[::2][conformal.centers_]

    def gaussian(x, z, width):
        return np.exp(-np.sum((x - z) ** 2) / width**2)

    def q(x):
        return conformal.alpha_[0] + sum(
            alpha * gaussian(x, center, 6.0)
            for alpha, center in zip(conformal.alpha_[1:], centers, strict=True)
        )

    rows, columns = X[1:10:2], X[::2]
    expected = [[q(x) * q(z) * gaussian(x, z, 4.0) for z in columns] for x in rows]
    np.testing.assert_allclose(conformal.transform(rows), expected, atol=1e-10)
    assert np.mean(np.diagonal(conformal.transform(columns))) == pytest.approx(1.0)
    assert conformal.factors_.mean() > 0


def test_separability_rises_above_that_of_the_kernel(wine):
    X, y = wine
    ascent = ConformalKernelTransformer(KERNEL, random_state=0).fit(X, y)
    exact = ConformalKernelTransformer(KERNEL, method="exact", random_state=0).fit(X, y)
    assert ascent.separability_path_[0] < ascent.separability_ < exact.separability_
    assert ascent.separability_path_[0] == pytest.approx(exact.separability_path_[0])
    assert len(ascent.separability_path_) == 201


def test_any_kernel_machine_follows_and_cross_validates(wine):
    """Inside a pipeline, a fold is predicted from the kernel to its own training rows only."""
    X, y = wine
    conformal = ConformalKernelTransformer(KERNEL, random_state=0)
    scores = cross_val_score(make_pipeline(conformal, SVC(kernel="precomputed")), X, y, cv=4)
    by_hand = []
    for train, test in StratifiedKFold(4).split(X, y):
        conformal.fit(X[train], y[train])
        machine = SVC(kernel="precomputed").fit(conformal.transform(X[train]), y[train])
        by_hand.append(machine.score(conformal.transform(X[test]), y[test]))
    np.testing.assert_allclose(scores, by_hand)
    assert scores.mean() > 0.95


def test_learned_kernel_is_a_kernel_for_the_discriminant():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X)[::3], y[::3]
    machine = make_pipeline(
        ConformalKernelTransformer(random_state=0), KernelDiscriminant("precomputed")
    )
    assert cross_val_score(machine, X, y, cv=3).mean() > 0.9


def test_precomputed_matrices_equal_kernels(wine):
    X, y = wine
    options = {"method": "exact", "random_state": 3}
    on_rows = ConformalKernelTransformer(KERNEL, factor_kernel=FACTOR, **options)
    on_stack = ConformalKernelTransformer(Precomputed(0), factor_kernel=Precomputed(1), **options)
    stack = np.stack([KERNEL(X), FACTOR(X)], axis=-1)
    np.testing.assert_allclose(
        on_stack.fit(stack[:90, :90], y[:90]).transform(stack[90:, :90]),
        on_rows.fit(X[:90], y[:90]).transform(X[90:]),
        atol=1e-10,
    )
    one = ConformalKernelTransformer("precomputed", **options)
    both = cross_val_score(make_pipeline(one, SVC(kernel="precomputed")), KERNEL(X), y, cv=3)
    same = make_pipeline(on_rows.set_params(factor_kernel=None), SVC(kernel="precomputed"))
    np.testing.assert_allclose(both, cross_val_score(same, X, y, cv=3))


def test_sparse_rows_equal_dense_rows(wine):
    X, y = np.maximum(wine[0], 0.0), wine[1]
    conformal = ConformalKernelTransformer(Linear(), factor_kernel=RBF(), random_state=0)
    dense = conformal.fit(X, y).transform(X[:7])
    sparse = conformal.fit(sp.csr_matrix(X), y).transform(sp.csr_matrix(X[:7]))
    np.testing.assert_allclose(sparse, dense, atol=1e-8)


@pytest.mark.parametrize(("centers", "n_centers"), [(1 / 3, 59), (1e-6, 1), (7, 7), (178, 178)])
def test_centres_are_different_training_rows(wine, centers, n_centers):
    X, y = wine
    conformal = ConformalKernelTransformer(centers=centers, random_state=0).fit(X, y)
    assert len(set(conformal.centers_)) == len(conformal.centers_) == n_centers
    assert conformal.alpha_.shape == (n_centers + 1,)
    other = ConformalKernelTransformer(centers=centers, random_state=0).fit(X, y)
    np.testing.assert_array_equal(other.centers_, conformal.centers_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "newton"}, "method of Conf.* must be one of 'ascent', 'exact'. Got 'newton'"),
        ({"rate": 0.0}, "rate of Conf.* must be a positive, finite number. Got 0.0"),
        ({"ridge": -1.0}, "ridge of Conf.* must be a finite number of at least 0. Got -1.0"),
        ({"n_steps": 0}, "n_steps must be a positive integer. Got 0"),
        ({"centers": 0}, "centers of Conf.* must be a positive, finite number. Got 0"),
        ({"centers": 2.5}, "share below 1 or an integer of at most n_samples = 178. Got 2.5"),
        ({"centers": 179}, "share below 1 or an integer of at most n_samples = 178. Got 179"),
    ],
)
def test_what_cannot_work_is_refused(wine, options, message):
    with pytest.raises(InvalidInputError, match=message):
        ConformalKernelTransformer(**options).fit(*wine)


def test_matrix_that_is_no_kernel_is_refused(wine):
    X, y = wine
    with pytest.raises(InvalidGramError, match="positive semidefinite"):
        ConformalKernelTransformer("precomputed").fit(-KERNEL(X), y)


def test_other_seeds_draw_other_centres(wine):
    drawn = [ConformalKernelTransformer(random_state=s).fit(*wine).centers_ for s in (0, 1)]
    assert set(drawn[0]) != set(drawn[1])
