"""Encoding in batches, with progress; they become smaller where the memory is not enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.encoders.protocol import checked_rows
from laplaceconfidence.exceptions import InvalidInputError, LaplaceConfidenceError
from laplaceconfidence.own_code import error_in_words
from laplaceconfidence.stages import stage

_OUT_OF_MEMORY = ("out of memory", "failed to allocate", "can't allocate", "not enough memory", "bad_alloc")


@dataclass(frozen=True, slots=True)
class Advice:
    """What to try, in error messages, where an encoder has options for it."""

    not_finite: str = ""
    out_of_memory: str = ""


def encode_in_batches(
    encode: Callable[[Any], Any],
    take: Callable[[slice], Any],
    n: int,
    batch_size: int,
    encoder: str,
    *,
    order: NDArray[np.intp] | None = None,
    advice: Advice = Advice(),  # noqa: B008 (frozen)
) -> FloatArray:
    """Call a function for batches of samples and stack what it returns.

    Parameters
    ----------
    encode : callable
        Returns one row of features per sample. What it raises becomes an error that names the encoder.
    take : callable
        Returns the samples of a slice.
    n : int
        Number of samples.
    batch_size : int
        Samples per call; halved whenever a call runs out of memory.
    encoder : str
        Name of the encoder in error messages.
    order : ndarray of int of shape (n,), optional
        Row in the data of every sample, if they are taken in another order than the features shall have.
    advice : Advice, optional
        For error messages.

    Returns
    -------
    ndarray of float32 of shape (n, d)
    """
    rows_of_data = np.arange(n) if order is None else order
    found: FloatArray | None = None
    start = 0
    with stage("encoding", total=n) as advance:
        while start < n:
            rows = slice(start, min(start + batch_size, n))
            try:
                batch = encode(take(rows))
            except LaplaceConfidenceError:
                raise
            except Exception as error:  # of the user's function, or of a package that runs the model
                if not is_out_of_memory(error):
                    raise _failed(error, encoder, rows_of_data[rows]) from error
                _free_memory()
                if batch_size == 1:
                    raise InvalidInputError(
                        f"The encoder {encoder} runs out of memory even with one sample at a time "
                        f"({str(error).splitlines()[0] if str(error) else type(error).__name__}). "
                        f"Choose a smaller model{advice.out_of_memory}."
                    ) from error
                batch_size = max(1, batch_size // 2)
                continue
            part = checked_rows(
                batch, rows.stop - rows.start, encoder, rows_of_data[rows].tolist(), advice.not_finite
            )
            if found is None:
                found = np.empty((n, part.shape[1]), np.float32)
            elif part.shape[1] != found.shape[1]:
                raise InvalidInputError(
                    f"The encoder {encoder} must return rows of one length: it returned {part.shape[1]} "
                    f"numbers per sample from row {rows_of_data[rows][0]} on, {found.shape[1]} before."
                )
            found[rows_of_data[rows]] = part
            start = rows.stop
            advance(len(part))
    assert found is not None  # a data set has at least one sample
    return found


def _failed(error: Exception, encoder: str, rows: NDArray[np.intp]) -> InvalidInputError:
    which = f"row {rows[0]}" if len(rows) == 1 else f"{len(rows):,} samples from row {rows[0]} on"
    return InvalidInputError(
        f"The encoder {encoder} failed on {which} of the data (counted from 0): {error_in_words(error)}."
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that the memory is not enough.

    Parameters
    ----------
    error : BaseException
        The error.

    Returns
    -------
    bool
    """
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
