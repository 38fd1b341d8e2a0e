"""The cost of a round, compared with the bare forward and backward passes it consists of.

    python benchmarks/training_overhead.py [--network small_cnn] [--samples 2000]
    python benchmarks/training_overhead.py --preset image-folder-small [--samples 3000]

One run measures both: rounds of the method "laplace" as users run them (feature extraction, graph, solve,
augmentation, selection, logging and checkpoints included), and the same number of passes with the same
networks over the same batches, already augmented and on the device, and nothing else. Rounds of both kinds
alternate, so that other work on the machine affects both alike. Without a preset, the rounds are those of the
paper, whose confidences are estimated in every one; a preset is measured over whole turns of its estimates.
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
from laplaceconfidence.training.methods.registry import change_method
from laplaceconfidence.training.networks.registry import build_network
from laplaceconfidence.training.presets import load_preset
from measuring import save

IMAGES = Path(__file__).parents[2] / "shared" / "data" / "cifar10_images.npz"
WARMUP = 1
PAPER: dict[str, Any] = {
    "method": Laplace(warmup=WARMUP),
    "batch_size": 128,
    "learning_rate": 0.01,
    "learning_rate_drops": (0.75,),
    "strong": "randaugment",
    "channels_last": False,
}


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

    def __init__(self, settings: dict[str, Any], n_train: int, n_validation: int) -> None:
        self.method, self.batch = settings["method"], settings["batch_size"]
        self.lower = settings["precision"] != "float32"
        form = torch.channels_last if settings["channels_last"] else torch.contiguous_format
        self.networks = [
            build_network(settings["network"], 10, (3, 32, 32)).to(memory_format=form) for _ in range(2)
        ]
        self.optimizers = [
            torch.optim.SGD(net.parameters(), lr=0.0, momentum=0.9, weight_decay=5e-4)
            for net in self.networks
        ]
        generator = torch.Generator().manual_seed(0)
        self.inputs, self.validation = (
            torch.randn(n, 3, 32, 32, generator=generator).to(memory_format=form)
            for n in (n_train, n_validation)
        )
        self.targets = torch.rand(n_train, 10, generator=generator).softmax(dim=1)
        self.n_rounds = 0

    def round(self) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=self.lower):
            for number, net in enumerate(self.networks):
                peer = self.networks[1 - number]
                if self.n_rounds % self.method.estimate_every == 0:
                    self._observe(peer, self.inputs)
                for _ in range(self.method.passes):
                    self._train(number, net, peer)
            for net in self.networks:
                self._observe(net, self.validation)
        self.n_rounds += 1

    def _train(self, number: int, net: torch.nn.Module, peer: torch.nn.Module) -> None:
        net.train()
        peer.eval()
        batches = zip(self.inputs.split(self.batch), self.targets.split(self.batch), strict=True)
        for inputs, targets in batches:
            if self.method.targets == "refurbished":  # pseudo-labels of both networks
                with torch.no_grad():
                    net(inputs)
                    peer(inputs)
            self.optimizers[number].zero_grad()
            functional.cross_entropy(net(inputs).float(), targets).backward()
            self.optimizers[number].step()

    @torch.no_grad()
    def _observe(self, net: torch.nn.Module, inputs: torch.Tensor) -> None:
        net.eval()
        for part in inputs.split(512):
            net(part)


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """The parameters of the measured run, but for its number of rounds."""
    if options.preset is None:
        return PAPER | {"network": options.network, "precision": options.precision}
    preset = load_preset(options.preset).parameters()
    return preset | {"method": change_method(preset["method"], {"warmup": WARMUP})}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--network", default="small_cnn")
    parser.add_argument("--preset", help="measure its rounds in place of the paper's")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=4, help="measured rounds of each kind")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--precision", default="float32")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    X, y = images(options.samples)
    n_validation = round(0.1 * options.samples)
    settings = settings_of(options)
    turn_of_estimates = settings["method"].estimate_every
    bare = BarePasses(settings, options.samples - n_validation, n_validation)
    bare.round()  # the first one allocates
    bare_seconds: list[float] = []
    round_seconds: list[float] = []
    turn = time.perf_counter()

    def measured(record: Any) -> None:
        """After each of our rounds, one of the bare kind."""
        nonlocal turn
        now = time.perf_counter()
        if record["round"] > WARMUP + turn_of_estimates:  # the first robust rounds still allocate
            round_seconds.append(now - turn)
            bare.round()
            bare_seconds.append(time.perf_counter() - now)
        turn = time.perf_counter()

    timer = StageTimer()
    with tempfile.TemporaryDirectory() as scratch, observing(timer):
        fixed = {"rounds": WARMUP + turn_of_estimates + options.rounds, "device": "cpu"}
        RobustClassifier(
            **(settings | fixed | {"out": Path(scratch) / "run", "checkpoint_seconds": 0}),
        ).fit(X, y, listeners=[measured])
    result = {
        "network": settings["network"],
        "preset": options.preset,
        "samples": options.samples,
        "threads": options.threads,
        "seconds_of_a_round": round(sum(round_seconds) / len(round_seconds), 2),
        "seconds_of_bare_passes": round(sum(bare_seconds) / len(bare_seconds), 2),
        "ratio": round(sum(round_seconds) / sum(bare_seconds), 3),
        "seconds_by_stage_whole_run": {name: round(value, 2) for name, value in timer.seconds.items()},
    }
    print(result)
    save(f"training_overhead_{options.preset or options.network}", result)


if __name__ == "__main__":
    main()
