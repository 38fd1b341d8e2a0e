"""Labels held out in folds, and the comparison of two estimates on held-out labels.

A model with fold f held out must not depend on the labels of fold f. If it learns soft targets, these must
not depend on them either, nor on the label of the sample they belong to: they come from models with *two*
folds held out, f and the fold of the sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.data.labels import MISSING

STANDARD_ERRORS = 2.0  # the usual rule of thumb; not tuned


def clearly_worse(worse: FloatArray, better: FloatArray) -> bool:
    """Whether one estimate makes the same held-out labels clearly less likely than another.

    Parameters
    ----------
    worse, better : ndarray of shape (n,)
        Log-likelihood of every held-out label under each of the two estimates.

    Returns
    -------
    bool
        True if the mean loss exceeds two standard errors; a tie is not clearly worse.
    """
    loss = better - worse
    return bool(loss.mean() > STANDARD_ERRORS * loss.std() / np.sqrt(len(loss)))


def stratified_folds(codes: IntArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Assign samples to folds such that every class is divided evenly.

    Samples without a label are treated as one more class.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Label codes, ``MISSING`` where there is no label.
    n_folds : int
        Number of folds.
    rng : numpy.random.Generator
        Draws the folds.

    Returns
    -------
    ndarray of shape (n,)
        Fold numbers from 0 to ``n_folds - 1``.
    """
    folds = np.empty(len(codes), dtype=np.int64)
    for code in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == code))
        folds[members] = (np.arange(len(members)) + rng.integers(n_folds)) % n_folds
    return folds


@dataclass(frozen=True, slots=True)
class HeldOutFolds:
    """Which labels are visible with one fold or a pair of folds held out.

    Attributes
    ----------
    folds : ndarray of shape (n,)
        The fold of every sample.
    n_folds : int
        Number of folds.
    labeled : ndarray of bool, shape (n,)
        Whether the sample has a label.
    """

    folds: IntArray
    n_folds: int
    labeled: BoolArray

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of different folds, in order."""
        return list(combinations(range(self.n_folds), 2))

    def visible_without_pairs(self) -> FloatArray:
        """Which labels are visible with each pair of folds held out.

        Returns
        -------
        ndarray of float32, shape (n, pairs)
            1 where the label is visible, else 0.
        """
        visible = [(self.folds != f) & (self.folds != g) & self.labeled for f, g in self.pairs]
        return np.stack(visible, axis=1).astype(np.float32)

    def visible_without_folds(self) -> FloatArray:
        """Which labels are visible with each fold held out.

        Returns
        -------
        ndarray of float32, shape (n, folds)
            1 where the label is visible, else 0.
        """
        return np.asarray(self.outside() & self.labeled[:, None], dtype=np.float32)

    def outside(self) -> BoolArray:
        """Which samples are not in each fold.

        Returns
        -------
        ndarray of bool, shape (n, folds)
        """
        mask: BoolArray = self.folds[:, None] != np.arange(self.n_folds)
        return mask

    def pair_numbers(self) -> IntArray:
        """The number of the pair of the sample's fold and each other fold.

        Returns
        -------
        ndarray of shape (n, folds)
            Positions in ``pairs``; 0, which is not meaningful, at the sample's own fold.
        """
        table = np.zeros((self.n_folds, self.n_folds), dtype=np.int64)
        for number, (f, g) in enumerate(self.pairs):
            table[f, g] = table[g, f] = number
        numbers: IntArray = table[self.folds]
        return numbers

    def pairs_of_fold(self) -> IntArray:
        """The numbers of the pairs that each fold is in.

        Returns
        -------
        ndarray of shape (folds, folds - 1)
            Positions in ``pairs``.
        """
        return np.array(
            [
                [number for number, pair in enumerate(self.pairs) if fold in pair]
                for fold in range(self.n_folds)
            ]
        )

    def mean_over_others(self, values: FloatArray) -> FloatArray:
        """Mean over the folds that a sample is not in.

        Parameters
        ----------
        values : ndarray of shape (n, folds, R)
            Values.

        Returns
        -------
        ndarray of shape (n, R)
        """
        kept = np.where(self.outside()[:, :, None], values, np.float32(0))
        return np.asarray(kept.sum(axis=1) / np.float32(self.n_folds - 1))

    def at_own_fold(self, values: FloatArray) -> FloatArray:
        """Select the values at every sample's own fold, with its own label held out.

        Parameters
        ----------
        values : ndarray of shape (n, folds, ...)
            Values.

        Returns
        -------
        ndarray of shape (n, ...)
        """
        return np.asarray(values[np.arange(len(self.folds)), self.folds])


def make_held_out_folds(codes: IntArray, n_folds: int, rng: np.random.Generator) -> HeldOutFolds:
    """Assign labels to stratified folds.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Label codes, ``MISSING`` where there is no label.
    n_folds : int
        Number of folds.
    rng : numpy.random.Generator
        Draws the folds.

    Returns
    -------
    HeldOutFolds
    """
    return HeldOutFolds(stratified_folds(codes, n_folds, rng), n_folds, codes != MISSING)
