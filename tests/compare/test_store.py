"""The store: what is written is read, claims hold while they are renewed, no file is harmed."""

import os
import socket
import sqlite3
import threading
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest

from discernel.compare.plan import Data, Method, Plan, Splits
from discernel.compare.store import Result, Store
from discernel.exceptions import DiscernelError, InvalidInputError

MACHINE = {"cores": 2, "python": "3.11"}
CELLS = Plan("p", (Data("wine"),), (Method("LDA", "lda"),), Splits(n=5)).cells()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.sqlite"


@pytest.fixture
def filled(path):
    """A store of five cells, closed."""
    rng = np.random.default_rng(0)
    with Store(path) as store:
        for cell in CELLS:
            predictions = {"scores": rng.standard_normal(2000)}
            store.add(cell, Result({"accuracy": 0.5}, predictions=predictions), MACHINE)
    return path


def query(path, text):
    connection = sqlite3.connect(path)
    found = connection.execute(text).fetchall()
    connection.close()
    return found


# ---- writing and reading ---------------------------------------------------------------------


def test_what_is_written_is_read(path):
    result = Result(
        metrics={"accuracy": 0.9, "auc": 0.1 + 0.2},
        seconds_fit=1.5,
        seconds_predict=0.25,
        peak_memory=2**40,
        weights={"RBF(σ=1)": 1 / 3},
        regularization=1e-300,
        gap=None,
        details={"history": [[0, 1.0, None]], "status": "optimal"},
    )
    with Store(path) as store:
        store.add(CELLS[0], result, MACHINE)
        (record,) = store.records(CELLS)
    assert record.cell == CELLS[0]
    assert record.result == result
    assert record.machine == MACHINE
    with Store(path) as store:
        assert store.records(CELLS)[0] == record
    assert abs(datetime.now(UTC) - datetime.fromisoformat(record.finished)) < timedelta(minutes=5)


def test_numbers_that_are_not_finite(path):
    metrics = {"auc": float("nan"), "bound": float("inf"), "least": -float("inf")}
    with Store(path) as store:
        store.add(CELLS[0], Result(metrics, gap=float("nan")), MACHINE)
        (record,) = store.records(CELLS)
    np.testing.assert_equal(record.result.metrics, metrics)
    assert np.isnan(record.result.gap)


def test_numbers_of_numpy(path):
    details = {"n": np.int64(3), "path": np.arange(2.0), "ok": np.bool_(True), "f": np.float32(0.5)}
    with Store(path) as store:
        store.add(CELLS[0], Result({"accuracy": np.float32(0.5)}, details=details), MACHINE)
        (record,) = store.records(CELLS)
    assert record.result.metrics == {"accuracy": 0.5}
    assert record.result.details == {"n": 3, "path": [0.0, 1.0], "ok": True, "f": 0.5}


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, -1, 3]),
        np.array([True, False, True]),
        np.array(["a", "ß", "long one"]),
        np.array([0.5, 1.5, np.nan]),
        np.zeros((0,), dtype=int),
    ],
    ids=lambda labels: labels.dtype.str,
)
def test_predictions_come_back_in_their_type(path, labels):
    predictions = {"y_pred": labels, "scores": np.ones((3, 2), dtype=np.float32)}
    with Store(path) as store:
        store.add(CELLS[0], Result(predictions=predictions), MACHINE)
        assert store.records(CELLS)[0].result.predictions == {}
        (record,) = store.records(CELLS, predictions=True)
    for name, values in predictions.items():
        np.testing.assert_array_equal(record.result.predictions[name], values)
        assert record.result.predictions[name].dtype == values.dtype


def test_the_first_record_stays(path):
    with Store(path) as store:
        store.add(CELLS[0], Result({"accuracy": 0.25}), MACHINE)
        store.add(CELLS[0], Result({"accuracy": 0.75}), MACHINE)
        (record,) = store.records(CELLS)
    assert record.result.metrics == {"accuracy": 0.25}


def test_records_are_in_the_order_asked_for(filled):
    wanted = [CELLS[3], CELLS[0], CELLS[3]]
    with Store(filled) as store:
        assert [record.cell for record in store.records(wanted)] == wanted


def test_machines_are_stored_once(filled):
    assert query(filled, "SELECT count(*) FROM machines") == [(1,)]


def test_ten_thousand_cells_are_read(path):
    cells = Plan("p", (Data("wine"),), (Method("LDA", "lda"),), Splits(n=10_000)).cells()
    with Store(path) as store:
        store.add(cells[0], Result({"accuracy": 1.0}), MACHINE)
        store.add(cells[-1], Result(error="no"), MACHINE)
        assert [record.cell for record in store.records(cells)] == [cells[0], cells[-1]]
        assert store.finished() == {cells[0].key, cells[-1].key}
        assert store.failed() == {cells[-1].key}


def test_cells_without_a_plan(filled):
    with Store(filled) as store:
        assert [cell.key for cell in store.cells(lambda kind, options: kind)] == [
            cell.key for cell in CELLS
        ]
        assert store.cells(lambda kind, options: f"my {kind}")[0].method.name == "my lda"


def test_failures_are_forgotten_alone(path):
    with Store(path) as store:
        store.add(CELLS[0], Result(), MACHINE)
        store.add(CELLS[1], Result(error="no"), MACHINE)
        store.add(CELLS[2], Result(error="no"), MACHINE)
        store.forget_failures(CELLS[:2])
        assert store.finished() == {CELLS[0].key, CELLS[2].key}


# ---- claims ----------------------------------------------------------------------------------


