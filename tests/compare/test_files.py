"""Files of the user: what is read, and what is refused with which words."""

import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from discernel.exceptions import InvalidInputError, MissingExtraError
from discernel.rows import formats
from discernel.rows.chunks import Place
from discernel.rows.columns import one_spelling
from discernel.rows.labelled import digest, open_file
from discernel.rows.reading import read_table
from discernel.tables import TableEncoder

GOOD = "a,b,target\n1,2,x\n2,1,x\n3.5,0,y\n4,7,y\n"


@pytest.fixture
def write(tmp_path):
    def write(content, name="data.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return write


def read_file(name, path, target=None, **options):
    return open_file(path, target, name=name, **options).dataset


def frame(n=12):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"a": rng.normal(size=n), "b": rng.normal(size=n), "kind": ["u", "v", "w"] * (n // 3)}
    ).assign(target=["x", "y"] * (n // 2))


# ---- what is read ------------------------------------------------------------------------------


def test_a_csv_file_becomes_a_data_set(write):
    data = read_file("mine", write(GOOD))
    assert data.name == "mine"
    assert data.feature_names == ("a", "b")
    np.testing.assert_array_equal(data.X, [[1, 2], [2, 1], [3.5, 0], [4, 7]])
    assert data.y.tolist() == ["x", "x", "y", "y"]
    assert data.source == "file data.csv"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(write, delimiter):
    np.testing.assert_array_equal(
        read_file("mine", write(GOOD.replace(",", delimiter))).X,
        [[1, 2], [2, 1], [3.5, 0], [4, 7]],
    )


def test_a_byte_order_mark_and_quotes_are_no_part_of_the_names(write):
    path = write('\ufeff"a, first","b",target\n1,2,"x, y"\n2,1,z\n')
    data = read_file("mine", path)
    assert data.feature_names == ("a, first", "b")
    assert data.y.tolist() == ["x, y", "z"]


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_may_end_in_all_ways_and_blank_ones_come_first(write, end):
    for start in ("", end, "\ufeff", 2 * end):
        data = read_file("mine", write((start + GOOD).replace("\n", end)))
        np.testing.assert_array_equal(data.X, [[1, 2], [2, 1], [3.5, 0], [4, 7]])
        assert data.y.tolist() == ["x", "x", "y", "y"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_name_may_have_an_end_of_line_in_quotes(write, delimiter):
    header = delimiter.join(['"a,;\t\n(in m)"', '"b \r\n c"', "target"])
    body = GOOD.partition("\n")[2].replace(",", delimiter)
    data = read_file("mine", write(f"{header}\n{body}"))
    assert data.feature_names == ("a,;\t (in m)".replace("\t (", " ("), "b c")
    assert data.X.shape == (4, 2)


def test_a_quote_within_a_name_is_no_beginning_of_one(write):
    assert read_file("mine", write(GOOD.replace("a,", 'pipe of 5",', 1))).feature_names == (
        'pipe of 5"',
        "b",
    )


@pytest.mark.parametrize("name", ["target", "Class", "LABEL", "y"])
def test_the_target_is_found_by_its_name(write, name):
    assert open_file(write(GOOD.replace("target", name))).target == name


def test_whole_numbers_are_whole_labels_and_truths_are_text(write):
    assert read_file("m", write("a,y\n1,1.0\n2,2.0\n")).y.dtype.kind == "i"
    assert read_file("m", write("a,y\n1,True\n2,False\n")).y.tolist() == ["True", "False"]


BIG = [2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
HUGE = [2**63, 2**64 + 1, 10**40, 10**40 + 1]


@pytest.mark.parametrize(
    ("labels", "kind"),
    [(BIG, "i"), (HUGE, "U"), ([1, 2, 2**63], "U")],
    ids=["int64", "text", "mixed"],
)
@pytest.mark.parametrize("gap", [False, True])
def test_large_whole_labels_stay_apart(write, labels, kind, gap):
    lines = [f"{i * i},{label}" for i, label in enumerate(labels * 2)]
    lines += ["99,"] * gap  # pandas reads whole numbers with gaps as floats
    y = read_file("m", write("\n".join(["a,y", *lines]))).y
    assert y.dtype.kind == kind
    assert [int(label) for label in y.tolist()] == labels * 2


@pytest.mark.parametrize("gap", [False, True])
def test_large_whole_labels_of_parquet_and_npz_stay_apart(tmp_path, gap):
    labels = BIG * 2
    table = pd.DataFrame({"a": np.arange(8.0) ** 2, "y": pd.array(labels, dtype="Int64")})
    if gap:
        table.loc[8] = [99.0, pd.NA]
    table.set_index(pd.Index(range(50, 50 + len(table)), name="who")).to_parquet(
        tmp_path / "a.parquet"
    )
    data = read_file("a", tmp_path / "a.parquet")
    assert data.y.tolist() == labels
    assert data.feature_names == ("a",)
    np.savez(tmp_path / "a.npz", X=np.arange(16.0).reshape(8, 2), y=np.array(labels))
    assert read_file("a", tmp_path / "a.npz").y.tolist() == labels


def test_labels_are_spelt_in_one_way_and_codes_are_no_numbers(write):
    assert read_file("m", write("a,y\n1,1\n2,1.0\n3,2.50\n4,2.5\n")).y.tolist() == [
        "1",
        "1",
        "2.5",
        "2.5",
    ]
    assert read_file("m", write("a,y\n1,01\n2,1\n3,01\n")).y.tolist() == ["01", "1", "01"]
    assert read_file("m", write("a,y\n1,-0\n2,+1\n3,0.0\n")).y.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1", "1"),
        ("1.0", "1"),
        (" 1 ", "1"),
        ("+1.", "1"),
        ("-0.0", "0"),
        ("1e3", "1000"),
        ("1e-05", "0.00001"),
        (0.1, "0.1"),
        (np.float32(0.1), "0.1"),
        (1e22, "1" + "0" * 22),
        (np.int64(2**53 + 1), str(2**53 + 1)),
        ("9" * 60, "9" * 60),
        ("007", "007"),
        ("1e99999", "1e99999"),
        ("1_000", "1_000"),
        (" red ", " red "),
        (True, "True"),
        ("inf", "inf"),
    ],
)
def test_numbers_are_spelt_in_one_way(value, text):
    assert one_spelling(value) == text


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_categories_are_the_same_however_a_file_writes_them(write, tmp_path, ending):
    path = write("a,k,y\n1,1,0\n2,2,1\n4,1,0\n8,2,1\n")
    schema = open_file(path, categorical=["k"]).schema
    assert schema.kinds == {"a": "number", "k": "code"}
    if ending == "csv":
        new = write("a,k\n1,1.0\n2,2.0\n4,\n", "new.csv")  # a gap makes floats of whole numbers
    else:
        new = tmp_path / "new.parquet"
        pd.DataFrame({"a": [1, 2, 4], "k": [1.0, 2.0, np.nan]}).to_parquet(new)
    rows = read_table(new, schema.categories).frame
    assert schema.convert(rows, Place.of_file("new"))["k"].astype(object).tolist()[:2] == ["1", "2"]
    assert schema.convert(rows, Place.of_file("new"))["k"].isna().tolist() == [False, False, True]


def test_all_formats_give_the_same(tmp_path):
    table = frame().drop(columns="kind")
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    table.to_parquet(tmp_path / "a.parquet")
    table.to_feather(tmp_path / "a.feather")
    arrow = pa.Table.from_pandas(table)
    with pa.ipc.new_file(tmp_path / "a.arrow", arrow.schema) as file:
        file.write_table(arrow)
    with pa.ipc.new_stream(tmp_path / "stream.arrow", arrow.schema) as file:
        file.write_table(arrow)
    csv = open_file(tmp_path / "a.csv").dataset
    for name in ("a.tsv", "a.parquet", "a.feather", "a.arrow", "stream.arrow"):
        other = open_file(tmp_path / name)
        np.testing.assert_allclose(csv.X, other.dataset.X, rtol=1e-15)
        np.testing.assert_array_equal(csv.y, other.dataset.y)
        assert other.notes[0].split(",")[0].split(";")[0].lower() in (
            name.split(".")[1],
            "tsv",
        )


def test_lists_are_left_out(tmp_path):
    frame().assign(odd=[[1, 2]] * 12).to_parquet(tmp_path / "a.parquet")
    opened = open_file(tmp_path / "a.parquet")
    assert opened.dataset.feature_names == ("a", "b", "kind")
    assert opened.columns["odd"] == "left out: neither numbers nor text"


def test_arrays_of_two_dimensions_are_views(tmp_path):
    rng = np.random.default_rng(0)
    words, pixels = rng.normal(size=(6, 3)), rng.normal(size=(6, 2))
    np.savez(tmp_path / "v.npz", words=words, pixels=pixels, y=np.repeat([0, 1], 3))
    data = read_file("v", tmp_path / "v.npz")
    np.testing.assert_array_equal(data.view("words"), words)
    np.testing.assert_array_equal(data.view("pixels"), pixels)
    assert data.feature_names == ("words0", "words1", "words2", "pixels0", "pixels1")


def test_views_keep_their_columns_when_constant_ones_go(tmp_path):
    first, second = np.arange(12.0).reshape(4, 3), np.arange(8.0).reshape(4, 2)
    first[:, 1] = 5.0
    np.savez(tmp_path / "v.npz", one=first, two=second, target=[0, 0, 1, 1])
    opened = open_file(tmp_path / "v.npz")
    np.testing.assert_array_equal(opened.dataset.view("one"), first[:, [0, 2]])
    np.testing.assert_array_equal(opened.dataset.view("two"), second)
    assert opened.notes[0] == "NPZ, 2 views: one, two; 4 numbers, 1 left out (one1: one value)"


def test_views_whose_names_end_with_digits_are_told_apart(tmp_path):
    rng = np.random.default_rng(0)
    one, eleven = rng.normal(size=(6, 12)), rng.normal(size=(6, 2))
    np.savez(tmp_path / "v.npz", v1=one, v11=eleven, y=np.repeat([0, 1], 3))
    data = read_file("v", tmp_path / "v.npz")
    assert data.feature_names[10:13] == ("v1[10]", "v1[11]", "v11[0]")
    np.testing.assert_array_equal(data.view("v11"), eleven)


def test_one_array_is_no_view(tmp_path):
    np.savez(tmp_path / "v.npz", X=np.eye(4), target=[0, 0, 1, 1])
    assert read_file("v", tmp_path / "v.npz").views == {}


# ---- what is found -----------------------------------------------------------------------------


def test_categories_and_missing_cells_stay_as_they_are(write):
    opened = open_file(write("a,b,kind,y\n1,2,u,0\n?,1,v,0\n3,,,1\n5,7,u,1\n"))
    assert opened.dataset.feature_names == ("a", "b", "kind")
    assert opened.dataset.X["kind"].tolist() == ["u", "v", None, "u"]
    np.testing.assert_array_equal(opened.dataset.X["a"], [1, np.nan, 3, 5])
    assert opened.notes == ("CSV, delimiter ','; 2 numbers, 1 category; 3 cells missing",)
    assert opened.columns == {
        "a": "number, 1 missing",
        "b": "number, 1 missing",
        "kind": "category of 2 values, 1 missing",
        "y": "the classes",
    }


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_a_decimal_comma_makes_numbers(write, delimiter):
    text = "a;b;y\n1,5;2;0\n-2,25e1;1;1\n;7;0\n1.234,5;3;1\n".replace(";", delimiter)
    opened = open_file(write(text))
    np.testing.assert_array_equal(opened.dataset.X["a"], [1.5, -22.5, np.nan, 1234.5])
    assert "decimal ','; 2 numbers; 1 cell missing" in opened.notes[0]


def test_quoted_commas_are_decimal_signs_or_between_thousands(write):
    opened = open_file(write('a,b,y\n"1,5","1,234",0\n"2,25","12,500",1\n3,7,0\n'))
    np.testing.assert_array_equal(opened.dataset.X, [[1.5, 1234], [2.25, 12500], [3, 7]])
    assert "decimal ',', ',' between thousands; 2 numbers" in opened.notes[0]
    assert "decimal" not in open_file(write("a,b,y\n1,,0\n2,3,1\n")).notes[0]
    assert "decimal '.'" in open_file(write("a,b,y\n1.5,,0\n2,3,1\n")).notes[0]


def test_a_line_of_names_may_be_missing(write):
    opened = open_file(write("5.1,3.5,setosa\n4.9,3.0,setosa\n6.3,3.3,other\n"), "3")
    assert opened.dataset.feature_names == ("column 1", "column 2")
    assert opened.target == "column 3"
    assert opened.dataset.y.tolist() == ["setosa", "setosa", "other"]
    assert "no header: columns are called 'column 1', 'column 2' and 1 more" in (opened.notes[0])
    with pytest.raises(InvalidInputError, match=r"Got 'ill'.*has no header.*are numbered, 'colu"):
        open_file(write("5.1,3.5,setosa\n4.9,3.0,other\n"), "ill")
    with pytest.raises(InvalidInputError, match="has 'column 1', 'column 2', 'column 3'"):
        open_file(write("1,2,3\n4,5,6\n"))


@pytest.mark.parametrize(
    "text",
    [
        "id,2019,2020,y\n1,5.5,7,a\n2,1,8,b\n",  # years are names
        "kind,town,y\nu,York,a\nv,Bath,b\nu,York,b\n",
        ",a,y\n0,4,0\n1,2,1\n",
    ],
)
def test_a_line_of_names_is_one(write, text):
    assert "no header" not in open_file(write(text)).notes[0]


def test_codes_with_zeros_in_front_are_categories(write):
    opened = open_file(write("zip,a,y\n01234,1,0\n99999,2,1\n01234,5,0\n99999,3,1\n"))
    assert opened.dataset.X["zip"].tolist() == ["01234", "99999"] * 2
    assert opened.schema.categories == ("zip",)


def test_numbers_with_a_word_among_them_are_asked_about(write):
    path = write("a,b,y\n1,2,0\n2,old,1\n4,5,1\n7,old,0\n")
    with pytest.raises(
        InvalidInputError, match=r"'old' in row 2 of .*--numeric b.*--categorical b"
    ):
        open_file(path)
    np.testing.assert_array_equal(
        open_file(path, numeric=["b"]).dataset.X["b"], [2, np.nan, 5, np.nan]
    )
    assert open_file(path, categorical=["b"]).dataset.X["b"].tolist() == ["2", "old", "5", "old"]


@pytest.mark.parametrize(
    "dates",
    [
        ["2020-01-31", "2021-02-28", "", "2020-03-01"],
        ["31.01.2020", "28.02.2021", "", "01.03.2020"],
        ["31/01/2020", "28/02/2021", "", "01/03/2020"],
        ["01/31/2020", "02/28/2021", "", "03/01/2020"],
        ["2020/01/31", "2021/02/28", "", "2020/03/01"],
        ["2020-01-31T00:00Z", "2021-02-28", "", "2020-03-01T00:00:00+00:00"],
    ],
)
def test_dates_become_numbers(write, dates):
    rows = "".join(f"{i},{date},{i % 2}\n" for i, date in enumerate(dates))
    opened = open_file(write("a,when,y\n" + rows))
    assert opened.dataset.feature_names == ("a", "when")
    expected = pd.to_datetime(["2020-01-31", "2021-02-28", None, "2020-03-01"])
    days = (expected - pd.Timestamp("1970-01-01")).days
    assert (opened.dataset.X["when"].isna() == [False, False, True, False]).all()
    encoder = TableEncoder().fit(opened.dataset.X.iloc[[0, 1, 3]])
    found = encoder.transform(opened.dataset.X.iloc[[0, 1, 3]])
    days, expected = days[[0, 1, 3]], expected[[0, 1, 3]]
    np.testing.assert_array_equal(found[:, 1], days)
    np.testing.assert_array_equal(found[:, 2], expected.year)
    np.testing.assert_array_equal(found[:, 3], expected.month)
    np.testing.assert_array_equal(found[:, 4], expected.day_of_week)
    assert "'when' is treated as dates: days, year, month, weekday" in opened.notes
    new = pd.DataFrame({"when": ["soon"], "a": [1]})
    with pytest.raises(InvalidInputError, match=r"'when' must hold dates .* 'soon' in row 1"):
        opened.schema.convert(new, Place.of_file("new"))


def test_dates_of_parquet_are_those_of_csv_and_constant_parts_go(tmp_path):
    when = pd.date_range("2020-01-01 06:00", periods=12, freq="h")
    table = frame().assign(when=when, day=when.date)
    table.to_parquet(tmp_path / "a.parquet")
    table.to_csv(tmp_path / "a.csv", index=False)
    one, two = (open_file(tmp_path / f"a.{ending}") for ending in ("parquet", "csv"))
    assert one.dataset.feature_names == ("a", "b", "kind", "when")
    assert one.columns["when"] == "date, as days, hour"
    assert one.columns["day"] == "left out: one date"
    assert one.dataset.X["when"].dt.hour.tolist() == list(range(6, 18))
    pd.testing.assert_frame_equal(one.dataset.X, two.dataset.X)
    # A model fitted to one of them takes the other.
    rows = read_table(tmp_path / "a.parquet").frame
    pd.testing.assert_frame_equal(two.schema.convert(rows, Place.of_file("new")), one.dataset.X)


def test_days_and_months_that_cannot_be_told_apart_are_said(write):
    rows = "".join(f"{i},0{1 + i % 9}/0{1 + i % 7}/2020,{i % 2}\n" for i in range(20))
    opened = open_file(write("a,when,y\n" + rows))
    assert any("'when' may hold dates" in note for note in opened.notes)
    assert opened.columns["when"].startswith(("category", "left out"))


def test_columns_that_say_nothing_are_left_out_and_named(write):
    rows = "".join(f"{i},name{i},{i * i % 7},3,,{i % 2}\n" for i in range(60))
    opened = open_file(write("id,who,a,same,none,y\n" + rows))
    assert opened.dataset.feature_names == ("a",)
    assert opened.identifiers == ("id", "who")
    assert opened.notes[0] == (
        "CSV, delimiter ','; 1 number, 4 left out (id: numbers the rows; who: text with 60 "
        "different values in 60 rows; same: one value; none: no value at all)"
    )
    kept = open_file(write("id,who,a,same,none,y\n" + rows), numeric=["id"])
    assert kept.dataset.feature_names == ("id", "a")


def test_rows_without_a_class_are_left_out(write):
    opened = open_file(write("a,y\n1,0\n2,\n3,1\n"))
    assert opened.dataset.y.tolist() == [0, 1]
    assert opened.notes[1] == "left out 1 row without a class in 'y'"


def test_a_short_column_that_counts_rows_is_noted_and_kept(write):
    opened = open_file(write(",a,y\n0,4,0\n1,2,1\n2,9,0\n3,1,1\n"))
    assert opened.dataset.feature_names == ("column 1", "a")
    assert opened.notes[1].startswith("'column 1' numbers the rows")
    assert '--drop "column 1"' in opened.notes[1]


def test_a_changed_file_is_read_again_or_refused(write):
    path = write(GOOD)
    before = digest(path)
    read_file("mine", path, digest=before)
    write(GOOD.replace("3.5", "8.25"))
    assert read_file("mine", path).X.iloc[2, 0] == 8.25
    with pytest.raises(InvalidInputError, match="Its content has changed"):
        read_file("mine", path, digest=before)


def test_a_preparation_does_the_same_to_new_rows(tmp_path):
    table = frame().assign(when=[f"2020-{1 + i:02}-{1 + i:02}" for i in range(12)], code=[1, 2] * 6)
    table.loc[2, "a"] = np.nan
    table.to_csv(tmp_path / "a.csv", index=False)
    opened = open_file(tmp_path / "a.csv", categorical=["code"], numeric=["b"])
    schema = opened.schema
    assert schema.kinds == {
        **{"a": "number", "b": "numeric", "kind": "category"},
        **{"when": "2024-01-31", "code": "code"},
    }
    rows = read_table(tmp_path / "a.csv").frame
    shuffled = rows[rows.columns[::-1]].iloc[::-1].reset_index(drop=True)
    expected = opened.dataset.X.iloc[::-1].reset_index(drop=True)
    pd.testing.assert_frame_equal(schema.convert(shuffled, Place.of_file("new")), expected)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop(columns="b"), r"columns that the model was fitted to. Missing: 'b'"),
        (lambda t: t.assign(a=["q", *t["a"][1:]]), r"column 'a' must hold numbers. Got 'q' in row"),
        (lambda t: t.assign(a=np.inf), r"column 'a' has inf in row 1 of"),
    ],
)
def test_a_preparation_refuses_rows_that_do_not_fit(tmp_path, change, words):
    frame().to_csv(tmp_path / "a.csv", index=False)
    schema = open_file(tmp_path / "a.csv").schema
    with pytest.raises(InvalidInputError, match=words):
        schema.convert(change(frame()), Place.of_file("new"))


