"""The command line as users meet it."""

import csv
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import discernel
from discernel import MultipleKernelDiscriminant
from discernel.bank import LowRank
from discernel.cli import app as commands
from discernel.cli import demonstrating, main, replace_missing_characters, shared
from discernel.cli.learning import Learner, fit_model, read_rows
from discernel.cli.show_comparing import show_comparison
from discernel.compare.compare import Comparison, comparison_plan
from discernel.compare.plan import Cell, Data, Method, Splits
from discernel.compare.runner import Summary
from discernel.compare.store import Record, Result
from discernel.datasets import load
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Linear
from discernel.learn import Candidate
from discernel.persistence import read_model, write_model
from discernel.rows.labelled import digest
from discernel.show.terminal import print_blocks
from tests.command_line import invoke

FAST = ["--method", "LDA", "--method", "plain average", "--splits", "2", "--jobs", "1"]


pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def table(tmp_path):
    """A file with a column of text, a missing value and a column that counts the rows."""
    rng = np.random.default_rng(0)
    rows = [["id", "size", "weight", "colour", "species"]]
    for i in range(40):
        size, weight = rng.normal(size=2) + 3.0 * (i % 2)
        rows.append([i, size, "" if i == 7 else weight, "red" if i % 3 else "blue", "ab"[i % 2]])
    path = tmp_path / "plants.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


CLEAN = ["--target", "species", "--drop", "id"]


def run(*words, code=0):
    found = subprocess.run(
        [sys.executable, "-m", "discernel", *map(str, words)], capture_output=True, text=True
    )
    assert found.returncode == code, found.stderr
    assert "Traceback" not in found.stderr
    return found


# ---- as a process ------------------------------------------------------------------------------


def test_the_version_is_said():
    assert run("--version").stdout == f"discernel {discernel.__version__}\n"


def test_a_comparison_ends_with_the_path_of_its_report():
    last = run("compare", "iris", *FAST).stdout.splitlines()[-1]
    page = Path(last.removeprefix("report: "))
    assert page == Path("discernel-results/iris.html").resolve()
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_an_interruption_says_how_to_go_on_and_loses_nothing():
    words = [sys.executable, "-m", "discernel", "compare", "wine", "--jobs", "1"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    store = Path("discernel-results/results.sqlite")
    deadline = time.monotonic() + 60
    while _n_finished(store) < 2 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert f"Interrupted. Run the same command again to continue from {store}." in errors
    assert "Traceback" not in errors
    assert _n_finished(store) >= 2


def _n_finished(store):
    if not store.is_file():
        return 0
    connection = sqlite3.connect(store)
    try:
        return connection.execute("SELECT count(*) FROM cells").fetchone()[0]
    except sqlite3.OperationalError:  # the table is not there yet
        return 0
    finally:
        connection.close()


# ---- manners -----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_an_output_without_our_characters_is_written_in_others(encoding, monkeypatch, table):
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    words = ["fit", str(table), "-o", "m.skops", *CLEAN]
    command = [sys.executable, "-m", "discernel", *words]
    found = subprocess.run(command, capture_output=True, check=False)
    shown = found.stdout.decode(encoding)
    assert found.returncode == 0, found.stderr
    assert "##" in shown
    assert "<- chosen" in shown
    assert ("±" if encoding == "cp1252" else "+/-") in shown


def test_characters_of_users_are_written_as_json_has_them():
    stream = io.TextIOWrapper(io.BytesIO(), "ascii")
    replace_missing_characters(stream, None)
    stream.write(json.dumps({"Zürich": "😀 → λ"}, ensure_ascii=False))
    stream.seek(0)
    assert json.loads(stream.read()) == {"Zürich": "😀 -> lambda"}


def test_wrong_usage_ends_with_2():
    assert "--nonsense" in invoke("compare", "--nonsense", code=2).stderr


def test_without_its_extra_the_command_line_says_so_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit, match=r"needs typer and rich.*pip install '\.\[app\]'"):
        main()


# ---- compare and report ------------------------------------------------------------------------


def test_a_users_file_is_compared_from_end_to_end(table):
    shown = invoke("compare", table, *CLEAN, *FAST).output
    assert "plants  40 rows, 3 features, 2 classes; from file plants.csv" in shown
    assert "CSV, delimiter ',', decimal '.'; 2 numbers, 1 category; 1 cell missing" in shown
    assert re.search(r"LDA +\d+\.\d +\d+\.\d to \d+\.\d", shown)
    assert "On plants" in shown
    assert Path("discernel-results/plants.html").is_file()


