"""Presets: settings of the paper and smaller ones, as TOML files whose keys are all checked.

A preset has up to four tables: ``[training]``, the parameters of ``RobustClassifier`` that all methods share;
``[method]``, the ``name`` of a training method and its own settings; ``[data]``, how images are prepared; and
``[noise]``, for benchmarks on clean data, the noise that is added to the labels first. A preset that
``extends`` another one states only what differs; naming another method replaces the whole ``[method]`` table.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from laplaceconfidence.exceptions import AdjustedSettingWarning, DataFormatError, InvalidInputError
from laplaceconfidence.training.methods.registry import check_method_name, settings_of
from laplaceconfidence.training.preset_tables import (
    DataSettings,
    NoiseSettings,
    Preset,
    PresetTable,
    StrongSettings,
    TrainingPreset,
    WeakSettings,
)
from laplaceconfidence.validation import did_you_mean, must_be

_FOLDER = resources.files("laplaceconfidence") / "presets"
_LONGEST_CHAIN = 5  # presets that extend presets
_OF_ESTIMATOR = ("n_neighbors", "alpha", "n_components")  # settings that methods pass to their estimator
_OF_VIEWS = ("confidence_from", "targets", "estimate_every")

_TABLES: dict[str, type[PresetTable]] = {
    "training": TrainingPreset,
    "noise": NoiseSettings,
    "data": DataSettings,
    "weak": WeakSettings,
    "strong": StrongSettings,
}
# Which of several problems with one value is shown: lower numbers first.
_PRIORITY = {"extra_forbidden": 0, "string_type": 2, "literal_error": 2}


def preset_names() -> list[str]:
    """The names of the presets that come with the package.

    Returns
    -------
    list of str
        Sorted.
    """
    return sorted(
        file.name.removesuffix(".toml") for file in _FOLDER.iterdir() if file.name.endswith(".toml")
    )


def load_preset(
    name: str,
    changes: Iterable[str] = (),
    *,
    overrides: Mapping[str, Any] | None = None,
    method: str | None = None,
    method_settings: Mapping[str, Any] | None = None,
) -> Preset:
    """A preset by its name or from a TOML file, with changes made to it.

    Parameters
    ----------
    name : str
        One of ``preset_names()``, or a path that ends in ".toml".
    changes : iterable of str, default=()
        Changes such as "rounds=20", "method.warmup=10", "noise.rate=0.4" or "data.image_size=64". Keys of
        ``[training]`` stand alone. Values are written as in TOML, words without quotes.
    overrides : mapping of str to Any, optional
        Settings of ``[training]`` by name.
    method : str, optional
        The training method. If it is another one than the preset's, the preset's ``[method]`` table does not
        apply: the method keeps its own defaults, and a warning says so.
    method_settings : mapping of str to Any, optional
        Settings of the method by name.

    Returns
    -------
    Preset
    """
    of_method = {**({"name": method} if method else {}), **(method_settings or {})}
    given = {"training": dict(overrides or {}), "method": of_method}
    wanted = _merged(given, parse_changes(changes))
    content, where = _content(name), f"The preset {name!r}"
    _checked(content, where)  # before changes hide what is wrong in it
    before = content.get("method", {})
    merged = _merged_presets(content, wanted)
    preset = _checked(merged, where)
    if len(before) > 1 and (now := preset.method["name"]) != before["name"]:
        warnings.warn(
            f"The preset's [method] settings are for {before['name']!r} and do not apply: {now!r} keeps its "
            "own defaults, apart from what was set for it.",
            AdjustedSettingWarning,
            stacklevel=2,
        )
    return preset


def parse_changes(changes: Iterable[str]) -> dict[str, Any]:
    """Parse changes such as "rounds=20" and "method.warmup=10" into the tables of a preset."""
    tables: dict[str, Any] = {}
    for change in changes:
        _change(tables, change)
    return tables


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
    return _merged_presets(_content(base, depth + 1), content)


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
        advice = did_you_mean(name, names) or f"There are {', '.join(names)}."
        raise must_be("preset", "the name of a preset or a path to a TOML file", name, advice)
    return (_FOLDER / f"{name}.toml").read_text(encoding="utf-8"), f"The preset {name!r}"


def merged_method_settings(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a method with changes; parameters of a confidence estimator never reach another one.

    Parameters
    ----------
    base, changes : mapping of str to Any
        Settings by name.

    Returns
    -------
    dict of str to Any
    """
    usual = "laplace"
    if changes.get("confidence", base.get("confidence", usual)) != base.get("confidence", usual):
        # Two views, and what is made of them, are for the estimator that takes several.
        of_views = _OF_VIEWS if base.get("confidence_from") == "both" else ()
        base = {name: value for name, value in base.items() if name not in (*_OF_ESTIMATOR, *of_views)}
    return {**base, **changes}


def _merged_presets(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """``base`` with ``changes``; settings of a method or of a schedule never reach another one."""
    training, changed = base.get("training"), changes.get("training")
    if isinstance(training, dict) and isinstance(changed, dict) and changed.get("schedule") is not None:
        same = changed["schedule"] == training.get("schedule", "step")
        of_schedule = () if same else ("learning_rate_drops", "learning_rate_warmup")
        kept = {name: value for name, value in training.items() if name not in of_schedule}
        base = {**base, "training": kept}
    before, now = base.get("method"), changes.get("method")
    if (
        isinstance(before, dict)
        and isinstance(now, dict)
        and now.get("name", before.get("name")) != before.get("name")
    ):
        base = {**base, "method": {}}
    elif isinstance(before, dict) and isinstance(now, dict):
        changes = {**changes, "method": merged_method_settings(before, now)}
        base = {**base, "method": {}}
    return _merged(base, changes)


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
        rule = "written key=value, such as rounds=20, method.warmup=10 or noise.rate=0.4"
        raise must_be("set", rule, change)
    key = "method.name" if key == "method" else key
    *tables, last = key.split(".")
    if not tables or tables[0] not in Preset.model_fields:
        tables = ["training", *tables]
    table = content
    for name in tables:
        inner = table.get(name)
        table[name] = inner if isinstance(inner, dict) else {}
        table = table[name]
    table[last] = _value(written.strip())


def _value(written: str) -> Any:
    """A value written as in TOML; anything else is a string without quotes."""
    try:
        return tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        return written


def _checked(content: dict[str, Any], where: str) -> Preset:
    try:
        preset = Preset.model_validate(content)
    except ValidationError as error:
        raise InvalidInputError(_explained(error, where, content.get("method"))) from error
    preset.build_method()  # fails for settings that the method does not have
    return preset


def _explained(error: ValidationError, where: str, method: Any) -> str:
    """The first problem in words: the key, the rule and the value; for unknown keys the valid ones."""
    problems = sorted(error.errors(), key=lambda one: _PRIORITY.get(one["type"], 1))
    problem = problems[0]
    path: list[str] = []
    table: type[PresetTable] = Preset
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
    name = method.get("name") if isinstance(method, dict) else None
    own: list[str] = []
    if table is TrainingPreset and isinstance(name, str):
        own = sorted(settings_of(check_method_name(name)))
    if path[-1] in own:
        return f"{where} has no setting '{shown}'. It is a setting of the method: write 'method.{path[-1]}'."
    parts = [
        f"{where} has no setting '{shown}'.",
        did_you_mean(path[-1], [*valid, *own], dict.fromkeys(own, "method.")),
        f"The valid ones here: {', '.join(valid)}.",
        f"Those of the method: {', '.join(f'method.{setting}' for setting in own)}." if own else "",
    ]
    return " ".join(part for part in parts if part)
