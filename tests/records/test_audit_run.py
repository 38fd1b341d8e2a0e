"""What an audit leaves on disk comes back as it was, or is refused with a reason."""

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from laplaceconfidence import NoisyDataset, audit, find_label_issues, folder_lock
from laplaceconfidence.auditing.result import AuditResult
from laplaceconfidence.auditing.review_sample import ReviewSample
from laplaceconfidence.auditing.verified_tables import read_verified
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.records import read_audit, write_audit
from laplaceconfidence.records.evidence_table import top_classes
from laplaceconfidence.records.review_sample import write_review_sample
from laplaceconfidence.records.run_folder import check_place, new_run_folder, reserved_place

FILES = {"audit.json", "issues.csv", "issues.parquet", "evidence.parquet"}


@pytest.fixture(
    scope="module", params=[{"estimator": "laplace", "n_neighbors": 12}, {}], ids=["laplace", "default"]
)
def result(request: pytest.FixtureRequest) -> AuditResult:
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    data = NoisyDataset.from_arrays(
        [None if row == 7 else ["no", "yes, <b>", "猫🐈"][code] for row, code in enumerate(truth)],
        np.eye(3)[truth] + rng.normal(scale=0.2, size=(60, 3)),
        ids=[f"a,{row}\n" for row in range(60)],
        sources=[f"text \N{BULLET} {row}" for row in range(60)],
        source_kind="text",
    )
    labels = data.labels.copy()
    labels[:3] = [1, 2, 0]
    return audit(data.with_labels(labels), random_state=5, **request.param)


@pytest.fixture
def run_folder(result: AuditResult, tmp_path: Path) -> Path:
    write_audit(result, tmp_path / "run")
    return tmp_path / "run"


def test_a_run_comes_back_as_it_was(result: AuditResult, tmp_path: Path) -> None:
    written = write_audit(result, tmp_path / "a" / "run", source={"source": "x.csv"}, warnings=("careful",))
    assert {path.name for path in (tmp_path / "a" / "run").iterdir()} == FILES
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["run"]
    run = read_audit(tmp_path / "a" / "run")
    assert run.record == written.record
    pd.testing.assert_frame_equal(run.issues, result.table, check_index_type=False)
    record = run.record
    assert record.source == {"source": "x.csv"}
    assert record.warnings == ("careful",)
    assert record.class_names == ("no", "yes, <b>", "猫🐈")
    assert record.class_values == record.class_names
    assert record.source_kind == "text"
    assert (record.n_samples, record.n_labeled, record.n_classes, record.n_features) == (60, 59, 3, 3)
    assert record.n_issues == result.n_issues > 0
    assert record.noise_rate == result.noise_rate
    assert record.settings["random_state"] == 5
    assert record.timings["total"] > 0
    assert record.versions == result.versions


def test_the_record_holds_what_the_estimator_reports(result: AuditResult, run_folder: Path) -> None:
    record = read_audit(run_folder).record
    assert (record.search, record.recall) == ("exact", 1.0)
    assert record.residual is not None
    assert record.residual < 2e-2
    if result.estimator_name == "laplace":
        assert record.n_neighbors == 12
        assert record.residual < 1e-3
        assert record.converged is True
        assert record.energy is not None
        assert record.energy[1] < record.energy[0]
        assert record.noise_rate_bracket is None
    else:
        assert result.estimator_name == "noise-aware"
        assert record.n_neighbors == 30
        assert record.noise_rate_bracket is not None
        low, high = record.noise_rate_bracket
        assert low <= record.noise_rate <= high
        assert (record.converged, record.energy) == (None, None)


def test_the_csv_says_the_same(result: AuditResult, run_folder: Path) -> None:
    table = pd.read_csv(run_folder / "issues.csv").set_index("row")
    assert table.id.tolist() == result.table.id.tolist()
    assert table.given_label.fillna("").tolist() == result.table.given_label.fillna("").tolist()
    np.testing.assert_allclose(table.label_score, result.table.label_score)


def test_the_evidence_is_that_of_the_explanations(result: AuditResult, run_folder: Path) -> None:
    evidence = read_audit(run_folder).evidence
    for row in (0, 1, 30):
        told = result.explain(row)
        kept = evidence.loc[row]
        assert kept.n_neighbors == len(told.neighbors)
        assert kept.neighbors.tolist() == told.neighbors.index[:10].tolist()
        np.testing.assert_allclose(kept.weights, told.neighbors.weight[:10], rtol=1e-5)
        np.testing.assert_allclose(kept.similarities, told.neighbors.similarity[:10], rtol=1e-5)
        order = np.argsort(-result.distributions[row], kind="stable")
        assert kept.top_classes.tolist() == order.tolist()
        np.testing.assert_allclose(kept.top_probabilities, result.distributions[row, order], atol=1e-6)


