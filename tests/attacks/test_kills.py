"""Commands that are killed before any of their operations on files: the old or the new is there, whole.

Training is killed in ``tests/training/test_resume.py``, a review in ``test_races.py``.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from audited_runs import MakeRun, noisy_blobs
from laplaceconfidence.auditing.issues import audit
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.export import plan_export, write_export
from laplaceconfidence.records import read_audit, write_audit
from laplaceconfidence.review.session import ReviewSession
from laplaceconfidence.review.store import read_decisions

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the process that is killed is a fork")

# Not those that happen once per image, which would take minutes.
OPERATIONS = {"os.rename", "os.rmdir", "os.chmod", "shutil.rmtree"}


def is_killed(moment: int, folder: Path, work: Callable[[], object]) -> bool:
    """Work in another process that is killed before its nth operation on files of a folder.

    Returns False if the work was done before that.
    """
    child = os.fork()
    if child == 0:
        n_left = moment

        def kill_in_time(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal n_left
            if event in OPERATIONS or (event == "open" and str(folder) in str(arguments[0])):
                n_left -= 1
                if n_left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(kill_in_time)
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0


def kills(folder: Path, work: Callable[[], object]) -> Iterator[None]:
    """Kill the work at every moment, each time in the folder as it is now, until it is done."""
    before = folder.with_name("before")
    shutil.copytree(folder, before, symlinks=True)
    moment, was_killed = 0, True
    while was_killed:
        shutil.rmtree(folder)
        shutil.copytree(before, folder, symlinks=True)
        was_killed = is_killed(moment, folder, work)
        yield
        moment += 1


def test_a_killed_audit_leaves_the_old_or_the_new_run(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run()
    session = ReviewSession(run)
    session.decide(0, "keep", label=None, expected_version=0, who="ann", queue="worst")
    session.close()
    place = tmp_path / "place"
    place.mkdir()
    folder = run.folder.rename(place / "run")
    features, given, _ = noisy_blobs()
    result = audit(read_dataset((features, given)), estimator="knn-vote", n_neighbors=3)
    found = set()
    for _ in kills(place, lambda: write_audit(result, folder, overwrite=True, discard_decisions=True)):
        left = read_audit(folder)
        assert len(left.issues) == len(left.evidence) == 90
        found.add((left.record.estimator, len(read_decisions(folder, left.record))))
    assert found == {("laplace", 1), ("knn-vote", 0)}


def content(path: Path) -> object:
    """A file or all files below a folder."""
    if path.is_file():
        return path.read_bytes()
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize(("kind", "name"), [("csv", "new.csv"), ("folder", "new")])
def test_a_killed_export_leaves_the_old_or_the_new_data(
    make_run: MakeRun, tmp_path: Path, kind: str, name: str
) -> None:
    run = make_run(kind)
    place = tmp_path / "place"
    place.mkdir()
    earlier = write_export(plan_export(run, policy="drop"), place / name)
    before = content(earlier.path), content(earlier.trail)
    later = plan_export(run, policy="reviewed-then-confident", min_probability=0.4)
    exported = write_export(later, tmp_path / name)
    after = content(exported.path), content(exported.trail)
    # Between the two renames there is the new trail beside the old data, never new data without its trail.
    states = [before, (before[0], after[1]), after]
    found = [
        states.index((content(earlier.path), content(earlier.trail)))
        for _ in kills(place, lambda: write_export(later, place / name, overwrite=True))
    ]
    assert found == sorted(found)
    assert {0, 2} <= set(found)
