"""`audit --memory`: the plan, the run folder, the commands that read it, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from laplaceconfidence.cli.app import app

N = 240


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N)
    features = (4 * rng.normal(size=(3, 5))[y] + rng.normal(size=(N, 5))).astype(np.float32)
    labels = np.array(["ape", "bee", "cat"])[np.where(rng.random(N) < 0.1, (y + 1) % 3, y)]
    table = pd.DataFrame({"kind": labels, "emb": list(features), "note": [f"note {i}" for i in range(N)]})
    (tmp_path / "data").mkdir()
    table[:100].to_parquet(tmp_path / "data" / "x-0.parquet")
    table[100:].to_parquet(tmp_path / "data" / "x-1.parquet")
    return tmp_path / "data"


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def audit(data: Path, folder: Path, *more: Any) -> Any:
    options = ("--label", "kind", "--text", "note", "--estimator", "laplace", "-k", 8, "--alpha", 0.9)
    return run("audit", data, *options, "--memory", "1GB", "--out", folder, *more)


def test_an_audit_is_planned_and_read_by_the_other_commands(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    result = audit(data, folder)
    assert result.exit_code == 0, result.output
    assert "Plan: " in result.stderr
    assert "of disk, about" in " ".join(result.stderr.split())
    assert "To look at first" in result.stdout
    assert not list(tmp_path.glob(".run*"))  # no parts are left behind
    assert run("report", folder).exit_code == 0
    exported = run("export", folder, "--policy", "drop", "--out", tmp_path / "clean.parquet")
    assert exported.exit_code == 0, exported.output
    clean = pd.read_parquet(tmp_path / "clean.parquet")
    flagged = pd.read_csv(folder / "suspects.csv")
    assert 10 < flagged["is_label_issue"].sum() == len(flagged)
    assert sorted(clean["note"]) == sorted({f"note {i}" for i in range(N)} - set(flagged["text"]))
    again = run("diff", folder, folder)
    assert again.exit_code == 0, again.output


def test_conditions_of_a_pipeline(data: Path, tmp_path: Path) -> None:
    assert audit(data, tmp_path / "run", "--fail-if", "flagged > 5%").exit_code == 1


def test_it_is_overwritten_only_if_allowed(data: Path, tmp_path: Path) -> None:
    assert audit(data, tmp_path / "run").exit_code == 0
    assert "--overwrite" in audit(data, tmp_path / "run").stderr
    assert audit(data, tmp_path / "run", "--overwrite").exit_code == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--estimator", "knn-vote"), "'noise-aware', 'laplace' where an audit runs in blocks"),
        (("--memory", "20MB"), "must be at least"),
        (("--sample-for-review", 10), "left out where an audit runs in blocks"),
        (("--image-size", 10), "left out"),
        (("--cluster", "local:none"), "'local:N'"),
    ],
)
def test_what_is_refused(data: Path, tmp_path: Path, more: tuple[Any, ...], message: str) -> None:
    result = audit(data, tmp_path / "run", *more)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_the_review_reads_pages(data: Path, tmp_path: Path) -> None:
    from laplaceconfidence.records import read_audit
    from laplaceconfidence.review.session import ReviewSession

    assert audit(data, tmp_path / "run").exit_code == 0
    session = ReviewSession(read_audit(tmp_path / "run"))
    try:
        row = int(session.samples.first_rows[0])
        assert session.samples.neighbors(row, 3)
        assert session.samples.top_classes(row)[0][0] == session.samples.suggested[row]
    finally:
        session.store.close()
