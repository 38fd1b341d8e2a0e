"""Small pictures of samples for browsers, always encoded again: bytes of image files are never passed on."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from laplaceconfidence.arrays import ByteImages
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.decoding_budget import BUDGET, bytes_to_decode
from laplaceconfidence.data.images import load_thumbnail
from laplaceconfidence.exceptions import DataFormatError

_LARGEST_DRAWING = 64  # pixels; images up to this size are stored without loss, larger ones as JPEG


@dataclass(frozen=True, slots=True)
class EncodedPicture:
    """An image in a format that browsers display.

    Attributes
    ----------
    content : bytes
        The encoded image.
    media_type : str
        "image/png" or "image/jpeg".
    """

    content: bytes
    media_type: str

    @property
    def data_uri(self) -> str:
        """The picture as a ``data:`` address, which needs no network."""
        return f"data:{self.media_type};base64,{base64.b64encode(self.content).decode()}"

    @property
    def is_coarse(self) -> bool:
        """Whether the image is small and stored without loss, so that enlarging it should keep its pixels."""
        return self.media_type == "image/png"


def encode_picture(image: ByteImages, longest: int | None = None) -> EncodedPicture:
    """Encode an image: small ones as PNG without loss, larger ones as JPEG.

    Parameters
    ----------
    image : ndarray of uint8 of shape (height, width, channels)
        The image; unless it has 3 or 4 channels, the first one is shown in gray.
    longest : int or None, default=None
        Largest number of pixels of the longer side; larger images are reduced.

    Returns
    -------
    EncodedPicture
    """
    from PIL import Image

    if image.shape[2] not in (3, 4):  # gray, perhaps with transparency
        image = image[:, :, 0]
    picture = Image.fromarray(np.ascontiguousarray(image))
    if longest is not None:
        picture.thumbnail((longest, longest))
    buffer = io.BytesIO()
    if max(picture.size) <= _LARGEST_DRAWING:
        picture.save(buffer, "PNG")
        return EncodedPicture(buffer.getvalue(), "image/png")
    picture.convert("RGB").save(buffer, "JPEG", quality=85)
    return EncodedPicture(buffer.getvalue(), "image/jpeg")


def encode_picture_file(path: str | Path, longest: int) -> EncodedPicture | None:
    """Encode an image file as a small picture.

    Parameters
    ----------
    path : str or pathlib.Path
        The image file.
    longest : int
        Pixels that the longer side is reduced to where it has more.

    Returns
    -------
    EncodedPicture or None
        ``None`` where the file cannot be decoded.
    """
    try:
        return BUDGET.run(
            lambda: encode_picture(load_thumbnail(path, longest)), bytes_to_decode(path, longest)
        )
    except DataFormatError:
        return None


def picture_of(dataset: NoisyDataset, row: int, longest: int) -> EncodedPicture | None:
    """Encode the picture of one sample, from memory or from its file.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.
    row : int
        Number of the sample.
    longest : int
        Largest number of pixels of the longer side; larger images are reduced.

    Returns
    -------
    EncodedPicture or None
        ``None`` if the sample has no image, or its file cannot be decoded.
    """
    if dataset.images is not None:
        return encode_picture(dataset.images[row], longest)
    if dataset.source_kind != "image" or dataset.sources is None:
        return None
    return encode_picture_file(str(dataset.sources[row]), longest)
