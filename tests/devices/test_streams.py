"""Rows in chunks are summed up on a device."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from discernel import MultipleKernelDiscriminant, MultipleKernelRidge, open_rows
from discernel.arrays import Device
from discernel.bank import LowRank
from discernel.bank import sums as module
from discernel.bank.sums import (
    FeatureSums,
    Labelled,
    SumPass,
    sums_are_of_kernels,
)
from discernel.estimators import base
from discernel.kernels import RBF, Exponential, Laplace, Linear, Polynomial, Standardized
from discernel.kernels.features import NystromMap
from discernel.kernels.weighted import WeightedKernels

N = 500


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4)) + 3.0
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] > 3).astype(int) + (X[:, 2] > 4)


KERNELS = {
    "kernels are summed up": [RBF(width=0.3), Laplace(width=0.5)],
    "features are summed up": [RBF(width=9.0), Standardized(RBF(width=9.0), (1.0, 2.0, 1.0, 0.5))],
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_sums_are_those_of_numpy(device, rows, name, weighted, monkeypatch):
    monkeypatch.setattr(module, "STRIP_ENTRIES", 40 * 100)  # several strips
    X, y = rows
    features = NystromMap(KERNELS[name], np.arange(1.0, 1.0 + len(KERNELS[name])), X[:40])
    assert sums_are_of_kernels(features) == name.startswith("kernels")
    weights = np.random.default_rng(1).uniform(0.5, 2.0, N) if weighted else np.ones(N)
    given = Labelled(X, np.eye(3)[y], weights)
    here, there = (SumPass(features, 3, where) for where in (None, device))
    expected, found = here.add(here.start(), given), there.add(there.start(), given)
    found = there.merge(there.add(found, given), FeatureSums(features.rank, 3))
    # Features of landmarks that others nearly represent have half of the digits.
    for name_of in ("n_rows", "diagonal", "all_values", "all_cross"):
        assert_allclose(
            getattr(found, name_of),
            2 * np.asarray(getattr(expected, name_of)),
            rtol=1e-9,
            atol=1e-7,
        )
    assert_allclose(np.tril(found.products), 2 * np.tril(expected.products), rtol=1e-8, atol=1e-6)


def test_features_and_gradients_are_those_of_numpy(device, rows):
    X, _ = rows
    spreads, other = (1.0, 2.0, 0.0, 0.5), (1.0, 1.0, 1.0, 1.0)
    kernels = [
        Standardized(RBF(width=1.0), spreads),
        Standardized(RBF(width=3.0), spreads),
        Standardized(Laplace(width=2.0), spreads),
        Standardized(Linear(), spreads),
        Standardized(RBF(width=2.0), other),
        Laplace(width=2.0),
    ]
    features = NystromMap(kernels, np.arange(1.0, 7.0), X[:40])
    assert_allclose(SumPass(features, 3, device).map(X), features(X), atol=1e-8)
    coef = np.random.default_rng(1).normal(size=(features.rank, 2))
    given = X[50:90], coef, features.landmarks
    expected = features.kernel.squared_gradient(*given)
    assert_allclose(features.kernel.squared_gradient(*given, device), expected, rtol=1e-9)
    kernels += [Exponential(width=2.0) * Polynomial(degree=2).on([0, 2])]
    others = WeightedKernels(kernels, np.arange(1.0, 8.0))
    assert_allclose(
        others.squared_gradient(*given, device), others.squared_gradient(*given), rtol=1e-9
    )
    step = 1e-6 * np.eye(4)[1]
    slope = (
        features.product(X[50:90] + step, features.lower.T @ coef)
        - features.product(X[50:90] - step, features.lower.T @ coef)
    ) / 2e-6
    assert np.mean(np.sum(slope**2, axis=1)) == pytest.approx(expected[1], rel=1e-5)


@pytest.fixture
def on_device(device, monkeypatch):
    """Have estimators compute on the device, whatever they are given."""
    monkeypatch.setattr(base, "elsewhere", lambda found: device)
    return device


def test_a_fit_to_chunks_is_that_of_numpy(rows, on_device, monkeypatch):
    X, y = rows
    there = MultipleKernelDiscriminant().fit(open_rows(X, y, chunk_rows=120))
    assert there.bank_ == "stream"
    monkeypatch.undo()
    here = MultipleKernelDiscriminant().fit(open_rows(X, y, chunk_rows=120))
    # Metrics of single precision differ in the fourth digit, which may exchange two rows that are
    # left out in different groups.
    assert_allclose(there.predict_proba(X[:50]), here.predict_proba(X[:50]), atol=1e-2)
    home = there.to_cpu()
    assert_allclose(there.predict_proba(X), home.predict_proba(X), atol=1e-9)


def test_given_kernels_are_fitted_as_exactly_and_more_rows_are_added(rows, on_device, monkeypatch):
    X, y = rows
    options = {"kernels": [RBF(width=1.0), RBF(width=3.0)], "criterion": "rkda"}
    options |= {"regularization": 1e-2, "tol": 1e-10}
    there = MultipleKernelDiscriminant(**options).fit(open_rows(X[:400], y[:400], chunk_rows=120))
    there.partial_fit(X[400:], y[400:])
    monkeypatch.undo()
    here = MultipleKernelDiscriminant(**options).fit(open_rows(X[:400], y[:400], chunk_rows=120))
    here.partial_fit(X[400:], y[400:])
    assert there.streamed_.n_rows == N
    assert_allclose(there.kernel_weights_, here.kernel_weights_, atol=1e-7)
    assert_allclose(there.predict_proba(X[:50]), here.predict_proba(X[:50]), atol=1e-6)


def test_numbers_are_fitted_as_exactly_and_more_rows_are_added(rows, on_device, monkeypatch):
    X, y = rows[0], 1e5 + np.column_stack([np.sin(rows[0][:, 0]), rows[0][:, 1] ** 2])
    options = {"kernels": [RBF(width=1.0), RBF(width=3.0)], "criterion": "rkda"}
    options |= {"regularization": 1e-2, "tol": 1e-10}

    def fitted():
        reg = MultipleKernelRidge(**options).fit(open_rows(X[:400], y[:400], chunk_rows=120))
        return reg.partial_fit(X[400:], y[400:])

    there = fitted()
    monkeypatch.undo()
    here = fitted()
    assert there.streamed_.n_rows == N
    assert_allclose(there.kernel_weights_, here.kernel_weights_, atol=1e-7)
    assert_allclose(there.predict(X[:50]), here.predict(X[:50]), rtol=0, atol=1e-6)
    assert_allclose(there.predict(X), there.to_cpu().predict(X), rtol=0, atol=1e-7)


def test_a_low_rank_is_summed_up_there(rows, torch_as_device):
    torch = pytest.importorskip("torch")
    X, y = rows
    clf = MultipleKernelDiscriminant(bank=LowRank(60)).fit(torch.as_tensor(X), y)
    assert (clf.bank_, clf.streamed_.rank) == ("stream", 60)
    assert isinstance(clf.combined_kernel_.device, Device)
    assert isinstance(clf.predict(torch.as_tensor(X)), torch.Tensor)
