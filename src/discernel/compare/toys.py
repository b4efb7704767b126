"""Synthetic data sets for the demonstration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discernel.rows.datasets import Dataset


def few_columns() -> Dataset:
    """Return 700 rows of 20 columns, four of which jointly determine two classes.

    The classes are the inside and the outside of a circle in two columns, whose size depends on
    the product of two others. No column is informative on its own.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 20))
    score = 2.2 - X[:, 2] ** 2 - X[:, 5] ** 2 + 1.5 * X[:, 9] * X[:, 14]
    y = np.where(score + 0.5 * rng.standard_normal(700) > 0, "inside", "outside")
    names = tuple(f"noise {i}" for i in range(20))
    deciding = {2: "width", 5: "height", 9: "charge", 14: "field"}
    names = tuple(deciding.get(i, name) for i, name in enumerate(names))
    return Dataset("few_columns", X, y, names, "4 of 20 columns decide, together", "made here")


def clinic() -> Dataset:
    """Return 600 synthetic patients: numbers, categories and missing cells."""
    import pandas as pd

    rng = np.random.default_rng(0)
    n = 600
    age, bmi = rng.normal(55, 14, n), rng.normal(26, 4, n)
    smoker, ward = rng.random(n) < 0.3, rng.choice(["north", "east", "west"], n, p=[0.5, 0.3, 0.2])
    marker, pressure = rng.gamma(2.0, 1.0, n), rng.normal(130, 15, n)
    risk = 0.05 * (age - 55) + 1.2 * smoker + 1.0 * (ward == "east") - 0.8 * (ward == "west")
    risk += 1.5 * np.cos(1.8 * marker) + 0.004 * (bmi - 26) * (pressure - 130)
    y = np.where(risk + 0.6 * rng.standard_normal(n) > 0.4, "ill", "well")
    table = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, age.round()),
            "bmi": bmi.round(1),
            "pressure": np.where(rng.random(n) < 0.2, np.nan, pressure.round()),
            "marker": marker.round(2),
            "smoker": smoker,
            "ward": pd.Series(ward, dtype=object).where(rng.random(n) > 0.05),
            "doctor": rng.choice(list("ABCDEFGH"), n),
        }
    )
    columns = tuple(table.columns)
    return Dataset("clinic", table, y, columns, "Numbers, categories, missing cells", "made here")


def steps() -> Dataset:
    """Return 800 rows of three classes that a decision tree of depth four separates without error.

    Steps along single columns suit trees and do not suit kernels.
    """
    rng = np.random.default_rng(1)
    X = np.round(rng.uniform(size=(800, 6)), 2)
    leaves = np.zeros(len(X), dtype=np.intp)
    for level in range(4):
        columns = rng.integers(X.shape[1], size=2**level)
        cuts = rng.uniform(0.3, 0.7, size=2**level)
        leaves = 2 * leaves + (X[np.arange(len(X)), columns[leaves]] > cuts[leaves])
    y = np.array(["red", "green", "blue"])[rng.permutation(np.arange(16) % 3)[leaves]]
    names = tuple(f"x{i}" for i in range(X.shape[1]))
    return Dataset("steps", X, y, names, "Classes of a decision tree", "made here")


#: The functions that make the data sets, by name.
TOYS: dict[str, Callable[[], Dataset]] = {
    "few_columns": few_columns,
    "clinic": clinic,
    "steps": steps,
}
