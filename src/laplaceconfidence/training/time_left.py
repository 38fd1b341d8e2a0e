"""How long the rest of a run takes.

Rounds differ: a round of warm-up is one pass per network, a later one may be two passes, with more forward
passes in each step, after a look at all samples. Rounds of a kind that was measured are expected to take as
long as before; others are estimated from the work that their phases state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from laplaceconfidence.training.methods.interface import Method, Phase
from laplaceconfidence.wording import duration

_RECENT = 5  # rounds of one kind that its time is computed from
_FORWARD = 1 / 3  # of the time of a step: the backward pass takes twice as long as the forward pass


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """The time that is left.

    Attributes
    ----------
    seconds : float
        The time.
    is_measured : bool
        Whether rounds of every kind that is left were measured.
    """

    seconds: float
    is_measured: bool

    def __str__(self) -> str:
        return f"{'' if self.is_measured else 'about '}{duration(self.seconds)} left"


def time_left(method: Method, rounds: int, seconds: Sequence[float]) -> TimeLeft:
    """The time that the rounds which are left will take.

    Parameters
    ----------
    method : Method
        The training method, whose phases tell the kinds of rounds apart.
    rounds : int
        All rounds.
    seconds : sequence of float
        How long each round so far took; at least one.

    Returns
    -------
    TimeLeft
    """
    measured: dict[tuple[Phase, ...], list[float]] = {}
    for round, taken in enumerate(seconds):
        measured.setdefault(method.phases(round), []).append(taken)
    typical = {phases: median(taken[-_RECENT:]) for phases, taken in measured.items()}
    seconds_per_work = sum(typical.values()) / sum(map(work_of_round, typical))
    left = [method.phases(round) for round in range(len(seconds), rounds)]
    total = sum(typical.get(phases, work_of_round(phases) * seconds_per_work) for phases in left)
    return TimeLeft(total, all(phases in typical for phases in left))


def work_of_round(phases: Sequence[Phase]) -> float:
    """The work of a round, in passes of plain training of one network."""
    return sum(
        phase.passes * len(phase.trains) * phase.cost + _FORWARD * len(phase.evidence) for phase in phases
    )
