"""The picture of one prediction."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from discernel import KernelDiscriminant, MultipleKernelDiscriminant, MultipleKernelRidge
from discernel.displays import ContributionsDisplay
from discernel.exceptions import InvalidInputError
from discernel.inspection import contributions
from discernel.kernels import RBF
from tests.inspection.test_contributions import VIEWS, make_rows, make_table

mpl.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    mpl.pyplot.close("all")


def texts(display):
    return [label.get_text().replace("\n", " ") for label in display.ax_.get_yticklabels()]


def test_bars_lead_from_the_baseline_to_the_score():
    X, y = make_table()
    clf = MultipleKernelDiscriminant().fit(X, y)
    display = ContributionsDisplay.from_estimator(clf, X[4:5])
    found = contributions(clf, X[4:5])
    sign = 1 if found.scores[0, 0] > 0 else -1
    widths = np.array([bar.get_width() for bar in display.bars_])
    starts = np.array([bar.get_x() for bar in display.bars_])
    np.testing.assert_allclose(starts[0], sign * found.baseline[0])
    np.testing.assert_allclose(starts[1:], (starts + widths)[:-1])
    np.testing.assert_allclose((starts + widths)[-1], sign * found.scores[0, 0])
    assert (np.diff(np.abs(widths)) <= 0).all()
    assert texts(display)[0] == "typical row"
    assert texts(display)[-1] == "this row"
    assert f"colour = {X['colour'][4]}" in texts(display)
    assert display.ax_.get_xlabel() == f"log-odds for '{clf.predict(X[4:5])[0]}'"


def test_a_class_sources_and_few_bars():
    X, y = make_rows(n_classes=3)
    clf = MultipleKernelDiscriminant(VIEWS, criterion="uniform").fit(X, y)
    found = contributions(clf, X[:3])
    display = ContributionsDisplay(found, row=2, label=1).plot(n_bars=2)
    assert display.score == found.scores[2, 1]
    assert texts(display)[3] == "3 other columns"
    np.testing.assert_allclose(
        sum(bar.get_width() for bar in display.bars_), display.score - display.baseline
    )
    display = ContributionsDisplay.from_estimator(clf, X[0], by="sources", background=X)
    assert texts(display) == ["mean of the background", *display_order(display), "this row"]
    assert set(display_order(display)) == {"first", "rest"}
    groups = {"a": [0], "b": [1, 2, 3, 4]}
    display = ContributionsDisplay.from_estimator(clf, X[0], groups=groups)
    assert set(display_order(display)) == {"a", "b"}


def display_order(display):
    order = np.argsort(-np.abs(display.values))
    return [display.names[i] for i in order]


def test_a_row_may_be_a_series_and_a_score_a_number():
    X, _ = make_rows()
    frame = pd.DataFrame(X, columns=list("abcde"))
    reg = MultipleKernelRidge(VIEWS).fit(frame, X[:, 0])
    display = ContributionsDisplay.from_estimator(reg, frame.iloc[3])
    np.testing.assert_allclose(display.score, reg.predict(frame[3:4])[0])
    assert display.ax_.get_xlabel() == "prediction"


def test_what_cannot_be_drawn_says_so():
    X, y = make_rows()
    clf = KernelDiscriminant(RBF()).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"X must have one row. Got 2. Pass X\[:1\]"):
        ContributionsDisplay.from_estimator(clf, X[:2])
    with pytest.raises(InvalidInputError, match="class must be one of"):
        ContributionsDisplay.from_estimator(clf, X[:1], label="other")
    with pytest.raises(InvalidInputError, match="by"):
        ContributionsDisplay.from_estimator(clf, X[:1], by="kernels")
    with pytest.raises(InvalidInputError, match="n_bars must be"):
        ContributionsDisplay.from_estimator(clf, X[:1], n_bars=0)
    gram = RBF(gamma=0.1)(X)
    clf = KernelDiscriminant("precomputed").fit(gram, y)
    with pytest.raises(InvalidInputError, match="use by='sources'"):
        ContributionsDisplay.from_estimator(clf, gram[:1], by="columns")
    assert texts(ContributionsDisplay.from_estimator(clf, gram[:1]))[0] == "baseline"
