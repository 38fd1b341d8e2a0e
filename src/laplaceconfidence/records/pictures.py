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
    """Return whether there are images that cannot be shown once the data set is no longer in memory.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.

    Returns
    -------
    bool
    """
    return dataset.images is not None and dataset.sources is None


def write_pictures(folder: Path, dataset: NoisyDataset, by_interest: IntArray) -> None:
    """Store the pictures of as many samples as fit, reduced if they are large.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the run.
    dataset : NoisyDataset
        A data set with images in memory.
    by_interest : ndarray of int
        Rows, the most important first.
    """
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
    """The pictures of a run, read from disk one by one.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the run.
    """

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
        """Return the picture of a sample.

        Parameters
        ----------
        row : int
            Row of the sample.

        Returns
        -------
        ndarray of shape (height, width, channels) or None
            None where no picture was stored.
        """
        position = self._position.get(row)
        return None if position is None else np.asarray(self._images[position])


def rows_by_interest(
    flagged_worst_first: IntArray, random_order: IntArray, n_samples: int, n_requested: int = 0
) -> IntArray:
    """Order rows by how likely a reviewer is to look at them.

    Parameters
    ----------
    flagged_worst_first : ndarray of int
        Rows of the flagged labels, then those of copies, leaks and outliers.
    random_order : ndarray of int
        Labeled rows in random order, beginning with the sample for review.
    n_samples : int
        Number of rows.
    n_requested : int, default=0
        Size of the sample for review.

    Returns
    -------
    ndarray of int of shape (n_samples,)
        The sample for review, the flagged rows, 1,000 more at random, then all others.
    """
    requested, more = random_order[:n_requested], random_order[n_requested:][:1_000]
    every = np.concatenate([requested, flagged_worst_first, more, np.arange(n_samples)])
    _, first = np.unique(every, return_index=True)
    return every[np.sort(first)]
