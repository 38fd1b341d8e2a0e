"""Audits in blocks: the same table as in memory, run folders in parts, and what is refused."""

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from laplaceconfidence import NoisyDataset, audit
from laplaceconfidence.auditing.block_audit import BlockAuditResult
from laplaceconfidence.blocks.work_folder import WorkFolder
from laplaceconfidence.cli.app import app
from laplaceconfidence.exceptions import InvalidInputError, RunFolderError
from laplaceconfidence.records import read_audit
from laplaceconfidence.records.sample_arrays import SampleArrays

SETTINGS: dict[str, Any] = {
    "estimator": "laplace",
    "n_neighbors": 8,
    "alpha": 0.9,
    "tol": 1e-6,
    "max_iter": 200,
}
NAMES = np.array(["ape", "bee", "cat"])
NUMBERS = ["label_score", "predicted_probability", "alternative_probability"]
WORDS = ["id", "given_label", "predicted_label", "is_label_issue", "is_rare_class_issue"]


def frame(n: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    features = (3 * rng.normal(size=(3, 6))[y] + rng.normal(size=(n, 6))).astype(np.float32)
    features[7] = features[3]  # a copy
    given = np.where(rng.random(n) < 0.15, rng.integers(0, 3, n), y)
    labels = NAMES[given].astype(object)
    labels[11] = None
    texts = [f"text {i}" for i in range(n)]
    texts[20:23] = ["one text"] * 3  # with different features
    texts[3] = texts[7] = texts[5] = ""
    return pd.DataFrame({"label": labels, "emb": list(features), "text": texts})


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    frame()[:200].to_parquet(folder / "part-0.parquet", row_group_size=80)
    frame()[200:].to_parquet(folder / "part-1.parquet", row_group_size=80)
    return folder


def compare(found: pd.DataFrame, expected: pd.DataFrame, words: list[str] = WORDS) -> None:
    found, expected = found.sort_index(), expected.sort_index()
    pd.testing.assert_frame_equal(found[words], expected[words], check_dtype=False)
    np.testing.assert_allclose(found[NUMBERS], expected[NUMBERS], atol=2e-4)
    # Which class is second may be decided by the last digit.
    assert (found["alternative_label"] == expected["alternative_label"]).mean() > 0.98


def test_the_table_is_that_of_an_audit_in_memory(parquet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laplaceconfidence.auditing.block_tables.ROWS_PER_PART", 150)
    data = pd.concat([pd.read_parquet(path) for path in sorted(parquet.iterdir())], ignore_index=True)
    expected = audit(data, **SETTINGS)
    found = audit(parquet, memory="1GB", **SETTINGS)
    assert isinstance(found, BlockAuditResult)
    assert found.n_parts == 3
    compare(found.table, expected.table)
    assert found.table["text"].sort_index().tolist() == data["text"].tolist()
    assert found.n_issues == expected.n_issues
    assert found.noise_rate == pytest.approx(expected.noise_rate, abs=1e-4)
    assert found.first_rows.tolist() == expected.first_rows.tolist()
    assert found.suspects(5).index.tolist() == expected.first_rows[:5].tolist()
    assert "flagged" in repr(found)


def test_true_labels_are_compared_with_only(tmp_path: Path) -> None:
    data = frame()
    truth = data["label"].copy()
    truth[truth == "bee"] = "wasp"  # no label is given as such
    truth[20:30] = None
    truth[30:40] = "ape"
    data.assign(truth=truth).to_parquet(tmp_path / "x.parquet", row_group_size=80)
    settings: dict[str, Any] = {"label": "label", "features": "emb", "memory": "1GB", **SETTINGS}
    found: Any = audit(tmp_path / "x.parquet", true_label="truth", **settings)
    expected = np.where(truth.isna() | data["label"].isna(), -1, truth != data["label"])
    np.testing.assert_array_equal(found.data.is_wrong, expected)
    assert found.data.class_names == tuple(NAMES)
    compare(found.table, audit(tmp_path / "x.parquet", **settings).table)
    dataset = NoisyDataset.from_arrays(
        data["label"].to_list(), np.stack(data["emb"]), true_labels=truth.to_list()
    )
    in_arrays: Any = audit(dataset, memory="1GB", **SETTINGS)
    np.testing.assert_array_equal(in_arrays.data.is_wrong, expected)


@pytest.mark.parametrize("limits", [[], ["--memory", "1GB"]])
def test_the_command_says_how_many_flags_are_right(tmp_path: Path, limits: list[str]) -> None:
    data = frame()
    data.assign(truth=data["label"].shift(fill_value="ape")).to_parquet(tmp_path / "x.parquet")
    common = ["--label", "label", "--features", "emb", "--true-label", "truth", "--estimator", "laplace"]
    source, out = str(tmp_path / "x.parquet"), str(tmp_path / "run")
    done = CliRunner().invoke(app, ["audit", source, *common, *limits, "--out", out])
    assert done.exit_code == 0, done.output
    n_wrong = int(
        (data["label"] != data["label"].shift(fill_value="ape"))[[*range(11), *range(13, 300)]].sum()
    )
    assert f"According to the true labels, {n_wrong} are wrong" in done.output


def test_features_and_labels_in_npy_files(tmp_path: Path) -> None:
    data = frame()
    features, labels = np.stack(data["emb"]), data["label"].fillna("").to_numpy().astype(str)
    np.save(tmp_path / "x.npy", features)
    np.save(tmp_path / "y.npy", labels)
    found = audit(tmp_path / "x.npy", labels=str(tmp_path / "y.npy"), memory="1GB", **SETTINGS)
    compare(found.table, audit((features, labels), **SETTINGS).table)
    again = audit((features, labels), memory="1GB", **SETTINGS)
    compare(again.table, found.table)
    dataset = NoisyDataset.from_arrays(labels, features)
    compare(audit(dataset, memory="1GB", **SETTINGS).table, found.table)


def test_ids_of_paths(tmp_path: Path) -> None:
    paths = [f"images/{i}.png" for i in range(300)]
    paths[30] = paths[31]
    paths[3], paths[7] = "copy.png", "copy.png"
    data = frame().drop(columns="text").assign(path=paths)
    data.to_parquet(tmp_path / "x.parquet", row_group_size=90)
    found = audit(tmp_path / "x.parquet", memory="1GB", **SETTINGS)
    expected = audit(tmp_path / "x.parquet", image_issues=False, **SETTINGS)
    assert found.table.sort_index()["id"].tolist() == expected.table.sort_index()["id"].tolist()


def test_an_id_column(tmp_path: Path) -> None:
    frame().assign(id=[f"s{i}" for i in range(300)]).to_parquet(tmp_path / "x.parquet")
    found = audit(tmp_path / "x.parquet", memory="1GB", **SETTINGS)
    assert found.table.sort_index()["id"].tolist() == [f"s{i}" for i in range(300)]


def test_a_run_folder_in_parts_reads_like_one_of_an_audit_in_memory(parquet: Path, tmp_path: Path) -> None:
    found = audit(parquet, memory="1GB", **SETTINGS)
    run = read_audit(found.save(tmp_path / "run"))
    whole = audit(pd.concat(map(pd.read_parquet, sorted(parquet.iterdir())), ignore_index=True), **SETTINGS)
    expected = SampleArrays.of(read_audit(whole.save(tmp_path / "whole")))
    samples = SampleArrays.of(run)
    assert samples.order.tolist() == expected.order.tolist()
    assert samples.first_rows.tolist() == expected.first_rows.tolist()
    assert samples.sources is not None
    for row in (0, 3, 150, 299):
        assert [code for code, _ in samples.top_classes(row)] == [
            code for code, _ in expected.top_classes(row)
        ]
        own, theirs = samples.neighbors(row, 5), expected.neighbors(row, 5)
        assert [one.row for one in own] == [one.row for one in theirs]
        np.testing.assert_allclose(
            [(one.similarity, one.weight) for one in own],
            [(one.similarity, one.weight) for one in theirs],
            atol=1e-4,
        )
    suspects = pd.read_csv(tmp_path / "run" / "suspects.csv")
    assert suspects["row"].tolist() == samples.first_rows.tolist()


def test_damaged_parts_are_named(parquet: Path, tmp_path: Path) -> None:
    folder = audit(parquet, memory="1GB", **SETTINGS).save(tmp_path / "run")
    (folder / "evidence-00000.parquet").write_bytes(b"")
    with pytest.raises(RunFolderError, match=r"evidence-00000\.parquet cannot be read"):
        read_audit(folder).evidence_of(0)
    (folder / "issues-00000.parquet").unlink()
    with pytest.raises(RunFolderError, match=r"issues-00000\.parquet is missing"):
        read_audit(folder)


def test_an_audit_that_was_stopped_goes_on(parquet: Path, tmp_path: Path) -> None:
    first = audit(parquet, memory="1GB", work=tmp_path / "work", **SETTINGS)
    table = first.table
    again = audit(parquet, memory="1GB", work=tmp_path / "work", **SETTINGS)
    pd.testing.assert_frame_equal(again.table, table)
    other = audit(parquet, memory="1GB", work=tmp_path / "work", **(SETTINGS | {"n_neighbors": 5}))
    assert not other.table["label_score"].equals(table["label_score"])


def test_arrays_in_memory_go_on_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = frame()
    pair = np.stack(data["emb"]), data["label"].fillna("").to_numpy().astype(str)
    first = audit(pair, work=tmp_path / "work", **SETTINGS).table
    monkeypatch.setattr(WorkFolder, "save", None)  # nothing is computed again
    pd.testing.assert_frame_equal(audit(pair, work=tmp_path / "work", **SETTINGS).table, first)


def test_a_temporary_work_folder_goes_with_its_result(parquet: Path) -> None:
    found = audit(parquet, memory="1GB", **SETTINGS)
    assert isinstance(found, BlockAuditResult)
    place = found.work.path
    assert place.is_dir()
    del found
    gc.collect()
    assert not place.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"estimator": "knn-vote"}, "'noise-aware', 'laplace' where an audit runs in blocks"),
        ({"estimator": None}, "'alpha' parameter must be left out for 'noise-aware'"),
        ({"n_neighbors": "auto"}, "'n_neighbors' parameter must be a number"),
        ({"memory": "1MB"}, "must be at least"),
        ({"memory": "lots"}, "an amount of memory"),
        ({"dtype": "float64"}, "'dtype' parameter must be"),
        ({"target_precision": 0.9}, "not calibrated"),
        ({"pred_probs": np.ones((300, 3)) / 3}, "'pred_probs' parameter must be left out"),
        ({"features": "text"}, "columns of numbers"),
        ({"label": "nothing"}, "one of the columns"),
        ({"alpha": 2}, "'alpha' parameter must be"),
    ],
)
def test_what_is_refused(parquet: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        audit(parquet, **(SETTINGS | {"memory": "1GB"} | changes))


def test_one_class_is_refused(tmp_path: Path) -> None:
    frame().assign(label="ape").to_parquet(tmp_path / "x.parquet")
    with pytest.raises(InvalidInputError, match="at least two classes"):
        audit(tmp_path / "x.parquet", memory="1GB", **SETTINGS)
