"""Rows in chunks: whole, in order, as often as wanted, and errors that name the row."""

import os

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from discernel.exceptions import InvalidInputError
from discernel.rows.cells import MISSING_VALUES
from discernel.rows.chunks import stack_rows
from discernel.rows.labelled import open_file
from discernel.rows.sources import chunk_size
from discernel.streams import open_rows


def table(n=25):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "colour": rng.choice(["red", "blue"], n),
            "y": rng.choice(["a", "b"], n),
            "weight": rng.integers(1, 4, n).astype(float),
        }
    )


def together(source):
    chunks = [chunk for chunk in source.chunks() if chunk.n_rows]
    X = stack_rows([chunk.X for chunk in chunks])
    y = None if chunks[0].y is None else np.concatenate([chunk.y for chunk in chunks])
    weights = None
    if chunks[0].weights is not None:
        weights = np.concatenate([chunk.weights for chunk in chunks])
    return X, y, weights


def files(folder, frame, kind, parts=3):
    paths = []
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), parts)):
        path, part = folder / f"part-{i}.{kind}", frame.iloc[rows]
        part.to_parquet(path) if kind == "parquet" else part.to_csv(path, index=False)
        paths.append(path)
    return paths


# ---- all rows, in order, again and again -------------------------------------------------------


def sources(tmp_path):
    frame = table()
    X, y = frame[["age", "weight"]].to_numpy(), frame["y"].to_numpy()
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y.astype(str))
    pairs = [(X[:10], y[:10]), (X[10:10], y[10:10]), (X[10:], y[10:])]
    given = {
        "array": open_rows(X, y, chunk_rows=7),
        "memmap": open_rows(tmp_path / "X.npy", tmp_path / "y.npy", chunk_rows=7),
        "list": open_rows(pairs),
        "callable": open_rows(lambda: iter(pairs)),
        "lists": open_rows([(rows.tolist(), labels.tolist()) for rows, labels in pairs[::2]]),
        "sparse": open_rows(sparse.csr_matrix(X), y, chunk_rows=7),
        "frame": open_rows(frame[["age", "weight"]], y, chunk_rows=7),
        "named": open_rows(frame.drop(columns="colour"), "y", chunk_rows=7),
        "polars": open_rows(pl.from_pandas(frame.drop(columns="colour")), "y", chunk_rows=7),
        "frames": open_rows([f.drop(columns="colour") for f in (frame[:9], frame[9:])], "y"),
    }
    return X, y, given


@pytest.mark.parametrize("time", ["first", "second"])
def test_every_kind_of_source_gives_all_rows_in_order(tmp_path, time):
    X, y, given = sources(tmp_path)
    for name, source in given.items():
        if time == "second":
            list(source.chunks())
        rows, labels, weights = together(source)
        rows = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows, dtype=float)
        assert np.array_equal(rows, X), name
        assert labels.tolist() == y.tolist(), name
        assert weights is None


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("given", ["folder", "pattern", "list"])
def test_files_give_all_rows_in_order(tmp_path, kind, given):
    frame = table()
    paths = files(tmp_path, frame, kind)
    (tmp_path / "_SUCCESS").touch()
    where = {"folder": tmp_path, "pattern": f"{tmp_path}/*.{kind}", "list": paths}[given]
    source = open_rows(where, "y", weights="weight", chunk_rows=4)
    X, y, weights = together(source)
    assert source.columns == ["age", "colour"]
    assert np.allclose(X["age"], frame["age"], rtol=1e-14)
    assert X["colour"].tolist() == frame["colour"].tolist()
    assert y.tolist() == frame["y"].tolist()
    assert np.array_equal(weights, frame["weight"])
    assert max(chunk.n_rows for chunk in source.chunks()) <= 4
    assert source.n_rows == (25 if kind == "parquet" else None)
    assert 15 <= source.estimated_n_rows <= 35


def test_columns_are_left_out_of_every_kind_of_source(tmp_path):
    frame = table()
    (tmp_path / "csv").mkdir()
    files(tmp_path / "csv", frame, "csv")
    files(tmp_path, frame, "parquet")
    for given in (frame, [frame[:9], frame[9:]], f"{tmp_path}/*.parquet", tmp_path / "csv"):
        source = open_rows(given, "y", weights="weight", drop=["colour"])
        X, y, weights = together(source)
        assert source.columns == list(X.columns) == ["age"]
        assert np.allclose(X["age"], frame["age"], rtol=1e-14)
        assert y.tolist() == frame["y"].tolist()
        assert np.array_equal(weights, frame["weight"])
    with pytest.raises(
        InvalidInputError, match=r"Arrays have no column names\. Got the column 'a'"
    ):
        open_rows(np.ones((3, 2)), drop=["a"])


