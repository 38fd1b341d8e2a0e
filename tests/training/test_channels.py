"""Arrays of images with their channels first or last."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from laplaceconfidence import NoisyDataset
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.inputs import as_inputs
from laplaceconfidence.training.samples import as_input, channels_come_first
from small_runs import noisy_digits, quick

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_channels_first_and_last_are_told_apart(channels: int) -> None:
    last = RNG.integers(0, 256, (5, 8, 6, channels), dtype=np.uint8)
    first = last.transpose(0, 3, 1, 2)
    expected = torch.from_numpy(first.copy())
    assert torch.equal(as_inputs(last), expected)
    assert torch.equal(as_inputs(first), expected)
    assert torch.equal(as_input(last[0]), expected[0])
    assert torch.equal(as_input(first[0]), expected[0])


def test_a_shape_that_fits_both_is_a_question() -> None:
    both = np.zeros((5, 3, 8, 1), dtype=np.uint8)
    with pytest.raises(InvalidInputError, match="3 channels first or 1 last") as asked:
        as_inputs(both)
    assert "torch.from_numpy" in str(asked.value)
    assert as_inputs(torch.from_numpy(both)).shape == (5, 3, 8, 1)
    assert as_inputs(both, channels_last=True).shape == (5, 1, 3, 8)
    assert as_inputs(both, expected=(3, 8, 1)).shape == (5, 3, 8, 1)
    assert as_inputs(both, expected=(1, 3, 8)).shape == (5, 1, 3, 8)
    assert channels_come_first((5, 7, 2)) is None


def test_a_model_takes_both_and_a_data_set_is_never_asked() -> None:
    images, given, _ = noisy_digits(60)
    color = np.repeat(images[..., None], 3, axis=3)
    run = quick("cross_entropy", rounds=1).fit(color, given)
    expected = run.predict_proba(color)
    np.testing.assert_array_equal(run.predict_proba(color.transpose(0, 3, 1, 2)), expected)
    low = NoisyDataset.from_arrays(given, images=color[:, :4])  # 4 x 8 x 3 could be either
    assert quick("cross_entropy", rounds=1).fit(low).predict(color[:, :4]).shape == (60,)


def test_bytes_are_refused_where_numbers_had_another_scale() -> None:
    images, given, _ = noisy_digits(60)
    run = quick("cross_entropy", rounds=1).fit(images.astype(np.float32), given)
    with pytest.raises(InvalidInputError, match="numbers on the scale of fit"):
        run.predict(images)


def test_tiny_image_files_are_no_question(tmp_path: Path) -> None:
    pixels = RNG.integers(0, 256, (12, 3, 4, 3), dtype=np.uint8)
    for row, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / f"{row}.png")
    labels = np.arange(12) % 2
    paths = [str(tmp_path / f"{row}.png") for row in range(12)]
    files = NoisyDataset.from_arrays(labels, sources=paths, source_kind="image")
    run = quick("cross_entropy", rounds=1).fit(files)
    whole = NoisyDataset.from_arrays(labels, images=pixels)
    np.testing.assert_array_equal(run.predict_proba(files), run.predict_proba(whole))
    assert as_input(np.zeros((3, 8), np.uint8)).shape == (1, 3, 8)
