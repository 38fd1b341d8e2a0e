"""Confidences and best classes from solutions that come in chunks of classes.

The softmax over the classes of the values clipped at 0 needs, per sample, the largest value so far, the sum
of exponentials relative to it, the value at the given label, and the largest few values: the n x C matrix
never exists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.data.labels import MISSING

TOP_CLASSES = 5
_KEPT = TOP_CLASSES + 1  # one of them may be the given label


class ReadOut(NamedTuple):
    """What has been read of the classes so far.

    Attributes
    ----------
    largest : ndarray of float32, shape (m,)
        The largest clipped value.
    total : ndarray of float64, shape (m,)
        Sum of the exponentials of the values, relative to the largest.
    own : ndarray of float32, shape (m,)
        Value at the given label, NaN where there is none or it has not come yet.
    codes : ndarray of int32, shape (m, t)
        The classes with the largest values, largest first.
    values : ndarray of float32, shape (m, t)
        Their values.
    """

    largest: FloatArray
    total: FloatArray
    own: FloatArray
    codes: IntArray
    values: FloatArray

    @classmethod
    def empty(cls, m: int) -> ReadOut:
        """Make the read-out of no class.

        Parameters
        ----------
        m : int
            Number of samples.

        Returns
        -------
        ReadOut
        """
        return cls(
            np.zeros(m, dtype=np.float32),
            np.zeros(m),
            np.full(m, np.nan, dtype=np.float32),
            np.empty((m, 0), dtype=np.int32),
            np.empty((m, 0), dtype=np.float32),
        )

    def with_classes(self, solution: FloatArray, first: int, given: IntArray) -> ReadOut:
        """Add a chunk of classes.

        Parameters
        ----------
        solution : ndarray of shape (m, c)
            The solution for the classes.
        first : int
            Code of the first class.
        given : ndarray of int, shape (m,)
            Codes of the given labels.

        Returns
        -------
        ReadOut
        """
        values = np.maximum(solution, 0).astype(np.float32, copy=False)
        largest = values.max(axis=1)
        total = np.exp(values - largest[:, None]).sum(axis=1, dtype=np.float64)
        inside = np.flatnonzero((given >= first) & (given < first + values.shape[1]))
        own = np.full(len(values), np.nan, dtype=np.float32)
        own[inside] = values[inside, given[inside] - first]
        codes = np.broadcast_to(np.arange(first, first + values.shape[1], dtype=np.int32), values.shape)
        return self.joined(ReadOut(largest, total, own, codes, values))

    def joined(self, other: ReadOut) -> ReadOut:
        """Join it with what was read of other classes.

        Parameters
        ----------
        other : ReadOut
            The same samples, classes that come later.

        Returns
        -------
        ReadOut
        """
        largest = np.maximum(self.largest, other.largest)
        total = np.zeros(len(largest))
        for one in (self, other):
            total += one.total * np.exp(one.largest.astype(np.float64) - largest)
        own = np.where(np.isnan(other.own), self.own, other.own)
        codes = np.concatenate([self.codes, other.codes], axis=1)
        values = np.concatenate([self.values, other.values], axis=1)
        order = np.argsort(-values, axis=1, kind="stable")[:, :_KEPT]
        kept = np.take_along_axis(codes, order, axis=1), np.take_along_axis(values, order, axis=1)
        return ReadOut(largest, total, own, *kept)

    def probabilities(self, values: FloatArray) -> FloatArray:
        """Turn values into probabilities.

        Parameters
        ----------
        values : ndarray of shape (m,) or (m, t)
            Values of classes.

        Returns
        -------
        ndarray of float64
        """
        shape = (-1,) + (1,) * (values.ndim - 1)
        result: FloatArray = np.exp(values.astype(np.float64) - self.largest.reshape(shape))
        return result / self.total.reshape(shape)

    @property
    def confidence(self) -> FloatArray:
        """ndarray of float64, shape (m,): probability of the given labels, NaN where there is none."""
        return self.probabilities(self.own)

    def predicted(self, given: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the most probable class; of equally probable ones the given one, else the first.

        Parameters
        ----------
        given : ndarray of int, shape (m,)
            Codes of the given labels.

        Returns
        -------
        codes : ndarray of int64, shape (m,)
        probabilities : ndarray of float64, shape (m,)
        """
        is_best = (given != MISSING) & (self.own >= self.values[:, 0])
        return np.where(is_best, given, self.codes[:, 0]), self.probabilities(self.values[:, 0])

    def alternatives(self, given: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the most probable class other than the given one.

        Parameters
        ----------
        given : ndarray of int, shape (m,)
            Codes of the given labels.

        Returns
        -------
        codes : ndarray of int64, shape (m,)
        probabilities : ndarray of float64, shape (m,)
        """
        second = (self.codes[:, 0] == given).astype(np.int64)[:, None]
        codes = np.take_along_axis(self.codes, second, axis=1)[:, 0].astype(np.int64)
        values = np.take_along_axis(self.values, second, axis=1)[:, 0]
        return codes, self.probabilities(values)
