"""Plans are plain data, and a key stands for what is run, no more and no less."""

import json
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from discernel.compare.plan import Cell, Data, Method, Plan, Splits, plain
from discernel.exceptions import InvalidInputError

OPTIONS = {"criterion": "rkda", "regularization": 1.0, "kernels": [["RBF", {"width": 2.5}]]}
CELL = Cell(
    Data("wine", options={"rows": 100, "classes": [0, 1]}),
    Method("ours", "discriminant", OPTIONS),
    Splits(n=10, train_size=0.7, seed=3),
    repetition=2,
)


def with_options(**options):
    return replace(CELL, method=replace(CELL.method, options=options))


# ---- keys ------------------------------------------------------------------------------------


def test_key_is_fixed():
    """A change of this key makes every store there is forget what it has."""
    assert Cell(Data("wine"), Method("LDA", "lda"), Splits(), 0).key == "58307403eedb2fcc0913f020"


@pytest.mark.parametrize(
    "same",
    [
        replace(CELL, method=replace(CELL.method, name="another name")),
        replace(CELL, splits=replace(CELL.splits, n=500)),
        with_options(**dict(reversed(OPTIONS.items()))),
        with_options(**OPTIONS | {"regularization": 1}),
        with_options(**OPTIONS | {"regularization": np.float64(1.0)}),
        with_options(**OPTIONS | {"regularization": np.int32(1)}),
        with_options(**OPTIONS | {"kernels": (("RBF", {"width": 2.5}),)}),
        with_options(**OPTIONS | {"kernels": [["RBF", MappingProxyType({"width": 2.5})]]}),
        replace(CELL, data=replace(CELL.data, options={"classes": np.arange(2), "rows": 100.0})),
    ],
    ids=["name", "n", "order", "int", "float64", "int32", "tuple", "mapping", "array"],
)
def test_key_does_not_depend_on_spelling(same):
    assert same.key == CELL.key


@pytest.mark.parametrize(
    "other",
    [
        replace(CELL, repetition=3),
        replace(CELL, method=replace(CELL.method, kind="lda")),
        with_options(**OPTIONS | {"regularization": 1.0000000000000002}),
        with_options(**OPTIONS | {"regularization": True}),
        with_options(**OPTIONS | {"regularization": "1"}),
        with_options(**OPTIONS | {"regularization": None}),
        with_options(**OPTIONS | {"tol": 1e-8}),
        with_options(**OPTIONS | {"kernels": [["RBF", {"width": 2.0}]]}),
        *(replace(CELL, data=replace(CELL.data, **change)) for change in (
            {"name": "iris"}, {"scaling": "none"}, {"file": {"path": "a.csv"}}, {"options": {}},
            {"options": {"rows": 101, "classes": [0, 1]}},
            {"options": {"rows": 100, "classes": [1, 0, 2]}},
        )),
        *(replace(CELL, splits=replace(CELL.splits, **change)) for change in (
            {"train_size": 0.8}, {"train_size": 7}, {"stratify": False}, {"folds": 5},
            {"donor": True}, {"seed": 4},
        )),
    ],
)  # fmt: skip
def test_key_changes_with_what_changes_the_result(other):
    assert other.key != CELL.key


def test_keys_of_a_plan_differ():
    methods = (Method("a", "lda"), Method("b", "lda", {"shrinkage": 0.5}))
    plan = Plan("p", (Data("wine"), Data("iris")), methods, Splits(n=20, folds=5))
    assert len({cell.key for cell in plan.cells()}) == len(plan.cells()) == 2 * 2 * 100


def test_first_splits_stay_the_same_when_there_are_more():
    plan = Plan("p", (Data("wine"), Data("iris")), (Method("a", "lda"),), Splits(n=3))
    more = replace(plan, splits=replace(plan.splits, n=5))
    assert [cell.key for cell in plan.cells()] == [cell.key for cell in more.cells()][:6]


# ---- JSON ------------------------------------------------------------------------------------


def test_a_plan_is_plain_data():
    plan = plain(Plan("p", (CELL.data, Data("iris", "minmax")), (CELL.method,), CELL.splits))
    assert json.loads(json.dumps(plan)) == plan
    assert plan["splits"]["train_size"] == 0.7
    assert plan["datasets"][1]["scaling"] == "minmax"


def test_numbers_of_numpy_become_plain():
    options = plain({"priors": np.array([0.5, 0.5]), "n": np.int64(2)})
    assert json.loads(json.dumps(options)) == {"priors": [0.5, 0.5], "n": 2}


# ---- what cannot work ------------------------------------------------------------------------


@pytest.mark.parametrize("value", [{1: 2}, {1, 2}, object(), lambda x: x, b"x", 1j])
def test_options_that_are_not_plain(value):
    with pytest.raises(InvalidInputError, match="Options must be plain data"):
        Method("a", "lda", {"option": value})
    with pytest.raises(InvalidInputError, match="Options must be plain data"):
        Data("wine", options={"option": [value]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "at least one split and at least one training row"),
        ({"train_size": 0.0}, "at least one split and at least one training row"),
        ({"train_size": float("nan")}, "at least one split and at least one training row"),
        ({"train_size": 2.5}, "a fraction below 1 or an integer number of rows"),
        ({"folds": 1}, "folds must be None or at least 2"),
        ({"folds": 0}, "folds must be None or at least 2"),
        ({"folds": 5, "donor": True}, "None if donor is True"),
        ({"seed": -1}, "seed must be from 0"),
    ],
)
def test_splits_that_cannot_be_made(options, message):
    with pytest.raises(InvalidInputError, match=message):
        Splits(**options)


def test_unknown_scaling():
    with pytest.raises(InvalidInputError, match=r"The scaling must be one of .* Got 'standrd'"):
        Data("wine", "standrd")


@pytest.mark.parametrize(
    ("datasets", "methods"),
    [((), (Method("a", "lda"),)), ((Data("wine"),), ()), ((Data("wine"),), (CELL.method,) * 2)],
)
def test_plans_that_are_none(datasets, methods):
    with pytest.raises(InvalidInputError, match="methods of different names"):
        Plan("p", datasets, methods)
