"""Features of a network that is trained briefly on the given labels, as for the graph of the paper.

A network that was trained for a few epochs has learned what the samples of a class have in common, and has
not memorized single wrong labels yet. No pretrained model is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.training.classifier import RobustClassifier
from laplaceconfidence.training.networks.registry import NetworkSpec


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Brief training of a network: cross-entropy on weakly augmented images.

    Parameters
    ----------
    network : str, callable or torch.nn.Module, default="small_cnn"
        As for ``RobustClassifier``.
    epochs : int, default=10
        Passes over the data.
    batch_size : int, default=64
        Samples per step.
    learning_rate : float, default=0.02
        Constant learning rate of SGD.
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
        """Train the network and return its features.

        Parameters
        ----------
        X, y : as for ``RobustClassifier.fit``
            The samples and their given labels.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Penultimate features of ``X``, in eval mode and without augmentation.
        """
        classifier = RobustClassifier(
            self.network,
            "cross_entropy",
            strong="none",
            rounds=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            schedule="step",
            learning_rate_drops=(),
            nesterov=False,
            clip_gradients=None,
            weight_average=None,
            average_evidence=False,
            channels_last=False,
            validation_fraction=0.0,
            device=self.device,
            image_size=self.image_size,
            n_workers=self.n_workers,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        return classifier.fit(X, y).embed(X)
