"""Measuring training methods: noise put into known labels, one loop for all, accuracy on a test set."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.evaluation.grid import Cell, Scores
from laplaceconfidence.evaluation.noises import Noise

NOT_KEPT = ("checkpoints", "confidences")  # of a finished run: gigabytes that the bench does not need
SCORES = {
    "last_rounds_accuracy": "test_accuracy_mean_of_last_rounds",
    "chosen_round_accuracy": "test_accuracy_of_chosen_round",
    "best_round_accuracy": "test_accuracy_best_round_for_comparison_only",
    "chosen_round": "chosen_round",
}
"""The scores of a cell by what the summary of a training run calls them."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingCells:
    """Measures the cells of training methods. Every cell is a training run in a folder of its own.

    A run that was stopped goes on when its cell is measured again. ``parameters`` are those of
    ``RobustClassifier``, by method.
    """

    train: NoisyDataset
    test: NoisyDataset
    parameters: Mapping[str, Mapping[str, Any]]
    folder: Path
    mapping: Mapping[str, str] | None = None
    listeners: Sequence[Callable[[Mapping[str, Any]], None]] = ()

    def measure(self, cell: Cell) -> Scores:
        from laplaceconfidence.training.classifier import RobustClassifier

        data = Noise.parse(cell.noise).put_into(self.train, cell.seed, self.mapping)
        run = self.run_folder(cell)
        run.parent.mkdir(parents=True, exist_ok=True)
        classifier = RobustClassifier(**self.parameters[cell.contender], random_state=cell.seed, out=run)
        classifier.fit(data, test=self.test, listeners=self.listeners)
        scores: Scores = {name: float(classifier.summary_[key]) for name, key in SCORES.items()}
        lines = (run / "timings.jsonl").read_text(encoding="utf-8").splitlines()
        return {**scores, "seconds": float(sum(json.loads(line)["seconds"] for line in lines))}

    def run_folder(self, cell: Cell) -> Path:
        """Where the training run of a cell is."""
        return self.folder / f"{cell.contender}_{cell.noise.replace(':', '-')}_seed-{cell.seed}"

    def tidy(self, cell: Cell) -> None:
        """Remove what only a run that is not finished needs, once the outcome of its cell is safe."""
        for name in NOT_KEPT:
            shutil.rmtree(self.run_folder(cell) / name, ignore_errors=True)
