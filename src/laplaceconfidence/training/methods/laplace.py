"""LaplaceConfidence, Algorithm 1: two networks, peer confidences, refurbished labels."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.confidence.protocol import ConfidenceEstimator
from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.training.augment.registry import MIXING
from laplaceconfidence.training.losses import (
    negative_entropy,
    refurbish,
    sharpen,
    soft_cross_entropy,
    uniform_prior_divergence,
)
from laplaceconfidence.training.methods.confidences import (
    averaged_losses,
    estimate_confidence,
    estimate_confidence_from_inputs,
)
from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, Problem, State
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_choice, check_integer, check_real, must_be

WARMUP = "warm-up"
OF_INPUTS = "confidence_of_inputs"  # in the state: estimated once

_GRAPH_DEFAULTS = {"n_neighbors": 50, "alpha": 0.99, "n_components": None}


@dataclass(frozen=True, slots=True)
class Laplace(Method):
    """Chen et al., "LaplaceConfidence: a Graph-based Approach for Learning with Noisy Labels".

    Each network is trained on w * given + (1 - w) * pseudo-label, where w comes from the graph of the *other*
    network's features and the pseudo-label is the sharpened mean prediction of both on a weak view, made anew
    in every iteration. Samples without a label are trained on the pseudo-label alone.

    ``warmup`` rounds of cross-entropy come first, with ``entropy_penalty`` for asymmetric and real noise. A
    round makes ``passes`` passes over the data for each network. ``confidence`` is the name of an
    estimator or any object with the ConfidenceEstimator protocol; one that takes losses is shown their mean
    over the last five epochs. ``n_networks=1`` makes a network its own peer.

    ``confidence_from="inputs"`` is for feature vectors of a network that never saw these labels: once, the
    estimator judges the labels by the vectors themselves, not by what the peer has learned from the labels.

    ``weak_statistics`` lets batch normalization learn its running statistics from weak views only. By default
    strong views count as well, as in the authors' code; with few rounds the networks are then judged, and
    their features taken, under statistics that fit no image.

    ``mixing`` ("mixup" or "cutmix") mixes strong views, and their targets, with others of the batch, as in
    the paper's comparison of augmentations.
    """

    warmup: int = 15
    passes: int = 2
    sharpen: float = 2.0
    prior_weight: float = 1.0
    entropy_penalty: bool = False
    weak_statistics: bool = False
    mixing: str | None = None
    confidence: str | ConfidenceEstimator = "laplace"
    confidence_from: str = "peer"
    n_neighbors: int | str = 50
    alpha: float | str = 0.99
    n_components: int | None = None
    n_networks: int = 2

    def __post_init__(self) -> None:
        check_integer(self.warmup, "warmup", minimum=0)
        check_integer(self.passes, "passes", minimum=1)
        check_real(self.sharpen, "sharpen", above=0)
        check_real(self.prior_weight, "prior_weight", at_least=0)
        check_integer(self.n_networks, "n_networks", minimum=1, maximum=2)
        if self.mixing is not None:
            check_choice(self.mixing, "mixing", tuple(MIXING))
        if isinstance(self.confidence, str) and self.confidence not in ESTIMATORS:
            rule = f"one of {', '.join(map(repr, ESTIMATORS))} or an estimator with 'evidence' and fit(X, y)"
            raise must_be("confidence", rule, self.confidence)
        check_choice(self.confidence_from, "confidence_from", ("peer", "inputs"))
        if self.confidence_from == "inputs" and (takes := self._estimator().evidence) != "features":
            rule = f"'peer' where the estimator takes {takes}"
            advice = "Set method_options.confidence_from to 'peer'."
            raise must_be("confidence_from", rule, self.confidence_from, advice)
        if self.confidence != "laplace":
            for name, default in _GRAPH_DEFAULTS.items():
                if (value := getattr(self, name)) != default:
                    raise must_be(name, "left alone unless confidence='laplace'", value)

    def phases(self, round: int) -> tuple[Phase, ...]:
        networks = range(self.n_networks)
        if round < self.warmup:
            return tuple(Phase(WARMUP, trains=(m,)) for m in networks)
        return tuple(
            Phase("robust", trains=(m,), passes=self.passes, evidence=self._witnesses(m)) for m in networks
        )

    def initial_state(self, problem: Problem) -> State:
        if self.confidence_from == "inputs" and len(problem.sample_shape) != 1:
            rule = "'peer' for images, whose pixels say little about labels"
            advice = "Embed them with a network that never saw these labels, or leave the setting alone."
            raise must_be("confidence_from", rule, self.confidence_from, advice)
        return {}

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        if phase.name == WARMUP:
            return Plan.over(np.flatnonzero(evidence.labels != MISSING))
        everyone, estimator = np.arange(evidence.problem.n_samples), self._estimator()
        if self.confidence_from == "inputs":
            if OF_INPUTS not in state:
                state[OF_INPUTS] = torch.from_numpy(estimate_confidence_from_inputs(estimator, evidence))
            return Plan.over(everyone, confidence=state[OF_INPUTS].clone())
        (peer,) = phase.evidence
        losses = None
        if estimator.evidence == "losses":
            losses = averaged_losses(state, peer, evidence.networks[peer].losses(evidence.labels))
        confidence = estimate_confidence(estimator, evidence, peer, losses)
        return Plan.over(everyone, confidence=confidence)

    def loss(self, step: Step) -> Tensor:
        if step.phase.name == WARMUP:
            logits = step.trained(step.batch.weak())
            loss = functional.cross_entropy(logits, step.batch.labels)
            return loss + negative_entropy(logits) if self.entropy_penalty else loss
        targets = self._targets(step)
        step.show_targets(targets)
        inputs, targets = self._mixed(step, step.batch.strong(), targets)
        with step.trained.frozen_statistics() if self.weak_statistics else nullcontext():
            logits = step.trained(inputs)
        mean_prediction = step.mean_rows(logits.softmax(dim=1))
        prior = uniform_prior_divergence(mean_prediction)
        step.measure("prior_term", prior)
        return soft_cross_entropy(logits, targets) + self.prior_weight * prior

    def final_confidence(self, evidence: Evidence, state: State) -> FloatArray:
        """The mean over the networks of the confidence that each one's features give; or the inputs'."""
        estimator = self._estimator()
        if self.confidence_from == "inputs":
            each = [estimate_confidence_from_inputs(estimator, evidence)]
        else:
            each = [estimate_confidence(estimator, evidence, network) for network in evidence.networks]
        mean: FloatArray = np.where(evidence.labels == MISSING, np.nan, np.mean(each, axis=0))
        return mean

    def _targets(self, step: Step) -> Tensor:
        """(b, C) w * given + (1 - w) * sharpened mean prediction of all networks on one weak view."""
        weak = step.batch.weak()
        with torch.no_grad():
            # The loop has the trained network in train mode and its peer in eval mode.
            prediction = torch.stack([network(weak).softmax(dim=1) for network in step.networks]).mean(dim=0)
            confidence = step.plan.tensors["confidence"][step.batch.index]
            return refurbish(step.batch.labels, confidence, sharpen(prediction, self.sharpen))

    def _mixed(self, step: Step, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and targets mixed over the whole batch, in whichever process its samples are."""
        if self.mixing is None:
            return inputs, targets
        mix = MIXING[self.mixing]()
        mixed = mix(step.gather_rows(inputs), step.gather_rows(targets), step.generator)
        return step.own_rows(mixed[0]), step.own_rows(mixed[1])

    def _witnesses(self, network: int) -> tuple[int, ...]:
        """The networks whose features judge the labels that ``network`` is trained on."""
        return () if self.confidence_from == "inputs" else (self.n_networks - 1 - network,)

    def _estimator(self) -> ConfidenceEstimator:
        if not isinstance(self.confidence, str):
            return self.confidence
        if self.confidence == "laplace":
            return LaplaceConfidence(self.n_neighbors, self.alpha, n_components=self.n_components)
        return ESTIMATORS[self.confidence]()
