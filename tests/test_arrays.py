"""Blocks of rows cover all rows once, in order."""

import numpy as np
import pytest

from laplaceconfidence.arrays import row_blocks, rows_that_fit


@pytest.mark.parametrize(("n_rows", "rows_per_block"), [(0, 3), (1, 3), (3, 3), (10, 3), (9, 3), (5, 100)])
def test_blocks_cover_every_row_once(n_rows: int, rows_per_block: int) -> None:
    blocks = [np.arange(n_rows)[block] for block in row_blocks(n_rows, rows_per_block)]
    assert np.concatenate([[], *blocks]).tolist() == list(range(n_rows))
    assert all(0 < len(block) <= rows_per_block for block in blocks)
    assert all(block.stop <= n_rows for block in row_blocks(n_rows, rows_per_block))


def test_rows_that_fit_are_at_least_one() -> None:
    assert rows_that_fit(100, 1_000) == 10
    assert rows_that_fit(5_000, 1_000) == 1
    assert rows_that_fit(0, 1_000) == 1_000
