"""The runner: what is missing is run, failures are results, the process is left as it was."""

import os
import re
import signal
import socket
import sqlite3
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from threadpoolctl import threadpool_info, threadpool_limits

from discernel.compare.machine import machine
from discernel.compare.methods import KINDS
from discernel.compare.metrics import METRICS
from discernel.compare.plan import Data, Method, Plan, Splits
from discernel.compare.runner import Summary, _result, run, run_cell
from discernel.compare.store import Result, Store
from discernel.compare.tasks import TrainTestSplit
from discernel.datasets import DataUnavailableError
from discernel.exceptions import DiscernelError, InvalidInputError, MissingExtraError
from tests.compare.small_plan import rows, small_plan

LDA = Method("LDA", "lda")
WINE = Data("wine")


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        yield store


def plan_of(*methods, datasets=(WINE,), n=2, **splits):
    return Plan("plan", datasets, methods, Splits(n=n, **splits))


@pytest.fixture
def method(monkeypatch):
    """A function that makes a method of a function."""

    def make(function):
        def run_it(split, options):
            function(split)
            return Result(predictions={"y_pred": split.y_test})

        monkeypatch.setitem(KINDS, function.__name__, run_it)
        return Method(function.__name__, function.__name__)

    return make


# ---- what is run -----------------------------------------------------------------------------


def test_only_what_is_missing_is_run(store):
    assert run(small_plan(2), store) == Summary(ran=8, found=0, elsewhere=0, failed=0)
    before = rows(store.path)
    assert run(small_plan(2), store) == Summary(ran=0, found=8, elsewhere=0, failed=0)
    assert run(small_plan(3), store) == Summary(ran=4, found=8, elsewhere=0, failed=0)
    assert before.items() <= rows(store.path).items()


def test_a_record_says_all(store):
    run(small_plan(1), store)
    lda, average = store.records(small_plan(1).cells()[:2], predictions=True)
    assert lda.result.weights == {}
    assert sum(average.result.weights.values()) == pytest.approx(1)
    assert average.result.regularization == 0.01
    assert average.machine == machine()
    for record in (lda, average):
        found = record.result.predictions
        assert found["y_true"].shape == found["y_pred"].shape == (36,)
        assert found["scores"].shape == (36, 3)
        assert record.result.metrics["accuracy"] == np.mean(found["y_true"] == found["y_pred"])
        assert set(record.result.metrics) == set(METRICS)
        assert record.result.seconds_fit > 0
        assert record.result.error is None
    assert machine()["threads"] == 1
    assert machine()["cores"] == os.cpu_count()


def test_area_under_the_curve_for_two_classes():
    _, result = run_cell(plan_of(LDA, datasets=(Data("wdbc"),)).cells()[0])
    assert 0.95 < result.metrics["roc_auc"] <= 1
    assert result.predictions["scores"].ndim == 1


def test_methods_that_differ_by_name_are_run_once(store):
    plan = plan_of(LDA, Method("the same", "lda"))
    assert run(plan, store) == Summary(ran=2, found=0, elsewhere=0, failed=0)
    assert [record.cell for record in store.records(plan.cells())] == plan.cells()


@pytest.fixture
def when_it_waits(capfd):
    """A function that calls another, in a thread, as soon as a run says that it waits."""

    def begin(action):
        def watch():
            shown = ""
            while "waiting" not in shown:
                time.sleep(0.02)
                shown += capfd.readouterr().err
            said.append(shown)
            action()

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        return thread

    said = []
    begin.said = said
    return begin


def test_a_run_waits_for_what_others_have(store, when_it_waits):
    plan = plan_of(LDA, n=5)
    theirs = plan.cells()[:2]
    with Store(store.path) as other:
        assert all(map(other.claim, theirs))
        thread = when_it_waits(lambda: [other.add(cell, Result(), {}) for cell in theirs])
        assert run(plan, store, progress=True) == Summary(ran=3, found=0, elsewhere=2, failed=0)
        thread.join()
    assert len(store.records(plan.cells())) == 5


def test_what_a_killed_run_left_is_taken_over_wherever_it_ran(store, when_it_waits):
    plan = plan_of(LDA, n=3)
    who = f"process {os.getpid()} on {socket.gethostname()}"

    def lapse():
        with sqlite3.connect(store.path) as connection:
            connection.execute("UPDATE running SET expires = 0 WHERE key = ?", (theirs.key,))
        connection.close()

    with Store(store.path) as other:
        theirs = plan.cells()[1]
        other.claim(theirs)
        thread = when_it_waits(lapse)
        assert run(plan, store, progress=True) == Summary(ran=3, found=0, elsewhere=0, failed=0)
        thread.join()
    assert (
        f"waiting for 1 cell of {who}; cells of a killed process are taken over"
        in when_it_waits.said[0]
    )


