"""The raw samples that an encoder gets: texts, images or columns of a table, without their labels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import ByteImages
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.images import load_image, resized
from laplaceconfidence.data.mixed_columns import MixedColumns

if TYPE_CHECKING:
    from PIL.Image import Image

SampleKind = Literal["text", "image", "columns"]


@dataclass(frozen=True, slots=True, eq=False)
class RawSamples:
    """Raw samples of one kind.

    Parameters
    ----------
    kind : {"text", "image", "columns"}
        What they are.
    values : ndarray of shape (n,), ndarray of uint8 of shape (n, height, width, channels) or MixedColumns
        Texts, paths of image files, images in memory, or columns of a table.

    Examples
    --------
    >>> from laplaceconfidence.encoders.samples import RawSamples
    >>> len(RawSamples.of_texts(["good", "bad"]))
    2
    """

    kind: SampleKind
    values: NDArray[Any] | MixedColumns

    @classmethod
    def of_texts(cls, texts: Any) -> RawSamples:
        """Make samples of texts.

        Parameters
        ----------
        texts : sequence of str
            The texts.

        Returns
        -------
        RawSamples
        """
        return cls("text", np.array([str(text) for text in texts], dtype=object))

    @classmethod
    def of_dataset(
        cls, dataset: NoisyDataset, takes: tuple[SampleKind, ...] = ("columns", "image", "text")
    ) -> RawSamples | None:
        """Return what a data set has to be encoded.

        Parameters
        ----------
        dataset : NoisyDataset
            The data set.
        takes : tuple of str, default=("columns", "image", "text")
            What the encoder takes: texts or images beside columns of a table are for encoders that do not
            take these.

        Returns
        -------
        RawSamples or None
            ``None`` if it has neither columns of a table nor texts nor images.
        """
        if dataset.columns is not None and "columns" in takes:
            return cls("columns", dataset.columns)
        if dataset.images is not None:
            return cls("image", dataset.images)
        if dataset.source_kind is None or dataset.sources is None:
            return None
        return cls(dataset.source_kind, dataset.sources)

    def __len__(self) -> int:
        return len(self.values)

    def texts(self, rows: slice = slice(None)) -> list[str]:
        """Return texts.

        Parameters
        ----------
        rows : slice, default=slice(None)
            Which ones.

        Returns
        -------
        list of str
        """
        assert isinstance(self.values, np.ndarray)
        return [str(text) for text in self.values[rows]]

    def columns(self) -> MixedColumns:
        """Return the columns of a table.

        Returns
        -------
        MixedColumns
        """
        assert isinstance(self.values, MixedColumns)
        return self.values

    def pictures(self, rows: slice) -> list[Image]:
        """Return images as RGB images of Pillow, decoded if they are files.

        Parameters
        ----------
        rows : slice
            Which ones.

        Returns
        -------
        list of PIL.Image.Image
        """
        from PIL import Image

        return [Image.fromarray(_with_three_channels(image)) for image in self._arrays(rows)]

    def squares(self, rows: slice, size: int) -> ByteImages:
        """Return images as one array.

        Parameters
        ----------
        rows : slice
            Which ones.
        size : int
            Files are resized to a square of this side, and so are images in memory with a longer side.

        Returns
        -------
        ndarray of uint8 of shape (n, height, width, channels)
        """
        assert isinstance(self.values, np.ndarray)
        if self.values.ndim != 4:
            return np.stack([load_image(str(path), size) for path in self.values[rows]])
        images: ByteImages = self.values[rows]
        if max(images.shape[1:3]) <= size:
            return images
        return np.stack([resized(image, size) for image in images])

    def part(self, rows: NDArray[Any]) -> RawSamples:
        """Return some of the texts or images.

        Parameters
        ----------
        rows : ndarray of int
            Which ones.

        Returns
        -------
        RawSamples
        """
        assert isinstance(self.values, np.ndarray)
        return RawSamples(self.kind, self.values[rows])

    def digest(self) -> str:
        """Hash the content of all samples, in order.

        Returns
        -------
        str
            Hexadecimal.
        """
        if isinstance(self.values, MixedColumns):
            shape: Any = (self.values.names, self.values.kinds)
        else:
            shape = self.values.shape[1:]
        whole = hashlib.sha256(f"{self.kind} {len(self)} {shape}".encode())
        for content in self._contents():
            whole.update(hashlib.sha256(content).digest())
        return whole.hexdigest()

    def _arrays(self, rows: slice) -> Iterator[ByteImages]:
        assert isinstance(self.values, np.ndarray)
        if self.values.ndim == 4:
            yield from self.values[rows]
        else:
            yield from (load_image(str(path)) for path in self.values[rows])

    def _contents(self) -> Iterator[bytes]:
        if isinstance(self.values, MixedColumns):
            yield from (row.encode(errors="surrogatepass") for row in self.values.row_texts())
        elif self.values.ndim == 4:
            yield from (np.ascontiguousarray(image).tobytes() for image in self.values)
        elif self.kind == "image":
            yield from (Path(str(path)).read_bytes() for path in self.values)
        else:
            yield from (str(text).encode(errors="surrogatepass") for text in self.values)


def _with_three_channels(image: ByteImages) -> ByteImages:
    if image.shape[2] == 3:
        return np.ascontiguousarray(image)
    return np.ascontiguousarray(np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image[:, :, :3])
