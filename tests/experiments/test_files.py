"""Files of the user: what is read, and what is refused with which words."""

import sys

import numpy as np
import pandas as pd
import pytest

from discernel.exceptions import InvalidInputError, MissingExtraError
from discernel.experiments import formats
from discernel.experiments.files import digest, open_file
from discernel.experiments.formats import read_table
from discernel.experiments.preparation import Preparation, one_spelling

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


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
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
@pytest.mark.parametrize("missing", ["error", "drop"])
def test_large_whole_labels_stay_apart(write, labels, kind, missing):
    lines = [f"{i * i},{label}" for i, label in enumerate(labels * 2)]
    lines += ["99,"] * (missing == "drop")  # pandas reads whole numbers with gaps as floats
    y = read_file("m", write("\n".join(["a,y", *lines])), missing=missing).y
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
    data = read_file("a", tmp_path / "a.parquet", missing="drop")
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
    preparation = open_file(path, categorical=["k"]).preparation
    assert preparation.categories == {"k": ("1", "2")}
    if ending == "csv":
        new = write("a,k\n1,1.0\n2,2.0\n4,\n", "new.csv")  # a gap makes floats of whole numbers
    else:
        new = tmp_path / "new.parquet"
        pd.DataFrame({"a": [1, 2, 4], "k": [1.0, 2.0, np.nan]}).to_parquet(new)
    rows, _ = read_table(new, preparation.as_written)
    np.testing.assert_array_equal(preparation.apply(rows, "new")[:, 1:], [[1, 0], [0, 1], [0, 0]])
    text = write("a,k,y\n1,x,0\n2,1.0,1\n4,1,0\n8,x,1\n", "text.csv")
    assert open_file(text, categorical=["k"]).preparation.categories == {"k": ("1", "x")}


def test_parquet_and_csv_give_the_same(tmp_path):
    table = frame().drop(columns="kind")
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    csv, parquet = (read_file("a", tmp_path / f"a.{ending}") for ending in ("csv", "parquet"))
    np.testing.assert_allclose(csv.X, parquet.X, rtol=1e-15)
    np.testing.assert_array_equal(csv.y, parquet.y)


def test_dates_and_lists_are_no_numbers(tmp_path):
    when = pd.date_range("2020-01-01", periods=12)
    for values, words in ((when, "'2020-01-01 00:00:00'"), ([[1, 2]] * 12, r"'\[1 2\]'")):
        frame().drop(columns="kind").assign(odd=values).to_parquet(tmp_path / "a.parquet")
        with pytest.raises(InvalidInputError, match=rf"column 'odd' has {words} in row 1"):
            read_file("a", tmp_path / "a.parquet")


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
    assert opened.notes[0] == "left out 'one1': the same in every row"


def test_one_array_is_no_view(tmp_path):
    np.savez(tmp_path / "v.npz", X=np.eye(4), target=[0, 0, 1, 1])
    assert read_file("v", tmp_path / "v.npz").views == {}


def test_categories_become_one_feature_a_value(tmp_path):
    frame().to_csv(tmp_path / "a.csv", index=False)
    data = read_file("a", tmp_path / "a.csv", categorical=["kind"])
    assert data.feature_names == ("a", "b", "kind=u", "kind=v", "kind=w")
    np.testing.assert_array_equal(data.X[:3, 2:], np.eye(3))


def test_missing_values_are_dropped_or_filled_with_medians(write):
    path = write("a,b,y\n1,2,0\n?,1,0\n3,,1\n5,7,1\n")
    dropped = open_file(path, missing="drop")
    np.testing.assert_array_equal(dropped.dataset.X, [[1, 2], [5, 7]])
    assert dropped.notes == ("left out 2 rows with missing values",)
    filled = open_file(path, missing="median")
    np.testing.assert_array_equal(filled.dataset.X, [[1, 2], [3, 1], [3, 2], [5, 7]])
    assert filled.notes == ("put medians for 2 missing values in 'a', 'b'",)


