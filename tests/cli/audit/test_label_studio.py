"""Decisions that people made in Label Studio, brought back with ``audit --decisions``."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from laplaceconfidence.records import read_audit

OPTIONS = ("--label", "mood", "--features", "emb_*", "--text", "review", "--id", "number", "-k", "5")


@pytest.fixture
def tasks(run: Any, table: pd.DataFrame, tmp_path: Path) -> list[dict[str, Any]]:
    """The tasks of an export, as Label Studio returns them before anybody has annotated one."""
    assert run("audit", "reviews.csv", *OPTIONS, "--out", "first").exit_code == 0
    done = run("export", "first", "--format", "label-studio", "--out", "tasks.json")
    assert done.exit_code == 0, done.stderr
    assert "for Label Studio" in done.stdout
    content = json.loads((tmp_path / "tasks.json").read_text())
    return [{"id": 100 + number, "annotations": [], **task} for number, task in enumerate(content)]


def annotate(task: dict[str, Any], choice: str) -> None:
    result = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": [choice]}}
    task["annotations"].append({"result": [result], "was_cancelled": False})


def suggestion(task: dict[str, Any]) -> str:
    return str(task["predictions"][0]["result"][0]["value"]["choices"][0])


def test_choices_replace_the_given_labels(run: Any, tasks: list[dict[str, Any]], tmp_path: Path) -> None:
    ids = [task["data"]["id"] for task in tasks]
    for task in tasks[:3]:
        annotate(task, suggestion(task))
    (tmp_path / "done.json").write_text(json.dumps(tasks))
    done = run("audit", "reviews.csv", *OPTIONS, "--decisions", "done.json", "--out", "second")
    assert done.exit_code == 0, done.stderr
    assert "3 verified labels used" in done.stdout
    issues = read_audit(tmp_path / "second").issues.set_index("id")
    for task in tasks[:3]:
        assert (
            issues.loc[task["data"]["id"], "given_label"]
            == task["predictions"][0]["result"][0]["value"]["choices"][0]
        )
        assert issues.loc[task["data"]["id"], "label_score"] == 1.0
    record = read_audit(tmp_path / "second").record
    assert record.source["n_decisions"] == 3
    assert Path(record.source["decisions"]).name == "done.json"
    assert len(set(ids)) == len(ids)
    # The corrections are exported from the second run.
    exported = run("export", "second", "--out", "fixed.csv")
    assert exported.exit_code == 0, exported.stderr
    assert "verified before this audit" in exported.stdout


def test_labels_that_changed_in_between_are_left_out(
    run: Any, tasks: list[dict[str, Any]], tmp_path: Path
) -> None:
    for task in tasks[:3]:
        annotate(task, suggestion(task))
    tasks[0]["data"]["given_label"] = "another"
    tasks[1]["data"]["id"] = "gone"
    (tmp_path / "done.json").write_text(json.dumps(tasks))
    changed = run("audit", "reviews.csv", *OPTIONS, "--decisions", "done.json", "--out", "second")
    assert changed.exit_code == 0, changed.stderr
    assert "1 decision in done.json not used: their samples are not in this data (gone)" in changed.stderr
    assert "1 decision in done.json not used: the data has another label now" in changed.stderr
    assert read_audit(tmp_path / "second").record.source["n_decisions_left_out"] == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "tasks of Label Studio"),
        ([{"id": 1, "data": {"id": "r1"}, "annotations": []}], "made a choice"),
        ({"a": 1}, "tasks of Label Studio"),
    ],
)
def test_other_files_are_refused(
    run: Any, table: pd.DataFrame, tmp_path: Path, content: Any, message: str
) -> None:
    (tmp_path / "done.json").write_text(json.dumps(content))
    refused = run("audit", "reviews.csv", *OPTIONS, "--decisions", "done.json")
    assert refused.exit_code == 2
    assert message in refused.stderr


def test_unknown_classes_and_truncated_files_are_refused(
    run: Any, tasks: list[dict[str, Any]], tmp_path: Path
) -> None:
    annotate(tasks[0], "unheard of")
    text = json.dumps(tasks)
    (tmp_path / "done.json").write_text(text)
    refused = run("audit", "reviews.csv", *OPTIONS, "--decisions", "done.json", "--out", "second")
    assert refused.exit_code == 2
    assert "unheard of" in refused.stderr
    (tmp_path / "done.json").write_text(text[:-5])
    refused = run("audit", "reviews.csv", *OPTIONS, "--decisions", "done.json", "--out", "second")
    assert refused.exit_code == 2
    assert "truncated" in refused.stderr
