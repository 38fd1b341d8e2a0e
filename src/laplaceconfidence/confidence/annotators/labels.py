"""The labels of several annotators as class codes, in the form that the noise model needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray


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


def _indicator(of: IntArray, n_rows: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(of)), (of, np.arange(len(of)))), shape=(n_rows, len(of)))
