"""Odd images, empty texts, missing values, rare classes, bad groups and row order, from audit to review."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from laplaceconfidence import NoisyDataset, audit, read_dataset
from laplaceconfidence.cli.app import app
from laplaceconfidence.records import AuditRun, read_audit, write_audit
from laplaceconfidence.records.gate import parse_condition, reasons_to_fail
from laplaceconfidence.records.other_issues import OtherIssues
from laplaceconfidence.report import write_report
from laplaceconfidence.review.session import ReviewSession

N = 600


def texts(folder: Path) -> Path:
    """Texts of four clusters, of which one has bad labels, in the order of a recording."""
    rng = np.random.default_rng(0)
    where = np.arange(N) % 4
    time = np.linspace(0, 6, N)
    X = 9 * np.eye(6)[where] + rng.normal(scale=0.4, size=(N, 6))
    X[:, 4] += 4 * np.cos(time)
    X[:, 5] += 4 * np.sin(time)
    labels = np.array(["apple", "pear"])[where // 2]
    wrong = (where == 2) & (rng.random(N) < 0.35)
    labels[wrong] = "apple"
    labels[[17, 117, 217]] = "plum"
    frame = pd.DataFrame(X, columns=[f"emb_{column}" for column in range(6)])
    frame["label"], frame["text"] = labels, [f"text {row}" for row in range(N)]
    frame.loc[[5, 6], "text"] = [" ", ""]
    frame.to_csv(folder / "texts.csv", index=False)
    return folder / "texts.csv"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> AuditRun:
    folder = tmp_path_factory.mktemp("findings")
    source = texts(folder)
    result = audit(
        read_dataset(source, features="emb_*"), estimator="knn-vote", n_neighbors=10, random_state=0
    )
    described = {"source": str(source), "options": {"features": "emb_*"}}
    write_audit(result, folder / "run", source=described)
    return read_audit(folder / "run")


def test_the_record_counts_them(run: AuditRun) -> None:
    record, issues = run.record, run.issues
    assert record.n_empty == 2
    assert record.n_rare_class == 3
    assert record.n_image_issues is None
    assert record.n_group_issues == issues["is_group_issue"].sum() > 50
    assert record.row_order is not None
    assert not record.row_order.is_random
    in_groups = issues.sort_index()["is_group_issue"].to_numpy()
    assert np.mean(np.arange(N)[in_groups] % 4 == 2) > 0.95
    (reason,) = reasons_to_fail([parse_condition("empty > 1")], run)
    assert "2 samples" in reason


def test_queues_hold_them(run: AuditRun) -> None:
    session = ReviewSession(run)
    try:
        rows = session.queues.rows_of
        assert rows["empty"].tolist() == [5, 6]
        assert len(rows["images"]) == 0
        groups = OtherIssues.of(run).in_worst_groups
        assert rows["groups"].tolist() == groups.tolist()
        table = run.issues.sort_index()
        first = table.loc[rows["groups"][0]]
        assert first["group"] == table.loc[groups, "group"].min()
        session.decide(5, "drop", label=None, expected_version=0, who="ann", queue="empty")
        assert session.progress().other_issues["empty"] == (1, 2)
        assert session.dropped_by(5) is not None
        assert sorted(rows["rare"].tolist()) == [17, 117, 217]
        scores = table["label_score"].loc[rows["rare"]]
        assert scores.is_monotonic_increasing
        assert len(rows["missing"]) == 0
        assert len(rows["order"]) == run.record.n_row_order == table["is_row_order_issue"].sum() > 0
        assert table["row_order_score"].loc[rows["order"]].is_monotonic_increasing
    finally:
        session.close()


def test_the_report_shows_them(run: AuditRun) -> None:
    pytest.importorskip("matplotlib")
    page = write_report(run.folder, run.folder.parent / "report.html").path.read_text(encoding="utf-8")
    sections = ("2 empty texts", "with many wrong labels", "plum (3)", "not in random order", "queue order")
    for words in sections:
        assert words in page
    assert "odd image" not in page


def test_the_command_tells_of_them(run: AuditRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.folder.parent)
    monkeypatch.setenv("COLUMNS", "200")
    words = [
        "audit",
        "texts.csv",
        "--features",
        "emb_*",
        "--estimator",
        "knn-vote",
        "-k",
        "10",
        "--out",
        "again",
    ]
    done = CliRunner().invoke(app, [*words, "--fail-if", "rare-class > 0"], catch_exceptions=False)
    assert done.exit_code == 1
    assert "2 empty texts, 3 samples of rare classes" in done.stdout
    assert "not in random order" in done.stdout
    assert "Failed: rare-class > 0: 3 samples (0.5%)." in done.stderr


def test_missing_values_are_counted_shown_and_queued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    stays = np.arange(120) % 2
    frame = pd.DataFrame(
        {
            "age": rng.normal(35 + 20 * stays, 3).round(),
            "income": rng.normal(30 + 20 * stays, 3).round(1),
            "city": np.array(["Rome", "Oslo"])[stays],
            "stays": np.array(["no", "yes"])[stays],
        }
    )
    frame.loc[[3, 4, 5], "income"] = np.nan
    frame.loc[[4, 5], "city"] = None
    frame.loc[5, "age"] = np.nan
    frame.to_csv(tmp_path / "customers.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    words = ["audit", "customers.csv", "--label", "stays", "--features", "age,income,city", "--no-cache"]
    done = CliRunner().invoke(
        app,
        [*words, "--estimator", "knn-vote", "--fail-if", "missing-values > 1", "--out", "run"],
        catch_exceptions=False,
    )
    assert done.exit_code == 1
    assert "Missing values: income 3 (2.5%), city 2 (1.7%), age 1 (0.8%)." in done.stdout
    assert "2 samples with most values missing" in done.stdout
    assert "Failed: missing-values > 1: 2 samples (1.7%)." in done.stderr
    run = read_audit(tmp_path / "run")
    assert run.record.missing_values == {"age": 1, "income": 3, "city": 2}
    table = run.issues.sort_index()
    assert table["missing_values"].iloc[3:6].tolist() == ["income", "income, city", "age, income, city"]
    assert np.allclose(table["missing_value_score"].iloc[2:6], [1, 2 / 3, 1 / 3, 0])
    session = ReviewSession(run)
    assert session.queues.rows_of["missing"].tolist() == [5, 4]
    session.close()
    pytest.importorskip("matplotlib")
    page = write_report(run.folder).path.read_text(encoding="utf-8")
    assert "income 3 (2.5%)" in page
    assert "2 samples have most of their values missing" in page


def test_odd_images_are_shown_and_queued(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    images = rng.integers(0, 255, (60, 8, 8, 3), dtype=np.uint8)
    images[7] = 3
    X = 8 * np.eye(2)[labels] + rng.normal(size=(60, 2))
    result = audit(NoisyDataset.from_arrays(labels, X, images=images), estimator="knn-vote", n_neighbors=5)
    run = write_audit(result, tmp_path / "run", keep_data=True)
    assert run.record.n_image_issues == 1
    found = OtherIssues.of(run)
    assert found.odd_images.tolist() == [7]
    assert found.image_issues(7) == "dark, one color"
    assert found.image_issues(8) is None
    session = ReviewSession(run)
    assert session.queues.rows_of["images"].tolist() == [7]
    session.close()
    pytest.importorskip("matplotlib")
    page = write_report(run.folder).path.read_text(encoding="utf-8")
    assert "1 odd image" in page
    assert "dark, one color" in page
