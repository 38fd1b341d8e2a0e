"""A trained model: networks, and everything else that their predictions depend on."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.data.images import CenterSquare
from laplaceconfidence.encoders.protocol import Encoder
from laplaceconfidence.encoders.torch_device import choose_device
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.stages import stage
from laplaceconfidence.training.inputs import unlabeled_samples
from laplaceconfidence.training.networks.registry import Shape
from laplaceconfidence.training.raw_samples import encode_like_fit
from laplaceconfidence.training.sample_views import normalized
from laplaceconfidence.training.samples import Samples
from laplaceconfidence.training.settings import autocast
from laplaceconfidence.training.trained_network import HeadedNetwork, Outputs, combine_predictions
from laplaceconfidence.validation import must_be

_SEED = 0  # of random transformations in a data set that is predicted for


@dataclass(eq=False)
class TrainedModel:
    """What ``RobustClassifier`` predicts with; the training data is not part of it.

    Parameters
    ----------
    networks : tuple of HeadedNetwork
        All networks that were trained.
    predictors : tuple of int
        Which of them predict.
    sums_logits : bool
        Whether the prediction is the softmax of their summed logits; otherwise it is the mean of their
        probabilities.
    classes : ndarray of shape (n_classes,)
        The classes as the user writes them.
    class_names : tuple of str
        Their names.
    input_shape : tuple of int
        Shape of one sample: (channels, height, width) or (features,).
    mean, deviation : Tensor
        Of the training inputs; they broadcast against a batch.
    network : str or None
        Name or "package.module:factory" that builds such a network; ``None`` if it cannot be built by name.
    feature_layer : str or None
        As in ``RobustClassifier``.
    feature_columns : tuple of str or None
        The columns of a table that the model was trained on.
    encoder : Encoder or None
        What turns texts, images or columns into features; ``None`` if the model takes its inputs as they are.
    precision : str
        Precision of the forward passes.
    channels_last : bool
        Whether images are stored with their channels last.
    device : torch.device
        Where the networks are.
    crop : int, optional
        Side of the center of images that the networks see. The proportions of image files are then kept.
    """

    networks: tuple[HeadedNetwork, ...]
    predictors: tuple[int, ...]
    sums_logits: bool
    classes: NDArray[Any]
    class_names: tuple[str, ...]
    input_shape: Shape
    mean: Tensor
    deviation: Tensor
    network: str | None
    feature_layer: str | None
    feature_columns: tuple[str, ...] | None
    precision: str
    channels_last: bool
    device: torch.device
    encoder: Encoder | None = None
    crop: int | None = None

    @property
    def image_size(self) -> tuple[int, int] | CenterSquare | None:
        """Height and width of images, which files are resized to; ``None`` for feature vectors."""
        if len(self.input_shape) != 3:
            return None
        _, height, width = self.input_shape
        return (height, width) if self.crop is None or height != width else CenterSquare(height)

    def normalized(self, inputs: Tensor) -> Tensor:
        """Inputs with mean 0 and deviation 1; bytes are scaled to [0, 1] first."""
        return normalized(inputs, self.mean, self.deviation, channels_last=self.channels_last, crop=self.crop)

    def samples(self, X: Any, *, n_workers: int) -> Samples:
        """The samples of ``X``, which must have the shape that was trained on; raw ones are encoded."""
        shape = self.input_shape
        X = encode_like_fit(X, self.encoder)
        samples = unlabeled_samples(
            X,
            self.device,
            n_workers=n_workers,
            shape=shape,
            columns=self.feature_columns,
            image_size=self.image_size,
        )
        if samples.shape != shape:
            rule = f"made of {_described(shape)}, as in fit"
            raise must_be("X", rule, _described(samples.shape), _advice(samples.shape, shape))
        return samples

    def probabilities(self, samples: Samples, batch_size: int) -> FloatArray:
        """Class probabilities of the networks that predict, combined, of shape (n, C)."""
        logits = [
            self._observed(number, samples, batch_size, "predicting").logits for number in self.predictors
        ]
        combined: FloatArray = combine_predictions(logits, sums_logits=self.sums_logits).numpy()
        return combined

    def features(self, network: int, samples: Samples, batch_size: int) -> FloatArray:
        """Penultimate features of one network, of shape (n, d)."""
        features: FloatArray = self._observed(network, samples, batch_size, "features").features.numpy()
        return features

    def _observed(self, network: int, samples: Samples, batch_size: int, task: str) -> Outputs:
        """The outputs of one network for all samples, on the CPU; eval mode, no augmentation."""
        module = self.networks[network].eval()
        batches = torch.split(torch.arange(len(samples)), batch_size)
        logits: list[Tensor] = []
        features: list[Tensor] = []
        with (
            stage(task, total=len(samples)) as advance,
            torch.no_grad(),
            autocast(self.precision, self.device),
        ):
            for inputs in samples.batches(batches, seed=_SEED):
                self._check_scale(inputs)
                outputs: Outputs = module(self.normalized(inputs))
                logits.append(outputs.logits.cpu())
                features.append(outputs.features.cpu())
                advance(len(inputs))
        return Outputs(torch.cat(logits), torch.cat(features), {})

    def _check_scale(self, inputs: Tensor) -> None:
        """Bytes are scaled to [0, 1]: a model of numbers on another scale would take them for black."""
        if inputs.dtype == torch.uint8 and float(self.mean.max()) > 1:
            raise must_be(
                "X",
                "numbers on the scale of fit",
                f"bytes, which are scaled to [0, 1]; in fit the mean was {float(self.mean.max()):.3g}",
                "Convert them as in fit, such as X.astype(np.float32).",
            )

    # Pickles hold the networks on the CPU, so that they can be read on a machine without a GPU

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self.device.type != "cpu":
            state["networks"] = tuple(copy.deepcopy(network).cpu() for network in self.networks)
            state |= {"mean": self.mean.cpu(), "deviation": self.deviation.cpu()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        try:
            self.device = choose_device(self.device)
        except InvalidInputError:  # this machine has no such device
            self.device = torch.device("cpu")
        self.networks = tuple(network.to(self.device) for network in self.networks)
        self.mean, self.deviation = self.mean.to(self.device), self.deviation.to(self.device)


def _described(shape: Shape) -> str:
    if len(shape) == 3:
        channels, height, width = shape
        return f"images of {channels} x {height} x {width} (channels x height x width)"
    return f"vectors of {shape[0]} features" if len(shape) == 1 else f"samples of shape {shape}"


def _advice(found: Shape, expected: Shape) -> str:
    if len(found) == len(expected) == 3:
        if found[0] != expected[0]:
            return f"Convert the images to {expected[0]} channels, as those that were trained on."
        return "Resize the images to the height and width that were trained on."
    return ""
