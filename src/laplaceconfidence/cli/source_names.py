"""What a source is called: in the name of a run's folder, and in its record."""

from __future__ import annotations

from pathlib import Path

from laplaceconfidence.data.source_paths import full_path, with_full_paths

__all__ = ["full_path", "stem_of", "with_full_paths"]


def stem_of(source: str) -> str:
    """The name of the source without folder and suffixes."""
    name = Path(source).absolute().name
    return name.lstrip(".").split(".")[0] or "data"
