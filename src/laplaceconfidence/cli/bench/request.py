"""The arguments of ``laplaceconfidence bench``, parsed and checked, and the bench that they ask for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laplaceconfidence.cli.errors import check_torch
from laplaceconfidence.cli.sources import stem_of
from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.evaluation.bench_file import Bench, checked_bench, is_bench_file, load_bench
from laplaceconfidence.evaluation.contenders import Contender
from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.validation import check_integer, did_you_mean, must_be

if TYPE_CHECKING:
    from laplaceconfidence.training.preset_tables import Preset

ALL = "all"
DEFAULT_SEEDS = 3
DEFAULT_NOISES = ("symmetric:0.2", "symmetric:0.5", "symmetric:0.8")
WITHOUT_EFFECT = ("device", "n_jobs", "n_workers", "checkpoint_seconds")  # settings that change no result


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRequest:
    """The arguments of the command."""

    source: str  # data, a bench file, or the name of one
    noises: tuple[str, ...] = ()
    n_seeds: int | None = None
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
    data: tuple[str, ...] = ()  # "name=source"
    shard: str | None = None  # "2/8"
    dry_run: bool = False

    @property
    def needs_tests(self) -> bool:
        """Whether training methods are measured on test data."""
        return True

    @property
    def folder(self) -> Path:
        """The folder of the bench."""
        return self.out or Path(f"laplaceconfidence-bench-{stem_of(self.source)}")

    def bench(self) -> Bench:
        """What is measured on what."""
        if is_bench_file(self.source):
            return self._from_file()
        if self.data:
            raise must_be("data", "left out unless a bench file is given", self.data[0])
        noises = tuple(dict.fromkeys(Noise.parse(text) for text in self.noises or DEFAULT_NOISES))
        contenders = [Contender("confidence", name, name) for name in self.chosen_estimators()]
        methods = self.chosen_methods()
        shared, own, of_data = _changes_by_method(self.changes, methods)
        contenders += [Contender("training", name, name, own[name]) for name in methods]
        content: dict[str, Any] = {
            "name": stem_of(self.source),
            "source": self.source,
            "noises": [noise.text for noise in noises],
            "mapping": self.parsed_mapping(noises),
            "test": [{"name": self.test, "source": self.test}] if self.test else [],
            "test_share": self.test_share or of_data.get("test_share"),
            "image_size": of_data.get("image_size") if self.image_size is None else self.image_size,
            "skip_bad": self.skip_bad,
            **self.read_options,
        }
        checked = checked_bench({"data": [content], "contender": [{"estimator": "all"}]}, "The bench")
        return Bench(
            data=checked.data,
            contenders=tuple(contenders),
            seeds=self.seeds(),
            preset=self.preset,
            training=shared,
        )

    def _from_file(self) -> Bench:
        refused = {
            "noise": self.noises,
            "estimators": self.estimators,
            "methods": self.methods,
            "mapping": self.mapping,
            "preset": self.preset,
            "image_size": self.image_size,
            "skip_bad": self.skip_bad or None,
            "test": self.test,
            "test_share": self.test_share,
            **self.read_options,
        }
        for name, value in refused.items():
            if value:
                raise must_be(name, "left out where a bench file states everything", value)
        pairs = [text.partition("=") for text in self.data]
        for text, (name, equals, source) in zip(self.data, pairs, strict=True):
            if not (name and equals and source):
                raise must_be("data", "written name=path, such as CIFAR-10=/data/cifar", text)
        file = load_bench(self.source, {name: source for name, _, source in pairs})
        if any(table.method is not None for table in file.contender):
            check_torch("A bench of training methods")
        bench = file.bench()
        if not bench.has_training and self.changes:
            raise must_be("set", "left out unless training methods are compared", self.changes[0])
        if bench.has_training and self.changes:
            shared, _, of_data = _changes_by_method(self.changes, ())
            if of_data:
                raise must_be("set", "about settings of the training", self.changes[0])
            bench = replace(bench, training={**bench.training, **shared})
        return bench if self.n_seeds is None else replace(bench, seeds=self.seeds())

    def seeds(self) -> tuple[int, ...]:
        n_seeds = DEFAULT_SEEDS if self.n_seeds is None else self.n_seeds
        return tuple(range(check_integer(n_seeds, "seeds", minimum=1)))

    def chosen_estimators(self) -> tuple[str, ...]:
        if self.estimators is None:
            return () if self.methods is not None else tuple(ESTIMATORS)
        return chosen(self.estimators, ESTIMATORS, "estimators")

    def chosen_methods(self) -> tuple[str, ...]:
        if self.methods is None:
            self._refuse_training_options()
            return ()
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
            return None
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


def recorded(preset: Preset) -> dict[str, Any]:
    """The settings that the results of a method depend on, without the seed."""
    settings: dict[str, Any] = preset.training.model_dump(mode="json", exclude_none=True, exclude_unset=True)
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


def _changes_by_method(
    changes: Sequence[str], methods: Sequence[str]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]], dict[str, Any]]:
    """The changes of ``--set``: of settings that all methods share, of each method's own, and of the data."""
    own: dict[str, dict[str, Any]] = {method: {} for method in methods}
    shared: dict[str, Any] = {}
    of_data: dict[str, Any] = {}
    if not changes:
        return shared, own, of_data
    from laplaceconfidence.training.presets import parse_changes

    plain = []
    for change in (change.strip() for change in changes):
        _check_change(change, methods)
        head, dot, rest = change.partition(".")
        if dot and head in methods:
            own[head] |= parse_changes([f"method.{rest}"])["method"]
        else:
            plain.append(change)
    tables = parse_changes(plain)
    return tables.get("training", {}), own, tables.get("data", {})
