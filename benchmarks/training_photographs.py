"""A small residual network on photographs: the preset ``image-folder-small`` against cross-entropy.

    python benchmarks/training_photographs.py [--images 3000] [--seeds 5] [--variants laplace] [--cells 0]

3,000 or all 10,000 of the CIFAR images in ../shared/data, chosen by the seed, with noise added to their
labels; the test images are its 2,000. Cross-entropy has the same network, weak views, label smoothing,
schedule and number of passes as each network of ours; "averaged" also predicts with the moving average of its
weights, as ours does. Cell 0 has no noise. Runs of 10,000 images have 24 rounds, 8 of them the warm-up, in
place of the preset's 40 and 12: with these they would take an hour each.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.training.methods.cross_entropy import CrossEntropy
from laplaceconfidence.training.methods.registry import change_method
from laplaceconfidence.training.presets import load_preset
from training_table import Cell, TrainingTable

IMAGES = Path(__file__).parents[2] / "shared" / "data" / "cifar10_images.npz"
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SIZES = (3_000, 10_000)
SHORTER = {10_000: {"rounds": 24, "warmup": 8}}  # than the preset, by number of images


def split(n_images: int, seed: int) -> tuple[NoisyDataset, NoisyDataset]:
    if not IMAGES.exists():
        raise SystemExit(f"{IMAGES} was not found")
    arrays = np.load(IMAGES, allow_pickle=False)
    chosen = np.random.default_rng(seed).permutation(len(arrays["train_labels"]))[:n_images]
    train, test = (
        NoisyDataset.from_arrays(labels.astype(int), images=images, class_names=CLASSES)
        for images, labels in (
            (arrays["train_images"][chosen], arrays["train_labels"][chosen]),
            (arrays["test_images"], arrays["test_labels"]),
        )
    )
    return train, test


def preset(n_images: int, cell: Cell) -> dict[str, Any]:
    ours = load_preset("image-folder-small").parameters() | {"device": "cpu"}
    if n_images not in SHORTER:
        return ours
    shorter = SHORTER[n_images]
    method = change_method(ours["method"], {"warmup": shorter["warmup"]})
    return ours | {"rounds": shorter["rounds"], "method": method}


def with_the_papers_estimator(n_images: int, cell: Cell) -> dict[str, Any]:
    ours = preset(n_images, cell)
    own = {
        "confidence": "laplace",
        "confidence_from": "peer",
        "targets": "refurbished",
        "estimate_every": 1,
        "weak_share": 0.0,
        "averaged_teacher": True,
    }
    return ours | {"method": change_method(ours["method"], own)}


def cross_entropy(n_images: int, cell: Cell) -> dict[str, Any]:
    ours = preset(n_images, cell)
    method = ours["method"]
    return ours | {
        "method": CrossEntropy(label_smoothing=method.label_smoothing),
        "rounds": method.warmup + method.passes * (ours["rounds"] - method.warmup),
        "strong": "none",
        "weight_average": None,
        "average_evidence": False,
    }


def cross_entropy_averaged(n_images: int, cell: Cell) -> dict[str, Any]:
    return cross_entropy(n_images, cell) | {"weight_average": preset(n_images, cell)["weight_average"]}


def table(n_images: int) -> TrainingTable:
    return TrainingTable(
        name=f"training_photographs_{n_images}",
        split=partial(split, n_images),
        cells=(
            ("symmetric", 0.0),
            ("symmetric", 0.2),
            ("symmetric", 0.5),
            ("symmetric", 0.8),
            ("asymmetric", 0.4),
        ),
        variants={
            "laplace": partial(preset, n_images),
            "cross_entropy": partial(cross_entropy, n_images),
            "cross_entropy_averaged": partial(cross_entropy_averaged, n_images),
            "laplace_paper_estimator": partial(with_the_papers_estimator, n_images),
        },
        facts={"n_train": n_images, "n_test": 2_000},
    )


if __name__ == "__main__":
    sizes = argparse.ArgumentParser(add_help=False)
    sizes.add_argument("--images", type=int, choices=SIZES, default=SIZES[0])
    chosen, others = sizes.parse_known_args()
    table(chosen.images).run(__doc__, others)
