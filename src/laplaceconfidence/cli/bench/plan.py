"""What a bench measures, worked out and checked before the first cell: data, settings and the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from laplaceconfidence.auditing.fit_request import build_fit_request
from laplaceconfidence.cli.bench.data import (
    BenchData,
    data_of_estimators,
    data_of_methods,
    data_record,
    mapping_of,
)
from laplaceconfidence.cli.bench.request import BenchRequest, recorded
from laplaceconfidence.data.image_files import has_image_files
from laplaceconfidence.evaluation.bench_file import Bench, DataTable, is_bench_file
from laplaceconfidence.evaluation.confidence_cells import check_true_labels
from laplaceconfidence.evaluation.contenders import Contender
from laplaceconfidence.evaluation.method_settings import CellSettings, cell_settings
from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.records.bench_run import BenchRecord, ContenderRecord, column_key
from laplaceconfidence.threads import available_cores

if TYPE_CHECKING:
    from laplaceconfidence.training.preset_tables import Preset


@dataclass(frozen=True, slots=True, eq=False)
class DataPlan:
    """One data set of a bench, and the contenders that are measured on it."""

    table: DataTable
    data: BenchData
    estimators: dict[tuple[str, str], Contender]  # by name and noise
    methods: dict[tuple[str, str], CellSettings]
    parameters: dict[tuple[str, str], dict[str, Any]]  # of RobustClassifier

    @property
    def mapping(self) -> Mapping[str, str] | None:
        """Which class asymmetric noise replaces by which."""
        return mapping_of(self.table)


@dataclass(frozen=True, slots=True, eq=False)
class BenchPlan:
    """Everything that is known before the first cell."""

    bench: Bench
    record: BenchRecord
    data: dict[str, DataPlan] = field(default_factory=dict)  # by name


def plan_bench(request: BenchRequest) -> BenchPlan:
    """Check the request and read the data; errors in either are found before the first cell."""
    bench = request.bench()
    is_file = is_bench_file(request.source)
    data = {table.name: _data_plan(bench, table, request, quiet=is_file) for table in bench.data}
    record = BenchRecord(
        title=bench.title,
        data={name: data_record(one.table, one.data) for name, one in data.items()},
        seeds=bench.seeds,
        contenders=tuple(_contender_records(bench, data)),
        metrics=bench.metrics,
        figures=bench.figures,
    )
    return BenchPlan(bench, record, data)


def _data_plan(bench: Bench, table: DataTable, request: BenchRequest, *, quiet: bool) -> DataPlan:
    estimators = _by_noise(bench.of_data(table.name, "confidence"), table)
    methods = _by_noise(bench.of_data(table.name, "training"), table)
    settings: dict[tuple[str, str], CellSettings] = {}
    parameters: dict[tuple[str, str], dict[str, Any]] = {}
    if methods:
        load = partial(_settings_in_all_columns, bench, table, methods, settings, quiet=quiet)
        data = data_of_methods(table, request, table.preset or bench.preset, load)
        parameters = {
            key: {**one.preset.parameters(), **_for_machine(request, data)} for key, one in settings.items()
        }
        for of_method in parameters.values():
            of_method.pop("random_state", None)
    else:
        data = data_of_estimators(table, request)
    if estimators:
        _check_has_features(data)
    for noise in table.parsed_noises:
        noisy = noise.add_to(data.dataset, bench.seeds[0], mapping_of(table))
        if any(column == noise.text for _, column in estimators):
            check_true_labels(noisy, noise.text)
    return DataPlan(table, data, estimators, settings, parameters)


def _by_noise(contenders: list[Contender], table: DataTable) -> dict[tuple[str, str], Contender]:
    return {
        (one.name, noise): one
        for noise in table.noises
        for one in contenders
        if one.is_measured(table.name, noise)
    }


def _settings_in_all_columns(
    bench: Bench,
    table: DataTable,
    methods: Mapping[tuple[str, str], Contender],
    settings: dict[tuple[str, str], CellSettings],
    preset: str,
    *,
    quiet: bool,
) -> Preset:
    """Fill ``settings``, and return a preset for what it states about the data."""
    assert table.settings_of is not None
    for (name, noise), contender in methods.items():
        settings[name, noise] = cell_settings(
            contender,
            preset=preset,
            data=table.settings_of,
            noise=Noise.parse(noise),
            published=bench.published,
            shared=bench.training,
            passes=bench.passes,
            quiet=quiet,
        )
    return next(iter(settings.values())).preset


def _contender_records(bench: Bench, data: Mapping[str, DataPlan]) -> list[ContenderRecord]:
    """One record per task and name: contenders of the same name are measured in different columns."""
    found: dict[tuple[str, str], ContenderRecord] = {}
    for contender in bench.contenders:
        settings: dict[str, dict[str, Any]] = {}
        for name, plan in data.items():
            for noise in plan.table.noises:
                if not contender.is_measured(name, noise):
                    continue
                if contender.task == "training":
                    one = plan.methods[contender.name, noise]
                    origin = {"origin": one.origin} if one.origin else {}
                    settings[column_key(name, noise)] = recorded(one.preset) | origin
                else:
                    settings[column_key(name, noise)] = dict(contender.settings)
        key = (contender.task, contender.name)
        if key in found:
            found[key].settings.update(settings)
            continue
        found[key] = ContenderRecord(
            task=contender.task,
            name=contender.name,
            kind=contender.kind,
            settings=settings,
            group=contender.group,
            swept=dict(contender.swept),
            published_as=contender.published_row(bench.published),
        )
    return list(found.values())


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
