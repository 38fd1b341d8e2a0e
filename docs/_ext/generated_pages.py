"""Write generated pages into a folder of their own, touching only those that changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_pages(folder: Path, pages: Mapping[str, str]) -> None:
    """Make ``folder`` hold exactly ``pages`` (file name -> text)."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in {path.name for path in folder.iterdir()} - set(pages):
        (folder / stale).unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
