"""A corrected data set as a folder of images: one subfolder per class, and tables of classes and ids."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import quote

import numpy as np

from laplaceconfidence.csv_files import write_csv
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_folder import EXPORTED_CLASSES, EXPORTED_IDS
from laplaceconfidence.data.labels import MISSING, encodable
from laplaceconfidence.export.export_folder import ImageCopies, WrittenImages, new_export_folder

UNLABELED = "_unlabelled"  # the spelling of the first release: folders out there have it
_LONGEST_NAME = 200  # bytes


def write_image_folder(
    folder: Path, dataset: NoisyDataset, *, copy: bool, data_folder: Path | None = None
) -> WrittenImages:
    """Write all images, sorted into folders by label.

    Parameters
    ----------
    folder : pathlib.Path
        Where to write them; an earlier export there is replaced.
    dataset : NoisyDataset
        The corrected data set. Images that exist in memory only are written as PNG.
    copy : bool
        Whether files are copied. Otherwise they are hard-linked where the file system allows it, and copied
        where it does not: a symbolic link would lead out of the exported folder, and not be followed.
    data_folder : pathlib.Path, optional
        The folder of the data, as in ``file_within``: images that are links out of it are left out.

    Returns
    -------
    WrittenImages
    """
    copies = ImageCopies(dataset, "folder", copy=copy, data_folder=data_folder)
    with new_export_folder(folder) as temporary:
        _fill(temporary, dataset, copies)
    return copies.written


def _fill(folder: Path, dataset: NoisyDataset, copies: ImageCopies) -> None:
    taken: set[str] = set()
    folders = folder_names(dataset.class_names)
    _write_classes(folder / EXPORTED_CLASSES, folders, dataset)
    id_of: dict[str, str] = {}
    for row, code in enumerate(dataset.labels.tolist()):
        if not copies.is_there(row):
            continue
        label = UNLABELED if code == MISSING else folders[code]
        target = folder / label / _free_name(label, _file_name(dataset, row), taken)
        id_of[f"{label}/{target.name}"] = dataset.sample_ids[row]
        copies.put(row, target)
    _write_ids(folder / EXPORTED_IDS, id_of)


def folder_names(class_names: Sequence[str]) -> list[str]:
    """Return the names of the folders of classes, all of them different.

    Parameters
    ----------
    class_names : sequence of str
        Names of the classes.

    Returns
    -------
    list of str
        Different also for file systems that ignore case or accept one Unicode form only, and none of them the
        folder of the samples without a label.
    """
    taken = {_as_compared(UNLABELED)}
    names = []
    for class_name in class_names:
        base = name = folder_name(class_name)
        number = 2
        while _as_compared(name) in taken:
            name, number = f"{base}-{number}", number + 1
        taken.add(_as_compared(name))
        names.append(name)
    return names


def folder_name(class_name: str) -> str:
    """Return a name for the folder of a class.

    Parameters
    ----------
    class_name : str
        Name of the class.

    Returns
    -------
    str
        The same name where that is possible, else percent-encoded; long names are cut, with a digest of the
        whole name at the end.
    """
    is_plain = (
        class_name.isprintable() and class_name.strip() == class_name and not class_name.startswith(".")
    )
    name = class_name
    if not is_plain or not class_name or set(class_name) & set('/\\:*?"<>|%'):
        name = quote(class_name, safe=" ", errors="backslashreplace").replace(".", "%2E") or "%"
    encoded = name.encode()
    if len(encoded) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(class_name.encode(errors="backslashreplace")).hexdigest()[:16]
    return f"{encoded[: _LONGEST_NAME - 20].decode(errors='ignore')}-{digest}"


def _as_compared(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _write_classes(path: Path, folders: list[str], dataset: NoisyDataset) -> None:
    """The table that maps folders to classes; samples without a label have a folder and no class."""
    import pandas as pd

    has_gaps = bool((dataset.labels == MISSING).any())
    table = pd.DataFrame(
        {
            "folder": [*folders, *[UNLABELED] * has_gaps],
            "class": [*encodable(np.array(dataset.class_names, dtype=object)), *[""] * has_gaps],
        }
    )
    write_csv(path, table)


def _write_ids(path: Path, id_of: dict[str, str]) -> None:
    """The table of the ids that the images had, so that they are still found in the exported folder."""
    import pandas as pd

    files, ids = (np.array(list(texts), dtype=object) for texts in (id_of, id_of.values()))
    write_csv(path, pd.DataFrame({"file": encodable(files), "id": encodable(ids)}))


def _file_name(dataset: NoisyDataset, row: int) -> str:
    if dataset.sources is None:
        return f"{quote(str(dataset.sample_ids[row]), safe='')[:100]}.png"
    return PurePosixPath(dataset.sources[row]).name


def _free_name(label: str, name: str, taken: set[str]) -> str:
    """``name``, with a number appended where a file from another folder already has it."""
    stem, suffix = os.path.splitext(name)  # noqa: PTH122 - a name, not a path
    free, number = name, 2
    while f"{label}/{free}".casefold() in taken:
        free, number = f"{stem}-{number}{suffix}", number + 1
    taken.add(f"{label}/{free}".casefold())
    return free
