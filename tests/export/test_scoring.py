"""Scoring with NumPy alone: the labels and probabilities of the model, without discernel."""

import json
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from discernel import AKFDClassifier, KernelDiscriminant, MultipleKernelDiscriminant, open_rows
from discernel.bank import LowRank
from discernel.exceptions import FileWriteError, InvalidInputError
from discernel.export import _scorer, numpy_scorer, to_onnx, write_scorer
from discernel.export._scorer import Scorer
from discernel.export.formula import pack
from discernel.kernels import (
    RBF,
    Function,
    GaussianProcess,
    Kernel,
    Linear,
    Polynomial,
    WhereKnown,
)
from discernel.kernels.pairs import SQUARED
from discernel.kernels.terms import Atom, Decay, PairFunction, PairKind, Term
from discernel.testing import check_kernel
from tests.export.models import (
    CASES,
    KERNELS,
    NUMBERS,
    OTHERS,
    encoded,
    lacking,
    mixed_table,
    numbers,
    other_table,
    single,
)


def assert_same(scorer, model, rows, atol=1e-6):
    np.testing.assert_allclose(
        scorer.predict_proba(rows), model.predict_proba(rows), rtol=0, atol=atol
    )
    assert scorer.predict(rows).tolist() == model.predict(rows).tolist()


@pytest.mark.parametrize("name", CASES)
def test_five_data_sets(name):
    model, rows = CASES[name]()
    scorer = numpy_scorer(model)
    assert_same(scorer, model, rows, 1e-9)
    assert_same(scorer, model, rows[:1], 1e-9)
    assert scorer.classes.tolist() == model.classes_.tolist()
    assert scorer.predict(rows[:0]).shape == (0,)


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers(kind):
    model, rows = numbers(kind)
    scorer, expected = Scorer.unpack(pack(numpy_scorer(model))), model.predict(rows)
    for chosen in (slice(None), slice(1), slice(0)):
        found = scorer.predict(rows[chosen])
        assert found.shape == expected[chosen].shape
        assert (np.abs(found - expected[chosen]) <= 1e-10 * np.ptp(expected, axis=0)).all()


