"""Progress of a bench on the console: cells done, the stage of the current one, time left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from laplaceconfidence.cli.console import notices
from laplaceconfidence.cli.progress import UNSEEN, WORDS
from laplaceconfidence.evaluation.bench_metrics import METRICS
from laplaceconfidence.evaluation.grid import BenchTask, Cell, Outcome
from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.records.bench_run import BenchRun
from laplaceconfidence.stages import observing
from laplaceconfidence.wording import duration


class BenchDisplay:
    """Shows the cells of a bench and their stages: bars on a terminal, one line per cell elsewhere."""

    def __init__(
        self, run: BenchRun, console: Console, bars: Progress | None, cells: Sequence[Cell] | None = None
    ) -> None:
        self._console, self._bars = console, bars
        done = set(run.done)
        own = run.cells if cells is None else list(cells)
        self._left = [cell for cell in own if cell not in done]
        self._n_cells, self._n_ended = len(own), len(own) - len(self._left)
        self._several_data = len(run.record.data) > 1
        self._seconds: dict[tuple[BenchTask, str], dict[str, list[float]]] = {}
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
            text = escape(cell_text(cell, with_data=self._several_data))
            self._cell_line = self._bars.add_task(text, total=None, more="")

    def ends(self, outcome: Outcome) -> None:
        self._learn(outcome)
        self._left.remove(outcome.cell)
        self._n_ended = self._n_cells - len(self._left)
        if self._bars is not None:
            self._bars.update(self._cells_line, completed=self._n_ended, more=self._time_left())
            return
        parts = [scores_text(outcome), self._time_left()]
        text = cell_text(outcome.cell, with_data=self._several_data)
        self._console.print(
            f"{self._n_ended}/{self._n_cells} {text}: {'; '.join(filter(None, parts))}",
            soft_wrap=True,
            markup=False,
        )

    def _learn(self, outcome: Outcome) -> None:
        seconds = outcome.scores.get("seconds")
        if seconds is not None:
            kind = (outcome.cell.task, outcome.cell.data)
            self._seconds.setdefault(kind, {}).setdefault(outcome.cell.contender, []).append(seconds)

    def _time_left(self) -> str:
        """From the mean time of cells of the same contender, or of the others where it has none yet.

        The time of estimators does not predict that of a training run, nor one data set that of another.
        """
        means = {
            kind: {name: fmean(own) for name, own in seconds.items()}
            for kind, seconds in self._seconds.items()
        }
        if not self._left or any((cell.task, cell.data) not in means for cell in self._left):
            return ""
        usual = {kind: fmean(own.values()) for kind, own in means.items()}
        kinds = [(cell.task, cell.data) for cell in self._left]
        left = sum(
            means[kind].get(cell.contender, usual[kind]) for kind, cell in zip(kinds, self._left, strict=True)
        )
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


def cell_text(cell: Cell, *, with_data: bool = False) -> str:
    """A cell in words: contender, data if there are several, noise and seed."""
    data = f"{cell.data}, " if with_data else ""
    return f"{cell.contender}, {data}{Noise.parse(cell.noise).title}, seed {cell.seed}"


def scores_text(outcome: Outcome) -> str:
    """The scores of a cell in one line."""
    if outcome.error is not None:
        return f"failed: {outcome.error}"
    metrics = [
        metric
        for metric in METRICS[outcome.cell.task]
        if not (metric.is_minor or metric.is_optional) and outcome.scores.get(metric.name) is not None
    ]
    return ", ".join(
        f"{metric.shown(float(outcome.scores[metric.name] or 0))} s"
        if metric.unit == "seconds"
        else f"{metric.short or metric.title} {metric.shown(float(outcome.scores[metric.name] or 0))}"
        for metric in metrics
    )


@contextmanager
def showing_bench(run: BenchRun, cells: Sequence[Cell]) -> Iterator[BenchDisplay]:
    """Show some cells of a bench and their stages while the block runs."""
    console = notices()
    if not console.is_terminal:
        yield BenchDisplay(run, console, None, cells)
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
    progress = BenchDisplay(run, console, bars, cells)
    with bars, observing(progress):
        yield progress
