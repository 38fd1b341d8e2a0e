"""Errors of the file of decisions, and what each says to do."""

from __future__ import annotations

import errno
import filecmp
import secrets
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from laplaceconfidence.exceptions import LaplaceConfidenceError, RunFolderError
from laplaceconfidence.files import is_disk_full
from laplaceconfidence.review.decisions import Decision

_SECONDS_TO_CREATE = 1.0  # in which another process has written the first bytes of a new file
_LEAST_SPACE = 100_000  # bytes; SQLite needs about this to open a file and to write


class StaleDecisionError(LaplaceConfidenceError):
    """Another decision was stored in the meantime.

    Parameters
    ----------
    current : Decision
        The decision that holds now.
    n_new : int, default=1
        Number of decisions that were to be stored together.
    """

    def __init__(self, current: Decision, n_new: int = 1) -> None:
        verdict = current.verdict or "decision undone"
        sample = "this sample" if n_new == 1 else f"one of these {n_new:,} samples"
        nothing = "Nothing was changed." if n_new == 1 else "None of them was changed: check again."
        super().__init__(f"{current.who} decided on {sample} in the meantime: {verdict}. {nothing}")
        self.current = current


class BusyStoreError(RunFolderError):
    """Another process holds a lock on the decisions; nothing was stored."""


class DiskFullError(RunFolderError):
    """There is no space left; nothing was stored, and nothing that was stored before is lost."""


class StoreGoneError(RunFolderError):
    """The file of decisions was moved, deleted or replaced; nothing is accepted any more."""


def check_whole(path: Path) -> bool:
    """Return whether there is no file of decisions yet.

    SQLite would take an empty file for a new one, and delete what is still in the write-ahead log.

    Parameters
    ----------
    path : pathlib.Path
        The file of decisions.

    Returns
    -------
    bool

    Raises
    ------
    RunFolderError
        If the file is empty, or missing although its write-ahead log is there.
    """
    give_up = time.monotonic() + _SECONDS_TO_CREATE
    while path.is_file() and path.stat().st_size == 0 and time.monotonic() < give_up:
        time.sleep(0.05)  # another process may be creating it
    log = Path(f"{path}-wal")
    rest = f" Keep {log} as well." if log.is_file() and log.stat().st_size > 0 else ""
    if not path.exists():
        if rest:
            raise RunFolderError(
                f"{path} is missing, but {log}, which belongs to it, is there and may hold decisions: put "
                f"the missing file back beside it. If there are no decisions to keep, delete {log}."
            )
        return True
    if path.stat().st_size == 0:
        raise RunFolderError(
            f"{path} is empty (0 bytes): decisions that were in it are gone, for example because it was "
            f"copied to a full disk. Put a backup in its place.{rest} If nobody had decided "
            "anything, delete it."
        )
    return False


@contextmanager
def explained(path: Path, *, keep_copy: bool) -> Iterator[None]:
    """Turn errors of SQLite in the block into ours.

    Parameters
    ----------
    path : pathlib.Path
        The file of decisions.
    keep_copy : bool
        Whether to copy the file where it is damaged.
    """
    try:
        yield
    except sqlite3.Error as error:
        if "locked" in str(error) or "busy" in str(error):
            raise BusyStoreError(
                f"The decisions in {path} are locked by another program: close it and try again."
            ) from error
        if is_disk_full(error) or _has_no_space(path.parent, error):
            raise DiskFullError(
                f"The disk that holds {path} is full: this could not be stored. Everything that was "
                "confirmed before is stored and not lost. Free some space on this disk and try again; leave "
                "the file where it is."
            ) from error
        if "readonly" in str(error) or "unable to open" in str(error):
            raise RunFolderError(
                f"The decisions cannot be stored in {path} ({error}): make the folder writable, or copy the "
                "run to a folder where you may write."
            ) from error
        copy = f" {_copied(path)}" if keep_copy and path.is_file() else ""
        raise RunFolderError(
            f"The decisions in {path} are damaged ({error}).{copy} Save what can be saved with "
            f"'sqlite3 {path} .recover', or move the file away to start over."
        ) from error


def _has_no_space(folder: Path, error: sqlite3.Error) -> bool:
    """Whether an error that SQLite does not explain comes from a full disk."""
    if not ("disk I/O error" in str(error) or "unable to open" in str(error)):
        return False
    try:
        return shutil.disk_usage(folder).free < _LEAST_SPACE
    except OSError:
        return False


def _copied(path: Path) -> str:
    """Copy a damaged file, and say where the copy is, or that there is none."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    copy = path.with_name(f"decisions-copy-{stamp}-{secrets.token_hex(2)}.sqlite")
    files = [(Path(f"{path}{suffix}"), Path(f"{copy}{suffix}")) for suffix in ("", "-wal")]
    files = [(original, copied) for original, copied in files if original.is_file()]
    try:
        for original, copied in files:
            shutil.copy2(original, copied)
            if not filecmp.cmp(original, copied, shallow=False):
                raise OSError(errno.EIO, "the copy differs")
    except OSError as error:
        for _, copied in files:
            with suppress(OSError):
                copied.unlink()
        reason = "the disk is full" if is_disk_full(error) else error.strerror or str(error)
        return f"No copy could be made ({reason}): copy the file to another disk first."
    return f"A copy is kept at {copy}."
