"""JSON Lines, and what Label Studio, COCO-style tools and FiftyOne export as JSON."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from laplaceconfidence import NoisyDataset, audit, read_dataset
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError, LaplaceConfidenceWarning


def write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def labels_of(data: NoisyDataset) -> list[str | None]:
    return [None if code < 0 else data.class_names[code] for code in data.labels.tolist()]


def sources_of(data: NoisyDataset) -> list[str]:
    assert data.sources is not None
    return [str(source) for source in data.sources]


def write_images(folder: Path, *names: str) -> None:
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 5), (20 * number, 0, 0)).save(folder / name)


RECORDS = [
    {"id": "a", "text": "große Freude", "label": "good", "embedding": [0.0, 1.0], "note": None},
    {"id": "b", "text": "", "label": None, "embedding": [1.0, 0.5]},
    {"id": "c", "text": "line\nbreak", "label": "bad", "embedding": [1, 1], "note": {"by": "x"}},
]


class TestJsonLines:
    @pytest.mark.parametrize("name", ["data.jsonl", "data.ndjson", "data.jsonl.gz"])
    def test_fields_are_columns(self, tmp_path: Path, name: str) -> None:
        text = "\n\n".join(json.dumps(record) for record in RECORDS) + "\n"
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        data = read_dataset(path)
        assert labels_of(data) == ["good", None, "bad"]
        assert sources_of(data) == ["große Freude", "", "line\nbreak"]
        assert data.sample_ids.tolist() == ["a", "b", "c"]
        assert data.features is not None
        assert data.features.tolist() == [[0.0, 1.0], [1.0, 0.5], [1.0, 1.0]]

    @pytest.mark.parametrize(
        ("labels", "classes"),
        [([3, None, 12], [3, 12]), ([True, False, True], [False, True]), (["3", "x", "3"], ["3", "x"])],
    )
    def test_labels_keep_their_type(self, tmp_path: Path, labels: list[Any], classes: list[Any]) -> None:
        lines = [json.dumps({"text": str(row), "y": label}) for row, label in enumerate(labels)]
        (tmp_path / "data.jsonl").write_text("\n".join(lines))
        assert read_dataset(tmp_path / "data.jsonl").class_values.tolist() == classes

    def test_a_truncated_line_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "data.jsonl").write_text('{"text": "a", "label": 1}\n{"text": "b", "lab')
        with pytest.raises(DataFormatError, match=r"Line 2 of .*truncated"):
            read_dataset(tmp_path / "data.jsonl")

    def test_a_truncated_archive_is_refused(self, tmp_path: Path) -> None:
        content = gzip.compress(b'{"text": "a", "label": 1}\n' * 1000)
        (tmp_path / "data.jsonl.gz").write_bytes(content[: len(content) // 2])
        with pytest.raises(DataFormatError, match="truncated"):
            read_dataset(tmp_path / "data.jsonl.gz")

    @pytest.mark.parametrize(
        ("line", "message"),
        [("[1, 2]", "must be a JSON object"), ('{"text": "a", "label": ["x", "y"]}', "one label per sample")],
    )
    def test_lines_that_are_no_sample(self, tmp_path: Path, line: str, message: str) -> None:
        (tmp_path / "data.jsonl").write_text(f'{{"text": "b", "label": "z"}}\n{line}\n')
        with pytest.raises(DataFormatError, match=message):
            read_dataset(tmp_path / "data.jsonl")

    def test_an_array_of_objects_is_the_same(self, tmp_path: Path) -> None:
        data = read_dataset(write(tmp_path / "data.json", RECORDS))
        assert labels_of(data) == ["good", None, "bad"]


def task(number: int, *choices: str | None, control: str = "mood", **data: Any) -> dict[str, Any]:
    """A task as Label Studio exports it, annotated by as many people as there are choices."""
    annotations = [
        {
            "id": 10 * number + person,
            "completed_by": person,
            "was_cancelled": choice is None,
            "ground_truth": False,
            "result": []
            if choice is None
            else [
                {
                    "from_name": control,
                    "to_name": "shown",
                    "type": "choices",
                    "value": {"choices": [choice]},
                    "origin": "manual",
                }
            ],
        }
        for person, choice in enumerate(choices)
    ]
    return {"id": number, "data": data, "annotations": annotations, "predictions": [], "project": 1}


class TestLabelStudio:
    def test_texts_and_choices(self, tmp_path: Path) -> None:
        tasks = [task(7, "good", review="fine"), task(8, "bad", review="poor"), task(9, review="?")]
        data = read_dataset(write(tmp_path / "export.json", [*tasks, task(10, None, review="skipped")]))
        assert labels_of(data) == ["good", "bad", None, None]
        assert sources_of(data) == ["fine", "poor", "?", "skipped"]
        assert data.source_kind == "text"
        assert data.sample_ids.tolist() == ["7", "8", "9", "10"]

    def test_an_id_in_the_data_stays_when_tasks_are_numbered_anew(self, tmp_path: Path) -> None:
        tasks = [task(1, "a", text="x", id="s-17"), task(2, "b", text="y", id="s-3")]
        assert read_dataset(write(tmp_path / "t.json", tasks)).sample_ids.tolist() == ["s-17", "s-3"]

    def test_the_most_frequent_choice_counts_and_then_the_last(self, tmp_path: Path) -> None:
        tasks = [task(1, "a", "b", "a", text="x"), task(2, "a", "b", text="y"), task(3, "b", text="z")]
        with pytest.warns(LaplaceConfidenceWarning, match="2 tasks .* different choices"):
            data = read_dataset(write(tmp_path / "t.json", tasks))
        assert labels_of(data) == ["a", "b", "b"]

    def test_images_are_found_beside_the_file(self, tmp_path: Path) -> None:
        write_images(tmp_path, "3/1a-cat.jpg", "pets/dog.png", "bird.png")
        tasks = [
            task(1, "cat", image="/data/upload/3/1a-cat.jpg"),
            task(2, "dog", image="/data/local-files/?d=pets/dog.png"),
            task(3, "cat", image="bird.png"),
            task(4, "dog", image="https://example.com/dog.jpg"),
        ]
        data = read_dataset(write(tmp_path / "t.json", tasks))
        assert data.source_kind == "image"
        assert sources_of(data) == [
            str(tmp_path / "3/1a-cat.jpg"),
            str(tmp_path / "pets/dog.png"),
            str(tmp_path / "bird.png"),
            "https://example.com/dog.jpg",
        ]

    def test_one_of_several_controls_is_named(self, tmp_path: Path) -> None:
        one, two = task(1, "a", text="x"), task(1, "long", control="length", text="x")
        one["annotations"][0]["result"] += two["annotations"][0]["result"]
        path = write(tmp_path / "t.json", [one, task(2, "b", text="y")])
        assert labels_of(read_dataset(path, label="mood")) == ["a", "b"]
        with pytest.raises(InvalidInputError, match="'mood', 'length'"):
            read_dataset(path)

    def test_several_classes_at_once_are_refused(self, tmp_path: Path) -> None:
        many = task(1, "a", text="x")
        many["annotations"][0]["result"][0]["value"]["choices"] = ["a", "b"]
        with pytest.raises(DataFormatError, match="2 choices"):
            read_dataset(write(tmp_path / "t.json", [many, task(2, "b", text="y")]))

    @pytest.mark.parametrize("name", ["../secret.png", "/data/local-files/?d=../secret.png"])
    def test_images_outside_of_the_folder_are_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(DataFormatError, match="not a path inside"):
            read_dataset(write(tmp_path / "t.json", [task(1, "a", image=name), task(2, "b", image=name)]))

    def test_other_exports_of_label_studio_are_tables(self, tmp_path: Path) -> None:
        rows = [{"id": 1, "text": "x", "mood": "a", "annotator": 1}, {"id": 2, "text": "y", "mood": "b"}]
        assert labels_of(read_dataset(write(tmp_path / "min.json", rows), label="mood")) == ["a", "b"]


def coco(*names: str, categories: tuple[int, ...] = (3, 8)) -> dict[str, Any]:
    return {
        "info": {"year": 2026},
        "images": [
            {"id": 100 + n, "file_name": name, "width": 4, "height": 5} for n, name in enumerate(names)
        ],
        "annotations": [
            {"id": n, "image_id": 100 + n, "category_id": categories[n % 2]} for n in range(len(names))
        ],
        "categories": [{"id": 3, "name": "cat"}, {"id": 8, "name": "dog"}, {"id": 9, "name": "cow"}],
    }


class TestCoco:
    @pytest.mark.parametrize(
        ("place", "images"), [("a.json", ""), ("a.json", "images"), ("annotations/a.json", "images")]
    )
    def test_one_class_per_image(self, tmp_path: Path, place: str, images: str) -> None:
        write_images(tmp_path / images, "1.jpg", "sub/2.jpg", "3.jpg")
        (tmp_path / place).parent.mkdir(exist_ok=True)
        content = coco("1.jpg", "sub/2.jpg", "3.jpg", "4.jpg")
        content["annotations"].pop()
        data = read_dataset(write(tmp_path / place, content))
        assert data.class_names == ("cat", "dog", "cow")
        assert labels_of(data) == ["cat", "dog", "cat", None]
        assert sources_of(data)[1] == str(tmp_path / images / "sub/2.jpg")
        assert data.sample_ids.tolist() == ["1.jpg", "sub/2.jpg", "3.jpg", "4.jpg"]

    def test_the_folder_of_the_images_can_be_named(self, tmp_path: Path) -> None:
        write_images(tmp_path / "elsewhere", "1.jpg", "2.jpg")
        path = write(tmp_path / "a.json", coco("1.jpg", "2.jpg"))
        expected = str(tmp_path / "elsewhere" / "1.jpg")
        assert sources_of(read_dataset(path, images=str(tmp_path / "elsewhere")))[0] == expected
        assert sources_of(read_dataset(path, images="elsewhere"))[0] == expected
        with pytest.raises(InvalidInputError, match="folder of the images"):
            read_dataset(path, images="nowhere")

    def test_boxes_of_different_classes_are_refused(self, tmp_path: Path) -> None:
        content = coco("1.jpg", "2.jpg")
        content["annotations"].append({"id": 9, "image_id": 100, "category_id": 9})
        with pytest.raises(DataFormatError, match="'cat' and 'cow'"):
            read_dataset(write(tmp_path / "a.json", content))

    @pytest.mark.parametrize("name", ["../1.jpg", "/etc/passwd", "C:\\x.jpg", "a/../../b.jpg", ""])
    def test_paths_outside_of_the_folder_are_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(DataFormatError, match="not a path inside"):
            read_dataset(write(tmp_path / "a.json", coco("1.jpg", name)))

    def test_damage(self, tmp_path: Path) -> None:
        text = json.dumps(coco("1.jpg", "2.jpg"))
        (tmp_path / "a.json").write_text(text[:-30])
        with pytest.raises(DataFormatError, match="truncated"):
            read_dataset(tmp_path / "a.json")
        content = coco("1.jpg", "2.jpg")
        del content["images"][0]["file_name"]
        with pytest.raises(DataFormatError, match="file_name"):
            read_dataset(write(tmp_path / "a.json", content))
        with pytest.raises(DataFormatError, match="does not list"):
            read_dataset(write(tmp_path / "a.json", coco("1.jpg", "2.jpg", categories=(3, 4))))
        with pytest.raises(DataFormatError, match="none of the formats"):
            read_dataset(write(tmp_path / "a.json", {"images": []}))


class TestFiftyOne:
    def test_a_folder_with_classes(self, tmp_path: Path) -> None:
        write_images(tmp_path / "data", "1.jpg", "2.png", "sub/3.png", "4.png")
        labels = {"1": 0, "2": {"label": 1, "confidence": 0.5}, "sub/3": None, "4": "dog"}
        write(tmp_path / "labels.json", {"classes": ["cat", "dog"], "labels": labels})
        for source in (tmp_path, tmp_path / "labels.json"):
            data = read_dataset(source)
            assert labels_of(data) == ["cat", "dog", None, "dog"]
            assert data.sample_ids.tolist() == ["1", "2", "sub/3", "4"]
            assert sources_of(data)[2] == str(tmp_path / "data/sub/3.png")

    def test_a_folder_without_classes(self, tmp_path: Path) -> None:
        write_images(tmp_path / "data", "1.jpg", "2.png")
        write(tmp_path / "labels.json", {"classes": None, "labels": {"1": "b", "2": "a"}})
        assert labels_of(read_dataset(tmp_path)) == ["b", "a"]

    def test_lost_images_are_left_out_unless_they_are_most(self, tmp_path: Path) -> None:
        write_images(tmp_path / "data", "1.jpg", "2.png")
        content = {"classes": ["cat", "dog"], "labels": {"1": 0, "2": 1, "3": 1}}
        write(tmp_path / "labels.json", content)
        with pytest.warns(LaplaceConfidenceWarning, match="1 images .* do not exist"):
            assert len(read_dataset(tmp_path)) == 2
        content["labels"] |= {"4": 0, "5": 0}
        write(tmp_path / "labels.json", content)
        with pytest.raises(DataFormatError, match="3 of the 5 images"):
            read_dataset(tmp_path)

    @pytest.mark.parametrize("label", [2, -1, "cow", [0], True, {"label": [0, 1]}])
    def test_other_labels_are_refused(self, tmp_path: Path, label: Any) -> None:
        write_images(tmp_path / "data", "1.jpg", "2.png")
        write(tmp_path / "labels.json", {"classes": ["cat", "dog"], "labels": {"1": 0, "2": label}})
        with pytest.raises(DataFormatError, match="one label per image"):
            read_dataset(tmp_path)


def fiftyone_sample(filepath: str, **fields: str | None) -> dict[str, Any]:
    """A sample as FiftyOneDatasetExporter writes it."""
    labels = {
        name: label
        and {
            "_id": {"$oid": "0" * 24},
            "_cls": "Classification",
            "tags": [],
            "label": label,
            "confidence": None,
        }
        for name, label in fields.items()
    }
    own = {
        "_id": {"$oid": "5" * 24},
        "tags": ["train"],
        "metadata": None,
        "_media_type": "image",
        "_rand": 0.5,
    }
    return {"filepath": filepath, **own, **labels}


class TestFiftyOneSamples:
    def test_a_whole_data_set(self, tmp_path: Path) -> None:
        write_images(tmp_path / "data", "1.jpg", "sub/2.png", "3.png")
        samples = [
            fiftyone_sample("data/1.jpg", ground_truth="cat", predictions="dog"),
            fiftyone_sample("data/sub/2.png", ground_truth="dog", predictions="dog"),
            fiftyone_sample(str(tmp_path / "data/3.png"), ground_truth=None, predictions="cat"),
        ]
        write(tmp_path / "samples.json", {"samples": samples})
        write(tmp_path / "metadata.json", {"name": "pets", "media_type": "image"})
        for source in (tmp_path, tmp_path / "samples.json"):
            data = read_dataset(source)
            assert labels_of(data) == ["cat", "dog", None]
            assert data.sample_ids.tolist() == ["1.jpg", "sub/2.png", "3.png"]
            assert sources_of(data)[1] == str(tmp_path / "data/sub/2.png")
        assert labels_of(read_dataset(tmp_path, label="predictions")) == ["dog", "dog", "cat"]

    def test_the_only_field_is_found_and_one_of_several_is_named(self, tmp_path: Path) -> None:
        write_images(tmp_path / "data", "1.jpg", "2.jpg")
        samples = [fiftyone_sample("data/1.jpg", a="x"), fiftyone_sample("data/2.jpg", a="y")]
        assert labels_of(read_dataset(write(tmp_path / "samples.json", {"samples": samples}))) == ["x", "y"]
        samples[1] = fiftyone_sample("data/2.jpg", b="y")
        write(tmp_path / "samples.json", {"samples": samples})
        with pytest.raises(InvalidInputError, match="'a', 'b'"):
            read_dataset(tmp_path)
        with pytest.raises(InvalidInputError, match="type Classification"):
            read_dataset(tmp_path, label="metadata")

    @pytest.mark.parametrize("name", ["../1.jpg", "/etc/passwd", "data/../../1.jpg"])
    def test_files_outside_of_the_folder_are_refused(self, tmp_path: Path, name: str) -> None:
        write(tmp_path / "samples.json", {"samples": [fiftyone_sample(name, a="x")]})
        with pytest.raises(DataFormatError, match="not a path inside"):
            read_dataset(tmp_path / "samples.json")


def test_an_audit_reads_json_lines(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [
        json.dumps(
            {"text": f"t{row}", "label": "ab"[row % 2], "emb": (rng.normal(size=3) + row % 2 * 9).tolist()}
        )
        for row in range(40)
    ]
    (tmp_path / "data.jsonl").write_text("\n".join(lines))
    assert audit(tmp_path / "data.jsonl", estimator="knn-vote", n_neighbors=3).n_issues == 0
