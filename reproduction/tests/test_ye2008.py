"""The experiments of Ye, Ji and Chen (2008): what is run, and beside which printed number."""

import os
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC

from discernel.compare.plan import Cell, Data, Method, Plan, Splits
from discernel.compare.runner import run, run_cell
from discernel.compare.store import Record, Result, Store
from discernel.criteria import Margin
from discernel.kernels import RBF
from discernel.learn import learn_kernel
from discernel_reproduction.methods import METHODS, PAPERS
from discernel_reproduction.papers.common import accuracy
from discernel_reproduction.papers.ye2008 import REPRODUCTIONS
from discernel_reproduction.papers.ye2008 import setup as ye
from discernel_reproduction.published import published
from discernel_reproduction.reproduce import reproduce, stored
from discernel_reproduction.tasks import load_split

BY_ID = {found.id: found for found in REPRODUCTIONS}
TASKS = (*ye.BINARY, *ye.MULTI)
WINE = ye.MULTI[3]
needs_data = pytest.mark.skipif("DISCERNEL_DATA" not in os.environ, reason="no folder of data")


def record_of(method, weights, *, regularization=None, metrics=None):
    cell = Cell(Data("wine"), method, Splits(), 0)
    result = Result(
        weights=dict(enumerate(weights)), regularization=regularization, metrics=metrics or {}
    )
    return Record(cell, result, {}, "")


# ---- what is there -------------------------------------------------------------------------------


def test_every_table_and_figure_is_there_once():
    expected = set(published("ye2008")) | {f"ye2008-figure{i}" for i in (1, 3, 4)}
    assert Counter(BY_ID.keys()) == Counter(expected)
    assert len(REPRODUCTIONS) == len(BY_ID)


@pytest.mark.parametrize("found", REPRODUCTIONS, ids=lambda found: found.id)
def test_links_are_to_the_data_of_the_cell_and_say_why_they_are_not_judged(found):
    for link in found.links:
        assert found.table.cell(link.row, link.column).dataset == link.data
        assert link.judged or link.reason


@pytest.mark.parametrize("table", range(2, 16))
def test_every_published_cell_of_a_data_set_has_a_link(table):
    found = BY_ID[f"ye2008-table{table}"]
    linked = {(link.row, link.column) for link in found.links}
    assert {(cell.row, cell.column) for cell in found.table.cells} == linked


def test_every_support_vector_cell_has_a_link():
    found = BY_ID["ye2008-table17"]
    assert len(found.links) == len(found.table.cells)


def test_private_data_are_listed_and_not_run():
    private = [found for found in REPRODUCTIONS if found.table and not found.table.public]
    assert [found.id for found in private] == ["ye2008-section5.3"]
    assert private[0].plans == ()
    assert "mfeat" in private[0].notes[0]


def test_tables_share_their_cells():
    def keys(name):
        return {cell.key for plan in BY_ID[name].plans for cell in plan.cells()}

    assert keys("ye2008-table17") <= set.union(*(keys(f"ye2008-table{i}") for i in range(2, 6)))
    multi = set.union(*(keys(f"ye2008-table{i}") for i in range(6, 16)))
    alone = keys("ye2008-table16") - multi
    assert 0 < len(alone) < 50  # QCQP as itself


def test_the_kernels_are_gaussians_of_the_printed_sigma():
    widths = [kernel[1]["width"] for kernel in ye.EXACT.options["kernels"]]
    printed = [0.10, 0.22, 0.46, 1.00, 2.15, 4.64, 10.00, 21.54, 46.42, 100.00]
    np.testing.assert_allclose(np.square(widths), printed, atol=0.006)


@needs_data
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.label)
def test_tasks_have_the_rows_they_say(task):
    split = load_split(Cell(task.data, ye.EXACT, task.splits(), 0))
    assert len(split.y_train) == task.n_train
    assert len(split.y_train) + len(split.y_test) == task.n_rows


@pytest.mark.parametrize("task", ye.BINARY, ids=lambda task: task.label)
def test_as_many_rows_train_as_table_17_prints(task):
    printed = BY_ID["ye2008-table17"].table.cell(task.label, "training size")
    assert task.n_train == printed.value


