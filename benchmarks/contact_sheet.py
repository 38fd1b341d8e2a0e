"""A contact sheet of every operation and augmentation: docs/images/augmentations.png.

The photographs come with scikit-learn (china.jpg by danielbuechele and flower.jpg by vultilion, both on
Flickr under CC BY 2.0), the digit is one of its digits. `--source cifar --out FILE` shows CIFAR-10 images.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from sklearn.datasets import load_digits, load_sample_image

from laplaceconfidence.files import replacing
from laplaceconfidence.training.augment.cutout import Cutout
from laplaceconfidence.training.augment.mixing import CutMix, MixUp
from laplaceconfidence.training.augment.operations import CODES, apply_operations
from laplaceconfidence.training.augment.protocol import Augmentation, Chain
from laplaceconfidence.training.augment.randaugment import PAPER_RANGES
from laplaceconfidence.training.augment.registry import STRONG
from laplaceconfidence.training.augment.weak import WeakAugment

PROJECT = Path(__file__).parents[1]
SIDE = 64  # of the images and of their tiles
N_VIEWS = 4  # of each image in a row
LABEL_WIDTH, HEADER, GAP = 190, 34, 4
UNMAGNIFIED = ("autocontrast", "equalize", "identity", "invert")
Row = tuple[str, list[torch.Tensor]]  # a label and, for every source image, (N_VIEWS, C, SIDE, SIDE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", choices=["photographs", "cifar"], default="photographs")
    parser.add_argument("--out", type=Path, default=PROJECT / "docs" / "images" / "augmentations.png")
    arguments = parser.parse_args()
    sources = photographs() if arguments.source == "photographs" else cifar()
    sections = {
        ("as it is", "low", "middle", "high"): list(operation_rows(sources)),
        ("draw 1", "draw 2", "draw 3", "draw 4"): list(augmentation_rows(sources)),
    }
    sheet = drawn_sheet(sections, len(sources))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(arguments.out) as temporary:
        sheet.save(temporary, optimize=True)
    print(f"-> {arguments.out} ({sheet.width} x {sheet.height})")


def photographs() -> list[torch.Tensor]:
    """Two photographs and a digit, (C, SIDE, SIDE) each."""
    china = Image.fromarray(load_sample_image("china.jpg")).crop((60, 20, 440, 400))
    flower = Image.fromarray(load_sample_image("flower.jpg")).crop((190, 40, 560, 410))
    digit = Image.fromarray((load_digits().images[5] * 255 / 16).astype(np.uint8))
    return [as_source(image) for image in (china, flower, digit)]


def cifar() -> list[torch.Tensor]:
    path = PROJECT.parent / "shared" / "data" / "cifar10_images.npz"
    if not path.exists():
        sys.exit(f"{path} does not exist")
    with np.load(path, allow_pickle=False) as file:
        return [as_source(Image.fromarray(image)) for image in file["train_images"][[4, 7, 0]]]


def as_source(image: Image.Image) -> torch.Tensor:
    values = np.array(image.resize((SIDE, SIDE), Image.Resampling.LANCZOS))
    return torch.from_numpy(values[None] if values.ndim == 2 else values.transpose(2, 0, 1).copy())


def operation_rows(sources: list[torch.Tensor]) -> Iterable[Row]:
    """The image itself and the operation at low, middle and high magnitude of the paper's range."""
    for name in [*PAPER_RANGES, "invert"]:
        low, high = PAPER_RANGES.get(name, (0, 1))
        magnitudes = np.array([low, (low + high) / 2, high])
        shown = "" if name in UNMAGNIFIED else "  " + ", ".join(f"{value:g}" for value in magnitudes)
        views = []
        for image in sources:
            changed = apply_operations(image.expand(3, -1, -1, -1), np.full(3, CODES[name]), magnitudes)
            views.append(torch.cat([image[None], changed]))
        yield f"{name}\n{shown}", views


def augmentation_rows(sources: list[torch.Tensor]) -> Iterable[Row]:
    """Four random draws of every augmentation; mixing takes partners from the other color images."""
    weak = WeakAugment(padding=SIDE // 8)
    augmentations: dict[str, Augmentation] = {"weak\n  crop, flip": weak, "cutout": Cutout()}
    for name in ("randaugment", "autoaugment", "augmix"):
        augmentations[f"{name}\n  after weak"] = Chain((weak, STRONG[name]()))
    for label, augmentation in augmentations.items():
        generator = torch.Generator().manual_seed(0)
        views = [augmentation(image.expand(N_VIEWS, -1, -1, -1), generator) for image in sources]
        yield label, views
    for mixing in (MixUp(), CutMix()):
        generator = torch.Generator().manual_seed(7)
        same_shape = torch.stack([image.expand(3, -1, -1) for image in sources]).float()
        targets = torch.eye(len(sources))
        draws = [mixing(same_shape, targets, generator)[0].to(torch.uint8) for _ in range(N_VIEWS)]
        yield f"{type(mixing).__name__.lower()}\n  with another image", list(torch.stack(draws, dim=1))


def drawn_sheet(sections: dict[tuple[str, ...], list[Row]], n_sources: int) -> Image.Image:
    """Rows under the headings of their section, one heading per column."""
    group = N_VIEWS * (SIDE + GAP) + 3 * GAP
    n_rows = sum(len(rows) for rows in sections.values())
    height = len(sections) * HEADER + n_rows * (SIDE + GAP)
    sheet = Image.new("RGB", (LABEL_WIDTH + n_sources * group, height), "white")
    pen = ImageDraw.Draw(sheet)
    top = 0
    for headings, rows in sections.items():
        for source in range(n_sources):
            for column, heading in enumerate(headings):
                left = LABEL_WIDTH + source * group + column * (SIDE + GAP)
                pen.text((left, top + 12), heading, fill="black", font=ImageFont.load_default(size=13))
        top += HEADER
        for label, views_of_sources in rows:
            pen.text((8, top + 14), label, fill="black", font=ImageFont.load_default(size=15))
            for source, views in enumerate(views_of_sources):
                for column, view in enumerate(views):
                    tile = Image.fromarray(view.expand(3, -1, -1).permute(1, 2, 0).contiguous().numpy())
                    sheet.paste(tile, (LABEL_WIDTH + source * group + column * (SIDE + GAP), top))
            top += SIDE + GAP
    return sheet


if __name__ == "__main__":
    main()
