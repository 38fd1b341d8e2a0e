"""Co-teaching+ (Yu et al., 2019): Co-teaching on the samples on which the two networks disagree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn import functional

from laplaceconfidence.training.methods.co_teaching import CoTeaching, exchanged_loss, published_by_rate
from laplaceconfidence.training.methods.interface import Phase
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_integer

DISAGREEMENT = "disagreement"

_DECAY = "from round 80 the learning rate falls linearly to 0"


@dataclass(frozen=True, slots=True)
class CoTeachingPlus(CoTeaching):
    """Co-teaching+: after an initial phase, only samples that the networks predict differently are used.

    The first rounds are those of Co-teaching. Then each batch is restricted to the samples whose most
    probable class differs between the networks; of these, each network selects those of small loss for the
    other, which keeps the two networks different. A batch without disagreement has loss 0. The published code
    puts softmax outputs into the cross-entropy, divides the mean loss once more, and trains on the whole
    batch where the networks agree on all of it; that is not followed.

    Parameters
    ----------
    forget_rate : float or None, default=None
        Share of the samples that is left out in the end; see ``CoTeaching``.
    ramp : int, default=10
        Rounds over which the share that is left out rises from 0 to ``forget_rate``.
    initial : int, default=20
        Rounds of Co-teaching that come first.

    References
    ----------
    Yu et al., "How does Disagreement Help Generalization against Label Corruption?", ICML 2019.
    """

    initial: int = 20
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Yu et al., "How does Disagreement Help Generalization against Label Corruption?", ICML',
        year=2019,
        cost=2.0,
        title="Co-teaching+",
        needs=("noise rate",),
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = (
        *published_by_rate("CIFAR-10", f"network of the size of LeNet; {_DECAY}", {"initial": 20}),
        *published_by_rate("CIFAR-100", f"CNN with six convolutions; {_DECAY}", {"initial": 5}),
    )

    def __post_init__(self) -> None:
        CoTeaching.__post_init__(self)
        check_integer(self.initial, "initial", minimum=0)

    def phases(self, round: int) -> tuple[Phase, ...]:
        if round < self.initial:
            return CoTeaching.phases(self, round)
        return (Phase(DISAGREEMENT, trains=(0, 1), evidence=self._observed_in(round)),)

    def loss(self, step: Step) -> Tensor:
        if step.phase.name != DISAGREEMENT:
            return CoTeaching.loss(self, step)
        view, labels = step.batch.weak(), step.batch.labels
        logits = [network(view) for network in step.networks]
        losses = [functional.cross_entropy(one, labels, reduction="none") for one in logits]
        differ = logits[0].argmax(dim=1) != logits[1].argmax(dim=1)
        step.measure("disagreement", differ.float().mean() * step.batch.weight)
        return exchanged_loss(step, losses, self.kept_share(step), differ)