def test_a_hundred_of_each_class_are_drawn_anew_for_every_split():
    data = Data("wine", "none", options={"classes": [0, 2], "per_class": 20})
    first, again, second = (
        load_split(Cell(data, ye.EXACT, Splits(train_size=0.5), i)) for i in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.X_train, again.X_train)
    rows = [np.vstack([d.X_train, d.X_test]) for d in (first, second)]
    assert {tuple(row) for row in rows[0]} != {tuple(row) for row in rows[1]}
    assert Counter([*first.y_train, *first.y_test]) == {0: 20, 2: 20}


# ---- numbers as the paper counts them ------------------------------------------------------------


def test_weights_and_learned_lambda_sum_to_one():
    record = record_of(ye.EXACT_JOINT, [0.25] * 4, regularization=0.001)
    parts = [ye.share_of(i, 150)(record) for i in range(4)]
    assert sum(parts) + ye.learned_lambda(150)(record) == pytest.approx(1.0)
    # λI has trace 0.15 beside kernels of trace 1
    assert ye.learned_lambda(150)(record) == pytest.approx(0.15 / 1.15)
    assert ye.share_of(2)(record) == 0.25


def test_counts_are_of_thirty():
    records = [record_of(ye.RKDA_CV, row) for row in ([1, 0], [0, 1], [0, 1])]
    assert np.mean([ye.chosen(1)(record) for record in records]) == pytest.approx(20)


@pytest.mark.parametrize("method", ye.MARGINS, ids=lambda method: method.name)
def test_margin_weights_sum_as_the_printed_ones_do(method):
    w, C = np.full(10, 0.1), 10.0
    record = record_of(method, w, metrics={"C": C})
    total = sum(ye.margin_weight(i)(record) for i in range(10))
    if method.name != "SM2_C":
        assert total == pytest.approx(10.0)
        assert ye.margin_cost(record) == 1.0
    else:
        # the identity, 1/C in the machine's units, makes up for the rest
        assert total + 1.0 / ye.margin_cost(record) == pytest.approx(11.0)


# ---- what is run ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["SM1", "SM2", "SM2_C"])
def test_margin_machine_is_that_of_the_program(kind):
    """At the optimum, the value of the machine on the combined kernel is that of the program."""
    split = load_split(
        Cell(Data("wine", options={"classes": [0, 1]}), ye.EXACT, Splits(train_size=60), 0)
    )
    widths = (1.0, 4.0)
    kernels = [["RBF", {"width": width}] for width in widths]
    outcome = METHODS["margin"](split, {"kernels": kernels, "kind": kind})
    C, y = outcome.metrics["C"], np.where(split.y_train == 1, 1.0, -1.0)
    K = sum(
        weight * RBF(width=width)(split.X_train)
        for weight, width in zip(outcome.weights.values(), widths, strict=True)
    )
    ridge, bound = (0.0, C) if kind == "SM1" else (1.0 / C, np.inf)
    machine = SVC(kernel="precomputed", C=bound, tol=1e-8).fit(K + ridge * np.eye(60), y)
    beta = np.zeros(60)
    beta[machine.support_] = machine.dual_coef_[0]
    value = 2 * np.abs(beta).sum() - beta @ (K + ridge * np.eye(60)) @ beta
    program = Margin(kind)
    learned = learn_kernel(
        [RBF(width=width)(split.X_train) for width in widths],
        split.y_train,
        criterion=program,
    )
    # SM2_C weighs the identity too: all weights sum to 1 there, the others' to 1 here
    scale = 1.0 + 1.0 / C if kind == "SM2_C" else 1.0
    assert scale * value == pytest.approx(learned.objective, rel=1e-4)
    cross = sum(
        weight * RBF(width=width)(split.X_test, split.X_train)
        for weight, width in zip(outcome.weights.values(), widths, strict=True)
    )
    expected = np.where(machine.decision_function(cross) > 0, 1, 0)
    np.testing.assert_array_equal(outcome.predictions["y_pred"], expected)
    assert 2 <= outcome.metrics["support_vectors"] <= outcome.metrics["training_rows"] == 60


