"""From a table of anything to numbers: every rule, on its own."""

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from discernel.exceptions import DiscernelWarning, InvalidInputError, LeftOutColumnWarning
from discernel.kernels.columns import column_spreads
from discernel.rows.cells import is_plain
from discernel.tables import TableEncoder

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
each_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)


@parametrize_with_checks([TableEncoder()])
def test_estimator_check(estimator, check):
    check(estimator)


def small(frame=pd.DataFrame):
    return frame(
        {
            "age": [30.0, None, 50.0, None, 41.0, 20.0],
            "member": [True, False, True, True, False, False],
            "colour": ["red", "blue", "red", None, "blue", "green"],
            "rooms": [1, 2, 2, 3, 1, 4],
        }
    )


def squared_distances(X):
    return ((X[:, None] - X[None]) ** 2).sum(axis=2)


# ---- what a column becomes ---------------------------------------------------------------------


@each_frame
def test_every_kind_of_column(frame):
    X = small(frame)
    encoder = TableEncoder().fit(X)
    names = ["age", "age is missing", "member", "colour=blue", "colour=red", "colour is other"]
    assert encoder.get_feature_names_out().tolist() == [*names, "colour is missing", "rooms"]
    expected = [
        [30.0, 0, 1, 0, 1, 0, 0, 1],
        [35.5, 1, 0, 1, 0, 0, 0, 2],
        [50.0, 0, 1, 0, 1, 0, 0, 2],
        [35.5, 1, 1, 0, 0, 0, 1, 3],
        [41.0, 0, 0, 1, 0, 0, 0, 1],
        [20.0, 0, 0, 0, 0, 1, 0, 4],
    ]
    assert_array_equal(encoder.transform(X), expected)
    assert encoder.transform(X).dtype == np.float64
    assert encoder.source.tolist() == [0, 0, 1, 2, 2, 2, 2, 3]
    assert encoder.is_code.tolist() == [False, True, False, True, True, True, True, False]
    groups = encoder.scale_groups.tolist()
    assert len(set(groups)) == 5
    assert len(set(groups[3:7])) == 1
    assert encoder.left_out == {}
    known = np.array([[30.0], [50.0], [41.0], [20.0]])
    assert encoder.spreads[0] == pytest.approx(column_spreads(known)[0])
    assert encoder.spreads[3:7] == (1.0,) * 4
    assert encoder.n_features_in_ == 4
    assert_array_equal(encoder.feature_names_in_, X.columns)


