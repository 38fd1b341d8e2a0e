"""Input data (arrays, a NoisyDataset, a torch Dataset) as samples, labels and ids."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from laplaceconfidence.arrays import FloatArray, IntArray, StrArray, to_numpy
from laplaceconfidence.data.arrow_reader import is_huggingface
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.images import load_image
from laplaceconfidence.data.labels import MISSING, EncodedLabels, encode_labels
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.encoders.protocol import Encoder
from laplaceconfidence.training.methods.interface import NO_CLASS
from laplaceconfidence.training.samples import (
    ResidentSamples,
    Samples,
    StreamedSamples,
    as_input,
    channels_come_first,
    read_all,
)
from laplaceconfidence.validation import check_finite, check_integer, check_same_length, must_be

ImageSize = int | tuple[int, int] | None
"""Size that image files are resized to: a side, (height, width), or ``None`` where all have one size."""

RESIDENT_UP_TO = 2 * 2**30
"""Bytes of inputs that are kept in memory as one tensor; more are read by workers in every pass."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingData:
    """Samples with their given labels, as the training loop takes them."""

    samples: Samples
    labels: IntArray  # (n,) -1 where missing
    ids: StrArray
    class_names: tuple[str, ...]
    class_values: Any  # (C,) the classes as the user writes them
    feature_columns: tuple[str, ...] | None = None  # names of the features, where they come from a table
    encoder: Encoder | None = None  # that turned texts, images or columns into features
    weights: FloatArray | None = None  # (n,) how often samples are trained on, relative to each other
    audited: IntArray | None = None  # (n,) labels that a person has verified; codes as in Problem

    def fingerprint(self) -> str:
        """A short text that differs when a run is resumed with other data."""
        digest = hashlib.sha256(self.labels.tobytes())
        digest.update("\n".join((*self.class_names, *self.ids.tolist())).encode())
        if self.weights is not None:
            digest.update(self.weights.tobytes())
        if self.audited is not None:
            digest.update(self.audited.tobytes())
        if isinstance(self.samples, ResidentSamples):
            digest.update(self.samples.inputs.cpu().numpy().data)
        shape = " x ".join(str(side) for side in self.samples.shape)
        return f"{len(self.labels)} samples of {shape}, {digest.hexdigest()[:16]}"


def training_data(
    X: Any,
    y: Any,
    device: torch.device,
    *,
    n_workers: int,
    missing_label: Any,
    image_size: ImageSize = None,
    classes: Any = None,
) -> TrainingData:
    """Convert the arguments of ``fit``.

    Parameters
    ----------
    X, y : as for ``RobustClassifier.fit``
        Samples and given labels.
    device : torch.device
        Where inputs that fit into memory are kept.
    n_workers : int
        Processes that read samples of larger data sets.
    missing_label : Any
        A value of ``y`` that means "no label".
    image_size : int or tuple of int, optional
        Size that image files are resized to.
    classes : ndarray of shape (n_classes,), optional
        The classes where they are already known, as for a test set.

    Returns
    -------
    TrainingData
    """
    if is_huggingface(X):
        X = read_dataset(X, missing_label=missing_label, image_size=image_size)
    if isinstance(X, NoisyDataset):
        if y is not None:
            raise must_be("y", "left out where 'X' is a NoisyDataset, which has labels", type(y).__name__)
        samples = _samples_of(X, device, n_workers, image_size)
        columns = X.feature_columns if len(samples.shape) == 1 else None
        return TrainingData(samples, X.labels, X.sample_ids, X.class_names, X.class_values, columns)
    if isinstance(X, Dataset) or _is_map_style(X):
        if y is not None:
            raise must_be("y", "left out where 'X' is a dataset of (input, label)", type(y).__name__)
        samples, listed = _from_dataset(X, device, n_workers)
        encoded = encode_labels(listed, classes=classes, missing_label=missing_label, parameter="labels of X")
    else:
        samples = ResidentSamples(as_inputs(X), device)
        if y is None:
            raise must_be("y", "the given labels, one per sample", None)
        encoded = encode_labels(y, classes=classes, missing_label=missing_label, parameter="y")
        check_same_length("X", len(samples), "y", len(encoded.codes))
    return _encoded_data(samples, encoded, column_names(X))


