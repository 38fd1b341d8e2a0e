"""A trained model as a plain torch module and as an ONNX file, with the normalization inside."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from laplaceconfidence.exceptions import InvalidInputError, MissingDependencyError, RunFolderError
from laplaceconfidence.files import replacing
from laplaceconfidence.training.augment.resized_crop import center_crop
from laplaceconfidence.training.model_folder import package_version
from laplaceconfidence.training.trained_model import TrainedModel
from laplaceconfidence.training.trained_network import combine_predictions
from laplaceconfidence.validation import must_be

_LARGEST_FILE = 2**31 - 1  # bytes that one ONNX file can hold


class ProbabilityModule(nn.Module):
    """Class probabilities of inputs that are not normalized yet, combined over networks.

    Parameters
    ----------
    networks : sequence of torch.nn.Module
        Networks that map normalized inputs to logits.
    mean, deviation : Tensor
        Of the training inputs; they broadcast against a batch.
    sums_logits : bool
        Whether logits are summed; otherwise probabilities are averaged.
    crop : int, optional
        Side of the center of images that the networks see.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(
        self,
        networks: Sequence[nn.Module],
        mean: Tensor,
        deviation: Tensor,
        *,
        sums_logits: bool,
        crop: int | None = None,
    ) -> None:
        super().__init__()
        self.crop = crop
        self.sums_logits = sums_logits
        self.networks = nn.ModuleList(networks)
        self.register_buffer("mean", mean.clone())
        self.register_buffer("deviation", deviation.clone())

    def forward(self, inputs: Tensor) -> Tensor:
        """Probabilities (n, C) of pixels from 0 to 1, (n, channels, height, width), or of features (n, d)."""
        if not inputs.is_floating_point():
            raise must_be("inputs", "floats: pixels from 0 to 1", str(inputs.dtype), "Divide bytes by 255.")
        inputs = inputs if self.crop is None else center_crop(inputs, self.crop)
        values = (inputs - self.mean) / self.deviation
        logits = [network(values).float() for network in self.networks]
        return combine_predictions(logits, sums_logits=self.sums_logits)


def probability_module(model: TrainedModel) -> ProbabilityModule:
    """The networks that predict, copied, with the normalization, in eval mode on the device of the model."""
    networks = [model.networks[number].plain_backbone() for number in model.predictors]
    module = ProbabilityModule(
        networks, model.mean, model.deviation, sums_logits=model.sums_logits, crop=model.crop
    ).eval()
    return module.requires_grad_(False)


def write_onnx(path: str | Path, model: TrainedModel) -> None:
    """Write a model as one ONNX file, whole or not at all.

    Parameters
    ----------
    path : str or Path
        The file, whose name ends in .onnx.
    model : TrainedModel
        The model.
    """
    path = Path(path)
    if path.suffix.lower() != ".onnx":
        raise must_be("path", "a file name that ends in .onnx", str(path))
    if any(find_spec(name) is None for name in ("onnx", "onnxscript")):
        raise MissingDependencyError(
            "ONNX files need onnx and onnxscript, which are not installed: "
            "pip install 'laplaceconfidence[onnx]'"
        )
    module = probability_module(model).cpu()
    proto = _onnx_model(module, torch.zeros(2, *model.input_shape))
    described = {
        "class_names": json.dumps(model.class_names, ensure_ascii=False),
        "input": "pixels from 0 to 1 (n, channels, height, width)"
        if len(model.input_shape) == 3
        else "feature vectors (n, features)",
        "laplaceconfidence": package_version(),
    }
    if model.feature_columns is not None:
        described["feature_columns"] = json.dumps(model.feature_columns, ensure_ascii=False)
    for key, value in described.items():
        proto.metadata_props.add(key=key, value=value)
    if proto.ByteSize() > _LARGEST_FILE:
        raise InvalidInputError("The model is larger than the 2 GB that one ONNX file can hold.")
    try:
        with replacing(path) as temporary:
            temporary.write_bytes(proto.SerializeToString())
    except OSError as error:
        raise RunFolderError(f"Writing {path} failed: {error.strerror or error}.") from error


def _onnx_model(module: nn.Module, example: Tensor) -> Any:
    """The module as an ``onnx.ModelProto`` that takes batches of any size."""
    with _quiet():
        try:
            program = torch.onnx.export(
                module,
                (example,),
                dynamo=True,
                verbose=False,
                input_names=["inputs"],
                output_names=["probabilities"],
                dynamic_shapes=({0: torch.export.Dim("n_samples")},),
            )
        except torch.onnx.OnnxExporterError as error:
            raise InvalidInputError(
                f"The network cannot be exported to ONNX: {error} Use as_module() to run it with torch."
            ) from error
    assert program is not None
    return program.model_proto


@contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's messages about its own internals, such as that torchvision is not installed."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
