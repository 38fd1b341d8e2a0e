"""The tables of the file of decisions, and how a file of an older version gets them."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

FORMAT_VERSION = 2  # 1 had decisions on labels only, and no column ``subject``
FIELDS = "row, version, verdict, label, who, at, queue, subject"
_TABLE_OF_DECISIONS = """(
    row INTEGER NOT NULL, version INTEGER NOT NULL, verdict TEXT, label INTEGER, who TEXT NOT NULL,
    at TEXT NOT NULL, queue TEXT NOT NULL, subject TEXT NOT NULL, PRIMARY KEY (row, subject)
)"""
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS decisions {_TABLE_OF_DECISIONS};
CREATE TABLE IF NOT EXISTS log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, row INTEGER NOT NULL, sample_id TEXT NOT NULL,
    version INTEGER NOT NULL, verdict TEXT, label INTEGER, who TEXT NOT NULL, at TEXT NOT NULL,
    queue TEXT NOT NULL, before TEXT, batch TEXT NOT NULL, undoes TEXT, shown TEXT NOT NULL,
    subject TEXT NOT NULL DEFAULT 'label'
);
CREATE INDEX IF NOT EXISTS log_by_batch ON log (batch);
CREATE INDEX IF NOT EXISTS log_by_person ON log (who, seq);
CREATE TRIGGER IF NOT EXISTS log_stays BEFORE UPDATE ON log
BEGIN SELECT RAISE(ABORT, 'the log of decisions only grows'); END;
CREATE TRIGGER IF NOT EXISTS log_is_kept BEFORE DELETE ON log
BEGIN SELECT RAISE(ABORT, 'the log of decisions only grows'); END;
"""
_FROM_FORMAT_1 = (
    "ALTER TABLE decisions RENAME TO decisions_of_format_1",
    f"CREATE TABLE decisions {_TABLE_OF_DECISIONS}",
    "INSERT INTO decisions SELECT row, version, verdict, label, who, at, queue, 'label' "
    "FROM decisions_of_format_1",
    "DROP TABLE decisions_of_format_1",
    "ALTER TABLE log ADD COLUMN subject TEXT NOT NULL DEFAULT 'label'",
    f"UPDATE about SET value = '{FORMAT_VERSION}' WHERE key = 'format_version'",
)


def upgrade(connection: sqlite3.Connection) -> None:
    """Bring a file of an older format into the current one, in one transaction.

    Parameters
    ----------
    connection : sqlite3.Connection
        An open file of decisions.
    """
    version = "SELECT value FROM about WHERE key = 'format_version'"
    if connection.execute(version).fetchone() != ("1",):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute(version).fetchone() == ("1",):  # no other process was faster
            for statement in _FROM_FORMAT_1:
                connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
