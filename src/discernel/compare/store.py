"""Results in one SQLite file: each finished cell in a transaction of its own."""

from __future__ import annotations

import io
import json
import os
import secrets
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from discernel.compare.plan import Cell, Data, Method, Splits, plain
from discernel.compare.sqlite import open_sqlite
from discernel.exceptions import DiscernelError, InvalidInputError

#: Seconds that a claim counts unless it is renewed.
_LEASE = 60.0
#: How often a claim is renewed within its lease.
_RENEWALS = 4
#: SQL condition under which a claim counts.
_COUNTS = "expires > ? AND expires <= ?"
#: Keys per query; SQLite takes at least 999.
_BATCH = 500


@dataclass(frozen=True)
class Result:
    """The result of a cell.

    Attributes
    ----------
    metrics : dict of str to float
        ``accuracy`` from 0 to 1, ``auc`` for two classes, and what else the method measured.
    seconds_fit, seconds_predict : float
        The time it took.
    peak_memory : int or None
        Bytes of the process at their most while it ran; None where the system does not say.
    weights : dict of str to float
        Kernel weights by name.
    regularization, gap : float or None
        λ and the certified gap.
    details : dict
        Anything else, as plain data: iterations, candidates, the path.
    error : str or None
        Why there is no result: the last lines of the traceback.
    predictions : dict of str to ndarray
        Of the held-out rows: ``y_true``, ``y_pred`` and ``scores``, the decision values, of shape
        (n_rows,) for two classes, else (n_rows, n_classes). A method also gives
        ``probabilities``, of shape (n_rows, n_classes), which are not stored.
    """

    metrics: dict[str, float] = field(default_factory=dict)
    seconds_fit: float = 0.0
    seconds_predict: float = 0.0
    peak_memory: int | None = None
    weights: dict[str, float] = field(default_factory=dict)
    regularization: float | None = None
    gap: float | None = None
    details: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    predictions: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Record:
    """A finished cell, its result, and the machine that ran it."""

    cell: Cell
    result: Result
    machine: dict[str, Any]
    finished: str


