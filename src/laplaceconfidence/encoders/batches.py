"""Encoding in batches, with progress, and in smaller batches where the memory is not enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.encoders.protocol import checked_rows
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.stages import stage

_OUT_OF_MEMORY = ("out of memory", "failed to allocate", "can't allocate", "not enough memory", "bad_alloc")


def encode_in_batches(encode: Callable[[slice], Any], n: int, batch_size: int, encoder: str) -> FloatArray:
    """Call a function for batches of rows and stack what it returns.

    Parameters
    ----------
    encode : callable
        Returns one row of features per sample of a slice.
    n : int
        Number of samples.
    batch_size : int
        Samples per call; halved whenever a call runs out of memory.
    encoder : str
        Name of the encoder in error messages.

    Returns
    -------
    ndarray of float32 of shape (n, d)
    """
    found: FloatArray | None = None
    start = 0
    with stage("encoding", total=n) as advance:
        while start < n:
            rows = slice(start, min(start + batch_size, n))
            try:
                batch = encode(rows)
            except (MemoryError, RuntimeError) as error:
                if not _is_out_of_memory(error):
                    raise
                _free_memory()
                if batch_size == 1:
                    raise InvalidInputError(
                        f"The encoder {encoder} runs out of memory even with one sample at a time "
                        f"({str(error).splitlines()[0] if str(error) else type(error).__name__}). Choose a "
                        "smaller model, or another device (--device cpu)."
                    ) from error
                batch_size = max(1, batch_size // 2)
                continue
            part = checked_rows(batch, rows.stop - rows.start, encoder)
            if found is None:
                found = np.empty((n, part.shape[1]), np.float32)
            elif part.shape[1] != found.shape[1]:
                raise InvalidInputError(
                    f"The encoder {encoder} must return rows of one length: it returned {part.shape[1]} "
                    f"numbers per sample from row {rows.start} on, {found.shape[1]} before."
                )
            found[rows] = part
            start = rows.stop
            advance(len(part))
    assert found is not None  # a data set has at least one sample
    return found


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return any(sign in str(error).lower() for sign in _OUT_OF_MEMORY)


def _free_memory() -> None:
    """Return memory that torch keeps for later use, if torch is loaded."""
    import gc
    import sys

    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
