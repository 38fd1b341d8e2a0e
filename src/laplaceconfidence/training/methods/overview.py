"""What lists of methods show: facts, settings with their defaults, and published settings, as text."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from laplaceconfidence.training.methods.published import PublishedSettings
from laplaceconfidence.training.methods.registry import METHODS, check_method_name


@dataclass(frozen=True, slots=True)
class MethodOverview:
    """One method as text.

    Attributes
    ----------
    name : str
        The name that presets and the command line use.
    class_name : str
        Name of its class.
    title : str
        What tables call it.
    summary : str
        The first sentence of its documentation.
    description : str
        The paragraph after that; empty if there is none.
    paper, year, networks, needs, cost : str
        Facts; ``needs`` is "-" if nothing has to be told, ``cost`` is relative to cross-entropy.
    defaults : dict of str to str
        Defaults of its settings, as ``--set`` takes them.
    published : tuple of PublishedSettings
        Settings that were published.
    """

    name: str
    class_name: str
    title: str
    summary: str
    description: str
    paper: str
    year: str
    networks: str
    needs: str
    cost: str
    defaults: dict[str, str]
    published: tuple[PublishedSettings, ...]


def describe_method(name: str) -> MethodOverview:
    """The overview of one method.

    Parameters
    ----------
    name : str
        A name of ``METHODS``.

    Returns
    -------
    MethodOverview
    """
    kind = METHODS[check_method_name(name)]
    method, facts = kind(), kind.facts
    paragraphs = [" ".join(part.split()) for part in (inspect.getdoc(kind) or "").split("\n\n")]
    described = len(paragraphs) > 1 and "Parameters ---" not in paragraphs[1]
    return MethodOverview(
        name=name,
        class_name=kind.__name__,
        title=(facts and facts.title) or kind.__name__,
        summary=paragraphs[0],
        description=paragraphs[1] if described else "",
        paper=facts.paper if facts else "-",
        year=str(facts.year) if facts and facts.year else "-",
        networks=str(method.n_networks),
        needs=", ".join(facts.needs) if facts and facts.needs else "-",
        cost=f"{facts.cost:.1f}" if facts else "-",
        defaults={
            field.name: as_written(getattr(method, field.name))
            for field in fields(kind)  # type: ignore[arg-type]
        },
        published=kind.published,
    )


def describe_methods() -> list[MethodOverview]:
    """The overviews of all methods, in the order of the registry."""
    return [describe_method(name) for name in METHODS]


def as_written(value: Any) -> str:
    """A value as ``--set`` takes it: 25, false, [150], words without quotes."""
    if value is None:
        return "(not set)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_inside, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name} = {_inside(one)}' for name, one in value.items())}}}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _inside(value: Any) -> str:
    """A value within a list or a table, where words have quotes."""
    return json.dumps(value) if isinstance(value, str) else as_written(value)


def settings_as_written(settings: Mapping[str, Any], prefix: str = "") -> str:
    """Settings as ``--set`` takes them, separated by commas."""
    return ", ".join(f"{prefix}{name}={as_written(value)}" for name, value in settings.items())


def noise_as_written(published: PublishedSettings) -> str:
    """The noise of published settings: "symmetric 20%, 50%"."""
    rates = ", ".join(f"{rate:.0%}" for rate in published.rates)
    return f"{published.noise} {rates}".strip()


NEEDS = (
    "A noise rate that is not given is estimated at the end of a plain phase, by the noise-aware audit of "
    "the features of samples that it did not train on."
)
"""What lists say below the column of needs."""

COST = (
    "Cost: computation of a round relative to cross-entropy, counted in passes (forward 1, training 3); for "
    "DivideMix, AugDesc and ITLM if half of the labels are kept, for other methods that leave samples out if "
    "they keep all."
)
"""What lists say about the column of costs."""
