"""Reader of image folders with one sub-folder per class and the images anywhere below it."""

from __future__ import annotations

import csv
import os
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from laplaceconfidence.csv_files import unguarded
from laplaceconfidence.data.array_files import load_features
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.exceptions import DataFormatError, LaplaceConfidenceWarning

IMAGE_SUFFIXES = frozenset(
    {
        ".bmp",
        ".gif",
        ".jfif",
        ".jpe",
        ".jpeg",
        ".jpg",
        ".pbm",
        ".pgm",
        ".png",
        ".pnm",
        ".ppm",
        ".tif",
        ".tiff",
    }
    | {".webp"}
)
OTHER_IMAGE_SUFFIXES = frozenset(
    {
        ".arw",
        ".avif",
        ".cr2",
        ".cr3",
        ".dcm",
        ".dng",
        ".exr",
        ".heic",
        ".heif",
        ".ico",
        ".j2k",
        ".jp2",
        ".jxl",
    }
    | {".nef", ".orf", ".psd", ".raw", ".rw2", ".svg", ".tga"}
)
"""Formats of images that are not supported."""

EXPORT_MARK = ".laplaceconfidence-export"  # only folders with this file are ever replaced by an export
EXPORTED_CLASSES = "classes.csv"
EXPORTED_IDS = "ids.csv"  # a corrected image moves to another folder, and its path is its id no longer

SPLIT_NAMES = frozenset({"train", "training", "val", "valid", "validation", "test", "testing", "dev"})
"""Names that folders and files of splits have."""

_LAYOUT = "An image folder has one sub-folder per class with its images, such as cats/1.jpg and dogs/2.jpg."


def read_image_folder(folder: Path, options: ReadOptions) -> NoisyDataset:
    """Read the paths of the images below a folder, sorted; the images are not decoded.

    Parameters
    ----------
    folder : Path
        The folder.
    options : ReadOptions
        ``features`` has one row per image in the order of the paths; ``missing_label`` is the name of a
        sub-folder of images without a label. The sub-folders of an exported folder have the classes that its
        table states.

    Returns
    -------
    NoisyDataset
    """
    options.allow_only("an image folder", "features", "missing_label")
    try:
        images = _images_by_class(folder)
    except OSError as error:
        raise DataFormatError(f"The image folder {folder} cannot be searched: {error}.") from error
    labeled = sorted(
        (path.relative_to(folder).as_posix(), label) for label, paths in images.items() for path in paths
    )
    class_of = _exported_table(folder, EXPORTED_CLASSES, ("folder", "class"))
    names = [name for name, _ in labeled]
    root = folder.absolute()
    return NoisyDataset.from_arrays(
        [class_of.get(label, label) for _, label in labeled],
        None if options.features is None else load_features(options.features),
        missing_label=options.missing_label,
        ids=_ids(names, _exported_table(folder, EXPORTED_IDS, ("file", "id"))),
        sources=[str(root / name) for name in names],
        source_kind="image",
    )


def read_unlabeled_images(path: Path, classes: tuple[str, ...]) -> NoisyDataset:
    """Read the path of one image, or of all images below a folder, sorted; none has a label.

    Parameters
    ----------
    path : Path
        An image, or a folder with images anywhere below it.
    classes : tuple of str
        The classes that they may have.

    Returns
    -------
    NoisyDataset
        Ids are paths relative to the folder.
    """
    if path.is_dir():
        found = _search(path)
        for note in _notes_on_left_out(path, [found]):
            _warn(note)
        names = sorted(image.relative_to(path).as_posix() for image in found.images)
        if not names:
            raise DataFormatError(f"{path} has no images below it ({', '.join(sorted(IMAGE_SUFFIXES))}).")
        root = path.absolute()
    else:
        names, root = [path.name], path.absolute().parent
    return NoisyDataset.from_arrays(
        [None] * len(names),
        classes=classes,
        ids=names,
        sources=[str(root / name) for name in names],
        source_kind="image",
    )


def _ids(names: list[str], exported: dict[str, str]) -> list[str]:
    """The paths of the images; in an exported folder, the ids that they had before."""
    taken = {exported[name] for name in names if name in exported}
    ids = []
    for name in names:
        id, number = exported.get(name, name), 2
        while name not in exported and id in taken:  # a new image at the place of one that has moved
            id, number = f"{name}-{number}", number + 1
        ids.append(id)
    return ids


