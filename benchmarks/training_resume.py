"""Whether a run that is killed repeatedly ends with exactly the weights of an uninterrupted one.

    python benchmarks/training_resume.py --kills 20

Trains a small CNN on noisy digits once without interruption, then again while it is killed with SIGKILL at
random moments and restarted each time, and compares every weight, confidence and metric.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits

from laplaceconfidence.files import write_json
from laplaceconfidence.training.augment.weak import WeakAugment
from laplaceconfidence.training.classifier import RobustClassifier
from laplaceconfidence.training.methods.laplace import Laplace
from laplaceconfidence.training.run_folder import read_checkpoint
from measuring import RESULTS

TABLES = ("metrics.jsonl", "summary.json", "predictions.parquet", "refined_labels.parquet")


def train(folder: Path, n_samples: int, rounds: int) -> None:
    torch.set_num_threads(1)
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(X))[:n_samples]
    noisy = np.where(rng.random(n_samples) < 0.5, rng.integers(0, 10, n_samples), y[rows])
    RobustClassifier(
        "small_cnn",
        rounds=rounds,
        method=Laplace(warmup=2),
        strong="randaugment",
        learning_rate=0.01,
        batch_size=64,
        weak=WeakAugment(padding=1, flip=False),
        device="cpu",
        out=folder,
        checkpoint_seconds=0,
    ).fit((X[rows].reshape(-1, 8, 8) * 15).astype(np.uint8), noisy)


def start(folder: Path, n_samples: int, rounds: int) -> multiprocessing.process.BaseProcess:
    # Forked before anything was computed, so that a start takes milliseconds: the imports are done.
    process = multiprocessing.get_context("fork").Process(target=train, args=(folder, n_samples, rounds))
    process.start()
    return process


def finish(folder: Path, n_samples: int, rounds: int) -> float:
    begin = time.perf_counter()
    process = start(folder, n_samples, rounds)
    process.join()
    if process.exitcode != 0:
        raise SystemExit(f"The run ended with exit code {process.exitcode}.")
    return time.perf_counter() - begin


def rounds_done(folder: Path) -> int:
    metrics = folder / "metrics.jsonl"
    return len(metrics.read_text().splitlines()) if metrics.exists() else 0


def differing(first: Path, second: Path) -> list[str]:
    """Names of everything that is not the same, bit by bit."""
    parts = [path for part in ("confidences", "features") for path in sorted((first / part).iterdir())]
    names = [*TABLES, *(str(path.relative_to(first)) for path in parts)]
    found = [name for name in names if (first / name).read_bytes() != (second / name).read_bytes()]
    for name in ("last", "best"):
        ours, theirs = (read_checkpoint(folder / "checkpoints" / f"{name}.pt") for folder in (first, second))
        for number, (one, other) in enumerate(zip(ours["networks"], theirs["networks"], strict=True)):
            found += [f"{name} {number} {key}" for key in one if not torch.equal(one[key], other[key])]
    return found + [str(path) for path in second.rglob(".*")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--samples", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=RESULTS / "training_resume.json")
    options = parser.parse_args()
    moments, interrupted_in = random.Random(options.seed), []
    with tempfile.TemporaryDirectory() as scratch:
        whole, killed = Path(scratch) / "whole", Path(scratch) / "killed"
        seconds = finish(whole, options.samples, options.rounds)
        for kill in range(options.kills):
            process = start(killed, options.samples, options.rounds)
            while process.is_alive() and rounds_done(killed) < kill * options.rounds // options.kills:
                time.sleep(0.01)
            process.join(moments.uniform(0, 1.2 * seconds / options.rounds))
            process.kill()
            process.join()
            interrupted_in.append(rounds_done(killed))
        finish(killed, options.samples, options.rounds)
        found = differing(whole, killed)
    result = {
        "kills": options.kills,
        "rounds": options.rounds,
        "seconds_uninterrupted": round(seconds, 1),
        "rounds_done_at_each_kill": interrupted_in,
        "differing": found,
    }
    write_json(options.results, result)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
