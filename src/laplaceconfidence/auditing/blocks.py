"""Rows in blocks, so that no step needs much memory at once."""

from __future__ import annotations

from collections.abc import Iterator

ENTRIES_AT_ONCE = 2**22


def row_blocks(n_rows: int, entries_per_row: int) -> Iterator[slice]:
    """Slices that cover ``n_rows`` rows, each of about four million entries and at least one row."""
    step = max(1, ENTRIES_AT_ONCE // max(1, entries_per_row))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
