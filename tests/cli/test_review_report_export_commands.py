"""``report``, ``review`` and ``export`` from a shell: what they say, and what bad input gets."""

import json
from pathlib import Path
from typing import Any

import pytest

from audited_runs import MakeRun, make_audit_with_other_issues
from laplaceconfidence.review.serving import listening_socket
from laplaceconfidence.review.session import ReviewSession


def test_a_report_is_written_where_it_is_wanted(run: Any, make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run("csv").folder
    done = run("report", folder, "-o", "mail.html", "--figures", "figures")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "mail.html").is_file()
    assert "figures" in done.stdout
    assert (tmp_path / "figures" / "confusion.pdf").is_file()


def test_a_dry_run_counts_and_writes_nothing(run: Any, make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run("csv").folder
    before = sorted(tmp_path.rglob("*"))
    words = ("export", folder, "--policy", "reviewed-then-confident", "--min-probability", "0.1", "--dry-run")
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    assert "9 labels changed" in done.stdout
    assert "Nobody has reviewed this run yet" in done.stdout
    assert sorted(tmp_path.rglob("*")) == before


def test_an_export_says_where_it_is(run: Any, make_run: MakeRun, tmp_path: Path) -> None:
    done = run("export", make_run("csv").folder, "-o", "fixed.csv")
    assert done.exit_code == 0, done.stderr
    assert "fixed.csv" in done.stdout
    assert (tmp_path / "fixed.trail.csv").is_file()


def test_an_export_says_which_links_it_left_out(run: Any, make_run: MakeRun, tmp_path: Path) -> None:
    made = make_run("folder")
    link = sorted((tmp_path / "data").rglob("*.png"))[0]
    link.rename(tmp_path / "outside.png")
    link.symlink_to(tmp_path / "outside.png")
    done = run("export", made.folder, "-o", "sorted")
    assert done.exit_code == 0, done.stderr
    assert "1 image left out: symbolic links out of the folder of the data" in done.stderr


def test_an_export_says_how_many_cells_have_an_apostrophe(run: Any, make_run: MakeRun) -> None:
    made = make_run("csv", texts=[f"={row}+1" for row in range(90)])
    done = run("export", made.folder, "-o", "fixed.csv")
    assert done.exit_code == 0, done.stderr
    assert "90 cells written with an apostrophe in front" in done.stderr


def test_an_export_counts_what_its_policies_leave_out(run: Any, tmp_path: Path) -> None:
    folder = make_audit_with_other_issues(tmp_path).folder
    words = ("export", folder, "--copies", "keep-one", "--outliers", "drop", "--leaks", "drop", "--dry-run")
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    assert "95 samples: 0 labels changed, 7 left out." in done.stdout
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "left out not reviewed: also in the test set 4" in lines
    assert "left out not reviewed: copy of another sample 2" in lines
    assert "left out not reviewed: outlier 1" in lines


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--copies", "all"), "'copies'"),
        (("--leaks", "drop"), "Run the audit with --test first"),
    ],
)
def test_export_policies_that_mean_nothing_are_refused(
    run: Any, make_run: MakeRun, words: tuple[str, ...], message: str
) -> None:
    done = run("export", make_run("csv").folder, *words)
    assert done.exit_code != 0
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize(("queue", "message"), [("leaks", "worst, ranked, random"), ("best", "'queue'")])
def test_a_review_begins_only_with_a_queue_that_there_is(
    run: Any, make_run: MakeRun, queue: str, message: str
) -> None:
    done = run("review", make_run("csv").folder, "--no-browser", "--queue", queue)
    assert done.exit_code != 0
    assert message in " ".join(done.stderr.split())


def test_an_audit_with_decisions_says_that_dropped_samples_are_still_there(run: Any, tmp_path: Path) -> None:
    made = make_audit_with_other_issues(tmp_path)
    session = ReviewSession(made)
    session.decide(5, "drop", label=None, expected_version=0, who="ann", queue="leaks")
    session.decide(6, "keep", label=None, expected_version=0, who="ann", queue="worst")
    session.close()
    words = ("audit", "data/texts.csv", "--features", "emb_*", "--decisions", made.folder, "--out", "again")
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    assert "1 sample of this data dropped in that review" in done.stderr
    assert "1 verified label used" in done.stdout


@pytest.mark.parametrize("command", ["report", "review", "export"])
def test_what_is_no_run_gets_a_message(run: Any, tmp_path: Path, command: str) -> None:
    for folder in (tmp_path / "missing", tmp_path):
        done = run(command, folder)
        assert done.exit_code == 2
        assert "not a run folder" in done.stderr


@pytest.mark.parametrize("command", ["report", "review", "export"])
def test_a_run_of_a_newer_version_or_half_a_run(run: Any, make_run: MakeRun, command: str) -> None:
    folder = make_run("csv").folder
    record = json.loads((folder / "audit.json").read_text())
    (folder / "audit.json").write_text(json.dumps(record | {"format_version": 99}))
    done = run(command, folder)
    assert done.exit_code == 2
    assert "Upgrade" in done.stderr
    (folder / "audit.json").unlink()
    done = run(command, folder)
    assert done.exit_code == 2
    assert "not written completely" in done.stderr


def test_a_port_in_use_gets_a_message(run: Any, make_run: MakeRun) -> None:
    with listening_socket("127.0.0.1", 0) as taken:
        done = run("review", make_run("csv").folder, "--no-browser", "--port", taken.getsockname()[1])
    assert done.exit_code == 2
    assert "cannot be used" in done.stderr


def test_a_damaged_decisions_file_gets_a_message(run: Any, make_run: MakeRun) -> None:
    folder = make_run("csv").folder
    (folder / "decisions.sqlite").write_bytes(b"scribble" * 1000)
    for command in ("review", "export"):
        done = run(command, folder, *(["--no-browser"] if command == "review" else []))
        assert done.exit_code == 2
        assert "A copy is kept at" in done.stderr.replace("\n", " ")