def test_top_classes_are_those_of_a_full_sort() -> None:
    distributions = np.random.default_rng(0).dirichlet(np.ones(20), size=50)
    codes, probabilities = top_classes(distributions)
    np.testing.assert_array_equal(codes, np.argsort(-distributions, axis=1)[:, :5])
    np.testing.assert_allclose(probabilities, -np.sort(-distributions, axis=1)[:, :5], rtol=1e-6)


@pytest.mark.parametrize("labels", [[1, 2, None, 2], [True, False, None, True], ["a", "b", None, "b"]])
def test_labels_keep_their_kind(labels: list[object], tmp_path: Path) -> None:
    result = find_label_issues(labels, pred_probs=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
    write_audit(result, tmp_path / "run")
    run = read_audit(tmp_path / "run")
    by_row = run.issues.sort_index()
    assert by_row.given_label.drop(2).tolist() == [labels[0], labels[1], labels[3]]
    assert pd.isna(by_row.given_label[2])
    assert run.record.class_values == tuple(sorted({label for label in labels if label is not None}))  # type: ignore[type-var]
    assert "neighbors" not in run.evidence.columns
    assert run.record.search is None


def test_settings_that_json_has_no_word_for_are_described(result: AuditResult, tmp_path: Path) -> None:
    odd = replace(result, settings={"a": object, "b": float("inf"), "c": np.float32(0.5), "d": None})
    settings = write_audit(odd, tmp_path / "run").record.settings
    assert settings == {"a": "<class 'object'>", "b": None, "c": 0.5, "d": None}


def test_a_run_is_never_overwritten_unasked(result: AuditResult, run_folder: Path) -> None:
    before = (run_folder / "audit.json").read_text()
    with pytest.raises(RunFolderError, match=r"already holds a run.*--overwrite"):
        write_audit(result, run_folder)
    assert (run_folder / "audit.json").read_text() == before
    write_audit(result, run_folder, overwrite=True, warnings=("new",))
    assert read_audit(run_folder).record.warnings == ("new",)
    assert [path.name for path in run_folder.parent.iterdir()] == ["run"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the process that is killed is a fork")
@pytest.mark.parametrize("can_trade_names", [True, False])
def test_a_kill_while_a_run_is_replaced_leaves_one_under_its_name(
    result: AuditResult, run_folder: Path, monkeypatch: pytest.MonkeyPatch, can_trade_names: bool
) -> None:
    rename = Path.rename

    def killed_afterwards(self: Path, target: Path) -> None:
        rename(self, target)
        os._exit(9)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", killed_afterwards)
        patched.setattr(shutil, "rmtree", lambda *_, **__: os._exit(9))
        if not can_trade_names:
            patched.setattr("laplaceconfidence.files._trade_names", lambda *_: False)
        if (child := os.fork()) == 0:
            write_audit(result, run_folder, overwrite=True, warnings=("new",))
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert run_folder.is_dir() or not can_trade_names or sys.platform != "linux"
    assert read_audit(run_folder).record.warnings in ((), ("new",))
    write_audit(result, run_folder, overwrite=True, warnings=("newest",))
    assert read_audit(run_folder).record.warnings == ("newest",)


def test_what_people_keep_is_never_touched(result: AuditResult, run_folder: Path, tmp_path: Path) -> None:
    (run_folder / "decisions.sqlite").write_text("mine")
    with pytest.raises(RunFolderError, match=r"decisions\.sqlite"):
        write_audit(result, run_folder, overwrite=True)
    assert (run_folder / "decisions.sqlite").read_text() == "mine"
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.tex").touch()
    with pytest.raises(RunFolderError, match=r"chapter\.tex"):
        write_audit(result, other, overwrite=True)


def test_of_two_audits_into_one_new_folder_the_second_is_refused(result: AuditResult, tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="already holds a run"), new_run_folder(tmp_path / "run"):
        write_audit(result, tmp_path / "run", warnings=("first",))
    assert read_audit(tmp_path / "run").record.warnings == ("first",)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_reserved_place_is_refused_to_others_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_lock, "PATIENCE", 0.0)
    with (
        reserved_place(tmp_path / "run"),
        pytest.raises(RunFolderError, match=r"Another process is writing a run into .*/run\. Wait"),
        reserved_place(tmp_path / "run", overwrite=True),
    ):
        raise AssertionError
    with reserved_place(tmp_path / "run"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_saving_where_another_process_writes_is_refused(
    result: AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_lock, "PATIENCE", 0.0)
    with (
        reserved_place(tmp_path / "run"),
        pytest.raises(RunFolderError, match="Another process is writing a run"),
    ):
        result.save(tmp_path / "run", overwrite=True)
    assert list(tmp_path.iterdir()) == []
    assert result.save(tmp_path / "run") == tmp_path / "run"


def test_an_empty_folder_is_free(result: AuditResult, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    write_audit(result, tmp_path / "run")
    assert read_audit(tmp_path / "run").record.n_issues > 0


def test_a_damaged_run_is_not_replaced(result: AuditResult, run_folder: Path) -> None:
    (run_folder / "audit.json").write_text("{")
    with pytest.raises(RunFolderError, match="not part of a run"):
        write_audit(result, run_folder, overwrite=True)


@pytest.mark.parametrize("place", ["file", "file/run", "link"])
def test_places_that_cannot_be_written_are_refused(result: AuditResult, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(RunFolderError, match="output folder"):
        write_audit(result, tmp_path / place)


def test_a_read_only_place_is_refused_before_the_work() -> None:
    with pytest.raises(RunFolderError, match="cannot be written"):
        check_place("/proc/run")


def test_a_run_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail() -> None:
        with new_run_folder(tmp_path / "run") as temporary:
            (temporary / "issues.csv").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fails_is_reported_as_the_folder_not_being_writable(tmp_path: Path) -> None:
    def fail() -> None:
        with new_run_folder(tmp_path / "run"):
            raise OSError(28, "No space left on device")

    with pytest.raises(RunFolderError, match="the disk is full"):
        fail()


def test_folders_that_are_no_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="no such folder"):
        read_audit(tmp_path / "nothing")
    with pytest.raises(RunFolderError, match="not a run folder"):
        read_audit(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match="not a run folder"):
        read_audit(tmp_path / "file")


def test_a_training_run_is_not_called_incomplete(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("{}")
    pd.DataFrame({"id": ["1"]}).to_parquet(tmp_path / "refined_labels.parquet")
    with pytest.raises(RunFolderError, match="holds a training run"):
        read_audit(tmp_path)


def test_half_written_runs_are_refused(run_folder: Path) -> None:
    (run_folder / "evidence.parquet").unlink()
    with pytest.raises(RunFolderError, match=r"incomplete: evidence\.parquet"):
        read_audit(run_folder)
    (run_folder / "audit.json").unlink()
    with pytest.raises(RunFolderError, match="not written completely"):
        read_audit(run_folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"format_version": 99, "versions": {"laplaceconfidence": "7.0"}},
            r"laplaceconfidence 7\.0.*Upgrade",
        ),
        ({"format_version": "one"}, "format_version"),
        ({"kind": "training"}, "kind 'audit'"),
        ({"n_samples": "many"}, "n_samples"),
        ({"estimator": None}, "estimator"),
    ],
)
def test_records_that_cannot_be_understood_are_refused(
    run_folder: Path, change: dict[str, object], words: str
) -> None:
    path = run_folder / "audit.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(RunFolderError, match=words):
        read_audit(run_folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"kind": "audit"}'])
def test_records_that_are_no_records_are_refused(run_folder: Path, text: str) -> None:
    (run_folder / "audit.json").write_text(text)
    with pytest.raises(RunFolderError):
        read_audit(run_folder)


def test_tables_that_do_not_fit_their_record_are_refused(run_folder: Path) -> None:
    path = run_folder / "issues.parquet"
    table = pd.read_parquet(path)
    table.iloc[:5].to_parquet(path)
    with pytest.raises(RunFolderError, match=r"5 rows.*60"):
        _ = read_audit(run_folder).issues
    table.drop(columns="label_score").to_parquet(path)
    with pytest.raises(RunFolderError, match="label_score"):
        _ = read_audit(run_folder).issues
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(RunFolderError, match="damaged"):
        _ = read_audit(run_folder).issues


def test_a_review_sample_with_formulas_as_ids_is_read_back(tmp_path: Path) -> None:
    labels = ["=yes", "-no"] * 3
    ids = ["=1+1", "@a", "'=b", "-5", "+x", "two\rlines"]
    data = NoisyDataset.from_arrays(labels, ids=ids)
    issues = pd.DataFrame({"id": ids, "given_label": labels})
    write_review_sample(tmp_path, issues, ReviewSample(np.arange(4), np.arange(4, 6)))
    table = pd.read_csv(tmp_path / "review_sample.csv", dtype=str, keep_default_na=False)
    table["verified_label"] = table["given_label"]
    table.to_csv(tmp_path / "filled.csv", index=False, lineterminator="\r\n")
    verified = read_verified(tmp_path / "filled.csv", data)
    assert verified.labels == dict(zip(ids, labels, strict=True))
    assert verified.at_random == set(ids[:4])