def test_a_second_comparison_finds_what_was_run_and_a_report_needs_no_plan():
    invoke("compare", "iris", *FAST)
    store = Path("discernel-results/results.sqlite")
    before = _n_finished(store)
    invoke("compare", "iris", *FAST)
    assert _n_finished(store) == before == 4
    shown = invoke("report", store, "-o", "all.html").output
    assert shown == f"report: {Path('all.html').resolve()}\n"
    assert "plain average" in Path("all.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compare", "none.csv"], "The data must be a file. 'none.csv' does not exist."),
        (["compare", "data/none"], "Got 'data/none'. Files end with"),
        (["compare", "wein"], "Did you mean 'wine'?"),
        (["compare", "wine", "--target", "y"], "--numeric need a file. There is no file 'wine'"),
        (["compare", "wine", "--method", "svm"], "The method must be one of 'discernel'"),
        (
            ["compare", "wine", "--train-size", "2"],
            "must be between 0 and 1, such as 0.8. Got 2.0.",
        ),
        (["compare", "plants.csv"], "The target must be named: plants.csv has 'id', 'size'"),
        (["compare", "plants.csv", "-t", "specie"], "Did you mean 'species' or"),
        (["report", "none.sqlite"], "The file must be an existing model or file of results"),
        (["report", "plants.csv"], "plants.csv"),
        (["predict", "none.model", "wine"], "Found no file at 'none.model'"),
        (
            ["predict", "plants.csv", "wine"],
            "must be a file that discernel.save or `discernel fit` wrote",
        ),
        (["fit", "iris", "-o", "no/where"], "Create the folder"),
    ],
)
def test_what_a_user_can_mend_is_one_line_and_ends_with_1(table, words, message):
    result = invoke(*words, code=1)
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert message in lines[0]


def test_a_folder_with_the_name_of_a_data_set_is_in_nobodys_way():
    Path("iris").mkdir()
    assert "150 rows" in invoke("compare", "iris", *FAST).output


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(monkeypatch, width):
    monkeypatch.setattr(shared.out, "width", width)
    shown = invoke("compare", "iris", *FAST).output
    assert all(len(line) <= width for line in shown.splitlines() if not line.startswith("report:"))
    assert ("●" in shown) == (width == 120)


def test_a_method_that_failed_is_named_with_its_message():
    records = []
    for name, accuracy in (("broken", None), ("good", 0.9)):
        error = "Traceback\nValueError: [no] way" if accuracy is None else None
        result = Result(metrics={"accuracy": accuracy} if accuracy else {}, error=error)
        cells = [Cell(Data("wine"), Method(name, name), Splits(n=2), i) for i in range(2)]
        records += [Record(cell, result, {}, "") for cell in cells]
    plan, summary = comparison_plan(Data("wine"), n_splits=2), Summary(4, 0, 0, 2)
    console = Console(width=120, record=True, file=io.StringIO())
    show_comparison(console, Comparison(plan, load("wine"), (), summary, tuple(records)))
    shown = console.export_text()
    assert "failed  broken on wine, 2 times: ValueError: [no] way" in shown
    assert re.search(r"broken +– +– .*failed", shown)


# ---- fit and predict ---------------------------------------------------------------------------


def test_a_model_predicts_what_it_did_before_it_was_saved(table):
    shown = invoke("fit", table, *CLEAN, "-o", "plants.model").output
    assert shown.splitlines()[-1] == f"model: {Path('plants.model').resolve()}"
    result = invoke("predict", "plants.model", table)
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["row"] for row in rows] == [str(i) for i in range(1, 41)]
    right = np.mean([row["predicted"] == "ab"[i % 2] for i, row in enumerate(rows)])
    assert result.stderr == f"accuracy {right:.3f} on 40 rows\n"
    assert right > 0.9
    # The library says the same of the same table, to the last digit.
    frame = pd.read_csv(table)
    clf = MultipleKernelDiscriminant().fit(frame[["size", "weight", "colour"]], frame["species"])
    expected = clf.predict_proba(frame[["size", "weight", "colour"]])
    found = [[float(row[f"probability_{label}"]) for label in "ab"] for row in rows]
    np.testing.assert_array_equal(found, expected)
    invoke("predict", "plants.model", table, "--out", "out.csv")
    assert Path("out.csv").read_text() == result.stdout


