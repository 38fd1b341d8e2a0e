"""One step as a method sees it: batches with their views, networks, plan and state."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from laplaceconfidence.training.distributed import Team
from laplaceconfidence.training.methods.interface import Phase, Plan, Problem, State
from laplaceconfidence.training.sample_views import SampleViews
from laplaceconfidence.training.trained_network import TrainedNetwork


@dataclass(slots=True, eq=False)
class Batch:
    """This process's share of one batch. Every call of a view draws anew."""

    index: Tensor  # (b,) sample numbers, on the device
    labels: Tensor  # (b,) given labels, -1 where missing
    inputs: Tensor  # raw inputs: of the whole batch if ``whole``, else of this share
    views: SampleViews
    generator: torch.Generator
    team: Team
    whole: bool
    weight: float  # of this share among the processes; 1 where all shares are alike

    def __len__(self) -> int:
        return len(self.index)

    def plain(self) -> Tensor:
        """The inputs as a network takes them, not augmented."""
        return self.views.normalized(self._own(self.inputs))

    def weak(self) -> Tensor:
        """A weakly augmented view."""
        return self.views.normalized(self._own(self.views.weak(self.inputs, self.generator)))

    def strong(self) -> Tensor:
        """A strongly augmented view (which begins with a weak one)."""
        return self.views.normalized(self._own(self.views.strong(self.inputs, self.generator)))

    def _own(self, values: Tensor) -> Tensor:
        return self.team.own_rows(values) if self.whole else values


@dataclass(slots=True, eq=False)
class Step:
    """What ``Method.loss`` and ``Method.after_step`` are handed."""

    round: int
    progress: float  # rounds done so far, with the fraction of the phase that is under way
    phase: Phase
    plan: Plan
    state: State
    problem: Problem
    networks: tuple[TrainedNetwork, ...]
    batches: dict[str, Batch]  # by the names of the plan's streams
    generator: torch.Generator  # on the CPU; draws the same in every process
    team: Team
    measures: dict[str, Tensor] = field(default_factory=dict)
    notes: dict[str, Tensor] = field(default_factory=dict)  # from ``loss`` to ``after_step``, for the method
    target_counts: Tensor | None = None  # (C,) how often each class led the targets of this step

    @property
    def batch(self) -> Batch:
        """The batch of the first stream."""
        return next(iter(self.batches.values()))

    @property
    def trained(self) -> TrainedNetwork:
        """The first network that this phase trains."""
        return self.networks[self.phase.trains[0]]

    def measure(self, name: str, value: Tensor) -> None:
        """Note a scalar for the history, which shows its mean over the phase."""
        self.measures[name] = value.detach()

    def show_targets(self, targets: Tensor) -> None:
        """Let the guards see soft targets (b, C), so that they notice a class that vanishes."""
        leading = targets.detach().argmax(dim=1)
        self.target_counts = torch.bincount(leading, minlength=self.problem.n_classes)

    def mean_rows(self, values: Tensor) -> Tensor:
        """The mean over the whole batch, other processes' shares included; gradients flow."""
        return self.team.mean_rows(values)

    def gather_rows(self, values: Tensor) -> Tensor:
        """The rows of the whole batch, without gradient."""
        return self.team.gather_rows(values)

    def own_rows(self, values: Tensor) -> Tensor:
        """This process's share of rows of the whole batch."""
        return self.team.own_rows(values)

    def write_rows(self, name: str, index: Tensor, values: Tensor) -> None:
        """Set the rows ``index`` of a per-sample state tensor, in all processes alike."""
        self.state[name][self.team.gather_rows(index)] = self.team.gather_rows(values)
