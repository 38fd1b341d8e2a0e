"""How well an MLP on frozen embeddings learns from noisy labels, against cross-entropy under the same loop.

    python benchmarks/training_embeddings.py [--seeds 3] [--variants laplace cross_entropy]

CIFAR-10 embeddings (10,000 + 2,000) of a network that never saw these labels. Every network makes 28 passes
over the data. Accuracies are on the clean test part, which nothing is chosen by.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

from laplaceconfidence.data.cifar_classes import CIFAR10_CLASSES
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.training.classifier import RobustClassifier
from laplaceconfidence.training.views import MaskFeatures
from measuring import save
from real_features import EMBEDDINGS

CELLS = (("symmetric", 0.5), ("symmetric", 0.8))
PASSES, WARMUP = 28, 3
COMMON: dict[str, Any] = {"network": "mlp", "learning_rate": 0.02, "device": "cpu", "rounds": PASSES}
ROBUST: dict[str, Any] = {
    "warmup": WARMUP,
    "passes": 1,
    "weak": MaskFeatures(0.1),
    "strong": MaskFeatures(0.4),
}
VARIANTS: dict[str, dict[str, Any]] = {
    "laplace": ROBUST,
    "cross_entropy": {"method": "cross_entropy", "strong": "none"},
    "laplace_one_network": ROBUST | {"n_networks": 1},
    "laplace_loss_mixture": ROBUST | {"confidence": "gaussian-mixture"},
}


def parts() -> tuple[NoisyDataset, NoisyDataset]:
    with np.load(EMBEDDINGS) as stored:
        return tuple(  # type: ignore[return-value]
            NoisyDataset.from_arrays(
                stored[f"{part}_labels"].astype(np.int64),
                stored[f"{part}_features"].astype(np.float32),
                class_names=CIFAR10_CLASSES,
            )
            for part in ("train", "test")
        )


def measure(settings: dict[str, Any], kind: str, rate: float, seed: int) -> dict[str, float]:
    train, test = parts()
    start = time.perf_counter()
    run = RobustClassifier(**(COMMON | settings), random_state=seed)
    run.fit(add_noise(train, kind, rate, random_state=seed), test=test)
    return {
        "last": run.summary_["test_accuracy_mean_of_last_rounds"],
        "best": run.summary_["test_accuracy_best_round_for_comparison_only"],
        "chosen": run.summary_["test_accuracy_of_chosen_round"],
        "seconds": time.perf_counter() - start,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    options = parser.parse_args()
    rows = []
    for variant in options.variants:
        for kind, rate in CELLS:
            runs = [measure(VARIANTS[variant], kind, rate, seed) for seed in range(options.seeds)]
            mean = {name: round(statistics.mean(run[name] for run in runs), 4) for name in runs[0]}
            rows.append({"method": variant, "noise": kind, "rate": rate, **mean})
            print(rows[-1], flush=True)
    save("training_embeddings", {"seeds": options.seeds, "passes": PASSES, "warmup": WARMUP, "rows": rows})


if __name__ == "__main__":
    main()