def test_claims_are_renewed_while_cells_run(store, method):
    ends = set()

    def slow(split):
        deadline = time.monotonic() + 60
        while len(ends) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
            ends.update(row[-1] for row in rows(store.path, "running").values())

    with Store(store.path, lease=0.2) as mine:
        assert run(plan_of(method(slow), n=1), mine).ran == 1
    assert len(ends) == 3


def test_what_others_give_up_is_taken(store):
    cells = plan_of(LDA, n=3).cells()
    with Store(store.path) as other:
        other.claim(cells[0])
        assert list(filter(store.claim, cells)) == cells[1:]
        other.give_back()
        assert list(filter(store.claim, cells)) == cells[:1]


# ---- what fails ------------------------------------------------------------------------------


def test_a_failure_is_a_record_and_the_rest_goes_on(store):
    # Two classes have one direction, three have two.
    plan = plan_of(
        Method("two directions", "lda", {"n_components": 2}), LDA, datasets=(WINE, Data("wdbc"))
    )
    assert run(plan, store) == Summary(ran=8, found=0, elsewhere=0, failed=2)
    failed = [record for record in store.records(plan.cells()) if record.result.error]
    assert {record.cell.data.name for record in failed} == {"wdbc"}
    assert "n_components cannot be larger than" in failed[0].result.error
    assert failed[0].result.metrics == {}
    assert run(plan, store) == Summary(ran=0, found=8, elsewhere=0, failed=2)
    before = rows(store.path)
    assert run(plan, store, retry_failures=True) == Summary(ran=2, found=6, elsewhere=0, failed=2)
    kept = {key: row for key, row in before.items() if key not in store.failed()}
    assert len(kept) == 6
    assert kept.items() <= rows(store.path).items()


def test_a_failure_that_is_mended(store, method):
    broken = True

    def sometimes(split):
        if broken and split.seed == 1:
            raise RuntimeError("not this one")

    plan = plan_of(method(sometimes), n=3)
    assert run(plan, store).failed == 1
    (failed,) = [record for record in store.records(plan.cells()) if record.result.error]
    assert failed.cell.repetition == 1
    assert failed.result.error.endswith("RuntimeError: not this one\n")
    broken = False
    assert run(plan, store, retry_failures=True) == Summary(ran=1, found=2, elsewhere=0, failed=0)


def test_details_that_cannot_be_stored_are_a_failure(store, monkeypatch):
    monkeypatch.setitem(
        KINDS,
        "odd",
        lambda split, _: Result(predictions={"y_pred": split.y_test}, details={"object": object()}),
    )
    assert run(plan_of(Method("odd", "odd"), LDA), store).failed == 2
    assert (
        "must be plain data" in store.records(plan_of(Method("odd", "odd")).cells())[0].result.error
    )


@pytest.mark.parametrize(
    ("plan", "error", "message"),
    [
        (plan_of(LDA, Method("x", "ldaa")), InvalidInputError, "The kind of method must be one of"),
        (plan_of(LDA, datasets=(WINE, Data("wien"))), InvalidInputError, "Did you mean 'wine'"),
        (plan_of(LDA, datasets=(WINE, Data("feret"))), DataUnavailableError, "private"),
        (plan_of(LDA, donor=True), InvalidInputError, "this one has none"),
        (
            plan_of(LDA, train_size=178),
            InvalidInputError,
            "'wine' cannot be split as the plan says",
        ),
        (
            plan_of(LDA, datasets=(Data("wine", options={"classes": [9]}),)),
            InvalidInputError,
            "'rows'",
        ),
    ],
    ids=["kind", "data set", "private", "donor", "rows", "option"],
)
def test_plans_that_cannot_work_fail_before_anything_is_run(store, plan, error, message):
    with pytest.raises(error, match=message):
        run(plan, store, progress=True)
    assert rows(store.path) == rows(store.path, "running") == {}


def test_data_of_finished_cells_need_not_be_there(store):
    plan = plan_of(LDA, datasets=(Data("feret"),))
    for cell in plan.cells():
        store.add(cell, Result(), {})
    assert run(plan, store) == Summary(ran=0, found=2, elsewhere=0, failed=0)


def test_stopped_by_the_user(store, method):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs are born without

    def interrupted(split):
        if split.seed == 3:
            signal.raise_signal(signal.SIGINT)

    plan = plan_of(method(interrupted), n=8)
    with pytest.raises(KeyboardInterrupt, match="Stopped with 3 of 8 cells finished"):
        run(plan, store)
    assert len(rows(store.path)) == 3
    assert rows(store.path, "running") == {}


# ---- in other processes and threads ----------------------------------------------------------


def outcomes(store, plan):
    return [
        (
            record.result.metrics,
            record.result.weights,
            {name: values.tolist() for name, values in record.result.predictions.items()},
        )
        for record in store.records(plan.cells(), predictions=True)
    ]