class Store:
    """A file of results; several processes may use it at once.

    A process claims a cell before it runs it. A claim counts for a minute and is renewed while
    cells run, so that the claims of a killed process lapse by themselves, on any machine. If a
    cell is run twice nevertheless, because a machine slept or its clock was set, the record that
    was written first stays.

    Parameters
    ----------
    path : str or Path
        The file; made where it is not there, or empty. It must be on a disk of this machine,
        for SQLite's sake. While it is in use, and after a kill until it is opened again, the
        files named like it and ending in ``-wal`` and ``-shm`` are part of it.
    lease : float, default=60.0
        Seconds that a claim counts unless it is renewed.

    Raises
    ------
    InvalidInputError
        If the file is no store, is broken, was written by a newer version, or cannot be written.
        Nothing is changed then.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from discernel.compare.plan import Data, Method, Plan
    >>> from discernel.compare.store import Result, Store
    >>> cell, *_ = Plan("small", (Data("wine"),), (Method("LDA", "lda"),)).cells()
    >>> with TemporaryDirectory() as folder, Store(f"{folder}/results.sqlite") as store:
    ...     store.add(cell, Result(metrics={"accuracy": 0.97}), machine={})
    ...     store.records([cell])[0].result.metrics
    {'accuracy': 0.97}
    """

    def __init__(self, path: str | Path, *, lease: float = _LEASE) -> None:
        self.path = Path(path)
        self._lease = lease
        self._lock = threading.Lock()  # joblib asks for the next cell from a thread of its own
        self._connection = open_sqlite(self.path)
        self._owner = secrets.token_hex(8)
        self._holder = f"process {os.getpid()} on {socket.gethostname()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back what is claimed, and close the file."""
        try:
            self.give_back()
        finally:
            self._connection.close()

    @contextmanager
    def _transaction(self, *, lasting: bool = True) -> Iterator[sqlite3.Cursor]:
        """Write all or nothing; a lasting transaction survives a crash of the machine."""
        with self._lock:
            cursor = self._connection.cursor()
            try:
                cursor.execute(f"PRAGMA synchronous = {'FULL' if lasting else 'NORMAL'}")
                cursor.execute("BEGIN IMMEDIATE")
                yield cursor
                cursor.execute("COMMIT")
            except BaseException as error:
                if self._connection.in_transaction:
                    cursor.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise DiscernelError(
                        f"{self.path} could not be written: {error}. What is in it stays; see "
                        "that there is room on the disk and run again."
                    ) from error
                raise

    # ---- writing -----------------------------------------------------------------------------

    def claim(self, cell: Cell) -> bool:
        """Return whether the cell is ours to run: not finished, and no claim on it counts.

        A cell that this very process runs is not ours to run again either.
        """
        with self._transaction(lasting=False) as cursor:
            now, latest = self._now_and_latest()  # not before others are done with their claims
            cursor.execute(
                "INSERT OR REPLACE INTO running SELECT ?, ?, ?, ? "
                "WHERE NOT EXISTS (SELECT 1 FROM cells WHERE key = ?) "
                f"AND NOT EXISTS (SELECT 1 FROM running WHERE key = ? AND {_COUNTS})",
                (
                    *(cell.key, self._owner, self._holder, now + self._lease),
                    *(cell.key, cell.key, now, latest),
                ),
            )
            return cursor.rowcount > 0

    def renew(self) -> None:
        """Make the claims made here count from now on."""
        with self._transaction(lasting=False) as cursor:
            cursor.execute(
                "UPDATE running SET expires = ? WHERE owner = ?",
                (time.time() + self._lease, self._owner),
            )

    @contextmanager
    def renewing(self) -> Iterator[None]:
        """Renew the claims made here, again and again, for as long as a ``with`` block lasts."""
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(self._lease / _RENEWALS):
                with suppress(DiscernelError):  # whoever writes a result next says so
                    self.renew()

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def give_back(self) -> None:
        """Give up all claims made here, so that others may run the cells."""
        with self._transaction(lasting=False) as cursor:
            cursor.execute("DELETE FROM running WHERE owner = ?", (self._owner,))

    def _now_and_latest(self) -> tuple[float, float]:
        """Return between which moments a claim ends that counts."""
        now = time.time()
        # Later than any claim can end: the clock was set back since.
        return now, now + max(self._lease, _LEASE)

    def add(self, cell: Cell, result: Result, machine: dict[str, Any]) -> None:
        """Write a finished cell; what is there already stays."""
        facts = json.dumps(machine, sort_keys=True)
        row = (
            cell.key,
            json.dumps(cell.spec, sort_keys=True),
            result.error is not None,
            json.dumps(_stored(result)),
            _pack(result.predictions),
            _now(),
            facts,
        )
        with self._transaction() as cursor:
            cursor.execute("INSERT OR IGNORE INTO machines (facts) VALUES (?)", (facts,))
            cursor.execute(
                "INSERT OR IGNORE INTO cells SELECT ?, ?, ?, ?, ?, id, ? FROM machines "
                "WHERE facts = ?",
                row,
            )
            cursor.execute("DELETE FROM running WHERE key = ?", (cell.key,))

    def forget_failures(self, cells: Iterable[Cell]) -> None:
        """Remove the records of failures, so that the cells are run again."""
        with self._transaction() as cursor:
            keys = [(cell.key,) for cell in cells]
            cursor.executemany("DELETE FROM cells WHERE failed AND key = ?", keys)

    # ---- reading -----------------------------------------------------------------------------

    def finished(self) -> set[str]:
        """Return the keys of all finished cells, failures included."""
        return {row[0] for row in self._select("SELECT key FROM cells")}

    def failed(self) -> set[str]:
        """Return the keys of all cells that failed."""
        return {row[0] for row in self._select("SELECT key FROM cells WHERE failed")}

    def held(self) -> dict[str, str]:
        """Return the keys of all cells that are claimed, and who holds each, in words."""
        query = f"SELECT key, holder FROM running WHERE {_COUNTS}"
        return dict(self._select(query, self._now_and_latest()))

    def cells(self, name: Callable[[str, Mapping[str, Any]], str]) -> list[Cell]:
        """Return all finished cells in the order they finished, for who has no plan.

        Parameters
        ----------
        name : callable
            From kind and options to the name of a method, which is not stored.
        """
        rows = self._select("SELECT key, spec FROM cells ORDER BY finished, rowid")
        found = []
        for key, spec in rows:
            with self._damage_named(key):
                found.append(_cell(json.loads(spec), name))
        return found

    def records(self, cells: Iterable[Cell], *, predictions: bool = False) -> list[Record]:
        """Return the finished ones of some cells, in their order.

        Parameters
        ----------
        cells : iterable of Cell
            What to look for.
        predictions : bool, default=False
            Whether to read the predictions too.
        """
        wanted = list(cells)
        columns = "key, result, facts, finished, " + ("predictions" if predictions else "NULL")
        query = f"SELECT {columns} FROM cells JOIN machines ON machine = id WHERE key IN "
        found = []
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            keys = [cell.key for cell in batch]
            rows = self._select(f"{query} ({', '.join('?' * len(keys))})", keys)
            by_key = {key: row for key, *row in rows}
            for cell in batch:
                if cell.key in by_key:
                    with self._damage_named(cell.key):
                        found.append(_record(cell, *by_key[cell.key]))
        return found

    @contextmanager
    def _damage_named(self, key: str) -> Iterator[None]:
        """Replace any error of reading a row by one that names the row."""
        try:
            yield
        except Exception as error:  # a row may hold anything, so reading it may fail in any way
            raise InvalidInputError(
                f"The record {key!r} of {self.path.name} is damaged "
                f"({type(error).__name__}: {error}). Take it out, so that it is run again: sqlite3 "
                f"{self.path} \"DELETE FROM cells WHERE key = '{key}'\"."
            ) from error

    def _select(self, query: str, values: Iterable[Any] = ()) -> list[Any]:
        try:
            with self._lock:
                return self._connection.execute(query, tuple(values)).fetchall()
        except sqlite3.Error as error:
            raise DiscernelError(
                f"{self.path} could not be read: {error}. If the file is damaged, move it away and "
                "run again."
            ) from error


