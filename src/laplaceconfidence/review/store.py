"""Decisions on disk: one SQLite file in the folder of the run, from which nothing is ever deleted.

A decision is flushed to disk before the page reports it as stored. The table ``log`` only grows: who decided
what, when, and what was shown. The table ``decisions`` holds the latest decision on every sample and subject
(its label, its copies, its leak) with a version. A new decision names the version that the reviewer saw, so
that two tabs or two reviewers do not overwrite each other's decisions unknowingly.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.folder_lock import FolderLock
from laplaceconfidence.records.audit_run import KIND, AuditRecord, read_audit
from laplaceconfidence.records.run_folder import DECISIONS, record_name
from laplaceconfidence.review.decisions import Decision, NewDecision, Subject
from laplaceconfidence.review.store_errors import (
    DiskFullError,
    StaleDecisionError,
    StoreGoneError,
    check_whole,
    explained,
)
from laplaceconfidence.review.store_format import FIELDS, FORMAT_VERSION, SCHEMA, upgrade

FILE = DECISIONS
SECONDS_TO_WAIT = 5.0  # for another process that is writing
_ROWS_AT_ONCE = 500


class DecisionStore:
    """The decisions of one run. Safe to use from several threads and from several processes.

    While it is open, the folder has a shared lock, so that the run is not replaced by another audit.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the run.
    record : AuditRecord
        Its record, which the decisions must belong to.
    """

    def __init__(self, folder: Path, record: AuditRecord) -> None:
        self.path = folder / FILE
        self._lock = threading.Lock()
        self._is_gone = False
        self._folder_lock = FolderLock(folder, shared=True)
        try:
            if _is_audit(folder) and _fingerprint(read_audit(folder).record) != _fingerprint(record):
                raise RunFolderError(f"{folder} was replaced by another audit just now: start again.")
            is_new = check_whole(self.path)
            try:
                with explained(self.path, keep_copy=True):
                    self._connection = self._opened(record)
            except DiskFullError:
                if is_new and self.path.is_file() and self.path.stat().st_size == 0:
                    self.path.unlink()  # nothing was ever in it
                raise
            self._file = self.path.stat()
        except BaseException:
            self._folder_lock.close()
            raise

    def _opened(self, record: AuditRecord) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=SECONDS_TO_WAIT, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise sqlite3.DatabaseError(problem)
        connection.executescript(SCHEMA)
        expected = {"format_version": str(FORMAT_VERSION), "audit": _fingerprint(record)}
        connection.executemany("INSERT OR IGNORE INTO about VALUES (?, ?)", expected.items())
        found = dict(connection.execute("SELECT key, value FROM about"))
        if int(found["format_version"]) > FORMAT_VERSION:
            raise RunFolderError(
                f"{self.path} was written by a newer version in format {found['format_version']}. "
                "Upgrade with: pip install --upgrade laplaceconfidence"
            )
        if found["audit"] != expected["audit"]:
            raise RunFolderError(
                f"{self.path} holds decisions about another audit than the one beside it: move it away, or "
                "use 'laplaceconfidence audit SOURCE --decisions RUN' to reuse its decisions."
            )
        upgrade(connection)
        return connection

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
            self._folder_lock.close()

    def data_version(self) -> int:
        """Return a number that changes whenever another process has written.

        Returns
        -------
        int
        """
        with self._reading() as connection:
            return int(connection.execute("PRAGMA data_version").fetchone()[0])

    def all(self) -> list[Decision]:
        """Return the latest decision on every sample and subject that ever had one.

        Returns
        -------
        list of Decision
        """
        with self._reading() as connection:
            found = connection.execute(f"SELECT {FIELDS} FROM decisions")
            return [Decision(*fields) for fields in found]

    def log(self) -> Iterator[dict[str, Any]]:
        """Iterate over every decision and every undo, in order.

        Yields
        ------
        dict of str to object
            One entry of the table ``log``.
        """
        with self._reading() as connection:
            cursor = connection.execute("SELECT * FROM log ORDER BY seq")
            names = [column[0] for column in cursor.description]
            entries = cursor.fetchall()
        for entry in entries:
            fields = dict(zip(names, entry, strict=True))
            yield {**fields, "shown": json.loads(fields["shown"])}

    def decide(self, new: Sequence[NewDecision], *, who: str, queue: str) -> list[Decision]:
        """Store decisions in one transaction.

        Parameters
        ----------
        new : sequence of NewDecision
            The decisions.
        who : str
            Name of the reviewer.
        queue : str
            Where they were made.

        Returns
        -------
        list of Decision

        Raises
        ------
        StaleDecisionError
            If one of them is based on an old version; none is stored then.
        """
        at = _now()
        with self._writing() as connection:
            before = self._current(connection, [decision.row for decision in new])
            for decision in new:
                known = before.get((decision.row, decision.subject))
                if (known.version if known else 0) != decision.expected_version:
                    raise StaleDecisionError(
                        known or Decision(decision.row, 0, None, None, "someone", at, queue), len(new)
                    )
            made = [
                Decision(d.row, d.expected_version + 1, d.verdict, d.label, who, at, queue, d.subject)
                for d in new
            ]
            details = [(decision.sample_id, decision.shown) for decision in new]
            batch = secrets.token_hex(8)
            self._store(connection, made, before, details, batch=batch, undoes=None, by=(who, at))
        return made

    def undo(self, *, who: str) -> list[Decision]:
        """Undo the last step of a reviewer, which may be many decisions at once.

        Parameters
        ----------
        who : str
            Name of the reviewer.

        Returns
        -------
        list of Decision
            The decisions that hold now; empty if there was nothing to undo.

        Raises
        ------
        StaleDecisionError
            If another decision replaced one of them; nothing is undone then.
        """
        with self._writing() as connection:
            found = connection.execute(
                "SELECT batch FROM log WHERE who = ? AND undoes IS NULL AND batch NOT IN "
                "(SELECT undoes FROM log WHERE undoes IS NOT NULL) ORDER BY seq DESC LIMIT 1",
                (who,),
            ).fetchone()
            if found is None:
                return []
            undone = connection.execute(
                "SELECT row, subject, sample_id, verdict, label, before FROM log WHERE batch = ?", found
            ).fetchall()
            current = self._current(connection, [entry[0] for entry in undone])
            for row, subject, _, verdict, label, _ in undone:
                now = current[row, subject]
                if (now.verdict, now.label, now.who) != (verdict, label, who):
                    raise StaleDecisionError(now, len(undone))
            made = [_restored(entry[-1], current[entry[0], entry[1]], who) for entry in undone]
            details: list[tuple[str, dict[str, Any]]] = [(entry[2], {}) for entry in undone]
            batch = secrets.token_hex(8)
            self._store(connection, made, current, details, batch=batch, undoes=found[0], by=(who, _now()))
        return made

    def _current(
        self, connection: sqlite3.Connection, rows: Sequence[int]
    ) -> dict[tuple[int, Subject], Decision]:
        known: dict[tuple[int, Subject], Decision] = {}
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = rows[start : start + _ROWS_AT_ONCE]
            marks = ", ".join("?" * len(part))
            found = connection.execute(f"SELECT {FIELDS} FROM decisions WHERE row IN ({marks})", part)
            decisions = (Decision(*fields) for fields in found)
            known |= {(decision.row, decision.subject): decision for decision in decisions}
        return known

    def _store(
        self,
        connection: sqlite3.Connection,
        made: Sequence[Decision],
        before: dict[tuple[int, Subject], Decision],
        details: Sequence[tuple[str, dict[str, Any]]],  # id of the sample and what was shown
        *,
        batch: str,
        undoes: str | None,
        by: tuple[str, str],  # who and when
    ) -> None:
        connection.executemany(
            f"INSERT OR REPLACE INTO decisions ({FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(d.row, d.version, d.verdict, d.label, d.who, d.at, d.queue, d.subject) for d in made],
        )
        entries = []
        for decision, (sample_id, shown) in zip(made, details, strict=True):
            was = before.get((decision.row, decision.subject))
            old = None if was is None else json.dumps([was.verdict, was.label, was.who, was.at, was.queue])
            new = (decision.version, decision.verdict, decision.label)
            seen = json.dumps(shown, ensure_ascii=False)
            about = (decision.queue, old, batch, undoes, seen, decision.subject)
            entries.append((decision.row, sample_id, *new, *by, *about))
        connection.executemany(
            "INSERT INTO log (row, sample_id, version, verdict, label, who, at, queue, before, batch, "
            "undoes, shown, subject) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            entries,
        )

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, explained(self.path, keep_copy=False):
            self._check_file()
            yield self._connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: everything in the block is written to disk, or nothing."""
        with self._lock, explained(self.path, keep_copy=False):
            self._check_file()
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise
            self._check_file()

    def _check_file(self) -> None:
        """Raise, from then on always, where the path no longer leads to the file that was opened."""
        if not self._is_gone:
            try:
                self._is_gone = not os.path.samestat(self._file, self.path.stat())
            except OSError:
                self._is_gone = True
        if self._is_gone:
            raise StoreGoneError(
                f"{self.path} was moved, deleted or replaced while this review was running. This decision is "
                "not stored, and no further one is accepted: stop the review with Ctrl+C, put the run back, "
                "and start it again."
            )


def read_decisions(folder: Path, record: AuditRecord) -> list[Decision]:
    """Read the latest decision on every decided sample and subject of a run.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the run.
    record : AuditRecord
        Its record.

    Returns
    -------
    list of Decision
        Empty where there was no review.
    """
    if check_whole(folder / FILE):
        return []
    store = DecisionStore(folder, record)
    try:
        return [decision for decision in store.all() if decision.verdict is not None]
    finally:
        store.close()


def _restored(before: str | None, undone: Decision, who: str) -> Decision:
    """The decision that an undone one had replaced; without a verdict if there was none."""
    verdict, label, by, at, queue = json.loads(before) if before else (None, None, who, _now(), "")
    return Decision(undone.row, undone.version + 1, verdict, label, by, at, queue, undone.subject)


def _is_audit(folder: Path) -> bool:
    return (folder / record_name(KIND)).is_file()


def _fingerprint(record: AuditRecord) -> str:
    return json.dumps([record.created, record.n_samples, record.n_issues, record.class_names])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