def audited_codes(audited: Any, data: TrainingData) -> IntArray | None:
    """Encode labels that a person has verified.

    Parameters
    ----------
    audited : mapping of int to label, or None
        Verified labels by row, None where no class fits.
    data : TrainingData
        The data that they are about.

    Returns
    -------
    ndarray of shape (n_samples,) or None
        Codes of the classes; -1 where nobody has verified the label, -2 where no class fits.
    """
    if audited is None:
        return None
    if not isinstance(audited, Mapping) or not audited:
        raise must_be("audited", "a mapping from row to label with at least one entry", audited)
    code_of = {value: code for code, value in enumerate(data.class_values.tolist())} | {None: NO_CLASS}
    codes = np.full(len(data.labels), MISSING, dtype=np.int64)
    for row, label in audited.items():
        check_integer(row, "audited", minimum=0, maximum=len(codes) - 1)
        if (code := code_of.get(label)) is None:
            raise must_be("audited", f"labels among the {len(data.class_values)} classes of the data", label)
        codes[row] = code
    return codes


def unlabeled_samples(
    X: Any,
    device: torch.device,
    *,
    n_workers: int,
    shape: tuple[int, ...],
    columns: Sequence[str] | None,
    image_size: ImageSize = None,
) -> Samples:
    """Samples to predict for; labels, where there are some, are ignored.

    Parameters
    ----------
    X : as for ``RobustClassifier.predict``
        The samples.
    device : torch.device
        Where inputs that fit into memory are kept.
    n_workers : int
        Processes that read samples of larger data sets.
    shape : tuple of int
        The shape of the samples that were trained on.
    columns : sequence of str or None
        The columns that were trained on. If there is one per feature, they are selected by name from a table.

    image_size : int or tuple of int, optional
        Size that image files are resized to.

    Returns
    -------
    Samples
        Of any shape: the caller compares it.
    """
    if columns is not None and len(columns) != shape[0]:  # one column of lists
        columns = None
    if is_huggingface(X):
        X = read_dataset(X, image_size=image_size)
    if isinstance(X, NoisyDataset):
        if len(shape) == 1 and X.features is not None:  # not the images that it may have as well
            X = _with_columns(replace(X, images=None, sources=None, source_kind=None), columns)
        return _samples_of(X, device, n_workers, image_size)
    if isinstance(X, Dataset) or _is_map_style(X):
        return StreamedSamples(X, device, n_workers)
    if columns is not None and (given := column_names(X)) is not None:
        _check_columns(given, columns)
        X = X[list(columns)]
    return ResidentSamples(as_inputs(X, expected=shape), device)


def column_names(X: Any) -> tuple[str, ...] | None:
    """The names of the columns of a data frame; ``None`` for anything else."""
    names = list(getattr(X, "columns", ()))
    return tuple(names) if names and all(isinstance(name, str) for name in names) else None


def as_inputs(X: Any, *, expected: tuple[int, ...] | None = None, channels_last: bool = False) -> Tensor:
    """Arrays as inputs: feature vectors (n, d), or images as (n, channels, height, width).

    Tensors of images have their channels first. Arrays are (n, height, width), or with channels where their
    shape shows them; ``expected``, the shape of the samples that were trained on, or ``channels_last``
    decides where both are possible.
    """
    tensor = X.detach().cpu() if isinstance(X, Tensor) else torch.from_numpy(_numeric(to_numpy(X)))
    if tensor.dtype not in (torch.uint8, torch.float32):
        tensor = tensor.float()
    if tensor.ndim == 3:
        tensor = tensor.unsqueeze(1)
    elif tensor.ndim == 4 and not isinstance(X, Tensor):
        first = False if channels_last else channels_come_first(tuple(tensor.shape[1:]), expected)
        if first is None:
            rule = "images with 1, 3 or 4 channels, which are the last axis of an array or the second"
            raise must_be("X", rule, f"shape {tuple(tensor.shape)}")
        if not first:
            tensor = tensor.permute(0, 3, 1, 2)
    if tensor.ndim not in (2, 4) or 0 in tensor.shape:
        rule = "feature vectors (n, d) or images (n, height, width) or (n, height, width, channels)"
        raise must_be("X", rule, f"shape {tuple(tensor.shape)}")
    if tensor.ndim == 2 and tensor.dtype == torch.uint8:
        tensor = tensor.float()
    if tensor.is_floating_point():
        check_finite(tensor.numpy(), "X")
    return tensor.contiguous()


