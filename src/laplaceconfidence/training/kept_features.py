"""Which features a run keeps to show what was learned: of whom, and when.

Until a method first asks what the networks make of the training set, it can only have trained on the labels
as they were given. That moment is the end of plain training, whatever the method calls it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from laplaceconfidence.training.methods.interface import Method
from laplaceconfidence.training.seeds import derived_generator

MOST_SAMPLES = 5_000
AFTER_WARM_UP, AFTER_TRAINING = "after-warm-up", "after-training"


def end_of_plain_training(method: Method, rounds: int) -> tuple[int, int] | None:
    """Round and phase before which ``method`` has trained, but on nothing except the given labels."""
    positions = ((round, number) for round in range(rounds) for number in _with_evidence(method, round))
    first = next(positions, None)
    return None if first == (0, 0) else first


def shown_rows(train_rows: Tensor, seed: int) -> Tensor:
    """At most 5,000 of the training samples, the same at every moment of a run, in their order."""
    order = torch.randperm(len(train_rows), generator=derived_generator(seed, "shown features"))
    return train_rows[order[:MOST_SAMPLES].sort().values]


def _with_evidence(method: Method, round: int) -> list[int]:
    return [number for number, phase in enumerate(method.phases(round)) if phase.evidence]
