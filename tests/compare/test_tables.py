"""Summaries against the records they come from."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from discernel.compare.plan import Cell, Data, Method, Splits
from discernel.compare.statistics import corrected_interval, corrected_t_test, holm
from discernel.compare.store import Record, Result
from discernel.compare.tables import (
    failures,
    heldout_ratio,
    rank_methods,
    summarize,
)
from discernel.exceptions import InvalidInputError

SPLITS = Splits(n=4)
ERROR = "Traceback (most recent call last):\n  File ...\nValueError: it broke"


def record(data, method, repetition, accuracy, *, splits=SPLITS, seconds=1.0, **result):
    """A record with an accuracy, or with an error in its place."""
    data = data if isinstance(data, Data) else Data(data)
    method = method if isinstance(method, Method) else Method(method, method)
    if isinstance(accuracy, str):
        found = Result(error=accuracy)
    else:
        found = Result(**{"metrics": {"accuracy": accuracy}, "seconds_fit": seconds} | result)
    return Record(Cell(data, method, splits, repetition), found, {"cores": 2}, "2026-01-01")


def records(data, **accuracies):
    return [
        record(data, method, i, value)
        for method, values in accuracies.items()
        for i, value in enumerate(values)
    ]


def verdicts(table, dataset):
    return {entry.method: entry.verdict for entry in table.of_dataset(dataset)}


def test_an_entry_sums_up_its_records():
    values = [0.90, 0.94, 0.92, 0.96]
    found = [
        record("wine", "lda", i, value, seconds=float(i), peak_memory=100 + i)
        for i, value in enumerate(values)
    ]
    entry = summarize(found).entries["wine", "lda"]
    assert entry.interval == corrected_interval(values, 0.25)
    assert entry.values == dict(enumerate(values))
    assert (entry.mean_time("seconds_fit"), entry.peak_memory) == (1.5, 103)
    assert entry.n_failed == 0


def test_intervals_of_shares_end_at_one():
    interval = summarize(records("wine", lda=[1.0, 0.9, 1.0])).entries["wine", "lda"].interval
    assert interval.high == 1.0
    assert interval.low < 0.95


def test_failures_are_counted_and_told():
    found = records("wine", lda=[0.9, ERROR, 0.8, ERROR.replace("broke", "fell")], svc=[ERROR] * 2)
    table = summarize(found)
    lda, svc = table.entries["wine", "lda"], table.entries["wine", "svc"]
    assert (lda.n_failed, lda.interval.n, lda.mean) == (2, 2, pytest.approx(0.85))
    assert (svc.n_failed, svc.interval, svc.verdict) == (2, None, "failed")
    assert math.isnan(svc.mean)
    assert [(f.method, f.message, f.repetitions) for f in failures(table)] == [
        ("lda", "ValueError: it broke", (1,)),
        ("lda", "ValueError: it fell", (3,)),
        ("svc", "ValueError: it broke", (0, 1)),
    ]


def test_a_method_is_clearly_best_only_if_all_others_are_worse():
    best, worse = [0.95, 0.96, 0.95, 0.96], [0.75, 0.77, 0.76, 0.75]
    table = summarize(records("a", x=best, y=worse) + records("b", x=best, y=worse, z=best[::-1]))
    assert verdicts(table, "a") == {"x": "clearly best", "y": "worse"}
    assert verdicts(table, "b") == {"x": "best", "y": "worse", "z": "best"}


def test_a_tie_is_best_on_both_sides():
    table = summarize(records("a", x=[0.9, 0.8], y=[0.9, 0.8]))
    assert verdicts(table, "a") == {"x": "best", "y": "best"}


def test_verdicts_are_corrected_for_all_pairs_of_methods():
    rng = np.random.default_rng(0)
    best = 0.9 + 0.01 * rng.random(4)
    noise = 0.01 * rng.random((5, 4))
    names = [f"m{i}" for i in range(5)]
    values = {"best": best, **dict(zip(names, best - 0.025 + noise, strict=True))}
    table = summarize(records("a", **values))
    pairs = list(combinations(values, 2))
    raw = [corrected_t_test(values[a], values[b], 0.25).p_value for a, b in pairs]
    expected = dict(zip(pairs, holm(raw).tolist(), strict=True))
    found = {name: table.entries["a", name].p_value for name in names}
    assert found == pytest.approx({name: expected["best", name] for name in names})
    assert [table.entries["a", name].verdict for name in names] == [
        "worse" if found[name] < 0.05 else "tied" for name in names
    ]
    assert table.entries["a", "best"].p_value == max(found.values())


def test_a_pair_has_one_probability_whoever_is_the_reference():
    rng = np.random.default_rng(1)
    values = {name: 0.8 + 0.03 * place + 0.04 * rng.random(6) for place, name in enumerate("xyz")}
    table = summarize(records("a", **values) + records("b", x=values["z"], y=values["x"]))
    for reference in "xyz":
        for pair in table.against(reference):
            turned = table.pairs[pair.dataset, reference, pair.method]
            assert (pair.method, pair.reference) == (turned.reference, turned.method)
            assert pair.difference.p_value == turned.difference.p_value
            assert pair.difference.mean == -turned.difference.mean
            assert pair.difference.low == -turned.difference.high
            entry = table.entries[pair.dataset, pair.method]
            if table.ranked(pair.dataset)[0].method == reference:
                assert entry.p_value == pair.difference.p_value


def test_one_split_or_one_method_cannot_be_told():
    assert set(verdicts(summarize(records("a", x=[0.9], y=[0.1])), "a").values()) == {"cannot tell"}
    assert verdicts(summarize(records("a", x=[0.9, 0.8])), "a") == {"x": "cannot tell"}


def test_differences_that_only_rounding_tells_apart_cannot_be_told():
    """One row of eighty in both splits: not 'worse' with p = 1e-15."""
    x, y = [79 / 80, 78 / 80], [78 / 80, 77 / 80]
    table = summarize(records("a", x=x, y=y))
    assert set(verdicts(table, "a").values()) == {"cannot tell"}
    [comparison] = table.against("x")
    assert comparison.verdict == "cannot tell"


def test_methods_are_paired_by_split_whatever_failed_or_came_first():
    x, y = [0.9, 0.8, ERROR, 0.7, 0.6], [0.85, ERROR, 0.9, 0.75, 0.5]
    table = summarize(reversed(records("a", x=x, y=y)))
    [comparison] = table.against("x")
    expected = corrected_t_test([0.85, 0.75, 0.5], [0.9, 0.7, 0.6], 0.25)
    assert comparison.difference == expected
    assert comparison.verdict == "tied"


def test_comparisons_say_better_and_worse_on_each_data_set_by_itself():
    good, bad = [0.95, 0.96, 0.95, 0.96], [0.75, 0.77, 0.76, 0.75]
    table = summarize(records("a", x=good, y=bad) + records("b", x=bad, y=good))
    found = table.against("x")
    assert [c.verdict for c in found] == ["worse", "better"]
    tests = [corrected_t_test(bad, good, 0.25), corrected_t_test(good, bad, 0.25)]
    assert [c.difference for c in found] == tests  # not corrected for pairs on other data sets


def test_pairs_without_a_common_split_are_not_compared():
    assert summarize(records("a", x=[0.9, ERROR], y=[ERROR, 0.9])).against("x") == []


def test_ranks_are_over_data_sets_and_failures_come_last():
    table = summarize(
        records("a", x=[0.9, 0.9], y=[0.8, 0.8], z=[ERROR, ERROR])
        + records("b", x=[0.7, 0.7], y=[0.8, 0.8], z=[0.6, 0.6])
        + records("c", x=[0.9, 0.9], y=[0.8, 0.8], z=[0.7, 0.7])
    )
    ranking = rank_methods(table)
    assert list(ranking.ranks) == ["x", "y", "z"]
    assert ranking.ranks == pytest.approx({"x": 4 / 3, "y": 5 / 3, "z": 3.0})
    assert ranking.datasets == ("a", "b", "c")
    assert ranking.verdicts == {"x": "best", "y": "tied", "z": "tied"}


def test_ranks_use_the_splits_that_all_finished():
    """y has the higher mean only because it failed where the rows were hard."""
    easy, hard = 0.9, 0.5
    table = summarize(
        records("a", x=[easy, hard], y=[easy - 0.1, ERROR]) + records("b", x=[0.9], y=[0.8])
    )
    assert table.entries["a", "y"].mean > table.entries["a", "x"].mean
    assert rank_methods(table).ranks == {"x": 1.0, "y": 2.0}


def test_ranks_are_worse_beyond_the_critical_difference():
    rng = np.random.default_rng(0)
    found = []
    for i in range(20):
        x, y = 0.9 + 0.01 * rng.random(2)
        found += records(f"d{i}", x=[x], y=[y], z=[0.5])
    ranked = rank_methods(summarize(found)).verdicts
    assert list(ranked.values()) == ["best", "tied", "worse"]
    assert ranked["z"] == "worse"


def test_methods_that_were_not_run_everywhere_have_no_rank():
    found = records("a", x=[0.9], y=[0.8], z=[0.7]) + records("b", x=[0.9], y=[0.8])
    assert list(rank_methods(summarize(found)).ranks) == ["x", "y"]


def test_one_data_set_or_one_method_is_not_ranked():
    assert rank_methods(summarize(records("a", x=[0.9], y=[0.8]))) is None
    assert rank_methods(summarize(records("a", x=[0.9]) + records("b", x=[0.9]))) is None


def test_different_things_of_one_name_are_kept_apart():
    found = [
        record(Data("wine"), Method("rkda", "discriminant"), 0, 0.9),
        record(Data("wine", scaling="none"), Method("rkda", "discriminant"), 0, 0.8),
        record(Data("wine"), Method("rkda", "discriminant", {"tol": 1.0}), 0, 0.7),
        record(Data("wine"), Method("rkda", "discriminant"), 0, 0.9, splits=Splits(n=2)),
    ]
    table = summarize(found)
    assert table.datasets == ("wine", "wine (2)")
    assert table.methods == ("rkda", "rkda (2)")
    assert {place: entry.mean for place, entry in table.entries.items()} == {
        ("wine", "rkda"): 0.9,
        ("wine (2)", "rkda"): 0.8,
        ("wine", "rkda (2)"): 0.7,
    }


@pytest.mark.parametrize(
    ("splits", "expected"),
    [
        (Splits(train_size=0.8), 0.25),
        (Splits(folds=10), 1 / 9),
        (Splits(train_size=50), 0.5),
        (Splits(donor=True), math.nan),
    ],
)
def test_the_ratio_follows_from_the_splits(splits, expected):
    found = record("a", "x", 0, 0.9, splits=splits, predictions={"y_true": np.zeros(25)})
    assert heldout_ratio(found) == pytest.approx(expected, nan_ok=True)


def test_splits_that_do_not_tell_their_size_have_no_interval():
    splits = Splits(train_size=50)
    table = summarize(
        [record("a", m, i, 0.8 + i / 10, splits=splits) for m in "xy" for i in (0, 1)]
    )
    assert math.isnan(table.entries["a", "x"].interval.low)
    assert verdicts(table, "a") == {"x": "cannot tell", "y": "cannot tell"}
    assert math.isnan(table.against("x")[0].difference.p_value)


def test_a_record_may_have_no_accuracy():
    found = records("a", x=[0.9], y=[0.8])
    del found[1].result.metrics["accuracy"]
    table = summarize(found)
    assert table.entries["a", "y"].interval is None
    assert table.entries["a", "y"].verdict == "cannot tell"


def test_no_records_are_refused():
    with pytest.raises(InvalidInputError, match="at least one record"):
        summarize([])


# ---- another metric ----------------------------------------------------------------------------


def with_losses(**losses):
    return [
        record("wine", method, i, 0.9, metrics={"accuracy": 0.9, "log_loss": value, "roc_auc": 1.0})
        for method, values in losses.items()
        for i, value in enumerate(values)
    ]


def test_of_a_loss_the_least_is_the_best():
    low, high = [0.10, 0.11, 0.12, 0.10], [0.80, 0.84, 0.82, 0.83]
    table = summarize(with_losses(x=high, y=low), "log-loss")
    assert table.metric.name == "log_loss"
    assert verdicts(table, "wine") == {"x": "worse", "y": "clearly best"}
    assert [entry.method for entry in table.ranked("wine")] == ["y", "x"]
    [pair] = table.against("x")
    assert pair.difference.mean < 0
    assert pair.verdict == "better"
    assert table.entries["wine", "x"].means == pytest.approx(
        {"accuracy": 0.9, "log_loss": np.mean(high), "roc_auc": 1.0}
    )


def test_losses_above_one_have_whole_intervals_and_ranks_begin_with_the_least():
    found = with_losses(x=[2.0, 2.4, 2.2], y=[1.0, 1.2, 1.1])
    other = [replace(r, cell=replace(r.cell, data=Data("iris"))) for r in found]
    table = summarize([*found, *other], "log_loss")
    assert table.entries["wine", "x"].interval.high > 2.2
    assert list(rank_methods(table).ranks) == ["y", "x"]


def test_a_method_without_the_metric_has_no_verdict_but_its_other_numbers():
    found = [*with_losses(x=[0.1, 0.2, 0.3]), *records("wine", y=[0.9, 0.8, 0.7])]
    entry = summarize(found, "log_loss").entries["wine", "y"]
    assert (entry.interval, entry.verdict, entry.n_failed) == (None, "cannot tell", 0)
    assert entry.means == {"accuracy": pytest.approx(0.8)}
    assert entry.mean_time("seconds_fit") == 1.0
    with pytest.raises(InvalidInputError, match="The metric must be one of"):
        summarize(found, "f1")


def test_the_best_is_best_where_one_of_its_pairs_cannot_be_tested():
    good = [0.9, 0.92, 0.91, 0.9]
    near = [0.91, 0.9, 0.92, 0.88]
    table = summarize(records("a", x=good, twin=good, y=near, z=[v - 0.5 for v in good]))
    assert verdicts(table, "a") == {
        "x": "best", "twin": "best", "y": "tied", "z": "cannot tell",
    }  # fmt: skip
