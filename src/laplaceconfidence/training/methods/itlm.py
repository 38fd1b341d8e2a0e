"""ITLM, iterative trimmed loss minimization (Shen and Sanghavi, 2019): train, keep small losses, repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, Stage, State
from laplaceconfidence.training.methods.noise_rate import (
    NOISE_RATE,
    estimated_noise_rate,
    halves,
    plan_before_estimate,
)
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.methods.repeated_training import (
    RepeatedTraining,
    check_rounds_of_each,
    rounds_of_each,
)
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_integer, check_real

KEPT = "kept"


@dataclass(frozen=True, slots=True)
class ITLM(Method):
    """ITLM: a network is trained anew again and again, each time on the samples of smallest loss.

    The first training uses all samples. Then, several times: of all samples, the share that is believed to be
    labeled correctly is kept, those with the smallest losses under the best network so far by held-out
    labels, and a new network is trained on them. Losses are those of samples without augmentation, in eval
    mode; the published code ranks augmented samples and chooses its networks by test images, which is not
    followed.

    Parameters
    ----------
    kept_share : float or None, default=None
        Share of the samples that is kept, alpha: the share of right labels or a little less. ``None``
        estimates it: the first training uses half of the labels, the noise-aware audit of the features
        judges the other half, and the first selection ranks either half for itself. The history records the
        estimate as ``noise_rate``.
    retrainings : int, default=4
        How often a new network is trained on the samples that are kept.
    training_rounds : int or None, default=None
        Rounds of each training but the last one; ``None`` divides all rounds evenly. The schedule of the
        learning rate is that of each training: drops are counted from its beginning.

    References
    ----------
    Shen and Sanghavi, "Learning with Bad Training Data via Iterative Trimmed Loss Minimization", ICML 2019.
    """

    kept_share: float | None = None
    retrainings: int = 4
    training_rounds: int | None = None
    n_networks: ClassVar[int] = 1
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Shen and Sanghavi, "Learning with Bad Training Data via Iterative Trimmed Loss Minimization", ICML',
        year=2019,
        cost=0.5,
        needs=("noise rate",),
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = (
        PublishedSettings(
            "CIFAR-10",
            "symmetric",
            (0.4,),
            "official code",
            {"kept_share": 0.6, "training_rounds": 80},
            {
                "rounds": 400,
                "batch_size": 256,
                "optimizer": "sgd",
                "learning_rate": 0.1,
                "momentum": 0.0,
                "weight_decay": 0.0,
                "learning_rate_drops": (0.6,),
                "drop_factor": 0.2,
            },
            "WideResNet-16-10; the example trains for 80 rounds and then four times for 20 or 133 rounds",
        ),
    )

    def __post_init__(self) -> None:
        if self.kept_share is not None:
            check_real(self.kept_share, "kept_share", above=0, at_most=1)
        check_integer(self.retrainings, "retrainings", minimum=1)
        check_rounds_of_each(self.training_rounds, "training_rounds")

    def for_rounds(self, rounds: int) -> Self:
        each = rounds_of_each(self.retrainings + 1, self.training_rounds, "training_rounds", rounds)
        return replace(self, training_rounds=each)

    def stage(self, round: int) -> Stage:
        return self._trainings.stage(round)

    def phases(self, round: int) -> tuple[Phase, ...]:
        if self._trainings.current(round) == 0:
            return (Phase("training on all samples", trains=(0,)),)
        if not self._trainings.begins_again(round):
            return (Phase("training on small losses", trains=(0,)),)
        trimming = Phase(
            "training on small losses", trains=(0,), evidence=(0,), best_evidence=True, fresh=(0,)
        )
        return (trimming,)

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        if self._trainings.current(evidence.round) == 0:
            if self.kept_share is None:
                return plan_before_estimate(evidence)
            return Method.plan(self, phase, evidence, state)
        measures = {}
        share = self.kept_share
        if share is None:
            measures[NOISE_RATE] = estimated_noise_rate("kept_share", evidence, state)
            share = 1 - measures[NOISE_RATE]
        if phase.evidence:
            groups: Sequence[IntArray] = (np.flatnonzero(evidence.labels != MISSING),)
            if self.kept_share is None and self._trainings.current(evidence.round) == 1:
                groups = halves(evidence)  # only one of them was trained on
            losses = evidence.networks[0].losses(evidence.labels)
            state[KEPT] = torch.from_numpy(smallest_losses(losses, groups, share))
        return replace(Plan.over(state[KEPT]), measures=measures)

    def loss(self, step: Step) -> Tensor:
        return functional.cross_entropy(step.trained(step.batch.weak()), step.batch.labels)

    @property
    def _trainings(self) -> RepeatedTraining:
        return RepeatedTraining.of(self.retrainings + 1, self.training_rounds)


def smallest_losses(losses: FloatArray, groups: Sequence[IntArray], share: float) -> IntArray:
    """The samples of smallest loss, the same share of each group.

    Parameters
    ----------
    losses : ndarray of shape (n_samples,)
        Loss of every sample.
    groups : sequence of ndarray
        Sample numbers of each group.
    share : float
        The share that is kept, rounded down; at least one sample of a group.

    Returns
    -------
    ndarray
        Sample numbers, in increasing order.
    """
    kept = [
        group[np.argsort(losses[group], kind="stable")][: max(1, int(share * len(group)))] for group in groups
    ]
    rows: IntArray = np.sort(np.concatenate(kept))
    return rows
