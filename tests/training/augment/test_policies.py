"""Cutout, RandAugment, AutoAugment and AugMix: what they draw, against the papers and against Pillow."""

import numpy as np
import pytest
import torch
from pillow_operations import by_pillow
from real_images import real_images

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.augment import augmix, autoaugment, randaugment
from laplaceconfidence.training.augment.augmix import AugMix
from laplaceconfidence.training.augment.autoaugment import CIFAR10_POLICY, AutoAugment
from laplaceconfidence.training.augment.cutout import Cutout
from laplaceconfidence.training.augment.operations import OPERATIONS, apply_operations
from laplaceconfidence.training.augment.protocol import Augmentation
from laplaceconfidence.training.augment.randaugment import PAPER_RANGES, RandAugment
from laplaceconfidence.training.augment.registry import MIXING, STRONG, build_strong

Drawn = list[tuple[np.ndarray, np.ndarray]]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """Codes and magnitudes of every step that the policies take from now on."""
    steps: Drawn = []

    def recording(
        images: torch.Tensor, codes: np.ndarray, magnitudes: np.ndarray, fill: int = 0
    ) -> torch.Tensor:
        steps.append((codes, magnitudes))
        return apply_operations(images, codes, magnitudes, fill)

    for module in (randaugment, autoaugment, augmix):
        monkeypatch.setattr(module, "apply_operations", recording)
    return steps


def by_hand(images: torch.Tensor, steps: Drawn, fill: int = 0) -> torch.Tensor:
    """The recorded steps by Pillow, one image at a time."""
    results = []
    for i, image in enumerate(images):
        batch = image[None]
        for codes, magnitudes in steps:
            batch = by_pillow(batch, OPERATIONS[codes[i]], magnitudes[i : i + 1], fill)
        results.append(batch[0])
    return torch.stack(results)


def test_cutout_is_one_square_of_at_most_half_the_side() -> None:
    images = torch.zeros(4000, 3, 20, 31, dtype=torch.uint8)
    holes = Cutout()(images, seeded()) == 127
    assert (holes == holes[:, :1]).all()  # the same in all channels
    height = holes[:, 0].any(2).sum(1)
    width = holes[:, 0].any(1).sum(1)
    assert torch.equal(holes[:, 0].sum((1, 2)), height * width)
    assert height.max() == width.max() == 9  # cut from a side drawn below 10
    assert ((height == 0) == (width == 0)).all()
    assert (
        0.05 < (height == 0).float().mean() < 0.18
    )  # sides below one pixel: a tenth, and holes off the edge


def test_cutout_covers_every_pixel_of_the_middle_equally_often() -> None:
    images = torch.zeros(20000, 1, 16, 16, dtype=torch.uint8)
    often = (Cutout()(images, seeded()) == 127).float().mean((0, 1))
    middle = often[4:12, 4:12]
    assert (middle - middle.mean()).abs().max() < 0.015


def test_cutout_of_nothing_changes_nothing() -> None:
    images = real_images("color_digits")
    assert torch.equal(Cutout(largest=0)(images, seeded()), images)


def test_randaugment_has_the_papers_table() -> None:
    assert len(PAPER_RANGES) == 14
    assert PAPER_RANGES["posterize"] == (4, 8)
    assert PAPER_RANGES["solarize"] == (0, 256)
    assert PAPER_RANGES["rotate"] == (-30, 30)
    assert all(PAPER_RANGES[name] == (-0.3, 0.3) for name in PAPER_RANGES if name[:5] in ("shear", "trans"))
    enhancing = ("brightness", "color", "contrast", "sharpness")
    assert all(PAPER_RANGES[name] == (0.05, 0.95) for name in enhancing)


def test_randaugment_draws_three_operations_an_image_uniformly(drawn: Drawn) -> None:
    RandAugment()(torch.zeros(7000, 1, 4, 4, dtype=torch.uint8), seeded())
    assert len(drawn) == 3
    for codes, magnitudes in drawn:
        for name, (low, high) in PAPER_RANGES.items():
            mine = magnitudes[codes == OPERATIONS.index(name)]
            assert 380 < len(mine) < 620  # 500 expected, standard deviation 22
            assert low <= mine.min() < low + 0.02 * (high - low)
            assert high - 0.02 * (high - low) < mine.max() <= high
            assert abs(mine.mean() - (low + high) / 2) < 0.07 * (high - low)
    first, second, third = (codes for codes, _ in drawn)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.05
    assert abs(np.corrcoef(second, third)[0, 1]) < 0.05


@pytest.mark.parametrize("kind", ["large_digits", "color_digits"])
def test_randaugment_is_pillows_operations_in_their_order(kind: str, drawn: Drawn) -> None:
    images = real_images(kind)
    result = RandAugment(cutout=None)(images, seeded())
    assert torch.equal(result, by_hand(images, drawn))


def test_randaugment_ends_with_cutout() -> None:
    images = real_images("color_digits")
    plain = RandAugment(cutout=None)(images, seeded())
    with_hole = RandAugment()(images, seeded())
    assert (with_hole[with_hole != plain] == 127).all()


def test_the_autoaugment_policy_is_complete() -> None:
    assert len(CIFAR10_POLICY) == 25
    assert len({step[0] for sub_policy in CIFAR10_POLICY for step in sub_policy}) == 13  # no shear_x in it


