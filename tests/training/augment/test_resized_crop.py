"""Random resized crops against Pillow's, and networks that see the center where nothing is random."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from laplaceconfidence import RobustClassifier
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.augment.resized_crop import RandomResizedCrop, center_crop


def images(n: int, height: int, width: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (n, 3, height, width), dtype=np.uint8))


@pytest.mark.parametrize(("height", "width"), [(40, 40), (30, 50)])
def test_parts_are_cropped_and_resized_as_pillow_does(height: int, width: int) -> None:
    batch, crop = images(20, height, width), RandomResizedCrop(48, flip=False)
    found = crop(batch, torch.Generator().manual_seed(3))
    parts = crop._rectangles(20, height, width, torch.Generator().manual_seed(3))
    for image, result, top, left, tall, wide in zip(batch, found, *parts, strict=True):
        picture = Image.fromarray(image.permute(1, 2, 0).numpy())
        box = (int(left), int(top), int(left + wide), int(top + tall))
        expected = np.asarray(picture.crop(box).resize((48, 48), Image.Resampling.BILINEAR))
        if max(tall, wide) <= 48:  # Pillow averages where it makes images smaller
            assert np.abs(result.permute(1, 2, 0).numpy().astype(int) - expected).max() <= 1


def test_parts_have_the_shares_and_ratios_of_the_settings() -> None:
    generator = torch.Generator().manual_seed(0)
    tops, lefts, heights, widths = RandomResizedCrop(8)._rectangles(3000, 320, 320, generator)
    assert ((tops >= 0) & (lefts >= 0) & (tops + heights <= 320) & (lefts + widths <= 320)).all()
    shares, ratios = heights * widths / 320**2, widths / heights
    assert 0.07 < shares.min() < 0.1
    assert 0.9 < shares.max() <= 1
    assert 0.74 < ratios.min() < 0.77
    assert 1.3 < ratios.max() < 1.35
    assert np.mean(np.log(ratios)) == pytest.approx(0, abs=0.01)


def test_elongated_images_fall_back_to_their_center() -> None:
    crop = RandomResizedCrop(4, shares=(1.0, 1.0))
    found = crop._rectangles(2, 10, 40, torch.Generator().manual_seed(0))
    assert [part.tolist() for part in found] == [[0, 0], [13, 13], [10, 10], [13, 13]]


def test_half_are_flipped_and_one_seed_gives_one_result() -> None:
    whole = RandomResizedCrop(16, shares=(1.0, 1.0), ratios=(1.0, 1.0))
    batch = images(200, 16, 16)
    found = whole(batch, torch.Generator().manual_seed(1))
    same = (found == batch).flatten(1).all(dim=1)
    mirrored = (found == batch.flip(3)).flatten(1).all(dim=1)
    assert (same ^ mirrored).all()
    assert 70 < int(mirrored.sum()) < 130
    assert torch.equal(found, whole(batch, torch.Generator().manual_seed(1)))
    scaled = whole(batch / 255, torch.Generator().manual_seed(1))
    torch.testing.assert_close(scaled, found / 255)


def test_the_center_is_that_of_the_image() -> None:
    batch = images(1, 9, 12)
    assert torch.equal(center_crop(batch, 5), batch[..., 2:7, 3:8])
    assert torch.equal(center_crop(batch, 12), batch)


def test_networks_see_the_center_where_nothing_is_random(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    pictures = rng.integers(0, 80, (40, 12, 12, 3), dtype=np.uint8)
    pictures[labels == 1, 4:8, 4:8] += 150
    classifier = RobustClassifier(
        "small_cnn",
        "cross_entropy",
        rounds=2,
        batch_size=16,
        weak=RandomResizedCrop(8),
        device="cpu",
        n_jobs=1,
    ).fit(pictures, labels)
    expected = classifier.predict_proba(pictures)
    other_borders = pictures.copy()
    other_borders[:, :2] = other_borders[:, -2:] = other_borders[:, :, :2] = other_borders[:, :, -2:] = 255
    np.testing.assert_array_equal(classifier.predict_proba(other_borders), expected)
    module = classifier.as_module()
    pixels = torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255
    np.testing.assert_allclose(module(pixels).numpy(), expected, atol=1e-5)
    classifier.save(tmp_path / "model")
    loaded = RobustClassifier.load(tmp_path / "model", device="cpu")
    np.testing.assert_allclose(loaded.predict_proba(pictures), expected, atol=1e-6)
    # A wide file: its center square is what counts.
    wide = np.full((12, 30, 3), 255, np.uint8)
    wide[:, 9:21] = pictures[1]
    Image.fromarray(wide).save(tmp_path / "wide.png")
    file = NoisyDataset.from_arrays(["a"], sources=[str(tmp_path / "wide.png")], source_kind="image")
    np.testing.assert_allclose(loaded.predict_proba(file), expected[1:2], atol=1e-6)


def test_mistakes_are_answered() -> None:
    with pytest.raises(InvalidInputError, match="shares"):
        RandomResizedCrop(8, shares=(0.5, 0.2))
    with pytest.raises(InvalidInputError, match="size"):
        RandomResizedCrop(0)
    with pytest.raises(InvalidInputError, match=r"weak\.resized_crop"):
        RobustClassifier("small_cnn", "cross_entropy", rounds=1, weak=RandomResizedCrop(9), device="cpu").fit(
            np.zeros((8, 8, 8, 3), np.uint8), np.arange(8) % 2
        )