def test_constant_and_empty_columns_are_left_out_with_a_note(write):
    opened = open_file(write("a,same,none,y\n1,3,,0\n5,3,,1\n2,3,,0\n"))
    assert opened.dataset.feature_names == ("a",)
    assert opened.notes == ("left out 'same', 'none': the same in every row",)


def test_a_column_that_counts_rows_is_noted_and_kept(write):
    opened = open_file(write(",a,y\n0,4,0\n1,2,1\n2,9,0\n3,1,1\n"))
    assert opened.dataset.feature_names == ("column 1", "a")
    assert opened.notes[0].startswith("'column 1' counts the rows; leave it out with drop")
    assert '--drop "column 1"' in opened.notes[0]


def test_a_changed_file_is_read_again_or_refused(write):
    path = write(GOOD)
    before = digest(path)
    read_file("mine", path, digest=before)
    write(GOOD.replace("3.5", "8.25"))
    assert read_file("mine", path).X[2, 0] == 8.25
    with pytest.raises(InvalidInputError, match="Its content has changed"):
        read_file("mine", path, digest=before)


def test_a_preparation_does_the_same_to_new_rows(tmp_path):
    table = frame()
    table.loc[2, "a"] = np.nan
    table.to_csv(tmp_path / "a.csv", index=False)
    opened = open_file(tmp_path / "a.csv", categorical=["kind"], missing="median")
    again = Preparation.from_plain(opened.preparation.as_plain())
    assert again == opened.preparation
    rows, _ = read_table(tmp_path / "a.csv")
    shuffled = rows[["target", "kind", "b", "a"]].iloc[::-1].reset_index(drop=True)
    np.testing.assert_array_equal(again.apply(shuffled, "new"), opened.dataset.X[::-1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop(columns="b"), r"columns the model was fitted to. Got none named 'b'"),
        (lambda t: t.assign(kind="z"), r"column 'kind' must hold .* Got 'z' in row 1"),
        (lambda t: t.assign(a=["q", *t["a"][1:]]), r"column 'a' has 'q' in row 1"),
        (lambda t: t.assign(a=np.nan), r"Column 'a' is missing in row 1"),
    ],
)
def test_a_preparation_refuses_rows_that_do_not_fit(tmp_path, change, words):
    frame().to_csv(tmp_path / "a.csv", index=False)
    preparation = open_file(tmp_path / "a.csv", categorical=["kind"]).preparation
    with pytest.raises(InvalidInputError, match=words):
        preparation.apply(change(frame()), "new")


# ---- what is refused ---------------------------------------------------------------------------

CONTINUOUS = "a,y\n" + "".join(f"{i},{i / 7}\n" for i in range(30))
PRICES = "a,y\n" + "".join(f"{i},{1000 + 7 * (i // 2)}\n" for i in range(90))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", r"data.csv must hold data. It is empty: 0 bytes"),
        ("\n\n", r"data.csv must name its columns in line 1. It holds blank lines only"),
        ("\ufeff", r"data.csv must name its columns in line 1. It holds blank lines only"),
        ("a,target\r", r"must have rows below the column names. Got none"),
        ('a,"target\n1,2\n', r"must be named|must be a CSV file"),
        ('"a' + 200_000 * "x", r"must be a CSV file. Got: a name of a column that does not end"),
        ("a,target\n", r"must have rows below the column names. Got none"),
        ("1,2,3\n4,5,6\n", r"line 1 must name the columns. Got numbers: '1', '2', '3'"),
        ("a,b,c\n1,2,3\n", r"The target must be named: data.csv has 'a', 'b', 'c'. .*--target"),
        ("a,y,class\n1,2,3\n", r"The target must be named: data.csv has 'y', 'class'"),
        ("a,b,a,y\n1,2,3,0\n", r"Columns 1 and 3 are both called 'a'. Rename one"),
        ("a,b,y\n1,2,0\n3,1\n", r"line 3 must have 3 cells, as line 1 has. Got 2"),
        ("a,b,y\n1,2,0\n\n3,1,4,5\n", r"line 4 must have 3 cells, as line 1 has. Got 4"),
        ("a,y\n1,0\n2,0\n", r"at least two classes. Column 'y' of data.csv holds 0 in every row"),
        (PRICES, r"holds 45 different numbers, from 1000 to 1308: a quantity"),
        (CONTINUOUS, r"Column 'y' of data.csv holds 30 different numbers, from 0 to 4.1.*: a q"),
        ("a,b,y\n1,2,0\n2,,1\n,,1\n", r"Column 'a' has 1 missing, the first in row 3. Others: 'b'"),
        ("a,b,y\n1,2,0\n2,,1\n", r"Column 'b' has 1 missing.*row 2.*--missing drop.*--drop b"),
        ("a,y\n1,0\n2,\n", r"every row must have a target. Column 'y' is empty in 1 rows.*row 2"),
        ("a,b,y\n1,2,0\n2,old,1\n", r"Columns with text: 'b'; column 'b' has 'old' in row 2"),
        ("a,b,y\n1,u,0\n2,v,1\n", r"--categorical b\), or leave .* drop \(--drop b\)"),
        ("a,y\n1,0\n1,1\n", r"At least one column beside the target must differ"),
        ("a,y\n1,0\ninf,1\n", r"Column 'a' is infinite in row 2"),
        (b"a,y\n1,0\n2,\xe9t\xe9\n", r"must be text in UTF-8, and line 3 has the byte 0xe9"),
        (b"\xe9,y\n1,0\n", r"must be text in UTF-8, and line 1 has the byte 0xe9"),
    ],
)
def test_what_cannot_work_is_refused_with_the_place_named(write, content, words):
    with pytest.raises(InvalidInputError, match=words):
        read_file("mine", write(content))


