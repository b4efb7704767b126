"""Five data sets and the models that are exported: fitted once, predicted by all."""

import os
import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discernel import KernelDiscriminant, MultipleKernelDiscriminant, MultipleKernelRidge
from discernel.bank import LowRank
from discernel.exceptions import LowRankWarning
from discernel.kernels import (
    RBF,
    Cosine,
    Exponential,
    Laplace,
    Linear,
    Polynomial,
    Standardized,
    WhereKnown,
)
from discernel.tables import TableEncoder


class Case(NamedTuple):
    """A fitted model and rows, of which it has seen some."""

    model: Any
    rows: Any


def mixed_table(n_rows=240, seed=0):
    """Return a table of numbers, categories and missing cells, and labels of text."""
    rng = np.random.default_rng(seed)
    age, income = rng.normal(40, 12, n_rows), rng.lognormal(10, 0.5, n_rows)
    colour = rng.choice(["red", "green", "blue"], n_rows, p=[0.5, 0.3, 0.2]).astype(object)
    score = (age - 40) / 12 + 1.5 * (colour == "red") + rng.normal(0, 0.5, n_rows)
    y = np.where(score > 0.8, "yes", "no")
    age[rng.random(n_rows) < 0.2] = np.nan
    colour[rng.random(n_rows) < 0.1] = None
    table = pd.DataFrame({"age": age, "income": income, "colour": colour})
    table["size class"] = pd.Categorical(rng.integers(1, 4, n_rows))
    table["same"] = "one value"
    table["member"] = rng.random(n_rows) < 0.5
    return table, y


@cache
def wine():
    X, y = load_wine(return_X_y=True)
    return Case(MultipleKernelDiscriminant().fit(X[::2], y[::2]), X)


@cache
def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    labels = np.array(["malignant", "benign"])[y]
    clf = MultipleKernelDiscriminant([RBF(), Laplace(), Linear()], threshold=0.3)
    return Case(make_pipeline(StandardScaler(), clf).fit(X[:300], labels[:300]), X)


@cache
def digits():
    X, y = load_digits(return_X_y=True)
    clf = MultipleKernelDiscriminant(bank=LowRank(300))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowRankWarning)  # how good the model is does not matter
        return Case(clf.fit(X[:500], y[:500]), X[:700])


@cache
def table():
    X, y = mixed_table()
    return Case(MultipleKernelDiscriminant(class_costs={"yes": 2.0}).fit(X[:160], y[:160]), X)


@cache
def views():
    X, y = load_wine(return_X_y=True)
    kernels = {
        "taste": RBF().on([0, 1, 2]),
        "colour": Standardized(Laplace()).on([9, 10]),
        "rest": 0.5 * Exponential().on([3, 4, 5]) + Linear().on([12]) * RBF().on([7]),
        "angle": Cosine().on([5, 6, 7, 8]),
    }
    return Case(MultipleKernelDiscriminant(kernels, criterion="uniform").fit(X[::2], y[::2]), X)


@cache
def lacking(**options):
    """Return a model of sources that some rows lack, and rows of which some lack other cells."""
    X, y = load_wine(return_X_y=True)
    X, rng = X.copy(), np.random.default_rng(0)
    X[np.ix_(rng.random(len(X)) < 0.3, [0, 1, 2])] = np.nan
    X[np.ix_(rng.random(len(X)) < 0.3, [9, 10])] = np.nan
    X[5:20, 1] = np.nan  # one cell of a source
    kernels = {
        "taste": 0.5 * WhereKnown(Standardized(RBF())).on([0, 1, 2]),
        "colour": WhereKnown(Laplace() + Linear()).on([9, 10]),
        "rest": RBF().on([3, 4, 5]),
    }
    clf = MultipleKernelDiscriminant(kernels, criterion="uniform", **options)
    return Case(clf.fit(X[::2], y[::2]), X)


@cache
def numbers(kind):
    """Return a model of one or several numbers, and rows of which it has seen some."""
    X, y = load_diabetes(return_X_y=True)
    if kind == "table":
        X, _ = mixed_table()
        y = X["income"] / 1e4 + 2.0 * (X["colour"] == "red")
        return Case(MultipleKernelRidge().fit(X[:160], y[:160]), X)
    if kind == "far":
        return Case(MultipleKernelRidge().fit(X[:150], 1e6 + y[:150] / 100), X)
    if kind == "low rank":
        reg = MultipleKernelRidge(bank=LowRank(100), regularization=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LowRankWarning)
            return Case(reg.fit(X[:300], y[:300]), X)
    if kind == "one column":
        return Case(MultipleKernelRidge().fit(X[:150, 2:3], y[:150]), X[:, 2:3])
    several = np.column_stack([y, 1e-3 * X[:, 2] * y, X[:, 0] ** 2])
    reg = MultipleKernelRidge([RBF(), Linear(), Laplace().on([2, 3])], criterion="rkda")
    return Case(make_pipeline(StandardScaler(), reg).fit(X[:150], several[:150]), X)


@cache
def encoded(scaler):
    """Return a pipeline of a table encoder, a scaler and kernels, as the command line fits."""
    X, y = mixed_table()
    X["when"] = pd.date_range("2021-11-03 06:30", periods=len(X), freq="37h")
    X.loc[::11, "when"] = pd.NaT
    clf = MultipleKernelDiscriminant([RBF(), Linear()], criterion="uniform")
    return Case(make_pipeline(TableEncoder(), scaler, clf).fit(X[:160], y[:160]), X)


#: Models of numbers; "several" is a pipeline with three targets.
NUMBERS = ("table", "far", "low rank", "one column", "several")


#: Five data sets: exact, in a pipeline, of low rank, a table, several sources.
CASES = {case.__wrapped__.__name__: case for case in (wine, breast_cancer, digits, table, views)}


#: Tables with categories and missing cells that others collected.
OTHERS = ("colic", "adult", "german")


@cache
def other_table(name):
    """Return a model of a part of such a table; skip where it is absent."""
    path = Path(os.environ.get("DISCERNEL_DATA", ".")) / "tables" / f"{name}.csv.gz"
    if not path.is_file():
        pytest.skip("DISCERNEL_DATA names no folder with this table")
    rows = pd.read_csv(path)[:400]
    y = rows.pop(rows.columns[-1]).astype(str)
    return Case(MultipleKernelDiscriminant().fit(rows[:250], y[:250]), rows)


@cache
def single(kernel, **options):
    """Return a model of one kernel."""
    X, y = load_wine(return_X_y=True)
    return Case(KernelDiscriminant(kernel, **options).fit(X[::3], y[::3] * 2 - 1), X)


#: Kernels, each of which must be written as the same function.
KERNELS = [
    RBF(),
    RBF(length_scale=3.0, scales=[0.1] * 12 + [0.0]),
    Laplace(),
    Exponential("median"),
    Linear(),
    Polynomial(3, gamma=1e-3),
    Cosine(),
    Standardized(RBF(gamma=0.1)),
    Standardized(Polynomial(2, gamma=0.1)).on([1, 3, 5]),
    RBF().on([12]),
    RBF(width=3e4),  # nearly constant: digits are lost but for care
    2.0 * (RBF() + Laplace().on([0, 1])) * (Standardized(Linear()) + Cosine()),
    (3.0 * Linear().named("plain")).on([0, 2]),
    (Standardized(Linear()) + 1.0) ** 2,
    2.0 * (RBF().on([0, 1]) + 0.5) ** 3 + Cosine() ** 2 + 0.1,
]
