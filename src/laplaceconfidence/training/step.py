"""One training step, as it is passed to a method: batches with their views, networks, plan and state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from laplaceconfidence.training.distributed import Team
from laplaceconfidence.training.methods.interface import Phase, Plan, Problem, State
from laplaceconfidence.training.sample_views import SampleViews
from laplaceconfidence.training.trained_network import TrainedNetwork


@dataclass(slots=True, eq=False)
class Batch:
    """The share of one batch that this process has. Every call of a view draws new random numbers.

    Attributes
    ----------
    index : Tensor of shape (b,)
        Sample numbers, on the device.
    labels : Tensor of shape (b,)
        Given labels, -1 where missing.
    inputs : Tensor
        Raw inputs: of the whole batch if ``whole`` is true, otherwise of this share.
    views : SampleViews
        How inputs are augmented and normalized.
    generator : torch.Generator
        Generator that the views draw from.
    team : Team
        The processes that train together.
    whole : bool
        Whether ``inputs`` are those of the whole batch.
    weight : float
        Weight of this share among the processes; 1 where all shares have the same size.
    """

    index: Tensor
    labels: Tensor
    inputs: Tensor
    views: SampleViews
    generator: torch.Generator
    team: Team
    whole: bool
    weight: float

    def __len__(self) -> int:
        return len(self.index)

    def plain(self) -> Tensor:
        """The inputs as a network takes them, not augmented."""
        return self.views.normalized(self._own(self.inputs))

    def weak(self) -> Tensor:
        """A weakly augmented view."""
        return self.views.normalized(self._own(self.views.weak(self.inputs, self.generator)))

    def strong(self, number: int = 0) -> Tensor:
        """A strongly augmented view (which begins with a weak one).

        Where the run has several strong views, ``number`` says which; the last one stands for all after it.
        """
        augmentation = self.views.strong[min(number, len(self.views.strong) - 1)]
        return self.views.normalized(self._own(augmentation(self.inputs, self.generator)))

    def _own(self, values: Tensor) -> Tensor:
        return self.team.own_rows(values) if self.whole else values


@dataclass(slots=True, eq=False)
class Step:
    """The argument of ``Method.loss`` and ``Method.after_step``.

    Attributes
    ----------
    round : int
        The current round, counted from 0.
    progress : float
        Rounds done so far, with the fraction of the current phase.
    phase : Phase
        The current phase.
    plan : Plan
        The plan of the phase, its tensors on the device.
    state : dict of str to Tensor
        The state of the method, which may be changed in ``after_step``.
    problem : Problem
        The facts about the run.
    networks : tuple of TrainedNetwork
        All networks; calling one gives logits.
    batches : dict of str to Batch
        By the names of the plan's streams.
    generator : torch.Generator
        On the CPU; draws the same numbers in every process.
    team : Team
        The processes that train together.
    modules : mapping of str to torch.nn.Module
        The method's own modules, the same in every process.
    measures : dict of str to Tensor
        Scalars for the history; see ``measure``.
    notes : dict of str to Tensor
        Anything that ``loss`` passes on to ``after_step``.
    target_counts : Tensor of shape (n_classes,) or None
        How often each class has the largest target in this step; see ``show_targets``.
    variables : dict of str to Tensor
        Tensors besides the weights whose gradients the method asks for; see ``variable``.
    gradients : dict of str to Tensor
        Their gradients, in ``after_step``: of the loss of the whole batch and not scaled, whatever the
        precision and the number of processes. Empty if no step was made.
    is_made : bool
        In ``after_step``, whether an optimizer has made a step. It has not if the method yielded no loss, or
        if gradients overflowed in float16.
    """

    round: int
    progress: float
    phase: Phase
    plan: Plan
    state: State
    problem: Problem
    networks: tuple[TrainedNetwork, ...]
    batches: dict[str, Batch]
    generator: torch.Generator
    team: Team
    modules: Mapping[str, nn.Module] = field(default_factory=dict)
    measures: dict[str, Tensor] = field(default_factory=dict)
    notes: dict[str, Tensor] = field(default_factory=dict)
    target_counts: Tensor | None = None
    variables: dict[str, Tensor] = field(default_factory=dict)
    gradients: dict[str, Tensor] = field(default_factory=dict)
    is_made: bool = False

    @property
    def batch(self) -> Batch:
        """The batch of the first stream."""
        return next(iter(self.batches.values()))

    @property
    def trained(self) -> TrainedNetwork:
        """The first network that this phase trains."""
        return self.networks[self.phase.trains[0]]

    def variable(self, name: str, values: Tensor) -> Tensor:
        """A copy of ``values`` for the loss, whose gradient ``gradients[name]`` has in ``after_step``.

        Its rows have to be about this process's share of the batch.
        """
        self.variables[name] = values.detach().clone().requires_grad_()
        return self.variables[name]

    def measure(self, name: str, value: Tensor) -> None:
        """Record a scalar; the history has its mean over the phase."""
        self.measures[name] = value.detach()

    def show_targets(self, targets: Tensor) -> None:
        """Count the largest classes of soft targets (b, C), so that a vanished class leads to a warning."""
        leading = targets.detach().argmax(dim=1)
        self.target_counts = torch.bincount(leading, minlength=self.problem.n_classes)

    def mean_rows(self, values: Tensor) -> Tensor:
        """The mean over the whole batch, in all processes; gradients flow."""
        return self.team.mean_rows(values)

    def gather_rows(self, values: Tensor) -> Tensor:
        """The rows of the whole batch, without gradient."""
        return self.team.gather_rows(values)

    def gather_rows_with_gradient(self, values: Tensor) -> Tensor:
        """The rows of the whole batch; gradients flow, also to rows of other processes."""
        return self.team.gather_rows_with_gradient(values)

    def own_rows(self, values: Tensor) -> Tensor:
        """This process's share of rows of the whole batch."""
        return self.team.own_rows(values)

    def write_rows(self, name: str, index: Tensor, values: Tensor) -> None:
        """Set the rows ``index`` of a per-sample state tensor, in all processes alike."""
        self.state[name][self.team.gather_rows(index)] = self.team.gather_rows(values)
