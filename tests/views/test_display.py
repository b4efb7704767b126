"""The picture of sources, kernels and weights."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine

mpl.use("Agg")
import matplotlib.pyplot as plt

from discernel import MultipleKernelDiscriminant
from discernel.displays import SourcesDisplay
from discernel.exceptions import InvalidInputError
from discernel.views import source_kernels, source_weights, weights_spread

SOURCES = {"acids": [1, 2, 3], "phenols": [5, 6, 7, 8]}


@pytest.fixture(autouse=True)
def _close() -> Any:
    yield
    plt.close("all")


def labels(display: SourcesDisplay) -> list[str]:
    return [text.get_text() for text in display.ax_.get_yticklabels()]


def widths(display: SourcesDisplay) -> list[float]:
    return [bar.get_width() for bar in display.bars_]


def test_sources_come_by_weight_and_their_kernels_below_them() -> None:
    weights = [0.1, 0.2, 0.5, 0.2]
    names = ["a: RBF", "a: Linear", "b: RBF", "Linear on b"]
    display = SourcesDisplay(weights, ["a", "a", "b", "b"], kernel_names=names).plot()
    assert labels(display) == ["b", "RBF", "Linear", "a", "Linear", "RBF"]
    assert_allclose(widths(display), [0.7, 0.5, 0.2, 0.3, 0.2, 0.1])
    assert display.spread_ is None


def test_small_kernels_of_a_source_share_a_bar() -> None:
    display = SourcesDisplay([0.4, 0.3, 0.2, 0.1], ["a"] * 4).plot(max_kernels=2)
    assert labels(display) == ["a", "kernel 0", "kernel 1", "2 others"]
    assert_allclose(widths(display), [1.0, 0.4, 0.3, 0.3])
    display = SourcesDisplay([0.4, 0.3, 0.2, 0.1], ["a"] * 4).plot(max_kernels=3)
    assert "others" not in " ".join(labels(display))


def test_fits_have_a_spread() -> None:
    X, y = load_wine(return_X_y=True)
    clf = MultipleKernelDiscriminant(source_kernels(SOURCES, table=X))
    spread = weights_spread(clf, X, y, cv=3)
    display = SourcesDisplay.from_estimators(spread.estimators)
    first = labels(display)[0]
    assert_allclose(widths(display)[0], spread.mean[first])
    (left, _), (right, _) = display.spread_.get_segments()[0]
    assert_allclose([left, right], spread.mean[first] + spread.std[first] * np.array([-1, 1]))
    assert "mean of 3 fits" in display.ax_.get_xlabel()
    one = SourcesDisplay.from_estimator(spread.estimators[0])
    assert_allclose(widths(one)[0], max(source_weights(spread.estimators[0]).values()))


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda: SourcesDisplay(np.ones((1, 2, 3)), ["a"]), "weights must have the shape"),
        (lambda: SourcesDisplay([0.5, 0.5], ["a"]), r"one source per kernel, here 2. Got \['a'\]"),
        (lambda: SourcesDisplay([1.0], ["a"]).plot(max_kernels=0), "max_kernels must be"),
        (lambda: SourcesDisplay.from_estimators([]), "at least one estimator"),
    ],
)
def test_errors_say_what_to_do(work: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        work()
