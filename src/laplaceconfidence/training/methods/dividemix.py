"""DivideMix (Li, Socher, Hoi, 2020): split by a mixture of losses, then semi-supervised MixMatch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.loss_mixture import GaussianLossMixture
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.training.augment.mixing import MixUp
from laplaceconfidence.training.losses import (
    refurbish,
    sharpen,
    soft_cross_entropy,
    uniform_prior_divergence,
)
from laplaceconfidence.training.methods.batch_partners import draw_partners, mix_rows
from laplaceconfidence.training.methods.confidences import (
    averaged_losses,
    estimate_confidence,
    mean_confidence,
)
from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, State
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings, Source
from laplaceconfidence.training.methods.warm_up import WARM_UP, warm_up_loss, warm_up_phases
from laplaceconfidence.training.step import Batch, Step
from laplaceconfidence.validation import check_boolean, check_integer, check_real

# Names of the streams; the order of their samples is drawn from seeds derived from these very names.
LABELED, UNLABELED = "labelled", "unlabelled"

LOSS_WEIGHTS = {
    ("CIFAR-10", "symmetric", 0.2): 0.0,
    ("CIFAR-10", "symmetric", 0.5): 25.0,
    ("CIFAR-10", "symmetric", 0.8): 25.0,
    ("CIFAR-10", "symmetric", 0.9): 50.0,
    ("CIFAR-10", "asymmetric", 0.4): 0.0,
    ("CIFAR-100", "symmetric", 0.2): 25.0,
    ("CIFAR-100", "symmetric", 0.5): 150.0,
    ("CIFAR-100", "symmetric", 0.8): 150.0,
    ("CIFAR-100", "symmetric", 0.9): 150.0,
}
"""The paper's weights of the loss on unlabeled samples, by data set, noise and rate."""


def published_setting(
    data: str, noise: str, rate: float, source: Source, **training: Any
) -> PublishedSettings:
    """The paper's settings for one cell of its tables, with changes to the training settings."""
    method: dict[str, Any] = {"unlabelled_weight": LOSS_WEIGHTS[data, noise, rate]}
    if data == "CIFAR-100":
        method["warmup"] = 30
    if rate == 0.9:
        method |= {"threshold": 0.6, "average_losses": True}
    if noise == "asymmetric":
        method["entropy_penalty"] = True
    usual: dict[str, Any] = {
        "network": "preact_resnet18_normalized_stem",
        "rounds": 301,
        "batch_size": 128,
        "optimizer": "sgd",
        "learning_rate": 0.02,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "learning_rate_drops": (150,),
    }
    return PublishedSettings(data, noise, (rate,), source, method, usual | training)


