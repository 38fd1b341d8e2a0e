"""The position of a run and its measurements: what a checkpoint holds besides weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from laplaceconfidence.training.distributed import Team
from laplaceconfidence.training.methods.interface import Phase, Plan, State


@dataclass(slots=True, eq=False)
class TrainingProgress:
    """The position of a run, the state of its method and the measurements so far."""

    state: State
    round: int = 0
    phase: int = 0
    step: int = 0
    n_without_loss: int = 0  # steps of the phase for which the method had no loss
    plan: Plan | None = None  # of the current phase
    # Sums over the steps of the phase, on the device, so that no step waits for them.
    sums: dict[str, Tensor] = field(default_factory=dict)
    target_counts: Tensor | None = None  # (C,) how often each class had the largest target
    phase_records: list[dict[str, Any]] = field(default_factory=list)  # of the current round
    confidences: dict[str, Tensor] = field(default_factory=dict)  # of the current round, by network
    history: list[dict[str, Any]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    stop_reason: str | None = None  # where a callback ends the run after the current round
    is_stopped: bool = False  # whether it has ended so
    best: dict[str, Any] | None = None  # the chosen round, its validation accuracy and the highest one

    def begin_phase(self, phase: Phase, plan: Plan) -> None:
        """Store the plan, and its confidences for the record of the round."""
        self.plan = plan
        if "confidence" in plan.tensors:
            for network in phase.trains:
                self.confidences[f"confidence_{network + 1}"] = plan.tensors["confidence"].float().cpu()

    def add_step(self, values: Mapping[str, Tensor], target_counts: Tensor | None) -> None:
        """Add the measurements of one step to the sums of the phase."""
        self.step += 1
        self.n_without_loss += "loss" not in values
        for name, value in values.items():
            # In double precision the order of such additions does not matter; Apple's GPUs have none.
            value = value if value.device.type == "mps" else value.double()
            self.sums[name] = self.sums[name] + value if name in self.sums else value
        if target_counts is not None:
            before = 0 if self.target_counts is None else self.target_counts
            self.target_counts = before + target_counts

    def finish_phase(self, phase: Phase, team: Team, learning_rate: float) -> dict[str, Any]:
        """Advance to the next phase; returns the measurements of this one, over all processes."""
        assert self.plan is not None
        means = {name: float(team.sum(total)) / team.size / self.step for name, total in self.sums.items()}
        if self.n_without_loss:
            n_with_loss = self.step - self.n_without_loss
            means["loss"] = means["loss"] * self.step / n_with_loss if n_with_loss else 0.0
            means["skipped_share"] = self.n_without_loss / self.step
        record: dict[str, Any] = {
            "name": phase.name,
            "networks": [network + 1 for network in phase.trains],
            "learning_rate": learning_rate,
            **means,
            **self.plan.measures,
        }
        if "confidence" in self.plan.tensors:
            record["mean_confidence"] = float(self.plan.tensors["confidence"].double().mean())
        self.phase_records.append(record)
        self.phase, self.step, self.n_without_loss, self.plan = self.phase + 1, 0, 0, None
        # Between phases nothing is left to add up, so that the first process can save without the others.
        self.sums, self.target_counts = {}, None
        return record

    def choose(self, accuracy: float, n_samples: int) -> bool:
        """Whether to keep the networks of this round, by their accuracy on held-out given labels.

        The last round within one standard error of the best so far is chosen. With many wrong labels and few
        samples the accuracies are so noisy that the highest one would pick a round nearly at random.
        """
        highest = accuracy if self.best is None else max(accuracy, self.best["highest_validation_accuracy"])
        if accuracy < highest - math.sqrt(highest * (1 - highest) / n_samples):
            return False
        self.best = {
            "round": self.round + 1,
            "validation_accuracy": accuracy,
            "highest_validation_accuracy": highest,
        }
        return True

    def finish_round(self, record: dict[str, Any], seconds: float) -> None:
        """Store the measurements of the round and advance to the next one."""
        self.history.append(record)
        self.seconds.append(seconds)
        self.round, self.phase = self.round + 1, 0
        self.phase_records, self.confidences = [], {}

    def as_dict(self, team: Team) -> dict[str, Any]:
        """Plain values and tensors only; sums are those over all processes."""
        counts = self.target_counts
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {
            "plan": None if self.plan is None else self.plan.as_dict(),
            "sums": {name: team.sum(total) for name, total in self.sums.items()},
            "target_counts": None if counts is None else team.sum(counts),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], device: torch.device, team: Team) -> TrainingProgress:
        """What ``as_dict`` gave, with everything that steps use on their device."""
        progress = cls(**content)
        progress.state = {name: value.to(device) for name, value in progress.state.items()}
        own = 1 if team.is_first else 0  # the first process continues with the sums over all processes
        progress.sums = {name: value.to(device) * own for name, value in progress.sums.items()}
        if progress.target_counts is not None:
            progress.target_counts = progress.target_counts.to(device) * own
        if content["plan"] is not None:
            progress.plan = Plan(**content["plan"]).to(device)
        return progress


def counts(record: Mapping[str, Any]) -> bool:
    """Whether the round of a record may be chosen (see ``Stage.counts``)."""
    return bool(record.get("counts", True))


def measured_text(record: Mapping[str, Any]) -> list[str]:
    """The measurements of a round as text: "loss 0.512", "confidence 0.81", "validation 93.0%"."""
    losses = [phase["loss"] for phase in record["phases"]]
    confidences = [phase["mean_confidence"] for phase in record["phases"] if "mean_confidence" in phase]
    parts = [f"loss {sum(losses) / len(losses):.3f}"] if losses else []
    parts += [f"confidence {sum(confidences) / len(confidences):.2f}"] if confidences else []
    for name, word in (("validation_accuracy", "validation"), ("test_accuracy", "test")):
        if name in record:
            parts.append(f"{word} {record[name]:.1%}")
    return parts
