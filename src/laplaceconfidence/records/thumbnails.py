"""Pictures of samples as small encoded images: from the run or from the listed files, cached on disk.

Only files that the run itself lists are ever opened, and no link may lead out of their folder. What is
returned was decoded and encoded again, never the bytes of a file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from laplaceconfidence.data.picture_encoding import EncodedPicture, encode_picture, encode_picture_file
from laplaceconfidence.files import replacing
from laplaceconfidence.records.listed_files import data_folder, file_within
from laplaceconfidence.records.sample_arrays import SampleArrays

CACHE = "thumbnails"


@dataclass(frozen=True, slots=True)
class NotShown:
    """Listed image files that cannot be shown.

    Parameters
    ----------
    n_lost : int
        Files that do not exist.
    n_outside : int
        Files behind symbolic links out of the folder of the data, which are not followed.
    """

    n_lost: int = 0
    n_outside: int = 0


class Thumbnails:
    """The pictures of the samples of an audit.

    Parameters
    ----------
    samples : SampleArrays
        The samples.
    cache : bool, default=True
        Whether pictures are cached in the folder of the run.
    """

    def __init__(self, samples: SampleArrays, *, cache: bool = True) -> None:
        self._samples = samples
        self._stored = samples.run.pictures
        self._root = data_folder(samples.run)
        self._test_root = data_folder(samples.run, "test")
        self._test_files: dict[int, str] = {}  # by the row of the sample that is a copy
        if "leaked_from_path" in samples.run.issues:
            listed = samples.run.issues["leaked_from_path"].dropna()
            self._test_files = dict(zip(listed.index.tolist(), listed.tolist(), strict=True))
        self._cache = samples.run.folder / CACHE if cache else None

    @property
    def are_pictures(self) -> bool:
        """bool: whether the samples are images."""
        return bool(self._stored) or self._samples.run.record.source_kind == "image"

    def of(self, row: int, longest: int) -> EncodedPicture | None:
        """Return the picture of a sample.

        Parameters
        ----------
        row : int
            Row of the sample.
        longest : int
            Pixels that the longer side of an image file is reduced to; stored pictures keep their size.

        Returns
        -------
        EncodedPicture or None
            None where there is none, or where its file is missing or not an image.
        """
        if (stored := self._stored.of(row)) is not None:
            return encode_picture(stored)
        path = self.listed_file(row)
        return None if path is None else self._of_file(path, str(row), longest)

    def of_test_sample(self, row: int, longest: int) -> EncodedPicture | None:
        """Return the picture of the sample of the test set that a leaked sample is a copy of.

        Parameters
        ----------
        row : int
            Row of the leaked sample.
        longest : int
            Pixels that the longer side is reduced to.

        Returns
        -------
        EncodedPicture or None
            None where it is not an image file, or where the file is missing.
        """
        path = self._test_files.get(row)
        file = None if path is None else file_within(path, self._test_root)
        return None if file is None else self._of_file(file, f"test-{row}", longest)

    def _of_file(self, path: Path, name: str, longest: int) -> EncodedPicture | None:
        kept = self._kept_at(path, name, longest)
        if kept is not None and (picture := _read(kept)) is not None:
            return picture
        picture = encode_picture_file(path, longest)
        if kept is not None and picture is not None:
            _write(kept, picture.content)
        return picture

    def listed_file(self, row: int) -> Path | None:
        """Return the image file of a sample.

        Parameters
        ----------
        row : int
            Row of the sample.

        Returns
        -------
        pathlib.Path or None
            None where there is no such file, or a link leads out of its folder.
        """
        sources = self._samples.sources
        if sources is None or self._samples.run.record.source_kind != "image" or not sources[row]:
            return None
        return file_within(sources[row], self._root)

    def not_shown(self) -> NotShown:
        """Count the listed image files that cannot be shown.

        Returns
        -------
        NotShown
        """
        sources = self._samples.sources
        if sources is None or self._samples.run.record.source_kind != "image":
            return NotShown()
        n_lost = n_outside = 0
        has_links: dict[str, bool] = {}  # by folder, as there are few folders and many files
        for source in sources.tolist():
            folder = os.path.dirname(source)  # noqa: PTH120 - faster, as below
            if folder not in has_links:
                has_links[folder] = os.path.realpath(folder) != os.path.normpath(folder)
            if not os.path.isfile(source):  # noqa: PTH113
                n_lost += 1
            elif has_links[folder] or os.path.islink(source):  # noqa: PTH114
                n_outside += file_within(source, self._root) is None
        return NotShown(n_lost, n_outside)

    def _kept_at(self, path: Path, name: str, longest: int) -> Path | None:
        if self._cache is None:
            return None
        changed = path.stat().st_mtime_ns
        return self._cache / f"{name}-{longest}-{changed:x}"


def _read(path: Path) -> EncodedPicture | None:
    with suppress(OSError):
        content = path.read_bytes()
        if content.startswith(b"\x89PNG"):
            return EncodedPicture(content, "image/png")
        if content.startswith(b"\xff\xd8"):
            return EncodedPicture(content, "image/jpeg")
    return None


def _write(path: Path, content: bytes) -> None:
    with suppress(OSError):  # without a cache, pictures are only slower
        path.parent.mkdir(exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_bytes(content)
