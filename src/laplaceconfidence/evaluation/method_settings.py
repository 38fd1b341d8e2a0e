"""The settings of a training method in a cell: preset, published values, bench file and contender.

Later ones win: the preset that all methods share; the settings that were published for the method on these
data under this noise; ``[training]`` of the bench file; the contender's own.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from laplaceconfidence.evaluation.contenders import Contender
from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.exceptions import AdjustedSettingWarning, InvalidInputError
from laplaceconfidence.validation import must_be

if TYPE_CHECKING:
    from laplaceconfidence.training.methods.interface import Method
    from laplaceconfidence.training.methods.published import PublishedSettings
    from laplaceconfidence.training.preset_tables import Preset

_MOST_ROUNDS = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class CellSettings:
    """Settings of a training method, and where they are from.

    Attributes
    ----------
    preset : Preset
        The settings.
    origin : str
        Which published settings they contain, in words; empty if none.
    """

    preset: Preset
    origin: str = ""


def cell_settings(
    contender: Contender,
    *,
    preset: str,
    data: str,
    noise: Noise,
    published: str,
    shared: Mapping[str, Any],
    passes: float | None = None,
    quiet: bool = True,
) -> CellSettings:
    """The settings of a training method on these data under this noise.

    Parameters
    ----------
    contender : Contender
        The method and its own settings.
    preset : str
        The preset that all methods share. Its ``[method]`` table is used for the method that it names.
    data : str
        The name under which settings for the data were published.
    noise : Noise
        The noise.
    published : {"all", "method", "none"}
        Which published settings are used: all, those of the method itself, or none.
    shared : mapping of str to Any
        Settings of all methods that replace published ones.
    passes : float, optional
        How often every network is trained on each sample in all rounds; the number of rounds follows.
    quiet : bool, default=True
        Whether a preset for another method is used without a warning.

    Returns
    -------
    CellSettings
    """
    from laplaceconfidence.training.methods.registry import METHODS
    from laplaceconfidence.training.presets import load_preset, merged_method_settings

    entry, is_exact = closest_published(METHODS[contender.kind].published, data, noise)
    use = published if contender.published is None else contender.published
    training: dict[str, Any] = {}
    method: dict[str, Any] = {}
    origin = ""
    if entry is not None and use != "none":
        method = {**_usual_confidence(contender.kind), **entry.method} if is_exact else {}
        training = dict(entry.training) if use == "all" else {}
        if method or training:
            what = entry.noise if not entry.rates else f"{entry.noise} {_percent(entry.rates)}"
            origin = f"published for {entry.data}, {what} ({entry.source})"
            origin += "" if is_exact else ", without those of the method itself"
    training |= {**shared, **contender.training}
    if passes is not None and "rounds" in contender.training:
        raise must_be("contender.rounds", "left out where 'passes' sets the rounds", training["rounds"])
    settings = merged_method_settings(method, contender.settings)
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", AdjustedSettingWarning)
        load = partial(load_preset, preset, method=contender.kind, method_settings=settings)
        loaded = load(overrides=training)
        if passes is not None:
            built = loaded.build_method()
            assert built is not None
            loaded = load(overrides={**training, "rounds": rounds_for_passes(built, passes)})
    return CellSettings(loaded, origin)


def _usual_confidence(method: str) -> dict[str, Any]:
    """The confidence estimator of a method's class, which published settings are about; empty without one."""
    from laplaceconfidence.training.methods.registry import build_method

    usual = getattr(build_method(method), "confidence", None)
    return {} if usual is None else {"confidence": usual}


def closest_published(
    published: Iterable[PublishedSettings], data: str, noise: Noise
) -> tuple[PublishedSettings | None, bool]:
    """The published settings that are closest to a cell, and whether they are for exactly its noise.

    Parameters
    ----------
    published : iterable of PublishedSettings
        What was published for a method.
    data : str
        Name of the data.
    noise : Noise
        The noise; "none" stands for labels that were noisy from the beginning ("real") as well.

    Returns
    -------
    entry : PublishedSettings or None
        Of the same data; by preference of the same kind of noise, then of the nearest rate.
    is_exact : bool
        Whether kind and rate are the same, or the entry holds for all rates of the kind.
    """
    kinds = ("none", "real") if noise.rate is None else (noise.kind,)
    own = [entry for entry in published if entry.data == data]
    for entry in own:
        if entry.noise in kinds and (not entry.rates or noise.rate in entry.rates):
            return entry, True

    def distance(entry: PublishedSettings) -> tuple[bool, float]:
        rate = noise.rate or 0.0
        return entry.noise not in kinds, min((abs(one - rate) for one in entry.rates), default=1.0)

    return min(own, key=distance, default=None), False


def rounds_for_passes(method: Method, passes: float) -> int:
    """The fewest rounds in which every network is trained on each sample ``passes`` times.

    Networks that are never trained themselves, such as averages of another one, do not count.

    Parameters
    ----------
    method : Method
        The method, whose phases state their passes.
    passes : float
        How often.

    Returns
    -------
    int
    """

    def is_enough(rounds: int) -> bool:
        try:
            used = _in_run(method, rounds)
        except InvalidInputError:  # too few rounds for this method
            return False
        phases = [phase for round in range(rounds) for phase in used.phases(round)]
        trained = {network for phase in phases for network in phase.trains}
        return sum(phase.passes * len(phase.trains) for phase in phases) >= passes * len(trained)

    most = 1
    while not is_enough(most):
        if most > _MOST_ROUNDS:
            raise must_be("passes", f"reached in at most {_MOST_ROUNDS:,} rounds", passes)
        most *= 2
    return bisect_left(range(1, most + 1), True, key=is_enough) + 1


def work_of(method: Method, rounds: int) -> float:
    """The work of a run, in passes of plain training of one network over the data.

    Parameters
    ----------
    method : Method
        The method.
    rounds : int
        All rounds.

    Returns
    -------
    float
    """
    from laplaceconfidence.training.time_left import work_of_round

    used = _in_run(method, rounds)
    return sum(work_of_round(used.phases(round)) for round in range(rounds))


def _in_run(method: Method, rounds: int) -> Method:
    """The method as it is used in a run of so many rounds, for methods whose phases depend on that."""
    bound: Method = method.for_rounds(rounds) if hasattr(method, "for_rounds") else method
    return bound


def _percent(rates: Iterable[float]) -> str:
    return ", ".join(f"{100 * rate:g}%" for rate in rates)
