"""The arguments of ``laplaceconfidence bench``, parsed and checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.data.transitions import DIGITS_ASYMMETRIC
from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.validation import check_integer, did_you_mean, must_be

if TYPE_CHECKING:
    from laplaceconfidence.training.preset_tables import Preset

ALL = "all"
DEFAULT_NOISES = ("symmetric:0.2", "symmetric:0.5", "symmetric:0.8")
WITHOUT_EFFECT = ("device", "n_jobs", "n_workers", "checkpoint_seconds")  # settings that change no result


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRequest:
    """The arguments of the command."""

    source: str
    noises: tuple[str, ...] = ()
    n_seeds: int = 3
    estimators: str | None = None  # "a,b", or "all"
    methods: str | None = None
    mapping: tuple[str, ...] = ()  # "class=class"
    preset: str | None = None
    changes: tuple[str, ...] = ()  # "key=value"
    read_options: Mapping[str, Any] = field(default_factory=dict)
    image_size: int | None = None
    skip_bad: bool = False
    test: str | None = None
    test_share: float | None = None
    device: str | None = None
    n_jobs: int | None = None
    out: Path | None = None

    def seeds(self) -> tuple[int, ...]:
        return tuple(range(check_integer(self.n_seeds, "seeds", minimum=1)))

    def parsed_noises(self) -> tuple[Noise, ...]:
        """The noises, each once."""
        return tuple(dict.fromkeys(Noise.parse(text) for text in self.noises or DEFAULT_NOISES))

    def chosen_estimators(self) -> tuple[str, ...]:
        if self.estimators is None:
            return () if self.methods is not None else tuple(ESTIMATORS)
        return chosen(self.estimators, ESTIMATORS, "estimators")

    def chosen_methods(self) -> tuple[str, ...]:
        if self.methods is None:
            self._refuse_training_options()
            return ()
        from laplaceconfidence.cli.errors import check_torch

        check_torch("A bench of training methods")
        from laplaceconfidence.training.methods.registry import METHODS

        return chosen(self.methods, METHODS, "methods")

    def parsed_mapping(self, noises: Sequence[Noise]) -> dict[str, str] | None:
        """Which class asymmetric noise replaces by which; ``None`` where the class names imply it."""
        if not any(noise.kind == "asymmetric" for noise in noises):
            if self.mapping:
                rule = "left out unless one of the noises is asymmetric"
                raise must_be("mapping", rule, self.mapping[0])
            return None
        if not self.mapping:
            return dict(DIGITS_ASYMMETRIC) if self.source == "digits" else None
        pairs = [text.partition("=") for text in self.mapping]
        for text, (true, equals, wrong) in zip(self.mapping, pairs, strict=True):
            if not (true and equals and wrong):
                raise must_be("mapping", "written class=class, such as cat=dog", text)
        return {true: wrong for true, _, wrong in pairs}

    def _refuse_training_options(self) -> None:
        given = {
            "preset": self.preset,
            "set": self.changes[0] if self.changes else None,
            "test": self.test,
            "test_share": self.test_share,
        }
        for name, value in given.items():
            if value is not None:
                raise must_be(name, "left out unless --methods names training methods", value)


def chosen(text: str, known: Collection[str], parameter: str) -> tuple[str, ...]:
    """The names in ``text``, each once; all known ones for "all"."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if names == (ALL,):
        return tuple(known)
    if not names:
        raise must_be(parameter, f"names with commas between them, or {ALL!r}", text)
    for name in names:
        if name not in known:
            rule = f"among {', '.join(map(repr, known))}"
            raise must_be(parameter, rule, name, did_you_mean(name, known))
    return names


def presets_by_method(name: str, methods: Sequence[str], changes: Sequence[str]) -> dict[str, Preset]:
    """The preset as each method uses it.

    Parameters
    ----------
    name : str
        Name or path of the preset. Its ``[method]`` settings are used for the method that they are for; the
        others keep their own defaults.
    methods : sequence of str
        The methods that are compared.
    changes : sequence of str
        Changes such as "rounds=5" for all methods and "laplace.n_neighbors=10" for one.

    Returns
    -------
    dict of str to Preset
        By method.
    """
    from laplaceconfidence.training.presets import load_preset

    for change in changes:
        _check_change(change, methods)
    return {method: load_preset(name, _changes_for(method, changes), method=method) for method in methods}


def recorded(preset: Preset) -> dict[str, Any]:
    """The settings that the results of a method depend on, without the seed."""
    settings: dict[str, Any] = preset.training.model_dump(mode="json", exclude_none=True)
    kept = {name: value for name, value in settings.items() if name not in (*WITHOUT_EFFECT, "random_state")}
    own = {f"method.{name}": value for name, value in preset.method.items() if name != "name"}
    return kept | own


def _check_change(change: str, methods: Sequence[str]) -> None:
    """Raise for settings that other options give, and for settings of a method that is not named."""
    from laplaceconfidence.training.methods.registry import METHODS, settings_of
    from laplaceconfidence.training.preset_tables import TrainingPreset

    key = change.partition("=")[0].strip()
    head, _, rest = key.partition(".")
    given_by = {
        "random_state": "--seeds",
        "method": "--methods",
        "method.name": "--methods",
        "noise": "--noise",
    }
    if option := given_by.get(key) or given_by.get(head if head == "noise" else ""):
        raise must_be("set", f"about other settings: this one is given by {option}", change)
    if head in METHODS and head not in methods:
        raise must_be("set", f"about methods that are compared ({', '.join(methods)})", change)
    setting = rest if head == "method" else key
    if head != "method" and (head in METHODS or key in TrainingPreset.model_fields):
        return
    if owners := [method for method in methods if setting in settings_of(method)]:
        advice = f"Write {' or '.join(f'{owner}.{setting}' for owner in owners)}."
        raise must_be("set", "written with the name of the method for a method's own setting", change, advice)
    if head == "method":
        raise must_be("set", "written with the name of a method instead of 'method'", change)
    if not rest:
        prefixes = {name: f"{method}." for method in methods for name in settings_of(method)}
        hint = did_you_mean(key, [*TrainingPreset.model_fields, *prefixes], prefixes)
        raise must_be("set", "a setting and its value", change, hint)


def _changes_for(method: str, changes: Sequence[str]) -> list[str]:
    """The changes of ``--set`` for one method, as ``load_preset`` takes them."""
    from laplaceconfidence.training.methods.registry import METHODS

    found = []
    for change in (change.strip() for change in changes):
        head, dot, rest = change.partition(".")
        if not dot or head not in METHODS:
            found.append(change)
        elif head == method:
            found.append(f"method.{rest}")
    return found
