"""The two output streams of the command line, and how text from data sets is shown safely."""

from __future__ import annotations

import unicodedata
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

_UNSHOWN = ("Cc", "Cs", "Zl", "Zp")  # Unicode categories: control, surrogate, line and paragraph separators


def output() -> Console:
    """Standard output, for results."""
    return Console(highlight=False)


def notices() -> Console:
    """Standard error, for progress, notes and errors: results can then be piped."""
    return Console(stderr=True, highlight=False)


def one_line(value: object, most: int | None = None) -> str:
    """A value from a data set as one line without control characters; ``most`` limits what is looked at."""
    text = "".join(" " if unicodedata.category(c) in _UNSHOWN else c for c in str(value)[:most])
    return " ".join(text.split())


def shown(value: object, most: int = 40) -> Text:
    """A value from a data set as one short line, without markup or control characters taking effect."""
    text = one_line(value, 4 * most)
    return Text(text if len(text) <= most else text[: most - 1] + "…")


def plain_table(title: str, *headings: str) -> Table:
    """A table without borders; columns whose heading ends in a colon hold numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in headings:
        justify: Literal["left", "right"] = "right" if heading.endswith(":") else "left"
        table.add_column(heading.rstrip(":"), justify=justify, header_style="dim")
    return table
