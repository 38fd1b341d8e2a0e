"""A training run from the command line: settings, data, folder, training, summary."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.auditing.verified_tables import VerifiedTable, read_verified
from laplaceconfidence.cli.audit.verified import tell_left_out
from laplaceconfidence.cli.console import notices
from laplaceconfidence.cli.sources import (
    EncoderRequest,
    ImageOptions,
    features_line,
    stem_of,
    with_image_size,
)
from laplaceconfidence.cli.train.data import (
    PreparedData,
    TrainingSource,
    automatic_preset_for,
    prepare,
    read_source,
)
from laplaceconfidence.cli.train.progress import showing_training
from laplaceconfidence.cli.train.summary import show_training_summary
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_files import has_image_files
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.data.source_paths import full_path, with_full_paths
from laplaceconfidence.encoders.registry import PRETRAINED
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.files import replacing, write_json
from laplaceconfidence.folder_lock import FolderLock
from laplaceconfidence.records.training_run import write_truth
from laplaceconfidence.run_files import ALL, SKIPPED_IMAGES, SOURCE, SUMMARY, TENSORBOARD
from laplaceconfidence.stages import stage
from laplaceconfidence.threads import available_cores
from laplaceconfidence.training.callbacks import Callback
from laplaceconfidence.training.classifier import RobustClassifier
from laplaceconfidence.training.distributed import Team, join_team, leave_team
from laplaceconfidence.training.preset_tables import Preset
from laplaceconfidence.training.presets import load_preset
from laplaceconfidence.training.run_folder import stored_settings
from laplaceconfidence.training.tensorboard import TensorBoardLogger
from laplaceconfidence.validation import must_be
from laplaceconfidence.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """The arguments of the command."""

    source: str
    preset: str | None = None
    changes: tuple[str, ...] = ()  # "key=value"
    method: str | None = None
    audited: Path | None = None  # a table of verified labels
    settings: Mapping[str, Any] = field(default_factory=dict)  # shared settings that have their own options
    read_options: Mapping[str, Any] = field(default_factory=dict)
    encoders: tuple[str, ...] = ()
    encoder_settings: tuple[str, ...] = ()  # "key=value"
    no_cache: bool = False
    tests: tuple[str, ...] = ()
    test_share: float | None = None
    image_size: int | None = None
    skip_bad: bool = False
    n_workers: int | None = None
    out: Path | None = None
    resume: bool = False
    overwrite: bool = False
    tensorboard: bool = False

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.out or Path(f"laplaceconfidence-train-{stem_of(self.source)}")

    @property
    def encoder(self) -> EncoderRequest:
        """The encoder that was asked for; a pretrained one runs where the networks are trained."""
        is_pretrained = bool(self.encoders) and self.encoders[0].partition(":")[0] in PRETRAINED
        return EncoderRequest(
            self.encoders,
            self.encoder_settings,
            ImageOptions(device=self.settings.get("device") if is_pretrained else None),
            self.settings.get("n_jobs"),
            uses_cache=not self.no_cache,
        )

    def load_preset(self, name: str) -> Preset:
        """The preset of that name with all changes that the command asks for."""
        return load_preset(name, self.changes, overrides=self.settings, method=self.method)


def run_training(request: TrainingRequest, notes: list[str]) -> None:
    """Train as requested.

    Parameters
    ----------
    request : TrainingRequest
        The arguments of the command.
    notes : list of str
        The warnings so far, which are stored with the run.
    """
    folder, name = request.folder, request.preset
    preset = None if name is None else request.load_preset(name)  # fails before anything is read
    request.encoder.refuse_several_views(request.read_options)
    team = join_team()
    try:
        is_resumed = team.is_first and check_run_folder(
            folder, resume=request.resume, overwrite=request.overwrite
        )
        with showing_training() as display:
            with stage("reading"):
                options, image_size = with_image_size(
                    request.source, request.read_options, request.image_size
                )
                request = replace(request, read_options=options, image_size=image_size)
                dataset = read_source(request.source, request.read_options, request.encoder)
            if preset is None or name is None:
                name, image_size = automatic_preset_for(
                    request.source,
                    dataset,
                    image_size=request.image_size,
                    settings=request.settings,
                    changes=request.changes,
                    is_encoded=request.encoder.is_given,
                )
                request = replace(request, image_size=image_size)
                preset = request.load_preset(name)
            audited = None if request.audited is None else read_verified(request.audited, dataset)
            data = prepare(dataset, _wanted(request, preset))
            if team.is_first and request.overwrite:
                remove_run(folder)
            run = _Run(request, name, preset, data, notes)
            run.announce(is_resumed=is_resumed)
            classifier = run.classifier()
            callbacks: list[Callback] = [display]
            callbacks += [TensorBoardLogger(folder / TENSORBOARD)] if request.tensorboard else []
            classifier.set_params(callbacks=callbacks)
            first, *further = data.tests or (None,)
            classifier.fit(
                data.train,
                test=None if first is None else data.tests[first],
                further_tests={test: data.tests[test] for test in further},
                audited=None if audited is None else _by_row(audited, data.train, request.audited),
                listeners=[run.after_round],
            )
        if team.is_first:
            run.write_source()
            write_true_labels(folder, data.train, next(iter(data.tests.values()), None))
            show_training_summary(classifier, data, folder)
    finally:
        leave_team()


@dataclass(slots=True, eq=False)
class _Run:
    """One run: its request, preset and data, and what is written about them."""

    request: TrainingRequest
    preset_name: str
    preset: Preset
    data: PreparedData
    notes: list[str]
    source_is_written: bool = False

    def announce(self, *, is_resumed: bool) -> None:
        """Print what is trained on what, before the first round."""
        dataset, console, noise = self.data.train, notices(), self.preset.noise
        n_missing = int((dataset.labels == MISSING).sum())
        without = f", {n_missing:,} without a label" if n_missing else ""
        why = self.preset.description if self.request.preset else "selected for this data and machine"
        start = "Resuming the run" if is_resumed else "New run"
        console.print(
            f"{start} in [bold]{self.request.folder}[/bold]: {len(dataset):,} samples of "
            f"{dataset.n_classes} classes{without}; preset [bold]{self.preset_name}[/bold] ({why}).",
            soft_wrap=True,
        )
        if not self.trains_on_images and (line := features_line(dataset, are_compared=False)) is not None:
            console.print(line, markup=False, soft_wrap=True)
        if noise is not None:
            changed = int(np.sum(dataset.labels != dataset.true_labels))
            console.print(
                f"[bold]The preset adds {noise.rate:.0%} {noise.kind} noise to the labels[/bold], as a "
                f"benchmark: {changed:,} of them are now wrong.",
                soft_wrap=True,
            )
        if n_skipped := len(self.data.skipped):
            console.print(
                f"{counted(n_skipped, 'image')} left out because of decoding errors.", soft_wrap=True
            )

    @property
    def trains_on_images(self) -> bool:
        dataset = self.data.train
        return dataset.images is not None or dataset.source_kind == "image"

    def classifier(self) -> RobustClassifier:
        request = self.request
        parameters = self.preset.parameters() | {"image_size": _image_size(request, self.preset)}
        if has_image_files(self.data.train):  # too many to be kept in memory
            parameters.setdefault("n_workers", available_cores())
            if request.n_workers is not None:
                parameters["n_workers"] = request.n_workers
        return RobustClassifier(**parameters, out=request.folder)

    def after_round(self, record: Mapping[str, Any]) -> None:
        """Write ``source.json`` after the first round, so that a run that is stopped has one, too."""
        if not self.source_is_written:
            self.write_source()

    def write_source(self) -> None:
        """Store where the data came from; ``settings.json`` has the settings of the training."""
        if not Team.current().is_first:
            return
        self.source_is_written = True
        request, skipped = self.request, self.data.skipped
        write_json(
            request.folder / SOURCE,
            {
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "source": full_path(request.source),
                "options": with_full_paths(request.read_options),
                "feature_columns": None if self.trains_on_images else self.data.train.feature_columns,
                "encoder": None if self.data.train.encoding is None else dict(self.data.train.encoding),
                "preset": self.preset_name,
                "preset_settings": self.preset.model_dump(mode="json", exclude_none=True),
                "audited": None if request.audited is None else full_path(str(request.audited)),
                "tests": [full_path(test) for test in request.tests] or list(self.data.tests),
                "image_size": _image_size(request, self.preset),
                "n_skipped_images": len(skipped),
                "notes": list(self.notes),
            },
        )
        if skipped:
            with replacing(request.folder / SKIPPED_IMAGES) as temporary:
                lines = [f"{image.path}\t{image.reason}\n" for image in skipped]
                temporary.write_text("".join(lines), encoding="utf-8")


def check_run_folder(folder: Path, *, resume: bool, overwrite: bool) -> bool:
    """Whether a run in the folder is resumed; an error where the options and the folder do not match."""
    if resume and overwrite:
        raise must_be("resume", "left out where --overwrite starts a new run", resume)
    holds_run = stored_settings(folder) is not None
    if resume and not holds_run:
        raise RunFolderError(
            f"The folder {folder} holds no run to resume: leave out --resume to start one, or name the "
            "folder of the run with --out."
        )
    if holds_run and not overwrite and (folder / SUMMARY).exists():
        raise RunFolderError(
            f"The run in {folder} is finished. Choose another folder for a new one with --out, or replace "
            "the run with --overwrite."
        )
    return holds_run and not overwrite


def remove_run(folder: Path) -> None:
    """Remove the run in the folder, if there is one; nothing else is ever removed."""
    if stored_settings(folder) is None:
        return
    with FolderLock(folder):
        entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
        if others := sorted(entry.name for entry in entries if entry.name not in ALL):
            raise RunFolderError(
                f"The folder {folder} holds something that is not part of the run ({', '.join(others[:5])}) "
                "and would be lost. Choose another folder, or move it away."
            )
        shutil.rmtree(folder)


def _wanted(request: TrainingRequest, preset: Preset) -> TrainingSource:
    random_state = preset.training.random_state
    has_test = bool(request.tests) or request.test_share is not None
    return TrainingSource(
        source=request.source,
        read_options=request.read_options,
        encoder=request.encoder,
        tests=request.tests,
        test_share=request.test_share if has_test else preset.data.test_share,
        noise=preset.noise,
        image_size=_image_size(request, preset),
        skip_bad=request.skip_bad,
        n_workers=request.n_workers,
        seed=0 if random_state is None else random_state,
    )


def _by_row(audited: VerifiedTable, train: NoisyDataset, path: Path | None) -> dict[int, Any]:
    """Verified labels by the row of their sample, without those of samples that are not trained on."""
    tell_left_out(audited, "verified label", f" in {path}")
    rows = {id: row for row, id in enumerate(train.sample_ids.tolist())}
    return {rows[id]: label for id, label in audited.labels.items() if id in rows}


def _image_size(request: TrainingRequest, preset: Preset) -> int | None:
    return preset.data.size(request.image_size)


def write_true_labels(folder: Path, train: NoisyDataset, test: NoisyDataset | None) -> None:
    """Store the true labels that are known, for the report."""
    truth = None if train.true_labels is None else _names(train, train.true_labels)
    test_labels = None if test is None else _names(test, test.labels)
    write_truth(folder, train.sample_ids, truth, test_labels=test_labels)


def _names(dataset: NoisyDataset, codes: Any) -> Any:
    return np.array([*dataset.class_names, None], dtype=object)[codes]
