"""Results in one SQLite file; each finished cell is written in its own transaction."""

from __future__ import annotations

import io
import json
import math
import os
import secrets
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from discernel.compare.plan import Cell, Data, Method, Splits, plain
from discernel.compare.sqlite import open_sqlite
from discernel.exceptions import DiscernelError, InvalidInputError

#: Seconds until a claim expires unless it is renewed.
_LEASE = 60.0
#: Number of renewals within the lease of a claim.
_RENEWALS = 4
#: SQL condition under which a claim is valid.
_IS_VALID = "expires > :now AND expires <= :latest"


@dataclass(frozen=True)
class Result:
    """The result of a cell.

    Attributes
    ----------
    metrics : dict of str to float
        Metrics of `discernel.compare.metrics`, and any others that the method measured.
    seconds_fit, seconds_predict : float
        Times of the fit and of the predictions.
    peak_memory : int or None
        Peak memory of the process in bytes; None if unknown.
    weights : dict of str to float
        Kernel weights by name.
    regularization, gap : float or None
        λ and the certified relative gap.
    details : dict
        Other facts as plain data, for example iterations and candidates.
    error : str or None
        The last lines of the traceback if the cell failed.
    predictions : dict of str to ndarray
        Arrays for the held-out rows: ``y_true``, ``y_pred`` and ``scores``, the decision values,
        of shape (n_rows,) for two classes, else (n_rows, n_classes). Methods also return
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

    A process claims a cell before running it. A claim expires after a minute unless it is
    renewed, so that claims of a killed process end on their own. If a cell is run twice
    nevertheless, because a machine was suspended or its clock was changed, the first record is
    kept.

    Parameters
    ----------
    path : str or Path
        The file; created if it does not exist or is empty. SQLite needs a local disk. While the
        store is in use, and after a killed process until the next opening, the files with the
        suffixes ``-wal`` and ``-shm`` are part of it.
    lease : float, default=60.0
        Seconds until a claim expires unless it is renewed.

    Raises
    ------
    InvalidInputError
        If the file is no store, is damaged, was written by a newer version, or is read-only. It is
        not changed then.

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
        self._lock = threading.Lock()  # joblib requests the next cell from another thread
        self._connection = open_sqlite(self.path)
        self._owner = secrets.token_hex(8)
        self._holder = f"process {os.getpid()} on {socket.gethostname()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release all claims and close the file."""
        try:
            self.give_back()
        finally:
            self._connection.close()

    @contextmanager
    def _transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Cursor]:
        """Write everything or nothing; a durable transaction survives a crash of the machine."""
        with self._lock:
            cursor = self._connection.cursor()
            try:
                cursor.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                cursor.execute("BEGIN IMMEDIATE")
                yield cursor
                cursor.execute("COMMIT")
            except sqlite3.Error as error:
                raise DiscernelError(
                    f"{self.path} could not be written: {error}. Its content is unchanged. Make "
                    "sure that the disk has space, and run again."
                ) from error
            finally:
                if self._connection.in_transaction:  # not committed
                    cursor.execute("ROLLBACK")

    # ---- writing -----------------------------------------------------------------------------

    def claim(self, cell: Cell) -> bool:
        """Claim a cell; return False if it is finished or has a valid claim, also one made here."""
        with self._transaction(durable=False) as cursor:
            valid = self._valid_range()  # after the transaction has begun
            cursor.execute(
                "INSERT OR REPLACE INTO running SELECT :key, :owner, :holder, :now + :lease "
                "WHERE NOT EXISTS (SELECT 1 FROM cells WHERE key = :key) "
                f"AND NOT EXISTS (SELECT 1 FROM running WHERE key = :key AND {_IS_VALID})",
                {"key": cell.key, "owner": self._owner, "holder": self._holder}
                | {"lease": self._lease, **valid},
            )
            return cursor.rowcount > 0

    def renew(self) -> None:
        """Renew all claims made by this store object."""
        with self._transaction(durable=False) as cursor:
            cursor.execute(
                "UPDATE running SET expires = ? WHERE owner = ?",
                (time.time() + self._lease, self._owner),
            )

    @contextmanager
    def renewing(self) -> Iterator[None]:
        """Renew the claims made here regularly within a ``with`` block."""
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(self._lease / _RENEWALS):
                with suppress(DiscernelError):  # the next write of a result reports the error
                    self.renew()

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def give_back(self) -> None:
        """Release all claims made here, so that other processes can run the cells."""
        with self._transaction(durable=False) as cursor:
            cursor.execute("DELETE FROM running WHERE owner = ?", (self._owner,))

    def _valid_range(self) -> dict[str, float]:
        """Return the range of expiry times of valid claims."""
        now = time.time()
        # A later expiry time means that the clock was set back.
        return {"now": now, "latest": now + max(self._lease, _LEASE)}

    def add(self, cell: Cell, result: Result, machine: dict[str, Any]) -> None:
        """Write a finished cell; an existing record is kept."""
        facts = json.dumps(machine, sort_keys=True)
        row = (
            cell.key,
            json.dumps(cell.spec, sort_keys=True),
            result.error is not None,
            json.dumps(plain(replace(result, predictions={}))),  # NaN is valid in Python's JSON
            _pack(result.predictions),
            datetime.now(UTC).isoformat(timespec="seconds"),
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
        """Delete the records of failed cells, so that they are run again."""
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
        """Return the keys of all claimed cells, and a description of the claiming process."""
        query = f"SELECT key, holder FROM running WHERE {_IS_VALID}"
        return dict(self._select(query, self._valid_range()))

    def cells(self, name: Callable[[str, Mapping[str, Any]], str]) -> list[Cell]:
        """Return all finished cells in the order they finished, without a plan.

        Parameters
        ----------
        name : callable
            Function from kind and options to the name of a method; names are not stored.
        """
        rows = self._select("SELECT key, spec FROM cells ORDER BY finished, rowid")
        found = []
        for key, spec in rows:
            with self._naming_record(key):
                found.append(_cell(json.loads(spec), name))
        return found

    def records(self, cells: Iterable[Cell], *, predictions: bool = False) -> list[Record]:
        """Return the records of finished cells, in the order of the given cells.

        Parameters
        ----------
        cells : iterable of Cell
            The cells to look up.
        predictions : bool, default=False
            Whether to read the predictions as well.
        """
        wanted = list(cells)
        columns = "key, result, facts, finished, " + ("predictions" if predictions else "NULL")
        rows = self._select(
            f"SELECT {columns} FROM cells JOIN machines ON machine = id "
            "WHERE key IN (SELECT value FROM json_each(?))",
            [json.dumps([cell.key for cell in wanted])],
        )
        by_key, found = {key: row for key, *row in rows}, []
        for cell in wanted:
            if cell.key in by_key:
                with self._naming_record(cell.key):
                    found.append(_record(cell, *by_key[cell.key]))
        return found

    @contextmanager
    def _naming_record(self, key: str) -> Iterator[None]:
        """Replace any error while a row is read by one that names the record."""
        try:
            yield
        except Exception as error:  # a damaged row can fail in any way
            raise InvalidInputError(
                f"The record {key!r} of {self.path.name} is damaged "
                f"({type(error).__name__}: {error}). Delete it, so that it is run again: sqlite3 "
                f"{self.path} \"DELETE FROM cells WHERE key = '{key}'\"."
            ) from error

    def _select(self, query: str, values: Any = ()) -> list[Any]:
        """Return the rows of a query, or raise an error that names the file."""
        try:
            with self._lock:
                return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise DiscernelError(
                f"{self.path} could not be read: {error}. If the file is damaged, move it away and "
                "run again."
            ) from error


# ---- rows ------------------------------------------------------------------------------------


def _record(cell: Cell, result: str, facts: str, finished: str, packed: bytes | None) -> Record:
    """Return the record of a row; values of a wrong type, as in a damaged row, raise an error."""
    found = Result(**json.loads(result) | {"predictions": _unpack(packed)})
    times = (found.seconds_fit, found.seconds_predict)
    known = (found.peak_memory, found.regularization, found.gap)
    numbers = (*found.metrics.values(), *found.weights.values(), *times)
    list(map(math.isnan, (*numbers, *(number for number in known if number is not None))))
    datetime.fromisoformat(finished)
    error = None if found.error is None else "".join(found.error)
    found = replace(found, details=found.details | {}, error=error)
    return Record(cell, found, json.loads(facts) | {}, finished)


def _cell(spec: Any, name: Callable[[str, Mapping[str, Any]], str]) -> Cell:
    """Return the cell of a stored specification."""
    kind, options = spec["method"]["kind"], spec["method"]["options"]
    method = Method(name(kind, options), kind, options)
    return Cell(Data(**spec["data"]), method, Splits(**spec["splits"]), spec["repetition"])


def _pack(arrays: dict[str, Any]) -> bytes | None:
    """Return arrays as the bytes of a compressed NPZ file."""
    if not arrays:
        return None
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _unpack(blob: bytes | None) -> dict[str, Any]:
    """Return the arrays that `_pack` packed."""
    if blob is None:
        return {}
    with np.load(io.BytesIO(blob), allow_pickle=False) as stored:
        return dict(stored)
