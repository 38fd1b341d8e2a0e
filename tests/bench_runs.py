"""Small benches for tests: a file of two classes, and a finished bench without measuring anything."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.evaluation.grid import BenchTask, Outcome
from laplaceconfidence.records.bench_run import (
    BenchRecord,
    BenchRun,
    ContenderRecord,
    append_outcome,
    open_bench,
    read_bench,
)

NOISES = ("symmetric:0.2", "asymmetric:0.4")
COLUMNS = tuple(f"blobs, {noise}" for noise in NOISES)
CLASSES = ("<script>alert(1)</script>", "b & c")


def write_blobs(folder: Path, n: int = 60) -> Path:
    """Features of two classes that are easily told apart, in ``blobs.npz``."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 2
    path = folder / "blobs.npz"
    features = np.eye(2)[labels] + rng.normal(scale=0.2, size=(n, 2))
    np.savez(path, features=features.astype(np.float32), labels=np.array(CLASSES)[labels])
    return path


def blobs_record(**changes: object) -> dict[str, Any]:
    return {
        "source": "blobs.npz",
        "class_names": list(CLASSES),
        "data": "60 samples",
        "noises": list(NOISES),
        "mapping": {CLASSES[0]: CLASSES[1]},
    } | changes


def contender_record(
    task: BenchTask, name: str, where: Sequence[str] = COLUMNS, **settings: object
) -> ContenderRecord:
    return ContenderRecord(
        task=task, name=name, kind=name, settings={column: dict(settings) for column in where}, group=name
    )


def bench_record(**changes: object) -> BenchRecord:
    settings: dict[str, object] = {
        "data": {"blobs": blobs_record()},
        "seeds": (0, 1),
        "contenders": (
            contender_record("confidence", "laplace"),
            contender_record("confidence", "knn-vote"),
            contender_record("training", "cross_entropy", rounds=3),
            contender_record("training", "laplace", rounds=3),
        ),
    }
    return BenchRecord(**(settings | changes))  # type: ignore[arg-type]


def make_bench(folder: Path, n_done: int | None = None) -> BenchRun:
    """A bench with made-up scores, all of it or its first cells."""
    run = open_bench(folder, bench_record())
    for number, cell in enumerate(run.cells[:n_done]):
        better = 0.1 * (cell.contender == "laplace") + 0.01 * cell.seed
        names = {
            "confidence": ("auroc", "average_precision", "calibration_error"),
            "training": ("last_rounds_accuracy", "chosen_round_accuracy", "best_round_accuracy"),
        }[cell.task]
        scores = dict.fromkeys(names, 0.8 + better) | {"seconds": 0.5 + number}
        append_outcome(folder, Outcome(cell, dict(scores)))
    return read_bench(folder)
