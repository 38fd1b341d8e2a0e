"""Measurement of training methods: add noise to known labels, train, and compute test accuracies."""

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
from laplaceconfidence.run_files import CHECKPOINTS, CONFIDENCES, MODEL, TIMINGS

NOT_KEPT = (CHECKPOINTS, CONFIDENCES, MODEL)  # of a finished run: large folders that the bench does not need
SCORES = {
    "last_rounds_accuracy": "test_accuracy_mean_of_last_rounds",
    "chosen_round_accuracy": "test_accuracy_of_chosen_round",
    "best_round_accuracy": "test_accuracy_best_round_for_comparison_only",
    "chosen_round": "chosen_round",
}
"""The scores of a cell and their names in the summary of a training run."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingCells:
    """Measures the cells of training methods; every cell is a training run in its own folder.

    A run that was stopped is resumed when its cell is measured again.

    Parameters
    ----------
    train : NoisyDataset
        The samples to train on, after noise is added to their labels.
    test : NoisyDataset
        The samples that accuracies are measured on.
    parameters : mapping of str to mapping
        Parameters of ``RobustClassifier`` by the name of the method.
    folder : Path
        Where the run folders are made.
    mapping : mapping of str to str, optional
        For asymmetric noise: which class is replaced by which.
    listeners : sequence of callables, default=()
        Called after every round of every run with its measurements.
    """

    train: NoisyDataset
    test: NoisyDataset
    parameters: Mapping[str, Mapping[str, Any]]
    folder: Path
    mapping: Mapping[str, str] | None = None
    listeners: Sequence[Callable[[Mapping[str, Any]], None]] = ()

    def measure(self, cell: Cell) -> Scores:
        """Train the method of a cell; returns test accuracies, the chosen round and the seconds."""
        from laplaceconfidence.training.classifier import RobustClassifier

        data = Noise.parse(cell.noise).add_to(self.train, cell.seed, self.mapping)
        run = self.run_folder(cell)
        run.parent.mkdir(parents=True, exist_ok=True)
        classifier = RobustClassifier(**self.parameters[cell.contender], random_state=cell.seed, out=run)
        classifier.fit(data, test=self.test, listeners=self.listeners)
        scores: Scores = {name: float(classifier.summary_[key]) for name, key in SCORES.items()}
        lines = (run / TIMINGS).read_text(encoding="utf-8").splitlines()
        return {**scores, "seconds": float(sum(json.loads(line)["seconds"] for line in lines))}

    def run_folder(self, cell: Cell) -> Path:
        """The folder of the training run of a cell."""
        return self.folder / f"{cell.contender}_{cell.noise.replace(':', '-')}_seed-{cell.seed}"

    def tidy(self, cell: Cell) -> None:
        """Remove what only an unfinished run needs, once the outcome of its cell is stored."""
        for name in NOT_KEPT:
            shutil.rmtree(self.run_folder(cell) / name, ignore_errors=True)
