"""The cost of a round, compared with the bare forward and backward passes it consists of.

    python benchmarks/training_overhead.py [--network small_cnn] [--samples 2000]

One run measures both: rounds of the method "laplace" as users run them (feature extraction, graph, solve,
augmentation, selection, logging and checkpoints included), and the same number of passes with the same
networks over the same batches, already augmented and on the device, and nothing else. Rounds of both kinds
alternate, so that other work on the machine affects both alike.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from laplaceconfidence.stages import StageTimer, observing
from laplaceconfidence.training.classifier import RobustClassifier
from laplaceconfidence.training.methods.laplace import Laplace
from laplaceconfidence.training.networks.registry import build_network
from measuring import save

IMAGES = Path(__file__).parents[2] / "shared" / "data" / "cifar10_images.npz"
BATCH, PASSES, WARMUP = 128, 2, 1


def images(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    if IMAGES.exists():
        with np.load(IMAGES) as stored:
            found, labels = stored["train_images"][:n], stored["train_labels"][:n].astype(np.int64)
    else:  # time does not depend on what the images show
        found, labels = rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8), rng.integers(0, 10, n)
    return found, np.where(rng.random(n) < 0.5, rng.integers(0, 10, n), labels)


class BarePasses:
    """The forward and backward passes of one round, on prepared batches."""

    def __init__(self, networks: list[torch.nn.Module], n_train: int, n_validation: int) -> None:
        self.networks = networks
        self.optimizers = [
            torch.optim.SGD(net.parameters(), lr=0.0, momentum=0.9, weight_decay=5e-4) for net in networks
        ]
        generator = torch.Generator().manual_seed(0)
        self.inputs = torch.randn(n_train, 3, 32, 32, generator=generator)
        self.validation = torch.randn(n_validation, 3, 32, 32, generator=generator)
        self.targets = torch.rand(n_train, 10, generator=generator).softmax(dim=1)

    def round(self) -> None:
        for number, net in enumerate(self.networks):
            peer = self.networks[1 - number]
            peer.eval()
            with torch.no_grad():
                for inputs in self.inputs.split(512):
                    peer(inputs)
            net.train()
            for _ in range(PASSES):
                for inputs, targets in zip(self.inputs.split(BATCH), self.targets.split(BATCH), strict=True):
                    with torch.no_grad():
                        net(inputs)
                        peer(inputs)
                    self.optimizers[number].zero_grad()
                    functional.cross_entropy(net(inputs), targets).backward()
                    self.optimizers[number].step()
        with torch.no_grad():
            for net in self.networks:
                net.eval()
                net(self.validation)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="small_cnn")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=4, help="measured rounds of each kind")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--precision", default="float32")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    X, y = images(options.samples)
    n_validation = round(0.1 * options.samples)
    bare = BarePasses(
        [build_network(options.network, 10, (3, 32, 32)) for _ in range(2)],
        options.samples - n_validation,
        n_validation,
    )
    bare.round()
    bare_seconds: list[float] = []
    round_seconds: list[float] = []
    turn = time.perf_counter()

    def measured(record: Any) -> None:
        """After each of our rounds, one of the bare kind."""
        nonlocal turn
        now = time.perf_counter()
        if record["round"] > WARMUP + 1:  # the first robust round still allocates
            round_seconds.append(now - turn)
            bare.round()
            bare_seconds.append(time.perf_counter() - now)
        turn = time.perf_counter()

    timer = StageTimer()
    with tempfile.TemporaryDirectory() as scratch, observing(timer):
        RobustClassifier(
            options.network,
            rounds=WARMUP + 1 + options.rounds,
            method=Laplace(warmup=WARMUP, passes=PASSES),
            batch_size=BATCH,
            learning_rate=0.01,
            learning_rate_drops=(0.75,),
            strong="randaugment",
            channels_last=False,
            precision=options.precision,
            device="cpu",
            out=Path(scratch) / "run",
            checkpoint_seconds=0,
        ).fit(X, y, listeners=[measured])
    result = {
        "network": options.network,
        "samples": options.samples,
        "threads": options.threads,
        "seconds_of_a_round": round(sum(round_seconds) / len(round_seconds), 2),
        "seconds_of_bare_passes": round(sum(bare_seconds) / len(bare_seconds), 2),
        "ratio": round(sum(round_seconds) / sum(bare_seconds), 3),
        "seconds_by_stage_whole_run": {name: round(value, 2) for name, value in timer.seconds.items()},
    }
    print(result)
    save(f"training_overhead_{options.network}", result)


if __name__ == "__main__":
    main()
