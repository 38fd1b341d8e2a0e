"""Reader of folders of images whose labels are in a table: one row per image, with its name and its label.

``labels`` names the table; without it, it is ``metadata.csv``, ``metadata.jsonl`` or ``labels.csv``
in the folder.
"""

from __future__ import annotations

import os
import warnings
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.arrays import BoolArray
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.identity import ContentIds
from laplaceconfidence.data.image_folder import IMAGE_SUFFIXES
from laplaceconfidence.data.read_options import USUAL_NAMES, Names, ReadOptions
from laplaceconfidence.data.source_paths import listed_file
from laplaceconfidence.data.table_files import TABLE_SUFFIXES, open_table
from laplaceconfidence.data.tables import TABLE_OPTIONS, dataset_of_table
from laplaceconfidence.exceptions import DataFormatError, LaplaceConfidenceWarning
from laplaceconfidence.validation import must_be

TABLES = ("metadata.csv", "metadata.jsonl", "labels.csv")
"""Names of tables that are looked for in a folder of images."""

_NAME_COLUMNS = ("file_name", "filename", "file", "path", "image", "image_path", "filepath", "name", "id")


def is_labeled_by_table(folder: Path, options: ReadOptions) -> bool:
    """Return whether the labels of a folder of images are in a table, and not the names of its sub-folders.

    Parameters
    ----------
    folder : Path
        The folder.
    options : ReadOptions
        ``labels`` names a table; ``label`` and ``path`` name columns of the one in the folder.

    Returns
    -------
    bool
        True for a table under one of the usual names that has columns of file names and labels, or that lies
        in a folder without sub-folders.
    """
    if options.labels is not None:
        return True
    table_path = _table_in(folder)
    if table_path is None:
        return False
    has_folders = any(entry.is_dir() and not entry.name.startswith(".") for entry in folder.iterdir())
    if not has_folders or options.label is not None or options.path is not None:
        return True
    try:
        with open_table(table_path, ReadOptions(), "labels") as table:
            existing = set(table.column_names)
    except DataFormatError:
        return False
    return not existing.isdisjoint(_NAME_COLUMNS) and not existing.isdisjoint(USUAL_NAMES["label"])


def read_labeled_images(folder: Path, options: ReadOptions) -> NoisyDataset:
    """Read the images of a folder that a table lists, in its order; they are not decoded.

    Parameters
    ----------
    folder : Path
        The folder of the images, which may be in subfolders.
    options : ReadOptions
        ``labels`` is the table; ``path`` names its column of file names, with or without folder and suffix.
        The other options are those of a table.

    Returns
    -------
    NoisyDataset
        Rows without an image are left out with a warning, and so are images without a row.
    """
    usable = [name for name in TABLE_OPTIONS if name != "text"]
    options.allow_only("a folder of images with a table of labels", "labels", *usable)
    table_path = _table_in(folder) if options.labels is None else Path(str(options.labels))
    if table_path is None or not table_path.name.lower().endswith(TABLE_SUFFIXES):
        rule = f"a table of file names and labels ({', '.join(TABLE_SUFFIXES)})"
        raise must_be("labels", rule, str(options.labels))
    options = replace(options, labels=None)
    with open_table(table_path, options, "labels") as table:
        names = Names(table.column_names, "columns", str(table_path))
    column = options.path or next((name for name in _NAME_COLUMNS if name in names.existing), None)
    if column is None or column not in names.existing:
        raise must_be(
            "path", f"the column of {table_path} that names the images", options.path, names.listed()
        )
    options = replace(options, path=column)  # which is read as text: "007" is a name
    with open_table(table_path, options, "labels") as table:
        cells = [cell or "" for cell in table.texts(column)]
        dataset = dataset_of_table(table, options)
    files = _Files(folder.absolute())
    found = [files.find(cell, str(table_path)) if cell else None for cell in cells]
    sources: Any = np.empty(len(cells), dtype=object)
    sources[:] = [str(file or folder.absolute() / cell) for file, cell in zip(found, cells, strict=True)]
    dataset = replace(dataset, sources=sources, source_kind="image")
    if dataset.ids is None:  # the same if the whole folder is moved
        dataset = replace(dataset, content_ids=ContentIds.of(len(cells), paths=cells))
    if n_unlisted := len(files.paths - {file for file in found if file is not None}):
        _warn(f"{n_unlisted:,} images in {folder} are not listed in {table_path} and are left out.")
    return without_lost_images(dataset, np.array([file is not None for file in found]), str(table_path))


def without_lost_images(dataset: NoisyDataset, is_there: BoolArray, origin: str) -> NoisyDataset:
    """Leave out samples whose image is not there, with a warning.

    Parameters
    ----------
    dataset : NoisyDataset
        The samples, with the paths of their images.
    is_there : ndarray of bool of shape (n,)
        Which images exist.
    origin : str
        What lists them, for messages.

    Returns
    -------
    NoisyDataset

    Raises
    ------
    DataFormatError
        If most images are not there.
    """
    n_lost = int((~is_there).sum())
    if not n_lost:
        return dataset
    assert dataset.sources is not None
    first = dataset.sources[int(np.flatnonzero(~is_there)[0])]
    if 2 * n_lost > len(dataset):
        raise DataFormatError(
            f"{n_lost:,} of the {len(dataset):,} images that {origin} lists do not exist, such as {first}: "
            "give the folder that holds them, or the column that names them (--path)."
        )
    _warn(f"{n_lost:,} images that {origin} lists do not exist, such as {first}. They are left out.")
    return dataset.subset(is_there)


class _Files:
    """The images below a folder, found by path, by name, or by either without the suffix."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths: set[Path] = set()
        self._by_key: defaultdict[str, list[Path]] = defaultdict(list)
        for parent, _, names in os.walk(folder):
            for path in (Path(parent, name) for name in sorted(names)):
                if path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith("."):
                    self.paths.add(path)
                    relative = path.relative_to(folder)
                    for key in {
                        relative.as_posix(),
                        relative.with_suffix("").as_posix(),
                        path.name,
                        path.stem,
                    }:
                        self._by_key[key].append(path)

    def find(self, name: str, origin: str) -> Path | None:
        path = Path(name)
        if not path.is_absolute():
            path = listed_file(self.folder, name, origin)
        if path in self.paths or (path.is_absolute() and path.is_file()):
            return path
        candidates = self._by_key.get(Path(name).as_posix(), [])
        if len(candidates) > 1:
            listed = ", ".join(str(other.relative_to(self.folder)) for other in candidates[:3])
            raise DataFormatError(
                f"{origin} names the image {name!r}, which may be any of {listed}: write the path "
                f"relative to {self.folder} instead."
            )
        return candidates[0] if candidates else None


def _table_in(folder: Path) -> Path | None:
    return next((folder / name for name in TABLES if (folder / name).is_file()), None)


def _warn(message: str) -> None:
    warnings.warn(message, LaplaceConfidenceWarning, stacklevel=4)
