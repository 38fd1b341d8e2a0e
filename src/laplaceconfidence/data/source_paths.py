"""Paths of a source and of the files its options name, written such that they are found from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_MAY_BE_FILES = ("features", "labels")  # of the options that say how to read a source


def full_path(path: str) -> str:
    """A path made absolute; what is no path, such as 'digits', as it is.

    Parameters
    ----------
    path : str

    Returns
    -------
    str
    """
    return str(Path(path).absolute()) if Path(path).exists() else path


def with_full_paths(read_options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a source such that its files can be found from elsewhere.

    Parameters
    ----------
    read_options : mapping of str to object

    Returns
    -------
    dict of str to object
    """
    return {
        name: full_path(str(value)) if name in _MAY_BE_FILES and isinstance(value, (str, Path)) else value
        for name, value in read_options.items()
    }
