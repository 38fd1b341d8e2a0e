"""What a source is called: in the name of a run's folder, and in its record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_MAY_BE_FILES = ("features", "labels")  # of the options that say how to read a source


def stem_of(source: str) -> str:
    """The name of the source without folder and suffixes."""
    name = Path(source).absolute().name
    return name.lstrip(".").split(".")[0] or "data"


def full_path(path: str) -> str:
    """A path made absolute; what is no path, such as 'digits', as it is."""
    return str(Path(path).absolute()) if Path(path).exists() else path


def with_full_paths(read_options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a source such that its files can be found from elsewhere."""
    return {
        name: full_path(value) if name in _MAY_BE_FILES and isinstance(value, str) else value
        for name, value in read_options.items()
    }
