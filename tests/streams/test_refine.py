"""A metric of more rows: gradients are right, columns that matter together are found."""

import numpy as np
import pytest

from discernel import MultipleKernelDiscriminant, open_rows
from discernel.arrays.sample_weights import SampleWeights
from discernel.bank import gram_stack
from discernel.default import scaled_kernels
from discernel.discriminant import row_losses
from discernel.kernels.features import NystromMap
from discernel.learn.refine import Refinement, divide_rows
from discernel.targets import ClassTarget, RegressionTarget


def together(n, seed=0):
    """Return rows whose class depends on a product of two columns; others matter not at all."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    score = 3.0 * np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2]
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-score))).astype(int)


def test_gradients_are_those_of_finite_differences():
    X, _ = together(80)
    spreads = tuple(np.linspace(0.5, 2.0, 8).tolist())
    kernels = scaled_kernels(np.linspace(0.2, 1.0, 8), spreads, X / spreads)
    features = NystromMap(kernels, np.linspace(0.1, 1.2, 12), X[:30])
    coef = np.random.default_rng(0).normal(size=(features.rank, 2))
    found, step = features.kernel.squared_gradient(X[30:], coef, features.landmarks), 1e-6

    def f(rows):
        stack = gram_stack(features.kernel.kernels, np.vstack([rows, features.landmarks]))
        cross = stack[:, : len(rows), len(rows) :]
        return np.tensordot(features.kernel.coefficients, cross, 1) @ coef

    for column in range(8):
        moved = np.zeros(8)
        moved[column] = step
        slope = (f(X[30:] + moved) - f(X[30:] - moved)) / (2 * step)
        assert np.isclose(found[column], np.mean(np.sum(slope**2, axis=1)), rtol=1e-4)


def test_columns_that_matter_together_are_found(monkeypatch):
    monkeypatch.setattr("discernel.learn.refine._LANDMARKS", 300)
    X, y = together(6000)
    fitted, held = (ClassTarget.from_labels(part) for part in (y[:4000], y[4000:]))
    weights = np.full(12, 1 / 12)
    ones = np.ones(8)
    scales = Refinement(X, fitted, held, (1.0,) * 8, weights).search(ones, ones)
    assert set(np.argsort(-scales)[:2]) == {0, 1}
    assert scales[3:].max() < 0.25
    noise = np.random.default_rng(0).integers(0, 2, 6000)
    fitted, held = (ClassTarget.from_labels(part) for part in (noise[:4000], noise[4000:]))
    assert Refinement(X, fitted, held, (1.0,) * 8, weights).search(ones, ones) is None


def test_the_units_of_columns_change_no_scale():
    X, y = together(600)
    units = np.array([1e-3, 10.0, 0.5, 1.0, 7.0, 1e4, 2.0, 0.1])
    fitted, held = (ClassTarget.from_labels(part) for part in (y[:400], y[400:]))
    weights, ones = np.full(12, 1 / 12), np.ones(8)
    spreads = tuple(units.tolist())
    expected = Refinement(X, fitted, held, (1.0,) * 8, weights).fit(ones).gradient
    found = Refinement(X * units, fitted, held, spreads, weights).fit(ones).gradient
    assert np.allclose(found, expected, rtol=1e-5)


def test_held_out_rows_choose_λ_by_their_weights(monkeypatch):
    monkeypatch.setattr("discernel.learn.refine._LANDMARKS", 100)
    X, _ = together(900)
    y = X[:, 0].copy()
    y[600::3] *= -1.0  # wrong
    weighted = SampleWeights.of(np.where(np.arange(300) % 3 == 0, 0.1, 1.0))
    losses = []

    def spy(predicted, truth, target):
        found = row_losses(predicted, truth, target)
        losses.append(found[0])
        return found

    monkeypatch.setattr("discernel.learn.refine.row_losses", spy)
    fitted, held = (
        RegressionTarget.from_values(*part) for part in ((y[:600],), (y[600:], weighted))
    )
    weights, ones = np.full(12, 1 / 12), np.ones(8)
    found = Refinement(X, fitted, held, (1.0,) * 8, weights).fit(ones)
    means = np.array(losses) @ weighted.shares
    assert means.argmin() != np.mean(losses, axis=1).argmin()
    np.testing.assert_array_equal(found.losses, losses[means.argmin()])


def test_few_rows_are_left_to_the_default():
    assert divide_rows(5000) is None
    fitted, held = divide_rows(6000)
    assert len(fitted) == 4000
    assert np.array_equal(np.concatenate([fitted, held]), np.arange(6000))


@pytest.mark.parametrize("refining", [True, False])
def test_the_stream_is_honest_about_rows_that_had_a_part(refining, monkeypatch):
    monkeypatch.setattr("discernel.learn.refine._LANDMARKS", 300)
    monkeypatch.setattr("discernel.kernels.features._LANDMARKS", 400)
    if not refining:
        monkeypatch.setattr("discernel.learn.chunks.divide_rows", lambda n: None)
    X, y = together(8000)
    clf = MultipleKernelDiscriminant().fit(open_rows(X, y))
    involved = clf.model_.stream.state.survey.sample.involved
    assert np.count_nonzero(involved) == (int(8000 * 2 / 3) if refining else 1500)
    assert clf.expected_.n_rows == 8000 - np.count_nonzero(involved)
    new, truth = together(4000, seed=1)
    accuracy = clf.score(new, truth)
    assert clf.expected_.low - 0.015 < accuracy < clf.expected_.high + 0.015
    assert np.isclose(clf.feature_importances_.sum(), 1.0)
    if refining:
        assert set(np.argsort(-clf.feature_importances_)[:2]) == {0, 1}