def test_small_multipliers_are_no_support_vectors_if_asked():
    split = load_split(
        Cell(Data("wine", options={"classes": [0, 1]}), ye.EXACT, Splits(train_size=60), 0)
    )
    options = {"kernels": [["RBF", {"width": 4.0}]], "kind": "SM2"}
    few, all_of_them = (
        METHODS["margin"](split, {**options, "least": least}) for least in (0.3, 0.0)
    )
    K = RBF(width=4.0)(split.X_train)
    machine = SVC(kernel="precomputed", C=np.inf, tol=1e-8).fit(K + np.eye(60), split.y_train)
    large = np.count_nonzero(np.abs(machine.dual_coef_) > 0.3)
    assert few.metrics["support_vectors"] == large < all_of_them.metrics["support_vectors"]
    np.testing.assert_array_equal(few.predictions["y_pred"], all_of_them.predictions["y_pred"])


def test_two_splits_of_wine_stand_beside_table_9(tmp_path):
    whole = BY_ID["ye2008-table9"].with_splits(2)
    wanted = {"exact, λ given", "exact, λ learnt", "SILP_θ", "SILP_θ,λ"}
    plan = whole.plans[0]
    methods = tuple(method for method in plan.methods if method.name in wanted)
    found = replace(whole, plans=(replace(plan, methods=methods),))
    with Store(tmp_path / "wine.db") as store:
        comparisons = reproduce(found, store)
        records = stored(found, store)
    assert not [record.result.error for record in records if record.result.error]
    ours = {(c.cell.row, c.cell.column): c for c in comparisons}
    assert ours["SILP_θ", "TSA"].n == 2
    assert ours["SILP_θ", "TSA"].ours > 90
    assert ours["SDP_θ", "TSA"].verdict == "not run"
    for row in ("QCQP_θ", "SILP_θ"):
        assert sum(ours[row, f"θ{i}"].ours for i in range(1, 11)) == pytest.approx(1.0)
        assert ours[row, "λ"].ours == pytest.approx(5e-4)
    joint = [ours["QCQP_θ,λ", f"θ{i}"].ours for i in range(1, 11)]
    assert sum(joint) + ours["QCQP_θ,λ", "λ"].ours == pytest.approx(1.0)
    # one program: what its solvers find is worth the same
    by_method = {record.cell.method.name: record.result for record in records}
    exact, silp = by_method["exact, λ given"], by_method["SILP_θ"]
    assert silp.details["objective"] == pytest.approx(exact.details["objective"], rel=1e-3)


@pytest.mark.parametrize("method", [ye.RKDA_CV, ye.SVM_CV, ye.ALONE["SVM_C"][4]])
def test_validated_methods_run(method):
    options = {**method.options, "kernels": method.options["kernels"][-2:], "cv": 2}
    cell = Cell(WINE.data, Method(method.name, method.kind, options), WINE.splits(), 0)
    _, result = run_cell(cell, PAPERS)
    assert result.error is None
    assert sorted(result.weights.values()) == [0.0] * (len(options["kernels"]) - 1) + [1.0]


# ---- figures -------------------------------------------------------------------------------------


def test_accuracy_over_lambda_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    found = BY_ID["ye2008-figure4"]
    plan = found.plans[0]  # wine
    part = replace(plan, methods=plan.methods[::10], splits=replace(plan.splits, n=2))
    with Store(tmp_path / "lambda.db") as store:
        run(part, store, protocol=PAPERS)
        records = store.records(part.cells())
    wine, other = found.figure(records).axes
    x, y = wine.lines[0].get_data()
    assert len(x) == 3
    assert x[0] == pytest.approx(1e-10)
    first = [accuracy(r) for r in records if r.cell.method.name == plan.methods[0].name]
    assert y[0] == pytest.approx(np.mean(first))
    assert [len(line.get_xdata()) for line in other.lines] == [0, 1, 1]  # printed ones only


@pytest.mark.parametrize("name", ["ye2008-figure1", "ye2008-table16"])
def test_times_are_drawn(name):
    pytest.importorskip("matplotlib")
    found = BY_ID[name]
    cells = [cell for plan in found.plans for cell in Plan.cells(plan)[: len(plan.methods)]]
    records = [Record(cell, Result(seconds_fit=0.5), {}, "") for cell in cells]
    figure = found.figure(records)
    drawn = [line for ax in figure.axes for line in ax.lines if line.get_marker() == "o"]
    assert len(drawn) == len(cells)
    if name == "ye2008-figure1":
        assert all(line.get_xdata()[0] == 0.5 for line in drawn)
