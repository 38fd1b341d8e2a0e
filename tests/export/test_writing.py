"""Exports in every format, read back; originals untouched; nothing overwritten by accident."""

import csv
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_plan import reviewed

from audited_runs import CLASS_NAMES, MakeRun, noisy_blobs
from laplaceconfidence.auditing.issues import audit
from laplaceconfidence.csv_files import unguarded
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError, RunFolderError
from laplaceconfidence.export import plan_export, write_export
from laplaceconfidence.export.image_folder import folder_name, write_image_folder
from laplaceconfidence.records import write_audit


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


def test_cells_with_line_breaks_and_formulas_come_back(make_run: MakeRun, tmp_path: Path) -> None:
    texts = [f"{start}text {row}" for row, start in enumerate(["a\rb ", "=1+", "@", "'=", "\r\n"] * 18)]
    run = make_run("csv", texts=texts)
    with (run.folder / "issues.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == run.issues["id"].tolist()
    assert not any(row["text"].startswith(("=", "@", "\r")) for row in rows)
    (taken,) = reviewed(run, "suggestion")
    plan = plan_export(run)
    exported = write_export(plan, tmp_path / "corrected.csv")
    assert exported.n_guarded_cells == 72
    back = read_dataset(exported.path, features="emb_*")
    assert back.sources is not None
    assert back.sources.tolist() == plan.samples.sources.tolist()  # type: ignore[union-attr]
    assert back.labels.tolist() == plan.codes.tolist()
    assert back.labels[taken] != plan.samples.given[taken]


def test_a_changed_label_is_written_as_its_class_is(tmp_path: Path) -> None:
    features, given, _ = noisy_blobs()
    table = pd.DataFrame(features, columns=["emb_0", "emb_1", "emb_2"])
    table.insert(0, "label", [f"{code}.0" for code in given])
    table.to_csv(tmp_path / "table.csv", index=False)
    data = read_dataset(tmp_path / "table.csv", features="emb_*")
    run = write_audit(
        audit(data, estimator="laplace", n_neighbors=6, alpha=0.9),
        tmp_path / "run",
        source={"source": str(tmp_path / "table.csv"), "options": {"features": "emb_*"}},
    )
    plan = plan_export(run, policy="reviewed-then-confident", min_probability=0.4)
    assert plan.count("changed") > 0
    exported = write_export(plan, tmp_path / "corrected.csv")
    labels = pd.read_csv(exported.path, dtype=str)["label"]
    assert labels.tolist() == [f"{code}.0" for code in plan.codes]


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


@pytest.mark.parametrize("copy", [False, True])
def test_links_that_leave_the_data_folder_are_left_out(make_run: MakeRun, tmp_path: Path, copy: bool) -> None:
    run = make_run("folder")
    photos = tmp_path / "data" / "photos"
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"not for others")
    first, second, third = sorted(photos.rglob("*.png"))[:3]
    for path, target in ((first, secret), (second, third)):
        path.unlink()
        path.symlink_to(target)
    linked_folder = next(folder for folder in sorted(photos.iterdir()) if folder != first.parent)
    n_moved = len(list(linked_folder.iterdir()))
    linked_folder.rename(tmp_path / "elsewhere")
    linked_folder.symlink_to(tmp_path / "elsewhere")
    exported = write_export(plan_export(run), tmp_path / "sorted", copy=copy)
    assert (exported.n_lost_files, exported.n_outside_files) == (0, 1 + n_moved)
    files = [path for path in exported.path.rglob("*.png") if path.is_file()]
    assert len(files) == exported.n_samples == 90 - 1 - n_moved
    assert not any(path.samefile(secret) or path.read_bytes() == secret.read_bytes() for path in files)
    (kept,) = exported.path.rglob(second.name)  # a link that stays in the folder
    assert kept.read_bytes() == third.read_bytes()


def test_digits_become_a_folder_of_images(make_run: MakeRun, tmp_path: Path) -> None:
    exported = write_export(plan_export(make_run("digits")), tmp_path / "sorted")
    assert len(list((exported.path / "7").glob("*.png"))) == 179


def test_images_with_one_name_do_not_hide_each_other(make_run: MakeRun, tmp_path: Path) -> None:
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


