"""Exports for Label Studio, FiftyOne and Hugging Face, and data from there that keeps its form."""

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_plan import reviewed

from audited_runs import CLASS_NAMES, MakeRun, noisy_blobs, write_image
from laplaceconfidence import NoisyDataset, audit, read_dataset
from laplaceconfidence.exceptions import InvalidInputError, RunFolderError
from laplaceconfidence.export import plan_export, write_export
from laplaceconfidence.records import AuditRun, write_audit


def labels_of(data: NoisyDataset) -> list[str | None]:
    return [None if code < 0 else data.class_names[code] for code in data.labels.tolist()]


def expected_labels(plan: Any) -> list[str]:
    return [plan.samples.class_names[code] for code in plan.codes[plan.is_kept]]


def audited(source: Path, folder: Path, **options: Any) -> AuditRun:
    result = audit(read_dataset(source, **options), estimator="laplace", n_neighbors=6, alpha=0.9)
    return write_audit(result, folder, source={"source": str(source), "options": options})


class TestLabelStudio:
    def test_tasks_are_the_labels_to_look_at(self, make_run: MakeRun, tmp_path: Path) -> None:
        run = make_run("csv")
        decided = reviewed(run, "suggestion", "keep")
        plan = plan_export(run)
        exported = write_export(plan, tmp_path / "tasks.json")
        assert exported.format == "label-studio"
        tasks = json.loads(exported.path.read_text())
        samples = plan.samples
        rows = [row for row in samples.first_rows.tolist() if row not in decided]
        assert [task["data"]["id"] for task in tasks] == samples.ids[rows].tolist()
        assert exported.n_samples == len(rows)
        for task, row in zip(tasks, rows, strict=True):
            assert samples.sources is not None
            assert task["data"]["text"] == samples.sources[row]
            assert task["data"]["given_label"] == samples.class_names[samples.given[row]]
            (prediction,) = task["predictions"]
            (result,) = prediction["result"]
            assert result["value"] == {"choices": [samples.class_names[samples.offered[row]]]}
            assert prediction["score"] == pytest.approx(samples.offered_probability[row], abs=1e-6)

    def test_the_configuration_fits_the_tasks(self, make_run: MakeRun, tmp_path: Path) -> None:
        exported = write_export(plan_export(make_run("csv")), tmp_path / "tasks.json")
        assert exported.config == tmp_path / "tasks.config.xml"
        view = ElementTree.parse(exported.config).getroot()
        choices = view.find("Choices")
        assert choices is not None
        assert sorted(choice.get("value", "") for choice in choices) == sorted(CLASS_NAMES)
        result = json.loads(exported.path.read_text())[0]["predictions"][0]["result"][0]
        assert choices.get("name") == result["from_name"]
        assert choices.get("toName") == result["to_name"]
        shown = view.find("Text")
        assert shown is not None
        assert (shown.get("name"), shown.get("value")) == (result["to_name"], "$text")

    def test_all_samples_with_the_labels_of_the_plan(self, make_run: MakeRun, tmp_path: Path) -> None:
        run = make_run("csv")
        (taken,) = reviewed(run, "suggestion")
        plan = plan_export(run)
        tasks = json.loads(write_export(plan, tmp_path / "t.json", tasks="all").path.read_text())
        assert len(tasks) == len(plan.samples)
        (of_taken,) = [task for task in tasks if task["data"]["row"] == taken]
        assert of_taken["predictions"][0]["score"] == 1.0
        choice = of_taken["predictions"][0]["result"][0]["value"]["choices"]
        assert choice == [plan.samples.class_names[plan.codes[taken]]]

    def test_image_files_have_addresses_below_the_folder_of_the_data(
        self, make_run: MakeRun, tmp_path: Path
    ) -> None:
        tasks = json.loads(
            write_export(plan_export(make_run("folder")), tmp_path / "t.json").path.read_text()
        )
        assert tasks[0]["data"]["image"].startswith("/data/local-files/?d=class%20")
        shutil.copy(tmp_path / "t.json", tmp_path / "data/photos/t.json")
        for task in tasks:
            task["annotations"] = [{"result": task["predictions"][0]["result"]}]
        (tmp_path / "data/photos/t.json").write_text(json.dumps(tasks))
        back = read_dataset(tmp_path / "data/photos/t.json")
        assert all(Path(str(source)).is_file() for source in np.asarray(back.sources))

    def test_images_in_memory_are_part_of_the_tasks(self, make_run: MakeRun, tmp_path: Path) -> None:
        tasks = json.loads(
            write_export(plan_export(make_run("digits")), tmp_path / "t.json").path.read_text()
        )
        assert tasks[0]["data"]["image"].startswith("data:image/png;base64,")

    def test_what_cannot_be_shown_is_refused(self, make_run: MakeRun, tmp_path: Path) -> None:
        plan = plan_export(make_run("npz"))
        with pytest.raises(InvalidInputError, match="without texts or images"):
            write_export(plan, tmp_path / "t.json")
        with pytest.raises(InvalidInputError, match="'tasks' parameter must be left out"):
            write_export(plan, tmp_path / "t.csv", tasks="all")
        assert not (tmp_path / "t.json").exists()

    def test_nothing_is_replaced_by_accident(self, make_run: MakeRun, tmp_path: Path) -> None:
        plan = plan_export(make_run("csv"))
        (tmp_path / "t.config.xml").write_text("mine")
        with pytest.raises(RunFolderError, match=r"t\.config\.xml exists"):
            write_export(plan, tmp_path / "t.json")
        assert (tmp_path / "t.config.xml").read_text() == "mine"
        assert not (tmp_path / "t.json").exists()


