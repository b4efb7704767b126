"""What the default learns on a device is what it learns here."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from discernel.arrays import as_host
from discernel.arrays.sample_weights import SampleWeights
from discernel.default import propose_kernels
from discernel.default.likelihood import MarginalLikelihood, learn_likelihood_metric
from discernel.default.menu import MENU, matrices_on_device
from discernel.default.metric import learn_metric
from discernel.default.ridge import Ridge
from discernel.default.sample import draw_sample
from discernel.kernels.columns import column_spreads
from discernel.kernels.evaluate import KernelSet
from discernel.targets import ClassTarget


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 5)) + 3.0
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] > 3).astype(int) + (X[:, 2] > 4)


@pytest.fixture(scope="module", params=["alike", "weighted"])
def sample(rows, request):
    X, y = rows
    weights = None
    if request.param == "weighted":
        weights = SampleWeights.of(np.random.default_rng(1).uniform(0.5, 2.0, len(y)))
    target = ClassTarget.from_labels(y, weights)
    return draw_sample(X, target, most=200, n_folds=4, rng=np.random.RandomState(0))


SCALES = np.array([1.0, 0.5, 0.3, 0.0, 0.2])


def test_a_ridge_is_the_same(sample, device):
    outside, inside = next(sample.divisions())
    order, n = np.concatenate([outside, inside]), len(outside)
    rows, known = (
        (sample.rows * SCALES)[order],
        (sample.scores[order], sample.weights.values[order]),
    )
    stack = MENU.matrices(rows, n, np.empty((MENU.n_kernels, len(rows), n)))
    here = Ridge(stack, *known)
    there = Ridge(matrices_on_device(MENU, rows, n, device), *known, device)
    weights = np.random.default_rng(2).dirichlet(np.ones(MENU.n_kernels))
    both = [(ridge, ridge.combined(weights)) for ridge in (here, there)]
    for lam in (1e-1, 1e-3):
        expected, found = (ridge.predict(combined, lam) for ridge, combined in both)
        assert_allclose(found, expected, atol=1e-9)
        expected, found = (ridge.leave_one_out(combined, lam)[0] for ridge, combined in both)
        assert found == pytest.approx(expected, rel=1e-9)
        expected, found = (as_host(ridge.coef(combined, lam)) for ridge, combined in both)
        assert_allclose(found, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
        expected, found = (ridge.error(weights, lam) for ridge in (here, there))
        assert found.value == pytest.approx(expected.value, rel=1e-9)
        assert_allclose(found.by_weights, expected.by_weights, rtol=1e-6, atol=1e-8)


def test_a_metric_is_the_same_to_its_digits(sample, device):
    given = sample.rows, sample.scores, sample.weights.values
    here, there = learn_metric(*given), learn_metric(*given, device=device)
    assert_allclose(there.scales, here.scales, atol=5e-4)


def test_a_metric_by_likelihood_is_the_same(sample, device):
    given = sample.rows, sample.scores, sample.weights.values, np.arange(sample.rows.shape[1])
    point = np.append(np.full(sample.rows.shape[1], -1.0), np.log(0.1))
    value, gradient = MarginalLikelihood(*given)(point)
    again, found = MarginalLikelihood(*given, device=device)(point)
    assert again == pytest.approx(value, rel=1e-9)
    assert_allclose(found, gradient, atol=1e-9)
    here, there = (learn_likelihood_metric(*given[:3], device=where) for where in (None, device))
    assert_allclose(there.scales, here.scales, atol=5e-4)


def test_the_same_kernels_are_proposed(rows, device):
    X, y = rows
    target, spreads = ClassTarget.from_labels(y), (1.0,) * X.shape[1]
    here = propose_kernels(X, spreads, target)
    there = propose_kernels(X, spreads, target, device=device)
    assert there.chosen.name == here.chosen.name
    assert there.chosen.strength == here.chosen.strength
    assert there.chosen.regularization == here.chosen.regularization
    assert_allclose(there.chosen.weights, here.chosen.weights, atol=2e-2)
    assert there.chosen.error == pytest.approx(here.chosen.error, rel=1e-2)


def test_columns_are_taken_as_quantiles_on_a_device_too(rows, device):
    X, y = np.exp(2.0 * rows[0]), rows[1]
    target, spreads = ClassTarget.from_labels(y), tuple(column_spreads(X).tolist())
    here = propose_kernels(X, spreads, target)
    there = propose_kernels(X, spreads, target, device=device)
    assert here.chosen.quantiles
    assert there.chosen.quantiles
    assert there.curves == here.curves
    prepared = KernelSet(here.kernels).prepare(X[:50]).on(device)
    found = dict(KernelSet(here.kernels).matrices(prepared, prepared))
    for place, kernel in enumerate(here.kernels):
        assert_allclose(as_host(found[place]), kernel(X[:50]), atol=1e-9)
