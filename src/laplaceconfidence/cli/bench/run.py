"""A bench from the command line: measure cell after cell, write the tables."""

from __future__ import annotations

import platform
import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path

from laplaceconfidence.cli.bench.data import features_for_noisy
from laplaceconfidence.cli.bench.plan import BenchPlan, plan_bench
from laplaceconfidence.cli.bench.progress import BenchDisplay, showing_bench
from laplaceconfidence.cli.bench.request import BenchRequest
from laplaceconfidence.cli.console import notices
from laplaceconfidence.cli.progress import showing_progress
from laplaceconfidence.cli.sources import features_line
from laplaceconfidence.evaluation.confidence_cells import ConfidenceCells
from laplaceconfidence.evaluation.grid import Cell, Scores, Shard, run_cells
from laplaceconfidence.evaluation.training_cells import TrainingCells
from laplaceconfidence.exceptions import Interrupted, LaplaceConfidenceError, MissingDependencyError
from laplaceconfidence.files import is_disk_full
from laplaceconfidence.folder_lock import FolderLock
from laplaceconfidence.records.bench_run import (
    FIGURES,
    RUNS,
    SHARDS,
    BenchRun,
    append_outcome,
    drop_half_line,
    open_bench,
    read_bench,
    read_outcomes,
    shard_folder,
    write_tables,
)
from laplaceconfidence.report import write_report
from laplaceconfidence.threads import available_cores
from laplaceconfidence.wording import counted


@dataclass(frozen=True, slots=True, eq=False)
class FinishedBench:
    """A bench after the command."""

    run: BenchRun
    cells: list[Cell]  # of this command: all, or those of its shard
    was_stopped: bool = False

    @property
    def n_done(self) -> int:
        """How many of the cells have scores."""
        done = frozenset(self.run.done)
        return sum(cell in done for cell in self.cells)


def run_bench(request: BenchRequest) -> FinishedBench:
    """Measure all cells that are not done yet, of the shard if one was named, and write the tables.

    Parameters
    ----------
    request : BenchRequest
        The arguments of the command.

    Returns
    -------
    FinishedBench
    """
    shard = None if request.shard is None else Shard.parse(request.shard)
    with showing_progress():
        plan = plan_bench(request)
    if shard is None:
        with FolderLock(request.folder):
            return _measured(open_bench(request.folder, plan.record), plan, request)
    request.folder.mkdir(parents=True, exist_ok=True)
    busy = f"A bench without --shard is running in {request.folder}. Wait for it, or stop it."
    own = shard_folder(request.folder, shard)
    with FolderLock(request.folder, shared=True, refusal=busy):
        with FolderLock(request.folder / SHARDS):  # one of several that start at once writes the record
            run = open_bench(request.folder, plan.record)
        with FolderLock(own, refusal=f"Another process measures the shard {request.shard} already."):
            drop_half_line(own)
            return _measured(run, plan, request, shard)


def _measured(
    run: BenchRun, plan: BenchPlan, request: BenchRequest, shard: Shard | None = None
) -> FinishedBench:
    cells = run.cells if shard is None else shard.of(run.cells)
    results = run.folder if shard is None else shard_folder(run.folder, shard)
    _announce(run, plan, cells, request.shard)
    was_stopped = False
    done = frozenset(run.done)
    try:
        if any(cell not in done for cell in cells):
            with showing_bench(run, cells) as progress:
                _Measurements(run, plan, request, results, progress).work_through(cells)
    except (KeyboardInterrupt, Interrupted):
        was_stopped = True
    run = read_bench(run.folder)
    write_tables(run.folder, run.tables())
    return FinishedBench(run, cells, was_stopped)


def write_bench_report(run: BenchRun) -> bool:
    """Write the report and its figures into the folder of a bench.

    Parameters
    ----------
    run : BenchRun
        The bench.

    Returns
    -------
    bool
        False without a finished cell, or without the packages that draw figures.
    """
    if not run.done:
        return False
    try:
        with showing_progress():
            write_report(run.folder, figures=run.folder / FIGURES)
    except MissingDependencyError:
        return False
    return True


