"""``audit --fail-if`` for pipelines, and ``laplaceconfidence diff``."""

from pathlib import Path
from typing import Any

import pandas as pd

from laplaceconfidence.csv_files import unguarded_cells
from laplaceconfidence.records import read_audit

OPTIONS = ("--label", "mood", "--features", "emb_*", "--text", "review", "--id", "number", "-k", "5")
KNN = ("--estimator", "knn-vote")


def test_the_exit_code_says_whether_a_condition_is_met(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    done = run("audit", "reviews.csv", *OPTIONS, "--fail-if", "noise > 50%", "--fail-if", "outliers > 59")
    assert done.exit_code == 0, done.stderr
    failed = run("audit", "reviews.csv", *OPTIONS, "--fail-if", "flagged > 0", "--out", "again")
    assert failed.exit_code == 1
    assert "Failed: flagged > 0: 3 labels (5.1%)." in failed.stderr
    assert (tmp_path / "again/audit.json").is_file()


def test_conditions_are_checked_before_anything_is_read(run: Any, tmp_path: Path) -> None:
    (tmp_path / "broken.csv").write_text("")
    for words, message in (
        (("--fail-if", "wrong > 1"), "noise, missing, flagged"),
        (("--fail-if", "leaks > 0"), "--test"),
        (("--fail-if", "new-leaks > 0"), "--test"),
        (("--fail-if", "new-flagged > 0"), "--baseline"),
        (("--baseline", "nowhere"), "only applies to '--fail-if'"),
        (("--baseline", "nowhere", "--fail-if", "new-flagged > 0"), "not a run folder"),
    ):
        done = run("audit", "broken.csv", *words)
        assert done.exit_code == 2, words
        assert message in done.stderr, words


def test_only_what_is_new_fails(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    new = ("--baseline", "first", "--fail-if", "new-flagged > 0")
    assert run("audit", "reviews.csv", *OPTIONS, "--out", "first").exit_code == 0
    assert run("audit", "reviews.csv", *OPTIONS, *new, "--out", "second").exit_code == 0
    table.loc[50, "mood"] = "[red]good"
    table.to_csv(tmp_path / "reviews.csv", index=False)
    failed = run("audit", "reviews.csv", *OPTIONS, *new, "--out", "first", "--overwrite")
    assert failed.exit_code == 1
    assert "1 sample not flagged before (r50)" in failed.stderr


def test_diff_shows_and_writes_what_changed(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    assert run("audit", "reviews.csv", *OPTIONS, *KNN, "--out", "first").exit_code == 0
    same = run("diff", "first", "first")
    assert same.exit_code == 0
    assert "60 samples in both audits; 0 labels changed in the data." in same.stdout
    table.loc[50, "mood"] = "[red]good"
    table.drop(index=[59]).to_csv(tmp_path / "reviews.csv", index=False)
    assert run("audit", "reviews.csv", *OPTIONS, *KNN, "--search", "exact", "--out", "second").exit_code == 0
    done = run("diff", "first", "second", "--out", "changes.csv")
    assert done.exit_code == 0, done.stderr
    assert "59 samples in both audits, 1 gone; 1 label changed in the data." in done.stdout
    assert "Flagged now and not before" in done.stdout
    assert "r50" in done.stdout
    assert "search" in done.stdout
    changes = unguarded_cells(pd.read_csv(tmp_path / "changes.csv"))
    found = set(zip(changes["id"], changes["change"], strict=True))
    assert {("r50", "label changed"), ("r50", "+flagged"), ("r59", "gone")} <= found
    assert run("diff", "first", "nowhere").exit_code == 2


def test_components_that_an_encoder_found_are_no_setting(run: Any, tmp_path: Path) -> None:
    words = ("red", "blue", "green", "gold", "warm", "cold", "dry", "wet")
    texts = [f"{words[i % 8]} {words[i % 5]} {words[i % 3]} {words[i % 7]}" for i in range(60)]
    frame = pd.DataFrame({"text": texts, "label": [words[i % 2] for i in range(60)]})
    for name, n in (("first", 60), ("second", 40)):
        frame[:n].to_csv(tmp_path / f"{name}.csv", index=False)
        assert run("audit", f"{name}.csv", "--out", name).exit_code == 0
    widths = [read_audit(tmp_path / name).record.settings["n_components"] for name in ("first", "second")]
    assert widths[0] != widths[1]
    assert "different settings" not in run("diff", "first", "second").stdout
