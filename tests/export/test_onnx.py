"""ONNX: onnxruntime returns the labels and probabilities of the model."""

import builtins
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from discernel import KernelDiscriminant, MultipleKernelDiscriminant, open_rows
from discernel.bank import LowRank
from discernel.exceptions import InvalidInputError, MissingExtraError, NumericalError
from discernel.export import numpy_scorer, register_onnx, to_onnx
from discernel.export.formula import final_estimator
from discernel.export.onnx_model import feeds
from discernel.kernels import RBF, Exponential, Function, Laplace, Linear, Polynomial
from discernel.tables import TableEncoder
from tests.export.models import (
    CASES,
    KERNELS,
    NUMBERS,
    OTHERS,
    encoded,
    lacking,
    numbers,
    other_table,
    single,
)

skl2onnx = pytest.importorskip("skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime")

#: skl2onnx asks NumPy and scikit-learn for old names.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:skl2onnx")


def session(graph):
    return onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def run(graph, model, rows):
    return session(graph).run(None, feeds(graph, numpy_scorer(final_estimator(model)[0]), rows))


def assert_same(graph, model, rows, atol=1e-6):
    labels, probabilities = run(graph, model, rows)
    np.testing.assert_allclose(probabilities, model.predict_proba(rows), rtol=0, atol=atol)
    assert labels.tolist() == model.predict(rows).tolist()


@pytest.mark.parametrize("name", CASES)
def test_five_data_sets(name):
    model, rows = CASES[name]()
    graph = to_onnx(model)
    assert_same(graph, model, rows, 1e-9)
    assert_same(graph, model, rows[:1], 1e-9)
    label, probabilities = session(graph).get_outputs()
    assert (label.name, label.shape) == ("label", [None])
    assert (probabilities.name, probabilities.type) == ("probabilities", "tensor(double)")
    (classes,) = [p.value for p in graph.metadata_props if p.key == "classes"]
    assert json.loads(classes) == model.classes_.tolist()


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers(kind):
    model, rows = numbers(kind)
    graph, expected = to_onnx(model, rows), model.predict(rows)
    (found,) = run(graph, model, rows)
    (variable,) = session(graph).get_outputs()
    assert (variable.name, variable.type) == ("variable", "tensor(double)")
    assert found.shape == (len(rows), 3 if kind == "several" else 1)
    error = np.abs(found.reshape(expected.shape) - expected)
    assert (error <= 1e-6 * np.ptp(expected, axis=0)).all()
    assert "classes" not in [entry.key for entry in graph.metadata_props]


def test_numbers_in_single_precision_are_checked():
    model, rows = numbers("several")
    (found,) = run(to_onnx(model, rows, dtype="float32"), model, rows)
    assert found.dtype == np.float32
    model, rows = numbers("far")  # 1e6 plus a small difference, which single precision loses
    with pytest.raises(NumericalError, match="of their range"):
        to_onnx(model, rows, dtype="float32")


def test_skl2onnx_converts_numbers():
    model, rows = numbers("one column")
    register_onnx()
    types = [("X", skl2onnx.common.data_types.DoubleTensorType([None, 1]))]
    graph = skl2onnx.convert_sklearn(model, initial_types=types, target_opset=15)
    (found,) = session(graph).run(None, {"X": rows})
    np.testing.assert_allclose(found[:, 0], model.predict(rows), rtol=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_single_precision_is_off_by_less_than_said(name):
    model, rows = CASES[name]()
    graph = to_onnx(model, dtype="float32")
    _, probabilities = run(graph, model, rows)
    assert probabilities.dtype == np.float32
    np.testing.assert_allclose(probabilities, model.predict_proba(rows), rtol=0, atol=1e-4)
    assert len(graph.SerializeToString()) < 0.7 * len(to_onnx(model).SerializeToString())


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_every_kernel(kernel):
    model, rows = single(kernel)
    # Scalars beside products would be of single precision in onnxruntime.
    assert_same(to_onnx(model), model, rows, 1e-7)


@pytest.mark.parametrize("kernel", [Polynomial(3, gamma=0.1), Polynomial(2, coef0=0.0), Linear()])
def test_exact_features_and_streams(kernel, blobs):
    X, y = blobs
    kernels = [2.0 * kernel.on([0, 1, 2]), Exponential().on([3, 4])]
    clf = MultipleKernelDiscriminant(kernels, criterion="uniform", bank=LowRank(60))
    clf.fit(X, y)
    assert "ExactMap" in str(clf.combined_kernel_.maps)
    assert_same(to_onnx(clf), clf, X)
    if isinstance(kernel, Linear):
        streamed = MultipleKernelDiscriminant().fit(open_rows(X, y))
        assert_same(to_onnx(streamed), streamed, X)


@pytest.mark.parametrize("options", [{}, {"bank": LowRank(150)}], ids=["exact", "low"])
def test_sources_that_some_rows_lack(options):
    model, rows = lacking(**options)
    made = to_onnx(model)
    assert_same(made, model, rows, 1e-9)
    without = np.full((1, 13), np.nan)
    without[0, 3:6] = rows[0, 3:6]
    assert_same(made, model, without, 1e-9)


# ---- in pipelines, by skl2onnx itself ----------------------------------------------------------


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), PCA(5)])
def test_pipelines(scaler):
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(scaler, KernelDiscriminant(RBF())).fit(X[::2], y[::2])
    assert_same(to_onnx(model), model, X)


