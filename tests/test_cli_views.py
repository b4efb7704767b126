"""Several sources on the command line, from files to predictions."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from discernel.persistence import read_model
from discernel.views import source_weights
from tests.command_line import invoke

N, NEW = 90, 30
VIEWS = """
[sources.lab]
columns = ["lab_*"]

[sources.sequence]
file = "sequences.csv"
key = "sample"
columns = ["promoter"]
kernels = [{kind = "spectrum", k = 4}]

[sources.note]
columns = ["note"]

[sources.drug]
columns = ["drug"]
kernels = [{kind = "lookup", file = "similar.csv"}]
"""


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    first, second = rng.random((2, N + NEW)) < 0.5
    table = pd.DataFrame(rng.normal(size=(N + NEW, 2)), columns=["lab_0", "lab_1"])
    table["lab_0"] += 3.0 * first
    table["sample"] = np.arange(N + NEW)
    table["note"] = [
        f"bed {i}: {'had' if was else 'never had'} pills" for i, was in enumerate(second)
    ]
    table["drug"] = rng.integers(1, 4, N + NEW)
    table["outcome"] = np.where(first | second, "resists", "yields")
    table.loc[::7, "note"] = None
    table[:N].to_csv("train.csv", index=False)
    table[N:].to_csv("new.csv", index=False)
    genes = ["".join(rng.choice(list("ACGT"), 12)) for _ in range(N + NEW)]
    sequences = pd.DataFrame({"sample": np.arange(float(N + NEW)), "promoter": genes})
    sequences[::-1][:-10].to_csv("sequences.csv", index=False)
    similar = pd.DataFrame(np.eye(3) + 0.5, columns=[1, 2, 3], index=[1, 2, 3])
    similar.to_csv("similar.csv")
    (tmp_path / "views.toml").write_text(VIEWS)


def fit(*words, code=0):
    return invoke("fit", "train.csv", "--views", "views.toml", "-t", "outcome", *words, code=code)


def test_sources_of_several_files_become_a_model_that_predicts():
    told = fit("--out", "model.skops").output
    assert "4 sources: lab, sequence, note, drug" in told
    model = read_model("model.skops")
    assert list(source_weights(model.pipeline)) == ["lab", "sequence", "note", "drug"]
    assert model.origin.columns["sample"] == "not in a source"
    assert model.origin.columns["lab_0"] == "source lab"
    out = invoke("predict", "model.skops", "new.csv", "--views", "views.toml", "-q").stdout
    rows = list(csv.DictReader(io.StringIO(out)))
    truth = pd.read_csv("new.csv")["outcome"].tolist()
    right = [row["predicted"] == true for row, true in zip(rows, truth, strict=True)]
    assert np.mean(right) > 0.7


def test_rows_are_explained_by_source():
    fit("--out", "model.skops", "-q")
    words = ("explain", "model.skops", "new.csv", "--views", "views.toml", "--row", "1", "--json")
    [row] = [json.loads(line) for line in invoke(*words).stdout.splitlines()]
    assert "note" in json.dumps(row)


def test_without_the_files_of_sources_the_error_says_where_to_name_them():
    fit("--out", "model.skops", "-q")
    told = invoke("predict", "model.skops", "new.csv", code=1).output
    assert "no column 'sequence[promoter]', which came from a separate file" in told
    assert "--views FILE" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--drop", "lab_0"), "without --drop, --categorical and --numeric"),
        (("--scheduler", "tcp://host:1"), "--views needs a single data file"),
    ],
)
def test_words_that_do_not_go_with_views(words, message):
    assert message in fit(*words, code=1).output


def test_a_target_that_is_in_a_source_is_refused(tmp_path):
    (tmp_path / "views.toml").write_text("[sources.all]\ncolumns = ['*']\n")
    assert "the target 'outcome' must not be a column of a source" in fit(code=1).output


def test_a_mistake_in_the_file_is_one_line_that_names_it(tmp_path):
    (tmp_path / "views.toml").write_text("[sources.a]\ncolumns = ['lab_*']\nkernel = 'rbf'\n")
    assert "views.toml, line 3: sources.a.kernel is unknown" in fit(code=1).output
