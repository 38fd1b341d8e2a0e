"""The folder of a run: written completely or not at all, and never overwritten by accident.

A run is written into a hidden folder next to its destination, which is renamed when it is complete. Its
record, a JSON file named after the kind of run, lists the files that belong to it.
"""

from __future__ import annotations

import errno
import json
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laplaceconfidence.blocks.kept_index import INDEX
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.files import is_disk_full, replace_folder, restore_folder
from laplaceconfidence.folder_lock import FolderLock
from laplaceconfidence.records.review_sample import REVIEW_SAMPLE, is_filled_in
from laplaceconfidence.run_files import SETTINGS

if TYPE_CHECKING:
    import pandas as pd

FORMAT_VERSION = 1
KINDS = ("audit", "bench")
DECISIONS = "decisions.sqlite"  # of a review
DECISION_FILES = (DECISIONS, f"{DECISIONS}-wal", f"{DECISIONS}-shm")
DERIVED = ("report.html", "thumbnails", INDEX)  # can be made again at any time


def record_name(kind: str) -> str:
    """Return the name of the file that holds the record of a run.

    Parameters
    ----------
    kind : {"audit", "bench"}
        Kind of the run.

    Returns
    -------
    str
    """
    return f"{kind}.json"


def check_place(folder: str | Path, *, overwrite: bool = False, discard_decisions: bool = False) -> Path:
    """Check that a run can be written into a folder.

    Parameters
    ----------
    folder : str or pathlib.Path
        The folder.
    overwrite : bool, default=False
        Whether a run that is there may be replaced.
    discard_decisions : bool, default=False
        Whether it may be replaced even if it holds decisions of a review.

    Returns
    -------
    pathlib.Path
        Its absolute path.

    Raises
    ------
    RunFolderError
        If the folder is a file or a link, holds other files, a run or decisions, is being reviewed, or cannot
        be written.
    """
    target = Path(folder).absolute()
    restore_folder(target)
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise RunFolderError(f"The output folder {target} is a file or a link: choose another name.")
    if target.is_dir():
        _check_replaceable(target, overwrite, discard_decisions)
        if overwrite and any(target.iterdir()):
            _lock_against_reviews(target).close()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        trial = _hidden_sibling(target)
        trial.mkdir()
        trial.rmdir()
    except OSError as error:
        raise _cannot_write(target, error) from error
    return target


@contextmanager
def reserved_place(
    folder: str | Path, *, overwrite: bool = False, discard_decisions: bool = False
) -> Iterator[Path]:
    """Check a folder as ``check_place`` does, and keep other processes from writing a run there in the block.

    Parameters
    ----------
    folder : str or pathlib.Path
        The folder.
    overwrite, discard_decisions : bool, default=False
        As in ``check_place``.

    Yields
    ------
    pathlib.Path
        Its absolute path.

    Raises
    ------
    RunFolderError
        As ``check_place``, or if another process is writing a run there.
    """
    target = check_place(folder, overwrite=overwrite, discard_decisions=discard_decisions)
    lock_folder = target.with_name(f".{target.name}.writing")
    refusal = (
        f"Another process is writing a run into {target}. Wait for it, stop it, or choose another folder."
    )
    with FolderLock(lock_folder, refusal=refusal):
        try:
            # Another process may have finished while this one waited for the lock.
            check_place(folder, overwrite=overwrite, discard_decisions=discard_decisions)
            yield target
        finally:
            with suppress(OSError):
                lock_folder.rmdir()


@contextmanager
def new_run_folder(
    folder: str | Path, *, overwrite: bool = False, discard_decisions: bool = False
) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to ``folder`` if the block succeeds, else removed.

    Parameters
    ----------
    folder : str or pathlib.Path
        The folder to write.
    overwrite : bool, default=False
        Whether a run that is there may be replaced.
    discard_decisions : bool, default=False
        Whether it may be replaced even if it holds decisions of a review.

    Yields
    ------
    pathlib.Path
        The temporary folder.

    Raises
    ------
    RunFolderError
        As ``check_place``; also if a run, a decision or a review appeared there while the block ran.
    """
    target = check_place(folder, overwrite=overwrite, discard_decisions=discard_decisions)
    try:
        temporary = _hidden_sibling(target)
        temporary.mkdir()
        try:
            yield temporary
            _replace(temporary, target, overwrite, discard_decisions)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    except RunFolderError:
        raise
    except OSError as error:
        raise _cannot_write(target, error) from error


def read_record(folder: str | Path, kind: str) -> dict[str, Any]:
    """Read the record of a run.

    Parameters
    ----------
    folder : str or pathlib.Path
        The folder of the run.
    kind : {"audit", "bench"}
        Kind of the run.

    Returns
    -------
    dict of str to object
        The content of the JSON file.

    Raises
    ------
    RunFolderError
        If there is no run of this kind, if it is incomplete, or if its format is not known.
    """
    folder = Path(folder)
    path = folder / record_name(kind)
    restore_folder(folder.absolute())
    if not folder.is_dir():
        raise RunFolderError(f"{folder} is not a run folder: there is no such folder.")
    if not path.is_file():
        _raise_for_no_record(folder, kind)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFolderError(
            f"{path} cannot be read ({error}): the run is damaged. Run the command again."
        ) from error
    if not isinstance(record, dict) or record.get("kind") != kind:
        raise RunFolderError(f"{path} is not the record of a run of the kind {kind!r}.")
    version = record.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise RunFolderError(f"{path} has no valid 'format_version' (got {version!r}): the run is damaged.")
    if version > FORMAT_VERSION:
        writer = record.get("versions", {}).get("laplaceconfidence", "a newer version")
        raise RunFolderError(
            f"{folder} was written by laplaceconfidence {writer} in format {version}; this version reads "
            f"formats up to {FORMAT_VERSION}. Upgrade with: pip install --upgrade laplaceconfidence"
        )
    if lost := [name for name in record.get("files", []) if not (folder / name).is_file()]:
        raise RunFolderError(f"{folder} is incomplete: {', '.join(lost)} is missing. Run the command again.")
    return record


def read_table(path: Path) -> pd.DataFrame:
    """Read a table of a run.

    Parameters
    ----------
    path : pathlib.Path
        A .parquet file.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    RunFolderError
        If it cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, page_checksum_verification=True)
        table.validate(full=True)
        frame: pd.DataFrame = table.to_pandas()
        return frame
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        pa.ArrowException,
    ) as error:  # damage may be anywhere
        raise RunFolderError(
            f"{path} cannot be read ({error}): the run is damaged. Run the command again."
        ) from error