class TestFiftyOne:
    def test_a_folder_comes_back(self, make_run: MakeRun, tmp_path: Path) -> None:
        run = make_run("folder")
        reviewed(run, "suggestion", "none")
        plan = plan_export(run)
        exported = write_export(plan, tmp_path / "out", format="fiftyone")
        content = json.loads((exported.path / "labels.json").read_text())
        assert content["classes"] == list(plan.samples.class_names)
        back = read_dataset(exported.path)
        assert labels_of(back) == expected_labels(plan)
        before = [id.removesuffix(".png") for id in plan.samples.ids[plan.is_kept]]
        assert back.sample_ids.tolist() == before

    def test_an_export_of_fiftyone_stays_one(self, tmp_path: Path) -> None:
        features, given, _ = noisy_blobs()
        np.save(tmp_path / "X.npy", features)
        (tmp_path / "set/data").mkdir(parents=True)
        for row in range(len(given)):
            write_image(tmp_path / f"set/data/{row}.png", row)
        labels = {str(row): int(code) for row, code in enumerate(given)}
        (tmp_path / "set/labels.json").write_text(json.dumps({"classes": ["a", "b", "c"], "labels": labels}))
        run = audited(tmp_path / "set", tmp_path / "run", features=str(tmp_path / "X.npy"))
        (taken,) = reviewed(run, "suggestion")
        exported = write_export(plan_export(run), tmp_path / "fixed")
        after = json.loads((exported.path / "labels.json").read_text())["labels"]
        assert exported.format == "fiftyone"
        assert [key for key in labels if labels[key] != after[key]] == [str(taken)]


class TestHuggingFace:
    @pytest.mark.parametrize("kind", ["csv", "npz", "folder", "digits"])
    def test_any_data_can_be_loaded_from_disk(self, make_run: MakeRun, tmp_path: Path, kind: str) -> None:
        datasets = pytest.importorskip("datasets")
        run = make_run(kind)
        reviewed(run, "suggestion", "none")
        plan = plan_export(run)
        exported = write_export(plan, tmp_path / "out", format="huggingface")
        loaded = datasets.load_from_disk(str(exported.path))
        assert loaded.features["label"].names == list(plan.samples.class_names)
        assert [loaded.features["label"].int2str(code) for code in loaded["label"]] == expected_labels(plan)
        assert list(loaded["id"]) == plan.samples.ids[plan.is_kept].tolist()
        if kind == "csv":
            assert loaded[1]["text"].startswith("Text number")
        if kind in ("folder", "digits"):
            assert loaded[0]["image"].size == ((120, 80) if kind == "folder" else (8, 8))
        back = read_dataset(exported.path)
        assert labels_of(back) == expected_labels(plan)
        assert back.features is not None

    def test_a_data_set_keeps_its_other_columns(self, tmp_path: Path) -> None:
        datasets = pytest.importorskip("datasets")
        features, given, _ = noisy_blobs()
        content = {
            "note": [f"n{row}" for row in range(len(given))],
            "kind": given.tolist(),
            "embedding": features.tolist(),
        }
        kinds = {
            "note": datasets.Value("string"),
            "kind": datasets.ClassLabel(names=["a", "b", "c"]),
            "embedding": datasets.List(datasets.Value("float32")),
        }
        before = datasets.Dataset.from_dict(content, features=datasets.Features(kinds))
        datasets.DatasetDict(train=before, test=before).save_to_disk(tmp_path / "set")
        run = audited(tmp_path / "set", tmp_path / "run", label="kind", split="train")
        (taken,) = reviewed(run, "suggestion")
        plan = plan_export(run)
        exported = write_export(plan, tmp_path / "fixed")
        assert exported.format == "huggingface"
        after = datasets.load_from_disk(str(exported.path))
        assert after.features == before.features
        assert list(after["note"]) == list(before["note"])
        changed = [row for row in range(len(before)) if before[row]["kind"] != after[row]["kind"]]
        assert changed == [taken]


