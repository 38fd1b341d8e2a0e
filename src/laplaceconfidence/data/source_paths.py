"""Absolute paths of sources and of the files in their options, which stay valid in any working directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_MAY_BE_FILES = ("features", "labels")  # options of ``read_dataset``


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