#: One table in every way of writing it.
WAYS = {
    "object": lambda X: X.astype(object),
    "nullable": lambda X: X.convert_dtypes(),
    "arrow": lambda X: X.convert_dtypes(dtype_backend="pyarrow"),
    "category": lambda X: X.astype({"colour": "category"}),
    "NA": lambda X: X.astype(object).where(X.notna(), pd.NA),
    "None": lambda X: X.astype(object).where(X.notna(), None),
    "NaN": lambda X: X.astype(object).where(X.notna(), np.nan),
    "small": lambda X: X.astype({"age": np.float32, "rooms": np.int8}),
    "polars categories": lambda X: small(pl.DataFrame).with_columns(
        pl.col("colour").cast(pl.Categorical)
    ),
    "polars enum": lambda X: small(pl.DataFrame).with_columns(
        pl.col("colour").cast(pl.Enum(["red", "green", "blue", "unseen"]))
    ),
    "Decimal": lambda X: X.assign(rooms=[Decimal(k) for k in X["rooms"]]),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_same_cells_of_other_types_are_encoded_the_same(way):
    X, other = small(), WAYS[way](small())
    encoder, there = TableEncoder().fit(X), TableEncoder().fit(other)
    assert_array_equal(there.transform(other), encoder.transform(X))
    assert_array_equal(encoder.transform(other), encoder.transform(X))
    assert_array_equal(there.transform(X), encoder.transform(X))
    assert_array_equal(there.get_feature_names_out(), encoder.get_feature_names_out())


@pytest.mark.parametrize("as_given", [np.asarray, np.ndarray.tolist])
def test_arrays_and_lists_of_objects_go_by_position(as_given):
    X = small().astype(object).to_numpy()
    encoder = TableEncoder().fit(as_given(X))
    assert_array_equal(encoder.transform(X), TableEncoder().fit(small()).transform(small()))
    assert encoder.get_feature_names_out().tolist()[:4] == ["x0", "x0 is missing", "x1", "x2=blue"]
    assert encoder.get_feature_names_out(["a", "b", "c", "d"])[-1] == "d"


def test_an_array_of_text_and_a_list_of_numbers_beside_text():
    encoder = TableEncoder().fit(np.array([["1", "a"], ["2", "a"], ["1", "b"], ["2", "b"]]))
    names = ["x0=1", "x0=2", "x0 is other", "x1=a", "x1=b", "x1 is other"]
    assert encoder.get_feature_names_out().tolist() == names
    encoder = TableEncoder().fit([[1, "a"], [2, "a"], [1, "b"], [2, "b"]])
    assert encoder.get_feature_names_out().tolist() == ["x0", *names[3:]]
    texts = TableEncoder().fit(np.array([[b"a"], [b"b"], [b"a"], [b"b"]]))
    assert texts.get_feature_names_out().tolist() == ["x0=a", "x0=b", "x0 is other"]


def test_numbers_stay_and_text_of_digits_is_text():
    X = pd.DataFrame({"n": np.array([3, 1, 2, None], dtype=object), "t": ["3", "1", "3", "1"]})
    encoder = TableEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist() == ["n", "t=1", "t=3", "t is other"]
    assert_array_equal(encoder.transform(X)[:, 0], [3, 1, 2, 2])


def test_numbers_that_are_declared_categories_are_categories():
    X = pd.DataFrame({"ward": pd.Categorical([1, 2, 1, 2, None, 10, 10])})
    encoder = TableEncoder().fit(X)
    names = ["ward=1", "ward=10", "ward=2", "ward is other", "ward is missing"]
    assert encoder.get_feature_names_out().tolist() == names
    as_numbers = pd.DataFrame({"ward": [1.0, 2.0, 1.0, 2.0, np.nan, 10.0, 10.0]})
    assert_array_equal(encoder.transform(as_numbers), encoder.transform(X))
    bins = pd.DataFrame({"bin": pd.cut([1.0, 2.0, 8.0, 9.0], [0, 5, 10])})
    assert TableEncoder().fit(bins).get_feature_names_out()[0] == "bin=(0, 5]"


def test_missing_numbers():
    X = pd.DataFrame(
        {
            "none": [1.0, 2.0, 3.0, 10.0, 11.0],
            "once": [1.0, np.nan, 3.0, 10.0, 11.0],
            "twice": [np.nan, np.nan, 3.0, 10.0, 11.0],
            "but one": [np.nan, np.nan, np.nan, np.nan, 7.0],
            "but two": [np.nan, np.nan, np.nan, 6.0, 7.0],
        }
    )
    encoder = TableEncoder().fit(X)
    names = ["none", "once", "twice", "twice is missing", "but two", "but two is missing"]
    assert encoder.get_feature_names_out().tolist() == names
    assert encoder.left_out == {"but one": "one value"}
    gone = encoder.transform(X.iloc[:1] * np.nan)
    assert gone.tolist() == [[3.0, 6.5, 10.0, 1.0, 6.5, 1.0]]


def test_one_value_or_missing_is_told_apart():
    X = pd.DataFrame({"mark": [7.0, np.nan, 7.0, np.nan], "word": ["a", None, "a", None]})
    encoder = TableEncoder().fit(X)
    gaps = squared_distances(encoder.transform(X))
    assert gaps[0].tolist() == [0.0, 3.0, 0.0, 3.0]  # 1 of the number, 2 of the word
    assert encoder.spreads[0] == 0.0


# ---- distances ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_values", [2, 3, 9])
@pytest.mark.parametrize("missing", [False, True])
def test_two_values_differ_by_2_however_many_there_are(n_values, missing):
    values = [f"value {i}" for i in range(n_values)]
    X = pd.DataFrame({"v": [*values, *values, *([None] * missing)]})
    encoder = TableEncoder().fit(X)
    states = pd.DataFrame({"v": [*values, "never seen", *([None] * missing)]})
    codes = encoder.transform(states) / encoder.spreads
    apart = 2.0 * (1.0 - np.eye(len(states)))
    assert_array_equal(squared_distances(codes), apart)
    assert_array_equal(np.abs(codes[:, None] - codes[None]).sum(axis=2), apart)


def test_numbers_differ_by_2_on_average_present_or_missing():
    rng = np.random.default_rng(0)
    age = rng.normal(40.0, 12.0, 2000)
    age[:700] = np.nan
    X = pd.DataFrame({"age": age})
    encoder = TableEncoder().fit(X)
    codes = encoder.transform(X) / encoder.spreads
    gaps = squared_distances(codes[::5])
    gone = np.isnan(age[::5])
    present, across = gaps[np.ix_(~gone, ~gone)].mean(), gaps[np.ix_(~gone, gone)].mean()
    assert_allclose([present, across], 2.0, rtol=0.05)
    assert (gaps[np.ix_(gone, gone)] == 0).all()


def test_spreads_are_those_of_known_numbers():
    """With most cells filled in, the quartiles would all be the median."""
    known = np.random.default_rng(0).standard_normal(100)
    X = np.concatenate([known, np.full(400, np.nan)])[:, None]
    assert TableEncoder().fit(X).spreads[0] == pytest.approx(known.std(), rel=1e-9)


# ---- rare and new values -----------------------------------------------------------------------


def test_values_of_one_row_are_put_together_with_new_ones():
    X = pd.DataFrame({"c": ["a"] * 3 + ["b"] * 2 + ["once", "too"]})
    encoder = TableEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist() == ["c=a", "c=b", "c is other"]
    new = pd.DataFrame({"c": ["once", "new", None, "a"]})
    assert encoder.transform(new).tolist() == [[0, 0, 1], [0, 0, 1], [0, 0, 1], [1, 0, 0]]
    assert encoder.other_values(X) == {"c": ["once", "too"]}
    assert encoder.other_values(new) == {"c": ["new", "once"]}
    assert encoder.other_values(X[:4]) == {}
    assert encoder.new_values(X) == {}
    assert encoder.new_values(new) == {"c": ["new"]}


def test_a_category_is_at_most_200_columns():
    words = [f"{i:03d}" for i in range(300)] * 2 + ["999"] * 3
    words = np.random.default_rng(0).permutation(words)
    encoder = TableEncoder().fit(pd.DataFrame({"c": words}))
    names = encoder.get_feature_names_out().tolist()
    assert len(names) == 201
    assert names[198:] == ["c=198", "c=999", "c is other"]


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            "n": np.where(rng.random(90) < 0.2, np.nan, rng.standard_normal(90)),
            "c": rng.choice(["x", "y", "z", None], 90),
            "i": rng.permutation(90),
        }
    )
    order = rng.permutation(90)
    with pytest.warns(LeftOutColumnWarning):
        encoder = TableEncoder().fit(X)
    with pytest.warns(LeftOutColumnWarning):
        other = TableEncoder().fit(X.iloc[order])
    assert other.columns_ == encoder.columns_
    assert other.left_out_ == encoder.left_out_
    assert_array_equal(other.transform(X), encoder.transform(X))


