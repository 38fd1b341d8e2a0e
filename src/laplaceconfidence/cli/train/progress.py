"""Progress of a training run on the console: round, loss, confidence, accuracies, time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn

from laplaceconfidence.cli.console import notices
from laplaceconfidence.cli.progress import UNSEEN, WORDS
from laplaceconfidence.stages import observing
from laplaceconfidence.training.callbacks import Callback, TrainingContext
from laplaceconfidence.training.progress import measured_text


@dataclass(slots=True)
class _Stage:
    name: str
    total: int | None
    done: int = 0


class RoundDisplay(Callback):
    """Shows the stages and rounds of a run: bars on a terminal, one line per round elsewhere."""

    def __init__(self, console: Console, bars: Progress | None) -> None:
        self._console, self._bars = console, bars
        self._rounds_line: TaskID | None = None
        self._stage_line: TaskID | None = None
        self._stages: list[_Stage] = []  # under way, each inside the one before

    # Stages: one line for the rounds and one for the current stage, so that lines keep their places

    def started(self, name: str, total: int | None) -> None:
        if name == "training":
            if self._bars is not None:
                self._rounds_line = self._bars.add_task("Round", total=total, measured="")
        elif name not in UNSEEN:
            self._stages.append(_Stage(name, total))
            self._show_stage()

    def advanced(self, name: str, amount: int) -> None:
        if name == "training" and self._bars is not None and self._rounds_line is not None:
            self._bars.advance(self._rounds_line, amount)
        elif self._stages and self._stages[-1].name == name:
            self._stages[-1].done += amount
            if self._bars is not None and self._stage_line is not None:
                self._bars.update(self._stage_line, completed=self._stages[-1].done)

    def finished(self, name: str, seconds: float) -> None:
        if self._stages and self._stages[-1].name == name:
            self._stages.pop()
            self._show_stage()

    def _show_stage(self) -> None:
        if self._bars is None or not self._stages:
            return
        stage = self._stages[-1]
        words = WORDS.get(stage.name, stage.name.capitalize())
        if self._stage_line is None:
            self._stage_line = self._bars.add_task(words, total=stage.total, measured="")
        self._bars.update(self._stage_line, description=words, total=stage.total, completed=stage.done)

    # Rounds

    def on_round_end(self, context: TrainingContext) -> None:
        """Show the measurements of the round and the time that is left."""
        is_last = context.round == context.rounds or context.stop_reason is not None
        left = [] if is_last or context.time_left is None else [str(context.time_left)]
        measured = ", ".join([*measured_text(context.record), *left])
        if self._bars is not None and self._rounds_line is not None:
            self._bars.update(self._rounds_line, measured=measured, refresh=True)
        else:
            self._console.print(f"Round {context.round}/{context.rounds}: {measured}", soft_wrap=True)


@contextmanager
def showing_training() -> Iterator[RoundDisplay]:
    """Show the stages of the work in the block; yields a callback for ``RobustClassifier``."""
    console = notices()
    if not console.is_terminal:
        progress = RoundDisplay(console, None)
        with observing(progress):
            yield progress
        return
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<24}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[measured]}"),
        console=console,
        transient=True,
    )
    progress = RoundDisplay(console, bars)
    with bars, observing(progress):
        yield progress
