"""The inputs of all samples: in memory as one tensor, or decoded by workers when they are needed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate
from torch.utils.data import DataLoader, Dataset, get_worker_info

from laplaceconfidence.arrays import to_numpy
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.seeds import derived_seed
from laplaceconfidence.validation import must_be

CHANNELS = (1, 3, 4)
"""How many channels images have: gray, RGB, RGB with transparency."""


class Samples(Protocol):
    """Inputs by sample number, in any order, batch by batch."""

    shape: tuple[int, ...]  # of one sample: (channels, height, width) or (features,)
    resident: bool  # whether all inputs are in memory

    def __len__(self) -> int: ...

    def batches(self, index_batches: Sequence[Tensor], seed: int) -> Iterator[Tensor]:
        """The raw inputs of each batch of sample numbers, on the training device."""
        ...


class ResidentSamples:
    """All inputs as one tensor on the training device."""

    resident = True

    def __init__(self, inputs: Tensor, device: torch.device) -> None:
        self.inputs = inputs.to(device)
        self.shape = tuple(inputs.shape[1:])

    def __len__(self) -> int:
        return len(self.inputs)

    def batches(self, index_batches: Sequence[Tensor], seed: int) -> Iterator[Tensor]:
        for index in index_batches:
            yield self.inputs[index.to(self.inputs.device)]


class StreamedSamples:
    """Inputs that workers read from a map-style dataset of ``(input, label)`` during training."""

    resident = False

    def __init__(self, dataset: Dataset[Any], device: torch.device, n_workers: int) -> None:
        self._dataset = dataset
        self._device = device
        self._n_workers = n_workers
        self.shape = tuple(as_input(dataset[0][0]).shape)

    def __len__(self) -> int:
        return len(self._dataset)  # type: ignore[arg-type]

    def batches(self, index_batches: Sequence[Tensor], seed: int) -> Iterator[Tensor]:
        if not len(index_batches):
            return
        loader = DataLoader(
            _InputsOnly(self._dataset, seed),
            batch_sampler=[index.tolist() for index in index_batches],
            num_workers=self._n_workers,
            collate_fn=_stacked,
            pin_memory=self._device.type == "cuda",
            generator=torch.Generator().manual_seed(seed),
        )
        for inputs in loader:
            yield inputs.to(self._device, non_blocking=True)


class _InputsOnly(Dataset[Tensor]):
    """The inputs of a dataset of ``(input, label)``, as tensors.

    In a worker, a dataset's own random transformations start from ``seed`` and the sample's number, so that a
    resumed run sees the same inputs.
    """

    def __init__(self, dataset: Dataset[Any], seed: int) -> None:
        self._dataset, self._seed = dataset, seed

    def __len__(self) -> int:
        return len(self._dataset)  # type: ignore[arg-type]

    def __getitem__(self, row: int) -> Tensor:
        if get_worker_info() is not None:
            own_seed = derived_seed(self._seed, row)
            torch.manual_seed(own_seed)
            np.random.seed(own_seed % 2**32)
            random.seed(own_seed)
        return as_input(self._dataset[row][0])


def channels_come_first(shape: tuple[int, ...], expected: tuple[int, ...] | None = None) -> bool | None:
    """Whether an image is (channels, height, width), and not (height, width, channels); ``None`` if neither.

    Images have 1, 3 or 4 channels. If both readings are possible, ``expected``, the shape (channels, height,
    width) that was trained on, decides; without it, or if it fits both or neither, the question is an error.
    """
    first, last = shape[0] in CHANNELS, shape[2] in CHANNELS
    if not (first and last):
        return first if first or last else None
    fits_first, fits_last = shape == expected, (shape[2], *shape[:2]) == expected
    if fits_first != fits_last:
        return fits_first
    raise InvalidInputError(
        f"Are the channels of the images in 'X' first or last? Images of shape {shape} may have {shape[0]} "
        f"channels first or {shape[2]} last. Pass 'X' as a torch tensor, which always has its channels "
        "first: torch.from_numpy(X) if they are first, torch.from_numpy(np.moveaxis(X, -1, -3)) if last."
    )


def as_input(value: Any) -> Tensor:
    """One input as a tensor: an image as (channels, height, width), anything else as it is.

    Tensors have their channels first and Pillow images last; arrays have them where their shape shows it,
    else last.
    """
    if isinstance(value, Tensor):
        return value
    array = to_numpy(value)
    if array.ndim == 2 and array.dtype == np.uint8:
        array = array[None]
    elif array.ndim == 3 and not (isinstance(value, np.ndarray) and channels_come_first(array.shape)):
        array = array.transpose(2, 0, 1)
    if array.dtype.kind not in "fiub" or array.ndim not in (1, 3):
        found = f"{array.dtype} of shape {array.shape}"
        raise must_be("X", "made of images or feature vectors", found, "Decode images and embed texts first.")
    if array.dtype != np.uint8:
        array = array.astype(np.float32)
    return torch.from_numpy(np.ascontiguousarray(array))


def reduced(inputs: Tensor, longest_side: int) -> Tensor:
    """A batch of images with a longer side than that, made smaller in proportion; others as they are."""
    if inputs.ndim != 4 or max(inputs.shape[2:]) <= longest_side:
        return inputs
    scale = longest_side / max(inputs.shape[2:])
    size = [max(1, round(scale * side)) for side in inputs.shape[2:]]
    smaller = interpolate(inputs.float(), size=size, mode="bilinear", antialias=True)
    return smaller.round().clamp(0, 255).to(torch.uint8) if inputs.dtype == torch.uint8 else smaller


def _stacked(inputs: list[Tensor]) -> Tensor:
    shapes = {tuple(one.shape) for one in inputs}
    if len(shapes) > 1:
        first, second = sorted(shapes)[:2]
        raise InvalidInputError(
            f"The samples of 'X' must all have one shape. Got {first} and {second}. Resize and crop them "
            "alike in the dataset."
        )
    return torch.stack(inputs)


def read_all(dataset: Dataset[Any], n_workers: int, *, keep_inputs: bool) -> tuple[Tensor | None, list[Any]]:
    """Inputs (if asked for) and labels of a dataset of ``(input, label)``, read once from end to end."""
    loader = DataLoader(dataset, batch_size=256, num_workers=n_workers, collate_fn=list)
    inputs: list[Tensor] = []
    labels: list[Any] = []
    for pairs in loader:
        labels += [to_numpy(label).item() for _, label in pairs]
        if keep_inputs:
            inputs += [as_input(value) for value, _ in pairs]
    return (_stacked(inputs) if keep_inputs else None), labels
