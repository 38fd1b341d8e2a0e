"""A trained model as a folder: ``model.json`` says what it is, ``weights.safetensors`` has its weights.

Loading runs no code from the folder: safetensors files hold numbers only, and a network that is not one of
this package is built only if the caller names or passes it.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors
import safetensors.torch
import torch
from pydantic import BaseModel, ConfigDict, StrictBool, StrictInt, StrictStr, ValidationError, model_validator
from torch import Tensor, nn

from laplaceconfidence.encoders.protocol import Encoder
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError, RunFolderError
from laplaceconfidence.files import is_disk_full, replace_folder, restore_folder, write_json
from laplaceconfidence.run_files import MODEL, SETTINGS
from laplaceconfidence.training.model_encoder import (
    ARRAYS,
    TERMS,
    encoder_files,
    parse_record,
    read_encoder,
)
from laplaceconfidence.training.networks.registry import NETWORKS, NetworkSpec, Shape, build_network
from laplaceconfidence.training.sample_views import network_shape
from laplaceconfidence.training.settings import PRECISIONS
from laplaceconfidence.training.trained_model import TrainedModel
from laplaceconfidence.training.trained_network import HeadedNetwork
from laplaceconfidence.validation import did_you_mean, must_be

DESCRIPTION, WEIGHTS = "model.json", "weights.safetensors"
FORMAT_VERSION = 2  # 1 has no encoder; models without one are still written as 1

_KINDS: dict[str, Any] = {"int": np.int64, "bool": np.bool_, "str": np.str_}


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Classes(_Table):
    """The classes in the order of the probabilities."""

    kind: Literal["int", "bool", "str"]
    values: list[StrictBool | StrictInt | StrictStr]  # as the labels were given
    names: list[str]

    @model_validator(mode="after")
    def _fit_together(self) -> _Classes:
        if len(self.values) != len(self.names) or len(set(self.values)) != len(self.values):
            raise ValueError("there must be as many names as different values")
        if any(type(value).__name__ != self.kind for value in self.values):
            raise ValueError(f"the values must be of the kind {self.kind}")
        return self


class _Input(_Table):
    """What one sample is."""

    kind: Literal["image", "features"]
    shape: list[int]  # (channels, height, width) or (features,)
    mean: list[float]  # per channel or feature, of pixels from 0 to 1 or of the features
    deviation: list[float]
    columns: list[str] | None  # of a table, in the order of the features
    crop: int | None = None  # side of the center of images that the networks see

    @model_validator(mode="after")
    def _fit_together(self) -> _Input:
        if len(self.shape) != (3 if self.kind == "image" else 1) or min(self.shape) < 1:
            raise ValueError(f"{self.shape} is not the shape of one sample of the kind {self.kind}")
        if not len(self.mean) == len(self.deviation) == self.shape[0]:
            raise ValueError(f"there must be {self.shape[0]} means and deviations")
        if self.columns is not None and (self.kind == "image" or not self.columns):
            raise ValueError("only features have columns")
        return self


class _Networks(_Table):
    """How the networks are built and which of them predict."""

    name: str | None  # a name of this package or "package.module:factory"
    description: str
    feature_layer: str | None
    number: int
    predictors: list[int]
    sums_logits: bool  # the prediction is the softmax of summed logits, else the mean of probabilities
    precision: str
    channels_last: bool

    @model_validator(mode="after")
    def _fit_together(self) -> _Networks:
        if not self.predictors or not all(0 <= number < self.number for number in self.predictors):
            raise ValueError(f"the predictors must be among the {self.number} networks")
        if self.precision not in PRECISIONS:
            raise ValueError(f"the precision must be one of {', '.join(PRECISIONS)}")
        return self


class _Weights(_Table):
    bytes: int
    sha256: str


class _Description(_Table):
    """The contents of ``model.json``."""

    format: Literal["laplaceconfidence model"] = "laplaceconfidence model"
    version: int = FORMAT_VERSION
    written_with: dict[str, str]  # versions of packages
    classes: _Classes
    input: _Input
    network: _Networks
    weights: _Weights
    encoder: dict[str, Any] | None = None  # an EncoderRecord
    settings: dict[str, Any]  # of the training, for people


def write_model(folder: str | Path, model: TrainedModel, settings: dict[str, Any]) -> None:
    """Write a model; an older model in the folder is replaced in one step.

    Parameters
    ----------
    folder : str or Path
        The folder; it may hold an older model, but nothing else.
    model : TrainedModel
        The model.
    settings : dict
        The settings it was trained with, as text and numbers.
    """
    target = Path(folder).absolute()
    weights = safetensors.torch.save(_tensors(model))
    record, files = (None, {}) if model.encoder is None else encoder_files(model.encoder)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}-new")
    try:
        restore_folder(target)
        _check_replaceable(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target)
        temporary.mkdir()
        try:
            _write_flushed(temporary / WEIGHTS, weights)
            for name, content in files.items():
                _write_flushed(temporary / name, content)
            described = _described(model, weights, settings).model_dump(mode="json")
            if record is None:
                described |= {"version": 1}
                described.pop("encoder")
            else:
                described["encoder"] = record.model_dump(mode="json")
            write_json(temporary / DESCRIPTION, described)
            replace_folder(temporary, target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    except RunFolderError:
        raise
    except OSError as error:
        reason = "the disk is full" if is_disk_full(error) else error.strerror or str(error)
        raise RunFolderError(
            f"The model cannot be written to {target}: {reason}. A model that was there is unchanged."
        ) from error


def read_model(
    folder: str | Path,
    *,
    network: NetworkSpec | None = None,
    encoder: str | None = None,
    device: torch.device,
) -> tuple[TrainedModel, dict[str, Any]]:
    """Read a model.

    Parameters
    ----------
    folder : str or Path
        What ``write_model`` wrote, or the folder of a training run.
    network : str, callable or torch.nn.Module, optional
        The network of a model whose network is not one of this package.
    encoder : str, optional
        The encoder of a model that was trained with a function of the user's own.
    device : torch.device
        Where the networks are put.

    Returns
    -------
    model : TrainedModel
    settings : dict
        The settings it was trained with.
    """
    place = _place(Path(folder))
    description = _read_description(place / DESCRIPTION)
    tensors = _read_weights(place / WEIGHTS, description.weights)
    shape, described = tuple(description.input.shape), description.network
    spec = _spec(described, network, place)
    built = []
    for number in range(described.number):
        own = {name.removeprefix(f"{number}."): tensors[name] for name in _names_of(number, tensors)}
        built.append(_built(spec, own, description, place).to(device).eval())
        if described.channels_last:
            built[-1] = built[-1].to(memory_format=torch.channels_last)
    mean, deviation = (
        torch.tensor(values, device=device).reshape(1, -1, *[1] * (len(shape) - 1))
        for values in (description.input.mean, description.input.deviation)
    )
    columns, classes = description.input.columns, description.classes
    model = TrainedModel(
        networks=tuple(built),
        predictors=tuple(described.predictors),
        sums_logits=described.sums_logits,
        classes=np.array(classes.values, dtype=_KINDS[classes.kind]),
        class_names=tuple(classes.names),
        input_shape=shape,
        mean=mean,
        deviation=deviation,
        network=described.name,
        feature_layer=described.feature_layer,
        feature_columns=None if columns is None else tuple(columns),
        precision=described.precision,
        channels_last=described.channels_last,
        device=device,
        encoder=_encoder(description, place, encoder),
        crop=description.input.crop,
    )
    return model, description.settings


def package_version() -> str:
    """The version of this package that is installed."""
    try:
        return version("laplaceconfidence")
    except PackageNotFoundError:  # a checkout that is not installed
        return "unknown"


# Writing


def _tensors(model: TrainedModel) -> dict[str, Tensor]:
    """The weights of all networks; copied, as safetensors refuses tensors that share their memory."""
    tensors = {}
    for number, network in enumerate(model.networks):
        for name, value in network.backbone.state_dict().items():
            if not isinstance(value, Tensor):
                raise InvalidInputError(
                    f"The network {type(network.backbone).__name__} cannot be saved: {name!r} in its state "
                    f"is no tensor but of the type {type(value).__name__}. Pickle the classifier instead, or "
                    "keep such values out of state_dict()."
                )
            tensors[f"{number}.{name}"] = value.detach().cpu().contiguous().clone()
    return tensors


def _described(model: TrainedModel, weights: bytes, settings: dict[str, Any]) -> _Description:
    values = model.classes.tolist()
    columns, shape = model.feature_columns, model.input_shape
    return _Description(
        written_with={"laplaceconfidence": package_version(), "torch": str(torch.__version__)},
        classes=_Classes(kind=type(values[0]).__name__, values=values, names=list(model.class_names)),  # type: ignore[arg-type]
        input=_Input(
            kind="image" if len(shape) == 3 else "features",
            shape=list(shape),
            mean=model.mean.flatten().tolist(),
            deviation=model.deviation.flatten().tolist(),
            columns=None if columns is None else list(columns),
            crop=model.crop,
        ),
        network=_Networks(
            name=model.network,
            description=type(model.networks[0].backbone).__qualname__,
            feature_layer=model.feature_layer,
            number=len(model.networks),
            predictors=list(model.predictors),
            sums_logits=model.sums_logits,
            precision=model.precision,
            channels_last=model.channels_last,
        ),
        weights=_Weights(bytes=len(weights), sha256=hashlib.sha256(weights).hexdigest()),
        settings=settings,
    )


def _check_replaceable(target: Path) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise RunFolderError(f"The model cannot be written to {target}, which is a file. Name a folder.")
    own = (DESCRIPTION, WEIGHTS, TERMS, ARRAYS)
    if others := sorted(entry.name for entry in target.iterdir() if entry.name not in own):
        raise RunFolderError(
            f"The model cannot be written to {target}, which holds something else ({', '.join(others[:5])}). "
            "Name a new folder, or one with an older model."
        )


def _remove_leftovers(target: Path) -> None:
    """Remove what a process left that was killed while it saved a model here."""
    for entry in target.parent.iterdir():
        if entry.name.startswith(f".{target.name}.") and entry.name.endswith("-new"):
            shutil.rmtree(entry, ignore_errors=True)


def _write_flushed(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


# Reading


def _place(folder: Path) -> Path:
    """The folder of the model: the one that was named, or ``model/`` in the folder of a run."""
    inside = folder / MODEL
    for place in (folder, inside):
        restore_folder(place.absolute())
        if (place / DESCRIPTION).is_file():
            return place
    if (folder / SETTINGS).is_file():
        raise RunFolderError(
            f"The training run in {folder} has no model yet: it is not finished, or was trained with an "
            "older version of this package. Run the same training again to finish it."
        )
    found = "is not there" if not folder.exists() else f"has no {DESCRIPTION}"
    raise RunFolderError(
        f"{folder} must be the folder of a model, as save() writes it, or of a training run. It {found}."
    )


def _read_description(path: Path) -> _Description:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataFormatError(f"The model is damaged: {path} cannot be read ({error}).") from error
    stated = content.get("version") if isinstance(content, dict) else None
    if isinstance(stated, int) and stated > FORMAT_VERSION:
        by = content.get("written_with", {})
        writer = by.get("laplaceconfidence", "unknown") if isinstance(by, dict) else "unknown"
        raise DataFormatError(
            f"The model in {path.parent} has format version {stated}, but this laplaceconfidence "
            f"({package_version()}) reads versions up to {FORMAT_VERSION} only. It was written with "
            f"laplaceconfidence {writer}: install that version or a later one."
        )
    try:
        description = _Description.model_validate(content)
    except ValidationError as error:
        reasons = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'all of it'}: {one['msg']}" for one in error.errors()[:3]
        )
        raise DataFormatError(f"{path} does not describe a model of this package: {reasons}.") from error
    if description.version not in (1, FORMAT_VERSION):
        raise DataFormatError(f"{path} has the format version {stated}, which never existed: it is damaged.")
    return description


def _read_weights(path: Path, stated: _Weights) -> dict[str, Tensor]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataFormatError(
            f"The model is not complete: {path} cannot be read ({error.strerror or error})."
        ) from error
    if len(content) != stated.bytes:
        raise DataFormatError(
            f"The model is damaged: {path} has {len(content):,} bytes instead of {stated.bytes:,}. Copy it "
            "again."
        )
    if hashlib.sha256(content).hexdigest() != stated.sha256:
        raise DataFormatError(
            f"The model is damaged: the SHA-256 of {path} is not the one in {DESCRIPTION}. Copy both again."
        )
    try:
        return safetensors.torch.load(content)
    except safetensors.SafetensorError as error:
        raise DataFormatError(f"{path} is not a safetensors file: {error}.") from error


def _encoder(description: _Description, place: Path, named: str | None) -> Encoder | None:
    if description.encoder is None:
        if named is not None:
            raise must_be("encoder", f"left out, as the model in {place} has none", named)
        return None
    return read_encoder(place, parse_record(description.encoder, place), named)


def _names_of(number: int, tensors: dict[str, Tensor]) -> list[str]:
    return [name for name in tensors if name.startswith(f"{number}.")]


def _spec(described: _Networks, network: NetworkSpec | None, place: Path) -> NetworkSpec:
    if network is not None:
        return network
    name = described.name
    if name in NETWORKS:
        return name
    if name is not None and ":" not in name:
        advice = did_you_mean(name, NETWORKS) or "Install the version of laplaceconfidence it was saved with."
        raise must_be(
            "network", f"given, as the model in {place} has the unknown network {name!r}", None, advice
        )
    what = f"of your own, {name!r}" if name is not None else f"without a name ({described.description})"
    given = (
        f"Importing it runs its code: if you trust it, pass network={name!r} (--network {name})."
        if name is not None
        else "Pass the factory or a module of this kind, or 'package.module:factory'."
    )
    raise must_be("network", f"given, as the model in {place} has a network {what}", None, given)


def _built(spec: NetworkSpec, own: dict[str, Tensor], description: _Description, place: Path) -> Any:
    shape: Shape = network_shape(tuple(description.input.shape), description.input.crop)
    with torch.random.fork_rng():
        backbone: nn.Module = build_network(spec, len(description.classes.names), shape)
    try:
        backbone.load_state_dict(own)
    except RuntimeError as error:
        rule = f"the one that the model in {place} was trained with ({description.network.description})"
        raise must_be("network", rule, type(backbone).__name__, f"Its weights do not fit: {error}") from error
    return HeadedNetwork(backbone, description.network.feature_layer)
