"""Features of images by their responses to random patches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.linear_model import LogisticRegression

from laplaceconfidence import InvalidInputError, load_digits
from laplaceconfidence.arrays import ByteImages, FloatArray
from laplaceconfidence.encoders import patches
from laplaceconfidence.encoders.patches import THRESHOLD, PatchEncoder
from laplaceconfidence.encoders.registry import make_encoder
from laplaceconfidence.encoders.samples import RawSamples


def random_images(n: int = 24, side: int = 16, channels: int = 3) -> ByteImages:
    return np.random.default_rng(0).integers(256, size=(n, side, side, channels), dtype=np.uint8)


def encoded(images: ByteImages, **settings: object) -> FloatArray:
    return PatchEncoder(n_patches=12, **settings).fit_transform(RawSamples("image", images))  # type: ignore[arg-type]


def test_mean_responses_equal_a_loop_over_positions() -> None:
    images = random_images(3)
    encoder = PatchEncoder(n_patches=5)
    encoder.fit_transform(RawSamples("image", images))
    assert [one.side for one in encoder._dictionaries] == [3, 5]
    for dictionary in encoder._dictionaries:
        side, half = dictionary.side, (17 - dictionary.side) // 2
        for image, found in zip(images, encoder._mean_responses(images, dictionary), strict=True):
            expected = np.zeros((2, 2, 2, 5))
            for seen in (image, image[:, ::-1]):
                for row, column in np.ndindex(2 * half, 2 * half):
                    patch = np.moveaxis(seen[row : row + side, column : column + side].astype(float), 2, 0)
                    flat = patch.ravel() - patch.mean()
                    flat /= np.sqrt((flat**2).mean() + 10)
                    response = flat @ dictionary.projection[:, :5] - dictionary.offset[:5]
                    cell = row // half, column // half
                    expected[(0, *cell)] += np.maximum(response - THRESHOLD, 0) / half**2
                    expected[(1, *cell)] += np.maximum(-response - THRESHOLD, 0) / half**2
            assert np.allclose(found, expected.ravel(), atol=1e-3)


def test_the_features_join_both_sizes_and_say_so() -> None:
    encoder = PatchEncoder(n_patches=12)
    samples = RawSamples("image", random_images(side=32))
    assert encoder.fit_transform(samples).shape == (24, 12)
    assert encoder._responses(samples, lambda n: None).shape == (24, 2 * 2 * 4 * 12)
    assert encoder.summary().startswith("responses to 24 random patches of 6 x 6 and 10 x 10 pixels")


def test_tiny_images_have_patches_of_one_size() -> None:
    encoder = PatchEncoder(n_patches=12)
    encoder.fit_transform(RawSamples("image", random_images(side=8)))
    assert encoder.summary().startswith("responses to 12 random patches of 3 x 3 pixels")


def test_an_image_and_its_mirror_image_have_the_same_features() -> None:
    images = random_images()  # an even number of positions, in two equal halves
    encoder = PatchEncoder(n_patches=12)
    features = encoder.fit_transform(RawSamples("image", images))
    mirrored = encoder.transform(RawSamples("image", np.ascontiguousarray(images[:, :, ::-1])))
    assert np.allclose(features, mirrored, atol=1e-3)


def test_without_mirror_they_differ() -> None:
    images = random_images()
    encoder = PatchEncoder(n_patches=12, mirror=False)
    features = encoder.fit_transform(RawSamples("image", images))
    mirrored = encoder.transform(RawSamples("image", np.ascontiguousarray(images[:, :, ::-1])))
    assert np.abs(features - mirrored).max() > 0.1


def test_features_of_known_images_are_found_again() -> None:
    images = random_images()
    encoder = PatchEncoder(n_patches=12)
    features = encoder.fit_transform(RawSamples("image", images))
    assert (features.dtype, features.shape) == (np.float32, (24, 12))
    assert np.allclose(encoder.transform(RawSamples("image", images[3:9])), features[3:9], atol=1e-3)


def test_same_seed_same_features_with_any_number_of_threads() -> None:
    images = random_images()
    assert np.array_equal(encoded(images, n_jobs=1), encoded(images, n_jobs=2))
    assert not np.allclose(encoded(images), encoded(images, random_state=1))


def test_many_images_are_reduced_by_the_components_of_some(monkeypatch: pytest.MonkeyPatch) -> None:
    images = random_images(60)
    monkeypatch.setattr(patches, "_IMAGES_FOR_COMPONENTS", 25)
    encoder = PatchEncoder(n_patches=12)
    features = encoder.fit_transform(RawSamples("image", images))
    assert features.shape == (60, 12)
    assert np.allclose(encoder.transform(RawSamples("image", images)), features, atol=1e-3)


def test_files_are_resized_and_large_images_in_memory_too(tmp_path: Path) -> None:
    images = random_images(8, side=40)
    paths = [str(tmp_path / f"{number}.png") for number in range(8)]
    for path, image in zip(paths, images, strict=True):
        Image.fromarray(image).save(path)
    of_files = PatchEncoder(n_patches=6).fit_transform(RawSamples("image", np.array(paths)))
    of_arrays = PatchEncoder(n_patches=6).fit_transform(RawSamples("image", images))
    assert np.allclose(of_files, of_arrays, atol=1e-2)


@pytest.mark.parametrize("value", [0, 128])
def test_images_of_one_color_have_finite_features(value: int) -> None:
    images = np.full((10, 12, 12, 3), value, dtype=np.uint8)
    assert np.isfinite(encoded(images)).all()


def test_images_smaller_than_a_patch_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="3 x 3 pixels"):
        encoded(random_images(side=2))


def test_the_features_separate_digits() -> None:
    digits = load_digits()
    assert digits.images is not None
    features = PatchEncoder(n_patches=100, mirror=False, n_jobs=1).fit_transform(
        RawSamples("image", digits.images)
    )
    probe = LogisticRegression(max_iter=200).fit(features[:1200], digits.labels[:1200])
    assert probe.score(features[1200:], digits.labels[1200:]) > 0.93


def test_it_is_made_by_its_name() -> None:
    encoder = make_encoder("patches", {"n_patches": 50})
    assert isinstance(encoder, PatchEncoder)
    assert encoder.n_patches == 50
    assert encoder.takes == ("image",)
