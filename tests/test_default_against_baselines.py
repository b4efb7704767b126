"""What the benchmark of the default says about its results: losses, ranks, what is kept."""

import json

import numpy as np
import pytest
from sklearn.metrics import log_loss

pytest.importorskip("pandas")

import default_against_baselines as benchmark
import tasks
from baselines import Prediction


def result(accuracy, loss=0.5):
    return benchmark.Result(accuracy, loss, accuracy, seconds=1.0, train=80, test=20)


def kept(tmp_path, results):
    """Return the table of results by task, method and division."""
    runs = [benchmark.Run(*key) for key in results]
    for run, found in zip(runs, results.values(), strict=True):
        benchmark.keep(run, found, tmp_path)
    return benchmark.Table(runs, tmp_path)


def test_log_loss_is_that_of_scikit_learn_with_clipped_probabilities():
    rng = np.random.default_rng(0)
    P, y = rng.dirichlet([0.05] * 4, 200), rng.integers(0, 4, 200)
    clipped = np.maximum(P, benchmark.LEAST_PROBABILITY)
    expected = log_loss(y, clipped / clipped.sum(axis=1, keepdims=True))
    before = P.copy()
    assert benchmark.log_loss(Prediction(y, P), y) == pytest.approx(expected)
    assert (before == P).all()


def test_runs_stopped_early_have_as_many_divisions_of_all_tasks():
    runs = benchmark.plan(["easymkl", "forest"], ["wine", "sonar", "segment 80%"], 2)
    assert [(run.method, run.seed, run.task) for run in runs[:4]] == [
        ("forest", 0, "wine"),
        ("forest", 0, "sonar"),
        ("forest", 0, "segment 80%"),
        ("forest", 1, "wine"),
    ]
    # The task beside the others is not for all methods.
    assert {run.task for run in runs if run.method == "easymkl"} == {"wine", "sonar"}


def test_only_what_is_missing_runs(tmp_path, monkeypatch):
    done, missing = benchmark.Run("wine", "forest", 0), benchmark.Run("wine", "forest", 1)
    benchmark.keep(done, result(90.0), tmp_path)
    measured = []
    monkeypatch.setattr(benchmark, "measure", lambda run: measured.append(run) or result(80.0))
    benchmark.run_missing([done, missing], tmp_path, n_jobs=1)
    assert measured == [missing]
    assert benchmark.read(done, tmp_path) == result(90.0)
    assert benchmark.read(missing, tmp_path) == result(80.0)


def test_a_loss_is_clear_beyond_two_errors_and_in_the_direction_of_the_metric(tmp_path):
    table = kept(
        tmp_path,
        {
            ("wine", method, seed): result(accuracy + jitter, loss + jitter / 100)
            for method, accuracy, loss in [("auto", 80.0, 0.5), ("forest", 90.0, 0.9)]
            for seed, jitter in enumerate([0.0, 1.0] if method == "auto" else [0.5, 0.5])
        },
    )
    accuracy = table.difference("wine", "forest", "accuracy")
    assert accuracy["difference"] == pytest.approx(-10.0)
    assert accuracy["corrected_error"] == pytest.approx(np.sqrt(0.5 * (1 / 2 + 20 / 80)))
    assert benchmark.is_worse(accuracy, larger_is_better=True)
    assert not benchmark.is_worse(table.difference("wine", "forest", "log_loss"), False)
    assert not benchmark.is_worse({"difference": -1.9, "corrected_error": 1.0}, True)


def test_ranks_compare_the_divisions_that_all_methods_have(tmp_path):
    table = kept(
        tmp_path,
        {
            ("wine", "auto", 0): result(80.0),
            ("wine", "auto", 1): result(100.0),
            ("wine", "forest", 0): result(85.0),
            # No ranks on a task that one has not run on.
            ("sonar", "auto", 0): result(90.0),
        },
    )
    found = table.mean_ranks(["wine", "sonar"], ["auto", "forest"], "accuracy", True)
    assert found == {"auto": 2.0, "forest": 1.0}


