"""What a bench would measure, and about how long that takes: ``laplaceconfidence bench ... --dry-run``."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from rich.text import Text

from laplaceconfidence.cli.bench.plan import BenchPlan, DataPlan, plan_bench
from laplaceconfidence.cli.bench.request import BenchRequest
from laplaceconfidence.cli.console import output, plain_table
from laplaceconfidence.cli.progress import showing_progress
from laplaceconfidence.evaluation.grid import Cell, Outcome, Shard
from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.records.bench_run import KIND, read_outcomes
from laplaceconfidence.records.run_folder import record_name
from laplaceconfidence.wording import counted, duration


def show_plan(request: BenchRequest) -> None:
    """Print the cells of a bench with their settings and expected time; nothing is measured or written.

    Parameters
    ----------
    request : BenchRequest
        The arguments of the command.
    """
    shard = None if request.shard is None else Shard.parse(request.shard)
    with showing_progress():
        plan = plan_bench(request)
        cells = plan.record.grid.cells()
        cells = cells if shard is None else shard.of(cells)
        folder = request.folder
        outcomes = read_outcomes(folder) if (folder / record_name(KIND)).is_file() else {}
        times = _Times(plan, outcomes)
        expected = {cell: times.of(cell) for cell in cells}
    console = output()
    left = [cell for cell in cells if cell not in outcomes or outcomes[cell].error is not None]
    title = plan.record.title or "Bench"
    part = "" if request.shard is None else f" of shard {request.shard}"
    console.print(Text(f"{title}: {len(cells):,} cells{part}, {len(cells) - len(left):,} of them done."))
    for name, one in plan.data.items():
        _show_data(name, one, [cell for cell in cells if cell.data == name], expected)
    known = [seconds for cell in left if (seconds := expected[cell]) is not None]
    if len(known) == len(left):
        console.print(
            f"\nAbout {duration(sum(known))} on this machine." if left else "\nNothing is left to do."
        )
    else:
        n = len(left) - len(known)
        least = f"At least {duration(sum(known))} on this machine: the" if known else "The"
        console.print(f"\n{least} time of {counted(n, 'cell')} is known once the first of them is measured.")
    console.print(
        "Work is in passes of plain training over the data. Times are from finished cells, otherwise from a "
        "few steps of the network.",
        style="dim",
    )


def _show_data(name: str, plan: DataPlan, cells: list[Cell], expected: dict[Cell, float | None]) -> None:
    console, data = output(), plan.data
    tests = ", ".join(f"{test} ({len(samples):,})" for test, samples in data.tests.items())
    console.print()
    console.print(
        Text(
            f"{name}: {len(data.dataset):,} samples of {data.dataset.n_classes} classes"
            + (f"; preset {data.preset}; tested on {tests}" if tests else "")
        ),
        style="bold",
        soft_wrap=True,
    )
    table = plain_table("", "contender", "noise", "cells:", "rounds:", "work:", "a cell:", "settings")
    counts = Counter((cell.contender, cell.task, cell.noise) for cell in cells)
    first = {(cell.contender, cell.task, cell.noise): cell for cell in reversed(cells)}
    for key, count in counts.items():
        contender, task, noise = key
        seconds = expected[first[key]]
        shown = ("", "", "")
        if task == "training":
            settings = plan.methods[contender, noise]
            rounds = settings.preset.training.rounds
            work = _work(plan, contender, noise)
            shown = (str(rounds or "auto"), "" if work is None else f"{work:.0f}", settings.origin)
        table.add_row(
            Text(contender),
            Text(Noise.parse(noise).title),
            str(count),
            *shown[:2],
            "–" if seconds is None else duration(seconds),
            Text(shown[2]),
        )
    console.print(table)


@dataclass(slots=True, eq=False)
class _Times:
    """Expected seconds of cells."""

    plan: BenchPlan
    outcomes: dict[Cell, Outcome]
    _per_sample: dict[str, float | None] = field(default_factory=dict)

    def of(self, cell: Cell) -> float | None:
        """From finished cells of the same contender on the same data, else from a few steps."""
        measured = [
            float(seconds)
            for other, outcome in self.outcomes.items()
            if (other.task, other.contender, other.data) == (cell.task, cell.contender, cell.data)
            and (seconds := outcome.scores.get("seconds")) is not None
        ]
        if measured:
            return fmean(measured)
        if cell.task != "training":
            return None
        plan = self.plan.data[cell.data]
        work = _work(plan, cell.contender, cell.noise)
        per_sample = self._seconds_per_sample(plan, plan.parameters[cell.contender, cell.noise])
        return None if work is None or per_sample is None else work * per_sample * len(plan.data.dataset)

    def _seconds_per_sample(self, plan: DataPlan, parameters: dict[str, Any]) -> float | None:
        from laplaceconfidence.training.step_time import seconds_per_sample

        relevant = ("network", "batch_size", "precision", "channels_last", "device", "n_jobs")
        key = json.dumps([plan.table.name, *(str(parameters.get(name)) for name in relevant)])
        if key not in self._per_sample:
            data = plan.data.dataset
            shape = _sample_shape(plan)
            self._per_sample[key] = seconds_per_sample(parameters, shape, data.n_classes)
        return self._per_sample[key]


def _sample_shape(plan: DataPlan) -> tuple[int, ...]:
    from laplaceconfidence.cli.train.data import sample_shape

    return sample_shape(plan.data.dataset, plan.data.image_size)


def _work(plan: DataPlan, contender: str, noise: str) -> float | None:
    from laplaceconfidence.evaluation.method_settings import work_of

    preset = plan.methods[contender, noise].preset
    method, rounds = preset.build_method(), preset.training.rounds
    return None if method is None or not isinstance(rounds, int) else work_of(method, rounds)
