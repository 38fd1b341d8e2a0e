"""MixUp and CutMix: samples and targets are mixed by the same weights."""

import pytest
import torch
from real_images import real_images
from scipy.stats import beta, kstest
from torch.nn import functional

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.augment.mixing import CutMix, MixUp


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def one_hot(n: int) -> torch.Tensor:
    return torch.eye(n)


@pytest.mark.parametrize("shape", [(8, 3, 5, 6), (8, 17)])
def test_mixup_averages_samples_and_targets_alike(shape: tuple[int, ...]) -> None:
    samples = torch.randn(shape)
    mixed, targets = MixUp()(samples, one_hot(8), seeded())  # targets tell who was mixed with whom
    torch.testing.assert_close(mixed.flatten(1), targets @ samples.flatten(1))
    torch.testing.assert_close(targets.sum(1), torch.ones(8))
    weight, partners = MixUp().draw(8, seeded())
    torch.testing.assert_close(mixed, weight * samples + (1 - weight) * samples[partners])


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0])
def test_the_weight_is_beta_distributed(alpha: float) -> None:
    generator = seeded()
    weights = [MixUp(alpha).draw(1, generator)[0] for _ in range(800)]
    assert kstest(weights, beta(alpha, alpha).cdf).pvalue > 0.01


def test_the_own_part_can_be_kept_the_larger() -> None:
    generator = seeded()
    weights = [MixUp(4.0, own_part_larger=True).draw(1, generator)[0] for _ in range(200)]
    assert min(weights) >= 0.5


@pytest.mark.parametrize("kind", ["digits", "color_digits"])
def test_cutmix_targets_count_the_pixels_of_each_image(kind: str) -> None:
    n, (height, width) = 6, real_images(kind).shape[2:]
    channels = real_images(kind).shape[1]
    marked = torch.arange(n, dtype=torch.uint8).view(n, 1, 1, 1).expand(n, channels, height, width)
    for seed in range(20):
        mixed, targets = CutMix()(marked, one_hot(n), seeded(seed))
        shares = functional.one_hot(mixed[:, 0].long(), n).float().mean((1, 2))
        torch.testing.assert_close(targets, shares)
        foreign = mixed[:, 0] != torch.arange(n).view(n, 1, 1)
        boxes = foreign.any(2).sum(1) * foreign.any(1).sum(1)
        assert torch.equal(foreign.sum((1, 2)), boxes)  # a filled rectangle


def test_cutmix_pixels_stay_where_they_were() -> None:
    images = real_images("color_digits", 10)
    before = images.clone()
    mixed, targets = CutMix()(images, one_hot(10), seeded(5))
    partner = (targets - one_hot(10) * targets.diagonal()).argmax(1)
    assert ((mixed == images) | (mixed == images[partner])).all()
    assert torch.equal(images, before)


def test_one_seed_gives_one_mixture() -> None:
    images, targets = torch.rand(6, 3, 8, 8), one_hot(6)
    for mixing in (MixUp(), CutMix()):
        first, again, other = (mixing(images, targets, seeded(seed))[0] for seed in (1, 1, 2))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)


@pytest.mark.parametrize("mixing", [MixUp(), CutMix()])
def test_labels_are_no_targets(mixing: MixUp | CutMix) -> None:
    images = torch.rand(4, 3, 8, 8)
    with pytest.raises(InvalidInputError, match="one_hot"):
        mixing(images, torch.arange(4), seeded())
    with pytest.raises(InvalidInputError, match="'images' has 4, 'targets' has 3"):
        mixing(images, one_hot(3), seeded())


def test_bytes_cannot_be_averaged() -> None:
    with pytest.raises(InvalidInputError, match=r"images\.float\(\) / 255"):
        MixUp()(torch.zeros(2, 3, 4, 4, dtype=torch.uint8), one_hot(2), seeded())


@pytest.mark.parametrize("mixing", [MixUp, CutMix])
def test_wrong_alpha_is_refused(mixing: type) -> None:
    with pytest.raises(InvalidInputError, match="'alpha'"):
        mixing(alpha=0)
