"""The command line on many files: read in chunks, predicted in chunks, whole or not at all."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from discernel.cli import many
from discernel.persistence import read_model
from discernel.plan import plan
from discernel.rows.reading import READERS
from tests.command_line import invoke

pytestmark = pytest.mark.usefixtures("own_folder")


def table(n=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "id"])
    frame["town"] = rng.choice(["York", "Bath"], n)
    frame["kind"] = np.where(np.hypot(X[:, 0], X[:, 1]) > 1.2, "out", "in")
    frame.loc[::9, "a"] = np.nan
    return frame


@pytest.fixture(params=["parquet", "csv"])
def folder(request, tmp_path):
    path, frame = tmp_path / "data", table()
    path.mkdir()
    for i in range(3):
        part = frame.iloc[100 * i : 100 * (i + 1)]
        name = path / f"part-{i}.{request.param}"
        part.to_parquet(name) if request.param == "parquet" else part.to_csv(name, index=False)
    return path


def test_a_folder_is_fitted_and_predicted_in_chunks(folder):
    result = invoke("fit", folder, "-o", "m.model", "--target", "kind", "--drop", "id")
    assert "300 rows in chunks, 3 columns, 2 classes" in result.output
    assert "expected on new rows" in result.output
    model = read_model("m.model")
    assert model.schema.columns == ("a", "b", "town")
    assert model.pipeline[-1].model_.stream is None
    invoke("predict", "m.model", folder, "--out", "p.parquet")
    found = pd.read_parquet("p.parquet")
    frame = table()
    assert found["row"].tolist() == list(range(1, 301))
    assert list(found.columns[1:]) == ["predicted", "probability_in", "probability_out"]
    expected = model.pipeline.predict_proba(frame[["a", "b", "town"]])
    assert np.allclose(found.iloc[:, 2:], expected, atol=1e-10)
    assert (found["predicted"] == frame["kind"]).mean() > 0.8


def test_files_patterns_and_csv_say_the_same(folder):
    files = sorted(folder.iterdir())
    invoke("fit", folder, "-o", "m.model", "--target", "kind")
    one = invoke("predict", "m.model", *files, "-o", "files.csv")
    assert "on 300 rows" in one.output
    invoke("predict", "m.model", f"{folder}/part-*", "-o", "pattern.csv")
    shown = invoke("predict", "m.model", folder)
    texts = [Path(name).read_text() for name in ("files.csv", "pattern.csv")]
    assert texts[0] == texts[1]
    assert texts[0] in shown.stdout
    assert texts[0].count("probability_in") == 1
    assert len(texts[0].splitlines()) == 301


def test_one_small_file_is_predicted_by_a_model_of_many(folder):
    invoke("fit", folder, "-o", "m.model", "--target", "kind")
    invoke("predict", "m.model", sorted(folder.iterdir())[0], "-o", "p.csv")
    assert len(Path("p.csv").read_text().splitlines()) == 101


def test_many_files_are_predicted_by_a_model_of_one(tmp_path):
    frame = table().drop(columns=["town"]).fillna(0.0)
    frame.to_csv("one.csv", index=False)
    (tmp_path / "more").mkdir()
    for i in range(2):
        frame.iloc[150 * i : 150 * (i + 1)].to_csv(f"more/{i}.csv", index=False)
    invoke("fit", "one.csv", "-o", "m.model", "--target", "kind", "--criterion", "uniform")
    invoke("predict", "m.model", "one.csv", "-o", "one.predicted.csv")
    invoke("predict", "m.model", "more", "-o", "more.predicted.csv")
    one, more = (pd.read_csv(f"{name}.predicted.csv") for name in ("one", "more"))
    pd.testing.assert_frame_equal(one, more, rtol=1e-12)
    invoke("predict", "m.model", "one.csv", "-o", "one.parquet")
    assert len(pd.read_parquet("one.parquet")) == 300


def test_a_large_file_is_read_in_chunks(monkeypatch):
    table().to_csv("rows.csv", index=False)
    assert not many.are_many(["rows.csv"])
    assert not many.are_many(["iris"])
    monkeypatch.setattr(many, "_LARGE", 1000)
    assert many.are_many(["rows.csv"])
    result = invoke("fit", "rows.csv", "-o", "m.model", "--target", "kind")
    assert "300 rows in chunks" in result.output


def in_sums(problem, stage):
    return replace(stage, kind="lowrank", rank=100, sums=True)


#: What `fit` is given, and what is changed so that few rows are fitted as many are.
WAYS_TO_FIT = {
    "in memory": (["rows.csv"], None),
    "summed up": (["rows.parquet"], (plan, "_with_parts", in_sums)),
    "large": (["rows.parquet"], (many, "_LARGE", 1000)),
    "files": (["rows.csv", "more.csv"], None),
    "folder": (["data"], None),
    "standard input": (["-"], None),
    "views": (["rows.csv", "--views", "views.toml"], None),
}


@pytest.mark.parametrize("way", WAYS_TO_FIT)
def test_every_model_that_fit_writes_is_read_by_all_commands(way, monkeypatch):
    frame = table().drop(columns="town").fillna(0.0)
    for name in ("rows.csv", "more.csv", "data/0.csv"):
        Path(name).parent.mkdir(exist_ok=True)
        frame.to_csv(name, index=False)
    frame.to_parquet("rows.parquet")
    Path("views.toml").write_text(
        '[sources.one]\ncolumns = ["a"]\n[sources.two]\ncolumns = ["b", "id"]\n'
    )
    words, change = WAYS_TO_FIT[way]
    if change is not None:
        monkeypatch.setattr(*change)
    content = Path("rows.csv").read_text() if words == ["-"] else None
    invoke("fit", *words, "-t", "kind", "-o", "m.skops", given=content)
    assert read_model("m.skops").pipeline[-1].model_.stream is None
    invoke("predict", "m.skops", "rows.csv", "-o", "p.csv")
    assert (pd.read_csv("p.csv")["predicted"] == frame["kind"]).mean() > 0.8
    invoke("explain", "m.skops")
    invoke("explain", "m.skops", "rows.csv", "--row", 1)
    invoke("info", "m.skops")
    invoke("report", "m.skops", "-o", "page.html")
    invoke("export", "m.skops", "--to", "score.py")


def dated(kind, n=200):
    """Return rows with dates, and what writes them to a file."""
    days = pd.Series(pd.date_range("2023-01-30 06:30", periods=n, freq="31h"))
    late = days >= days[n // 2]
    size = np.random.default_rng(0).normal(size=n)
    frame = pd.DataFrame({"when": days, "size": size, "kind": np.where(late, "new", "old")})
    if kind == "date32":
        frame["when"] = days.dt.date
    if kind in ("csv", "csv.gz"):
        frame["when"] = days.dt.strftime("%Y-%m-%d %H:%M")
    if kind == "dotted":
        frame["when"] = days.dt.strftime("%d.%m.%Y %H:%M")
    if kind in ("timestamp", "date32"):
        return frame, "parquet", lambda part, name: part.to_parquet(name)
    ending = "csv.gz" if kind == "csv.gz" else "csv"
    return frame, ending, lambda part, name: part.to_csv(name, index=False)


@pytest.mark.parametrize("kind", ["timestamp", "date32", "csv", "csv.gz", "dotted"])
def test_dates_are_taken_from_one_file_and_from_several(kind):
    frame, ending, write = dated(kind)
    Path("data").mkdir()
    write(frame, f"one.{ending}")
    for i, part in enumerate((frame[:120], frame[120:])):
        write(part, f"data/{i}.{ending}")
    for data, model in ((f"one.{ending}", "one.skops"), ("data", "many.skops")):
        shown = invoke("fit", data, "-t", "kind", "-o", model).output
        assert "'when' is treated as dates: days" in shown
        columns = read_model(model).origin.columns
        assert columns["when"].startswith("date, as days")
        found = []
        for rows in (f"one.{ending}", "data"):
            invoke("predict", model, rows, "-o", "p.csv")
            found.append(pd.read_csv("p.csv"))
        pd.testing.assert_frame_equal(*found, rtol=1e-9)
        assert (found[0]["predicted"] == frame["kind"]).mean() > 0.9
    write(frame.assign(when="soon"), f"data/2.{ending}")
    assert "must hold" in invoke("fit", "data", "-t", "kind", "-o", "n.skops", code=1).output


def test_compressed_text_is_read_in_every_way(monkeypatch):
    frame = table().drop(columns="town").fillna(0.0)
    Path("data").mkdir()
    frame.to_csv("rows.csv", index=False)
    for name in ("rows.csv.gz", "data/0.csv.gz", "data/1.csv.gz"):
        frame.to_csv(name, index=False)
    frame.to_csv("rows.tsv.gz", index=False, sep="\t")
    for data in ("rows.csv.gz", "rows.tsv.gz", "data", "data/*.gz"):
        invoke("fit", data, "-t", "kind", "-o", "m.skops", "--criterion", "uniform")
        for rows in ("rows.csv", "rows.csv.gz", "data/0.csv.gz"):
            invoke("predict", "m.skops", rows, "-o", "p.csv")
            assert (pd.read_csv("p.csv")["predicted"] == frame["kind"]).mean() > 0.8
        invoke("predict", "m.skops", "data/*.csv.gz", "-o", "p.csv")
        assert len(pd.read_csv("p.csv")) == 2 * len(frame)
    invoke("explain", "m.skops", "rows.csv.gz")
    content = Path("rows.csv.gz").read_bytes()
    invoke("fit", "-", "-t", "kind", "-o", "in.skops", given=content)
    invoke("fit", "rows.csv.gz", "-t", "kind", "--criterion", "uniform")
    assert Path("rows.skops").is_file()
    monkeypatch.setattr(many, "_LARGE", 1000)
    assert "in chunks" in invoke("fit", "rows.csv.gz", "-t", "kind", "-o", "m.skops").output


@pytest.mark.parametrize("words", [["rows.csv.gz"], ["rows.csv.gz", "more.csv.gz"]])
@pytest.mark.parametrize("damage", [lambda content: b"text", lambda content: content[:-900]])
def test_damaged_compressed_text_is_one_line(words, damage):
    for name in words:
        table().to_csv(name, index=False)
        Path(name).write_bytes(damage(Path(name).read_bytes()))
    shown = invoke("fit", *words, "-t", "kind", "-o", "m.skops", code=1).output
    assert "rows.csv.gz must be a" in shown


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--target", "nothing"], "Got 'nothing'"),
        ([], "The target must be named"),
        (["--target", "kind", "--drop", "other"], "groups must be in"),
        (["--target", "kind", "--numeric", "a"], "need a single file that fits into memory"),
    ],
)
def test_what_cannot_be_fitted_is_one_line(folder, words, expected):
    result = invoke("fit", folder, "-o", "m.model", *words, code=1)
    assert expected in result.output


@pytest.mark.parametrize("words", [["data"], ["data/*"], ["data/0.csv", "data/1.csv"]])
def test_other_delimiters_and_decimal_signs_are_found_in_chunks(words):
    Path("data").mkdir()
    parts = np.array_split(np.arange(300), 2)
    for i in range(2):
        table().iloc[parts[i]].to_csv(f"data/{i}.csv", sep=";", decimal=",", index=False)
    table().to_csv("rows.csv", index=False)
    for data, model in ((words, "many.skops"), (["rows.csv", "rows.csv"], "twice.skops")):
        invoke("fit", *data, "-t", "kind", "-o", model)
        assert read_model(model).origin.columns["a"] == "number"
        found = []
        for rows in (["data"], ["rows.csv"]):
            invoke("predict", model, *rows, "-o", "p.csv")
            found.append(pd.read_csv("p.csv"))
        pd.testing.assert_frame_equal(*found, rtol=1e-9)


def test_a_bad_part_leaves_the_old_predictions(folder):
    invoke("fit", folder, "-o", "m.model", "--target", "kind")
    last = sorted(folder.iterdir())[-1]
    frame = table().iloc[:50].assign(a=np.inf)
    frame.to_parquet(last) if last.suffix == ".parquet" else frame.to_csv(last, index=False)
    for name in ("p.csv", "p.parquet"):
        Path(name).write_text("old")
        result = invoke("predict", "m.model", folder, "-o", name, code=1)
        assert "inf" in result.output
        assert Path(name).read_text() == "old"


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ((None, "x", "y"), [None, "x", "y"]),
        ((1, 2.5, 3), [1.0, 2.5, 3.0]),
        ((None, 7, None), [None, 7.0, None]),
        ((None, None, None), [None, None, None]),
    ],
)
def test_parquet_has_the_cells_that_csv_has_whatever_the_first_chunk_holds(cells, expected):
    Path("data").mkdir()
    for i, cell in enumerate(cells):
        part = table().iloc[100 * i : 100 * (i + 1)].assign(note=cell)
        part.to_csv(f"data/part-{i}.csv", index=False)
    invoke("fit", "data", "-o", "m.model", "--target", "kind", "--drop", "note")
    invoke("predict", "m.model", "data", "--keep", "note", "-o", "p.parquet")
    invoke("predict", "m.model", "data", "--keep", "note", "-o", "p.csv")
    found = pd.read_parquet("p.parquet")
    notes = found["note"].astype(object)
    assert notes.where(notes.notna(), None).iloc[::100].tolist() == expected
    columns = ["row", "predicted", "probability_in"]
    pd.testing.assert_frame_equal(found[columns], pd.read_csv("p.csv")[columns])


def test_cells_that_no_parquet_column_holds_are_one_line():
    table().assign(note=2**60 + 1).to_csv("a.csv", index=False)
    table().assign(note=0.5).to_csv("b.csv", index=False)
    invoke("fit", "a.csv", "b.csv", "-o", "m.model", "--target", "kind", "--drop", "note")
    words = "predict", "m.model", "a.csv", "b.csv", "--keep", "note", "-q", "-o"
    said = invoke(*words, "p.parquet", code=1).stderr
    assert said.startswith("error: A column of a Parquet file must hold cells of one type.")
    assert said.count("\n") == 1
    assert not Path("p.parquet").exists()
    invoke(*words, "p.csv")


def test_files_are_opened_once(folder, monkeypatch):
    """The first one twice: its columns tell which one is the target."""
    opened = []
    for ending, reader in list(READERS.items()):

        def noted(path, reader=reader):
            opened.append(path.name)
            return reader(path)

        monkeypatch.setitem(READERS, ending, noted)
    invoke("fit", folder, "-o", "m.model", "--target", "kind")
    first, *others = sorted(path.name for path in folder.iterdir())
    assert sorted(opened) == [first, first, *others]


@pytest.mark.parametrize("n_files", [1, 2])
def test_rows_of_files_are_counted_from_1_also_in_chunks(n_files, tmp_path):
    rng = np.random.default_rng(0)
    good = pd.DataFrame({"a": rng.normal(size=40), "b": rng.normal(size=40)})
    good["kind"] = np.where(good["a"] > 0, "in", "out")
    bad = good.copy()
    bad.loc[6, "b"] = 1e200
    names = [f"{i}.csv" for i in range(n_files)]
    for i, name in enumerate(names):
        (bad if i == n_files - 1 else good).to_csv(name, index=False)
    good.to_csv("good.csv", index=False)
    said = f"row 7 of {names[-1]}, counted from 1"
    assert said in invoke("fit", *names, "-t", "kind", "-o", "m.model", code=1).output
    invoke("fit", "good.csv", "-t", "kind", "-o", "m.model")
    assert said in invoke("predict", "m.model", *names, code=1).output


def test_rows_of_later_chunks_are_counted_in_their_file(tmp_path, monkeypatch):
    monkeypatch.setattr("discernel.rows.sources._MOST_ROWS", 16)
    frame = table().drop(columns=["town"])
    frame.to_parquet("good.parquet")
    invoke("fit", "good.parquet", "-t", "kind", "-o", "m.model")
    frame.loc[44, "b"] = np.inf
    for name in ("0.parquet", "1.parquet"):
        frame.to_parquet(name)
    told = invoke("predict", "m.model", "0.parquet", "1.parquet", code=1).output
    assert "row 45 of 0.parquet, counted from 1" in told
    assert (
        "row 45 of 0.parquet, counted from 1"
        in invoke("fit", "0.parquet", "1.parquet", "-t", "kind", code=1).output
    )


@pytest.mark.parametrize(
    ("cell", "more"), [("1e200", ()), ("inf", ()), ("old", ("--task", "classes"))]
)
def test_rows_without_a_label_are_counted(cell, more, tmp_path):
    rows = [f"{i},{'xy'[i % 2]},{i * i % 7 + 0.5}" for i in range(20)]
    rows[2], rows[5] = "3,,1.5", f"6,x,{cell}"
    Path("some.csv").write_text("\n".join(["id,kind,b", *rows]) + "\n")
    told = invoke("fit", "some.csv", "-t", "kind", *more, "-o", "m.model", code=1).output
    assert "row 6 of some.csv, counted from 1" in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--drop", "kind"], "The target 'kind' must not be in drop"),
        (["--groups", "kind"], "The target 'kind' must not be in drop, categorical, numeric or gr"),
        (["--drop", "towns"], "Got 'towns'. Did you mean 'town'?"),
        (["--drop", "a", "--drop", "b", "--drop", "town", "--drop", "id"], "No column is left"),
    ],
)
def test_named_columns_are_checked_as_for_one_file(folder, words, said):
    assert said in invoke("fit", folder, "-t", "kind", *words, code=1).output
