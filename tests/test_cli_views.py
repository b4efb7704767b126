"""Several sources on the command line, from files to predictions."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from discernel.export import to_onnx
from discernel.export._scorer import Scorer
from discernel.persistence import read_model
from discernel.rows.chunks import Place
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


# ---- dates ---------------------------------------------------------------------------------


@pytest.fixture
def _visits(tmp_path):
    """A table whose outcome depends on the date; as text, the dates are all different."""
    rng = np.random.default_rng(1)
    when = pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 700, N + NEW), "D")
    late = when > pd.Timestamp("2022-02-01")
    table = pd.DataFrame({"lab_0": rng.normal(size=N + NEW), "visit": when.strftime("%d.%m.%Y")})
    table["outcome"] = np.where(late, "resists", "yields")
    table.loc[::9, "visit"] = None
    table[:N].to_csv("train.csv", index=False)
    table[N:].to_csv("new.csv", index=False)
    text = "[sources.lab]\ncolumns = ['lab_0']\n[sources.visit]\ncolumns = ['visit']\n"
    (tmp_path / "views.toml").write_text(text)


@pytest.mark.usefixtures("_visits")
@pytest.mark.parametrize("kernels", ["", "kernels = ['rbf']"])
def test_dates_of_a_source_are_numbers_as_in_every_fit(tmp_path, kernels):
    with (tmp_path / "views.toml").open("a") as file:
        file.write(kernels)
    told = fit("--out", "model.skops").output
    parts = "days, year, month, weekday"
    assert f"'visit' is treated as dates: {parts}" in " ".join(told.split())
    ordinary = invoke("fit", "train.csv", "-t", "outcome", "-o", "plain.skops").output
    assert f"'visit' is treated as dates: {parts}" in " ".join(ordinary.split())
    model = read_model("model.skops")
    assert model.schema.kinds == {"lab_0": "number", "visit": "31.01.2024"}
    assert model.columns == ["lab_0", *["visit"] * 4]
    out = invoke("predict", "model.skops", "new.csv", "-q").stdout
    found = [row["predicted"] for row in csv.DictReader(io.StringIO(out))]
    new = pd.read_csv("new.csv")
    known = new["visit"].notna()
    assert np.mean((np.array(found) == new["outcome"])[known]) > 0.85
    [row] = [
        json.loads(line)
        for line in invoke(
            "explain", "model.skops", "new.csv", "-r", "2", "--json"
        ).stdout.splitlines()
    ]
    assert "2021-" in json.dumps(row) or "2022-" in json.dumps(row)
    for bad in ("31.31.2022", "soon"):
        new.assign(visit=bad).to_csv("bad.csv", index=False)
        assert (
            "must hold dates in the format"
            in invoke("predict", "model.skops", "bad.csv", code=1).output
        )


@pytest.mark.usefixtures("_visits")
def test_dates_are_text_for_kernels_of_text(tmp_path):
    with (tmp_path / "views.toml").open("a") as file:
        file.write("kernels = ['ngram']")
    assert "treated as dates" not in fit("--out", "model.skops").output
    assert read_model("model.skops").schema.kinds["visit"] == "category"


@pytest.mark.usefixtures("_visits")
def test_a_model_with_dates_in_a_source_is_exported():
    pytest.importorskip("skl2onnx")
    pytest.importorskip("onnxruntime")
    fit("--out", "model.skops", "-q")
    told = invoke("export", "model.skops", "--to", "model.py").output
    assert "columns: 'lab_0', 'visit (days)', 'visit (year)', 'visit (month)'" in told
    assert "note: compute 'visit (days)'" in told
    model, scorer = read_model("model.skops"), Scorer.load("model.npz")
    X = model.schema.convert(pd.read_csv("new.csv"), Place.of_file("new.csv"))
    given = model.pipeline[0].transform(X)
    expected = model.pipeline.predict_proba(X)
    np.testing.assert_allclose(scorer.predict_proba(given), expected, atol=1e-9)
    onnx = to_onnx(model.pipeline, X)  # compares what the graph predicts
    assert len(onnx.graph.input) == 1
