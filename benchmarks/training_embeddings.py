"""Test accuracy of an MLP on frozen embeddings with noisy labels: the preset ``embeddings-mlp``.

    python benchmarks/training_embeddings.py [--seeds 0 1 2] [--variants laplace cross_entropy] [--cells 0 1]

CIFAR-10 embeddings (10,000 + 2,000) of a network trained without these labels. Every network makes 28 passes
over the data. "laplace" is the preset, whose confidences come from the embeddings themselves; the "paper"
variants, otherwise the same, use confidences from the peer network, as the paper does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laplaceconfidence.data.cifar_classes import CIFAR10_CLASSES
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.training.methods.registry import change_method
from laplaceconfidence.training.presets import load_preset
from real_features import EMBEDDINGS
from training_table import TrainingTable

ROBUST: dict[str, Any] = load_preset("embeddings-mlp").parameters() | {"device": "cpu"}
PLAIN: dict[str, Any] = {
    name: ROBUST[name]
    for name in ("network", "rounds", "batch_size", "learning_rate", "learning_rate_drops", "device")
} | {"method": "cross_entropy", "strong": "none", "weak": "none"}


def paper(**settings: Any) -> dict[str, Any]:
    usual = {"confidence": "laplace", "confidence_from": "peer"}
    return ROBUST | {"method": change_method(ROBUST["method"], usual | settings)}


def split(seed: int) -> tuple[NoisyDataset, NoisyDataset]:
    with np.load(EMBEDDINGS, allow_pickle=False) as stored:
        return tuple(  # type: ignore[return-value]
            NoisyDataset.from_arrays(
                stored[f"{part}_labels"].astype(np.int64),
                stored[f"{part}_features"].astype(np.float32),
                class_names=CIFAR10_CLASSES,
            )
            for part in ("train", "test")
        )


TABLE = TrainingTable(
    name="training_embeddings",
    split=split,
    cells=(("symmetric", 0.5), ("symmetric", 0.8)),
    variants={
        "laplace": lambda cell: ROBUST,
        "cross_entropy": lambda cell: PLAIN,
        "paper": lambda cell: paper(),
        "paper_one_network": lambda cell: paper(n_networks=1),
        "paper_loss_mixture": lambda cell: paper(confidence="gaussian-mixture"),
        "paper_noise_aware": lambda cell: paper(confidence="noise-aware"),
    },
    facts={"passes": ROBUST["rounds"], "warmup": ROBUST["method"].warmup},
)

if __name__ == "__main__":
    TABLE.run(__doc__)
