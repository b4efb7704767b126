"""Contributions in plain lines."""

import re

import numpy as np
import pandas as pd
import pytest

from discernel import KernelDiscriminant, MultipleKernelDiscriminant, MultipleKernelRidge
from discernel.exceptions import InvalidInputError
from discernel.inspection import contributions, explain_in_words
from discernel.inspection.words import cell_text, score_text
from discernel.kernels import RBF
from tests.inspection.test_contributions import VIEWS, make_rows, make_table


def numbers(text):
    """Return the score, the baseline and what is added, as they are said."""
    first, *rest = text.split("\n")
    added = re.findall(r"(?:: |, )([+-][\d.e-]+)", "\n".join(rest))
    return float(first.split()[1]), float(first.split()[-1]), [float(each) for each in added]


def test_lines_are_few_and_add_up():
    X, y = make_table()
    clf = MultipleKernelDiscriminant().fit(X, y)
    found = contributions(clf, X[:30])
    for row in range(30):
        text = explain_in_words(found, row, n=2)
        assert 2 <= len(text.split("\n")) <= 4
        predicted = clf.predict(X[row : row + 1])[0]
        assert text.startswith("log-odds ")
        assert f"for '{predicted}'; typical row: " in text
        score, start, added = numbers(text)
        assert score >= 0
        assert score == pytest.approx(start + sum(added), abs=0.05, rel=0.02)


def test_the_cells_of_the_row_are_named():
    X, y = make_table()
    X.loc[0, "dose"] = np.nan
    found = contributions(MultipleKernelDiscriminant().fit(X, y), X[:1])
    text = explain_in_words(found, 0, n=9)
    assert "dose=missing" in text
    assert f"colour={X['colour'][0]}" in text
    assert "other" not in text


def test_a_model_that_tells_nothing_says_so():
    rng = np.random.default_rng(1)
    clf = KernelDiscriminant(RBF(gamma=50.0)).fit(rng.normal(size=(60, 3)), np.arange(60) % 2)
    found = contributions(clf, rng.normal(size=(1, 3)))
    assert not found.columns.any()
    assert explain_in_words(found).endswith("no column changes it")


def test_more_classes_numbers_and_matrices():
    X, y = make_rows(n_classes=3)
    text = explain_in_words(contributions(KernelDiscriminant(RBF()).fit(X, y), X[:1]))
    assert re.match(r"score [\d.]+ for class [012]; typical row: ", text)
    assert "all other columns: " in explain_in_words(
        contributions(KernelDiscriminant(RBF()).fit(X, y), X[:1]), n=1
    )
    reg = MultipleKernelRidge(VIEWS).fit(X, X[:, 0])
    assert re.match(
        r"prediction [\d.-]+; typical row: ", explain_in_words(contributions(reg, X[:1]))
    )
    stack = np.stack([RBF(gamma=0.1)(X), RBF(gamma=1.0)(X)], axis=-1)
    clf = MultipleKernelDiscriminant("precomputed", criterion="uniform").fit(stack, y)
    assert "from matrix 0" in explain_in_words(contributions(clf, stack[:1]))
    with pytest.raises(InvalidInputError, match="one of 0 to 0"):
        explain_in_words(contributions(reg, X[:1]), 1)


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (71, "71"),
        (0.123456, "0.1235"),
        (None, "missing"),
        (np.nan, "missing"),
        (True, "True"),
        (pd.NA, "missing"),
    ],
)
def test_cells_are_short(cell, text):
    assert cell_text(cell) == text
    assert len(cell_text("x" * 100)) == 24


def test_scores_have_three_digits():
    texts = [score_text(value) for value in (0.12345, 12.345, 999.4, 999.6, 1234.5)]
    assert texts == ["0.123", "12.3", "999", "1000", "1234"]
