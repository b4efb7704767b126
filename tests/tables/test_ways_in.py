"""One messy table through every way in: the same features arrive."""

import io

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

from discernel import MultipleKernelDiscriminant
from discernel.cli import app as commands
from discernel.exceptions import InvalidInputError
from discernel.persistence import read_model
from discernel.rows.chunks import stack_rows
from discernel.rows.labelled import open_file
from discernel.streams import open_rows
from discernel.tables import TableEncoder

pytestmark = pytest.mark.filterwarnings("ignore::discernel.exceptions.LeftOutColumnWarning")

N = 120


def messy():
    """Rows with an identifier, names, fractions, counts, truths, codes, dates, gaps and n/a."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "patient": np.arange(1000, 1000 + N),
            "name": [f"Name {i}, Jr." for i in range(N)],
            "size": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N).round(6)),
            "visits": rng.integers(0, 9, N),
            "ward": rng.choice(np.array(["north", "south", "n/a", None], dtype=object), N),
            "smokes": rng.random(N) < 0.5,
            "zip": rng.choice(["01234", "99999"], N),
            "when": pd.date_range("2021-11-03 06:30", periods=N, freq="37h"),
            "none": np.nan,
            "y": np.repeat(["ill", "well"], N // 2),
        }
    )


NAMES = [
    *("size", "size is missing", "visits"),
    *("ward=north", "ward=south", "ward is other", "ward is missing", "smokes"),
    *("zip=01234", "zip=99999", "zip is other"),
    *(f"when ({part})" for part in ("days", "year", "month", "weekday", "hour")),
]


def expected():
    encoder = TableEncoder().fit(messy().drop(columns="y"))
    return encoder, encoder.transform(messy().drop(columns="y"))


def as_text(form="%Y-%m-%d %H:%M"):
    return messy().assign(when=messy()["when"].dt.strftime(form))


def written(folder, name):
    """Write the table to a file, as its name says, and return the path."""
    path = folder / name
    options = {"index": False}
    if name.startswith("semicolon"):
        as_text("%d.%m.%Y %H:%M").to_csv(path, sep=";", decimal=",", **options)
    elif name.startswith("gaps"):
        as_text().to_csv(path, na_rep="n/a", sep="|", **options)
    elif ".tsv" in name:
        as_text().to_csv(path, sep="\t", **options)
    elif ".csv" in name:
        as_text("%m/%d/%Y %H:%M").to_csv(path, **options)
    elif name.endswith(".parquet"):
        messy().to_parquet(path)
    elif name.endswith(".feather"):
        messy().to_feather(path)
    elif name.endswith(".npz"):
        # One array must have two dimensions: of a column without values, to be left out.
        columns = as_text().fillna({"ward": "n/a"}).drop(columns="none")
        arrays = {name: np.array(cells.tolist()) for name, cells in columns.items()}
        np.savez(path, none=np.full((N, 1), np.nan), **arrays)
    else:
        table = pa.Table.from_pandas(messy())
        make = pa.ipc.new_stream if name.startswith("stream") else pa.ipc.new_file
        with make(path, table.schema) as file:
            file.write_table(table, max_chunksize=50)
    return path


FILES = [
    *("plain.csv", "plain.csv.gz", "semicolon.csv", "semicolon.csv.gz", "gaps.csv"),
    *("tabs.tsv", "tabs.tsv.gz", "rows.parquet", "rows.arrow", "stream.arrow", "rows.feather"),
    "rows.npz",
]


def check(X, encoder=None, *, prepared=False):
    """Compare what an encoder, fitted to rows or given, makes of them.

    A file that was prepared has no columns any more that are left out.
    """
    known, numbers = expected()
    encoder = TableEncoder().fit(X) if encoder is None else encoder
    assert known.get_feature_names_out().tolist() == NAMES
    assert encoder.get_feature_names_out().tolist() == NAMES
    assert sorted(known.left_out) == ["name", "none", "patient"]
    left_out = {name.removesuffix("0"): reason for name, reason in encoder.left_out.items()}
    assert left_out == ({} if prepared else known.left_out)  # "none0" of an array of columns
    np.testing.assert_allclose(encoder.transform(X), numbers, rtol=1e-14)
    np.testing.assert_allclose(encoder.spreads, known.spreads, rtol=1e-13)


def together(source):
    return stack_rows([chunk.X for chunk in source.chunks()])


DATAFRAMES = {
    "pandas": lambda frame: frame,
    "pandas, types that take missing cells": lambda frame: frame.convert_dtypes(),
    "pandas, objects": lambda frame: frame.astype(object),
    "pandas of pyarrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
}


@pytest.mark.parametrize("library", DATAFRAMES)
@pytest.mark.parametrize("dates", ["typed", "31.01.2024", "01/31/2024"])
def test_dataframes_of_any_library(library, dates):
    forms = {"31.01.2024": "%d.%m.%Y %H:%M", "01/31/2024": "%m/%d/%Y %H:%M"}
    frame = messy() if dates == "typed" else as_text(forms[dates])
    check(DATAFRAMES[library](frame.drop(columns="y")))


@pytest.mark.parametrize("library", DATAFRAMES)
def test_days_without_a_time_may_be_missing_in_dataframes_of_any_library(library):
    days = pd.date_range("2021-11-03", periods=N, freq="3D")
    frame = pd.DataFrame(
        {"day": [None if i % 7 == 3 else day.date() for i, day in enumerate(days)]}
    )
    expected = TableEncoder().fit(frame).transform(frame)
    rows = DATAFRAMES[library](frame)
    np.testing.assert_array_equal(TableEncoder().fit(rows).transform(rows), expected)
    assert expected[:, 0].tolist()[:3] == [18934.0, 18937.0, 18940.0]


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_bytes_are_text_in_files_as_in_dataframes(tmp_path, ending):
    frame = pd.DataFrame({"c": [b"one", b"two", b"1.0"] * 4, "y": [0, 1] * 6})
    getattr(frame, f"to_{ending}")(tmp_path / f"rows.{ending}")
    names = TableEncoder().fit(frame[["c"]]).get_feature_names_out().tolist()
    assert names == ["c=1.0", "c=one", "c=two", "c is other"]
    opened = open_file(tmp_path / f"rows.{ending}", "y").dataset.X
    rows = together(open_rows(tmp_path / f"rows.{ending}", "y"))
    for each in (opened, rows):
        assert TableEncoder().fit(each).get_feature_names_out().tolist() == names


@pytest.mark.parametrize("name", FILES)
def test_files_read_whole(tmp_path, name):
    opened = open_file(written(tmp_path, name), "y")
    check(opened.dataset.X, prepared=True)
    assert opened.dataset.y.tolist() == messy()["y"].tolist()
    assert opened.identifiers == ("patient", "name")
    assert opened.columns["when"] == "date, as days, year, month, weekday, hour"
    assert opened.columns["none0" if name == "rows.npz" else "none"] == "left out: no value at all"


@pytest.mark.parametrize("name", FILES)
def test_files_read_in_chunks(tmp_path, name):
    source = open_rows(written(tmp_path, name), "y", chunk_rows=31)
    chunks = list(source.chunks())
    assert [chunk.n_rows for chunk in chunks] != [N]
    assert np.concatenate([chunk.y for chunk in chunks]).tolist() == messy()["y"].tolist()
    check(together(source))


def test_chunks_in_memory_and_dask():
    frame = messy()
    check(together(open_rows(frame, "y", chunk_rows=17)))
    check(together(open_rows([frame[:50], frame[50:]], "y")))
    check(together(open_rows([as_text()[:50], as_text()[50:]], "y")))
    check(together(open_rows(pl.from_pandas(frame), "y", chunk_rows=17)))
    check(together(open_rows(dd.from_pandas(frame, npartitions=3), "y")))
    check(together(open_rows(dd.from_pandas(as_text(), npartitions=3), "y")))


def in_parts(folder, ending):
    """Write the table to three files, the last with its columns in another order."""
    parts = [as_text()[:50], as_text()[50:90], as_text()[90:].iloc[:, ::-1]]
    for i, part in enumerate(parts):
        if ending == "parquet":
            typed = part.assign(when=pd.to_datetime(part["when"]))
            typed.to_parquet(folder / f"part-{i}.parquet", index=False)
        else:
            part.to_csv(folder / f"part-{i}.csv", sep=";,|"[i], index=False)
    return folder


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_several_files(tmp_path, ending):
    """Delimiters differ from file to file, as does the order of columns."""
    source = open_rows(in_parts(tmp_path, ending), "y", chunk_rows=31)
    check(together(source))
    assert np.concatenate([c.y for c in source.chunks()]).tolist() == messy()["y"].tolist()


def test_fits_in_memory_predict_the_same_whichever_way_rows_come(tmp_path):
    clf, frame, y = MultipleKernelDiscriminant(criterion="uniform"), messy(), messy()["y"]
    ways = {name: make(frame.drop(columns="y")) for name, make in DATAFRAMES.items()}
    for name in FILES:
        ways[name] = open_file(written(tmp_path, name), "y").dataset.X
    (tmp_path / "parts").mkdir()
    ways["files"] = together(open_rows(in_parts(tmp_path / "parts", "parquet"), "y"))
    expected = clone(clf).fit(ways["pandas"], y).predict_proba(ways["pandas"])
    for name, rows in ways.items():
        found = clone(clf).fit(rows, y).predict_proba(rows)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10, err_msg=name)


def test_fits_in_chunks_predict_the_same_whichever_way_rows_come(tmp_path):
    clf, frame = MultipleKernelDiscriminant(criterion="uniform"), messy()
    (tmp_path / "parquet").mkdir()
    (tmp_path / "csv").mkdir()
    rows = frame.drop(columns="y")
    expected = clone(clf).fit(open_rows(frame, "y")).predict_proba(rows)
    for source in (
        open_rows(frame, "y", chunk_rows=31),
        open_rows([frame[:50], frame[50:]], "y"),
        open_rows(pl.from_pandas(frame), "y", chunk_rows=40),
        open_rows(in_parts(tmp_path / "parquet", "parquet"), "y"),
        open_rows(in_parts(tmp_path / "csv", "csv"), "y", chunk_rows=31),
        open_rows(written(tmp_path, "semicolon.csv.gz"), "y"),
        open_rows(dd.from_pandas(frame, npartitions=3), "y"),
    ):
        found = clone(clf).fit(source).predict_proba(rows)
        # Sums over other chunks: scores differ in the eleventh digit.
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9, err_msg=repr(source))


@pytest.mark.parametrize("name", ["semicolon.csv", "plain.csv.gz", "rows.parquet", "rows.arrow"])
def test_standard_input_of_the_command_line(tmp_path, name, monkeypatch):
    content = written(tmp_path, name).read_bytes()
    monkeypatch.chdir(tmp_path)
    words = ["fit", "-", "-t", "y", "-o", "m.skops", "--criterion", "uniform"]
    result = CliRunner().invoke(commands.app, words, input=content)
    assert result.exit_code == 0, result.output
    model = read_model("m.skops")
    rows = open_file(tmp_path / name, "y").dataset.X
    check(rows, model.pipeline[-1].encoder_, prepared=True)
    result = CliRunner().invoke(commands.app, ["predict", "m.skops", "-"], input=content)
    assert result.exit_code == 0, result.output
    found = pd.read_csv(io.StringIO(result.stdout))
    assert found["patient"].tolist() == messy()["patient"].tolist()
    shares = model.pipeline.predict_proba(rows)[:, 0]
    np.testing.assert_allclose(found["probability_ill"], shares, rtol=1e-12)


# ---- what is refused ---------------------------------------------------------------------------


def test_a_cell_of_another_kind_is_named_with_its_column_and_row(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{i},{i % 7}.5,{i % 2}" for i in range(600_000)]
    lines[-1] = "599999,old,1"
    path.write_text("\n".join(["id,size,y", *lines]))
    with pytest.raises(InvalidInputError, match=r"'size' must .* 'old' in line 600001"):
        list(open_rows(path, "y").chunks())
    with pytest.raises(InvalidInputError, match=r"'size' must .* 'old' in row 600000 of"):
        open_file(path, "y")


def test_a_word_among_dates_is_named_with_its_column_and_row(tmp_path):
    frame = as_text("%d.%m.%Y")
    frame.loc[70, "when"] = "soon"
    with pytest.raises(InvalidInputError, match=r"'when' must hold dates or text.* 'soon' is not"):
        TableEncoder().fit(frame.drop(columns="y"))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(InvalidInputError, match=r"column 'when' .* 'soon' in row 71 of rows.csv"):
        open_file(tmp_path / "rows.csv", "y")
