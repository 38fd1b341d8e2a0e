"""Plain cross-entropy on the given labels: the baseline of every other method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn import functional

from laplaceconfidence.training.methods.interface import Method, Phase
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_real

_TRAINING = {
    "network": "preact_resnet18_normalized_stem",
    "rounds": 301,
    "batch_size": 128,
    "optimizer": "sgd",
    "learning_rate": 0.02,
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "learning_rate_drops": (150,),
}


@dataclass(frozen=True, slots=True)
class CrossEntropy(Method):
    """One network, weak views, one pass over the labeled samples per round.

    Parameters
    ----------
    label_smoothing : float, default=0
        Share of every target that is spread evenly over all classes.
    """

    label_smoothing: float = 0.0
    n_networks: ClassVar[int] = 1
    facts: ClassVar[MethodFacts] = MethodFacts(
        "The baseline of all papers", year=None, cost=1.0, title="cross-entropy"
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = tuple(
        PublishedSettings(
            data,
            "symmetric",
            (0.2, 0.5, 0.8, 0.9),
            "unverified",
            training=_TRAINING,
            note="the schedule of DivideMix, whose paper's row of cross-entropy later papers copy",
        )
        for data in ("CIFAR-10", "CIFAR-100")
    )

    def __post_init__(self) -> None:
        check_real(self.label_smoothing, "label_smoothing", at_least=0, below=1)

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase("training", trains=(0,)),)

    def loss(self, step: Step) -> Tensor:
        logits = step.trained(step.batch.weak())
        return functional.cross_entropy(logits, step.batch.labels, label_smoothing=self.label_smoothing)
