"""The store of decisions: nothing is lost, nothing is overwritten unseen."""

import errno
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from audited_runs import MakeRun
from laplaceconfidence import folder_lock
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.records import AuditRun
from laplaceconfidence.records.run_folder import check_place, new_run_folder
from laplaceconfidence.review.decisions import NewDecision
from laplaceconfidence.review.session import ReviewSession
from laplaceconfidence.review.store import DecisionStore, read_decisions
from laplaceconfidence.review.store_errors import (
    BusyStoreError,
    DiskFullError,
    StaleDecisionError,
    StoreGoneError,
)


def new_decision(row: int, version: int = 0, verdict: str = "keep", label: int | None = 1) -> NewDecision:
    return NewDecision(row, f"s{row}", version, verdict, label, {"suggested": "cat"})  # type: ignore[arg-type]


@pytest.fixture
def run(make_run: MakeRun) -> AuditRun:
    return make_run("npz")


@pytest.fixture
def store(run: AuditRun) -> DecisionStore:
    return DecisionStore(run.folder, run.record)


def test_a_decision_is_read_back(store: DecisionStore, run: AuditRun) -> None:
    store.decide([new_decision(3)], who="ann", queue="worst")
    (found,) = read_decisions(run.folder, run.record)
    assert (found.row, found.version, found.verdict, found.label, found.who) == (3, 1, "keep", 1, "ann")


def test_the_log_says_who_when_and_what_was_shown(store: DecisionStore) -> None:
    store.decide([new_decision(3)], who="ann", queue="random")
    (entry,) = store.log()
    assert entry["who"] == "ann"
    assert entry["queue"] == "random"
    assert entry["sample_id"] == "s3"
    assert entry["shown"] == {"suggested": "cat"}
    assert entry["at"].endswith("+00:00")


def test_a_decision_based_on_something_old_is_refused_and_changes_nothing(store: DecisionStore) -> None:
    store.decide([new_decision(3)], who="ann", queue="worst")
    with pytest.raises(StaleDecisionError, match="ann decided"):
        store.decide([new_decision(4), new_decision(3, version=0, verdict="none")], who="bob", queue="worst")
    assert [(d.row, d.verdict) for d in store.all()] == [(3, "keep")]


def test_undo_restores_what_was_before_and_keeps_the_log(store: DecisionStore) -> None:
    store.decide([new_decision(3)], who="ann", queue="worst")
    store.decide([new_decision(3, 1, "none", None)], who="ann", queue="worst")
    (restored,) = store.undo(who="ann")
    assert (restored.verdict, restored.label, restored.version) == ("keep", 1, 3)
    (restored,) = store.undo(who="ann")
    assert (restored.verdict, restored.version) == (None, 4)
    assert store.undo(who="ann") == []
    assert len(list(store.log())) == 4


def test_undo_gives_back_what_somebody_else_had_said(store: DecisionStore) -> None:
    store.decide([new_decision(3)], who="bob", queue="random")
    store.decide([new_decision(3, 1, "none", None)], who="ann", queue="worst")
    (restored,) = store.undo(who="ann")
    assert (restored.verdict, restored.who, restored.queue, restored.version) == ("keep", "bob", "random", 3)
    assert [entry["who"] for entry in store.log()] == ["bob", "ann", "ann"]


def test_many_at_once_are_undone_at_once_and_only_by_who_decided(store: DecisionStore) -> None:
    store.decide([new_decision(row) for row in range(1, 1200)], who="ann", queue="bulk")
    assert store.undo(who="bob") == []
    assert len(store.undo(who="ann")) == 1199


def test_what_another_person_changed_is_not_undone(store: DecisionStore) -> None:
    store.decide([new_decision(3)], who="ann", queue="worst")
    store.decide([new_decision(3, 1, "none", None)], who="bob", queue="worst")
    with pytest.raises(StaleDecisionError):
        store.undo(who="ann")


def test_the_log_cannot_be_changed(store: DecisionStore) -> None:
    store.decide([new_decision(3)], who="ann", queue="worst")
    with sqlite3.connect(store.path) as other, pytest.raises(sqlite3.IntegrityError, match="only grows"):
        other.execute("DELETE FROM log")