# ---- rows ------------------------------------------------------------------------------------


def _stored(result: Result) -> dict[str, Any]:
    """Return a result without predictions, as plain data. Python writes and reads NaN in JSON."""
    names = (each.name for each in fields(result) if each.name != "predictions")
    return {name: plain(getattr(result, name)) for name in names}


def _record(cell: Cell, result: str, facts: str, finished: str, packed: bytes | None) -> Record:
    stored = json.loads(result) | {"predictions": _unpack(packed)}
    record = Record(cell, Result(**stored), json.loads(facts), finished)
    wrong = [name for name, holds in _TYPES.items() if not holds(getattr(record.result, name))]
    if wrong or not isinstance(record.machine, dict) or not isinstance(finished, str):
        raise TypeError(f"{', '.join(wrong) or 'machine or moment'} of the wrong type")
    return record


def _cell(spec: Any, name: Callable[[str, Mapping[str, Any]], str]) -> Cell:
    kind, options = spec["method"]["kind"], spec["method"]["options"]
    cell = Cell(
        Data(**spec["data"]),
        Method(name(kind, options), kind, options),
        Splits(**spec["splits"]),
        spec["repetition"],
    )
    if not isinstance(cell.data.name, str) or not isinstance(cell.repetition, int):
        raise TypeError("data set or repetition of the wrong type")
    return cell


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _are_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _is_number_or_none(value: Any) -> bool:
    return value is None or _is_number(value)


#: Checks of the types of a result's fields.
_TYPES: dict[str, Callable[[Any], bool]] = {
    "metrics": _are_numbers,
    "seconds_fit": _is_number,
    "seconds_predict": _is_number,
    "peak_memory": _is_number_or_none,
    "weights": _are_numbers,
    "regularization": _is_number_or_none,
    "gap": _is_number_or_none,
    "details": lambda value: isinstance(value, dict),
    "error": lambda value: value is None or isinstance(value, str),
}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _pack(arrays: dict[str, Any]) -> bytes | None:
    if not arrays:
        return None
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _unpack(blob: bytes | None) -> dict[str, Any]:
    if blob is None:
        return {}
    with np.load(io.BytesIO(blob), allow_pickle=False) as stored:
        return dict(stored)
