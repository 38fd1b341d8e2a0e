"""Progress of a command, shown on a terminal while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from laplaceconfidence.cli.console import notices
from laplaceconfidence.stages import observing

WORDS = {  # descriptions of stages by name
    "downloading": "Downloading",
    "reading": "Reading the data",
    "decoding": "Decoding images",
    "loading the encoder": "Loading the encoder",
    "encoding": "Encoding the samples",
    "training": "Training",
    "predicting": "Predicting",
    "features": "Preparing the features",
    "index": "Building a search index",
    "neighbors": "Finding neighbors",
    "affinity": "Weighting neighbors",
    "solve": "Propagating labels",
    "confidence": "Estimating confidence",
    "ranking": "Ranking labels",
    "writing": "Writing the results",
    "principal axes": "Finding principal axes",
    "lists": "Assigning samples to lists",
    "shards": "Sorting samples into blocks",
    "recall": "Measuring the recall",
    **dict.fromkeys(("axes of codes-1", "axes of codes-2"), "Finding axes of codes"),
    **dict.fromkeys(("codes-1", "codes-2"), "Coding the samples"),
    **dict.fromkeys(("trials-1", "trials-2"), "Choosing the search"),
    "edges": "Sorting neighbors",
    "results": "Reading the results",
    "tables": "Writing tables",
}
UNSEEN = {"total", "learning features"}  # stages that only contain others


class ProgressObserver:
    """Shows one line per stage: a bar if the amount of work is known, otherwise a spinner."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._running: dict[str, TaskID] = {}
        self._done: dict[str, TaskID] = {}

    def started(self, name: str, total: int | None) -> None:
        if name in UNSEEN:
            return
        if name in self._done:  # a stage that runs again, such as one per epoch, keeps its line
            task = self._done.pop(name)
            self._progress.reset(task, total=total)
        else:
            task = self._progress.add_task(WORDS.get(name, name.capitalize()), total=total)
        self._running[name] = task

    def advanced(self, name: str, amount: int) -> None:
        if name in self._running:
            self._progress.advance(self._running[name], amount)

    def finished(self, name: str, seconds: float) -> None:
        if name in self._running:
            task = self._done[name] = self._running.pop(name)
            self._progress.update(task, total=1, completed=1)


@contextmanager
def showing_progress() -> Iterator[None]:
    """Show the stages of the work inside the block, on a terminal only; the lines are removed at the end."""
    console = notices()
    if not console.is_terminal:
        yield
        return
    progress = Progress(
        SpinnerColumn(finished_text="[green]✓[/green]"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    with progress, observing(ProgressObserver(progress)):
        yield
