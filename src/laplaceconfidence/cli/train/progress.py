"""Progress of a training run on the console: round, loss, confidence, accuracies, time left."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn

from laplaceconfidence.cli.console import notices
from laplaceconfidence.cli.progress import UNSEEN, WORDS
from laplaceconfidence.stages import observing
from laplaceconfidence.training.progress import measured_text
from laplaceconfidence.wording import duration

_RECENT = 5  # rounds that the time left is computed from


@dataclass(slots=True)
class _Stage:
    name: str
    total: int | None
    done: int = 0


class RoundDisplay:
    """Shows the stages and rounds of a run: bars on a terminal, one line per round elsewhere."""

    def __init__(self, console: Console, bars: Progress | None) -> None:
        self._console, self._bars = console, bars
        self._rounds_line: TaskID | None = None
        self._stage_line: TaskID | None = None
        self._stages: list[_Stage] = []  # under way, each inside the one before
        self._rounds = 0
        self._seconds: list[float] = []
        self._since = time.monotonic()

    # Stages: one line for the rounds and one for the current stage, so that lines keep their places

    def started(self, name: str, total: int | None) -> None:
        if name == "training":
            self._rounds, self._since = total or 0, time.monotonic()
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

    def __call__(self, record: Mapping[str, Any]) -> None:
        now = time.monotonic()
        self._seconds, self._since = [*self._seconds, now - self._since][-_RECENT:], now
        left = (self._rounds - record["round"]) * sum(self._seconds) / len(self._seconds)
        measured = ", ".join([*measured_text(record), *([f"{duration(left)} left"] if left else [])])
        if self._bars is not None and self._rounds_line is not None:
            self._bars.update(self._rounds_line, measured=measured)
        else:
            self._console.print(f"Round {record['round']}/{self._rounds}: {measured}", soft_wrap=True)


@contextmanager
def showing_training() -> Iterator[RoundDisplay]:
    """Show the stages of the work in the block; yields a listener for ``RobustClassifier.fit``."""
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
