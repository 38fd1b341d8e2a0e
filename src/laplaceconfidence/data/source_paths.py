"""Paths of sources, of the files in their options, and of the files that a source lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from laplaceconfidence.exceptions import DataFormatError

_MAY_BE_FILES = ("features", "labels", "samples")  # options of ``read_dataset``


def full_path(path: str) -> str:
    """Make the path of an existing file or folder absolute; names such as "digits" are returned unchanged.

    Parameters
    ----------
    path : str
        A source of ``read_dataset``.

    Returns
    -------
    str
    """
    return str(Path(path).absolute()) if Path(path).exists() else path


def with_full_paths(read_options: Mapping[str, Any]) -> dict[str, Any]:
    """Make the paths in the options of a source absolute.

    Parameters
    ----------
    read_options : mapping of str to object
        Options of ``read_dataset``.

    Returns
    -------
    dict of str to object
    """
    return {
        name: full_path(str(value)) if name in _MAY_BE_FILES and isinstance(value, (str, Path)) else value
        for name, value in read_options.items()
    }


def listed_file(folder: Path, name: str, origin: str) -> Path:
    """Return the path of a file that a source lists, which must lie in its folder.

    Parameters
    ----------
    folder : Path
        The folder.
    name : str
        What the source lists: a path relative to the folder.
    origin : str
        The source, for error messages.

    Returns
    -------
    Path
        It need not exist.

    Raises
    ------
    DataFormatError
        If the name is absolute or leads out of the folder.
    """
    windows = PureWindowsPath(name)
    parts = PurePosixPath(name).parts
    if not name or windows.drive or windows.root or ".." in parts or ".." in windows.parts or "\0" in name:
        raise DataFormatError(
            f"{origin} lists {name!r}, which is not a path inside {folder}: only files below this folder are "
            "read. Write paths relative to it, without '..'."
        )
    return folder / name


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Sort files by name, with numbers in names in numeric order.

    Parameters
    ----------
    paths : iterable of Path
        The files.

    Returns
    -------
    list of Path
    """
    return sorted(paths, key=lambda path: re.sub(r"\d+", lambda found: found[0].zfill(20), path.as_posix()))