def test_json_lines_keep_everything_else(tmp_path: Path) -> None:
    features, given, _ = noisy_blobs()
    before = [
        {"meta": {"n": row, "x": None}, "y": "abc"[code], "emb": features[row].tolist(), "nan": float("nan")}
        for row, code in enumerate(given)
    ]
    source = tmp_path / "data.jsonl"
    source.write_text("\n".join(json.dumps(record) for record in before))
    run = audited(source, tmp_path / "run")
    (taken,) = reviewed(run, "suggestion")
    plan = plan_export(run)
    exported = write_export(plan, tmp_path / "fixed.jsonl")
    after = [json.loads(line) for line in exported.path.read_text().splitlines()]
    expected = [dict(record) for record in before]
    expected[taken]["y"] = "abc"[plan.codes[taken]]
    assert repr(after) == repr(expected)
    assert write_export(plan).format == "jsonl"
    Path("run-corrected.jsonl").unlink()
    Path("run-corrected.trail.csv").unlink()


def test_a_folder_of_parquet_files_becomes_one_file(tmp_path: Path) -> None:
    features, given, _ = noisy_blobs()
    table = pa.table({"y": given, "emb": list(features), "note": [f"n{row}" for row in range(len(given))]})
    (tmp_path / "set").mkdir()
    for number in range(3):
        pq.write_table(table.slice(30 * number, 30), tmp_path / f"set/part-{number}.parquet")
    run = audited(tmp_path / "set", tmp_path / "run")
    (taken,) = reviewed(run, "suggestion")
    exported = write_export(plan_export(run), tmp_path / "fixed.parquet")
    after = pq.read_table(exported.path)
    assert after.column("note").to_pylist() == table.column("note").to_pylist()
    assert np.flatnonzero(after.column("y").to_numpy() != given).tolist() == [taken]


@pytest.mark.parametrize("suffix", ["csv.gz", "jsonl"])
def test_the_parts_of_a_table_become_one_file_of_their_kind(tmp_path: Path, suffix: str) -> None:
    features, given, _ = noisy_blobs()
    frame = pd.DataFrame(features, columns=["x0", "x1", "x2"])
    frame["label"], frame["note"] = given, [f"n{row}" for row in range(len(given))]
    (tmp_path / "set").mkdir()
    for number in range(3):
        part, path = frame[30 * number : 30 * number + 30], tmp_path / f"set/part-{number}.{suffix}"
        if suffix == "jsonl":
            part.to_json(path, orient="records", lines=True)
        else:
            part.to_csv(path, index=False)
    run = audited(tmp_path / "set", tmp_path / "run", features=["x0", "x1", "x2"])
    (taken,) = reviewed(run, "suggestion")
    exported = write_export(plan_export(run), tmp_path / f"fixed.{suffix}")
    after = pd.read_json(exported.path, lines=True) if suffix == "jsonl" else pd.read_csv(exported.path)
    assert after.columns.tolist() == frame.columns.tolist()
    assert after["note"].tolist() == frame["note"].tolist()
    assert np.flatnonzero(after["label"].to_numpy() != given).tolist() == [taken]


def test_an_excel_file_becomes_a_csv_file_with_all_columns(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    features, given, _ = noisy_blobs()
    frame = pd.DataFrame(features, columns=["x0", "x1", "x2"])
    frame["label"], frame["note"] = given, [f"n{row}" for row in range(len(given))]
    frame.to_excel(tmp_path / "data.xlsx", index=False)
    run = audited(tmp_path / "data.xlsx", tmp_path / "run", features=["x0", "x1", "x2"])
    (taken,) = reviewed(run, "suggestion")
    exported = write_export(plan_export(run), tmp_path / "fixed.csv")
    after = pd.read_csv(exported.path)
    assert after.columns.tolist() == frame.columns.tolist()
    assert after["note"].tolist() == frame["note"].tolist()
    assert np.flatnonzero(after["label"] != given).tolist() == [taken]
