"""What images an augmentation takes, and in what type it gives them back."""

import pytest
import torch
from real_images import real_images

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.augment.cutout import Cutout
from laplaceconfidence.training.augment.protocol import Augmentation, Chain, Unchanged
from laplaceconfidence.training.augment.registry import STRONG
from laplaceconfidence.training.augment.weak import WeakAugment

ALL: dict[str, Augmentation] = {
    **{name: factory() for name, factory in STRONG.items()},
    "weak": WeakAugment(padding=2),
    "cutout": Cutout(),
    "weak, then strong": Chain((WeakAugment(padding=2), STRONG["randaugment"]())),
}
ON_BYTES = [name for name in ALL if name not in ("none", "weak")]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("kind", ["digits", "large_digits", "color_digits"])
@pytest.mark.parametrize("name", ALL)
def test_shape_and_type_stay(name: str, kind: str) -> None:
    images = real_images(kind)
    result = ALL[name](images, seeded())
    assert result.shape == images.shape
    assert result.dtype == torch.uint8


@pytest.mark.parametrize("name", ALL)
def test_one_seed_gives_one_batch_and_another_seed_another(name: str) -> None:
    images = real_images("color_digits")
    before = images.clone()
    first, again, other = (ALL[name](images, seeded(seed)) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert torch.equal(images, before)
    if name != "none":
        assert not torch.equal(first, other)
        assert not torch.equal(first, images)


@pytest.mark.parametrize("name", ALL)
def test_nothing_but_the_generator_is_random(name: str) -> None:
    images = real_images("digits")
    state = torch.get_rng_state()
    ALL[name](images, seeded())
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", ON_BYTES)
def test_floating_point_images_go_the_way_of_bytes(name: str, dtype: torch.dtype) -> None:
    images = real_images("color_digits")
    expected = ALL[name](images, seeded())
    result = ALL[name]((images / 255).to(torch.float32 if dtype == torch.bfloat16 else dtype), seeded())
    assert torch.equal((result * 255).round().to(torch.uint8), expected)
    assert ALL[name](torch.zeros(2, 1, 8, 8, dtype=dtype), seeded()).dtype == dtype


@pytest.mark.parametrize("name", ON_BYTES)
def test_normalized_images_are_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"values -\d.*normalize afterwards"):
        ALL[name](torch.linspace(-1, 0, 2 * 3 * 8 * 8).view(2, 3, 8, 8), seeded())
    with pytest.raises(InvalidInputError, match=r"torch\.int64"):
        ALL[name](torch.zeros(2, 3, 8, 8, dtype=torch.int64), seeded())


@pytest.mark.parametrize("name", [*ON_BYTES, "weak"])
def test_what_is_no_batch_of_images_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"shape \(4, 7\)"):
        ALL[name](torch.zeros(4, 7), seeded())


def test_no_augmentation_takes_anything() -> None:
    features = torch.randn(4, 7)
    assert Unchanged()(features, seeded()) is features


@pytest.mark.parametrize("name", ALL)
def test_batches_of_none_and_of_one(name: str) -> None:
    images = real_images("color_digits", 1)
    assert ALL[name](images, seeded()).shape == images.shape
    assert ALL[name](images[:0], seeded()).shape == images[:0].shape
