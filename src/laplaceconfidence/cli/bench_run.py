"""What happens when ``laplaceconfidence bench`` runs: names, data, folder, cell after cell, tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laplaceconfidence.auditing.fit_request import build_fit_request
from laplaceconfidence.cli.bench_data import (
    BenchData,
    data_of_estimators,
    data_of_methods,
    described,
    features_for_noisy,
)
from laplaceconfidence.cli.bench_progress import BenchProgress, showing_bench
from laplaceconfidence.cli.bench_request import BenchRequest, presets_by_method, recorded
from laplaceconfidence.cli.console import count, notices
from laplaceconfidence.cli.progress import showing_progress
from laplaceconfidence.cli.source_names import stem_of
from laplaceconfidence.data.image_files import has_image_files
from laplaceconfidence.evaluation.confidence_cells import ConfidenceCells
from laplaceconfidence.evaluation.grid import Cell, Scores, run_cells
from laplaceconfidence.evaluation.training_cells import TrainingCells
from laplaceconfidence.exceptions import InvalidInputError
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
from laplaceconfidence.threads import available_cores
from laplaceconfidence.validation import must_be


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """All that is settled before the first cell."""

    record: BenchRecord
    data: BenchData
    parameters: dict[str, dict[str, Any]]  # of RobustClassifier, by method
    mapping: dict[str, str] | None


def run_bench(request: BenchRequest) -> tuple[BenchRun, bool]:
    """Measure all cells that are not done yet and write the tables; also whether it was asked to stop."""
    folder = request.out or Path(f"laplaceconfidence-bench-{stem_of(request.source)}")
    with showing_progress():
        plan = _planned(request)
    with FolderLock(folder):
        run = open_bench(folder, plan.record)
        _tell(run, plan)
        was_stopped = False
        try:
            if not run.is_finished:
                with showing_bench(run) as progress:
                    _work_through(run, plan, request, progress)
        except _interruptions(bool(plan.parameters)):
            was_stopped = True
        run = read_bench(folder)
        write_tables(folder, run.tables())
    return run, was_stopped


def _planned(request: BenchRequest) -> _Plan:
    """Everything that can be wrong with the request is found here, before hours of work."""
    noises, seeds = request.parsed_noises(), request.seeds()
    estimators, methods = request.chosen_estimators(), request.chosen_methods()
    mapping = request.parsed_mapping(noises)
    settings: dict[str, Any] = {"mapping": mapping}
    parameters: dict[str, dict[str, Any]] = {}
    in_words: dict[str, dict[str, Any]] = {}
    if methods:
        from laplaceconfidence.cli.training_run import fitting_preset

        name = request.preset or fitting_preset(request.source, request.read_options)
        presets = presets_by_method(name, methods, request.changes)
        data = data_of_methods(request, presets[methods[0]])
        in_words = {method: recorded(preset) for method, preset in presets.items()}
        parameters = {
            method: preset.training.parameters() | _for_machine(request, data)
            for method, preset in presets.items()
        }
        for own in parameters.values():
            own.pop("random_state", None)
        settings |= {"preset": name, "image_size": data.image_size}
    else:
        data = data_of_estimators(request)
        settings["image_size"] = data.image_size
    if estimators:
        _check_judgeable(data)
    for noise in noises:
        noisy = noise.put_into(data.dataset, seeds[0], mapping)
        if estimators and noisy.true_labels is None:
            advice = "Name their column with --true-label, or put noise into the labels: symmetric:0.2."
            raise must_be("noise", "put in where no true labels are known", noise.text, advice)
    record = BenchRecord(
        source=described(request, data),
        settings=settings,
        noises=tuple(noise.text for noise in noises),
        seeds=seeds,
        estimators={name: {} for name in estimators},
        methods=in_words,
    )
    return _Plan(record, data, parameters, mapping)


def _check_judgeable(data: BenchData) -> None:
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


def _work_through(run: BenchRun, plan: _Plan, request: BenchRequest, progress: BenchProgress) -> None:
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

    for outcome in run_cells(run.cells, measure, done=run.done, failures=_failures(bool(plan.parameters))):
        append_outcome(run.folder, outcome)
        if training is not None and outcome.cell.task == "training" and outcome.error is None:
            training.tidy(outcome.cell)
        progress.ends(outcome)


def _failures(trains: bool) -> tuple[type[Exception], ...]:
    if not trains:
        return (InvalidInputError,)
    from laplaceconfidence.training.stopping import TrainingStopped

    return (InvalidInputError, TrainingStopped)


def _interruptions(trains: bool) -> tuple[type[BaseException], ...]:
    if not trains:
        return (KeyboardInterrupt,)
    from laplaceconfidence.training.stopping import Interrupted

    return (KeyboardInterrupt, Interrupted)


def _tell(run: BenchRun, plan: _Plan) -> None:
    """What is about to happen, before it takes its time."""
    dataset, test, console = plan.data.dataset, plan.data.test, notices()
    tested = "" if test is None else f", tested on {len(test):,} more"
    start = f"Going on ({len(run.done):,} cells are done)" if run.done else "A bench"
    console.print(
        f"{start} in [bold]{run.folder}[/bold]: {len(run.cells):,} cells on {len(dataset):,} samples of "
        f"{dataset.n_classes} classes{tested}.",
        soft_wrap=True,
    )
    if plan.data.n_skipped:
        console.print(f"{count(plan.data.n_skipped, 'image')} left out: not to be decoded.", soft_wrap=True)
