"""Measurement of training methods: add noise to known labels, train, and test."""

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

NOT_KEPT = ("checkpoints", "confidences")  # of a finished run: gigabytes that the benchmark does not need
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

    An interrupted run is resumed when its cell is measured again.

    Parameters
    ----------
    train, test : NoisyDataset
        Training and test data.
    parameters : mapping of str to mapping
        Parameters of ``RobustClassifier`` per method.
    folder : Path
        Holds the folders of the runs.
    mapping : mapping of str to str or None, default=None
        For asymmetric noise; see ``add_noise``.
    listeners : sequence of callable, default=()
        Called with every training event.
    """

    train: NoisyDataset
    test: NoisyDataset
    parameters: Mapping[str, Mapping[str, Any]]
    folder: Path
    mapping: Mapping[str, str] | None = None
    listeners: Sequence[Callable[[Mapping[str, Any]], None]] = ()

    def measure(self, cell: Cell) -> Scores:
        """Train with the method of a cell and return its accuracies."""
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
        """Return the folder of the training run of a cell."""
        return self.folder / f"{cell.contender}_{cell.noise.replace(':', '-')}_seed-{cell.seed}"

    def tidy(self, cell: Cell) -> None:
        """Remove the files that only an unfinished run needs; call it after the outcome was stored."""
        for name in NOT_KEPT:
            shutil.rmtree(self.run_folder(cell) / name, ignore_errors=True)