# ---- what is refused ---------------------------------------------------------------------------

CONTINUOUS = "a,y\n" + "".join(f"{i},{i / 7}\n" for i in range(30))
COMMAS = "a;y\n" + "".join(f"{i};{i},5\n" for i in range(30))
NAMES = "a,y\n" + "".join(f"{i},name {i}\n" for i in range(30))
PRICES = "a,y\n" + "".join(f"{i / 8},{1000 + 7 * (i // 2)}\n" for i in range(90))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", r"data.csv must not be empty. Got 0 bytes"),
        ("\n\n", r"data.csv must have column names in line 1. All its lines are blank"),
        ("\ufeff", r"data.csv must have column names in line 1. All its lines are blank"),
        ("a,target\r", r"must have rows below the header. Got none"),
        ('a,"target\n1,2\n', r"must have rows below the header"),
        ('"a' + 200_000 * "x", r"must be a valid CSV file. Problem: a column name is too long"),
        ("a,target\n", r"must have rows below the header. Got none"),
        ("1,2,3\n4,5,6\n", r"The target must be named: data.csv has 'column 1', 'column 2'"),
        ("a,b,c\n1,2,3\n", r"The target must be named: data.csv has 'a', 'b', 'c'. .*--target"),
        ("a,y,class\n1,2,3\n", r"The target must be named: data.csv has 'y', 'class'"),
        ("a,b,a,y\n1,2,3,0\n", r"Columns 1 and 3 are both called 'a'. Rename one"),
        ("a,b,y\n1,2,0\n3,1\n", r"line 3 must have 3 cells, like line 1. Got 2"),
        ("a,b,y\n1,2,0\n\n3,1,4,5\n", r"line 4 must have 3 cells, like line 1. Got 4"),
        ("a,y\n1,0\n2,0\n", r"at least two classes. Column 'y' of data.csv holds 0 in every row"),
        (NAMES, r"Column 'y' of data.csv holds 30 distinct texts in 30 rows. Name another target"),
        ("a,y\n1,0\n1,1\n", r"At least one column must hold .* 1 column.s.: 'a': one value"),
        (
            "a,b,y\n1,u,0\n1,v,1\n",
            r"2 column.s.: 'a': one value; 'b': every value occurs in one row only",
        ),
        ("y\n1\n2\n", r"data.csv must have at least one column besides the target"),
        ("a,y\n1,\n2,\n", r"Column 'y' of data.csv has no values"),
        ("a,y\n2020-01-01,0\n2020-01-01,1\n", r"1 column.s.: 'a': one date"),
        ("a,y\n1,0\ninf,1\n", r"column 'a' has inf in row 2 of"),
        (b"a,y\n1,0\n2,\xe9t\xe9\n", r"must be encoded in UTF-8, but line 3 has the byte 0xe9"),
        (b"\xe9,y\n1,0\n", r"must be encoded in UTF-8, but line 1 has the byte 0xe9"),
    ],
)
def test_what_cannot_work_is_refused_with_the_place_named(write, content, words):
    with pytest.raises(InvalidInputError, match=words):
        read_file("mine", write(content))


