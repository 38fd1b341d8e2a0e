"""The folder in which stages leave their parts: what a killed run goes on from, and workers share.

A part is a few arrays in .npy files and, written last, a small JSON file with their checksums and with what
the driver needs to know. A part whose JSON file exists is finished and is never computed again.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import row_blocks
from laplaceconfidence.exceptions import DataFormatError, RunFolderError
from laplaceconfidence.files import differences, replacing, write_json

SETTINGS = "settings.json"
_BYTES_AT_ONCE = 2**22
Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """A folder of parts. Workers on other machines must see it under the same path.

    Attributes
    ----------
    path : Path
        The folder.
    """

    path: Path

    @classmethod
    def opened(cls, path: Path, settings: Mapping[str, Any]) -> WorkFolder:
        """Open a folder for a run; parts of a run with other settings or data are removed.

        Parameters
        ----------
        path : Path
            The folder; it is created where it does not exist.
        settings : mapping of str to object
            What the parts depend on, as JSON can store it.

        Returns
        -------
        WorkFolder

        Raises
        ------
        RunFolderError
            If the folder holds anything but the parts of such a run.
        """
        wanted = json.loads(json.dumps(settings))
        if path.is_dir() and any(path.iterdir()):
            try:
                there = json.loads((path / SETTINGS).read_text(encoding="utf-8"))
            except (OSError, ValueError):
                raise RunFolderError(
                    f"The work folder {path} holds files that are no parts of an audit: choose another one, "
                    "or remove it."
                ) from None
            if not differences(there, wanted):
                return cls(path)
            shutil.rmtree(path)
        path.mkdir(parents=True, exist_ok=True)
        write_json(path / SETTINGS, wanted)
        return cls(path)

    def is_done(self, stage: str, part: int) -> bool:
        """Return whether a part is finished.

        Parameters
        ----------
        stage : str
            Name of the stage.
        part : int
            Number of the part.

        Returns
        -------
        bool
        """
        return self._facts_path(stage, part).is_file()

    def facts(self, stage: str, part: int) -> Facts:
        """Read what a finished part tells the driver.

        Parameters
        ----------
        stage : str
            Name of the stage.
        part : int
            Number of the part.

        Returns
        -------
        dict of str to object
        """
        facts: Facts = json.loads(self._facts_path(stage, part).read_text(encoding="utf-8"))["facts"]
        return facts

    @contextmanager
    def writing_array(
        self, stage: str, part: int, name: str, shape: tuple[int, ...], dtype: Any
    ) -> Iterator[NDArray[Any]]:
        """Write an array of a part piece by piece; ``save`` has to name it afterwards.

        Parameters
        ----------
        stage : str
            Name of the stage.
        part : int
            Number of the part.
        name : str
            Name of the array.
        shape : tuple of int
            Its shape.
        dtype : dtype
            Its type.

        Yields
        ------
        ndarray
            An array on the disk, to be filled.
        """
        (self.path / stage).mkdir(exist_ok=True)
        with replacing(self._array_path(stage, part, name)) as temporary:
            array = np.lib.format.open_memmap(
                temporary, mode="w+", dtype=np.dtype(dtype), shape=tuple(map(int, shape))
            )
            yield array
            array.flush()
            del array

    def save(
        self,
        stage: str,
        part: int,
        arrays: Mapping[str, NDArray[Any]],
        facts: Facts,
        written: Sequence[str] = (),
    ) -> Facts:
        """Write a part; it counts as finished when all of it is on the disk.

        Parameters
        ----------
        stage : str
            Name of the stage.
        part : int
            Number of the part.
        arrays : mapping of str to ndarray
            Its arrays.
        facts : dict of str to object
            What the driver needs to know.
        written : sequence of str, default=()
            Arrays of the part that ``writing_array`` wrote.

        Returns
        -------
        dict of str to object
            The facts.
        """
        (self.path / stage).mkdir(exist_ok=True)
        sums = {}
        for name, array in arrays.items():
            array = np.ascontiguousarray(array)
            with replacing(self._array_path(stage, part, name)) as temporary:
                np.save(temporary, array, allow_pickle=False)
            sums[name] = _checksum(array)
        sums |= {name: _checksum(self.load(stage, part, name)) for name in written}
        write_json(self._facts_path(stage, part), {"checksums": sums, "facts": facts})
        return facts

    def load(self, stage: str, part: int, name: str, *, mapped: bool = True) -> NDArray[Any]:
        """Load an array of a finished part.

        Parameters
        ----------
        stage : str
            Name of the stage.
        part : int
            Number of the part.
        name : str
            Name of the array.
        mapped : bool, default=True
            Whether it stays on the disk and is read where it is used.

        Returns
        -------
        ndarray
        """
        path = self._array_path(stage, part, name)
        try:
            array: NDArray[Any] = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
            return array
        except (ValueError, OSError, EOFError) as error:
            if mapped and path.is_file() and "empty" in str(error):  # an empty array cannot be mapped
                return self.load(stage, part, name, mapped=False)
            raise DataFormatError(
                f"{path} cannot be read ({error}). If several machines work on this audit, all of them must "
                "see the work folder under the same path; otherwise remove it and run the audit again."
            ) from error

    def take(self, other: WorkFolder, stage: str, part: int, without: Collection[str] = ()) -> None:
        """Take over a finished part of another folder, whose files are linked where that is possible.

        Parameters
        ----------
        other : WorkFolder
            The other folder.
        stage : str
            Name of the stage.
        part : int
            Number of the part.
        without : collection of str, default=()
            Arrays to leave out.
        """
        (self.path / stage).mkdir(parents=True, exist_ok=True)
        about = json.loads(other._facts_path(stage, part).read_text(encoding="utf-8"))
        about["checksums"] = {name: sum for name, sum in about["checksums"].items() if name not in without}
        for name in about["checksums"]:
            with replacing(self._array_path(stage, part, name)) as temporary:
                temporary.unlink()
                try:  # a file is never changed once it has its name, so two folders can share it
                    temporary.hardlink_to(other._array_path(stage, part, name))
                except OSError:  # on another disk, or a file system without links
                    shutil.copyfile(other._array_path(stage, part, name), temporary)
        write_json(self._facts_path(stage, part), about)

    def parts(self, stage: str) -> list[int]:
        """List the finished parts of a stage.

        Parameters
        ----------
        stage : str
            Name of the stage.

        Returns
        -------
        list of int
        """
        return sorted(int(path.stem) for path in (self.path / stage).glob("*.json"))

    def damage(self, stage: str, part: int) -> str | None:
        """Compare the arrays of a part with their checksums.

        Parameters
        ----------
        stage : str
            Name of the stage.
        part : int
            Number of the part.

        Returns
        -------
        str or None
            What is wrong; ``None`` where the part is as it was written.
        """
        try:
            sums = json.loads(self._facts_path(stage, part).read_text(encoding="utf-8"))["checksums"]
            for name, expected in sums.items():
                array = self.load(stage, part, name)
                if _checksum(array) != expected:
                    return f"{self._array_path(stage, part, name)} is not as it was written"
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            return str(error)
        return None

    def drop_array(self, stage: str, name: str) -> None:
        """Remove one array of all parts of a stage, which stay finished without it.

        Parameters
        ----------
        stage : str
            Name of the stage.
        name : str
            Name of the array.
        """
        for path in (self.path / stage).glob(f"*-{name}.npy"):
            path.unlink()

    def remove(self, stage: str) -> None:
        """Remove all parts of a stage.

        Parameters
        ----------
        stage : str
            Name of the stage.
        """
        shutil.rmtree(self.path / stage, ignore_errors=True)

    def _facts_path(self, stage: str, part: int) -> Path:
        return self.path / stage / f"{part:05d}.json"

    def _array_path(self, stage: str, part: int, name: str) -> Path:
        return self.path / stage / f"{part:05d}-{name}.npy"


def _checksum(array: NDArray[Any]) -> int:
    total = 0
    for rows in row_blocks(len(array), max(1, _BYTES_AT_ONCE // max(1, array[:1].nbytes))):
        total = zlib.crc32(np.ascontiguousarray(array[rows]).reshape(-1).view(np.uint8).data, total)
    return total
