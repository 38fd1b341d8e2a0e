"""The labels of several annotators: who gave which label to which sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, IntArray, to_numpy
from laplaceconfidence.data.labels import MISSING, encode_labels
from laplaceconfidence.validation import check_same_length, must_be


@dataclass(frozen=True, eq=False)
class AnnotatorLabels:
    """Labels of several annotators, one entry per label.

    Made by ``from_columns`` or ``from_table``.

    Attributes
    ----------
    samples : ndarray of int64, shape (L,)
        The sample of every label, a row number of the features.
    annotators : ndarray of int64, shape (L,)
        The annotator of every label, a position in ``annotator_names``.
    labels : ndarray of shape (L,)
        The labels as they were given; missing ones are left out.
    sample_ids : ndarray of shape (n,)
        The samples, in the order of the features.
    annotator_names : ndarray of shape (A,)
        The annotators.
    positions : tuple of ndarray of int64
        Where the labels stood: rows and columns of a table with a column per annotator, or rows of a long
        table.
    shape : tuple of int
        Shape of what they were read from.
    """

    samples: IntArray
    annotators: IntArray
    labels: NDArray[Any]
    sample_ids: NDArray[Any]
    annotator_names: NDArray[Any]
    positions: tuple[IntArray, ...]
    shape: tuple[int, ...]

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.sample_ids)

    @classmethod
    def from_columns(
        cls, y: Any, *, names: Sequence[str] | None = None, missing_label: object = None
    ) -> Self:
        """Read a table with a row per sample and a column per annotator.

        Parameters
        ----------
        y : array-like of shape (n, A) or DataFrame
            Labels, with gaps where an annotator gave none.
        names : sequence of str or None, default=None
            Names of the annotators; ``None`` takes the column names of a data frame, or numbers from 0.
        missing_label : object, default=None
            A value that means "no label", besides ``None``, NaN and the empty string.

        Returns
        -------
        AnnotatorLabels

        Examples
        --------
        >>> labels = AnnotatorLabels.from_columns([["cat", None], ["dog", "cat"]])
        >>> labels.samples.tolist(), labels.annotators.tolist(), labels.labels.tolist()
        ([0, 1, 1], [0, 0, 1], ['cat', 'dog', 'cat'])
        """
        columns = getattr(y, "columns", None)
        table = _as_table(y, "y")
        if table.ndim != 2 or table.size == 0:
            rule = "a table with a row per sample and a column per annotator"
            raise must_be("y", rule, f"shape {table.shape}")
        n, n_annotators = table.shape
        if names is None:
            found = np.arange(n_annotators) if columns is None else np.asarray(columns)
        else:
            found = np.asarray(names)
            check_same_length("y", n_annotators, "names", len(found))
        codes = encode_labels(table.ravel(), missing_label=missing_label, parameter="y").codes
        rows, at = np.nonzero((codes != MISSING).reshape(n, n_annotators))
        return cls(rows, at, table[rows, at], np.arange(n), found, (rows, at), table.shape)

    @classmethod
    def from_table(
        cls,
        samples: Any,
        annotators: Any,
        labels: Any,
        *,
        sample_ids: Any = None,
        missing_label: object = None,
    ) -> Self:
        """Read a long table with a row per label.

        Parameters
        ----------
        samples, annotators, labels : array-like of shape (L,)
            Sample, annotator and label of every row. Rows without a label are left out.
        sample_ids : array-like of shape (n,) or None, default=None
            All samples in the order of the features; ``None`` is the order in which they occur.
        missing_label : object, default=None
            A value that means "no label", besides ``None``, NaN and the empty string.

        Returns
        -------
        AnnotatorLabels

        Examples
        --------
        >>> labels = AnnotatorLabels.from_table(["b", "a", "b"], ["Ann", "Ann", "Bo"], [1, 0, 1])
        >>> labels.sample_ids.tolist(), labels.samples.tolist(), labels.annotator_names.tolist()
        (['b', 'a'], [0, 1, 0], ['Ann', 'Bo'])
        """
        of_sample, of_annotator, given = (to_numpy(column) for column in (samples, annotators, labels))
        check_same_length("samples", len(of_sample), "annotators", len(of_annotator))
        check_same_length("samples", len(of_sample), "labels", len(given))
        codes = encode_labels(given, missing_label=missing_label, parameter="labels").codes
        ids, rows = _in_order_of_occurrence(of_sample)
        if sample_ids is not None:
            wanted = to_numpy(sample_ids)
            place = {value: number for number, value in enumerate(wanted.tolist())}
            if len(place) < len(wanted):
                raise must_be(
                    "sample_ids", "different from each other", f"{len(wanted) - len(place)} repeated"
                )
            if unknown := [value for value in ids.tolist() if value not in place]:
                raise must_be("samples", "among 'sample_ids'", unknown[0])
            rows = np.array([place[value] for value in ids.tolist()], dtype=np.int64)[rows]
            ids = wanted
        names, who = _in_order_of_occurrence(of_annotator)
        kept = np.flatnonzero(codes != MISSING)
        return cls(rows[kept], who[kept], given[kept], ids, names, (kept,), given.shape)

    @classmethod
    def of(cls, labels: Any, *, missing_label: object = None) -> Self | None:
        """Read labels of several annotators; labels of one column have none.

        Parameters
        ----------
        labels : AnnotatorLabels, array-like of shape (n, A) or array-like of shape (n,)
            The labels.
        missing_label : object, default=None
            As in ``from_columns``.

        Returns
        -------
        AnnotatorLabels or None
            ``None`` for a single column.
        """
        if isinstance(labels, cls):
            return labels
        if not hasattr(labels, "dtype") and not hasattr(labels, "columns"):
            if not isinstance(labels, Sequence) or not len(labels) or not _is_row(labels[0]):
                return None
        elif len(labels.shape) != 2:
            return None
        table = _as_table(labels, "labels")
        if any(isinstance(value, float) and value % 1 > 0 for value in table.ravel().tolist()):
            rule = "one-dimensional, or a column of classes per annotator"
            raise must_be("labels", rule, f"numbers with decimals, of shape {table.shape}")
        return cls.from_columns(labels, missing_label=missing_label)

    @cached_property
    def votes(self) -> NDArray[Any]:
        """ndarray of shape (n,): the most frequent label of every sample, ``None`` where it has none.

        Among equally frequent labels it is the one that was given first.
        """
        codes = encode_labels(self.labels).codes
        _, firsts, counts = np.unique(
            self.samples * (codes.max(initial=0) + 1) + codes, return_index=True, return_counts=True
        )
        samples = self.samples[firsts]
        best = np.lexsort((firsts, -counts, samples))
        voted, places = np.unique(samples[best], return_index=True)
        found = self.labels[firsts[best[places]]]
        if len(voted) == self.n_samples:
            return found
        votes = np.full(self.n_samples, None, dtype=object)
        votes[voted] = found
        return votes

    def take(self, rows: IntArray) -> Self:
        """Return the labels of some of the samples; all annotators stay.

        Parameters
        ----------
        rows : ndarray of int64
            The samples, in their new order, each at most once.

        Returns
        -------
        AnnotatorLabels
            A long table.
        """
        place = np.full(self.n_samples, MISSING)
        place[rows] = np.arange(len(rows))
        kept = np.flatnonzero(place[self.samples] != MISSING)
        return type(self)(
            place[self.samples[kept]],
            self.annotators[kept],
            self.labels[kept],
            self.sample_ids[rows],
            self.annotator_names,
            (np.arange(len(kept)),),
            (len(kept),),
        )

    def without_samples(self, rows: Sequence[int]) -> Self:
        """Leave out all labels of some samples, which stay without any.

        Parameters
        ----------
        rows : sequence of int
            The samples.

        Returns
        -------
        AnnotatorLabels
            A long table.
        """
        kept = np.flatnonzero(~np.isin(self.samples, np.asarray(rows, dtype=np.int64)))
        return type(self)(
            self.samples[kept],
            self.annotators[kept],
            self.labels[kept],
            self.sample_ids,
            self.annotator_names,
            (np.arange(len(kept)),),
            (len(kept),),
        )

    def as_given(self, values: FloatArray) -> FloatArray:
        """Put values of labels where the labels stood, and NaN where there was no label.

        Parameters
        ----------
        values : ndarray of shape (L,)
            One value per label.

        Returns
        -------
        ndarray
            Of the shape of the table that the labels were read from.
        """
        result = np.full(self.shape, np.nan)
        result[self.positions] = values
        return result


def _is_row(value: Any) -> bool:
    return np.ndim(value) == 1 if hasattr(value, "dtype") else isinstance(value, list | tuple)


def _as_table(y: Any, parameter: str) -> NDArray[Any]:
    """A table as an array; rows of different lengths, or labels among rows, are an error."""
    if hasattr(y, "to_numpy") or hasattr(y, "dtype"):
        return to_numpy(y)
    rows = list(y)
    if not all(map(_is_row, rows)) or len({len(row) for row in rows}) > 1:
        rule = "a table with a row per sample and a column per annotator, rows of equal length"
        raise must_be(parameter, rule, "rows of different lengths, or single labels among rows")
    table = np.empty((len(rows), len(rows[0]) if rows else 0), dtype=object)
    for number, row in enumerate(rows):
        table[number] = row
    return table


def _in_order_of_occurrence(values: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """The distinct values in the order in which they first occur, and the number of every value."""
    numbers: dict[Any, int] = {}
    found = np.array([numbers.setdefault(value, len(numbers)) for value in values.tolist()], dtype=np.int64)
    distinct = np.empty(len(numbers), dtype=values.dtype)
    distinct[:] = list(numbers)
    return distinct, found
