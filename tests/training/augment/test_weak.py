"""The weak view against padding, cutting and flipping by hand."""

from itertools import product

import numpy as np
import pytest
import torch
from real_images import real_images

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.augment.weak import WeakAugment


def possible_views(image: np.ndarray, weak: WeakAugment) -> list[np.ndarray]:
    """Every crop of the padded image, and its mirror image, by NumPy."""
    height, width = weak.size or image.shape[1:]
    margins = [(0, 0), (weak.padding, weak.padding), (weak.padding, weak.padding)]
    padded = np.pad(image, margins, mode="constant" if weak.padding_mode == "zeros" else "reflect")
    offsets = product(range(padded.shape[1] - height + 1), range(padded.shape[2] - width + 1))
    crops = [padded[:, top : top + height, left : left + width] for top, left in offsets]
    return crops + [crop[:, :, ::-1] for crop in crops] if weak.flip else crops


@pytest.mark.parametrize(
    "weak",
    [
        WeakAugment(),
        WeakAugment(padding=1, flip=False),
        WeakAugment(padding=3, padding_mode="reflect"),
        WeakAugment(padding=0, size=(20, 17)),
        WeakAugment(padding=2, size=(33, 35), flip=False),
    ],
    ids=str,
)
def test_every_view_is_a_crop_of_the_padded_image(weak: WeakAugment) -> None:
    images = real_images("color_digits", 20)
    views = weak(images, torch.Generator().manual_seed(0)).numpy()
    for image, view in zip(images.numpy(), views, strict=True):
        assert any(np.array_equal(view, possible) for possible in possible_views(image, weak))


def test_all_crops_come_up_equally_often() -> None:
    weak = WeakAugment(padding=1)
    image = torch.arange(1, 13, dtype=torch.uint8).view(1, 1, 3, 4)
    views = weak(image.expand(9000, 1, 3, 4), torch.Generator().manual_seed(0))
    _, counts = views.flatten(1).unique(dim=0, return_counts=True)
    assert len(counts) == 3 * 3 * 2
    assert counts.min() > 400  # 500 expected, standard deviation 22


def test_floating_point_images_may_be_normalized() -> None:
    images = torch.randn(5, 3, 9, 9)
    assert WeakAugment(padding=0)(images, torch.Generator().manual_seed(1)).abs().sum() == pytest.approx(
        float(images.abs().sum())
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"padding": -1}, "'padding'"),
        ({"padding_mode": "mirror"}, "'padding_mode'"),
        ({"size": (0, 4)}, "'size'"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        WeakAugment(**settings)  # type: ignore[arg-type]


def test_crops_that_do_not_fit_are_refused() -> None:
    images = torch.zeros(2, 1, 8, 8, dtype=torch.uint8)
    generator = torch.Generator()
    with pytest.raises(InvalidInputError, match="12 x 12"):
        WeakAugment(padding=2, size=(13, 8))(images, generator)
    with pytest.raises(InvalidInputError, match="to reflect"):
        WeakAugment(padding=8, padding_mode="reflect")(images, generator)
