"""Killed at any moment, the runner goes on: nothing finished is lost, nothing is run twice."""

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from discernel.compare.runner import run
from discernel.compare.store import Store
from tests.compare.small_plan import rows, small_plan

SCRIPT = Path(__file__).parent / "small_plan.py"
#: Splits of the small plan, four cells each.
N = 25
#: Seconds that a killed run keeps its claims for.
LEASE = 1.0
pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no process groups to kill")


def start(*arguments):
    """Start a run in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )


def counts(output):
    """Return the numbers of a printed summary."""
    return {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", output)}


def wait_for_cells(path, process, n):
    while process.poll() is None and len(rows(path)) < n:
        time.sleep(0.01)


def outcomes(path):
    """Return what must be the same in every run: not times, not memory."""
    with Store(path) as store:
        records = store.records(small_plan(N).cells(), predictions=True)
    return [
        (
            record.cell.key,
            record.result.metrics,
            record.result.weights,
            record.result.regularization,
            {name: values.tolist() for name, values in record.result.predictions.items()},
        )
        for record in records
    ]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    path = tmp_path_factory.mktemp("uninterrupted") / "results.sqlite"
    with Store(path) as store:
        summary = run(small_plan(N), store)
    assert (summary.ran, summary.failed) == (4 * N, 0)
    return outcomes(path)


def kill_by_hand(path):
    """Kill two runs with workers; yield what is stored after each."""
    moments, n_before = random.Random(0), 0
    # First the parent alone: its workers wait for work for minutes then. Then the whole group.
    for kill in (os.kill, os.killpg):
        process = start(path, 2, N, LEASE)
        try:
            wait_for_cells(path, process, n_before + 1)
            time.sleep(moments.uniform(0.0, 0.03))
            kill(process.pid, signal.SIGKILL)
            process.wait()
            yield (after := rows(path))
            n_before = len(after)
            if kill is os.kill:
                time.sleep(0.2)  # time enough for what they were at
                yield rows(path)
        finally:
            with suppress(ProcessLookupError):  # nobody is left of the group
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def test_killed_again_and_again(tmp_path, uninterrupted):
    path = tmp_path / "results.sqlite"
    stored = [{}, *kill_by_hand(path)]
    # Once all is imported a run can be killed often: at the start, within a cell, while writing.
    output, error = start(path, 1, N, LEASE, 0, 15).communicate()
    stored += [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert len(stored) == 1 + 3 + 15, error
    for before, after in pairwise(stored):
        assert before.items() <= after.items()
    survived = [len(found) for found in stored]
    assert 0 < survived[1] == survived[2] < survived[3] < survived[-1] <= 4 * N

    with Store(path) as store:
        summary = run(small_plan(N), store)
    assert (summary.found, summary.ran) == (survived[-1], 4 * N - survived[-1])
    assert (summary.elsewhere, summary.failed) == (0, 0)
    assert stored[-1].items() <= rows(path).items()
    assert rows(path).keys() == {cell.key for cell in small_plan(N).cells()}
    assert rows(path, "running") == {}
    assert outcomes(path) == uninterrupted


def test_stopped_by_the_user_with_workers(tmp_path):
    path = tmp_path / "results.sqlite"
    process = start(path, 2, 400, 60)
    wait_for_cells(path, process, 3)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, error = process.communicate()
    assert process.returncode != 0
    found = re.search(r"KeyboardInterrupt: Stopped with (\d+) of 1600 cells finished", error)
    assert int(found[1]) == len(rows(path)) >= 3
    assert rows(path, "running") == {}


def test_processes_share_the_work_and_end_with_all_of_it(tmp_path, uninterrupted):
    path = tmp_path / "results.sqlite"
    processes = [start(path, 1, N, 60) for _ in range(3)]
    summaries = [counts(process.communicate()[0]) for process in processes]
    # A cell that was run twice would be counted twice.
    assert sum(summary["ran"] for summary in summaries) == 4 * N
    for summary in summaries:
        assert summary["failed"] == 0
        assert summary["ran"] + summary["found"] + summary["elsewhere"] == 4 * N
        assert summary["there"] == 4 * N  # when it ended
    assert rows(path, "running") == {}
    assert outcomes(path) == uninterrupted
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
