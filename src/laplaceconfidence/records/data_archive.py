"""A data set as one .npz archive, in the form ``read_dataset`` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.files import replacing

_LARGEST_WHOLE_FLOAT = 2**53


def write_archive(path: Path, dataset: NoisyDataset) -> None:
    """Write ids and labels, and the features, images, texts or paths that a data set has.

    Parameters
    ----------
    path : pathlib.Path
        A .npz file.
    dataset : NoisyDataset
        The data set; its true labels are not written.
    """
    arrays: dict[str, Any] = {"ids": dataset.sample_ids.astype(str), **_labels(dataset)}
    if dataset.features is not None:
        arrays["features"] = dataset.features
    if dataset.images is not None:
        arrays["images"] = dataset.images
    if dataset.sources is not None:
        arrays["paths" if dataset.source_kind == "image" else "texts"] = dataset.sources.astype(str)
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays)


def _labels(dataset: NoisyDataset) -> dict[str, NDArray[Any]]:
    """Labels as the user writes them, with the names of the classes where the labels do not determine them.

    The labels determine the classes where these are the distinct labels in their order. They do not where
    numbers stand for names, where a class has no label, or where the classes are in another order.
    """
    values, names = dataset.class_values, np.array(dataset.class_names)
    if dataset.class_names != tuple(str(value) for value in values):
        return {"labels": dataset.labels, "class_names": names}
    missing = dataset.labels == MISSING
    if np.array_equal(np.unique(values[dataset.labels[~missing]]), values):
        return {"labels": plain_labels(values, dataset.labels)}
    if values.dtype.kind == "i" and np.array_equal(values, np.arange(len(values))):
        return {"labels": dataset.labels, "class_names": names}
    return {"labels": np.where(missing, "", names[dataset.labels]), "class_names": names}


def plain_labels(values: NDArray[Any], codes: NDArray[np.int64]) -> NDArray[Any]:
    """Return labels as an array without Python objects.

    Parameters
    ----------
    values : ndarray of shape (C,)
        The classes as they are written among the labels.
    codes : ndarray of int of shape (n,)
        Codes of the labels.

    Returns
    -------
    ndarray of shape (n,)
        A missing label is NaN among numbers and empty among texts.
    """
    missing = codes == MISSING
    labels = values[codes]
    if not missing.any():
        return labels
    if values.dtype.kind == "i" and np.abs(values).max() <= _LARGEST_WHOLE_FLOAT:
        return np.where(missing, np.nan, labels.astype(np.float64))
    return np.where(missing, "", labels.astype(str))
