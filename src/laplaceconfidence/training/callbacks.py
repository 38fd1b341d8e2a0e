"""Callbacks: code of the user's that runs after every step or round, and may end the training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.stages import LOGGER
from laplaceconfidence.training.progress import counts, measured_text
from laplaceconfidence.training.time_left import TimeLeft
from laplaceconfidence.validation import check_choice, check_integer, check_real
from laplaceconfidence.wording import counted


@dataclass(slots=True, eq=False)
class TrainingContext:
    """What a callback is given.

    Attributes
    ----------
    round : int
        The current round, counted from 1.
    rounds : int
        All rounds of the run.
    phase : str
        Name of the current phase; after a round, of its last one.
    step : int
        Steps of the phase that are done.
    n_steps : int
        All steps of the phase.
    loss : torch.Tensor or None
        The loss of the step, on the device; ``None`` after a round.
    record : mapping of str to Any
        The measurements of the round, as in ``history_``; empty after a step.
    history : sequence of mapping
        The measurements of all rounds that are done, this one included after a round.
    networks : sequence of torch.nn.Module
        The networks, with the weights that are trained.
    time_left : TimeLeft or None
        How long the rest of the run takes; ``None`` after a step.
    stop_reason : str or None
        Why the run is to end before its last round; see ``stop``.
    """

    round: int
    rounds: int
    phase: str
    step: int
    n_steps: int
    loss: torch.Tensor | None
    history: Sequence[Mapping[str, Any]]
    networks: Sequence[torch.nn.Module]
    record: Mapping[str, Any] = field(default_factory=dict)
    time_left: TimeLeft | None = None
    stop_reason: str | None = None

    def stop(self, reason: str) -> None:
        """End the training after the current round. A run that ended so is finished: it is not resumed.

        Parameters
        ----------
        reason : str
            Why, for ``summary_``.
        """
        self.stop_reason = reason


class Callback:
    """Base class of callbacks, for ``RobustClassifier(callbacks=[...])``; override what you need.

    With several processes, the first one calls them. Reading ``context.loss`` after every step makes a GPU
    wait. A callback that has to survive a resumed run should compute what it needs from ``context.history``.
    """

    def on_step_end(self, context: TrainingContext) -> None:
        """Called after every step.

        Parameters
        ----------
        context : TrainingContext
            Where the training is.
        """

    def on_round_end(self, context: TrainingContext) -> None:
        """Called after every round, when its accuracies are known.

        Parameters
        ----------
        context : TrainingContext
            Where the training is.
        """

    def on_training_end(self) -> None:
        """Called once when the training ends, also by an error."""


class LogRounds(Callback):
    """Logs every round as one line of level INFO to the logger "laplaceconfidence"; ``verbose=1`` adds it."""

    def on_round_end(self, context: TrainingContext) -> None:
        """Log the measurements of the round."""
        measured = ", ".join(measured_text(context.record))
        LOGGER.info("Round %d/%d: %s", context.round, context.rounds, measured)


class EarlyStopping(Callback):
    """Ends the training when the held-out accuracy has not risen for some rounds.

    The accuracy is that on held-out *given* labels, some of which are wrong; test data are never used. Which
    round's networks are kept is decided as always, by ``validation_fraction``. Rounds of a method that cannot
    be kept, such as those that only select samples, are not looked at.

    Parameters
    ----------
    patience : int, default=10
        Rounds without a rise after which the training ends.
    minimum_rise : float, default=0
        How much the highest accuracy so far has to be exceeded by.
    first_rounds : int, default=0
        Rounds that do not count, such as the warm-up of a method.
    monitor : {"validation_accuracy", "loss"}, default="validation_accuracy"
        "loss" waits for the mean training loss of the round to fall instead.

    Examples
    --------
    >>> RobustClassifier(callbacks=[EarlyStopping(patience=5, first_rounds=10)])  # doctest: +SKIP
    """

    def __init__(
        self,
        patience: int = 10,
        *,
        minimum_rise: float = 0.0,
        first_rounds: int = 0,
        monitor: str = "validation_accuracy",
    ) -> None:
        self.patience = check_integer(patience, "patience", minimum=1)
        self.minimum_rise = check_real(minimum_rise, "minimum_rise", at_least=0)
        self.first_rounds = check_integer(first_rounds, "first_rounds", minimum=0)
        self.monitor = check_choice(monitor, "monitor", ("validation_accuracy", "loss"))

    def on_round_end(self, context: TrainingContext) -> None:
        """Stop if the last rise is too long ago."""
        numbered = enumerate(context.history, start=1)
        values = {number: self._value(record) for number, record in numbered if counts(record)}
        highest, last_rise = -float("inf"), self.first_rounds
        for number, value in values.items():
            if value > highest + self.minimum_rise:
                highest, last_rise = value, max(number, self.first_rounds)
        if sum(number > last_rise for number in values) >= self.patience:
            what = "loss did not fall" if self.monitor == "loss" else "validation accuracy did not rise"
            context.stop(f"The {what} for {counted(self.patience, 'round')}.")

    def _value(self, record: Mapping[str, Any]) -> float:
        """What has to rise."""
        if self.monitor == "loss":
            losses = [phase["loss"] for phase in record["phases"]]
            return -float(sum(losses)) / len(losses)
        if self.monitor not in record:
            raise InvalidInputError(
                "EarlyStopping needs held-out labels: set 'validation_fraction' above 0, or monitor='loss'."
            )
        return float(record[self.monitor])
