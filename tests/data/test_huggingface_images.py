"""Hugging Face datasets with columns of images and named classes; frames of other makes; columns by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from laplaceconfidence import audit, read_dataset
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError

datasets = pytest.importorskip("datasets")


def picture(number: int, size: tuple[int, int] = (5, 6)) -> Image.Image:
    return Image.new("RGB", size, (20 * number, 0, 255))


def image_set(images: list[Any], **columns: Any) -> Any:
    features = {"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog", "cow"])}
    content = {"image": images, "label": [number % 2 for number in range(len(images))]}
    for name, (values, kind) in columns.items():
        content[name], features[name] = values, kind
    return datasets.Dataset.from_dict(content, features=datasets.Features(features))


def test_images_in_memory_and_names_of_classes() -> None:
    data = read_dataset(image_set([picture(number) for number in range(4)]))
    assert data.class_names == ("cat", "dog", "cow")
    assert data.labels.tolist() == [0, 1, 0, 1]
    assert data.images is not None
    assert data.images.shape == (4, 6, 5, 3)
    assert data.images[:, 0, 0].tolist() == [[20 * number, 0, 255] for number in range(4)]
    assert data.features is None


def test_images_that_are_files_stay_files(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{number}.png") for number in range(3)]
    for number, path in enumerate(paths):
        picture(number).save(path)
    data = read_dataset(image_set(paths))
    assert data.images is None
    assert data.source_kind == "image"
    assert data.sources is not None
    assert data.sources.tolist() == paths


def test_numbers_beside_images_are_features_only_on_request() -> None:
    source = image_set(
        [picture(number) for number in range(3)],
        width=([5, 5, 5], datasets.Value("int64")),
        embedding=([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], datasets.List(datasets.Value("float32"))),
    )
    data = read_dataset(source)
    assert data.features is not None
    assert data.features.shape == (3, 2)
    assert data.images is not None
    assert read_dataset(source.remove_columns("embedding")).features is None
    requested = read_dataset(source, features=["width"]).features
    assert requested is not None
    assert requested.tolist() == [[5], [5], [5]]


def test_images_of_different_sizes_need_a_size() -> None:
    source = image_set([picture(0), picture(1, (8, 3))])
    with pytest.raises(InvalidInputError, match=r"'image_size'.*row 0 has 5 x 6 pixels, row 1 has 8 x 3"):
        read_dataset(source)
    images = read_dataset(source, image_size=4).images
    assert images is not None
    assert images.shape == (2, 4, 4, 3)


def test_several_columns_of_images_and_columns_of_none() -> None:
    source = image_set([picture(0), picture(1)], other=([picture(2), picture(3)], datasets.Image()))
    with pytest.raises(
        InvalidInputError, match=r"'images' .*several columns of images: \['image', 'other'\]"
    ):
        read_dataset(source)
    images = read_dataset(source, images="other").images
    assert images is not None
    assert images[0, 0, 0, 0] == 40
    with pytest.raises(InvalidInputError, match=r"'images' .*a column of images.*'image', 'other'.*'label'"):
        read_dataset(source, images="label")


def test_damaged_and_missing_images_are_named() -> None:
    source = image_set([picture(0), {"bytes": b"no image", "path": None}])
    with pytest.raises(DataFormatError, match="row 1 of the column 'image' cannot be decoded"):
        read_dataset(source)
    with pytest.raises(DataFormatError, match="no image in row 0 of the column 'image'"):
        read_dataset(image_set([None, picture(1)]))


def test_an_audit_of_images_alone_says_what_it_needs() -> None:
    with pytest.raises(InvalidInputError, match="has images: name an"):
        audit(image_set([picture(number) for number in range(4)]))


def test_arrow_tables_and_whatever_gives_them() -> None:
    table = pa.table({"mood": ["a", "b"], "emb_0": [1.0, 2.0], "emb_1": [3, 4], "note": ["x", "y"]})

    class PolarsLike:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return table.__arrow_c_stream__(requested_schema)

    for source in (table, PolarsLike()):
        data = read_dataset(source, label="mood", features="emb_*", text="note")
        assert data.class_names == ("a", "b")
        assert data.features is not None
        assert data.features.tolist() == [[1, 3], [2, 4]]
        assert data.sources is not None
        assert data.sources.tolist() == ["x", "y"]


def test_columns_by_name() -> None:
    data = read_dataset({"mood": ["a", "b", None], "emb": np.eye(3)}, label="mood", features="emb")
    assert data.labels.tolist() == [0, 1, -1]
    assert data.features is not None
    assert data.features.tolist() == np.eye(3).tolist()
    with pytest.raises(InvalidInputError, match=r"columns of one length.*'a': 2, 'label': 3"):
        read_dataset({"a": [1, 2], "label": [0, 1, 0]})
    with pytest.raises(InvalidInputError, match="one entry per sample"):
        read_dataset({"a": 1})