def test_files_of_numbers_have_no_probabilities(tmp_path):
    write_scorer(numbers("several").model, tmp_path / "number_scorer.py")
    script = """
        import number_scorer as scorer
        print(scorer.predict([[0.0] * 10]).shape)
        for function in (scorer.classes, lambda: scorer.predict_proba([[0.0] * 10])):
            try:
                function()
            except TypeError as error:
                print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    shape, *errors = run.stdout.splitlines()
    assert shape == "(1, 3)"
    assert errors == ["This model predicts numbers and has no classes. Call predict(rows)."] * 2


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_every_kernel(kernel):
    model, rows = single(kernel)
    assert_same(numpy_scorer(model), model, rows, 1e-7)


@pytest.mark.parametrize("kernel", [Polynomial(3, gamma=0.1), Polynomial(2, coef0=0.0), Linear()])
def test_exact_features(kernel, blobs):
    X, y = blobs
    kernels = [kernel.on([0, 1, 2]), RBF().on([3, 4])]
    clf = MultipleKernelDiscriminant(kernels, criterion="uniform", bank=LowRank(60))
    clf.fit(X, y)
    assert "ExactMap" in str(clf.combined_kernel_.maps)
    assert_same(numpy_scorer(clf), clf, X)


def test_rows_in_chunks_weights_and_sparse_rows(blobs):
    X, y = blobs
    streamed = MultipleKernelDiscriminant().fit(open_rows(X, y))
    assert_same(numpy_scorer(streamed), streamed, X)
    weighted = KernelDiscriminant(class_weight="balanced", priors="uniform")
    weighted.fit(X, y, sample_weight=1.0 + np.arange(len(y)) % 3)
    assert_same(numpy_scorer(weighted), weighted, X)
    sparse = KernelDiscriminant(Linear()).fit(csr_matrix(X), y)
    np.testing.assert_allclose(
        numpy_scorer(sparse).predict_proba(X), sparse.predict_proba(csr_matrix(X)), atol=1e-9
    )


@pytest.mark.parametrize("options", [{}, {"bank": LowRank(150)}], ids=["exact", "low"])
def test_sources_that_some_rows_lack(options):
    model, rows = lacking(**options)
    made = numpy_scorer(model)
    assert_same(made, model, rows, 1e-9)
    without = np.full((1, 13), np.nan)
    without[0, 3:6] = rows[0, 3:6]
    assert_same(made, model, without, 1e-9)
    back = Scorer.unpack(pack(made))
    np.testing.assert_array_equal(back.predict_proba(rows), made.predict_proba(rows))
    rows = rows.copy()
    rows[0, 4] = np.nan
    with pytest.raises(ValueError, match="does not accept missing cells"):
        made.predict(rows)


def test_rows_far_from_the_origin_keep_their_digits():
    X, y = load_wine(return_X_y=True)
    far = X + 1e6
    clf = KernelDiscriminant(RBF(width=30.0)).fit(far[::2], y[::2])
    scorer = numpy_scorer(clf)
    assert "column_sums" not in [
        step.name for step in scorer.scores.steps
    ]  # products, less an origin
    assert_same(scorer, clf, far)
    groups = X + 1e5 * (np.arange(len(X)) % 2)[:, None]
    clf = KernelDiscriminant(RBF(width=30.0)).fit(groups, y)
    assert "column_sums" in [step.name for step in numpy_scorer(clf).scores.steps]
    assert_same(numpy_scorer(clf), clf, groups)


# ---- rows of all kinds -------------------------------------------------------------------------


def test_tables_as_dictionaries_of_columns_or_rows():
    model, rows = CASES["table"]()
    scorer, expected = numpy_scorer(model), model.predict_proba(rows)
    columns = {name: rows[name].tolist() for name in rows}
    records = rows.astype(object).where(rows.notna(), None).to_dict("records")
    for given in (columns, records, rows[list(reversed(rows.columns))]):
        np.testing.assert_allclose(scorer.predict_proba(given), expected, atol=1e-9)
    absent = [{k: v for k, v in row.items() if v is not None} for row in records]
    np.testing.assert_allclose(scorer.predict_proba(absent), expected, atol=1e-9)
    array = rows.to_numpy(dtype=object)
    np.testing.assert_allclose(scorer.predict_proba(array), expected, atol=1e-9)


def test_unseen_values_and_missing_cells():
    model, rows = CASES["table"]()
    rows = rows[:4].copy()
    rows["colour"] = ["violet", None, "red", np.nan]
    rows["age"] = [np.nan, 30.0, np.nan, 1e3]
    assert_same(numpy_scorer(model), model, rows, 1e-9)


def test_categories_that_are_numbers_have_one_spelling():
    model, rows = CASES["table"]()
    scorer, columns = numpy_scorer(model), {name: rows[name].tolist() for name in rows}
    expected = scorer.predict_proba(columns)
    for kind in (float, np.int8, str):
        columns["size class"] = [kind(cell) for cell in rows["size class"]]
        np.testing.assert_array_equal(scorer.predict_proba(columns), expected)


def test_numbers_of_other_types_and_missing_ones():
    model, rows = CASES["wine"]()
    scorer = numpy_scorer(model)
    assert_same(scorer, model, rows.astype(np.float32), 1e-9)
    assert_same(scorer, model, rows.tolist(), 1e-9)
    holes = rows.copy()
    holes[::3, 2] = np.nan
    assert_same(scorer, model, holes, 1e-9)
    named = {f"x{i}": column for i, column in enumerate(rows.T)}
    np.testing.assert_array_equal(scorer.predict(named), scorer.predict(rows))


def test_a_scaler_in_front_of_a_table_of_numbers_with_holes():
    X, y = load_wine(return_X_y=True)
    X[::4, 1] = np.nan
    model = make_pipeline(StandardScaler(with_mean=False), MultipleKernelDiscriminant()).fit(X, y)
    assert model[-1].encoder_ is not None
    assert_same(numpy_scorer(model), model, X, 1e-9)


@pytest.mark.parametrize(
    "scaler", [StandardScaler(), StandardScaler(with_mean=False), "passthrough"]
)
def test_an_encoder_and_a_scaler_in_front(scaler):
    model, rows = encoded(scaler)
    scorer = numpy_scorer(model)
    assert "when (days)" in scorer.names
    found = scorer.predict_proba(model[0].split_dates(rows))
    np.testing.assert_allclose(found, model.predict_proba(rows), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"age": "old"}, "'age' must hold numbers. Got 'old'"),
        ({"age": np.inf}, "'age' must hold finite numbers"),
        ({"colour": 3}, "'colour' must hold text. Got 3 in row 0"),
    ],
)
def test_strange_cells_are_refused(change, words):
    model, rows = CASES["table"]()
    row = {**rows.iloc[0].to_dict(), **change}
    with pytest.raises(ValueError, match=words):
        numpy_scorer(model).predict([row])


def test_strange_rows_are_refused():
    scorer = numpy_scorer(single(RBF()).model)
    with pytest.raises(ValueError, match=r"of shape \(n_rows, 13\). Got \(2, 3\)"):
        scorer.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="does not accept missing cells"):
        scorer.predict(np.full((1, 13), np.nan))
    with pytest.raises(ValueError, match="must have the column 'x1'"):
        scorer.predict({"x0": [1.0]})
    with pytest.raises(ValueError, match="must have the column 'x1'"):
        scorer.predict([{"x0": 1.0}])


@pytest.mark.parametrize("case", ["wine", "table"])
def test_arrays_with_too_few_or_too_many_columns_are_refused(case):
    model, rows = CASES[case]()
    scorer, cells = numpy_scorer(model), np.asarray(rows, dtype=object)
    n_columns = cells.shape[1]
    for wrong in (np.hstack([cells, cells[:, :1]]), cells[:, :-1], cells[0]):
        shape = re.escape(str(wrong.shape))
        message = rf"of shape \(n_rows, {n_columns}\). Got {shape}. Pass all columns of training"
        for given in (wrong, wrong.tolist()):
            with pytest.raises(ValueError, match=message):
                scorer.predict(given)
    np.testing.assert_array_equal(scorer.predict(cells.tolist()), scorer.predict(rows))


def test_masked_cells_and_large_numbers():
    model, rows = CASES["wine"]()
    scorer = numpy_scorer(model)
    hidden = np.ma.array(np.where(rows > 5, 1e9, rows), mask=rows > 5)
    assert_same(scorer, model, hidden, 1e-9)
    for large in (1e200, 10**400):
        wrong = rows.astype(object)
        wrong[0, 1] = large
        with pytest.raises(ValueError, match=r"'x1' must hold finite numbers, at most 1e\+150"):
            scorer.predict(wrong)


# ---- what cannot be exported -------------------------------------------------------------------


def test_other_kernels_models_and_steps_are_refused(blobs):
    X, y = blobs
    from sklearn.gaussian_process.kernels import Matern

    for kernel in (Function(lambda A, B: A @ B.T), GaussianProcess(Matern()), "precomputed"):
        rows = X @ X.T if kernel == "precomputed" else X
        clf = KernelDiscriminant(kernel).fit(rows, y)
        with pytest.raises(InvalidInputError, match="can be exported if its kernels are RBF"):
            numpy_scorer(clf)
    with pytest.raises(InvalidInputError, match="Got AKFDClassifier"):
        numpy_scorer(AKFDClassifier().fit(X, y == 1))
    with pytest.raises(InvalidInputError, match="may have a TableEncoder as its first step"):
        numpy_scorer(make_pipeline(MinMaxScaler(), KernelDiscriminant()).fit(X, y))
    clf = KernelDiscriminant().fit(X, y)
    clf.model_ = replace(clf.model_, classes=np.array([None, 1, 2], dtype=object))
    with pytest.raises(InvalidInputError, match="all text, all numbers"):
        numpy_scorer(clf)


def test_a_subclass_of_a_kernel_may_be_anything(blobs):
    class Other(RBF):
        def __call__(self, X, Z=None):
            return super().__call__(X, Z) ** 2

    with pytest.raises(InvalidInputError, match="of type Other"):
        numpy_scorer(KernelDiscriminant(Other()).fit(*blobs))


# ---- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_come_back(name):
    model, rows = CASES[name]()
    scorer = numpy_scorer(model)
    back = Scorer.unpack(pack(scorer))
    np.testing.assert_array_equal(back.predict_proba(rows), scorer.predict_proba(rows))


ALONE = """
    import json, sys

    class Refusing:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in ("discernel", "sklearn", "scipy", "pandas", "joblib"):
                raise ImportError(name)

    sys.meta_path.insert(0, Refusing())
    sys.path.insert(0, sys.argv[1])
    import numpy as np
    import scorer

    given = json.loads(sys.stdin.read())
    print(json.dumps([scorer.predict(given).tolist(), scorer.predict_proba(given).tolist(),
                      scorer.classes().tolist()]))
