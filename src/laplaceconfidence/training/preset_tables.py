"""The tables of a preset, as pydantic models that check every key."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from laplaceconfidence.data.images import CenterSquare
from laplaceconfidence.training.augment.cutout import Cutout
from laplaceconfidence.training.augment.randaugment import RandAugment
from laplaceconfidence.training.augment.resized_crop import RandomResizedCrop
from laplaceconfidence.training.augment.weak import WeakAugment
from laplaceconfidence.training.methods.interface import Method
from laplaceconfidence.training.methods.registry import build_method, check_method_name
from laplaceconfidence.training.sample_views import MaskFeatures
from laplaceconfidence.validation import must_be

_Auto = Literal["auto"]
_AutoOrNone = Literal["auto", "none"]  # TOML has no word for None

_NOT_USED: dict[str, Any] = {
    "schedule": "step",
    "learning_rate_warmup": None,
    "nesterov": False,
    "clip_gradients": None,
    "weight_average": None,
    "average_evidence": False,
}


class PresetTable(BaseModel):
    """Base class of the tables of a preset: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoiseSettings(PresetTable):
    """Noise added to clean labels; see ``add_noise``. Without a seed of its own it has that of the run."""

    kind: Literal["symmetric", "symmetric-excluding", "asymmetric", "pair", "instance"]
    rate: float = Field(ge=0, le=1)
    seed: int | None = Field(default=None, ge=0)


class DataSettings(PresetTable):
    """How the data is prepared."""

    image_size: int | None = Field(default=None, ge=1)  # side in pixels that images are resized to
    keep_proportions: bool = False  # whether that is the shorter side, and the center square is taken
    test_share: float | None = Field(default=None, gt=0, lt=1)  # share set aside before noise is added

    def size(self, given: int | None = None) -> int | None:
        """The size that images are resized to: ``given`` by an option, or that of the preset."""
        side = self.image_size if given is None else given
        return CenterSquare(side) if side is not None and self.keep_proportions else side


class _ViewSettings(PresetTable):
    """A view in detail: of images, or of feature vectors with ``mask``, the share of entries set to 0."""

    mask: float | None = Field(default=None, ge=0, lt=1)

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        if self.mask is not None and self.model_fields_set != {"mask"}:
            raise ValueError("'mask' is for feature vectors and cannot be combined with other settings")
        return self


class WeakSettings(_ViewSettings):
    """The weak view in detail; see ``WeakAugment`` and ``RandomResizedCrop``."""

    padding: int = Field(default=4, ge=0)
    flip: bool = True
    resized_crop: int | None = Field(default=None, ge=1)  # side; see ``RandomResizedCrop``

    @model_validator(mode="after")
    def _one_kind_of_crop(self) -> Self:
        if self.resized_crop is not None and "padding" in self.model_fields_set:
            raise ValueError("'resized_crop' takes a part of the image and cannot be combined with 'padding'")
        return self


class StrongSettings(_ViewSettings):
    """The strong view in detail; see ``RandAugment``."""

    n_operations: int = Field(default=3, ge=0)
    cutout: bool = True


class TrainingPreset(PresetTable):
    """Parameters of ``RobustClassifier`` that all methods share; others keep the defaults of the class."""

    network: str | None = None
    rounds: int | _Auto | None = None
    strong: str | StrongSettings | tuple[str | StrongSettings, ...] | None = None
    weak: str | WeakSettings | None = None
    validation_fraction: float | None = None
    batch_size: int | _Auto | None = None
    optimizer: str | None = None
    learning_rate: float | _Auto | None = None
    momentum: float | None = None
    weight_decay: float | None = None
    schedule: str | None = None
    learning_rate_drops: tuple[float, ...] | _Auto | None = None
    drop_factor: float | None = None
    learning_rate_warmup: float | _AutoOrNone | None = None
    nesterov: bool | _Auto | None = None
    clip_gradients: float | _AutoOrNone | None = None
    weight_average: float | _AutoOrNone | None = None
    average_evidence: bool | _Auto | None = None
    precision: str | None = None
    channels_last: bool | _Auto | None = None
    compile: bool | None = None
    eval_batch_size: int | None = None
    feature_layer: str | None = None
    class_weight: Literal["balanced", "none"] | None = None
    device: str | None = None
    n_workers: int | None = None
    n_jobs: int | None = None
    random_state: int | None = None
    checkpoint_seconds: float | None = None

    def parameters(self) -> dict[str, Any]:
        """The arguments of ``RobustClassifier`` that this table states.

        With a learning rate it states how weights change altogether: what it leaves out of that is not used.
        """
        given = {name: getattr(self, name) for name in sorted(self.model_fields_set)}
        if "learning_rate" in given:
            given = _NOT_USED | given
        for name in ("learning_rate_warmup", "clip_gradients", "weight_average", "class_weight"):
            if given.get(name) == "none":
                given[name] = None
        for name in given.keys() & {"weak", "strong"}:
            view = given[name]
            given[name] = tuple(map(_built, view)) if isinstance(view, tuple) else _built(view)
        return given


def _built(view: Any) -> Any:
    """A view as ``RobustClassifier`` takes it: names stay as they are."""
    if isinstance(view, _ViewSettings) and view.mask is not None:
        return MaskFeatures(view.mask)
    if isinstance(view, WeakSettings) and view.resized_crop is not None:
        return RandomResizedCrop(view.resized_crop, flip=view.flip)
    if isinstance(view, WeakSettings):
        return WeakAugment(padding=view.padding, flip=view.flip)
    if isinstance(view, StrongSettings):
        return RandAugment(view.n_operations, Cutout() if view.cutout else None)
    return view


class Preset(PresetTable):
    """Everything that a preset states."""

    description: str = ""
    data: DataSettings = DataSettings()
    noise: NoiseSettings | None = None
    training: TrainingPreset = TrainingPreset()
    method: dict[str, Any] = {}  # "name" and the settings of that method; empty if none is named

    def build_method(self) -> Method | None:
        """The training method with its settings; ``None`` if the preset names no method."""
        if not self.method:
            return None
        if "name" not in self.method:
            given = next(iter(self.method))
            advice = (
                f"Name it in the [method] table, or with --set method.name=laplace --set method.{given}=..."
            )
            raise must_be("method.name", "given where the preset states settings of a method", None, advice)
        settings = {name: value for name, value in self.method.items() if name != "name"}
        return build_method(check_method_name(self.method["name"]), settings)

    def parameters(self) -> dict[str, Any]:
        """The arguments of ``RobustClassifier`` that this preset states, the method among them."""
        method = self.build_method()
        return self.training.parameters() | ({} if method is None else {"method": method})
