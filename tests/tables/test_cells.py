"""One cell is one value, whatever type or library it comes in."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from discernel import MultipleKernelDiscriminant
from discernel.exceptions import InvalidInputError, LeftOutColumnWarning
from discernel.export import _scorer, numpy_scorer, to_onnx
from discernel.export._scorer import as_word, is_missing
from discernel.export.onnx_model import feeds
from discernel.rows.cells import LARGEST, MISSING_VALUES, _word, read_column
from discernel.tables import TableEncoder

BIG = 2**60 + 1  # no float

# ---- one value ---------------------------------------------------------------------------------

SAME = {
    "True": [True, np.bool_(True), "True", b"True"],
    "1": [1, 1.0, "1", np.int8(1), np.uint64(1), np.float32(1), Decimal("1.00")],
    str(BIG): [BIG, np.int64(BIG), str(BIG), Decimal(BIG)],
    "0.1": [0.1, np.float32(0.1), float(np.float32(0.1)), Decimal("0.10"), "0.1"],
    "-2.5": [-2.5, np.float16(-2.5), np.float32(-2.5)],
    "1e-07": [1e-7, np.float32(1e-7)],
    "1e+300": ["1e+300"],
    "inf": [np.inf, np.float32("inf")],
}


@pytest.mark.parametrize("word", SAME)
def test_equal_values_have_one_text_in_the_model_and_in_its_scorer(word):
    assert _scorer.LARGEST == LARGEST
    for cell in SAME[word]:
        assert (_word(cell), as_word(cell)) == (word, word), repr(cell)


@pytest.mark.parametrize(
    "cell",
    [
        *(None, np.nan, np.float32("nan"), Decimal("NaN"), pd.NA, pd.NaT, 0.0, "", False, "nan"),
        *("n/a", "red"),
    ],
)
def test_the_same_cells_are_missing_in_the_model_and_in_its_scorer(cell):
    assert _scorer.MISSING_VALUES == MISSING_VALUES
    assert is_missing(cell) == bool(
        read_column(pd.DataFrame({"c": [cell]}, dtype=object), 0, "c").missing[0]
    )


# ---- one category ------------------------------------------------------------------------------

VALUES = {
    "booleans": [True, False],
    "large integers": [BIG, BIG + 1, BIG + 2],
    "fractions": [0.1, 0.3, 2.0],
    "digits": ["1", "2"],
}
FORMS = {
    "objects": lambda v: pd.DataFrame({"c": pd.Series(v, dtype=object)}),
    "pandas": lambda v: pd.DataFrame({"c": v}),
    "nullable": lambda v: pd.DataFrame({"c": v}).convert_dtypes(),
    "nullable, missing": lambda v: pd.DataFrame({"c": pd.array([*v, None])}).iloc[:-1],
    "polars, missing": lambda v: pl.DataFrame({"c": [*v, None]})[:-1],
    "arrow": lambda v: pd.DataFrame({"c": v}).convert_dtypes(dtype_backend="pyarrow"),
    "category": lambda v: pd.DataFrame({"c": pd.Categorical(v)}),
    "polars": lambda v: pl.DataFrame({"c": v}),
    "pyarrow": lambda v: pa.table({"c": v}),
    "array": lambda v: np.array(v)[:, None],
    "rows": lambda v: [[cell] for cell in v],
    "single": lambda v: np.array(v, dtype=np.float32 if isinstance(v[0], float) else None)[:, None],
}


@pytest.fixture(scope="module")
def models():
    """Return a model of one declared category for each kind of values."""
    fitted = {}
    for kind, values in VALUES.items():
        cells = values * 20
        X = pd.DataFrame({"c": pd.Categorical(cells)})
        y = np.array([values.index(cell) == 0 for cell in cells]).astype(int)
        quick = MultipleKernelDiscriminant(criterion="uniform", regularization=0.1)
        fitted[kind] = quick.fit(X, y)
    return fitted


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", VALUES)
def test_a_category_is_the_same_in_every_form(kind, form, models):
    clf, values = models[kind], VALUES[kind]
    expected = clf.predict_proba(pd.DataFrame({"c": pd.Categorical(values)}))
    assert (expected.argmax(axis=1) == [1, *[0] * (len(values) - 1)]).all()
    X = FORMS[form](values)
    assert_array_equal(clf.predict_proba(X), expected)
    np.testing.assert_allclose(numpy_scorer(clf).predict_proba(X), expected, atol=1e-9)


@pytest.mark.parametrize("kind", VALUES)
def test_a_category_is_the_same_in_onnx(kind, models):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    clf, X = models[kind], FORMS["pandas"](VALUES[kind])
    graph = to_onnx(clf, X)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    _, found = session.run(None, feeds(graph, numpy_scorer(clf), X))
    np.testing.assert_allclose(found, clf.predict_proba(X), atol=1e-6)


def test_onnx_inputs_of_booleans_and_fractions(models):
    onnxruntime = pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import BooleanTensorType, DoubleTensorType

    from discernel.export import register_onnx

    register_onnx()
    clf = models["booleans"]
    graph = skl2onnx.convert_sklearn(
        clf, "c", [("c", BooleanTensorType([None, 1]))], options={id(clf): {"zipmap": False}}
    )
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    label, _ = session.run(None, {"c": np.array([[True], [False]])})
    assert label.tolist() == [1, 0]
    with pytest.raises(InvalidInputError, match=r"'c' must be text.*Got an input of numbers.*0.1"):
        skl2onnx.convert_sklearn(models["fractions"], "c", [("c", DoubleTensorType([None, 1]))])


# ---- one table ---------------------------------------------------------------------------------


def cells(n=80, seed=0):
    """Return columns of every kind, with missing cells."""
    rng = np.random.default_rng(seed)

    def some(values, share=0.15):
        return [None if rng.random() < share else value for value in values]

    return {
        "float": some(rng.normal(size=n).tolist()),
        "single": some(rng.normal(size=n).astype(np.float32).tolist()),
        "int": some(rng.integers(-5, 5, n).tolist()),
        "whole": rng.integers(0, 9, n).tolist(),
        "large": some((rng.integers(0, 3, n) + BIG).tolist()),
        "bool": some((rng.random(n) < 0.5).tolist()),
        "flag": (rng.random(n) < 0.5).tolist(),
        "text": some(rng.choice(["a", "ö", ""], n).tolist()),
        "id": rng.permutation(n).tolist(),
    }


def arrow(X):
    return pa.table({name: pa.array(column) for name, column in X.items()})


LIBRARIES = {
    "pandas": pd.DataFrame,
    "objects": lambda X: pd.DataFrame(X, dtype=object),
    "nullable": lambda X: pd.DataFrame({name: pd.array(column) for name, column in X.items()}),
    "arrow-backed": lambda X: arrow(X).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame,
    "lazy": lambda X: pl.DataFrame(X).lazy(),
    "pyarrow": arrow,
    "batch": lambda X: arrow(X).to_batches()[0],
    "arrow to polars": lambda X: pl.from_arrow(arrow(X)),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_one_table_is_encoded_alike_from_every_library(library):
    with pytest.warns(LeftOutColumnWarning, match="'id': 80 different integers from 0 to 79"):
        expected = TableEncoder().fit(LIBRARIES["objects"](cells()))
    with pytest.warns(LeftOutColumnWarning, match="'id': 80 different integers from 0 to 79"):
        encoder = TableEncoder().fit(LIBRARIES[library](cells()))
    assert encoder.columns_ == expected.columns_
    new = cells(seed=1)
    assert_array_equal(
        encoder.transform(LIBRARIES[library](new)), expected.transform(LIBRARIES["objects"](new))
    )


@pytest.mark.parametrize("library", sorted(LIBRARIES.keys() - {"lazy", "pyarrow", "batch"}))
@pytest.mark.parametrize("name", sorted(cells().keys() - {"id"}))
def test_one_column_has_the_same_words_from_every_library(library, name):
    X = {name: cells()[name]}
    if name == "large" and library == "pandas":
        pytest.skip("pandas itself makes floats of integers beside missing cells")
    column = read_column(LIBRARIES[library](X), 0, name)
    expected = ["" if cell is None else _word(cell) for cell in X[name]]
    assert column.words == expected
