"""Reader of data sets of pairs (input, label), such as those of torch and torchvision.

They are recognized by their methods, so that torch is not imported here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import ByteImages, to_numpy
from laplaceconfidence.data.array_files import load_features
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.images import resized
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import must_be

_CHANNELS = (1, 3, 4)


def is_map_style(source: Any) -> bool:
    """Return whether a source is a data set with a length whose items are pairs.

    Parameters
    ----------
    source : object
        Anything.

    Returns
    -------
    bool
    """
    if isinstance(source, (str, bytes, dict, list, tuple, np.ndarray)) or hasattr(source, "detach"):
        return False
    if not hasattr(source, "__getitem__") or not hasattr(source, "__len__") or len(source) == 0:
        return False
    try:
        first = source[0]
    except (KeyError, TypeError, IndexError):
        return False
    return isinstance(first, (tuple, list)) and len(first) == 2


def read_map_style(source: Any, options: ReadOptions) -> NoisyDataset:
    """Read a data set of pairs (input, label); each is read once, with its transformations applied.

    Inputs of one axis become features. Inputs of two or three axes are images: tensors have their channels
    first, and so have arrays unless their last axis has 1, 3 or 4 entries. Images of floats from 0 to 1 are
    multiplied by 255, numbers from 0 to 255 are rounded, and other values, as after a normalization, are
    scaled such that the range of all images becomes 0 to 255. The names in ``classes`` of the source (or of
    the data set that it is a subset of) become the names of the classes.

    Parameters
    ----------
    source : object
        Has ``__len__`` and ``__getitem__``.
    options : ReadOptions
        ``features`` (an array or .npy file with one row per sample), ``missing_label`` and ``image_size``
        apply.

    Returns
    -------
    NoisyDataset
    """
    options.allow_only("a dataset of pairs (input, label)", "features", "missing_label", "image_size")
    inputs, labels = [], []
    with stage("reading samples", total=len(source)) as advance:
        for row in range(len(source)):
            value, label = source[row]
            inputs.append(_as_array(value, row, options.image_size))
            labels.append(_plain_label(label))
            advance(1)
            if inputs[-1].shape != inputs[0].shape:
                raise _unlike(inputs[0], inputs[-1], row)
    stacked = np.stack(inputs)
    features = None if options.features is None else load_features(options.features)
    images = None
    if stacked.ndim == 4:
        images = _as_bytes(stacked)
    elif features is None:
        features = stacked
    names = _class_names(source) if all(isinstance(label, int) for label in labels) else None
    return NoisyDataset.from_arrays(
        labels, features, class_names=names, images=images, missing_label=options.missing_label
    )


def _as_array(value: Any, row: int, size: Any) -> NDArray[Any]:
    """One input as a vector, or as an image of shape (height, width, channels)."""
    array = to_numpy(value)
    if array.dtype.kind not in "fiub":
        rule = "a dataset whose inputs are numbers or images"
        raise must_be("source", rule, f"{type(value).__name__} in row {row}")
    if array.ndim == 2:
        array = array[..., np.newaxis]
    elif array.ndim == 3 and (hasattr(value, "detach") or array.shape[2] not in _CHANNELS):
        array = np.moveaxis(array, 0, 2)
    if array.ndim not in (1, 3) or 0 in array.shape:
        raise must_be("source", "a dataset of vectors or images", f"shape {array.shape} in row {row}")
    if array.ndim == 3 and size is not None:
        return resized(array, size)
    return array


def _as_bytes(images: NDArray[Any]) -> ByteImages:
    if images.dtype == np.uint8:
        return images
    values = images.astype(np.float32)
    if not np.isfinite(values).all():
        raise DataFormatError("The images of the dataset hold NaN or infinite values. Drop or repair them.")
    low, high = float(values.min()), float(values.max())
    if images.dtype.kind == "f" and low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif low >= 0 and high <= 255:
        low, high = 0.0, 255.0
    scaled = (values - low) * (255.0 / max(high - low, 1e-12))
    in_bytes: ByteImages = np.rint(scaled).astype(np.uint8)
    return in_bytes


def _plain_label(label: Any) -> Any:
    if hasattr(label, "detach") or isinstance(label, np.generic):
        return to_numpy(label).item()
    return label


def _class_names(source: Any) -> list[str] | None:
    while getattr(source, "classes", None) is None:
        source = getattr(source, "dataset", None)  # what a subset was taken from
        if source is None:
            return None
    return [str(name) for name in source.classes]


def _unlike(first: NDArray[Any], other: NDArray[Any], row: int) -> InvalidInputError:
    advice = "Pass 'image_size', or resize them in the dataset." if first.ndim == 3 else ""
    rule = f"a dataset whose inputs have one shape, {first.shape} as in row 0"
    return must_be("source", rule, f"shape {other.shape} in row {row}", advice)
