"""Comparisons on one data set: what is planned, refused, ranked, and read back."""

import numpy as np
import pytest

from discernel.compare import compare as module
from discernel.compare import methods as methods_module
from discernel.compare.compare import (
    check_splittable,
    compare,
    comparison_plan,
    file_data,
)
from discernel.compare.methods import (
    DEFAULT_METHODS,
    KINDS,
    METHODS,
    fitting_jobs,
    method_name,
    without_unsuitable,
)
from discernel.compare.plan import Cell, Data, Method, Splits
from discernel.compare.runner import run_cell
from discernel.compare.store import Result, Store
from discernel.datasets import Dataset
from discernel.exceptions import InvalidInputError

PEERS = {method.kind for method in METHODS if method.package}
FAST = ["plain average", "LDA"]


@pytest.fixture
def table(tmp_path):
    """A file of two classes that are told apart by their first column alone."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    X = rng.normal(size=(40, 3))
    X[:, 0] += 4.0 * y
    path = tmp_path / "apart.csv"
    rows = "\n".join(f"{a},{b},{c},{label}" for (a, b, c), label in zip(X, y, strict=True))
    path.write_text(f"a,b,c,class\n{rows}\n")
    return path


# ---- the plan ----------------------------------------------------------------------------------


def test_the_plan_holds_learners_and_baselines_on_stratified_splits():
    plan = comparison_plan(Data("wine"))
    assert [method.name for method in plan.methods if method.kind not in PEERS] == [
        "discernel",
        "rkda",
        "plain average",
        "single kernel",
        "SVC grid",
        "forest",
        "boosting",
        "logistic",
        "majority",
    ]
    assert set(DEFAULT_METHODS) < {method.name for method in METHODS}
    assert all(method.kind in KINDS for method in METHODS)
    assert plan.splits == Splits(n=10, train_size=0.8, stratify=True)


def test_unknown_methods_and_shares_are_refused():
    with pytest.raises(
        InvalidInputError, match=r"The method must be one of 'discernel', .* Got 'svm'"
    ):
        comparison_plan(Data("wine"), methods=["svm"])
    with pytest.raises(InvalidInputError, match=r"The metric must be one of 'accuracy'.*'f1'"):
        compare("wine", metric="f1")
    with pytest.raises(InvalidInputError, match=r"between 0 and 1, such as 0.8. Got 1.5"):
        comparison_plan(Data("wine"), train_size=1.5)


def test_methods_are_found_however_their_names_are_written():
    plan = comparison_plan(Data("wine"), methods=["svc-grid", "Plain_Average", "SVC grid"])
    assert [method.name for method in plan.methods] == ["SVC grid", "plain average"]


def test_a_file_is_known_by_its_content(table):
    before = file_data(table)
    assert before.file["target"] == "class"
    assert file_data(table) == before
    table.write_text(table.read_text() + "9,9,9,1\n")
    cells = [comparison_plan(data).cells()[0] for data in (before, file_data(table))]
    assert cells[0].key != cells[1].key


@pytest.mark.parametrize(
    "method", [m for m in METHODS if not m.package], ids=lambda method: method.name
)
def test_every_method_runs_on_views(tmp_path, method):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 10)
    np.savez(
        tmp_path / "v.npz",
        good=rng.normal(size=(30, 2)) + 3.0 * y[:, None],
        noise=rng.normal(size=(30, 3)),
        y=y,
    )
    plan = comparison_plan(file_data(tmp_path / "v.npz"), methods=[method.name])
    _, result = run_cell(plan.cells()[0])
    assert result.error is None
    if method.kind in ("discriminant", "single"):
        assert {name.split(":")[0] for name in result.weights} == {"good", "noise"}


# ---- what is refused ---------------------------------------------------------------------------


def dataset(y, X=None):
    X = np.arange(2.0 * len(y)).reshape(-1, 2) if X is None else X
    return Dataset("mine", X, np.asarray(y), ("a", "b"), "", "")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (dataset(["x"] * 20 + ["y"]), r"at least two rows.* Class 'y' of 'mine' has 1\."),
        (dataset([0.5, 1.5] * 9), "at least 20 rows to compare predictions of numbers"),
    ],
)
def test_what_would_fail_in_every_split_is_refused(rows, words):
    with pytest.raises(InvalidInputError, match=words):
        check_splittable(rows, len(rows.y))


def test_of_few_rows_of_a_class_more_may_be_taken():
    y = ["x"] * 20 + ["y"] * 3
    check_splittable(dataset(y), len(y))
    with pytest.raises(InvalidInputError, match=r"has 1\. .*, or use more rows\."):
        check_splittable(dataset(y), 8)


def unfit(y, *, named=False, **options):
    plan, notes = without_unsuitable(
        comparison_plan(Data("mine"), **options), np.asarray(y), len(y), named=named
    )
    return [method.name for method in plan.methods], notes


def test_a_small_class_leaves_out_only_the_methods_that_need_more():
    names, notes = unfit(["x"] * 20 + ["y"] * 2)
    assert names == ["SVC grid", "forest", "boosting", "logistic", "majority"]
    assert notes == [
        "left out discernel, rkda, plain average, single kernel: needs two training rows of every "
        "class, and 'y' has too few"
    ]
    assert unfit(["x"] * 20 + ["y"] * 3) == (list(DEFAULT_METHODS), [])
    message = r"At least one method must.* left out discernel: needs"
    with pytest.raises(InvalidInputError, match=message):
        unfit(["x"] * 20 + ["y"] * 2, methods=["auto"])


@pytest.mark.parametrize("n_rows", [2, 3])
def test_what_is_kept_for_a_small_class_works(tmp_path, n_rows):
    rng = np.random.default_rng(0)
    y = ["x"] * 20 + ["z"] * 20 + ["y"] * n_rows
    lines = [f"{a},{b},{label}" for (a, b), label in zip(rng.normal(size=(99, 2)), y, strict=False)]
    (tmp_path / "a.csv").write_text("\n".join(["a,b,class", *lines]))
    found = compare(
        file_data(tmp_path / "a.csv"), n_splits=2, store=tmp_path / "r.sqlite", n_jobs=1
    )
    assert [record.result.error for record in found.records if record.result.error] == []
    assert len(found.records) == 2 * (5 if n_rows == 2 else 9)


def test_many_rows_leave_out_only_what_takes_hours():
    y = np.arange(20_000) % 2
    names, notes = unfit(y)
    assert names == [name for name in DEFAULT_METHODS if name not in ("single kernel", "SVC grid")]
    assert "single kernel, SVC grid: takes hours with 16,000 rows" in notes[0]
    assert unfit(y, named=True) == (list(DEFAULT_METHODS), [])


def test_only_so_many_cells_run_side_by_side_as_memory_holds(monkeypatch):
    each = 24 * 10 * 1000**2
    monkeypatch.setattr(methods_module, "memory_limit", lambda: 3 * each)
    assert fitting_jobs(1000, 8) == 3
    assert fitting_jobs(1000, 2) == 2
    assert fitting_jobs(100, 8) == 8
    assert fitting_jobs(10_000, 8) == 1


# ---- the run -----------------------------------------------------------------------------------


def test_a_comparison_ranks_and_says_whether_it_means_anything(table, tmp_path):
    seen = []
    found = compare(
        file_data(table),
        n_splits=3,
        methods=FAST,
        store=tmp_path / "new" / "r.sqlite",
        n_jobs=1,
        started=lambda rows, notes: seen.append((rows.name, tuple(notes))),
    )
    assert seen == [("apart", ("CSV, delimiter ',', decimal '.'; 3 numbers",))]
    means = [entry.mean for entry in found.ranking]
    assert means == sorted(means, reverse=True)
    assert {entry.method for entry in found.ranking} == set(FAST)
    assert {entry.verdict for entry in found.ranking} <= {"clearly best", "best", "tied", "worse"}
    assert (found.summary.ran, found.summary.found) == (6, 0)


def test_a_comparison_by_another_metric_has_importances_too(table, tmp_path):
    given = {"n_splits": 3, "store": tmp_path / "r.sqlite", "n_jobs": 1}
    found = compare(file_data(table), methods=["auto", "majority"], metric="log-loss", **given)
    assert found.metric == "log_loss"
    assert [entry.method for entry in found.ranking] == ["discernel", "majority"]
    assert found.ranking[0].mean < found.ranking[1].mean == pytest.approx(np.log(2), abs=0.01)
    method, columns = found.importances
    assert (method, columns[0].column) == ("discernel", "a")
    stored = [r.result.details.get("feature_importances") for r in found.records]
    of_a = [each["a"] for each in stored if each]
    assert len(of_a) == 3
    assert columns[0].importance == pytest.approx(np.mean(of_a))
    assert columns[0].std == pytest.approx(np.std(of_a, ddof=1))
    assert compare(file_data(table), methods=["majority"], **given).importances is None


def test_some_of_the_rows_are_taken_where_so_asked(table, tmp_path):
    data = file_data(table, rows=30)
    found = compare(data, n_splits=1, methods=["LDA"], store=tmp_path / "r.sqlite", n_jobs=1)
    assert found.notes[1:] == ("uses 30 rows, drawn at random",)
    assert len(found.records[0].result.predictions["y_true"]) == 6


def test_a_second_call_goes_on_where_the_first_one_ended(table, tmp_path):
    given = {"methods": FAST, "store": tmp_path / "r.sqlite", "n_jobs": 1}
    compare(file_data(table), n_splits=2, **given)
    found = compare(file_data(table), n_splits=3, **given)
    assert (found.summary.ran, found.summary.found) == (2, 4)


def test_methods_without_a_result_come_last(tmp_path):
    splits, cells = Splits(n=2), []
    for name, accuracy in (("broken", None), ("poor", 0.6), ("good", 0.9)):
        for repetition in range(2):
            cell = Cell(Data("wine"), Method(name, name), splits, repetition)
            error = "Traceback\nValueError: no" if accuracy is None else None
            metrics = {} if accuracy is None else {"accuracy": accuracy + 0.01 * repetition}
            cells.append((cell, Result(metrics=metrics, error=error)))
    with Store(tmp_path / "r.sqlite") as store:
        for cell, result in cells:
            store.add(cell, result, {})
        records = tuple(store.records([cell for cell, _ in cells]))
    plan = comparison_plan(Data("wine"))
    found = module.Comparison(plan, dataset([0, 1]), (), None, records)
    assert [entry.method for entry in found.ranking] == ["good", "poor", "broken"]


# ---- a store without its plan ------------------------------------------------------------------


def test_a_store_can_be_read_without_its_plan(table, tmp_path):
    place = tmp_path / "r.sqlite"
    found = compare(file_data(table), n_splits=2, methods=FAST, store=place, n_jobs=1)
    with Store(place) as store:
        records = store.records(store.cells(method_name), predictions=True)
    assert {record.cell.key for record in records} == {r.cell.key for r in found.records}
    assert {record.cell.method.name for record in records} == set(FAST)
    assert all(len(record.result.predictions["y_true"]) == 8 for record in records)


def test_names_of_methods_tell_them_apart():
    assert [method_name(method.kind, method.options) for method in METHODS] == [
        method.name for method in METHODS
    ]
    assert method_name("plain", {}) == "plain"
    one = method_name("akfd", {"kernels": [["RBF", {"width": 1.0}]], "nu": 1})
    assert one == "akfd, kernels [[RBF, {width: 1.0}]], nu 1"
