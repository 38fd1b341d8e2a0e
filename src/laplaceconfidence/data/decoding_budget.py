"""A limit on the memory that decoding pictures takes, however many are requested at once.

Pictures are decoded in a few threads that are kept. Fifteen requests for images of 36 megapixels took 4.5 GB
with one decoded at a time, each in the thread of its request, and 0.7 GB in this way: probably the C library
keeps freed memory for the thread that used it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from laplaceconfidence.data.images import FORMATS

_BYTES_PER_PIXEL = 12  # as decoded, rotated and converted to RGB, of which Pillow pads each to 4 bytes

Result = TypeVar("Result")


class DecodingBudget:
    """Decodes a few pictures at a time: small ones in some threads, large ones one after the other.

    Parameters
    ----------
    n_bytes : int
        Memory of all small pictures that are decoded at the same time. A picture that takes more than its
        part of this is large.
    n_pictures : int
        Number of small pictures that are decoded at the same time.
    """

    def __init__(self, n_bytes: int, n_pictures: int) -> None:
        self._largest = n_bytes // n_pictures
        self._small = ThreadPoolExecutor(n_pictures, "small pictures")
        self._large = ThreadPoolExecutor(1, "large pictures")

    def run(self, decode: Callable[[], Result], n_bytes: int) -> Result:
        """Decode a picture when it is its turn, and wait for it.

        Parameters
        ----------
        decode : callable
            Decodes the picture.
        n_bytes : int
            Memory that it takes.

        Returns
        -------
        object
            What ``decode`` returns.
        """
        threads = self._small if n_bytes <= self._largest else self._large
        return threads.submit(decode).result()


BUDGET = DecodingBudget(n_bytes=256_000_000, n_pictures=3)
"""The budget of this process."""


def bytes_to_decode(path: str | Path, longest: int) -> int:
    """Estimate the memory that decoding an image file takes, from its header.

    Parameters
    ----------
    path : str or pathlib.Path
        The image file.
    longest : int
        Pixels that the longer side will be reduced to, which JPEG files use while they are decoded.

    Returns
    -------
    int
        0 where the file is not an image.
    """
    from PIL import Image

    try:
        with Image.open(path, formats=FORMATS) as image:
            image.draft("RGB", (longest, longest))
            return image.width * image.height * _BYTES_PER_PIXEL
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError):
        return 0
