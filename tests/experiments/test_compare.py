"""Comparisons on one data set: what is planned, refused, ranked, and read back."""

import numpy as np
import pytest

from discernel.datasets import Dataset
from discernel.exceptions import InvalidInputError
from discernel.experiments import compare as module
from discernel.experiments.compare import (
    METHODS,
    check_divisible,
    compare,
    comparison_plan,
    file_data,
    fitting_jobs,
    method_name,
    stored_records,
)
from discernel.experiments.methods import METHODS as KINDS
from discernel.experiments.plan import Cell, Data, Method, Splits
from discernel.experiments.runner import run_cell
from discernel.experiments.store import Result, Store

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


def test_the_plan_holds_learners_and_baselines_on_stratified_divisions():
    plan = comparison_plan(Data("wine"))
    assert [method.name for method in plan.methods] == [
        "auto",
        "rkda",
        "loo",
        "alignment",
        "akfd",
        "plain average",
        "single kernel",
        "SVC grid",
        "LDA",
    ]
    assert all(method.kind in KINDS for method in plan.methods)
    assert plan.splits == Splits(n=10, train_size=0.8, stratify=True)


def test_unknown_methods_and_shares_are_refused():
    with pytest.raises(InvalidInputError, match=r"The method must be one of 'auto', .* Got 'svm'"):
        comparison_plan(Data("wine"), methods=["svm"])
    with pytest.raises(InvalidInputError, match=r"must lie between 0 and 1. Got 1.5"):
        comparison_plan(Data("wine"), train_size=1.5)


def test_a_file_is_known_by_its_content(table):
    before = file_data(table)
    assert before.file["target"] == "class"
    assert file_data(table) == before
    table.write_text(table.read_text() + "9,9,9,1\n")
    cells = [comparison_plan(data).cells()[0] for data in (before, file_data(table))]
    assert cells[0].key != cells[1].key


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
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
        (dataset(["x"] * 20 + ["y"] * 6), r"at least 7 rows.* Class 'y' of 'mine' has 6"),
        (dataset([0.5, 1.5] * 10), "That of 'mine' is a quantity"),
    ],
)
def test_what_would_fail_in_every_division_is_refused(rows, words):
    with pytest.raises(InvalidInputError, match=words):
        check_divisible(rows, len(rows.y), Splits())


def test_the_smallest_class_that_is_allowed_works():
    y = ["x"] * 20 + ["y"] * 7
    check_divisible(dataset(y), len(y), Splits())
    with pytest.raises(InvalidInputError, match=r"has 3\. .*, or take more of the rows\."):
        check_divisible(dataset(y), 14, Splits())


def test_only_so_many_cells_run_side_by_side_as_memory_holds(monkeypatch):
    each = 24 * 10 * 1000**2
    monkeypatch.setattr(module, "memory_limit", lambda: 3 * each)
    assert fitting_jobs(1000, 8) == 3
    assert fitting_jobs(1000, 2) == 2
    assert fitting_jobs(100, 8) == 8
    with pytest.raises(InvalidInputError, match=r"kernels of 10,000 rows .* \(--rows 1000\)"):
        fitting_jobs(10_000, 1)


# ---- the run -----------------------------------------------------------------------------------


def test_a_comparison_ranks_and_says_whether_it_means_anything(table, tmp_path):
    seen = []
    found = compare(
        file_data(table),
        n_divisions=3,
        methods=FAST,
        store=tmp_path / "new" / "r.sqlite",
        n_jobs=1,
        started=lambda rows, notes: seen.append((rows.name, tuple(notes))),
    )
    assert seen == [("apart", ("CSV, delimiter ',', decimal '.'; 3 numbers",))]
    means = [entry.mean for entry in found.ranking]
    assert means == sorted(means, reverse=True)
    assert {entry.method for entry in found.ranking} == set(FAST)
    assert {entry.standing for entry in found.ranking} <= {"ahead", "level", "behind"}
    assert (found.summary.ran, found.summary.found) == (6, 0)


def test_some_of_the_rows_are_taken_where_so_asked(table, tmp_path):
    data = file_data(table, rows=30)
    found = compare(data, n_divisions=1, methods=["LDA"], store=tmp_path / "r.sqlite", n_jobs=1)
    assert found.notes[1:] == ("takes 30 of the rows, drawn at random",)
    assert len(found.records[0].result.predictions["y_true"]) == 6


def test_a_second_call_goes_on_where_the_first_one_ended(table, tmp_path):
    given = {"methods": FAST, "store": tmp_path / "r.sqlite", "n_jobs": 1}
    compare(file_data(table), n_divisions=2, **given)
    found = compare(file_data(table), n_divisions=3, **given)
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
    found = compare(file_data(table), n_divisions=2, methods=FAST, store=place, n_jobs=1)
    with Store(place) as store:
        records = stored_records(store)
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
