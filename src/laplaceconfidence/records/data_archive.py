"""A data set as one .npz archive, in the form ``read_dataset`` reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laplaceconfidence.data.array_files import open_archive
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.files import not_as_written, replacing

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
    arrays: dict[str, Any] = {"ids": _as_text_array(dataset.sample_ids, path), **_labels(dataset, path)}
    if dataset.features is not None:
        arrays["features"] = dataset.features
    if dataset.images is not None:
        arrays["images"] = dataset.images
    if dataset.sources is not None:
        arrays["paths" if dataset.source_kind == "image" else "texts"] = _as_text_array(dataset.sources, path)
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays)
        _check_content(temporary, arrays, path.name)


def _as_text_array(texts: ArrayLike, path: Path) -> NDArray[Any]:
    written = np.array(texts, dtype=str)
    if any(str(text).endswith("\0") for text in np.asarray(texts, dtype=object).tolist()):
        raise DataFormatError(
            f"{path.name} cannot be written: arrays of texts hold no text that ends in a NUL character, "
            "and an id, a class or a text of this data does. Remove these characters; 'laplaceconfidence "
            "export' writes them as CSV, Parquet or JSON lines."
        )
    return written


def _check_content(path: Path, arrays: Mapping[str, NDArray[Any]], name: str) -> None:
    """Read an archive back and compare it with the arrays it was written from."""
    with open_archive(path) as archive:
        if sorted(archive.keys) != sorted(arrays):
            raise not_as_written(name, "other arrays")
        for key, written in arrays.items():
            read = archive.load(key)
            may_be_nan = written.dtype.kind == "f"
            if read.dtype != written.dtype or not np.array_equal(read, written, equal_nan=may_be_nan):
                raise not_as_written(name, f"another array {key!r}")


def _labels(dataset: NoisyDataset, path: Path) -> dict[str, NDArray[Any]]:
    """Labels as the user writes them, with the names of the classes where the labels do not determine them.

    The labels determine the classes where these are the distinct labels in their order. They do not where
    numbers stand for names, where a class has no label, or where the classes are in another order.
    """
    values, names = dataset.class_values, _as_text_array(dataset.class_names, path)
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
