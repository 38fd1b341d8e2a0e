"""The labels of several annotators: who gave which label to which sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray, to_numpy
from laplaceconfidence.data.labels import MISSING, encode_labels
from laplaceconfidence.exceptions import InvalidInputError
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
        table = _as_table(y)
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


@dataclass(frozen=True, eq=False)
class CodedLabels:
    """Labels of annotators as class codes, with what EM needs.

    Labels of one annotator and one code occur together in the likelihood, so they are one "pair".

    Attributes
    ----------
    samples, annotators, codes : ndarray of int64, shape (L,)
        Sample, annotator and class code of every label.
    n_samples, n_annotators, n_classes : int
        Numbers of samples, annotators and classes.
    """

    samples: IntArray
    annotators: IntArray
    codes: IntArray
    n_samples: int
    n_annotators: int
    n_classes: int

    @cached_property
    def _distinct(self) -> tuple[IntArray, IntArray]:
        keys, numbers = np.unique(self.annotators * self.n_classes + self.codes, return_inverse=True)
        return keys, numbers

    @property
    def pair_of(self) -> IntArray:
        """(L,) the pair of every label."""
        return self._distinct[1]

    @property
    def pair_annotators(self) -> IntArray:
        """(P,) the annotator of every pair."""
        return np.asarray(self._distinct[0] // self.n_classes)

    @property
    def pair_codes(self) -> IntArray:
        """(P,) the class code of every pair."""
        return np.asarray(self._distinct[0] % self.n_classes)

    @cached_property
    def by_sample(self) -> sparse.csr_array:
        """(n, P) how often every sample was given the label of a pair."""
        shape = (self.n_samples, len(self._distinct[0]))
        return sparse.csr_array((np.ones(len(self.samples)), (self.samples, self.pair_of)), shape=shape)

    @cached_property
    def by_annotator(self) -> sparse.csr_array:
        """(A, P) indicator of the annotator of a pair."""
        return _indicator(self.pair_annotators, self.n_annotators)

    @cached_property
    def by_code(self) -> sparse.csr_array:
        """(C, P) indicator of the code of a pair."""
        return _indicator(self.pair_codes, self.n_classes)

    def votes(self) -> FloatArray:
        """(n, C) how often every sample was given every label."""
        return np.asarray((self.by_sample @ self.by_code.T).toarray())

    def without(self, annotators: IntArray) -> CodedLabels:
        """Leave out the labels of some annotators, who keep their numbers.

        Parameters
        ----------
        annotators : ndarray of int64
            Whose labels are left out.

        Returns
        -------
        CodedLabels
        """
        kept = ~np.isin(self.annotators, annotators)
        return CodedLabels(
            self.samples[kept],
            self.annotators[kept],
            self.codes[kept],
            self.n_samples,
            self.n_annotators,
            self.n_classes,
        )


def _as_table(y: Any) -> NDArray[Any]:
    """A table as an array; rows of different lengths are an error."""
    if hasattr(y, "to_numpy") or hasattr(y, "dtype"):
        return to_numpy(y)
    rows = list(y)
    if len({len(row) for row in rows if isinstance(row, Sequence) and not isinstance(row, str)}) > 1:
        raise InvalidInputError("'y' must have rows of equal length, one entry per annotator.")
    return np.array(rows, dtype=object)


def _in_order_of_occurrence(values: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """The distinct values in the order in which they first occur, and the number of every value."""
    numbers: dict[Any, int] = {}
    found = np.array([numbers.setdefault(value, len(numbers)) for value in values.tolist()], dtype=np.int64)
    distinct = np.empty(len(numbers), dtype=values.dtype)
    distinct[:] = list(numbers)
    return distinct, found


def _indicator(of: IntArray, n_rows: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(of)), (of, np.arange(len(of)))), shape=(n_rows, len(of)))
