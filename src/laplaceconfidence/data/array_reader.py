"""Readers of .npz archives, .npy files with separate labels, and pairs of arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.data.array_files import Archive, load_array, load_features, open_archive
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.label_files import given_labels
from laplaceconfidence.data.read_options import Names, ReadOptions
from laplaceconfidence.validation import must_be


def read_npz(path: Path, options: ReadOptions) -> NoisyDataset:
    """Read an .npz archive; arrays are recognized by their names.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        Options of ``read_dataset``.

    Returns
    -------
    NoisyDataset
    """
    options.allow_only(
        "an .npz file",
        *("label", "labels", "features", "images", "id", "text", "path", "true_label", "missing_label"),
    )
    with open_archive(path) as archive:
        names = Names(archive.keys, "keys", str(path))
        labels = _labels(archive, names, options)
        features = _features(archive, names, options)
        kind, source_key = names.find_source(options)
        keys = {
            "images": names.find("images", options.images),
            "ids": names.find("id", options.id),
            "sources": source_key,
            "true_labels": names.find("true_label", options.true_label),
            "class_names": names.find("class_names", None),
        }
        loaded = {column: archive.load(key) for column, key in keys.items() if key is not None}
    if features is None and not loaded.keys() & {"images", "sources"} and not options.labels_only:
        raise names.no_inputs_error()
    if "images" in loaded and loaded["images"].ndim == 3:
        loaded["images"] = loaded["images"][..., np.newaxis]  # gray images without a channel axis
    return NoisyDataset.from_arrays(
        labels, features, missing_label=options.missing_label, source_kind=kind, **loaded
    )


def read_npy(path: Path, options: ReadOptions) -> NoisyDataset:
    """Read features from an .npy file, with the labels of ``options.labels``.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        Options of ``read_dataset``.

    Returns
    -------
    NoisyDataset
    """
    options.allow_only("an .npy file, which holds the features", "labels", "missing_label")
    if options.labels is None:
        rule = "a path to an .npy file or to a text file with one label per line, or the labels themselves"
        raise must_be("labels", rule, None, f"{path} holds the features only.")
    labels = given_labels(options.labels)
    return NoisyDataset.from_arrays(labels, load_array(path), missing_label=options.missing_label)


def read_pair(pair: tuple[Any, ...], options: ReadOptions) -> NoisyDataset:
    """Make a data set of a pair (features, labels).

    Parameters
    ----------
    pair : tuple
        Arrays, lists or torch tensors.
    options : ReadOptions
        Options of ``read_dataset``.

    Returns
    -------
    NoisyDataset
    """
    options.allow_only("a pair of features and labels", "missing_label")
    if len(pair) != 2:
        raise must_be("source", "a pair (features, labels) when it is a tuple", f"a tuple of {len(pair)}")
    features, labels = pair
    return NoisyDataset.from_arrays(labels, features, missing_label=options.missing_label)


def _labels(archive: Archive, names: Names, options: ReadOptions) -> Any:
    if options.labels is None:
        return archive.load(names.require("label", options.label))
    if options.label is not None:
        raise must_be("label", "left out where 'labels' gives the labels", options.label)
    return given_labels(options.labels)


def _features(archive: Archive, names: Names, options: ReadOptions) -> Any:
    if names.is_not_a_name(options.features):
        return load_features(options.features)
    key = names.find("features", options.features)
    return None if key is None else archive.load(key)