def test_side_by_side_is_the_same(store, tmp_path):
    plan = small_plan(4)
    run(plan, store)
    expected = outcomes(store, plan)
    with Store(tmp_path / "processes.sqlite") as other:
        assert run(plan, other, n_jobs=2).ran == 16
        assert outcomes(other, plan) == expected
    with Store(tmp_path / "threads.sqlite") as other, parallel_config("threading", n_jobs=3):
        assert run(plan, other).ran == 16
        assert outcomes(other, plan) == expected
        peaks = [record.result.peak_memory for record in other.records(plan.cells())]
        assert None in peaks  # where cells ran at the same time in one process, nobody knows


def test_threads_leave_the_process_as_it_was(store, method):
    """The limit and the filters are the process's: those who leave first may not lift them."""
    seen = []

    def slow(split):
        for _ in range(4):
            time.sleep(0.005 * (1 + split.seed % 3))
            seen.append({pool["num_threads"] for pool in threadpool_info()})
            warnings.warn("not shown", UserWarning, stacklevel=1)

    with threadpool_limits(2), warnings.catch_warnings():
        warnings.simplefilter("error")
        filters = list(warnings.filters)
        before = [pool["num_threads"] for pool in threadpool_info()]
        with parallel_config("threading", n_jobs=4):
            assert run(plan_of(method(slow), n=9), store).failed == 0
        assert [pool["num_threads"] for pool in threadpool_info()] == before
        assert warnings.filters == filters
    assert len(seen) == 36
    assert all(found == {1} for found in seen)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_worker_that_dies(store):
    def workers():
        for children in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
            for pid in map(int, children.read_text().split()):
                if b"LokyProcess" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    yield pid

    def kill_a_worker():
        while not rows(store.path):  # the run has begun then, and is far from its end
            time.sleep(0.01)
        os.kill(next(workers()), signal.SIGKILL)

    killer = threading.Thread(target=kill_a_worker)
    killer.start()
    with pytest.raises(DiscernelError, match="A worker process died"):
        run(plan_of(LDA, n=2000), store, n_jobs=2)
    killer.join()
    assert rows(store.path, "running") == {}
    found = len(rows(store.path))
    assert run(plan_of(LDA, n=found + 4), store) == Summary(4, found, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can forget a peak")
def test_peak_memory_is_that_of_the_cell(store, method):
    size = 200 * 2**20

    def big(split):
        np.ones(size // 8).sum()

    def small(split):
        pass

    plan = plan_of(method(small), method(big), n=2)
    run(plan, store)
    peaks = [record.result.peak_memory for record in store.records(plan.cells())]
    assert [record.cell.method.name for record in store.records(plan.cells())] == [
        "small",
        "big",
    ] * 2
    assert peaks[1] - peaks[0] > 0.9 * size
    assert peaks[1] - peaks[2] > 0.9 * size
    assert peaks[3] - peaks[2] > 0.9 * size


# ---- labels ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes", "no", "yes"], dtype=object),
        np.array(["no", "yes", "no", "yes"]),
        np.array([False, True, False, True]),
        np.array([-1, 1, -1, 1]),
    ],
    ids=lambda labels: labels.dtype.str,
)
def test_labels_of_all_kinds(store, labels):
    split = TrainTestSplit(np.zeros((4, 1)), np.zeros((4, 1)), labels, labels)
    scores = np.array([-1.0, 2.0, -3.0, -0.5])
    found = Result(predictions={"y_pred": labels[[0, 1, 2, 0]], "scores": scores})
    result = _result(found, split, None)
    assert result.metrics == {"accuracy": 0.75, "balanced_accuracy": 0.75, "roc_auc": 1.0}
    (cell,) = plan_of(LDA, n=1).cells()
    store.add(cell, result, {})
    stored = store.records([cell], predictions=True)[0].result.predictions
    np.testing.assert_array_equal(stored["y_true"], labels)
    assert np.mean(stored["y_true"] == stored["y_pred"]) == 0.75


# ---- what is shown ---------------------------------------------------------------------------


def test_nothing_is_printed(store, capfd):
    run(small_plan(1), store)
    assert capfd.readouterr() == ("", "")


def test_progress_shows_counts_and_an_estimate(store, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    run(plan_of(LDA, n=2), store)
    run(plan_of(LDA, Method("the [second]", "lda", {"shrinkage": 0.5}), n=2), store, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "plan" in err
    assert "4/4" in err  # two of them found
    assert "wine: the [second]" in err
    assert len(re.findall(r"\d:\d\d:\d\d", err)) >= 2  # the time gone, and what is left


def test_progress_without_rich(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(MissingExtraError, match="progress=False"):
        run(plan_of(LDA), store, progress=True)
    assert rows(store.path, "running") == {}
