"""Exports in every format, read back; originals untouched; nothing overwritten by accident."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_plan import reviewed

from audited_runs import CLASS_NAMES, MakeRun
from laplaceconfidence.auditing.issues import audit
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError, RunFolderError
from laplaceconfidence.export import plan_export, write_export
from laplaceconfidence.export.image_folder import folder_name


def fingerprint(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz", "folder"])
@pytest.mark.parametrize("format", ["csv", "parquet", "npz"])
def test_an_export_is_read_back_and_audited_again(
    make_run: MakeRun, tmp_path: Path, kind: str, format: str
) -> None:
    run = make_run(kind)
    before = fingerprint(tmp_path / "data")
    reviewed(run, "suggestion", "keep", "none", "suggestion")
    plan = plan_export(run)
    exported = write_export(plan, tmp_path / f"corrected.{format}")
    options = {"features": "emb_*" if kind == "csv" else "feature_*"} if format == "csv" else {}
    data = read_dataset(exported.path, **options)
    expected = [str(run.record.class_values[code]) for code in plan.codes[plan.is_kept]]
    assert [str(label) for label in data.labels_as_written()] == expected
    if kind != "parquet":
        assert data.sample_ids.tolist() == plan.samples.ids[plan.is_kept].tolist()
    assert data.features is not None
    assert (
        audit(data, estimator="laplace", n_neighbors=6, alpha=0.9).n_issues == len(plan.samples.suspects) - 3
    )
    assert fingerprint(tmp_path / "data") == before


def test_a_csv_keeps_every_cell_that_was_not_corrected(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("csv")
    (taken,) = reviewed(run, "suggestion")
    exported = write_export(plan_export(run))
    assert exported.path.name == "run-corrected.csv"
    before = pd.read_csv(tmp_path / "data" / "texts.csv", dtype=str, keep_default_na=False)
    after = pd.read_csv(exported.path, dtype=str, keep_default_na=False)
    differs = (before != after).to_numpy()
    assert differs.sum() == 1
    assert differs[taken, before.columns.get_loc("label")]
    exported.path.unlink()
    exported.trail.unlink()


def test_jsonl_has_one_object_a_line(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("csv")
    reviewed(run, "suggestion")
    exported = write_export(plan_export(run), tmp_path / "corrected.jsonl")
    lines = [json.loads(line) for line in exported.path.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 90
    assert set(lines[0]) == {"id", "label", "text", "features"}
    assert {line["label"] for line in lines} == set(CLASS_NAMES)


@pytest.mark.parametrize("copy", [False, True])
def test_images_are_sorted_anew_and_the_originals_stay(make_run: MakeRun, tmp_path: Path, copy: bool) -> None:
    run = make_run("folder")
    before = fingerprint(tmp_path / "data")
    (taken,) = reviewed(run, "suggestion")
    plan = plan_export(run)
    exported = write_export(plan, tmp_path / "sorted", copy=copy)
    data = read_dataset(exported.path)
    assert len(data) == 90
    name = Path(plan.samples.ids[taken]).name
    new_class = run.record.class_names[plan.codes[taken]]
    moved = exported.path / new_class / name
    assert moved.is_file()
    original = Path(plan.samples.sources[taken])
    assert moved.samefile(original) is not copy
    assert fingerprint(tmp_path / "data") == before


def test_digits_become_a_folder_of_images(make_run: MakeRun, tmp_path: Path) -> None:
    exported = write_export(plan_export(make_run("digits")), tmp_path / "sorted")
    assert len(list((exported.path / "7").glob("*.png"))) == 179


def test_images_with_one_name_do_not_hide_each_other(make_run: MakeRun, tmp_path: Path) -> None:
    from laplaceconfidence.data.dataset import NoisyDataset
    from laplaceconfidence.export.image_folder import write_image_folder

    run = make_run("folder")
    photos = tmp_path / "data" / "photos"
    files = sorted(photos.rglob("*.png"))[:2]
    same = [files[0], photos / "other" / files[0].name]
    same[1].parent.mkdir()
    os.link(files[1], same[1])
    data = NoisyDataset.from_arrays(
        ["x", "x"], ids=["1", "2"], sources=[str(path) for path in same], source_kind="image"
    )
    write_image_folder(tmp_path / "out", data, copy=False)
    assert len(list((tmp_path / "out" / "x").iterdir())) == 2
    assert run.record.n_samples == 90


@pytest.mark.parametrize("name", ["a/b", "..", ".hidden", "", "con:x", "x" * 300, "ends ", "nul\0", "100%"])
def test_class_names_that_no_folder_may_have_are_written_otherwise(name: str, tmp_path: Path) -> None:
    written = folder_name(name)
    assert not {"/", "\0", "\\"} & set(written)
    assert not written.startswith(".")
    (tmp_path / written).mkdir()
    assert (tmp_path / written).parent == tmp_path


@pytest.mark.parametrize("name", ["cat", "猫 🐈", "class a", "it's"])
def test_ordinary_class_names_stay(name: str) -> None:
    assert folder_name(name) == name


def test_nothing_is_overwritten_by_accident(make_run: MakeRun, tmp_path: Path) -> None:
    plan = plan_export(make_run("folder"))
    for place in (tmp_path / "corrected.csv", tmp_path / "sorted"):
        write_export(plan, place)
        with pytest.raises(RunFolderError, match="overwrite"):
            write_export(plan, place)
        write_export(plan, place, overwrite=True)
    with pytest.raises(RunFolderError, match="not an export"):
        write_export(plan, tmp_path / "data", overwrite=True)


def test_changed_data_is_noticed(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("csv")
    table = pd.read_csv(tmp_path / "data" / "texts.csv", dtype=str)
    table.loc[3, "label"] = CLASS_NAMES[0] if table.loc[3, "label"] != CLASS_NAMES[0] else CLASS_NAMES[1]
    table.to_csv(tmp_path / "data" / "texts.csv", index=False)
    with pytest.raises(DataFormatError, match="changed since the audit"):
        write_export(plan_export(run), tmp_path / "corrected.csv")


def test_lost_data_still_gives_the_labels(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("csv")
    (tmp_path / "data" / "texts.csv").unlink()
    exported = write_export(plan_export(run), tmp_path / "corrected.csv")
    assert exported.lost is not None
    assert list(pd.read_csv(exported.path).columns) == ["id", "label", "text"]


def test_missing_labels_can_be_filled(tmp_path: Path) -> None:
    from audited_runs import noisy_blobs
    from laplaceconfidence.records import write_audit

    features, given, true = noisy_blobs()
    labels = given.astype(float)
    labels[[4, 5]] = np.nan
    np.savez(tmp_path / "gaps.npz", features=features, labels=labels)
    data = read_dataset(tmp_path / "gaps.npz")
    run = write_audit(
        audit(data, estimator="laplace", n_neighbors=6, alpha=0.9),
        tmp_path / "run",
        source={"source": str(tmp_path / "gaps.npz")},
    )
    plan = plan_export(run, policy="reviewed-then-confident", min_probability=0.4, fill_missing=True)
    assert plan.codes[[4, 5]].tolist() == true[[4, 5]].tolist()
    assert plan.count("filled") == 2
    left = write_export(plan_export(run), tmp_path / "left.npz")
    assert (read_dataset(left.path).labels == -1).sum() == 2


@pytest.mark.parametrize(
    ("out", "settings", "error"),
    [
        ("corrected.xyz", {}, InvalidInputError),
        ("corrected.csv", {"format": "npz"}, InvalidInputError),
        ("corrected.csv", {"copy": True}, InvalidInputError),
        ("missing/corrected.csv", {}, RunFolderError),
        ("texts", {"format": "folder"}, InvalidInputError),
    ],
)
def test_what_cannot_be_written_is_refused(
    make_run: MakeRun, tmp_path: Path, out: str, settings: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        write_export(plan_export(make_run("csv")), tmp_path / out, **settings)  # type: ignore[arg-type]
    assert not list(tmp_path.glob("*.trail.csv"))