# ---- what is left out --------------------------------------------------------------------------


def test_text_is_left_out_and_told():
    n = 120
    X = pd.DataFrame(
        {
            "x": np.arange(n) % 7,
            "note": [f"note {i}" for i in range(n)],
            "street": [f"street {i // 2}" for i in range(n)],
            "name": [f"name {min(i, 61)}" for i in range(n)],
        }
    )
    with pytest.warns(LeftOutColumnWarning) as caught:
        encoder = TableEncoder().fit(X)
    assert [w.filename for w in caught] == [__file__]
    said = str(caught[0].message)
    assert said.startswith("2 columns were left out. 'note': text with 120 different values in 120")
    assert "'name': text with 62 different values in 120 rows. Drop it, encode it, or" in said
    assert "NGram().on('name')" in said
    assert list(encoder.left_out) == ["note", "name"]
    assert set(encoder.source.tolist()) == {0, 2}
    assert issubclass(LeftOutColumnWarning, DiscernelWarning)
    # What is left out is not looked at again.
    strange = X.assign(note=pd.Timestamp("2020-01-01"), name=np.inf)
    assert_array_equal(encoder.transform(strange), encoder.transform(X))


def test_few_values_are_categories_though_each_is_in_few_rows():
    X = pd.DataFrame({"c": [f"v{i // 2}" for i in range(100)]})  # 50 values
    assert len(TableEncoder().fit(X).get_feature_names_out()) == 51
    single = pd.DataFrame({"x": [1, 2, 2, 1], "c": list("abcd")})
    with pytest.warns(
        LeftOutColumnWarning, match=r"'c': every value occurs in one row only. Drop it"
    ):
        assert TableEncoder().fit(single).left_out == {"c": "every value occurs in one row only"}


