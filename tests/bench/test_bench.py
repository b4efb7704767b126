"""The instrument: statistics on made-up numbers, and everything once with few rows."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import ratios
import typer
from bench import CASES, Case, Pair, chosen_cases, judge, read_record, run_case, run_cases
from bench import work as works
from bench.results import summarize
from typer.testing import CliRunner

from discernel.cli import shared
from discernel.exceptions import InvalidInputError, NumericalError

APP = typer.Typer()
APP.command()(ratios.measure)
#: Cases that need nobody else and take next to nothing.
CHEAP = ["ladder", "papers", "classes", "many", "predict"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shared.out, "width", 140)


def invoke(*words, code=0):
    result = CliRunner().invoke(APP, list(map(str, words)))
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def made_up(ratios, **fields):
    """Return the result of a case with these ratios, without measuring."""
    case = replace(CASES["ladder"], **fields)
    return summarize(case, case.rows, [(2.0 * ratio, 2.0, ratio) for ratio in ratios])


# ---- statistics --------------------------------------------------------------------------------


def test_median_quartiles_and_what_was_divided():
    result = made_up([5.0, 1.0, 2.0, 4.0, 3.0])
    assert (result.lower, result.median, result.upper) == (2.0, 3.0, 4.0)
    assert (result.over, result.under) == (6.0, 2.0)
    assert result.ratios == (5.0, 1.0, 2.0, 4.0, 3.0)


@pytest.mark.parametrize(
    ("limit", "direction", "holds"),
    [
        (3.0, "at most", True),
        (2.9, "at most", False),
        (3.0, "at least", True),
        (3.1, "at least", False),
        (None, "at least", None),
    ],
)
def test_a_limit_holds_for_the_median(limit, direction, holds):
    assert made_up([1.0, 3.0, 9.0], limit=limit, direction=direction).holds is holds


def test_few_rows_have_no_limit():
    case = CASES["ladder"]
    result = summarize(case, case.quick_rows, [(9.0, 1.0, 9.0)])
    assert (result.limit, result.holds) == (None, None)


@pytest.mark.parametrize(
    ("now", "kind"),
    [
        ([10.0, 10.5, 11.0], "same"),
        ([12.0, 12.5, 12.9], "same"),  # apart, but by less than the factor
        ([7.0, 14.0, 15.0], "same"),  # by more than the factor, but not apart
        ([14.0, 15.0, 16.0], "worse"),
        ([5.0, 6.0, 7.0], "better"),
    ],
)
@pytest.mark.parametrize("direction", ["at most", "at least"])
def test_worse_means_by_the_factor_and_out_of_the_noise(now, kind, direction):
    """Where more is better, the same numbers mean the opposite."""
    before = {"ladder": made_up([9.0, 10.0, 11.0], direction=direction)}
    found = judge(made_up(now, direction=direction), before, 1.3)
    opposite = {"worse": "better", "better": "worse", "same": "same"}
    assert found.kind == (kind if direction == "at most" else opposite[kind])
    assert found.before == 10.0


def test_what_cannot_be_compared_is_said():
    result = made_up([1.0])
    missing = summarize(CASES["ladder"], result.rows, problem="not installed: pip install it")
    for now, before, why in [
        (result, {}, "not in the record"),
        (result, {"ladder": missing}, "not in the record"),
        (missing, {"ladder": result}, "not installed: pip install it"),
        (result, {"ladder": replace(result, rows=77)}, "the record is of 77 rows"),
    ]:
        assert judge(now, before, 1.3).kind == "not compared"
        assert judge(now, before, 1.3).why == why


def test_both_parts_are_measured_in_turn_and_a_ratio_has_neighbours():
    """Each ratio divides by the mean of what was measured before it and after it."""
    called = []
    under = iter([99.0, 1.0, 3.0, 5.0])  # the first is the warm-up

    def over():
        called.append("over")
        return 8.0

    def below():
        called.append("under")
        return next(under)

    prepared = []

    def prepare(n_rows):
        prepared.append(n_rows)
        return Pair(over, below, value=lambda ratio: 10.0 * ratio)

    result = run_case(Case("made up", "a ÷ b", prepare, 1000, 10, 3.0, repeats=2))
    assert prepared == [10, 1000]
    assert called == ["over", "under", "under", "over", "under", "over", "under"]
    assert result.ratios == (40.0, 20.0)
    assert result.holds is False


# ---- cases -------------------------------------------------------------------------------------


def test_cases_are_sound():
    assert [case.name for case in chosen_cases(["all"])] == list(CASES)
    assert not any(case.slow for case in chosen_cases())
    for name, case in CASES.items():
        assert name == case.name
        assert case.quick_rows < case.rows
        assert case.limit is None or case.slow or case.repeats >= 5
        assert bool(case.needs) == bool(case.install)


def test_an_uncertified_fit_does_not_count(monkeypatch):
    monkeypatch.setattr(works, "_GAP", 0.0)
    X, y = works.rows(60)
    with pytest.raises(NumericalError, match="must certify a gap of at most 0"):
        works.fit(X, y, works.paper_kernels())


def test_rows_have_classes_of_one_size():
    _, y = works.rows(100, 10)
    assert np.bincount(y).tolist() == [10] * 10


def test_a_missing_peer_is_said_and_the_rest_goes_on(monkeypatch):
    monkeypatch.setitem(sys.modules, "MKLpy", None)
    shown = invoke("easymkl", "ladder", "--quick").output
    assert "not installed: pip install MKLpy torch" in shown
    ladder, easymkl = run_cases(chosen_cases(["easymkl", "ladder"]), quick=True)
    assert ladder.ratios
    assert (easymkl.ratios, easymkl.failed) == ((), False)


def test_a_case_that_fails_is_said_and_the_rest_goes_on(monkeypatch):
    def prepare(n_rows):
        raise ValueError("no luck")

    monkeypatch.setitem(CASES, "ladder", replace(CASES["ladder"], prepare=prepare))
    shown = invoke("ladder", "classes", "--quick", "--output", "record.json", code=1).output
    assert "ValueError: no luck" in shown
    found = read_record("record.json")
    assert (found["ladder"].failed, found["classes"].failed) == (True, False)


# ---- the command -------------------------------------------------------------------------------


def test_a_quick_run_shows_and_records_every_case():
    shown = invoke(*CHEAP, "--quick", "--output", "record.json").output
    assert all(f"\n{name}" in shown for name in CHEAP)
    record = json.loads(Path("record.json").read_text())
    assert record["machine"]["cores"] >= 1
    assert {pool["user_api"] for pool in record["machine"]["threads"]} >= {"blas"}
    assert len(record["machine"]["load_average"]) == 2
    results = read_record("record.json")
    assert list(results) == [name for name in CASES if name in CHEAP]
    for result in results.values():
        assert len(result.ratios) == 2
        assert min(result.ratios) > 0
        assert result.rows == CASES[result.case].quick_rows
        assert result.limit is None


@pytest.mark.conic
def test_the_semidefinite_program_reaches_the_same_optimum():
    pytest.importorskip("clarabel")
    assert run_case(CASES["sdp"], quick=True).problem == ""


def test_an_interruption_loses_only_the_case_it_falls_into(monkeypatch):
    def interrupt(n_rows):
        raise KeyboardInterrupt

    monkeypatch.setitem(CASES, "classes", replace(CASES["classes"], prepare=interrupt))
    invoke("ladder", "classes", "--quick", "--output", "record.json", code=130)
    assert list(read_record("record.json")) == ["ladder"]


def test_what_became_worse_is_found():
    """As if it had been a thousand times as fast, or as slow: no noise is as large."""
    invoke("ladder", "--quick", "--output", "record.json")
    record = json.loads(Path("record.json").read_text())
    (case,) = record["results"]["cases"]
    for name in ("median", "lower", "upper"):
        case[name] *= 1e3
    Path("slow.json").write_text(json.dumps(record))
    assert invoke("ladder", "--quick", "--against", "slow.json").output.endswith("no worse\n")
    for name in ("median", "lower", "upper"):
        case[name] /= 1e6
    Path("fast.json").write_text(json.dumps(record))
    shown = invoke("ladder", "classes", "--quick", "--against", "fast.json", code=1).output
    assert "worse than the record: ladder" in shown
    assert "classes  not compared: not in the record" in shown


def test_an_unknown_case_is_answered_with_the_known_ones():
    shown = invoke("laddr", code=1).stderr
    assert "The case must be one of 'ladder', 'papers'" in shown
    assert "Got 'laddr'" in shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"results": {}}',
        '{"results": {"cases": [{"case": "ladder"}]}}',
        '{"results": {"cases": 3}}',
    ],
)
def test_a_broken_record_is_said_before_anything_is_measured(text, monkeypatch):
    monkeypatch.setattr("bench.run_cases", lambda *a, **k: pytest.fail("measured"))
    Path("record.json").write_text(text)
    shown = invoke("ladder", "--against", "record.json", code=1).stderr
    assert "must be a file that `benchmarks/ratios.py --output` wrote. Got 'record.json'" in shown


def test_a_record_that_is_not_there_is_said():
    assert "No such file" in invoke("ladder", "--against", "nowhere.json", code=1).stderr


def test_a_record_comes_back_as_it_was():
    result = made_up([1.0, 2.0])
    Path("record.json").write_text(json.dumps({"results": {"cases": [asdict(result)]}}))
    assert read_record("record.json") == {"ladder": result}
    with pytest.raises(InvalidInputError, match="Make a new one"):
        read_record(__file__)
