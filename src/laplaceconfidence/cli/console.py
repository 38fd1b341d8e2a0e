"""Where the command line writes, and how it shows what users named."""

from __future__ import annotations

import unicodedata
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

_UNSHOWN = ("Cc", "Cs", "Zl", "Zp")  # control characters, halves of characters, ends of lines


def output() -> Console:
    """Results: standard output."""
    return Console(highlight=False)


def notices() -> Console:
    """Progress, notes and errors: standard error, so that results can be piped on."""
    return Console(stderr=True, highlight=False)


def shown(value: object, most: int = 40) -> Text:
    """Text of a user's data as one short line: no markup in it counts, no control character gets through."""
    text = "".join(" " if unicodedata.category(c) in _UNSHOWN else c for c in str(value)[: 4 * most])
    text = " ".join(text.split())
    return Text(text if len(text) <= most else text[: most - 1] + "…")


def plain_table(title: str, *headings: str) -> Table:
    """A table without lines; headings that end in a colon are those of numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in headings:
        justify: Literal["left", "right"] = "right" if heading.endswith(":") else "left"
        table.add_column(heading.rstrip(":"), justify=justify, header_style="dim")
    return table


def count(number: int, noun: str) -> str:
    """A number with its noun: "1 label", "1,200 labels"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time in its usual unit: "40 s", "12 min", "3.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
