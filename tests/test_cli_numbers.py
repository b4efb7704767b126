"""The command line with a target of numbers: found out, fitted, predicted, explained, exported."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

import discernel
from discernel.cli.predictions import describe_known, sum_errors
from discernel.compare.methods import NUMBER_METHODS
from discernel.compare.metrics import measure_numbers
from discernel.compare.tasks import TrainTestSplit
from tests.command_line import invoke

pytestmark = pytest.mark.usefixtures("own_folder")


def houses(n=120):
    """Return a table whose target, far from 0, depends on a number and a category."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": [f"h{i}" for i in range(n)], "size": rng.normal(size=n)})
    table["kind"] = rng.choice(["u", "v"], n)
    table["price"] = 1e6 + 10 * table["size"] + 5.0 * (table["kind"] == "u")
    table["price"] += rng.normal(0, 0.5, n)
    table.loc[5, "size"] = np.nan
    return table


@pytest.mark.parametrize("form", ["comma", "point"])
def test_numbers_are_found_out_fitted_and_predicted(form):
    table = houses()
    table.loc[3, "price"] = np.nan
    signs = {"sep": ";", "decimal": ","} if form == "comma" else {}
    table.to_csv("houses.csv", index=False, **signs)
    said = invoke("fit", "houses.csv", "--target", "price").output
    assert "predicts numbers: 'price' holds 119 distinct numbers" in said
    assert "left out 1 row without a number in 'price'" in said
    assert "R²" in said
    assert "accuracy" not in said
    assert "class" not in said
    said = invoke("predict", "houses.skops", "houses.csv", "--out", "found.csv")
    found = pd.read_csv("found.csv")
    assert list(found.columns) == ["row", "id", "predicted"]
    known = table["price"].notna()
    r2 = r2_score(table["price"][known], found["predicted"][known])
    assert f"R² {r2:.3f}, root mean squared error" in said.output
    assert "on 119 rows" in said.output
    assert r2 > 0.95


def test_every_command_takes_the_model():
    table = houses()
    table.to_csv("houses.csv", index=False)
    facts = json.loads(invoke("fit", "houses.csv", "-t", "price", "--json").stdout)
    assert facts["estimator"] == "MultipleKernelRidge"
    assert facts["classes"] == {}
    assert facts["expected"]["r2"] > 0.9
    assert "R²" in invoke("info", "houses.skops").output
    model = discernel.load("houses.skops")
    expected = model.predict(table[["size", "kind"]])
    row = json.loads(invoke("explain", "houses.skops", "houses.csv", "--row", "2", "--json").stdout)
    assert row["predicted"] == expected[1]
    assert row["probabilities"] == {}
    total = row["baseline"] + sum(row["columns"].values())
    assert total == pytest.approx(expected[1], abs=1e-6)
    assert {each["number"] for each in row["similar"]} <= set(table["price"])
    shown = invoke("explain", "houses.skops", "houses.csv", "--row", "2").output
    assert f"predicted {expected[1]:.7g}" in shown
    invoke("report", "houses.skops", "--explain", "houses.csv", "--row", "2", "--out", "page.html")
    page = Path("page.html").read_text("utf-8")
    assert "The score is the predicted number." in page
    assert "accuracy" not in page
    said = invoke("export", "houses.skops", "--to", "scorer.py").output
    assert "columns: 'size', 'kind'" in said
    assert "classes" not in said
    code = "import pandas, scorer; print(scorer.predict(pandas.read_csv('houses.csv')).tolist())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    np.testing.assert_allclose(json.loads(run.stdout), expected, rtol=1e-12)
    pytest.importorskip("skl2onnx")
    invoke("export", "houses.skops", "--to", "model.onnx")


def test_integers_are_classes_unless_numbers_are_asked_for():
    table = houses()
    table["price"] = np.digitize(table["size"], [-0.5, 0.5])
    table.to_csv("three.csv", index=False)
    said = invoke("fit", "three.csv", "-t", "price").output
    assert "predicts classes: 'price' holds 3 distinct integers" in said
    assert "accuracy" in said
    said = invoke("fit", "three.csv", "-t", "price", "--task", "numbers").output
    assert "R²" in said
    assert "accuracy" not in said


def test_many_files_are_fitted_and_predicted_in_chunks():
    table = houses(240).drop(columns="id")
    table[:150].to_csv("a.csv", index=False)
    table[150:].to_csv("b.csv", index=False)
    said = invoke("fit", "a.csv", "b.csv", "-t", "price", "--out", "many.skops").output
    assert "predicts numbers: the first rows of 'price' hold 150 distinct numbers" in said
    said = invoke("predict", "many.skops", "a.csv", "b.csv", "--out", "found.csv").output
    found = pd.read_csv("found.csv")["predicted"]
    assert f"R² {r2_score(table['price'], found):.3f}" in said
    assert "on 240 rows" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-t", "cost"], "The target must be a column of houses.csv. Got 'cost'"),
        (["-t", "kind", "--task", "numbers"], "must hold numbers. Column 'kind'"),
        (["-t", "same", "--task", "numbers"], "finite numbers that vary"),
        (["-t", "price", "--task", "classes"], "120 distinct numbers in 120 rows"),
        (["-t", "price", "--criterion", "fdr"], "Got numbers to regress on"),
    ],
)
def test_what_cannot_be_fitted_is_one_line(words, message):
    houses().assign(same=4.0).to_csv("houses.csv", index=False)
    assert message in invoke("fit", "houses.csv", *words, code=1).output


