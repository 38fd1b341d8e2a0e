"""Checks during training: losses, confidences, vanishing classes, and accuracy that is lost."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from laplaceconfidence.exceptions import TrainingStopped, TrainingWarning
from laplaceconfidence.training.methods.interface import Plan

_EXTREME = 0.01  # confidences within this of 0 or 1 are useless
_ROUNDS_THAT_LOSE = 3  # in a row; networks often lose a little when the warm-up ends, and recover


@dataclass(slots=True)
class Guards:
    """The checks of one run. Each kind of problem is reported once."""

    class_names: tuple[str, ...]
    reported: set[str] = field(default_factory=set)

    def check_loss(self, loss: float, round: int, network: int) -> None:
        """Stop when the loss is not finite: nothing after it would be."""
        if not torch.isfinite(torch.tensor(loss)):
            raise TrainingStopped(
                f"The loss of network {network + 1} became {loss} in round {round + 1}. Lower "
                "'learning_rate' (first by a factor of ten), check the scale of the inputs, and use "
                "precision='float32'."
            )

    def check_plan(self, plan: Plan, round: int) -> None:
        """Stop when there is nothing to train on; warn when all confidences are near 0 or 1."""
        for name, rows in plan.streams.items():
            if len(rows) == 0:
                raise TrainingStopped(
                    f"No sample is left in '{name}' in round {round + 1}. Train on more samples, or change "
                    "the settings of the method that select samples."
                )
        confidence = plan.tensors.get("confidence")
        if confidence is None or len(confidence) == 0:
            return
        if confidence.max() < _EXTREME:
            advice = "given labels are ignored. Use a smaller 'alpha' or another 'confidence'."
            self._warn_once("confidence 0", f"All confidences are near 0 in round {round + 1}: {advice}")
        elif confidence.min() > 1 - _EXTREME:
            advice = (
                "labels are learned as they were given. If more than a few are wrong, use a shorter 'warmup' "
                "or another 'confidence'."
            )
            self._warn_once("confidence 1", f"All confidences are near 1 in round {round + 1}: {advice}")

    def check_targets(self, counts: Tensor, expected: Tensor, round: int) -> None:
        """Warn when a class that has given labels is the largest target of no sample."""
        vanished = torch.nonzero((counts == 0) & (expected > 0)).flatten().tolist()
        if vanished:
            names = ", ".join(self.class_names[code] for code in vanished[:5])
            names += ", ..." * (len(vanished) > 5)
            self._warn_once(
                "vanished class",
                f"{len(vanished)} of {len(self.class_names)} classes ({names}) vanished from the training "
                f"targets in round {round + 1}: the networks hardly predict them anymore. A longer "
                "'warmup', a smaller 'sharpen' or a larger 'prior_weight' keeps them.",
            )

    def check_held_out(self, accuracies: Sequence[float], n_plain: int, n_held_out: int) -> None:
        """Warn when rounds after the warm-up predict held-out given labels clearly less well than it did."""
        plain, recent = accuracies[:n_plain], accuracies[n_plain:][-_ROUNDS_THAT_LOSE:]
        if not plain or len(recent) < _ROUNDS_THAT_LOSE:
            return
        highest = max(plain)
        standard_error = math.sqrt(highest * (1 - highest) / n_held_out)
        if max(recent) < highest - 2 * standard_error:
            self._warn_once(
                "held-out labels",
                f"The last {len(recent)} rounds predict at most {max(recent):.1%} of the held-out given "
                f"labels, plain training {highest:.1%}: the method makes the networks worse on this data. "
                "The networks of the best round are kept. A longer 'warmup', another 'confidence' or more "
                "rounds may help.",
            )

    def _warn_once(self, kind: str, message: str) -> None:
        if kind not in self.reported:
            self.reported.add(kind)
            warnings.warn(message, TrainingWarning, stacklevel=2)


def check_batches(smallest: int, normalizes_batches: bool) -> None:
    """Stop before batch normalization fails on a batch of one."""
    if normalizes_batches and smallest < 2:
        raise TrainingStopped(
            "A batch of one sample cannot be normalized by the network's BatchNorm layers. Use a "
            "'batch_size' of at least 2 for each process, and at least 2 samples."
        )
