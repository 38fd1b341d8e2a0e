"""Features that were encoded before, found again by the digest of everything that they depend on.

An entry is one file that is written under a temporary name and renamed. It states what its features were made
of and their digest; one that does not match, is damaged or was not written by this package is not used.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.data.cifar_download import data_folder
from laplaceconfidence.exceptions import LaplaceConfidenceWarning
from laplaceconfidence.files import replacing

_FORMAT = "laplaceconfidence features 1"
_NAME = re.compile(r"[0-9a-f]{64}\.npz")
_LEFT_BEHIND = re.compile(r"\.[0-9a-f]{64}\.npz\..*\.npz")  # by a process that was killed while it wrote
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, NotImplementedError)


@dataclass(frozen=True, slots=True, eq=False)
class CachedFeatures:
    """Features from the cache, and what they are, in words."""

    features: FloatArray
    summary: str


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One file of the cache, as ``entries`` lists it; ``encoder`` is empty where it cannot be read."""

    path: Path
    n_bytes: int
    encoder: str = ""
    shape: tuple[int, ...] = ()
    created: str = ""


@dataclass(frozen=True, slots=True)
class FeatureCache:
    """A folder of encoded features.

    Parameters
    ----------
    folder : Path
        The folder; it need not exist.
    """

    folder: Path

    @classmethod
    def of_user(cls) -> FeatureCache:
        """Return the cache of the user: in LAPLACECONFIDENCE_DATA, or else in the user's cache folder.

        Returns
        -------
        FeatureCache
        """
        return cls(data_folder() / "features")

    def find(self, made_of: dict[str, Any]) -> CachedFeatures | None:
        """Find features.

        Parameters
        ----------
        made_of : dict of str to object
            Everything that they depend on: the digest of the samples and the encoder as it describes itself.

        Returns
        -------
        CachedFeatures or None
            ``None`` if there are none, or if the entry is damaged or of something else; a warning tells of
            an entry that cannot be used.
        """
        path = self._path(made_of)
        if not path.is_file():
            return None
        try:
            features, record = _read(path)
            if record["made_of"] != _canonical(made_of):
                raise ValueError("it is of other samples or of another encoder")
            if record["features_sha256"] != _digest(features):
                raise ValueError("its features are not those that were stored")
            return CachedFeatures(features, str(record["summary"]))
        except _UNREADABLE as error:
            warnings.warn(
                f"Features in the cache are not used, as {path} cannot be ({error or type(error).__name__}). "
                "They are made again.",
                LaplaceConfidenceWarning,
                stacklevel=2,
            )
            return None

    def store(self, made_of: dict[str, Any], features: FloatArray, summary: str) -> None:
        """Store features; where that fails, a warning says why, and nothing is stored.

        Parameters
        ----------
        made_of : dict of str to object
            As for ``find``.
        features : ndarray of shape (n, d)
            The features.
        summary : str
            What they are, in words.
        """
        record = {
            "format": _FORMAT,
            "made_of": _canonical(made_of),
            "summary": summary,
            "features_sha256": _digest(features),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self._path(made_of)) as temporary, temporary.open("wb") as file:
                np.savez(file, features=features, record=np.frombuffer(_json(record).encode(), np.uint8))
        except OSError as error:
            warnings.warn(
                f"The features are not kept in the cache {self.folder}: {error.strerror or error}.",
                LaplaceConfidenceWarning,
                stacklevel=2,
            )

    def entries(self) -> list[CacheEntry]:
        """List the entries, the newest first.

        Returns
        -------
        list of CacheEntry
        """
        return sorted((_entry(path) for path in self._files()), key=lambda one: one.created, reverse=True)

    def clear(self) -> tuple[int, int]:
        """Remove all entries, and nothing else.

        Returns
        -------
        n_removed : int
            Number of entries.
        n_bytes : int
            Their size.
        """
        n_removed, n_bytes = 0, 0
        for path in self._files():
            n_bytes += path.stat().st_size
            path.unlink()
            n_removed += 1
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if _LEFT_BEHIND.fullmatch(path.name):
                    path.unlink()
        return n_removed, n_bytes

    def _path(self, made_of: dict[str, Any]) -> Path:
        return self.folder / f"{hashlib.sha256(_json(made_of).encode()).hexdigest()}.npz"

    def _files(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return [path for path in self.folder.iterdir() if path.is_file() and _NAME.fullmatch(path.name)]


def _entry(path: Path) -> CacheEntry:
    size = path.stat().st_size
    try:
        features, record = _read(path)
        encoder = str(record["made_of"]["encoder"]["name"])
        return CacheEntry(path, size, encoder, features.shape, str(record["created"]))
    except (*_UNREADABLE, TypeError):
        return CacheEntry(path, size)


def _read(path: Path) -> tuple[FloatArray, dict[str, Any]]:
    with np.load(path, allow_pickle=False) as archive:
        record = json.loads(archive["record"].tobytes())
        if not isinstance(record, dict) or record.get("format") != _FORMAT:
            raise ValueError("it has another format")
        return archive["features"], record


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=True)


def _canonical(content: dict[str, Any]) -> Any:
    """As it is after it was written and read, such as lists in place of tuples."""
    return json.loads(_json(content))


def _digest(features: FloatArray) -> str:
    whole = hashlib.sha256(f"{features.dtype.str} {features.shape}".encode())
    whole.update(np.ascontiguousarray(features).data)
    return whole.hexdigest()