@pytest.mark.parametrize(
    ("numbers", "left"),
    [
        (np.arange(60), True),
        (np.arange(60)[::-1] + 1000, True),
        (np.random.default_rng(0).permutation(100)[:60], True),  # 60 of 100 rows
        (np.arange(60).astype(object), True),
        (pd.array(np.arange(60), dtype="Int64"), True),
        (np.arange(60.0), False),
        (np.arange(60) * 3, False),
        (np.arange(60) // 2, False),
        (np.r_[np.arange(59), 1000], False),
    ],
)
def test_integers_that_number_the_rows_are_left_out_and_told(numbers, left):
    X = pd.DataFrame({"id": numbers, "c": ["a", "b"] * 30})
    if not left:
        assert TableEncoder().fit(X).left_out == {}
        return
    with pytest.warns(LeftOutColumnWarning, match=r"1 column was left out. 'id': 60 different int"):
        encoder = TableEncoder().fit(X)
    assert "which number the rows" in encoder.left_out["id"]


def test_fifty_rows_are_too_few_to_call_integers_an_identifier():
    X = pd.DataFrame({"day": np.arange(50), "c": ["a", "b"] * 25})
    assert TableEncoder().fit(X).left_out == {}


def test_one_value_is_left_out_quietly_and_no_value_is_told():
    X = pd.DataFrame({"x": [1, 2, 3, 3], "same": 4.0, "word": "w", "empty": np.nan, "nil": None})
    with pytest.warns(LeftOutColumnWarning) as caught:
        encoder = TableEncoder().fit(X)
    assert "2 columns were left out. 'empty': no value at all. Drop it. 'nil'" in str(
        caught[0].message
    )
    assert "same" not in str(caught[0].message)
    assert encoder.left_out == {
        "same": "one value",
        "word": "one value",
        "empty": "no value at all",
        "nil": "no value at all",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableEncoder().fit(X[["x", "same", "word"]])


def test_if_nothing_remains_it_is_an_error():
    X = pd.DataFrame({"list": [[1], [2], [3]], "empty": [None] * 3})
    with pytest.raises(
        InvalidInputError, match=r"2 column.s.: 'list': neither.*; 'empty': no value"
    ):
        TableEncoder().fit(X)


def test_columns_of_one_value_stay_where_there_are_no_others():
    X = pd.DataFrame({"same": [1, 1, 1], "word": ["w"] * 3, "empty": [None] * 3})
    with pytest.warns(LeftOutColumnWarning, match="'empty': no value at all"):
        encoder = TableEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist() == ["same", "word=w", "word is other"]
    assert encoder.transform(X).tolist() == [[1.0, 1.0, 0.0]] * 3


def test_things_that_are_neither_numbers_nor_text_are_left_out_and_told():
    X = pd.DataFrame({"x": [1, 2, 3, 3], "d": [{}, 1.0, 2.0, 3.0], "l": [[1], [2], None, [3]]})
    with pytest.warns(LeftOutColumnWarning, match=r"'d': neither numbers nor text, but dict. Drop"):
        assert list(TableEncoder().fit(X).left_out) == ["d", "l"]
    nested = pl.DataFrame({"x": [1, 2, 2], "l": [[1], [2], [3]], "s": [{"a": 1}, {"a": 2}, None]})
    with pytest.warns(LeftOutColumnWarning, match="'l': neither numbers nor text"):
        assert list(TableEncoder().fit(nested).left_out) == ["l", "s"]
    times = pl.DataFrame(
        {
            "x": range(4),
            "long": [datetime.timedelta(k) for k in range(4)],
            "hour": [datetime.time(k) for k in range(4)],
        }
    )
    with pytest.warns(LeftOutColumnWarning, match="'long': neither numbers nor text, but timedelt"):
        assert list(TableEncoder().fit(times).left_out) == ["long", "hour"]
    periods = pd.DataFrame({"x": range(4), "day": DAYS.to_period("D"), "long": DAYS - DAYS[0]})
    with pytest.warns(LeftOutColumnWarning, match="'day': neither numbers nor text, but Period"):
        assert list(TableEncoder().fit(periods).left_out) == ["day", "long"]


# ---- what is refused ---------------------------------------------------------------------------

DAYS = pd.date_range("2020-01-01", periods=4)
DATES = {
    "datetime64": pd.DataFrame({"x": range(4), "day": DAYS}),
    "zone": pd.DataFrame({"x": range(4), "day": DAYS.tz_localize("UTC")}),
    "Timestamp": pd.DataFrame({"x": range(4), "day": DAYS.astype(object)}),
    "date": pd.DataFrame({"x": range(4), "day": [day.date() for day in DAYS]}),
    "category": pd.DataFrame({"x": range(4), "day": pd.Categorical(DAYS)}),
    "arrow": pd.DataFrame({"x": range(4), "day": DAYS}).convert_dtypes(dtype_backend="pyarrow"),
    "Datetime": pl.DataFrame({"x": range(4), "day": DAYS.to_pydatetime().tolist()}),
    "Date": pl.DataFrame({"x": range(4), "day": [day.date() for day in DAYS]}),
}


@pytest.mark.parametrize("kind", DATES)
def test_dates_of_any_type_become_numbers(kind):
    encoder = TableEncoder().fit(DATES[kind])
    names = ["x", "day (days)", "day (weekday)"]
    assert encoder.get_feature_names_out().tolist() == names
    assert encoder.source.tolist() == [0, 1, 1]
    expected = np.column_stack([range(4), 18262.0 + np.arange(4), [2, 3, 4, 5]])
    np.testing.assert_array_equal(encoder.transform(DATES[kind]), expected)
    text = pd.DataFrame({"x": range(4), "day": ["2020-01-01", "2020-01-02", "n/a", "2020-01-04"]})
    assert encoder.transform(text)[2].tolist() == [2, 18263.5, 3.5]


def test_dates_of_an_array_become_numbers():
    encoder = TableEncoder().fit(DAYS.to_numpy()[:, None])
    assert encoder.get_feature_names_out().tolist() == ["x0 (days)", "x0 (weekday)"]


WRITTEN = {
    "2024-01-31": ["2020-01-31T06:30Z", "2021-02-28", None, "2020-03-01 07:30:00+01:00"],
    "31.01.2024": ["31.01.2020 6:30", "28.02.2021", "", "1.3.2020 06:30"],
    "31/01/2024": ["31/01/2020 06:30", "28/02/2021 00:00", "?", "01/03/2020 06:30:00"],
    "01/31/2024": ["01/31/2020 06:30", "02/28/2021", "NA", "03/01/2020 06:30"],
    "2024/01/31": ["2020/01/31 06:30", "2021/02/28", np.nan, "2020/03/01 06:30"],
}


@pytest.mark.parametrize("written", WRITTEN)
def test_dates_of_text_become_the_same_numbers(written):
    X = pd.DataFrame({"x": [1.0, 2.0, 4.0, 5.0], "when": pd.Series(WRITTEN[written], dtype=object)})
    times = pd.to_datetime(["2020-01-31 06:30", "2021-02-28 00:00", None, "2020-03-01 06:30"])
    encoder, typed = TableEncoder().fit(X), TableEncoder().fit(X.assign(when=times))
    assert encoder.columns_[1].format == written
    assert encoder.columns_[1].parts == ("days", "year", "month", "weekday", "hour")
    np.testing.assert_array_equal(encoder.transform(X), typed.transform(X.assign(when=times)))
    row = encoder.transform(X)[0]
    assert row.tolist() == [1.0, 18292 + 6.5 / 24, 2020, 1, 4, 6.5]
    with pytest.raises(InvalidInputError, match=r"'when' must hold dates .* 'soon' in row 1"):
        encoder.transform(X.assign(when=["", "soon", "", ""]))
    with pytest.raises(InvalidInputError, match=r"'when' must hold dates .* '3' in row 0"):
        encoder.transform(X.assign(when=3))


def test_text_that_may_be_days_or_months_first_stays_text():
    X = pd.DataFrame({"x": range(4), "when": ["01/02/2020", "03/04/2020"] * 2})
    assert TableEncoder().fit(X).columns_[1].values == ("01/02/2020", "03/04/2020")


def test_parts_that_do_not_vary_and_one_date_are_left_out():
    X = pd.DataFrame(
        {
            "x": range(4),
            "day": pd.to_datetime(["2020-01-01"] * 2 + ["2020-01-08"] * 2),
            "same": DAYS[0],
        }
    )
    encoder = TableEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist() == ["x", "day (days)"]
    assert encoder.left_out == {"same": "one date"}
    assert TableEncoder().fit(X[["same"]]).transform(X[["same"]]).shape == (4, 1)


def test_dates_beside_others_are_refused():
    X = pd.DataFrame({"x": range(4), "day": [*DAYS[:3], "soon"]})
    with pytest.raises(InvalidInputError, match=r"'day' must hold text or dates, not both"):
        TableEncoder().fit(X)


def test_texts_for_missing_cells_are_missing():
    X = pd.DataFrame(
        {"a": [1.5, "n/a", 2.5, "?", 3.5], "c": ["u", "NA", "v", "u", "v"]}, dtype=object
    )
    encoder = TableEncoder().fit(X)
    missing = pd.DataFrame({"a": [1.5, None, 2.5, None, 3.5], "c": ["u", None, "v", "u", "v"]})
    assert encoder.get_feature_names_out().tolist()[:2] == ["a", "a is missing"]
    np.testing.assert_array_equal(encoder.transform(X), TableEncoder().fit_transform(missing))


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinite_cells_are_refused_by_column(bad):
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1.0, bad, np.nan]})
    message = f"Input X contains infinity.*column 'y' has {bad} in row 1"
    with pytest.raises(InvalidInputError, match=message):
        TableEncoder().fit(X)
    with pytest.raises(InvalidInputError, match=message):
        TableEncoder().fit(X.replace(bad, 5.0)).transform(X)