def test_a_table_is_prepared_on_its_training_rows():
    import pandas as pd

    table = pd.DataFrame({"x": [0.0, 2.0, None, 50.0], "c": ["a", None, "a", "new"]})
    X_train, X_test = tasks.prepare_table(table, np.arange(3), np.array([3]))
    # The median 1 for the missing cell; categories "a" and missing; "new" was not seen.
    deviation = np.std([0.0, 2.0, 1.0])
    expected = [[-1 / deviation, 1, 0], [1 / deviation, 0, 1], [0, 1, 0]]
    np.testing.assert_allclose(X_train, expected)
    np.testing.assert_allclose(X_test, [[49 / deviation, 0, 0]])


def test_a_peer_is_clearly_better_only_after_the_correction_of_holm(tmp_path):
    import default_against_peers as peers

    results = {
        ("wine", method, seed): result(accuracy, loss + 0.001 * seed * (method == "auto"))
        for method, accuracy, loss in [("auto", 90.0, 0.5), ("tabm", 90.0, 0.3), ("forest", 91, 1)]
        for seed in range(5)
    }
    table = kept(tmp_path, results)
    assert peers.p_worse(table, "wine", "tabm", "log_loss") < 1e-6
    assert peers.p_worse(table, "wine", "forest", "log_loss") == 1.0
    entries = [{"task": t, "p_log_loss": {"tabm": p}} for t, p in [("a", 0.02), ("b", 0.04)]]
    assert peers.clearly_worse(entries, "log_loss") == {"a": ["tabm"], "b": ["tabm"]}
    entries.append({"task": "c", "p_log_loss": {"tabm": 0.9}})
    assert peers.clearly_worse(entries, "log_loss") == {}


def test_the_default_is_ranked_again_among_the_means_of_the_record(tmp_path, monkeypatch):
    import default_against_peers as peers

    monkeypatch.setattr(peers, "SPLITS", {"auto": 3, "tabm": 2})
    results = {("wine", "auto", seed): result(90.0 + seed, 0.1) for seed in range(3)}
    entry = {
        "task": "wine",
        "accuracy": {"auto": 0, "tabm": 91},
        "log_loss": {"auto": 9, "tabm": 1},
    }
    record = {"tasks": [entry], "auto_all_splits": {"wine": {}}}
    peers.renew(record, kept(tmp_path, results))
    assert entry["accuracy"] == {"auto": 90.5, "tabm": 91}  # of the two splits that all have
    assert record["mean_rank"] == {"auto": 2.0, "tabm": 1.0}
    assert record["mean_rank_log_loss"] == {"auto": 1.0, "tabm": 2.0}
    assert record["auto_all_splits"]["wine"]["accuracy"] == 91.0


def test_results_of_the_record_are_restored_but_for_those_that_run_again(tmp_path):
    record = json.loads((benchmark.RECORDS / "default_against_baselines.json").read_text())
    found = record["results"]
    found["tasks"] = [one for one in found["tasks"] if one["task"] == "sonar"]
    found["balanced"]["tasks"] = found["balanced"]["tasks"][:1]
    known = benchmark.Run("sonar", "forest", 0)
    benchmark.keep(known, result(12.0), tmp_path)
    benchmark.restore(record, tmp_path, but=["auto"])
    assert benchmark.read(known, tmp_path) == result(12.0)
    assert benchmark.read(benchmark.Run("sonar", "auto", 0), tmp_path) is None
    restored = benchmark.read(benchmark.Run("sonar", "svc grid", 7), tmp_path)
    (entry,) = found["tasks"]
    assert restored.log_loss == entry["partitions"]["log_loss"]["svc grid"][7]
    assert (restored.train, restored.test) == (entry["train"], entry["test"])
    balanced = benchmark.read(benchmark.Run("sonar", "forest balanced", 3), tmp_path)
    assert balanced.balanced_accuracy > 50.0