@pytest.mark.parametrize(
    ("content", "words", "advice"),
    [
        (COMMAS, "30 distinct numbers from 0.5 to 29.5.", False),
        (PRICES, "45 distinct numbers from 1000 to 1308.", True),
        (CONTINUOUS, "30 distinct numbers from 0 to 4.142857.", False),
    ],
)
def test_a_quantity_is_predicted_as_numbers_and_said(write, content, words, advice):
    found = open_file(write(content))
    assert found.dataset.y.dtype == np.float64
    assert found.columns["y"] == "the numbers to predict"
    (note,) = [each for each in found.notes if each.startswith("predicts numbers: 'y' holds")]
    assert words in note
    assert ("--task classes" in note) is advice
    path = write(content)
    if advice:
        classes = open_file(path, task="classes").dataset
        assert classes.y.dtype == np.int64
        assert len(np.unique(classes.y)) == 45
    else:
        with pytest.raises(
            InvalidInputError, match=r"30 distinct numbers in 30 rows\. Predict num"
        ):
            open_file(path, task="classes")


def test_few_integers_are_classes_unless_numbers_are_asked_for(write):
    path = write("a,y\n" + "".join(f"{i / 3},{i % 3}\n" for i in range(30)))
    found = open_file(path)
    assert found.dataset.y.tolist() == [i % 3 for i in range(30)]
    assert "predicts classes: 'y' holds 3 distinct integers. --task numbers predicts numbers." in (
        found.notes
    )
    assert open_file(path, task="numbers").dataset.y.dtype == np.float64


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,y\n1,2\n3,x\n4,5\n", "The target must hold numbers. Column 'y' .* holds 'x'"),
        ("a,y\n1,2\n3,2\n4,2\n", "numbers that vary. Column 'y' of data.csv holds 2."),
    ],
)
def test_numbers_that_are_none_or_do_not_vary_are_refused(write, content, words):
    with pytest.raises(InvalidInputError, match=words):
        open_file(write(content), task="numbers")


