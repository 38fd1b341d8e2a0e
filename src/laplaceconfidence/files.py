"""Atomic writes: files are written under a temporary name, then renamed."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from laplaceconfidence.exceptions import DataFormatError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder; it is renamed to ``path`` on success, else removed.

    Parameters
    ----------
    path : str or Path
        The file to write or replace.

    Yields
    ------
    Path
        Where to write.

    Examples
    --------
    >>> with replacing("table.csv") as temporary:        # doctest: +SKIP
    ...     frame.to_csv(temporary)
    """
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=target.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _flush_to_disk(temporary)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def replace_folder(new: Path, target: Path) -> None:
    """Rename a folder to ``target`` and remove what is there.

    On Linux both folders trade names in one step, so that there is a complete folder of that name at every
    moment. Elsewhere, and on file systems that cannot do so, the old folder is renamed first; what a
    process that is killed between the two steps leaves behind, ``restore_folder`` puts back.

    Parameters
    ----------
    new : Path
        The complete new folder, on the same file system.
    target : Path
        The name it gets.
    """
    if not target.exists():
        new.rename(target)
        return
    if _trade_names(new, target):
        shutil.rmtree(new)
        return
    old = target.with_name(f".{target.name}.{secrets.token_hex(8)}-replaced")
    target.rename(old)
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old)


def restore_folder(target: Path) -> None:
    """Put back a folder if ``replace_folder`` was killed after it had renamed it, and before the new one.

    Parameters
    ----------
    target : Path
        The folder that was to be replaced.
    """
    if target.exists() or not target.parent.is_dir():
        return
    start = f".{target.name}."
    for entry in target.parent.iterdir():
        if entry.name.startswith(start) and entry.name.endswith("-replaced") and entry.is_dir():
            entry.rename(target)
            return


def write_json(path: str | Path, content: Any) -> None:
    """Write indented JSON atomically; NaN raises ``ValueError``, because it is not valid JSON.

    Parameters
    ----------
    path : str or Path
        The file to write or replace.
    content : object
        What ``json.dumps`` can encode.
    """
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    with replacing(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def is_disk_full(error: BaseException) -> bool:
    """Return whether an error was raised because there is no space left.

    Parameters
    ----------
    error : BaseException
        What was raised while writing.

    Returns
    -------
    bool
    """
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    # SQLite, Arrow and NumPy (a file that was written in part) give no error number.
    text = str(error)
    return any(part in text for part in ("disk is full", "No space left")) or bool(
        re.search(r"\d+ requested and \d+ written", text)
    )


def not_as_written(name: str, how: str) -> DataFormatError:
    """Make the error for a file that, read back, is not what was written; it never gets its name.

    Parameters
    ----------
    name : str
        Name of the file.
    how : str
        What it held when it was read back.

    Returns
    -------
    DataFormatError
    """
    return DataFormatError(
        f"{name} was not written: read back, it held {how}. Check the disk; "
        "if there is nothing wrong with it, please report this."
    )


def differences(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Describe the settings that differ, one line per setting, nested ones included.

    Parameters
    ----------
    before, now : Mapping of str to object
        Settings.
    prefix : str, default=""
        Put before the names.

    Returns
    -------
    list of str
    """
    lines: list[str] = []
    for name in sorted({*before, *now}):
        old, new = before.get(name, "not set"), now.get(name, "not set")
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            lines += differences(old, new, f"{prefix}{name}.")
        elif old != new:
            lines.append(f"{prefix}{name}: {old!r} there, {new!r} now")
    return lines


def _trade_names(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False where the system cannot."""
    if sys.platform != "linux":
        return False
    at_working_folder, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # a C library without it
        return False
    names = os.fsencode(one), os.fsencode(other)
    return bool(renameat2(at_working_folder, names[0], at_working_folder, names[1], exchange) == 0)


def _flush_to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
