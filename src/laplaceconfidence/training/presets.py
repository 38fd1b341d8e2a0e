"""Settings by name: the paper's and small ones, as TOML files with a check of every key.

A preset says how to train (``[training]``, the parameters of ``RobustClassifier``), how images are prepared
(``[data]``) and, for benchmarks on clean data, which noise is put into the labels first (``[noise]``). It may
``extends`` another one and then gives only what differs.
"""

from __future__ import annotations

import difflib
import tomllib
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from laplaceconfidence.exceptions import AdjustedSettingWarning, DataFormatError, InvalidInputError
from laplaceconfidence.validation import must_be

_FOLDER = resources.files("laplaceconfidence") / "presets"
_LONGEST_CHAIN = 5  # presets that extend presets


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NoiseSettings(_Settings):
    """Noise put into clean labels; see ``add_noise``."""

    kind: Literal["symmetric", "symmetric-excluding", "asymmetric", "pair", "instance"]
    rate: float = Field(ge=0, le=1)
    seed: int = Field(default=0, ge=0)


class DataSettings(_Settings):
    """How the data is prepared."""

    image_size: int | None = Field(default=None, ge=1)  # side that images are resized to
    test_share: float | None = Field(default=None, gt=0, lt=1)  # set aside, with labels as they came


class _ViewSettings(_Settings):
    """A view in detail: of images, or ``mask``, the share of entries of feature vectors that become 0."""

    mask: float | None = Field(default=None, ge=0, lt=1)

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        if self.mask is not None and self.model_fields_set != {"mask"}:
            raise ValueError("'mask' is for feature vectors and stands alone")
        return self


class WeakSettings(_ViewSettings):
    """The weak view in detail; see ``WeakAugment``."""

    padding: int = Field(default=4, ge=0)
    flip: bool = True


class StrongSettings(_ViewSettings):
    """The strong view in detail; see ``RandAugment``."""

    n_operations: int = Field(default=3, ge=0)
    cutout: bool = True


class TrainingPreset(_Settings):
    """Parameters of ``RobustClassifier``; those that are not given keep its defaults."""

    network: str | None = None
    method: str | None = None
    rounds: int | None = None
    warmup: int | None = None
    n_neighbors: int | None = None
    alpha: float | None = None
    n_components: int | None = None
    sharpen: float | None = None
    strong: str | StrongSettings | None = None
    weak: str | WeakSettings | None = None
    confidence: str | None = None
    n_networks: int | None = None
    passes: int | None = None
    prior_weight: float | None = None
    entropy_penalty: bool | None = None
    method_options: dict[str, Any] | None = None
    validation_fraction: float | None = None
    batch_size: int | None = None
    optimizer: str | None = None
    learning_rate: float | None = None
    momentum: float | None = None
    weight_decay: float | None = None
    learning_rate_drops: tuple[float, ...] | None = None
    drop_factor: float | None = None
    precision: str | None = None
    channels_last: bool | None = None
    compile: bool | None = None
    eval_batch_size: int | None = None
    feature_layer: str | None = None
    device: str | None = None
    n_workers: int | None = None
    n_jobs: int | None = None
    random_state: int | None = None
    checkpoint_seconds: float | None = None

    def parameters(self) -> dict[str, Any]:
        """The arguments of ``RobustClassifier`` that this preset gives."""
        from laplaceconfidence.training.augment.cutout import Cutout
        from laplaceconfidence.training.augment.randaugment import RandAugment
        from laplaceconfidence.training.augment.weak import WeakAugment
        from laplaceconfidence.training.views import MaskFeatures

        given = {name: getattr(self, name) for name in sorted(self.model_fields_set)}
        for name in ("weak", "strong"):
            view = getattr(self, name)
            if isinstance(view, _ViewSettings) and view.mask is not None:
                given[name] = MaskFeatures(view.mask)
            elif isinstance(view, WeakSettings):
                given[name] = WeakAugment(padding=view.padding, flip=view.flip)
            elif isinstance(view, StrongSettings):
                given[name] = RandAugment(view.n_operations, Cutout() if view.cutout else None)
        return given


class Preset(_Settings):
    """Everything a preset says."""

    description: str = ""
    data: DataSettings = DataSettings()
    noise: NoiseSettings | None = None
    training: TrainingPreset = TrainingPreset()


_TABLES: dict[str, type[_Settings]] = {
    "training": TrainingPreset,
    "noise": NoiseSettings,
    "data": DataSettings,
    "weak": WeakSettings,
    "strong": StrongSettings,
}
# Of several problems with one value the most telling comes first: that a table is no word is the least.
_TELLING = {"extra_forbidden": 0, "string_type": 2}


def preset_names() -> list[str]:
    """The presets that come with the package."""
    return sorted(
        file.name.removesuffix(".toml") for file in _FOLDER.iterdir() if file.name.endswith(".toml")
    )


