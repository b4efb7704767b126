"""`discernel explain`: what adds up to a score, in words and as JSON."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from discernel.cli.learning import read_rows
from discernel.persistence import read_model
from tests.command_line import invoke

pytestmark = pytest.mark.usefixtures("own_folder", "narrow")


def explained(*words):
    return [json.loads(line) for line in invoke("explain", *words, "--json").stdout.splitlines()]


def frame(n_classes=2, n=90):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    table = pd.DataFrame(
        {
            "id": np.arange(n),
            "size": rng.normal(size=n) + 1.5 * y,
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "ward": np.where(rng.random(n) < 0.3 + 0.2 * y, "north", "south"),
            "when": pd.date_range("2021-03-01", periods=n).strftime("%d.%m.%Y"),
        }
    )
    return table.assign(kind=[f"kind {label}" for label in y])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("criterion", ["auto", "uniform"])
def test_columns_add_up_to_the_score(n_classes, criterion):
    frame(n_classes).to_csv("t.csv", index=False)
    invoke("fit", "t.csv", "-t", "kind", "--criterion", criterion, "-q")
    model = read_model("t.skops")
    rows = read_rows(model, "t.csv")
    scores = model.pipeline.decision_function(rows.X)
    labels, shares = model.pipeline.predict(rows.X), model.pipeline.predict_proba(rows.X)
    found = explained("t.skops", "t.csv")
    assert len(found) == 90
    for i, each in enumerate(found):
        if n_classes == 2:
            expected = scores[i] if labels[i] == model.pipeline.classes_[1] else -scores[i]
        else:
            expected = scores[i].max() - scores[i].mean()
        assert each["score"] == pytest.approx(expected, abs=1e-9)
        for parts in (each["columns"], each["sources"]):
            total = each["baseline"] + sum(parts.values())
            assert total == pytest.approx(each["score"], abs=1e-9)
        assert list(each["columns"]) == list(model.schema.columns)
        assert each["predicted"] == labels[i]
        assert list(each["probabilities"].values()) == shares[i].tolist()
        assert each["identifiers"] == {"id": str(i)}
        # The rows are those of training: each says more for itself than most others do.
        speaks = {"for": [], "against": []}
        for row in each["similar"]:
            speaks[row["speaks"]].append(row)
            assert row["class"] == frame(n_classes)["kind"][row["training_row"] - 1]
            assert (row["support"] > 0) == (row["speaks"] == "for")
        assert 1 <= len(speaks["for"]) <= 5
        assert len(speaks["against"]) <= 2
        if n_classes == 2:
            assert speaks["for"][0]["class"] == each["predicted"]
        pushes = [row["support"] for row in speaks["for"]]
        assert pushes == sorted(pushes, reverse=True)


def test_rows_are_shown_with_their_cells():
    frame().to_csv("t.csv", index=False)
    invoke("fit", "t.csv", "-t", "kind", "-q")
    shown = invoke("explain", "t.skops", "t.csv", "--row", "2", "-r", "7", "--similar", "2").output
    named = re.findall(r"^row (\d+), id (\d+): predicted kind \d", shown, re.MULTILINE)
    assert named == [("2", "1"), ("7", "6")]
    assert "when = 2021-03-02" in shown
    (one,) = explained("t.skops", "t.csv", "--row", "2")
    added = f"{one['columns']['size']:+.3f}".replace("-", "−")
    assert re.search(rf"size = {one['cells']['size']:.4g} +{re.escape(added)} ", shown)
    label, share = one["predicted"], 100 * one["probabilities"][one["predicted"]]
    assert f"Probabilities: {label} {share:.1f} %" in shown
    assert f"The score is the log-odds of {label!r}." in shown
    score = f"{one['score']:+.3f}".replace("-", "−")
    assert re.search(rf"score of the row +{re.escape(score)}", shown)
    assert shown.count("similar training rows that support kind") == 2
    assert all(len(line.rstrip()) <= 80 for line in shown.splitlines())
    first = invoke("explain", "t.skops", "t.csv").output
    assert first.count(": predicted kind") == 3
    assert "The first 3 of 90 rows; --row N for others." in first
    assert "training rows" not in invoke("explain", "t.skops", "t.csv", "--similar", "0").output


def test_without_rows_importances_are_shown():
    frame().to_csv("t.csv", index=False)
    invoke("fit", "t.csv", "-t", "kind", "-q")
    shown = invoke("explain", "t.skops").output
    clf = read_model("t.skops").pipeline[-1]
    share, spread = 100 * clf.feature_importances_[0], 100 * clf.feature_importances_std_[0]
    assert re.search(rf"size +{share:.1f} ± {spread:.1f} %", shown)
    found = json.loads(invoke("explain", "t.skops", "--json").stdout)
    assert found["importances"][0]["column"] == "size"


def test_sources_have_importances_with_spread_and_contributions():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    views = {"left": rng.normal(size=(120, 3)) + y[:, None], "noise": rng.normal(size=(120, 2))}
    np.savez("v.npz", y=y, **views)
    invoke("fit", "v.npz", "-q")
    shown = invoke("explain", "v.skops").output
    assert re.search(r"left +\d+\.\d ± \d+\.\d % +[01]\.\d+", shown)
    left, noise = json.loads(invoke("explain", "v.skops", "--json").stdout)["sources"]
    assert left["importance"] > 0.9 > 0.1 > noise["importance"]
    assert (
        "contributions to the score of row 1, by source"
        in invoke("explain", "v.skops", "v.npz", "-r", "1").output
    )
    (one,) = explained("v.skops", "v.npz", "-r", "1")
    assert list(one["sources"]) == ["left", "noise"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["t.csv", "--row", "91"], "A row must be one of 1 to 90. Got 91."),
        (["--row", "1"], "--row needs DATA. Name a file"),
        (["none.csv"], "does not exist"),
    ],
)
def test_what_cannot_be_explained_is_one_line(words, message):
    frame().to_csv("t.csv", index=False)
    invoke("fit", "t.csv", "-t", "kind", "--criterion", "uniform", "-q")
    (line,) = invoke("explain", "t.skops", *words, code=1).stderr.splitlines()
    assert message in line


def test_importances_of_encoded_columns_are_those_of_their_column():
    frame().to_csv("t.csv", index=False)
    invoke("fit", "t.csv", "-t", "kind", "--criterion", "uniform", "-q")
    shown = json.loads(invoke("explain", "t.skops", "--json").stdout)["importances"]
    model = read_model("t.skops")
    assert {each["column"] for each in shown} == set(model.schema.columns)
    assert sum(each["importance"] for each in shown) == pytest.approx(1.0)
    assert "columns that matter" in invoke("explain", "t.skops").output
