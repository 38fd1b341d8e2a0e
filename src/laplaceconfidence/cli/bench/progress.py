"""Progress of a bench on the console: cells done, the stage of the current one, time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import fmean

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from laplaceconfidence.cli.console import notices
from laplaceconfidence.cli.progress import UNSEEN, WORDS
from laplaceconfidence.evaluation.grid import BenchTask, Cell, Outcome
from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.evaluation.tables import METRICS
from laplaceconfidence.records.bench_run import BenchRun
from laplaceconfidence.stages import observing
from laplaceconfidence.wording import duration


class BenchDisplay:
    """Shows the cells of a bench and their stages: bars on a terminal, one line per cell elsewhere."""

    def __init__(self, run: BenchRun, console: Console, bars: Progress | None) -> None:
        self._console, self._bars = console, bars
        done = set(run.done)
        self._left = [cell for cell in run.cells if cell not in done]
        self._n_cells, self._n_ended = len(run.cells), len(done)
        self._seconds: dict[BenchTask, dict[str, list[float]]] = {}
        for cell in done:
            self._learn(run.outcomes[cell])
        if bars is not None:
            self._cells_line = bars.add_task(
                "Cells", total=self._n_cells, completed=self._n_ended, more=self._time_left()
            )
            self._cell_line = bars.add_task("", total=None, more="")
        self._trains = False

    # Cells

    def begins(self, cell: Cell) -> None:
        self._trains = False
        if self._bars is not None:
            self._bars.remove_task(self._cell_line)  # rich cannot make the length of a line unknown again
            self._cell_line = self._bars.add_task(escape(cell_text(cell)), total=None, more="")

    def ends(self, outcome: Outcome) -> None:
        self._learn(outcome)
        self._left.remove(outcome.cell)
        self._n_ended += 1
        if self._bars is not None:
            self._bars.update(self._cells_line, completed=self._n_ended, more=self._time_left())
            return
        parts = [scores_text(outcome), self._time_left()]
        self._console.print(
            f"{self._n_ended}/{self._n_cells} {cell_text(outcome.cell)}: {'; '.join(filter(None, parts))}",
            soft_wrap=True,
            markup=False,
        )

    def _learn(self, outcome: Outcome) -> None:
        seconds = outcome.scores.get("seconds")
        if seconds is not None:
            of_task = self._seconds.setdefault(outcome.cell.task, {})
            of_task.setdefault(outcome.cell.contender, []).append(seconds)

    def _time_left(self) -> str:
        """From the mean time of cells of the same contender, or of the others where it has none yet."""
        means = {
            task: {name: fmean(own) for name, own in seconds.items()}
            for task, seconds in self._seconds.items()
        }
        if not self._left or any(cell.task not in means for cell in self._left):
            return ""  # the time of estimators does not predict that of a training run
        usual = {task: fmean(own.values()) for task, own in means.items()}
        left = sum(means[cell.task].get(cell.contender, usual[cell.task]) for cell in self._left)
        return f"about {duration(left)} left"

    # Stages of the current cell: the rounds of a training run, otherwise the name of the stage

    def started(self, name: str, total: int | None) -> None:
        if self._bars is None or name in UNSEEN:
            return
        if name == "training":
            self._trains = True
            self._bars.update(self._cell_line, total=total, more="rounds")
        elif not self._trains:
            self._bars.update(self._cell_line, more=WORDS.get(name, name.capitalize()))

    def advanced(self, name: str, amount: int) -> None:
        if self._bars is not None and name == "training":
            self._bars.advance(self._cell_line, amount)

    def finished(self, name: str, seconds: float) -> None:
        """The next stage, or the next cell, replaces the text."""


def cell_text(cell: Cell) -> str:
    """A cell in words: contender, noise and seed."""
    return f"{cell.contender}, {Noise.parse(cell.noise).title}, seed {cell.seed}"


def scores_text(outcome: Outcome) -> str:
    """The scores of a cell in one line."""
    if outcome.error is not None:
        return f"failed: {outcome.error}"
    metrics = [metric for metric in METRICS[outcome.cell.task] if outcome.scores.get(metric.name) is not None]
    return ", ".join(
        f"{metric.shown(float(outcome.scores[metric.name] or 0))} s"
        if metric.unit == "seconds"
        else f"{metric.short or metric.title} {metric.shown(float(outcome.scores[metric.name] or 0))}"
        for metric in metrics
    )


@contextmanager
def showing_bench(run: BenchRun) -> Iterator[BenchDisplay]:
    """Show the cells of a bench and their stages while the block runs."""
    console = notices()
    if not console.is_terminal:
        yield BenchDisplay(run, console, None)
        return
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<40}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[more]}"),
        console=console,
        transient=True,
    )
    progress = BenchDisplay(run, console, bars)
    with bars, observing(progress):
        yield progress
