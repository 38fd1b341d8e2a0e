"""A small CNN on 10,000 images of Fashion-MNIST: the preset ``fashion-small`` against cross-entropy.

    python benchmarks/training_fashion.py [--seeds 0 1 2] [--variants laplace cross_entropy] [--cells 0 1 2]

The first 10,000 training images, with noise added to their labels; the test images are the official 10,000.
Cross-entropy makes as many passes as each network of ours: without augmentation, and on the same weak views
(crops and flips), which alone keep such a small network from memorizing labels. All run in bfloat16, which
halves the time on processors that have it; the preset itself uses float32.
"""

from __future__ import annotations

from typing import Any

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.training.methods.registry import change_method
from laplaceconfidence.training.presets import load_preset
from real_features import FASHION_CONFUSED, Absent, fashion
from training_table import Cell, TrainingTable

N_TRAIN = 10_000


def split(seed: int) -> tuple[NoisyDataset, NoisyDataset]:
    train, test = fashion(N_TRAIN, n_features=None), fashion(10_000, n_features=None, part="t10k")
    if isinstance(train, Absent) or isinstance(test, Absent):
        raise SystemExit("Fashion-MNIST was not found: apt-get install dataset-fashion-mnist")
    return train, test


def preset(cell: Cell) -> dict[str, Any]:
    return load_preset("fashion-small").parameters() | {"device": "cpu", "precision": "bfloat16"}


def changed(cell: Cell, **settings: Any) -> dict[str, Any]:
    ours = preset(cell)
    return ours | {"method": change_method(ours["method"], settings)}


def as_in_the_paper(cell: Cell, **settings: Any) -> dict[str, Any]:
    """Refurbished labels, by confidences that are estimated in every round from the peer's outputs."""
    own = {
        "confidence_from": "peer",
        "targets": "refurbished",
        "estimate_every": 1,
        "label_smoothing": 0.0,
        "weak_statistics": True,
        "entropy_penalty": cell[0] == "asymmetric",
    }
    return changed(cell, **(own | settings))


def cross_entropy(cell: Cell) -> dict[str, Any]:
    return on_weak_views(cell) | {"weak": "none"}


def on_weak_views(cell: Cell) -> dict[str, Any]:
    ours = preset(cell)
    own = {name: ours[name] for name in ours if name in KEPT_FOR_CROSS_ENTROPY}
    method = ours["method"]
    passes = method.warmup + method.passes * (ours["rounds"] - method.warmup)
    return own | {"method": "cross_entropy", "rounds": passes}


KEPT_FOR_CROSS_ENTROPY = {
    "network",
    "batch_size",
    "learning_rate",
    "learning_rate_drops",
    "weak",
    "validation_fraction",
    "channels_last",
    "precision",
    "device",
}

TABLE = TrainingTable(
    name="training_fashion",
    split=split,
    cells=(("symmetric", 0.5), ("symmetric", 0.8), ("asymmetric", 0.4)),
    variants={
        "laplace": preset,
        "cross_entropy": cross_entropy,
        "cross_entropy_weak_views": on_weak_views,
        "laplace_paper_estimator": lambda cell: as_in_the_paper(cell, confidence="laplace"),
        "laplace_loss_mixture": lambda cell: as_in_the_paper(cell, confidence="gaussian-mixture"),
        "laplace_one_network": lambda cell: changed(cell, n_networks=1),
    },
    facts={"n_train": N_TRAIN, "n_test": 10_000},
    confused=FASHION_CONFUSED,
)

if __name__ == "__main__":
    TABLE.run(__doc__)