def test_another_process_sees_a_decision_at_once(store: DecisionStore, run: AuditRun) -> None:
    before = store.data_version()
    other = DecisionStore(run.folder, run.record)
    other.decide([new_decision(5)], who="bob", queue="worst")
    assert store.data_version() != before
    assert [decision.row for decision in store.all()] == [5]
    other.close()


def test_a_killed_process_loses_nothing(run: AuditRun) -> None:
    script = f"""
import os, signal
from laplaceconfidence.records import read_audit
from laplaceconfidence.review.decisions import NewDecision
from laplaceconfidence.review.store import DecisionStore
run = read_audit({str(run.folder)!r})
store = DecisionStore(run.folder, run.record)
for row in range(20):
    store.decide([NewDecision(row, str(row), 0, "keep", 0, {{}})], who="ann", queue="worst")
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    assert [decision.row for decision in read_decisions(run.folder, run.record)] == list(range(20))


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_damaged_file_is_kept_as_a_copy(run: AuditRun, content: bytes) -> None:
    (run.folder / "decisions.sqlite").write_bytes(content)
    with pytest.raises(RunFolderError, match=r"damaged.*copy is kept at .*decisions-copy-"):
        DecisionStore(run.folder, run.record)
    (copy,) = run.folder.glob("decisions-copy-*.sqlite")
    assert copy.read_bytes() == content


def test_a_locked_file_is_said_to_be_locked(
    store: DecisionStore, run: AuditRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laplaceconfidence.review.store.SECONDS_TO_WAIT", 0.1)
    waiting = DecisionStore(run.folder, run.record)
    blocker = sqlite3.connect(store.path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(BusyStoreError, match="locked by another program"):
        waiting.decide([new_decision(1)], who="ann", queue="worst")
    blocker.execute("ROLLBACK")
    waiting.decide([new_decision(1)], who="ann", queue="worst")
    blocker.close()
    waiting.close()


def test_decisions_of_another_audit_are_refused(store: DecisionStore, run: AuditRun) -> None:
    store.close()
    path = run.folder / "audit.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"created": "2020-01-01T00:00:00+00:00"}))
    from laplaceconfidence.records import read_audit

    changed = read_audit(run.folder)
    with pytest.raises(RunFolderError, match="another audit"):
        DecisionStore(changed.folder, changed.record)


def test_a_store_whose_file_was_replaced_accepts_nothing_more(store: DecisionStore, run: AuditRun) -> None:
    store.decide([new_decision(1)], who="ann", queue="worst")
    moved = run.folder.rename(run.folder.with_name("elsewhere"))
    for _ in range(2):
        with pytest.raises(StoreGoneError, match=r"not stored.*no further one is accepted"):
            store.decide([new_decision(2)], who="ann", queue="worst")
        with pytest.raises(StoreGoneError):
            store.all()
        if moved.exists():
            moved.rename(run.folder)  # too late: what was stored in between is not known
    assert [decision.row for decision in read_decisions(run.folder, run.record)] == [1]


def test_a_run_under_review_is_not_replaced(
    store: DecisionStore, run: AuditRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_lock, "PATIENCE", 0.0)
    with pytest.raises(RunFolderError, match="is being reviewed"):  # although nothing is decided yet
        check_place(run.folder, overwrite=True, discard_decisions=True)
    store.decide([new_decision(1)], who="ann", queue="worst")
    with pytest.raises(RunFolderError, match=r"holds decisions of a review.*--discard-decisions"):
        check_place(run.folder, overwrite=True)
    store.close()
    with pytest.raises(RunFolderError, match="holds decisions of a review"):
        check_place(run.folder, overwrite=True)
    with pytest.raises(RunFolderError, match="already holds a run"):
        check_place(run.folder)
    check_place(run.folder, overwrite=True, discard_decisions=True)
    assert len(read_decisions(run.folder, run.record)) == 1


def test_a_review_that_begins_while_an_audit_is_written_is_not_lost(
    run: AuditRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_lock, "PATIENCE", 0.0)
    stores: list[DecisionStore] = []
    with (
        pytest.raises(RunFolderError, match="is being reviewed"),
        new_run_folder(run.folder, overwrite=True),
    ):
        stores.append(DecisionStore(run.folder, run.record))
    (store,) = stores
    store.decide([new_decision(1)], who="ann", queue="worst")
    store.decide([new_decision(2)], who="ann", queue="worst")
    store.close()
    with pytest.raises(RunFolderError, match="holds decisions"), new_run_folder(run.folder, overwrite=True):
        pass
    assert len(read_decisions(run.folder, run.record)) == 2
    assert sorted(path.name for path in run.folder.parent.iterdir()) == ["data", "run"]


def test_a_run_that_was_opened_but_not_decided_on_can_be_overwritten(
    store: DecisionStore, run: AuditRun
) -> None:
    store.close()
    check_place(run.folder, overwrite=True)


def test_decisions_are_never_stored_beside_another_audit(run: AuditRun) -> None:
    path = run.folder / "audit.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"created": "2020-01-01T00:00:00+00:00"}))
    with pytest.raises(RunFolderError, match="replaced by another audit"):
        DecisionStore(run.folder, run.record)
    assert not (run.folder / "decisions.sqlite").exists()


def test_a_full_disk_is_not_called_damage_and_loses_nothing(store: DecisionStore, run: AuditRun) -> None:
    store.decide([new_decision(1)], who="ann", queue="worst")
    (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(
        DiskFullError, match=r"is full.*confirmed before is stored.*Free some space"
    ) as caught:
        store.decide([new_decision(row) for row in range(2, 1000)], who="ann", queue="bulk")
    assert "damaged" not in str(caught.value)
    assert [decision.row for decision in store.all()] == [1]
    store._connection.execute("PRAGMA max_page_count = 100000")
    store.decide([new_decision(2)], who="ann", queue="worst")
    assert len(read_decisions(run.folder, run.record)) == 2
    assert not list(run.folder.glob("decisions-copy-*"))


@pytest.mark.parametrize("problem", ["full", "cut short"])
def test_a_copy_that_was_not_made_is_not_announced(
    run: AuditRun, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    def copy(source: Path, destination: Path) -> None:
        Path(destination).write_bytes(b"")
        if problem == "full":
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("laplaceconfidence.review.store_errors.shutil.copy2", copy)
    (run.folder / "decisions.sqlite").write_bytes(b"not a database at all" * 100)
    with pytest.raises(RunFolderError, match="No copy could be made") as caught:
        DecisionStore(run.folder, run.record)
    assert "copy is kept" not in str(caught.value)
    assert not list(run.folder.glob("decisions-copy-*"))


def test_an_empty_file_is_not_a_run_that_nobody_reviewed(
    store: DecisionStore, run: AuditRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laplaceconfidence.review.store_errors._SECONDS_TO_CREATE", 0.0)
    store.close()
    path = run.folder / "decisions.sqlite"
    path.write_bytes(b"")
    for read in (lambda: read_decisions(run.folder, run.record), lambda: ReviewSession(run)):
        with pytest.raises(RunFolderError, match=r"is empty \(0 bytes\).*backup"):
            read()
    assert path.read_bytes() == b""
    path.unlink()
    assert read_decisions(run.folder, run.record) == []


def test_a_log_without_its_file_is_not_deleted(store: DecisionStore, run: AuditRun) -> None:
    store.decide([new_decision(1)], who="ann", queue="worst")
    (run.folder / "decisions.sqlite").rename(run.folder.parent / "moved.sqlite")
    for read in (lambda: read_decisions(run.folder, run.record), lambda: ReviewSession(run)):
        with pytest.raises(RunFolderError, match="is missing, but"):
            read()
    (run.folder.parent / "moved.sqlite").rename(run.folder / "decisions.sqlite")
    assert len(read_decisions(run.folder, run.record)) == 1


def test_a_run_without_review_has_no_decisions_and_no_file(run: AuditRun) -> None:
    assert read_decisions(run.folder, run.record) == []
    assert not Path(run.folder / "decisions.sqlite").exists()
