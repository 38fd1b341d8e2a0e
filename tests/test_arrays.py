"""Blocks of rows cover all rows once, in order."""

import numpy as np
import pytest

from laplaceconfidence.arrays import row_blocks, sized_row_blocks


@pytest.mark.parametrize(("n_rows", "rows_per_block"), [(0, 3), (1, 3), (3, 3), (10, 3), (9, 3), (5, 100)])
def test_blocks_cover_every_row_once(n_rows: int, rows_per_block: int) -> None:
    blocks = [np.arange(n_rows)[block] for block in row_blocks(n_rows, rows_per_block)]
    assert np.concatenate([[], *blocks]).tolist() == list(range(n_rows))
    assert all(0 < len(block) <= rows_per_block for block in blocks)
    assert all(block.stop <= n_rows for block in row_blocks(n_rows, rows_per_block))


@pytest.mark.parametrize(
    ("entries_per_row", "fewest_rows", "rows_per_block"),
    [(100, 1, 10), (5_000, 1, 1), (5_000, 4, 4), (0, 1, 1_000)],
)
def test_sized_blocks_hold_as_many_rows_as_fit(
    entries_per_row: int, fewest_rows: int, rows_per_block: int
) -> None:
    sized = sized_row_blocks(2_500, entries_per_row, 1_000, fewest_rows)
    assert list(sized) == list(row_blocks(2_500, rows_per_block))
