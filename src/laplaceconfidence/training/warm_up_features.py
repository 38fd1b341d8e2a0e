"""Features of a network that is trained briefly on the given labels, or on what is known about them.

A network that was trained for a few epochs has learned what the samples of a class have in common, and has
not memorized single wrong labels yet. No pretrained model is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.training.classifier import RobustClassifier
from laplaceconfidence.training.losses import soft_cross_entropy
from laplaceconfidence.training.methods.cross_entropy import CrossEntropy
from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, State
from laplaceconfidence.training.networks.registry import NetworkSpec
from laplaceconfidence.training.step import Step

_LABEL_SMOOTHING = 0.1
_WEIGHT_AVERAGE = 0.99


@dataclass(frozen=True, slots=True, eq=False)
class OnDistributions(Method):
    """One network, trained on weak views and on class probabilities in place of labels.

    Parameters
    ----------
    distributions : ndarray of shape (n_samples, n_classes)
        Class probabilities of the training samples, in their order.
    """

    distributions: FloatArray
    n_networks: ClassVar[int] = 1

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase("training", trains=(0,)),)

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        targets = np.asarray(self.distributions, dtype=np.float32)
        smoothed = (1 - _LABEL_SMOOTHING) * targets + _LABEL_SMOOTHING / targets.shape[1]
        return Plan.over(np.arange(evidence.problem.n_samples), targets=smoothed)

    def loss(self, step: Step) -> Tensor:
        logits = step.trained(step.batch.weak())
        return soft_cross_entropy(logits, step.plan.tensors["targets"][step.batch.index])


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Brief training of a network on weakly augmented samples.

    Parameters
    ----------
    network : str, callable or torch.nn.Module, default="small_resnet"
        As for ``RobustClassifier``.
    epochs : int, default=12
        Passes over the data.
    batch_size : int, default=64
        Samples per step.
    learning_rate : float, default=0.05
        Highest learning rate of SGD, by the schedule "one-cycle".
    random_state : int, default=0
        Seed of everything that is random.
    device : str or torch.device, default="auto"
        "auto" takes a GPU if there is one.
    image_size : int, optional
        Side that image files are resized to.
    n_workers : int, default=0
        Processes that read samples of data sets too large for memory.
    n_jobs : int, optional
        Number of torch threads; ``None`` leaves it to torch.
    """

    network: NetworkSpec = "small_resnet"
    epochs: int = 12
    batch_size: int = 64
    learning_rate: float = 0.05
    random_state: int = 0
    device: Any = "auto"
    image_size: int | None = None
    n_workers: int = 0
    n_jobs: int | None = None

    def features(self, X: Any, y: Any = None, distributions: FloatArray | None = None) -> FloatArray:
        """Train the network and return its features.

        Parameters
        ----------
        X, y : as for ``RobustClassifier.fit``
            The samples and their given labels.
        distributions : ndarray of shape (n_samples, n_classes), optional
            Class probabilities to train on instead of the given labels.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Penultimate features of ``X``, in eval mode, with averaged weights and without augmentation.
        """
        of_labels = CrossEntropy(label_smoothing=_LABEL_SMOOTHING)
        classifier = RobustClassifier(
            self.network,
            of_labels if distributions is None else OnDistributions(distributions),
            strong="none",
            rounds=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            schedule="one-cycle",
            learning_rate_warmup=0.25,
            learning_rate_drops=(),
            nesterov=True,
            clip_gradients=None,
            weight_average=_WEIGHT_AVERAGE,
            average_evidence=False,
            precision="fast",
            channels_last=True,
            validation_fraction=0.0,
            device=self.device,
            image_size=self.image_size,
            n_workers=self.n_workers,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        return classifier.fit(X, y).embed(X)