@pytest.mark.parametrize("scaler", [StandardScaler(), "passthrough"])
def test_an_encoder_in_front(scaler):
    model, rows = encoded(scaler)
    graph, formula = to_onnx(model, rows), numpy_scorer(model)
    assert len(graph.graph.input) == len(formula.columns) > 6
    _, found = session(graph).run(None, feeds(graph, formula, model[0].split_dates(rows)))
    np.testing.assert_allclose(found, model.predict_proba(rows), rtol=0, atol=1e-9)
    small = to_onnx(model, rows, dtype="float32")
    assert len(small.SerializeToString()) < 0.7 * len(graph.SerializeToString())


def test_an_encoder_of_numbers_in_front():
    X, y = load_wine(return_X_y=True)
    X[::4, 1] = np.nan
    model = make_pipeline(TableEncoder(), StandardScaler(), KernelDiscriminant(RBF())).fit(X, y)
    graph = to_onnx(model, X)
    assert [each.name for each in graph.graph.input] == ["X"]
    found = session(graph).run(None, {"X": X})[1]
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=0, atol=1e-9)


def test_skl2onnx_converts_what_is_registered():
    register_onnx()
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), clone(CASES["wine"]().model)).fit(X[::2], y[::2])
    graph = skl2onnx.to_onnx(model, X[:1], options={"zipmap": False}, target_opset=17)
    labels, probabilities = session(graph).run(None, {"X": X})
    assert labels.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=0, atol=1e-6)
    single_rows = X.astype(np.float32)
    graph = skl2onnx.to_onnx(model, single_rows[:1])
    labels, maps = session(graph).run(None, {"X": single_rows})
    assert labels.tolist() == model.predict(X).tolist()
    found = [[row[c] for c in model.classes_] for row in maps]
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=0, atol=1e-3)


def test_skl2onnx_converts_tables_with_an_input_per_column():
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType

    register_onnx()
    model, rows = CASES["table"]()
    kinds = {"colour": StringTensorType, "size class": Int64TensorType, "same": StringTensorType}
    types = [(name, kinds.get(name, DoubleTensorType)([None, 1])) for name in rows]
    options = {id(model): {"zipmap": False}}
    graph = skl2onnx.convert_sklearn(model, "m", types, options=options, target_opset=15)
    given = {"size_class": rows[["size class"]].to_numpy(np.int64)}
    for name in ("age", "income", "member"):
        given[name] = rows[[name]].to_numpy(np.float64)
    for name in ("colour", "same"):
        given[name] = rows[[name]].fillna("").to_numpy(object)
    labels, probabilities = session(graph).run(None, given)
    assert labels.tolist() == model.predict(rows).tolist()
    np.testing.assert_allclose(probabilities, model.predict_proba(rows), rtol=0, atol=1e-9)
    with pytest.raises(InvalidInputError, match=r"one input per column.*'age'.*Got 2\."):
        skl2onnx.convert_sklearn(model, "m", types[:2], options=options, target_opset=15)
    one = [("X", DoubleTensorType([None, 6]))]
    with pytest.raises(InvalidInputError, match=r"one input per column.*Got 1\."):
        skl2onnx.convert_sklearn(model, "m", one, options=options, target_opset=15)


# ---- rows --------------------------------------------------------------------------------------


def test_unseen_values_and_missing_cells():
    model, rows = CASES["table"]()
    rows = rows[:4].copy()
    rows["colour"] = ["violet", None, "red", np.nan]
    rows["age"] = [np.nan, 30.0, np.nan, 1e3]
    graph = to_onnx(model)
    assert_same(graph, model, rows, 1e-9)
    (columns,) = [p.value for p in graph.metadata_props if p.key == "columns"]
    assert json.loads(columns) == {name.replace(" ", "_"): name for name in rows if name != "same"}


@pytest.mark.data
@pytest.mark.parametrize("name", OTHERS)
def test_tables_of_others(name):
    model, rows = other_table(name)
    assert_same(to_onnx(model), model, rows, 1e-9)