def test_without_a_place_the_model_is_called_as_the_data(table):
    shown = invoke("fit", "plants.csv", *CLEAN).output
    assert shown.splitlines()[-1] == f"model: {Path('plants.skops').resolve()}"


def test_a_fit_says_what_to_expect_which_columns_matter_and_what_it_considered(table):
    shown = invoke("fit", table, *CLEAN, "-o", "plants.model").output
    model = read_model("plants.model")
    clf = model.pipeline[-1]
    expected = clf.expected_
    assert "plants  40 rows, 3 columns, 2 classes" in shown
    assert "rows per class of species: a: 20 (50 %), b: 20 (50 %)" in shown
    assert re.search(rf"accuracy +{100 * expected.accuracy:.1f} %", shown)
    assert f"interval {100 * expected.low:.1f} to {100 * expected.high:.1f}" in shown
    assert re.search(r"baseline +50.0 % +accuracy of always predicting 'a'", shown)
    assert re.search(rf"log-loss +{expected.log_loss:.3f} .*class shares: 0.693", shown)
    shares, std = 100 * clf.feature_importances_, 100 * clf.feature_importances_std_
    for name, share, spread in zip(("size", "weight", "colour"), shares, std, strict=True):
        assert re.search(rf"{name} +{share:.1f} ± {spread:.1f} %", shown)
    for each in clf.learned_kernel_.considered:
        assert re.search(rf" +{each.error:.3f} +{100 * each.accuracy:.1f} ", shown)
    assert shown.count("← chosen") == 1
    assert re.search(r"chosen: (the smallest log-loss|simpler than)", shown)
    assert "certificate" in shown
    assert "leave-one-out error" not in shown
    assert "share of the loss increase when a column is shuffled, ± standard error" in shown


def test_the_reason_for_a_choice_is_the_true_one():
    candidates = [Candidate("average", np.ones(1), 0.1, error, 0.0, 0.5, 0.9) for error in (2, 1)]
    learned = MultipleKernelDiscriminant([RBF()]).fit(*load_iris(return_X_y=True)).learned_kernel_

    def why(considered):
        return replace(learned, considered=tuple(considered)).describe().why_chosen

    assert "simpler than the candidate with the smallest log-loss, and with" in why(candidates)
    assert why(candidates[::-1]) == "chosen: the smallest log-loss"
    by_error = [replace(each, strength=0.0, accuracy=None) for each in candidates]
    assert "smallest sum of squared error and pull" in why(by_error)


def test_a_summary_is_json_and_quiet_says_nothing(table):
    found = json.loads(invoke("fit", table, *CLEAN, "-o", "p.model", "--json").stdout)
    clf = read_model("p.model").pipeline[-1]
    assert found["expected"]["accuracy"] == clf.expected_.accuracy
    assert found["classes"] == {"a": 20, "b": 20}
    assert found["majority"]["share"] == 0.5
    assert {each["column"] for each in found["importances"]} == {"size", "weight", "colour"}
    assert found["model"] == str(Path("p.model").resolve())
    assert found == {**json.loads(invoke("info", "p.model", "--json").stdout), **found}
    assert invoke("fit", table, *CLEAN, "-o", "p.model", "-q").output == ""
    assert invoke("predict", "p.model", table, "-o", "p.csv", "--quiet").output == ""


def test_a_model_says_where_it_comes_from(table, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["discernel", "fit", "plants.csv", "-t", "species"])
    invoke("fit", "plants.csv", "-t", "species", "--drop", "id", "-o", "p.model")
    origin = read_model("p.model").origin
    assert (origin.source, origin.digest) == ("plants.csv", digest(table))
    assert origin.command == "discernel fit plants.csv -t species"
    assert origin.class_counts == {"a": 20, "b": 20}
    assert origin.columns == {
        "id": "left out: dropped",
        "size": "number",
        "weight": "number, 1 missing",
        "colour": "category of 2 values",
        "species": "the classes",
    }
    shown = invoke("info", "p.model").output
    for words in (origin.command, origin.digest, origin.created, discernel.__version__):
        assert words in shown
    assert re.search(r"weight +number, 1 missing", shown)


