"""Pictures that a run stores of samples whose images exist in memory only, such as digits and CIFAR."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from laplaceconfidence.arrays import ByteImages, IntArray
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.files import replacing

PICTURES = "pictures.npy"
PICTURE_ROWS = "picture_rows.npy"
LONGEST_SIDE = 96  # pixels
MOST_BYTES = 200_000_000


def needs_pictures(dataset: NoisyDataset) -> bool:
    """Whether there are images that could not be shown once the data set is no longer in memory."""
    return dataset.images is not None and dataset.sources is None


def write_pictures(folder: Path, dataset: NoisyDataset, by_interest: IntArray) -> None:
    """Store the pictures of as many rows as fit, in the order ``by_interest``, reduced if they are large."""
    assert dataset.images is not None
    images = dataset.images
    step = max(1, -(-max(images.shape[1:3]) // LONGEST_SIDE))
    shape = images[:1, ::step, ::step].shape[1:]
    rows = np.sort(by_interest[: max(1, MOST_BYTES // int(np.prod(shape)))])
    with replacing(folder / PICTURES) as path:
        np.save(path, images[rows, ::step, ::step])
    with replacing(folder / PICTURE_ROWS) as path:
        np.save(path, rows)


class StoredPictures:
    """The pictures of a run; read from disk one by one."""

    def __init__(self, folder: Path) -> None:
        self._position: dict[int, int] = {}
        if not (folder / PICTURES).is_file():
            return
        try:
            self._images = np.load(folder / PICTURES, mmap_mode="r", allow_pickle=False)
            rows = np.load(folder / PICTURE_ROWS, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise RunFolderError(
                f"{folder / PICTURES} cannot be read ({error}): the run is damaged. Run the audit again."
            ) from error
        if self._images.dtype != np.uint8 or self._images.ndim != 4 or len(rows) != len(self._images):
            raise RunFolderError(f"{folder / PICTURES} is damaged. Run the audit again.")
        self._position = {int(row): position for position, row in enumerate(rows)}

    def __bool__(self) -> bool:
        return bool(self._position)

    def of(self, row: int) -> ByteImages | None:
        """ndarray of shape (height, width, channels), or None where no picture was stored."""
        position = self._position.get(row)
        return None if position is None else np.asarray(self._images[position])


def rows_by_interest(
    flagged_worst_first: IntArray, random_order: IntArray, n_samples: int, n_requested: int = 0
) -> IntArray:
    """Rows of a requested random sample, suspects, more rows at random, then all others."""
    requested, more = random_order[:n_requested], random_order[n_requested:][:1_000]
    every = np.concatenate([requested, flagged_worst_first, more, np.arange(n_samples)])
    _, first = np.unique(every, return_index=True)
    return every[np.sort(first)]
