"""Array types used throughout the package, conversion to numpy, and loops over blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
StrArray = NDArray[np.str_]
ByteImages = NDArray[np.uint8]

_ENTRIES_PER_BLOCK = 2**22  # 16 MiB in float32


def to_numpy(values: Any) -> NDArray[Any]:
    """Convert anything array-like to a numpy array.

    Parameters
    ----------
    values : array-like
        A list, an array, a pandas object, a torch tensor on any device or a Hugging Face column.

    Returns
    -------
    ndarray
    """
    if hasattr(values, "detach"):  # a torch tensor: may have a gradient graph and be on another device
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":  # numpy has no such type
            values = values.float()
        return np.asarray(values.numpy())
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    return np.asarray(values)


def row_blocks(n_rows: int, rows_per_block: int) -> Iterator[slice]:
    """Yield slices that cover ``n_rows`` rows in order, each of at most ``rows_per_block`` rows.

    Parameters
    ----------
    n_rows : int
        Number of rows to cover.
    rows_per_block : int
        Number of rows per slice, at least 1.

    Yields
    ------
    slice

    Examples
    --------
    >>> list(row_blocks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, n_rows, rows_per_block):
        yield slice(start, min(start + rows_per_block, n_rows))


def sized_row_blocks(
    n_rows: int,
    entries_per_row: int,
    entries_per_block: int = _ENTRIES_PER_BLOCK,
    fewest_rows: int = 1,
) -> Iterator[slice]:
    """Yield slices that cover ``n_rows`` rows in order, each of at most ``entries_per_block`` entries.

    Parameters
    ----------
    n_rows : int
        Number of rows to cover.
    entries_per_row : int
        Entries that the computation needs per row.
    entries_per_block : int, default=4194304
        Entries per slice.
    fewest_rows : int, default=1
        Rows per slice even if they have more entries; the last slice may have fewer.

    Yields
    ------
    slice
    """
    return row_blocks(n_rows, max(fewest_rows, entries_per_block // max(1, entries_per_row)))
