"""Models with kernels of every kind of source, written to a file and read again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose

from discernel import MultipleKernelDiscriminant, load, save
from discernel.kernels import (
    RBF,
    ChiSquared,
    Intersection,
    Jaccard,
    Lookup,
    Matching,
    NGram,
    Spectrum,
    Standardized,
    Tanimoto,
    WhereKnown,
)


def patients(n: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    rng, y = np.random.default_rng(0), np.arange(n) % 2
    table = pd.DataFrame(
        {
            "age": rng.normal(size=n) + y,
            "calls": rng.poisson(1.0, n),
            "visits": rng.poisson(2.0 + y, n),
            "note": np.where(y, "chest pain", "broken leg"),
            "tags": np.where(y, "smoker;diver", "climber"),
            "id": [f"m{i}" for i in range(n)],
        }
    )
    table.loc[::4, "note"], table.loc[1::4, "age"] = None, np.nan
    return table, y


def test_a_model_of_many_sources_is_the_same_after_saving(tmp_path: Path) -> None:
    table, y = patients()
    matrix = np.cov(np.random.default_rng(1).normal(size=(60, 80)))
    counts = ["calls", "visits"]
    kernels = {
        "age": WhereKnown(Standardized(RBF())).on("age"),
        "chi": ChiSquared().on(counts),
        "shares": Intersection().on(counts),
        "tanimoto": Tanimoto().on(counts),
        "note": WhereKnown(NGram()).on("note"),
        "pieces": WhereKnown(Spectrum(2)).on("note"),
        "tags": Jaccard(separator=";").on("tags"),
        "words": Matching().on(["note", "tags"]),
        "molecule": Lookup(matrix, keys=table["id"]).on("id"),
    }
    clf = MultipleKernelDiscriminant(kernels, criterion="uniform").fit(table, y)
    read = load(save(clf, tmp_path / "model.skops"))
    assert read.kernels_ == clf.kernels_
    assert_allclose(read.predict_proba(table), clf.predict_proba(table), rtol=1e-12)
