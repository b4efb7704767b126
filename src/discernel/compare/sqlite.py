"""Opening the SQLite file of a store: create it, or check it before anything is changed."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

from discernel.exceptions import InvalidInputError

#: The SQLite application id of stores.
_APPLICATION_ID = 0x64736372
#: Version of the tables; stores of other versions are refused.
_SCHEMA_VERSION = 3
_SCHEMA = """
CREATE TABLE machines (id INTEGER PRIMARY KEY, facts TEXT NOT NULL UNIQUE);
CREATE TABLE cells (
  key TEXT PRIMARY KEY,
  spec TEXT NOT NULL,
  failed INTEGER NOT NULL,
  result TEXT NOT NULL,
  predictions BLOB,
  machine INTEGER NOT NULL REFERENCES machines (id),
  finished TEXT NOT NULL
);
CREATE TABLE running (
  key TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  holder TEXT NOT NULL,
  expires REAL NOT NULL
);
"""
#: First bytes of an SQLite file; its version and application id follow at fixed positions.
_MAGIC = b"SQLite format 3\0"
#: Seconds to wait for a transaction of another process.
_LOCK_TIMEOUT = 60.0


def open_sqlite(path: Path) -> sqlite3.Connection:
    """Return a connection to a store, or raise an error and leave the file unchanged."""
    if not path.parent.is_dir():
        raise InvalidInputError(
            f"The folder of the store must exist. Got {path}. Create its folder first."
        )
    try:
        _check_header(path)
        connection = sqlite3.connect(
            path, timeout=_LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
        )
        try:
            _check(connection, path)
        except BaseException:
            connection.close()
            raise
    except (sqlite3.Error, OSError) as error:
        raise InvalidInputError(
            f"{path} must be a store of results that can be read and written. Got: {error}. If "
            "the file is damaged, move it away and run again; if its folder is read-only, choose "
            "another one."
        ) from error
    return connection


def _check_header(path: Path) -> None:
    """Raise an error if the first bytes show that a file is no store, before SQLite opens it."""
    # With a leftover journal, the first page may be incomplete; SQLite repairs it when it opens.
    if not path.is_file() or Path(f"{path}-journal").exists():
        return
    with path.open("rb") as file:
        header = file.read(100)
    if 0 < len(header) < 100 or not header.startswith(_MAGIC[: len(header)]):
        raise InvalidInputError(
            f"{path} must be a store of results. Got a file that is no SQLite file, or is "
            "truncated. Choose another file."
        )
    if header:
        _check_kind(
            path, int.from_bytes(header[68:72], "big"), int.from_bytes(header[60:64], "big")
        )


def _check_kind(path: Path, application: int, version: int) -> None:
    """Raise an error for files of other applications and of other versions."""
    if application != _APPLICATION_ID:
        raise InvalidInputError(
            f"{path} must be a store of results. Got another SQLite file. Choose another file."
        )
    if version != _SCHEMA_VERSION:
        raise InvalidInputError(
            f"{path} was written by another version of discernel (format {version}; this one "
            f"reads {_SCHEMA_VERSION}). Use that version, or choose another file."
        )


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Raise an error if the file is damaged or read-only; create the tables in an empty file."""
    damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if damage != "ok":
        raise sqlite3.DatabaseError(damage)
    connection.execute("BEGIN IMMEDIATE")  # also fails if the file is read-only
    if connection.execute("PRAGMA page_count").fetchone()[0] <= 1:
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        for statement in filter(str.strip, _SCHEMA.split(";")):
            connection.execute(statement)
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    )
    _check_kind(path, application, version)
    connection.execute("COMMIT")
    # One sync per transaction instead of four: at most a tenth of the time. Another process that
    # has the file open may prevent the change; the next one to open the file makes it.
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")
