"""Two processes never write into one folder."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from laplaceconfidence import folder_lock
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.folder_lock import FolderLock


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_lock, "PATIENCE", 0.0)


def test_a_second_writer_is_refused_until_the_first_is_done(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    with FolderLock(folder), pytest.raises(RunFolderError, match=f"Another process is writing into {folder}"):
        FolderLock(folder)
    with FolderLock(folder):
        assert list(folder.iterdir()) == []


def test_shared_locks_exclude_only_exclusive_ones(tmp_path: Path) -> None:
    with (
        FolderLock(tmp_path, shared=True),
        FolderLock(tmp_path, shared=True),
        pytest.raises(RunFolderError, match="in use"),
    ):
        FolderLock(tmp_path, refusal="in use")
    with FolderLock(tmp_path), pytest.raises(RunFolderError, match="Another process"):
        FolderLock(tmp_path, shared=True)
    with pytest.raises(RunFolderError, match="cannot be used"):
        FolderLock(tmp_path / "none", shared=True)


def test_a_folder_that_was_replaced_while_waiting_is_locked_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_lock, "PATIENCE", 10.0)
    first = FolderLock(tmp_path / "run")

    def replace() -> None:
        (tmp_path / "run").rmdir()
        (tmp_path / "run").mkdir()
        first.close()

    timer = threading.Timer(0.2, replace)
    timer.start()
    with FolderLock(tmp_path / "run"):
        timer.join()
        monkeypatch.setattr(folder_lock, "PATIENCE", 0.0)
        with pytest.raises(RunFolderError, match="Another process"):
            FolderLock(tmp_path / "run")


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    waits = (
        "import sys; from laplaceconfidence.folder_lock import FolderLock; "
        "held = FolderLock(sys.argv[1]); print('held', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", waits, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises(RunFolderError, match="Another process"):
        FolderLock(tmp_path)
    process.kill()
    process.communicate()
    FolderLock(tmp_path).close()


def test_what_cannot_be_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match=r"must be a folder\. There is a file of that name"):
        FolderLock(tmp_path / "file")
    with pytest.raises(RunFolderError, match="cannot be used"):
        FolderLock(tmp_path / "file" / "below")


def test_closing_twice_does_no_harm(tmp_path: Path) -> None:
    held = FolderLock(tmp_path)
    held.close()
    held.close()
    assert list(tmp_path.iterdir()) == []
