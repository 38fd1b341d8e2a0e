"""Schedules of the learning rate, as functions of how much of a run is done.

Nothing is stored between steps, so that a resumed run has the learning rates of one that was never stopped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from laplaceconfidence.training.methods.interface import Phase

SCHEDULES = ("step", "cosine", "one-cycle")

_WARMUP_OF_ONE_CYCLE = 0.3  # share of all rounds, the usual one


def learning_rate_at(
    progress: float,
    *,
    rounds: int,
    learning_rate: float,
    schedule: str = "step",
    warmup: float | None = None,
    drops: Sequence[float] = (),
    drop_factor: float = 0.1,
) -> float:
    """The learning rate of a step.

    Parameters
    ----------
    progress : float
        Rounds done so far, parts of a round included.
    rounds : int
        All rounds.
    learning_rate : float
        The highest learning rate.
    schedule : {"step", "cosine", "one-cycle"}, default="step"
        "step" multiplies the learning rate by ``drop_factor`` at the beginning of certain rounds. After the
        warm-up, "cosine" lets it fall to 0 along half a cosine, and "one-cycle" along a line.
    warmup : float, optional
        Share of all rounds over which the learning rate rises from 0 along a line; ``None`` means 0.3 for
        "one-cycle" and 0 for the others.
    drops : sequence of float, default=()
        Rounds of "step"; numbers below 1 are shares of all rounds: 0.75 of 400 rounds leaves the last 100.
    drop_factor : float, default=0.1
        See ``schedule``.

    Returns
    -------
    float
    """
    if warmup is None:
        warmup = _WARMUP_OF_ONE_CYCLE if schedule == "one-cycle" else 0.0
    share = progress / rounds
    rise = share / warmup if share < warmup else 1.0
    if schedule == "step":
        starts = [drop * rounds if drop < 1 else drop for drop in drops]
        return rise * learning_rate * drop_factor ** sum(math.floor(progress) >= start for start in starts)
    fallen = max(0.0, share - warmup) / (1 - warmup)
    remaining = (1 + math.cos(math.pi * fallen)) / 2 if schedule == "cosine" else 1 - fallen
    return rise * learning_rate * remaining


def progress_of_network(
    network: int, round: int, phases: Sequence[Phase], phase: int, fraction: float
) -> float:
    """How many rounds of its training a network has done, parts of a round included.

    Within a round only the phases that train the network count, by their passes: whether its peers are
    trained before it, after it or not at all makes no difference to its learning rate.

    Parameters
    ----------
    network : int
        A network that the phase trains.
    round : int
        The current round, counted from 0.
    phases : sequence of Phase
        The phases of the round.
    phase : int
        The current phase.
    fraction : float
        Share of the current phase that is done.

    Returns
    -------
    float
    """
    passes = [one.passes if network in one.trains else 0 for one in phases]
    return round + (sum(passes[:phase]) + passes[phase] * fraction) / sum(passes)