@dataclass(frozen=True, slots=True)
class DivideMix(Method):
    """DivideMix: each network is trained on the split that the losses of the other one suggest.

    Samples whose posterior probability of a small loss is above ``threshold`` keep their labels, refined by
    that probability; the others are treated as unlabeled. Batches are half labeled, half unlabeled, and mixed
    by MixMatch. The prediction is that of the summed logits of both networks.

    Parameters
    ----------
    warmup : int, default=10
        Rounds of cross-entropy on the given labels that come first.
    threshold : float, default=0.5
        Posterior above which a sample keeps its label.
    sharpen : float, default=2
        1/T of the paper: the power to which guessed labels are raised.
    mix_alpha : float, default=4
        Parameter of the beta distribution that MixUp draws its weights from.
    unlabelled_weight : float, default=25
        Weight of the loss on unlabeled samples, lambda_u in the paper, where it depends on the noise: 0 for
        little or asymmetric noise, 25 from 50% on, 150 with 100 classes.
    ramp : int, default=16
        Rounds after the warm-up over which ``unlabelled_weight`` rises from 0 to its value.
    average_losses : bool, default=False
        Whether the split uses the mean of the last five epochs' losses, as the paper does for 90% noise.
    entropy_penalty : bool, default=False
        Whether the warm-up penalizes overconfident predictions, as the paper does for asymmetric noise.
    label_smoothing : float, default=0
        Share of every target of the warm-up that is spread evenly over all classes.
    prior_weight : float, default=1
        Weight of the term that keeps the mean prediction close to uniform over the classes.

    References
    ----------
    Li, Socher and Hoi, "DivideMix: Learning with Noisy Labels as Semi-supervised Learning", ICLR 2020.
    """

    warmup: int = 10
    threshold: float = 0.5
    sharpen: float = 2.0
    mix_alpha: float = 4.0
    unlabelled_weight: float = 25.0
    ramp: int = 16
    average_losses: bool = False
    entropy_penalty: bool = False
    label_smoothing: float = 0.0
    prior_weight: float = 1.0
    n_networks: ClassVar[int] = 2
    sums_logits: ClassVar[bool] = True
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Li, Socher and Hoi, "DivideMix: Learning with Noisy Labels as Semi-supervised Learning", ICLR',
        year=2020,
        cost=20 / 3,  # if half of the labels are kept: the labeled samples set the length of a round
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = tuple(
        published_setting(*cell, "paper") for cell in LOSS_WEIGHTS
    )

    def __post_init__(self) -> None:
        check_integer(self.warmup, "warmup", minimum=0)
        check_real(self.threshold, "threshold", above=0, below=1)
        check_real(self.sharpen, "sharpen", above=0)
        check_real(self.mix_alpha, "mix_alpha", above=0)
        check_real(self.unlabelled_weight, "unlabelled_weight", at_least=0)
        check_integer(self.ramp, "ramp", minimum=1)
        check_boolean(self.average_losses, "average_losses")
        check_boolean(self.entropy_penalty, "entropy_penalty")
        check_real(self.label_smoothing, "label_smoothing", at_least=0, below=1)
        check_real(self.prior_weight, "prior_weight", at_least=0)

    def phases(self, round: int) -> tuple[Phase, ...]:
        if round < self.warmup:
            return warm_up_phases(self.n_networks)
        # Both splits are made before either network is trained.
        # A labeled sample (about half of all) stands for four views that are trained on and six predictions.
        cost = 0.5 * (4 + 6 / 3)
        first = Phase("mixmatch", trains=(0,), evidence=(0, 1), cost=cost)
        return (first, Phase("mixmatch", trains=(1,), cost=cost))

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        if phase.name == WARM_UP:
            return Method.plan(self, phase, evidence, state)
        # Averaged losses were scaled epoch by epoch, and the mixture takes them as they are.
        mixture = GaussianLossMixture(rescale=not self.average_losses)
        for network, seen in evidence.networks.items():
            losses = seen.losses(evidence.labels)
            if self.average_losses:
                losses = averaged_losses(state, network, losses)
            clean = estimate_confidence(mixture, evidence, network, losses)
            state[f"clean_{network}"] = torch.from_numpy(clean)
        (trained,) = phase.trains
        confidence = state[f"clean_{1 - trained}"].cpu()
        half = max(1, evidence.problem.batch_size // 2)
        labeled, unlabeled = _split(confidence.numpy(), evidence.labels, self.threshold, at_least=half)
        return Plan(
            streams={LABELED: torch.from_numpy(labeled), UNLABELED: torch.from_numpy(unlabeled)},
            tensors={"confidence": confidence},
            batch_sizes={LABELED: half, UNLABELED: half},
            measures={"labeled_share": len(labeled) / evidence.problem.n_samples},
        )

    def loss(self, step: Step) -> Tensor:
        if step.phase.name == WARM_UP:
            return warm_up_loss(
                step,
                entropy_penalty=self.entropy_penalty,
                label_smoothing=self.label_smoothing,
                strong=self._warms_up_on_strong_views(),
            )
        labeled, unlabeled = step.batches[LABELED], step.batches[UNLABELED]
        views = [labeled.weak(), labeled.weak(), unlabeled.weak(), unlabeled.weak()]
        targets_x, targets_u = self._targets(step, views)
        step.show_targets(torch.cat([targets_x, targets_u]))
        views = self._training_views((labeled, unlabeled), views)
        mixing = MixUp(self.mix_alpha, own_part_larger=True)
        weight, partners = draw_partners(step, views, mixing)
        inputs = mix_rows(step, views, partners, weight)
        targets = mix_rows(step, [targets_x, targets_x, targets_u, targets_u], partners, weight)
        logits = step.trained(inputs)
        probabilities = logits.softmax(dim=1)
        n_x = 2 * len(labeled)
        loss_x = soft_cross_entropy(logits[:n_x], targets[:n_x])
        loss_u = functional.mse_loss(probabilities[n_x:], targets[n_x:])
        prior = uniform_prior_divergence(step.mean_rows(probabilities))
        step.measure("unlabeled_loss", loss_u * unlabeled.weight)
        weight_u = self._unlabelled_weight(step.progress) * unlabeled.weight / labeled.weight
        return loss_x + weight_u * loss_u + self.prior_weight * prior

    def final_confidence(self, evidence: Evidence, state: State) -> FloatArray:
        """The mean over the networks of the posterior that a label has a small loss."""
        each = [
            estimate_confidence(GaussianLossMixture(), evidence, network) for network in evidence.networks
        ]
        return mean_confidence(each, evidence.labels)

    def _targets(self, step: Step, views: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Refined targets of the labeled samples, guessed ones of the unlabeled."""
        labeled = step.batches[LABELED]
        with torch.no_grad():
            own = torch.stack([step.trained(view).softmax(dim=1) for view in views[:2]]).mean(dim=0)
            confidence = step.plan.tensors["confidence"][labeled.index]
            refined = sharpen(refurbish(labeled.labels, confidence, own), self.sharpen)
            guesses = [network(view).softmax(dim=1) for network in step.networks for view in views[2:]]
            guessed = sharpen(torch.stack(guesses).mean(dim=0), self.sharpen)
        return refined, guessed

    def _training_views(self, batches: Sequence[Batch], guessed_from: Sequence[Tensor]) -> list[Tensor]:
        """Two views of each batch that the network is trained on: those that labels were guessed from."""
        return list(guessed_from)

    def _warms_up_on_strong_views(self) -> bool:
        return False

    def _unlabelled_weight(self, progress: float) -> float:
        return self.unlabelled_weight * float(np.clip((progress - self.warmup) / self.ramp, 0, 1))


def _split(
    confidence: FloatArray, labels: IntArray, threshold: float, *, at_least: int
) -> tuple[IntArray, IntArray]:
    """Samples that keep their labels and the rest; neither side is left without a batch."""
    order = np.argsort(-np.where(labels == MISSING, -1.0, confidence), kind="stable")  # best first
    n_labels = int((labels != MISSING).sum())
    least = min(at_least, len(labels) // 2)
    n_kept = int(((confidence > threshold) & (labels != MISSING)).sum())
    n_kept = min(max(n_kept, least), len(labels) - least, n_labels)
    return np.sort(order[:n_kept]), np.sort(order[n_kept:])
