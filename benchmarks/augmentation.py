"""Images per second through the strong view (crop, flip, RandAugment, Cutout): this package and Pillow.

Pillow is measured through the implementation that the tests compare every operation with, image by image,
from array to array. One thread is measured in processor time, on which other work on the machine has little
influence; all threads together in wall time, which is too long if the machine was busy.

If kornia is installed, its functions are compared, too (docs/decisions/0003): `pip install --target
/tmp/kornia --no-deps kornia kornia_rs`, then `PYTHONPATH=/tmp/kornia python benchmarks/augmentation.py`.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps

from measuring import save, timed

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "training" / "augment"))
from pillow_operations import PILLOW_OPERATIONS, by_pillow
from real_images import CIFAR, enlarged, real_images

from laplaceconfidence.threads import available_cores
from laplaceconfidence.training.augment.move import rotate, warp
from laplaceconfidence.training.augment.protocol import Augmentation, Chain
from laplaceconfidence.training.augment.randaugment import PAPER_RANGES, RandAugment
from laplaceconfidence.training.augment.recolor import RECOLORS
from laplaceconfidence.training.augment.registry import STRONG
from laplaceconfidence.training.augment.weak import WeakAugment

SEED = 0
REPEATS = 15  # the shortest is reported


def main() -> None:
    torch.set_num_threads(1)
    load = os.getloadavg()[0]
    color = real_images("cifar", 128) if CIFAR.exists() else colored_digits(128)
    data = "CIFAR-10" if CIFAR.exists() else "digits, enlarged and colored"
    digits = real_images("digits", 1437)
    settings = [
        (f"{data}, 32 x 32 x 3, batch 128", color, WeakAugment()),
        ("digits, 8 x 8 x 1, batch 128", digits[:128], WeakAugment(padding=1, flip=False)),
        ("digits, 8 x 8 x 1, batch 1437", digits, WeakAugment(padding=1, flip=False)),
        (f"{data}, enlarged to 224 x 224 x 3, batch 16", grown(color[:16], 224), WeakAugment(padding=28)),
    ]
    rows = [measure(name, images, weak) for name, images, weak in settings]
    others = {name: speed(Chain((WeakAugment(), STRONG[name]())), color, processor_time) for name in STRONG}
    print(f"32 x 32 x 3, batch 128, one thread, images per second: {others}")
    save(
        "augmentation",
        {
            "seed": SEED,
            "load_before": round(load, 2),
            "pillow": version("pillow"),
            "images_per_second": rows,
            "by_augmentation_1_thread": others,
            "kornia": against_kornia(color) if importlib.util.find_spec("kornia") else None,
        },
    )


def measure(name: str, images: torch.Tensor, weak: WeakAugment) -> dict[str, Any]:
    strong = Chain((weak, RandAugment()))
    row: dict[str, Any] = {"images": name}
    row["ours_1_thread"] = speed(strong, images, processor_time)
    row["pillow_1_thread"] = pillow_speed(images, weak)
    row["ratio_1_thread"] = round(row["ours_1_thread"] / row["pillow_1_thread"], 1)
    torch.set_num_threads(available_cores())
    row["ours_all_threads"] = speed(strong, images, wall_time)
    torch.set_num_threads(1)
    print(row)
    return row


def processor_time(work: Callable[[], Any]) -> float:
    """Seconds of processor time, the shortest of several runs."""
    shortest = float("inf")
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        shortest = min(shortest, time.process_time() - start)
    return shortest


def wall_time(work: Callable[[], Any]) -> float:
    return timed(work, REPEATS)[0]


def speed(augmentation: Augmentation, images: torch.Tensor, clock: Callable[[Any], float]) -> int:
    n_batches = 10
    generator = torch.Generator().manual_seed(SEED)

    def work() -> None:
        for _ in range(n_batches):
            augmentation(images, generator)

    work()
    return round(n_batches * len(images) / clock(work))


def pillow_speed(images: torch.Tensor, weak: WeakAugment) -> int:
    arrays = list(images.permute(0, 2, 3, 1).contiguous().numpy())
    if images.shape[1] == 1:
        arrays = [array[..., 0] for array in arrays]
    random = np.random.default_rng(SEED)

    def work() -> None:
        for array in arrays:
            strong_by_pillow(array, weak, random)

    return round(len(arrays) / processor_time(work))


def strong_by_pillow(array: np.ndarray, weak: WeakAugment, random: np.random.Generator) -> np.ndarray:
    """Crop, flip, three operations and a hole, for one image."""
    image = Image.fromarray(array)
    width, height = image.size
    left, top = random.integers(2 * weak.padding + 1, size=2)
    image = ImageOps.expand(image, weak.padding).crop((left, top, left + width, top + height))
    if weak.flip and random.integers(2):
        image = ImageOps.mirror(image)
    names = list(PAPER_RANGES)
    for drawn in random.integers(len(names), size=3):
        low, high = PAPER_RANGES[names[drawn]]
        image = PILLOW_OPERATIONS[names[drawn]](image, random.uniform(low, high), 0)
    side = int(random.uniform(0, 0.5) * min(image.size))
    x, y = random.integers(width) - side // 2, random.integers(height) - side // 2
    image.paste((127,) * len(image.getbands()), (x, y, x + side, y + side))
    return np.asarray(image)


def against_kornia(images: torch.Tensor) -> dict[str, Any]:
    """Agreement with Pillow on the batch, and time of nine operations on groups of nine images."""
    import kornia
    from kornia import enhance

    random = np.random.default_rng(SEED)
    factors, angles = random.uniform(0.05, 0.95, len(images)), random.uniform(-30, 30, len(images))
    thresholds = random.uniform(0, 256, len(images))
    theirs: dict[str, tuple[np.ndarray, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = {
        "autocontrast": (factors, lambda floats, m: enhance.normalize_min_max(floats)),
        "brightness": (factors, enhance.adjust_brightness_accumulative),
        "color": (factors, enhance.adjust_saturation_with_gray_subtraction),
        "contrast": (factors, enhance.adjust_contrast_with_mean_subtraction),
        "equalize": (factors, lambda floats, m: enhance.equalize(floats)),
        "posterize": (np.full(len(images), 5.0), lambda floats, m: enhance.posterize(floats, 5)),
        "sharpness": (factors, enhance.sharpness),
        "solarize": (thresholds, lambda floats, m: enhance.solarize(floats, m / 256)),
        "rotate": (angles, lambda floats, m: kornia.geometry.rotate(floats, m, mode="nearest")),
    }
    floats = images.float() / 255
    operations = {}
    for name, (magnitudes, kornia_operation) in theirs.items():
        tensor = torch.from_numpy(magnitudes).float()
        bytes_back = (kornia_operation(floats, tensor) * 255).round().clamp(0, 255)
        equal = bytes_back == by_pillow(images, name, magnitudes)
        few_images, few_floats, few, few_tensor = images[:9], floats[:9], magnitudes[:9], tensor[:9]
        operations[name] = {
            "kornia_pixels_equal_to_pillow": round(float(equal.float().mean()), 3),
            "kornia_microseconds": microseconds(
                lambda run=kornia_operation, x=few_floats, m=few_tensor: run(x, m)
            ),
            "ours_microseconds": microseconds(
                lambda name=name, x=few_images, m=few: (
                    warp(x, rotate(m, *x.shape[2:])) if name == "rotate" else RECOLORS[name](x, m)
                )
            ),
        }
        print(name, operations[name])
    return {"version": kornia.__version__, "operations": operations}


def microseconds(work: Callable[[], Any], n: int = 30) -> int:
    work()
    return round(processor_time(lambda: [work() for _ in range(n)]) / n * 1e6)


def colored_digits(n: int) -> torch.Tensor:
    digits = real_images("digits", 1797)[:, 0].numpy()
    return torch.stack([enlarged(np.roll(digits, shift, 0)[:n], (32, 32)) for shift in (0, 7, 31)], dim=1)


def grown(images: torch.Tensor, side: int) -> torch.Tensor:
    return torch.stack([enlarged(channel.numpy(), (side, side)) for channel in images.unbind(1)], dim=1)


if __name__ == "__main__":
    main()