class ImageFiles(Dataset[tuple[Tensor, int]]):
    """Images of a list of paths, decoded when they are requested, with label codes."""

    def __init__(self, paths: StrArray, labels: IntArray, size: ImageSize) -> None:
        self.paths, self.targets, self.size = paths, labels, size

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        pixels = load_image(str(self.paths[row]), self.size)
        return torch.from_numpy(pixels.transpose(2, 0, 1).copy()), int(self.targets[row])


def _numeric(array: Any) -> Any:
    if array.dtype.kind not in "fiub":
        raise must_be("X", "numeric", str(array.dtype), "Embed or encode text and categories first.")
    kept = array.dtype if array.dtype == np.uint8 else np.float32
    return np.require(array, dtype=kept, requirements=["C", "W"])  # torch warns of read-only arrays


def _samples_of(data: NoisyDataset, device: torch.device, n_workers: int, image_size: ImageSize) -> Samples:
    if data.images is not None:
        return ResidentSamples(as_inputs(data.images, channels_last=True), device)
    if data.source_kind == "image" and data.sources is not None:
        return _from_dataset(ImageFiles(data.sources, data.labels, image_size), device, n_workers)[0]
    if data.features is not None:
        return ResidentSamples(as_inputs(data.features), device)
    raise must_be("X", "a NoisyDataset with images, image files or features", "one with labels only")


def _with_columns(data: NoisyDataset, columns: Sequence[str] | None) -> NoisyDataset:
    """A data set whose features are in the order of ``columns``, where both are from a table."""
    given = data.feature_columns
    if columns is None or given is None or data.features is None or len(given) != data.features.shape[1]:
        return data
    _check_columns(given, columns)
    return replace(data, features=data.features[:, [given.index(name) for name in columns]])


def _check_columns(given: Sequence[str], columns: Sequence[str]) -> None:
    if missing := [name for name in columns if name not in given]:
        listed = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
        raise must_be("X", f"a table with the {len(columns)} columns of fit", f"one without {listed}")


def _is_map_style(X: Any) -> bool:
    """Whether ``X`` has the interface of a dataset of ``(input, label)`` without being a torch Dataset."""
    if (
        isinstance(X, (np.ndarray, Tensor, list, tuple))
        or not hasattr(X, "__getitem__")
        or not hasattr(X, "__len__")
    ):
        return False
    return not hasattr(X, "iloc") and len(X) > 0 and isinstance(X[0], tuple) and len(X[0]) == 2


def _from_dataset(dataset: Any, device: torch.device, n_workers: int) -> tuple[Samples, Any]:
    """Small datasets are read into memory, their own transformations applied once; large ones are not."""
    if not hasattr(dataset, "__len__") or len(dataset) == 0:
        raise must_be("X", "a map-style dataset with at least one sample", type(dataset).__name__)
    first = as_input(dataset[0][0])
    if first.numel() * first.element_size() * len(dataset) <= RESIDENT_UP_TO:
        inputs, labels = read_all(dataset, n_workers, keep_inputs=True)
        assert inputs is not None
        return ResidentSamples(as_inputs(inputs), device), labels
    for name in ("targets", "labels"):
        known = getattr(dataset, name, None)
        if known is not None and len(known) == len(dataset):
            return StreamedSamples(dataset, device, n_workers), known
    return StreamedSamples(dataset, device, n_workers), read_all(dataset, n_workers, keep_inputs=False)[1]


def _encoded_data(samples: Samples, encoded: EncodedLabels, columns: tuple[str, ...] | None) -> TrainingData:
    if (encoded.codes == MISSING).all():
        raise must_be("y", "labels of which at least one is not missing", "missing labels only")
    ids = np.arange(len(samples)).astype(str)
    named = columns if columns is not None and samples.shape == (len(columns),) else None
    return TrainingData(samples, encoded.codes, ids, encoded.class_names, encoded.class_values, named)