def test_classes_of_decimal_numbers_keep_their_spelling(write):
    found = open_file(write("a;y\n" + "".join(f"{i};0,{5 * (i % 2) + 2}\n" for i in range(20))))
    assert set(found.dataset.y) == {"0,2", "0,7"}


def test_a_target_that_is_not_there_lists_what_is_near(write):
    with pytest.raises(InvalidInputError, match=r"Got 'TARGETS'\. Did you mean 'target'\?"):
        read_file("mine", write(GOOD), "TARGETS")
    with pytest.raises(InvalidInputError, match=r"Got 'zzz'\. The columns are 'a', 'b', 'target'"):
        read_file("mine", write(GOOD), "zzz")


def test_columns_to_drop_must_be_there_and_not_the_target(write):
    with pytest.raises(InvalidInputError, match=r"must be in data.csv. Got 'c'"):
        read_file("mine", write(GOOD), drop=["c"])
    with pytest.raises(InvalidInputError, match="The target 'target' must not be in"):
        read_file("mine", write(GOOD), categorical=["target"])


@pytest.mark.parametrize("name", ["data.xlsx", "data", "data.txt"])
def test_other_endings_are_refused(write, name):
    with pytest.raises(InvalidInputError, match=r"must end with .csv, .tsv, .parquet, .arr"):
        read_file("mine", write(GOOD, name))


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="does not exist"):
        read_file("mine", tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidInputError, match="is a folder"):
        read_file("mine", tmp_path / "folder.csv")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.parquet", "must be a valid Parquet file"),
        ("a.arrow", "must be a valid Arrow file"),
        ("a.feather", "must be a valid Feather file"),
        ("a.npz", "must be an NPZ file"),
    ],
)
def test_a_file_that_is_not_what_it_ends_with_is_refused(write, name, words):
    with pytest.raises(InvalidInputError, match=words):
        read_file("mine", write(GOOD, name))