@dataclass(slots=True, eq=False)
class _Measurements:
    """Measures cells and stores their outcomes."""

    run: BenchRun
    plan: BenchPlan
    request: BenchRequest
    results: Path  # folder of the file of outcomes
    progress: BenchDisplay
    _measures: dict[tuple[str, str], ConfidenceCells | TrainingCells] = field(default_factory=dict)

    def work_through(self, cells: list[Cell]) -> None:
        """Measure every cell that nobody has measured yet."""
        machine = machine_text()
        for outcome in run_cells(cells, self._measure, is_done=self._is_done, error_text=error_text):
            append_outcome(self.results, replace(outcome, machine=machine))
            measure = self._measures.get((outcome.cell.data, outcome.cell.task))
            if isinstance(measure, TrainingCells) and outcome.error is None:
                _finish_run(measure, outcome.cell)
            self.progress.ends(outcome)

    def _measure(self, cell: Cell) -> Scores:
        self.progress.begins(cell)
        return self._measures_of(cell).measure(cell)

    def _measures_of(self, cell: Cell) -> ConfidenceCells | TrainingCells:
        key = (cell.data, cell.task)
        if key not in self._measures:
            plan = self.plan.data[cell.data]
            self._measures[key] = (
                ConfidenceCells(
                    plan.data.dataset,
                    plan.mapping,
                    features_for_noisy(self.request, plan.data),
                    self.request.n_jobs,
                    plan.estimators,
                )
                if cell.task == "confidence"
                else TrainingCells(
                    plan.data.dataset, plan.data.tests, plan.parameters, self.run.folder / RUNS, plan.mapping
                )
            )
        return self._measures[key]

    def _is_done(self, cell: Cell) -> bool:
        """Whether a cell has scores, those that other shards wrote meanwhile included."""
        outcomes = self.run.outcomes if self.results == self.run.folder else read_outcomes(self.run.folder)
        return cell in outcomes and outcomes[cell].error is None


def _finish_run(cells: TrainingCells, cell: Cell) -> None:
    """Add the true labels to the run of a cell, so that its report has every figure, and tidy it."""
    from laplaceconfidence.cli.train.run import write_true_labels

    test = next(iter(cells.tests.values()), None)
    write_true_labels(cells.run_folder(cell), cells.noisy_data(cell), test)
    cells.tidy(cell)


def error_text(error: Exception) -> str | None:
    """What is recorded about a cell that failed; ``None`` for an error that ends the bench.

    Whatever fails in one cell must not cost the others. An error that this package does not raise on purpose
    is recorded with its place.
    """
    if isinstance(error, Interrupted) or is_disk_full(error):
        return None
    if isinstance(error, LaplaceConfidenceError):
        return str(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"


def machine_text() -> str:
    """The machine that measures: processor, cores and GPU."""
    names = [platform.processor() or platform.machine()]
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")][
            :1
        ] or names
    except OSError:  # not Linux
        pass
    return f"{names[0]}, {counted(available_cores(), 'core')}"


def _announce(run: BenchRun, plan: BenchPlan, cells: list[Cell], shard: str | None) -> None:
    """Print what is measured on what, before the first cell."""
    console = notices()
    done = frozenset(run.done)
    n_done = sum(cell in done for cell in cells)
    start = f"Resuming ({n_done:,} cells are done)" if n_done else "New bench"
    part = "" if shard is None else f"shard {shard}, {len(cells):,} of "
    several = len(plan.data) > 1
    console.print(
        f"{start} in [bold]{run.folder}[/bold]: {part}{len(run.cells):,} cells"
        + (":" if several else f" on {_data_text(plan, next(iter(plan.data)))}."),
        soft_wrap=True,
    )
    for name, one in plan.data.items():
        if several:
            console.print(f"  {name}: {_data_text(plan, name)}", markup=False, soft_wrap=True)
        if (line := features_line(one.data.dataset)) is not None:
            console.print(line, markup=False, soft_wrap=True)
        if one.data.n_skipped:
            console.print(
                f"{counted(one.data.n_skipped, 'image')} left out because of decoding errors.", soft_wrap=True
            )


def _data_text(plan: BenchPlan, name: str) -> str:
    data = plan.data[name].data
    tested = " and ".join(f"{len(test):,}" for test in data.tests.values())
    more = f", tested on {tested} more" if tested else ""
    return f"{len(data.dataset):,} samples of {data.dataset.n_classes} classes{more}"
