"""Map-style datasets of (input, label): those of torch, and whatever looks like them."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from PIL import Image

from laplaceconfidence import read_dataset
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError


class Pairs:
    """A dataset that is of no library."""

    def __init__(self, inputs: Any, labels: Any, classes: Any = None) -> None:
        self.inputs, self.labels = inputs, labels
        if classes is not None:
            self.classes = classes

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, row: int) -> tuple[Any, Any]:
        return self.inputs[row], self.labels[row]


def test_vectors_become_features() -> None:
    data = read_dataset(Pairs(np.arange(6.0).reshape(3, 2), ["a", "b", "a"]))
    assert data.features is not None
    assert data.features.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert data.class_names == ("a", "b")


def test_tensors_of_torch_and_subsets_with_their_names() -> None:
    torch = pytest.importorskip("torch")
    whole = torch.utils.data.TensorDataset(torch.eye(4), torch.tensor([0, 1, 1, 0]))
    whole.classes = ["cat", "dog", "cow"]
    data = read_dataset(torch.utils.data.Subset(whole, [1, 3]))
    assert data.class_names == ("cat", "dog", "cow")
    assert data.labels.tolist() == [1, 0]
    assert data.features is not None
    assert data.features.argmax(axis=1).tolist() == [1, 3]


def test_images_of_tensors_have_their_channels_first() -> None:
    torch = pytest.importorskip("torch")
    images = torch.zeros(2, 3, 4, 5)
    images[1, 2] = 1.0
    data = read_dataset(torch.utils.data.TensorDataset(images, torch.tensor([0, 1])))
    assert data.features is None
    assert data.images is not None
    assert data.images.shape == (2, 4, 5, 3)
    assert data.images[1, :, :, 2].min() == 255
    assert data.images[1, :, :, :2].max() == 0


@pytest.mark.parametrize(
    ("shape", "read_as"),
    [((4, 5), (4, 5, 1)), ((4, 5, 3), (4, 5, 3)), ((3, 4, 5), (4, 5, 3)), ((1, 8, 8), (8, 8, 1))],
)
def test_images_of_arrays(shape: tuple[int, ...], read_as: tuple[int, ...]) -> None:
    inputs = np.full((2, *shape), 7, dtype=np.uint8)
    data = read_dataset(Pairs(inputs, [0, 1]))
    assert data.images is not None
    assert data.images.shape == (2, *read_as)
    assert (data.images == 7).all()


def test_normalized_images_are_stretched_to_bytes() -> None:
    inputs = np.linspace(-2, 2, 2 * 4 * 4 * 3).reshape(2, 4, 4, 3)
    images = read_dataset(Pairs(inputs, [0, 1])).images
    assert images is not None
    assert (images.min(), images.max()) == (0, 255)


def test_images_of_pillow_and_of_different_sizes() -> None:
    pictures = [Image.new("RGB", (6, 4), (255, 0, 0)), Image.new("RGB", (9, 9), (0, 0, 255))]
    with pytest.raises(InvalidInputError, match=r"\(4, 6, 3\) as in row 0.*\(9, 9, 3\) in row 1.*image_size"):
        read_dataset(Pairs(pictures, [0, 1]))
    data = read_dataset(Pairs(pictures, [0, 1]), image_size=(3, 5))
    assert data.images is not None
    assert data.images.shape == (2, 3, 5, 3)
    assert data.images[1, 0, 0].tolist() == [0, 0, 255]


def test_features_beside_images_and_missing_labels() -> None:
    images = np.zeros((3, 4, 4, 3), dtype=np.uint8)
    data = read_dataset(Pairs(images, [0, -1, 1], classes=["a", "b"]), features=np.eye(3))
    assert data.features is not None
    assert data.features.shape == (3, 3)
    assert data.labels.tolist() == [0, -1, 1]


def test_what_cannot_be_read_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"'source' .*numbers or images.*str in row 0"):
        read_dataset(Pairs(["some text", "more"], [0, 1]))
    with pytest.raises(InvalidInputError, match="'label' parameter must be left out for a dataset of pairs"):
        read_dataset(Pairs(np.eye(2), [0, 1]), label="y")
    with pytest.raises(DataFormatError, match="NaN"):
        read_dataset(Pairs(np.full((2, 4, 4), np.nan), [0, 1]))
    with pytest.raises(InvalidInputError, match=r"vectors or images.*shape \(2, 2, 2, 2\)"):
        read_dataset(Pairs(np.ones((2, 2, 2, 2, 2)), [0, 1]))


def test_reading_pairs_does_not_load_torch() -> None:
    code = (
        "import sys, numpy as np\n"
        "from laplaceconfidence import read_dataset\n"
        "class Pairs:\n"
        "    def __len__(self): return 2\n"
        "    def __getitem__(self, row): return np.eye(2)[row], row\n"
        "assert len(read_dataset(Pairs())) == 2\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