def test_missing_numbers_become_medians_as_in_the_model():
    model, rows = CASES["wine"]()
    holes = rows.copy()
    holes[::3, 2] = np.nan
    assert_same(to_onnx(model), model, holes, 1e-9)
    X, y = load_wine(return_X_y=True)
    X[::4, 1] = np.nan
    told = MultipleKernelDiscriminant().fit(X, y)  # a column says what is missing
    assert told.encoder_ is not None
    assert_same(to_onnx(told), told, X, 1e-9)
    scaled = make_pipeline(StandardScaler(), clone(told)).fit(X, y)
    assert_same(to_onnx(scaled), scaled, X, 1e-9)


@pytest.mark.parametrize("labels", [[-1, 0, 7], ["ä", "b", "c"], [1.0, 2.0, 3.0]])
def test_labels_of_all_kinds(labels):
    X, y = load_wine(return_X_y=True)
    model = KernelDiscriminant(class_costs=[1.0, 5.0, 1.0]).fit(X, np.array(labels)[y])
    found, _ = run(to_onnx(model), model, X)
    assert found.tolist() == model.predict(X).tolist()


PEAK = """
import resource, sys
import numpy as np
import pandas as pd
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
rows = np.zeros((1500, 200))
session.run(None, {"X": rows[:2]})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
session.run(None, {"X": rows})
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.parametrize("kernel", [Laplace(width=20.0), Exponential(width=20.0)])
def test_distances_by_column_take_no_memory_per_column(kernel, tmp_path):
    X = np.random.default_rng(0).normal(size=(600, 200))
    model = KernelDiscriminant(kernel, regularization=1e-2).fit(X, X[:, 0] > 0)
    path = tmp_path / "model.onnx"
    path.write_bytes(to_onnx(model).SerializeToString())
    command = [sys.executable, "-c", PEAK, str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # One matrix is 7 MiB; all differences would be 1,400.
    assert float(found) < 100


# ---- checks and refusals -----------------------------------------------------------------------


def test_rows_can_be_given_to_check_the_graph(monkeypatch):
    model, rows = CASES["table"]()
    to_onnx(model, rows)
    to_onnx(CASES["breast_cancer"]().model, CASES["breast_cancer"]().rows, dtype="float32")
    monkeypatch.setattr(type(model), "predict_proba", lambda self, X: np.zeros((len(X), 2)))
    with pytest.raises(NumericalError, match="agree with those of the model to 1e-06"):
        to_onnx(model, rows)


def test_what_cannot_be_exported_is_refused(blobs):
    X, y = blobs
    with pytest.raises(InvalidInputError, match="can be exported if its kernels are RBF"):
        to_onnx(KernelDiscriminant(Function(lambda A, B: A @ B.T)).fit(X, y))
    with pytest.raises(InvalidInputError, match="Got StandardScaler"):
        to_onnx(StandardScaler().fit(X))
    with pytest.raises(InvalidInputError, match=r"dtype must be one of .*Got 'half'"):
        to_onnx(KernelDiscriminant().fit(X, y), dtype="half")
    halves = KernelDiscriminant().fit(X, y)
    halves.model_ = replace(halves.model_, classes=halves.classes_ + 0.5)
    with pytest.raises(InvalidInputError, match="Labels must be text or integers"):
        to_onnx(halves)


def test_without_skl2onnx_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def absent(name, *args, **options):
        if name.partition(".")[0] == "skl2onnx":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingExtraError, match=r"discernel\[onnx\]"):
        to_onnx(single(RBF()).model)


@pytest.mark.parametrize("missing", [None, pd.NA])
def test_tables_of_numbers_with_columns_that_are_left_out(missing):
    rng = np.random.default_rng(0)
    cells = {"a": rng.normal(size=60), "name": [f"row {i * i}" for i in range(60)]}
    X = pd.DataFrame(cells).assign(b=rng.integers(0, 9, 60)).astype({"b": "Int64"})
    X.loc[::7, "b"] = missing
    with pytest.warns(UserWarning, match="1 column was left out"):
        clf = MultipleKernelDiscriminant().fit(X, X.a > 0)
    graph = to_onnx(clf, X)
    assert [each.name for each in graph.graph.input] == ["a", "b"]
    assert_same(graph, clf, X, 1e-9)
    numbers = X.drop(columns="name")
    clf = MultipleKernelDiscriminant().fit(numbers, X.a > 0)
    graph = to_onnx(clf, numbers)
    assert [each.name for each in graph.graph.input] == ["X"]
    assert_same(graph, clf, numbers, 1e-9)
    one = numbers.assign(X=numbers.a, same=1.0)[["same", "X"]]
    clf = MultipleKernelDiscriminant().fit(one.mask(one.X > 2), X.a > 0)
    assert_same(to_onnx(clf, one), clf, one, 1e-9)
