"""Rows in every container, names that are no text, and numbers that no kernel can take."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from discernel import (
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
    open_rows,
)
from discernel.exceptions import InvalidInputError, LeftOutColumnWarning
from discernel.kernels import RBF, Linear, WhereKnown
from discernel.tables import TableEncoder

QUICK = {"criterion": "uniform", "regularization": 0.1}
GIVEN = [RBF(width=2.0)]
each_kind = pytest.mark.parametrize("kernels", ["auto", GIVEN], ids=["auto", "given"])


def numbers(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 3)) + 2.0 * y[:, None] * [1.0, 0.0, 0.0], y


# ---- containers --------------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("library", ["lazy", "pyarrow", "batch"])
def test_tables_of_other_libraries_are_dataframes(library, kernels):
    X, y = numbers()
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    arrow = pa.table({name: frame[name].to_numpy() for name in frame.columns})
    given = {"lazy": frame.lazy(), "pyarrow": arrow, "batch": arrow.to_batches()[0]}[library]
    clf = MultipleKernelDiscriminant(kernels, **QUICK).fit(given, y)
    assert clf.feature_names_in_.tolist() == ["a", "b", "c"]
    assert_allclose(clf.predict_proba(given), clf.predict_proba(frame), atol=1e-12)
    assert clf.score(given, y) == clf.score(frame, y)


@each_kind
def test_structured_arrays_are_refused_with_what_to_do(kernels):
    X, y = numbers()
    records = np.rec.fromarrays(X.T, names="a,b,c")
    clf = MultipleKernelDiscriminant(kernels, **QUICK)
    message = r"one type for all.*structured array with the fields 'a', 'b', 'c'.*pd.DataFrame"
    with pytest.raises(InvalidInputError, match=message):
        clf.fit(records, y)
    clf.fit(pd.DataFrame(records), y)
    with pytest.raises(InvalidInputError, match=message):
        clf.predict(records)


# ---- masked arrays -----------------------------------------------------------------------------


def masked(X):
    """Return rows with a number in place of missing ones, which a mask hides."""
    hidden = np.zeros(X.shape, dtype=bool)
    hidden[::5, 1] = True
    return np.ma.array(np.where(hidden, 1e6, X), mask=hidden), np.where(hidden, np.nan, X)


def test_masked_cells_are_missing_cells():
    X, y = numbers()
    hidden, missing = masked(X)
    clf = MultipleKernelDiscriminant(**QUICK).fit(hidden, y)
    expected = MultipleKernelDiscriminant(**QUICK).fit(missing, y)
    assert_array_equal(clf.predict_proba(hidden), expected.predict_proba(missing))
    assert_array_equal(TableEncoder().fit_transform(hidden), clf.encoder_.transform(missing))
    plain = MultipleKernelDiscriminant(**QUICK).fit(X, y)
    assert_array_equal(plain.predict(hidden), plain.predict(missing))
    streamed = MultipleKernelDiscriminant(**QUICK).fit(open_rows(hidden, y))
    assert streamed.encoder_.columns_ == expected.encoder_.columns_
    with pytest.raises(InvalidInputError, match="'x1' has NaN in row 0"):
        MultipleKernelDiscriminant(GIVEN).fit(hidden, y)


def test_a_list_of_masked_rows():
    X, y = numbers()
    hidden, missing = masked(X)
    encoder = TableEncoder().fit(list(hidden))
    assert_array_equal(encoder.transform(list(hidden)), encoder.transform(missing))
    clf = MultipleKernelDiscriminant(**QUICK).fit(list(hidden), y)
    assert_array_equal(clf.predict(list(hidden)), clf.predict(missing))


def test_masked_integers_text_and_labels():
    codes = np.ma.array([[1, 7], [2, 8], [1, 9], [2, 7]], mask=[[0, 0], [0, 1], [0, 0], [0, 1]])
    expected = TableEncoder().fit(codes.astype(float).filled(np.nan))
    assert TableEncoder().fit(codes).columns_ == expected.columns_
    words = np.ma.array([["a"], ["b"], ["a"], ["?"]], mask=[[0], [0], [0], [1]])
    names = TableEncoder().fit(words).get_feature_names_out()
    assert names.tolist() == ["x0=a", "x0 is other", "x0 is missing"]
    X, y = numbers()
    with pytest.raises(ValueError, match="NaN"):
        MultipleKernelRidge(**QUICK).fit(X, np.ma.array(y.astype(float), mask=y == 0))
    assert np.isnan(RBF(width=1.0)(masked(X)[0])[0, 1])
    assert_array_equal(Linear()(np.ma.array(X)), Linear()(X))


# ---- names that are no text --------------------------------------------------------------------


@each_kind
def test_columns_named_by_integers_must_be_in_the_order_of_training(kernels):
    X, y = numbers()
    frame = pd.DataFrame(X)
    clf = MultipleKernelDiscriminant(kernels, **QUICK).fit(frame, y)
    message = r"same order as in training: 0, 1, 2. Got 2, 1, 0. Select them with"
    with pytest.raises(InvalidInputError, match=message):
        clf.predict(frame[[2, 1, 0]])
    expected = clf.predict_proba(X)
    assert_array_equal(clf.predict_proba(frame), expected)
    clf.fit(X, y)  # an array has no names: what was known is forgotten
    assert_array_equal(clf.predict_proba(frame[[2, 1, 0]]), clf.predict_proba(X[:, ::-1]))


def test_an_encoder_checks_columns_named_by_integers():
    frame = pd.DataFrame({0: ["a", "b", "a", "b"], 5: [1.0, np.nan, 2.0, 3.0]})
    encoder = TableEncoder().fit(frame)
    with pytest.raises(InvalidInputError, match=r"in training: 0, 5. Got 5, 0"):
        encoder.transform(frame[[5, 0]])
    wide = pd.DataFrame(np.arange(48.0).reshape(4, 12) % 7)
    with pytest.raises(InvalidInputError, match=r"8, 9 and 2 more. Got 11, 10"):
        TableEncoder().fit(wide).other_values(wide[wide.columns[::-1]])


# ---- integers that number the rows -------------------------------------------------------------


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_row_numbers_are_left_out_whatever_is_missing_elsewhere(frame):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 40)
    columns = {"id": np.arange(80), "x": rng.normal(size=80)}
    gap = np.where(np.arange(80) == 3, np.nan, columns["x"])
    fitted = []
    for x in (columns["x"], gap):
        with pytest.warns(LeftOutColumnWarning, match="'id': 80 different integers from 0 to 79"):
            fitted.append(MultipleKernelDiscriminant(**QUICK).fit(frame(columns | {"x": x}), y))
    assert [list(clf.encoder_.left_out) for clf in fitted] == [["id"], ["id"]]
    assert fitted[0].expected_.accuracy < 0.8
    with pytest.warns(LeftOutColumnWarning, match="'id'"):
        streamed = MultipleKernelDiscriminant(**QUICK).fit(open_rows(frame(columns), y))
    assert list(streamed.encoder_.left_out) == ["id"]


@pytest.mark.parametrize("missing", [False, True])
def test_the_numbers_of_an_array_are_numbers(missing):
    y = np.repeat([0, 1], 40)
    X = np.column_stack([np.arange(80), np.arange(80) % 7]).astype(object)
    X[3, 1] = None if missing else X[3, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeftOutColumnWarning)
        clf = MultipleKernelDiscriminant(**QUICK).fit(X, y)
    assert clf.expected_.accuracy > 0.9


# ---- numbers that are too large ----------------------------------------------------------------


@each_kind
@pytest.mark.parametrize(
    "large", [10**400, -(10**400), 1e308, 1e151], ids=["huge", "-huge", "308", "151"]
)
def test_numbers_that_are_too_large_are_refused_by_column(large, kernels):
    X, y = numbers()
    clf = MultipleKernelDiscriminant(kernels, **QUICK).fit(X, y)
    wrong = X.astype(object)
    wrong[4, 1] = large
    message = r"between -1e\+150 and 1e\+150.*column 'x1' has -?1.*e\+\d\d\d in row 4.*power of ten"
    with pytest.raises(InvalidInputError, match=message):
        clf.predict(wrong)
    with pytest.raises(InvalidInputError, match=message):
        MultipleKernelDiscriminant(kernels, **QUICK).fit(wrong, y)
    if isinstance(large, float):
        with pytest.raises(InvalidInputError, match=message):
            MultipleKernelDiscriminant(kernels, **QUICK).fit(wrong.astype(float), y)
        named = pd.DataFrame(wrong.astype(float), columns=["a", "x1", "c"])
        with pytest.raises(InvalidInputError, match=message):
            MultipleKernelDiscriminant(kernels, **QUICK).fit(named, y)
        with pytest.raises(InvalidInputError, match=r"at most 1e\+150 in size. Got .*, row 4 of X"):
            MultipleKernelDiscriminant(kernels, **QUICK).fit(open_rows(wrong.astype(float), y))


def test_a_large_number_of_sparse_rows_is_named():
    X, y = numbers()
    X[4, 1] = 1e200
    with pytest.raises(InvalidInputError, match=r"'x1' has 1e\+200 in row 4"):
        MultipleKernelDiscriminant(**QUICK).fit(sp.csr_array(X), y)


@pytest.mark.parametrize("unit", [1e149, 1e-200])
def test_numbers_of_any_size_within_the_limit_are_told_apart(unit):
    X, y = numbers()
    clf = MultipleKernelDiscriminant(**QUICK).fit(X, y)
    scaled = MultipleKernelDiscriminant(**QUICK).fit(unit * X, y)
    assert_allclose(scaled.predict_proba(unit * X), clf.predict_proba(X), atol=1e-6)


# ---- missing cells -----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [RBF().on(["x1"]), RBF()], ids=["on", "all"])
def test_missing_cells_are_refused_with_what_to_do_here(kernel):
    X, y = numbers()
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    frame.loc[3, "x1"] = np.nan
    with pytest.raises(InvalidInputError) as caught:
        MultipleKernelDiscriminant([kernel]).fit(frame, y)
    said = str(caught.value)
    assert "the column 'x1' has NaN in row 3" in said
    assert "WhereKnown(kernel)" in said
    assert "kernels='auto'" in said
    assert "HistGradientBoosting" not in said
    known = [WhereKnown(RBF()).on(["x1"])]
    assert MultipleKernelDiscriminant(known, **QUICK).fit(frame, y).score(frame, y) > 0.4


@pytest.mark.parametrize("dtype", ["boolean", "Int64", "Int8", "bool[pyarrow]", "int64[pyarrow]"])
def test_nullable_labels_are_those_of_numpy(dtype):
    X, y = numbers()
    plain = y.astype(bool) if "bool" in dtype else y
    labels = pd.Series(plain).astype(dtype)
    clf = MultipleKernelDiscriminant(GIVEN, **QUICK).fit(X, labels)
    assert clf.classes_.dtype.kind == plain.dtype.kind
    assert clf.score(X, labels) == clf.score(X, plain)
    labels[7] = pd.NA
    with pytest.raises(InvalidInputError, match="in row 7"):
        MultipleKernelDiscriminant(GIVEN, **QUICK).fit(X, labels)


def test_nullable_integers_above_the_digits_of_floats_are_two_classes():
    X, y = numbers()
    clf = MultipleKernelDiscriminant(GIVEN, **QUICK).fit(X, pd.Series(2**60 + y).astype("Int64"))
    assert clf.classes_.tolist() == [2**60, 2**60 + 1]