def test_of_many_columns_ten_are_shown_and_the_rest_summed(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 13)), np.arange(60) % 2
    X += 0.4 * y[:, None]  # all columns say something
    header = ",".join([f"c{i}" for i in range(13)] + ["y"])
    rows = np.column_stack([X, y])
    np.savetxt(tmp_path / "a.csv", rows, delimiter=",", header=header, comments="")
    shown = invoke("fit", "a.csv", "-o", "a.model").output
    clf = read_model("a.model").pipeline[-1]
    order = np.argsort(-clf.feature_importances_, kind="stable")
    assert re.findall(r"^  (c\d+) ", shown, re.MULTILINE) == [f"c{i}" for i in order[:10]]
    rest = 100 * clf.feature_importances_[order[10:]].sum()
    assert re.search(rf"3 other columns +{rest:.1f}", shown)


def test_a_fit_to_views_shows_weights_by_source_and_what_its_error_is(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 15)
    views = {name: rng.normal(size=(30, 2)) + y[:, None] for name in ("left", "right")}
    np.savez(tmp_path / "v.npz", y=y, **views)
    shown = invoke("fit", "v.npz", "-o", "v.model").output
    clf = read_model("v.model").pipeline[-1]
    assert re.search(rf"left +\d.* ± .* % +{clf.kernel_weights_[:3].sum():.3f} ", shown)
    assert re.search(rf"right +\d.* ± .* % +{clf.kernel_weights_[3:].sum():.3f} ", shown)
    best = clf.learned_kernel_.considered[0]
    assert re.search(rf" {best.error:.3f} +{best.pull:.3f} .*← chosen", shown)
    assert "Squared error of the class scores: 1 for a constant prediction" in shown
    assert "columns that matter" in shown


def test_max_time_reaches_the_fit_and_bad_ones_are_refused_before_any_work():
    shown = invoke("fit", "iris", "-o", "i.model", "--max-time", "10m")
    assert read_model("i.model").pipeline[-1].max_time == "10m"
    assert "stage 2" in shown.output
    words = "max_time must be a positive number of seconds"
    assert words in invoke("fit", "no.csv", "-o", "j.model", "--max-time", "soon", code=1).stderr


