"""Folders of Parquet files, Hugging Face data sets, WebDataset shards, labels beside images, Excel."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from laplaceconfidence import NoisyDataset, read_dataset
from laplaceconfidence.data.readers import decodes_images, has_published_test
from laplaceconfidence.exceptions import (
    DataFormatError,
    InvalidInputError,
    LaplaceConfidenceWarning,
    MissingDependencyError,
)


def picture(number: int, size: tuple[int, int] = (4, 5)) -> Image.Image:
    return Image.new("RGB", size, (20 * number, 0, 0))


def encoded(number: int, size: tuple[int, int] = (4, 5)) -> bytes:
    buffer = io.BytesIO()
    picture(number, size).save(buffer, "PNG")
    return buffer.getvalue()


def labels_of(data: NoisyDataset) -> list[str | None]:
    return [None if code < 0 else data.class_names[code] for code in data.labels.tolist()]


class TestParquetFolder:
    def test_files_are_one_table_in_numeric_order(self, tmp_path: Path) -> None:
        for number in (0, 1, 2, 10):
            table = pa.table({"text": [f"{number}a", f"{number}b"], "label": ["x", "y"]})
            pq.write_table(table, tmp_path / f"part-{number}.parquet")
        (tmp_path / "_SUCCESS").touch()
        data = read_dataset(tmp_path)
        assert data.sources is not None
        assert data.sources.tolist() == ["0a", "0b", "1a", "1b", "2a", "2b", "10a", "10b"]
        assert labels_of(data) == ["x", "y"] * 4

    def test_splits_as_they_are_published(self, tmp_path: Path) -> None:
        (tmp_path / "data").mkdir()
        for split, text in (("train", "a"), ("test", "b")):
            table = pa.table({"text": [text, text * 2], "label": [0, 1]})
            pq.write_table(table, tmp_path / "data" / f"{split}-00000-of-00001.parquet")
        assert read_dataset(tmp_path, split="test").sources.tolist() == ["b", "bb"]  # type: ignore[union-attr]
        with pytest.raises(InvalidInputError, match="'test', 'train'"):
            read_dataset(tmp_path)

    def test_files_with_other_columns_are_refused(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"text": ["a"], "label": ["x"]}), tmp_path / "1.parquet")
        pq.write_table(pa.table({"text": ["b"], "label": [1]}), tmp_path / "2.parquet")
        with pytest.raises(DataFormatError, match=r"2\.parquet has other columns"):
            read_dataset(tmp_path)

    def test_a_truncated_file_is_named(self, tmp_path: Path) -> None:
        for name in "12":
            pq.write_table(pa.table({"text": ["a", "b"], "label": ["x", "y"]}), tmp_path / f"{name}.parquet")
        path = tmp_path / "2.parquet"
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(DataFormatError, match=r"2\.parquet cannot be read"):
            read_dataset(tmp_path)


class TestFoldersOfTables:
    @pytest.mark.parametrize("suffix", ["csv", "csv.gz", "tsv", "jsonl", "jsonl.gz"])
    def test_files_are_one_table_in_numeric_order(self, tmp_path: Path, suffix: str) -> None:
        for number in (0, 1, 2, 10):
            frame = pd.DataFrame({"text": [f"{number}\na", f"{number}b"], "label": ["x", "y"]})
            path = tmp_path / f"part-{number}.{suffix}"
            if "json" in suffix:
                frame.to_json(path, orient="records", lines=True)
            else:
                frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
        (tmp_path / "_SUCCESS").touch()
        (tmp_path / ".part-0.csv.crc").write_text("x")
        data = read_dataset(tmp_path)
        assert data.sources is not None
        assert data.sources.tolist() == [f"{n}{end}" for n in (0, 1, 2, 10) for end in ("\na", "b")]
        assert labels_of(data) == ["x", "y"] * 4
        assert not decodes_images(tmp_path)

    def test_cells_are_what_they_are_in_one_file(self, tmp_path: Path) -> None:
        # "07" is a number in a file of numbers only, and a text beside other texts.
        (tmp_path / "a.csv").write_text("label,code,size\nx,07,1\ny,8,2\n")
        (tmp_path / "b.csv").write_text("label,code,size\nx,A1,\ny,A1,2.5\n")
        whole = tmp_path / "whole" / "one.csv"
        whole.parent.mkdir()
        whole.write_text("label,code,size\nx,07,1\ny,8,2\nx,A1,\ny,A1,2.5\n")
        with pytest.raises(DataFormatError, match="no image in any"):  # beside another folder
            read_dataset(tmp_path)
        expected = read_dataset(whole, features="code,size").columns
        whole.unlink()
        whole.parent.rmdir()
        found = read_dataset(tmp_path, features="code,size").columns
        assert found is not None
        assert expected is not None
        assert [list(cells) for cells in found.cells] == [list(cells) for cells in expected.cells]
        assert found.kinds == expected.kinds

    def test_splits_are_not_mixed(self, tmp_path: Path) -> None:
        for name in ("train.csv", "test.csv"):
            (tmp_path / name).write_text(f"text,label\n{name},x\nother,y\n")
        assert read_dataset(tmp_path, split="test").sources.tolist() == ["test.csv", "other"]  # type: ignore[union-attr]
        with pytest.raises(InvalidInputError, match="'test', 'train'"):
            read_dataset(tmp_path)

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            (
                "2.csv",
                "text,mood\nb,x\n",
                r"2\.csv has other columns .* lacks 'label' and it also has 'mood'",
            ),
            ("2.csv", "label,text\nx,b\n", r"2\.csv has other columns .*another order"),
            ("2.csv", "", r"2\.csv cannot be read"),
            ("1.csv.gz", "", r"both 1\.csv and 1\.csv\.gz"),
            ("2.jsonl", "{}", "tables of different kinds, such as"),
        ],
    )
    def test_the_odd_file_is_named(self, tmp_path: Path, name: str, content: str, message: str) -> None:
        (tmp_path / "1.csv").write_text("text,label\na,x\nb,y\n")
        (tmp_path / name).write_text(content)
        with pytest.raises(DataFormatError, match=message):
            read_dataset(tmp_path)

    def test_names_that_all_objects_of_a_part_lack(self, tmp_path: Path) -> None:
        (tmp_path / "1.jsonl").write_text(
            '{"text": "a", "label": "x", "note": 1}\n{"text": "b", "label": "y"}\n'
        )
        (tmp_path / "2.jsonl").write_text('{"text": "c", "label": "x"}\n')
        assert len(read_dataset(tmp_path)) == 3  # a note may be absent
        (tmp_path / "3.jsonl").write_text('{"content": "c", "label": "x"}\n')
        with pytest.raises(DataFormatError, match=r"3\.jsonl has other columns .*lacks 'text'"):
            read_dataset(tmp_path)

    def test_a_table_beside_images_is_no_table_of_samples(self, tmp_path: Path) -> None:
        (tmp_path / "train.csv").write_text("text,label\na,x\n")
        picture(1).save(tmp_path / "1.png")
        with pytest.raises(DataFormatError, match="no sub-folders"):
            read_dataset(tmp_path)


class TestHuggingFace:
    @pytest.fixture
    def stored(self) -> Any:
        datasets = pytest.importorskip("datasets")
        features = {"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog", "cow"])}
        content = {"image": [picture(number) for number in range(4)], "label": [0, 1, 0, 1]}
        return datasets.Dataset.from_dict(content, features=datasets.Features(features))

    def test_a_data_set_on_disk_is_that_in_memory(self, stored: Any, tmp_path: Path) -> None:
        stored.save_to_disk(tmp_path / "set", num_shards=2)
        data, expected = read_dataset(tmp_path / "set"), read_dataset(stored)
        assert data.class_names == ("cat", "dog", "cow")
        assert data.labels.tolist() == [0, 1, 0, 1]
        assert np.array_equal(np.asarray(data.images), np.asarray(expected.images))
        assert data.sample_ids.tolist() == expected.sample_ids.tolist()
        assert decodes_images(tmp_path / "set")

    def test_splits(self, stored: Any, tmp_path: Path) -> None:
        datasets = pytest.importorskip("datasets")
        datasets.DatasetDict(train=stored, test=stored.select([1])).save_to_disk(tmp_path / "set")
        assert read_dataset(tmp_path / "set", split="test").labels.tolist() == [1]
        with pytest.raises(InvalidInputError, match="'train', 'test'"):
            read_dataset(tmp_path / "set")

    def test_parquet_files_of_the_library_have_its_classes_and_images(
        self, stored: Any, tmp_path: Path
    ) -> None:
        stored.to_parquet(tmp_path / "data.parquet")
        data = read_dataset(tmp_path / "data.parquet", image_size=2)
        assert data.class_names == ("cat", "dog", "cow")
        assert data.images is not None
        assert data.images.shape == (4, 2, 2, 3)
        assert decodes_images(tmp_path / "data.parquet")

    def test_images_of_any_size_beside_features(self, tmp_path: Path) -> None:
        datasets = pytest.importorskip("datasets")
        content = {
            "image": [picture(0), picture(1, (9, 9))],
            "label": ["a", "b"],
            "embedding": [[0.0, 1.0], [1.0, 0.0]],
        }
        features = datasets.Features(
            image=datasets.Image(),
            label=datasets.Value("string"),
            embedding=datasets.List(datasets.Value("float32")),
        )
        datasets.Dataset.from_dict(content, features=features).save_to_disk(tmp_path / "set")
        assert read_dataset(tmp_path / "set").images is None
        assert read_dataset(tmp_path / "set", image_size=4).images is not None

    def test_truncated_files_are_refused_wherever_they_end(self, tmp_path: Path) -> None:
        datasets = pytest.importorskip("datasets")
        datasets.Dataset.from_dict({"text": ["a", "b"] * 500, "label": [0, 1] * 500}).save_to_disk(tmp_path)
        path = tmp_path / "data-00000-of-00001.arrow"
        content = path.read_bytes()
        for length in (0, 5, 100, len(content) // 2, len(content) - 8, len(content) - 1):
            path.write_bytes(content[:length])
            with pytest.raises(DataFormatError, match="truncated"):
                read_dataset(tmp_path)

    def test_files_outside_of_the_folder_are_refused(self, stored: Any, tmp_path: Path) -> None:
        stored.save_to_disk(tmp_path / "set")
        state = json.loads((tmp_path / "set/state.json").read_text())
        state["_data_files"] = [{"filename": "../other.arrow"}]
        (tmp_path / "set/state.json").write_text(json.dumps(state))
        with pytest.raises(DataFormatError, match="not a path inside"):
            read_dataset(tmp_path / "set")


def write_tar(path: Path, files: list[tuple[str, bytes]]) -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def shard(path: Path, first: int = 0, n: int = 4) -> Path:
    files = []
    for number in range(first, first + n):
        files += [(f"{number:04d}.png", encoded(number)), (f"{number:04d}.cls", str(number % 2).encode())]
    return write_tar(path, files)


class TestWebDataset:
    @pytest.mark.parametrize("name", ["shard.tar", "shard.tar.gz", "shard.tgz"])
    def test_images_and_classes(self, tmp_path: Path, name: str) -> None:
        data = read_dataset(shard(tmp_path / name))
        assert data.class_values.tolist() == [0, 1]
        assert data.labels.tolist() == [0, 1, 0, 1]
        assert data.images is not None
        assert data.images[:, 0, 0, 0].tolist() == [0, 20, 40, 60]
        assert data.sample_ids.tolist() == ["0000", "0001", "0002", "0003"]
        assert decodes_images(tmp_path / name)
        assert not has_published_test(tmp_path / name)

    def test_a_folder_of_shards(self, tmp_path: Path) -> None:
        shard(tmp_path / "s-2.tar", first=4)
        shard(tmp_path / "s-1.tar")
        assert read_dataset(tmp_path).sample_ids.tolist() == [f"{number:04d}" for number in range(8)]
        shard(tmp_path / "s-2.tar", first=0)
        assert read_dataset(tmp_path).sample_ids.tolist()[3:5] == ["s-1/0003", "s-2/0000"]

    def test_objects_texts_and_features(self, tmp_path: Path) -> None:
        files = []
        for number, label in enumerate(["good", "bad"]):
            vector = io.BytesIO()
            np.save(vector, np.full(3, number, dtype=np.float32))
            files += [
                (f"dir/{number}.json", json.dumps({"label": label, "other": 1}).encode()),
                (f"dir/{number}.txt", f"text {number}".encode()),
                (f"dir/{number}.npy", vector.getvalue()),
            ]
        data = read_dataset(write_tar(tmp_path / "t.tar", files))
        assert labels_of(data) == ["good", "bad"]
        assert data.sources is not None
        assert data.sources.tolist() == ["text 0", "text 1"]
        assert data.features is not None
        assert data.features.tolist() == [[0, 0, 0], [1, 1, 1]]
        assert data.sample_ids.tolist() == ["dir/0", "dir/1"]

    def test_images_of_different_sizes_need_a_size(self, tmp_path: Path) -> None:
        files = [("1.png", encoded(1)), ("1.cls", b"0"), ("2.png", encoded(2, (9, 9))), ("2.cls", b"1")]
        path = write_tar(tmp_path / "t.tar", files)
        with pytest.raises(InvalidInputError, match="'1' has 4 x 5 pixels, '2' has 9 x 9"):
            read_dataset(path)
        assert read_dataset(path, image_size=3).images.shape == (2, 3, 3, 3)  # type: ignore[union-attr]

    def test_one_of_several_images_is_named(self, tmp_path: Path) -> None:
        files = []
        for number in range(2):
            files += [
                (f"{number}.png", encoded(number)),
                (f"{number}.mask.png", encoded(9)),
                (f"{number}.cls", str(number).encode()),
            ]
        path = write_tar(tmp_path / "t.tar", files)
        with pytest.raises(InvalidInputError, match=r"mask\.png, png"):
            read_dataset(path)
        assert read_dataset(path, images="png").images[1, 0, 0, 0] == 20  # type: ignore[index]

    @pytest.mark.parametrize("name", ["s.tar", "s.tar.gz"])
    def test_truncated_archives_are_refused_wherever_they_end(self, tmp_path: Path, name: str) -> None:
        path = shard(tmp_path / name)
        content = path.read_bytes()
        step = 512 if name == "s.tar" else 37
        ends = [end for end in range(0, len(content), step) if any(content[end:])]
        for end in ends:
            path.write_bytes(content[:end])
            with pytest.raises(DataFormatError):
                read_dataset(path)

    @pytest.mark.parametrize("name", ["../0001.cls", "/etc/0001.cls", "a/../../0001.cls"])
    def test_names_that_lead_out_of_the_archive_are_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(DataFormatError, match="not a path inside"):
            read_dataset(write_tar(tmp_path / "t.tar", [(name, b"1")]))

    def test_links_are_refused(self, tmp_path: Path) -> None:
        with tarfile.open(tmp_path / "t.tar", "w") as archive:
            member = tarfile.TarInfo("1.cls")
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(member)
        with pytest.raises(DataFormatError, match="a link"):
            read_dataset(tmp_path / "t.tar")

    @pytest.mark.parametrize(
        ("file", "message"),
        [
            (("1.json", b'{"label": '), "cannot be read"),
            (("1.png", b"no image"), "cannot be"),
            (("1.npy", b"\x80\x04K\x01."), "cannot be read"),
            (("readme", b"hello"), "label"),
        ],
    )
    def test_other_content_is_refused(self, tmp_path: Path, file: tuple[str, bytes], message: str) -> None:
        path = write_tar(tmp_path / "t.tar", [file])
        with pytest.raises((DataFormatError, InvalidInputError), match=message):
            read_dataset(path)


class TestLabelsBesideImages:
    @pytest.fixture
    def photos(self, tmp_path: Path) -> Path:
        for number, name in enumerate(("001.jpg", "002.png", "sub/003.png")):
            (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
            picture(number).save(tmp_path / "photos" / name)
        return tmp_path / "photos"

    @pytest.mark.parametrize(
        ("place", "table"),
        [
            ("metadata.csv", "file_name,label\n001.jpg,cat\nsub/003.png,dog\n002.png,\n"),
            ("labels.csv", "id,label\n001,cat\n003,dog\n002,\n"),
            ("../train.csv", "image,label\n001,cat\n003.png,dog\n002,\n"),
            (
                "metadata.jsonl",
                '{"file_name": "001.jpg", "label": "cat"}\n{"file_name": "sub/003.png", "label": "dog"}\n'
                '{"file_name": "002.png", "label": null}\n',
            ),
        ],
    )
    def test_names_with_and_without_folder_and_suffix(self, photos: Path, place: str, table: str) -> None:
        (photos / place).write_text(table)
        options = {"labels": str(photos / place)} if place.startswith("..") else {}
        data = read_dataset(photos, **options)  # type: ignore[arg-type]
        assert labels_of(data) == ["cat", "dog", None]
        assert data.sources is not None
        assert data.sources.tolist() == [str(photos / name) for name in ("001.jpg", "sub/003.png", "002.png")]
        assert data.source_kind == "image"

    def test_a_table_about_something_else_is_ignored(self, tmp_path: Path) -> None:
        for name in ("cats/1.png", "dogs/2.png"):
            (tmp_path / name).parent.mkdir()
            picture(1).save(tmp_path / name)
        (tmp_path / "metadata.csv").write_text("class,license\ncats,free\n")
        assert labels_of(read_dataset(tmp_path)) == ["cats", "dogs"]
        (tmp_path / "metadata.csv").write_text("file_name,label\ncats/1.png,dogs\ndogs/2.png,cats\n")
        assert labels_of(read_dataset(tmp_path)) == ["dogs", "cats"]

    def test_what_is_in_one_of_them_only_is_left_out(self, photos: Path) -> None:
        (photos / "labels.csv").write_text("path,label\n001.jpg,cat\n002.png,dog\n9.png,dog\n")
        with pytest.warns(LaplaceConfidenceWarning) as notes:
            data = read_dataset(photos)
        assert data.sample_ids.tolist() == ["001.jpg", "002.png"]
        said = " ".join(str(note.message) for note in notes)
        assert "1 images in" in said
        assert "do not exist, such as" in said

    def test_other_images_are_refused(self, photos: Path) -> None:
        (photos / "labels.csv").write_text("path,label\na.jpg,cat\nb.jpg,dog\n")
        with (
            pytest.warns(LaplaceConfidenceWarning),
            pytest.raises(DataFormatError, match="2 of the 2 images"),
        ):
            read_dataset(photos)
        (photos / "labels.csv").write_text("path,label\n../a.jpg,cat\n001.jpg,dog\n")
        with pytest.raises(DataFormatError, match="not a path inside"):
            read_dataset(photos)
        (photos / "labels.csv").write_text("column,label\n001.jpg,cat\n002.png,dog\n")
        with pytest.raises(InvalidInputError, match="that names the images"):
            read_dataset(photos, labels=photos / "labels.csv")
        with pytest.warns(LaplaceConfidenceWarning, match="1 images"):
            assert len(read_dataset(photos, path="column")) == 2

    def test_a_name_that_fits_several_images_is_refused(self, photos: Path) -> None:
        picture(1).save(photos / "sub/001.png")
        (photos / "labels.csv").write_text("id,label\n001,cat\n002,dog\n")
        with pytest.raises(DataFormatError, match="may be any of"):
            read_dataset(photos)


class TestExcel:
    def test_the_first_sheet_is_read(self, tmp_path: Path) -> None:
        pytest.importorskip("openpyxl")
        frame = pd.DataFrame({"review": ["a", "NA", "c"], "mood": ["good", None, "bad"], "x": [0.5, 1, 2]})
        with pd.ExcelWriter(tmp_path / "t.xlsx") as file:
            frame.to_excel(file, index=False, sheet_name="one")
            frame.to_excel(file, index=False, sheet_name="two")
        with pytest.warns(LaplaceConfidenceWarning, match="2 sheets"):
            data = read_dataset(tmp_path / "t.xlsx", label="mood", text="review", features=["x"])
        assert labels_of(data) == ["good", None, "bad"]
        assert data.sources is not None
        assert data.sources.tolist() == ["a", "NA", "c"]
        assert data.features is not None
        assert data.features.tolist() == [[0.5], [1.0], [2.0]]

    def test_numbers_are_classes(self, tmp_path: Path) -> None:
        pytest.importorskip("openpyxl")
        pd.DataFrame({"text": list("abc"), "label": [3, None, 7]}).to_excel(tmp_path / "t.xlsx", index=False)
        assert read_dataset(tmp_path / "t.xlsx").class_values.tolist() == [3, 7]

    def test_damage(self, tmp_path: Path) -> None:
        pytest.importorskip("openpyxl")
        pd.DataFrame({"text": list("abc"), "label": [3, 4, 7]}).to_excel(tmp_path / "t.xlsx", index=False)
        content = (tmp_path / "t.xlsx").read_bytes()
        for length in (0, 10, len(content) // 2, len(content) - 5):
            (tmp_path / "t.xlsx").write_bytes(content[:length])
            with pytest.raises(DataFormatError, match="cannot be read as an Excel file"):
                read_dataset(tmp_path / "t.xlsx")

    def test_without_openpyxl_the_extra_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("laplaceconfidence.data.excel_reader.find_spec", lambda name: None)
        (tmp_path / "t.xlsx").write_bytes(b"")
        with pytest.raises(MissingDependencyError, match=r"laplaceconfidence\[excel\]"):
            read_dataset(tmp_path / "t.xlsx")
