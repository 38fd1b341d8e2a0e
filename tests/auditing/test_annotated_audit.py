"""Audits of labels of several annotators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from starlette.testclient import TestClient

from laplaceconfidence import AnnotatorConfidence, NoisyDataset, audit, find_label_issues
from laplaceconfidence.auditing.result import AuditResult
from laplaceconfidence.exceptions import InvalidInputError, LaplaceConfidenceWarning, RunFolderError
from laplaceconfidence.export import plan_export, write_export
from laplaceconfidence.records import read_audit
from laplaceconfidence.report.writing import write_report
from laplaceconfidence.review.guard import Access
from laplaceconfidence.review.server import create_app
from laplaceconfidence.review.session import ReviewSession

N = 150
NAMES = ("Ann", "小林 & Söhne", "عمر", "<script>")


@pytest.fixture(scope="module")
def points() -> tuple[np.ndarray, np.ndarray, pd.DataFrame]:
    """Features of three classes, the truth, and what four annotators say: 95, 80, 60 and 33% right."""
    rng = np.random.default_rng(0)
    truth = np.arange(N) % 3
    features = 3 * np.eye(3)[truth] + rng.normal(size=(N, 3))
    columns = {}
    for name, accuracy in zip(NAMES, (0.95, 0.8, 0.6, 1 / 3), strict=True):
        wrong = (truth + rng.integers(1, 3, N)) % 3
        codes = np.where(rng.random(N) < accuracy, truth, wrong)
        columns[name] = np.array(["cat", "dog", "猫"], dtype=object)[codes]
        columns[name][rng.random(N) < 0.3] = None
    return features, truth, pd.DataFrame(columns)


@pytest.fixture(scope="module")
def audited(points: tuple[np.ndarray, np.ndarray, pd.DataFrame]) -> AuditResult:
    features, _, labels = points
    return audit(NoisyDataset.from_arrays(labels, features), random_state=0)


def test_an_audit_predicts_the_consensus(points, audited):  # type: ignore[no-untyped-def]
    features, _, labels = points
    fitted = AnnotatorConfidence(random_state=0, missing_label=None).fit(features, labels)
    by_row = audited.table.sort_index()
    assert_array_equal(by_row["predicted_label"], fitted.transduction_)
    assert_allclose(by_row["predicted_probability"], fitted.label_distributions_.max(axis=1))
    single = audited.annotation.labels.set_index(["row", "annotator"])["label_score"].sort_index()
    stacked = pd.DataFrame(fitted.confidence_, columns=labels.columns).stack().dropna()
    assert_allclose(single.to_numpy(), stacked.sort_index().to_numpy())
    votes = [row.dropna().tolist() for _, row in labels.iterrows()]
    assert by_row["n_labels"].tolist() == [len(row) for row in votes]
    agreeing = [row.count(found) for row, found in zip(votes, fitted.transduction_, strict=True)]
    assert by_row["n_agreeing"].tolist() == agreeing
    assert audited.annotation.summary.n_disputed == sum(len(set(row)) > 1 for row in votes)
    most = [max(map(row.count, row), default=0) for row in votes]
    tied = [sum(row.count(x) == m for x in set(row)) > 1 for row, m in zip(votes, most, strict=True)]
    assert audited.annotation.summary.n_tied == sum(tied)
    assert audited.annotation.summary.n_changed == sum(np.array(agreeing) < most)
    assert "majority labels" in audited.statement.headline


def test_who_is_asked_has_not_labeled_the_sample(audited):  # type: ignore[no-untyped-def]
    said = set(zip(audited.annotation.labels["row"], audited.annotation.labels["annotator"], strict=True))
    asked = audited.annotation.questions
    assert len(asked) > 0
    assert said.isdisjoint(zip(asked["row"], asked["annotator"], strict=True))
    assert asked["gain"].is_monotonic_decreasing
    table = audited.table["ask_annotator"]
    assert table[asked["row"]].tolist() == asked["annotator"].tolist()


def test_one_annotator_is_a_plain_audit(points):  # type: ignore[no-untyped-def]
    features, _, labels = points
    column = labels["小林 & Söhne"]
    one = find_label_issues(column.to_frame(), features, random_state=0)
    plain = find_label_issues(column, features, random_state=0)
    shared = plain.table.columns
    pd.testing.assert_frame_equal(one.table[shared].sort_index(), plain.table.sort_index())
    assert one.noise_rate == plain.noise_rate
    assert one.estimator.noise_rate_bracket_ == plain.estimator.noise_rate_bracket_  # type: ignore[attr-defined]
    assert one.annotation is not None
    assert one.annotation.annotators["n_labels"].tolist() == [column.notna().sum()]


def test_without_features_and_overlap_nothing_is_identified():  # type: ignore[no-untyped-def]
    labels = pd.DataFrame({"Ann": ["cat", "dog", None, None], "Bo": [None, None, "cat", "dog"]})
    with pytest.warns(LaplaceConfidenceWarning, match="No sample has labels of two annotators"):
        result = find_label_issues(labels)
    assert result.statement.is_unidentified
    assert result.annotation is not None
    assert "labeled no sample that somebody else labeled" in " ".join(result.annotation.summary.sentences)


def test_an_annotator_of_one_label_is_near_what_all_share(points):  # type: ignore[no-untyped-def]
    features, truth, labels = points
    guest = np.full(N, None, dtype=object)
    guest[0] = np.array(["cat", "dog", "猫"])[(truth[0] + 1) % 3]
    result = find_label_issues(labels.assign(guest=guest), features)
    assert result.annotation is not None
    found = result.annotation.annotators.set_index("annotator").loc["guest"]
    assert found["n_labels"] == 1
    assert found["accuracy_low"] == 0
    assert found["accuracy_high"] > found["accuracy"]


def test_ten_thousand_annotators_take_little_memory():  # type: ignore[no-untyped-def]
    import tracemalloc

    rng = np.random.default_rng(0)
    n, a, per = 2_000, 10_000, 2
    truth = rng.integers(3, size=n)
    samples, who = rng.integers(n, size=a * per), np.repeat(np.arange(a), per)
    right = rng.random(a * per) < 0.8
    given = np.where(right, truth[samples], rng.integers(3, size=a * per))
    frame = pd.DataFrame({"id": samples, "who": [f"w{x}" for x in who], "label": given})
    tracemalloc.start()
    result = audit(frame.astype({"id": str}), id="id", annotator="who", label="label")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6  # a table of all samples and annotators would have 20 million entries
    assert result.annotation is not None
    assert len(result.annotation.annotators) == a
    by_id = result.table.set_index("id")["predicted_label"]
    assert (by_id == truth[by_id.index.astype(int)]).mean() > 0.95


def test_verified_labels_are_certain_for_all_annotators(points):  # type: ignore[no-untyped-def]
    features, truth, labels = points
    dataset = NoisyDataset.from_arrays(labels, features)
    classes = np.array(["cat", "dog", "猫"])
    audited = {row: str(classes[truth[row]]) for row in range(0, 60)} | {60: None}
    result = audit(dataset, audited=audited, random_state=0)
    by_row = result.table.sort_index()
    assert by_row["predicted_label"][:60].tolist() == classes[truth[:60]].tolist()
    assert (by_row["label_score"][:60] == 1).all()
    assert pd.isna(by_row["given_label"][60])
    single = result.annotation.labels.query("row < 60")  # type: ignore[union-attr]
    assert set(single["label_score"].round(6)) == {0.0, 1.0}


def test_estimators_and_settings_that_do_not_apply_are_refused(points):  # type: ignore[no-untyped-def]
    features, _, labels = points
    with pytest.raises(InvalidInputError, match="'estimator' parameter must be left out"):
        find_label_issues(labels, features, estimator="laplace")
    with pytest.raises(InvalidInputError, match="'alpha' parameter must be left out"):
        find_label_issues(labels, features, alpha=0.5)


def test_a_run_keeps_the_tables(tmp_path: Path, audited):  # type: ignore[no-untyped-def]
    run = read_audit(audited.save(tmp_path / "run"))
    tables = run.annotation
    assert tables is not None
    assert tables.summary == audited.annotation.summary
    assert len(tables.labels) == len(audited.annotation.labels)
    assert set(tables.annotators["annotator"]) == set(NAMES)
    row = int(tables.labels["row"].iloc[0])
    said = tables.of_sample(row)
    assert len(said) == audited.table["n_labels"][row]
    assert said == sorted(said, key=lambda one: -one["confidence"])
    assert tables.of_sample(10**6) == []
    for name in ("labels", "annotators", "questions"):
        assert (run.folder / f"{name}.csv").is_file()
    (run.folder / "labels.parquet").write_bytes((run.folder / "questions.parquet").read_bytes())
    with pytest.raises(RunFolderError, match="the run is damaged"):
        _ = read_audit(run.folder).annotation.labels  # type: ignore[union-attr]


def test_report_and_review_show_who_said_what(tmp_path: Path, audited):  # type: ignore[no-untyped-def]
    run = read_audit(audited.save(tmp_path / "run"))
    html = write_report(run.folder).path.read_text(encoding="utf-8")
    assert "小林 &amp; Söhne" in html
    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert "samples that annotators differ about" in html
    session = ReviewSession(run)
    client = TestClient(
        create_app(session, Access("127.0.0.1", 8), reviewer="ann"), base_url="http://127.0.0.1:8"
    )
    page = client.get("/").text
    assert page.index('data-view="disputed"') < page.index('data-view="worst"')
    rows = session.queues.rows_of["disputed"]
    assert np.all(np.diff(session.samples.probability[rows]) >= 0)
    answer = client.post("/api/next", json={"view": "disputed"})
    sample = answer.json()["sample"]
    assert sample["row"] == rows[0]
    assert {one["annotator"] for one in sample["annotators"]["said"]} <= set(NAMES)
    session.close()


def test_an_export_has_the_consensus_and_verdicts_on_labels(tmp_path: Path, audited):  # type: ignore[no-untyped-def]
    run = read_audit(audited.save(tmp_path / "run"))
    session = ReviewSession(run)
    row = int(session.queues.rows_of["disputed"][0])
    other = next(c for c in range(3) if c not in (session.samples.given[row], session.samples.offered[row]))
    session.decide(row, "other", label=other, expected_version=0, who="ann", queue="disputed")
    session.close()
    plan = plan_export(run)
    assert plan.policy == "consensus"
    exported = write_export(plan, tmp_path / "out.csv")
    table = pd.read_csv(exported.path, dtype=str, keep_default_na=False)
    by_row = audited.table.sort_index()
    expected = by_row["predicted_label"].where(by_row["given_label"].notna(), "").tolist()
    expected[row] = ("cat", "dog", "猫")[other]
    assert table["label"].tolist() == expected
    verdicts = pd.read_csv(exported.verdicts, dtype=str)
    assert len(verdicts) == audited.annotation.summary.n_labels
    assert ((verdicts["given_label"] == verdicts["exported_label"]) == (verdicts["verdict"] == "right")).all()
    assert set(verdicts.loc[verdicts["id"] == run.issues["id"][row], "verdict_by"]) == {"review"}
    filled = plan_export(run, fill_missing=True)
    assert (filled.codes != -1).all()


def test_the_policy_of_consensus_needs_annotators(tmp_path: Path, points):  # type: ignore[no-untyped-def]
    features, _, labels = points
    run = read_audit(find_label_issues(labels["عمر"], features).save(tmp_path / "run"))
    with pytest.raises(InvalidInputError, match="without labels of several annotators"):
        plan_export(run, policy="consensus")