def test_places_name_files_and_rows(tmp_path):
    source = open_rows(files(tmp_path, table(), "parquet"), "y", chunk_rows=4)
    places = [chunk.place for chunk in source.chunks()]
    assert [place.first for place in places[:4]] == [0, 4, 8, 0]
    assert places[3].of_row(2) == f"row 3 of {tmp_path / 'part-1.parquet'}, counted from 1"


def test_a_frame_of_categories_keeps_all_of_them():
    parts = [pd.DataFrame({"c": pd.Categorical([1, 2])}), pd.DataFrame({"c": pd.Categorical([3])})]
    stacked = stack_rows(parts)
    assert isinstance(stacked["c"].dtype, pd.CategoricalDtype)
    assert stacked["c"].tolist() == [1, 2, 3]


def test_columns_of_parts_may_come_in_any_order(tmp_path):
    frame = table()
    parts = [frame[:9], frame[9:][frame.columns[::-1]]]
    for i, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{i}.parquet", index=False)
    given = [frame.drop(columns="y").iloc[:9], frame.drop(columns="y").iloc[9:, ::-1]]
    labels = [frame["y"][:9], frame["y"][9:]]
    for source in (
        open_rows(parts, "y"),
        open_rows(list(zip(given, labels, strict=True))),
        open_rows(tmp_path, "y"),
    ):
        X, y, _ = together(source)
        pd.testing.assert_frame_equal(X, frame.drop(columns="y"), check_dtype=False)
        assert y.tolist() == frame["y"].tolist()


# ---- faults ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_column_that_one_file_has_not_is_named(tmp_path, kind):
    paths = files(tmp_path, table(), kind)
    frame = table().drop(columns="age")
    frame.to_parquet(paths[1]) if kind == "parquet" else frame.to_csv(paths[1], index=False)
    with pytest.raises(InvalidInputError, match=rf"part-1.{kind} has no 'age'"):
        open_rows(paths, "y")


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_another_kind_of_column_in_one_file_is_named(tmp_path, kind):
    paths, frame = files(tmp_path, table(), kind), table().assign(age="old")
    frame.to_parquet(paths[2]) if kind == "parquet" else frame.to_csv(paths[2], index=False)
    with pytest.raises(InvalidInputError, match=r"'age' holds numbers in .* and text in .*part-2"):
        open_rows(paths, "y")


def test_text_that_comes_late_in_a_column_of_numbers_is_named(tmp_path):
    path, n = tmp_path / "long.csv", 400_000
    lines = [f"{i}.5,a" for i in range(n)] + ["old,b"]
    path.write_text("age,y\n" + "\n".join(lines) + "\n")
    source = open_rows(path, "y")
    with pytest.raises(InvalidInputError, match=r"long\.csv.*'age' .*'old' in line 400002"):
        list(source.chunks())


@pytest.mark.parametrize("late", ["1.5", "1.5,a,b", '"1.5,a'])
def test_a_late_line_with_too_many_or_too_few_cells_is_named(tmp_path, monkeypatch, late):
    """Lines are counted as in an editor: also blank ones, and those within a cell."""
    monkeypatch.setattr("discernel.rows.delimited._BLOCK_BYTES", 1000)
    lines = ["age,y", "", '0.5,"a', 'b"', *["1.5,a"] * 500, late]
    (tmp_path / "long.csv").write_text("\n".join(lines) + "\n")
    source = open_rows(tmp_path / "long.csv", "y")
    cells = 3 if late.endswith("b") else 1
    with pytest.raises(InvalidInputError, match=f"line 505 must have 2 cells.* Got {cells}"):
        list(source.chunks())


def test_decimals_may_come_late_also_where_the_first_file_has_no_values(tmp_path, monkeypatch):
    monkeypatch.setattr("discernel.rows.delimited._BLOCK_BYTES", 1000)
    (tmp_path / "0.csv").write_text("x,y\n,a\n,b\n")
    rows = "".join(f"{i},a\n" for i in range(1000))
    (tmp_path / "1.csv").write_text(f"x,y\n{rows}0.5,b\n")
    X, _, _ = together(open_rows(tmp_path, "y"))
    assert X["x"].tolist()[2:] == [*range(1000), 0.5]