def test_a_target_that_is_not_there_lists_what_is_near(write):
    with pytest.raises(InvalidInputError, match=r"Got 'TARGETS'\. Did you mean 'target'\?"):
        read_file("mine", write(GOOD), "TARGETS")
    with pytest.raises(InvalidInputError, match=r"Got 'zzz'\. There are 'a', 'b', 'target'"):
        read_file("mine", write(GOOD), "zzz")


def test_columns_to_drop_must_be_there_and_not_the_target(write):
    with pytest.raises(InvalidInputError, match=r"must be columns of data.csv. Got 'c'"):
        read_file("mine", write(GOOD), drop=["c"])
    with pytest.raises(InvalidInputError, match="'target' is the target"):
        read_file("mine", write(GOOD), categorical=["target"])


def test_an_identifier_is_no_category(write):
    rows = "".join(f"{i},name{i},{i % 2}\n" for i in range(60))
    with pytest.raises(InvalidInputError, match=r"at most 50 .* Column 'who' has 60"):
        read_file("mine", write("a,who,y\n" + rows), categorical=["who"])


def test_an_unknown_rule_for_missing_values_lists_the_known_ones(write):
    with pytest.raises(InvalidInputError, match="must be one of 'error', 'drop', 'median'"):
        read_file("mine", write(GOOD), missing="mean")


def test_dropping_rows_must_leave_every_class(write):
    with pytest.raises(InvalidInputError, match="every class must have complete rows"):
        read_file("mine", write("a,b,y\n1,2,0\n2,3,0\n,3,1\n4,,1\n"), missing="drop")


@pytest.mark.parametrize("name", ["data.xlsx", "data", "data.txt"])
def test_other_endings_are_refused(write, name):
    with pytest.raises(InvalidInputError, match=r"must end with .csv, .parquet, .npz. Got"):
        read_file("mine", write(GOOD, name))


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="does not exist"):
        read_file("mine", tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidInputError, match="is a folder"):
        read_file("mine", tmp_path / "folder.csv")


@pytest.mark.parametrize(
    ("name", "words"), [("a.parquet", "must be a Parquet file"), ("a.npz", "must be an NPZ file")]
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
        ({"y": [0, 1]}, "must hold an array of rows and columns for each view"),
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
    with pytest.raises(InvalidInputError, match=r"wide.csv has 1,000,000, which .* take \d+ MB"):
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
    with pytest.raises(MissingExtraError, match=rf"needs {module}. .*discernel\[app\]"):
        read_file("mine", path)
