"""Rows as the papers chose them."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_wine

from discernel.compare.plan import Cell, Data, Method, Splits
from discernel.compare.tasks import read
from discernel.exceptions import InvalidInputError
from discernel_reproduction import tasks
from discernel_reproduction.tasks import load_split

X, Y = load_wine(return_X_y=True)
METHOD = Method("LDA", "lda")


def cell(data="wine", repetition=0, *, scaling="none", options=None, **splits):
    return Cell(Data(data, scaling, options=options or {}), METHOD, Splits(**splits), repetition)


def where(rows):
    """Return which rows of wine these are; no two of them are equal."""
    equal = (rows[:, None] == X).all(axis=2)
    assert (equal.sum(axis=1) == 1).all()
    return equal.argmax(axis=1)


def test_scaling_before_the_split_is_that_of_all_rows():
    split = load_split(cell(scaling="symmetric", options={"scaled_together": True}))
    rows = np.r_[split.X_train, split.X_test]
    np.testing.assert_allclose(rows.min(axis=0), -1.0, atol=1e-12)
    np.testing.assert_allclose(rows.max(axis=0), 1.0, atol=1e-12)
    assert (split.X_train.max(axis=0) < 1.0 - 1e-6).any()


def test_only_some_classes():
    split = load_split(cell(options={"classes": [0, 2]}))
    assert set(np.r_[split.y_train, split.y_test]) == {0, 2}
    assert len(split.y_train) + len(split.y_test) == np.isin(Y, [0, 2]).sum()


@pytest.mark.parametrize(("end", "taken"), [("first", slice(20)), ("last", slice(-20, None))])
def test_rows_of_each_class_from_one_end_are_the_same_in_all_splits(end, taken):
    expected = np.concatenate([np.flatnonzero(label == Y)[taken] for label in range(3)])
    for repetition in range(2):
        options = {"per_class": 20, "end": end}
        split = load_split(cell(repetition=repetition, options=options))
        rows = where(np.r_[split.X_train, split.X_test])
        assert sorted(rows) == expected.tolist()


def test_unknown_end():
    with pytest.raises(InvalidInputError, match="end must be one of 'first', 'last'"):
        load_split(cell(options={"per_class": 20, "end": "middle"}))


def test_classes_of_a_number_by_limits(monkeypatch):
    price = X[:, 0]
    data = replace(read(Data("wine")), y=price)
    monkeypatch.setattr(tasks, "read", lambda _: data)
    split = load_split(cell(options={"cuts": [12.5, 13.5]}))
    for rows, y in ((split.X_train, split.y_train), (split.X_test, split.y_test)):
        np.testing.assert_array_equal(y, (rows[:, 0] >= 12.5).astype(int) + (rows[:, 0] >= 13.5))


def test_unknown_class():
    with pytest.raises(InvalidInputError, match=r"must name classes of the data: \[0, 1, 2\]"):
        load_split(cell(options={"classes": [0, 7]}))


def test_some_classes_of_the_part_of_the_donor(monkeypatch):
    train = np.arange(len(Y)) % 3 == 0
    data = replace(read(Data("wine")), train=train)
    monkeypatch.setattr(tasks, "read", lambda _: data)
    split = load_split(cell(donor=True, options={"classes": [1, 2]}))
    np.testing.assert_array_equal(where(split.X_train), np.flatnonzero(train & (Y > 0)))


def test_string_labels(monkeypatch):
    names = np.array(["a", "b", "longer"])[Y]
    data = replace(read(Data("wine")), y=names)
    monkeypatch.setattr(tasks, "read", lambda _: data)
    split = load_split(cell(options={"classes": ["a", "longer"]}))
    assert set(split.y_test) == {"a", "longer"}