def test_numbers_beside_text_are_refused_with_one_of_each():
    X = pd.DataFrame({"size": [1.5, "large", None, 2.5]}, dtype=object)
    message = r"'size' must hold numbers or text, not both. Got 1.5 and 'large'.*pd.to_numeric.*str"
    with pytest.raises(InvalidInputError, match=message):
        TableEncoder().fit(X)


def test_two_columns_of_one_name_are_refused():
    X = pd.DataFrame([[1, "a", 3], [2, "b", 4]], columns=["p", "q", "p"])
    with pytest.raises(InvalidInputError, match=r"must be unique. Got 'p' 2 times"):
        TableEncoder().fit(X)


def test_too_few_rows_and_no_columns():
    for X in (small().iloc[:0], small()[[]]):
        with pytest.raises(InvalidInputError, match=r"a table with 0 \w+\(s\).*minimum of 1"):
            TableEncoder().fit(X)
    with pytest.raises(InvalidInputError, match=r"1 sample .*minimum of 2"):
        TableEncoder().fit(small().iloc[:1])
    with pytest.raises(ValueError, match="Expected 2D array"):
        TableEncoder().fit(["a", "b"])


# ---- new rows ----------------------------------------------------------------------------------


def test_columns_must_be_those_of_training():
    X = small()
    encoder = TableEncoder().fit(X)
    with pytest.raises(ValueError, match=r"(?s)should match.*missing.*- age"):
        encoder.transform(X.drop(columns="age"))
    with pytest.raises(ValueError, match=r"(?s)should match.*unseen.*- more"):
        encoder.transform(X.assign(more=1))
    with pytest.raises(ValueError, match="must be in the same order"):
        encoder.transform(X[X.columns[::-1]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        found = encoder.transform(X.astype(object).to_numpy())
    assert_array_equal(found, encoder.transform(X))


def test_kinds_must_be_those_of_training():
    X = small()
    encoder = TableEncoder().fit(X)
    with pytest.raises(
        InvalidInputError, match=r"'age' must hold numbers, as in training. Got 'x'"
    ):
        encoder.transform(X.assign(age=[1.0, "x", 2.0, 3.0, None, 4.0]))
    with pytest.raises(InvalidInputError, match=r"'colour' must hold text, as in train.*Got 3.0"):
        encoder.transform(X.assign(colour=[None, 3.0, 1.0, 1.0, 1.0, 1.0]))
    with pytest.raises(InvalidInputError, match=r"'age' must hold numbers.*Got .*2020"):
        encoder.transform(X.assign(age=pd.Timestamp("2020-01-01")))
    # All missing is no kind at all, and 0 and 1 are booleans too.
    gone = encoder.transform(X.assign(colour=np.nan, age=None, member=[1, 0, 1, 1, 0, 0]))
    assert (gone[:, [1, 6]] == 1).all()
    assert_array_equal(gone[:, 2], encoder.transform(X)[:, 2])


def test_it_is_a_transformer():
    X = small()
    with pytest.raises(NotFittedError):
        TableEncoder().transform(X)
    encoder = clone(TableEncoder()).set_output(transform="pandas").fit(X)
    frame = encoder.transform(X)
    assert frame.columns.tolist() == encoder.get_feature_names_out().tolist()
    assert frame.index.tolist() == X.index.tolist()


# ---- plain numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "plain"),
    [
        (np.ones((3, 2)), True),
        (np.ones((3, 2), dtype=bool), True),
        ([[1, 2], [3, 4]], True),
        ([[1, None], [3, 4]], False),
        (np.ones((3, 2), dtype=object), True),
        (np.array([[1, "a"]], dtype=object), False),
        (np.array([["1"]]), False),
        (np.array([[np.nan, 1.0]]), False),
        (np.array([[np.inf, 1.0]]), False),
        (pd.DataFrame({"a": [1, 2], "b": [True, False]}), True),
        (pd.DataFrame({"a": [1, 2]}).astype("Int64"), True),
        (pd.DataFrame({"a": [1, None]}).astype("Int64"), False),
        (pd.DataFrame({"a": [1, 2]}).astype("category"), False),
        (pd.DataFrame({"a": ["1", "2"]}), False),
        (pd.DataFrame({"a": DAYS}), False),
        (pl.DataFrame({"a": [1, 2], "b": [True, False]}), True),
        (pl.DataFrame({"a": [1, None]}), False),
        (pl.DataFrame({"a": ["x", "y"]}), False),
    ],
    ids=str,
)
def test_what_is_plain_numbers(X, plain):
    assert is_plain(X) is plain
