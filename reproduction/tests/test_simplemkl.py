"""The protocol of SimpleMKL: its kernels, and its page, which is that of the record."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from discernel.compare.runner import run_cell
from discernel.compare.store import Record
from discernel_reproduction.kernels import make_kernels
from discernel_reproduction.methods import PAPERS
from discernel_reproduction.simplemkl import PLAN, RECALLED, markdown, summarize

ROOT = Path(__file__).parent.parent
#: Variables of the data sets, and kernels of the protocol.
SIZES = {"bupa": (6, 91), "pima": (8, 117), "ionosphere": (33, 442), "sonar": (60, 793)}


@pytest.mark.parametrize(("n_variables", "n_kernels"), SIZES.values())
def test_there_are_thirteen_kernels_on_all_and_on_each_variable(n_variables, n_kernels):
    X = np.random.default_rng(0).normal(size=(5, n_variables))
    kernels = make_kernels(PLAN.methods[0].options["kernels"], SimpleNamespace(X_train=X))
    assert len(kernels) == n_kernels
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(kernels[1](X), np.exp(-squared / 2.0))  # σ = 1
    np.testing.assert_allclose(kernels[12](X), (1.0 + X @ X.T) ** 3)
    first = X[:, :1]
    np.testing.assert_allclose(kernels[13 + 11](X), (1.0 + first @ first.T) ** 2)


def test_cells_are_run_and_summarized():
    """On iris, for which no data are needed."""
    data = replace(PLAN.datasets[0], name="iris", options={"rows": 60})
    plan = replace(PLAN, datasets=(data,), splits=replace(PLAN.splits, n=2, stratify=True))
    records = [Record(*run_cell(cell, PAPERS), {}, "") for cell in plan.cells()]
    assert [record.result.error for record in records] == [None] * len(records)
    records = [
        replace(record, cell=replace(record.cell, data=replace(data, name="bupa")))
        for record in records
    ]
    found = summarize(records)["bupa"]
    assert list(found) == [method.name for method in PLAN.methods]
    assert found["rkda"]["kernels"] < found["RKDA(norm=2)"]["kernels"] <= 13 * 5
    assert found["equal weights"]["kernels"] == 13 * 5
    assert all(each["accuracy"] > 85 and each["splits"] == 2 for each in found.values())


def test_the_page_is_that_of_the_record():
    record = json.loads((ROOT / "records" / "simplemkl.json").read_text(encoding="utf-8"))
    results = record["results"]
    assert list(results) == list(RECALLED)
    for row in results.values():
        assert all(each["splits"] == record["settings"]["splits"] for each in row.values())
    assert (ROOT / "docs" / "simplemkl.md").read_text(encoding="utf-8") == markdown(results)
