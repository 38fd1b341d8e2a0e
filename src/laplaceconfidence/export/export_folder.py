"""Folders that exports write: which may be replaced, and how the images of a data set get into them."""

from __future__ import annotations

import errno
import filecmp
import io
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from laplaceconfidence.arrays import ByteImages
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_folder import EXPORT_MARK
from laplaceconfidence.exceptions import InvalidInputError, RunFolderError
from laplaceconfidence.files import not_as_written
from laplaceconfidence.records.listed_files import file_within


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Check that a folder is free, or holds an earlier export that may be replaced.

    Parameters
    ----------
    folder : pathlib.Path
        The folder.
    overwrite : bool
        Whether an earlier export may be replaced.

    Raises
    ------
    RunFolderError
        If it cannot be used.
    """
    if not (folder.exists() or folder.is_symlink()):
        return
    if not folder.is_dir() or folder.is_symlink():
        raise RunFolderError(f"{folder} is a file or a link: choose another name.")
    if not any(folder.iterdir()):
        return
    if not (folder / EXPORT_MARK).is_file():
        raise RunFolderError(f"{folder} holds files that are not an export: choose another folder.")
    if not overwrite:
        raise RunFolderError(f"{folder} already holds an export: choose another folder, or use --overwrite.")


@contextmanager
def new_export_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that takes the place of an earlier export if the block succeeds.

    Parameters
    ----------
    folder : pathlib.Path
        The folder to write.

    Yields
    ------
    pathlib.Path
        The temporary folder.
    """
    temporary = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}")
    temporary.mkdir(parents=True)
    try:
        yield temporary
        (temporary / EXPORT_MARK).write_text(
            "Written by laplaceconfidence export, which may replace this folder.\n"
        )
        if folder.exists():
            shutil.rmtree(folder)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@dataclass(frozen=True, slots=True)
class WrittenImages:
    """How the images of an exported folder were written, where that is not as usual.

    Parameters
    ----------
    n_lost : int
        Images whose file does not exist.
    n_outside : int
        Images that are links out of the folder of the data.
    n_copied : int
        Images that are there as copies although links were asked for, as none could be made.
    """

    n_lost: int = 0
    n_outside: int = 0
    n_copied: int = 0


class ImageCopies:
    """Puts the images of a data set into an exported folder, and counts what could not be done as asked.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set. Images that exist in memory only are written as PNG.
    format : str
        The format of the export, for error messages.
    copy : bool
        As for ``write_image_folder``.
    data_folder : pathlib.Path or None
        As for ``write_image_folder``.
    """

    def __init__(self, dataset: NoisyDataset, format: str, *, copy: bool, data_folder: Path | None) -> None:
        if dataset.images is None and dataset.source_kind != "image":
            raise InvalidInputError(
                f"The 'format' parameter must not be {format!r} for data without images. "
                "Use 'csv', 'parquet', 'npz', 'jsonl' or 'huggingface'."
            )
        self._dataset, self._copy, self._data_folder = dataset, copy, data_folder
        self._n_lost = self._n_outside = self._n_copied = 0

    @property
    def written(self) -> WrittenImages:
        """WrittenImages: how the images were written so far."""
        return WrittenImages(self._n_lost, self._n_outside, self._n_copied)

    def is_there(self, row: int) -> bool:
        """Return whether there is an image of a sample; counts those that there is none of.

        Parameters
        ----------
        row : int
            The sample.

        Returns
        -------
        bool
        """
        if self._dataset.images is not None and self._dataset.source_kind != "image":
            return True
        assert self._dataset.sources is not None
        if self._file(row) is not None:
            return True
        exists = Path(self._dataset.sources[row]).is_file()
        self._n_outside, self._n_lost = self._n_outside + exists, self._n_lost + (not exists)
        return False

    def put(self, row: int, target: Path) -> None:
        """Write the image of a sample, or link to it.

        Parameters
        ----------
        row : int
            The sample, whose image is there.
        target : pathlib.Path
            The file to write.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        source = self._file(row)
        if source is None:
            _write_png(target, self._dataset, row)
        elif self._copy or not _is_linked(source, target):
            _copy(source, target)
            self._n_copied += not self._copy

    def content(self, row: int) -> bytes:
        """Return the image of a sample as the bytes of a file.

        Parameters
        ----------
        row : int
            The sample, whose image is there.

        Returns
        -------
        bytes
        """
        source = self._file(row)
        if source is not None:
            return source.read_bytes()
        buffer = io.BytesIO()
        _save_png(buffer, self._dataset, row)
        return buffer.getvalue()

    def _file(self, row: int) -> Path | None:
        sources = self._dataset.sources
        if sources is None or self._dataset.source_kind != "image":
            return None
        return file_within(sources[row], self._data_folder)


def _is_linked(source: Path, target: Path) -> bool:
    """Make a hard link; False where the file system allows none."""
    try:
        target.hardlink_to(source)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES):
            raise
        return False
    return True


def _copy(source: Path, target: Path) -> None:
    shutil.copy2(source, target)
    if not filecmp.cmp(source, target, shallow=False):
        raise not_as_written(target.name, f"something else than {source}")


def _write_png(target: Path, dataset: NoisyDataset, row: int) -> None:
    from PIL import Image

    pixels = _save_png(target, dataset, row)
    with Image.open(target) as read:
        if not np.array_equal(np.asarray(read), pixels):
            raise not_as_written(target.name, "another image")


def _save_png(target: Path | io.BytesIO, dataset: NoisyDataset, row: int) -> ByteImages:
    from PIL import Image

    assert dataset.images is not None
    image = dataset.images[row]
    pixels: ByteImages = image[:, :, 0] if image.shape[2] == 1 else image
    Image.fromarray(pixels).save(target, "PNG")
    return pixels
