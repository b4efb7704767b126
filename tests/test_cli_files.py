"""The files of the command line: nothing of the user's is lost, nothing strange is run."""

import errno
import json
import os
import re
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from discernel import persistence
from discernel.cli import app as commands
from discernel.cli import comparing, learning
from discernel.cli.learning import Learner, fit_model
from discernel.compare.compare import comparison_plan
from discernel.compare.plan import Data
from discernel.compare.runner import run
from discernel.compare.store import Store
from discernel.exceptions import InvalidInputError, MissingExtraError
from discernel.persistence import read_model, write_model
from tests.command_line import invoke

FAST = ["--method", "LDA", "--method", "plain average", "--splits", "2", "--jobs", "1"]


pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture(scope="module")
def model_bytes(tmp_path_factory):
    """A small model, as it is saved."""
    model = fit_model(Data("iris"), Learner("uniform"))
    path = tmp_path_factory.mktemp("model") / "iris.model"
    return write_model(model, path).read_bytes()


@pytest.fixture
def model(model_bytes):
    path = Path("iris.model")
    path.write_bytes(model_bytes)
    return path


def refused(*words):
    """Return the one line that a command ends with."""
    result = invoke(*words, code=1)
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    return line


def schema_of(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("schema.json"))


def with_schema(path, change):
    """Write a model again with another schema."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members["schema.json"])
    changed = change(schema)
    members["schema.json"] = json.dumps(schema if changed is None else changed).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


# ---- a full disk -------------------------------------------------------------------------------

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
from discernel.cli import main
sys.argv = ["discernel", *sys.argv[1:]]
main()
"""


def limited(*words):
    """Run a command that may write no file of more than 1,000 bytes."""
    return subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, words)], capture_output=True, text=True
    )


@pytest.mark.skipif(os.name == "nt", reason="there is no limit to the size of files")
def test_a_full_disk_leaves_the_old_model():
    Path("old").write_text("precious")
    found = limited("fit", "iris", "--criterion", "uniform", "-o", "old")
    assert found.returncode == 1
    assert found.stderr.count("\n") == 1
    assert (
        "error: old could not be written: File too large. An existing file is unchanged"
        in found.stderr
    )
    assert Path("old").read_text() == "precious"
    assert os.listdir() == ["old"]


def test_a_full_disk_leaves_old_predictions_and_reports(model, monkeypatch):
    invoke("compare", "iris", *FAST)
    page, rows = Path("discernel-results/iris.html"), Path("rows.csv")
    invoke("predict", model, "iris", "-o", rows)
    before = page.read_bytes(), rows.read_bytes()

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in refused("report", "discernel-results/results.sqlite", "-o", page)
    assert "No space left" in refused("predict", model, "iris", "-o", rows)
    assert (page.read_bytes(), rows.read_bytes()) == before
    assert sorted(os.listdir()) == ["discernel-results", "iris.model", "rows.csv"]
    assert sorted(os.listdir("discernel-results")) == ["iris.html", "results.sqlite"]


@pytest.fixture(scope="module")
def store_bytes(tmp_path_factory):
    """A small store, as it is written."""
    path = tmp_path_factory.mktemp("store") / "results.sqlite"
    plan = comparison_plan(Data("iris"), n_splits=2, methods=["LDA", "plain average"])
    with Store(path) as store:
        run(plan, store)
    return path.read_bytes()


@pytest.fixture
def store(store_bytes):
    """The same where `compare` looks for it."""
    path = Path("discernel-results/results.sqlite")
    path.parent.mkdir()
    path.write_bytes(store_bytes)
    return path


# ---- a store that others write to ---------------------------------------------------------------


