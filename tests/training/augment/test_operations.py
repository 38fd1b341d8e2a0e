"""Every operation against Pillow's, on real images, with another magnitude for every image."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pillow_operations import PILLOW_OPERATIONS, by_pillow
from real_images import KINDS, real_images

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.augment.move import MOVES
from laplaceconfidence.training.augment.operations import CODES, OPERATIONS, apply_operations
from laplaceconfidence.training.augment.recolor import RECOLORS

# Wider than any policy uses, and with the ends, where rounding and clipping change.
RANGES = {
    "brightness": (0, 2),
    "color": (0, 2),
    "contrast": (0, 2),
    "sharpness": (0, 2),
    "posterize": (1, 8),
    "solarize": (0, 256),
    "rotate": (-180, 180),
    "shear_x": (-0.5, 0.5),
    "shear_y": (-0.5, 0.5),
    "translate_x": (-1.1, 1.1),
    "translate_y": (-1.1, 1.1),
}


def magnitudes_of(name: str, n: int) -> np.ndarray:
    low, high = RANGES.get(name, (0, 1))
    drawn = np.random.default_rng(0).uniform(low, high, n)
    drawn[:3] = low, high, 1.0
    return drawn


def apply_one(images: torch.Tensor, name: str, magnitudes: np.ndarray, fill: int = 0) -> torch.Tensor:
    return apply_operations(images, np.full(len(images), CODES[name]), magnitudes, fill)


def test_every_operation_has_a_pillow_counterpart() -> None:
    assert set(OPERATIONS) == set(PILLOW_OPERATIONS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RECOLORS)
def test_recoloring_is_pillows_to_the_gray_level(name: str, kind: str) -> None:
    images = real_images(kind)
    magnitudes = magnitudes_of(name, len(images))
    assert torch.equal(apply_one(images, name, magnitudes), by_pillow(images, name, magnitudes))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fill", [0, 128])
@pytest.mark.parametrize("name", MOVES)
def test_moving_is_pillows_nearest_neighbor_to_the_pixel(name: str, fill: int, kind: str) -> None:
    images = real_images(kind)
    magnitudes = magnitudes_of(name, len(images))
    assert torch.equal(apply_one(images, name, magnitudes, fill), by_pillow(images, name, magnitudes, fill))


@pytest.mark.parametrize("name", ["autocontrast", "equalize"])
@settings(max_examples=50, deadline=None)
@given(levels=st.lists(st.integers(0, 255), min_size=1, max_size=4), seed=st.integers(0, 2**16))
def test_images_of_few_gray_levels_are_pillows_too(name: str, levels: list[int], seed: int) -> None:
    values = np.random.default_rng(seed).choice(levels, (2, 3, 24, 24)).astype(np.uint8)
    images = torch.from_numpy(values)
    assert torch.equal(apply_one(images, name, np.zeros(2)), by_pillow(images, name, np.zeros(2)))


@pytest.mark.parametrize("shape", [(1, 1), (2, 5), (1, 9)])
@pytest.mark.parametrize("name", OPERATIONS)
def test_tiny_images_are_pillows_too(name: str, shape: tuple[int, int]) -> None:
    images = torch.from_numpy(np.random.default_rng(1).integers(0, 256, (6, 3, *shape)).astype(np.uint8))
    magnitudes = magnitudes_of(name, len(images))
    assert torch.equal(apply_one(images, name, magnitudes), by_pillow(images, name, magnitudes))


def test_a_mixed_batch_is_each_image_on_its_own() -> None:
    images = real_images("color_digits", 60)
    random = np.random.default_rng(2)
    codes = random.integers(len(OPERATIONS), size=len(images))
    magnitudes = np.array([magnitudes_of(OPERATIONS[code], 30)[random.integers(30)] for code in codes])
    result = apply_operations(images, codes, magnitudes, fill=9)
    for i, code in enumerate(codes):
        alone = by_pillow(images[i : i + 1], OPERATIONS[code], magnitudes[i : i + 1], fill=9)
        assert torch.equal(result[i], alone[0]), OPERATIONS[code]


def test_the_given_images_are_left_alone() -> None:
    images = real_images("color_digits", 30)
    before = images.clone()
    apply_operations(images, np.arange(30) % len(OPERATIONS), np.full(30, 4.0))
    assert torch.equal(images, before)


def test_images_laid_out_channels_last_give_the_same() -> None:
    images = real_images("color_digits", 30)
    codes, magnitudes = np.arange(30) % len(OPERATIONS), np.full(30, 0.3)
    other = images.contiguous(memory_format=torch.channels_last)
    assert torch.equal(
        apply_operations(images, codes, magnitudes), apply_operations(other, codes, magnitudes)
    )


def test_an_empty_batch_stays_empty() -> None:
    images = torch.zeros(0, 3, 8, 8, dtype=torch.uint8)
    assert apply_operations(images, np.zeros(0, dtype=np.int64), np.zeros(0)).shape == images.shape


@pytest.mark.parametrize("name", ["color", "contrast"])
def test_channels_that_are_no_colors_are_refused(name: str) -> None:
    images = torch.zeros(2, 5, 8, 8, dtype=torch.uint8)
    with pytest.raises(InvalidInputError, match="5 channels"):
        apply_one(images, name, np.full(2, 0.5))
