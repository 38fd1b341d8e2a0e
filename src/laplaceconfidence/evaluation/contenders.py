"""The contenders of a bench: estimators and training methods with settings, and sweeps over settings."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from laplaceconfidence.auditing.fit_request import SET_BY_AUDIT
from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.evaluation.grid import BenchTask
from laplaceconfidence.evaluation.published_results import row_of_method
from laplaceconfidence.validation import did_you_mean, must_be

ALL = "all"


@dataclass(frozen=True, slots=True, eq=False)
class Contender:
    """An estimator or a training method with the settings that a bench gives it.

    Parameters
    ----------
    task : {"confidence", "training"}
        What is measured.
    name : str
        Its name in tables.
    kind : str
        Name of the estimator or the method.
    settings : mapping of str to Any
        Settings of the estimator or the method; the others keep their defaults, or the published values.
    training : mapping of str to Any
        Settings that all methods have, such as "rounds", for this contender only.
    swept : mapping of str to Any
        Those of its settings that a sweep varies.
    group : str
        The name without the swept settings: what the contenders of one sweep share.
    data, noises : tuple of str or None
        Where it is measured; ``None`` means everywhere.
    published : {"all", "method", "none"} or None
        Which published settings are used; ``None`` leaves it to the bench.
    published_as : str or None
        Its row in the published tables; ``None`` is that of the method, if it has no settings of its own.
    """

    task: BenchTask
    name: str
    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    swept: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""
    data: tuple[str, ...] | None = None
    noises: tuple[str, ...] | None = None
    published: str | None = None
    published_as: str | None = None

    def published_row(self, published: str = "all") -> str | None:
        """Its row in the published tables: the stated one, or that of the method with its published settings.

        ``published`` is which published settings the bench uses, unless the contender states it.
        """
        if self.published_as is not None or self.task != "training" or self.settings or self.training:
            return self.published_as
        return row_of_method(self.kind) if (self.published or published) == "all" else None

    def is_measured(self, data: str, noise: str) -> bool:
        """Whether the bench measures it on these data under this noise."""
        return (self.data is None or data in self.data) and (self.noises is None or noise in self.noises)


def expand(
    task: BenchTask, kinds: str | Sequence[str], settings: Mapping[str, Any], **common: Any
) -> list[Contender]:
    """The contenders of one entry of a bench file: one per kind and combination of swept settings.

    Parameters
    ----------
    task : {"confidence", "training"}
        What the kinds are.
    kinds : str or sequence of str
        Names of estimators or methods, or "all".
    settings : mapping of str to Any
        Settings by name. A list is a sweep over its values; a value that is itself a list is written as a
        list in a list.
    **common : Any
        Other fields of every ``Contender``, such as its ``name``.

    Returns
    -------
    list of Contender
    """
    known = known_kinds(task)
    given = [kinds] if isinstance(kinds, str) else list(kinds)
    names = list(known) if given == [ALL] else given
    base = common.pop("name", None)
    if base is not None and len(names) > 1:
        rule = "left out where one entry states several methods or estimators"
        raise must_be("contender.name", rule, base)
    found = []
    for kind in names:
        if kind not in known:
            rule = f"among {', '.join(map(repr, known))}, or {ALL!r}"
            parameter = "contender.method" if task == "training" else "contender.estimator"
            raise must_be(parameter, rule, kind, did_you_mean(kind, known))
        swept = {key: value for key, value in settings.items() if isinstance(value, list)}
        if empty := [key for key, values in swept.items() if not values]:
            raise must_be(f"contender.{empty[0]}", "a value, or a list of one or more", [])
        group = kind if base is None else base
        for values in itertools.product(*swept.values()):
            chosen = dict(zip(swept, values, strict=True))
            own, shared = _told_apart(task, kind, {**settings, **chosen})
            name = ", ".join([group, *(f"{key}={value_text(value)}" for key, value in chosen.items())])
            found.append(Contender(task, name, kind, own, shared, chosen, group, **common))
    return found


def with_settings(
    contenders: Sequence[Contender], settings: Mapping[str, Mapping[str, Any]]
) -> list[Contender]:
    """Contenders with the settings that a bench gives to methods by name, or to all that have them.

    Parameters
    ----------
    contenders : sequence of Contender
        The contenders; what they state themselves stays.
    settings : mapping of str to mapping
        Settings by the name of the method, or by "all".

    Returns
    -------
    list of Contender
    """
    if not settings:
        return list(contenders)
    from laplaceconfidence.training.methods.registry import METHODS, settings_of

    owned = {name: settings_of(name) for name in METHODS}
    for method, of_method in settings.items():
        if method != ALL and method not in METHODS:
            raise must_be(
                "settings", f"by the name of a method, or {ALL!r}", method, did_you_mean(method, METHODS)
            )
        valid = {name for names in owned.values() for name in names} if method == ALL else set(owned[method])
        for name, value in of_method.items():
            if name not in valid:
                rule = f"a setting of {'a method' if method == ALL else repr(method)}"
                raise must_be(f"settings.{method}.{name}", rule, value, did_you_mean(name, valid))
    found = []
    for contender in contenders:
        if contender.task == "training":
            of_all = {k: v for k, v in settings.get(ALL, {}).items() if k in owned[contender.kind]}
            given = {**of_all, **settings.get(contender.kind, {}), **contender.settings}
            contender = replace(contender, settings=given)
        found.append(contender)
    return found


def known_kinds(task: BenchTask) -> Mapping[str, Any]:
    """The estimators or methods that there are, by name."""
    if task == "confidence":
        return ESTIMATORS
    from laplaceconfidence.training.methods.registry import METHODS

    return METHODS


def value_text(value: Any) -> str:
    """A setting as text: 10, 0.5, true, words."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def check_different(contenders: Sequence[Contender], columns: Sequence[tuple[str, str]]) -> None:
    """Raise if two contenders of one name are measured on the same data under the same noise."""
    seen: set[tuple[str, str, str, str]] = set()
    for contender in contenders:
        for data, noise in columns:
            key = (contender.task, contender.name, data, noise)
            if not contender.is_measured(data, noise):
                continue
            if key in seen:
                rule = f"different from that of another contender ({data}, {noise})"
                raise must_be("contender.name", rule, contender.name)
            seen.add(key)


def _told_apart(
    task: BenchTask, kind: str, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the estimator or the method itself, and those that all methods share."""
    if task == "confidence":
        valid = [name for name in inspect.signature(ESTIMATORS[kind]).parameters if name not in SET_BY_AUDIT]
        shared: list[str] = []
    else:
        from laplaceconfidence.training.methods.registry import settings_of
        from laplaceconfidence.training.preset_tables import TrainingPreset

        valid = list(settings_of(kind))
        shared = [name for name in TrainingPreset.model_fields if name not in valid]
    for name, value in settings.items():
        if name == "random_state":
            raise must_be("contender.random_state", "left out: the seeds of the bench give it", value)
        if name not in valid and name not in shared:
            advice = did_you_mean(name, [*valid, *shared])
            rule = f"a setting of {kind!r} ({', '.join(valid) or 'it has none'})"
            rule += " or one that all methods share" if shared else ""
            raise must_be(f"contender.{name}", rule, value, advice)
    own = {name: value for name, value in settings.items() if name in valid}
    return own, {name: value for name, value in settings.items() if name not in valid}