def test_files_without_rows_are_passed_over(tmp_path):
    paths = files(tmp_path, table(), "parquet")
    table().iloc[:0].to_parquet(paths[1])
    X, _, _ = together(open_rows(tmp_path, "y"))
    assert len(X) == 25 - 8
    (tmp_path / "csv").mkdir()
    paths = files(tmp_path / "csv", table(), "csv")
    paths[1].write_text(",".join(table().columns) + "\n")
    X, _, _ = together(open_rows(tmp_path / "csv", "y"))
    assert len(X) == 25 - 8


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_of_no_bytes_is_named(tmp_path, kind):
    files(tmp_path, table(), kind)
    (tmp_path / f"part-3.{kind}").touch()
    with pytest.raises(InvalidInputError, match=rf"part-3\.{kind} must not be empty\. Got 0 bytes"):
        open_rows(tmp_path, "y")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_that_changes_after_it_was_opened_is_named(tmp_path, kind):
    paths = files(tmp_path, table(), kind)
    source = open_rows(paths, "y", chunk_rows=2)
    together(source)
    chunks = source.chunks()
    next(chunks)
    os.utime(paths[1], ns=(0, 0))
    with pytest.raises(InvalidInputError, match=rf"must not change .*part-1\.{kind}"):
        list(chunks)
    paths[1].unlink()
    with pytest.raises((InvalidInputError, OSError), match=r"part-1"):
        list(source.chunks())


def test_a_label_that_is_missing_is_named(tmp_path):
    frame = table()
    frame.loc[10, "y"] = None
    source = open_rows(files(tmp_path, frame, "parquet"), "y", chunk_rows=1)
    with pytest.raises(InvalidInputError, match=r"Got .* in row 2 of .*part-1\.parquet"):
        list(source.chunks())


def test_a_bad_weight_is_named():
    with pytest.raises(InvalidInputError, match=r"Got -1.0 in row 2 of X"):
        list(open_rows(np.ones((3, 1)), [0, 1, 0], weights=[1, 1, -1]).chunks())


def test_what_stands_for_a_missing_cell_is_that_of_one_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,t,y\n" + "".join(f"{word},{word},a\n1,u,b\n" for word in MISSING_VALUES))
    X, _, _ = together(open_rows(path, "y"))
    one = open_file(path, "y").dataset.X
    assert X["x"].isna().sum() == X["t"].isna().sum() == len(MISSING_VALUES)
    assert np.array_equal(one.isna(), X.isna())


def test_labels_with_zeros_in_front_stay_text(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,007\n2,7\n3,7\n")
    assert together(open_rows(path, "y"))[1].tolist() == ["007", "7", "7"]
    path.write_text("x,y\n1,70\n2,7\n3,7\n")
    assert together(open_rows(path, "y"))[1].tolist() == [70, 7, 7]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: open_rows(iter([np.ones((2, 2))])), "iterator, which is exhausted"),
        (lambda: open_rows("nowhere/*.parquet"), "Found no files for"),
        (lambda: open_rows(np.ones((3, 2)), [0, 1]), "3 rows and 2 labels"),
        (lambda: list(open_rows([(np.ones((3, 2)), [0, 1, 0], [1])]).chunks()), "3 rows and 1 wei"),
        (lambda: open_rows(np.ones((3, 2)), weights=2.0), "one weight per row"),
        (lambda: open_rows(np.ones((3, 2)), weights=np.ones((3, 1))), "one weight per row"),
        (lambda: open_rows(np.ones(3), [0, 1, 0]), "two-dimensional table"),
        (lambda: open_rows(np.ones((3, 2)), chunk_rows=0), "chunk_rows must be"),
        (lambda: list(open_rows([table(), table().drop(columns="age")], "y").chunks()), "no 'age'"),
        (lambda: list(open_rows([table()], "z").chunks()), "'z' must be in every chunk"),
        (lambda: open_rows(table(), "z"), "'z' must be in every chunk"),
        (lambda: open_rows(open_rows(table()), "y"), "contains labels, weights and groups"),
    ],
)
def test_what_cannot_be_rows_is_refused(make, words):
    with pytest.raises(InvalidInputError, match=words):
        make()


def test_little_memory_makes_small_chunks_or_a_clear_error(monkeypatch):
    monkeypatch.setattr("discernel.rows.sources.memory_limit", lambda: 2**20)
    assert chunk_size(1, 10**6) == 2**20 // 64 // 8
    with pytest.raises(InvalidInputError, match="A row must fit into"):
        chunk_size(10**6, None)


@pytest.mark.parametrize("chosen", [["a", "b", "a", "y"], ["a", "y", "b", "y"]])
def test_two_columns_of_one_name_are_refused(chosen):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": [0, 1]})[chosen]
    for rows in (frame, [frame, frame]):
        with pytest.raises(InvalidInputError, match=r"Columns \d and \d are both called '[ay]'"):
            list(open_rows(rows, "y").chunks())


def test_rows_with_nothing_but_a_label_are_refused():
    with pytest.raises(InvalidInputError, match="at least one column besides labels"):
        open_rows(pd.DataFrame({"y": [0, 1]}), "y")
