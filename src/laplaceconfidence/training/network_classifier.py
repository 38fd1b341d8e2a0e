"""Predictions of trained networks: the part of ``RobustClassifier`` that is used after ``fit``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.data.arrow_reader import is_huggingface
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import encode_labels
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.data.shared_classes import with_class_names
from laplaceconfidence.encoders.torch_device import choose_device
from laplaceconfidence.exceptions import InvalidInputError, TrainingWarning
from laplaceconfidence.training.evaluation import Evaluation, evaluate_predictions
from laplaceconfidence.training.exported_module import probability_module, write_onnx
from laplaceconfidence.training.inputs import training_data
from laplaceconfidence.training.model_folder import read_model, write_model
from laplaceconfidence.training.networks.registry import NetworkSpec
from laplaceconfidence.training.trained_model import TrainedModel
from laplaceconfidence.validation import check_integer, check_same_length


class NetworkClassifier(ClassifierMixin, BaseEstimator):
    """A scikit-learn classifier whose predictions are the mean over trained networks."""

    classes_: NDArray[Any]
    settings_: dict[str, Any]
    n_workers: int
    eval_batch_size: int
    missing_label: Any
    _model: TrainedModel

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    @property
    def networks_(self) -> list[nn.Module]:
        """The trained networks."""
        check_is_fitted(self)
        return [network.backbone for network in self._model.networks]

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities: the mean over the networks, or what the method combines them to.

        Parameters
        ----------
        X : array-like, NoisyDataset or torch.utils.data.Dataset
            Samples of the shape that was trained on. Image files are resized to it; of a data frame, the
            columns that were trained on are used.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        batch_size = check_integer(self.eval_batch_size, "eval_batch_size", minimum=1)
        return self._model.probabilities(self._model.samples(X, n_workers=self.n_workers), batch_size)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every sample.

        Parameters
        ----------
        X : array-like, NoisyDataset or torch.utils.data.Dataset
            As for ``predict_proba``.

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
            As for ``predict_proba``.
        network : int, default=0
            Which network.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        check_integer(network, "network", minimum=0, maximum=len(self._model.networks) - 1)
        batch_size = check_integer(self.eval_batch_size, "eval_batch_size", minimum=1)
        return self._model.features(network, self._model.samples(X, n_workers=self.n_workers), batch_size)

    def evaluate(self, X: Any, y: Any = None) -> Evaluation:
        """Compare predictions with labels: accuracy, classes, confusion, calibration.

        Parameters
        ----------
        X : array-like, NoisyDataset or torch.utils.data.Dataset
            As for ``predict_proba``.
        y : array-like of shape (n_samples,), optional
            The labels, by default those of a data set; missing ones are left out. They should be verified:
            wrong labels count as wrong predictions.

        Returns
        -------
        Evaluation
        """
        check_is_fitted(self)
        if is_huggingface(X):
            X = read_dataset(X, missing_label=self.missing_label, image_size=self._model.image_size)
        codes = self._codes(X, y)
        probabilities = self.predict_proba(X)
        check_same_length("X", len(probabilities), "y", len(codes))
        return evaluate_predictions(probabilities, codes, self._model.class_names)

    def as_module(self) -> nn.Module:
        """A copy of the networks that predict, as one plain torch module with the normalization inside.

        Returns
        -------
        torch.nn.Module
            Maps floats, pixels from 0 to 1 of shape (n, channels, height, width) or feature vectors (n, d),
            to class probabilities (n, n_classes), in the order of ``classes_``. Where ``fit`` was given
            images as floats of another scale, it takes that scale. It is in eval mode, on the device of the
            classifier, and without gradients; it computes in float32.
        """
        check_is_fitted(self)
        return probability_module(self._model)

    def export_onnx(self, path: str | Path) -> None:
        """Write what ``as_module`` returns as an ONNX file, which needs neither torch nor this package.

        The file has one input, ``inputs``, of any number of samples, and one output, ``probabilities``; the
        names of the classes are in its metadata as JSON under ``class_names``. This needs the extra ``onnx``.

        Parameters
        ----------
        path : str or pathlib.Path
            The file, whose name ends in .onnx; an older one is replaced.
        """
        check_is_fitted(self)
        write_onnx(path, self._model)

    def save(self, folder: str | Path) -> None:
        """Write the model as a folder that ``load`` reads: weights as safetensors, everything else as JSON.

        An older model in the folder is replaced in one step: if the process is killed, the old one is left.

        Parameters
        ----------
        folder : str or pathlib.Path
            A new folder, or one with an older model and nothing else.
        """
        check_is_fitted(self)
        write_model(folder, self._model, self.settings_)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        network: NetworkSpec | None = None,
        encoder: str | None = None,
        device: Any = "auto",
    ) -> Self:
        """Read a model that ``save`` or a training run wrote.

        Loading runs no code from the folder. The classifier can do everything that needs no training data:
        ``predict``, ``predict_proba``, ``embed``, ``evaluate``, ``as_module``, ``export_onnx``, ``save``; it
        has ``classes_``, ``networks_`` and ``settings_``. What describes the training samples
        (``confidence_``, ``refined_labels_``, ``history_``, ``summary_``) stays in the folder of the run, and
        parameters that only matter in ``fit`` have their defaults.

        Parameters
        ----------
        folder : str or pathlib.Path
            The folder of a model or of a training run.
        network : str, callable or torch.nn.Module, optional
            Required if the network is not one of this package: "package.module:factory", the factory, or a
            module of the same kind. The folder only states the name, because importing it runs its code.
        encoder : str, optional
            Required if the model was trained with an encoder that is a function of your own:
            "package.module:function".
        device : str or torch.device, default="auto"
            "auto" takes a GPU if there is one.

        Returns
        -------
        RobustClassifier
        """
        model, settings = read_model(folder, network=network, encoder=encoder, device=choose_device(device))
        classifier = cls()
        classifier.set_params(
            network=model.network if network is None else network,
            feature_layer=model.feature_layer,
            precision=model.precision,
            channels_last=model.channels_last,
            device=device,
        )
        classifier.settings_ = settings
        classifier._use(model)
        return classifier

    def _use(self, model: TrainedModel) -> None:
        """Take a model and set the attributes that follow from it."""
        self._model = model
        self.classes_ = model.classes
        if len(model.input_shape) == 1:
            self.n_features_in_ = model.input_shape[0]

    def _leave_model(self, folder: Path) -> None:
        """Save the model of a run; a network that cannot be saved is no reason to lose the other results."""
        try:
            self.save(folder)
        except InvalidInputError as error:
            warnings.warn(f"{error} The run has no model/ therefore.", TrainingWarning, stacklevel=4)

    def _codes(self, X: Any, y: Any) -> IntArray:
        """Labels of a data set or of ``y`` as positions in ``classes_``."""
        model = self._model
        if y is not None:
            return encode_labels(
                y, classes=self.classes_, missing_label=self.missing_label, parameter="y"
            ).codes
        if isinstance(X, NoisyDataset):
            return with_class_names(X, model.class_names, "X").labels
        data = training_data(
            X,
            y,
            model.device,
            n_workers=self.n_workers,
            missing_label=self.missing_label,
            image_size=model.image_size,
            classes=self.classes_,
        )
        return data.labels
