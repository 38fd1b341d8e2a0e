"""The samples of ``laplaceconfidence predict``: read without labels unless they are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.arrays import IntArray, StrArray
from laplaceconfidence.data.array_files import load_array, open_archive
from laplaceconfidence.data.cifar import is_cifar_folder
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_files import BadImage, decode_images, has_image_files
from laplaceconfidence.data.image_folder import IMAGE_SUFFIXES, read_unlabeled_images
from laplaceconfidence.data.label_files import given_labels
from laplaceconfidence.data.labels import MISSING, encode_labels
from laplaceconfidence.data.read_options import Names, ReadOptions
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.data.table_files import TABLE_SUFFIXES, open_table, table_kind
from laplaceconfidence.data.tables import TABLE_OPTIONS, SourceTable, dataset_of_table
from laplaceconfidence.data.webvision import is_webvision_folder
from laplaceconfidence.encoders.table_columns import ColumnsEncoder
from laplaceconfidence.training.trained_model import TrainedModel
from laplaceconfidence.validation import check_same_length, must_be

_OF_LABELS = ("label", "labels", "missing_label")


@dataclass(frozen=True, slots=True, eq=False)
class PredictionSource:
    """Samples to predict for."""

    X: Any  # an array or a NoisyDataset
    ids: StrArray
    labels: IntArray | None = None  # positions in the classes of the model, -1 where missing
    skipped: list[BadImage] = field(default_factory=list)


def read_samples(
    source: str,
    model: TrainedModel,
    read_options: Mapping[str, Any],
    *,
    evaluate: bool,
    n_workers: int | None,
) -> PredictionSource:
    """The samples of a source, and their labels if they are compared with.

    Parameters
    ----------
    source : str
        What the command was given.
    model : TrainedModel
        Its columns are looked for in a table, and image files are resized to its input.
    read_options : mapping of str to Any
        Arguments of ``read_dataset`` that were given.
    evaluate : bool
        Whether labels are needed.
    n_workers : int or None
        Threads that decode images; ``None`` uses all cores.

    Returns
    -------
    PredictionSource
    """
    if not evaluate and (unused := [name for name in _OF_LABELS if name in read_options]):
        rule = "left out unless --evaluate compares the predictions with labels"
        raise must_be(unused[0], rule, read_options[unused[0]])
    options = ReadOptions(**read_options, classes=None if evaluate else model.class_names)
    path, name = Path(source), source.lower()
    if path.is_file() and name.endswith(".npy"):
        return _read_npy(path, model, options, evaluate=evaluate)
    if path.is_file() and name.endswith(".npz"):
        return _read_npz(path, model, options, evaluate=evaluate)
    dataset = _dataset(source, model, options)
    skipped: list[BadImage] = []
    if model.image_size is not None and has_image_files(dataset):
        n_threads = None if n_workers is None else max(1, n_workers)
        dataset, skipped = decode_images(dataset, model.image_size, skip_bad=True, n_workers=n_threads)
    labels = _codes(dataset.labels, dataset.class_names, model) if evaluate else None
    return PredictionSource(dataset, dataset.sample_ids, labels, skipped)


def _dataset(source: str, model: TrainedModel, options: ReadOptions) -> NoisyDataset:
    path = Path(source)
    evaluate = options.classes is None
    is_table = path.is_file() and source.lower().endswith(TABLE_SUFFIXES)
    if is_table or (path.is_dir() and table_kind(path) is not None):
        options.allow_only("a table", *TABLE_OPTIONS)
        with open_table(path, options, "source") as table:
            dataset = dataset_of_table(table, _with_columns(options, model, table))
        # Columns that the user names are taken in that order, whatever their names.
        return dataset if options.features is None else replace(dataset, feature_columns=None)
    is_image = path.is_file() and path.suffix.lower() in IMAGE_SUFFIXES
    is_image_folder = path.is_dir() and not is_cifar_folder(path) and not is_webvision_folder(path)
    takes_images = model.encoder is not None and "image" in model.encoder.takes
    if model.image_size is None and not takes_images and (is_image or is_image_folder):
        rule = "features, which the model was trained on: a table, .npz or .npy file"
        raise must_be("source", rule, f"images ({source})")
    if is_image and evaluate:
        raise must_be("source", "samples with labels where --evaluate is given", f"one image ({source})")
    if (is_image or is_image_folder) and options.classes is not None:
        options.allow_only("images")
        return read_unlabeled_images(path, options.classes)
    return read_dataset(source, **options.given)


def _with_columns(options: ReadOptions, model: TrainedModel, table: SourceTable) -> ReadOptions:
    """Options that name the columns that the model was trained on, unless others were named."""
    columns, keeps_cells = model.feature_columns, False
    if isinstance(model.encoder, ColumnsEncoder):
        columns, keeps_cells = model.encoder.columns, True
        options = replace(options, keeps_cells=True)
    if columns is None or options.features is not None:
        return options
    if missing := [name for name in columns if name not in table.column_names]:
        listed = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
        raise must_be(
            "source",
            f"a table with the {len(columns)} columns that the model was trained on",
            f"{table.origin} without {listed}",
            Names(table.column_names, "columns", table.origin).listed(),
        )
    return replace(options, features=list(columns), keeps_cells=keeps_cells)


def _read_npy(path: Path, model: TrainedModel, options: ReadOptions, *, evaluate: bool) -> PredictionSource:
    options.allow_only("an .npy file", "labels", "missing_label")
    array = load_array(path)
    labels = None
    if evaluate:
        if options.labels is None:
            raise must_be("labels", "given with --evaluate, as an .npy file has no labels", None)
        labels = given_labels(options.labels)
    return _of_arrays(array, None, labels, model, options)


def _read_npz(path: Path, model: TrainedModel, options: ReadOptions, *, evaluate: bool) -> PredictionSource:
    options.allow_only("an .npz file", *_OF_LABELS, "features", "images", "id")
    with open_archive(path) as archive:
        names = Names(archive.keys, "keys", str(path))
        key = None if model.image_size is None else names.find("images", options.images)
        array = archive.load(key or names.require("features", options.features))
        id_key = names.find("id", options.id)
        ids = None if id_key is None else archive.load(id_key)
        labels = None
        if evaluate and options.labels is not None:
            labels = given_labels(options.labels)
        elif evaluate:
            labels = archive.load(names.require("label", options.label))
    return _of_arrays(array, ids, labels, model, options)


def _of_arrays(
    array: Any, ids: Any, labels: Any, model: TrainedModel, options: ReadOptions
) -> PredictionSource:
    if array.ndim == 0 or len(array) == 0:
        raise must_be("source", "at least one sample", f"an array of shape {array.shape}")
    names = np.arange(len(array)).astype(str) if ids is None else ids.astype(str)
    check_same_length("id", len(names), "source", len(array))
    codes = None
    if labels is not None:
        encoded = encode_labels(labels, missing_label=options.missing_label, parameter="label")
        check_same_length("label", len(encoded.codes), "source", len(array))
        codes = _codes(encoded.codes, encoded.class_names, model)
    return PredictionSource(array, names, codes)


def _codes(codes: IntArray, class_names: tuple[str, ...], model: TrainedModel) -> IntArray:
    """Codes of ``class_names`` as positions in the classes of the model, by their names or their values."""
    present = {class_names[code] for code in np.unique(codes) if code != MISSING}
    values = tuple(str(value) for value in model.classes.tolist())
    for known in (model.class_names, values):
        if present <= set(known):
            position = {name: code for code, name in enumerate(known)}
            moved = np.array([*(position.get(name, MISSING) for name in class_names), MISSING])
            return np.asarray(moved[codes], dtype=np.int64)
    listed = ", ".join(map(repr, model.class_names[:10])) + ", ..." * (len(model.class_names) > 10)
    unknown = sorted(present - set(model.class_names))[0]
    raise must_be("label", f"one of the classes of the model ({listed})", unknown)
