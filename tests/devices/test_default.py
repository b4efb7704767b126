"""What the default learns on a device is what it learns here."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from discernel.arrays.sample_weights import SampleWeights
from discernel.default import propose_kernels
from discernel.default.device_fold import DeviceFold
from discernel.default.fold import Fold
from discernel.default.menu import MENU
from discernel.default.metric import learn_metric
from discernel.default.sample import draw_sample
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


def test_a_fold_predicts_the_same(sample, device):
    outside, inside = next(sample.divisions())
    here = Fold(sample, outside, inside, SCALES, MENU, np.float64)
    there = DeviceFold(sample, outside, inside, SCALES, MENU, device)
    weights = np.random.default_rng(2).dirichlet(np.ones(MENU.n_kernels))
    for lam in (1e-1, 1e-3):
        assert_allclose(there.predictor(weights)(lam), here.predictor(weights)(lam), atol=1e-9)
        found, expected = there.error(weights, lam), here.error(weights, lam)
        assert found.value == pytest.approx(expected.value, rel=1e-9)
        assert_allclose(found.by_weights, expected.by_weights, rtol=1e-6, atol=1e-8)


def test_a_metric_is_the_same_to_its_digits(sample, device):
    given = sample.rows, sample.scores, sample.weights
    here, there = learn_metric(*given), learn_metric(*given, device=device)
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
    assert there.chosen.mean_loss == pytest.approx(here.chosen.mean_loss, rel=1e-2)