def test_many_rows_say_what_they_will_take(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{x:.3f},{int(x > 0)}" for x in rng.normal(size=2000)]
    (tmp_path / "a.csv").write_text("\n".join(["size,y", *lines]))
    shown = invoke("fit", "a.csv", "-o", "a.model")
    assert "2,000 rows: bank=" in shown.output
    assert "done in" in shown.stderr
    shown = invoke("fit", "a.csv", "-o", "a.model", "--json")
    assert json.loads(shown.stdout)["n_rows"] == 2000
    assert "2,000 rows: bank=" in shown.stderr
    assert invoke("fit", "a.csv", "-o", "a.model", "-q").output == ""


def test_a_lambda_at_the_limit_is_said(capsys):
    model = fit_model(Data("iris"), Learner("uniform"))
    clf = model.pipeline[-1]
    learned = replace(clf.learned_kernel_, regularization_at_limit="largest")
    clf.model_ = replace(clf.model_, facts=replace(clf.model_.facts, learned=learned))
    print_blocks(Console(width=300, highlight=False), model.describe().blocks())
    assert learned.regularization_advice in capsys.readouterr().out


def test_the_accuracy_counts_the_rows_whose_label_is_known(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{x + 5.0 * (i % 2)},{i % 2 + 1}.0" for i, x in enumerate(rng.normal(size=20))]
    (tmp_path / "a.csv").write_text("\n".join(["size,y", *lines]))
    invoke("fit", "a.csv", "-o", "a.model")
    assert invoke("predict", "a.model", "a.csv").stderr == "accuracy 1.000 on 20 rows\n"
    lines[1] = lines[1].replace("2.0", "1.0")
    (tmp_path / "b.csv").write_text("\n".join(["size,y", *lines[:5], "0.1,"]))
    assert invoke("predict", "a.model", "b.csv").stderr == "accuracy 0.800 on 5 rows\n"
    (tmp_path / "c.csv").write_text("size\n0.1\n5.2\n")
    assert invoke("predict", "a.model", "c.csv").stderr == ""


@pytest.mark.parametrize("criterion", ["auto", "rkda", "fdr", "loo", "alignment", "akfd"])
def test_models_of_every_criterion_are_loaded_unchanged(tmp_path, criterion):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 15)
    views = {name: rng.normal(size=(30, 2)) + y[:, None] for name in ("left", "right")}
    np.savez(tmp_path / "v.npz", y=y, **views)
    data = Data("v", file={"path": str(tmp_path / "v.npz")})
    model = fit_model(data, Learner(criterion))
    rows = read_rows(model, str(tmp_path / "v.npz"))
    again = read_model(write_model(model, tmp_path / "v.model"))
    np.testing.assert_array_equal(
        again.pipeline.predict_proba(rows.X), model.pipeline.predict_proba(rows.X)
    )
    assert again.schema == model.schema
    assert again.origin == model.origin


@pytest.mark.parametrize("kernels", ["auto", "given"])
def test_models_of_low_rank_are_loaded_unchanged(tmp_path, kernels):
    model = fit_model(Data("iris"), Learner("uniform"))
    rows = read_rows(model, "iris")
    given = "auto" if kernels == "auto" else [RBF(), Linear()]
    low = MultipleKernelDiscriminant(given, bank=LowRank(40))
    pipeline = make_pipeline(StandardScaler(), low).fit(rows.X, rows.y)
    again = read_model(write_model(replace(model, pipeline=pipeline), tmp_path / "low.model"))
    np.testing.assert_array_equal(
        again.pipeline.predict_proba(rows.X), pipeline.predict_proba(rows.X)
    )
    assert repr(again.pipeline[-1].low_rank_loss_) == repr(low.low_rank_loss_)


def test_a_model_with_anything_else_in_it_is_not_saved(tmp_path):
    model = fit_model(Data("iris"), Learner("uniform"))
    strange = replace(model, dataset=Path("anything"))
    with pytest.raises(InvalidInputError, match=r"only types of discernel.*Got pathlib"):
        write_model(strange, tmp_path / "strange.model")
    assert not (tmp_path / "strange.model").exists()


def test_rows_without_the_columns_of_the_model_are_refused(table):
    invoke("fit", "iris", "-o", "iris.model")
    assert "Missing:" in invoke("predict", "iris.model", table, code=1).stderr
    assert "The features of 'wine' differ" in invoke("predict", "iris.model", "wine", code=1).stderr


# ---- info --------------------------------------------------------------------------------------


def test_info_says_what_is_here():
    shown = invoke("info").output
    assert discernel.__version__ in shown
    assert re.search(r"wine +178 +13 +bundled", shown)
    assert "none yet" in shown


# ---- demo --------------------------------------------------------------------------------------


def test_demo_shows_wins_and_losses_and_writes_a_report(tmp_path, monkeypatch):
    monkeypatch.setattr(demonstrating, "_DATA", {"few_columns": "few", "steps": "trees"})
    monkeypatch.setattr(demonstrating, "_METHODS", ("discernel", "boosting"))
    store = tmp_path / "demo.sqlite"
    result = invoke("demo", "--splits", "1", "--jobs", "1", "--store", store)
    assert "discernel has the best accuracy on 1 of 2 data sets" in result.output
    assert re.search(
        r"On steps, boosting has the better accuracy: \d+\.\d % against \d+\.\d %", result.output
    )
    important = re.findall(r"^ +(\w+) +\d+\.\d %", result.output, flags=re.M)[:4]
    assert set(important) == {"width", "height", "charge", "field"}
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert "accuracy % on few columns" in page, "one name on terminal and page"
    assert "few_columns" not in page


# ---- commands of other packages ----------------------------------------------------------------


def test_the_commands_are_those_of_the_documentation():
    page = Path(__file__).parent.parent / "docs" / "command_line.md"
    listed = re.findall(r"^\| `(\w+)` \|", page.read_text(encoding="utf-8"), flags=re.M)
    there = [command.name for command in commands.app.registered_commands]
    assert listed == ["fit", "predict", "explain", "compare", "report", "export", "demo", "info"]
    assert set(listed) == set(there) - {"reproduce"}


def test_commands_of_installed_packages_are_found(tmp_path, monkeypatch):
    package = tmp_path / "site" / "greeting-1.0.dist-info"
    package.mkdir(parents=True)
    (package.parent / "greeting.py").write_text("def greet(name: str):\n    print('hello', name)\n")
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[discernel.commands]\ngreet = greeting:greet\n")
    assert "No such command 'greet'" in run("greet", "you", code=2).stderr
    source = str(Path(discernel.__file__).parent.parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package.parent), source]))
    assert run("greet", "you").stdout == "hello you\n"
