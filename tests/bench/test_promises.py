"""The campaign on what estimators claim: its rules, what it keeps, and fits that raise."""

import gzip
import json

import numpy as np
import promises
import pytest

ROW = {"claimed_accuracy": 0.8, "low": 0.7, "high": 0.85, "n_claimed": 100}


@pytest.mark.parametrize(
    ("found", "n_test", "covered"),
    [
        (0.71, 10**9, True),
        (0.69, 10**9, False),
        (0.849, 10**9, True),  # the interval is shorter on this side
        (0.86, 10**9, False),
        (0.86, 100, True),  # which the noise of 100 test rows may explain
        (0.55, 100, False),
    ],
)
def test_an_interval_covers_with_the_noise_of_test_rows(found, n_test, covered):
    assert promises.is_covered(ROW | {"found_accuracy": found, "n_test": n_test}) is covered


def test_the_width_is_wilsons():
    # As in test_expectation: 8 of 10 are 0.4902 to 0.9433.
    assert promises.wilson_width(0.8, 10) == pytest.approx(0.9433 - 0.4902, abs=1e-4)


def test_tables_are_read_without_pandas(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCERNEL_DATA", str(tmp_path))
    (tmp_path / "tables").mkdir()
    for name, text in {"plain": "a,b,y\n1,2,u\n,4,v\n", "mixed": "a,b,y\n1,red,u\n2,,v\n"}.items():
        with gzip.open(tmp_path / "tables" / f"{name}.csv.gz", "wt", encoding="utf-8") as file:
            file.write(text)
    plain, y = promises.read_table("plain")
    np.testing.assert_array_equal(plain, [[1.0, 2.0], [np.nan, 4.0]])
    np.testing.assert_array_equal(y, [0, 1])
    assert promises.read_table("mixed")[0].tolist() == [[1.0, "red"], [2.0, None]]
    assert promises.table_names(["mixed", "iris"]) == ["iris", "mixed"]


def test_a_fit_that_raises_is_a_row_with_its_error():
    options = {"n": 30, "d": 3, "n_classes": 3, "kernels": "source", "criterion": "fdr"}
    rows = promises.measure(promises.Cell("noise", "fdr", options), [0, 1])
    assert [row["seed"] for row in rows] == [0, 1]
    assert all(row["error"].startswith("InvalidInputError: Only binary") for row in rows)


def test_rows_are_kept_for_the_same_code_only(tmp_path):
    path, row = tmp_path / "kept.jsonl", {"part": "few", "cell": "iris", "seed": 3, "x": 1.0}
    lines = [json.dumps(row | {"digest": digest}) for digest in ("this", "other")]
    path.write_text(f"{lines[0]}\n{lines[1]}\n{lines[0][:20]}", encoding="utf-8")
    assert promises.read_kept(path, "this") == {("few", "iris", 3): row}
    assert promises.read_kept(path, "new") == {}
    assert promises.read_kept(tmp_path / "none.jsonl", "this") == {}


def test_claims_are_compared_with_what_is_found():
    cell = promises.Cell("noise", "one", {"n": 10})
    rows = [
        ROW | {"claimed_log_loss": 0.6, "found_accuracy": 0.7, "found_log_loss": 0.7},
        ROW | {"claimed_log_loss": 0.6, "found_accuracy": 0.5, "found_log_loss": 0.5},
        {"found_accuracy": 0.1, "found_log_loss": 9.0},
        {"error": "ValueError: no"},
    ]
    summary = promises.summarize(cell, rows)
    assert (summary["fits"], summary["no_claim"]) == (3, 1)
    assert summary["errors"] == {"ValueError: no": 1}
    assert summary["accuracy"]["difference"] == pytest.approx(0.2)
    assert summary["accuracy"]["difference_error"] == pytest.approx(0.1)
    assert summary["log_loss"]["difference"] == pytest.approx(0.0)
    assert summary["log_loss"]["absolute_difference"] == pytest.approx(0.1)
    accuracy, loss = promises.difference_targets("noise", summary, 0.02, 0.05)
    assert (accuracy.is_met, loss.is_met) == (False, True)


def test_no_claim_is_neither_met_nor_missed():
    _, targets = promises.judge_noise(
        [(promises.Cell("noise", "one", {}), [{"found_accuracy": 0.5, "found_log_loss": 0.7}])]
    )
    assert [target.is_met for target in targets] == [None, None]
