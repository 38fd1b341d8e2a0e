"""A corrected data set as FiftyOne imports it (``FiftyOneImageClassificationDataset``)."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from urllib.parse import quote

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.fiftyone import DATA_FOLDER, LABELS_FILE
from laplaceconfidence.data.image_folder import IMAGE_SUFFIXES
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.data.source_paths import listed_file
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.export.export_folder import ImageCopies, WrittenImages, new_export_folder
from laplaceconfidence.files import write_json


def write_fiftyone(
    folder: Path, dataset: NoisyDataset, *, copy: bool, data_folder: Path | None = None
) -> WrittenImages:
    """Write all images into ``data``, and their labels into ``labels.json``.

    Parameters
    ----------
    folder : pathlib.Path
        Where to write them; an earlier export there is replaced.
    dataset : NoisyDataset
        The corrected data set. Images that exist in memory only are written as PNG.
    copy : bool
        Whether files are copied; otherwise they are hard-linked where the file system allows it.
    data_folder : pathlib.Path, optional
        The folder of the data: images that are links out of it are left out.

    Returns
    -------
    WrittenImages
    """
    copies = ImageCopies(dataset, "fiftyone", copy=copy, data_folder=data_folder)
    taken: set[str] = set()
    labels: dict[str, int | None] = {}
    with new_export_folder(folder) as temporary:
        (temporary / DATA_FOLDER).mkdir()
        for row, code in enumerate(dataset.labels.tolist()):
            if not copies.is_there(row):
                continue
            name = _free_name(_name(str(dataset.sample_ids[row])), taken)
            suffix = ".png" if dataset.sources is None else PurePosixPath(dataset.sources[row]).suffix
            copies.put(row, temporary / DATA_FOLDER / f"{name}{suffix}")
            labels[name] = None if code == MISSING else code
        write_json(temporary / LABELS_FILE, {"classes": list(dataset.class_names), "labels": labels})
    return copies.written


def _name(id: str) -> str:
    """The id without the suffix of an image, if a file can have this name; else encoded."""
    path = PurePosixPath(id)
    name = path.with_suffix("").as_posix() if path.suffix.lower() in IMAGE_SUFFIXES else id
    try:
        listed_file(Path(), name, "")
    except DataFormatError:
        return quote(name, safe="")
    if name.isprintable() and all(0 < len(part.encode()) <= 200 for part in name.split("/")):
        return name
    return quote(name, safe="")[:200]


def _free_name(name: str, taken: set[str]) -> str:
    free, number = name, 2
    while free.casefold() in taken:
        free, number = f"{name}-{number}", number + 1
    taken.add(free.casefold())
    return free