def test_a_report_says_that_cells_are_still_run():
    invoke("compare", "iris", *FAST)
    path = Path("discernel-results/results.sqlite")
    with Store(path) as other:
        other.claim(comparison_plan(Data("wine")).cells()[0])
        shown = invoke("report", path, "-o", "page.html")
    assert re.search(r"note: process \d+ on .* is computing 1 more results", shown.stderr)
    assert "note" not in invoke("report", path, "-o", "page.html").stderr


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("result", "{"),
        ("result", ""),
        ("result", "[]"),
        ("result", "7"),
        ("result", '{"unknown": 1}'),
        ("result", '{"metrics": 3}'),
        ("result", '{"metrics": {"accuracy": "high"}}'),
        ("result", '{"metrics": {"accuracy": null}}'),
        ("result", '{"seconds_fit": "long"}'),
        ("result", '{"weights": [1]}'),
        ("result", '{"details": null}'),
        ("result", '{"error": 3}'),
        ("result", b"\xff\xfe"),
        ("predictions", b"PK"),
        ("predictions", b""),
        ("predictions", "text"),
        ("finished", b"\xff"),
        ("spec", "{"),
        ("spec", "[]"),
        ("spec", "{}"),
        ("spec", '{"data": {"name": 1}, "method": 2, "splits": {}, "repetition": "x"}'),
    ],
)
def test_a_damaged_row_of_a_store_is_one_line(store, column, value):
    connection = sqlite3.connect(store)
    with connection:
        (key,) = connection.execute("SELECT key FROM cells").fetchone()
        connection.execute(f"UPDATE cells SET {column} = ? WHERE key = ?", (value, key))
    connection.close()
    line = refused("report", store)
    assert f"record {key!r} of results.sqlite is damaged" in line
    assert f"DELETE FROM cells WHERE key = '{key}'" in line
    if column != "spec":  # which a plan knows
        again = invoke("compare", "iris", *FAST, code=1)  # with a bar
        assert again.stderr.splitlines()[-1] == line
    connection = sqlite3.connect(store)
    with connection:
        connection.execute(f"DELETE FROM cells WHERE key = '{key}'")
    connection.close()
    invoke("compare", "iris", *FAST)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE machines SET facts = '{'",
        "DROP TABLE machines",
        "ALTER TABLE cells DROP COLUMN result",
    ],
)
def test_damaged_tables_of_a_store_are_one_line(store, statement):
    connection = sqlite3.connect(store)
    with connection:
        connection.execute(statement)
    connection.close()
    assert re.search(r"damaged|could not be read|holds no results", refused("report", store))


# ---- one file for two things -------------------------------------------------------------------


def table():
    rng = np.random.default_rng(0)
    rows = [f"{x + 5.0 * (i % 2)},{'ab'[i % 2]}" for i, x in enumerate(rng.normal(size=40))]
    Path("t.csv").write_text("\n".join(["size,y", *rows]))
    Path("link.csv").symlink_to("t.csv")
    return Path("t.csv")


VIEWS = """
[sources.all]
file = "t.csv"
key = "a"
columns = ["b"]
"""


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "t.csv", "--store", "s.sqlite", "--report", "s.sqlite"],
        ["compare", "t.csv", "--store", "s.sqlite", "--report", "./x/../s.sqlite"],
        ["compare", "t.csv", "--store", "s.sqlite", "--report", "s.sqlite-wal"],
        ["compare", "t.csv", "--report", "t.csv"],
        ["compare", "t.csv", "--report", "link.csv"],
        ["compare", "link.csv", "--store", "t.csv"],
        ["fit", "t.csv", "-o", "t.csv"],
        ["fit", "t.csv", "-o", "link.csv"],
        ["predict", "iris.model", "t.csv", "-o", "t.csv"],
        ["predict", "iris.model", "t.csv", "-o", "iris.model"],
        ["report", "iris.model", "-o", "iris.model"],
        ["report", "iris.model", "--explain", "t.csv", "-o", "t.csv"],
        ["fit", "other.csv", "t.csv", "-o", "t.csv"],
        ["fit", ".", "-o", "t.csv"],
        ["predict", "iris.model", "other.csv", "t.csv", "-o", "t.csv"],
        ["predict", "iris.model", "*.csv", "-o", "t.csv"],
        ["fit", "other.csv", "--views", "views.toml", "-o", "t.csv"],
        ["fit", "other.csv", "--views", "views.toml", "-o", "views.toml"],
        ["predict", "iris.model", "other.csv", "--views", "views.toml", "-o", "t.csv"],
    ],
)
def test_no_file_is_overwritten_by_another(model, words):
    Path("x").mkdir()
    before = table().read_bytes(), model.read_bytes()
    Path("other.csv").write_bytes(before[0])
    Path("views.toml").write_text(VIEWS)
    assert "must be different files" in refused(*words)
    assert (Path("t.csv").read_bytes(), model.read_bytes()) == before
    assert not Path("s.sqlite").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["predict", "iris.model", "iris.model"], "iris.model is a model: discernel predict MODEL"),
        (["predict", "t.csv", "iris.model"], "iris.model is a model: discernel predict MODEL DATA"),
        (["predict", "t.csv", "t.csv"], "Got a file of rows, t.csv. Name the model first"),
        (["explain", "iris.model", "iris.model"], "iris.model is a model"),
        (["explain", "t.csv"], "Got a file of rows, t.csv"),
        (["export", "t.csv", "--to", "t.py"], "Got a file of rows, t.csv"),
        (["info", "t.csv"], "Got a file of rows, t.csv"),
        (["fit", "iris.model"], "iris.model is a model"),
        (["compare", "iris.model"], "iris.model is a model"),
        (["report", "t.csv"], "must be an existing model or file of results. Got 't.csv'"),
        (["report", "iris.model", "--explain", "iris.model"], "iris.model is a model"),
    ],
)
def test_models_and_rows_that_change_places_are_told_apart(model, words, said):
    table()
    assert said in refused(*words)


