"""On a disk that is really full: nothing confirmed is lost, and every command says what is wrong."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from review_page import OpenPage
from typer.testing import CliRunner

from audited_runs import MakeRun
from laplaceconfidence.cli.app import app
from laplaceconfidence.records import AuditRun, read_audit
from laplaceconfidence.review.store import read_decisions

pytest.importorskip("fastapi")


class SmallDisk:
    """A file system of 3 MB."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self) -> None:
        with suppress(OSError), (self.path / "filler").open("ab", buffering=0) as file:
            while file.write(bytes(4096)):
                pass

    def free(self) -> None:
        (self.path / "filler").unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(path)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small file system can only be mounted by an administrator")
    yield SmallDisk(path)
    subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture
def run(make_run: MakeRun, disk: SmallDisk) -> AuditRun:
    shutil.copytree(make_run().folder, disk.path / "run")
    return read_audit(disk.path / "run")


def test_decisions_survive_a_full_disk(run: AuditRun, disk: SmallDisk, open_page: OpenPage) -> None:
    page = open_page(run)
    confirmed = []
    disk.fill()
    sample = page.next()["sample"]
    for _ in range(200):  # the file of decisions may have some space left
        answer = page.decide(sample, "keep")
        if answer.status_code != 200:
            break
        confirmed.append(sample["row"])
        sample = answer.json()["sample"] or page.next(view="random")["sample"]
    assert answer.status_code == 507
    assert "is full" in answer.json()["message"]
    disk.free()
    assert page.decide(sample, "keep").status_code == 200
    page.session.close()
    found = {decision.row for decision in read_decisions(run.folder, run.record)}
    assert found == {*confirmed, sample["row"]}


@pytest.mark.parametrize("is_reviewed", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        ("export", "run", "-o", "fixed.csv"),
        ("export", "run", "-o", "fixed.parquet"),
        ("export", "run", "-o", "fixed.npz"),
        ("export", "run", "-o", "fixed.jsonl"),
        ("report", "run"),
        ("review", "run", "--no-browser"),
        ("audit", "../data/texts.csv", "--features", "emb_*", "-k", "6", "-o", "new"),
    ],
    ids=" ".join,
)
def test_every_command_says_that_the_disk_is_full(
    run: AuditRun,
    disk: SmallDisk,
    open_page: OpenPage,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    is_reviewed: bool,
) -> None:
    monkeypatch.chdir(disk.path)
    if is_reviewed:
        page = open_page(run)
        page.decide(page.next()["sample"], "keep")
        page.session.close()
    before = sorted(path.name for path in (*disk.path.iterdir(), *run.folder.iterdir()))
    disk.fill()
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 2
    assert "disk" in done.stderr
    assert "is full" in done.stderr
    assert "damaged" not in done.stderr
    disk.free()
    after = sorted(path.name for path in (*disk.path.iterdir(), *run.folder.iterdir()))
    assert [name for name in after if not name.endswith(("-wal", "-shm"))] == before
    assert len(read_decisions(run.folder, run.record)) == is_reviewed


def test_training_says_that_the_disk_is_full_and_is_resumed(
    run: AuditRun, disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(disk.path)
    words = [
        "train",
        "../data/texts.csv",
        "--features",
        "emb_*",
        "--method",
        "cross_entropy",
        "--rounds",
        "2",
    ]
    words += ["--device", "cpu", "--seed", "1", "--out", "trained"]
    disk.fill()
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 2
    assert "No space left" in done.stderr
    assert "Free some space" in done.stderr
    disk.free()
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
