"""Measurement of training methods: add noise to known labels, train, and compute accuracies."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.evaluation.confidence_cells import GIGABYTE
from laplaceconfidence.evaluation.estimate_times import EstimateTimer
from laplaceconfidence.evaluation.grid import Cell, Scores
from laplaceconfidence.evaluation.metrics import score_confidence
from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.memory import PeakMemory
from laplaceconfidence.run_files import CHECKPOINTS, MODEL, TIMINGS
from laplaceconfidence.stages import observing

NOT_KEPT = (CHECKPOINTS, MODEL)  # of a finished run: large, and no figure needs them
SCORES = {
    "last_rounds_accuracy": "test_accuracy_mean_of_last_rounds",
    "chosen_round_accuracy": "test_accuracy_of_chosen_round",
    "best_round_accuracy": "test_accuracy_best_round_for_comparison_only",
    "chosen_round_top_5_accuracy": "test_top_5_accuracy_of_chosen_round",
}
"""The scores of a cell on a test set, and their names in the summary of a training run."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingCells:
    """Measures the cells of training methods; every cell is a training run in its own folder.

    A run that was stopped is resumed when its cell is measured again.

    Parameters
    ----------
    train : NoisyDataset
        The samples to train on, after noise is added to their labels.
    tests : mapping of str to NoisyDataset
        Samples that accuracies are measured on, by name; the first is the main test set.
    parameters : mapping of (str, str) to mapping
        Parameters of ``RobustClassifier`` by the name of the contender and the noise.
    folder : Path
        Where the run folders are made.
    mapping : mapping of str to str, optional
        For asymmetric noise: which class is replaced by which.
    listeners : sequence of callables, default=()
        Called after every round of every run with its measurements.
    """

    train: NoisyDataset
    tests: Mapping[str, NoisyDataset]
    parameters: Mapping[tuple[str, str], Mapping[str, Any]]
    folder: Path
    mapping: Mapping[str, str] | None = None
    listeners: Sequence[Callable[[Mapping[str, Any]], None]] = field(default=())

    def measure(self, cell: Cell) -> Scores:
        """Train the method of a cell; returns accuracies, metrics of its confidences, seconds and memory."""
        from laplaceconfidence.training.classifier import RobustClassifier
        from laplaceconfidence.training.gpu_memory import peak_gpu_memory, reset_peak_gpu_memory

        data = self.noisy_data(cell)
        run = self.run_folder(cell)
        run.parent.mkdir(parents=True, exist_ok=True)
        parameters = self.parameters[cell.contender, cell.noise]
        classifier = RobustClassifier(**parameters, random_state=cell.seed, out=run)
        first, *further = self.tests or (None,)
        reset_peak_gpu_memory(classifier.device)
        n_held_out = round(classifier.validation_fraction * int((data.labels != MISSING).sum()))
        timer = EstimateTimer(len(data) - n_held_out)
        with PeakMemory() as peak, observing(timer):
            classifier.fit(
                data,
                test=None if first is None else self.tests[first],
                further_tests={name: self.tests[name] for name in further},
                listeners=self.listeners,
            )
        scores = scores_of_summary(classifier.summary_) | confidence_scores(classifier.confidence_, data)
        lines = (run / TIMINGS).read_text(encoding="utf-8").splitlines()
        scores |= {"n_held_out": float(n_held_out), **timer.scores()}
        scores["seconds"] = float(sum(json.loads(line)["seconds"] for line in lines))
        on_gpu = peak_gpu_memory(classifier.device)
        for name, amount in (("peak_memory", peak.bytes), ("peak_gpu_memory", on_gpu)):
            if amount is not None:
                scores[name] = amount / GIGABYTE
        return scores

    def noisy_data(self, cell: Cell) -> NoisyDataset:
        """The training samples of a cell, with noise added to their labels."""
        return Noise.parse(cell.noise).add_to(self.train, cell.seed, self.mapping)

    def run_folder(self, cell: Cell) -> Path:
        """The folder of the training run of a cell."""
        return self.folder / run_folder_name(cell)

    def tidy(self, cell: Cell) -> None:
        """Remove what only an unfinished run needs, once the outcome of its cell is stored."""
        for name in NOT_KEPT:
            shutil.rmtree(self.run_folder(cell) / name, ignore_errors=True)


def run_folder_name(cell: Cell) -> str:
    """The name of the folder of the training run of a cell.

    Characters that some file systems do not allow are replaced; a digest then tells names apart.

    Parameters
    ----------
    cell : Cell
        The cell.

    Returns
    -------
    str
    """
    names = []
    for name in (cell.data, cell.contender):
        plain = re.sub(r"[^\w.=+-]+", "-", name, flags=re.ASCII).strip("-.")
        if plain != name:
            plain = f"{plain[:60]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}".lstrip("-")
        names.append(plain)
    return f"{'_'.join(names)}_{cell.noise.replace(':', '-')}_seed-{cell.seed}"


def confidence_scores(confidence: FloatArray, data: NoisyDataset) -> Scores:
    """Metrics of the confidences of a run; none if no true labels are known."""
    if data.true_labels is None:
        return {}
    known = (data.labels != MISSING) & (data.true_labels != MISSING)
    if not known.any():
        return {}
    found = score_confidence(confidence[known], (data.labels == data.true_labels)[known]).as_dict()
    return {name: found[name] for name in ("auroc", "f1_right", "f1_wrong", "noise_rate")}


def scores_of_summary(summary: Mapping[str, Any]) -> Scores:
    """The scores in the summary of a training run; those of further test sets end in "@" and a name."""
    scores: Scores = {"chosen_round": float(summary["chosen_round"])}
    if "validation_accuracy" in summary:
        scores["validation_accuracy"] = float(summary["validation_accuracy"])
    for test, accuracies in {"": summary, **summary.get("further_tests", {})}.items():
        end = f"@{test}" if test else ""
        scores |= {name + end: float(accuracies[key]) for name, key in SCORES.items() if key in accuracies}
    return scores