def test_a_cell_is_claimed_once(path):
    with Store(path) as store, Store(path) as other:
        assert store.claim(CELLS[0])
        assert not other.claim(CELLS[0])
        assert not store.claim(CELLS[0])
        store.give_back()
        assert other.claim(CELLS[0])
        other.add(CELLS[0], Result(), MACHINE)
        assert not store.claim(CELLS[0])
    assert query(path, "SELECT * FROM running") == []


def test_closing_gives_back_no_claims_but_its_own(path):
    with Store(path) as store:
        store.claim(CELLS[0])
        with Store(path) as other:
            other.claim(CELLS[1])
        assert query(path, "SELECT key FROM running") == [(CELLS[0].key,)]


def claimed_until(path, seconds):
    """Return whether a cell can be claimed that another process has claimed for so long."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(
            "INSERT OR REPLACE INTO running VALUES (?, 'somebody', 'process 1 on elsewhere', ?)",
            (CELLS[0].key, time.time() + seconds),
        )
    connection.close()
    with Store(path) as store:
        assert (CELLS[0].key in store.held()) == (0 < seconds < 3600)
        return store.claim(CELLS[0])


def test_claims_that_nobody_renews_lapse_whoever_made_them(path):
    Store(path).close()
    assert not claimed_until(path, 30)
    assert claimed_until(path, -1)
    assert claimed_until(path, 24 * 3600)  # longer than any claim: the clock was set back


def test_a_claim_is_renewed_by_who_made_it_alone(path, monkeypatch):
    now = [1e9]
    monkeypatch.setattr("discernel.compare.store.time", SimpleNamespace(time=lambda: now[0]))
    with Store(path, lease=5.0) as store, Store(path) as other:
        assert store.claim(CELLS[0])
        assert store.held() == {CELLS[0].key: f"process {os.getpid()} on {socket.gethostname()}"}
        now[0] += 6.0
        assert store.held() == {}
        store.renew()
        assert list(store.held()) == [CELLS[0].key]
        now[0] += 6.0
        assert other.claim(CELLS[0])
        store.renew()
        store.give_back()
        assert list(other.held()) == [CELLS[0].key]
        now[0] += 61.0
        assert other.held() == {}


def test_threads_may_share_a_store(path):
    cells = Plan("p", (Data("wine"),), (Method("LDA", "lda"),), Splits(n=60)).cells()
    claimed = []

    def work(store):
        for cell in cells:
            if store.claim(cell):
                claimed.append(cell.key)
                store.add(cell, Result(), MACHINE)

    with Store(path) as one, Store(path) as two:
        threads = [threading.Thread(target=work, args=(store,)) for store in (one, one, two, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(claimed) == sorted(cell.key for cell in cells)
        assert one.finished() == set(claimed)


# ---- files that are no stores ----------------------------------------------------------------


def refuse(path, message):
    """Check that a file is refused, left as it is, and that nothing is left beside it."""
    before = path.read_bytes()
    with pytest.raises(InvalidInputError, match=message):
        Store(path)
    assert path.read_bytes() == before
    assert [other.name for other in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("version", [1, 2, 4])
def test_a_store_of_another_version(filled, version):
    connection = sqlite3.connect(filled)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    message = rf"another version of discernel \(format {version}; this one reads 3\)"
    refuse(filled, message)


def test_a_store_that_is_cut_off(filled):
    whole = filled.read_bytes()
    page = 4096
    n_pages = len(whole) // page
    assert n_pages > 15
    lengths = [1, 15, 16, 99, 100, 511, 512, 1024, page - 1, page, page + 1, 2 * page]
    lengths += [i * page + rest for i in range(3, n_pages) for rest in (0, 1000)]
    for length in [*lengths, len(whole) - 1]:
        filled.write_bytes(whole[:length])
        refuse(filled, "must be a store of results")
    filled.write_bytes(whole)
    with Store(filled) as store:
        assert len(store.finished()) == 5


def test_a_store_with_damaged_pages(filled):
    whole = bytearray(filled.read_bytes())
    whole[4096:12288] = bytes(8192)
    filled.write_bytes(whole)
    refuse(filled, "If the file is damaged, move it away")


def test_an_empty_file_becomes_a_store(path):
    path.touch()
    with Store(path) as store:
        assert store.finished() == set()


@pytest.mark.parametrize("content", [b"x", b"name,value\n" * 1000, bytes(8192)])
def test_files_that_are_no_sqlite(path, content):
    path.write_bytes(content)
    refuse(path, "Got a file that is no SQLite file")


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("statement", ["CREATE TABLE cells (key)", "PRAGMA user_version = 1"])
def test_sqlite_files_of_others(path, mode, statement):
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute(statement)
    connection.commit()
    connection.close()
    refuse(path, "Got another SQLite file")


def test_a_folder_in_place_of_the_file(tmp_path):
    with pytest.raises(InvalidInputError, match="can be read and written"):
        Store(tmp_path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InvalidInputError, match="Create its folder first"):
        Store(tmp_path / "missing" / "results.sqlite")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_file_that_is_read_only(filled):
    filled.chmod(0o400)
    refuse(filled, "can be read and written")


def test_a_store_on_a_full_disk(path):
    big = Result(predictions={"scores": np.random.default_rng(0).standard_normal(100_000)})
    with Store(path) as store:
        store.add(CELLS[0], Result(), MACHINE)
        pages = query(path, "PRAGMA page_count")[0][0]
        store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(DiscernelError, match=r"could not be written: .* full"):
            store.add(CELLS[1], big, MACHINE)
        assert store.finished() == {CELLS[0].key}
        store.add(CELLS[2], Result(), MACHINE)  # no transaction was left open
    assert query(path, "PRAGMA integrity_check") == [("ok",)]