def _raise_for_no_record(folder: Path, kind: str) -> None:
    others = [other for other in KINDS if other != kind and (folder / record_name(other)).is_file()]
    if others:
        raise RunFolderError(f"{folder} holds a run of the kind {others[0]!r}, not {kind!r}.")
    if (folder / SETTINGS).is_file():
        raise RunFolderError(
            f"{folder} holds a training run, not a run of the kind {kind!r}. 'laplaceconfidence report', "
            "'review' and 'export' take training runs."
        )
    if any(folder.glob("*.parquet")):
        raise RunFolderError(
            f"{folder} has no {record_name(kind)}: the run was not written completely. Run the command again."
        )
    raise RunFolderError(
        f"{folder} is not a run folder: it has no {record_name(kind)}. "
        f"'laplaceconfidence {kind} SOURCE --out FOLDER' writes one."
    )


def _check_replaceable(target: Path, overwrite: bool, discard_decisions: bool) -> None:
    """Raise unless the folder is empty, or holds nothing but a run and may be overwritten."""
    present = sorted(entry.name for entry in target.iterdir())
    if not present:
        return
    own = _own_files(target)
    if own:
        own |= {name for name in present if name in DECISION_FILES or name.startswith("decisions-copy-")}
    if foreign := [name for name in present if name not in own]:
        shown = ", ".join(foreign[:5]) + (", ..." if len(foreign) > 5 else "")
        raise RunFolderError(
            f"The output folder {target} holds files that are not part of a run ({shown}) and would be lost: "
            "choose another folder."
        )
    if not overwrite:
        raise RunFolderError(
            f"The output folder {target} already holds a run: choose another one, or allow it to be replaced "
            "with --overwrite (overwrite=True)."
        )
    if not discard_decisions and _holds_decisions(target):
        raise RunFolderError(
            f"The output folder {target} holds decisions of a review ({DECISIONS}), which would be lost: "
            "choose another folder, and reuse them there with --decisions; or allow them to be deleted with "
            "--overwrite --discard-decisions (discard_decisions=True)."
        )


def _holds_decisions(folder: Path) -> bool:
    """Whether anybody has decided anything; a file that cannot be read may hold decisions."""
    if any(folder.glob("decisions-copy-*")):
        return True
    path = folder / DECISIONS
    if not path.exists():
        return any((folder / name).exists() for name in DECISION_FILES)
    try:
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute("SELECT 1 FROM log LIMIT 1").fetchone() is not None
    except sqlite3.Error:
        return True


def _lock_against_reviews(target: Path) -> FolderLock:
    return FolderLock(
        target,
        refusal=f"{target} is being reviewed: stop 'laplaceconfidence review' before the run is replaced, or "
        "choose another folder. Nothing was changed.",
    )


def _own_files(folder: Path) -> set[str]:
    own: set[str] = set()
    for kind in KINDS:
        path = folder / record_name(kind)
        if path.is_file():
            try:
                files = json.loads(path.read_text(encoding="utf-8"))["files"]
            except (OSError, ValueError, KeyError, TypeError):
                continue  # damaged: it is not known which files belong to the run
            own |= {path.name, *(str(name) for name in files), *DERIVED}
            if not is_filled_in(folder / REVIEW_SAMPLE):
                own.add(REVIEW_SAMPLE)
    return own


def _replace(temporary: Path, target: Path, overwrite: bool, discard_decisions: bool) -> None:
    try:
        temporary.rename(target)  # succeeds if there is no such folder, or an empty one
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    with _lock_against_reviews(target):
        _check_replaceable(target, overwrite, discard_decisions)  # as it is now
        replace_folder(temporary, target)


def _cannot_write(target: Path, error: OSError) -> RunFolderError:
    if is_disk_full(error):
        return RunFolderError(
            f"The output folder {target} cannot be written because the disk is full. Nothing that was there "
            "was changed. Free some space, or choose a folder on another disk."
        )
    reason = error.strerror or str(error)
    return RunFolderError(f"The output folder {target} cannot be written: {reason}. Choose another folder.")


def _hidden_sibling(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}")