def test_a_model_of_several_targets_is_for_python():
    table = houses()
    reg = discernel.MultipleKernelRidge(criterion="uniform", regularization=1e-2)
    discernel.save(reg.fit(table[["size"]], np.column_stack([table["price"]] * 2)), "two.skops")
    table.to_csv("houses.csv", index=False)
    said = invoke("predict", "two.skops", "houses.csv", code=1).output
    assert "contains MultipleKernelRidge with 2 targets; use it in Python" in " ".join(said.split())


def test_errors_of_parts_add_up():
    rng = np.random.default_rng(0)
    y = 1e6 + rng.normal(size=100)
    found = y + 0.1 * rng.normal(size=100)
    parts = [sum_errors(found[part], y[part]) for part in np.split(np.arange(100), [10, 11, 60])]
    error = np.sqrt(np.mean((y - found) ** 2))
    expected = f"R² {r2_score(y, found):.3f}, root mean squared error {error:.4g} on 100 rows"
    assert describe_known(parts) == expected
    assert describe_known([sum_errors(found[:1], y[:1])]).startswith("root mean squared error")
    same = [sum_errors(np.arange(n), np.full(n, 0.1)) for n in (3, 7)]  # no R² without a spread
    assert describe_known(same[:1]).startswith("root mean squared error")
    assert describe_known(same).startswith("root mean squared error")
    truth = pd.Series(["1,5", "2,25", None])
    assert sum_errors(np.array([1.5, 2.0, 9.0]), truth)[:2] == (2, 0.0625)


# ---- comparisons -------------------------------------------------------------------------------


def test_methods_are_compared_by_r2_and_the_page_speaks_of_numbers():
    houses(80).to_csv("houses.csv", index=False)
    names = ["discernel", "ridge", "mean", "boosting"]
    chosen = [word for name in names for word in ("-m", name)]
    words = ["houses.csv", "-t", "price", *chosen, "--splits", "3", "-j", "1"]
    result = invoke("compare", *words, "--json", "-", "--csv", "numbers.csv")
    found = json.loads(result.stdout)
    assert found["metric"] == "r2"
    assert found["origin"]["class_counts"] == {}
    means = {each["method"]: each for each in found["methods"]}
    assert set(means) == set(names)
    assert means["discernel"]["r2"] > 0.9 > 0.1 > means["mean"]["r2"]
    assert means["discernel"]["rmse"] < means["mean"]["rmse"]
    assert "accuracy" not in means["ridge"]
    assert set(pd.read_csv("numbers.csv").columns) >= {"method", "r2", "rmse", "low", "high"}
    page = Path("discernel-results/houses.html").read_text("utf-8")
    assert "R² of always predicting the mean" in page
    assert "most frequent class" not in page
    assert "accuracy" not in page.replace("accuracies", "")
    shown = invoke("compare", *words, "--metric", "rmse").output
    assert "root mean squared error" in shown
    firsts = [line.split()[0] for line in shown.splitlines() if line.strip()]
    assert [word for word in firsts if word in names][-1] == "mean"
    invoke("compare", "wine", "-m", "LDA", "--splits", "2", "-j", "1")
    said = invoke("report", "discernel-results/results.sqlite", "-o", "all.html").output
    assert "12 results have no accuracy and are left out; see --metric r2" in said
    invoke("report", "discernel-results/results.sqlite", "-o", "all.html", "--metric", "r2")
    assert "houses" in Path("all.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--metric", "accuracy"], "holds numbers, for which the metric must be one of r2, rmse"),
        (["-m", "LDA"], "The method must be"),
        (["--rows", "10"], "at least 20 rows to compare"),
    ],
)
def test_comparisons_of_numbers_that_cannot_be_made_are_one_line(words, message):
    houses(60).to_csv("houses.csv", index=False)
    said = invoke("compare", "houses.csv", "-t", "price", *words, code=1).output
    assert message in " ".join(said.split())


@pytest.mark.parametrize("method", NUMBER_METHODS, ids=lambda method: method.name)
def test_every_method_predicts_numbers_far_from_0(method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = 1e5 + X[:, 0] + 0.1 * rng.normal(size=90)
    split = TrainTestSplit(X[:60], X[60:], y[:60], y[60:])
    result = method.run(split, dict(method.options))
    metrics = measure_numbers(y[60:], result.predictions["y_pred"])
    assert metrics["r2"] == pytest.approx(r2_score(y[60:], result.predictions["y_pred"]))
    assert metrics["r2"] > 0.7 or method.name == "mean"