def _exported_table(folder: Path, file_name: str, columns: tuple[str, str]) -> dict[str, str]:
    """A table of an exported folder as a mapping; empty where the folder is not an export.

    The class is empty for samples without a label.
    """
    table = folder / file_name
    if not (folder / EXPORT_MARK).is_file() or not table.is_file():
        return {}
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            key, value = columns
            return {unguarded(row[key]): unguarded(row[value]) for row in csv.DictReader(file)}
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise DataFormatError(
            f"{table} is not the table of {columns[0]} and {columns[1]} that export writes: {error}. "
            "Remove it to use the names of the folders."
        ) from error


@dataclass(slots=True)
class _Found:
    """What is below the folder of a class; what is left out, as paths."""

    images: list[Path] = field(default_factory=list)
    other_formats: list[Path] = field(default_factory=list)
    unreadable: list[Path] = field(default_factory=list)
    linked_folders: list[Path] = field(default_factory=list)
    broken_links: list[Path] = field(default_factory=list)


def _images_by_class(folder: Path) -> dict[str, list[Path]]:
    entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    class_folders = sorted(entry for entry in entries if entry.is_dir())
    stray = sorted(entry.name for entry in entries if _is_image(entry) or _is_other_image(entry))
    if not class_folders:
        found = f"{len(stray)} images but no sub-folders" if stray else "neither sub-folders nor images"
        raise DataFormatError(f"{folder} holds {found}. {_LAYOUT}")
    found_in = {class_folder.name: _search(class_folder) for class_folder in class_folders}
    images = {name: found.images for name, found in found_in.items()}
    notes = _notes_on_left_out(folder, list(found_in.values()))
    if not any(images.values()):
        raise DataFormatError(
            " ".join(
                (
                    f"{folder} has {len(class_folders)} sub-folders and no image in any of them "
                    f"({', '.join(sorted(IMAGE_SUFFIXES))}). {_LAYOUT}",
                    *notes,
                )
            )
        )
    if set(images) <= SPLIT_NAMES:
        raise DataFormatError(
            f"The sub-folders of {folder} are splits ({', '.join(images)}) and not classes: "
            f"read one of them, such as {class_folders[0]}."
        )
    if empty := [name for name, found in found_in.items() if not found.images and not found.unreadable]:
        _warn(f"{folder} has {len(empty)} sub-folders without images, which are ignored: {_few(empty)}")
    if stray:
        _warn(f"{folder} has {len(stray)} images outside the sub-folders, which are left out: {_few(stray)}")
    for note in notes:
        _warn(note)
    return {name: paths for name, paths in images.items() if paths}


def _search(class_folder: Path) -> _Found:
    found = _Found()

    def unreadable(error: OSError) -> None:
        found.unreadable.append(Path(error.filename or class_folder))

    for parent, folder_names, file_names in os.walk(class_folder, onerror=unreadable):
        folders = [Path(parent, name) for name in folder_names]
        found.linked_folders += [path for path in folders if path.is_symlink()]
        for path in (Path(parent, name) for name in file_names):
            if _is_image(path):
                found.images.append(path)
            elif _is_other_image(path):
                found.other_formats.append(path)
            elif _has_suffix_of(path, IMAGE_SUFFIXES) and path.is_symlink():
                found.broken_links.append(path)
    return found


def _notes_on_left_out(folder: Path, found: list[_Found]) -> list[str]:
    """One note per reason for which something is left out, with the number and the first names."""
    left_out = {
        reason: sorted(path.relative_to(folder).as_posix() for one in found for path in getattr(one, reason))
        for reason in ("other_formats", "unreadable", "linked_folders", "broken_links")
    }
    formats = Counter(PurePosixPath(name).suffix.lower() for name in left_out["other_formats"])
    listed = ", ".join(f"{suffix}: {number}" for suffix, number in sorted(formats.items()))
    described = {
        "other_formats": f"images in formats that are not supported ({listed}; convert them to PNG or JPEG)",
        "unreadable": "sub-folders that cannot be read (check their permissions)",
        "linked_folders": "sub-folders that are symbolic links, which are not followed",
        "broken_links": "symbolic links that lead to no file",
    }
    return [
        f"{folder} has {len(names)} {described[reason]}; they are left out: {_few(names)}"
        for reason, names in left_out.items()
        if names
    ]


def _is_image(path: Path) -> bool:
    return _has_suffix_of(path, IMAGE_SUFFIXES) and path.is_file()


def _is_other_image(path: Path) -> bool:
    return _has_suffix_of(path, OTHER_IMAGE_SUFFIXES) and path.is_file()


def _has_suffix_of(path: Path, suffixes: frozenset[str]) -> bool:
    return path.suffix.lower() in suffixes and not path.name.startswith(".")


def _few(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "") + "."


def _warn(message: str) -> None:
    warnings.warn(message, LaplaceConfidenceWarning, stacklevel=6)
