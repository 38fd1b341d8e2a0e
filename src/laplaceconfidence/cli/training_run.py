"""What happens when ``laplaceconfidence train`` runs: settings, data, folder, training, summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.cli.console import notices
from laplaceconfidence.cli.sources import full_path, stem_of, with_full_paths
from laplaceconfidence.cli.training_data import PreparedData, TrainingSource, prepare
from laplaceconfidence.cli.training_evidence import keep_truth
from laplaceconfidence.cli.training_folder import (
    SKIPPED_FILE,
    SOURCE_FILE,
    TENSORBOARD_FOLDER,
    settle_folder,
)
from laplaceconfidence.cli.training_progress import showing_training
from laplaceconfidence.cli.training_summary import show_training_summary
from laplaceconfidence.data.image_files import has_image_files
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.files import replacing, write_json
from laplaceconfidence.threads import available_cores
from laplaceconfidence.training.classifier import RobustClassifier
from laplaceconfidence.training.distributed import Team, join_team, leave_team
from laplaceconfidence.training.presets import Preset, load_preset
from laplaceconfidence.training.tensorboard import TensorBoardLogger


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """Everything that was said on the command line."""

    source: str
    preset: str | None = None
    changes: tuple[str, ...] = ()  # "key=value"
    settings: Mapping[str, Any] = field(default_factory=dict)  # training settings with options of their own
    read_options: Mapping[str, Any] = field(default_factory=dict)
    tests: tuple[str, ...] = ()
    test_share: float | None = None
    image_size: int | None = None
    skip_bad: bool = False
    n_workers: int | None = None
    out: Path | None = None
    resume: bool = False
    overwrite: bool = False
    tensorboard: bool = False


def run_training(request: TrainingRequest, notes: list[str]) -> None:
    """Train as asked; ``notes`` are the warnings so far, which are kept with the run."""
    folder = request.out or Path(f"laplaceconfidence-train-{stem_of(request.source)}")
    name = request.preset or fitting_preset(request.source, request.read_options)
    preset = load_preset(name, request.changes, overrides=request.settings)
    team = join_team()
    try:
        goes_on = team.is_first and settle_folder(folder, resume=request.resume, overwrite=request.overwrite)
        with showing_training() as progress:
            data = prepare(_wanted(request, preset))
            _tell(name, preset, data, folder, goes_on=goes_on, chosen=request.preset is None)
            classifier = _classifier(preset, request, data, folder)
            write_source = _once(lambda: _write_source(folder, request, name, preset, data, notes))
            listeners: list[Callable[[Mapping[str, Any]], None]] = [progress, lambda _: write_source()]
            logger = TensorBoardLogger(folder / TENSORBOARD_FOLDER) if request.tensorboard else None
            listeners += [logger] if logger else []
            first, *further = data.tests or (None,)
            classifier.fit(
                data.train,
                test=None if first is None else data.tests[first],
                further_tests={name: data.tests[name] for name in further},
                listeners=listeners,
            )
            if logger:
                logger.close()
        if team.is_first:
            _write_source(folder, request, name, preset, data, notes)
            keep_truth(folder, data)
            show_training_summary(classifier, data, folder)
    finally:
        leave_team()


def fitting_preset(source: str, read_options: Mapping[str, Any]) -> str:
    """A small preset for the kind of data, where none was named."""
    if source == "digits":
        return "digits"
    is_table = Path(source).suffix.lower() in (
        ".npz",
        ".npy",
        ".csv",
        ".tsv",
        ".gz",
        ".parquet",
        ".pq",
    )
    trains_on_images = {"images", "path"} & read_options.keys()
    features = "features" in read_options or (is_table and not trains_on_images)
    return "embeddings-mlp" if features else "image-folder-small"


def _wanted(request: TrainingRequest, preset: Preset) -> TrainingSource:
    random_state = preset.training.random_state
    has_test = bool(request.tests) or request.test_share is not None
    return TrainingSource(
        source=request.source,
        read_options=request.read_options,
        tests=request.tests,
        test_share=request.test_share if has_test else preset.data.test_share,
        noise=preset.noise,
        image_size=_image_size(request, preset),
        skip_bad=request.skip_bad,
        n_workers=request.n_workers,
        seed=0 if random_state is None else random_state,
    )


def _image_size(request: TrainingRequest, preset: Preset) -> int | None:
    return preset.data.image_size if request.image_size is None else request.image_size


def _classifier(
    preset: Preset, request: TrainingRequest, data: PreparedData, folder: Path
) -> RobustClassifier:
    parameters = preset.training.parameters() | {"image_size": _image_size(request, preset)}
    if has_image_files(data.train):  # too many to be kept in memory
        parameters.setdefault("n_workers", available_cores())
        if request.n_workers is not None:
            parameters["n_workers"] = request.n_workers
    return RobustClassifier(**parameters, out=folder)


def _tell(
    name: str, preset: Preset, data: PreparedData, folder: Path, *, goes_on: bool, chosen: bool
) -> None:
    """What is about to happen, before it takes its time."""
    dataset, console = data.train, notices()
    n_missing = int((dataset.labels == MISSING).sum())
    without = f", {n_missing:,} without a label" if n_missing else ""
    by = "no preset was named, this one fits" if chosen else preset.description
    start = "Going on with the run" if goes_on else "A run"
    console.print(
        f"{start} in [bold]{folder}[/bold]: {len(dataset):,} samples of "
        f"{dataset.n_classes} classes{without}; preset [bold]{name}[/bold] ({by}).",
        soft_wrap=True,
    )
    if preset.noise is not None:
        changed = int(np.sum(dataset.labels != dataset.true_labels))
        console.print(
            f"[bold]For the benchmark {preset.noise.rate:.0%} {preset.noise.kind} noise was put into the "
            f"labels[/bold]: {changed:,} of them are now wrong.",
            soft_wrap=True,
        )
    if data.skipped:
        console.print(f"{len(data.skipped):,} images cannot be decoded and are left out.", soft_wrap=True)


def _write_source(
    folder: Path, request: TrainingRequest, name: str, preset: Preset, data: PreparedData, notes: list[str]
) -> None:
    """Where the data came from and what was done to it; ``settings.json`` says how it is trained on."""
    if not Team.current().is_first:
        return
    write_json(
        folder / SOURCE_FILE,
        {
            "source": full_path(request.source),
            "options": with_full_paths(request.read_options),
            "preset": name,
            "preset_settings": preset.model_dump(mode="json", exclude_none=True),
            "tests": [full_path(test) for test in request.tests] or list(data.tests),
            "image_size": _image_size(request, preset),
            "n_skipped_images": len(data.skipped),
            "notes": list(notes),
        },
    )
    if data.skipped:
        with replacing(folder / SKIPPED_FILE) as temporary:
            lines = [f"{image.path}\t{image.reason}\n" for image in data.skipped]
            temporary.write_text("".join(lines), encoding="utf-8")


def _once(action: Callable[[], None]) -> Callable[[], None]:
    done = False

    def act() -> None:
        nonlocal done
        if not done:
            done = True
            action()

    return act