def test_no_two_classes_share_a_folder(tmp_path: Path) -> None:
    long = "x" * 190
    classes = [
        *(
            long + "tail one",
            long + "tail two",
            "猫" * 70 + "a",
            "猫" * 70 + "b",
            "/" * 80 + "a",
            "/" * 80 + "b",
        ),
        *(
            "_unlabelled",
            "_Unlabelled",
            "cat",
            "Cat",
            "Cat-2",
            "a/b",
            "a%2Fb",
            "caf\u00e9",
            "cafe\u0301",
            "=1+1",
        ),
    ]
    images = np.zeros((len(classes) + 1, 2, 2, 3), dtype=np.uint8)
    ids = range(len(classes) + 1)
    data = NoisyDataset.from_arrays([*classes, None], images=images, ids=ids)
    write_image_folder(tmp_path / "out", data, copy=True)
    with (tmp_path / "out" / "classes.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len({row["folder"].casefold() for row in rows}) == len(classes) + 1
    class_of = {unguarded(row["folder"]): unguarded(row["class"]) for row in rows}
    for sample, name in enumerate([*classes, ""]):
        (file_path,) = (tmp_path / "out").glob(f"*/{sample}.png")
        assert class_of[file_path.parent.name] == name
        assert len(file_path.parent.name.encode()) <= 255
    assert class_of["_unlabelled"] == ""
    assert class_of["Cat"] == "Cat"
    back = read_dataset(tmp_path / "out")
    assert back.class_names == tuple(sorted(classes))
    assert (back.labels == -1).sum() == 1


def test_a_damaged_table_of_classes_is_refused(tmp_path: Path) -> None:
    data = NoisyDataset.from_arrays(["a", "b"], images=np.zeros((2, 2, 2, 3), dtype=np.uint8))
    write_image_folder(tmp_path / "out", data, copy=True)
    (tmp_path / "out" / "classes.csv").write_text("other,table\n1,2\n")
    with pytest.raises(DataFormatError, match="table of folder and class"):
        read_dataset(tmp_path / "out")


def test_nothing_is_overwritten_by_accident(make_run: MakeRun, tmp_path: Path) -> None:
    plan = plan_export(make_run("folder"))
    for place in (tmp_path / "corrected.csv", tmp_path / "sorted"):
        write_export(plan, place)
        with pytest.raises(RunFolderError, match="overwrite"):
            write_export(plan, place)
        write_export(plan, place, overwrite=True)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to-anna.txt").touch()
    with pytest.raises(RunFolderError, match="not an export"):
        write_export(plan, tmp_path / "letters", overwrite=True)


@pytest.mark.parametrize("spelling", ["absolute", "relative", "symbolic link", "hard link", "as the trail"])
def test_the_audited_file_is_never_replaced(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    plan = plan_export(make_run("csv"))
    source = tmp_path / "data" / "texts.csv"
    before = fingerprint(tmp_path / "data")
    out = tmp_path / "other.csv"
    if spelling == "absolute":
        out = source
    elif spelling == "relative":
        monkeypatch.chdir(tmp_path / "run")
        out = Path("../data/../data/texts.csv")
    elif spelling == "symbolic link":
        out.symlink_to(source)
    elif spelling == "hard link":
        out.hardlink_to(source)
    else:
        (tmp_path / "other.trail.csv").hardlink_to(source)
    with pytest.raises(RunFolderError, match="audited data, which an export never replaces"):
        write_export(plan, out, overwrite=True)
    assert fingerprint(tmp_path / "data") == before


@pytest.mark.parametrize("name", ["issues.csv", "audit.json", "issues.parquet", "decisions.sqlite"])
def test_the_files_of_the_run_are_never_replaced(make_run: MakeRun, tmp_path: Path, name: str) -> None:
    run = make_run("csv")
    reviewed(run, "suggestion")
    before = fingerprint(tmp_path / "run")
    format = None if name.endswith((".csv", ".parquet", ".json")) else "csv"
    with pytest.raises(RunFolderError, match="belongs to the run"):
        write_export(plan_export(run), tmp_path / "run" / name, format=format, overwrite=True)
    assert fingerprint(tmp_path / "run") == before


def test_audited_images_are_never_replaced(make_run: MakeRun, tmp_path: Path) -> None:
    plan = plan_export(make_run("folder"))
    photos = tmp_path / "data" / "photos"
    image = next(photos.rglob("*.png"))
    (photos / ".laplaceconfidence-export").touch()  # the audited data is an earlier export
    before = fingerprint(tmp_path / "data")
    for out in (photos, photos / "sorted", photos / "class a", tmp_path / "data"):
        with pytest.raises(RunFolderError, match="never replaces"):
            write_export(plan, out, overwrite=True)
    with pytest.raises(RunFolderError, match="never replaces"):
        write_export(plan, image, format="csv", overwrite=True)
    assert fingerprint(tmp_path / "data") == before


@pytest.mark.parametrize("name", ["corrected.csv", "sorted"])
def test_data_and_trail_become_visible_together(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run = make_run("folder")
    outputs = tmp_path / "outputs"
    outputs.mkdir()

    def failing(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(pd.DataFrame, "to_csv", failing)
        with pytest.raises(OSError, match="disk is full"):
            write_export(plan_export(run), outputs / "sorted")
    assert list(outputs.iterdir()) == []
    write_export(plan_export(run), outputs / name)
    reviewed(run, "suggestion", "none")
    before = fingerprint(outputs)
    rename = Path.replace

    def failing_at_last(self: Path, target: Path) -> Path:
        return failing() if Path(target) == outputs / name else rename(self, target)  # type: ignore[return-value]

    with monkeypatch.context() as patched:
        patched.setattr("laplaceconfidence.export.writing.replace_folder", failing)
        patched.setattr(Path, "replace", failing_at_last)
        with pytest.raises(OSError, match="disk is full"):
            write_export(plan_export(run), outputs / name, overwrite=True)
    assert fingerprint(outputs) == before


def test_lost_data_still_gives_the_labels(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("csv")
    (tmp_path / "data" / "texts.csv").unlink()
    exported = write_export(plan_export(run), tmp_path / "corrected.csv")
    assert exported.lost is not None
    assert list(pd.read_csv(exported.path).columns) == ["id", "label", "text"]


def test_missing_labels_can_be_filled(tmp_path: Path) -> None:
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
