"""Write the corrected data set and its trail, completely or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from laplaceconfidence.csv_files import write_csv
from laplaceconfidence.exceptions import InvalidInputError, RunFolderError
from laplaceconfidence.export.correction import Correction, SourceChanges, correct
from laplaceconfidence.export.image_folder import WrittenImages, check_folder, write_image_folder
from laplaceconfidence.export.original import Original
from laplaceconfidence.export.plan import ExportPlan
from laplaceconfidence.export.protected import refuse_originals
from laplaceconfidence.export.tables import (
    CSV_SUFFIXES,
    PARQUET_SUFFIXES,
    write_csv_table,
    write_jsonl,
    write_parquet_table,
)
from laplaceconfidence.files import replace_folder, restore_folder
from laplaceconfidence.records.data_archive import write_archive
from laplaceconfidence.records.listed_files import data_folder
from laplaceconfidence.validation import check_choice, must_be

Format = Literal["csv", "parquet", "npz", "jsonl", "folder"]
FORMATS: tuple[Format, ...] = get_args(Format)
_SUFFIXES: dict[Format, tuple[str, ...]] = {
    "csv": CSV_SUFFIXES,
    "parquet": PARQUET_SUFFIXES,
    "npz": (".npz",),
    "jsonl": (".jsonl", ".ndjson"),
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
    format : {"csv", "parquet", "npz", "jsonl", "folder"}
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


def write_export(
    plan: ExportPlan,
    out: str | Path | None = None,
    *,
    format: str | None = None,
    copy: bool = False,
    overwrite: bool = False,
    correction: Correction | None = None,
) -> Exported:
    """Write the corrected data set and, next to it, its trail.

    It has every sample of the data as it is now, in its order, but for those that are left out.

    Parameters
    ----------
    plan : ExportPlan
        The new labels.
    out : str or pathlib.Path, optional
        The file or folder to write; by default named after the run, in the current folder.
    format : {"csv", "parquet", "npz", "jsonl", "folder"}, optional
        By default it follows from the name of ``out``, or is that of the original data.
    copy : bool, default=False
        Whether images are copied into a folder of images; otherwise they are hard-linked where that is
        possible.
    overwrite : bool, default=False
        Whether an earlier export may be replaced.
    correction : Correction, optional
        What ``correct`` returned for this plan, if it was called already.

    Returns
    -------
    Exported
    """
    correction = correct(plan) if correction is None else correction
    original, corrected, is_kept = correction.original, correction.dataset, correction.is_kept
    chosen, path = _place(plan, original, out, format)
    if copy and chosen != "folder":
        raise must_be("copy", "left out unless the export is a folder of images", copy)
    if not is_kept.any():
        raise InvalidInputError(
            "No sample would be left: choose another policy for flagged labels, copies, outliers or leaks, "
            "or change decisions in the review."
        )
    trail = trail_path(path)
    refuse_originals(plan.samples, path, trail, is_folder=chosen == "folder")
    _check_free(path, trail, chosen, overwrite)
    images, n_guarded = WrittenImages(), 0
    with _published_together(path, trail) as (data_file, trail_file):
        if chosen == "folder":
            kept = corrected.subset(is_kept)
            images = write_image_folder(data_file, kept, copy=copy, data_folder=data_folder(plan.samples.run))
        elif chosen == "npz":
            write_archive(data_file, replace(corrected.subset(is_kept), true_labels=None))
        elif chosen == "csv":
            n_guarded = write_csv_table(data_file, original, corrected, is_kept)
        else:
            writer = {"parquet": write_parquet_table, "jsonl": write_jsonl}[chosen]
            writer(data_file, original, corrected, is_kept)
        write_csv(trail_file, correction.trail)
    return Exported(
        path=path,
        trail=trail,
        format=chosen,
        n_samples=int(is_kept.sum()) - images.n_lost - images.n_outside,
        n_lost_files=images.n_lost,
        n_outside_files=images.n_outside,
        n_copied_files=images.n_copied,
        n_guarded_cells=n_guarded,
        lost=original.lost,
        changes=correction.changes,
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
def _published_together(path: Path, trail: Path) -> Iterator[tuple[Path, Path]]:
    """Yield where to write the data and the trail; both get their names when both are complete.

    The trail comes first, so that there is never new data without its trail. If the data cannot follow, the
    earlier trail is put back.
    """
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    hidden.mkdir()
    try:
        new, new_trail, earlier_trail = hidden / path.name, hidden / trail.name, hidden / secrets.token_hex(8)
        yield new, new_trail
        if trail.exists():
            shutil.copy2(trail, earlier_trail)
        new_trail.replace(trail)
        try:
            if new.is_dir():
                replace_folder(new, path)
            else:
                new.replace(path)
        except BaseException:
            if earlier_trail.exists():
                earlier_trail.replace(trail)
            else:
                trail.unlink()
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
        return chosen, Path(stem if chosen == "folder" else f"{stem}{_SUFFIXES[chosen][0]}").absolute()
    path = Path(out).absolute()
    named = next((f for f, ends in _SUFFIXES.items() if path.name.lower().endswith(ends)), None)
    if named is None and format is None:
        if path.suffix:
            known = ", ".join(ends[0] for ends in _SUFFIXES.values())
            raise must_be("out", f"a folder or a name that ends in {known}", str(out), "Or pass a 'format'.")
        named = "folder"
    if format is not None and named is not None and format != named:
        raise must_be("format", f"that of the name {path.name!r}, {named!r}", format)
    return named or format, path  # type: ignore[return-value]


def _usual_format(original: Original) -> Format:
    """The format of the original data."""
    if original.path is not None:
        name = original.path.name.lower()
        if original.path.is_dir() and original.dataset.source_kind == "image":
            return "folder"
        for format, ends in _SUFFIXES.items():
            if name.endswith(ends):
                return format
    return "csv" if original.dataset.features is None else "npz"


def _check_free(path: Path, trail: Path, format: Format, overwrite: bool) -> None:
    if not path.parent.is_dir():
        raise RunFolderError(f"The folder {path.parent} does not exist: create it first, or choose another.")
    if format == "folder":
        restore_folder(path)
        check_folder(path, overwrite=overwrite)
    elif path.is_dir():
        raise RunFolderError(f"{path} is a folder: choose another name.")
    for taken in (path, trail):
        if taken.is_file() and not overwrite:
            raise RunFolderError(f"{taken} exists: choose another name with --out, or use --overwrite.")
