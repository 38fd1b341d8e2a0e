"""Mini-WebVision and ILSVRC12 in small trees of the published layouts."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from laplaceconfidence.data.images import load_images
from laplaceconfidence.data.readers import has_published_test, read_dataset
from laplaceconfidence.data.webvision import N_CLASSES, is_webvision_folder, read_ilsvrc_validation
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError

SYNSETS = [f"n{1440764 + 100 * code:08d}" for code in range(1000)]


def jpeg(path: Path, color: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (12, 10), (color, 100, 50)).save(path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three classes of the first 50 and one beyond, as in WebVision 1.0."""
    (tmp_path / "info").mkdir()
    train = [(f"google/q{code + 1:04d}/{name}.jpg", code) for code in (0, 1, 49, 50, 999) for name in "ab"]
    lines = [f"{name} {code}\n" for name, code in train]
    (tmp_path / "info" / "train_filelist_google.txt").write_text("".join(lines))
    for name, code in train[:6]:  # images of the other classes are never looked for
        jpeg(tmp_path / name, code)
    validation = [("val000001.jpg", 49), ("val000002.jpg", 700), ("val000003.jpg", 0)]
    lines = [f"{name} {code}\n" for name, code in validation]
    (tmp_path / "info" / "val_filelist.txt").write_text("".join(lines))
    for name, code in validation:
        jpeg(tmp_path / "val_images_256" / name, code % 256)
    lines = [f"{synset} name, other name\n" for synset in SYNSETS]
    (tmp_path / "info" / "synsets.txt").write_text("".join(lines))
    return tmp_path


def test_only_the_first_classes_are_read(tree: Path) -> None:
    data = read_dataset(tree)
    assert data.class_names == tuple(SYNSETS[:50])
    assert data.labels.tolist() == [0, 0, 1, 1, 49, 49]
    assert data.sample_ids.tolist()[:2] == ["google/q0001/a.jpg", "google/q0001/b.jpg"]
    assert data.source_kind == "image"
    assert data.sources is not None
    images = load_images(data.sources.tolist())
    assert images.shape == (6, 10, 12, 3)
    np.testing.assert_allclose(images[:, 0, 0, 0], data.labels, atol=6)  # JPEG blurs


def test_its_own_validation_images_are_the_test_set(tree: Path) -> None:
    assert is_webvision_folder(tree)
    assert has_published_test(tree)
    test = read_dataset(tree, split="test")
    assert test.labels.tolist() == [49, 0]
    assert test.class_names == read_dataset(tree).class_names
    assert test.sources is not None
    assert load_images(test.sources.tolist()).shape == (2, 10, 12, 3)


def test_classes_are_numbered_without_the_list_of_synsets(tree: Path) -> None:
    (tree / "info" / "synsets.txt").unlink()
    assert read_dataset(tree).class_names == tuple(str(code) for code in range(50))


def test_features_may_come_along(tree: Path) -> None:
    features = np.random.default_rng(0).normal(size=(6, 4))
    assert read_dataset(tree, features=features).features is not None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("google/a.jpg\n", r"Line 1 of .*train_filelist_google.txt must be a name and a class"),
        ("google/a.jpg cat\n", r"must have lines such as 'google/q0001/abc.jpg 0'. Got 'google/a.jpg cat'"),
        ("google/a.jpg 50\n", "has no image of the first 50 classes"),
        (b"\xff\xfe\xff", "cannot be read"),
    ],
)
def test_broken_lists_are_named(tree: Path, content: str | bytes, message: str) -> None:
    path = tree / "info" / "train_filelist_google.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataFormatError, match=message):
        read_dataset(tree)


def test_a_short_list_of_synsets_is_named(tree: Path) -> None:
    (tree / "info" / "synsets.txt").write_text("n01440764 tench\n")
    with pytest.raises(DataFormatError, match=r"must name 50 different classes or more.*it has 1 lines"):
        read_dataset(tree)


def test_other_options_are_refused(tree: Path) -> None:
    with pytest.raises(InvalidInputError, match="'label' parameter must be left out for WebVision"):
        read_dataset(tree, label="fine")
    with pytest.raises(InvalidInputError, match="'split' parameter must be one of 'train', 'test'"):
        read_dataset(tree, split="all")


class TestIlsvrc:
    """The second test set: ILSVRC12's validation images of the same classes."""

    names = SYNSETS[:N_CLASSES]

    def test_one_folder_a_synset(self, tmp_path: Path) -> None:
        for code in (0, 3, 60):
            jpeg(tmp_path / SYNSETS[code] / f"ILSVRC2012_val_{code:08d}.JPEG", code)
        data = read_ilsvrc_validation(tmp_path, self.names)
        assert data.labels.tolist() == [0, 3]
        assert data.class_names == tuple(self.names)
        assert data.sample_ids[0] == f"{SYNSETS[0]}/ILSVRC2012_val_00000000.JPEG"

    @pytest.mark.parametrize("by_number", [False, True])
    def test_images_beside_each_other_with_val_txt(self, tmp_path: Path, by_number: bool) -> None:
        lines = []
        for number, code in enumerate((7, 999, 2)):
            jpeg(tmp_path / "val" / f"{number}.JPEG", code % 256)
            lines.append(f"{number}.JPEG {code if by_number else SYNSETS[code]}\n")
        (tmp_path / "val.txt").write_text("".join(lines))
        data = read_ilsvrc_validation(tmp_path / "val", self.names)
        assert data.labels.tolist() == [7, 2]
        assert data.sample_ids.tolist() == ["0.JPEG", "2.JPEG"]

    def test_images_beside_each_other_with_a_synset_a_line(self, tmp_path: Path) -> None:
        for number in range(3):
            jpeg(tmp_path / f"{number}.JPEG", number)
        (tmp_path / "synset_labels.txt").write_text("\n".join(SYNSETS[code] for code in (1, 80, 0)) + "\n")
        assert read_ilsvrc_validation(tmp_path, self.names).labels.tolist() == [1, 0]
        (tmp_path / "synset_labels.txt").write_text(SYNSETS[0])
        with pytest.raises(DataFormatError, match="it has 1, there are 3 images"):
            read_ilsvrc_validation(tmp_path, self.names)

    def test_other_folders_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(DataFormatError, match=r"no sub-folder of the classes .*n01440764.* add val.txt"):
            read_ilsvrc_validation(tmp_path, self.names)
        with pytest.raises(InvalidInputError, match="'folder' parameter must be the folder of ILSVRC12's"):
            read_ilsvrc_validation(tmp_path / "absent", self.names)
        jpeg(tmp_path / "a.JPEG", 1)
        (tmp_path / "val.txt").write_text("a.JPEG 900\n")
        with pytest.raises(DataFormatError, match="holds no image of the 50 classes"):
            read_ilsvrc_validation(tmp_path, self.names)
