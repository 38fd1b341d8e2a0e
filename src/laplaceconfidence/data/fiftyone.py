"""Readers of image classification as FiftyOne exports it.

As ``FiftyOneImageClassificationDataset``:

    data/<name>.jpg    the images
    labels.json        {"classes": ["cat", "dog"], "labels": {"<name>": 0, ...}}

A label is a number, or the name of the class where there is no list of classes, or an object with a ``label``
of either kind (and a confidence, which is not read), or null.

As ``FiftyOneDataset``, the whole data set with all of its fields:

    data/<name>.jpg    the images
    samples.json       {"samples": [{"filepath": "data/<name>.jpg",
                                     "<field>": {"_cls": "Classification", "label": "cat", ...}, ...}, ...]}
    metadata.json      the types of the fields, which is not read
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
from laplaceconfidence.validation import must_be

LABELS_FILE = "labels.json"
SAMPLES_FILE = "samples.json"
DATA_FOLDER = "data"
_USUAL_FIELD = "ground_truth"


def is_fiftyone(content: Any) -> bool:
    """Return whether a JSON document is the ``labels.json`` or the ``samples.json`` of FiftyOne.

    Parameters
    ----------
    content : object
        The document.

    Returns
    -------
    bool
    """
    if not isinstance(content, dict):
        return False
    return _has_samples(content) or (isinstance(content.get("labels"), dict) and "classes" in content)


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
    has_labels = any((folder / name).is_file() for name in (LABELS_FILE, SAMPLES_FILE))
    return has_labels and (folder / DATA_FOLDER).is_dir()


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
    path = next(path for name in (LABELS_FILE, SAMPLES_FILE) if (path := folder / name).is_file())
    content = load_json(path)
    if not is_fiftyone(content):
        raise DataFormatError(
            f"{path} must hold 'classes' and 'labels', as FiftyOneImageClassificationDataset does, or "
            "'samples' with a 'filepath' each, as FiftyOneDataset does."
        )
    return read_fiftyone(content, path, options)


def read_fiftyone(content: dict[str, Any], path: Path, options: ReadOptions) -> NoisyDataset:
    """Read the content of ``labels.json`` or ``samples.json``; the images are in the folder of the file.

    Parameters
    ----------
    content : dict
        The document.
    path : Path
        Its file.
    options : ReadOptions
        ``features`` has one row per label in the order of the document; ``label`` names the field of the
        labels in ``samples.json``, "ground_truth" or the only one of the type Classification if not set.

    Returns
    -------
    NoisyDataset
        Ids are the names of the images as in the document: without their suffix in ``labels.json``.
    """
    if _has_samples(content):
        return _read_samples(content["samples"], path, options)
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


def _has_samples(content: dict[str, Any]) -> bool:
    samples = content.get("samples")
    if not isinstance(samples, list) or not samples:
        return False
    return all(isinstance(one, dict) and isinstance(one.get("filepath"), str) for one in samples)


def _read_samples(samples: list[dict[str, Any]], path: Path, options: ReadOptions) -> NoisyDataset:
    options.allow_only("a FiftyOne export of a whole data set", "label", "features")
    field = _label_field(samples, path, options.label)
    folder = path.absolute().parent
    names = [_relative_name(sample["filepath"], folder) for sample in samples]
    files = [listed_file(folder, name, str(path)) for name in names]
    dataset = NoisyDataset.from_arrays(
        [_label(sample.get(field), name, None, path) for sample, name in zip(samples, names, strict=True)],
        None if options.features is None else load_features(options.features),
        ids=[name.removeprefix(f"{DATA_FOLDER}/") for name in names],
        sources=[str(file) for file in files],
        source_kind="image",
    )
    return without_lost_images(dataset, np.array([file.is_file() for file in files]), str(path))


def _label_field(samples: list[dict[str, Any]], path: Path, requested: str | None) -> str:
    classified = dict.fromkeys(
        name
        for sample in samples
        for name, value in sample.items()
        if isinstance(value, dict) and value.get("_cls") == "Classification"
    )
    field = requested or (_USUAL_FIELD if _USUAL_FIELD in classified else None)
    if field is None and len(classified) == 1:
        return next(iter(classified))
    if field not in classified:
        listed = ", ".join(map(repr, classified)) or "none"
        rule = f"a field of the type Classification of {path}"
        raise must_be("label", rule, field, f"Such fields: {listed}.")
    return field


def _relative_name(name: str, folder: Path) -> str:
    """A path relative to the folder; absolute ones are written where the images were not exported."""
    absolute = Path(name)
    return absolute.relative_to(folder).as_posix() if absolute.is_relative_to(folder) else name


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
