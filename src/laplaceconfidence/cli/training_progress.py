"""How far a training run is: round, loss, confidence, accuracies, time left."""

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

_RECENT = 5  # rounds that the time left is reckoned from


@dataclass(slots=True)
class _Stage:
    name: str
    total: int | None
    done: int = 0


class TrainingProgress:
    """Listens to the stages and rounds of a run; shows bars on a terminal and a line a round elsewhere."""

    def __init__(self, console: Console, bars: Progress | None) -> None:
        self._console, self._bars = console, bars
        self._rounds_line: TaskID | None = None
        self._stage_line: TaskID | None = None
        self._stages: list[_Stage] = []  # under way, each inside the one before
        self._rounds = 0
        self._seconds: list[float] = []
        self._since = time.monotonic()

    # Stages: one line for the rounds, one for what is being done, so that nothing jumps

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
        measured = ", ".join([*measures(record), *([f"{duration(left)} left"] if left else [])])
        if self._bars is not None and self._rounds_line is not None:
            self._bars.update(self._rounds_line, measured=measured)
        else:
            self._console.print(f"Round {record['round']}/{self._rounds}: {measured}", soft_wrap=True)


def measures(record: Mapping[str, Any]) -> list[str]:
    """What was measured in a round, in words."""
    losses = [phase["loss"] for phase in record["phases"]]
    trust = [phase["mean_confidence"] for phase in record["phases"] if "mean_confidence" in phase]
    said = [f"loss {sum(losses) / len(losses):.3f}"] if losses else []
    said += [f"confidence {sum(trust) / len(trust):.2f}"] if trust else []
    for name, word in (("validation_accuracy", "validation"), ("test_accuracy", "test")):
        if name in record:
            said.append(f"{word} {record[name]:.1%}")
    return said


def duration(seconds: float) -> str:
    """A time that people can take in: "40 s", "12 min", "3.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


@contextmanager
def showing_training() -> Iterator[TrainingProgress]:
    """Show the stages inside; the yielded object is a listener for ``RobustClassifier.fit``."""
    console = notices()
    if not console.is_terminal:
        progress = TrainingProgress(console, None)
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
    progress = TrainingProgress(console, bars)
    with bars, observing(progress):
        yield progress
