"""Plain cross-entropy on the given labels: the baseline of every other method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn import functional

from laplaceconfidence.training.methods.interface import Method, Phase
from laplaceconfidence.training.step import Step


@dataclass(frozen=True, slots=True)
class CrossEntropy(Method):
    """One network, weak views, one pass over the labeled samples per round. It has no settings."""

    n_networks: ClassVar[int] = 1

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase("training", trains=(0,)),)

    def loss(self, step: Step) -> Tensor:
        return functional.cross_entropy(step.trained(step.batch.weak()), step.batch.labels)
