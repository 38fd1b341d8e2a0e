"""A limit on the memory that decoding pictures takes, however many are requested at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from laplaceconfidence.data.images import FORMATS

_BYTES_PER_PIXEL = 12  # as decoded, rotated and converted to RGB, of which Pillow pads each to 4 bytes


class DecodingBudget:
    """Admits a few pictures at a time, together within a number of bytes.

    A picture that exceeds the budget by itself is decoded alone. The others wait for their turn.

    Parameters
    ----------
    n_bytes : int
        Memory of all pictures that are decoded at the same time.
    n_pictures : int
        Largest number of pictures that are decoded at the same time.
    """

    def __init__(self, n_bytes: int, n_pictures: int) -> None:
        self._n_bytes = n_bytes
        self._n_pictures = n_pictures
        self._bytes_used = 0
        self._n_used = 0
        self._changed = threading.Condition()

    @contextmanager
    def spending(self, n_bytes: int) -> Iterator[None]:
        """Wait until there is room for a picture, and keep it reserved inside the block.

        Parameters
        ----------
        n_bytes : int
            Memory that decoding the picture takes.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._has_room(n_bytes))
            self._n_used += 1
            self._bytes_used += n_bytes
        try:
            yield
        finally:
            with self._changed:
                self._n_used -= 1
                self._bytes_used -= n_bytes
                self._changed.notify_all()

    def _has_room(self, n_bytes: int) -> bool:
        if self._n_used == 0:
            return True
        return self._n_used < self._n_pictures and self._bytes_used + n_bytes <= self._n_bytes


BUDGET = DecodingBudget(n_bytes=512_000_000, n_pictures=4)
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
