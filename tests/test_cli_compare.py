"""`discernel compare`: what it shows, and what other programs read of it."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from discernel.cli import shared
from discernel.compare.methods import METHODS
from discernel.compare.metrics import METRICS
from tests.command_line import invoke
from tests.test_model_report import rows
from tests.test_report import Page

FAST = ["-m", "LDA", "-m", "majority", "-m", "logistic", "--splits", "3", "--jobs", "1"]


pytestmark = pytest.mark.usefixtures("own_folder", "narrow")


def test_all_metrics_stand_beside_the_one_that_is_ranked():
    shown = invoke("compare", "wdbc", *FAST).output
    header = next(line for line in shown.splitlines() if line.startswith("method"))
    names = ["method", "acc. %", "95 % interval", "bal. %", "AUC", "log-loss", "fit", "verdict"]
    assert re.split(r"\s{2,}", header.strip()) == names
    assert re.search(r"majority +\d\d\.\d +\d\d\.\d to \d\d\.\d +50\.0 +0\.500 +0\.6", shown)
    assert "Clearly worse: majority." in " ".join(shown.split())


def test_the_metric_that_is_asked_for_ranks():
    shown = invoke("compare", "wdbc", *FAST, "--metric", "log-loss").output
    header = next(line for line in shown.splitlines() if line.startswith("method"))
    assert header.split()[1] == "log-loss"
    ranked = re.findall(r"^(logistic|LDA|majority) +(\d\.\d{3}) ", shown, re.MULTILINE)
    losses = [float(loss) for _, loss in ranked]
    assert losses == sorted(losses)
    assert ranked[-1][0] == "majority"
    assert "has the best log-loss" in shown or "clearly better" in shown


@pytest.mark.parametrize("metric", METRICS)
def test_no_line_is_wider_than_80_columns_whatever_the_metric(metric):
    shown = invoke("compare", "iris", *FAST, "--metric", metric).output
    lines = [line for line in shown.splitlines() if not line.startswith("report:")]
    assert max(map(len, lines)) <= 80
    assert "…" not in shown


def test_long_verdicts_cost_a_metric_not_their_ends(monkeypatch):
    monkeypatch.setattr(shared.out, "width", 72)
    shown = invoke("compare", "iris", *FAST).output
    header = next(line for line in shown.splitlines() if line.startswith("method"))
    assert "AUC" not in header
    assert {"bal.", "log-loss", "verdict"} < set(header.split())
    assert "…" not in header


def test_columns_that_matter_are_shown_with_their_spread(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{a + 3 * (i % 2)},{b},{i % 2}" for i, (a, b) in enumerate(rng.normal(size=(60, 2)))]
    (tmp_path / "a.csv").write_text("\n".join(["size,noise,class", *lines]))
    shown = invoke("compare", "a.csv", "-m", "auto", "--splits", 2, "-j", 1).output
    assert "columns that matter to discernel" in shown
    assert re.search(r"size +\d+\.\d ± \d+\.\d %  █+", shown)
    assert "columns that matter" not in invoke("compare", "a.csv", *FAST).output


# ---- for other programs ------------------------------------------------------------------------


def test_json_has_all_numbers_and_where_they_come_from(monkeypatch):
    monkeypatch.setattr("sys.argv", ["discernel", "compare", "iris", "--json", "-"])
    result = invoke("compare", "iris", *FAST, "--json", "-")
    found = json.loads(result.stdout)
    assert "report:" in result.stderr
    assert found["metric"] == "accuracy"
    assert [len(method["values"]) for method in found["methods"]] == [3, 3, 3]
    assert {method["method"] for method in found["methods"]} == {"LDA", "majority", "logistic"}
    for method in found["methods"]:
        assert method["accuracy"] == pytest.approx(np.mean(method["values"]))
        assert set(METRICS) < set(method)
    assert found["origin"]["class_counts"] == {"0": 50, "1": 50, "2": 50}
    assert found["origin"]["command"] == "discernel compare iris --json -"
    assert found["conclusion"][0].startswith("On iris")


def test_csv_has_a_row_per_method_and_quiet_says_nothing():
    result = invoke("compare", "iris", *FAST, "--csv", "a.csv", "--json", "a.json", "--quiet")
    assert result.stdout == result.stderr == ""
    rows = list(csv.DictReader(io.StringIO(Path("a.csv").read_text())))
    numbers = {each["method"]: each for each in json.loads(Path("a.json").read_text())["methods"]}
    assert [row["method"] for row in rows] == list(numbers)
    for row in rows:
        assert float(row["log_loss"]) == numbers[row["method"]]["log_loss"]
        assert row["verdict"] == numbers[row["method"]]["verdict"]
    assert Path("discernel-results/iris.html").is_file()
    assert invoke("compare", "iris", *FAST, "--csv", "-", "-q").stdout == Path("a.csv").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--metric", "f1"], "The metric must be one of 'accuracy', 'balanced_accuracy'"),
        (["--json", "no/where.json"], "The json must be a file in an existing folder"),
        (["--json", "a.html", "--report", "a.html"], "must be different files"),
        (["-m", "svm"], "The method must be one of 'discernel'"),
    ],
)
def test_what_cannot_work_is_refused_before_any_work(words, message):
    assert message in invoke("compare", "iris", *words, code=1).stderr
    assert not Path("discernel-results").exists()


# ---- report ------------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path, own_folder):
    rng = np.random.default_rng(0)
    lines = [f"{a + 3 * (i % 2):.3f},{'uv'[i % 3 % 2]},{['no', 'yes'][i % 2]}"
             for i, a in enumerate(rng.normal(size=60))]  # fmt: skip
    (tmp_path / "a.csv").write_text("\n".join(["size,kind,ill", *lines]))
    invoke("fit", "a.csv", "-t", "ill", "--out", "a.skops", "--quiet")
    return tmp_path / "a.skops"


def test_a_model_has_a_page_that_can_be_traced_with_rows_explained(model):
    shown = invoke("report", model, "--explain", "a.csv", "--row", 2, "--row", 5).output
    assert shown == f"report: {model.with_suffix('.html')}\n"
    page = Page(model.with_suffix(".html").read_text(encoding="utf-8"))
    text = page.all("main")[0]["text"]
    for fact in ("a.csv", "row 2: predicted", "row 5: predicted", "Columns that matter"):
        assert fact in text
    assert page.all("h1")[0]["text"] == "a: a model that predicts ill"
    found = [row for row in rows(page, "rows") if len(row) == 3 and row[2] == ""]
    numbers = [float(row[1].replace("−", "-")) for row in found]
    names = [row[0] for row in found]
    end = names.index("score of the row")
    assert sum(numbers[:end]) == pytest.approx(numbers[end], abs=0.003)


def test_results_may_be_judged_by_another_metric():
    invoke("compare", "iris", *FAST, "-q")
    invoke("report", "discernel-results/results.sqlite", "--metric", "log_loss", "-o", "a.html")
    text = Path("a.html").read_text(encoding="utf-8")
    assert "for log-loss, the metric of the verdicts; lower is better" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.skops", "--row", "1"], "--row needs --explain DATA"),
        (["a.skops", "--explain", "a.csv", "--row", "99"], "A row must be one of 1 to 60. Got 99."),
        (
            ["a.csv", "--explain", "a.csv"],
            "a.csv is not a model. Omit these options, or name a model.",
        ),
        (["none.skops"], "The file must be an existing model or file of results."),
    ],
)
@pytest.mark.usefixtures("model")
def test_reports_that_cannot_be_made_say_what_to_do(words, message):
    assert message in invoke("report", *words, code=1).stderr


# ---- help --------------------------------------------------------------------------------------


def test_help_lists_the_names_that_options_take(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = " ".join(re.sub(r"[│╭╮╰╯─]", " ", invoke("compare", "--help").output).split())
    for name in [*METRICS, *(method.name for method in METHODS)]:
        assert name in shown


@pytest.mark.parametrize("command", [[], ["compare"], ["report"], ["fit"], ["predict"], ["info"]])
def test_help_shows_no_types_beside_words_without_a_value(monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "120")
    shown = invoke(*command, "--help").output
    assert "--help" in shown
    assert "<bool>" not in shown
