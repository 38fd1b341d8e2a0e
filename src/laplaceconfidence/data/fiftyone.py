"""Reader of image classification as FiftyOne exports it (``FiftyOneImageClassificationDataset``).

    data/<name>.jpg    the images
    labels.json        {"classes": ["cat", "dog"], "labels": {"<name>": 0, ...}}

A label is a number, or the name of the class where there is no list of classes, or an object with a ``label``
of either kind (and a confidence, which is not read), or null.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.data.array_files import load_features
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_folder import IMAGE_SUFFIXES
from laplaceconfidence.data.json_files import load_json
from laplaceconfidence.data.labeled_images import without_lost_images
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.data.source_paths import listed_file
from laplaceconfidence.exceptions import DataFormatError

LABELS_FILE = "labels.json"
DATA_FOLDER = "data"


def is_fiftyone(content: Any) -> bool:
    """Return whether a JSON document is the ``labels.json`` of FiftyOne.

    Parameters
    ----------
    content : object
        The document.

    Returns
    -------
    bool
    """
    return isinstance(content, dict) and isinstance(content.get("labels"), dict) and "classes" in content


def is_fiftyone_folder(folder: Path) -> bool:
    """Return whether a folder has the layout that FiftyOne exports.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    bool
    """
    return (folder / LABELS_FILE).is_file() and (folder / DATA_FOLDER).is_dir()


def read_fiftyone_folder(folder: Path, options: ReadOptions) -> NoisyDataset:
    """Read an exported folder; the images are not decoded.

    Parameters
    ----------
    folder : Path
        The folder.
    options : ReadOptions
        Options of ``read_dataset``.

    Returns
    -------
    NoisyDataset
    """
    path = folder / LABELS_FILE
    content = load_json(path)
    if not is_fiftyone(content):
        raise DataFormatError(
            f"{path} must hold 'classes' and 'labels', as FiftyOneImageClassificationDataset does."
        )
    return read_fiftyone(content, path, options)


def read_fiftyone(content: dict[str, Any], path: Path, options: ReadOptions) -> NoisyDataset:
    """Read the content of ``labels.json``; the images are in the folder ``data`` beside it.

    Parameters
    ----------
    content : dict
        The document.
    path : Path
        Its file.
    options : ReadOptions
        ``features`` has one row per label in the order of the document.

    Returns
    -------
    NoisyDataset
        Ids are the names of the images without their suffix, as in the document.
    """
    options.allow_only("a FiftyOne export", "features")
    labels: dict[str, Any] = content["labels"]
    if not labels:
        raise DataFormatError(f"{path} has no labels.")
    names = content["classes"]
    folder = path.absolute().parent / DATA_FOLDER
    files = _images_by_name(folder)
    found = [
        files.get(listed_file(folder, name, str(path)).relative_to(folder).as_posix()) for name in labels
    ]
    values = [_label(label, name, names, path) for name, label in labels.items()]
    dataset = NoisyDataset.from_arrays(
        values,
        None if options.features is None else load_features(options.features),
        class_names=names,
        ids=list(labels),
        sources=[str(file or folder / name) for file, name in zip(found, labels, strict=True)],
        source_kind="image",
    )
    return without_lost_images(dataset, np.array([file is not None for file in found]), str(path))


def _label(label: Any, name: str, classes: Any, path: Path) -> Any:
    value = label.get("label") if isinstance(label, dict) else label
    if classes is None:
        if value is None or isinstance(value, str):
            return value
    elif value is None:
        return MISSING
    elif isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(classes):
        return value
    elif isinstance(value, str) and value in classes:
        return classes.index(value)
    kind = (
        "the name of a class" if classes is None else f"a number below {len(classes)} or one of the classes"
    )
    raise DataFormatError(
        f"{path} must give one label per image: {kind}. Got {str(label)[:60]} for {name!r}. Export a field "
        "of the type Classification."
    )


def _images_by_name(folder: Path) -> dict[str, Path]:
    """The images below a folder, by their paths relative to it with and without the suffix."""
    files: dict[str, Path] = {}
    for parent, _, names in os.walk(folder):
        for name in sorted(names):
            path = Path(parent, name)
            if path.suffix.lower() in IMAGE_SUFFIXES:
                files.setdefault(path.relative_to(folder).with_suffix("").as_posix(), path)
                files[path.relative_to(folder).as_posix()] = path
    return files
