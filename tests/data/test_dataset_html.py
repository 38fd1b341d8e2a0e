"""What a notebook shows of a data set."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from html_pages import EVIL, Page
from laplaceconfidence import NoisyDataset, read_dataset
from laplaceconfidence.data.picture_encoding import encode_picture


def test_digits_are_shown_with_their_pictures() -> None:
    page = Page(read_dataset("digits")._repr_html_())
    assert "1,797 samples of 10 classes" in page.text
    assert "64 features" in page.text
    assert "images of 8 × 8 × 1" in page.text
    addresses = [attributes["src"] for tag, attributes in page.tags if tag == "img"]
    assert len(addresses) == 8
    assert all(address is not None and address.startswith("data:image/png;base64,") for address in addresses)


def test_names_and_texts_are_escaped_and_shortened() -> None:
    texts = [EVIL, "long " * 1000, "", "d"]
    data = NoisyDataset.from_arrays(
        [EVIL, "b", "b", None], sources=texts, source_kind="text", ids=list("wxyz")
    )
    page = Page(data._repr_html_())
    assert {tag for tag, _ in page.tags} & {"script", "img"} == set()
    assert EVIL in page.text
    assert "1 without a label" in page.text
    assert "no label" in page.text
    assert "texts" in page.text
    assert len(page.text) < 2_000


def test_counts_of_every_class_and_of_those_left_out() -> None:
    labels = np.repeat(np.arange(30), np.arange(30, 0, -1))
    page = Page(NoisyDataset.from_arrays(labels, np.ones((len(labels), 2)))._repr_html_())
    assert "and 18 classes with fewer labels" in page.text
    widths = [a["style"] for _, a in page.tags if a.get("class") == "lc-bar"]
    assert len(widths) == 12
    assert widths[0] is not None
    assert widths[0].startswith("width:100.0%")


def test_files_that_are_no_images_are_shown_as_such(tmp_path: Path) -> None:
    Image.new("RGB", (200, 100), (255, 0, 0)).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"no image")
    paths = [str(tmp_path / name) for name in ("a.png", "b.png", "gone.png")]
    data = NoisyDataset.from_arrays([0, 1, 1], sources=paths, source_kind="image")
    page = Page(data._repr_html_())
    assert len([tag for tag, _ in page.tags if tag == "img"]) == 1
    assert page.text.count("picture cannot be read") == 2


@pytest.mark.parametrize(
    ("shape", "kind"), [((8, 8, 1), "png"), ((8, 8, 4), "png"), ((300, 200, 3), "jpeg"), ((9, 9, 7), "png")]
)
def test_pictures_of_every_shape(shape: tuple[int, ...], kind: str) -> None:
    picture = encode_picture(np.full(shape, 9, dtype=np.uint8), 100)
    assert picture.media_type == f"image/{kind}"
    assert picture.is_coarse == (kind == "png")


def test_the_plain_description_is_one_short_line() -> None:
    data = read_dataset("digits")
    assert repr(data) == "NoisyDataset(1797 samples, 10 classes, 64 features, images of 8 x 8 x 1)"