def test_an_npz_with_objects_is_refused_and_runs_nothing(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.array([[print]], dtype=object), y=[0])
    with pytest.raises(InvalidInputError, match="without objects"):
        read_file("mine", tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"y": [0, 1]}, "must hold a two-dimensional array for each view"),
        ({"X": np.eye(3), "y": [0, 1]}, r"same number of rows. Got {'X': 3, 'y': 2}"),
        ({"X": np.ones((2, 2, 2)), "Z": np.eye(2), "y": [0, 1]}, r"'X' of shape \(2, 2, 2\)"),
        ({"X": np.array([["a"], ["b"]]), "y": [0, 1]}, "the view 'X' must hold numbers"),
        ({"X": np.eye(2)}, "The target must be named"),
    ],
)
def test_arrays_that_are_no_views_are_refused(tmp_path, arrays, words):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InvalidInputError, match=words):
        read_file("mine", tmp_path / "a.npz")


def test_a_million_columns_are_refused_from_the_header_alone(tmp_path):
    path = tmp_path / "wide.csv"
    line = ",".join(["1"] * 1_000_000)
    # The last row is too short: who reads so far says so.
    path.write_text(",".join(f"g{i}" for i in range(1_000_000)) + f"\n{line}\n{line}\n1,2\n")
    with pytest.raises(InvalidInputError, match=r"wide.csv has 1,000,000, which take \d+ MB"):
        read_file("wide", path)


def test_what_does_not_fit_into_memory_is_refused(write, monkeypatch):
    monkeypatch.setattr(formats, "memory_limit", lambda: 100)
    with pytest.raises(InvalidInputError, match="must fit into memory three times: about"):
        read_file("mine", write(GOOD))


@pytest.mark.parametrize(("module", "ending"), [("pandas", "csv"), ("pyarrow", "parquet")])
def test_a_missing_package_names_the_extra(tmp_path, monkeypatch, module, ending):
    path = tmp_path / f"a.{ending}"
    path.write_text(GOOD)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"needs {module}.*discernel\[app\]"):
        read_file("mine", path)


def test_a_short_first_row_does_not_make_a_file_too_large(write, monkeypatch):
    """1 MB in 1,000 long rows below a row of two missing cells: about 16 kB as numbers."""
    rows = "".join(f"{'a' if i % 2 else 'b'}{'x' * 1000},{i % 2}\n" for i in range(1000))
    path = write(f"a,y\n,\n{rows}")
    monkeypatch.setattr(formats, "memory_limit", lambda: 1_000_000)
    assert len(read_table(path).frame) == 1001
