"""Two kinds of noise at once, one of them ambiguity: the noise-aware estimator and its peers.

    python benchmarks/mixed_noise.py [--sets digits] [--seed 0] [--refresh]

Labels drawn from a weak model simulate people who confuse classes that look alike; noise of another kind is
added, or used for half of the samples instead. Scores as in noise_aware.py; true labels are used for scoring
only.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace

import numpy as np

from laplaceconfidence.data.dataset import NoisyDataset
from measuring import save, stored_rows
from noise_aware import add_refresh, measure_cell, show, weak_log_probabilities, with_noise
from real_features import present_sets

NAME = "mixed_noise"
ON_TOP = {
    "ambiguity 20% + symmetric 10%": (0.2, "symmetric", 0.1),
    "ambiguity 20% + instance 20%": (0.2, "instance", 0.2),
    "ambiguity 20% + asymmetric 40%": (0.2, "asymmetric", 0.4),
    "ambiguity 40% + symmetric 30%": (0.4, "symmetric", 0.3),
}
HALVES = "half ambiguity 40%, half asymmetric 40%"


def mixtures(data: NoisyDataset, name: str, seed: int) -> dict[str, NoisyDataset]:
    """The data set with labels of every mixture."""
    weak, truth = weak_log_probabilities(data), data.true_labels

    def labels(kind: str, rate: float) -> np.ndarray:
        return with_noise(data, name, kind, rate, seed, weak).labels

    found = {}
    for mixture, (ambiguity, kind, rate) in ON_TOP.items():
        other = labels(kind, rate)
        found[mixture] = np.where(other != truth, other, labels("ambiguity", ambiguity))
    half = np.random.default_rng(seed).random(len(truth)) < 0.5
    found[HALVES] = np.where(half, labels("ambiguity", 0.4), labels("asymmetric", 0.4))
    return {mixture: replace(data, labels=mixed) for mixture, mixed in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=None)
    parser.add_argument("--seed", type=int, default=0)
    add_refresh(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = stored_rows(NAME) if options.refresh else []
    for name, data in present_sets(options.sets):
        for mixture, noisy in mixtures(data, name, options.seed).items():
            cell = {"set": name, "noise": mixture, "rate": 0.0, "seed": options.seed}
            measure_cell(rows, cell, noisy, refresh=options.refresh)
            save(NAME, {"settings": {"seed": options.seed}, "rows": rows})
            show(rows, name, mixture, 0.0)


if __name__ == "__main__":
    main()
