"""Write the corrected data set and its trail, completely or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from laplaceconfidence.csv_files import write_csv
from laplaceconfidence.data.arrow_folders import is_huggingface_folder
from laplaceconfidence.data.excel_reader import EXCEL_SUFFIXES
from laplaceconfidence.data.fiftyone import is_fiftyone_folder
from laplaceconfidence.data.table_files import CSV_SUFFIXES, PARQUET_SUFFIXES
from laplaceconfidence.exceptions import InvalidInputError, RunFolderError
from laplaceconfidence.export.annotator_labels import label_verdicts
from laplaceconfidence.export.correction import Correction, SourceChanges, correct
from laplaceconfidence.export.export_folder import WrittenImages, check_folder
from laplaceconfidence.export.fiftyone import write_fiftyone
from laplaceconfidence.export.huggingface import write_huggingface
from laplaceconfidence.export.image_folder import write_image_folder
from laplaceconfidence.export.label_studio import Tasks, write_label_studio
from laplaceconfidence.export.original import Original
from laplaceconfidence.export.plan import ExportPlan
from laplaceconfidence.export.protected import refuse_originals
from laplaceconfidence.export.tables import (
    kind_of_original,
    write_csv_table,
    write_jsonl,
    write_parquet_table,
)
from laplaceconfidence.files import replace_folder, restore_folder
from laplaceconfidence.records.data_archive import write_archive
from laplaceconfidence.records.listed_files import data_folder
from laplaceconfidence.validation import check_choice, must_be

Format = Literal["csv", "parquet", "npz", "jsonl", "folder", "huggingface", "fiftyone", "label-studio"]
FORMATS: tuple[Format, ...] = get_args(Format)
FOLDERS: tuple[Format, ...] = ("folder", "huggingface", "fiftyone")
_SUFFIXES: dict[Format, tuple[str, ...]] = {
    "csv": CSV_SUFFIXES,
    "parquet": PARQUET_SUFFIXES,
    "npz": (".npz",),
    "jsonl": (".jsonl", ".ndjson"),
    "label-studio": (".json",),
}


@dataclass(frozen=True, slots=True)
class Exported:
    """A finished export.

    Parameters
    ----------
    path : pathlib.Path
        The corrected data set.
    trail : pathlib.Path
        The table of changes.
    format : {"csv", "parquet", "npz", "jsonl", "folder", "huggingface", "fiftyone", "label-studio"}
        Its format.
    n_samples : int
        Samples of the corrected data set.
    n_lost_files : int
        Listed images that could not be found.
    n_outside_files : int
        Listed images that are links out of the folder of the data, which are not followed.
    n_copied_files : int
        Images that were copied although ``copy`` was not set, as the file system allows no hard links.
    n_guarded_cells : int
        Cells of a CSV file that were written with an apostrophe in front, as a spreadsheet would evaluate
        them.
    lost : str or None
        Why the data itself could not be read, so that the export has no features.
    changes : SourceChanges
        How the data differs from what was audited.
    config : pathlib.Path or None
        The configuration for Label Studio.
    verdicts : pathlib.Path or None
        The table of the single labels of several annotators.
    """

    path: Path
    trail: Path
    format: Format
    n_samples: int
    n_lost_files: int
    n_outside_files: int
    n_copied_files: int
    n_guarded_cells: int
    lost: str | None
    changes: SourceChanges
    config: Path | None = None
    verdicts: Path | None = None


def write_export(
    plan: ExportPlan,
    out: str | Path | None = None,
    *,
    format: str | None = None,
    copy: bool = False,
    overwrite: bool = False,
    tasks: str | None = None,
    correction: Correction | None = None,
) -> Exported:
    """Write the corrected data set and, next to it, its trail.

    It has every sample of the data as it is now, in its order, but for those that are left out. Tasks for
    Label Studio are an exception: they are about the samples to look at, the least trustworthy label first.

    Parameters
    ----------
    plan : ExportPlan
        The new labels.
    out : str or pathlib.Path, optional
        The file or folder to write; by default named after the run, in the current folder.
    format : {"csv", "parquet", "npz", "jsonl", "folder", "huggingface", "fiftyone", "label-studio"}, optional
        By default it follows from the name of ``out``, or is that of the original data. A folder of images,
        what ``datasets.load_from_disk`` reads, and FiftyOne's format are folders; tasks for Label Studio are
        a .json file, with the configuration of the page next to it.
    copy : bool, default=False
        Whether images are copied into a folder of images; otherwise they are hard-linked where that is
        possible.
    overwrite : bool, default=False
        Whether an earlier export may be replaced.
    tasks : {"first", "all"}, optional
        For Label Studio: the labels to look at first and samples without a label that nobody has decided on
        (the default), or all samples.
    correction : Correction, optional
        What ``correct`` returned for this plan, if it was called already.

    Returns
    -------
    Exported
    """
    correction = correct(plan) if correction is None else correction
    original, corrected, is_kept = correction.original, correction.dataset, correction.is_kept
    chosen, path = _place(plan, original, out, format)
    if copy and chosen not in ("folder", "fiftyone"):
        raise must_be("copy", "left out unless the export is a folder of images", copy)
    if tasks is not None:
        check_choice(tasks, "tasks", get_args(Tasks))
        if chosen != "label-studio":
            raise must_be("tasks", "left out unless the format is 'label-studio'", tasks)
    if not is_kept.any():
        raise InvalidInputError(
            "No sample would be left: choose another policy for flagged labels, copies, outliers or leaks, "
            "or change decisions in the review."
        )
    trail = trail_path(path)
    config = trail.with_name(trail.name.removesuffix(".trail.csv") + ".config.xml")
    beside = (trail, config) if chosen == "label-studio" else (trail,)
    verdicts = None
    if plan.samples.run.annotation is not None:
        verdicts = trail.with_name(trail.name.removesuffix(".trail.csv") + ".labels.csv")
        beside = (*beside, verdicts)
    for one in beside:
        refuse_originals(plan.samples, path, one, is_folder=chosen in FOLDERS)
    _check_free(path, beside, chosen, overwrite)
    images, n_guarded = WrittenImages(), 0
    n_samples = int(is_kept.sum())
    root = data_folder(plan.samples.run)
    with _published_together(path, beside) as (data_file, trail_file, *more_files):
        if chosen == "folder":
            images = write_image_folder(data_file, corrected.subset(is_kept), copy=copy, data_folder=root)
        elif chosen == "fiftyone":
            images = write_fiftyone(data_file, corrected.subset(is_kept), copy=copy, data_folder=root)
        elif chosen == "huggingface":
            images = write_huggingface(data_file, original, corrected, is_kept, data_folder=root)
        elif chosen == "label-studio":
            which: Tasks = tasks or "first"  # type: ignore[assignment]
            n_samples = write_label_studio(data_file, more_files[0], plan, correction, which)
        elif chosen == "npz":
            write_archive(data_file, replace(corrected.subset(is_kept), true_labels=None))
        elif chosen == "csv":
            n_guarded = write_csv_table(data_file, original, corrected, is_kept)
        else:
            writer = {"parquet": write_parquet_table, "jsonl": write_jsonl}[chosen]
            writer(data_file, original, corrected, is_kept)
        write_csv(trail_file, correction.trail)
        if verdicts is not None:
            write_csv(more_files[-1], label_verdicts(plan))
    return Exported(
        path=path,
        trail=trail,
        format=chosen,
        n_samples=n_samples - images.n_lost - images.n_outside,
        n_lost_files=images.n_lost,
        n_outside_files=images.n_outside,
        n_copied_files=images.n_copied,
        n_guarded_cells=n_guarded,
        lost=original.lost,
        changes=correction.changes,
        config=config if chosen == "label-studio" else None,
        verdicts=verdicts,
    )


def trail_path(path: Path) -> Path:
    """Return the file of the trail: ``corrected.trail.csv`` for ``corrected.csv``.

    Parameters
    ----------
    path : pathlib.Path
        The corrected data set.

    Returns
    -------
    pathlib.Path
    """
    for suffixes in _SUFFIXES.values():
        for suffix in sorted(suffixes, key=len, reverse=True):
            if path.name.lower().endswith(suffix):
                return path.with_name(path.name[: -len(suffix)] + ".trail.csv")
    return path.with_name(path.name + ".trail.csv")


@contextmanager
def _published_together(path: Path, beside: Sequence[Path]) -> Iterator[tuple[Path, ...]]:
    """Yield where to write the data and what belongs to it; all get their names when all are complete.

    The files beside it come first, so that there is never new data without its trail. If the data cannot
    follow, the earlier ones are put back.
    """
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    hidden.mkdir()
    try:
        new, *new_beside = (hidden / file.name for file in (path, *beside))
        yield (new, *new_beside)
        earlier = {file: hidden / secrets.token_hex(8) for file in beside}
        for file, kept in earlier.items():
            if file.exists():
                shutil.copy2(file, kept)
        for file, written in zip(beside, new_beside, strict=True):
            written.replace(file)
        try:
            if new.is_dir():
                replace_folder(new, path)
            else:
                new.replace(path)
        except BaseException:
            for file, kept in earlier.items():
                if kept.exists():
                    kept.replace(file)
                else:
                    file.unlink()
            raise
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def _place(
    plan: ExportPlan, original: Original, out: str | Path | None, format: str | None
) -> tuple[Format, Path]:
    if format is not None:
        check_choice(format, "format", FORMATS)
    if out is None:
        chosen: Format = format or _usual_format(original)  # type: ignore[assignment]
        stem = f"{plan.samples.run.folder.absolute().name}-corrected"
        return chosen, Path(stem if chosen in FOLDERS else f"{stem}{_SUFFIXES[chosen][0]}").absolute()
    path = Path(out).absolute()
    named = next((f for f, ends in _SUFFIXES.items() if path.name.lower().endswith(ends)), None)
    if named is None and format is None:
        if path.suffix:
            known = ", ".join(ends[0] for ends in _SUFFIXES.values())
            raise must_be("out", f"a folder or a name that ends in {known}", str(out), "Or pass a 'format'.")
        named = _usual_format(original)
        named = named if named in FOLDERS else "folder"
    if format is not None and named is not None and format != named:
        raise must_be("format", f"that of the name {path.name!r}, {named!r}", format)
    return named or format, path  # type: ignore[return-value]


def _usual_format(original: Original) -> Format:
    """The format of the original data."""
    if original.path is not None:
        name = original.path.name.lower()
        if original.path.is_dir() and is_huggingface_folder(original.path):
            return "huggingface"
        if original.path.is_dir() and is_fiftyone_folder(original.path):
            return "fiftyone"
        if (kind := kind_of_original(original)) is not None:
            return kind
        if original.path.is_dir() and original.dataset.source_kind == "image":
            return "folder"
        if name.endswith((".json", *EXCEL_SUFFIXES)):
            return "csv"
        for format, ends in _SUFFIXES.items():
            if name.endswith(ends):
                return format
    is_plain = original.dataset.features is None or original.dataset.annotations is not None
    return "csv" if is_plain else "npz"


def _check_free(path: Path, beside: Sequence[Path], format: Format, overwrite: bool) -> None:
    if not path.parent.is_dir():
        raise RunFolderError(f"The folder {path.parent} does not exist: create it first, or choose another.")
    if format in FOLDERS:
        restore_folder(path)
        check_folder(path, overwrite=overwrite)
    elif path.is_dir():
        raise RunFolderError(f"{path} is a folder: choose another name.")
    for taken in (path, *beside):
        if taken.is_file() and not overwrite:
            raise RunFolderError(f"{taken} exists: choose another name with --out, or use --overwrite.")
