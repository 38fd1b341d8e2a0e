"""A bench from the command line: read the data, measure cell after cell, write the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from laplaceconfidence.auditing.fit_request import build_fit_request
from laplaceconfidence.cli.bench.data import (
    BenchData,
    data_of_estimators,
    data_of_methods,
    features_for_noisy,
    source_record,
)
from laplaceconfidence.cli.bench.progress import BenchDisplay, showing_bench
from laplaceconfidence.cli.bench.request import BenchRequest, presets_by_method, recorded
from laplaceconfidence.cli.console import notices
from laplaceconfidence.cli.progress import showing_progress
from laplaceconfidence.cli.sources import features_line, stem_of
from laplaceconfidence.data.image_files import has_image_files
from laplaceconfidence.evaluation.confidence_cells import ConfidenceCells, check_true_labels
from laplaceconfidence.evaluation.grid import Cell, Scores, run_cells
from laplaceconfidence.evaluation.training_cells import TrainingCells
from laplaceconfidence.exceptions import Interrupted, InvalidInputError, TrainingStopped
from laplaceconfidence.folder_lock import FolderLock
from laplaceconfidence.records.bench_run import (
    RUNS,
    BenchRecord,
    BenchRun,
    append_outcome,
    open_bench,
    read_bench,
    write_tables,
)
from laplaceconfidence.stages import stage
from laplaceconfidence.threads import available_cores
from laplaceconfidence.wording import counted

FAILURES = (InvalidInputError, TrainingStopped)
"""Errors that end one cell; the others are measured all the same."""


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """Everything that is known before the first cell."""

    record: BenchRecord
    data: BenchData
    parameters: dict[str, dict[str, Any]]  # of RobustClassifier, by method
    mapping: dict[str, str] | None


def run_bench(request: BenchRequest) -> tuple[BenchRun, bool]:
    """Measure all cells that are not done yet and write the tables.

    Parameters
    ----------
    request : BenchRequest
        The arguments of the command.

    Returns
    -------
    run : BenchRun
        The bench as it is now.
    was_stopped : bool
        Whether it was asked to stop before all cells were done.
    """
    folder = request.out or Path(f"laplaceconfidence-bench-{stem_of(request.source)}")
    with showing_progress():
        plan = _planned(request)
    with FolderLock(folder):
        run = open_bench(folder, plan.record)
        _announce(run, plan)
        was_stopped = False
        try:
            if not run.is_finished:
                with showing_bench(run) as progress:
                    _work_through(run, plan, request, progress)
        except (KeyboardInterrupt, Interrupted):
            was_stopped = True
        run = read_bench(folder)
        write_tables(folder, run.tables())
    return run, was_stopped


def _planned(request: BenchRequest) -> _Plan:
    """Check the request and read the data; errors in either are found before the first cell."""
    noises, seeds = request.parsed_noises(), request.seeds()
    estimators, methods = request.chosen_estimators(), request.chosen_methods()
    mapping = request.parsed_mapping(noises)
    settings: dict[str, Any] = {"mapping": mapping}
    parameters: dict[str, dict[str, Any]] = {}
    recorded_settings: dict[str, dict[str, Any]] = {}
    if methods:
        from laplaceconfidence.cli.train.data import automatic_preset_for, read_source

        with stage("reading"):
            dataset = read_source(request.source, request.read_options)
        name = request.preset
        if name is None:
            name, image_size = automatic_preset_for(
                request.source,
                dataset,
                image_size=request.image_size,
                settings={} if request.device is None else {"device": request.device},
                changes=request.changes,
            )
            request = replace(request, image_size=image_size)
        presets = presets_by_method(name, methods, request.changes)
        data = data_of_methods(request, dataset, presets[methods[0]])
        recorded_settings = {method: recorded(preset) for method, preset in presets.items()}
        parameters = {
            method: preset.parameters() | _for_machine(request, data) for method, preset in presets.items()
        }
        for of_method in parameters.values():
            of_method.pop("random_state", None)
        settings |= {"preset": name, "image_size": data.image_size}
    else:
        data = data_of_estimators(request)
        settings["image_size"] = data.image_size
    if estimators:
        _check_has_features(data)
    for noise in noises:
        noisy = noise.add_to(data.dataset, seeds[0], mapping)
        if estimators:
            check_true_labels(noisy, noise.text)
    record = BenchRecord(
        source=source_record(request, data),
        settings=settings,
        noises=tuple(noise.text for noise in noises),
        seeds=seeds,
        estimators={name: {} for name in estimators},
        methods=recorded_settings,
    )
    return _Plan(record, data, parameters, mapping)


def _check_has_features(data: BenchData) -> None:
    """Raise where there are neither features nor images that they could be learned from."""
    dataset = data.dataset
    if dataset.features is None and dataset.images is None and not has_image_files(dataset):
        build_fit_request(dataset, estimator="laplace", settings={})


def _for_machine(request: BenchRequest, data: BenchData) -> dict[str, Any]:
    found: dict[str, Any] = {"image_size": data.image_size}
    if request.device is not None:
        found["device"] = request.device
    if request.n_jobs is not None:
        found["n_jobs"] = request.n_jobs
    if has_image_files(data.dataset):  # too many to be kept in memory
        found["n_workers"] = available_cores()
    return found


def _work_through(run: BenchRun, plan: _Plan, request: BenchRequest, progress: BenchDisplay) -> None:
    confidence = ConfidenceCells(
        plan.data.dataset, plan.mapping, features_for_noisy(request, plan.data), request.n_jobs
    )
    measures: dict[str, Callable[[Cell], Scores]] = {"confidence": confidence.measure}
    training = None
    if plan.parameters:
        assert plan.data.test is not None
        training = TrainingCells(
            plan.data.dataset, plan.data.test, plan.parameters, run.folder / RUNS, plan.mapping
        )
        measures["training"] = training.measure

    def measure(cell: Cell) -> Scores:
        progress.begins(cell)
        return measures[cell.task](cell)

    for outcome in run_cells(run.cells, measure, done=run.done, failures=FAILURES):
        append_outcome(run.folder, outcome)
        if training is not None and outcome.cell.task == "training" and outcome.error is None:
            training.tidy(outcome.cell)
        progress.ends(outcome)


def _announce(run: BenchRun, plan: _Plan) -> None:
    """Print what is measured on what, before the first cell."""
    dataset, test, console = plan.data.dataset, plan.data.test, notices()
    tested = "" if test is None else f", tested on {len(test):,} more"
    start = f"Resuming ({len(run.done):,} cells are done)" if run.done else "New bench"
    console.print(
        f"{start} in [bold]{run.folder}[/bold]: {len(run.cells):,} cells on {len(dataset):,} samples of "
        f"{dataset.n_classes} classes{tested}.",
        soft_wrap=True,
    )
    if (line := features_line(dataset)) is not None:
        console.print(line, markup=False, soft_wrap=True)
    if plan.data.n_skipped:
        console.print(
            f"{counted(plan.data.n_skipped, 'image')} left out because of decoding errors.", soft_wrap=True
        )
