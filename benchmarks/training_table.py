"""A table of training runs: variants x noise x seeds, each run stored as soon as it is finished.

Accuracies are on a clean test part, which is not used to choose anything: the mean over the last 10 rounds,
the best round (known only afterwards), and the round chosen by held-out given labels.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.training.classifier import RobustClassifier
from measuring import save, stored_rows

Settings = Mapping[str, Any]
Cell = tuple[str, float]  # kind and rate of the noise


@dataclass(frozen=True)
class TrainingTable:
    """What is trained on what; ``split`` gives the training and the test part of a seed."""

    name: str
    split: Callable[[int], tuple[NoisyDataset, NoisyDataset]]
    cells: tuple[Cell, ...]
    variants: Mapping[str, Callable[[Cell], Settings]]
    facts: Mapping[str, Any]  # sizes, stored with the results
    confused: Mapping[str, str] | None = None  # classes that asymmetric noise turns into others

    def measure(self, variant: str, cell: Cell, seed: int) -> dict[str, Any]:
        train, test = self.split(seed)
        kind, rate = cell
        mapping = self.confused if kind == "asymmetric" else None
        noisy = add_noise(train, kind, rate, mapping=mapping, random_state=seed)
        start = time.perf_counter()
        run = RobustClassifier(**self.variants[variant](cell), random_state=seed).fit(noisy, test=test)
        return {
            "last": run.summary_["test_accuracy_mean_of_last_rounds"],
            "best": run.summary_["test_accuracy_best_round_for_comparison_only"],
            "chosen": run.summary_["test_accuracy_of_chosen_round"],
            "refined_right": float((run.refined_labels_ == train.labels_as_written()).mean()),
            "rounds": run.summary_["rounds"],
            "held_out": statistics.mean(record["validation_accuracy"] for record in run.history_[-10:]),
            "seconds": time.perf_counter() - start,
        }

    def run(self, description: str | None, arguments: Sequence[str] | None = None) -> None:
        """Parse the command line (or ``arguments``), run what is missing, save after every run."""
        parser = argparse.ArgumentParser(
            description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
        parser.add_argument("--variants", nargs="+", choices=self.variants, default=list(self.variants))
        parser.add_argument("--cells", nargs="+", type=int, default=list(range(len(self.cells))))
        options = parser.parse_args(arguments)
        for variant in options.variants:
            for cell in (self.cells[number] for number in options.cells):
                for seed in options.seeds:
                    key = {"method": variant, "noise": cell[0], "rate": cell[1], "seed": seed}
                    if not any(key.items() <= row.items() for row in self._rows()):
                        row = key | self.measure(variant, cell, seed)
                        # Read again: another part of the table may have been measured in the meantime.
                        save(self.name, {**self.facts, "rows": [*self._rows(), row]})
                _show(variant, cell, self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        return stored_rows(self.name)


def _show(variant: str, cell: Cell, rows: list[dict[str, Any]]) -> None:
    runs = [row for row in rows if (row["method"], row["noise"], row["rate"]) == (variant, *cell)]
    means = {
        name: statistics.mean(run[name] for run in runs) for name in ("last", "best", "chosen", "seconds")
    }
    print(
        f"{variant:28s} {cell[0]} {cell[1]:g}, {len(runs)} seeds: last {means['last']:.4f} "
        f"best {means['best']:.4f} chosen {means['chosen']:.4f}  {means['seconds']:.0f} s",
        flush=True,
    )
