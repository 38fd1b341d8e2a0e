"""Ids of samples that survive reordering and dropping.

Samples without an id are identified by what they are: the path of an image file, else a digest of the text,
the image or the features, never of the label, which is corrected. Copies of one content are numbered.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import ByteImages, FloatArray, IntArray, StrArray, sized_row_blocks

_DIGEST_BYTES = 8  # two of 1,000,000 different contents share a digest with a probability of 3e-8
_DIGEST = re.compile(r"([0-9a-f]{16}(?:-[0-9a-f]{16})?)(?:-(\d+))?")


class ContentIds:
    """Ids made of the content of samples, computed when they are first asked for.

    Parameters
    ----------
    compute : callable
        Returns the ids.
    """

    __slots__ = ("_compute", "_values")

    def __init__(self, compute: Callable[[], StrArray]) -> None:
        self._compute: Callable[[], StrArray] | None = compute
        self._values: StrArray | None = None

    @classmethod
    def of(
        cls,
        n: int,
        *,
        paths: Sequence[str] | NDArray[Any] | None = None,
        texts: Sequence[str] | NDArray[Any] | None = None,
        images: ByteImages | None = None,
        features: FloatArray | None = None,
    ) -> ContentIds:
        """Make the ids of samples, each of its first content that is there and not empty.

        Parameters
        ----------
        n : int
            Number of samples.
        paths : sequence of str or None, default=None
            Paths of images.
        texts : sequence of str or None, default=None
            Texts.
        images : ndarray of uint8 of shape (n, height, width, channels) or None, default=None
            Images.
        features : ndarray of shape (n, d) or None, default=None
            Feature vectors.

        Returns
        -------
        ContentIds
            The row numbers where there is no content.
        """
        return cls(partial(_content_ids, n, paths, texts, images, features))

    @property
    def values(self) -> StrArray:
        """ndarray of str of shape (n,): the ids, all of them different."""
        if self._values is None:
            assert self._compute is not None
            self._values = self._compute()
            self._compute = None  # and with it the contents
        return self._values

    def take(self, rows: IntArray) -> ContentIds:
        """Return the ids of some of the samples.

        Parameters
        ----------
        rows : ndarray of int
            The rows.

        Returns
        -------
        ContentIds
        """
        return ContentIds(partial(_taken, self, rows))


def _taken(ids: ContentIds, rows: IntArray) -> StrArray:
    return ids.values[rows]


def is_digest(id: str) -> bool:
    """Return whether an id is a digest, which tells a person nothing about where the sample is.

    Parameters
    ----------
    id : str
        The id.

    Returns
    -------
    bool

    Examples
    --------
    >>> from laplaceconfidence.data.identity import is_digest
    >>> is_digest("6f1ed002ab559585-2"), is_digest("cats/17.jpg"), is_digest("17")
    (True, False, False)
    """
    return _DIGEST.fullmatch(id) is not None


def name_of(id: str, row: int) -> str:
    """Return how a sample is named to a person: by its row where the id is a digest, else by its id.

    Parameters
    ----------
    id : str
        The id.
    row : int
        The row, from 0.

    Returns
    -------
    str

    Examples
    --------
    >>> from laplaceconfidence.data.identity import name_of
    >>> name_of("6f1ed002ab559585", 17), name_of("cats/17.jpg", 3)
    ('row 17', 'cats/17.jpg')
    """
    return f"row {row}" if is_digest(id) else id


def feature_digests(features: FloatArray, *, telling_apart: bool = False) -> list[str]:
    """Return the digests of feature vectors, which are the ids of samples without any other content.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Feature vectors.
    telling_apart : bool, default=False
        Whether the digests are those that are added to the ids of samples that share a text or path.

    Returns
    -------
    list of str
        Equal for copies, which ``ContentIds`` numbers.
    """
    rows = _feature_rows(features, np.arange(len(features)), np.float32)
    return [_digest(row, b"all" if telling_apart else b"features") for row in rows]


def text_digests(texts: Sequence[str | None]) -> list[str]:
    """Return the digests of texts, which are the ids of samples that are texts.

    Parameters
    ----------
    texts : sequence of str or None of shape (n,)
        Texts.

    Returns
    -------
    list of str
        Empty for empty texts.
    """
    return [_digest(text.encode("utf-8", "surrogatepass"), b"text") if text else "" for text in texts]


def are_row_numbers(ids: Sequence[str]) -> bool:
    """Return whether ids only number the rows, as those of earlier versions did for data without ids.

    Parameters
    ----------
    ids : sequence of str of shape (n,)
        The ids in the order of the rows.

    Returns
    -------
    bool
    """
    return all(id == str(row) for row, id in enumerate(ids))


def without_number(id: str) -> str:
    """Return the digest that all copies of one content share.

    Parameters
    ----------
    id : str
        An id.

    Returns
    -------
    str
        The id itself, unless it is a digest with the number of a copy.

    Examples
    --------
    >>> from laplaceconfidence.data.identity import without_number
    >>> without_number("6f1ed002ab559585-2"), without_number("a-2")
    ('6f1ed002ab559585', 'a-2')
    """
    found = _DIGEST.fullmatch(id)
    return id if found is None else found[1]


def _content_ids(
    n: int,
    paths: Sequence[str] | NDArray[Any] | None,
    texts: Sequence[str] | NDArray[Any] | None,
    images: ByteImages | None,
    features: FloatArray | None,
) -> StrArray:
    if paths is None and texts is None and images is None and features is None:
        return np.arange(n).astype(str)
    keys = [""] * n if paths is None else [str(path) for path in paths]
    if texts is not None:
        for row in (row for row in range(n) if not keys[row] and texts[row]):
            (keys[row],) = text_digests([str(texts[row])])
    empty = np.array([row for row in range(n) if not keys[row]], dtype=np.int64)
    described = [] if images is None else [(_image_rows(images, empty), b"image")]
    described += [] if features is None else [(_feature_rows(features, empty, np.float32), b"features")]
    for contents, kind in described[:1]:
        for row, content in zip(empty.tolist(), contents, strict=True):
            keys[row] = _digest(content, kind)
    keys = [key or _digest(b"", b"text") for key in keys]
    for precision in (np.float32, np.float64):
        _tell_apart(keys, images, features, precision)
    return np.array(_numbered(keys))


def _tell_apart(
    keys: list[str],
    images: ByteImages | None,
    features: FloatArray | None,
    precision: type[np.floating[Any]],
) -> None:
    """Add a digest of image and features to the keys of samples that share a key but are not copies."""
    counts = Counter(keys)
    repeated = np.array([row for row, key in enumerate(keys) if counts[key] > 1], dtype=np.int64)
    if not len(repeated):
        return
    contents: list[Iterator[bytes]] = []
    if images is not None:
        contents.append(_image_rows(images, repeated))
    if features is not None:
        contents.append(_feature_rows(features, repeated, precision))
    if not contents:
        return
    digests = [_digest(b"".join(parts), b"all") for parts in zip(*contents, strict=True)]
    found: dict[str, set[str]] = defaultdict(set)
    for row, digest in zip(repeated.tolist(), digests, strict=True):
        found[keys[row]].add(digest)
    for row, digest in zip(repeated.tolist(), digests, strict=True):
        if len(found[keys[row]]) > 1:
            keys[row] = f"{keys[row][:16]}-{digest}" if is_digest(keys[row]) else f"{keys[row]}-{digest}"


def _numbered(keys: list[str]) -> list[str]:
    """Number the copies in order of occurrence, such that all ids are different."""
    taken, counts = set(keys), Counter[str]()
    numbered = []
    for key in keys:
        counts[key] += 1
        id = key
        if counts[key] > 1:
            while (id := f"{key}-{counts[key]}") in taken:
                counts[key] += 1
            taken.add(id)
        numbered.append(id)
    return numbered


def _digest(content: bytes, kind: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES, person=kind).hexdigest()


def _image_rows(images: ByteImages, rows: IntArray) -> Iterator[bytes]:
    shape = np.array(images.shape[1:], dtype="<i8").tobytes()
    return (shape + images[row].tobytes() for row in rows.tolist())


def _feature_rows(features: FloatArray, rows: IntArray, precision: type[np.floating[Any]]) -> Iterator[bytes]:
    """The bytes of feature vectors, the same whatever file format they were read from.

    Numbers of single precision are read as slightly different ones of double precision from a text file.
    """
    width = features.shape[1]
    for block in sized_row_blocks(len(rows), width):
        with np.errstate(over="ignore"):
            part = features[rows[block]].astype(np.dtype(precision).newbyteorder("<"))
        part += 0.0  # turns -0.0 into 0.0
        data, step = part.tobytes(), part.dtype.itemsize * width
        yield from (data[start : start + step] for start in range(0, len(data), step))
