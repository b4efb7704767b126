"""Our numbers beside the printed ones: what is compared with what, and what is said about it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from discernel.compare.plan import Cell, Data, Method, Plan, Splits
from discernel.compare.store import Record, Result, Store
from discernel.exceptions import InvalidInputError
from discernel_reproduction.papers.common import (
    TEN_WIDTHS,
    accuracy,
    auc,
    by_place,
    error_percent,
    gaussians,
    metric,
    p_value,
    percent,
    seconds,
)
from discernel_reproduction.published import published
from discernel_reproduction.reproduce import (
    Link,
    Reproduction,
    compare,
    judge,
    markdown,
    names,
    reproduce,
    reproduction,
    stored,
)

REQUIRED = {
    "fung2004": ["table1", "table2"],
    "kim2006": ["table1", "figure1"],
    "pothin2006": ["table2", "table3", "figure1", "figure2"],
    "yeung2006": [*(f"table{number}" for number in range(1, 6)), "figure1"],
}
PRIVATE = ["fung2004-section5.2", "yeung2006-figure3"]
ALL = [reproduction(name) for name in names()]


def record(value, repetition=0, data="sonar", method="K*", **result):
    cell = Cell(Data(data), Method(method, "lda"), Splits(), repetition)
    return Record(cell, Result(metrics={"accuracy": value / 100}, **result), {}, "")


def records(values, **options):
    return [record(value, repetition, **options) for repetition, value in enumerate(values)]


def kim(**options):
    """Return a reproduction with one link, to the 84.4 % of sonar, a mean of 100 splits."""
    link = Link("Sonar (208, 60)", "K*", "sonar", "K*", accuracy)
    return Reproduction("kim2006-table1", links=(replace(link, **options),))


def yeung(**options):
    """Return a reproduction with one link, to the 92.42 ± 0.07 of wdbc, a mean of 10 splits."""
    link = Link("RBF", "20%, k-NN k=1", "wdbc", "RBF", accuracy)
    return Reproduction("yeung2006-table3", links=(link,), **options)


# ---- comparing -----------------------------------------------------------------------------------


def test_means_and_errors_are_those_of_the_splits():
    values = [80.0, 84.0, 85.0, 91.0]
    (found,) = compare(kim(), records(values))
    assert found.ours == pytest.approx(np.mean(values))
    assert found.error == pytest.approx(stats.sem(values))
    assert found.n == 4
    assert found.cell.value == 84.4
    assert found.digits == 1


def test_records_of_other_places_and_failures_do_not_count():
    there = records([84.0, 85.0])
    others = [
        record(0.0, data="pima"),
        record(0.0, method="K_cv"),
        record(0.0, repetition=2, error="Traceback"),
    ]
    (found,) = compare(kim(), [*others, *there])
    assert (found.ours, found.n) == (pytest.approx(84.5), 2)
    (found,) = compare(kim(), others)
    assert found.verdict == "not run"
    assert found.n == 0


def test_one_split_is_not_judged():
    (found,) = compare(kim(), records([20.0]))
    assert found.verdict == "not judged"
    assert np.isnan(found.error)


def test_what_is_not_to_be_judged_is_not():
    (found,) = compare(kim(judged=False), records([20.0, 21.0]))
    assert found.verdict == "not judged"


def test_pooled_numbers_take_the_place_of_values():
    def largest(of_data):
        return [max(accuracy(each) for each in of_data)] * 2

    link = {"value": None, "pooled": largest}
    everything = [*records([84.0, 85.0]), record(99.0, method="other"), record(100.0, data="pima")]
    (found,) = compare(kim(**link), everything)
    assert found.ours == pytest.approx(99.0)
    assert found.n == 2


@pytest.mark.parametrize(
    "given", [{}, {"value": accuracy, "pooled": lambda of_data: [1.0]}], ids=["none", "both"]
)
def test_a_link_has_a_value_or_what_is_pooled(given):
    with pytest.raises(InvalidInputError, match="either value or pooled"):
        Link("row", "column", "sonar", "K*", **given)


# ---- judging -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paper", "place", "ours", "verdict"),
    [
        ("kim2006", ("Sonar (208, 60)", "K*"), 84.4, "agrees"),
        ("kim2006", ("Sonar (208, 60)", "K*"), 86.4 + 0.049, "agrees"),
        ("kim2006", ("Sonar (208, 60)", "K*"), 86.4 + 0.051, "better"),
        ("kim2006", ("Sonar (208, 60)", "K*"), 82.4 - 0.051, "differs"),
    ],
)
def test_judge_allows_two_standard_errors_and_half_a_digit(paper, place, ours, verdict):
    cell = published(paper)[f"{paper}-table1"].cell(*place)
    assert judge(ours, 0.6, cell, 0.8, 1) == verdict  # √(0.6² + 0.8²) = 1


def test_less_is_better_of_errors_and_nothing_is_of_counts():
    table3, table2 = (published("pothin2006")[f"pothin2006-table{n}"] for n in (3, 2))
    error = table3.cell("ℓ1-SVM, κ_opt", "error")
    assert judge(error.value - 1.0, 0.1, error, 0.1, 2) == "better"
    assert judge(error.value + 1.0, 0.1, error, 0.1, 2) == "differs"
    count = table2.cell("alignment (QP)", "kernels")
    assert judge(5.0, 0.0, count, 0.0, 0) == "differs"
    assert judge(1.0, 0.0, count, 0.0, 0) == "differs"


def test_the_published_error_is_ours_over_their_splits_where_none_is_printed():
    # 84.4 of 100 splits. Ours: spread 2, error 1 for n = 4; theirs 0.2; margin 2.04 + 0.05.
    spread = 2.0 * np.array([-1, -1, 1, 1]) / np.std([-1, -1, 1, 1], ddof=1)
    for shift, verdict in ((2.08, "agrees"), (2.10, "better"), (-2.10, "differs")):
        (found,) = compare(kim(), records(84.4 + shift + spread))
        assert found.verdict == verdict
    one_split = replace(kim(), n_published=1)  # theirs is then 2, and the margin 4.47 + 0.05
    for shift, verdict in ((4.5, "agrees"), (4.54, "better")):
        (found,) = compare(one_split, records(84.4 + shift + spread))
        assert found.verdict == verdict


def test_printed_errors_are_of_one_split_or_of_the_mean():
    values = 92.42 + np.array([0.149, 0.151])  # mean + 0.15, error 0.001
    (found,) = compare(yeung(), records(values, data="wdbc", method="RBF"))
    assert found.verdict == "better"  # 2 · 0.07 / √10 + 0.005 = 0.049
    (found,) = compare(yeung(errors_of_means=True), records(values, data="wdbc", method="RBF"))
    assert found.verdict == "better"  # 2 · 0.07 + 0.005 = 0.145
    values -= 0.01
    (found,) = compare(yeung(errors_of_means=True), records(values, data="wdbc", method="RBF"))
    assert found.verdict == "agrees"


def test_zeros_at_the_end_of_a_printed_number_count():
    """0.90 is stored as 0.9, and stands beside 0.91."""
    link = Link("Sonar (208, 60)", "K_cv", "sonar", "K*", auc)
    found = Reproduction("kim2006-figure1", links=(link,))
    ours = [replace(each, result=Result(metrics={"roc_auc": 0.92})) for each in records([0.0, 0.0])]
    (cell,) = compare(found, ours)
    assert cell.digits == 2
    assert cell.verdict == "better"


# ---- what is there -------------------------------------------------------------------------------


def test_all_tables_and_figures_are_listed():
    wanted = [f"{paper}-{place}" for paper, places in REQUIRED.items() for place in places]
    assert set(wanted) | set(PRIVATE) <= set(names())
    assert len(names()) == len(set(names()))
    assert names().index("ye2008-table9") == names().index("ye2008-table10") - 1


def test_private_data_have_a_note_and_nothing_to_run():
    for name in PRIVATE:
        found = reproduction(name)
        assert found.plans == found.links == ()
        assert found.title
        assert "ublic" in found.notes[0]
    for paper, places in REQUIRED.items():
        for place in places:
            assert reproduction(f"{paper}-{place}").plans


@pytest.mark.parametrize("found", ALL, ids=lambda found: found.id)
def test_links_lead_from_published_cells_to_what_is_run(found):
    assert found.title
    there = [
        (data.name, method.name)
        for plan in found.plans
        for data in plan.datasets
        for method in plan.methods
    ]
    assert len(set(there)) == len(there)
    for link in found.links:
        assert found.table.cell(link.row, link.column) is not None
        assert (link.data, link.method) in there
    places = [(link.row, link.column) for link in found.links]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("paper", sorted(REQUIRED))
def test_every_published_cell_of_a_table_that_is_run_has_a_link(paper):
    for place in REQUIRED[paper]:
        found = reproduction(f"{paper}-{place}")
        linked = {(link.row, link.column) for link in found.links}
        printed = set() if found.table is None else {(c.row, c.column) for c in found.table.cells}
        assert linked == printed


@pytest.mark.parametrize("name", ["fung2004-table1", "kim2006-table1", "yeung2006-table4"])
def test_as_many_splits_as_the_paper_and_as_many_rows(name):
    found = reproduction(name)
    assert {plan.splits.n for plan in found.plans} == {found.table.protocol["n_partitions"]}
    shares = [plan.splits.train_size for plan in found.plans]
    assert shares == np.ravel(found.table.protocol["train_share"]).tolist()


def test_an_unknown_name_is_an_error_that_lists_the_known_ones():
    with pytest.raises(InvalidInputError, match="kim2006-table1"):
        reproduction("kim2006-table9")


def test_with_splits_keeps_the_first_ones():
    full = reproduction("kim2006-table1")
    few = full.with_splits(2)
    assert [plan.splits.n for plan in few.plans] == [2]
    assert {c.key for p in few.plans for c in p.cells()} < {
        c.key for p in full.plans for c in p.cells()
    }
    assert full.with_splits(1000).plans == full.plans


# ---- running -------------------------------------------------------------------------------------


def test_only_what_the_store_lacks_is_run(tmp_path):
    plan = Plan("small", (Data("iris"),), (Method("K*", "lda"),), Splits(2))
    link = Link("Sonar (208, 60)", "K*", "iris", "K*", accuracy)
    found = Reproduction("kim2006-table1", (plan,), (link,))
    with Store(tmp_path / "results.sqlite") as store:
        (first,) = reproduce(found, store)
        finished = [each.finished for each in stored(found, store)]
        assert first.n == 2
        assert first.ours > 90.0
        assert all(len(each.result.predictions["y_pred"]) == 30 for each in stored(found, store))
        assert reproduce(found, store) == [first]
        assert [each.finished for each in stored(found, store)] == finished


def test_markdown_has_both_numbers_and_all_that_is_to_be_known():
    found = replace(kim(reason="Scaling: none is printed."), notes=("A note.",))
    text = markdown(found, compare(found, records([84.0, 85.0])))
    assert "### kim2006-table1: Mean test-set accuracy" in text
    assert "| Sonar (208, 60) | K* | 84.4 | 84.5 ± 0.5 | 2 | agrees |" in text
    assert "Scaling" not in text  # nothing to explain
    assert "To be known:\n\n- A note.\n" in text
    assert "| 84.4 | – | 0 | not run |" in markdown(found, compare(found, []))
    printed = markdown(yeung(), compare(yeung(), []))
    assert "92.42 ± 0.07" in printed
    private = markdown(reproduction("fung2004-section5.2"), [])
    assert "|" not in private
    assert "private" in private


def test_reasons_of_cells_that_differ_stand_below_the_table_with_their_number():
    found = kim(reason="Scaling: none is printed.")
    comparisons = compare(found, records([80.0, 80.5]))
    assert "Why cells differ:\n\n- Scaling: none is printed. (1)\n" in markdown(found, comparisons)
    assert comparisons[0].short_reason == "Scaling"
    (without,) = compare(kim(), records([80.0, 80.5]))
    assert without.short_reason == "not looked into"
    assert "- not looked into (1)\n" in markdown(kim(), [without])


def test_reasons_of_cells_that_are_not_judged_are_to_be_known():
    found = kim(reason="Another machine.", judged=False)
    text = markdown(found, compare(found, records([80.0, 80.5])))
    assert "differ" not in text
    assert "To be known:\n\n- Another machine.\n" in text


@pytest.mark.parametrize("found", ALL, ids=lambda found: found.id)
def test_reasons_of_judged_cells_have_a_short_name(found):
    for link in found.links:
        if link.judged and link.reason:
            name, colon, words = link.reason.partition(": ")
            assert colon
            assert words
            assert len(name) <= 50


# ---- numbers from records ------------------------------------------------------------------------


def test_values_of_a_record():
    one = replace(
        record(91.0),
        result=Result(
            metrics={"accuracy": 0.91, "roc_auc": 0.95, "other": 0.5},
            seconds_fit=2.0,
        ),
    )
    assert accuracy(one) == pytest.approx(91.0)
    assert error_percent(one) == pytest.approx(9.0)
    assert auc(one) == 0.95
    assert metric("other")(one) == 0.5
    assert percent("other")(one) == 50.0
    assert seconds(one) == 2.0
    assert np.isnan(metric("nothing")(one))


def test_p_value_is_that_of_the_paired_test_on_common_splits():
    rng = np.random.default_rng(0)
    first, second = rng.normal(80, 2, 10), rng.normal(81, 2, 10)
    both = records(first, method="A") + records(second, method="B")[::-1]
    alone = [record(0.0, 10, method="A")]
    (found,) = p_value("A", "B")(both + alone)
    assert found == pytest.approx(stats.ttest_rel(first, second).pvalue)
    assert p_value("A", "C")(both) == []


def test_records_by_place_leave_failures_out():
    failed = record(0.0, 5, error="Traceback")
    assert by_place([*records([1.0, 2.0]), failed]) == {("sonar", "K*"): records([1.0, 2.0])}


def test_the_ten_widths_are_those_of_the_papers():
    assert len(TEN_WIDTHS) == 10
    np.testing.assert_allclose(TEN_WIDTHS, np.logspace(-1, 2, 10))
    assert gaussians([2.0]) == [["RBF", {"width": 2.0}]]
