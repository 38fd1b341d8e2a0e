"""Ids of samples that survive reordering and dropping, and the search for samples by id.

Samples without an id are identified by what they are: the path of an image file, else a digest of the text,
the image or the features, never of the label, which is corrected. Copies of one content are numbered.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import ByteImages, FloatArray, IntArray, StrArray, sized_row_blocks
from laplaceconfidence.data.labels import encodable

if TYPE_CHECKING:
    from laplaceconfidence.data.dataset import NoisyDataset

ABSENT = -2
"""In place of the row of a sample, or of the code of a class, that a data set does not have."""

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


def find_classes(dataset: NoisyDataset, names: Sequence[str], values: Sequence[Any]) -> list[int]:
    """Find the classes of an earlier audit among those of a data set.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.
    names : sequence of str of shape (C,)
        Names of the wanted classes.
    values : sequence of shape (C,)
        The same classes as they are written among the labels.

    Returns
    -------
    list of int
        The code of every class, ``ABSENT`` if the data set does not have it. A class is found by its name,
        or as it is written: names may have been added to numbers since.
    """
    by_name = {name: code for code, name in enumerate(dataset.class_names)}
    by_value = {str(value): code for code, value in enumerate(dataset.class_values.tolist())}
    return [
        by_name.get(name, by_value.get(str(value), ABSENT)) for name, value in zip(names, values, strict=True)
    ]


def find_samples(
    dataset: NoisyDataset,
    ids: Sequence[str],
    *,
    labels: Sequence[int | None] | None = None,
    paths: Sequence[str] | None = None,
) -> IntArray:
    """Find samples in a data set, which may have been reordered, have grown or have lost samples since.

    Parameters
    ----------
    dataset : NoisyDataset
        Where to search.
    ids : sequence of str of shape (m,)
        Ids of the wanted samples.
    labels : sequence of int of shape (m,) or None, default=None
        Codes of the labels that they had, ``None`` where that is not known. Among copies of one content, one
        with the same label is preferred.
    paths : sequence of str of shape (m,) or None, default=None
        Full paths of their images, by which a sample is found if its id is not: a table of relative paths has
        other paths in another folder.

    Returns
    -------
    ndarray of int of shape (m,)
        Rows of the data set, none of them twice for different ids; ``ABSENT`` where there is no such sample.
    """
    known = encodable(dataset.sample_ids).tolist()
    row_of = {id: row for row, id in enumerate(known)}
    rows = np.array([row_of.get(id, ABSENT) for id in ids], dtype=np.int64)
    if paths is not None and dataset.sources is not None and dataset.source_kind == "image":
        taken = set(rows.tolist())
        row_at = _unique_positions(encodable(dataset.sources).tolist())
        wanted_at = _unique_positions(list(paths))
        for path, position in wanted_at.items():
            row = row_at.get(path, ABSENT)
            if path and rows[position] == ABSENT and row not in taken:
                rows[position] = row
    if dataset.ids is None:
        _pair_copies(rows, ids, labels or [None] * len(ids), known, dataset.labels.tolist())
    return rows


def _unique_positions(values: list[str]) -> dict[str, int]:
    counts = Counter(values)
    return {value: position for position, value in enumerate(values) if counts[value] == 1}


def _pair_copies(
    rows: IntArray,
    ids: Sequence[str],
    labels: Sequence[int | None],
    known: list[str],
    known_labels: list[int],
) -> None:
    """Assign wanted copies of one content to those that exist: the order of copies may have changed."""
    wanted: dict[str, list[int]] = defaultdict(list)
    for position, id in enumerate(ids):
        if is_digest(id):
            wanted[_without_number(id)].append(position)
    existing: dict[str, list[int]] = defaultdict(list)
    for row, id in enumerate(known):
        if (content := _without_number(id)) in wanted:
            existing[content].append(row)
    keys: tuple[Callable[[str, int | None], Any], ...] = (
        lambda id, label: (id, label),
        lambda id, label: label,
        lambda id, label: id,
        lambda id, label: None,
    )
    for content, positions in wanted.items():
        free = existing.get(content, [])
        if len(free) < 2 and len(positions) < 2 and ids[positions[0]] == content:
            continue
        rows[positions] = ABSENT
        for key in keys:
            free_by_key: dict[Any, deque[int]] = defaultdict(deque)
            for row in free:
                free_by_key[key(known[row], known_labels[row])].append(row)
            for position in positions:
                candidates = free_by_key.get(key(ids[position], labels[position]))
                if rows[position] == ABSENT and candidates:
                    rows[position] = candidates.popleft()
            taken = set(rows[positions].tolist())
            free = [row for row in free if row not in taken]


def _without_number(id: str) -> str:
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
            keys[row] = _digest(str(texts[row]).encode("utf-8", "surrogatepass"), b"text")
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