def load_preset(
    name: str, changes: Iterable[str] = (), *, overrides: Mapping[str, Any] | None = None
) -> Preset:
    """The preset of that name, or of a TOML file, with ``changes`` such as ``"rounds=20"`` made to it.

    Keys of ``[training]`` stand alone; others are written ``noise.rate=0.4`` or ``data.image_size=64``.
    Values are written as in TOML, words without quotes. ``overrides`` are training settings by name.
    """
    wanted: dict[str, Any] = {"training": dict(overrides or {})}
    for change in changes:
        _change(wanted, change)
    content, where = _content(name), f"The preset {name!r}"
    _checked(content, where)  # before changes to it hide what is wrong
    method = wanted["training"].get("method")
    if isinstance(method, str) and method != content.get("training", {}).get("method", "laplace"):
        _leave_out_for(method, content.get("training", {}))
    return _checked(_merged(content, wanted), where)


def _content(name: str, depth: int = 0) -> dict[str, Any]:
    text, where = _text(name)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataFormatError(f"{where} is not TOML: {error}.") from error
    base = content.pop("extends", None)
    if base is None:
        return content
    if not isinstance(base, str) or depth == _LONGEST_CHAIN:
        raise must_be("extends", "the name of a preset that does not extend this one", base)
    return _merged(_content(base, depth + 1), content)


def _text(name: str) -> tuple[str, str]:
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise must_be("preset", "the name of a preset or a path to an existing TOML file", name)
        try:
            return path.read_text(encoding="utf-8"), f"The preset {path}"
        except UnicodeDecodeError as error:
            raise DataFormatError(f"The preset {path} is not text in UTF-8: {error}.") from error
    names = preset_names()
    if name not in names:
        close = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
        advice = f"The closest: {', '.join(close)}." if close else f"There are {', '.join(names)}."
        raise must_be("preset", "the name of a preset or a path to a TOML file", name, advice)
    return (_FOLDER / f"{name}.toml").read_text(encoding="utf-8"), f"The preset {name!r}"


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _change(content: dict[str, Any], change: str) -> None:
    """Make one change written ``key=value`` or ``table.key=value``."""
    key, equals, written = change.partition("=")
    key = key.strip()
    if not equals or not key:
        raise must_be("set", "written key=value, such as rounds=20 or noise.rate=0.4", change)
    *tables, last = key.split(".")
    if not tables or tables[0] not in Preset.model_fields:
        tables = ["training", *tables]
    table = content
    for name in tables:
        inner = table.get(name)
        table[name] = inner if isinstance(inner, dict) else {}
        table = table[name]
    table[last] = _value(written.strip())


def _leave_out_for(method: str, training: dict[str, Any]) -> None:
    """Remove what the preset sets for its own method and another one does not have."""
    from laplaceconfidence.training.methods.registry import METHODS

    if method not in METHODS:
        return  # RobustClassifier says so, with the names that exist
    settings_of = {name: {field.name for field in fields(kind)} for name, kind in METHODS.items()}  # type: ignore[arg-type]
    foreign = set().union(*settings_of.values(), {"method_options"}) - settings_of[method]
    if dropped := sorted(foreign & training.keys()):
        for name in dropped:
            del training[name]
        warnings.warn(
            f"The preset's {', '.join(dropped)} are left out: method {method!r} does not have them.",
            AdjustedSettingWarning,
            stacklevel=3,
        )


def _value(written: str) -> Any:
    """A value as TOML has it; what is none there is a word without quotes."""
    try:
        return tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        return written


def _checked(content: dict[str, Any], where: str) -> Preset:
    try:
        return Preset.model_validate(content)
    except ValidationError as error:
        raise InvalidInputError(_explained(error, where)) from error


def _explained(error: ValidationError, where: str) -> str:
    """The first problem in words: the key, the rule and the value; for unknown keys the valid ones."""
    problems = sorted(error.errors(), key=lambda one: _TELLING.get(one["type"], 1))
    problem = problems[0]
    path: list[str] = []
    table: type[_Settings] = Preset
    for part in problem["loc"]:  # among the keys pydantic names the members of unions it tried
        if part in table.model_fields:
            path.append(str(part))
            table = _TABLES.get(str(part), table)
    if problem["type"] == "extra_forbidden":
        path.append(str(problem["loc"][-1]))
    shown = ".".join(path[1:] if path[0] == "training" and len(path) > 1 else path)
    if problem["type"] != "extra_forbidden":
        return f"{where}: '{shown}' cannot be {problem['input']!r}: {problem['msg']}."
    valid = sorted(table.model_fields)
    close = difflib.get_close_matches(path[-1], valid, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{where} has no setting '{shown}'.{hint} The valid ones here: {', '.join(valid)}."
