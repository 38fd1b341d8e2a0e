"""How well a small CNN learns digits most of whose labels are wrong: this package's methods under one loop.

    python benchmarks/training_digits.py [--seeds 3] [--methods laplace cross_entropy ...]

Digits of scikit-learn, 80/20 split, symmetric noise. Accuracies are on the 20% with their true labels, which
nothing is chosen by: the mean over the last 10 rounds, the best round (which nobody could have known), and
the round that held-out given labels chose.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.digits import load_digits
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.training.augment.randaugment import RandAugment
from laplaceconfidence.training.augment.weak import WeakAugment
from laplaceconfidence.training.classifier import RobustClassifier
from measuring import save

RATES = (0.4, 0.8)
WARMUP, ROUNDS = 8, 34
PASSES = WARMUP + 2 * (ROUNDS - WARMUP)
COMMON: dict[str, Any] = {
    "network": "small_cnn",
    "weak": WeakAugment(padding=1, flip=False),
    "strong": RandAugment(n_operations=1, cutout=None),  # 64 pixels bear no more
    "batch_size": 64,
    "learning_rate": 0.05,
    "device": "cpu",
    "n_jobs": 1,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "laplace": {"rounds": ROUNDS, "warmup": WARMUP},
    # As many passes over the data as each of the two networks above makes.
    "cross_entropy": {"method": "cross_entropy", "rounds": PASSES, "weak": "none"},
    "cross_entropy_weak_views": {"method": "cross_entropy", "rounds": PASSES},
    "laplace_one_network": {"rounds": ROUNDS, "warmup": WARMUP, "n_networks": 1},
    "laplace_loss_mixture": {"rounds": ROUNDS, "warmup": WARMUP, "confidence": "gaussian-mixture"},
    "dividemix": {"method": "dividemix", "rounds": ROUNDS, "warmup": WARMUP},
    "co_teaching": {"method": "co_teaching", "rounds": PASSES},
}


def split(seed: int) -> tuple[NoisyDataset, NoisyDataset]:
    digits = load_digits()
    rows = np.random.default_rng(seed).permutation(len(digits))
    n_train = int(0.8 * len(rows))
    return digits.subset(rows[:n_train]), digits.subset(rows[n_train:])


def measure(variant: str, rate: float, seed: int) -> dict[str, float]:
    train, test = split(seed)
    settings = COMMON | VARIANTS[variant] | {"random_state": seed}
    if variant == "co_teaching":  # it has to be told the share of wrong labels
        settings["method_options"] = {"forget_rate": rate * 0.9}
    start = time.perf_counter()
    run = RobustClassifier(**settings).fit(add_noise(train, "symmetric", rate, random_state=seed), test=test)
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
        for rate in RATES:
            runs = [measure(variant, rate, seed) for seed in range(options.seeds)]
            mean = {name: round(statistics.mean(run[name] for run in runs), 4) for name in runs[0]}
            rows.append({"method": variant, "symmetric_noise": rate, **mean})
            print(rows[-1], flush=True)
    save("training_digits", {"seeds": options.seeds, "warmup": WARMUP, "rounds": ROUNDS, "rows": rows})


if __name__ == "__main__":
    main()
