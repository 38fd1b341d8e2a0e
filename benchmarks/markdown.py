"""Markdown tables and paragraphs for docs/benchmarks.md."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(header), *(list(row) for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def measured_on(result: dict[str, Any], *peers: str) -> str:
    """The machine, the versions that matter and the settings, in one line."""
    machine = result["machine"]
    cores = "1 core" if machine["cores"] == 1 else f"{machine['cores']} cores"
    parts = [f"{cores} of {machine['processor']}, {machine['memory_gib']} GiB"]
    parts.append(", ".join(f"{name} {machine['versions'][name]}" for name in peers))
    parts.append(", ".join(f"{name} {value}" for name, value in result.get("settings", {}).items()))
    return f"*{'; '.join(part for part in parts if part)}.*\n"


def marked(value: float, best: float, digits: int = 3) -> str:
    """A number, bold where it equals the best one at this precision."""
    text = f"{value:.{digits}f}"
    return f"**{text}**" if text == f"{best:.{digits}f}" else text


def wrapped(page: str, width: int = 119) -> str:
    """The page with long lines of prose wrapped; tables and headings stay as they are."""
    return "\n".join(
        line
        if line.startswith(("|", "#"))
        else textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
        for line in page.split("\n")
    )