def test_a_model_may_have_the_name_of_its_data_set():
    invoke("fit", "iris", "--criterion", "uniform", "-o", "iris")
    assert Path("iris").is_file()


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "iris", "--report", "no/where.html"],
        ["fit", "iris", "-o", "no/where"],
        ["predict", "iris.model", "iris", "-o", "no/where.csv"],
    ],
)
def test_a_place_without_a_folder_is_refused_before_any_work(model, words, monkeypatch):
    def no_work(*_, **__):
        raise RuntimeError("worked")

    monkeypatch.setattr(comparing, "compare", no_work)
    monkeypatch.setattr(learning, "fit_model", no_work)
    monkeypatch.setattr(learning, "read_rows", no_work)
    assert "must be a file in an existing folder" in refused(*words)


def test_a_folder_that_cannot_be_made_is_one_line():
    Path("f").touch()
    words = "The folder f could not be created: File exists"
    assert words in invoke("compare", "iris", *FAST, "--store", "f/s.sqlite", code=1).stderr


@pytest.mark.parametrize("name", ["p.csv.gz", "p.tsv", "p.json", "p.xlsx", "p.feather"])
def test_predictions_are_not_written_in_another_format_than_that_of_their_name(
    model, name, monkeypatch
):
    monkeypatch.setattr(learning, "read_rows", None)  # before any work
    assert "must be a .csv, .jsonl or .parquet file" in refused(
        "predict", model, "iris", "-o", name
    )


def test_a_column_is_not_declared_as_two_kinds():
    said = refused("fit", table(), "--categorical", "size", "--numeric", "size")
    assert "column 'size' must be categorical or numeric, not both" in said


# ---- models that are none ----------------------------------------------------------------------

HIDDEN = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "__id__": 1}


def crafted(kind):
    """Return a node that would run code, or leave a file behind, if anything built it."""
    text = HIDDEN | {"content": json.dumps("open('ran', 'w')"), "is_json": True}
    arguments = HIDDEN | {
        "__class__": "tuple",
        "__loader__": "TupleNode",
        "content": [text],
        "__id__": 2,
    }
    node = {"__id__": 3, "__module__": "builtins", "__class__": "eval"}
    return {
        "object": node | {"__loader__": "ObjectNode", "content": arguments},
        "type": node | {"__loader__": "TypeNode"},
        "function": node | {"__loader__": "FunctionNode", "content": "eval"},
        "system": node | {"__module__": "os", "__class__": "system", "__loader__": "FunctionNode"},
        # The two that skops 0.11 built without asking.
        "operator": {
            "__id__": 3,
            "__module__": "operator",
            "__class__": "methodcaller",
            "__loader__": "OperatorFuncNode",
            "attrs": arguments,
        },
        "method": {
            "__id__": 3,
            "__module__": "builtins",
            "__class__": "str",
            "__loader__": "MethodNode",
            "content": {"func": "__class__", "obj": node | {"__loader__": "ObjectNode"}},
        },
        "keys": {
            "__id__": 3,
            "__module__": "builtins",
            "__class__": "dict",
            "__loader__": "DictNode",
            "key_types": HIDDEN
            | {
                "__class__": "list",
                "__loader__": "ListNode",
                "content": [node | {"__loader__": "TypeNode"}],
            },
            "content": {"open('ran', 'w')": text},
        },
        "hidden in data": HIDDEN | {"__class__": "Popen", "__module__": "subprocess"},
    }[kind]


KINDS = ["object", "type", "function", "system", "operator", "method", "keys", "hidden in data"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["whole", "field"])
def test_a_crafted_model_is_refused_before_anything_is_built(model, kind, place, monkeypatch):
    import skops.io

    def change(schema):
        if place == "whole":
            return crafted(kind) | {"protocol": 2, "_skops_version": schema["_skops_version"]}
        schema["content"]["target"] = crafted(kind)
        return None

    monkeypatch.setattr(skops.io, "load", pytest.fail)
    with_schema(model, change)
    words = r"methodcaller|MethodNode|eval|system|Popen"
    with pytest.raises(InvalidInputError, match=rf"was not loaded\. It contains .*({words})"):
        read_model(model)
    assert not Path("ran").exists()


