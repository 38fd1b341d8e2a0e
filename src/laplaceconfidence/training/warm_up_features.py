"""Features of a network warmed up on the given labels: what the paper's graph is built on.

A network that has seen the labels for a short while has learned what the classes have in common and not yet
which single labels are wrong. Its features are better than generic ones, and they need no other model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.training.classifier import RobustClassifier
from laplaceconfidence.training.networks.registry import NetworkSpec


@dataclass(frozen=True, slots=True)
class WarmUp:
    """How the network is warmed up: plain cross-entropy on weakly augmented images."""

    network: NetworkSpec = "small_cnn"
    epochs: int = 10
    batch_size: int = 64
    learning_rate: float = 0.02
    random_state: int = 0
    device: Any = "auto"
    image_size: int | None = None
    n_workers: int = 0
    n_jobs: int | None = None

    def features(self, X: Any, y: Any = None) -> FloatArray:
        """(n, d) penultimate features of the samples, eval mode, no augmentation.

        ``X`` and ``y`` are what ``RobustClassifier.fit`` takes.
        """
        classifier = RobustClassifier(
            self.network,
            "cross_entropy",
            strong="none",
            rounds=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            learning_rate_drops=(),
            channels_last=False,
            validation_fraction=0.0,
            device=self.device,
            image_size=self.image_size,
            n_workers=self.n_workers,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        return classifier.fit(X, y).embed(X)