"""


@pytest.mark.parametrize("name", CASES)
def test_the_files_predict_where_there_is_numpy_only(name, tmp_path):
    model, rows = CASES[name]()
    code, numbers = write_scorer(model, tmp_path / "scorer.py")
    assert sorted(tmp_path.iterdir()) == sorted([code, numbers])
    given = json.loads(rows.to_json(orient="records")) if name == "table" else rows.tolist()
    command = [sys.executable, "-I", "-c", textwrap.dedent(ALONE), str(tmp_path)]
    run = subprocess.run(
        command, input=json.dumps(given), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    labels, probabilities, classes = json.loads(run.stdout)
    assert labels == model.predict(rows).tolist()
    np.testing.assert_allclose(probabilities, model.predict_proba(rows), rtol=0, atol=1e-9)
    assert classes == model.classes_.tolist()


def test_files_are_written_whole_or_not_at_all(tmp_path):
    model = single(RBF()).model
    with pytest.raises(InvalidInputError, match="ends with"):
        write_scorer(model, tmp_path / "scorer.txt")
    with pytest.raises(InvalidInputError, match="an existing folder"):
        write_scorer(model, tmp_path / "none" / "scorer.py")
    (tmp_path / "scorer.npz").mkdir()
    with pytest.raises((FileWriteError, OSError)):
        write_scorer(model, tmp_path / "scorer.py")
    assert not (tmp_path / "scorer.py").exists()


@pytest.mark.parametrize("kind", ["rows", "text"])
def test_a_file_of_numbers_that_is_no_scorer_is_not_replaced(tmp_path, kind):
    model, beside = CASES["wine"]().model, tmp_path / "scorer.npz"
    if kind == "rows":
        np.savez(beside, X=np.zeros((3, 2)), y=np.arange(3))
    else:
        beside.write_text("mine")
    before = beside.read_bytes()
    with pytest.raises(InvalidInputError, match=r"would replace .*scorer\.npz"):
        write_scorer(model, tmp_path / "scorer.py")
    assert not (tmp_path / "scorer.py").exists()
    assert beside.read_bytes() == before


def test_numbers_of_another_format_are_refused():
    stored = pack(numpy_scorer(single(RBF()).model))
    plan = json.loads(str(stored["plan"]))
    stored["plan"] = np.array(json.dumps(plan | {"format": _scorer.FORMAT + 1}))
    with pytest.raises(ValueError, match="Write the scorer and its numbers again"):
        Scorer.unpack(stored)


@pytest.mark.data
@pytest.mark.parametrize("name", OTHERS)
def test_tables_of_others(name):
    model, rows = other_table(name)
    assert_same(numpy_scorer(model), model, rows, 1e-9)


def test_the_table_of_these_tests_has_all_kinds_of_columns():
    X, _ = mixed_table()
    encoder = CASES["table"]().model.encoder_
    assert {type(column).__name__ for column in encoder.columns_} == {
        "EncodedNumbers",
        "EncodedValues",
    }
    assert [column.name for column in encoder.left_out_] == ["same"]
    assert X["colour"].isna().any()


# ---- dates -------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [["a", "when"], ["w", "when", "a"]])
def test_a_model_of_dates_takes_their_parts(columns):
    rng = np.random.default_rng(0)
    times = pd.date_range("2021-11-03 06:30", periods=120, freq="37h")
    X = pd.DataFrame({"a": rng.normal(size=120), "when": times, "w": ["u", "v", "n/a"] * 40})
    X.loc[::11, "when"] = pd.NaT
    X, y = X[columns], np.arange(120) >= 60
    clf = MultipleKernelDiscriminant(criterion="uniform").fit(X, y)
    scorer = numpy_scorer(clf)
    parts = [f"when ({part})" for part in ("days", "year", "month", "weekday", "hour")]
    place = columns.index("when")
    assert list(scorer.names) == [*columns[:place], *parts, *columns[place + 1 :]]
    given = clf.encoder_.split_dates(X)
    expected = clf.predict_proba(X)
    np.testing.assert_allclose(scorer.predict_proba(given), expected, atol=1e-12)
    text = X.assign(when=X["when"].dt.strftime("%Y-%m-%d %H:%M"))
    again = pd.DataFrame(clf.encoder_.split_dates(text))
    np.testing.assert_allclose(scorer.predict_proba(again), expected, atol=1e-12)
    to_onnx(clf, X=X)  # compares what the graph predicts


# ---- functions and pairs of one's own ----------------------------------------------------------


@dataclass(frozen=True)
class Rational(PairFunction):
    """1 / (1 + p)."""

    kind = "rational"

    def values(self, base, xp):
        return 1.0 / (1.0 + base)

    def slope(self, base, xp):
        return -1.0 / (1.0 + base) ** 2, 1.0


class Waves(Rational):
    """Every function of numbers that exports have."""

    def values(self, base, xp):
        waves = 0.1 * xp.sin(base) + 0.1 * xp.cos(base) - 0.1 * xp.tanh(base)
        return -1.0 / -(2.0 + xp.log(1.0 + xp.abs(base)) + waves)


class Rounded(Rational):
    def values(self, base, xp):
        return 1.0 / (1.0 + xp.floor(base))


@dataclass(frozen=True)
class Canberra(PairKind):
    """Σ |x_l − z_l| / (1 + |x_l| + |z_l|)."""

    def tile(self, X, Z, out):
        Z = X if Z is None else Z
        parts = np.abs(X[:, None] - Z) / (1.0 + np.abs(X[:, None]) + np.abs(Z))
        return parts.sum(axis=2)

    def diagonal(self, X):
        return np.zeros(len(X))

    def formula(self, X, Z, xp, steepness):
        return xp.column_sums(lambda x, z: abs(x - z) / (1.0 + abs(x) + abs(z)), X, Z)


class Unexported(Canberra):
    def formula(self, X, Z, xp, steepness):
        return None


@dataclass(frozen=True)
class Own(Kernel):
    pair: PairKind
    function: PairFunction

    def _terms(self, view):
        return (Term(1.0, (Atom(self.pair, view, self.function),)),)


def own_model(pair, function):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    clf = KernelDiscriminant(Own(pair, function)).fit(X[::2], y[::2])
    assert clf.score(X, y) > 0.9
    return clf, X


@pytest.mark.parametrize("pair", [SQUARED, Canberra()], ids=repr)
@pytest.mark.parametrize("function", [Rational(), Waves()], ids=repr)
def test_a_function_and_a_pair_are_exported_as_they_are_written(pair, function):
    clf, X = own_model(pair, function)
    assert_same(numpy_scorer(clf), clf, X, 1e-9)
    to_onnx(clf, X=X)  # compares what the graph predicts


def test_a_pair_without_a_formula_is_refused():
    clf, _ = own_model(Unexported(), Rational())
    with pytest.raises(InvalidInputError, match=r"Got .* of type Own"):
        numpy_scorer(clf)


class Averaged(Rational):
    def values(self, base, xp):
        return 1.0 / (1.0 + base + 0.0 * xp.mean(base))


class Reduced(Rational):
    def values(self, base, xp):
        return 1.0 / (1.0 + base + 0.0 * np.add.reduce(base, axis=None))


@pytest.mark.parametrize(
    ("function", "name"),
    [(Rounded(), "floor"), (Averaged(), "mean"), (Reduced(), "add.reduce")],
    ids=repr,
)
def test_a_function_that_exports_do_not_have_is_refused(function, name):
    clf, _ = own_model(Canberra(), function)
    with pytest.raises(InvalidInputError, match=f"exported kernel can use .* Got '{name}'"):
        numpy_scorer(clf)


def test_a_source_that_rows_lack_may_be_multiplied():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    X[::3, :3] = np.nan
    clf = KernelDiscriminant(WhereKnown(RBF()).on([0, 1, 2]) * RBF().on([5, 6])).fit(X, y)
    assert_same(numpy_scorer(clf), clf, X, 1e-9)
    to_onnx(clf, X=X)


class WrongFormula(Canberra):
    def formula(self, X, Z, xp, steepness):
        return xp.column_sums(lambda x, z: abs(x - z), X, Z)


def test_the_checker_of_kernels_compares_what_exports_compute():
    check_kernel(Own(Canberra(), Decay(0.3)))
    with pytest.raises(AssertionError, match="in exports"):
        check_kernel(Own(WrongFormula(), Decay(0.3)))
