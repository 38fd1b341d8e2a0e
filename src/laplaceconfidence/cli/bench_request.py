"""What the user of ``laplaceconfidence bench`` asked for, and its words made definite."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.data.transitions import DIGITS_ASYMMETRIC
from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.exceptions import AdjustedSettingWarning
from laplaceconfidence.validation import check_integer, must_be

if TYPE_CHECKING:
    from laplaceconfidence.training.presets import Preset

ALL = "all"
DEFAULT_NOISES = ("symmetric:0.2", "symmetric:0.5", "symmetric:0.8")
OF_THE_MACHINE = ("device", "n_jobs", "n_workers", "checkpoint_seconds")  # settings that change no result


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRequest:
    """Everything that was said on the command line."""

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
        """Which class asymmetric noise takes for which; ``None`` where the classes themselves tell."""
        if not any(noise.kind == "asymmetric" for noise in noises):
            if self.mapping:
                rule = "left out unless one of the noises is asymmetric"
                raise must_be("mapping", rule, self.mapping[0])
            return None
        if not self.mapping:
            return dict(DIGITS_ASYMMETRIC) if self.source == "digits" else None
        pairs = [text.partition("=") for text in self.mapping]
        for text, (taken, equals, wrongly) in zip(self.mapping, pairs, strict=True):
            if not (taken and equals and wrongly):
                raise must_be("mapping", "written class=class, such as cat=dog", text)
        return {taken: wrongly for taken, _, wrongly in pairs}

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
    """The names in ``text``, each once, in the order in which they are known where all are wanted."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if names == (ALL,):
        return tuple(known)
    if not names:
        raise must_be(parameter, f"names with commas between them, or {ALL!r}", text)
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
            advice = f"Did you mean {close[0]!r}?" if close else ""
            raise must_be(parameter, f"among {', '.join(map(repr, known))}", name, advice)
    return names


def presets_by_method(name: str, methods: Sequence[str], changes: Sequence[str]) -> dict[str, Preset]:
    """The preset as each method takes it: without what only others have."""
    from laplaceconfidence.training.presets import load_preset

    return {
        method: load_preset(name, _changes_for(method, changes), overrides={"method": method})
        for method in methods
    }


def recorded(preset: Preset) -> dict[str, Any]:
    """The settings of a method that its results depend on, seeds aside."""
    settings: dict[str, Any] = preset.training.model_dump(mode="json", exclude_none=True)
    return {name: value for name, value in settings.items() if name not in (*OF_THE_MACHINE, "random_state")}


def _changes_for(method: str, changes: Sequence[str]) -> list[str]:
    """The changes of ``--set`` that concern a method; what only others have is left out, and told."""
    from laplaceconfidence.training.methods.registry import METHODS

    settings_of = {name: {one.name for one in fields(kind)} for name, kind in METHODS.items()}  # type: ignore[arg-type]
    foreign = set().union(*settings_of.values()) - settings_of[method]
    kept = []
    for change in changes:
        key = change.partition("=")[0].strip()
        head, dot, _ = key.partition(".")
        if key in ("random_state", "method") or head == "noise":
            given_by = {"random_state": "--seeds", "method": "--methods"}.get(key, "--noise")
            raise must_be("set", f"about other settings: this one is given by {given_by}", change)
        if dot and head in METHODS:
            if head == method:
                kept.append(change.strip().removeprefix(f"{head}."))
        elif key in foreign:
            warnings.warn(
                f"'{key}' is left out for {method!r}, which does not have it.",
                AdjustedSettingWarning,
                stacklevel=2,
            )
        else:
            kept.append(change)
    return kept
