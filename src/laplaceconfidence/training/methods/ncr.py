"""Neighbor consistency regularization (Iscen et al., 2022): similar samples get similar predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from laplaceconfidence.training.methods.interface import Method, Phase
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.methods.warm_up import WARM_UP, warm_up_loss
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_boolean, check_integer, check_real

_SMALLEST = 1e-12

_TRAINING = {
    "rounds": 130,
    "batch_size": 128,
    "optimizer": "sgd",
    "learning_rate": 0.1,
    "momentum": 0.9,
    "weight_decay": 5e-4,
}
_NOTE = "ResNet-18 on 224 x 224 pixels; the learning rate rises over 5 rounds, then follows a cosine"


def _settings(colors: tuple[str, ...], rate: float, n_neighbors: int) -> tuple[PublishedSettings, ...]:
    return tuple(
        PublishedSettings(
            f"mini-ImageNet {color}",
            "real" if color == "red" else "symmetric",
            (rate,),
            "official code",
            {"n_neighbors": n_neighbors},
            _TRAINING,
            _NOTE,
        )
        for color in colors
    )


@dataclass(frozen=True, slots=True)
class NCR(Method):
    """NCR: cross-entropy plus the divergence between a prediction and those of the neighbors in the batch.

    After some rounds of cross-entropy, each prediction is pulled toward the mean prediction of the most
    similar samples of the batch, weighted by the cosine of their penultimate features. A wrong label among
    similar samples is thereby outvoted. The batch should have more samples than there are classes. As in the
    published code, gradients also flow to neighbors and similarities, over several processes too; unlike
    there, a sample is excluded from its own neighbors by its position, and one without a similar neighbor has
    no such term.

    Parameters
    ----------
    warmup : int, default=10
        Rounds of cross-entropy on the given labels that come first.
    neighbor_weight : float, default=0.3
        Weight of the divergence, alpha in the paper, in [0, 1]; cross-entropy gets the rest.
    n_neighbors : int, default=10
        Neighbors of each sample within its batch.
    temperature : float, default=2
        What logits are divided by in the divergence, which is multiplied by its square.
    similarity_power : float, default=1
        Power to which cosines are raised, gamma in the paper.
    stop_gradient : bool, default=False
        Whether predictions of neighbors and similarities are taken as constants; not so in the published
        code.

    References
    ----------
    Iscen et al., "Learning with Neighbor Consistency for Noisy Labels", CVPR 2022.
    """

    warmup: int = 10
    neighbor_weight: float = 0.3
    n_neighbors: int = 10
    temperature: float = 2.0
    similarity_power: float = 1.0
    stop_gradient: bool = False
    n_networks: ClassVar[int] = 1
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Iscen et al., "Learning with Neighbor Consistency for Noisy Labels", CVPR', year=2022, cost=1.0
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = (
        *_settings(("blue",), 0.2, 10),
        *_settings(("red", "blue"), 0.4, 100),
        *_settings(("red", "blue"), 0.8, 5),
    )

    def __post_init__(self) -> None:
        check_integer(self.warmup, "warmup", minimum=0)
        check_real(self.neighbor_weight, "neighbor_weight", at_least=0, at_most=1)
        check_integer(self.n_neighbors, "n_neighbors", minimum=1)
        check_real(self.temperature, "temperature", above=0)
        check_real(self.similarity_power, "similarity_power", at_least=1)
        check_boolean(self.stop_gradient, "stop_gradient")

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase(WARM_UP if round < self.warmup else "consistency", trains=(0,)),)

    def loss(self, step: Step) -> Tensor:
        if step.phase.name == WARM_UP:
            return warm_up_loss(step, entropy_penalty=False)
        outputs = step.trained.outputs(step.batch.weak())
        divergence = self._neighbor_divergence(step, outputs.features, outputs.logits)
        step.measure("neighbor_divergence", divergence * step.batch.weight)
        given = functional.cross_entropy(outputs.logits, step.batch.labels)
        weight = self.neighbor_weight
        return (1 - weight) * given + weight * self.temperature**2 * divergence

    def _neighbor_divergence(self, step: Step, features: Tensor, logits: Tensor) -> Tensor:
        """Mean over the samples of KL(mean prediction of the neighbors, own prediction)."""
        gather = step.gather_rows if self.stop_gradient else step.gather_rows_with_gradient
        own = functional.normalize(features, dim=1)
        everyone, all_logits = gather(own), gather(logits)
        if self.stop_gradient:
            own = own.detach()
        n_all = len(everyone)
        n_neighbors = min(self.n_neighbors, n_all - 1)
        positions = step.own_rows(torch.arange(n_all, device=own.device)).unsqueeze(1)
        # A sample is never among its own neighbors: any other cosine, clamped to 0 or more, is larger.
        cosines = (own @ everyone.T).clamp_min(0).scatter(1, positions, -1.0)
        nearest, rows = cosines.topk(n_neighbors, dim=1)
        weights = nearest**self.similarity_power
        total = weights.sum(dim=1, keepdim=True)
        predictions = (all_logits / self.temperature).softmax(dim=1)
        spread = torch.zeros_like(cosines).scatter(1, rows, weights / total.clamp_min(_SMALLEST))
        neighbors = spread @ predictions  # (b, C)
        log_own = (logits / self.temperature).log_softmax(dim=1)
        each = (neighbors * (neighbors.clamp_min(_SMALLEST).log() - log_own)).sum(dim=1)
        return each.mean()