def test_autoaugment_draws_every_sub_policy_with_its_probabilities(drawn: Drawn) -> None:
    n = 50_000
    AutoAugment()(torch.zeros(n, 1, 2, 2, dtype=torch.uint8), seeded())
    assert len(drawn) == 2
    for position, (codes, _) in enumerate(drawn):
        expected = dict.fromkeys(OPERATIONS, 0.0)
        for sub_policy in CIFAR10_POLICY:
            name, probability, _ = sub_policy[position]
            expected[name] += probability / 25
            expected["identity"] += (1 - probability) / 25
        observed = np.bincount(codes, minlength=len(OPERATIONS)) / n
        np.testing.assert_allclose(observed, list(expected.values()), atol=0.01)


def test_autoaugment_magnitudes_are_those_of_the_levels(drawn: Drawn) -> None:
    AutoAugment()(torch.zeros(20_000, 1, 2, 2, dtype=torch.uint8), seeded())
    codes, magnitudes = (np.concatenate(parts) for parts in zip(*drawn, strict=True))

    def values(name: str) -> list[float]:
        return np.unique(magnitudes[codes == OPERATIONS.index(name)].round(6)).tolist()

    assert values("rotate") == pytest.approx([-20 / 3, 20 / 3])  # level 2 of 9 in 30 degrees
    assert values("translate_x") == pytest.approx(np.array([-9, -8, 8, 9]) / 9 * 150 / 331, abs=1e-6)
    assert values("solarize") == pytest.approx(256 - 256 / 9 * np.array([8, 5, 3, 2]), abs=1e-5)
    assert [int(bits) for bits in values("posterize")] == [5]  # 8 - 4 * 7 / 9, rounded
    assert values("contrast") == pytest.approx([0.3, 0.4, 1.6, 1.7])


@pytest.mark.parametrize("kind", ["large_digits", "color_digits"])
def test_autoaugment_is_pillows_operations_in_their_order(kind: str, drawn: Drawn) -> None:
    images = real_images(kind)
    result = AutoAugment(fill=77)(images, seeded())
    assert torch.equal(result, by_hand(images, drawn, fill=77))


def test_augmix_is_a_convex_mixture_of_the_image_and_its_chains(drawn: Drawn) -> None:
    images = real_images("color_digits", 12)
    result = AugMix()(images, seeded())
    chains = by_hand(images.repeat(3, 1, 1, 1), drawn).view(3, *images.shape).double()
    parts = torch.cat([images[None].double(), chains])  # (4, batch, ...)
    for i in range(len(images)):
        basis = parts[:, i].flatten(1).T
        weights = np.linalg.lstsq(basis.numpy(), result[i].flatten().double().numpy(), rcond=None)[0]
        rebuilt = basis.numpy() @ weights
        assert np.abs(rebuilt - result[i].flatten().numpy()).max() <= 1.01
        assert weights.sum() == pytest.approx(1, abs=0.03)
        assert weights.min() > -0.06


def test_augmix_draws_chains_of_one_to_three_operations(drawn: Drawn) -> None:
    AugMix()(torch.zeros(3000, 1, 4, 4, dtype=torch.uint8), seeded())
    steps = np.stack([codes for codes, _ in drawn])  # (3, 9000)
    lengths = (steps != OPERATIONS.index("identity")).sum(0)
    np.testing.assert_allclose(np.bincount(lengths, minlength=4) / 9000, [0, 1 / 3, 1 / 3, 1 / 3], atol=0.02)
    limits = {"rotate": 9.0, "shear_x": 0.09, "translate_y": 0.1}
    codes, magnitudes = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    for name, limit in limits.items():
        mine = magnitudes[codes == OPERATIONS.index(name)]
        assert -limit <= mine.min() < -0.9 * limit
        assert 0.9 * limit < mine.max() <= limit
    bits = magnitudes[codes == OPERATIONS.index("posterize")].astype(int)
    assert set(bits) == {3, 4}


def test_augmix_of_one_short_chain_without_the_image_is_that_chain(
    drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_weight_on_the_last(alpha: float, size: int, n: int, generator: torch.Generator) -> np.ndarray:
        return np.eye(size)[[size - 1] * n]

    monkeypatch.setattr(augmix, "dirichlet", all_weight_on_the_last)
    images = real_images("color_digits", 12)
    assert torch.equal(AugMix(width=1, depth=2)(images, seeded()), by_hand(images, drawn))


@pytest.mark.parametrize(
    ("augmentation", "settings", "message"),
    [
        (RandAugment, {"n_operations": -1}, "'n_operations'"),
        (Cutout, {"largest": 1.5}, "'largest'"),
        (Cutout, {"fill": 256}, "'fill'"),
        (AutoAugment, {"fill": -1}, "'fill'"),
        (AugMix, {"width": 0}, "'width'"),
        (AugMix, {"depth": 0}, "'depth'"),
        (AugMix, {"severity": 11}, "'severity'"),
        (AugMix, {"alpha": 0}, "'alpha'"),
    ],
)
def test_wrong_settings_are_refused(augmentation: type, settings: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        augmentation(**settings)


def test_augmentations_are_found_by_name() -> None:
    assert set(STRONG) == {"randaugment", "autoaugment", "augmix", "none"}
    assert set(MIXING) == {"mixup", "cutmix"}
    assert build_strong("randaugment") == RandAugment()
    own: Augmentation = Cutout()
    assert build_strong(own) is own
    with pytest.raises(InvalidInputError, match=r"'randaugment', 'autoaugment', 'augmix', 'none'.*'rand'"):
        build_strong("rand")
