"""What an encoder is, and the checks of what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from laplaceconfidence.arrays import FloatArray, to_numpy
from laplaceconfidence.encoders.samples import RawSamples, SampleKind
from laplaceconfidence.exceptions import InvalidInputError


class Encoder(Protocol):
    """Turns raw samples into feature vectors, without looking at labels.

    Attributes
    ----------
    name : str
        What the user calls it, such as "tfidf" or "hf:NAME".
    takes : tuple of str
        The kinds of samples it can encode.
    learns : bool
        Whether ``transform`` depends on the samples of ``fit_transform``.
    is_cached : bool
        Whether its features are worth keeping, and ``describe`` tells all that they depend on.
    """

    name: str
    takes: tuple[SampleKind, ...]
    learns: ClassVar[bool]
    is_cached: ClassVar[bool]

    def fit_transform(self, samples: RawSamples) -> FloatArray:
        """Learn whatever the encoder learns from the samples, and return their features.

        Parameters
        ----------
        samples : RawSamples
            The samples.

        Returns
        -------
        ndarray of float32 of shape (n, d)
        """

    def transform(self, samples: RawSamples) -> FloatArray:
        """Return the features of other samples, with what ``fit_transform`` learned.

        Parameters
        ----------
        samples : RawSamples
            The samples.

        Returns
        -------
        ndarray of float32 of shape (n, d)
        """

    def describe(self) -> dict[str, Any]:
        """Return everything besides the samples that the features depend on, known before fitting.

        Returns
        -------
        dict of str to object
            Name, settings, versions of packages and digests of weights, as JSON can hold them.
        """

    def summary(self) -> str:
        """Return what the features are, in words, known after ``fit_transform``.

        Returns
        -------
        str
        """


def checked_rows(
    found: Any, n: int, encoder: str, rows_of_data: Sequence[int] | None = None, advice: str = ""
) -> FloatArray:
    """Check what an encoder returned for some samples.

    Parameters
    ----------
    found : array-like of shape (n, d)
        What it returned.
    n : int
        Number of samples.
    encoder : str
        Its name in error messages.
    rows_of_data : sequence of int, optional
        Rows of the samples in the data, for error messages; by default 0 to n - 1.
    advice : str, default=""
        What to try where numbers are not finite, besides looking at the sample.

    Returns
    -------
    ndarray of float32 of shape (n, d)
    """
    try:
        rows = to_numpy(found)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"The encoder {encoder} must return a matrix of numbers. Got {type(found).__name__} ({error})."
        ) from error
    if rows.dtype.kind not in "fiub" or rows.ndim != 2 or rows.shape[1] == 0:
        raise InvalidInputError(
            f"The encoder {encoder} must return a matrix of numbers, one row per sample. Got "
            f"{type(found).__name__} of {rows.dtype} and shape {rows.shape}."
        )
    if len(rows) != n:
        raise InvalidInputError(
            f"The encoder {encoder} must return one row per sample: it returned {len(rows)} rows for {n} "
            "samples."
        )
    features = rows.astype(np.float32, copy=False)
    if not (finite := np.isfinite(features).all(axis=1)).all():
        position = int(np.flatnonzero(~finite)[0])
        row = position if rows_of_data is None else rows_of_data[position]
        raise InvalidInputError(
            f"The encoder {encoder} must return finite numbers: {int((~finite).sum())} of {n} rows hold NaN "
            f"or infinity. Look at the sample in row {row} of the data (counted from 0), the first of them. "
            f"{advice}".rstrip()
        )
    return np.ascontiguousarray(features)
