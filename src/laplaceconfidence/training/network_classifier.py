"""Predictions of trained networks: the part of ``RobustClassifier`` that is used after ``fit``."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.training.inputs import ImageSize, unlabeled_samples
from laplaceconfidence.training.samples import Samples
from laplaceconfidence.training.settings import TrainingSettings
from laplaceconfidence.training.task import TrainingTask
from laplaceconfidence.validation import check_integer, must_be


class NetworkClassifier(ClassifierMixin, BaseEstimator):
    """A scikit-learn classifier whose predictions are the mean over trained networks."""

    classes_: NDArray[Any]
    networks_: list[torch.nn.Module]
    n_workers: int
    _image_size: ImageSize  # that fit used
    _task: TrainingTask
    _settings: TrainingSettings
    _predictors: tuple[int, ...]

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities: the mean over the networks, or what the method combines them to.

        Parameters
        ----------
        X : array-like, NoisyDataset or torch.utils.data.Dataset
            Samples of the shape that was trained on.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        samples = self._samples(X)
        rows = torch.arange(len(samples))
        return self._task.mean_probabilities(self._predictors, self._settings, rows, samples)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every sample.

        Parameters
        ----------
        X : array-like, NoisyDataset or torch.utils.data.Dataset
            Samples of the shape that was trained on.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = self.predict_proba(X).argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[codes]
        return predicted

    def embed(self, X: Any, network: int = 0) -> FloatArray:
        """Penultimate features of one of the networks.

        Parameters
        ----------
        X : array-like, NoisyDataset or torch.utils.data.Dataset
            Samples of the shape that was trained on.
        network : int, default=0
            Which network.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        check_integer(network, "network", minimum=0, maximum=len(self.networks_) - 1)
        samples = self._samples(X)
        rows = torch.arange(len(samples))
        return self._task.observe(network, self._settings, rows, samples).features

    def _samples(self, X: Any) -> Samples:
        samples = unlabeled_samples(
            X, self._task.device, n_workers=self.n_workers, image_size=self._image_size
        )
        if samples.shape != self._task.samples.shape:
            raise must_be(
                "X", f"made of samples of shape {self._task.samples.shape}, as in fit", samples.shape
            )
        return samples