@pytest.mark.parametrize("installed", ["0.9", "0.11.0", "0.11.2.dev1", "0.x"])
def test_a_skops_that_ran_crafted_files_is_refused_before_the_file_is_read(
    model, monkeypatch, installed
):
    import skops

    monkeypatch.setattr(skops, "__version__", installed)
    model.unlink()
    with pytest.raises(MissingExtraError, match=r"needs skops 0\.12 or newer.*is installed"):
        read_model(model)


def test_the_requirement_says_the_same_as_the_check():
    project = Path(__file__).parents[1] / "pyproject.toml"
    if not project.is_file():
        pytest.skip("the project file is not beside the tests")
    wanted = ".".join(map(str, persistence._SKOPS))
    assert f'"skops>={wanted}"' in project.read_text(encoding="utf-8")


def lengths(content):
    return [0, 1, 10, 100, len(content) // 2, len(content) - 30, len(content) - 1]


def test_a_model_that_is_cut_off_is_refused(model_bytes, model):
    for length in lengths(model_bytes):
        model.write_bytes(model_bytes[:length])
        assert "iris.model must be a model that discernel.save or `discernel fit` wrote" in refused(
            "predict", model, "iris"
        )


def test_a_model_with_damaged_bytes_is_refused(model_bytes, model):
    for place in np.linspace(0, len(model_bytes) - 1, 60).astype(int):
        damaged = bytearray(model_bytes)
        damaged[place] ^= 0xFF
        model.write_bytes(damaged)
        result = CliRunner().invoke(commands.app, ["predict", "iris.model", "iris"])
        assert result.exit_code in (0, 1)  # not every byte means something
        assert result.exception is None or isinstance(result.exception, SystemExit)
        assert result.exit_code == 0 or result.stderr.count("\n") == 1


def drop(*names):
    """Return a change of a schema that takes something away."""

    def change(schema):
        node = schema["content"]
        for name in names[:-1]:
            node = node[name]["content"]
        del node[names[-1]]

    return change


def put(name, node):
    def change(schema):
        schema["content"][name] = node

    return change


def whole(number):
    return HIDDEN | {"content": json.dumps(number), "is_json": True}


@pytest.mark.parametrize(
    "change",
    [
        lambda schema: [1, 2],
        lambda schema: {},
        lambda schema: {"content": {}},
        lambda schema: schema | {"content": "x"},
        drop("model"),
        drop("schema"),
        drop("format"),
        drop("target"),
        drop("schema", "x0"),
        put("model", whole(None)),
        put("schema", whole("x")),
        put("format", whole("one")),
        put("format", whole(None)),
        put("target", whole(3)),
        put("dataset", whole([1])),
        lambda schema: drop("steps")(schema["content"]["model"]["content"]),
    ],
)
def test_a_tampered_model_is_one_line(model, change):
    with_schema(model, change)
    assert "iris.model must be a model that discernel.save or `discernel fit` wrote" in refused(
        "predict", model, "iris"
    )


def attributes(schema):
    """Return the attributes of the discriminant."""
    steps = schema["content"]["model"]["content"]["content"]["steps"]["content"]
    return steps[-1]["content"][1]["content"]["content"]


def test_a_model_without_any_one_of_its_attributes_is_no_traceback(model, model_bytes):
    names = list(attributes(schema_of(model)))
    assert len(names) > 10
    for name in names:
        model.write_bytes(model_bytes)
        with_schema(model, lambda schema, name=name: attributes(schema).pop(name) and None)
        result = CliRunner().invoke(commands.app, ["predict", "iris.model", "iris"])
        assert result.exception is None or isinstance(result.exception, SystemExit), name


@pytest.mark.parametrize(
    ("number", "words"), [(99, "newer version. Update discernel"), (0, "Fit the model again")]
)
def test_a_model_of_another_version_says_what_to_do(model, number, words):
    with_schema(model, put("format", whole(number)))
    line = refused("predict", model, "iris")
    assert "discernel 0.1" in line
    assert words in line


# ---- tables for spreadsheets -------------------------------------------------------------------


def test_labels_that_look_like_formulas_are_harmless_in_a_spreadsheet():
    rng = np.random.default_rng(0)
    labels = ["=cmd|' /C calc'!A0", "-b"]
    rows = [f"{x + 5.0 * (i % 2)},{labels[i % 2]}" for i, x in enumerate(rng.normal(size=20))]
    Path("t.csv").write_text("\n".join(["size,y", *rows]))
    invoke("fit", "t.csv", "-o", "t.model")
    result = invoke("predict", "t.model", "t.csv")
    lines = result.stdout.splitlines()
    assert lines[0] == "row,predicted,probability_-b,probability_=cmd|' /C calc'!A0"
    assert lines[1].startswith("1,'=cmd|' /C calc'!A0,")
    assert lines[2].startswith("2,'-b,")
    assert result.stderr == "accuracy 1.000 on 20 rows\n"


# ---- labels and categories ---------------------------------------------------------------------


def test_large_labels_are_the_same_from_end_to_end():
    labels = [2**53, 2**53 + 1, 2**64 + 1]
    rng = np.random.default_rng(0)
    rows = [f"{x + 9 * (i % 3)},{labels[i % 3]}" for i, x in enumerate(rng.normal(size=45))]
    for n_labels, name in ((3, "text"), (2, "whole")):
        kept = [row for i, row in enumerate(rows) if i % 3 < n_labels]
        Path("t.csv").write_text("\n".join(["size,y", *kept]))
        invoke("fit", "t.csv", "-o", "t.model")
        result = invoke("predict", "t.model", "t.csv")
        found = {line.split(",")[1] for line in result.stdout.splitlines()[1:]}
        assert found == {str(label) for label in labels[:n_labels]}, name
        assert result.stderr == f"accuracy 1.000 on {len(kept)} rows\n"


def test_a_category_may_be_written_in_another_way_in_new_rows():
    rows = [f"{i * i % 7},{1 + i % 2},{'ab'[i % 2]}" for i in range(40)]
    Path("t.csv").write_text("\n".join(["size,kind,y", *rows]))
    invoke("fit", "t.csv", "--categorical", "kind", "-o", "t.model")
    before = invoke("predict", "t.model", "t.csv").stdout
    floats = [row.replace(",1,", ",1.0,").replace(",2,", ",2.0,") for row in rows]
    Path("t.csv").write_text("\n".join(["size,kind,y", *floats]))
    assert invoke("predict", "t.model", "t.csv").stdout == before


# ---- what is shown ------------------------------------------------------------------------------

NASTY = "\x1b[31m\x07\x9b\u202e"


def test_control_characters_are_shown_and_never_sent():
    rng = np.random.default_rng(0)
    rows = [
        f"{x + 5.0 * (i % 2)},{x},{'ab'[i % 2]}{NASTY}" for i, x in enumerate(rng.normal(size=40))
    ]
    name = f"t{NASTY}.csv"
    Path(name).write_text("\n".join([f"size{NASTY},k{NASTY},y{NASTY}", *rows]))
    words = [name, "-t", f"y{NASTY}"]
    shown = invoke("compare", *words, "-m", "auto", "-m", "LDA", "--splits", "2", "-j", "1")
    page = Path(f"discernel-results/t{NASTY}.html").read_text(encoding="utf-8")
    assert r"a\x1b[31m\x07\x9b\u202e" in page
    fitted = invoke("fit", *words, "-o", f"m{NASTY}")
    error = refused("fit", name, "-t", f"none{NASTY}", "-o", "m")
    for text in (page, shown.output, fitted.output, error):
        assert "\\x1b[31m" in text
        assert not set(text) & set(NASTY[0] + NASTY[-3:])
    # A file keeps every character; what goes to a terminal does not.
    found = invoke("predict", f"m{NASTY}", name)
    assert f"1,a{NASTY}," in found.stdout


@pytest.mark.parametrize("there", ["file", "folder"])
def test_what_cannot_be_written_is_said_before_the_fit(monkeypatch, there):
    table()
    Path("old.skops").write_text("old")
    locked = Path("old.skops" if there == "file" else ".").resolve()
    access = os.access  # who is root may write anything

    def denied(path, mode, **options):
        is_locked = mode == os.W_OK and Path(path).resolve() == locked
        return not is_locked and access(path, mode, **options)

    monkeypatch.setattr(os, "access", denied)
    monkeypatch.setattr(learning, "fit_model", lambda *_: pytest.fail("it was fitted"))
    for output in ("old.skops", "new.skops") if there == "folder" else ("old.skops",):
        told = refused("fit", "t.csv", "-o", output)
        assert f"{output} could not be written: Permission denied" in told
    assert Path("old.skops").read_text() == "old"


def test_a_link_to_a_folder_that_is_not_there(model):
    table()
    Path("link.skops").symlink_to("none/model.skops")
    assert "must be a file in an existing folder" in refused("fit", "t.csv", "-o", "link.skops")
