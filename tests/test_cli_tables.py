"""The command line on tables as people have them, from end to end."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from discernel.cli import app as commands
from discernel.persistence import read_model
from discernel.rows.chunks import Place
from tests.command_line import invoke

pytestmark = pytest.mark.usefixtures("own_folder", "narrow")


def frame(n=80):
    """Rows with an identifier, a name, numbers, categories, dates and missing cells."""
    rng = np.random.default_rng(0)
    ill = rng.random(n) < 0.4
    size = rng.normal(size=n) + 1.5 * ill
    return pd.DataFrame(
        {
            "patient": np.arange(1000, 1000 + n),
            "name": [f"Name {i}, Jr." for i in range(n)],
            "size": size,
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(50, 9, n)),
            "ward": np.where(rng.random(n) < 0.3 + 0.4 * ill, "north", "south"),
            "when": pd.date_range("2021-03-01", periods=n, freq="37h").strftime("%Y-%m-%d"),
            "none": np.nan,
            "ill": np.where(ill, "yes", "no"),
        }
    )


def predicted(*words, given=None):
    return pd.read_csv(io.StringIO(invoke("predict", *words, given=given).stdout))


# ---- files as people have them -----------------------------------------------------------------


@pytest.fixture(scope="module")
def model_bytes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    frame().to_csv(folder / "p.csv", index=False)
    words = ["fit", str(folder / "p.csv"), "-t", "ill", "-o", str(folder / "p.skops"), "-q"]
    assert CliRunner().invoke(commands.app, words).exit_code == 0
    return (folder / "p.skops").read_bytes()


@pytest.fixture
def model(model_bytes):
    Path("p.skops").write_bytes(model_bytes)
    return Path("p.skops")


def write(table, name, **options):
    if name.endswith(".parquet"):
        table.to_parquet(name)
    elif name.endswith(".arrow"):
        arrow = pa.Table.from_pandas(table)
        with pa.ipc.new_file(name, arrow.schema) as file:
            file.write_table(arrow)
    else:
        table.to_csv(name, index=False, **options)
    return name


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("p.csv", {}),
        ("p.csv", {"sep": ";", "decimal": ","}),
        ("p.csv", {"encoding": "utf-8-sig"}),
        ("p.tsv", {"sep": "\t", "decimal": ","}),
        ("p.csv", {"sep": "|"}),
        ("p.parquet", {}),
        ("p.arrow", {}),
    ],
)
def test_every_way_to_write_a_table_gives_the_same_model(model, name, options):
    reference = predicted(model, write(frame(), "plain.csv"))
    shown = invoke("fit", write(frame(), name, **options), "-t", "ill", "-o", "q.skops").output
    assert "2 numbers, 1 category, 1 date, 3 left out" in " ".join(shown.split())
    found = predicted("q.skops", name)
    assert found["predicted"].equals(reference["predicted"])
    np.testing.assert_allclose(found["probability_yes"], reference["probability_yes"], rtol=1e-9)
    # And the model of the first file takes the others.
    same = predicted(model, name)
    np.testing.assert_allclose(same["probability_yes"], reference["probability_yes"], rtol=1e-9)


def test_a_fit_says_what_it_found(model):
    shown = invoke("fit", write(frame(), "p.csv", sep=";", decimal=","), "-t", "ill").output
    words = " ".join(shown.split())
    assert "CSV, delimiter ';', decimal ','; 2 numbers, 1 category, 1 date" in words
    assert "patient: numbers the rows" in words
    assert "none: no value at all" in words
    assert "'when' is treated as dates: days, year, month, weekday" not in words  # one year
    assert "'when' is treated as dates: days, month, weekday" in words
    assert all(len(line.rstrip()) <= 80 for line in shown.splitlines() if "model: " not in line)


def test_a_file_without_names_is_fitted_and_predicted():
    table = frame()[["size", "age", "ill"]].fillna(0.0)
    table.to_csv("t.csv", index=False, header=False)
    invoke("fit", "t.csv", "-t", "3", "-o", "t.skops")
    whole = predicted("t.skops", "t.csv")
    table[["size", "age"]].to_csv("new.csv", index=False, header=False)
    pd.testing.assert_frame_equal(predicted("t.skops", "new.csv"), whole)
    table[["size"]].assign(more="x").assign(yet=1).assign(four=2).to_csv(
        "odd.csv", index=False, header=False
    )
    assert "line 1 must hold column names" in invoke("predict", "t.skops", "odd.csv", code=1).stderr


# ---- new rows ----------------------------------------------------------------------------------


def test_identifiers_and_kept_columns_are_handed_on(model):
    frame().assign(patient=[f"00{i}" for i in range(80)]).to_csv("new.csv", index=False)
    lines = invoke("predict", model, "new.csv", "--keep", "ward").stdout.splitlines()
    assert lines[0] == "row,patient,name,ward,predicted,probability_no,probability_yes"
    assert lines[1].startswith('1,000,"Name 0, Jr.",')
    error = invoke("predict", model, "new.csv", "--keep", "town", code=1).stderr
    assert "The columns of --keep must be columns of new.csv. Got 'town'" in error
    clash = write(frame().assign(predicted=1), "clash.csv")
    error = invoke("predict", model, clash, "--keep", "predicted", code=1).stderr
    assert "must not have the name of an output column. Got 'predicted'" in error


def test_probabilities_are_exact(model):
    name = write(frame(), "p.csv")
    loaded = read_model(model)
    rows = loaded.schema.convert(pd.read_csv(name), Place.of_file(name))
    expected = loaded.pipeline.predict_proba(rows)
    lines = invoke("predict", model, name, "--json").stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [[row["probability_no"], row["probability_yes"]] for row in found] == expected.tolist()
    assert found[0]["patient"] == "1000"
    table = predicted(model, name)
    np.testing.assert_array_equal(table[["probability_no", "probability_yes"]], expected)
    for file in ("o.jsonl", "o.parquet", "o.csv"):
        invoke("predict", model, name, "-o", file)
    assert Path("o.jsonl").read_text().splitlines() == lines
    np.testing.assert_array_equal(pd.read_parquet("o.parquet").iloc[:, -2:], expected)
    assert list(pd.read_parquet("o.parquet").columns) == list(table.columns)


def test_columns_may_be_in_another_order_and_must_be_there(model):
    name = write(frame(), "p.csv")
    mixed = write(frame()[frame().columns[::-1]].assign(more=1), "mixed.csv")
    pd.testing.assert_frame_equal(
        predicted(model, mixed)[["predicted", "probability_yes"]],
        predicted(model, name)[["predicted", "probability_yes"]],
    )
    error = invoke("predict", model, write(frame().drop(columns="age"), "n.csv"), code=1).stderr
    assert "must have the columns that the model was fitted to. Missing: 'age'" in error


def test_categories_that_are_new_are_said_and_are_other_values(model):
    result = invoke("predict", model, write(frame().assign(ward="west"), "new.csv"))
    assert "note: 'ward' has values that were not in training: 'west'" in result.stderr
    numbers = write(frame().assign(ward=7), "new.csv")  # text in training
    assert (
        "'ward' has values that were not in training: '7'"
        in invoke("predict", model, numbers).stderr
    )
    rare = frame().assign(ward=["20-29", *frame()["ward"][1:]])
    invoke("fit", write(rare, "rare.csv"), "-t", "ill", "-o", "rare.skops")
    assert "not in training" not in invoke("predict", "rare.skops", "rare.csv").stderr
    assert "20-29" in invoke("predict", model, "rare.csv").stderr
    everything = write(frame().assign(age=np.nan, ward=np.nan, when=None), "new.csv")
    assert len(predicted(model, everything)) == 80


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"age": "old"}, "column 'age' must hold numbers. Got 'old' in row 1"),
        ({"age": np.inf}, "column 'age' has inf in row 1 of"),
        (
            {"when": "soon"},
            "must hold dates in the format of the training rows, such as 2024-01-31. Got 'soon'",
        ),
    ],
)
def test_rows_that_do_not_fit_are_one_line(model, change, words):
    (line,) = invoke(
        "predict", model, write(frame().assign(**change), "new.csv"), code=1
    ).stderr.splitlines()
    assert words in line


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.arrow"])
def test_rows_may_come_from_standard_input(model, name):
    write(frame(), name)
    content = Path(name).read_bytes()
    expected = predicted(model, name)
    pd.testing.assert_frame_equal(predicted(model, "-", given=content), expected)
    invoke("fit", "-", "-t", "ill", "-o", "q.skops", given=content)
    found = predicted("q.skops", name)
    np.testing.assert_allclose(found["probability_yes"], expected["probability_yes"], rtol=1e-9)
    assert read_model("q.skops").origin.source.startswith("standard input")


def test_empty_input_is_one_line(model):
    error = invoke("predict", model, "-", code=1, given=b"").stderr
    assert "standard input.csv must not be empty. Got 0 bytes" in error
    error = invoke("predict", model, "-", code=1, given=b"size,age,ward,when\n").stderr
    assert "must have rows to predict. Got none" in error


def test_a_pipe_works():
    write(frame(), "p.csv")
    fit = [sys.executable, "-m", "discernel", "fit", "p.csv", "-t", "ill", "-q"]
    assert subprocess.run(fit).returncode == 0
    predict = [sys.executable, "-m", "discernel", "predict", "p.skops", "-", "-q"]
    with Path("p.csv").open("rb") as file:
        found = subprocess.run(predict, stdin=file, capture_output=True, text=True)
    assert found.returncode == 0
    assert len(found.stdout.splitlines()) == 81
    assert found.stderr == ""


# ---- uncomfortable tables ----------------------------------------------------------------------


def test_one_column_is_one():
    rows = frame()[["size", "ill"]]
    shown = invoke("fit", write(rows, "t.csv"), "-t", "ill", "-o", "t.skops").output
    assert "80 rows, 1 column, 2 classes" in shown
    assert "1 number" in shown
    assert len(predicted("t.skops", "t.csv")) == 80


def test_a_class_may_be_called_like_a_formula():
    rows = frame()[["size", "ill"]].replace({"yes": "=1+1"})
    invoke("fit", write(rows, "t.csv"), "-t", "ill", "-o", "t.skops")
    text = invoke("predict", "t.skops", "t.csv").stdout
    assert text.splitlines()[0] == "row,predicted,probability_=1+1,probability_no"
    assert re.search(r"^\d+,'=1\+1,", text, re.MULTILINE)
    found = invoke("predict", "t.skops", "t.csv", "--json").stdout
    assert '"predicted": "=1+1"' in found


def test_a_class_of_two_rows_is_fitted():
    rows = frame()[["size", "age", "ill"]]
    rows.loc[[3, 40], "ill"] = "rare"
    shown = invoke("fit", write(rows, "t.csv"), "-t", "ill", "-o", "t.skops").output
    assert "rare: 2 (2 %)" in shown
    assert "probability_rare" in predicted("t.skops", "t.csv").columns


def test_rows_without_a_class_are_left_out_and_can_be_predicted():
    rows = frame()[["size", "age", "ill"]]
    rows.loc[:9, "ill"] = None
    shown = invoke("fit", write(rows, "t.csv"), "-t", "ill", "-o", "t.skops").output
    assert "left out 10 rows without a class in 'ill'" in shown
    result = invoke("predict", "t.skops", "t.csv")
    assert len(result.stdout.splitlines()) == 81
    assert "on 70 rows" in result.stderr


def test_other_criteria_take_tables_too():
    write(frame(), "p.csv")
    for criterion in ("uniform", "rkda"):
        shown = invoke("fit", "p.csv", "-t", "ill", "--criterion", criterion, "-o", "q.skops")
        assert len(predicted("q.skops", "p.csv")) == 80
        assert "certificate" in shown.output
    assert "No other weights of these kernels improve the criterion rkda" in " ".join(
        shown.output.split()
    )


# ---- help --------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "predict", "info"])
def test_help_has_examples_and_exit_codes(command):
    shown = invoke(command, "--help").output
    assert f"discernel {command}" in shown
    assert "Exit codes: 0 success" in " ".join(shown.split())
    assert "BOOL" not in shown.upper()


def test_names_of_criteria_are_listed_and_others_refused():
    from typing import get_args

    from discernel.cli.fitting import Criteria
    from discernel.criteria import CRITERIA

    assert set(get_args(Criteria)) == set(CRITERIA)
    assert "rkda" in invoke("fit", "--help").output
    assert "separability" in invoke("fit", "iris", "--criterion", "best", code=2).stderr


def test_words_can_be_completed():
    assert "--install-completion" in invoke("--help").output
