"""The SQLite file of a store: made, or checked before anything is changed."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

from discernel.exceptions import InvalidInputError

#: The SQLite application id of stores.
_APPLICATION_ID = 0x64736372
#: The format of the tables; raised when older versions can no longer read them.
_SCHEMA_VERSION = 3
_SCHEMA = """
CREATE TABLE IF NOT EXISTS machines (id INTEGER PRIMARY KEY, facts TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS cells (
  key TEXT PRIMARY KEY,
  spec TEXT NOT NULL,
  failed INTEGER NOT NULL,
  result TEXT NOT NULL,
  predictions BLOB,
  machine INTEGER NOT NULL REFERENCES machines (id),
  finished TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS running (
  key TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  holder TEXT NOT NULL,
  expires REAL NOT NULL
);
"""
#: The first bytes of an SQLite file; its version and application are at fixed places behind them.
_MAGIC = b"SQLite format 3\0"
#: Seconds to wait for a transaction of another process.
_PATIENCE = 60.0


def open_sqlite(path: Path) -> sqlite3.Connection:
    """Return a connection to a store, or raise a clear error and leave the file alone."""
    if not path.parent.is_dir():
        raise InvalidInputError(
            f"The store must lie in a folder that is there. Got {path}. Make its folder first."
        )
    try:
        _check_header(path)
        connection = sqlite3.connect(
            path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            _check(connection, path)
        except BaseException:
            connection.close()
            raise
    except (sqlite3.Error, OSError) as error:
        raise InvalidInputError(
            f"{path} must be a store of results that can be read and written. Got: {error}. If "
            "the file is damaged, move it away and run again; if its folder is read-only, name "
            "another one."
        ) from error
    return connection


def _check_header(path: Path) -> None:
    """Raise where the first bytes say that a file is none of ours, before SQLite touches it."""
    # A journal that was left behind may have to mend the first page; SQLite does.
    if not path.is_file() or Path(f"{path}-journal").exists():
        return
    with path.open("rb") as file:
        header = file.read(100)
    if 0 < len(header) < 100 or not header.startswith(_MAGIC[: len(header)]):
        raise InvalidInputError(
            f"{path} must be a store of results. Got a file that is no SQLite file, or is cut "
            "off. Name another one."
        )
    if header:
        _check_kind(
            path, int.from_bytes(header[68:72], "big"), int.from_bytes(header[60:64], "big")
        )


def _check_kind(path: Path, application: int, version: int) -> None:
    if application != _APPLICATION_ID:
        raise InvalidInputError(
            f"{path} must be a store of results. Got another SQLite file. Name another one."
        )
    if version > _SCHEMA_VERSION:
        raise InvalidInputError(
            f"{path} was written by a newer version of discernel (format {version}; this one "
            f"knows {_SCHEMA_VERSION}). Update discernel, or name another file."
        )


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Raise where SQLite finds damage or cannot write; make the tables of a new store."""
    damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if damage != "ok":
        raise sqlite3.DatabaseError(damage)
    connection.execute("BEGIN IMMEDIATE")  # also fails where the file cannot be written
    if connection.execute("PRAGMA page_count").fetchone()[0] <= 1:
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    _check_kind(path, application, version)
    if version < 2:  # claims of another kind
        connection.execute("DROP TABLE IF EXISTS running")
    for statement in filter(str.strip, _SCHEMA.split(";")):
        connection.execute(statement)
    if version < 3:  # another name of a metric
        connection.execute("""UPDATE cells SET result = replace(result, '"auc":', '"roc_auc":')""")
    connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
    connection.execute("COMMIT")
    # One sync a transaction, not four: a tenth of the time or less. Another process that opens
    # the file just now may forbid the change; then it is made the next time.
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")
