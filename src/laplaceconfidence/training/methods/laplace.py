"""LaplaceConfidence, Algorithm 1: two networks, confidences from the peer, refurbished labels."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.confidence.protocol import ConfidenceEstimator
from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.training.augment.registry import MIXING
from laplaceconfidence.training.losses import (
    refurbish,
    sharpen,
    soft_cross_entropy,
    uniform_prior_divergence,
)
from laplaceconfidence.training.methods.confidences import (
    averaged_losses,
    estimate_confidence,
    estimate_labels,
    features_of_inputs,
    mean_confidence,
)
from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, State
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.methods.warm_up import WARM_UP, warm_up_loss, warm_up_phases
from laplaceconfidence.training.step import Step
from laplaceconfidence.training.trained_network import TrainedNetwork
from laplaceconfidence.validation import (
    check_boolean,
    check_choice,
    check_integer,
    check_real,
    did_you_mean,
    must_be,
)

FEATURES_OF_INPUTS = "features_of_inputs"  # in the state; computed only once

_OF_ESTIMATOR = ("n_neighbors", "alpha", "n_components")


def _cifar(data: str, noise: str, rate: float, n_neighbors: int, sharpen: float) -> PublishedSettings:
    method: dict[str, Any] = {"n_neighbors": n_neighbors, "alpha": 0.99, "sharpen": sharpen}
    training = {
        "network": "preact_resnet18",
        "rounds": 400,
        "batch_size": 128,
        "optimizer": "sgd",
        "learning_rate": 0.01,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "learning_rate_drops": (300,),
        "strong": "randaugment",
    }
    if noise == "asymmetric":
        method["entropy_penalty"] = True
    return PublishedSettings(data, noise, (rate,), "paper", method, training)


_MINI_WEBVISION = PublishedSettings(
    "Mini-WebVision",
    "real",
    (),
    "paper",
    {
        "warmup": 1,
        "passes": 1,
        "n_neighbors": 2,
        "alpha": 0.99,
        "sharpen": 1.0,
        "entropy_penalty": True,
    },
    {
        "network": "inception_resnet_v2",
        "rounds": 300,
        "batch_size": 160,
        "optimizer": "sgd",
        "learning_rate": 0.01,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "learning_rate_drops": (200,),
        "strong": "randaugment",
    },
)


@dataclass(frozen=True, slots=True)
class Laplace(Method):
    """LaplaceConfidence, the method of Chen et al.: each network weights the labels of the other one.

    Each network is trained on w * given + (1 - w) * pseudo-label, where w comes from the graph of the *other*
    network's features and the pseudo-label is the sharpened mean prediction of both on a weak view, made anew
    in every iteration. Samples without a label are trained on the pseudo-label alone. The defaults are the
    paper's for CIFAR-10.

    Parameters
    ----------
    warmup : int, default=15
        Rounds of cross-entropy on the given labels that come first.
    passes : int, default=2
        Passes over the data per network in each round after the warm-up.
    estimate_every : int, default=1
        Rounds from one estimate of the confidences to the next, after the warm-up.
    sharpen : float, default=2
        Power to which pseudo-labels are raised; 1 leaves them as they are.
    prior_weight : float, default=1
        Weight of the term that keeps the mean prediction close to uniform over the classes.
    entropy_penalty : bool, default=False
        Whether the warm-up penalizes overconfident predictions, as the paper does for asymmetric and
        real-world noise.
    label_smoothing : float, default=0
        Share of every target of the warm-up, and of every posterior, that is spread evenly over all classes.
    averaged_teacher : bool, default=False
        Whether pseudo-labels are predicted by the averaged weights of the networks (``weight_average`` of the
        run), in eval mode; by default by the networks as they are.
    weak_statistics : bool, default=False
        Whether batch normalization learns its running statistics from weak views only. By default strong
        views count as well, as in the authors' code; with few rounds, features and predictions are then
        computed with statistics that fit neither kind of view.
    weak_share : float, default=0
        Share of all rounds, the last ones, that are trained on weak views, which are closer to what is
        predicted, in place of strong ones.
    mixing : {"mixup", "cutmix"} or None, default=None
        Mixes strong views, and their targets, with others of the batch, as in the paper's comparison of
        augmentations.
    confidence : str or ConfidenceEstimator, default="laplace"
        Estimator of the confidences: a name of ``laplaceconfidence.confidence.registry.ESTIMATORS`` or an
        object. One that takes losses is given their mean over the last five epochs.
    confidence_from : {"peer", "inputs", "both"}, default="peer"
        "peer" estimates the confidences in every round from the outputs of the other network. "inputs"
        estimates them once, from the samples themselves: feature vectors as they are, images by their
        responses to random patches, on which wrong labels have no influence. "both" are two views of one
        estimate in every round, for the estimator "noise-aware".
    targets : {"refurbished", "posterior"}, default="refurbished"
        "refurbished" is Algorithm 1: the warm-up is trained on the given labels, and every round after it on
        w * given + (1 - w) * pseudo-label. "posterior" trains on the class probabilities that the estimator
        finds for every sample, in the warm-up from the samples themselves and afterwards as
        ``confidence_from`` says, which must not be "peer". Where "noise-aware" cannot tell wrong labels from
        overlapping classes, labels are learned as they were given.
    n_neighbors, alpha, n_components : optional
        Parameters of the estimator that ``confidence`` names, such as ``n_neighbors=10`` or
        ``alpha="auto"`` of ``LaplaceConfidence``. ``None`` leaves the estimator's own default (for
        "laplace" 50 neighbors, alpha 0.99 and no reduction by PCA, as in the paper). A value that the
        estimator does not have is an error.
    n_networks : {1, 2}, default=2
        With one network, it takes the confidences from its own features.

    References
    ----------
    Chen et al., "LaplaceConfidence: a Graph-based Approach for Learning with Noisy Labels".
    """

    warmup: int = 15
    passes: int = 2
    estimate_every: int = 1
    sharpen: float = 2.0
    prior_weight: float = 1.0
    entropy_penalty: bool = False
    label_smoothing: float = 0.0
    averaged_teacher: bool = False
    weak_statistics: bool = False
    weak_share: float = 0.0
    mixing: str | None = None
    confidence: str | ConfidenceEstimator = "laplace"
    confidence_from: str = "peer"
    targets: str = "refurbished"
    n_neighbors: int | str | Sequence[int] | None = None
    alpha: float | str | None = None
    n_components: int | None = None
    n_networks: int = 2
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Chen et al., "LaplaceConfidence: a Graph-based Approach for Learning with Noisy Labels"',
        year=2023,
        cost=22 / 3,
        title="LaplaceConfidence",
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = (
        _cifar("CIFAR-10", "symmetric", 0.2, n_neighbors=50, sharpen=1.0),
        *(_cifar("CIFAR-10", "symmetric", rate, n_neighbors=50, sharpen=2.0) for rate in (0.5, 0.8, 0.9)),
        _cifar("CIFAR-10", "asymmetric", 0.4, n_neighbors=2, sharpen=2.0),
        _cifar("CIFAR-100", "symmetric", 0.2, n_neighbors=2, sharpen=1.0),
        *(_cifar("CIFAR-100", "symmetric", rate, n_neighbors=2, sharpen=2.0) for rate in (0.5, 0.8, 0.9)),
        _MINI_WEBVISION,
    )

    def __post_init__(self) -> None:
        check_integer(self.warmup, "warmup", minimum=0)
        check_integer(self.passes, "passes", minimum=1)
        check_integer(self.estimate_every, "estimate_every", minimum=1)
        check_real(self.sharpen, "sharpen", above=0)
        check_real(self.prior_weight, "prior_weight", at_least=0)
        check_boolean(self.entropy_penalty, "entropy_penalty")
        check_real(self.label_smoothing, "label_smoothing", at_least=0, below=1)
        check_boolean(self.averaged_teacher, "averaged_teacher")
        check_boolean(self.weak_statistics, "weak_statistics")
        check_real(self.weak_share, "weak_share", at_least=0, at_most=1)
        check_integer(self.n_networks, "n_networks", minimum=1, maximum=2)
        if self.mixing is not None:
            check_choice(self.mixing, "mixing", tuple(MIXING))
        check_choice(self.confidence_from, "confidence_from", ("peer", "inputs", "both"))
        check_choice(self.targets, "targets", ("refurbished", "posterior"))
        estimator = self._estimator()
        if self.confidence_from != "peer" and estimator.evidence != "features":
            rule = f"'peer' where the estimator takes {estimator.evidence}"
            raise must_be("confidence_from", rule, self.confidence_from)
        if self.confidence_from == "both" and not isinstance(estimator, NoiseAwareConfidence):
            rule = "'peer' or 'inputs' unless 'confidence' is 'noise-aware', which takes several views"
            raise must_be("confidence_from", rule, self.confidence_from)
        if self.targets == "posterior" and self.confidence_from == "peer":
            rule = "'refurbished' where 'confidence_from' is 'peer'"
            raise must_be("targets", rule, self.targets, "Set confidence_from='both' or 'inputs'.")
        if self.targets == "posterior" and self.entropy_penalty:
            rule = "False where 'targets' is 'posterior', whose warm-up is not trained on the given labels"
            raise must_be("entropy_penalty", rule, self.entropy_penalty)
        if self.targets == "posterior" and self.weak_statistics:
            rule = "False where 'targets' is 'posterior', which needs no weak views after the warm-up"
            raise must_be("weak_statistics", rule, self.weak_statistics)

    def phases(self, round: int) -> tuple[Phase, ...]:
        if round < self.warmup:
            return warm_up_phases(self.n_networks)
        # Every network predicts the weak view of every batch, unless its target is known before.
        cost = 1.0 if self.targets == "posterior" else 1 + self.n_networks / 3
        return tuple(
            Phase("robust", trains=(m,), passes=self.passes, evidence=self._observed_for(m, round), cost=cost)
            for m in range(self.n_networks)
        )

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        if phase.name == WARM_UP and self.targets == "refurbished":
            return Method.plan(self, phase, evidence, state)
        found = (
            "inputs" if phase.name == WARM_UP or self.confidence_from == "inputs" else str(phase.trains[0])
        )
        if f"confidence_{found}" not in state or phase.evidence:
            estimated = self._estimated(phase, evidence, state)
            state |= {f"{name}_{found}": torch.from_numpy(values) for name, values in estimated.items()}
        kept = {name: state[f"{name}_{found}"].clone() for name in self._estimates}
        return Plan.over(np.arange(evidence.problem.n_samples), **kept)

    def loss(self, step: Step) -> Tensor:
        is_warm_up = step.phase.name == WARM_UP
        if is_warm_up and self.targets == "refurbished":
            return warm_up_loss(
                step, entropy_penalty=self.entropy_penalty, label_smoothing=self.label_smoothing
            )
        targets = self._posterior(step) if self.targets == "posterior" else self._targets(step)
        step.show_targets(targets)
        if is_warm_up:
            return soft_cross_entropy(step.trained(step.batch.weak()), targets)
        is_last_part = step.round >= (1 - self.weak_share) * step.problem.rounds
        views = step.batch.weak() if is_last_part else step.batch.strong()
        inputs, targets = self._mixed(step, views, targets)
        with step.trained.frozen_statistics() if self.weak_statistics else nullcontext():
            logits = step.trained(inputs)
        mean_prediction = step.mean_rows(logits.softmax(dim=1))
        prior = uniform_prior_divergence(mean_prediction)
        step.measure("prior_term", prior)
        return soft_cross_entropy(logits, targets) + self.prior_weight * prior

    def final_confidence(self, evidence: Evidence, state: State) -> FloatArray:
        """The mean over the networks of the confidences from their outputs; or those from the inputs."""
        estimator = self._estimator()
        if self.confidence_from == "peer":
            each = [estimate_confidence(estimator, evidence, network) for network in evidence.networks]
        else:
            inputs = features_of_inputs(evidence)
            networks = evidence.networks if self.confidence_from == "both" else (None,)
            each = [estimate_labels(estimator, evidence, inputs, network).confidence for network in networks]
        return mean_confidence(each, evidence.labels)

    @property
    def _estimates(self) -> tuple[str, ...]:
        """What the loss needs to know about every sample."""
        return ("confidence", "posterior") if self.targets == "posterior" else ("confidence",)

    def _estimated(self, phase: Phase, evidence: Evidence, state: State) -> dict[str, FloatArray]:
        """Confidences, and posteriors if they are the targets, from the evidence of the phase."""
        estimator = self._estimator()
        if self.confidence_from == "peer":
            (peer,) = phase.evidence
            losses = None
            if estimator.evidence == "losses":
                losses = averaged_losses(state, peer, evidence.networks[peer].losses(evidence.labels))
            return {"confidence": estimate_confidence(estimator, evidence, peer, losses)}
        network = phase.evidence[0] if phase.evidence else None
        found = estimate_labels(estimator, evidence, _kept_features(evidence, state), network)
        found = found.to_train_on(evidence.labels)
        both = {"confidence": found.confidence, "posterior": found.distributions}
        return {name: both[name] for name in self._estimates}

    def _posterior(self, step: Step) -> Tensor:
        """(b, C) class probabilities of the estimator, smoothed."""
        posterior = step.plan.tensors["posterior"][step.batch.index]
        return (1 - self.label_smoothing) * posterior + self.label_smoothing / posterior.shape[1]

    def _targets(self, step: Step) -> Tensor:
        """(b, C) w * given + (1 - w) * sharpened mean prediction of all networks on one weak view."""
        weak = step.batch.weak()
        with torch.no_grad():
            each = [self._predicted(network, weak) for network in step.networks]
            prediction = torch.stack(each).mean(dim=0)
            confidence = step.plan.tensors["confidence"][step.batch.index]
            return refurbish(step.batch.labels, confidence, sharpen(prediction, self.sharpen))

    def _predicted(self, network: TrainedNetwork, weak: Tensor) -> Tensor:
        """(b, C) class probabilities of a weak view."""
        if not self.averaged_teacher:  # the trained network is in train mode, its peer in eval mode
            return network(weak).softmax(dim=1)
        if network.average is None:
            advice = "Set it, or leave out 'averaged_teacher'."
            raise must_be("weight_average", "a decay where teachers are averaged", None, advice)
        with network.averaged(), network.evaluating():
            return network(weak).softmax(dim=1)

    def _mixed(self, step: Step, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and targets mixed over the whole batch, in whichever process its samples are."""
        if self.mixing is None:
            return inputs, targets
        mix = MIXING[self.mixing]()
        mixed = mix(step.gather_rows(inputs), step.gather_rows(targets), step.generator)
        return step.own_rows(mixed[0]), step.own_rows(mixed[1])

    def _observed_for(self, network: int, round: int) -> tuple[int, ...]:
        """The networks whose outputs give the confidences that ``network`` is trained with from now on."""
        is_kept = (round - self.warmup) % self.estimate_every != 0
        return () if self.confidence_from == "inputs" or is_kept else (self.n_networks - 1 - network,)

    def _estimator(self) -> ConfidenceEstimator:
        """The estimator with every parameter that was given; one that it does not have is an error."""
        given = {name: value for name in _OF_ESTIMATOR if (value := getattr(self, name)) is not None}
        if not isinstance(self.confidence, str):
            for name, value in given.items():
                rule = "left out where 'confidence' is an object, which has its own settings"
                raise must_be(name, rule, value)
            if not hasattr(self.confidence, "evidence"):
                raise must_be("confidence", "an estimator with 'evidence' and fit(X, y)", self.confidence)
            return self.confidence
        if self.confidence not in ESTIMATORS:
            rule = f"one of {', '.join(map(repr, ESTIMATORS))} or an estimator with 'evidence' and fit(X, y)"
            raise must_be("confidence", rule, self.confidence, did_you_mean(self.confidence, ESTIMATORS))
        kind = ESTIMATORS[self.confidence]
        for name, value in given.items():
            if name not in inspect.signature(kind).parameters:
                raise must_be(name, f"left out: the estimator {self.confidence!r} does not have it", value)
        return kind(**given)


def _kept_features(evidence: Evidence, state: State) -> FloatArray:
    """Features of the samples themselves; those of images are computed once in a run."""
    if len(evidence.problem.sample_shape) == 1:
        return features_of_inputs(evidence)
    if FEATURES_OF_INPUTS not in state:
        state[FEATURES_OF_INPUTS] = torch.from_numpy(features_of_inputs(evidence))
    features: FloatArray = state[FEATURES_OF_INPUTS].cpu().numpy()
    return features
