"""A run that is divided into trainings of equal length, of which the last one leaves the networks."""

from __future__ import annotations

from dataclasses import dataclass

from laplaceconfidence.training.methods.interface import Stage
from laplaceconfidence.validation import check_integer, must_be


@dataclass(frozen=True, slots=True)
class RepeatedTraining:
    """Consecutive trainings; the last one lasts until the end of the run.

    Attributes
    ----------
    number : int
        How many trainings there are.
    rounds : int
        Rounds of each of them but the last one.
    """

    number: int
    rounds: int

    @classmethod
    def of(cls, number: int, rounds: int | None) -> RepeatedTraining:
        """Trainings of a method whose setting ``rounds`` was filled in by ``Method.for_rounds``."""
        if rounds is None:
            raise ValueError("The method does not know the rounds of the run yet: call 'for_rounds' first.")
        return cls(number, rounds)

    def current(self, round: int) -> int:
        """The training that a round belongs to, counted from 0."""
        return min(round // self.rounds, self.number - 1)

    def first_round(self, round: int) -> int:
        """The first round of the training that a round belongs to."""
        return self.current(round) * self.rounds

    def begins_again(self, round: int) -> bool:
        """Whether a training other than the first one begins with this round."""
        return 0 < round == self.first_round(round)

    def stage(self, round: int) -> Stage:
        """The stage of a round; only the networks of the last training can be kept."""
        is_last = self.current(round) == self.number - 1
        return Stage(self.first_round(round), None if is_last else self.rounds, counts=is_last)


def rounds_of_each(number: int, given: int | None, setting: str, rounds: int) -> int:
    """Rounds of each of ``number`` trainings but the last one.

    Parameters
    ----------
    number : int
        How many trainings there are.
    given : int or None
        The number of rounds that was set; ``None`` divides all rounds evenly.
    setting : str
        Name of that setting.
    rounds : int
        All rounds of the run.

    Returns
    -------
    int

    Raises
    ------
    InvalidInputError
        If no round would be left for the last training.
    """
    if given is None:
        if rounds < number:
            raise must_be("rounds", f"at least {number}, one for each training of the method", rounds)
        return rounds // number
    needed = given * (number - 1)
    if needed >= rounds:
        before = f"{number - 1} x {given} rounds" if number > 2 else f"{given} rounds"
        rule = f"above {needed}: {before} ({setting!r}) come before the last training"
        raise must_be("rounds", rule, rounds, f"Use more rounds, or a smaller {setting!r}.")
    return given


def check_rounds_of_each(given: int | None, setting: str) -> None:
    """Check the setting that ``rounds_of_each`` takes."""
    if given is not None:
        check_integer(given, setting, minimum=1)
