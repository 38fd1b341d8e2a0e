"""The settings of a run, resolved from the parameters of ``RobustClassifier``, the data and the device."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any

import torch
from torch import nn

from laplaceconfidence.exceptions import TrainingWarning
from laplaceconfidence.training.automatic_settings import automatic_preset, warn_if_large_for_cpu
from laplaceconfidence.training.inputs import ImageSize, TrainingData
from laplaceconfidence.training.methods.interface import Method
from laplaceconfidence.training.methods.registry import build_method
from laplaceconfidence.training.networks.registry import NetworkSpec
from laplaceconfidence.training.presets import load_preset
from laplaceconfidence.training.sample_views import View, default_weak
from laplaceconfidence.training.sample_weights import ClassWeight
from laplaceconfidence.training.settings import TrainingSettings, fast_precision
from laplaceconfidence.validation import check_real

AUTOMATIC = (
    "network",
    "method",
    "rounds",
    "batch_size",
    "learning_rate",
    "schedule",
    "learning_rate_drops",
    "learning_rate_warmup",
    "nesterov",
    "clip_gradients",
    "weight_average",
    "average_evidence",
    "weak",
    "strong",
    "precision",
    "channels_last",
)
"""Parameters of ``RobustClassifier`` that "auto" takes from the preset that suits data and device."""


@dataclass(frozen=True, slots=True, eq=False)
class RunSettings:
    """Every setting that the result of a run depends on, none of them "auto" anymore."""

    network: NetworkSpec
    method: Method
    weak: View
    strong: View | Sequence[View]
    feature_layer: str | None
    class_weight: ClassWeight
    validation_fraction: float
    image_size: ImageSize
    training: TrainingSettings

    def as_dict(self) -> dict[str, Any]:
        """Text and numbers only, for ``settings.json``."""
        return {
            field.name: asdict(self.training)
            if field.name == "training"
            else described(getattr(self, field.name))
            for field in fields(self)
        }


def is_automatic(value: Any) -> bool:
    """Whether a parameter is "auto"."""
    return isinstance(value, str) and value == "auto"


def resolve_settings(
    parameters: Mapping[str, Any], data: TrainingData, device: torch.device, seed: int
) -> RunSettings:
    """The settings of a run; explicit parameters are taken as they are.

    Parameters
    ----------
    parameters : mapping of str to Any
        Parameters of ``RobustClassifier`` by name.
    data : TrainingData
        What is trained on: the shape of its samples selects the preset for parameters that are "auto".
    device : torch.device
        The device, which selects the preset for large images.
    seed : int
        The seed of the run.

    Returns
    -------
    RunSettings
    """
    resolved = dict(parameters)
    if open_ones := [name for name in AUTOMATIC if is_automatic(parameters[name])]:
        if "network" in open_ones:
            warn_if_large_for_cpu(data.samples.shape, device)
        preset = load_preset(automatic_preset(data.samples.shape, device)).parameters()
        fallback = {
            "weak": default_weak(data.samples.shape),
            "precision": "float32",
            "channels_last": False,
            "learning_rate_drops": (),
        }
        preset = fallback | preset
        if not is_automatic(schedule := _stated_schedule(parameters)):
            preset |= {"schedule": schedule, "learning_rate_warmup": None}
            preset |= {} if schedule == "step" else {"learning_rate_drops": ()}
        if resolved["optimizer"] != "sgd" or resolved["momentum"] == 0:
            preset["nesterov"] = False
        resolved |= {name: preset[name] for name in open_ones}
    if resolved["precision"] == "fast":
        resolved["precision"] = fast_precision(device)
    own = {field.name for field in fields(TrainingSettings)} - {"seed", "learning_rate_drops"}
    drops = tuple(resolved["learning_rate_drops"])
    fraction = check_real(resolved["validation_fraction"], "validation_fraction", at_least=0, below=1)
    training = TrainingSettings(
        **{name: resolved[name] for name in own}, learning_rate_drops=drops, seed=seed
    )
    method = build_method(resolved["method"]).for_rounds(training.rounds)
    settings = RunSettings(
        network=resolved["network"],
        method=method,
        weak=resolved["weak"],
        strong=resolved["strong"],
        feature_layer=resolved["feature_layer"],
        class_weight=resolved["class_weight"],
        validation_fraction=fraction,
        image_size=resolved["image_size"],
        training=training,
    )
    _warn_if_all_rounds_warm_up(method, settings.training.rounds)
    return settings


def _warn_if_all_rounds_warm_up(method: Method, rounds: int) -> None:
    warmup = getattr(method, "warmup", 0)
    if isinstance(warmup, int) and warmup >= rounds:
        warnings.warn(
            f"All {rounds} rounds are warm-up rounds ('warmup' of the method is {warmup}): the rounds in "
            "which the method corrects wrong labels are never reached. Use more 'rounds' or a smaller "
            "'warmup'.",
            TrainingWarning,
            stacklevel=2,
        )


def _stated_schedule(parameters: Mapping[str, Any]) -> Any:
    """The schedule that the user chose, by name or by its drops; its other settings then belong to it."""
    if is_automatic(parameters["schedule"]) and not is_automatic(parameters["learning_rate_drops"]):
        return "step"
    return parameters["schedule"]


def described(value: Any) -> Any:
    """A JSON-able description of a setting, the same in every process for the same setting."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [described(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): described(item) for key, item in value.items()}
    if isinstance(value, nn.Module):
        return {"kind": _name(type(value)), "weights": _digest(value)}
    if is_dataclass(value) and not isinstance(value, type):
        own = {field.name: described(getattr(value, field.name)) for field in fields(value)}
        return {"kind": _name(type(value)), **own}
    if hasattr(value, "get_params"):
        return {"kind": _name(type(value)), **described(value.get_params())}
    return _name(value if hasattr(value, "__qualname__") else type(value))


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _digest(module: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in module.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
